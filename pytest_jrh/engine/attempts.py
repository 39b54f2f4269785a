"""One go at one spec, and what came of it.

How a session's cases are run, in one frozen value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from pytest_jrh.core.model import Spending
from pytest_jrh.store.results import case_result

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from pytest_jrh.core.model import (
        Case,
        CaseResult,
        CaseSpec,
        Complete,
        HumanReview,
        Judgment,
        RecordMode,
        SharedCall,
        ShownTurns,
        Skip,
        Verdict,
    )
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.llm.budget import Ledger
    from pytest_jrh.llm.transport import RetryPolicy
    from pytest_jrh.recording.tapes import Tape
    from pytest_jrh.review.board import ReviewDesk
    from pytest_jrh.store.decisions import Decision


T = TypeVar("T")


@dataclass
class SharedWork(Generic[T]):
    """A case made, or judged, for several specs; `claimed` says that its cost counts for one."""

    attempt: Attempt
    task: asyncio.Task[T]
    asked_by: set[CaseSpec] = field(default_factory=set)
    claimed: bool = False

    def is_spent(self, spec: CaseSpec) -> bool:
        """Whether it failed, and a spec that knows so asks again: a rerun is worth another try."""
        return spec in self.asked_by and self.task.done() and self.task.exception() is not None


@dataclass
class Attempt:
    """One go at one spec: its case once it is made, and the tapes that its calls went through.

    `missing_repeats` counts the repeats that a session which only looks did not find recorded, and
    `earlier_verdicts` are those of the repeats before one that has no verdict. Of a case of a probe
    `base` is the go at the case that it changes, and of one that probes change `waits` says that
    its askers hold the places among the cases at work. `counted` is False where what it took counts
    for another case. `shared_tapes` are those that its case was made with by another judge's go.
    """

    spec: CaseSpec
    case: Case | None = None
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    tapes: list[Tape] = field(default_factory=list)
    judging: Tape | None = None
    missing_repeats: int = 0
    earlier_verdicts: tuple[Verdict, ...] = ()
    base: Attempt | None = None
    waits: bool = False
    counted: bool = True
    base_scores: tuple[int, ...] = ()
    shared_tapes: tuple[Tape, ...] = ()
    turns_shown: ShownTurns | None = None

    @property
    def renews_case(self) -> bool:
        """Whether its case, or the one that a probe changes, was recorded beside an old one."""
        tapes = [tape for tape in (*self.shared_tapes, *self.tapes) if tape is not self.judging]
        if any(tape.renews for tape in tapes):
            return True
        return self.base is not None and self.base.renews_case

    async def settle(self, *, completed: bool) -> None:
        """Let new recordings replace old ones if the case was completed; else keep the old ones."""
        tapes = dict.fromkeys((*self.shared_tapes, *self.tapes))
        async with contextlib.AsyncExitStack() as settling:
            # The judge's comes first: who waits for it may hold the case's.
            for tape in tapes:
                settling.push_async_callback(tape.settle, completed=completed)

    def take(self, other: Attempt, *, counted: bool) -> None:
        """Be what another go at the same spec has come to."""
        self.case, self.judge_fingerprint = other.case, other.judge_fingerprint
        self.human_reviewed, self.missing_repeats = other.human_reviewed, other.missing_repeats
        self.earlier_verdicts = other.earlier_verdicts
        self.tapes, self.judging = other.tapes, other.judging
        self.turns_shown = other.turns_shown
        self.counted = counted

    def result(
        self,
        outcome: str,
        *,
        judgment: Judgment | None = None,
        detail: str = "",
        skip: Skip | None = None,
        rejected: Case | None = None,
    ) -> CaseResult:
        """What came of it, and what it took."""
        spending, judge_spending = Spending(), Spending()
        shared: SharedCall | None = None
        for go in (self, self.base):
            if go is None or not go.counted:
                continue
            if go.judging is not None:
                judge_spending += go.judging.spending
            for tape in go.tapes:
                spending += tape.spending
                shared = shared or tape.shared
        result = case_result(
            self.spec,
            self.case,
            outcome,
            judgment=judgment,
            detail=detail,
            skip=skip,
            judge_fingerprint=self.judge_fingerprint,
            rejected=rejected,
        )
        return replace(
            result,
            human_reviewed=self.human_reviewed,
            spending=spending,
            judge_spending=judge_spending if self.spec.judge is not None else None,
            shared=shared,
            base_scores=self.base_scores,
            turns_shown=self.turns_shown if judgment is not None else None,
            verdicts=result.verdicts or self.earlier_verdicts,
        )


@dataclass
class PanelGoes:
    """Settles a panel's attempts at one case together: a case that is recorded anew replaces the
    old one once all that are `awaited` have ended. `whole` says of each whether it was completed.
    """

    awaited: set[CaseSpec] = field(default_factory=set)
    whole: dict[CaseSpec, bool] = field(default_factory=dict)
    waiting: dict[CaseSpec, Attempt] = field(default_factory=dict)

    async def settle(self, attempt: Attempt, *, completed: bool) -> None:
        """Settle a go, and where it is the last, those that waited for it."""
        self.whole[attempt.spec] = completed
        if not attempt.renews_case:
            await attempt.settle(completed=completed)
        else:
            # Nobody is kept from the recordings until the others have ended, which may be long.
            await attempt.settle(completed=False)
            self.waiting[attempt.spec] = attempt
        if self.awaited <= self.whole.keys() and all(self.whole.values()):
            while self.waiting:
                _, waiting = self.waiting.popitem()
                await waiting.settle(completed=True)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a session's cases are run.

    `record_mode` and `judge_record_mode` are the command line's, over the suite's own; without
    either, nothing is asked.
    `on_case` gets every made case once, in the engine's thread, also those that the verifier
    rejected. `rerun_command` and
    `record_command` give the shell line that reruns, or records, a case; the latter takes the
    fingerprint of the judge that lacks a verdict, empty where there is no case yet. `retry` is for
    the
    session's own client; `complete` is tried again after a time-out alone. `retry_unscored` asks
    again what was recorded and could not be used; `prune` leaves verdicts of earlier judges out of
    recordings, and `prune_command` gives the shell line that does so for a case's suite.
    `processes` and `session` say how many processes
    share the session's limits, and which session it is; `shared_slots` are lock files, one for each
    call that all of them together may have in flight; `ledger` holds the budget that they share.
    Without `ask`, no call is made whatever the mode. `review` is where cases go before they are
    judged; `on_reviewed` gets each case that a person decided about and that is used, with the
    decision. `is_orphan` says whether the process that this one works for is gone: nothing more is
    asked then. `ends_session` are the errors of user code that end the session instead of the case
    alone. `selected` gives how many cases of a suite the session is to run.
    """

    max_workers: int
    redactor: Redactor
    on_case: Callable[[Case], None]
    rerun_command: Callable[[CaseSpec], str]
    record_command: Callable[[CaseSpec, str], str]
    record_mode: RecordMode | None = None
    judge_record_mode: RecordMode | None = None
    complete: Complete | None = None
    retry: RetryPolicy | None = None
    retry_unscored: bool = False
    prune: bool = False
    prune_command: Callable[[CaseSpec], str] = lambda _case: "pytest --jrh-prune"
    processes: int = 1
    shared_slots: tuple[Path, ...] = ()
    session: str = ""
    ledger: Ledger | None = None
    ask: bool = True
    review: ReviewDesk | None = None
    on_reviewed: Callable[[Case, Decision], None] = lambda _case, _decision: None
    is_orphan: Callable[[], bool] | None = None
    ends_session: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
    selected: Callable[[str], int] = lambda _suite: 1

    def mode(self, ready: ReadySuite, *, judging: bool) -> RecordMode:
        """The record mode of a suite's generation or judging."""
        modes = ready.suite.config.replay.record_modes(self.record_mode, self.judge_record_mode)
        if not self.ask and modes == ("none", "none"):
            # A plan without a record mode says what recording would take.
            return "new_episodes"
        return modes[judging]
