"""The HTTP exchanges of a session: the way to those that they belong to, through one patch of
vcrpy's (used here alone) for the whole session. They are the calls of models, and the requests of
judges' own code: what answers these, and what they make; on replay they reach nobody else.

vcrpy sends every HTTP exchange of the patched libraries to one object that looks like a cassette to
it. A `ContextVar` identifies the call, or the judge's own code, that an exchange belongs to, so
tasks of different cases record side by side without seeing each other. All dependence on vcrpy's
insides is in this file.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.parse import urlsplit

from pytest_jrh.core import frozen
from pytest_jrh.core.errors import Unscored, holding
from pytest_jrh.core.redact import REDACTED, Redactor, covers
from pytest_jrh.judges.keys import asks_for_credentials

# An answer that says "there is none" is an answer; all others above 399 are errors.
_ABSENT = (404, 410)
_FIRST_ERROR = 400
_KEPT_HEADERS = ("content-type", "content-encoding", "location", "link")


class Halted(BaseException):
    """A judge's code may not go on; why is said by its `Exchanges`.

    No `Exception`, so that the judge's own retries and fallbacks do not take it for an error of
    the network.
    """


class HttpRequest(NamedTuple):
    """What a request is recognized by: its URL is without keys, its body without secrets."""

    method: str
    uri: str
    body: str

    @classmethod
    def of(cls, interaction: Mapping[str, Any]) -> HttpRequest:
        """The request of a recorded exchange."""
        recorded = interaction["request"]
        return cls(recorded["method"], recorded["uri"], recorded["body"] or "")

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        return f"{self.method} {parts.scheme}://{parts.netloc}{parts.path}"


@frozen
class Halt:
    """Why a judge's code was halted.

    "missing": it sent a `request` that is not recorded; "room": its answer could not be stored;
    "network": it tried to reach somebody by itself on replay; "unasked": nothing is to be asked any
    more, as its `trouble` says.
    """

    why: Literal["missing", "room", "network", "unasked"]
    what: str
    request: HttpRequest | None = None
    trouble: Unscored | None = None


class Exchanges:
    """The exchanges of one judging, used from every thread that the judge's code runs in.

    Each of the `recorded` ones answers one request, in order among equals. What is not there may
    be sent only while `live`; `room` keeps room for the answer to a request of so many bytes, or
    raises `OSError`, `admit` counts it, or says why it may not be sent, and `changed` is called for
    each exchange that is to be kept. `asked` are the requests that were answered or sent.
    """

    def __init__(
        self,
        recorded: Sequence[Mapping[str, Any]],
        *,
        live: bool,
        redactor: Redactor,
        admit: Callable[[], Halt | None] = lambda: None,
        changed: Callable[[], object] = lambda: None,
        room: Callable[[int], contextlib.AbstractContextManager[None]] = (
            lambda _: contextlib.nullcontext()
        ),
    ) -> None:
        self.live = live
        self.redactor = redactor
        self.halt: Halt | None = None
        self.sent = 0
        self.replayed = 0
        self.asked: list[HttpRequest] = []
        self._admit = admit
        self._changed = changed
        self._room = room
        self._rooms: list[contextlib.ExitStack] = []
        self._bytes_made = 0
        self._unused = list(recorded)
        self._used: list[tuple[Mapping[str, Any], bool]] = []
        self.closed = False
        self._lock = threading.Lock()

    def request(
        self, method: str, uri: str, body: object, headers: Mapping[str, object] | None = None
    ) -> HttpRequest:
        """A request as it is recognized and stored; what it says of who asks is in neither."""
        redact = self.redactor
        redact.learn(os.environ)
        redact.learn_headers({name: _texts(value) for name, value in (headers or {}).items()})
        text = redact.of_code(body_text(body))
        return HttpRequest(method, redact.of_code(redact.url(uri)), text)

    def answer(self, request: HttpRequest) -> Mapping[str, Any] | None:
        """The recorded exchange that answers a request; None where the request may be sent.

        Raises `Halted` where it is neither.
        """
        with self._lock:
            if self.closed or self.halt is not None:
                raise Halted
            interaction = self._recorded(request)
            if interaction is not None:
                self._unused.remove(interaction)
                self._used.append((interaction, True))
                self.replayed += 1
                self.asked.append(request)
                return interaction
        if self.live and asks_for_credentials(request.uri):
            # Neither counted nor kept: what comes back is a key.
            return None
        halt: Halt | None = Halt("missing", str(request), request)
        if self.live:
            halt = self._keep_room(request) or self._admit()
        with self._lock:
            if halt is not None:
                self.halt = halt
                raise Halted
            self.sent += 1
            self.asked.append(request)
        return None

    def _recorded(self, request: HttpRequest) -> Mapping[str, Any] | None:
        """The first recorded exchange of a request; one with its host comes before all others."""
        other_host: Mapping[str, Any] | None = None
        for interaction in self._unused:
            if is_request(interaction, request, self.redactor):
                if interaction["request"]["uri"] == request.uri:
                    return interaction
                other_host = other_host or interaction
        return other_host

    def _keep_room(self, request: HttpRequest) -> Halt | None:
        """Keep room for an answer: one that is paid for and not kept would be paid for again."""
        room = contextlib.ExitStack()
        request_size = self._bytes_made + len(request.body.encode("utf-8", "replace"))
        try:
            room.enter_context(self._room(request_size))
        except OSError as error:
            return Halt("room", error.strerror or str(error))
        with self._lock:
            self._rooms.append(room)
        return None

    def made(self, request: HttpRequest, response: Mapping[str, Any], content_type: str) -> None:
        """Keep an exchange that was made; `response` is in vcrpy's form."""
        code = response["status"]["code"]
        interaction = interaction_of(request, response, content_type, self.redactor.of_code)
        with self._lock:
            if self.closed or asks_for_credentials(request.uri):
                return
            self._used.append((interaction, code < _FIRST_ERROR or code in _ABSENT))
            self._bytes_made += len(str(interaction["request"]["body"]).encode("utf-8", "replace"))
            self._bytes_made += len(response["body"].get("string") or b"")
            if self._rooms:
                self._rooms.pop().close()
        self._changed()

    def refused(self, tried: str) -> NoReturn:
        """Stop the judge, which tries to go past the recording; raises `Halted`."""
        with self._lock:
            self.halt = self.halt or Halt("network", f"it tried to {tried}")
        raise Halted

    def close(self) -> None:
        """The judge has come to its end: what a thread of it does from now on is refused."""
        with self._lock:
            self.closed = True
            while self._rooms:
                self._rooms.pop().close()

    def kept(self, *, judged: bool) -> tuple[Mapping[str, Any], ...]:
        """What belongs into the cassette, in the order in which it was used.

        Answers with an error status are kept only where the judge has `judged` all the same, and
        has not got a better one to the same request: a retry is not worth replaying. Recorded ones
        that were not used stay: a judge that is changed back asks them again.
        """
        with self._lock:
            used, unused = list(self._used), list(self._unused)
        answered = [interaction["request"] for interaction, is_good in used if is_good]
        kept: list[Mapping[str, Any]] = []
        for interaction, is_good in used:
            if is_good or (judged and interaction["request"] not in answered):
                kept.append(interaction)
        return (*kept, *unused)


