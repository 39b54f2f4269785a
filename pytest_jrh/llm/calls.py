"""One model call as a value: the request, the answer, and the re-asks between the two.

An `Exchange` answers one request with one answer. Around it, `make_complete` builds the `Complete`
that the pipeline and the judge use: it parses strictly and re-asks at most twice, carrying the
validation error. Nothing here knows a provider or a cassette.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ValidationError

from pytest_jrh.errors import Unscored
from pytest_jrh.llm.shapes import explain, parse, shortened_value
from pytest_jrh.models import Completion, ResponseT, StageModel, Usage

MAX_REASKS = 2
# As the response format of that type, in the words of the prompt, or as both.
SchemaSent: TypeAlias = Literal["json_schema", "json_schema+words", "json_object+words", "words"]
_UNSTABLE_SCHEMA_KEYS = frozenset({"title", "description", "default", "examples"})


@dataclass
class Attempts:
    """The attempts at one call: how often it was `sent`, and how many of these had no answer
    (`lost`).

    `refused` names what the provider rejected: "temperature", or a way to send the schema.
    """

    sent: int = 0
    lost: int = 0
    refused: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class CallRequest:
    """One request to a model: `messages` are chat messages of text, with images where the judge
    sends them.

    `recorded` is the answer to be replayed, which holds how the call was sent; None for a new call.
    `repeat` counts, from 1, the times that the same request is made for a case: each has its own
    answer. `case` is the id of the case, for messages; `attempts` is updated by the exchange.
    """

    stage: StageModel
    messages: tuple[Mapping[str, Any], ...]
    response_model: type[BaseModel]
    recorded: Answer | None = None
    case: str = ""
    repeat: int = 1
    attempts: Attempts = field(default_factory=Attempts, compare=False)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the answer, titled with the stage's name."""
        return {**_schema_of(self.response_model), "title": self.stage.stage}

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The sampling parameters that the suite sets; what it does not set is not sent."""
        settings = {"temperature": self.stage.temperature, "max_tokens": self.stage.max_tokens}
        return {name: value for name, value in settings.items() if value is not None}

    @cached_property
    def parts(self) -> dict[str, Any]:
        """Digests of what the fingerprint covers, so that a miss can name the part that differs."""
        parts: dict[str, Any] = {
            "model": self.stage.model,
            "parameters": self.parameters,
            "schema": digest(_stable_schema_of(self.response_model))[:12],
            "messages": [digest(dict(message))[:12] for message in self.messages],
        }
        # A recording of the first one, or one made before there were others, does not say.
        return parts if self.repeat == 1 else {**parts, "repeat": self.repeat}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything that identifies the call (rule G3)."""
        return digest(
            {
                "stage": self.stage.stage,
                "model": self.stage.model,
                "messages": [dict(message) for message in self.messages],
                "parameters": self.parameters,
                "schema": _stable_schema_of(self.response_model),
                "repeat": self.repeat,
            }
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider returned with status 200; `cost` is US dollars, None where no price is known.

    `left_out` names the parameters that the model does not accept and that were not sent:
    "temperature" (and "response_format" in recordings made before `schema_sent`, which is then
    None). `schema_sent` says how the schema of the answer was sent.
    """

    text: str
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    left_out: frozenset[str] = frozenset()
    schema_sent: SchemaSent | None = None


class Stopped(BaseException):
    """The session is stopping: the call was not sent.

    Not an error of the case, so no `Exception`.
    """


class Exchange(Protocol):
    """Answers one request; raises `Unscored` without an answer."""

    def __call__(self, request: CallRequest) -> Awaitable[Answer]: ...


@lru_cache(maxsize=64)
def _schema_of(response_model: type[BaseModel]) -> dict[str, Any]:
    return response_model.model_json_schema()


@lru_cache(maxsize=64)
def _stable_schema_of(response_model: type[BaseModel]) -> object:
    return stable_schema(_schema_of(response_model))


def digest(value: object) -> str:
    """SHA-256 of a JSON value in canonical form, as hex."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def stable_schema(schema: object) -> object:
    """A JSON schema without the parts that differ between pydantic versions."""
    if isinstance(schema, list):
        return [stable_schema(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    stable = {
        key: stable_schema(value)
        for key, value in schema.items()
        if key not in _UNSTABLE_SCHEMA_KEYS
    }
    if "properties" in schema:
        stable["properties"] = {
            name: stable_schema(entry) for name, entry in schema["properties"].items()
        }
    if "const" in stable:
        stable["enum"] = [stable.pop("const")]
    if "enum" in stable:
        stable.pop("type", None)
    return stable


class _Completer:
    def __init__(self, exchange: Exchange, repeat: int) -> None:
        self._exchange = exchange
        self._repeat = repeat

    async def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        asked = tuple(messages)
        fingerprints: list[str] = []
        for reasks_left in range(MAX_REASKS, -1, -1):
            request = CallRequest(stage, asked, response_model, repeat=self._repeat)
            answer = await self._exchange(request)
            fingerprints.append(request.fingerprint)
            _raise_if_refused(stage, answer, tuple(fingerprints))
            try:
                return Completion(answer.text, parse(answer.text, response_model))
            except ValidationError as error:
                complaint = explain(error, answer.text, cut_off=answer.finish_reason == "length")
            if not reasks_left:
                raise Unscored(
                    "invalid_response",
                    stage=stage.stage,
                    cause=f"{stage.model} gave {MAX_REASKS + 1} unusable answers; the last one: "
                    f"{complaint}",
                    advice="Look at the recorded answers in the cassette; a clearer prompt, a "
                    "larger max_tokens, or a model with structured output usually helps. "
                    "--jrh-retry-unscored asks again.",
                    asked=tuple(fingerprints),
                )
            asked = (
                *asked,
                {"role": "assistant", "content": answer.text or "(nothing)"},
                {
                    "role": "user",
                    "content": f"That answer cannot be used: {complaint}\n"
                    "Answer the request again, with one JSON object in the requested shape and "
                    "nothing else.",
                },
            )
        raise AssertionError("unreachable")


def make_complete(exchange: Exchange, *, repeat: int = 1) -> _Completer:
    """Build a `Complete` over an exchange: strict parsing, at most two re-asks carrying the error.

    `repeat` is that of each call (see `CallRequest`). The completer raises `Unscored` with outcome
    `refused` or `invalid_response`, and passes on whatever the exchange raises.
    """
    return _Completer(exchange, repeat)


def _raise_if_refused(stage: StageModel, answer: Answer, asked: tuple[str, ...]) -> None:
    if answer.refusal:
        cause = f"{stage.model} refused: {shortened_value(answer.refusal, 300)}"
    elif answer.finish_reason == "content_filter":
        cause = f"the provider's content filter stopped {stage.model}"
    else:
        return
    raise Unscored(
        "refused",
        stage=stage.stage,
        cause=cause,
        advice="Reword the prompt of this stage, or give the stage another model; "
        "--jrh-retry-unscored asks again.",
        asked=asked,
    )
