"""Whether verdicts could be those of a judge that is worth something (rule L6)."""

from __future__ import annotations

from math import exp, lgamma, log
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.stats.inference.intervals import Tally, effective_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The share of right verdicts, as the mean over both labels, from which a judge is called sound.
_SOUND = 0.8
# Its shares for the two labels: from right on all of one label to equally right on both.
_SHARES = tuple((number / 20, 2 * _SOUND - number / 20) for number in range(12, 21))
_ROUNDING = 1e-9


class _Label(NamedTuple):
    """The cases of one label, as so many independent ones: how many of `n` are judged right."""

    right: int
    n: int


def unsound_p(violated: Iterable[Tally], satisfied: Iterable[Tally]) -> float:
    """The largest probability that a sound judge does as badly as this one, or worse; 1 where a
    label has no case.

    Sound is a judge that is right in 80% of the cases of either label, or on average over both. How
    badly is Youden's index (1950, Cancer 3:32-35), the sum of both shares of right verdicts. The
    tallies are clusters, and each label counts with its effective number of cases.
    """
    labels = [_effective(list(tallies)) for tallies in (violated, satisfied)]
    if not all(label.n for label in labels):
        return 1.0
    one, other = labels
    seen = one.right / one.n + other.right / other.n
    return max(_at_most(seen, one.n, other.n, *shares) for shares in _SHARES)


def missed_p(missed: int) -> float:
    """The probability that a sound judge is wrong on so many cases in a row, of one label."""
    return float((1 - (2 * _SOUND - 1)) ** missed)


def _effective(tallies: Sequence[Tally]) -> _Label:
    n, right = sum(tally.n for tally in tallies), sum(tally.right for tally in tallies)
    size = int(effective_size(tallies) + _ROUNDING)
    return _Label(round(right / n * size), size) if n else _Label(0, 0)


def _at_most(seen: float, n: int, other: int, share: float, other_share: float) -> float:
    """The probability that the two shares of right verdicts sum to no more than was seen."""
    below = [0.0]
    for probability in _binomial(other, other_share):
        below.append(below[-1] + probability)
    total = 0.0
    for right, probability in enumerate(_binomial(n, share)):
        most = int((seen - right / n) * other + _ROUNDING) if seen >= right / n - _ROUNDING else -1
        total += probability * below[min(most, other) + 1]
    return min(1.0, total)


def _binomial(n: int, share: float) -> list[float]:
    """How likely 0, 1, ... of `n` are right."""
    if share >= 1:
        return [0.0] * n + [1.0]
    whole, (yes, no) = lgamma(n + 1), (log(share), log(1 - share))
    return [
        exp(whole - lgamma(k + 1) - lgamma(n - k + 1) + k * yes + (n - k) * no)
        for k in range(n + 1)
    ]
