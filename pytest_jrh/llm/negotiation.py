"""What is sent of a call: the parameters that the model's provider accepts, learned from its
errors.

litellm's table lists few models, so a response format is sent wherever the provider's protocol has
one, until the provider rejects it. Models that the table does not list get the schema in the prompt
as well: many servers silently ignore a response format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from pytest_jrh.core.transcript import with_text
from pytest_jrh.llm.calls import CallRequest, SchemaSent
from pytest_jrh.llm.failures import is_too_long
from pytest_jrh.llm.transport import litellm

Server: TypeAlias = "tuple[str, str | None]"
_FALLBACK: Mapping[SchemaSent, SchemaSent] = {
    "json_schema": "json_object+words",
    "json_schema+words": "json_object+words",
    "json_object+words": "words",
}
_NOTICES: Mapping[SchemaSent, str] = {
    "json_object+words": "does not accept response_format json_schema: json_object is sent, with "
    "the schema in the prompt.",
    "words": "does not accept response_format: the schema is sent only in the prompt.",
}
_BAD_REQUEST = frozenset({400, 422})
# The wording of OpenAI, vLLM (guided decoding), Ollama (format), llama.cpp (grammar), LM Studio,
# DeepSeek and Groq. For some providers litellm turns the response format into a forced tool call,
# and no other tools are ever sent.
_NAMES_FORMAT = re.compile(
    r"response.?format|json.?(?:schema|object|mode)|structured.?outputs?|constrained|guided|grammar"
    r"|\b(?:schema|format|tools?|tool_choice)\b",
    re.IGNORECASE,
)
# The class that litellm raises where it knows that a provider does not accept a parameter.
_UNSUPPORTED = "UnsupportedParamsError"
# Groq's code for one answer that did not fit the schema: the next answer may.
_ONE_BAD_ANSWER = re.compile(r"json_validate_failed|failed_generation", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sending:
    """How one attempt is sent: `left_out` names parameters that are not sent, `schema_sent` how the
    schema is.
    """

    left_out: frozenset[str]
    schema_sent: SchemaSent


class Negotiation:
    """What each model of a session accepts; use it from one event loop only."""

    def __init__(self) -> None:
        self._without_temperature: set[Server] = set()
        self._fallen_back: dict[Server, SchemaSent] = {}
        # Only of models that answered: a parameter that was left out in vain proves nothing.
        self._answered_without_temperature: set[Server] = set()
        self._answered_in: dict[Server, SchemaSent] = {}
        self._notices: dict[tuple[str, str], str] = {}

    @property
    def notices(self) -> list[str]:
        """A sentence for each parameter that a model does not accept, in the order learned."""
        return list(self._notices.values())

    def sending(self, request: CallRequest) -> Sending:
        """How the next attempt at a call is sent.

        Raises litellm's error for an unknown provider.
        """
        server, refused = server_of(request), request.attempts.refused
        leaves_out = server in self._without_temperature or "temperature" in refused
        schema_sent = self._fallen_back.get(server) or _first_try(request.stage.model)
        while schema_sent in refused:
            schema_sent = _FALLBACK[schema_sent]
        return Sending(frozenset({"temperature"} if leaves_out else ()), schema_sent)

    def repaired(
        self, request: CallRequest, sending: Sending, status: int | None, words: str
    ) -> bool:
        """Whether to retry with fewer parameters, which `sending` then returns.

        `status` is HTTP's, None where litellm itself rejected the call. What counts is what this
        attempt sent: another one may have learned the same in the meantime.
        """
        server = server_of(request)
        by_itself = (
            status is None
            and _UNSUPPORTED in words
            and ("response_format" in words or "temperature" in words)
        )
        if (status not in _BAD_REQUEST and not by_itself) or is_too_long(status, words):
            return False
        if (
            "temperature" in words.lower()
            and "temperature" in request.parameters.keys() - sending.left_out
        ):
            self._without_temperature.add(server)
            request.attempts.refused.add("temperature")
            return True
        less = _FALLBACK.get(sending.schema_sent)
        if less is None or _ONE_BAD_ANSWER.search(words) or not _NAMES_FORMAT.search(words):
            return False
        if self._fallen_back.get(server) != "words":
            self._fallen_back[server] = less
        request.attempts.refused.add(sending.schema_sent)
        return True

    def answered(self, request: CallRequest, sending: Sending) -> None:
        """Record that a model answered: only then is a notice about the left-out parameters due."""
        model, server = request.stage.model, server_of(request)
        if "temperature" in sending.left_out:
            self._answered_without_temperature.add(server)
            self._notices[model, "temperature"] = (
                f"{model} does not accept temperature: it is not sent."
            )
        notice = _NOTICES.get(sending.schema_sent)
        if notice is not None and self._answered_in.get(server) != "words":
            self._answered_in[server] = sending.schema_sent
            self._notices[model, "response_format"] = f"{model} {notice}"

    def failed(self, request: CallRequest, status: int | None) -> None:
        """Undo what was left out in vain: a request that is rejected without it, too, is rejected
        for another reason.

        An error about one request, which may contain anything, must not change the others.
        """
        server = server_of(request)
        if status not in _BAD_REQUEST or not request.attempts.refused:
            return
        if server not in self._answered_without_temperature:
            self._without_temperature.discard(server)
        proven = self._answered_in.get(server)
        if proven is not None:
            self._fallen_back[server] = proven
        else:
            self._fallen_back.pop(server, None)


def arguments(request: CallRequest, sending: Sending) -> dict[str, Any]:
    """The call as keyword arguments of litellm's `acompletion`."""
    stage = request.stage
    keywords: dict[str, Any] = {
        "model": stage.model,
        "messages": [dict(message) for message in request.messages],
        **{
            name: value
            for name, value in request.parameters.items()
            if name not in sending.left_out
        },
        "num_retries": 0,
        "max_retries": 0,
        # A cassette keeps no headers but the content type, so bodies travel uncompressed.
        "extra_headers": {"Accept-Encoding": "identity"},
    }
    if sending.schema_sent.startswith("json_schema"):
        keywords["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": stage.stage, "schema": request.schema, "strict": True},
        }
    elif sending.schema_sent.startswith("json_object"):
        keywords["response_format"] = {"type": "json_object"}
    if sending.schema_sent.endswith("words"):
        keywords["messages"][-1] = with_schema(keywords["messages"][-1], request.schema)
    if stage.api_base is not None:
        keywords["api_base"] = stage.api_base
    return keywords


def with_schema(message: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A message that asks for JSON in words, for models without structured output."""
    shape = json.dumps(schema, indent=2, ensure_ascii=False)
    return with_text(
        message,
        "\n\nAnswer with one JSON object that fits this JSON schema, and with nothing "
        f"else:\n{shape}",
    )


def server_of(request: CallRequest) -> Server:
    """The server of a call: the model, and the base URL that its stage sets."""
    return request.stage.model, request.stage.api_base


@cache
def _first_try(model: str) -> SchemaSent:
    if _is_known(model):
        return "json_schema"
    supported = litellm().get_supported_openai_params(model=model) or ()
    return "json_schema+words" if "response_format" in supported else "words"


@cache
def _is_known(model: str) -> bool:
    """Whether litellm's table lists the model as supporting a response schema."""
    # For Ollama's models litellm asks the server instead of its table, and blocks meanwhile.
    return not model.startswith(("ollama/", "ollama_chat/")) and bool(
        litellm().supports_response_schema(model)
    )
