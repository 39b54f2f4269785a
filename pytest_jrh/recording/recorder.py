"""Records the HTTP exchanges of a session through one patch of vcrpy's (used here alone): each goes
to the call of a model, or to the judge's own code, that it belongs to.

vcrpy sends every HTTP exchange of the patched libraries to one object that looks like a cassette to
it. A `ContextVar` identifies the call, or the judge's own code, that an exchange belongs to, so
tasks of different cases record side by side without seeing each other. All dependence on vcrpy's
insides is in this file.
"""

from __future__ import annotations

import contextlib
import copy
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from pytest_jrh.core import Fields, Json, holding
from pytest_jrh.core.foreign_code import network_closed
from pytest_jrh.core.redact import Redactor
from pytest_jrh.recording.exchanges import Exchanges, HttpRequest, body_text, interaction_of

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
        # What an exchange of the present context belongs to: a call, or a judge's own code.
        self.owner: ContextVar[list[Fields] | Exchanges | None] = ContextVar("owner", default=None)
        self._redactor = redactor
        self._patches = contextlib.ExitStack()
        self._routes_code = False

    def install(self) -> None:
        """Patch the HTTP libraries that litellm uses; undone by `remove`."""
        from vcr.patch import CassettePatcherBuilder

        for patcher in CassettePatcherBuilder(self).build():
            self._patches.enter_context(patcher)

    def remove(self) -> None:
        self._patches.close()

    @property
    def of_code(self) -> Exchanges | None:
        """The exchanges of the judge's own code that works in the present context."""
        owner = self.owner.get()
        return owner if isinstance(owner, Exchanges) else None

    @contextlib.contextmanager
    def recording(self) -> Iterator[list[Fields]]:
        """Collect the successful exchanges made in this context."""
        exchanges: list[Fields] = []
        with holding(self.owner, exchanges):
            yield exchanges

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
            with holding(self.owner, exchanges), network_closed(refuse):
                yield
        finally:
            exchanges.close()

    # From here on what vcrpy's stubs call.

    def filter_request(self, request: Any) -> Any:
        """Where vcrpy's own cassettes leave out what must not be kept."""
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[tuple[Any, ...]]:
        """Where aiohttp's stub follows a recorded redirect to."""
        return [(request, [], [])]

    def can_play_response_for(self, request: Any) -> bool:
        """Whether a request is answered from a recording; raises `Halted` where it may not be sent.

        The calls of models are answered before they get here.
        """
        code = self.of_code
        if code is None:
            return False
        http_request = code.request(request.method, request.uri, request.body, request.headers)
        request.jrh_interaction = code.answer(http_request)
        return request.jrh_interaction is not None

    def play_response(self, request: Any) -> Any:
        """The recorded answer, in a copy: the libraries change what they get."""
        from vcr.serializers.compat import convert_to_bytes

        return convert_to_bytes(copy.deepcopy(request.jrh_interaction["response"]))

    def append(self, request: Any, response: Any) -> None:
        """Keep an exchange that was made, with the call or the code that it belongs to."""
        owner = self.owner.get()
        if isinstance(owner, Exchanges):
            http_request = owner.request(request.method, request.uri, request.body)
            content_type = body_text(request.headers.get("content-type"))
            owner.made(http_request, _decoded(response), content_type)
        elif owner is not None and response["status"]["code"] == _OK:
            # An error is asked again.
            redact = self._redactor.text
            uri = redact(self._redactor.url(request.uri))
            http_request = HttpRequest(request.method, uri, redact(body_text(request.body)))
            owner.append(
                interaction_of(http_request, _decoded(response), "application/json", redact)
            )


def _decoded(response: Json) -> Json:
    from vcr.filters import decode_response

    try:
        return decode_response(response)  # type: ignore[no-any-return]  # vcrpy has no types
    except zlib.error:
        # The library has decoded it already.
        headers = dict(response["headers"])
        for name in response["headers"]:
            if name.lower() == "content-encoding":
                del headers[name]
        return {**response, "headers": headers}


_PENDING = "_jrh_pending"


@contextlib.contextmanager
def _connections_patched(router: HttpRecorder) -> Iterator[None]:
    """Route what is asked through `http.client`, as by urllib.request, and through urllib3, as by
    requests and boto3.

    The methods of their connections are wrapped, once for all threads.
    """
    from http.client import HTTPConnection
    from unittest.mock import patch

    from vcr.stubs import urllib3_stubs as urllib3

    owners: list[Any] = [HTTPConnection]
    connecting = []
    # urllib3-future's connections are of another kind.
    if issubclass(urllib3.HTTPConnection, HTTPConnection):
        owners.append(urllib3.HTTPConnection)
        connecting += [urllib3.HTTPConnection, urllib3.VerifiedHTTPSConnection]
    with contextlib.ExitStack() as undo:
        for owner in owners:
            undo.enter_context(patch.multiple(owner, **_holding_requests(router, owner)))
        for owner in connecting:
            undo.enter_context(
                patch.object(owner, "connect", _connecting_late(router, owner.connect))
            )
        yield


def _holding_requests(router: HttpRecorder, owner: Any) -> dict[str, Any]:
    """The methods of a connection that hold a request until its answer is read: then it is known
    whether it is recorded.
    """
    from vcr.request import Request
    from vcr.stubs import VCRFakeSocket, VCRHTTPResponse, serialize_headers
    from vcr.stubs.urllib3_stubs import HTTPConnection, HTTPHeaderDict

    real_request, real_getresponse = owner.request, owner.getresponse

    def request(
        connection: Any, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any
    ) -> None:
        if router.of_code is None:
            real_request(connection, method, url, body, headers or {}, **kwargs)
            return
        uri = url if "://" in url else f"{_origin(connection)}{url}"
        pending = Request(method, uri, body, headers or {})
        if "decode_content" in kwargs:
            # urllib3 decodes more than vcrpy does.
            kwargs |= {"decode_content": True, "preload_content": True}
        vars(connection)[_PENDING] = pending, url, kwargs
        # urllib3 sets the time-out of what is connected.
        connection.sock = connection.sock or VCRFakeSocket()

    def getresponse(connection: Any) -> Any:
        pending, url, kwargs = vars(connection).pop(_PENDING, (None, "", {}))
        if pending is None:
            return real_getresponse(connection)
        if isinstance(connection.sock, VCRFakeSocket):
            connection.sock = None
        if router.can_play_response_for(pending):
            response = router.play_response(pending)
        else:
            with holding(router.owner, None):
                real_request(
                    connection, pending.method, url, pending.body, dict(pending.headers), **kwargs
                )
                sent = real_getresponse(connection)
                body = sent.data if hasattr(sent, "data") else sent.read()
            status = {"code": sent.status, "message": sent.reason}
            headers = serialize_headers(sent)
            response = _decoded({"status": status, "headers": headers, "body": {"string": body}})
            router.append(pending, response)
        answer = VCRHTTPResponse(response, pending.uri)
        if isinstance(connection, HTTPConnection):
            answer.headers = HTTPHeaderDict(answer.getheaders())
        return answer

    return {"request": request, "getresponse": getresponse}


def _connecting_late(
    router: HttpRecorder, real_connect: Callable[[Any], None]
) -> Callable[[Any], None]:
    def connect(connection: Any) -> None:
        """Connect once the request is to be sent: urllib3 does so for HTTPS before that."""
        if router.of_code is None:
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
