"""Tools that run tests of outputs, and let models judge these."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_jrh.core.documents import Json, printable
from pytest_jrh.core.scales import BINARY
from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    Entry,
    Results,
    Score,
    is_plain,
    mapping,
    mappings,
    outputs_apart,
    plain_fields,
    text,
    text_in,
)

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
