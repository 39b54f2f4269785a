"""The file of a history: lines are added at once, and those that cannot be read named.

One line of a history: what a run found out about one suite.

The figures of a history, row by row, as every picture of it shows them.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.files import lines_of
from pytest_jrh.core.text import one_line

if TYPE_CHECKING:
    from pathlib import Path


FORMAT = 1
_LONGEST_NAME = 1_000
_MOST_RUBRICS = 10_000
_LINE = "a line has suite, date, commit, cases, of, gate and judges"
_JUDGE = "a judge has judge, model, fingerprint, all and rubrics"
_FIGURE = "a figure has n, accuracy, lower and upper, between 0 and 1"
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC", re.ASCII)


class UnusableLineError(ValueError):
    """A line of a history says something else than one should."""


@dataclass(frozen=True, slots=True)
class PastFigure:
    """An accuracy with its interval; None where there was none."""

    n: int
    accuracy: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class PastJudge:
    """The figures of one judge: over all of its cases, and by rubric."""

    judge: str
    model: str
    fingerprint: str
    total: PastFigure
    rubrics: Mapping[str, PastFigure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a run found out about a suite: `cases` of the `of` that it has came to an end.

    `gate` is None where there was none. `date` is in UTC, to the minute.
    """

    suite: str
    date: str
    commit: str
    cases: int
    of: int
    gate: bool | None
    judges: tuple[PastJudge, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it was no run of a selection."""
        return self.cases >= self.of


def run_data(run: PastRun) -> dict[str, Any]:
    """The line as JSON values."""
    return {
        "format": FORMAT,
        "suite": run.suite,
        "date": run.date,
        "commit": run.commit,
        "cases": run.cases,
        "of": run.of,
        "gate": run.gate,
        "judges": [
            {
                "judge": judge.judge,
                "model": judge.model,
                "fingerprint": judge.fingerprint,
                "all": _figure_data(judge.total),
                "rubrics": {name: _figure_data(figure) for name, figure in judge.rubrics.items()},
            }
            for judge in run.judges
        ],
    }


def run_from(value: object) -> PastRun:
    """The run of a line; raises `UnusableLineError` with what is wrong."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UnusableLineError(f"is no line of a history of format {FORMAT}")
    texts = [value.get(key) for key in ("suite", "date", "commit")]
    numbers = [value.get(key) for key in ("cases", "of")]
    judges, gate = value.get("judges"), value.get("gate")
    fits = (
        all(map(_is_name, texts))
        and (texts[1] == "" or _DATE.fullmatch(str(texts[1])))
        and all(map(_is_count, numbers))
        and isinstance(judges, list)
        and (gate is None or isinstance(gate, bool))
    )
    if not fits or not isinstance(judges, list):
        raise UnusableLineError(_LINE)
    suite, date, commit = map(str, texts)
    cases, of = value["cases"], value["of"]
    return PastRun(suite, date, commit, cases, of, gate, tuple(map(_judge_from, judges)))


def _figure_data(figure: PastFigure) -> dict[str, Any]:
    data = {"accuracy": figure.accuracy, "lower": figure.lower, "upper": figure.upper}
    return {"n": figure.n, **data}


def _judge_from(value: object) -> PastJudge:
    if not isinstance(value, dict) or not all(
        _is_name(value.get(key)) for key in ("judge", "model", "fingerprint")
    ):
        raise UnusableLineError(_JUDGE)
    rubrics = value.get("rubrics")
    if not isinstance(rubrics, dict) or len(rubrics) > _MOST_RUBRICS:
        raise UnusableLineError(_JUDGE)
    return PastJudge(
        value["judge"],
        value["model"],
        value["fingerprint"],
        _figure_from(value.get("all")),
        {str(name)[:_LONGEST_NAME]: _figure_from(figure) for name, figure in rubrics.items()},
    )


def _figure_from(value: object) -> PastFigure:
    if not isinstance(value, dict) or not _is_count(value.get("n")):
        raise UnusableLineError(_FIGURE)
    shares = [value.get(key) for key in ("accuracy", "lower", "upper")]
    if not all(map(_is_share, shares)):
        raise UnusableLineError(_FIGURE)
    return PastFigure(value["n"], *shares)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12


def _is_share(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_LARGEST = 64 * 2**20
_HOW = "a history is written with --jrh-history=FILE"


@dataclass(frozen=True, slots=True)
class History:
    """The runs of a file, oldest first, and a problem for each line that cannot be used, at most
    ten; `unread` counts these lines.
    """

    runs: tuple[PastRun, ...] = ()
    problems: tuple[Problem, ...] = ()
    unread: int = 0


def read_history(path: Path, name: str) -> History:
    """Read a file line by line; `name` is what messages call it.

    Raises `InputError` where it is not there, no file or too large.
    """
    if not path.exists():
        raise InputError(Problem("no such file", name, hint=_HOW))
    runs: list[PastRun] = []
    problems: list[Problem] = []
    unread = 0
    for line in lines_of(path, name=name, hint=_HOW, largest=_LARGEST):
        try:
            runs.append(run_from(json.loads(line.data)))
        except (ValueError, RecursionError) as error:
            unread += 1
            problem = str(error) if isinstance(error, UnusableLineError) else "is not JSON"
            if len(problems) < MOST_PROBLEMS:
                problems.append(Problem(f"{problem}; the line is left out", name, line.number))
    return History(tuple(runs), tuple(problems), unread)


def add_runs(path: Path, runs: Iterable[PastRun]) -> None:
    """Add lines to a file, all at once, so that of two processes none writes into the other's.

    Raises `OSError`; the file is then as it was.
    """
    data = "".join(f"{json.dumps(run_data(run))}\n" for run in runs).encode("ascii")
    if not data:
        return
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError(errno.EINVAL, "Is a link, a device or a pipe, not a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(descriptor).st_size
        if before and os.pread(descriptor, 1, before - 1) != b"\n":
            # A line that was cut off would make one that cannot be read of the next one, too.
            data = b"\n" + data
        written = os.write(descriptor, data)
        if written < len(data):
            if os.fstat(descriptor).st_size == before + written:
                os.ftruncate(descriptor, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)


TOTAL = "all"
_STEP = 10


@dataclass(frozen=True, slots=True)
class Series:
    """One row: a figure of each run, oldest first, None where a run had none."""

    name: str
    figures: tuple[PastFigure | None, ...]

    @property
    def values(self) -> tuple[float | None, ...]:
        """The accuracies."""
        return tuple(None if figure is None else figure.accuracy for figure in self.figures)


@dataclass(frozen=True, slots=True)
class JudgeHistory:
    """The last runs of a judge of a suite, oldest first; the total stands first in `rows`.

    `selections` counts the runs of a part of the cases, which are left out. `others` are the runs
    before which the judge was another.
    """

    suite: str
    judge: str
    model: str
    runs: tuple[PastRun, ...]
    rows: tuple[Series, ...]
    selections: int
    others: tuple[PastRun, ...]

    @property
    def label(self) -> str:
        """What tells it from others."""
        suite = one_line(self.suite)
        return f"{suite}, judge {one_line(self.judge)}" if self.judge else suite

    @property
    def lowest(self) -> float:
        """Where the scale of its lines begins: a tenth below its lowest figure at most."""
        values = [value for row in self.rows for value in row.values if value is not None]
        return int(min(values, default=0.0) * _STEP) / _STEP if min(values, default=0) < 1 else 0.9


def histories(runs: Iterable[PastRun], most: int) -> list[JudgeHistory]:
    """The last `most` whole runs of each judge of each suite."""
    runs_of_judge: dict[tuple[str, str], list[tuple[PastRun, PastJudge]]] = {}
    for run in runs:
        # The first, should a line name a judge twice.
        judges = {judge.judge: judge for judge in reversed(run.judges)}
        for name in dict.fromkeys(judge.judge for judge in run.judges):
            runs_of_judge.setdefault((run.suite, name), []).append((run, judges[name]))
    judge_histories = [_history(*key, pairs, most) for key, pairs in runs_of_judge.items()]
    return [history for history in judge_histories if history.runs]


def _history(
    suite: str, judge: str, runs_of_judge: Sequence[tuple[PastRun, PastJudge]], most: int
) -> JudgeHistory:
    whole_runs = [(run, past_judge) for run, past_judge in runs_of_judge if run.is_whole]
    runs = [run for run, _ in whole_runs[-most:]]
    judges = [past_judge for _, past_judge in whole_runs[-most:]]
    names: dict[str, None] = {}
    for past_judge in reversed(judges):
        names.update(dict.fromkeys(past_judge.rubrics))
    rows = [Series(TOTAL, tuple(past_judge.total for past_judge in judges))]
    if len(names) > 1:
        for name in names:
            figures = tuple(past_judge.rubrics.get(name) for past_judge in judges)
            rows.append(Series(name, figures))
    pairs = zip(judges, judges[1:], runs[1:], strict=False)
    return JudgeHistory(
        suite,
        judge,
        judges[-1].model if judges else "",
        tuple(runs),
        tuple(rows),
        len(runs_of_judge) - len(whole_runs),
        tuple(run for before, after, run in pairs if before.fingerprint != after.fingerprint),
    )
