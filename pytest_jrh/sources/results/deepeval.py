"""DeepEval's test runs: `.deepeval/.latest_run_full.json`, which each run overwrites, the files of
`DEEPEVAL_RESULTS_FOLDER`, and what `evaluate()` returns, as JSON. As DeepEval 4.3 writes them.

Each metric with a model that evaluates is a verdict, passed or not at its own threshold. One that
failed counts there as not passed; its `error` tells it apart. No label of a person is in such a
file, but what `metadata` of a test case says, as a column of that name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_jrh.core.documents import Json
from pytest_jrh.core.scales import BINARY
from pytest_jrh.sources.results.scores import (
    UNKNOWN,
    Entry,
    Results,
    Score,
    mappings,
    outputs_apart,
    plain_fields,
    text,
    text_in,
)

_NAMES = ("testCases", "conversationalTestCases", "test_results")
LISTS = (*_NAMES, *(f"testRunData.{name}" for name in _NAMES))
_METRICS = ("metricsData", "metrics_data")


def is_entry(entry: Entry) -> bool:
    """Whether it is a test case."""
    return bool(entry.keys() & {*_METRICS})


def read(entries: Sequence[Entry], results: Results) -> None:
    """Add the verdicts of test cases."""
    cases: list[tuple[int, list[Entry]]] = []
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
        outputs.append(_fields(entry))
    names = outputs_apart(names, outputs, results)
    for name, fields, (index, metrics) in zip(names, outputs, cases, strict=True):
        scores = []
        for metric in metrics:
            model = text_in(metric, "evaluationModel", "evaluation_model")
            score = Score(
                index=index,
                case=name,
                metric=text_in(metric, "name"),
                value=_verdict(metric),
                # A metric of one's own may ask a model and not say so.
                by="judge" if model else "other",
                scorer=model,
                reasoning=text_in(metric, "reason"),
                number=metric.get("score"),
                fields=fields,
            )
            scores.append(score)
        results.add(scores)


def _verdict(metric: Entry) -> str | None:
    """Whether a metric was passed; None where it failed, or gave no score."""
    score, passed = metric.get("score"), metric.get("success")
    is_scored = isinstance(score, int | float) and isinstance(passed, bool)
    return BINARY.words[not passed] if is_scored and not metric.get("error") else None


def _fields(entry: Entry) -> Json:
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
