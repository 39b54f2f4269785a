"""The history of suites: what a session adds to its file (`--jrh-history`), and the file as tables
of text: what each judge missed and which false alarms it gave, now and before, and a bar a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.text import GAP, aligned, columns, counted, escape_commands, one_line, wrapped
from pytest_jrh.reports.report import Report
from pytest_jrh.stats.figures import NONE, decimal, percent, sections
from pytest_jrh.store.history import (
    PastFigure,
    PastJudge,
    PastRun,
    add_runs,
    histories,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.formulas import Estimate
    from pytest_jrh.stats.statistics import Statistics
    from pytest_jrh.store.history import Figures, JudgeChange, JudgeHistory, SuiteHistory


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
        prompt=origin.prompt_digest if origin is not None else "",
    )


def _figure(statistics: Statistics) -> PastFigure:
    accuracy = statistics.accuracy
    figures = {}
    for key, estimate in statistics.figures.items():
        if key != "accuracy" and estimate.value is not None:
            figures[key] = _rounded_ends(estimate)
    return PastFigure(
        statistics.counts.n,
        _rounded(accuracy.value),
        _rounded(accuracy.lower),
        _rounded(accuracy.upper),
        figures,
    )


def _rounded_ends(estimate: Estimate) -> Estimate:
    return replace(
        estimate,
        value=_rounded(estimate.value),
        lower=_rounded(estimate.lower),
        upper=_rounded(estimate.upper),
        why="",
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


class HistoryReport(Report):
    """The figures of each run, for `python -m pytest_jrh history`."""

    name = "history"
    option = "history"

    def write(self, path: Path, session: Session) -> None:
        add_runs(path, runs_of(session))


_BARS = "▁▂▃▄▅▆▇█"
_GATE = {True: "+", False: "-", None: "."}
_PASSED = "gate (+ passed)"
_MOST_RUNS = 60
_MOST_ROWS = 200
_FEWEST_RUBRICS = 2
_STEP = 10
_NARROWEST_BARS = 10
_MOST_CHANGES = 5


def _missed(figure: PastFigure) -> str:
    recall = figure.figures.get("recall")
    if recall is None or recall.count is None:
        return NONE
    return f"{recall.n - recall.count:,}/{recall.n:,}"


def _share(key: str, figure: PastFigure) -> str:
    share = figure.figures.get(key)
    return NONE if share is None or share.count is None else f"{share.count:,}/{share.n:,}"


def _number(key: str, figure: PastFigure) -> str:
    number = figure.figures.get(key)
    return NONE if number is None else decimal(number.value)


class _Column(NamedTuple):
    """A figure of a row: the two lines of its head, and its text; `(before)` it where asked for."""

    head: tuple[str, str]
    text: Callable[[PastFigure], str]
    has_before: bool = False

    def cell(self, figures: Figures) -> str:
        """The figure of the last run, with that of the last run before in parentheses."""
        *earlier, last = figures
        text = NONE if last is None else self.text(last)
        before = [figure for figure in earlier if figure is not None]
        if not self.has_before or not before:
            return text
        text_before = self.text(before[-1])
        return text if text == text_before == NONE else f"{text} ({text_before})"


_BINARY = (
    _Column(("missed", "(before)"), _missed, has_before=True),
    _Column(("false alarms", "(before)"), partial(_share, "false_positive_rate"), has_before=True),
    _Column(("", "kappa"), partial(_number, "kappa")),
    _Column(("", "accuracy"), lambda figure: percent(figure.accuracy)),
)
_ORDINAL = (
    _Column(("exact", "(before)"), partial(_share, "exact"), has_before=True),
    _Column(("bias", "(before)"), partial(_number, "bias"), has_before=True),
    _Column(("weighted", "kappa"), partial(_number, "weighted_kappa")),
)


def history_lines(runs: Iterable[PastRun], width: int) -> list[str]:
    """The last runs of each suite, in `width` columns."""
    lines = []
    for history in histories(runs, _MOST_RUNS):
        lines += [*_title(history, width), *_table(history, width), *_remarks(history, width), ""]
    # A line that wraps may begin with what a name has in its middle.
    return [escape_commands(line) for line in lines[:-1]]


def _title(history: SuiteHistory, width: int) -> list[str]:
    runs = history.runs
    days = list(dict.fromkeys(run.date[:10] for run in (runs[0], runs[-1]) if run.date))
    title = f"suite {one_line(history.suite)}: {counted(len(runs), 'run')}"
    if days:
        title += f", {' to '.join(days)}"
    return wrapped(title, width)


def _table(history: SuiteHistory, width: int) -> list[str]:
    """A line for each judge, and below for each of its rubrics, with a bar for each run's accuracy;
    of more runs than there is room for, the last ones have a bar.
    """
    judges = history.judges
    is_ordinal = any("exact" in judge.last.total.figures for judge in judges[:_MOST_ROWS])
    shown_columns = _ORDINAL if is_ordinal else _BINARY
    rows = list(_rows(judges))
    lowest = _lowest(figures for _, figures in rows if figures is not None)
    lines = [[""], ["judge"]]
    for shown_column in shown_columns:
        for line, head in zip(lines, shown_column.head, strict=True):
            line.append(head)
    bars = ["runs", f"{100 * lowest:.0f}-100%"]
    for name, figures in rows:
        if figures is None:
            lines.append([name, *("" for _ in shown_columns)])
            bars.append("")
            continue
        lines.append([name, *(shown_column.cell(figures) for shown_column in shown_columns)])
        bars.append("".join(_bar(figure, lowest) for figure in figures))
    names, *columns_of_figures = zip(*lines, strict=True)
    room = width - len(GAP)
    for cells in columns_of_figures:
        room -= max(map(columns, cells)) + len(GAP)
    # The names have at least half of what the figures leave.
    room = max(room - max(map(columns, (*names, _PASSED))), room // 2)
    if room >= _NARROWEST_BARS:
        gate = "".join(_GATE[run.gate] for run in history.runs)
        if set(gate) != {"."}:
            lines.append([_PASSED, *("" for _ in shown_columns)])
            bars.append(gate)
        for line, bar in zip(lines, bars, strict=True):
            line.append(bar[-room:])
    return aligned(lines, width)


def _rows(judges: Sequence[JudgeHistory]) -> Iterator[tuple[str, Figures | None]]:
    """The names of the rows, with their figures: the judges, and the rubrics of each."""
    for judge in judges[:_MOST_ROWS]:
        yield _judge_name(judge), judge.total
    if len(judges) > _MOST_ROWS:
        yield f"and {counted(len(judges) - _MOST_ROWS, 'more judge')}", None
        return
    for judge in judges:
        names = judge.rubric_names
        if len(names) < _FEWEST_RUBRICS:
            # The judge's own row says it.
            continue
        if len(judges) > 1:
            yield f"{_judge_name(judge)}:", None
        for name in names[:_MOST_ROWS]:
            yield f"{GAP}{one_line(name)}", judge.rubric(name)
        if len(names) > _MOST_ROWS:
            yield f"{GAP}and {counted(len(names) - _MOST_ROWS, 'more rubric')}", None


def _lowest(rows: Iterable[Figures]) -> float:
    """Where the scale of the bars begins: a tenth below the lowest accuracy at most."""
    accuracies: list[float] = []
    for figures in rows:
        for figure in figures:
            if figure is not None and figure.accuracy is not None:
                accuracies.append(figure.accuracy)
    lowest = min(accuracies, default=0.0)
    return int(lowest * _STEP) / _STEP if lowest < 1 else 1 - 1 / _STEP


def _judge_name(judge: JudgeHistory) -> str:
    return one_line(judge.name or judge.last.model) or "all"


def _bar(figure: PastFigure | None, lowest: float) -> str:
    if figure is None or figure.accuracy is None:
        return " "
    return _BARS[round((figure.accuracy - lowest) / (1 - lowest) * (len(_BARS) - 1))]


def _remarks(history: SuiteHistory, width: int) -> Iterator[str]:
    changes = history.changes
    for change in changes[-_MOST_CHANGES:]:
        yield from wrapped(_change_sentence(change), width)
    if (more := len(changes) - _MOST_CHANGES) > 0:
        yield f"and {counted(more, 'change')} of a judge before"
    if history.selections:
        yield f"{counted(history.selections, 'run')} of a part of the cases left out"


def _change_sentence(change: JudgeChange) -> str:
    """When a judge became another, and in what: as far as its lines say."""
    run, before, now = change
    commit = f" (commit {one_line(run.commit)})" if run.commit else ""
    judge = f"judge {one_line(now.judge)}" if now.judge else "the judge"
    others = []
    if before.model != now.model:
        others.append(f"model {one_line(now.model)} (before: {one_line(before.model)})")
    if before.prompt and now.prompt and before.prompt != now.prompt:
        others.append(f"prompt {one_line(now.prompt)} (before: {one_line(before.prompt)})")
    if not others:
        is_same_prompt = bool(now.prompt) and before.prompt == now.prompt
        others.append("its settings" if is_same_prompt else "its prompt, settings or code")
    return f"{run.date}{commit}: {judge} changed: {', '.join(others)}"
