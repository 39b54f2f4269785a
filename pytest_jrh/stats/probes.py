"""The figures of probes: how many verdicts turned, per variant, and which way; whether they turn
more often than by chance, and more often than is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from pytest_jrh.core import frozen
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.stats.intervals import (
    SIGNIFICANCE,
    Estimate,
    RepeatedCase,
    binomial_tail,
    effective_size,
    estimate_flicker,
    grouped,
    grouped_by,
)
from pytest_jrh.stats.statistics import (
    answer_of,
    clusters_of,
    is_ordered,
    is_wrong,
    share_of,
    with_verdict,
    wrong_cases,
)

SUPPOSED_FLICKER = 0.02
"""How often a verdict turns by itself, at the least: of a judge that was never asked twice that is
not known, and one that never contradicted itself may yet do so.
"""


def chance_of(judged: Sequence[CaseResult], chance: float) -> float:
    """The probability that so many verdicts turn where each does with the probability `chance`.

    One-sided, by the binomial distribution on as many cases as these are good for; 1 where none
    turned.
    """
    turned = list(map(is_wrong, judged))
    if not any(turned):
        return 1.0
    size = effective_size(turned, clusters_of(judged))
    return binomial_tail(sum(turned) * size / len(turned), size, chance)


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
    the tables of the suite. `judged` are the results with a verdict; where the answers on them
    are levels, it `is_ordered`.
    """

    suite: str
    judge: str
    probe: str
    total: ProbeRow
    rows: tuple[ProbeRow, ...]
    is_ordered: bool
    judged: tuple[CaseResult, ...]
    flicker: Estimate
    p_value: float
    adjusted: float = 1.0

    @property
    def cases(self) -> tuple[str, ...]:
        """The ids of the cases whose verdict turned."""
        return wrong_cases(self.judged)

    @property
    def is_finding(self) -> bool:
        """Whether verdicts turn more often than by flicker, at a level of all probes and judges."""
        return self.adjusted < SIGNIFICANCE


def probe_tables(results: Iterable[CaseResult]) -> tuple[ProbeTable, ...]:
    """Compute the figures of probes, by suite and judge in the order in which they appear."""
    groups = grouped(
        ((result.suite, result.judge, result.test), result)
        for result in results
        if result.spec.derived and result.outcome != "generated"
    )
    judges = list(dict.fromkeys(key[:2] for key in groups))
    keys = sorted(groups, key=lambda key: judges.index(key[:2]))
    tables = [_table(*key, groups[key]) for key in keys]
    places_by_suite = grouped((table.suite, place) for place, table in enumerate(tables))
    for places in places_by_suite.values():
        adjusted = holm([tables[place].p_value for place in places])
        for place, p_value in zip(places, adjusted, strict=True):
            tables[place] = replace(tables[place], adjusted=p_value)
    return tuple(tables)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        reached = min(1.0, max(reached, (len(order) - rank) * p_values[number]))
        adjusted[number] = reached
    return adjusted


def _table(suite: str, judge: str, probe: str, results: Sequence[CaseResult]) -> ProbeTable:
    judged = with_verdict(results)
    # How often the judge contradicts itself on the unchanged cases.
    bases = {}
    for result in judged:
        cluster, has_two = result.spec.cluster_id, result.scale.has_two
        base = RepeatedCase(cluster, result.base_scores, binary=has_two)
        bases[generation_id(result.spec.base_case)] = base
    flicker = estimate_flicker(bases.values())
    by_variant = grouped_by(results, "spec.variant")
    rows = [_row(variant, by_variant[variant]) for variant in sorted(by_variant)]
    return ProbeTable(
        suite,
        judge,
        probe,
        _row("", results),
        tuple(rows),
        is_ordered=is_ordered(results),
        flicker=flicker,
        p_value=_p_value(judged, max(flicker.value or 0.0, SUPPOSED_FLICKER)),
        judged=tuple(judged),
    )


def _row(variant: str, results: Sequence[CaseResult]) -> ProbeRow:
    judged = with_verdict(results)
    towards: Counter[tuple[int, str]] = Counter()
    shifts = []
    for result in judged:
        answer, base_score = answer_of(result), result.base_score
        if result.scale.is_ordered:
            if answer is not None and base_score is not None:
                shifts.append(answer - base_score)
        elif answer is not None and is_wrong(result):
            towards[answer, result.scale.word(answer)] += 1
    return ProbeRow(
        variant,
        share_of(judged, is_wrong),
        towards={word: number for (_, word), number in sorted(towards.items())},
        shift=fmean(shifts) if shifts else None,
    )


def _p_value(judged: Sequence[CaseResult], chance: float) -> float:
    """The smallest of all cases together and of each part of a variant's name, such as an attack,
    times their number (Bonferroni): a judge may fall for one of many.
    """
    parts = dict.fromkeys(part for result in judged for part in result.spec.variant.split("-"))
    groups = [judged]
    for part in parts:
        groups.append([result for result in judged if part in result.spec.variant.split("-")])
    values = [chance_of(group, chance) for group in groups]
    return min(1.0, min(values) * len(values))
