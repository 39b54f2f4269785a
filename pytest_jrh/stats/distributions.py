"""Quantiles of Student's t and tails of the binomial, which the standard library lacks."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_ITERATIONS = 300
_CLOSE = 1e-15


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: float) -> float:
    """The value that Student's t is below with probability `share`, 1/2 to 1; freedom >= 1.

    A closed form for 1 degree of freedom, else Newton's method from the expansion of Cornish and
    Fisher (Abramowitz and Stegun 1964, 26.7.5), to 11 digits.
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    z = NormalDist().inv_cdf(share)
    value = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    for _ in range(_ITERATIONS):
        square = value * value
        above = t_tail(value, freedom)
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(square / freedom))
        step = (above - (1 - share)) / density
        # The tail is convex here, so that only a start that is too high can overshoot.
        value = max(value + step, value / 2)
        if abs(step) <= 1e-13 * (1 + abs(value)):
            break
    return value


def t_tail(value: float, freedom: float) -> float:
    """The probability that Student's t is above a value."""
    square = value * value
    above = (1 - _beta(0.5, freedom / 2, square / (freedom + square))) / 2
    return above if value > 0 else 1 - above


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
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _ITERATIONS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            # Neither is ever near 0 for such x.
            d = 1 / (1 + term * d)
            c = 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return math.exp(log_front) * fraction / a
