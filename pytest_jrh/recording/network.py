"""Closes the network to judges' own code on replay: what it tries to reach is refused, and named.

Python's sockets are replaced once for the process, and ask the present context whether it may.
Threads, the work of pools of threads, and functions for the end of the process run in the context
of whoever starts them. A context that nobody knows may be a judge's until the session ends.
"""

from __future__ import annotations

import atexit
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.user_code import holding

if TYPE_CHECKING:
    from pytest_jrh.recording.exchanges import Exchanges


@dataclass
class _Replays:
    """Whether any have begun, and who is told what code tries that belongs to no case: all judges
    that run now may rest on it.
    """

    begun: bool = False
    told: list[Callable[[str], object]] = field(default_factory=list)


@cache
def _replays() -> _Replays:
    return _Replays()


def _allowed(_: str) -> None:
    """The session's own code may reach whom it likes."""


def _refused(tried: str) -> None:
    for tell in tuple(_replays().told):
        tell(tried)
    raise PermissionError(f"pytest-jrh replays a judge, so nothing is sent: it tried to {tried}")


def _unknown(tried: str) -> None:
    if _replays().begun:
        _refused(tried)


_GUARD: ContextVar[Callable[[str], None]] = ContextVar("pytest_jrh_network", default=_unknown)
"""What is asked before the code of a context reaches the network; raises where it may not."""


@contextlib.contextmanager
def closed_to_import() -> Iterator[Mapping[str, None]]:
    """Close the network to the module of a judge that is imported in the block, and to all that it
    starts; gives what was tried.
    """
    open_to_session()
    tried: dict[str, None] = {}
    with _closed(_refused, tried.setdefault):
        yield tried


def closed_to(exchanges: Exchanges) -> contextlib.AbstractContextManager[None]:
    """Close the network to a judge's code in the block, unless it is recorded."""
    if exchanges.live:
        return contextlib.nullcontext()
    return _closed(exchanges.refused, exchanges.stopped)


@contextlib.contextmanager
def _closed(guard: Callable[[str], None], told: Callable[[str], object]) -> Iterator[None]:
    replays = _replays()
    replays.begun = True
    replays.told.append(told)
    try:
        with holding(_GUARD, guard):
            yield
    finally:
        replays.told.remove(told)


def open_to_session() -> None:
    """Leave the network open to the present context, and to all that it starts from now on."""
    _replace()
    _GUARD.set(_allowed)


def session_ended() -> None:
    """Leave contexts alone that nobody knows: no judge is replayed any more."""
    _replays().begun = False


@cache
def _replace() -> None:
    """Let sockets ask, and what is started keep its context, for the rest of the process."""
    module: Any = socket
    sockets: Any = socket.socket
    threads: Any = threading.Thread
    pools: Any = ThreadPoolExecutor
    for name in ("connect", "connect_ex"):
        setattr(sockets, name, _asking(getattr(sockets, name), lambda args: args[1]))
    # The address comes last, and is left out of what goes over an open connection.
    sockets.sendto = _asking(sockets.sendto, lambda args: args[-1])
    if hasattr(sockets, "sendmsg"):
        sockets.sendmsg = _asking(sockets.sendmsg, lambda args: args[4] if args[4:] else None)
    module.getaddrinfo = _asking(module.getaddrinfo, lambda args: args[0] and args[:2])
    pair, start, submit = module.socketpair, threads.start, pools.submit
    register = atexit.register

    def socket_pair(*args: Any, **kwargs: Any) -> Any:
        # On Windows a pair of sockets, such as an event loop has, is a connection to itself.
        with holding(_GUARD, _allowed):
            return pair(*args, **kwargs)

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(pool: ThreadPoolExecutor, /, *args: Any, **kwargs: Any) -> Any:
        return submit(pool, copy_context().run, *args, **kwargs)

    def register_in_context(work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        # Another is registered as it is: its owner may take it back.
        is_open = _GUARD.get() in (_allowed, _unknown)
        register(work if is_open else partial(copy_context().run, work), *args, **kwargs)
        return work

    module.socketpair = socket_pair
    threads.start = start_in_context
    pools.submit = submit_in_context
    atexit.register = register_in_context


def _asking(real: Callable[..., Any], reached: Callable[[tuple[Any, ...]], Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        address = reached((*args, *kwargs.values()))
        if address:
            parts = address[:2] if isinstance(address, tuple) else [address]
            words = [part.decode() if isinstance(part, bytes) else str(part) for part in parts]
            _GUARD.get()(f"reach {':'.join(words)}")
        return real(*args, **kwargs)

    return call
