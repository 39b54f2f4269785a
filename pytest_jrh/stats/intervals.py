"""One interval for every figure: Wilson's, on as many independent cases as the clusters are worth.

A figure is a function of sums over cases. What each case adds to it, its influence, gives the
variance of independent cases; summed up in each cluster, it gives that of clusters, and the ratio
of both is how many cases an independent one is worth (Korn and Graubard 1998, Survey Methodology
24:193-201; Dean and Pagano 2015, J Surv Stat Methodol 3:484-503). So shares, kappa, mean errors,
gaps and figures corrected by people have the same interval.

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import Scale
from pytest_jrh.stats.verdicts import Coded, Floats, Ints

LEVEL = 0.95
SIGNIFICANCE = 0.05
NO_VERDICT = "no verdict was given"
ONE_CLUSTER = "all verdicts come from one sample or cluster"
SAME_CLASS = "all labels and verdicts are the same"
# The correlation inside of clusters that is taken until the data say more: where no case differs
# from the others, and where some do. With 0.6 in both, less covered 87% of shares where few cases
# were wrong in fifty runs.
_ALIKE = 0.3
_UNLIKE = 0.8
# What rounding leaves of an influence that is none, beside the span of the figure.
_NOTHING = 1e-5
_TINY = 1e-12
# A step in the imaginary direction gives slopes without any rounding (Squire and Trapp 1998, SIAM
# Rev 40:110-112).
_STEP = 1e-20
_TWO = 2
_MOST_LEVELS = 20
_FEWEST_OTHERS = 10

Clusters = Ints | Sequence[Hashable]
"""Of each case the cluster: equal ones are of one."""
Pairs = npt.ArrayLike
"""Of each case the label and the answer."""
Figure = Callable[[Sequence[Any]], Any]
"""A figure of sums, which may be complex; nan where it cannot be computed."""


@frozen
class Estimate:
    """A figure with its interval.

    A share is `count` of `n`; of other figures `n` is how many cases they are of, and `count` None.
    Where there is no value, or none but no interval, `why` says why not.
    """

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    n: int = 0
    why: str = ""

    @property
    def reason(self) -> str | None:
        """Why there is no value; None where there is one."""
        return self.why if self.value is None else None

    @property
    def interval_reason(self) -> str | None:
        """Why there is no interval; None where there is one."""
        return self.why if self.lower is None else None

    @property
    def fraction(self) -> str:
        """A share as `12 of 20`; of cases with weights in percent, with its interval."""
        if self.count is None and self.lower is not None and self.upper is not None:
            return f"{self.value:.0%} ({100 * self.lower:.0f}-{100 * self.upper:.0f})"
        return f"{self.count or 0:,} of {self.n:,}"

    def complement(self) -> Estimate:
        """The share of the other cases."""
        if self.value is None:
            return self
        whole = replace(self, value=1 - self.value)
        if self.count is not None:
            others = self.n - self.count
            whole = replace(self, value=others / self.n, count=others)
        if self.lower is None or self.upper is None:
            return whole
        return replace(whole, lower=1 - self.upper, upper=1 - self.lower)


def estimate(
    rows: npt.ArrayLike,
    clusters: Clusters,
    figure: Figure,
    turned: npt.ArrayLike,
    *,
    span: tuple[float, float] = (0.0, 1.0),
    level: float = LEVEL,
    unseen: float = 0.0,
    freedom: float = math.inf,
    known: float | None = None,
) -> Estimate:
    """The figure of the sums of `rows` with its interval within `span`.

    A row is what a case adds to each of the sums. `turned` are rows that cases would have if their
    verdicts were others: where all cases are alike, one such case says how much the figure may
    vary, and so many `unseen` ones always add to its variance. `freedom` bounds the degrees of
    freedom where few cases say how much it varies. A value that is `known` takes the place of the
    figure.
    """
    rows, turned = np.asarray(rows, float), np.asarray(turned, float)
    n = len(rows)
    if not n:
        return Estimate(why=NO_VERDICT)
    total = rows.sum(axis=0)
    value = float(figure(total.tolist())) if known is None else known
    if not math.isfinite(value):
        return Estimate(n=n, why=SAME_CLASS)
    spread = _Spread.of(clusters)
    if spread.runs < _TWO <= n:
        return Estimate(value, n=n, why=ONE_CLUSTER)
    low, width = span[0], span[1] - span[0]
    influence = rows @ _slopes(figure, total)
    one_more = total + turned.mean(axis=0)
    slopes = _slopes(figure, one_more)
    mistake = _squares(turned @ slopes) / len(turned)
    if unseen or np.abs(influence).max() * n > _NOTHING * width:
        near, alone = value, _squares(influence)
        excess = spread.excess(influence, is_shrunk=freedom == math.inf)
    else:
        # All cases are alike: the figure lies where one more case, with a mistake, would move it.
        near, alone = float(figure(one_more.tolist())), _squares(rows @ slopes) + mistake
        alone *= (n + 1) / n
        excess = spread.others * _ALIKE
    near = min(max((near - low) / width, 0.0), 1.0)
    # Shrunk by what was not seen, in as many cases as one mistake is a part of.
    part = unseen * math.sqrt(mistake) / width
    near = (near + part) / (1 + 2 * part)
    variance = alone * (1 + excess) + unseen * mistake
    worth = max(near * (1 - near), _TINY) * width**2 / max(variance, _TINY**2)
    # The normal quantile, moved towards Student's t as far as clusters matter, or few labels do.
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    independent = min(spread.independent, freedom)
    from_t = t_quantile((1 + level) / 2, max(1.0, independent - 1)) - quantile
    quantile += from_t * (math.sqrt(excess / (1 + excess)) if freedom == math.inf else 1)
    share = min(max((value - low) / width, 0.0), 1.0)
    lower, upper = wilson(share, quantile**2 / worth)
    lower, upper = low + width * lower, low + width * upper
    return Estimate(value, min(lower, value), max(upper, value), n=n)


class _Spread(NamedTuple):
    """How cases lie in clusters: there are as many as `independent` ones of one size, and a case
    shares its cluster with so many `others` in the mean. `clusters` numbers them from 0.
    """

    clusters: Ints
    runs: int
    independent: float
    others: float

    @classmethod
    def of(cls, clusters: Clusters) -> _Spread:
        if not isinstance(clusters, np.ndarray):
            clusters = Coded.of(clusters).codes
        _, numbers, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        n = len(numbers)
        weighted = float(_squares(sizes)) / n
        return cls(numbers, len(sizes), n / weighted, weighted - 1)

    def excess(self, influence: Floats, *, is_shrunk: bool = True) -> float:
        """How many cases more than an independent one a case takes to say as much.

        What is seen of that weighs as many independent cases as the variance rests on; the guess,
        where it is shrunk towards one, weighs one case and one cluster.
        """
        alone = _squares(influence)
        together = np.bincount(self.clusters, influence)
        ratio = _squares(together) / max(alone, _TINY**2)
        seen = max(0.0, ratio * self.independent / max(self.independent - 1, _TINY) - 1)
        if not is_shrunk:
            return seen
        seen = min(seen, self.others)
        rests_on = alone**2 / float((influence**4).sum()) / (1 + seen)
        weight = rests_on / (rests_on + 1) * (self.independent - 1) / self.independent
        return weight * seen + (1 - weight) * self.others * _UNLIKE


def _slopes(figure: Figure, total: Floats) -> Floats:
    """How a figure changes with each sum."""
    slopes = []
    for place in range(len(total)):
        moved: list[complex] = total.tolist()
        moved[place] += 1j * _STEP
        slopes.append(figure(moved).imag / _STEP)
    return np.array(slopes)


def _squares(values: npt.NDArray[Any]) -> float:
    return float((values * values).sum())


def wilson(share: float, square: float) -> tuple[float, float]:
    """Bounds of the score interval of a share (Wilson 1927, JASA 22:209-212).

    `square` is the squared quantile of the level over the number of cases.
    """
    half = math.sqrt(square * (share * (1 - share) + square / 4))
    lower = (share + square / 2 - half) / (1 + square)
    upper = (share + square / 2 + half) / (1 + square)
    return max(0.0, lower) if share else 0.0, min(1.0, upper) if share < 1 else 1.0


def estimate_share(
    marks: npt.ArrayLike, clusters: Clusters, level: float = LEVEL, missing: str = NO_VERDICT
) -> Estimate:
    """The share of cases of which something is true; without cases, `missing` says what there is
    none of.

    With one case a cluster it has exactly Wilson's interval.
    """
    values = np.asarray(marks, float)
    if not len(values):
        return Estimate(count=0, why=missing)
    return replace(estimate_mean(values, clusters, level=level), count=round(values.sum()))


def estimate_mean(
    values: npt.ArrayLike,
    clusters: Clusters,
    span: tuple[float, float] = (0.0, 1.0),
    *,
    step: float = 1.0,
    level: float = LEVEL,
    weights: Floats | float = 1.0,
) -> Estimate:
    """The mean over cases, which may have `weights`; it lies within `span`, and another verdict is
    a `step` away.
    """
    values = np.asarray(values, float)
    turned = np.concatenate([np.clip(values + step, *span), np.clip(values - step, *span)])
    turned = turned[turned != np.concatenate([values, values])]
    return estimate(
        (np.stack([values, np.ones(len(values))]) * weights).T,
        clusters,
        lambda sums: sums[0] / sums[1],
        np.stack([turned, np.ones(len(turned))], axis=1),
        span=span,
        level=level,
    )


def estimate_bias(errors: npt.ArrayLike, clusters: Clusters, farthest: float) -> Estimate:
    """The mean of answer minus label: above 0, a judge scores too high."""
    bias = estimate_mean(errors, clusters, (-farthest, farthest))
    if bias.upper is None or np.any(errors):
        return bias
    # What was not seen may be all too high, or all too low.
    most = estimate_mean(errors, clusters, (0.0, farthest)).upper or 0.0
    return replace(bias, lower=-most, upper=most)


def effective_size(marks: npt.ArrayLike, clusters: Clusters) -> float:
    """How many independent cases these are as good as, at most as many as there are."""
    values = np.asarray(marks, float)
    spread = _Spread.of(clusters)
    if spread.runs < _TWO:
        return float(spread.runs)
    excess = spread.others * _ALIKE
    if 0 < values.sum() < len(values):
        excess = spread.excess((values - values.mean()) / len(values))
    return len(values) / (1 + excess)


def estimate_kappa(
    pairs: Pairs, clusters: Clusters, level: float = LEVEL, *, is_ordered: bool = True
) -> Estimate:
    """Agreement beyond chance of pairs of label and answer: of classes Cohen's (1960, Educ Psychol
    Meas 20:37-46), of levels quadratically weighted (1968, Psychol Bull 70:213-220), which for the
    labels 0 and 1 is the same: 1 is perfect, 0 what chance gives. Where no answer is wrong, a wrong
    one is any other of the scores that were given.
    """
    known = np.asarray(pairs, float).reshape(-1, 2)
    if not is_ordered:
        # The numbers of classes are large, and say nothing.
        known = np.unique(known, return_inverse=True)[1].reshape(-1, 2).astype(float)
    values = levels = np.unique(known)
    if len(levels) > _MOST_LEVELS:
        levels = levels[[0, -1]]
    classes = None if is_ordered else values
    rows, turned = products(known, classes), products(other_pairs(known, levels), classes)
    return estimate(rows, clusters, kappa_of_sums, turned, span=(-1.0, 1.0), level=level)


def other_pairs(known: Floats, values: Floats) -> Floats:
    """The pairs of label and answer that hardly occur among those that are known: where all of them
    are right the wrong ones, else the right ones.
    """
    every_pair = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
    is_perfect = bool((known[:, 0] == known[:, 1]).all())
    others: Floats = every_pair[(every_pair[:, 0] == every_pair[:, 1]) != is_perfect]
    lowest = float(values[0]) if len(values) else 0.0
    return others if len(others) else np.array([[lowest, lowest + 1]])


def where_varied(figure: Estimate, others: float) -> Estimate:
    """The figure, without an interval where hardly any case has `others` than the most frequent
    value: by simulation it then covers as few as two thirds of the true figures.
    """
    if not figure.n or others >= _FEWEST_OTHERS:
        return figure
    return replace(
        figure,
        lower=None,
        upper=None,
        why=figure.why
        or f"fewer than {_FEWEST_OTHERS} cases have a value other than the most frequent one",
    )


def products(pairs: Floats, classes: Floats | None) -> Floats:
    """What kappa needs to know of each case. Classes are directions, all as far from each other, so
    that one formula holds.
    """
    answers = pairs[:, :, None]
    if classes is not None:
        answers = (answers == classes).astype(float)
    one, other = answers[:, 0], answers[:, 1]
    sums = [np.ones(len(pairs))]
    sums += [product.sum(axis=1) for product in (one**2, other**2, one * other)]
    return np.column_stack([*sums, one, other])


def kappa_of_sums(sums: Sequence[Any]) -> Any:
    """Kappa of the sums of `products`."""
    n, of_one, of_other, of_both, *margins = sums
    by_chance, half = n * (of_one + of_other), len(margins) // 2
    for one, other in zip(margins[:half], margins[half:], strict=True):
        by_chance -= 2 * one * other
    if not by_chance:
        return math.nan
    return 1 - n * (of_one + of_other - 2 * of_both) / by_chance


Repeats = tuple[tuple[int, ...], Scale]
"""The scores that one judge gave to one case, in any order, with the scale that they are of."""


def estimate_flicker(cases: Coded[Repeats], clusters: Ints) -> Estimate:
    """How often a judge contradicts itself: the share of ordered pairs of repeats of a case that
    differ, over the `n` repeated cases, of which `count` have scores that are not all the same.

    With the probability f of each verdict to be flipped it is 2 f (1 - f). Of k scores, 0 or 1,
    no more than about half of the pairs can differ, which the interval keeps to.
    """
    is_repeated = cases.each(lambda repeats: len(repeats[0]) >= _TWO)
    if not is_repeated.any():
        return Estimate(count=0, why="no case was judged more than once")
    repeated = cases[is_repeated]
    shares = repeated.each(lambda repeats: differing_pairs(repeats[0]), float)
    most = float(repeated.each(_most_flicker_pairs, float).max())
    flicker = estimate_mean(shares, clusters[is_repeated], (0.0, most), step=most)
    return replace(flicker, count=int((shares > 0).sum()))


def differing_pairs(scores: Sequence[int]) -> float:
    """The share of ordered pairs of scores that differ; 0 of a single one."""
    if len(scores) < _TWO:
        return 0.0
    same = sum(count * (count - 1) for count in Counter(scores).values())
    return 1 - same / (len(scores) * (len(scores) - 1))


def majority_flip(flicker: float, repeats: int) -> float:
    """The probability of a majority of repeats to be flipped; a tie counts as flipped.

    With the probability f of each verdict to be flipped the flicker is 2 f (1 - f).
    """
    flip = (1 - math.sqrt(max(0.0, 1 - 2 * flicker))) / 2
    return binomial_tail((repeats + 1) // 2, repeats, flip)


def _most_flicker_pairs(repeats: Repeats) -> float:
    """The most that `differing_pairs` can be, for scores of 0 and 1 or of more values.

    The scores of a judge of one's own may be outside of the scale.
    """
    scores, scale = repeats
    k = len(scores)
    if k < _TWO:
        return 0.0
    is_of_two = scale.has_two and {*scores} <= {0, 1}
    return (k // 2) * (k - k // 2) * 2 / (k * (k - 1)) if is_of_two else 1.0


# scipy has these three, but importing it would take a third of a short session.

_HALVINGS = 60
_TERMS = 20


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t is below with probability `share`, above 1/2; freedom >= 1."""
    above = 2 * (1 - share)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _beta(freedom / 2, 0.5, middle) < above:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom * (1 - high) / high)


def t_tail(value: float, freedom: float) -> float:
    """The probability that Student's t is above a value (DLMF 8.17; Abramowitz and Stegun 1964,
    26.7.1).
    """
    above = _beta(freedom / 2, 0.5, freedom / (freedom + value**2)) / 2
    return above if value > 0 else 1 - above


def binomial_tail(count: float, n: float, share: float) -> float:
    """The probability that at least `count` of `n` cases, each with this `share`, have something.

    Of whole numbers it is the binomial distribution, and between these it goes on smoothly; `count`
    is above 0 and at most `n`.
    """
    return _beta(count, n - count + 1, share)


def _beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x in (0, 1):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    fraction = 0.0
    # Of wide distributions as many more as their standard deviation could be.
    for m in range(_TERMS + math.isqrt(int(a + b)), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = even / (1 + odd / (1 + fraction))
    first = -(a + b) * x / (a + 1)
    logs = a * math.log(x) + b * math.log1p(-x)
    logs += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(logs) / (a * (1 + first / (1 + fraction)))
