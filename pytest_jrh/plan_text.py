"""A plan of calls as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_jrh.planning import Bounds, PlanRow
from pytest_jrh.results.text import counted, shortened, wrapped

_HEAD = ("stage", "model", "recorded", "to make", "tokens", "cost")


def plan_lines(rows: Sequence[PlanRow], modes: Mapping[str, tuple[str, str]], cases: int, width: int = 80) -> list[str]:
    """A table per suite, the total, and what the bounds rest on; `modes` are generation's and judging's, per suite."""
    lines: list[str] = []
    for suite in dict.fromkeys(row.suite for row in rows):
        generation, judging = modes[suite]
        mode = generation if generation == judging else f"{generation}, judge {judging}"
        lines += [f"suite {suite}, recording {mode}", *_table([row for row in rows if row.suite == suite]), ""]
    calls = sum((row.calls for row in rows), Bounds())
    cost = sum((row.cost for row in rows if row.cost is not None), Bounds())
    recorded = sum(row.recorded for row in rows)
    lines += wrapped(
        f"{counted(cases, 'case')}: {recorded:,} calls recorded, {_whole(calls)} to make, {_dollars(cost)}.", width
    )
    unpriced = sorted({row.model for row in rows if row.cost is None and row.calls.high})
    if unpriced:
        lines += wrapped(f"No price is known of {', '.join(unpriced)}: what it costs is not in these figures.", width)
    if calls.high and all("none" in pair for pair in modes.values()):
        lines += wrapped("Record mode none asks nobody: these calls would be made with --jrh-record-mode=once.", width)
    if calls.high:
        lines += wrapped(
            "Planner and judge are counted as one call a case, edits and summaries as a range; answers that have to be "
            "asked for again come on top. Tokens are estimated from the transcripts' letters, an answer as at most "
            "max_tokens, or 2,000 tokens where none is set.",
            width,
        )
    return lines


def _table(rows: Sequence[PlanRow]) -> list[str]:
    cells = [_HEAD]
    cells += [
        (
            row.stage,
            shortened(row.model, 28),
            f"{row.recorded:,}",
            _whole(row.calls),
            _whole(row.tokens),
            "unknown" if row.cost is None else _dollars(row.cost),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    names = 2
    return [
        "  ".join(
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _whole(bounds: Bounds) -> str:
    low, high = f"{bounds.low:,.0f}", f"{bounds.high:,.0f}"
    return low if low == high else f"{low} to {high}"


def _dollars(bounds: Bounds) -> str:
    low, high = f"${bounds.low:,.4f}", f"${bounds.high:,.4f}"
    if not bounds.high:
        return "$0"
    return low if low == high else f"{low} to {high}"
