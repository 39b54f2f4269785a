"""Files of the tools in which verdicts of judges and labels of people already are, one form a tool:
what recognizes a file, and what reads its entries.

First those that run tests of outputs, and let models judge these. Then platforms on which models
and people score what was traced: each has a type of source, which says whose a score is, a judge's,
a person's, or that of whoever used the API, which may be either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_jrh.core import frozen
from pytest_jrh.core.documents import Json, printable, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.scales import BINARY
from pytest_jrh.core.values import as_word
from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    By,
    Entry,
    Results,
    Score,
    case_names,
    is_plain,
    mapping,
    mappings,
    outputs_apart,
    plain_fields,
    text,
    text_in,
    time_of,
)


@frozen
class Form:
    """What a tool writes: entries, or a document with `lists` of them. `is_entry` knows an entry,
    and `read` adds the scores of entries. `ids` are the fields that name an entry.
    """

    tool: str
    lists: Sequence[str]
    is_entry: Callable[[Entry], bool]
    read: Callable[[Sequence[Entry], Results], None]
    ids: Sequence[str] = ("id",)


_JUDGED = re.compile(
    r"(not-)?(agent-rubric|answer-relevance|context-\w+|conversation-relevance|factuality|g-eval|"
    r"llm-rubric|model-graded-\w+|pi|search-rubric|trajectory:goal-success)$|promptfoo:redteam:"
)
_FAILED = re.compile(
    r"No output$|(\w+ ){0,2}(API|AI|Ollama) ((call|response) )?error( \d+)?: |"
    r"Rate limit exceeded: |Error parsing output: |Invalid (option|category value): |"
    r"Factuality checker output did not match|"
    r"Could not (extract|parse) JSON from|Could not perform remote grading|"
    r"\S+ produced malformed response|Model grader produced a malformed response"
)


def is_promptfoo_result(entry: Entry) -> bool:
    """Whether it is the result of a test."""
    is_result = "vars" in entry and bool({"gradingResult", "testIdx"} & entry.keys())
    return is_result or {"Status", "Score", "Grader Reason"} <= entry.keys()


def read_promptfoo(entries: Sequence[Entry], results: Results) -> None:
    """Add the verdicts of promptfoo's results, and the grades of people.

    `promptfoo eval -o results.json` (or `.jsonl`), and with grades of people in its viewer
    `promptfoo export eval ID -o results.json`. Version 3, as promptfoo 0.121 writes it.

    An assertion that a model judges is a verdict, under its metric or its type; one of another type
    may be a judge's own code, which an option names. The type `human` is a grade of the whole
    output. A grader that fails is a failed assertion there (`graderError`).
    """
    outputs = {}
    tests: dict[tuple[str, str], set[int]] = {}
    for index, entry in enumerate(entries):
        is_known = isinstance(entry.get("testIdx"), int) and isinstance(entry.get("promptIdx"), int)
        if not is_known or not isinstance(entry.get("vars"), dict):
            reason = UNKNOWN
            if "Grader Reason" in entry:
                reason = "rows of CSV: write .json in its place"
            results.left_out[reason] += 1
        elif mapping(entry.get("gradingResult")):
            outputs[index] = entry
            for kind, question, _ in _parts(entry):
                tests.setdefault((kind, question), set()).add(entry["testIdx"])
        else:
            results.left_out["outputs with an error or without a grade"] += 1
    # What is asked in one test alone is no rubric.
    shared = {assertion for assertion, numbers in tests.items() if len(numbers) > 1}
    cases = _cases(outputs.values(), results)
    for (index, entry), (case, cluster) in zip(outputs.items(), cases, strict=True):
        scores = []
        grades = set()
        for kind, question, part in _parts(entry):
            passed = part.get("pass")
            if not isinstance(passed, bool):
                results.left_out["assertions without a verdict"] += 1
            elif kind == "human":
                grades.add(BINARY.words[not passed])
            else:
                name = kind
                if question and (kind, question) in shared:
                    name = f"{kind}: {question}"
                score = _judged(entry, part, name, index=index, case=case, cluster=cluster)
                if not _JUDGED.match(kind):
                    score = replace(score, by="other", scorer="")
                scores.append(score)
        judged = [score for score in scores if score.by == "judge"]
        if len(grades) > 1:
            results.left_out["grades of people that contradict each other"] += 1
        elif grades:
            label = _label(judged or scores, *grades)
            if not label:
                results.left_out["grades of people beside no verdict on the whole output"] += 1
            scores += label
        results.add(scores)


def _label(judged: list[Score], grade: str) -> list[Score]:
    """A person's grade of an output; of several verdicts it stands beside what they come to."""
    if len(judged) == 1:
        return [replace(judged[0], value=grade, by="person", scorer="")]
    if not judged or not all(score.value for score in judged):
        return []
    verdict = BINARY.words[BINARY.words[1] in [score.value for score in judged]]
    summary = replace(judged[0], metric="all judgements", value=verdict, reasoning="", number=None)
    return [summary, replace(summary, value=grade, by="person", scorer="")]


