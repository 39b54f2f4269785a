"""A small HTTP/1.1 server on loopback, with a thread for each connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came over the wire; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Wire:
    """A response; `send_only` closes the connection after that many bytes of it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    send_only: int | None = None


class Loopback:
    """Answers by `respond` on 127.0.0.1 while its block is open. Leaving the block closes the port
    and every connection, and raises what `respond` raised."""

    def __init__(self) -> None:
        self.port = 0
        self.errors: list[BaseException] = []
        self.stopping = threading.Event()
        self._server: _Server | None = None

    def respond(self, call: Call) -> Wire:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port and every connection; may be called twice."""
        server, self._server = self._server, None
        if server is not None:
            self.stopping.set()
            server.shutdown()
            server.server_close()
            for connection in list(server.connections):
                connection.shut()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self.errors:
            raise self.errors[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, owner: Loopback) -> None:
        self.owner = owner
        self.connections: set[_Connection] = set()
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed or hang up are what tests are about."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self)

    def finish(self) -> None:
        self.server.connections.discard(self)
        super().finish()

    def shut(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            # Killed between head and body of its request: nothing was asked.
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            wire = self.server.owner.respond(Call(self.command, self.path, headers, body))
        except Exception as error:  # noqa: BLE001 - raised again where the block ends
            self.server.owner.errors.append(error)
            self.close_connection = True
            return
        self.close_connection = self.close_connection or wire.send_only is not None
        self.wfile.write(_encode(wire, closing=self.close_connection)[: wire.send_only])

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


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
