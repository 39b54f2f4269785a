"""What people decided about the cases of a session, and what they should look at again (rules G6,
K2).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.models import MADE
from pytest_jrh.text import Styled, counted, one_line, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.models import CaseResult, HumanReview
    from pytest_jrh.reporting.session_results import SessionResults

_WORDS: tuple[HumanReview, ...] = ("accepted", "edited", "rejected", "undecided")
_MOST_NAMED = 10


class UnsettledLabels(NamedTuple):
    """Labels that a person should look at again: why, and the cases, each once."""

    sentence: str
    cases: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class RewordedRubric:
    """A rubric whose text is not the one that some of its cases were made for, and these cases."""

    suite: str
    rubric_id: str
    cases: tuple[CaseResult, ...]

    @property
    def sentence(self) -> str:
        """What the reports say of it."""
        labels = "label stands" if len(self.cases) == 1 else "labels stand"
        return (
            f"{counted(len(self.cases), 'case')} of the rubric {self.rubric_id!r} (suite "
            f"{self.suite}) had another text of the rubric when made: the {labels} for that text, "
            "the verdicts for the present one. Review them with --jrh-review."
        )


def reworded_rubrics(results: Iterable[CaseResult]) -> list[RewordedRubric]:
    """Find the rubrics with cases whose labels nobody has reviewed since the text was changed."""
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for result in _each_once(results):
        if result.reworded and result.human_reviewed not in ("accepted", "edited"):
            found.setdefault((result.suite, result.rubric_id), []).append(result)
    return [RewordedRubric(suite, rubric, tuple(own)) for (suite, rubric), own in found.items()]


def altered_cases(results: Iterable[CaseResult]) -> tuple[CaseResult, ...]:
    """Find the cases that were changed on the disk, and that nobody has reviewed since."""
    return tuple(
        result
        for result in _each_once(results)
        if result.altered and result.human_reviewed not in ("accepted", "edited")
    )


def unsettled_labels(results: Sequence[CaseResult]) -> list[UnsettledLabels]:
    """All labels that a person should look at again."""
    found = [UnsettledLabels(one.sentence, one.cases) for one in reworded_rubrics(results)]
    if altered := altered_cases(results):
        one = len(altered) == 1
        was, its = ("was", "its label") if one else ("were", "their labels")
        sentence = (
            f"{counted(len(altered), 'case')} {was} changed on the disk after being made (the "
            f"record no longer fits its case_digest): nobody has confirmed {its}. Restore the "
            "file, or review the cases with --jrh-review."
        )
        found.append(UnsettledLabels(sentence, altered))
    for cases in contradicting_cases(results):
        labels = " and ".join(str(label) for label in sorted({one.expected or 0 for one in cases}))
        sentence = (
            f"{counted(len(cases), 'case')} with one rubric and transcript have contradicting "
            f"labels ({labels}): not all can be right. Review them with --jrh-review."
        )
        found.append(UnsettledLabels(sentence, cases))
    return found


def contradicting_cases(results: Iterable[CaseResult]) -> list[tuple[CaseResult, ...]]:
    """Find the cases with one rubric and transcript whose labels are not the same."""
    equal: dict[tuple[str, str], list[CaseResult]] = {}
    for result in _each_once(results):
        if result.outcome in MADE and result.content:
            equal.setdefault((result.suite, result.content), []).append(result)
    return [tuple(cases) for cases in equal.values() if len({one.expected for one in cases}) > 1]


def unsettled_lines(session: SessionResults, width: int) -> Iterator[Styled]:
    """Say which labels a person should look at again, and name some of their cases."""
    for unsettled in unsettled_labels(session.results):
        for line in wrapped(f"! {one_line(unsettled.sentence)}", width):
            yield Styled(line, "yellow")
        for line in _named(session, unsettled.cases):
            yield Styled(line)


def review_counts(session: SessionResults) -> str:
    """Count the cases by what was decided, each once, however many judges it had.

    Nothing without a review.
    """
    counts = Counter(result.human_reviewed for result in _once(session))
    return ", ".join(f"{counts[word]:,} {word}" for word in _WORDS if counts[word])


def review_lines(session: SessionResults) -> Iterator[str]:
    """Tell of the counts, and name the cases whose decisions are void."""
    if counts := review_counts(session):
        yield f"review: {counts}"
    void = [result for result in _once(session) if result.human_reviewed == "void"]
    if void:
        decisions = "decision is" if len(void) == 1 else "decisions are"
        yield (
            f"review: {len(void):,} {decisions} void, because the case was made in another way "
            "since:"
        )
        yield from _named(session, void)


def _named(session: SessionResults, results: Sequence[CaseResult]) -> Iterator[str]:
    yield from (f"  {one_line(session.node(result.case_id))}" for result in results[:_MOST_NAMED])
    if len(results) > _MOST_NAMED:
        yield f"  and {len(results) - _MOST_NAMED:,} more"


def _once(session: SessionResults) -> Iterable[CaseResult]:
    return _each_once(result for result in session.results if result.human_reviewed)


def _each_once(results: Iterable[CaseResult]) -> Iterable[CaseResult]:
    """One result of each case, however many judges it had."""
    return {
        (one.suite, one.test, one.rubric_id, one.run_id, one.epoch, one.target_score): one
        for one in results
        if not one.derived
    }.values()
