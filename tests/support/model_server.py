"""A programmable OpenAI-compatible server on loopback, for end-to-end tests and benchmarks.

with ModelServer() as server:
    server.faults.add(stage="judge", fault=Fault.status(429, retry_after=1))
    ...  # point a client at server.base_url
    assert server.count("judge") == 2"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tests.support.exchange import (
    Answer,
    AnswerFunction,
    Reply,
    Request,
    envelope,
    error_body,
    reply_with,
    stage_of,
)
from tests.support.faults import Fault, Faults
from tests.support.loopback import Call, Loopback, Wire
from tests.support.obedient import Obedient, override

__all__ = ["Answer", "AnswerFunction", "Fault", "Faults", "ModelServer", "Obedient", "Reply"]
__all__ += ["Request", "environment_for", "override"]

Delay: TypeAlias = "float | Callable[[Request], float]"


class ModelServer(Loopback):
    """Answers chat completions on 127.0.0.1. `answer` makes the answer out of the request; `delay`
    is seconds, or a function of the request; with `keep=False` a request is forgotten after its
    answer, so that a benchmark's memory stays flat. A request is on record as answered before its
    first byte goes out."""

    def __init__(
        self, answer: AnswerFunction | None = None, *, delay: Delay = 0.0, keep: bool = True
    ) -> None:
        super().__init__()
        self.answer: AnswerFunction = answer or Obedient()
        self.delay = delay
        self.faults = Faults()
        self.peak_in_flight = 0
        """The most requests that waited for their answers at any one time."""
        self._keep = keep
        self._changed = threading.Condition()
        self._requests: dict[int, Request] = {}
        self._arrived: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._in_flight = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that send litellm's and OpenAI's clients here."""
        return environment_for(self.base_url)

    @property
    def requests(self) -> list[Request]:
        """Every chat completion asked for so far, in order of arrival; a copy."""
        with self._changed:
            return list(self._requests.values())

    def count(self, stage: str | None = None, *, answered: bool = False) -> int:
        """How many requests arrived (or were answered, well or badly), of one stage or of all."""
        with self._changed:
            counted = self._answered if answered else self._arrived
            return counted.total() if stage is None else counted[stage]

    def wait_for(
        self, count: int, stage: str | None = None, *, answered: bool = False, timeout: float = 10.0
    ) -> None:
        """Block until `count` requests have arrived (or were answered). TimeoutError after
        `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self.count(stage, answered=answered) >= count, timeout
            ):
                asked, done = dict(self._arrived), dict(self._answered)
                raise TimeoutError(f"after {timeout} s: asked {asked}, answered {done}")

    def respond(self, call: Call) -> Wire:
        path = call.path.partition("?")[0]
        if not path.endswith("/chat/completions"):
            return Wire(404, error_body(f"No {call.method} {path} here.", "not_found"))
        request = self._arrive(json.loads(call.body))
        fault = self.faults.match(request)
        is_answered = False
        try:
            self.stopping.wait(self.delay(request) if callable(self.delay) else self.delay)
            gate = fault.gate if fault else None
            while gate is not None and not gate.done() and not self.stopping.is_set():
                self.stopping.wait(0.01)
            reply = self._reply(request, fault)
            is_answered = reply.send_only != 0
            return Wire(reply.status, envelope(request, reply), reply.headers, reply.send_only)
        finally:
            self._end(request, kind=fault.name if fault else "answer", is_answered=is_answered)

    def _reply(self, request: Request, fault: Fault | None) -> Reply:
        if fault is None:
            return reply_with(self.answer(request))
        return fault.spoil(request, lambda: reply_with(self.answer(request)))

    def _arrive(self, body: Mapping[str, Any]) -> Request:
        with self._changed:
            index = self._arrived.total()
            request = Request(index, stage_of(body), body, started=time.monotonic())
            self._requests[index] = request
            self._arrived[request.stage] += 1
            self._in_flight += 1
            self.peak_in_flight = max(self.peak_in_flight, self._in_flight)
            self._changed.notify_all()
        return request

    def _end(self, request: Request, *, kind: str, is_answered: bool) -> None:
        with self._changed:
            self._requests[request.index] = replace(request, ended=time.monotonic(), kind=kind)
            if not self._keep:
                del self._requests[request.index]
            self._answered[request.stage] += is_answered
            self._in_flight -= 1
            self._changed.notify_all()


def environment_for(base_url: str) -> dict[str, str]:
    """The variables that send litellm's and OpenAI's clients to this base URL."""
    return {
        "OPENAI_API_BASE": base_url,
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "no-key-needed-on-loopback",
        "NO_PROXY": "127.0.0.1,localhost",
    }
