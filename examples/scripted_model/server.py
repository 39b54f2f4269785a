"""The HTTP side: POST /v1/chat/completions on loopback, the same bytes for the same request."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol

from examples.scripted_model.script import NotScriptedError, Request, as_text, load_script

if TYPE_CHECKING:
    from types import TracebackType

PATH = "/v1/chat/completions"
CREATED = 1_750_032_000  # 16 June 2025, the day of the conversations
CHARACTERS_PER_TOKEN = 4


class Answers(Protocol):
    """What the server answers with."""

    def answer(self, request: Request) -> dict[str, Any] | str:
        """The fields of an answer, or its text; raises NotScriptedError if there is none."""


def completion(body: dict[str, Any], script: Answers) -> dict[str, Any]:
    """Make the chat completion that answers a request body.

    Raises NotScriptedError where none is written.
    """
    request = Request.from_body(body)
    content = as_text(script.answer(request), request)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    read, written = len(request.text) // CHARACTERS_PER_TOKEN, len(content) // CHARACTERS_PER_TOKEN
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": CREATED,
        "model": body.get("model", ""),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


def _error(message: str, kind: str, **recognized: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": kind, **recognized}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        """Answer one chat completion request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != PATH:
            self._send(
                HTTPStatus.NOT_FOUND,
                _error(f"only {PATH} is served, not {self.path}", "unknown_path"),
            )
            return
        try:
            body = json.loads(raw)
        except ValueError as error:
            self._send(
                HTTPStatus.BAD_REQUEST,
                _error(f"the body is not JSON: {error}", "invalid_request_error"),
            )
            return
        if (
            not isinstance(body, dict)
            or not isinstance(body.get("messages"), list)
            or body.get("stream")
        ):
            problem = "the body must be an object with a list of messages, and without stream"
            self._send(HTTPStatus.BAD_REQUEST, _error(problem, "invalid_request_error"))
            return
        self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        model = self.server.model
        stage = Request.from_body(body).stage or "unknown"
        model.count(stage)
        time.sleep(model.delay)
        try:
            self._send(HTTPStatus.OK, completion(body, model.script))
        except NotScriptedError as error:
            recognized = {"stage": error.stage, "run": error.run, "rubric": error.rubric}
            self._send(HTTPStatus.NOT_FOUND, _error(str(error), "not_scripted", **recognized))

    def _send(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        payload = json.dumps(answer).encode()
        self.send_response_only(
            status
        )  # neither Server nor Date: the same bytes for the same request
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", port), _Handler)


class ScriptedModel:
    """The server, in this process: `with ScriptedModel() as model: ... model.base_url ...`.

    Port 0 picks a free one. `requests` counts all requests answered or refused, `by_stage` per
    stage; `delay` is in seconds per request.
    """

    def __init__(self, *, port: int = 0, delay: float = 0.0, script: Answers | None = None) -> None:
        self.script: Answers = script or load_script()
        self.delay = delay
        self.by_stage: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(port, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="scripted-model", daemon=True
        )

    @property
    def base_url(self) -> str:
        """What to give a client as its API base."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def requests(self) -> int:
        """How many requests have come so far."""
        with self._lock:
            return self.by_stage.total()

    def count(self, stage: str) -> None:
        """Note one request."""
        with self._lock:
            self.by_stage[stage] += 1

    def serve_forever(self) -> None:
        """Serve in this thread until interrupted."""
        with self._server:
            self._server.serve_forever()

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
