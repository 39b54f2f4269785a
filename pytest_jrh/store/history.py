"""The file of a history, a line for each run of a suite: what it found out, and the figures of each
judge over the runs.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

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
from pytest_jrh.core.files import is_missing, lines_of
from pytest_jrh.stats.formulas import Estimate

if TYPE_CHECKING:
    from pathlib import Path


FORMAT = 1
_LONGEST_NAME = 1_000
_LINE = "a line has suite, date, commit, cases, of, gate and judges"
_JUDGE = "a judge has judge, model, fingerprint, all and rubrics"
_FIGURE = "a figure has n, accuracy, lower and upper, between 0 and 1, and figures by name"
_DATE = "^([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC)?$"

_MOST = 10**12
_MOST_FIGURES = 100

_Name: TypeAlias = Annotated[StrictStr, Field(max_length=_LONGEST_NAME)]
_Count: TypeAlias = Annotated[StrictInt, Field(ge=0, le=_MOST)]
_Share: TypeAlias = Annotated[StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]


class UnusableLineError(ValueError):
    """A line of a history says something else than one should."""


def _possible(estimate: Estimate) -> Estimate:
    """Refuse with `ValueError` a figure that no verdicts give."""
    numbers = (estimate.value, estimate.lower, estimate.upper, estimate.count, estimate.n)
    for number in numbers:
        if number is not None and not abs(number) <= _MOST:
            raise ValueError("is no number of a figure")
    if not 0 <= (estimate.count or 0) <= estimate.n:
        raise ValueError("counts more cases than there are")
    return estimate


_Estimates: TypeAlias = Annotated[
    dict[_Name, Annotated[Estimate, AfterValidator(_possible)]], Field(max_length=_MOST_FIGURES)
]


@dataclass(frozen=True, slots=True)
class PastFigure:
    """The figures of a set of cases: the accuracy with its interval, None where there was none, and
    the others by their keys in the JSON report; lines of earlier versions have no others.
    """

    n: _Count
    accuracy: _Share | None
    lower: _Share | None
    upper: _Share | None
    figures: _Estimates = field(default_factory=dict)


_Rubric: TypeAlias = Annotated[StrictStr, AfterValidator(lambda name: name[:_LONGEST_NAME])]
_Figures: TypeAlias = Annotated[dict[_Rubric, PastFigure], Field(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class PastJudge:
    """The figures of one judge: over all of its cases, and by rubric.

    `prompt` is the digest of its prompt: empty where it has none, and in lines of earlier versions.
    """

    judge: _Name
    model: _Name
    fingerprint: _Name
    total: Annotated[PastFigure, Field(alias="all")]
    rubrics: _Figures
    prompt: _Name = ""


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
    return {"format": FORMAT, **_runs().dump_python(run, by_alias=True, exclude_defaults=True)}


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
    if is_missing(path):
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


Figures: TypeAlias = "Sequence[PastFigure | None]"
"""A figure of each run, oldest first, None where a run had none."""


@dataclass(frozen=True, slots=True)
class JudgeHistory:
    """What the runs of a suite found out about one judge; `past` is the judge in each run, oldest
    first, None where it was not there.
    """

    name: str
    past: Sequence[PastJudge | None]

    @property
    def last(self) -> PastJudge:
        """The judge as it was last."""
        return next(judge for judge in reversed(self.past) if judge is not None)

    @property
    def total(self) -> Figures:
        """The figures over all of its cases."""
        return [None if judge is None else judge.total for judge in self.past]

    @property
    def rubric_names(self) -> list[str]:
        """Its rubrics, those of the last run first."""
        names: dict[str, None] = {}
        for judge in reversed(self.past):
            names.update(dict.fromkeys(judge.rubrics if judge is not None else ()))
        return list(names)

    def rubric(self, name: str) -> Figures:
        """The figures of one rubric."""
        return [None if judge is None else judge.rubrics.get(name) for judge in self.past]


class JudgeChange(NamedTuple):
    """A run before which a judge was another."""

    run: PastRun
    before: PastJudge
    now: PastJudge


@dataclass(frozen=True, slots=True)
class SuiteHistory:
    """The last runs of a suite, oldest first, with the judges of each by name.

    `selections` counts the runs of a part of the cases, which are left out.
    """

    suite: str
    runs: tuple[PastRun, ...]
    judges_of_run: Sequence[Mapping[str, PastJudge]]
    selections: int

    @property
    def judges(self) -> list[JudgeHistory]:
        """The judges, those of the last run first."""
        names: dict[str, None] = {}
        for run in reversed(self.judges_of_run):
            names.update(dict.fromkeys(run))
        judges = []
        for name in names:
            judges.append(JudgeHistory(name, [run.get(name) for run in self.judges_of_run]))
        return judges

    @property
    def changes(self) -> list[JudgeChange]:
        """Where a judge became another, oldest first."""
        changes = []
        before: dict[str, PastJudge] = {}
        for run, judges in zip(self.runs, self.judges_of_run, strict=True):
            for name, now in judges.items():
                if name in before and before[name].fingerprint != now.fingerprint:
                    changes.append(JudgeChange(run, before[name], now))
                before[name] = now
        return changes


def histories(runs: Iterable[PastRun], most: int) -> list[SuiteHistory]:
    """The last `most` whole runs of each suite, of suites that have any."""
    runs_of_suite: dict[str, list[PastRun]] = {}
    for run in runs:
        runs_of_suite.setdefault(run.suite, []).append(run)
    suite_histories = [_history(suite, of_suite, most) for suite, of_suite in runs_of_suite.items()]
    return [history for history in suite_histories if any(history.judges_of_run)]


def _history(suite: str, runs: Sequence[PastRun], most: int) -> SuiteHistory:
    whole_runs = [run for run in runs if run.is_whole]
    shown_runs = whole_runs[-most:]
    judges_of_run = []
    for run in shown_runs:
        judges: dict[str, PastJudge] = {}
        for judge in run.judges:
            # The first, should a line name a judge twice.
            judges.setdefault(judge.judge, judge)
        judges_of_run.append(judges)
    return SuiteHistory(suite, tuple(shown_runs), judges_of_run, len(runs) - len(whole_runs))
