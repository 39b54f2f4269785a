"""Closes the network to judges' own code on replay: whoever connects, sends or looks up a name gets
an error that says what was tried.

Python's sockets are replaced once for the process, and ask the present context whether it may.
Threads, pools and functions for the end of the process keep the context of whoever starts them, so
what a judge's module starts when it is imported is refused as long as the process lives. A context
that nobody knows may be a judge's; the session's own code, and what it starts, is left alone.
"""

from __future__ import annotations

import atexit
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.user_code import holding, replaced

if TYPE_CHECKING:
    from pytest_jrh.recording.exchanges import Exchanges

_Guard: TypeAlias = Callable[[str], None]


@dataclass
class _Replays:
    """The judges whose code runs now, what modules of judges that are being imported tried, and
    whether a session has begun that replays any.
    """

    running: set[Exchanges] = field(default_factory=set)
    importing: list[dict[str, None]] = field(default_factory=list)
    begun: bool = False


@cache
def _replays() -> _Replays:
    return _Replays()


def _allowed(_: str) -> None:
    """The session's own code may reach whom it likes."""


def _unknown(tried: str) -> None:
    replays = _replays()
    is_main = threading.current_thread() is threading.main_thread()
    if replays.importing or (replays.begun and not is_main):
        _refused(replays.importing[-1] if replays.importing else {}, tried)


def _refused(noted: dict[str, None], tried: str) -> None:
    """Refuse what code does that belongs to no case: each judge that runs now may rest on it."""
    noted[tried] = None
    for exchanges in tuple(_replays().running):
        exchanges.stopped(tried)
    raise PermissionError(f"pytest-jrh replays a judge, so nothing is sent: it tried to {tried}")


_GUARD: ContextVar[_Guard] = ContextVar("pytest_jrh_network", default=_unknown)
"""What is asked before the code of a context reaches the network; raises where it may not."""


@contextlib.contextmanager
def closed_to_import() -> Iterator[dict[str, None]]:
    """Close the network to the module of a judge that is imported in the block, and to all that it
    starts; gives what was tried.
    """
    _replace_sockets()
    replays = _replays()
    noted: dict[str, None] = {}
    guard: _Guard = partial(_refused, noted)
    replays.begun = True
    replays.importing.append(noted)
    try:
        with keeping_context(), holding(_GUARD, guard):
            yield noted
    finally:
        replays.importing.remove(noted)


@contextlib.contextmanager
def closed_to(exchanges: Exchanges) -> Iterator[None]:
    """Close the network to a judge's code while it is replayed; open it to one that is recorded."""
    if exchanges.live:
        with holding(_GUARD, _allowed):
            yield
        return
    _replace_sockets()
    replays = _replays()
    replays.running.add(exchanges)
    try:
        with holding(_GUARD, exchanges.refused):
            yield
    finally:
        replays.running.discard(exchanges)


@contextlib.contextmanager
def session_open() -> Iterator[None]:
    """Leave the network open to the code of the present context, and to what it starts from now
    on; when the block ends, the session with its replays has ended.
    """
    _GUARD.set(_allowed)
    with keeping_context():
        yield
    _replays().begun = False


@contextlib.contextmanager
def keeping_context() -> Iterator[None]:
    """Let threads, the work of pools of threads, and a judge's functions for the end of the
    process run in a copy of the context that starts them, until the block ends.

    For the whole process: a context costs nothing where nobody asks it.
    """
    start, submit, register = threading.Thread.start, ThreadPoolExecutor.submit, atexit.register

    def start_in_context(thread: threading.Thread) -> None:
        context, run = copy_context(), thread.run
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        return submit(pool, copy_context().run, work, *args, **kwargs)

    def register_in_context(work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if _GUARD.get() in (_allowed, _unknown):
            return register(work, *args, **kwargs)
        register(copy_context().run, work, *args, **kwargs)
        return work

    with (
        replaced(threading.Thread, "start", start_in_context),
        replaced(ThreadPoolExecutor, "submit", submit_in_context),
        replaced(atexit, "register", register_in_context),
    ):
        yield


@cache
def _replace_sockets() -> None:
    """Let Python's sockets ask before they reach anybody, for the rest of the process."""
    owner: Any = socket.socket
    for name in ("connect", "connect_ex"):
        setattr(owner, name, _asking_first(getattr(owner, name), lambda args: args[1]))
    # The address comes last, and is left out of what goes over an open connection.
    owner.sendto = _asking_first(owner.sendto, lambda args: args[-1])
    if hasattr(owner, "sendmsg"):
        owner.sendmsg = _asking_first(owner.sendmsg, lambda args: args[4] if args[4:] else None)
    module: Any = socket
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(module, name, _asking_first(getattr(module, name), _looked_up))
    pair = module.socketpair

    def socket_pair(*args: Any, **kwargs: Any) -> Any:
        # On Windows a pair of sockets, such as an event loop has, is a connection to itself.
        with holding(_GUARD, _allowed):
            return pair(*args, **kwargs)

    module.socketpair = socket_pair


def _asking_first(
    real: Callable[..., Any], reached: Callable[[tuple[Any, ...]], object]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        address = reached((*args, *kwargs.values()))
        if address:
            _GUARD.get()(f"reach {_text(address)}")
        return real(*args, **kwargs)

    return call


def _looked_up(args: tuple[Any, ...]) -> object:
    """Whom a look-up asks for; nothing where no network is needed to know it."""
    host = _text(args[0] or "")
    if host.lower() in ("", "localhost", socket.gethostname().lower()):
        return None
    try:
        ip_address(host)
    except ValueError:
        return host
    return None


def _text(address: object) -> str:
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return address.decode("utf-8", "replace") if isinstance(address, bytes) else str(address)
