"""Serving a page on loopback, in a thread of its own: the only importer of starlette and uvicorn.

Only browsers on this machine that have the session's token have access. The guard is plain ASGI
around the app, so that nothing of a request is looked at before it has passed. Whatever a page
asks for is named by keys that the session made; no text of a request reaches a path.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from pytest_jrh.core import InputError
from pytest_jrh.core.documents import DamagedError, parsed
from pytest_jrh.people.board import SECONDS_BETWEEN_LOOKS, Board

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


HOST = "127.0.0.1"
PORT = 8765
_SECONDS_TO_END = 2


Answer = Callable[..., Any]
"""Takes the parts of an address that its route names, and what the request brings; gives a value of
JSON, and its errors become replies with the reason.
"""
Route = tuple[str, str, Answer, type[BaseModel] | None]
"""The method, the address, who answers, and what the request has to bring, if anything."""


class Page(Protocol):
    """A page over a board, and what it can ask for."""

    @property
    def board(self) -> Board:
        """The state that it shows."""

    def shell(self) -> tuple[str, str]:
        """Its HTML, and the policy that names its script and style by their hashes."""

    def routes(self) -> tuple[Route, ...]:
        """All that can be asked for."""

    def news(self, since: int) -> tuple[int, Mapping[str, Any]]:
        """The present version, and what is new since an earlier one."""


@dataclass(frozen=True)
class ReviewServer:
    """A page that is being served; `url` holds the token that lets a browser in, and `opened` is
    set once it has.
    """

    url: str
    port: int
    opened: threading.Event
    _server: uvicorn.Server
    _closed: threading.Event
    _thread: threading.Thread

    def stop(self) -> None:
        """Stop serving, and wait until it has ended; doing it twice is fine."""
        self._closed.set()
        self._server.should_exit = True
        self._thread.join()


def serve(page: Page, *, port: int = PORT) -> ReviewServer:
    """Serve a page on `port`, or a free one where it is taken; raises `InputError` without the
    extra.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"the page in the browser needs these packages: {' and '.join(missing)}",
            hint="pip install 'pytest-jrh[review]'",
        )
    import uvicorn

    try:
        listener = socket.create_server((HOST, port))
    except OSError:
        # Port 0 is any that is free.
        listener = socket.create_server((HOST, 0))
    free_port: int = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    closed = threading.Event()
    html, policy = page.shell()
    app = Guard(_app(page, html, closed), token=token, port=free_port, policy=policy)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
    )
    # Connections wait in the listening socket until the thread takes them, so there is nothing to
    # wait for here.
    thread = threading.Thread(target=server.run, args=([listener],), name="jrh-review", daemon=True)
    thread.start()
    url = f"http://{HOST}:{free_port}/?token={token}"
    return ReviewServer(url, free_port, app.opened, server, closed, thread)


MAX_BODY = 4 * 1024 * 1024
_LONGEST_PATH = 1_000
_READING = frozenset({"GET", "HEAD"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_ENTRY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/">
<link rel="icon" href="data:,"><title>pytest-jrh</title></head>
<body><p><a href="/">Open the page</a></p></body></html>
"""
_STRANGER = "This address no longer works. Ask the person who started the page for the newest one."


class Guard:
    """Lets a request to `app` that has this host, origin and token."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, policy: str) -> None:
        self._app = app
        self._token = token
        self.opened = threading.Event()
        policy = f"{policy}; frame-ancestors 'none'"
        self._headers = {**_HEADERS, "content-security-policy": policy}
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        # Cookies are shared by all ports of a host, sessions are not.
        self._cookie = f"jrh_review_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.datastructures import MutableHeaders
        from starlette.requests import Request
        from starlette.responses import HTMLResponse, PlainTextResponse

        request = Request(scope)
        answer: Response | None = None
        if refused := self._refused(request):
            answer = PlainTextResponse(refused, HTTPStatus.FORBIDDEN)
        elif len(scope["path"]) > _LONGEST_PATH:
            # Python makes no number of thousands of digits.
            answer = PlainTextResponse("not found", HTTPStatus.NOT_FOUND)
        elif (request.method, scope["path"]) == ("GET", "/") and self._is_token(
            request.query_params.get("token", "")
        ):
            # Not a redirect: after a click in another page, a browser would follow it without the
            # strict cookie.
            self.opened.set()
            answer = HTMLResponse(_ENTRY)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        elif not self._is_token(request.cookies.get(self._cookie, "")):
            answer = PlainTextResponse(_STRANGER, HTTPStatus.FORBIDDEN)

        async def send_with_headers(event: Message) -> None:
            if event["type"] == "http.response.start":
                MutableHeaders(scope=event).update(self._headers)
            await send(event)

        await (answer or self._app)(scope, receive, send_with_headers)

    def _refused(self, request: Request) -> str:
        if request.headers.get("host", "") not in self._hosts:
            return "This page is served only at 127.0.0.1 and localhost."
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._origins:
            return "Requests from other sites are refused."
        if origin is None and request.method not in _READING:
            return "A request that changes something needs the header Origin."
        return ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _app(page: Page, html: str, closed: threading.Event) -> ASGIApp:
    """The application of a page that begins as `html`; its streams of events end when `closed`."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route

    async def answered(answer: Answer, model: type[BaseModel] | None, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                return PlainTextResponse(
                    f"A request may have at most {MAX_BODY // 1024 // 1024} MB.",
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                )
        # In a thread: answers wait for locks and for the disk.
        status, value = await asyncio.to_thread(reply, answer, request.path_params, model, body)
        return Response(json.dumps(value), status, media_type="application/json")

    async def events(_: Request) -> Response:
        return StreamingResponse(stream(), media_type="text/event-stream")

    async def stream() -> AsyncIterator[str]:
        """The present state, then changes, and at the end the last, as server-sent events."""
        since = -1
        is_last = False
        while not is_last:
            is_last = closed.is_set()
            if page.board.version > since:
                since, news = await asyncio.to_thread(page.news, since)
                yield f"data: {json.dumps(news)}\n\n"
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    routes = [
        Route("/", HTMLResponse(html), methods=["GET"]),
        Route("/events", events, methods=["GET"]),
    ]
    for method, path, answer, model in page.routes():
        routes.append(Route(path, partial(answered, answer, model), methods=[method]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    return app


def reply(
    answer: Answer,
    names: Mapping[str, Any],
    model: type[BaseModel] | None = None,
    body: bytes = b"",
) -> tuple[HTTPStatus, Any]:
    """Answer a request, or say why not: the status, and a value of JSON. What it brings may be
    nothing else than a `model` has, and nothing twice.
    """
    try:
        if model is None:
            return HTTPStatus.OK, answer(**names)
        parsed(body)
        return HTTPStatus.OK, answer(**names, **dict(model.model_validate_json(body)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    except InputError as error:
        return HTTPStatus.CONFLICT, {
            "error": str(error),
            "problems": [*map(asdict, error.problems)],
        }
    except DamagedError as error:
        reason, status = str(error), HTTPStatus.UNPROCESSABLE_ENTITY
    except LookupError:
        reason, status = "not found: load this page again", HTTPStatus.NOT_FOUND
    except OSError as error:
        reason = f"write failed: {error.strerror or error}"
        status = HTTPStatus.INSUFFICIENT_STORAGE
    return status, {"error": reason, "problems": []}
