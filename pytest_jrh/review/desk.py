"""Where the engine hands its cases in for review, and gets them back as people
decided (rule K2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_jrh.review.decisions import obeyed
from pytest_jrh.suite.ids import generation_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.models import Case, CaseSpec, HumanReview, Judgment
    from pytest_jrh.review.board import ReviewBoard
    from pytest_jrh.review.decisions import Decision


@dataclass
class ReviewDesk:
    """The engine's side of a review.

    Cases of the suites `on_page` are shown on the page and wait for Finalize; those of the suites
    `obeying` follow the decisions that are on the disk, page or not. All others pass untouched.
    """

    board: ReviewBoard
    obeying: frozenset[str]
    on_page: frozenset[str] = frozenset()
    _announced: set[str] = field(default_factory=set)
    _missed: set[str] = field(default_factory=set)

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        """Say which cases there will be; the judges of a panel share theirs."""
        before = len(self._announced)
        self._announced.update(generation_id(spec) for spec in specs if spec.suite in self.on_page)
        if len(self._announced) > before:
            self.board.announce(len(self._announced))

    def miss(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        """Count an announced case that was not made, once; show the one that was `rejected`."""
        case_id = generation_id(spec)
        if rejected is not None and spec.suite in self.on_page:
            self.board.add(rejected)
        if spec.suite in self.on_page and case_id not in self._missed:
            self._missed.add(case_id)
            self.board.miss()

    def awaits(self, case: Case) -> bool:
        """Show a case where its suite is on the page, and say whether it has to
        wait for Finalize.
        """
        if case.spec.suite not in self.on_page:
            return False
        self.board.add(case)
        return not self.board.finalized

    def said(self, case: Case) -> tuple[HumanReview, Decision | None]:
        """What people say about a case, in a word, and their decision where it is about this very
        version.
        """
        if case.spec.suite not in self.obeying:
            return "", None
        decision = self.board.decision(case)
        if decision is not None:
            return decision.action, decision
        return ("void" if self.board.is_void(case) else "undecided"), None

    @staticmethod
    def obeyed(case: Case, decision: Decision) -> Case:
        """Give the case as it was decided; raises `NoVerdictCase` where it was rejected."""
        return obeyed(case, decision)

    def judged(self, case: Case, verdict: Judgment) -> None:
        """Keep a verdict for the page."""
        if case.spec.suite in self.on_page:
            self.board.set_verdict(case, verdict)
