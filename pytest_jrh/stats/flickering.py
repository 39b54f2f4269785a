"""What the repeats of a judge's verdicts say about the judge (rules M1, M2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.stats.inference.flicker import Flicker, RepeatedCase, flicker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_jrh.models import CaseResult


def answer_of(result: CaseResult) -> int | None:
    """The answer that counts: the score, and for a tie of a binary judge the wrong one.

    None for a tie of an ordinal judge: there is no telling how far off it is.
    """
    if result.score is None and result.expected is not None and result.target_score is None:
        return 1 - result.expected
    return result.score


def repeated_case(result: CaseResult, earlier: Iterable[int] = ()) -> RepeatedCase:
    """The scores of a case, with those that the same judge gave the same case `earlier`."""
    scores = (*earlier, *result.scores)
    return RepeatedCase(result.cluster_id, scores, binary=result.target_score is None)


def flicker_of(results: Iterable[CaseResult]) -> Flicker:
    """How often the judge of these results contradicts itself."""
    return flicker(repeated_case(result) for result in results)


def flickering(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that a judge gave different scores."""
    return [result for result in results if result.flickers]
