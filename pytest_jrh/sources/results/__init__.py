"""Files of the tools in which verdicts of judges and labels of people already are, one form a tool:
what recognizes a file, and what reads its entries.

First those that run tests of outputs, and let models judge these. Then platforms on which models
and people score what was traced: each has a type of source, which says whose a score is, a judge's,
a person's, or that of whoever used the API, which may be either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_jrh.core import InputError, frozen, grouped, printable, shown
from pytest_jrh.core.documents import as_word
from pytest_jrh.core.scales import BINARY
from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    By,
    Entry,
    Found,
    Results,
    Score,
    case_names,
    is_plain,
    mappings,
    plain_fields,
    text,
    text_in,
    time_of,
)
from pytest_jrh.sources.source import at, mapping


@frozen
class Form:
    """What a tool writes: entries, or a document with `lists` of them. `is_entry` knows an entry,
    and `read` gives the scores of entries, and why others have none. `ids` are the fields that name
    an entry.
    """

    tool: str
    lists: Sequence[str]
    is_entry: Callable[[Entry], bool]
    read: Callable[[Sequence[Entry]], Iterator[Found]]
    ids: Sequence[str] = ("id",)


_JUDGED = (
    r"(not-)?(agent-rubric|answer-relevance|context-\w+|conversation-relevance|factuality|g-eval|"
    r"llm-rubric|model-graded-\w+|pi|search-rubric|trajectory:goal-success)$|promptfoo:redteam:"
)
_FAILED = (
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


def read_promptfoo(entries: Sequence[Entry]) -> Iterator[Found]:
    """The verdicts of promptfoo's results, and the grades of people.

    `promptfoo eval -o results.json` (or `.jsonl`), and with grades of people in its viewer
    `promptfoo export eval ID -o results.json`. Version 3, as promptfoo 0.121 writes it.

    An assertion that a model judges is a verdict, under its metric or its type; one of another type
    may be a judge's own code, which an option names. The type `human` is a grade of the whole
    output. A grader that fails is a failed assertion there (`graderError`).
    """
    outputs = {}
    asked = []
    for index, entry in enumerate(entries):
        is_known = isinstance(entry.get("testIdx"), int) and isinstance(entry.get("promptIdx"), int)
        if not is_known or not isinstance(entry.get("vars"), dict):
            is_csv = "Grader Reason" in entry
            yield "in CSV (export the results as JSON instead)" if is_csv else UNKNOWN
        elif mapping(entry.get("gradingResult")):
            outputs[index] = entry
            for kind, question, _ in _parts(entry):
                asked.append(((kind, question), entry["testIdx"]))
        else:
            yield "with an error or without a grade"
    # What is asked in one test alone is no rubric.
    shared = {assertion for assertion, tests in grouped(asked).items() if len({*tests}) > 1}
    for entry, output in zip(outputs.values(), _outputs(outputs), strict=True):
        scores = []
        grades = set()
        for kind, question, part in _parts(entry):
            passed = part.get("pass")
            if not isinstance(passed, bool):
                yield "with an assertion without a verdict"
            elif kind == "human":
                grades.add(BINARY.words[not passed])
            else:
                metric = kind
                if question and (kind, question) in shared:
                    metric = f"{kind}: {question}"
                score = _judged(entry, part, replace(output, metric=metric))
                if not re.match(_JUDGED, kind):
                    score = replace(score, by="other", scorer="")
                scores.append(score)
        yield from scores
        judged = [score for score in scores if score.by == "judge"]
        if len(grades) > 1:
            yield "with people's grades that contradict each other"
        elif grades:
            yield from _label(judged or scores, *grades)


def _outputs(entries: Mapping[int, Entry]) -> Iterator[Score]:
    """What the scores of each output have alike; those with the same variables share a cluster."""
    has_several = len({entry["promptIdx"] for entry in entries.values()}) > 1
    clusters: dict[str, str] = {}
    for index, entry in entries.items():
        variables = entry["vars"]
        name = f"test {entry['testIdx'] + 1}"
        # The id of the test comes before that of its variables.
        for case_id in (variables.get("id"), at(entry, "/testCase/metadata/id")):
            if is_plain(case_id):
                name = str(case_id)
        response = at(entry, "/response/output")
        fields = {
            "input": text_in(entry, "/prompt/raw"),
            "output": response if isinstance(response, str) else json.dumps(response),
        }
        yield Score(
            index,
            f"{name}, output {entry['promptIdx'] + 1}" if has_several else name,
            cluster=clusters.setdefault(json.dumps(variables) if variables else name, name),
            output=json.dumps([variables, fields]),
            fields=fields
            | plain_fields("vars", variables)
            | plain_fields("metadata", at(entry, "/testCase/metadata")),
        )


def _label(judged: list[Score], grade: str) -> Iterator[Found]:
    """A person's grade of an output; of several verdicts it stands beside what they come to."""
    if not judged or (len(judged) > 1 and not all(score.value for score in judged)):
        yield "with a person's grade, but without a verdict on the whole output"
        return
    score = judged[0]
    if len(judged) > 1:
        verdict = BINARY.words[BINARY.words[1] in [score.value for score in judged]]
        score = replace(score, metric="all judgements", value=verdict, reasoning="", number=None)
        yield score
    yield replace(score, value=grade, by="person", scorer="")


