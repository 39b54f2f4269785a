"""Slices: the cases with one value of a field or a column, such as a category, looked at by
themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pytest_jrh.core.text import counted
from pytest_jrh.stats.figures import Section
from pytest_jrh.stats.statistics import Statistics, statistics_of
from pytest_jrh.stats.verdicts import Coded, Verdicts

_FEWEST_CASES = 10
# So many values have figures of their own: those with most wrong verdicts.
_MOST_VALUES = 50
_MOST_SETS = 100
_NO_VALUE = "(none)"


def slice_name(key: str, value: str) -> str:
    """What a slice is called among other sets."""
    return f"{key}={value or _NO_VALUE}"


def with_sets(verdicts: Verdicts, *, decides: bool) -> Verdicts:
    """The verdicts of a judge with those slices alone that are sets of the decision: where they
    decide, the largest.
    """
    slices = verdicts.slices
    sizes: Counter[tuple[str, str]] = Counter()
    if decides:
        for code, number in Counter(slices.codes[~verdicts.derived].tolist()).items():
            sizes.update(dict.fromkeys(slices.names[code], number))
    sets = {of for of, number in sizes.most_common(_MOST_SETS) if number >= _FEWEST_CASES}
    names = [tuple(filter(sets.__contains__, of_case)) for of_case in slices.names]
    return replace(verdicts, slices=Coded.of(names)[slices.codes])


def slice_sections(section: Section) -> dict[str, Section]:
    """The figures of a judge by each field: a row for each value, the worst first; then those with
    fewer wrong verdicts together, and those with few cases.
    """
    judged = section.total.judged
    keys: dict[str, None] = {}
    for slices in judged.slices.present():
        keys |= dict.fromkeys(key for key, _ in slices)
    sections = {}
    for key in keys:
        names = [dict(slices).get(key, "") for slices in judged.slices.names]
        values = Coded.of(names)[judged.slices.codes]
        sections[key] = replace(section, rubrics=[*_rows(judged, values)])
    return sections


def _rows(judged: Verdicts, values: Coded[str]) -> Iterator[Statistics]:
    sizes = np.bincount(values.codes, minlength=len(values.names))
    wrong = np.bincount(values.codes[judged.wrong], minlength=len(sizes))
    is_large = sizes >= _FEWEST_CASES
    large = np.flatnonzero(is_large).tolist()
    large.sort(key=lambda code: -wrong[code])
    small = np.flatnonzero((sizes > 0) & ~is_large).tolist()
    own, others = large[:_MOST_VALUES], large[_MOST_VALUES:]

    def row(name: str, codes: list[int]) -> Statistics:
        return replace(statistics_of(judged.where(np.isin(values.codes, codes))), rubric=name)

    rows = [row(values.names[code] or _NO_VALUE, [code]) for code in own]
    yield from sorted(rows, key=_badness, reverse=True)
    if others:
        yield row(counted(len(others), "other value"), others)
    if small:
        yield row(f"{counted(len(small), 'value')} below {_FEWEST_CASES} cases", small)


def _badness(statistics: Statistics) -> tuple[float, float]:
    """The lower end of the share of mistakes in the worst class, and that share: a few mistakes in
    few cases are not the worst.
    """
    shares = map(statistics.mistakes, statistics.scale.classes)
    return max((share.lower or 0.0, share.value or 0.0) for share in shares)
