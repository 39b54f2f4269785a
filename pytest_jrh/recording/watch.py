"""Notices what a judge's code opens, starts and sends by itself, past the HTTP libraries that are
recorded, and routes what `http.client` sends to whom it belongs to.

Python's audit events tell of connections, look-ups of names and programs, whichever library it is
that asks for them. A hook for these events cannot be removed: there is one for a process, from the
first session on that has such a judge, and it does nothing while no such judge runs. What is told
by no event is wrapped: data on connections from before, and work for processes from before. What
libraries in C do by themselves, such as gRPC's, is seen by neither.

Code is known as a judge's by its context, which the threads that it starts keep. Other code is left
alone where the session's own thread has started it; a thread or a context that nobody knows may be
a judge's, and is treated as one of all judges that run.

requests, urllib3, urllib.request and boto3 are built on `http.client`. vcrpy replaces these
libraries' classes of connections, and puts the old ones back for the time of every real request,
for all threads at once. Judges run in threads side by side, so here the methods of the one class
below them all are wrapped instead, once.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import PurePath
from typing import Any
from weakref import WeakSet

from pytest_jrh.core.user_code import replaced
from pytest_jrh.judges.own_code import PLACEHOLDERS
from pytest_jrh.llm.transport import LONGEST_ANSWER, check_length
from pytest_jrh.recording.exchanges import Exchanges, Halted, HttpRequest, Opened

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
        if watch is not None or judging() or PLACEHOLDERS.get():
            event_text = describe(args)
            if event_text:
                _notice(watch, event_text, sends=event == "socket.sendmsg")
        if event == "socket.connect" and isinstance(args[0], socket.socket):
            _opened().add(args[0])
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


def _notice(watch: Watch | None, done: str, *, sends: bool = False) -> None:
    """Tell whose code does something; raises `Halted`, or `PermissionError` in a thread that nobody
    knows and in code that has a placeholder for a key, where it may not.
    """
    _tell(watch, done, sends=sends)
    names = PLACEHOLDERS.get()
    if names:
        listed = ", ".join(names)
        raise PermissionError(
            f"pytest-jrh replays a judge with a placeholder for {listed}, so it must not reach "
            f"anybody: it {done}"
        )


def _tell(watch: Watch | None, done: str, *, sends: bool) -> None:
    if watch is not None:
        watch.tell(Opened(done))
        return
    thread = threading.get_ident()
    if trusted().get() or thread == threading.main_thread().ident:
        return
    if sends and thread in _threads_before():
        return
    names = [
        thread_object.name
        for thread_object in threading.enumerate()
        if thread_object.ident == thread
    ]
    opened = Opened(done, names[0] if names else "(no name)")
    watches = [judge for judge in tuple(judging()) if judge.process == os.getpid()]
    for judge in watches:
        with contextlib.suppress(Halted):
            judge.tell(opened)
    if watches and all(judge.replays for judge in watches):
        raise PermissionError(f"pytest-jrh replays a judge: the thread {opened.thread} {done}")


@contextlib.contextmanager
def calls_watched() -> Iterator[None]:
    """Tell of what no audit event tells of, until the block ends."""
    import multiprocessing.process  # noqa: F401 - so that its start is among what is wrapped

    watched()
    _threads_before()
    with contextlib.ExitStack() as undo:
        for module, owner, names, describe in _CALLS:
            wrapped_class: Any = getattr(sys.modules.get(module), owner, None)
            for name in names:
                if hasattr(wrapped_class, name):
                    method = _telling(getattr(wrapped_class, name), describe)
                    undo.enter_context(replaced(wrapped_class, name, method))
        yield


def _telling(real: Callable[..., Any], describe: Callable[[Any], str]) -> Callable[..., Any]:
    """The method, which tells of its calls before they are made."""
    current = watched()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch = current.get()
        if watch is not None or judging() or PLACEHOLDERS.get():
            event_text = describe(self)
            if event_text:
                _notice(watch, event_text, sends=describe is not _process)
        return real(self, *args, **kwargs)

    return call


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
    is_local = host.lower() in ("", "localhost", socket.gethostname().lower())
    return "" if is_local or is_address(host) else f"looked up the name {host}"


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
    asking_modules = (sys.modules.get(name) for name in _ASK_ABOUT_THE_MACHINE)
    return any(module is not None and vars(module) is frame.f_globals for module in asking_modules)


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
    # The hook does not see what is run in another interpreter.
    "cpython.PyInterpreterState_New": lambda _: "started an interpreter",
}
# Module, class, methods, and what a call of one is; modules that are imported later can have opened
# nothing before.
_CALLS: tuple[tuple[str, str, tuple[str, ...], Callable[[Any], str]], ...] = (
    ("multiprocessing.process", "BaseProcess", ("start",), _process),
    ("multiprocessing.pool", "Pool", ("_check_running",), _no_threads),
    ("multiprocessing.queues", "Queue", ("put",), _work),
    ("multiprocessing.connection", "_ConnectionBase", ("send", "send_bytes"), _work),
    ("concurrent.futures.process", "ProcessPoolExecutor", ("submit",), _work),
    ("socket", "socket", ("send", "sendall", "sendfile"), _sent),
    ("ssl", "SSLSocket", ("send", "write"), _sent),
)


_HELD = "_jrh_held"
_SENDING = "_jrh_sending"
_HTTPS = 443
_SOCKET_USES = frozenset(
    {"makefile", "send", "sendall", "sendfile", "sendmsg", "write", "fileno"}
    | {"recv", "recv_into", "recvfrom", "recvmsg", "read"}
)
_HOP_HEADERS = ("transfer-encoding", "content-length", "connection", "keep-alive")


class HttpClientPatch:
    """Wraps the methods of `http.client.HTTPConnection` that send, connect and read an answer.

    `current` says whose exchanges the present context makes, None for those of anybody else, which
    are left alone. `sending` is called around what goes out to the network. `decode` takes off the
    compression of a response in vcrpy's form, and refuses one that is too long.
    """

    def __init__(
        self,
        current: ContextVar[Exchanges | None],
        sending: Callable[[], contextlib.AbstractContextManager[None]],
        decode: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._current = current
        self._sending = sending
        self._decode = decode
        self._send = http.client.HTTPConnection.send
        self._getresponse = http.client.HTTPConnection.getresponse

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Wrap the methods until the block ends."""
        base = http.client.HTTPConnection
        with contextlib.ExitStack() as undo:
            undo.enter_context(replaced(base, "send", self._holding_send()))
            undo.enter_context(replaced(base, "getresponse", self._routed_getresponse()))
            for owner in _connecting():
                connect = self._late_connect(vars(owner)["connect"])
                undo.enter_context(replaced(owner, "connect", connect))
            yield

    def _holding_send(self) -> Callable[..., None]:
        real, current = self._send, self._current

        def send(connection: Any, data: Any) -> None:
            """Hold what is sent until all of it is known: the request may be recorded."""
            if current.get() is None or connection.__dict__.get(_SENDING):
                real(connection, data)
                return
            connection.__dict__.setdefault(_HELD, bytearray()).extend(_bytes(data))
            self._stand_in(connection)

        return send

    def _late_connect(self, real: Callable[..., None]) -> Callable[..., None]:
        current = self._current

        def connect(connection: Any, *args: Any, **kwargs: Any) -> None:
            """Connect once the request is to be sent: urllib3 does so for HTTPS before that."""
            if current.get() is None or connection.__dict__.get(_SENDING):
                real(connection, *args, **kwargs)
                return
            self._stand_in(connection)
            if hasattr(connection, "is_verified"):
                connection.is_verified = True

        return connect

    def _routed_getresponse(self) -> Callable[..., http.client.HTTPResponse]:
        def getresponse(connection: Any) -> http.client.HTTPResponse:
            data = connection.__dict__.pop(_HELD, None)
            exchanges = self._current.get()
            if data is None:
                return self._getresponse(connection)
            if exchanges is None:
                return self._sent(connection, bytes(data))
            try:
                return self._routed(connection, exchanges, bytes(data))
            except BaseException:
                connection.close()
                raise

        return getresponse

    def _routed(
        self, connection: Any, exchanges: Exchanges, sent: bytes
    ) -> http.client.HTTPResponse:
        request, content_type = _parsed(connection, sent, exchanges)
        recorded = exchanges.answer(request)
        if recorded is not None:
            replayed = recorded["response"]
            response = _response(
                connection, replayed["status"], replayed["headers"], replayed["body"]
            )
            # The connection is as it was before the request; its socket was a stand-in.
            connection.close()
            return response
        with self._sending():
            real = self._sent(connection, sent)
            body = real.read(LONGEST_ANSWER + 1)
            check_length(len(body))
            # Raises where the connection broke off before the answer's end.
            body += real.read()
        status = {"code": real.status, "message": real.reason}
        headers: dict[str, list[str]] = {}
        for name, value in real.getheaders():
            headers.setdefault(name, []).append(value)
        decoded = self._decode({"status": status, "headers": headers, "body": {"string": body}})
        exchanges.made(request, decoded, content_type)
        return _response(connection, status, decoded["headers"], decoded["body"])

    def _stand_in(self, connection: Any) -> None:
        if connection.sock is None:
            connection.sock = _StandIn(lambda: self._opened(connection))

    def _opened(self, connection: Any) -> Any:
        """The open socket of a connection whose class uses it by itself: it is not recorded, and
        noticed as what it opens.
        """
        data = connection.__dict__.pop(_HELD, b"")
        connection.sock = None
        connection.__dict__[_SENDING] = True
        try:
            connection.connect()
            if data:
                self._send(connection, bytes(data))
        finally:
            connection.__dict__.pop(_SENDING, None)
        return connection.sock

    def _sent(self, connection: Any, data: bytes) -> http.client.HTTPResponse:
        if isinstance(connection.sock, _StandIn):
            connection.sock = None
        connection.__dict__[_SENDING] = True
        try:
            self._send(connection, data)
            return self._getresponse(connection)
        finally:
            connection.__dict__.pop(_SENDING, None)


