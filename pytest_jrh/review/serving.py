"""Serving a page on loopback, in a thread of its own: the only importer of starlette and uvicorn.

Only browsers on this machine that have the session's token have access. The guard is plain ASGI
around the app, so that nothing of a request is looked at before it has passed. Whatever a page
shows is named by keys that the session made; no text of a request reaches a path.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import encoded
from pytest_jrh.core.templates import render_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, MutableMapping

    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse

    from pytest_jrh.review.board import Board

    Event = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Event]]
    Send = Callable[[Event], Awaitable[None]]
    App = Callable[[Event, Receive, Send], Awaitable[None]]


HOST = "127.0.0.1"
PORT = 8765
_PORTS_TRIED = 20
_SECONDS_TO_END = 2


@dataclass(frozen=True)
class ReviewServer:
    """A page that is being served; `url` holds the token that lets a browser in."""

    url: str
    port: int
    _server: uvicorn.Server
    _app: PageApp
    _thread: threading.Thread

    def stop(self) -> None:
        """Stop serving, and wait until it has ended; doing it twice is fine."""
        self._server.should_exit = True
        self._app.close()
        self._thread.join()


def require_review() -> None:
    """Raise `InputError` with the command to run where the extra `review` is not installed."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(
            Problem(
                f"the review page needs {' and '.join(missing)}, which are not installed",
                hint="pip install 'pytest-jrh[review]'",
            )
        )


