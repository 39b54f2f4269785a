"""Results as columns of numbers, from which counts and figures are made, and their counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.model import JUDGED, UNSCORED, CaseResult
from pytest_jrh.core.reasoning import reasoning_disagrees
from pytest_jrh.stats.intervals import cluster_codes, grouped

if TYPE_CHECKING:
    from pytest_jrh.stats.intervals import Codes, Numbers

LARGEST_SCORE = 10.0**12
"""Scores beyond this are of no scale."""


@dataclass(frozen=True, slots=True)
class GroupStats:
    """Counts of one judge on one rubric of one test; `n` is the number of verdicts, agree plus
    disagree.

    `unverified` counts the cases, among all, whose label no verifier confirmed, and
    `contradicted` the verdicts whose reasoning disagrees with their score. `ties` counts the
    disagreements without a score.
    """

    suite: str = ""
    test: str = ""
    rubric: str = ""
    judge: str = ""
    n: int = 0
    agree: int = 0
    disagree: int = 0
    no_case: int = 0
    unscored: int = 0
    generated: int = 0
    unlabelled: int = 0
    unverified: int = 0
    contradicted: int = 0
    ties: int = 0

    @property
    def accuracy(self) -> float | None:
        """Agreement over verdicts; None without a verdict."""
        return self.agree / self.n if self.n else None


class ResultColumns(NamedTuple):
    """Results with a row each: label and answer are nan where there is none.

    The answer is the score, and for a tie of a binary judge the wrong one; of a tie of an ordinal
    judge there is no telling how far off it is.
    """

    outcomes: Any
    tests: Any
    labels: Numbers
    answers: Numbers
    clusters: Codes
    is_ordinal: Any
    is_tie: Any
    is_unverified: Any
    is_contradicted: Any

    @classmethod
    def of(cls, results: Sequence[CaseResult]) -> ResultColumns:
        """The columns of these results."""
        import numpy as np

        return cls(
            np.array([result.outcome for result in results], dtype=str),
            np.array([result.spec.test for result in results], dtype=str),
            _numbers(result.label for result in results),
            _numbers(answer_of(result) for result in results),
            cluster_codes(result.spec.cluster_id for result in results),
            np.array([result.spec.target_score is not None for result in results], dtype=bool),
            np.array([result.score is None for result in results], dtype=bool),
            np.array([result.verified is False for result in results], dtype=bool),
            np.array([reasoning_disagrees(result) for result in results], dtype=bool),
        )

    def where(self, rows: Any) -> ResultColumns:
        """The columns of some rows: their places, or whether each is one of them."""
        return ResultColumns(*(column[rows] for column in self))

    def labelled(self, label: int) -> ResultColumns:
        """The rows with this label."""
        return self.where(self.labels == label)

    @property
    def is_judged(self) -> Any:
        """Whether a row has a verdict that counts."""
        import numpy as np

        return np.isin(self.outcomes, JUDGED)

    @property
    def is_too_large(self) -> bool:
        """Whether a score is of no scale."""
        return bool((abs(self.answers) >= LARGEST_SCORE).any())

    @property
    def is_right(self) -> Any:
        """Whether the verdict is the label."""
        return self.outcomes == "agree"

    def counts(
        self, suite: str = "", test: str = "", rubric: str = "", judge: str = ""
    ) -> GroupStats:
        """Count outcomes; names that are not given stay empty."""
        import numpy as np

        is_judged = self.is_judged
        number = {
            str(outcome): int(count)
            for outcome, count in zip(*np.unique(self.outcomes, return_counts=True), strict=True)
        }
        return GroupStats(
            suite,
            test,
            rubric,
            judge,
            n=int(is_judged.sum()),
            agree=number.get("agree", 0),
            disagree=number.get("disagree", 0),
            no_case=number.get("no_case", 0),
            unscored=sum(number.get(outcome, 0) for outcome in UNSCORED),
            generated=number.get("generated", 0),
            unlabelled=number.get("unlabelled", 0),
            unverified=int(self.is_unverified.sum()),
            contradicted=int(self.is_contradicted.sum()),
            ties=int((self.is_tie & is_judged).sum()),
        )


def _numbers(values: Iterable[int | None]) -> Numbers:
    import numpy as np

    most = int(LARGEST_SCORE)
    known = [np.nan if value is None else min(max(value, -most), most) for value in values]
    return np.array(known, dtype=float)


def answer_of(result: CaseResult) -> int | None:
    """The answer that counts: the score, and for a tie of a binary judge the wrong one.

    None for a tie of an ordinal judge: there is no telling how far off it is.
    """
    if result.score is None and result.label is not None and result.spec.target_score is None:
        return 1 - result.label
    return result.score


def group_stats(results: Iterable[CaseResult]) -> list[GroupStats]:
    """Count outcomes per suite, test, rubric and judge, in the order in which the groups first
    appear.
    """
    groups = grouped(
        ((result.spec.suite, result.spec.test, result.spec.rubric_id, result.judge), result)
        for result in results
    )
    return [ResultColumns.of(group).counts(*names) for names, group in groups.items()]