def _parts(entry: Entry) -> Iterator[tuple[str, str, Entry]]:
    """The assertions of an output, with type and what is asked; those of a set stand beside it."""
    graded = mapping(entry["gradingResult"])
    for part in mappings(graded.get("componentResults")) or [graded]:
        if mapping(part.get("assertion")) or not isinstance(part.get("componentResults"), list):
            question = printable(text_in(part, "/assertion/value"))
            yield text_in(part, "/assertion/type"), question, part


def _judged(entry: Entry, part: Entry, output: Score) -> Score:
    """The verdict of an assertion, None where its grader failed; its metric may have a name."""
    reason = text_in(part, "reason")
    provider = at(part, "/assertion/provider") or at(entry, "/testCase/options/provider")
    has_failed = at(part, "/metadata/graderError") or re.match(_FAILED, reason)
    return replace(
        output,
        metric=printable(text_in(part, "/assertion/metric")) or output.metric,
        value=None if has_failed else BINARY.words[not part["pass"]],
        scorer=text(provider) or text_in(mapping(provider), "id"),
        reasoning=reason,
        number=part.get("score"),
        fields={**output.fields, "rubric_text": text_in(part, "/assertion/value")},
    )


_DEEPEVAL = ("testCases", "conversationalTestCases", "test_results")
_METRICS = ("metricsData", "metrics_data")


def read_deepeval(entries: Sequence[Entry]) -> Iterator[Found]:
    """The verdicts of DeepEval's test runs.

    `.deepeval/.latest_run_full.json`, which each run overwrites, the files of
    `DEEPEVAL_RESULTS_FOLDER`, and what `evaluate()` returns, as JSON. As DeepEval 4.3 writes them.

    Each metric with a model that evaluates is a verdict, passed or not at its own threshold. One
    that failed counts there as not passed; its `error` tells it apart. No label of a person is in
    such a file, but what `metadata` of a test case says, as a column of that name.
    """
    for index, entry in enumerate(entries):
        metrics = []
        for key in _METRICS:
            metrics += mappings(entry.get(key))
        name, turns = text_in(entry, "name"), []
        # Of a conversation all turns are the answer.
        for turn in mappings(entry.get("turns")):
            turns.append(f"{turn.get('role')}: {turn.get('content')}")
        answer = entry.get("actualOutput") or entry.get("actual_output")
        metadata = entry.get("metadata") or entry.get("additionalMetadata")
        fields = {
            "input": text_in(entry, "input"),
            "output": text(answer) or "\n\n".join(turns),
            **plain_fields("metadata", metadata),
        }
        output = json.dumps(fields)
        if not metrics:
            yield "without a metric" if name else UNKNOWN
        for metric in metrics:
            model = text_in(metric, "evaluationModel", "evaluation_model")
            passed, number = metric.get("success"), metric.get("score")
            is_scored = isinstance(number, int | float) and isinstance(passed, bool)
            yield Score(
                index,
                name or "test case",
                metric=text_in(metric, "name"),
                value=BINARY.words[not passed] if is_scored and not metric.get("error") else None,
                # A metric of one's own may ask a model and not say so.
                by="judge" if model else "other",
                scorer=model,
                reasoning=text_in(metric, "reason"),
                number=number,
                output=output,
                fields=fields,
            )


# Whose a score is, by what Langfuse, LangSmith and MLflow call its source.
_SOURCES: Mapping[str, By] = {
    "EVAL": "judge",
    "ANNOTATION": "person",
    "API": "other",
    "model": "judge",
    "auto_eval": "judge",
    "app": "person",
    "api": "other",
    "LLM_JUDGE": "judge",
    "HUMAN": "person",
    "CODE": "other",
}
_TRACE_IDS = ("trace_id", "request_id")
_SUBJECTS = ("traceId", "sessionId", "datasetRunId", "subject")


