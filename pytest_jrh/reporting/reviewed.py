"""What people decided about the cases of a session, in a line or two (rule K2)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_jrh.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_jrh.models import CaseResult, HumanReview
    from pytest_jrh.reporting.session_results import SessionResults

_WORDS: tuple[HumanReview, ...] = ("accepted", "edited", "rejected", "undecided")
_MOST_NAMED = 10


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
        yield from (f"  {one_line(session.node(result.case_id))}" for result in void[:_MOST_NAMED])
        if len(void) > _MOST_NAMED:
            yield f"  and {len(void) - _MOST_NAMED:,} more"


def _once(session: SessionResults) -> Iterable[CaseResult]:
    reviewed = (result for result in session.results if result.human_reviewed)
    return {
        (one.suite, one.test, one.rubric_id, one.run_id, one.epoch, one.target_score): one
        for one in reviewed
    }.values()