def _parts(entry: Entry) -> Iterator[tuple[str, str, Entry]]:
    """The assertions of an output, with type and what is asked; those of a set stand beside it."""
    graded = mapping(entry["gradingResult"])
    for part in mappings(graded.get("componentResults")) or [graded]:
        assertion = mapping(part.get("assertion"))
        if assertion or not isinstance(part.get("componentResults"), list):
            yield text_in(assertion, "type"), printable(text_in(assertion, "value")), part


def _judged(entry: Entry, part: Entry, name: str, **where: Any) -> Score:
    """The verdict of an assertion, by its metric or this name; None where its grader failed."""
    assertion, reason = mapping(part.get("assertion")), text_in(part, "reason")
    of_test = mapping(mapping(entry.get("testCase")).get("options"))
    provider = assertion.get("provider") or of_test.get("provider")
    has_failed = mapping(part.get("metadata")).get("graderError") or _FAILED.match(reason)
    return Score(
        **where,
        metric=printable(text_in(assertion, "metric")) or name,
        value=None if has_failed else BINARY.words[not part["pass"]],
        by="judge",
        scorer=text(provider) or text_in(mapping(provider), "id"),
        reasoning=reason,
        number=part.get("score"),
        fields=_output_fields(entry) | {"rubric_text": text_in(assertion, "value")},
    )


def _cases(outputs: Collection[Entry], results: Results) -> Iterable[tuple[str, str]]:
    """The names of outputs, and what those with the same variables share."""
    has_several = len({entry["promptIdx"] for entry in outputs}) > 1
    clusters: dict[str, str] = {}
    names, shared, texts = [], [], []
    for entry in outputs:
        variables, metadata = entry["vars"], mapping(mapping(entry.get("testCase")).get("metadata"))
        name = f"test {entry['testIdx'] + 1}"
        for case_id in (variables.get("id"), metadata.get("id")):
            if is_plain(case_id):
                # That of the test comes before that of its variables.
                name = str(case_id)
        shared.append(clusters.setdefault(json.dumps(variables) if variables else name, name))
        names.append(f"{name}, output {entry['promptIdx'] + 1}" if has_several else name)
        fields = _output_fields(entry)
        texts.append([variables, fields["input"], fields["output"]])
    return zip(outputs_apart(names, texts, results), shared, strict=True)


def _output_fields(entry: Entry) -> Json:
    """What was asked and answered, and what the test says beside."""
    response = mapping(entry.get("response")).get("output")
    return {
        "input": text_in(mapping(entry.get("prompt")), "raw"),
        "output": response if isinstance(response, str) else json.dumps(response),
        **plain_fields("vars", entry["vars"]),
        **plain_fields("metadata", mapping(entry.get("testCase")).get("metadata")),
    }


_LISTS = ("testCases", "conversationalTestCases", "test_results")
DEEPEVAL_LISTS = (*_LISTS, *(f"testRunData.{name}" for name in _LISTS))
_METRICS = ("metricsData", "metrics_data")


def is_deepeval_case(entry: Entry) -> bool:
    """Whether it is a test case."""
    return bool(entry.keys() & {*_METRICS})