def read_langfuse(entries: Sequence[Entry]) -> Iterator[Found]:
    """Langfuse's scores.

    The export of its table of scores (CSV, JSON or JSON lines), and what `GET
    /api/public/v2/scores` and `/api/public/v3/scores` answer (`{"data": [...]}`), the latter with
    `fields=details,subject,annotation`. As Langfuse 3 and its SDK 5 have them.
    """
    subjects = [*map(_subject, entries)]
    cases = case_names(subjects)
    for index, entry in enumerate(entries):
        subject, _ = subjects[index]
        name, by = text_in(entry, "name"), _SOURCES.get(text_in(entry, "source"))
        value = _score_value(entry)
        if not name or by is None:
            yield UNKNOWN
        elif not subject:
            yield "without traceId (with v3 of Langfuse's API, request fields=subject)"
        elif entry.get("dataType") in ("TEXT", "CORRECTION"):
            yield "with a text or a correction as the score"
        elif value is None:
            yield "without a value, or with two different values"
        else:
            yield Score(
                index,
                cases[index],
                metric=name,
                value=value,
                by=by,
                scorer=text_in(entry, "authorUserId", "authorUserName"),
                reasoning=text_in(entry, "comment"),
                cluster=text_in(entry, "sessionId") or subject,
                time=time_of(by, entry, "timestamp", "updatedAt"),
            )


def _subject(entry: Entry) -> tuple[str, str]:
    """What a score is about: the trace, or another subject, and which observation of it."""
    id_ = text_in(entry, "/subject/id")
    if at(entry, "/subject/kind") == "observation":
        return text_in(entry, "/subject/traceId") or id_, id_
    return text_in(entry, *_SUBJECTS) or id_, text_in(entry, "observationId")


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


def read_langsmith(entries: Sequence[Entry]) -> Iterator[Found]:
    """LangSmith's feedback on runs, and what people corrected of it.

    What `client.list_feedback(run_ids=...)` gives, as JSON or JSON lines, and what `GET /feedback`
    answers. As its SDK 0.15 has them. What a person corrects of an evaluator's feedback
    (`correction`) is a label.
    """
    for index, entry in enumerate(entries):
        run, key = text_in(entry, "run_id"), text_in(entry, "key")
        by = _SOURCES.get(text_in(entry, "/feedback_source/type"))
        value, corrected = _feedback_value(entry), _feedback_value(mapping(entry.get("correction")))
        # An evaluator that fails leaves no score.
        has_failed = by == "judge" and at(entry, "/extra/error")
        if has_failed:
            value = None
        if not run or not key or by is None:
            yield UNKNOWN
            continue
        score = Score(
            index,
            run,
            metric=key,
            value=value,
            by=by,
            reasoning=text_in(entry, "comment"),
            cluster=text_in(entry, "trace_id") or run,
            time=time_of(by, entry, "created_at", "modified_at"),
        )
        if by != "judge":
            # Beside an evaluator's feedback it is whose key was used.
            user = text_in(entry, "/feedback_source/user_id", "/feedback_source/ls_user_id")
            score = replace(score, scorer=user)
        yield "without a score" if value is None and not has_failed else score
        if corrected is not None:
            yield replace(score, value=corrected, by="person", reasoning="")


def _feedback_value(entry: Entry) -> Any:
    """The word of feedback, where it has one, else its score."""
    score = entry.get("score")
    return text_in(entry, "value") or (score if is_plain(score) else None)


def read_mlflow(entries: Sequence[Entry]) -> Iterator[Found]:
    """The feedback in MLflow's traces with their assessments.

    `mlflow.search_traces(...).to_json(FILE, orient="records", lines=True)`, and traces as JSON
    (`trace.to_json()`, lists of `trace.to_dict()`, `{"traces": [...]}`). As MLflow 3 writes them. A
    person who corrects a judge overrides its assessment, which is then no longer `valid`, and still
    what the judge said.
    """
    for index, entry in enumerate(entries):
        info = _info(entry)
        trace = text_in(info, *_TRACE_IDS)
        if not trace:
            yield UNKNOWN
            continue
        assessments = mappings(info.get("assessments"))
        replaced_by, subjects = {}, []
        for assessment in assessments:
            replaced_by[text_in(assessment, "overrides")] = _by(assessment)
            subjects.append((trace, text_in(assessment, "span_id")))
        for case, assessment in zip(case_names(subjects), assessments, strict=True):
            name, by = text_in(assessment, "assessment_name"), _by(assessment)
            is_corrected = replaced_by.get(text_in(assessment, "assessment_id")) == "person"
            value, is_failed = at(assessment, "/feedback/value"), at(assessment, "/feedback/error")
            if "feedback" not in assessment:
                yield "with an expectation or an issue"
            elif by is None or not name or not (is_plain(value) or is_failed):
                yield "with an assessment of an unknown form"
            elif assessment.get("valid") is False and not (by == "judge" and is_corrected):
                yield "with an assessment that was replaced later"
            else:
                yield Score(
                    index,
                    case,
                    metric=name,
                    value=None if is_failed else value,
                    by=by,
                    scorer=text_in(assessment, "/source/source_id"),
                    reasoning=text_in(assessment, "rationale"),
                    cluster=trace,
                    time=time_of(by, assessment, "create_time", "last_update_time"),
                    fields=_fields(entry, info),
                )


