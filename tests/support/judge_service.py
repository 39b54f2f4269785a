"""A judge as a service on loopback: it reads the obedient model's markers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.loopback import Call, Loopback, Wire
from tests.support.obedient import VIOLATION

Reply = Callable[[str, str], tuple[int, Mapping[str, str], bytes]]


class JudgeService(Loopback):
    """Answers `POST /judge` with `{"score": ..., "why": ...}`; `asked` are the bodies that came,
    and `headers` what came with them. `statuses` and `scores` are sent first, one for each of the
    first requests. `reply` makes the whole answer of a path and a body in their place: status,
    headers and body. Leaving the block closes the port; `url` stays."""

    def __init__(self, reply: Reply | None = None) -> None:
        super().__init__()
        self.reply = reply
        self.asked: list[Any] = []
        self.headers: list[Mapping[str, str]] = []
        self.statuses: list[int] = []
        self.scores: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/judge"

    def respond(self, call: Call) -> Wire:
        text = call.body.decode()
        self.headers.append(call.headers)
        if self.reply is not None:
            self.asked.append(text)
            status, headers, body = self.reply(call.path, text)
            return Wire(status, body, headers)
        self.asked.append(json.loads(text))
        violated = VIOLATION in text
        score = self.scores.pop(0) if self.scores else int(violated)
        answer = {"score": score, "why": "It says so." if violated else "All is well."}
        status = self.statuses.pop(0) if self.statuses else 200
        retry = {"retry-after": "0"} if status == 429 else {}
        return Wire(status, json.dumps(answer).encode(), retry)
