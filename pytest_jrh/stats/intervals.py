"""One interval for every figure: Wilson's, on as many independent cases as the clusters are worth.

A figure is a function of sums over cases. What each case adds to it, its influence, gives the
variance of independent cases; summed up in each cluster, it gives that of clusters, and the ratio
of both is how many cases an independent one is worth (Korn and Graubard 1998, Survey Methodology
24:193-201; Dean and Pagano 2015, J Surv Stat Methodol 3:484-503). So shares, kappa, mean errors,
gaps and figures corrected by people have the same interval.

Each figure is an `Estimate`. Quantiles of Student's t and tails of the binomial distribution, which
the standard library lacks, stand at the end.

A cluster is one sample of the log over all its epochs and cases. Cases of one cluster are right and
wrong together, so that a hundred cases of ten runs say less than a hundred runs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter, mul
from statistics import NormalDist, fmean
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pytest_jrh.core import frozen

LEVEL = 0.95
SIGNIFICANCE = 0.05
NO_VERDICT = "no verdict was given"
ONE_CLUSTER = "all verdicts come from one sample or cluster"
SAME_CLASS = "one class only: labels and answers are all the same"
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

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)
Pair: TypeAlias = tuple[int, int]
Row: TypeAlias = tuple[float, ...]
"""What a case adds to each of the sums that a figure is of."""
Figure: TypeAlias = Callable[[Sequence[Any]], Any]
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
        """A share as `12 of 20`."""
        return f"{self.count or 0:,} of {self.n:,}"

    def complement(self) -> Estimate:
        """The share of the other cases."""
        if self.value is None or self.count is None:
            return self
        others = self.n - self.count
        whole = replace(self, value=others / self.n, count=others)
        if self.lower is None or self.upper is None:
            return whole
        return replace(whole, lower=1 - self.upper, upper=1 - self.lower)


def grouped(items: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Put items under their keys, in the order in which these appear."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def grouped_by(items: Iterable[_Item], *attributes: str) -> dict[Any, list[_Item]]:
    """Put items under an attribute of theirs, such as `judge` or `now.judge`, or under several."""
    key = attrgetter(*attributes)
    return grouped((key(item), item) for item in items)


def estimate(
    rows: Sequence[Row],
    clusters: Sequence[Hashable],
    figure: Figure,
    turned: Sequence[Row],
    *,
    span: tuple[float, float] = (0.0, 1.0),
    level: float = LEVEL,
    unseen: float = 0.0,
    freedom: float = math.inf,
    known: float | None = None,
) -> Estimate:
    """The figure of the sums of `rows`, one for each case, with its interval within `span`.

    `turned` are rows that cases would have if their verdicts were others: where all cases are
    alike, one such case says how much the figure may vary, and so many `unseen` ones always add to
    its variance. `freedom` bounds the degrees of freedom where few cases say how much it varies.
    A value that is `known` takes the place of the figure.
    """
    n = len(rows)
    if not n:
        return Estimate(why=NO_VERDICT)
    total = [sum(column) for column in zip(*rows, strict=True)]
    value = float(figure(total)) if known is None else known
    if not math.isfinite(value):
        return Estimate(n=n, why=SAME_CLASS)
    spread = _Spread.of(clusters)
    if spread.runs < _TWO <= n:
        return Estimate(value, n=n, why=ONE_CLUSTER)
    low, width = span[0], span[1] - span[0]
    influence = _influence(rows, _slopes(figure, total))
    columns = zip(total, zip(*turned, strict=True), strict=True)
    one_more = [whole + fmean(column) for whole, column in columns]
    slopes = _slopes(figure, one_more)
    mistake = _squares(_influence(turned, slopes)) / len(turned)
    if unseen or max(map(abs, influence)) * n > _NOTHING * width:
        near, alone = value, _squares(influence)
        excess = spread.excess(influence, is_shrunk=freedom == math.inf)
    else:
        near, alone = float(figure(one_more)), _squares(_influence(rows, slopes)) + mistake
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
    shares its cluster with so many `others` in the mean.
    """

    clusters: Sequence[Hashable]
    runs: int
    independent: float
    others: float

    @classmethod
    def of(cls, clusters: Sequence[Hashable]) -> _Spread:
        sizes = Counter(clusters).values()
        n = len(clusters)
        weighted = sum(size * size for size in sizes) / n
        return cls(clusters, len(sizes), n / weighted, weighted - 1)

    def excess(self, influence: Sequence[float], *, is_shrunk: bool = True) -> float:
        """How many cases more than an independent one a case takes to say as much.

        What is seen of that weighs as many independent cases as the variance rests on; the guess,
        where it is shrunk towards one, weighs one case and one cluster.
        """
        alone = _squares(influence)
        together: defaultdict[Hashable, float] = defaultdict(float)
        for cluster, of_case in zip(self.clusters, influence, strict=True):
            together[cluster] += of_case
        ratio = _squares(together.values()) / max(alone, _TINY**2)
        seen = max(0.0, ratio * self.independent / (self.independent - 1) - 1)
        if not is_shrunk:
            return seen
        seen = min(seen, self.others)
        rests_on = alone**2 / sum(of_case**4 for of_case in influence) / (1 + seen)
        weight = rests_on / (rests_on + 1) * (self.independent - 1) / self.independent
        return weight * seen + (1 - weight) * self.others * _UNLIKE