class _StandIn:
    """Stands in for the socket of a connection that is not open yet.

    Whoever reads from it or writes to it by itself gets what `opened` gives.
    """

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        if name not in _SOCKET_USES:
            raise AttributeError(name)
        return getattr(self._opened(), name)

    def settimeout(self, _: object) -> None: ...

    def setsockopt(self, *_: object) -> None: ...

    def shutdown(self, *_: object) -> None: ...

    def close(self) -> None: ...


class _Recorded:
    """A socket that an `HTTPResponse` reads a whole answer from."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, *_: object, **__: object) -> io.BytesIO:
        return io.BytesIO(self._answer)


def _connecting() -> list[type]:
    """The classes that connect in a way of their own: urllib3's, where it has been imported and is
    built on `http.client`.
    """
    modules = [http.client]
    if "urllib3.connection" in sys.modules and not foreign_urllib3():
        modules.append(sys.modules["urllib3.connection"])
    classes: list[type] = []
    for module in modules:
        for name in ("HTTPConnection", "HTTPSConnection"):
            connection_class = getattr(module, name, None)
            if isinstance(connection_class, type) and "connect" in connection_class.__dict__:
                classes.append(connection_class)
    return classes


def foreign_urllib3() -> str:
    """A sentence where urllib3 is not the one that is recorded; nothing where it is."""
    connection = getattr(sys.modules.get("urllib3.connection"), "HTTPConnection", None)
    if connection is None or issubclass(connection, http.client.HTTPConnection):
        return ""
    return (
        "The urllib3 that is installed is urllib3-future, which niquests puts in its place; what "
        "goes through it, by requests too, is not recorded. "
    )


def _bytes(data: Any) -> bytes:
    if hasattr(data, "read"):
        data = data.read()
        return data.encode("iso-8859-1") if isinstance(data, str) else bytes(data)
    try:
        return bytes(memoryview(data))
    except TypeError:
        if isinstance(data, Iterable):
            return b"".join(_bytes(part) for part in data)
        raise


def _parsed(connection: Any, data: bytes, exchanges: Exchanges) -> tuple[HttpRequest, str]:
    """The request that a connection holds, and the content type of its body."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("iso-8859-1").split("\r\n")
    method, _, target_and_version = first.partition(" ")
    target = target_and_version.rpartition(" ")[0]
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunked(body)
    uri = target if "://" in target else f"{_origin(connection)}{target}"
    return exchanges.request(method, uri, body, headers), headers.get("content-type", "")


