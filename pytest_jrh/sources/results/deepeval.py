"""DeepEval's test runs: `.deepeval/.latest_run_full.json`, which each run overwrites, the files of
`DEEPEVAL_RESULTS_FOLDER`, and what `evaluate()` returns, as JSON. As DeepEval 4.3 writes them.

Each metric with a model that evaluates is a verdict, passed or not at its own threshold. One that
failed counts there as not passed; its `error` tells it apart. No label of a person is in such a
file, but what `metadata` of a test case says, as a column of that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_jrh.core.scales import BINARY
from pytest_jrh.sources.results.scores import UNKNOWN, Results, Score, outputs_apart
from pytest_jrh.sources.results.values import mapping, mappings, plain_fields, text

_NAMES = ("testCases", "conversationalTestCases", "test_results")
LISTS = (*_NAMES, *(f"testRunData.{name}" for name in _NAMES))
_METRICS = ("metricsData", "metrics_data")


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether it is a test case."""
    return bool(entry.keys() & {*_METRICS})


def read(entries: Sequence[Any], results: Results) -> None:
    """Add the verdicts of test cases."""
    cases = []
    for place, entry in enumerate(entries):
        metrics = [one for name in _METRICS for one in mappings(mapping(entry).get(name))]
        if metrics:
            cases.append((place, mapping(entry), metrics))
        else:
            what = "test cases without a metric" if text(mapping(entry).get("name")) else UNKNOWN
            results.left_out[what] += 1
    names = [text(entry.get("name")) or "test case" for _, entry, _ in cases]
    names = outputs_apart(names, [_fields(entry) for _, entry, _ in cases], results)
    for name, (place, entry, metrics) in zip(names, cases, strict=True):
        judged = []
        for metric in metrics:
            model = text(metric.get("evaluationModel")) or text(metric.get("evaluation_model"))
            score = Score(
                place=place,
                case=name,
                metric=text(metric.get("name")),
                value=_verdict(metric),
                # A metric of one's own may ask a model and not say so.
                by="judge" if model else "other",
                who=model,
                reasoning=text(metric.get("reason")),
                number=metric.get("score"),
                fields=_fields(entry),
            )
            judged.append(score)
        results.add(judged)


def _verdict(metric: Mapping[str, Any]) -> str | None:
    """Whether a metric was passed; None where it failed, or gave no score."""
    score, passed = metric.get("score"), metric.get("success")
    is_scored = isinstance(score, int | float) and isinstance(passed, bool)
    return BINARY.words[not passed] if is_scored and not metric.get("error") else None


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked and answered; of a conversation all turns are the answer."""
    turns = [f"{turn.get('role')}: {turn.get('content')}" for turn in mappings(entry.get("turns"))]
    answer = entry.get("actualOutput") or entry.get("actual_output")
    metadata = entry.get("metadata") or entry.get("additionalMetadata")
    return {
        "input": text(entry.get("input")),
        "output": text(answer) or "\n\n".join(turns),
        **plain_fields("metadata", metadata),
    }
