"""What judges have lost or gained since the baseline, over clusters, and what an update of the
baseline does to its figures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.model import JUDGED
from pytest_jrh.stats.baseline import Pair
from pytest_jrh.stats.comparison import Change, holm, sign_flip_p
from pytest_jrh.stats.intervals import by_cluster, estimate_flicker, estimate_share, tallied
from pytest_jrh.stats.planning import ForeseenSuite
from pytest_jrh.stats.statistics import flicker_of, repeated_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.stats.baseline import Baseline, Update
    from pytest_jrh.stats.statistics import Cluster


Since: TypeAlias = Literal["update", "reference"]
"""The verdicts of the last update, or those that a drop is held against."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """The correctness of compared cases before and now, and whether it changed by chance.

    `judge` and `rubric` are empty for all. `p_value` is that of the sign-flip test over clusters,
    `adjusted` the same after Holm's adjustment over the rows of one table; None in the total, which
    is a test by itself. `mcnemar` says that the test is McNemar's exact mid-p one: each cluster has
    one case, judged once. `sizes` are the numbers of compared cases of the clusters.
    """

    before: float
    now: float
    p_value: float
    sizes: tuple[int, ...]
    judge: str = ""
    rubric: str = ""
    adjusted: float | None = None
    mcnemar: bool = False

    @property
    def n(self) -> int:
        """How many cases are compared."""
        return sum(self.sizes)

    @property
    def drop(self) -> float:
        """What the share of right verdicts has lost; a gain is negative."""
        return self.before - self.now


@dataclass(frozen=True, slots=True)
class KnownFlicker:
    """How often a judge that is asked again says something else, as far as a session tells.

    `value` is None where it does not: no case was judged more than once, neither in this session
    nor, with another verdict, by the same judge in the baseline. `repeats` are those of this
    session, and `cases` those that are compared.
    """

    value: float | None
    source: Literal["repeats", "baseline", ""]
    repeats: int
    cases: int
    judge: str = ""


def right_now(result: CaseResult) -> Fraction:
    """The share of a case's repeats that are right; of one verdict 0 or 1."""
    return _right(result.scores, result)


def right_before(pair: Pair, since: Since = "update") -> Fraction:
    """The share of the repeats that were right in the baseline; `pair.now` knows the label."""
    if since == "reference" and pair.before.reference:
        return _right(pair.before.reference, pair.now)
    if pair.before.scores:
        return _right(pair.before.scores, pair.now)
    return Fraction(pair.before.outcome == "agree")


def losses(pairs: Iterable[Pair], since: Since = "update") -> list[Change]:
    """What each cluster has lost since, in the order of its first case.

    The mean of a cluster counts as often as the cluster has cases, so that the sum over clusters is
    the drop of the accuracy.
    """
    lost = (
        (pair.now.spec.cluster_id, right_before(pair, since) - right_now(pair.now))
        for pair in pairs
    )
    return [Change(sum(cluster, Fraction()), len(cluster)) for cluster in by_cluster(lost)]


def changes(pairs: Sequence[Pair]) -> tuple[ChangeRow, ...]:
    """Compare what was with what is: for each judge and rubric, where there are several, and over
    all, which comes last; nothing without pairs.
    """
    if not pairs:
        return ()
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.now.judge, pair.now.spec.rubric_id), []).append(pair)
    total = _change(pairs)
    if len(groups) == 1:
        return (total,)
    several = len({judge for judge, _ in groups}) > 1
    rows = [
        replace(_change(group), judge=judge if several else "", rubric=rubric)
        for (judge, rubric), group in groups.items()
    ]
    adjusted = holm([row.p_value for row in rows])
    return (*(replace(row, adjusted=p) for row, p in zip(rows, adjusted, strict=True)), total)


def has_moved(pairs: Iterable[Pair]) -> bool:
    """Whether the reference of any case is another than the verdict of the last update."""
    return any(pair.before.reference for pair in pairs)


def repeats_of(pairs: Iterable[Pair]) -> int:
    """The most repeats of one case, before or now."""
    counts = (max(len(pair.before.all_scores), len(pair.now.scores)) for pair in pairs)
    return max(counts, default=1)