def read_deepeval(entries: Sequence[Entry], results: Results) -> None:
    """Add the verdicts of DeepEval's test runs.

    `.deepeval/.latest_run_full.json`, which each run overwrites, the files of
    `DEEPEVAL_RESULTS_FOLDER`, and what `evaluate()` returns, as JSON. As DeepEval 4.3 writes them.

    Each metric with a model that evaluates is a verdict, passed or not at its own threshold. One
    that failed counts there as not passed; its `error` tells it apart. No label of a person is in
    such a file, but what `metadata` of a test case says, as a column of that name.
    """
    cases = []
    names, outputs = [], []
    for index, entry in enumerate(entries):
        metrics = []
        for key in _METRICS:
            metrics += mappings(entry.get(key))
        name = text_in(entry, "name")
        if not metrics:
            results.left_out["test cases without a metric" if name else UNKNOWN] += 1
            continue
        cases.append((index, metrics))
        names.append(name or "test case")
        outputs.append(_case_fields(entry))
    names = outputs_apart(names, outputs, results)
    for name, fields, (index, metrics) in zip(names, outputs, cases, strict=True):
        scores = []
        for metric in metrics:
            model = text_in(metric, "evaluationModel", "evaluation_model")
            passed, number = metric.get("success"), metric.get("score")
            is_scored = isinstance(number, int | float) and isinstance(passed, bool)
            score = Score(
                index=index,
                case=name,
                metric=text_in(metric, "name"),
                value=BINARY.words[not passed] if is_scored and not metric.get("error") else None,
                # A metric of one's own may ask a model and not say so.
                by="judge" if model else "other",
                scorer=model,
                reasoning=text_in(metric, "reason"),
                number=number,
                fields=fields,
            )
            scores.append(score)
        results.add(scores)


def _case_fields(entry: Entry) -> Json:
    """What was asked and answered; of a conversation all turns are the answer."""
    turns = []
    for turn in mappings(entry.get("turns")):
        turns.append(f"{turn.get('role')}: {turn.get('content')}")
    answer = entry.get("actualOutput") or entry.get("actual_output")
    metadata = entry.get("metadata") or entry.get("additionalMetadata")
    return {
        "input": text_in(entry, "input"),
        "output": text(answer) or "\n\n".join(turns),
        **plain_fields("metadata", metadata),
    }


_LANGFUSE: Mapping[str, By] = {"EVAL": "judge", "ANNOTATION": "person", "API": "other"}
_LANGSMITH: Mapping[str, By] = {
    "model": "judge",
    "auto_eval": "judge",
    "app": "person",
    "api": "other",
}
_MLFLOW: Mapping[str, By] = {"LLM_JUDGE": "judge", "HUMAN": "person", "CODE": "other"}
_SUBJECTS = ("traceId", "sessionId", "datasetRunId", "subject")


def is_langfuse_score(entry: Entry) -> bool:
    """Whether it is a score."""
    is_named = {"name", "source", "value"} <= entry.keys()
    return is_named and bool(entry.keys() & {*_SUBJECTS, "dataType"})


def read_langfuse(entries: Sequence[Entry], results: Results) -> None:
    """Add Langfuse's scores.

    The export of its table of scores (CSV, JSON or JSON lines), and what `GET
    /api/public/v2/scores` and `/api/public/v3/scores` answer (`{"data": [...]}`), the latter with
    `fields=details,subject,annotation`. As Langfuse 3 and its SDK 5 have them.
    """
    subjects = [*map(_subject, entries)]
    cases = case_names(subjects)
    for index, entry in enumerate(entries):
        subject, _ = subjects[index]
        name, by = text_in(entry, "name"), _LANGFUSE.get(text_in(entry, "source"))
        value = _score_value(entry)
        if not name or by is None:
            results.left_out[UNKNOWN] += 1
        elif not subject:
            results.left_out["scores without traceId, or fields=subject of v3"] += 1
        elif entry.get("dataType") in ("TEXT", "CORRECTION"):
            results.left_out["texts and corrections"] += 1
        elif value is None:
            results.left_out["scores without a value, or with two that differ"] += 1
        else:
            score = Score(
                index=index,
                case=cases[index],
                metric=name,
                value=value,
                by=by,
                scorer=text_in(entry, "authorUserId", "authorUserName"),
                reasoning=text_in(entry, "comment"),
                cluster=text_in(entry, "sessionId") or subject,
                time=time_of(by, entry, "timestamp", "updatedAt"),
            )
            results.scores.append(score)


