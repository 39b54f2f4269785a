"""Notices what a judge's code opens, starts and sends by itself, past the HTTP libraries that are
recorded (rule Q4).

Python's audit events tell of connections, look-ups of names and programs, whichever library it is
that asks for them. A hook for these events cannot be removed: there is one for a process, from the
first session on that has such a judge, and it does nothing while no such judge runs. What is told
by no event is wrapped: data on connections from before, and work for processes from before. What
libraries in C do by themselves, such as gRPC's, is seen by neither: see `native`.

Code is known as a judge's by its context. Other code is left alone where the session's own thread
has started it; a thread or a context that nobody knows may be a judge's, and is treated as one of
all judges that run.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import PurePath
from typing import Any
from weakref import WeakSet

from pytest_jrh.recording.own_code.exchanges import Halted, Opened

_SHELL_SIGNS = ";&|()'\""
# These ask programs of the system what the machine is, and nobody else.
_ASK_ABOUT_THE_MACHINE = ("platform", "ctypes.util", "distro.distro")


@dataclass(frozen=True, eq=False, slots=True)
class Watch:
    """Whom to tell of what a judge's code opens.

    `process` is the one that the judge runs in: its forks are others. `replays`: nothing may be
    sent.
    """

    tell: Callable[[Opened], None]
    process: int
    replays: bool


@cache
def connected() -> set[tuple[str, int]]:
    """Where Python code of this process has connected to, since the hook is there."""
    return set()


@cache
def trusted() -> ContextVar[bool]:
    """Whether the present context is the session's, or was begun by it."""
    return ContextVar("trusted", default=False)


@cache
def judging() -> set[Watch]:
    """The judges whose code runs at present."""
    return set()


@cache
def watched() -> ContextVar[Watch | None]:
    """Whom to tell of connections in the current context; the first call installs the hook."""
    current: ContextVar[Watch | None] = ContextVar("watched", default=None)
    events = dict(_EVENTS)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        describe = events.get(event)
        if describe is None:
            return
        watch = current.get()
        if watch is not None or judging():
            what = describe(args)
            if what:
                _notice(watch, what, sends=event == "socket.sendmsg")
        if event == "socket.connect" and isinstance(args[0], socket.socket):
            _opened().add(args[0])
            if isinstance(args[1], tuple):
                connected().add((_text(args[1][0]), args[1][1]))
        if event == "os.exec" and watch is not None and watch.process == os.getpid():
            raise RuntimeError("the code of a judge must not put a program in the session's place")

    sys.addaudithook(hook)
    return current


@cache
def _opened() -> WeakSet[socket.socket]:
    """The sockets whose connection has been noticed when it was opened."""
    return WeakSet()


@cache
def _threads_before() -> set[int]:
    """The threads that were there before the first judge ran: debuggers and servers among them."""
    return set(sys._current_frames())


def _notice(watch: Watch | None, what: str, *, sends: bool = False) -> None:
    """Tell whose code does something; raises `Halted`, or `PermissionError` in a thread that nobody
    knows, where it may not.
    """
    if watch is not None:
        watch.tell(Opened(what))
        return
    thread = threading.get_ident()
    if trusted().get() or thread == threading.main_thread().ident:
        return
    if sends and thread in _threads_before():
        return
    running = [each for each in tuple(judging()) if each.process == os.getpid()]
    names = [each.name for each in threading.enumerate() if each.ident == thread]
    opened = Opened(what, names[0] if names else "(no name)")
    for each in running:
        with contextlib.suppress(Halted):
            each.tell(opened)
    if running and all(each.replays for each in running):
        raise PermissionError(f"pytest-jrh replays a judge: the thread {opened.thread} {what}")


@contextlib.contextmanager
def calls_watched() -> Iterator[None]:
    """Tell of what no audit event tells of, and keep this process, until the block ends.

    `os._exit` would end the session with its argument as the exit status, 0 for instance, and no
    report: in a judge's code it is `SystemExit`.
    """
    import multiprocessing.process  # noqa: F401 - so that its start is among what is wrapped

    current, leave = watched(), os._exit
    _threads_before()

    def staying(status: int) -> None:
        watch = current.get()
        if watch is not None and watch.process == os.getpid():
            raise SystemExit(f"os._exit({status})")
        leave(status)

    with contextlib.ExitStack() as undo:
        undo.callback(setattr, os, "_exit", leave)
        os._exit = staying  # type: ignore[assignment]
        for module, owner, names, describe in _CALLS:
            found: Any = getattr(sys.modules.get(module), owner, None)
            for name in names:
                if hasattr(found, name):
                    _wrap(undo, found, name, describe)
        yield


