"""From results and records to the cases of an Inspect log (rule I8: `--jrh-eval-log`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.models import JUDGED, UNSCORED
from pytest_jrh.sources.judged_logs import JudgedCase
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_jrh.artifacts.spools import ReadRecord
    from pytest_jrh.models import CaseResult


def judged_cases(results: Iterable[CaseResult], read: ReadRecord) -> Iterator[JudgedCase]:
    """Yield every case that was to be judged, with its transcript where there is a record of it.

    One record at a time is read. What is no case, or was made only, is no part of such a log.
    """
    for result in results:
        if result.outcome in JUDGED or result.outcome in UNSCORED:
            yield _case(result, read(made_case_id(result)) or {})


def _case(result: CaseResult, record: Mapping[str, Any]) -> JudgedCase:
    return JudgedCase(
        case_id=result.case_id,
        judge=result.judge,
        input=record.get("input", ""),
        messages=record.get("perturbed_messages", ()),
        outcome=result.outcome,
        expected=result.expected,
        score=result.score,
        reasoning=result.reasoning,
        detail=result.detail,
        metadata=_about(result, record),
    )


def _about(result: CaseResult, record: Mapping[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {
        "suite": result.suite,
        "test": result.test,
        "rubric": result.rubric_id,
        "run": result.run_id,
        "run_epoch": result.epoch,
        "target_score": result.target_score,
        "label_verified": result.verified,
    }
    if record:
        perturbation = record["perturbation"]
        about["rubric_instructions"] = record["target_rubric"]["instructions"]
        about["plan"] = perturbation["plan"]
        about["edits"] = [
            {
                "message_index": step["message_index"],
                "before": step["original_content"],
                "after": step["edited_content"],
            }
            for step in perturbation["steps"]
        ]
    return {name: value for name, value in about.items() if value is not None}