def is_request(
    interaction: Mapping[str, Any], request: HttpRequest, redact: Redactor | None = None
) -> bool:
    """Whether a recorded exchange is that of a request: equal method, path with its query, and
    canonical body, whatever of it was taken for a secret when it was recorded, or is now.

    Not the host: a client may take it from the environment, and nothing is sent on replay.
    """
    method, uri, body = HttpRequest.of(interaction)
    if method != request.method:
        return False
    if redact is not None and REDACTED in request.uri + request.body:
        uri, body = redact.of_code(redact.url(uri)), redact.of_code(body)
    if not covers(path_of(uri), path_of(request.uri)):
        return False
    recorded_body, asked_body = canonical(body), canonical(request.body)
    return recorded_body == asked_body or (
        not is_all_secret(body) and covers(recorded_body, asked_body)
    )


def path_of(uri: str) -> str:
    """The path of a URL with its query."""
    parts = urlsplit(uri)
    return f"{parts.path}?{parts.query}"


def is_all_secret(body: str) -> bool:
    """Whether a recorded body says nothing of what was asked: its secrets were all that it held."""
    return REDACTED in body and not any(map(str.isalnum, body.replace(REDACTED, "")))


def canonical(body: str) -> str:
    """A JSON body with its keys in order; any other body as it is."""
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except (ValueError, RecursionError):
        return body


