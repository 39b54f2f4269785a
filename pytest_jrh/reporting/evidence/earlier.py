"""What was, beside what is: accuracies, verdicts and prompts of the baseline (rule I10)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.diffs import differences, near_changes
from pytest_jrh.gate.changes import right_before, right_now
from pytest_jrh.reporting.evidence.case import score_text
from pytest_jrh.reporting.gating.thresholds import points
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.diffs import Piece
    from pytest_jrh.gate.baseline import Pair
    from pytest_jrh.models import CaseResult
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.metrics import GroupStats

CHANGE_TITLE = "since baseline"
_CONTEXT = 400
_MORE_CHANGED = (
    " (it is not all that changed: the model or another setting has too, or the prompt that is "
    "kept beside the baseline was edited)"
)
CHANGE_MEANING = (
    "How many points of accuracy were gained or lost since the baseline, over the cases that are "
    "compared with it."
)
PLACE = 3
"""Where it stands in the table: behind the number of cases, the accuracy and its interval."""


class FigureChange(NamedTuple):
    """The share of right verdicts before and now, over the `n` cases of `of` that are compared."""

    before: float
    now: float
    n: int
    of: int

    @property
    def text(self) -> str:
        """The difference in points, with its sign."""
        difference = self.now - self.before
        shown = points(difference)
        return shown if shown.startswith("-") or float(shown) == 0 else f"+{shown}"

    @property
    def sentence(self) -> str:
        """What the difference is of."""
        return (
            f"accuracy {self.before:.1%} before, {self.now:.1%} now, in {self.n:,} of "
            f"{counted(self.of, 'case')}"
        )


class Changes:
    """The changes of a session's figures since the baseline, for each row of its table."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._sums: dict[tuple[str, str, str, str], tuple[Fraction, Fraction, int]] = {}
        for pair in pairs:
            now = pair.now
            sums = right_before(pair), right_now(now)
            for rubric in {now.rubric_id, ""}:
                for test in {now.test, ""}:
                    self._add((now.suite, now.judge, rubric, test), *sums)

    @classmethod
    def since_baseline(cls, session: SessionResults) -> Changes:
        """The changes of all cases of a session that are compared."""
        return cls(
            pair
            for decision in session.decisions.values()
            if decision.comparison is not None
            for pair in decision.comparison.pairs
        )

    def _add(self, key: tuple[str, str, str, str], before: Fraction, now: Fraction) -> None:
        old = self._sums.get(key, (Fraction(), Fraction(), 0))
        self._sums[key] = (old[0] + before, old[1] + now, old[2] + 1)

    def __bool__(self) -> bool:
        return bool(self._sums)

    def about(self, total: GroupStats) -> Changes:
        """The changes of one judge; none where none of its cases is compared."""
        return self if self.of(total) is not None else Changes(())

    def of(self, counts: GroupStats) -> FigureChange | None:
        """The change of a row; None where none of its cases is compared."""
        found = self._sums.get((counts.suite, counts.judge, counts.rubric, counts.test))
        if found is None:
            return None
        before, now, n = found
        return FigureChange(float(before / n), float(now / n), n, counts.n)


class EarlierVerdict(NamedTuple):
    """What the judge of the baseline gave, with its meaning, and why, where that was kept."""

    given: str
    reasoning: str


def earlier_verdict(result: CaseResult, session: SessionResults) -> EarlierVerdict | None:
    """What was said of a case when the baseline was written; None where it was not kept."""
    kept = session.earlier.get(result.case_id)
    if kept is None or not kept.reasoning:
        return None
    return EarlierVerdict(score_text(result, kept.score, session), kept.reasoning)


class ShownPrompt(NamedTuple):
    """A judge's prompt beside that of the baseline's judge; no pieces where that was not kept, or
    is the same.
    """

    title: str
    pieces: tuple[Piece, ...]


def shown_prompts(session: SessionResults, suite: str) -> list[ShownPrompt]:
    """The prompts of the judges of a suite that changed since the baseline, compared word by word,
    and whether the change of the prompt is all.
    """
    shown = []
    for change in session.prompt_changes:
        if change.now.suite != suite:
            continue
        of = f"judge {one_line(change.now.judge)}" if change.now.judge else "the judge"
        if change.before is None:
            title = (
                f"The baseline's verdicts are those of another judge than {of} is now; its prompt "
                "was not kept (--jrh-update-baseline keeps it)."
            )
            shown.append(ShownPrompt(title, ()))
        elif change.before == change.now.text:
            title = (
                f"The baseline's verdicts are those of another judge than {of} is now, and yet the "
                "prompt that is kept beside the baseline is the present one: the model or another "
                "setting has changed, or the kept prompt was edited."
            )
            shown.append(ShownPrompt(title, ()))
        else:
            pieces = near_changes(differences(change.before, change.now.text), _CONTEXT)
            more = "" if change.explains else _MORE_CHANGED
            shown.append(ShownPrompt(f"What changed in the prompt of {of}{more}", tuple(pieces)))
    return shown
