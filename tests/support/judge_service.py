"""A judge as a service on loopback: it reads the obedient model's markers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.obedient import VIOLATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType


class JudgeService:
    """Answers `POST /judge` with `{"score": ..., "why": ...}`; `asked` are the bodies that came,
    and `headers` what came with them.

    `statuses` and `scores` are sent first, one for each of the first requests; each answer ends in
    `end`. Leaving the block closes the port; `url` stays.
    """

    def __init__(self, *statuses: int, scores: Sequence[int] = (), end: str = "") -> None:
        self.end = end
        self.asked: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.statuses = list(statuses)
        self.scores = list(scores)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/judge"

    def __enter__(self) -> JudgeService:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(service: JudgeService) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            service.asked.append(json.loads(raw))
            service.headers.append({name.lower(): value for name, value in self.headers.items()})
            violated = VIOLATION in raw.decode()
            score = service.scores.pop(0) if service.scores else int(violated)
            answer = {"score": score, "why": "It says so." if violated else "All is well."}
            status = service.statuses.pop(0) if service.statuses else 200
            body = (json.dumps(answer) + service.end).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if status == 429:
                self.send_header("retry-after", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