def body_text(body: object) -> str:
    """The body of a request or an answer as text, whatever an HTTP library takes for one."""
    if body is None:
        return ""
    if isinstance(body, bytes | bytearray):
        return body.decode("utf-8", "replace")
    if isinstance(body, str):
        return body
    if hasattr(body, "read"):
        return body_text(body.read())
    try:
        return json.dumps(body)
    except (TypeError, ValueError):
        # Such as a form of aiohttp: no request is equal to it.
        return repr(body)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [body_text(text) for text in values]


def interaction_of(
    request: HttpRequest,
    response: Mapping[str, Any],
    content_type: str,
    redact: Callable[[str], str],
) -> dict[str, Any]:
    """Both sides as vcrpy writes them, without secrets and with the headers that a body needs."""
    body: Any = response["body"].get("string") or ""
    text: str | bytes
    try:
        text = redact(body if isinstance(body, str) else body.decode())
    except UnicodeDecodeError:
        # One letter a byte: what is not text stays as it is.
        text = redact(body.decode("latin-1")).encode("latin-1", "replace")
    received = {name.lower(): values for name, values in response["headers"].items()}
    headers: dict[str, list[str]] = {}
    for name in _KEPT_HEADERS:
        if name in received:
            headers[name] = [redact(body_text(value)) for value in received[name]]
    status = response["status"]
    return {
        "request": {
            "method": request.method,
            "uri": request.uri,
            "body": request.body,
            "headers": {"content-type": [content_type]} if content_type else {},
        },
        "response": {
            "status": {**status, "message": redact(status.get("message") or "")},
            "headers": headers,
            "body": {"string": text},
        },
    }


_REFUSE: ContextVar[Callable[[str], object] | None] = ContextVar("pytest_jrh_network", default=None)
"""What is told before the code of a context reaches the network, and raises."""


@contextlib.contextmanager
def network_closed(refuse: Callable[[str], object] | None) -> Iterator[None]:
    """Close the network to the code in the block, and to the threads that it starts: `refuse` is
    told what it tries, and raises. With None they keep the context of the block, and may connect.
    """
    _ask_before_connecting()
    with holding(_REFUSE, refuse):
        yield


@cache
def _ask_before_connecting() -> None:
    """Let sockets ask the present context, and threads keep that of whoever starts them, for the
    rest of the process.
    """
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


