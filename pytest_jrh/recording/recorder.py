"""The way of HTTP exchanges to those that they belong to: the calls of models, through one patch of
vcrpy's (used here alone) for the whole session, and the requests of judges' own code.

vcrpy sends every HTTP exchange of the patched libraries to one object that looks like a cassette to
it. A `ContextVar` identifies the call, or the judge's own code, that an exchange belongs to, so
tasks of different cases record side by side without seeing each other. All dependence on vcrpy's
insides is in `_Router`.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.core.user_code import holding
from pytest_jrh.recording.exchanges import (
    Exchanges,
    HttpRequest,
    body_text,
    canonical,
    interaction_of,
    network_closed,
)

_SAYS_WHO = re.compile(r"auth|key|token|secret|cookie|credential", re.IGNORECASE)


@dataclass
class Capture:
    """The HTTP exchanges of one call: those it may play, and those it made.

    `missed` is the last one that it may not make, and `address` where it would have gone;
    `anonymous` says that this would have been with no key.
    """

    playable: tuple[Mapping[str, Any], ...] | None = None
    made: list[Mapping[str, Any]] = field(default_factory=list)
    missed: str | None = None
    address: str = ""
    anonymous: bool = False


class HttpRecorder:
    """vcrpy's patch, installed once for a session.

    `recording` and `replaying` say for which call it works, and `judging` for which judge's own
    code.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._router = _Router(redactor)
        self._patches = contextlib.ExitStack()
        self._routes_code = False

    def install(self) -> None:
        """Patch the HTTP libraries that litellm uses; undone by `remove`."""
        from vcr.patch import CassettePatcherBuilder

        for patcher in CassettePatcherBuilder(self._router).build():
            self._patches.enter_context(patcher)

    def remove(self) -> None:
        """Take the patch off again."""
        self._patches.close()

    @contextlib.contextmanager
    def recording(self) -> Iterator[Capture]:
        """Collect the successful exchanges made in this context."""
        capture = Capture()
        with holding(self._router.current, capture):
            yield capture

    @contextlib.contextmanager
    def replaying(self, interactions: tuple[Mapping[str, Any], ...]) -> Iterator[Capture]:
        """Answer the exchanges made in this context from recorded ones alone."""
        capture = Capture(playable=interactions)
        with holding(self._router.current, capture):
            yield capture

    @contextlib.contextmanager
    def judging(self, exchanges: Exchanges) -> Iterator[None]:
        """Send what is asked in this context, in whichever thread it goes on, through `exchanges`.

        The first call also patches what judges use and litellm does not.
        """
        if not self._routes_code:
            self._routes_code = True
            self._patches.enter_context(HttpClientPatch(self._router.own, _decoded).installed())
        try:
            refuse = None if exchanges.live else exchanges.refused
            with holding(self._router.own, exchanges), network_closed(refuse):
                yield
        finally:
            exchanges.close()


class _Router:
    """What vcrpy takes for a cassette: the members that its httpx and aiohttp stubs use, and no
    more.
    """

    _path = "pytest-jrh"
    custom_patches = ()
    # Other libraries are left alone: nothing here talks through them, and users' own tests may.
    # What a judge's code sends through them goes through `HttpClientPatch`.
    skip_patchers = ("httplib", "requests", "boto3", "urllib3", "httplib2", "tornado")
    write_protected = False

    def __init__(self, redactor: Redactor) -> None:
        self.current: ContextVar[Capture | None] = ContextVar("capture", default=None)
        self.own: ContextVar[Exchanges | None] = ContextVar("own exchanges", default=None)
        self._redactor = redactor

    def filter_request(self, request: Any) -> Any:
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[tuple[Any, ...]]:
        """Where aiohttp's stub follows a recorded redirect to."""
        return [(request, [], [])]

    def can_play_response_for(self, request: Any) -> bool:
        exchanges = self.own.get()
        if exchanges is not None:
            http_request = exchanges.request(
                request.method, request.uri, request.body, request.headers
            )
            interaction = exchanges.answer(http_request)
            request.jrh_found = interaction
            return interaction is not None
        capture = self.current.get()
        if capture is None or capture.playable is None:
            return False
        if self._recorded(request, capture) is None:
            capture.missed = f"{request.method} {urlsplit(request.uri).path}"
            capture.address = request.uri
            says_who = any(map(_SAYS_WHO.search, request.headers))
            capture.anonymous = request.uri.startswith("https://") and not says_who
            # Not vcrpy's own way to refuse: its error would ask much more of a cassette.
            raise LookupError(f"no recorded exchange for {capture.missed}")
        return True

    def play_response(self, request: Any) -> Any:
        from vcr.serializers.compat import convert_to_bytes

        capture = self.current.get()
        interaction = getattr(request, "jrh_found", None)
        if interaction is None and capture is not None:
            interaction = self._recorded(request, capture)
        if interaction is None:
            raise LookupError(f"no recorded exchange for {request!r}")
        response = interaction["response"]
        return convert_to_bytes({**response, "body": dict(response["body"])})

    def append(self, request: Any, response: Any) -> None:
        exchanges = self.own.get()
        if exchanges is not None:
            http_request = exchanges.request(request.method, request.uri, request.body)
            content_type = body_text(request.headers.get("content-type"))
            exchanges.made(http_request, _decoded(response), content_type)
            return
        capture = self.current.get()
        if capture is None or response["status"]["code"] != 200:  # noqa: PLR2004 - an error is asked again
            return
        uri = self._redactor.text(self._redactor.url(request.uri))
        body = self._redactor.text(body_text(request.body))
        asked = HttpRequest(request.method, uri, body)
        capture.made.append(
            interaction_of(asked, _decoded(response), "application/json", self._redactor.text)
        )

    def _recorded(self, request: Any, capture: Capture) -> Mapping[str, Any] | None:
        """The exchange with this method and JSON body; the base URL may have moved since."""
        request_body = canonical(self._redactor.text(body_text(request.body)))
        for interaction in capture.playable or ():
            recorded = interaction["request"]
            if recorded["method"] == request.method and covers(
                canonical(recorded["body"]), request_body
            ):
                return interaction
        return None


def _decoded(response: dict[str, Any]) -> dict[str, Any]:
    """A response without its compression."""
    from vcr.filters import decode_response

    try:
        return decode_response(response)  # type: ignore[no-any-return]  # vcrpy has no types
    except zlib.error:
        # aiohttp has taken it off already.
        headers = response["headers"]
        kept = {name: headers[name] for name in headers if name.lower() != "content-encoding"}
        return {**response, "headers": kept}


_HELD = "_jrh_held"
_SENDING = "_jrh_sending"
_HTTPS = 443
_HOP_HEADERS = ("transfer-encoding", "content-length", "connection", "keep-alive")


class HttpClientPatch:
    """Wraps the methods of `http.client.HTTPConnection` that send, connect and read an answer.

    requests, urllib3, urllib.request and boto3 are built on `http.client`. vcrpy replaces these
    libraries' classes of connections, and puts the old ones back for the time of every real
    request, for all threads at once. Judges run in threads side by side, so here the methods of the
    one class below them all are wrapped instead, once.

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
            connection.sock = _StandIn()

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
    """Stands in for the socket of a connection that is not open yet."""

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
