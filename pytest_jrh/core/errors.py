"""The errors: as few classes as callers need to distinguish.

JrhError
|- InputError      the user's files: one or more problems, each with its place (exit code 4)
|- Unscored        the pipeline or the judge could not finish: an outcome of `UNSCORED`
|- NoVerdictCase   there is no case to judge, with the reason (a skip)
`- Disagreement    the judge gave another verdict than the verified label (a failure)

And those of code that is not ours (a client, a preprocessor, a judge, a library): in a few lines
instead of a traceback.
"""

from __future__ import annotations

import contextlib
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_jrh.core import frozen
from pytest_jrh.core.text import counted

_T = TypeVar("_T")
MOST_PROBLEMS = 10
"""Of one file, or of files that are read together: more would hide the first."""
_PACKAGE = Path(__file__).parents[1]
_MOST_FRAMES = 3
_LONGEST_TEXT = 20_000


class JrhError(Exception):
    """Base of everything that pytest-jrh raises on purpose."""


@frozen
class Problem:
    """One mistake in one of the user's files.

    `message` says what was there and what may be there; `hint` is the nearest match or the
    command to run next, without the words "did you mean".
    """

    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = self.file or ""
        if where and self.line is not None:
            where += f":{self.line}"
        parts = [part for part in (where, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}\n    {self.hint}" if self.hint else text


def first_problems(
    problems: Sequence[Problem], file: str, path: str | None = None
) -> list[Problem]:
    """The first problems of a file, as many as a person reads, and how many more there are.

    `path` is that of a list in a JSON document, where the lines are the numbers of its entries.
    """
    first = []
    for problem in problems[:MOST_PROBLEMS]:
        if path is not None and problem.line is not None:
            # Without a key it is about all entries.
            key = problem.key and f"{path}[{problem.line - 1}].{problem.key}"
            problem = replace(problem, line=None, key=key)  # noqa: PLW2901
        first.append(problem)
    left_out = len(problems) - len(first)
    if left_out:
        first.append(Problem(f"and {counted(left_out, 'more problem')}", file))
    return first


class InputError(JrhError):
    """The user's files cannot be used; `problems` holds every mistake found, not just the first.

    It is made of them, of one of them, or of the message and the place of one.
    """

    def __init__(
        self,
        what: str | Problem | Iterable[Problem],
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        if isinstance(what, str):
            what = Problem(what, file, line, key, hint)
        self.problems = (what,) if isinstance(what, Problem) else tuple(what)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@contextlib.contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Collect the problems of an `InputError` raised in this block, and go on."""
    try:
        yield
    except InputError as error:
        problems += error.problems


class SessionEnd(BaseException):
    """User code asked for the end of the session, as Ctrl-C does; `error` is what it raised.

    It takes the error's place inside the event loop: asyncio ends a loop when one of its tasks
    raises `KeyboardInterrupt`, and no other case would come to its end.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(repr(type(error)))


@contextlib.contextmanager
def holding(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Give a variable of the present context a value until the block ends."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def error_text(error: BaseException) -> str:
    """The error's class and message on one line, in full: cut it once secrets are out of it."""
    words = " ".join(str(error).split())
    name = type(error).__name__
    if not words:
        return name
    return f"{name}: {words[:_LONGEST_TEXT]}"


def error_places(error: BaseException, *, own_only: bool = False) -> tuple[str, ...]:
    """The last three places of the user's own code in the error's traceback, as `file:line in
    function`.

    Installed libraries and the standard library are left out; where nothing else is in the
    traceback, the last place outside this package is given, unless `own_only`.
    """
    foreign: list[traceback.FrameSummary] = []
    cause: BaseException | None = error
    while cause is not None and not foreign:
        # Python makes a RuntimeError of a StopIteration, and places it where it met it: outside of
        # the user's code.
        frames = traceback.walk_tb(cause.__traceback__)
        stack = traceback.StackSummary.extract(frames, lookup_lines=False)
        foreign = [frame for frame in stack if not Path(frame.filename).is_relative_to(_PACKAGE)]
        cause = cause.__cause__
    own_frames = [frame for frame in foreign if not is_ours_or_installed(frame.filename)]
    frames_to_name = own_frames[-_MOST_FRAMES:]
    if not frames_to_name and not own_only:
        frames_to_name = foreign[-1:]
    folder = Path.cwd()
    places = []
    for frame in frames_to_name:
        file = Path(frame.filename)
        if file.is_relative_to(folder):
            file = file.relative_to(folder)
        places.append(f"{file}:{frame.lineno} in {frame.name}")
    return tuple(places)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_ours_or_installed(file: str) -> bool:
    """Whether code is of this package, of Python, of an installed library, or in no file."""
    if file.startswith("<") or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts):
        return True
    library, platform_library = map(sysconfig.get_path, ("stdlib", "platstdlib"))
    folders = (_PACKAGE, Path(library), Path(platform_library))
    return any(map(Path(file).is_relative_to, folders))


def is_ours(error: BaseException) -> bool:
    """Whether the error was raised by a line of this package: then it is a bug of ours, wherever it
    surfaces.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and Path(frames[-1].f_code.co_filename).is_relative_to(_PACKAGE)
