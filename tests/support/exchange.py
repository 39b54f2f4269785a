"""One request to the scripted model and one reply of it, as values."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

STAGES = ("planner", "editor", "summary", "verifier", "judge")
UNKNOWN = "unknown"
_OBJECT = re.compile(r"^\{", re.MULTILINE)
_TITLE = re.compile(rf'"title":\s*"({"|".join(STAGES)})"')


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked, and how it was answered. `kind` is "pending" until the answer is out,
    then "answer" or the name of the fault. `started` and `ended` are `time.monotonic()` seconds."""

    index: int
    stage: str
    body: Mapping[str, Any] = field(repr=False)
    started: float
    ended: float | None = None
    kind: str = "pending"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        return list(self.body.get("messages", ()))

    @property
    def text(self) -> str:
        """Everything the client wrote; a model's earlier answers (in a re-ask) are left out."""
        return "\n".join(
            _text_of(message) for message in self.messages if message.get("role") != "assistant"
        )

    @property
    def digest(self) -> str:
        """Equal for requests with equal bodies, whatever the order of their keys."""
        return body_digest(self.body)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema asked for, sent beside the messages or written into one. Empty where
        there is none."""
        sent = _json_schema(self.body).get("schema")
        return sent if sent is not None else _schema_in(self.text, self.stage)

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields that the schema allows."""
        return frozenset(self.schema.get("properties", ()))


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back. `body` replaces the whole envelope. `send_only` closes the connection after
    that many bytes."""

    content: str | None = ""
    finish_reason: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    send_only: int | None = None


Answer: TypeAlias = "Reply | Mapping[str, Any] | str"
AnswerFunction: TypeAlias = Callable[[Request], Answer]


def reply_with(answer: Answer) -> Reply:
    """The reply for an answer given in short: a mapping becomes JSON, text stays as it is."""
    if isinstance(answer, Reply):
        return answer
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return Reply(content=text)


def envelope(request: Request, reply: Reply) -> bytes:
    """The bytes of the HTTP body: the same request and reply always give the same ones."""
    if reply.body is not None:
        return reply.body
    sent = sum(len(_text_of(message)) for message in request.messages) // 4
    received = len(reply.content or reply.refusal or "") // 4
    message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    choice = {"index": 0, "message": message, "logprobs": None}
    usage = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    whole = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1700000000,
        "model": request.model,
        "choices": [{**choice, "finish_reason": reply.finish_reason}],
        "usage": usage,
        "system_fingerprint": "fp_scripted",
    }
    return json.dumps(whole).encode()


def error_body(message: str, code: str) -> bytes:
    """An error as OpenAI words it."""
    error = {"message": message, "type": code, "param": None, "code": code}
    return json.dumps({"error": error}).encode()


def stage_of(body: Mapping[str, Any]) -> str:
    """The stage that asks: the name of the response schema, else the title of the schema in the
    prompt. The last title wins, because a transcript or a rubric may hold one too and the schema
    comes after them."""
    name = _json_schema(body).get("name")
    if name in STAGES:
        return str(name)
    for message in reversed(body.get("messages", ())):
        if message.get("role") != "assistant" and (titles := _TITLE.findall(_text_of(message))):
            return str(titles[-1])
    return UNKNOWN


def _json_schema(body: Mapping[str, Any]) -> Mapping[str, Any]:
    response_format = body.get("response_format") or {}
    return response_format.get("json_schema") or {}


def _schema_in(text: str, stage: str) -> Mapping[str, Any]:
    """The last JSON object that starts a line and has the stage for its title."""
    decoder = json.JSONDecoder()
    for start in reversed([match.start() for match in _OBJECT.finditer(text)]):
        try:
            found, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if found.get("title") == stage:
            return dict(found)
    return {}


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def body_digest(body: Mapping[str, Any]) -> str:
    """Equal for equal request bodies, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
