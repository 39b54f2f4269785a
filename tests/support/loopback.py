"""A small HTTP/1.1 server on loopback: keep-alive, one task per request, a hung-up client cancels
its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from concurrent.futures import Future


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came over the wire; header names in lower case."""

    method: str
    path: str
    version: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Wire:
    """A response; `send_only` closes the connection after that many bytes of it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    send_only: int | None = None


Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, Wire]]
OnError: TypeAlias = Callable[[BaseException], object]


async def serve(
    handler: Handler,
    *,
    port: int,
    ready: Future[tuple[int, Callable[[], object]]],
    on_error: OnError,
) -> None:
    """Serve on 127.0.0.1 until stopped; `ready` gets the port and the thread-safe function that
    stops it.

    `on_error` is told of what a handler raised, and the client sees its connection closed.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    connections: set[_Connection] = set()
    try:
        listener = await loop.create_server(
            lambda: _Connection(handler, connections, on_error), "127.0.0.1", port, backlog=512
        )
    except OSError as error:
        ready.set_exception(error)
        return
    ready.set_result(
        (listener.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(stopped.set))
    )
    await stopped.wait()
    listener.close()
    tasks = [connection.task for connection in connections if connection.task is not None]
    for connection in connections:
        connection.abort()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Connection(asyncio.Protocol):
    """One client's connection; it answers one request after the other."""

    def __init__(self, handler: Handler, connections: set[_Connection], on_error: OnError) -> None:
        self._handler = handler
        self._connections = connections
        self._on_error = on_error
        self._buffer = bytearray()
        self._head: Call | None = None
        self._transport: asyncio.Transport | None = None
        self.task: asyncio.Task[Wire] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def abort(self) -> None:
        assert self._transport is not None
        self._transport.abort()

    def _next(self) -> None:
        if self.task is None and (call := self._take()):
            self.task = asyncio.get_running_loop().create_task(self._handler(call))
            self.task.add_done_callback(lambda task: self._done(task, call))

    def _take(self) -> Call | None:
        """The next request, once all of it is there."""
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            self._head = _parse_head(self._buffer[:end].decode("latin-1"))
            del self._buffer[: end + 4]
        length = int(self._head.headers.get("content-length", 0))
        if len(self._buffer) < length:
            return None
        head, self._head = self._head, None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return Call(head.method, head.path, head.version, head.headers, body)

    def _done(self, task: asyncio.Task[Wire], call: Call) -> None:
        assert self._transport is not None
        self.task = None
        if task.cancelled():
            return
        if error := task.exception():
            self._on_error(error)
            self._transport.abort()
            return
        wire = task.result()
        closing = (
            wire.send_only is not None
            or call.version != "HTTP/1.1"
            or call.headers.get("connection", "").lower() == "close"
        )
        self._transport.write(_encode(wire, closing=closing)[: wire.send_only])
        if closing:
            self._transport.close()
        else:
            self._next()


def _parse_head(text: str) -> Call:
    start, *lines = text.split("\r\n")
    method, path, version = start.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    return Call(method, path, version, headers)


def _encode(wire: Wire, *, closing: bool) -> bytes:
    known = {status.value: status.phrase for status in HTTPStatus}
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(wire.body)),
        **wire.headers,
    }
    if closing:
        headers["Connection"] = "close"
    head = [f"HTTP/1.1 {wire.status} {known.get(wire.status, 'Error')}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + wire.body
