"""The file of a history: lines are added at once, and those that cannot be read named.

One line of a history: what a run found out about one suite.

The figures of a history, row by row, as every picture of it shows them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.files import lines_of
from pytest_jrh.core.text import one_line

if TYPE_CHECKING:
    from pathlib import Path


FORMAT = 1
_LONGEST_NAME = 1_000
_LINE = "a line has suite, date, commit, cases, of, gate and judges"
_JUDGE = "a judge has judge, model, fingerprint, all and rubrics"
_FIGURE = "a figure has n, accuracy, lower and upper, between 0 and 1"
_DATE = "^([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC)?$"

_Name: TypeAlias = Annotated[StrictStr, Field(max_length=_LONGEST_NAME)]
_Count: TypeAlias = Annotated[StrictInt, Field(ge=0, le=10**12)]
_Share: TypeAlias = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]


class UnusableLineError(ValueError):
    """A line of a history says something else than one should."""


@dataclass(frozen=True, slots=True)
class PastFigure:
    """An accuracy with its interval; None where there was none."""

    n: _Count
    accuracy: _Share | None
    lower: _Share | None
    upper: _Share | None


_Rubric: TypeAlias = Annotated[StrictStr, AfterValidator(lambda name: name[:_LONGEST_NAME])]
_Figures: TypeAlias = Annotated[dict[_Rubric, PastFigure], Field(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class PastJudge:
    """The figures of one judge: over all of its cases, and by rubric."""

    judge: _Name
    model: _Name
    fingerprint: _Name
    total: Annotated[PastFigure, Field(alias="all")]
    rubrics: _Figures


@dataclass(frozen=True, slots=True)
class PastRun:
    """What a run found out about a suite: `cases` of the `of` that it has came to an end.

    `gate` is None where there was none. `date` is in UTC, to the minute.
    """

    suite: _Name
    date: Annotated[StrictStr, Field(pattern=_DATE)]
    commit: _Name
    cases: _Count
    of: _Count
    gate: StrictBool | None
    judges: tuple[PastJudge, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it was no run of a selection."""
        return self.cases >= self.of


@cache
def _runs() -> TypeAdapter[PastRun]:
    return TypeAdapter(PastRun)


def run_data(run: PastRun) -> dict[str, Any]:
    """The line as JSON values."""
    return {"format": FORMAT, **_runs().dump_python(run, by_alias=True)}


def run_from(value: object) -> PastRun:
    """The run of a line; raises `UnusableLineError` with what is wrong."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UnusableLineError(f"is no line of a history of format {FORMAT}")
    try:
        return _runs().validate_python(value)
    except ValidationError as error:
        keys = error.errors(include_url=False)[0]["loc"]
    if len(keys) == 1:
        raise UnusableLineError(_LINE)
    is_figure = "all" in keys or "rubrics" in keys[:-1]
    raise UnusableLineError(_FIGURE if is_figure else _JUDGE)


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
        values: list[float] = []
        for row in self.rows:
            values += [value for value in row.values if value is not None]
        lowest = min(values, default=0.0)
        return int(lowest * _STEP) / _STEP if lowest < 1 else 0.9


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