def _wrap(
    undo: contextlib.ExitStack, owner: Any, name: str, describe: Callable[[Any], str]
) -> None:
    real, own, current = getattr(owner, name), vars(owner).get(name), watched()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch = current.get()
        if watch is not None or judging():
            what = describe(self)
            if what:
                _notice(watch, what, sends=describe is not _process)
        return real(self, *args, **kwargs)

    setattr(owner, name, call)
    undo.callback(setattr, owner, name, own) if own else undo.callback(delattr, owner, name)


def _address(args: tuple[Any, ...]) -> str:
    address = args[1]
    if isinstance(address, tuple):
        return f"opened a connection to {address[0]}:{address[1]}"
    # A socket of the file system: a program on this machine, and by it perhaps the world.
    return f"opened a connection to {_text(address)}" if address else ""


def _message(args: tuple[Any, ...]) -> str:
    return _address(args) if args[1] else _sent(args[0])


def _sent(line: socket.socket) -> str:
    """Data on a connection from before; on another one it was noticed when it was opened."""
    if line in _opened():
        return ""
    try:
        peer = line.getpeername()
    except OSError:
        # It leads nowhere.
        return ""
    if not isinstance(peer, tuple):
        # A pair of sockets, such as those that wake up an event loop, has no name.
        return f"sent data over a connection to {_text(peer)}" if peer else ""
    if sys.platform == "win32" and _is_loopback(peer[0]):
        # So are pairs of sockets made there.
        return ""
    return f"sent data over a connection to {peer[0]}:{peer[1]}"


def _lookup(args: tuple[Any, ...]) -> str:
    host, port = args[0], args[1]
    if host and port:
        return f"opened a connection to {_text(host)}:{port}"
    return _name((host,))


def _name(args: tuple[Any, ...]) -> str:
    host = _text(args[0] or "")
    known = host.lower() in ("", "localhost", socket.gethostname().lower())
    return "" if known or is_address(host) else f"looked up the name {host}"


def _reverse(args: tuple[Any, ...]) -> str:
    host = _text(args[0][0] if isinstance(args[0], tuple) else args[0])
    if not is_address(host):
        return _name((host,))
    return "" if _is_loopback(host) else f"looked up the address {host}"


def is_address(host: str) -> bool:
    """Whether a host is an address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return is_address(host) and ip_address(host).is_loopback


def _program(name: object) -> str:
    words = _text(name).split()
    if not words or _asks_about_the_machine():
        return ""
    return f"started the program {PurePath(words[0].strip(_SHELL_SIGNS)).name}"


def _asks_about_the_machine() -> bool:
    """Whether it is a module of the standard library, or distro, that starts the program."""
    frame = sys._getframe()
    started_by = {__name__, "subprocess"}
    while frame.f_back is not None and frame.f_globals.get("__name__") in started_by:
        frame = frame.f_back
    known = (sys.modules.get(name) for name in _ASK_ABOUT_THE_MACHINE)
    return any(module is not None and vars(module) is frame.f_globals for module in known)


def _started(args: tuple[Any, ...]) -> str:
    command = args[1]
    first = command[0] if isinstance(command, list | tuple) and command else command
    return _program(first or args[0])


def _process(_: object) -> str:
    return "started a process"


def _work(_: object) -> str:
    return "gave work to another process"


def _no_threads(pool: Any) -> str:
    return "" if type(pool).__name__ == "ThreadPool" else _work(pool)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_EVENTS: dict[str, Callable[[tuple[Any, ...]], str]] = {
    "socket.connect": _address,
    "socket.sendto": _address,
    "socket.sendmsg": _message,
    "socket.getaddrinfo": _lookup,
    "socket.gethostbyname": _name,
    "socket.gethostbyaddr": _reverse,
    "socket.getnameinfo": _reverse,
    "subprocess.Popen": _started,
    "os.system": lambda args: _program(args[0]),
    "os.startfile": lambda args: _program(args[0]),
    "os.spawn": lambda args: _program(args[1]),
    "os.posix_spawn": lambda args: _program(args[0]),
    "os.exec": lambda args: _program(args[0]),
    "os.fork": _process,
    "os.forkpty": _process,
}
# Module, class, methods, and what a call of one is; modules that are imported later can have opened
# nothing before.
_CALLS: tuple[tuple[str, str, tuple[str, ...], Callable[[Any], str]], ...] = (
    ("multiprocessing.process", "BaseProcess", ("start",), _process),
    ("multiprocessing.pool", "Pool", ("_check_running",), _no_threads),
    ("multiprocessing.queues", "Queue", ("put",), _work),
    ("multiprocessing.connection", "_ConnectionBase", ("send", "send_bytes"), _work),
    ("concurrent.futures.process", "ProcessPoolExecutor", ("submit",), _work),
    ("socket", "socket", ("send", "sendall"), _sent),
    ("ssl", "SSLSocket", ("send", "write"), _sent),
)
