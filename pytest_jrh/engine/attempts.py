"""One go at one spec, and what came of it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_jrh.artifacts.results import case_result
from pytest_jrh.models import Spending

if TYPE_CHECKING:
    import asyncio

    from pytest_jrh.models import Case, CaseResult, CaseSpec, HumanReview, Judgment
    from pytest_jrh.recording.tapes import Tape


@dataclass
class Generation:
    """A case in the making for the judges of a panel, by the go of the first of them."""

    task: asyncio.Task[Case]
    maker: Attempt
    asked_by: set[CaseSpec] = field(default_factory=set)

    def is_spent(self, spec: CaseSpec) -> bool:
        """Whether it was not made, and a judge that knows so asks again: a rerun is worth another
        try.
        """
        return spec in self.asked_by and self.task.done() and self.task.exception() is not None


@dataclass
class Attempt:
    """One go at one spec: its case once it is made, and the tapes that its calls went through.

    `missing_repeats` counts the repeats that a session which only looks did not find recorded. Of a
    case of a probe `base` is the go at the case that it changes, and of one that probes change
    `waits` says that its askers hold the places among the cases at work. `counted` is False where
    what it took counts for another case. `shared_tapes` are those that its case was made with by
    another judge's go.
    """

    spec: CaseSpec
    case: Case | None = None
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    tapes: list[Tape] = field(default_factory=list)
    judging: Tape | None = None
    missing_repeats: int = 0
    base: Attempt | None = None
    waits: bool = False
    counted: bool = True
    base_scores: tuple[int, ...] = ()
    shared_tapes: tuple[Tape, ...] = ()

    async def settle(self, *, whole: bool) -> None:
        """Let new recordings take the place of old ones if the case came to its end; else the old
        ones stay.
        """
        tapes = dict.fromkeys((*self.shared_tapes, *self.tapes))
        async with contextlib.AsyncExitStack() as settling:
            # The judge's comes first: who waits for it may hold the case's.
            for tape in tapes:
                settling.push_async_callback(tape.settle, whole=whole)

    def take(self, other: Attempt, *, counted: bool) -> None:
        """Be what another go at the same spec has come to."""
        self.case, self.judge_fingerprint = other.case, other.judge_fingerprint
        self.human_reviewed, self.missing_repeats = other.human_reviewed, other.missing_repeats
        self.tapes, self.judging = other.tapes, other.judging
        self.counted = counted

    def result(
        self,
        outcome: str,
        *,
        judgment: Judgment | None = None,
        detail: str = "",
        rejected: Case | None = None,
    ) -> CaseResult:
        """What came of it, and what it took."""
        goes = [go for go in (self, self.base) if go is not None and go.counted]
        judging = [go.judging.spending for go in goes if go.judging is not None]
        tapes = [tape for go in goes for tape in go.tapes]
        result = case_result(
            self.spec,
            self.case,
            outcome,
            judgment=judgment,
            detail=detail,
            judge_fingerprint=self.judge_fingerprint,
            rejected=rejected,
        )
        return replace(
            result,
            human_reviewed=self.human_reviewed,
            spending=sum((tape.spending for tape in tapes), Spending()),
            judge_spending=sum(judging, Spending()) if self.spec.judge is not None else None,
            shared=next((tape.shared for tape in tapes if tape.shared is not None), None),
            base_scores=self.base_scores,
        )
