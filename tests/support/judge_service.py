"""A judge as a service on loopback: it reads the obedient model's markers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.obedient import VIOLATION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    Reply = Callable[[str, str], tuple[int, Mapping[str, str], bytes]]


class JudgeService:
    """Answers `POST /judge` with `{"score": ..., "why": ...}`; `asked` are the bodies that came,
    and `headers` what came with them.

    `statuses` and `scores` are sent first, one for each of the first requests; each answer ends in
    `end`. `reply` makes the whole answer of a path and a body in their place: status, headers and
    body. Leaving the block closes the port; `url` stays.
    """

    def __init__(
        self,
        *statuses: int,
        scores: Sequence[int] = (),
        end: str = "",
        reply: Reply | None = None,
    ) -> None:
        self.end = end
        self.reply = reply
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
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            service.headers.append({name.lower(): value for name, value in self.headers.items()})
            if service.reply is not None:
                service.asked.append(raw.decode())
                self.answer(*service.reply(self.path, raw.decode()))
                return
            service.asked.append(json.loads(raw))
            violated = VIOLATION in raw.decode()
            score = service.scores.pop(0) if service.scores else int(violated)
            answer = {"score": score, "why": "It says so." if violated else "All is well."}
            status = service.statuses.pop(0) if service.statuses else 200
            retry = {"retry-after": "0"} if status == 429 else {}
            self.answer(status, retry, (json.dumps(answer) + service.end).encode())

        def do_GET(self) -> None:
            self.do_POST()

        def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            sent = {"content-type": "application/json", "content-length": str(len(body))}
            for name, value in {**sent, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
