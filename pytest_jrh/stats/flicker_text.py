"""How often a judge contradicts itself, and how often its repeats tie, in sentences (rule M2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.stats.columns import percent, range_text
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from pytest_jrh.stats.statistics import Statistics


def flicker_sentence(statistics: Statistics) -> str:
    """In how many cases a judge contradicts itself; nothing where none was judged twice."""
    found = statistics.flicker
    if not found.cases:
        return ""
    cases = f"{found.flickering:,} of {counted(found.cases, 'repeated case')}"
    known = "" if found.bounds.lower is None else f", 95% interval {range_text(found.bounds)}"
    return f"The judge gave different scores in {cases} (flicker {percent(found.value)}{known})."


def tie_sentence(statistics: Statistics) -> str:
    """What becomes of the cases without a score; nothing where there is none."""
    ties, n = statistics.counts.ties, statistics.counts.n
    if not ties:
        return ""
    left_out = "; mean error, bias and weighted kappa leave them out" if statistics.ordinal else ""
    return (
        f"Ties: in {ties:,} of {counted(n, 'case')} no score is the most frequent of the repeats. "
        f"They count as wrong{left_out}."
    )
