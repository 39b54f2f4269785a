"""One go at one spec, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_jrh.artifacts.records import case_digest
from pytest_jrh.models import CaseResult, Spending
from pytest_jrh.suite.cases import case_id

if TYPE_CHECKING:
    import asyncio

    from pytest_jrh.models import Case, CaseSpec, HumanReview, Judgment
    from pytest_jrh.recording.tapes import Tape


@dataclass
class Generation:
    """A case in the making for the judges of a panel."""

    task: asyncio.Task[Case]
    asked_by: set[CaseSpec] = field(default_factory=set)

    def is_spent(self, spec: CaseSpec) -> bool:
        """Whether it was not made, and a judge that knows so asks again: a rerun is worth another
        try.
        """
        return spec in self.asked_by and self.task.done() and self.task.exception() is not None


@dataclass
class Attempt:
    """One go at one spec: its case once it is made, and the tapes that its calls went through.

    `missing_repeats` counts the repeats that a session which only looks did not find recorded.
    """

    spec: CaseSpec
    case: Case | None = None
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    tapes: list[Tape] = field(default_factory=list)
    judging: Tape | None = None
    missing_repeats: int = 0

    def result(
        self, outcome: str, *, judgment: Judgment | None = None, detail: str = ""
    ) -> CaseResult:
        spec, case = self.spec, self.case
        judge_spending = self.judging.spending if self.judging else Spending()
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
            expected=case.expected if case else None,
            verified=case.verified if case else None,
            labelled_by=case.label.by if case and case.label else None,
            score=judgment.score if judgment else None,
            scores=judgment.scores if judgment else (),
            reasoning=judgment.shown.reasoning if judgment else "",
            minority=judgment.minority if judgment else None,
            detail=detail,
            case_digest=case_digest(case) if case else "",
            judge_fingerprint=self.judge_fingerprint,
            human_reviewed=self.human_reviewed,
            spending=sum((tape.spending for tape in self.tapes), Spending()),
            judge_spending=judge_spending if spec.judge is not None else None,
            shared=next((tape.shared for tape in self.tapes if tape.shared is not None), None),
        )
