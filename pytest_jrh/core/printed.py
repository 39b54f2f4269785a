"""What code that is not ours prints, logs and warns of while it works for a case: kept with the
case, in whichever thread that is, and given where the case is reported. No key is in what it
prints.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any
from unittest.mock import patch

from pytest_jrh.core.errors import holding

_PRINTED: ContextVar[Printed | None] = ContextVar("pytest_jrh_printed", default=None)


class Printed:
    """What code printed, logged and warned of, until it is given.

    `redact` takes secrets out of the text of a stream, as a whole: a key may come in pieces. What
    comes `at_once`, or once the rest was given, is written line by line.
    """

    def __init__(self, redact: Callable[[str], str], *, at_once: bool = False) -> None:
        self.redact = redact
        self.is_over = at_once
        self._texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._later: list[Callable[[], object]] = []

    def write(self, real: Callable[[str], int], stream: object, text: str) -> int:
        """Keep what is written to a stream, or write the lines that are whole."""
        is_error = stream in (sys.stderr, sys.__stderr__)
        texts = self._texts["stderr" if is_error else "stdout"]
        texts.append(text)
        if self.is_over and "\n" in text:
            lines, end, rest = "".join(texts).rpartition("\n")
            texts[:] = [rest]
            real(self.redact(lines + end))
        return len(text)

    def do(self, call: Callable[[], object]) -> None:
        """Call it when the rest is given."""
        if self.is_over:
            call()
        else:
            self._later.append(call)

    def give(self) -> None:
        """Print, log and warn of all that was kept, in the present thread."""
        self.is_over = True
        for name, texts in self._texts.items():
            if any(texts):
                getattr(sys, name).write(self.redact("".join(texts)))
            texts.clear()
        for call in self._later:
            call()

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep what is printed in the block, and in the tasks and threads that it starts."""
        with holding(_PRINTED, self):
            yield


@contextlib.contextmanager
def printing_kept(streams: Iterable[Any]) -> Iterator[None]:
    """Let streams, or all of a class, loggers and warnings ask the present context whether what
    they get is to be kept.
    """
    with contextlib.ExitStack() as undo:
        for stream in streams:
            undo.enter_context(patch.object(stream, "write", _writing(stream)))
        undo.enter_context(patch.object(logging.Logger, "handle", _deferred(logging.Logger.handle)))
        module: Any = warnings
        undo.enter_context(patch.object(module, "_showwarnmsg", _deferred(module._showwarnmsg)))
        yield


def _writing(streams: Any) -> Callable[..., int]:
    """The method of a stream, or of a class of them."""
    real = streams.write

    def write(*args: Any) -> int:
        printed = _PRINTED.get()
        if printed is None:
            return real(*args)  # type: ignore[no-any-return]
        *stream, text = args
        return printed.write(partial(real, *stream), stream[0] if stream else streams, text)

    return write


def _deferred(real: Callable[..., object]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        printed = _PRINTED.get()
        if printed is None:
            real(*args)
        else:
            printed.do(partial(real, *args))

    return call