def _asking(real: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that is refused with the address at a place of its arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        refuse = _REFUSE.get()
        values = (*args, *kwargs.values())
        # Without a host, a name is looked up for this machine itself.
        if refuse is not None and values[place]:
            address = values[place] if isinstance(values[place], tuple) else values[place:][:2]
            parts = [body_text(part) if isinstance(part, bytes) else part for part in address]
            refuse(f"reach {':'.join(map(str, parts[:2]))}")
        return real(*args, **kwargs)

    return call


_OK = 200
_HTTPS_PORT = 443


class HttpRecorder:
    """vcrpy's patch, installed once for a session.

    `recording` says for which call it works, and `judging` for which judge's own code. To vcrpy it
    is a cassette: it has the members that its httpx and aiohttp stubs use, and no more.
    """

    _path = "pytest-jrh"
    custom_patches = ()
    # vcrpy replaces the classes of these libraries, and puts the old ones back for the time of
    # every real request, for all threads at once; judges run in threads side by side.
    skip_patchers = ("httplib", "requests", "boto3", "urllib3", "httplib2", "tornado")
    write_protected = False

    def __init__(self, redactor: Redactor) -> None:
        self.made: ContextVar[list[Mapping[str, Any]] | None] = ContextVar("made", default=None)
        self.own: ContextVar[Exchanges | None] = ContextVar("own exchanges", default=None)
        self._redactor = redactor
        self._patches = contextlib.ExitStack()
        self._routes_code = False
        self.looked_again: set[str] = set()

    def install(self) -> None:
        """Patch the HTTP libraries that litellm uses; undone by `remove`."""
        from vcr.patch import CassettePatcherBuilder

        for patcher in CassettePatcherBuilder(self).build():
            self._patches.enter_context(patcher)

    def remove(self) -> None:
        self._patches.close()

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Mapping[str, Any]]]:
        """Collect the successful exchanges made in this context."""
        made: list[Mapping[str, Any]] = []
        with holding(self.made, made):
            yield made

    @contextlib.contextmanager
    def judging(self, exchanges: Exchanges) -> Iterator[None]:
        """Send what is asked in this context, in whichever thread it goes on, through `exchanges`.

        The first call also patches what judges use and litellm does not.
        """
        if not self._routes_code:
            self._routes_code = True
            self._patches.enter_context(_connections_patched(self))
        try:
            refuse = None if exchanges.live else exchanges.refused
            with holding(self.own, exchanges), network_closed(refuse):
                yield
        finally:
            exchanges.close()

    def filter_request(self, request: Any) -> Any:
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[tuple[Any, ...]]:
        """Where aiohttp's stub follows a recorded redirect to."""
        return [(request, [], [])]

    def can_play_response_for(self, request: Any) -> bool:
        exchanges = self.own.get()
        if exchanges is None:
            return False
        http_request = exchanges.request(request.method, request.uri, request.body, request.headers)
        request.jrh_interaction = exchanges.answer(http_request)
        return request.jrh_interaction is not None

    def play_response(self, request: Any) -> Any:
        from vcr.serializers.compat import convert_to_bytes

        response = request.jrh_interaction["response"]
        headers = dict(response["headers"])
        return convert_to_bytes({**response, "headers": headers, "body": dict(response["body"])})

    def append(self, request: Any, response: Any) -> None:
        exchanges, made = self.own.get(), self.made.get()
        if exchanges is not None:
            http_request = exchanges.request(request.method, request.uri, request.body)
            content_type = body_text(request.headers.get("content-type"))
            exchanges.made(http_request, _decoded(response), content_type)
        elif made is not None and response["status"]["code"] == _OK:
            # An error is asked again.
            redact = self._redactor.text
            uri = redact(self._redactor.url(request.uri))
            asked = HttpRequest(request.method, uri, redact(body_text(request.body)))
            made.append(interaction_of(asked, _decoded(response), "application/json", redact))


def _decoded(response: dict[str, Any]) -> dict[str, Any]:
    from vcr.filters import decode_response

    try:
        return decode_response(response)  # type: ignore[no-any-return]  # vcrpy has no types
    except zlib.error:
        # The library has taken it off already.
        headers = response["headers"]
        kept = {name: headers[name] for name in headers if name.lower() != "content-encoding"}
        return {**response, "headers": kept}


_HELD = "_jrh_held"


