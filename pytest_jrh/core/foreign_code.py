"""Code that is not ours while it works for a case, in whichever thread it goes on: what it prints,
logs and warns of is kept with the case, and given without keys where the case is reported; and the
network can be closed to it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, NoReturn
from unittest.mock import patch

from pytest_jrh.core import holding

_PRINTED: ContextVar[Printed | None] = ContextVar("pytest_jrh_printed", default=None)


class Printed:
    """What code printed, logged and warned of, until it is given.

    `redact` takes secrets out of the text of a stream, as a whole: a key may come in pieces. What
    comes `at_once`, or once the rest was given, is written line by line.
    """

    def __init__(self, redact: Callable[[str], str], *, at_once: bool) -> None:
        self.redact = redact
        self.is_over = at_once
        self._texts: dict[str, list[str]] = {"stdout": [], "stderr": []}
        # What is called when the rest is given.
        self.later: list[Callable[[], object]] = []

    def write(self, real: Callable[[str], int], stream: object, text: str) -> int:
        """Keep what is written to a stream, or write the lines that are whole."""
        is_error = stream in (sys.stderr, sys.__stderr__)
        texts = self._texts["stderr" if is_error else "stdout"]
        texts.append(text)
        if self.is_over and "\n" in text:
            lines, end, last_line = "".join(texts).rpartition("\n")
            texts[:] = [last_line]
            real(self.redact(lines + end))
        return len(text)

    def give(self) -> None:
        """Print, log and warn of all that was kept, in the present thread."""
        self.is_over = True
        for name, texts in self._texts.items():
            if any(texts):
                getattr(sys, name).write(self.redact("".join(texts)))
            texts.clear()
        for call in self.later:
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
        if printed is None or printed.is_over:
            real(*args)
        else:
            printed.later.append(partial(real, *args))

    return call


_REFUSE: ContextVar[Callable[[str], object] | None] = ContextVar("pytest_jrh_network", default=None)
"""Called with what the code of a context tries, before it reaches the network; it raises."""


@contextlib.contextmanager
def network_closed(refuse: Callable[[str], object] | None) -> Iterator[None]:
    """Close the network to the code in the block, and to the threads that it starts: `refuse` is
    told what it tries, and raises. With None they keep the context of the block, and may connect.
    """
    _ask_before_connecting()
    with holding(_REFUSE, refuse):
        yield


@contextlib.contextmanager
def loading_for_replay() -> Iterator[Mapping[str, None]]:
    """Let the module of a judge's code be imported without a network; gives what it tried to do
    with one.
    """
    tries: dict[str, None] = {}

    def refuse(tried: str) -> NoReturn:
        tries[tried] = None
        raise PermissionError(
            f"pytest-jrh replays a judge, so nothing is sent: the judge tried to {tried}"
        )

    with network_closed(refuse):
        yield tries


@cache
def _ask_before_connecting() -> None:
    """Let sockets ask the present context, and threads keep that of whoever starts them, for the
    rest of the process.
    """
    # Without types: they let nobody assign to these.
    module: Any = socket
    sockets: Any = socket.socket
    threads: Any = threading.Thread
    pools: Any = ThreadPoolExecutor
    sockets.connect = _asking(sockets.connect, 1)
    sockets.connect_ex = _asking(sockets.connect_ex, 1)
    sockets.sendto = _asking(sockets.sendto, -1)
    module.getaddrinfo = _asking(module.getaddrinfo, 0)
    pair, start, submit = module.socketpair, threads.start, pools.submit

    def socket_pair(*args: Any, **kwargs: Any) -> Any:
        # On Windows a pair of sockets, such as an event loop has, is a connection to itself.
        with holding(_REFUSE, None):
            return pair(*args, **kwargs)

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(pool: ThreadPoolExecutor, /, *args: Any, **kwargs: Any) -> Any:
        return submit(pool, copy_context().run, *args, **kwargs)

    module.socketpair = socket_pair
    threads.start = start_in_context
    pools.submit = submit_in_context


def _asking(real: Callable[..., Any], address_at: int) -> Callable[..., Any]:
    """A function of sockets that may be refused; `address_at` is where its arguments say whom it
    reaches.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        refuse = _REFUSE.get()
        values = (*args, *kwargs.values())
        # Without a host, a name is looked up for this machine itself.
        if refuse is not None and values[address_at]:
            address = values[address_at]
            if not isinstance(address, tuple):
                address = values[address_at:]
            host_and_port = []
            for part in address[:2]:
                is_bytes = isinstance(part, bytes)
                host_and_port.append(part.decode("utf-8", "replace") if is_bytes else str(part))
            refuse(f"reach {':'.join(host_and_port)}")
        return real(*args, **kwargs)

    return call