def _slopes(figure: Figure, total: Sequence[float]) -> list[float]:
    """How a figure changes with each sum."""
    slopes = []
    for place in range(len(total)):
        moved: list[complex] = [*total]
        moved[place] += 1j * _STEP
        slopes.append(figure(moved).imag / _STEP)
    return slopes


def _influence(rows: Sequence[Row], slopes: Sequence[float]) -> list[float]:
    """What each case adds to a figure."""
    by_row = {row: sum(map(mul, row, slopes)) for row in set(rows)}
    return [by_row[row] for row in rows]


def _squares(values: Iterable[float]) -> float:
    return sum(value * value for value in values)


def wilson(share: float, square: float) -> tuple[float, float]:
    """Bounds of the score interval of a share (Wilson 1927, JASA 22:209-212).

    `square` is the squared quantile of the level over the number of cases.
    """
    half = math.sqrt(square * (share * (1 - share) + square / 4))
    lower = (share + square / 2 - half) / (1 + square)
    upper = (share + square / 2 + half) / (1 + square)
    return max(0.0, lower) if share else 0.0, min(1.0, upper) if share < 1 else 1.0


def estimate_share(
    marks: Iterable[bool],
    clusters: Sequence[Hashable],
    level: float = LEVEL,
    missing: str = NO_VERDICT,
) -> Estimate:
    """The share of cases of which something is true; without cases, `missing` says what there is
    none of.

    With one case a cluster it has exactly Wilson's interval.
    """
    values = [float(mark) for mark in marks]
    if not values:
        return Estimate(count=0, why=missing)
    return replace(estimate_mean(values, clusters, level=level), count=round(sum(values)))


def estimate_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    span: tuple[float, float] = (0.0, 1.0),
    *,
    step: float = 1.0,
    level: float = LEVEL,
) -> Estimate:
    """The mean over cases, which lies within `span`; another verdict is a `step` away."""
    low, high = span
    turned: list[Row] = []
    for value, number in Counter(values).items():
        for other in (min(max(value + step, low), high), min(max(value - step, low), high)):
            if other != value:
                turned += [(other, 1.0)] * number
    rows = [(value, 1.0) for value in values]
    return estimate(rows, clusters, lambda sums: sums[0] / sums[1], turned, span=span, level=level)


def estimate_bias(
    errors: Sequence[float], clusters: Sequence[Hashable], farthest: float
) -> Estimate:
    """The mean of answer minus label: above 0, a judge scores too high."""
    bias = estimate_mean(errors, clusters, (-farthest, farthest))
    if bias.upper is None or any(errors):
        return bias
    # What was not seen may be all too high, or all too low.
    most = estimate_mean(errors, clusters, (0.0, farthest)).upper or 0.0
    return replace(bias, lower=-most, upper=most)


def effective_size(marks: Sequence[bool], clusters: Sequence[Hashable]) -> float:
    """How many independent cases these are as good as, at most as many as there are."""
    spread = _Spread.of(clusters)
    if spread.runs < _TWO:
        return float(spread.runs)
    excess = spread.others * _ALIKE
    if any(marks) and not all(marks):
        share = fmean(marks)
        excess = spread.excess([(mark - share) / len(marks) for mark in marks])
    return len(marks) / (1 + excess)


def estimate_kappa(
    pairs: Sequence[Pair], clusters: Sequence[Hashable], level: float = LEVEL
) -> Estimate:
    """Agreement beyond chance of pairs of label and answer, quadratically weighted (Cohen 1968,
    Psychol Bull 70:213-220), which for the labels 0 and 1 is Cohen's (1960, Educ Psychol Meas
    20:37-46): 1 is perfect, 0 what chance gives. Where no answer is wrong, a wrong one is any other
    of the scores that were given.
    """
    levels = sorted({score for pair in pairs for score in pair})
    if len(levels) > _MOST_LEVELS:
        levels = [levels[0], levels[-1]]
    is_perfect = all(label == answer for label, answer in pairs)
    others = [(one, other) for one in levels for other in levels if (one == other) != is_perfect]
    by_pair = {pair: _products(pair) for pair in {*pairs, *others, (0, 1)}}
    rows = [by_pair[pair] for pair in pairs]
    turned = [by_pair[pair] for pair in others or [(0, 1)]]
    return estimate(rows, clusters, _kappa, turned, span=(-1.0, 1.0), level=level)