@contextlib.contextmanager
def _connections_patched(router: HttpRecorder) -> Iterator[None]:
    """Route what is asked through `http.client`, as by urllib.request, and through urllib3, as by
    requests and boto3.

    The methods of their connections are wrapped, once for all threads. A request is held until its
    answer is read: then it is known whether it is recorded.
    """
    from http.client import HTTPConnection
    from unittest.mock import patch

    from vcr.stubs import urllib3_stubs as urllib3

    owners: list[Any] = [HTTPConnection]
    connecting: list[Any] = []
    # urllib3-future's connections are of another kind.
    if issubclass(urllib3.HTTPConnection, HTTPConnection):
        owners.append(urllib3.HTTPConnection)
        connecting += [urllib3.HTTPConnection, urllib3.VerifiedHTTPSConnection]
    with contextlib.ExitStack() as undo:
        for owner in owners:
            real_request, real_getresponse = owner.request, owner.getresponse
            request = _held(router, real_request)
            getresponse = _answered(router, real_request, real_getresponse)
            undo.enter_context(patch.object(owner, "request", request))
            undo.enter_context(patch.object(owner, "getresponse", getresponse))
        for owner in connecting:
            undo.enter_context(patch.object(owner, "connect", _late(router, owner.connect)))
        yield


def _held(router: HttpRecorder, real_request: Callable[..., None]) -> Callable[..., None]:
    from vcr.request import Request
    from vcr.stubs import VCRFakeSocket

    def request(
        connection: Any, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any
    ) -> None:
        if router.own.get() is None:
            real_request(connection, method, url, body, headers or {}, **kwargs)
            return
        uri = url if "://" in url else f"{_origin(connection)}{url}"
        held = Request(method, uri, body, headers or {})
        if "decode_content" in kwargs:
            # urllib3 decodes more than vcrpy does.
            kwargs |= {"decode_content": True, "preload_content": True}
        vars(connection)[_HELD] = held, url, kwargs
        # urllib3 sets the time-out of what is connected.
        connection.sock = connection.sock or VCRFakeSocket()

    return request


def _answered(
    router: HttpRecorder, real_request: Callable[..., None], real_getresponse: Callable[..., Any]
) -> Callable[..., Any]:
    from vcr.stubs import VCRFakeSocket, serialize_headers

    def getresponse(connection: Any) -> Any:
        held, url, kwargs = vars(connection).pop(_HELD, (None, "", {}))
        if held is None:
            return real_getresponse(connection)
        if isinstance(connection.sock, VCRFakeSocket):
            connection.sock = None
        if router.can_play_response_for(held):
            return _response(connection, router.play_response(held), held.uri)
        with holding(router.own, None):
            real_request(connection, held.method, url, held.body, dict(held.headers), **kwargs)
            answer = real_getresponse(connection)
            body = answer.data if hasattr(answer, "data") else answer.read()
        status = {"code": answer.status, "message": answer.reason}
        headers = serialize_headers(answer)
        response = _decoded({"status": status, "headers": headers, "body": {"string": body}})
        router.append(held, response)
        return _response(connection, response, held.uri)

    return getresponse


def _response(connection: Any, response: dict[str, Any], uri: str) -> Any:
    from vcr.stubs import VCRHTTPResponse
    from vcr.stubs.urllib3_stubs import HTTPConnection, HTTPHeaderDict

    answer = VCRHTTPResponse(response, uri)
    if isinstance(connection, HTTPConnection):
        answer.headers = HTTPHeaderDict(answer.getheaders())
    return answer


def _late(router: HttpRecorder, real_connect: Callable[[Any], None]) -> Callable[[Any], None]:
    def connect(connection: Any) -> None:
        """Connect once the request is to be sent: urllib3 does so for HTTPS before that."""
        if router.own.get() is None:
            real_connect(connection)
        else:
            connection.is_verified = True

    return connect


def _origin(connection: Any) -> str:
    """The server of a connection, which may go through a proxy."""
    host, port = connection.host, connection.port
    if connection._tunnel_host:
        host, port = connection._tunnel_host, connection._tunnel_port
    scheme = "https" if connection.default_port == _HTTPS_PORT else "http"
    if port not in (None, connection.default_port):
        host = f"{host}:{port}"
    return f"{scheme}://{host}"
