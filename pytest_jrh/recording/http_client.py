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
from unittest.mock import patch

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
    are left alone. `decode` takes off the compression of a response in vcrpy's form.
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

        def send(connection: Any, data: Any) -> None:
            """Hold what is sent until all of it is known: the request may be recorded."""
            if self._is_open(connection):
                self._send(connection, data)
                return
            connection.__dict__.setdefault(_HELD, bytearray()).extend(bytes(memoryview(data)))
            self._stand_in(connection)

        def getresponse(connection: Any) -> http.client.HTTPResponse:
            data = connection.__dict__.pop(_HELD, None)
            exchanges = self._current.get()
            if data is None or exchanges is None:
                return self._getresponse(connection)
            try:
                return self._routed(connection, exchanges, bytes(data))
            except BaseException:
                connection.close()
                raise

        base = http.client.HTTPConnection
        with contextlib.ExitStack() as undo:
            undo.enter_context(patch.object(base, "send", send))
            undo.enter_context(patch.object(base, "getresponse", getresponse))
            for owner in _connecting():
                connect = self._late_connect(vars(owner)["connect"])
                undo.enter_context(patch.object(owner, "connect", connect))
            yield

    def _is_open(self, connection: Any) -> bool:
        """Whether a connection is nobody's of ours, or its request is sent now."""
        return self._current.get() is None or _SENDING in connection.__dict__

    def _late_connect(self, real: Callable[..., None]) -> Callable[..., None]:
        def connect(connection: Any, *args: Any, **kwargs: Any) -> None:
            """Connect once the request is to be sent: urllib3 does so for HTTPS before that."""
            if self._is_open(connection):
                real(connection, *args, **kwargs)
                return
            self._stand_in(connection)
            if hasattr(connection, "is_verified"):
                connection.is_verified = True

        return connect

    def _routed(
        self, connection: Any, exchanges: Exchanges, sent: bytes
    ) -> http.client.HTTPResponse:
        request, content_type = _parsed(connection, sent, exchanges)
        recorded = exchanges.answer(request)
        if recorded is not None:
            replayed = recorded["response"]
            response = _response(connection, **replayed)
            # The connection is as it was before the request; its socket was a stand-in.
            connection.close()
            return response
        real = self._sent(connection, sent)
        body = real.read()
        status = {"code": real.status, "message": real.reason}
        headers: dict[str, list[str]] = {}
        for name, value in real.getheaders():
            headers.setdefault(name, []).append(value)
        decoded = self._decode({"status": status, "headers": headers, "body": {"string": body}})
        exchanges.made(request, decoded, content_type)
        return _response(connection, **decoded)

    def _stand_in(self, connection: Any) -> None:
        if connection.sock is None:
            connection.sock = _StandIn(lambda: self._opened(connection))

    def _opened(self, connection: Any) -> Any:
        """The open socket of a connection whose class uses it by itself: it is not recorded."""
        data = connection.__dict__.pop(_HELD, b"")
        connection.sock = None
        with _sending(connection):
            connection.connect()
            if data:
                self._send(connection, bytes(data))
        return connection.sock

    def _sent(self, connection: Any, data: bytes) -> http.client.HTTPResponse:
        if isinstance(connection.sock, _StandIn):
            connection.sock = None
        with _sending(connection):
            self._send(connection, data)
            return self._getresponse(connection)


@contextlib.contextmanager
def _sending(connection: Any) -> Iterator[None]:
    connection.__dict__[_SENDING] = True
    try:
        yield
    finally:
        del connection.__dict__[_SENDING]


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
    built on `http.client`, as urllib3-future is not.
    """
    classes: list[type] = [http.client.HTTPConnection, http.client.HTTPSConnection]
    urllib3 = sys.modules.get("urllib3.connection")
    for name in ("HTTPConnection", "HTTPSConnection"):
        connection_class = getattr(urllib3, name, object)
        if issubclass(connection_class, http.client.HTTPConnection):
            classes.append(connection_class)
    return [each for each in classes if "connect" in vars(each)]


def _parsed(connection: Any, data: bytes, exchanges: Exchanges) -> tuple[HttpRequest, str]:
    """The request that a connection holds, and the content type of its body."""
    first, _, rest = data.partition(b"\r\n")
    method, target = first.decode("iso-8859-1").rpartition(" ")[0].split(" ", 1)
    lines = io.BytesIO(rest)
    headers = http.client.parse_headers(lines)
    body = lines.read()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunked(body)
    uri = target if "://" in target else f"{_origin(connection)}{target}"
    return exchanges.request(method, uri, body, dict(headers)), headers.get("content-type", "")


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
        f"{name}: {value}"
        for name, values in headers.items()
        if name.lower() not in _HOP_HEADERS
        for value in values
    ]
    lines += [f"Content-Length: {len(content)}", "", ""]
    raw = "\r\n".join(lines).encode("latin-1", "replace") + content
    response = connection.response_class(_Recorded(raw), method=connection._method)
    response.begin()
    return response  # type: ignore[no-any-return]  # of the connection's own class