def _origin(connection: Any) -> str:
    tunnel = getattr(connection, "_tunnel_host", None)
    host = tunnel or connection.host
    port = getattr(connection, "_tunnel_port", None) if tunnel else connection.port
    scheme = "https" if connection.default_port == _HTTPS else "http"
    if ":" in host:
        host = f"[{host.strip('[]')}]"
    if port not in (None, connection.default_port):
        host = f"{host}:{port}"
    return f"{scheme}://{host}"


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    while body:
        size, _, after = body.partition(b"\r\n")
        length = int(size.partition(b";")[0] or b"0", 16)
        if not length:
            break
        parts.append(after[:length])
        body = after[length + 2 :]
    return b"".join(parts)


def _response(
    connection: Any,
    status: Mapping[str, Any],
    headers: Mapping[str, Iterable[Any]],
    body: Mapping[str, Any],
) -> http.client.HTTPResponse:
    """An answer as `http.client` reads it, from what is known of it."""
    content = body["string"]
    content = content.encode() if isinstance(content, str) else bytes(content)
    lines = [f"HTTP/1.1 {status['code']} {status.get('message') or ''}"]
    lines += [
        f"{name}: {value.decode('latin-1') if isinstance(value, bytes) else value}"
        for name, values in headers.items()
        if name.lower() not in _HOP_HEADERS
        for value in values
    ]
    lines += [f"Content-Length: {len(content)}", "", ""]
    raw = "\r\n".join(lines).encode("latin-1", "replace") + content
    response = connection.response_class(_Recorded(raw), method=connection._method)
    response.begin()
    return response  # type: ignore[no-any-return]  # of the connection's own class


@contextlib.contextmanager
def threads_keep_context() -> Iterator[None]:
    """Start threads, and the work of pools of threads, in a copy of the starter's context.

    Until the block ends, and for the whole process: a context costs nothing where nobody asks it.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_in_context(thread: threading.Thread) -> None:
        context, run = copy_context(), thread.run
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(
        pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        return submit(pool, copy_context().run, work, *args, **kwargs)

    with (
        replaced(threading.Thread, "start", start_in_context),
        replaced(ThreadPoolExecutor, "submit", submit_in_context),
    ):
        yield
