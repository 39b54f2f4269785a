"""The spending of a session, as lines of text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_jrh.core.model import Spending, Usage
from pytest_jrh.core.text import columns, counted, dollars, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.model import CaseResult, Progress

_ESTIMATED_FROM = 0.1


def spending_lines(spending: Spending, width: int = 80, *, wall_seconds: float = 0.0) -> list[str]:
    """Calls, cost and duration of a session, in as few lines as possible.

    Without a duration where it is 0: that of merged results is not known, and the terminal's last
    line has pytest's own.
    """
    return _joined(_spending_parts(spending, wall_seconds), width)


def total_spending(results: Iterable[CaseResult]) -> Spending:
    """Sum the spending of results; a call shared by cases is counted once, as it was paid once.

    Where the session made it, its copies are no replayed calls; where each case has it from its own
    cassette, it is a replayed one of each.
    """
    total = Spending()
    shared_calls = []
    for result in results:
        total += result.spending.all
        if result.spending.shared is not None:
            shared_calls.append((result.spec.suite, result.spending.shared))
    made_now = {(suite, call.fingerprint) for suite, call in shared_calls if call.spending.calls}
    # The case that made the call comes first, so that what was paid now is never left out.
    shared_calls.sort(key=lambda suite_call: not suite_call[1].spending.calls)
    counted_before = set[tuple[str, str]]()
    for suite, call in shared_calls:
        key = (suite, call.fingerprint)
        if key in counted_before and not call.spending.calls:
            total = _without(total, call.spending, is_copy=key in made_now)
        counted_before.add(key)
    return total


def _without(total: Spending, spent: Spending, *, is_copy: bool) -> Spending:
    usage = Usage(
        total.usage.input_tokens - spent.usage.input_tokens,
        total.usage.output_tokens - spent.usage.output_tokens,
    )
    total = replace(total, usage=usage, cost=total.cost - spent.cost)
    if not is_copy:
        return total
    return replace(
        total,
        replayed=total.replayed - spent.replayed,
        unpriced=total.unpriced - spent.unpriced,
    )


def progress_line(progress: Progress, seconds: float, width: int) -> str:
    """How far a session is, what is left, at work and spent, in at most `width` columns."""
    done, total, spending = progress.done, progress.total, progress.spending
    times = _clock(seconds)
    # Before, the cases that are done are too few to judge the others by.
    if done < total and done >= total * _ESTIMATED_FROM:
        times += f", about {_clock(seconds / done * (total - done))} left"
    parts = [f"jrh: {done:,} of {counted(total, 'case')}", times]
    if progress.in_flight:
        stages = (f"{number:,} {stage}" for stage, number in progress.in_flight.items())
        parts.append(f"in flight: {', '.join(stages)}")
    # What cases at work have spent is not known: without one that is done, nothing is said of it.
    if done:
        unpriced = " and unpriced calls" if spending.unpriced else ""
        parts.append(counted(spending.calls, "call"))
        parts.append(f"{_dollars(spending.paid)}{unpriced}")
        parts.append(counted(spending.usage.total, "token"))
    return shortened(" | ".join(parts), width)


def _spending_parts(spending: Spending, wall_seconds: float) -> list[str]:
    lost = f" ({spending.lost:,} without an answer, which may be billed)" if spending.lost else ""
    calls = f"{counted(spending.calls, 'call')} made{lost}, {spending.replayed:,} replayed"
    tokens = counted(spending.usage.total, "token")
    parts = [calls, tokens, _cost(spending)]
    return [*parts, _duration(wall_seconds)] if wall_seconds else parts


def _cost(spending: Spending) -> str:
    """The cost of this session; a call without a known price is named, never counted as free."""
    unpriced = f"{counted(spending.unpriced, 'call')} unpriced" if spending.unpriced else ""
    if spending.calls and unpriced and not spending.paid:
        return unpriced
    if spending.calls:
        return _and(_dollars(spending.paid), unpriced)
    recorded = _and(f"{_dollars(spending.cost)} recorded", unpriced)
    return f"$0.00 ({recorded})" if spending.replayed else "$0.00"


def _and(first: str, second: str) -> str:
    return f"{first}, {second}" if second else first


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else dollars(amount)


def _duration(seconds: float) -> str:
    text = _clock(seconds)
    return text if "min" in text else f"{seconds:.1f} s"


def _clock(seconds: float) -> str:
    minutes, full_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {full_seconds} s" if minutes else f"{full_seconds} s"


def _joined(parts: Sequence[str], width: int) -> list[str]:
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]} | {part}"
        if columns(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines
