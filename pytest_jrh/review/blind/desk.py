"""Where the engine hands its cases in for blind labelling: none waits for it, and none is changed
by it (rule N3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_jrh.errors import NoVerdictCase
from pytest_jrh.kinds import KINDS
from pytest_jrh.review.desk import ReviewDesk
from pytest_jrh.suite.ids import generation_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.models import Case, CaseSpec, Judgment
    from pytest_jrh.review.blind.board import LabelBoard


@dataclass
class BlindDesk(ReviewDesk):
    """The engine's side of blind labelling, for the suites `labelled`.

    Decisions of earlier reviews are obeyed as without a page, and what is labelled is what is
    judged.
    """

    labels: LabelBoard = field(kw_only=True)
    labelled: frozenset[str] = field(kw_only=True)

    def announce(self, specs: Iterable[CaseSpec]) -> None:
        self.labels.announce({generation_id(spec) for spec in specs if self._has(spec)})

    def miss(self, spec: CaseSpec, rejected: Case | None = None) -> None:
        if self._has(spec):
            self.labels.end(generation_id(spec), rejected)

    def awaits(self, case: Case) -> bool:
        if self._has(case.spec):
            _, decision = self.said(case)
            try:
                shown = case if decision is None else self.obeyed(case, decision)
            except NoVerdictCase:
                shown = None
            self.labels.end(generation_id(case.spec), shown)
        return False

    def judged(self, case: Case, verdict: Judgment) -> None:
        if self._has(case.spec):
            self.labels.set_verdict(case, verdict)

    def _has(self, spec: CaseSpec) -> bool:
        # A probe's case is another one changed: its label is that one's.
        return spec.suite in self.labelled and not KINDS[spec.test].derived
