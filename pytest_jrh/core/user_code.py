"""Code that is not ours (a client, a preprocessor, a judge, a library): its source, and its errors
in a few lines instead of a traceback.
"""

from __future__ import annotations

import contextlib
import inspect
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from pytest_jrh.core.files import relative_path

_T = TypeVar("_T")
_PACKAGE = Path(__file__).parents[1]
_MOST_FRAMES = 3
_LONGEST_TEXT = 20_000


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


def source_of(function: Callable[..., object]) -> str:
    """The source of a function, or of its class; its name where there is none to be read."""
    for code in (function, type(function)):
        try:
            return textwrap.dedent(inspect.getsource(code))
        except (OSError, TypeError):
            continue
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


def error_text(error: BaseException) -> str:
    """The error's class and message on one line, in full: cut it after secrets have been taken out
    of it.
    """
    try:
        words = " ".join(str(error).split())
    except Exception as broken:  # noqa: BLE001 - the user's own `__str__` may raise anything
        words = f"(its message cannot be shown: {type(broken).__name__})"
    name = type(error).__name__
    return f"{name}: {words[:_LONGEST_TEXT]}" if words else name


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
    shown = own_frames[-_MOST_FRAMES:]
    if not shown and not own_only:
        shown = foreign[-1:]
    folder = Path.cwd()
    places = []
    for frame in shown:
        file = relative_path(Path(frame.filename), folder)
        places.append(f"{file}:{frame.lineno} in {frame.name}")
    return tuple(places)


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