def _by(assessment: Entry) -> By | None:
    return _SOURCES.get(text_in(assessment, "/source/source_type"))


def _info(trace: Entry) -> Entry:
    """What is known of a trace, which a row of a data frame says itself."""
    return mapping(trace.get("info")) or trace


def _fields(trace: Entry, info: Entry) -> dict[str, str]:
    """What was asked and answered; a trace by itself has a preview of them."""
    fields = {}
    for name, column, key in (("input", "request", "Inputs"), ("output", "response", "Outputs")):
        value = trace.get(column) or info.get(f"{column}_preview")
        value = value or at(info, f"/trace_metadata/mlflow.trace{key}")
        fields[name] = value if isinstance(value, str) else json.dumps(value)
    return fields


FORMS = (
    Form("promptfoo", ["results.results"], is_promptfoo_result, read_promptfoo),
    Form(
        "DeepEval",
        [*_DEEPEVAL, *(f"testRunData.{name}" for name in _DEEPEVAL)],
        lambda entry: bool(entry.keys() & {*_METRICS}),
        read_deepeval,
    ),
    Form(
        "Langfuse",
        ["data"],
        lambda entry: (
            {"name", "source", "value"} <= entry.keys()
            and bool(entry.keys() & {*_SUBJECTS, "dataType"})
        ),
        read_langfuse,
    ),
    Form(
        "MLflow",
        ["traces"],
        lambda entry: isinstance(_info(entry).get("assessments"), list),
        read_mlflow,
        _TRACE_IDS,
    ),
    Form(
        "LangSmith",
        ["feedback"],
        lambda entry: (
            {"key", "run_id"} <= entry.keys() and bool(mapping(entry.get("feedback_source")))
        ),
        read_langsmith,
    ),
)


def read_results(
    rows: Sequence[tuple[int, Any]], file: str, *, is_document: bool
) -> Results | None:
    """The results in the rows of a file, which are its lines, or entries of one document.

    None where they are of no form. Raises `InputError` for an entry that is there twice.
    """
    lines, values = [line for line, _ in rows], [value for _, value in rows]
    for form in FORMS:
        path, entries = _entries(values, form.lists)
        if any(map(form.is_entry, mappings(entries))):
            numbers = range(1, len(entries) + 1) if is_document else lines
            results = Results(form.tool, file, path if is_document else None, numbers)
            if path and (further_pages := _further_pages(values[0])):
                results.remarks.append(
                    f"This file is only one page of {form.tool}'s answer: {further_pages}."
                )
            ids = set()
            for entry in mappings(entries):
                # One score would count as two verdicts.
                id_ = text_in(_info(entry), *form.ids)
                if id_ and id_ in ids:
                    raise InputError(
                        f"two entries have the id {shown(id_)}",
                        file,
                        hint="keep one of the entries",
                    )
                ids.add(id_)
            for found in form.read([*map(mapping, entries)]):
                if isinstance(found, str):
                    results.left_out[found] += 1
                else:
                    results.scores.append(found)
            results.tell_apart()
            return results
    return None


_NEXT = "nextcursor nextpagetoken nextpage nexturl cursor hasmore"


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
        if any(map(values.get, _NEXT.split())):
            return "there is a next page"
    return ""


def _entries(values: Sequence[Any], lists: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """The entries of a file; those of lists in a document behind the path of the first of them."""
    if len(values) != 1:
        return "", values
    first = ""
    entries: list[Any] = []
    for path in lists:
        value = at(values[0], f"/{path.replace('.', '/')}")
        if isinstance(value, list) and value:
            first = first or path
            entries += value
    return first, entries or values
