"""What can go wrong at a model, and when: scripted per stage and per occurrence."""

from __future__ import annotations

import datetime
import email.utils
import json
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tests.support.exchange import Reply, Request, envelope, error_body
from tests.support.obedient import VIOLATION

Normal: TypeAlias = Callable[[], Reply]
Spoil: TypeAlias = Callable[[Request, Normal], Reply]
RetryAfter: TypeAlias = "float | str | datetime.timedelta | datetime.datetime"
_ORIGINAL = re.compile(r"^<(\w*original\w*)>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong: `spoil` makes the reply out of the normal one, after the hold is
    over.

    `hold` is seconds, or a gate that `release` opens; `name` appears as the request's `kind`.
    """

    name: str
    spoil: Spoil
    hold: float | Future[None] = 0.0

    def release(self) -> None:
        """Let go of every request that this `hang` holds, and of those to come."""
        if isinstance(self.hold, Future) and not self.hold.done():
            self.hold.set_result(None)

    @classmethod
    def status(
        cls,
        code: int,
        *,
        retry_after: RetryAfter | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fault:
        """An error status.

        `retry_after` as a number is sent as seconds, as a date or a span as an HTTP date.
        """

        def spoil(_request: Request, _normal: Normal) -> Reply:
            sent = dict(headers or {})
            if retry_after is not None:
                sent["Retry-After"] = _retry_after(retry_after)
            body = error_body(
                f"The scripted model answers {code}.", _ERROR_TYPES.get(code, "api_error")
            )
            return Reply(status=code, headers=sent, body=body)

        return cls(f"status {code}", spoil)

    @classmethod
    def hang(cls, seconds: float | None = None, *, then: Fault | None = None) -> Fault:
        """Hold the answer back for `seconds`, or until `release`.

        Then answer normally, or with the fault `then`.
        """
        return cls(
            "hang", then.spoil if then else _unspoilt, Future() if seconds is None else seconds
        )

    @classmethod
    def drop(cls, after_bytes: int = 0) -> Fault:
        """Close the connection without an answer, or after the first bytes of one."""
        return cls("drop", lambda _request, normal: replace(normal(), send_only=after_bytes))

    @classmethod
    def text(cls, content: str | None, *, finish_reason: str = "stop", name: str = "text") -> Fault:
        """Any content; None is sent as null."""
        return cls(
            name, lambda _request, _normal: Reply(content=content, finish_reason=finish_reason)
        )

    @classmethod
    def invalid_json(cls) -> Fault:
        return cls.text(
            "Certainly! Here is my answer: {score: one, reasoning: 'well'}", name="invalid_json"
        )

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
    def content_filter(cls, content: str | None = None) -> Fault:
        return cls.text(content, finish_reason="content_filter", name="content_filter")

    @classmethod
    def empty(cls) -> Fault:
        return cls.text("", name="empty")

    @classmethod
    def raw(cls, body: bytes, *, status: int = 200, name: str = "raw") -> Fault:
        """Any HTTP body in place of the envelope."""
        return cls(name, lambda _request, _normal: Reply(status=status, body=body))

    @classmethod
    def broken_envelope(cls) -> Fault:
        """HTTP 200 and a complete body that holds half an envelope."""

        def spoil(request: Request, normal: Normal) -> Reply:
            whole = envelope(request, normal())
            return Reply(body=whole[: len(whole) // 2])

        return cls("broken_envelope", spoil)

    @classmethod
    def rewrite(cls, name: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Fault:
        """The right answer with its fields changed."""

        def spoil(_request: Request, normal: Normal) -> Reply:
            reply = normal()
            fields = change(json.loads(reply.content or "{}"))
            return replace(reply, content=json.dumps(fields, ensure_ascii=False))

        return cls(name, spoil)

    @classmethod
    def wrong_schema(cls) -> Fault:
        """Valid JSON that misses the first field of the right answer."""
        return cls.rewrite("wrong_schema", lambda fields: dict(list(fields.items())[1:]))

    @classmethod
    def score(cls, value: Any) -> Fault:
        """The right answer with any JSON value for a score."""
        return cls.rewrite(f"score {value!r}", lambda fields: {**fields, "score": value})

    @classmethod
    def index_out_of_range(cls, index: int = 9999) -> Fault:
        """A plan of one step whose message is not there."""
        step = {
            "message_index": index,
            "goal": f"Change it: {VIOLATION}",
            "rationale": "It is there.",
        }
        return cls.rewrite(
            "index_out_of_range",
            lambda fields: {**fields, "thesis": "A change settles it.", "steps": [step]},
        )

    @classmethod
    def empty_edit(cls) -> Fault:
        return cls.rewrite("empty_edit", lambda fields: {**fields, "new_content": ""})

    @classmethod
    def same_edit(cls, original: str | None = None) -> Fault:
        """An edit that changes nothing: `original`, else what the prompt has in
        `<original_turn>`."""

        def spoil(request: Request, normal: Normal) -> Reply:
            same = _original_in(request.text) if original is None else original
            fields = {**json.loads(normal().content or "{}"), "new_content": same}
            return replace(normal(), content=json.dumps(fields, ensure_ascii=False))

        return cls("same_edit", spoil)


@dataclass(slots=True)
class FaultRule:
    """When a fault strikes.

    `seen` counts the requests that it could have struck, `fired` those that it did.
    """

    fault: Fault
    stage: str | None
    times: int | None
    after: int
    when: Callable[[Request], bool] | None
    seen: int = 0
    fired: int = 0

    def strikes(self, request: Request) -> bool:
        if self.stage not in (None, request.stage) or (
            self.when is not None and not self.when(request)
        ):
            return False
        self.seen += 1
        if self.seen <= self.after or (self.times is not None and self.fired >= self.times):
            return False
        self.fired += 1
        return True


@dataclass(slots=True)
class Faults:
    """The faults of a server.

    Every attempt counts as an occurrence, so a retry uses up `times` too.
    """

    _rules: list[FaultRule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        *,
        fault: Fault,
        stage: str | None = None,
        times: int | None = 1,
        after: int = 0,
        when: Callable[[Request], bool] | None = None,
    ) -> FaultRule:
        """Strike `times` requests (None: all) of `stage` (None: any) for which `when` holds, past
        the first `after`.

        Of several rules that fit one request, the first added strikes and the others do not see it.
        """
        rule = FaultRule(fault, stage, times, after, when)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def match(self, request: Request) -> Fault | None:
        """The fault that strikes this request, which then counts as struck."""
        with self._lock:
            return next((rule.fault for rule in self._rules if rule.strikes(request)), None)


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    404: "not_found",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "overloaded",
}


def _unspoilt(_request: Request, normal: Normal) -> Reply:
    return normal()


def _retry_after(value: RetryAfter) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, datetime.timedelta):
        value = datetime.datetime.now(datetime.UTC) + value
    if isinstance(value, datetime.datetime):
        return email.utils.format_datetime(value.astimezone(datetime.UTC), usegmt=True)
    return f"{value:g}"


def _original_in(prompt: str) -> str:
    found = _ORIGINAL.search(prompt)
    if found is None:
        raise LookupError(
            "the editor's prompt has no <original_turn>; name the text: Fault.same_edit(text)"
        )
    return found[2]
