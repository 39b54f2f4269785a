"""The figures of probes: how many verdicts turned, per variant, and which way; whether they turn
more often than by chance, and more often than is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pytest_jrh.core import frozen
from pytest_jrh.stats.intervals import SIGNIFICANCE, Estimate, binomial_tail, effective_size
from pytest_jrh.stats.statistics import flicker_of, share_of
from pytest_jrh.stats.verdicts import Verdicts, answer_of, distinct

SUPPOSED_FLICKER = 0.02
"""How often a verdict turns by itself, at the least: of a judge that was never asked twice that is
not known, and one that never contradicted itself may yet do so.
"""


def chance_of(judged: Verdicts, chance: float) -> float:
    """The probability that so many verdicts turn where each does with the probability `chance`.

    One-sided, by the binomial distribution on as many cases as these are good for; 1 where none
    turned.
    """
    turned = judged.wrong
    if not turned.any():
        return 1.0
    size = effective_size(turned, judged.cluster)
    return binomial_tail(float(turned.mean()) * size, size, chance)


@frozen
class ProbeRow:
    """What became of the verdicts on changed cases, where the judge is right on the unchanged ones.

    `variant` is empty for all of a probe. `rate` is the share of verdicts that are wrong;
    `towards` counts them by the word of the answer that they turned to, and of levels `shift` is
    the mean change of the score.
    """

    variant: str
    rate: Estimate
    towards: Mapping[str, int]
    shift: float | None

    @property
    def n(self) -> int:
        """How many verdicts there are."""
        return self.rate.n

    @property
    def turned(self) -> int:
        """How many of them are wrong."""
        return self.rate.count or 0


@frozen
class ProbeTable:
    """One probe under one judge of a suite: all its cases, and those of each variant.

    `flicker` is the judge's on the unchanged cases. `p_value` is the probability of what was seen,
    or more, if verdicts turned by flicker alone, `adjusted` the same after Holm's adjustment over
    the tables of the suite. `judged` are the verdicts.
    """

    suite: str
    judge: str
    probe: str
    total: ProbeRow
    rows: tuple[ProbeRow, ...]
    judged: Verdicts
    flicker: Estimate
    p_value: float
    adjusted: float = 1.0

    @property
    def cases(self) -> tuple[str, ...]:
        """The ids of the cases whose verdict turned."""
        return self.judged.wrong_ids

    @property
    def is_finding(self) -> bool:
        """Whether verdicts turn more often than by flicker, at a level of all probes and judges."""
        return self.adjusted < SIGNIFICANCE


def probe_tables(verdicts: Verdicts) -> tuple[ProbeTable, ...]:
    """Compute the figures of probes, by suite and judge in the order in which they appear."""
    was_judged = ~verdicts.outcome.equals("generated")
    tables = []
    for suite, of_suite in verdicts.where(verdicts.derived & was_judged).grouped("suite").items():
        of_probes = []
        for judge, of_judge in of_suite.grouped("judge").items():
            for probe, verdicts_of_probe in of_judge.grouped("test").items():
                of_probes.append(_table(suite, judge, probe, verdicts_of_probe))
        adjusted = holm([table.p_value for table in of_probes])
        for table, p_value in zip(of_probes, adjusted, strict=True):
            tables.append(replace(table, adjusted=p_value))
    return tuple(tables)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = np.argsort(p_values)
    steps = np.arange(len(order), 0, -1) * np.sort(p_values)
    reached = np.minimum(1.0, np.maximum.accumulate(steps))
    adjusted: list[float] = reached[np.argsort(order)].tolist()
    return adjusted


def _table(suite: str, judge: str, probe: str, verdicts: Verdicts) -> ProbeTable:
    judged = verdicts.judged
    # How often the judge contradicts itself on the unchanged cases.
    _, first_of_base = distinct(judged.base_case.codes)
    flicker = flicker_of(judged.where(first_of_base), "base")
    by_variant = verdicts.grouped("variant")
    rows = [_row(variant, by_variant[variant]) for variant in sorted(by_variant)]
    return ProbeTable(
        suite,
        judge,
        probe,
        _row("", verdicts),
        tuple(rows),
        flicker=flicker,
        p_value=_p_value(judged, max(flicker.value or 0.0, SUPPOSED_FLICKER)),
        judged=judged,
    )


def _row(variant: str, verdicts: Verdicts) -> ProbeRow:
    judged = verdicts.judged
    towards: Counter[tuple[int, str]] = Counter()
    shift, shifted = 0, 0
    kinds = judged.kinds("scale", "label", "score", "base", "outcome")
    numbers = np.bincount(kinds.codes).tolist()
    for (scale, label, score, base_scores, outcome), number in zip(
        kinds.names, numbers, strict=True
    ):
        answer, base_score = answer_of(scale, label, score), scale.settled(base_scores)
        if answer is None:
            continue
        if not scale.is_ordered and outcome == "disagree":
            towards[answer, scale.word(answer)] += number
        elif scale.is_ordered and base_score is not None:
            shift += number * (answer - base_score)
            shifted += number
    return ProbeRow(
        variant,
        share_of(judged, judged.wrong),
        towards={word: number for (_, word), number in sorted(towards.items())},
        shift=shift / shifted if shifted else None,
    )


def _p_value(judged: Verdicts, chance: float) -> float:
    """The smallest of all cases together and of each part of a variant's name, such as an attack,
    times their number (Bonferroni): a judge may fall for one of many.
    """
    parts: dict[str, None] = {}
    for variant in judged.variant.present():
        parts |= dict.fromkeys(variant.split("-"))
    groups = [judged]
    for part in parts:
        with_part = {name for name in judged.variant.names if part in name.split("-")}
        groups.append(judged.where(judged.variant.each(with_part.__contains__)))
    values = [chance_of(group, chance) for group in groups]
    return min(1.0, min(values) * len(values))