def known_flicker(judged: Sequence[CaseResult], pairs: Sequence[Pair]) -> KnownFlicker:
    """Estimate the flicker of one judge: from repeats, else from what it said in the baseline.

    Where the baseline has the same verdict on every case, the session may have replayed the very
    recordings that the baseline was made of, which says nothing.
    """
    cases = len(pairs)
    repeats = max((len(result.scores) for result in judged), default=1) or 1
    repeated = flicker_of(judged)
    if repeated.value is not None:
        return KnownFlicker(repeated.value, "repeats", repeats, cases)
    since = estimate_flicker(
        repeated_case(pair.now, pair.before.all_scores) for pair in pairs if pair.same_judge
    )
    if since.count:
        return KnownFlicker(since.value, "baseline", repeats, cases)
    return KnownFlicker(None, "", repeats, cases)


def foreseen(flickers: Iterable[KnownFlicker], pairs: Iterable[Pair]) -> dict[str, ForeseenSuite]:
    """The compared cases of each judge by run, as a later comparison would have them."""
    clusters: dict[str, Counter[Cluster]] = {}
    for pair in pairs:
        clusters.setdefault(pair.now.judge, Counter())[pair.now.spec.cluster_id] += 1
    suites = {}
    for flicker in flickers:
        sizes = tuple(sorted(clusters[flicker.judge].values()))
        suites[flicker.judge] = ForeseenSuite(sizes, flicker.repeats, flicker.value)
    return suites


def _right(scores: tuple[int, ...], result: CaseResult) -> Fraction:
    if not scores or result.expected is None:
        return Fraction(result.outcome == "agree")
    return Fraction(scores.count(result.expected), len(scores))


def _change(pairs: Sequence[Pair]) -> ChangeRow:
    lost = losses(pairs)
    once = repeats_of(pairs) == 1
    return ChangeRow(
        before=_mean(right_before(pair) for pair in pairs),
        now=_mean(right_now(pair.now) for pair in pairs),
        p_value=sign_flip_p(change.loss for change in lost),
        sizes=tuple(change.n for change in lost),
        mcnemar=once and all(change.n == 1 for change in lost),
    )


def _mean(shares: Iterable[Fraction]) -> float:
    listed = list(shares)
    return float(sum(listed, Fraction()) / len(listed))


_Group: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A rubric, with its judge where there are several, whose accuracy has a lower bound that an
    update lowers.
    """

    rubric: str
    judge: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Accuracies:
    """The share of right verdicts over the `n` cases of an update: in the reference, which a drop
    is held against, and in the verdicts that were written.
    """

    n: int
    reference: float
    now: float


def accuracies(made: Update, results: Iterable[CaseResult]) -> Accuracies | None:
    """Compare the reference with what an update has written; None where it has written nothing."""
    pairs = [
        Pair(made.baseline.cases[result.case_id], result)
        for result in results
        if result.outcome in JUDGED
        and result.case_id in made.baseline.cases
        and not result.spec.derived
    ]
    if not pairs:
        return None
    return Accuracies(
        n=len(pairs),
        reference=_mean(right_before(pair, "reference") for pair in pairs),
        now=_mean(right_before(pair) for pair in pairs),
    )


def lowered(before: Baseline, made: Update, results: Iterable[CaseResult]) -> list[Lowered]:
    """The rubrics whose lower bound of the accuracy is lower after an update than it was, over the
    cases that the session has a result of.
    """
    shown = [result for result in results if not result.spec.derived]
    old, new = _lower_bounds(before, shown), _lower_bounds(made.baseline, shown)
    return [
        Lowered(rubric, judge, bound, new[judge, rubric])
        for (judge, rubric), bound in old.items()
        if new.get((judge, rubric), bound) < bound
    ]


def _lower_bounds(baseline: Baseline, results: Iterable[CaseResult]) -> Mapping[_Group, float]:
    groups: dict[_Group, list[tuple[Cluster, bool]]] = {}
    for result in results:
        line = baseline.cases.get(result.case_id)
        if line is not None:
            marks = groups.setdefault((result.judge, result.spec.rubric_id), [])
            marks.append((result.spec.cluster_id, line.outcome == "agree"))
    bounds = {group: estimate_share(tallied(marks)).lower for group, marks in groups.items()}
    return {group: lower for group, lower in bounds.items() if lower is not None}
