"""How much of a baseline a session was compared with (rule J9)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_jrh.gate.baseline import suite_of
from pytest_jrh.kinds import KINDS
from pytest_jrh.models import JUDGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_jrh.gate.baseline import Baseline, Comparison, Pair, Scope
    from pytest_jrh.models import CaseResult

_JUDGE = re.compile(r"\[e\d+(?:-score_-?\d+)?-(?!score_)(.+)\]", re.ASCII)


class FewerRepeats(NamedTuple):
    """So many compared cases were judged `before` times for the baseline, and `now` times, which is
    less.
    """

    cases: int
    before: int
    now: int


class Missing(NamedTuple):
    """A judge, rubric or test that the baseline has, and of which no case was compared."""

    kind: Literal["judge", "rubric", "test"]
    name: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the baseline a session was compared with.

    `of` are the baseline's cases of the suite, of which `compared` could be compared and
    `deselected` were left out by `-k`, a marker or a node id. `added` are the session's verdicts on
    cases that the baseline does not have. Names are as in the ids of cases.
    """

    compared: int
    of: int
    added: int = 0
    deselected: int = 0
    repeats: tuple[FewerRepeats, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def total(self) -> int:
        """The cases of the baseline, or of the session, whichever has more."""
        return max(self.of, self.compared + self.added)

    @property
    def share(self) -> float | None:
        """The smaller of two shares that were compared: of the baseline's and of the session's
        cases; None where there are none.
        """
        return self.compared / self.total if self.total else None


def coverage(
    baseline: Baseline, comparison: Comparison, results: Iterable[CaseResult], scope: Scope
) -> Coverage:
    """Say how much of the baseline's cases of one suite is in a comparison; see `Coverage`."""
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in scope.suites}
    judged = {result.case_id for result in results if result.outcome in JUDGED}
    compared = (judged & lines) - comparison.not_comparable.keys()
    return Coverage(
        compared=len(compared),
        of=len(lines),
        added=len(judged - lines),
        deselected=len(scope.deselected & lines),
        repeats=tuple(_fewer_repeats(comparison.pairs)),
        missing=tuple(_missing(lines, compared)),
    )


def _fewer_repeats(pairs: Iterable[Pair]) -> Iterator[FewerRepeats]:
    counts = Counter((len(pair.before.all_scores), max(1, len(pair.now.scores))) for pair in pairs)
    for (before, now), cases in sorted(counts.items()):
        if now < before:
            yield FewerRepeats(cases, before, now)


def _missing(lines: Iterable[str], compared: Iterable[str]) -> Iterator[Missing]:
    """What is in the ids of the baseline's cases, and in none of those that were compared."""
    known, there = set(map(_names, lines)), set(map(_names, compared))
    kinds: tuple[Literal["judge", "rubric", "test"], ...] = ("judge", "rubric", "test")
    for place, kind in enumerate(kinds):
        names = {found[place] for found in known} - {found[place] for found in there}
        yield from (Missing(kind, name) for name in sorted(names - {""}))


def _names(case_id: str) -> tuple[str, str, str]:
    """Judge, rubric and test of an id; a suite's only judge has no name, and that of a case of a
    probe cannot be told from the variant's.
    """
    _, test, rubric, name = case_id.split("::", 3)
    kind = KINDS.get(test)
    judge = _JUDGE.search(name) if kind is not None and not kind.derived else None
    return (judge[1] if judge else "", rubric, test)