def serve(page: Page[Any], *, port: int = PORT) -> ReviewServer:
    """Serve a page on `port` or the next free one; raises `InputError` without extra or port."""
    require_review()
    import uvicorn

    # Port 0 is any that is free.
    for candidate in [*range(port, port + _PORTS_TRIED), 0] if port else [0]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # A session may take the port over from one that has just ended.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen(128)
            break
        except OSError:
            listener.close()
    else:
        raise InputError(Problem(f"no port is free on {HOST} for the review page"))
    free_port: int = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = PageApp(page, token=token, port=free_port)
    config = uvicorn.Config(
        app.asgi,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    server = uvicorn.Server(config)
    # Connections wait in the listening socket until the thread takes them, so there is nothing to
    # wait for here.
    thread = threading.Thread(target=server.run, args=([listener],), name="jrh-review", daemon=True)
    thread.start()
    return ReviewServer(f"http://{HOST}:{free_port}/?token={token}", free_port, server, app, thread)


MAX_BODY = 4 * 1024 * 1024
_READING = frozenset({"GET", "HEAD"})
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_ENTRY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/">
<link rel="icon" href="/static/icon.svg"><title>Review</title></head>
<body><p><a href="/">Open the review</a></p></body></html>
"""
_STRANGER = "This page needs the token of its session: open the address that pytest printed."


class Guard:
    """Lets a request to `app` that has this host, origin and token, and a body of bounded size."""

    def __init__(self, app: App, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        # Cookies are shared by all ports of a host, sessions are not.
        self._cookie = f"jrh_review_{port}"

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        from starlette.requests import Request
        from starlette.responses import HTMLResponse, PlainTextResponse

        if scope["type"] != "http":
            return
        request, safe = Request(scope), _with_headers(send)
        body = None
        answer: Response | None = None
        if refused := self._refused(request):
            answer = PlainTextResponse(refused, HTTPStatus.FORBIDDEN)
        elif (request.method, scope["path"]) == ("GET", "/") and self._is_token(
            request.query_params.get("token", "")
        ):
            # Not a redirect: after a click in another page, a browser would follow it without the
            # strict cookie.
            answer = HTMLResponse(_ENTRY)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        elif not self._is_token(request.cookies.get(self._cookie, "")):
            answer = PlainTextResponse(_STRANGER, HTTPStatus.FORBIDDEN)
        else:
            length = request.headers.get("content-length", "")
            if not (length.isascii() and length.isdigit() and int(length) > MAX_BODY):
                body = await _body(receive)
        if answer is None and body is None:
            limit = f"A request may be {MAX_BODY // 1024 // 1024} MB at most."
            answer = PlainTextResponse(limit, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if answer is not None:
            await answer(scope, receive, safe)
        elif body is not None:
            await self._app(scope, _replayed(body, receive), safe)

    def _refused(self, request: Request) -> str:
        if request.headers.get("host", "") not in self._hosts:
            return "This host is not served here."
        origin = request.headers.get("origin")
        if origin is not None and origin not in self._origins:
            return "Requests from other sites are refused."
        if origin is None and request.method not in _READING:
            return "A request that changes something has to name its origin."
        return ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


async def _body(receive: Receive) -> bytes | None:
    """Read a body; None where it is too large, or its sender left."""
    body = b""
    while True:
        event = await receive()
        part: bytes = event.get("body", b"")
        body += part
        if event["type"] != "http.request" or len(body) > MAX_BODY:
            return None
        if not event.get("more_body", False):
            return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    parts = [body]

    async def receive_again() -> Event:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return await receive()

    return receive_again


def _with_headers(send: Send) -> Send:
    async def sending(event: Event) -> None:
        if event["type"] == "http.response.start":
            safe = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            event = {**event, "headers": [*event.get("headers", ()), *safe]}
        await send(event)

    return sending


_REVIEW = Path(__file__).parent
_PAGES = _REVIEW / "pages"
_STATIC = _REVIEW / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_JSON = "application/json"
_MOST_DIGITS = 9


class RequestBody(BaseModel):
    """What a request brings: its keys and their types, and nothing else."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


BodyT = TypeVar("BodyT", bound=RequestBody)
BoardT = TypeVar("BoardT", bound="Board")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request, with the parts of its address that a route names."""

    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def number(self, name: str) -> int:
        """A number in the address; raises `LookupError` where it is none."""
        text = self.names[name]
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise LookupError(text)
        return int(text)

    def read(self, model: type[BodyT]) -> BodyT:
        """What the request brings; raises `ValidationError` where it is anything else."""
        return model.model_validate_json(self.body)


@dataclass(frozen=True, slots=True)
class PageReply:
    """An answer."""

    body: bytes
    kind: str = _JSON
    status: int = HTTPStatus.OK


Answer = Callable[[PageRequest], PageReply]
Route = tuple[str, str, Answer]


class Page(ABC, Generic[BoardT]):
    """A page over a board: what it can ask for, and what the session tells it unasked.

    `html` is the template of the page itself.
    """

    html: ClassVar[str]

    def __init__(self, board: BoardT) -> None:
        self.board = board
        # A browser that was connected to an earlier session must not go on from its version.
        self.session: Final = secrets.token_hex(8)
        self.subscribe: Final = board.subscribe
        self._static: Final = {
            path.name: path for path in _STATIC.iterdir() if path.suffix in _TYPES
        }

    def routes(self) -> tuple[Route, ...]:
        """Every (method, address, answer)."""
        return (
            ("GET", "/", self._html),
            ("GET", "/static/{name}", self._file),
            ("POST", "/finalize", self._finalize),
            *self.case_routes(),
        )

    @abstractmethod
    def case_routes(self) -> tuple[Route, ...]:
        """What this page alone can ask for."""

    @abstractmethod
    def news(self, since: int) -> tuple[int, dict[str, object]]:
        """The present version, and beside the progress what is new since an earlier one."""

    def values(self) -> dict[str, object]:
        """What the page itself is rendered from."""
        return {}

    def changes(self, since: int) -> tuple[int, str]:
        """The present version, and as JSON what is new since an earlier one."""
        version, news = self.news(since)
        return version, json.dumps({"session": self.session, "progress": self.progress(), **news})

    def progress(self) -> dict[str, object]:
        """How far the session is, as JSON values."""
        return asdict(self.board.progress())

    def answer(self, answer: Answer, request: PageRequest) -> PageReply:
        """Answer; errors become replies with the reason."""
        try:
            return answer(request)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            return problem_reply(HTTPStatus.UNPROCESSABLE_ENTITY, f"{key}: {first['msg']}")
        except InputError as error:
            problems = [described(problem) for problem in error.problems]
            return json_reply({"error": str(error), "problems": problems}, HTTPStatus.CONFLICT)
        except LookupError:
            return problem_reply(HTTPStatus.NOT_FOUND, "not found in this session")
        except OSError as error:
            reason = f"write failed: {error.strerror or error}"
            return problem_reply(HTTPStatus.INSUFFICIENT_STORAGE, reason)

    def _html(self, _: PageRequest) -> PageReply:
        return html_reply(self.html, self.values())

    def _file(self, request: PageRequest) -> PageReply:
        path = self._static[request.names["name"]]
        return PageReply(path.read_bytes(), _TYPES[path.suffix])

    def _finalize(self, _: PageRequest) -> PageReply:
        self.board.finalize()
        return json_reply(self.progress())


def html_reply(name: str, values: Mapping[str, object]) -> PageReply:
    """One of the pages, with every value escaped."""
    return PageReply(encoded(render_page(_PAGES, name, values)), "text/html")


def json_reply(value: object, status: HTTPStatus = HTTPStatus.OK) -> PageReply:
    """Values of JSON."""
    return PageReply(json.dumps(value).encode(), _JSON, status)


def problem_reply(status: HTTPStatus, message: str) -> PageReply:
    """Why a request is refused."""
    return json_reply({"error": message, "problems": []}, status)


def described(problem: Problem) -> dict[str, Any]:
    """A problem as JSON values."""
    return {"message": problem.message, "line": problem.line, "hint": problem.hint}


_SECONDS_BETWEEN_SIGNS_OF_LIFE = 15.0


class PageApp:
    """The application of one page; `close` ends the streams of events, which keep a server up."""

    def __init__(self, page: Page[Any], *, token: str, port: int) -> None:
        from starlette.applications import Starlette
        from starlette.routing import Route

        self._page = page
        self._closed = False
        self._streams: set[Callable[[], None]] = set()
        routes = [Route("/events", self._events, methods=["GET"])]
        for method, path, answer in page.routes():
            endpoint = partial(self._answer, answer)
            routes.append(Route(path, endpoint, methods=[method]))
        self.asgi = Guard(Starlette(routes=routes), token=token, port=port)

    def close(self) -> None:
        """End every stream of events; may be called from any thread."""
        self._closed = True
        for wake in tuple(self._streams):
            wake()

    async def _answer(self, answer: Answer, request: Request) -> Response:
        from starlette.responses import Response

        names = {name: str(value) for name, value in request.path_params.items()}
        asking = PageRequest(names, dict(request.query_params), await request.body())
        # In a thread: answers wait for locks and for the disk.
        reply = await asyncio.to_thread(self._page.answer, answer, asking)
        return Response(reply.body, reply.status, media_type=reply.kind)

    async def _events(self, request: Request) -> StreamingResponse:
        from starlette.responses import StreamingResponse

        session, _, version = request.headers.get("last-event-id", "").partition(":")
        since = 0
        if session == self._page.session and version.isdigit():
            since = int(version)
        return StreamingResponse(self._stream(since), media_type="text/event-stream")

    async def _stream(self, since: int) -> AsyncIterator[str]:
        """The present state, and then changes, as server-sent events."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The loop may have ended while another thread was telling of a change.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(woken.set)

        unsubscribe = self._page.subscribe(wake)
        self._streams.add(wake)
        try:
            while not self._closed:
                version, news = await asyncio.to_thread(self._page.changes, since)
                if version > since or not since:
                    yield f"id: {self._page.session}:{version}\ndata: {news}\n\n"
                since = version
                try:
                    await asyncio.wait_for(woken.wait(), _SECONDS_BETWEEN_SIGNS_OF_LIFE)
                except TimeoutError:
                    yield ": still here\n\n"
                woken.clear()
        finally:
            self._streams.discard(wake)
            unsubscribe()
