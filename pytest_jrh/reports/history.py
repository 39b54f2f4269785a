"""The history of suites: what a session adds to its file (`--jrh-history`), and the file as a table
of text with a small line for each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.text import columns, counted, escape_commands, fitted, one_line, wrapped
from pytest_jrh.reports.report import Report
from pytest_jrh.stats.figures import NONE, percent, range_text, sections
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.store.history import (
    JudgeHistory,
    PastFigure,
    PastJudge,
    PastRun,
    Series,
    add_runs,
    histories,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.statistics import Statistics


_DIGITS = 6


def runs_of(session: Session) -> Iterator[PastRun]:
    """The session's lines, one a suite; none of a suite without a verdict."""
    every_section = sections(session.table)
    for suite, extent in session.extents.items():
        judges = []
        for section in every_section:
            if section.suite == suite and section.total.counts.n:
                judges.append(_judge(section, session))
        if not judges:
            continue
        decision = session.decisions.get(suite)
        yield PastRun(
            suite=suite,
            date=session.origin.date,
            commit=session.origin.commit,
            cases=extent.cases,
            of=extent.of,
            gate=decision.passed if decision is not None and decision.active else None,
            judges=tuple(judges),
        )


def _judge(section: Section, session: Session) -> PastJudge:
    rubrics = {}
    for row in section.rows:
        if row.level == "rubric":
            rubrics[row.name] = _figure(row.statistics)
    origin = None
    for suite in session.origin.suites:
        for judge in suite.judges:
            if (suite.suite, judge.name) == (section.suite, section.judge):
                origin = judge
    return PastJudge(
        judge=section.judge,
        model=origin.label if origin is not None else "",
        fingerprint=origin.fingerprint if origin is not None else "",
        total=_figure(section.total),
        rubrics=rubrics,
    )


def _figure(statistics: Statistics) -> PastFigure:
    accuracy = statistics.accuracy
    return PastFigure(
        statistics.counts.n,
        _rounded(accuracy.value),
        _rounded(accuracy.lower),
        _rounded(accuracy.upper),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


class HistoryReport(Report):
    """The figures of each run, for `python -m pytest_jrh history`."""

    name = "history"
    option = "history"

    def write(self, path: Path, session: Session) -> None:
        add_runs(path, runs_of(session))


_BLOCKS = "▁▂▃▄▅▆▇█"
_GATE = {True: "+", False: "-", None: "."}
_HEAD = ("n", "last", "95%", "change", "runs")
_PASSED = "gate (+ passed)"
_GAP = "  "
_NARROWEST = 12
_MOST_RUNS = 60
_FEWEST_RUNS = 10
_MOST_OTHERS = 5


def history_lines(runs: Iterable[PastRun], width: int) -> list[str]:
    """The last runs of each judge of each suite, in at most `width` columns."""
    room = max(_FEWEST_RUNS, min(_MOST_RUNS, width - _NARROWEST - 36))
    lines = []
    for history in histories(runs, min(room, width // 3)):
        lines += [*_table(history, width), ""]
    # A line that wraps may begin with what a name has in its middle.
    return [escape_commands(line) for line in lines[:-1]]


def _table(history: JudgeHistory, width: int) -> Iterator[str]:
    runs = history.runs
    days = list(dict.fromkeys(run.date[:10] for run in (runs[0], runs[-1]) if run.date))
    title = f"suite {history.label}: {counted(len(runs), 'run')}"
    title += f", {' to '.join(days)}" if days else ""
    yield from wrapped(f"{title}; lines from {history.lowest:.0%} to 100%", width)
    cells = [_cells(row, history.lowest) for row in history.rows]
    wide = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
    left = width - sum(wide) - len(_GAP) * len(wide)
    names = [one_line(row.name) for row in history.rows]
    name = max(min(max(map(columns, (*names, _PASSED))), left), _NARROWEST)
    yield _line("accuracy", _HEAD, name, wide)
    for shown, row in zip(fitted(names, name), cells, strict=True):
        yield _line(shown, row, name, wide)
    gate = "".join(_GATE[run.gate] for run in runs)
    if set(gate) != {"."}:
        yield _line(_PASSED, ("", "", "", "", gate), name, wide)
    yield from _remarks(history, width)


def _remarks(history: JudgeHistory, width: int) -> Iterator[str]:
    for run in history.others[-_MOST_OTHERS:]:
        at = f" (commit {run.commit})" if run.commit else ""
        yield from wrapped(f"another judge than before: {run.date}{at}", width)
    if (more := len(history.others) - _MOST_OTHERS) > 0:
        yield f"and {more:,} changes of the judge before"
    if history.selections:
        runs = counted(history.selections, "run")
        yield f"{runs} of a part of the cases left out"


def _cells(row: Series, lowest: float) -> tuple[str, ...]:
    last = row.figures[-1]
    values = [value for value in row.values if value is not None]
    change = NONE
    if len(values) > 1 and row.values[-1] is not None:
        change = f"{100 * (values[-1] - values[-2]):+.1f}"
        change = change.replace("-0.0", "+0.0")
    return (
        f"{last.n:,}" if last is not None else NONE,
        percent(last.accuracy) if last is not None else NONE,
        _interval(last),
        change,
        "".join(_block(value, lowest) for value in row.values),
    )


def _interval(figure: PastFigure | None) -> str:
    if figure is None or figure.lower is None or figure.upper is None:
        return NONE
    return range_text(Estimate(figure.accuracy, figure.lower, figure.upper))


def _block(value: float | None, lowest: float) -> str:
    if value is None:
        return " "
    return _BLOCKS[round((value - lowest) / (1 - lowest) * (len(_BLOCKS) - 1))]


def _line(name: str, cells: Sequence[str], wide_name: int, wide: Sequence[int]) -> str:
    *figures, runs = cells
    padded = [name + " " * (wide_name - columns(name))]
    for figure, room in zip(figures, wide, strict=False):
        padded.append(figure.rjust(room))
    return _GAP.join([*padded, runs]).rstrip()