def _subject(entry: Entry) -> tuple[str, str]:
    """What a score is about: the trace, or another subject, and which observation of it."""
    subject = mapping(entry.get("subject"))
    if subject.get("kind") == "observation":
        return text_in(subject, "traceId", "id"), text_in(subject, "id")
    return text_in(entry, *_SUBJECTS) or text_in(subject, "id"), text_in(entry, "observationId")


def _score_value(entry: Entry) -> Any:
    """The value of a score, whatever the version; a truth is 1 and `True` in most of them."""
    word, value = text_in(entry, "stringValue"), entry.get("value")
    if entry.get("dataType") == "CATEGORICAL":
        return word or text(value) or None
    if entry.get("dataType") == "BOOLEAN" and word:
        is_one = as_word(value) in ("1", "true")
        if is_plain(value) and is_one != (as_word(word) == "true"):
            return None
        value = word
    if not is_plain(value):
        return None
    # A text is of CSV.
    return text(value).casefold() or value


def is_langsmith_feedback(entry: Entry) -> bool:
    """Whether it is feedback."""
    return {"key", "run_id"} <= entry.keys() and bool(mapping(entry.get("feedback_source")))


def read_langsmith(entries: Sequence[Entry], results: Results) -> None:
    """Add LangSmith's feedback on runs, and what people corrected of it.

    What `client.list_feedback(run_ids=...)` gives, as JSON or JSON lines, and what `GET /feedback`
    answers. As its SDK 0.15 has them. What a person corrects of an evaluator's feedback
    (`correction`) is a label.
    """
    for index, entry in enumerate(entries):
        run, key = text_in(entry, "run_id"), text_in(entry, "key")
        source = mapping(entry.get("feedback_source"))
        by = _LANGSMITH.get(text_in(source, "type"))
        value, corrected = _feedback_value(entry), _feedback_value(mapping(entry.get("correction")))
        # An evaluator that fails leaves no score.
        has_failed = by == "judge" and mapping(entry.get("extra")).get("error")
        if has_failed:
            value = None
        if not run or not key or by is None:
            results.left_out[UNKNOWN] += 1
            continue
        score = Score(
            index=index,
            case=run,
            metric=key,
            value=value,
            by=by,
            reasoning=text_in(entry, "comment"),
            cluster=text_in(entry, "trace_id") or run,
            time=time_of(by, entry, "created_at", "modified_at"),
        )
        if by != "judge":
            # Beside an evaluator's feedback it is whose key was used.
            score = replace(score, scorer=text_in(source, "user_id", "ls_user_id"))
        if value is None and not has_failed:
            results.left_out["feedback without a score"] += 1
        else:
            results.scores.append(score)
        if corrected is not None:
            results.scores.append(replace(score, value=corrected, by="person", reasoning=""))


def _feedback_value(entry: Entry) -> Any:
    """The word of feedback, where it has one, else its score."""
    score = entry.get("score")
    if is_plain(score):
        return text_in(entry, "value") or score
    return text_in(entry, "value") or None


def is_mlflow_trace(entry: Entry) -> bool:
    """Whether it is a trace with assessments."""
    return isinstance(_info(entry).get("assessments"), list)


def read_mlflow(entries: Sequence[Entry], results: Results) -> None:
    """Add the feedback in MLflow's traces with their assessments.

    `mlflow.search_traces(...).to_json(FILE, orient="records", lines=True)`, and traces as JSON
    (`trace.to_json()`, lists of `trace.to_dict()`, `{"traces": [...]}`). As MLflow 3 writes them. A
    person who corrects a judge overrides its assessment, which is then no longer `valid`, and still
    what the judge said.
    """
    for index, entry in enumerate(entries):
        info = _info(entry)
        trace = text_in(info, "trace_id", "request_id")
        if not trace:
            results.left_out[UNKNOWN] += 1
            continue
        assessments = mappings(info.get("assessments"))
        replaced_by, subjects = {}, []
        for assessment in assessments:
            replaced_by[text_in(assessment, "overrides")] = _by(assessment)
            subjects.append((trace, text_in(assessment, "span_id")))
        for case, assessment in zip(case_names(subjects), assessments, strict=True):
            name, by = text_in(assessment, "assessment_name"), _by(assessment)
            is_corrected = replaced_by.get(text_in(assessment, "assessment_id")) == "person"
            feedback = mapping(assessment.get("feedback"))
            is_failed = bool(feedback.get("error"))
            if "feedback" not in assessment:
                results.left_out["expectations and issues"] += 1
            elif by is None or not name or not (is_plain(feedback.get("value")) or is_failed):
                results.left_out["assessments of an unknown form"] += 1
            elif assessment.get("valid") is False and not (by == "judge" and is_corrected):
                results.left_out["assessments that were replaced"] += 1
            else:
                score = Score(
                    index=index,
                    case=case,
                    metric=name,
                    value=None if is_failed else feedback["value"],
                    by=by,
                    scorer=text_in(mapping(assessment.get("source")), "source_id"),
                    reasoning=text_in(assessment, "rationale"),
                    cluster=trace,
                    time=time_of(by, assessment, "create_time", "last_update_time"),
                    fields=_fields(entry, info),
                )
                results.scores.append(score)