def _products(pair: Pair) -> Row:
    """What kappa needs to know of each case."""
    label, answer = map(float, pair)
    return 1.0, label, label**2, answer, answer**2, label * answer


def _kappa(sums: Sequence[Any]) -> Any:
    n, labels, label_squares, answers, answer_squares, products = sums
    chance = n * (label_squares + answer_squares) - 2 * labels * answers
    if not chance:
        return math.nan
    return 1 - n * (label_squares + answer_squares - 2 * products) / chance


NOT_REPEATED = "no case was judged more than once"
NOT_ASKED_TWICE = Estimate(count=0, why=NOT_REPEATED)


class RepeatedCase(NamedTuple):
    """The scores that one judge gave to one case, in any order, and the case's cluster.

    `binary` says that no other scores than 0 and 1 are on offer.
    """

    cluster: Hashable
    scores: tuple[int, ...]
    binary: bool


def estimate_flicker(cases: Iterable[RepeatedCase]) -> Estimate:
    """How often a judge contradicts itself: the share of ordered pairs of repeats of a case that
    differ, over the `n` repeated cases, of which `count` have scores that are not all the same.

    With the probability f of each verdict to be flipped it is 2 f (1 - f). Of k scores, 0 or 1,
    no more than about half of the pairs can differ, which the interval keeps to.
    """
    repeated = [case for case in cases if len(case.scores) >= _TWO]
    if not repeated:
        return NOT_ASKED_TWICE
    shares = [differing_pairs(case.scores) for case in repeated]
    most = max(_most_flicker_pairs(case) for case in repeated)
    clusters = [case.cluster for case in repeated]
    flicker = estimate_mean(shares, clusters, (0.0, most), step=most)
    return replace(flicker, value=fmean(shares), count=sum(map(bool, shares)))


def differing_pairs(scores: Sequence[int]) -> float:
    """The share of ordered pairs of two or more scores that differ."""
    same = sum(count * (count - 1) for count in Counter(scores).values())
    return 1 - same / (len(scores) * (len(scores) - 1))


def majority_flip(flicker: float, repeats: int) -> float:
    """The probability of a majority of repeats to be flipped; a tie counts as flipped.

    With the probability f of each verdict to be flipped the flicker is 2 f (1 - f).
    """
    flip = (1 - math.sqrt(max(0.0, 1 - 2 * flicker))) / 2
    return binomial_tail((repeats + 1) // 2, repeats, flip)


def _most_flicker_pairs(case: RepeatedCase) -> float:
    """The most that `differing_pairs` can be, for scores of 0 and 1 or of more values.

    The scores of a judge of one's own may be outside of the scale.
    """
    k = len(case.scores)
    binary = case.binary and set(case.scores) <= {0, 1}
    return (k // 2) * (k - k // 2) * 2 / (k * (k - 1)) if binary else 1.0


_ITERATIONS = 300
_CLOSE = 1e-15
_LEAST = 1e-300


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t is below with probability `share`, 1/2 to 1; freedom >= 1.

    Closed forms for 1 and 2 degrees of freedom, else Newton's method from the expansion of
    Cornish and Fisher (Abramowitz and Stegun 1964, 26.7.5), to 11 digits.
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == _TWO:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = NormalDist().inv_cdf(share)
    value = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    for _ in range(_ITERATIONS):
        square = value * value
        above = (1 - _beta(0.5, freedom / 2, square / (freedom + square))) / 2
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(square / freedom))
        step = (above - (1 - share)) / density
        # The tail is convex here, so that only a start that is too high can overshoot.
        value = max(value + step, value / 2)
        if abs(step) <= 1e-13 * (1 + abs(value)):
            break
    return value


def binomial_tail(count: float, n: float, share: float) -> float:
    """The probability that at least `count` of `n` cases, each with this `share`, have something.

    Of whole numbers it is the binomial distribution, and between these it goes on smoothly; `count`
    is above 0 and at most `n`.
    """
    return _beta(count, n - count + 1, share)


def _beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _ITERATIONS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _LEAST else _LEAST
