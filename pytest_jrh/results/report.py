"""The terminal summary as lines of text (semantics F)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jrh.results.metrics import GroupStats, totals
from pytest_jrh.results.text import columns, counted, one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_jrh.models import Progress, Spending

_GAP = "  "
_NARROWEST = 8


def summary_lines(stats: Sequence[GroupStats], spending: Spending, wall_seconds: float, width: int = 80) -> list[str]:
    """Lay out a table of test x rubric, and one line on calls, tokens, cost and time.

    Each suite and judge gets a section where there are several; a column `made` counts the cases
    that were not to be judged, where there are any. Rubric ids are shortened to fit `width` columns.
    No lines where nothing ran.
    """
    if not stats:
        return []
    lines = _table(stats, width)
    unverified = sum(group.unverified for group in stats)
    if unverified:
        lines.append(f"{counted(unverified, 'label')} unverified (the verifier is off, or did not confirm them)")
    return [*lines, "", *spending_lines(spending, wall_seconds, width)]


def spending_lines(spending: Spending, wall_seconds: float, width: int = 80) -> list[str]:
    """Say in one line, or as few as fit, what the session asked for, what it paid, and how long it took."""
    return _joined(_spending_parts(spending, wall_seconds), width)


def progress_line(progress: Progress, seconds: float, width: int) -> str:
    """Say in one line of at most `width` columns how far a session is, and when it may be done."""
    spending = progress.spending
    parts = [
        f"jrh: {progress.done:,} of {progress.total:,} cases",
        counted(spending.calls, "call"),
        counted(spending.usage.total, "token"),
        _dollars(spending.paid) + (" and unpriced calls" if spending.unpriced else ""),
    ]
    if 0 < progress.done < progress.total:
        left = seconds / progress.done * (progress.total - progress.done)
        parts.append(f"about {_duration(left)} left")
    return shortened(" | ".join(parts), width)


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    get: Callable[[GroupStats], str]
    is_name: bool = False


_NAMES = (
    _Column("test", lambda group: one_line(group.test), is_name=True),
    _Column("rubric", lambda group: one_line(group.rubric), is_name=True),
)
_FIGURES = (
    _Column("n", lambda group: f"{group.n:,}"),
    _Column("agree", lambda group: f"{group.agree:,}"),
    _Column("accuracy", lambda group: "-" if group.accuracy is None else f"{group.accuracy:.1%}"),
    _Column("no case", lambda group: f"{group.no_case:,}"),
    _Column("unscored", lambda group: f"{group.unscored:,}"),
)
_MADE = _Column("made", lambda group: f"{group.generated:,}")


def _table(stats: Sequence[GroupStats], width: int) -> list[str]:
    shown = [*_NAMES, *_FIGURES, *([_MADE] if any(group.generated for group in stats) else [])]
    total = replace(totals(stats), test="total")
    widths = _widths(shown, [*stats, total], width)
    sections = {_section(group): [other for other in stats if _section(other) == _section(group)] for group in stats}
    head = _line([column.title for column in shown], shown, widths)
    lines = [head]
    for section, groups in sections.items():
        if len(sections) > 1:
            lines += ["", _heading(section, sections, width)]
        lines += [_line([column.get(group) for column in shown], shown, widths) for group in groups]
    if len(stats) > 1:
        lines += ["-" * columns(head), _line([column.get(total) for column in shown], shown, widths)]
    return lines


def _section(group: GroupStats) -> tuple[str, str]:
    return group.suite, group.judge


def _heading(section: tuple[str, str], sections: Iterable[tuple[str, str]], width: int) -> str:
    """Name what tells this section from the others."""
    varying = [len(set(names)) > 1 for names in zip(*sections, strict=True)]
    titles = [f"{kind} {one_line(name)}" for kind, name in zip(("suite", "judge"), section, strict=True)]
    # A suite with a single judge has no name for it.
    telling = [title for title, name, varies in zip(titles, section, varying, strict=True) if varies and name]
    return shortened(", ".join(telling), width)


def _widths(shown: Sequence[_Column], groups: Sequence[GroupStats], width: int) -> list[int]:
    """Take from the widest name again and again, until the line fits or all names are at their narrowest."""
    widths = [max(columns(text) for text in (column.title, *map(column.get, groups))) for column in shown]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        names = [index for index, column in enumerate(shown) if column.is_name and widths[index] > _NARROWEST]
        if not names:
            break
        # From the right, so that of equally wide names the rubric gives way before the test.
        widths[max(reversed(names), key=lambda index: widths[index])] -= 1
    return widths


def _line(cells: Sequence[str], shown: Sequence[_Column], widths: Sequence[int]) -> str:
    padded = []
    for text, column, wide in zip(cells, shown, widths, strict=True):
        short = shortened(text, wide)
        space = " " * (wide - columns(short))
        padded.append(short + space if column.is_name else space + short)
    return _GAP.join(padded).rstrip()


def _spending_parts(spending: Spending, wall_seconds: float) -> list[str]:
    calls = f"{counted(spending.calls, 'call')} made, {spending.replayed:,} replayed"
    tokens = counted(spending.usage.total, "token")
    return [calls, tokens, _cost(spending), _duration(wall_seconds)]


def _cost(spending: Spending) -> str:
    """Say what was paid now; a call without a known price is named, never counted as free."""
    unpriced = f"{counted(spending.unpriced, 'call')} unpriced" if spending.unpriced else ""
    if spending.calls:
        return unpriced if unpriced and not spending.paid else _and(_dollars(spending.paid), unpriced)
    recorded = _and(f"{_dollars(spending.cost)} recorded", unpriced)
    return f"$0.00 ({recorded})" if spending.replayed else "$0.00"


def _and(first: str, second: str) -> str:
    return f"{first}, {second}" if second else first


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _joined(parts: Sequence[str], width: int) -> list[str]:
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]} | {part}"
        if columns(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines
