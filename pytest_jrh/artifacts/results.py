"""The result of a case: what is known of it by its spec, the case and the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.artifacts.records import case_digest, content_digest
from pytest_jrh.artifacts.reuse import rejected_cases
from pytest_jrh.models import CaseResult, Rejection
from pytest_jrh.suite.ids import case_id

if TYPE_CHECKING:
    from pytest_jrh.models import Case, CaseSpec, Judgment
    from pytest_jrh.suite.suite import Suite


def case_result(
    spec: CaseSpec,
    case: Case | None,
    outcome: str,
    *,
    judgment: Judgment | None = None,
    detail: str = "",
    judge_fingerprint: str = "",
    rejected: Case | None = None,
) -> CaseResult:
    """The result of one spec, without what it took; `case` is None where none was made, and
    `rejected` the one that the verifier rejected.
    """
    return CaseResult(
        case_id=case_id(spec),
        suite=spec.suite,
        test=spec.test,
        rubric_id=spec.rubric_id,
        run_id=spec.run_id,
        epoch=spec.epoch,
        cluster=spec.cluster,
        judge=spec.judge or "",
        target_score=spec.target_score,
        outcome=outcome,  # type: ignore[arg-type]
        reworded=case.reworded if case else False,
        altered=case.altered if case else False,
        expected=case.expected if case else None,
        verified=case.verified if case else None,
        labelled_by=case.label.by if case and case.label else None,
        score=judgment.score if judgment else None,
        scores=judgment.scores if judgment else (),
        reasoning=judgment.shown.reasoning if judgment else "",
        minority=judgment.minority if judgment else None,
        detail=detail,
        case_digest=case_digest(case) if case else "",
        judge_fingerprint=judge_fingerprint,
        rejected=None if rejected is None else _rejection(rejected),
        base=spec.base,
        variant=spec.variant,
        content=content_digest(case) if case else "",
    )


def rejected_results(suite: Suite) -> tuple[CaseResult, ...]:
    """What stands for the cases that the verifier rejected in earlier sessions.

    Raises `InputError` where their file cannot be used.
    """
    return tuple(
        case_result(case.spec, None, "no_case", rejected=case) for case in rejected_cases(suite)
    )


def _rejection(case: Case) -> Rejection:
    said = case.outcome.verification
    assert said is not None
    verdict = int(said.verdict == "FAIL") if said.score is None else said.score
    return Rejection(case_digest(case), case.expected, verdict)
