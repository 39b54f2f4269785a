"""What can go wrong at a model, and when: scripted per stage and per occurrence."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tests.support.exchange import Reply, Request, envelope, error_body

Normal: TypeAlias = Callable[[], Reply]
Spoil: TypeAlias = Callable[[Request, Normal], Reply]
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    404: "not_found",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "overloaded",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: `spoil` makes the reply out of the normal one, after the gate is
    open. `name` appears as the request's `kind`."""

    name: str
    spoil: Spoil
    gate: Future[None] | None = None

    def release(self) -> None:
        """Let go of every request that this `hang` holds, and of those to come."""
        if self.gate is not None and not self.gate.done():
            self.gate.set_result(None)

    @classmethod
    def status(
        cls,
        code: int,
        *,
        retry_after: float | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fault:
        """An error status."""
        sent = dict(headers or {})
        if retry_after is not None:
            sent["Retry-After"] = str(retry_after)
        kind = _ERROR_TYPES.get(code, "api_error")
        body = error_body(f"The scripted model answers {code}.", kind)
        reply = Reply(status=code, headers=sent, body=body)
        return cls(f"status {code}", lambda _request, _normal: reply)

    @classmethod
    def error(cls, words: str, code: str = "invalid_request_error", *, status: int = 400) -> Fault:
        """An error in these words."""
        return cls.raw(error_body(words, code), status=status, name="error")

    @classmethod
    def hang(cls) -> Fault:
        """Hold the answer back until `release`."""
        return cls("hang", lambda _request, normal: normal(), Future())

    @classmethod
    def drop(cls, after_bytes: int = 0) -> Fault:
        """Close the connection without an answer, or after the first bytes of one."""
        return cls("drop", lambda _request, normal: replace(normal(), send_only=after_bytes))

    @classmethod
    def text(cls, content: str | None, *, finish_reason: str = "stop") -> Fault:
        """Any content; None is sent as null."""
        reply = Reply(content=content, finish_reason=finish_reason)
        return cls("text", lambda _request, _normal: reply)

    @classmethod
    def invalid_json(cls) -> Fault:
        return cls.text("Certainly! Here is my answer: {score: one, reasoning: 'well'}")

    @classmethod
    def truncated_json(cls) -> Fault:
        """The first half of the right answer, cut by the token limit."""

        def spoil(_request: Request, normal: Normal) -> Reply:
            content = normal().content or ""
            return Reply(content=content[: len(content) // 2], finish_reason="length")

        return cls("truncated_json", spoil)

    @classmethod
    def refusal(cls, text: str = "I cannot help with that.") -> Fault:
        return cls("refusal", lambda _request, _normal: Reply(content=None, refusal=text))

    @classmethod
    def raw(cls, body: bytes, *, status: int = 200, name: str = "raw") -> Fault:
        """Any HTTP body in place of the envelope."""
        return cls(name, lambda _request, _normal: Reply(status=status, body=body))

    @classmethod
    def envelope(cls, change: Callable[[dict[str, Any]], object], *, status: int = 200) -> Fault:
        """The right answer in an envelope that is changed."""

        def spoil(request: Request, normal: Normal) -> Reply:
            whole = json.loads(envelope(request, normal()))
            change(whole)
            return Reply(body=json.dumps(whole).encode(), status=status)

        return cls("envelope", spoil)

    @classmethod
    def fields(cls, **changes: Any) -> Fault:
        """The right answer with other values, of any JSON type, in some of its fields."""

        def spoil(_request: Request, normal: Normal) -> Reply:
            reply = normal()
            fields = {**json.loads(reply.content or "{}"), **changes}
            return replace(reply, content=json.dumps(fields, ensure_ascii=False))

        return cls("fields", spoil)


@dataclass(slots=True)
class FaultRule:
    """When a fault strikes; `seen` counts the requests that it could have struck."""

    fault: Fault
    stage: str | None
    times: float
    after: int
    when: Callable[[Request], bool]
    seen: int = 0

    def strikes(self, request: Request) -> bool:
        if self.stage not in (None, request.stage) or not self.when(request):
            return False
        self.seen += 1
        return self.after < self.seen <= self.after + self.times


@dataclass(slots=True)
class Faults:
    """The faults of a server. Every attempt counts as an occurrence, so a retry uses up `times`
    too."""

    _rules: list[FaultRule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        *,
        fault: Fault,
        stage: str | None = None,
        times: int | None = 1,
        after: int = 0,
        when: Callable[[Request], bool] = lambda _request: True,
    ) -> None:
        """Strike `times` requests (None: all) of `stage` (None: any) for which `when` holds, past
        the first `after`. Of several rules that fit one request, the first added strikes and the
        others do not see it."""
        with self._lock:
            most = math.inf if times is None else times
            self._rules.append(FaultRule(fault, stage, most, after, when))

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def match(self, request: Request) -> Fault | None:
        """The fault that strikes this request, which then counts as struck."""
        with self._lock:
            return next((rule.fault for rule in self._rules if rule.strikes(request)), None)
