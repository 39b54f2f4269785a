"""Routes what `http.client` sends to whom it belongs to: the requests of a judge's own code.

requests, urllib3, urllib.request and boto3 are built on `http.client`. vcrpy replaces these
libraries' classes of connections, and puts the old ones back for the time of every real request,
for all threads at once. Judges run in threads side by side, so here the methods of the one class
below them all are wrapped instead, once.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from pytest_jrh.core.user_code import replaced
from pytest_jrh.llm.transport import LONGEST_ANSWER, check_length
from pytest_jrh.recording.exchanges import Exchanges, HttpRequest

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
    are left alone. `decode` takes off the compression of a response in vcrpy's form, and refuses
    one that is too long.
    """

    def __init__(
        self,
        current: ContextVar[Exchanges | None],
        decode: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._current = current
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
        """The open socket of a connection whose class uses it by itself: it is not recorded."""
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