def _by(assessment: Entry) -> By | None:
    return _MLFLOW.get(text_in(mapping(assessment.get("source")), "source_type"))


def _info(trace: Entry) -> Entry:
    """What is known of a trace, which a row of a data frame says itself."""
    return mapping(trace.get("info")) or trace


def _fields(trace: Entry, info: Entry) -> dict[str, str]:
    """What was asked and answered; a trace by itself has a preview of them."""
    metadata = mapping(info.get("trace_metadata"))
    fields = {}
    for name, column, key in (("input", "request", "Inputs"), ("output", "response", "Outputs")):
        value = trace.get(column) or info.get(f"{column}_preview")
        value = value or metadata.get(f"mlflow.trace{key}")
        fields[name] = value if isinstance(value, str) else json.dumps(value)
    return fields


FORMS = (
    Form(
        "promptfoo",
        ["results.results"],
        is_promptfoo_result,
        read_promptfoo,
    ),
    Form("DeepEval", DEEPEVAL_LISTS, is_deepeval_case, read_deepeval),
    Form("Langfuse", ["data"], is_langfuse_score, read_langfuse),
    Form(
        "MLflow",
        ["traces"],
        is_mlflow_trace,
        read_mlflow,
        ["trace_id", "request_id"],
    ),
    Form("LangSmith", ["feedback"], is_langsmith_feedback, read_langsmith),
)


def read_results(values: Sequence[Any], lines: Sequence[int], file: str) -> Results | None:
    """The results in the values of a file: its lines with their numbers, or one document.

    None where they are of no form. Raises `InputError` for an entry that is there twice.
    """
    for form in FORMS:
        path, entries = _entries(values, form.lists)
        if any(map(form.is_entry, mappings(entries))):
            numbers = lines or range(1, len(entries) + 1)
            results = Results(form.tool, file, None if lines else path, numbers)
            if path and (further_pages := _further_pages(values[0])):
                remark = f"This file is one page of {form.tool}'s answer: {further_pages}."
                results.remarks.append(remark)
            ids = set()
            for entry in mappings(entries):
                # One score would count as two verdicts.
                id_ = text_in(mapping(entry.get("info")) or entry, *form.ids)
                if id_ and id_ in ids:
                    raise InputError(f"has {printable(id_)} twice", file, hint="keep one of them")
                ids.add(id_)
            form.read([*map(mapping, entries)], results)
            return results
    return None


_NEXT = ("nextcursor", "nextpagetoken", "nextpage", "nexturl", "cursor", "hasmore")


def _further_pages(document: Entry) -> str:
    """What an answer of a service says of further pages; empty where it is whole, or says nothing.

    Services count pages, or name the next one, beside the list or in a part of its own.
    """
    for part in (document, *map(mapping, document.values())):
        values = {}
        for name, value in part.items():
            values[name.replace("_", "").casefold()] = value
        page, pages = values.get("page"), values.get("totalpages")
        if isinstance(pages, int) and pages > 1:
            return f"page {shown(page)} of {pages}"
        for name in _NEXT:
            if values.get(name):
                return "it names a next one"
    return ""


def _entries(values: Sequence[Any], lists: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """The entries of a file; those of lists in a document behind the path of the first of them."""
    if len(values) != 1:
        return "", values
    first = ""
    entries: list[Any] = []
    for path in lists:
        value = values[0]
        for name in path.split("."):
            value = mapping(value).get(name)
        if isinstance(value, list) and value:
            first = first or path
            entries += value
    return first, entries or values
