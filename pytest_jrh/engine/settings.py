"""How a session's cases are run, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.llm.budget import Ledger
    from pytest_jrh.llm.pace import RetryPolicy
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import Case, CaseSpec, Complete, RecordMode
    from pytest_jrh.models.terms import Replay
    from pytest_jrh.redact import Redactor
    from pytest_jrh.review.decisions import Decision
    from pytest_jrh.review.desk import ReviewDesk


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a session's cases are run.

    `record_mode` and `judge_record_mode` are the command line's, over the suite's own; without
    either, nothing is asked. `keep` is False where answers are asked for and not recorded.
    `on_case` gets every made case once, in the engine's thread, also those that the verifier
    rejected. `rerun_command` and
    `record_command` give the shell line that reruns, or records, a case; the latter takes the
    fingerprint of the judge that lacks a verdict, empty where there is no case yet. `retry` is for
    the
    session's own client; `complete` is tried again after a time-out alone. `retry_unscored` asks
    again what was recorded and could not be used. `processes` and `session` say how many processes
    share the session's limits, and which session it is; `shared_slots` are lock files, one for each
    call that all of them together may have in flight; `ledger` holds the budget that they share.
    Without `ask`, no call is made whatever the mode. `review` is where cases go before they are
    judged; `on_reviewed` gets each case that a person decided about and that is used, with the
    decision. `is_orphan` says whether the process that this one works for is gone: nothing more is
    asked then. `ends_session` are the errors of user code that end the session instead of the case
    alone.
    """

    max_workers: int
    redactor: Redactor
    on_case: Callable[[Case], None]
    rerun_command: Callable[[CaseSpec], str]
    record_command: Callable[[CaseSpec, str], str]
    record_mode: RecordMode | None = None
    judge_record_mode: RecordMode | None = None
    cassette_dir: Path | None = None
    keep: bool = True
    replay: Replay = "completion"
    complete: Complete | None = None
    retry: RetryPolicy | None = None
    retry_unscored: bool = False
    processes: int = 1
    shared_slots: tuple[Path, ...] = ()
    session: str = ""
    ledger: Ledger | None = None
    ask: bool = True
    review: ReviewDesk | None = None
    on_reviewed: Callable[[Case, Decision], None] = lambda _case, _decision: None
    is_orphan: Callable[[], bool] | None = None
    ends_session: tuple[type[BaseException], ...] = (KeyboardInterrupt,)

    def mode(self, ready: ReadySuite, *, judging: bool) -> RecordMode:
        """The record mode of a suite's generation or judging (rule G1)."""
        if not self.keep:
            return "all"
        if self.replay == "http":
            # Whatever the suite's file says: a call that is played all the way must not reach a
            # network.
            return "none"
        modes = ready.suite.replay.record_modes(self.record_mode, self.judge_record_mode)
        if not self.ask and modes == ("none", "none"):
            # A plan without a record mode says what recording would take.
            return "new_episodes"
        return modes[judging]
