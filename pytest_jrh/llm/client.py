"""The only importer of litellm: asks a provider, with one retry policy for every fault of transport.

Provider, base URL and key come from litellm's own conventions (environment variables); a stage's
`api_base` wins over them. Retries inside litellm and the provider SDKs are switched off, so that
each attempt is ours and a cassette never holds the failures of another layer.
"""

from __future__ import annotations

import asyncio
import email.utils
import functools
import json
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_jrh.errors import Unscored
from pytest_jrh.llm.calls import Answer, CallRequest, Stopped
from pytest_jrh.models import Usage
from pytest_jrh.transcript import storable

DEFAULT_TIMEOUT = 120.0
_RETRIED_STATUS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, and the jittered exponential wait between tries, in seconds.

    A provider's Retry-After is obeyed up to `longest_wait`; beyond that, waiting is not worth it.
    """

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after the given failed attempt, counted from 1."""
        if retry_after is not None:
            return min(retry_after, self.longest_wait) + random.uniform(0, 0.1)  # noqa: S311 - jitter
        ceiling = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter


class LiteLLMExchange:
    """Asks models through litellm; one instance, and so one connection pool, per session.

    `limit` bounds the calls in flight. `notices` are sentences for the user, each said once. `api_key`
    replaces the environment's key, for replays that need none. Use it from one event loop only.
    """

    def __init__(self, *, limit: int, retry: RetryPolicy = RetryPolicy(), api_key: str | None = None) -> None:
        self.notices: list[str] = []
        self._retry = retry
        self._api_key = api_key
        self._slots = asyncio.Semaphore(limit)
        self._stopping = asyncio.Event()
        self._without_temperature: set[str] = set()
        self._without_schema: set[str] = set()

    def stop(self) -> None:
        """Send nothing more; calls in flight go on to their end."""
        self._stopping.set()

    async def aclose(self) -> None:
        """Close the session's connections."""
        litellm = _litellm()
        await litellm.close_litellm_async_clients()

    async def __call__(self, request: CallRequest) -> Answer:
        attempt = 0
        while True:
            attempt += 1
            failure = await self._attempt(request)
            if isinstance(failure, Answer):
                return failure
            if failure.repaired:
                attempt -= 1
                continue
            if not failure.retry or attempt >= self._retry.attempts:
                raise failure.unscored(request, attempt)
            await self._pause(self._retry.wait(attempt, failure.retry_after))

    async def _attempt(self, request: CallRequest) -> Answer | _Failure:
        from openai import OpenAIError

        litellm = _litellm()
        timeout = request.stage.timeout or DEFAULT_TIMEOUT
        async with self._slots:
            if self._stopping.is_set():
                raise Stopped
            try:
                # The provider's own timeout restarts with every chunk; the outer one bounds the whole call.
                async with asyncio.timeout(timeout + 1):
                    response = await litellm.acompletion(**self._arguments(request), timeout=timeout)
            except TimeoutError:
                return _Failure(f"no answer within {timeout:g} s", retry=True)
            except OpenAIError as error:
                return self._repair(request, error) or _failure(error, timeout)
        return _answer(response)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
        raise Stopped

    def _arguments(self, request: CallRequest) -> dict[str, Any]:
        model = request.stage.model
        arguments: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in request.messages],
            **request.parameters,
            "num_retries": 0,
            "max_retries": 0,
            # A cassette keeps no headers but the content type, so bodies travel uncompressed.
            "extra_headers": {"Accept-Encoding": "identity"},
        }
        if model in self._without_temperature:
            arguments.pop("temperature", None)
        if model not in self._without_schema and _litellm().supports_response_schema(model):
            arguments["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": request.stage.stage, "schema": request.schema, "strict": True},
            }
        else:
            arguments["messages"][-1] = with_schema(arguments["messages"][-1], request.schema)
        if request.stage.api_base is not None:
            arguments["api_base"] = request.stage.api_base
        if self._api_key is not None:
            arguments["api_key"] = self._api_key
        return arguments

    def _repair(self, request: CallRequest, error: Exception) -> _Failure | None:
        """Leave out what the model does not take, once and with a notice (semantics A6)."""
        if getattr(error, "status_code", None) != 400:  # noqa: PLR2004 - HTTP's own number
            return None
        model, text = request.stage.model, str(error).lower()
        if "temperature" in text and "temperature" in request.parameters and model not in self._without_temperature:
            self._without_temperature.add(model)
            self.notices.append(f"{model} takes no temperature: it is left out.")
            return _Failure("", repaired=True)
        if ("response_format" in text or "json_schema" in text) and model not in self._without_schema:
            self._without_schema.add(model)
            self.notices.append(f"{model} takes no response schema: the schema is put into the prompt.")
            return _Failure("", repaired=True)
        return None


def with_schema(message: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, str]:
    """A message that asks for JSON in words, for models without structured output."""
    shape = json.dumps(schema, indent=2, ensure_ascii=False)
    return {
        **message,
        "content": f"{message['content']}\n\nAnswer with one JSON object that fits this JSON schema, and with nothing "
        f"else:\n{shape}",
    }


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: str
    retry: bool = False
    retry_after: float | None = None
    refused: bool = False
    repaired: bool = False
    advice: str = ""

    def unscored(self, request: CallRequest, attempts: int) -> Unscored:
        times = "" if attempts == 1 else f" ({attempts} attempts)"
        return Unscored(
            "refused" if self.refused else "model_error",
            stage=request.stage.stage,
            cause=f"{request.stage.model}: {self.cause}{times}.",
            advice=self.advice or "Run again: what has been recorded is kept, and only the missing calls are made.",
        )


def _failure(error: Exception, timeout: float) -> _Failure:
    import litellm.exceptions as known

    status = getattr(error, "status_code", None)
    words = " ".join(str(getattr(error, "message", error)).split())
    words = words if len(words) <= 400 else f"{words[:399]}…"  # noqa: PLR2004 - a paragraph
    if isinstance(error, known.ContentPolicyViolationError):
        return _Failure(f"the provider's content policy stopped the call: {words}", refused=True)
    if isinstance(error, known.Timeout):
        return _Failure(f"no answer within {timeout:g} s", retry=True)
    if isinstance(error, known.APIConnectionError):
        return _Failure(f"no connection: {words}", retry=True, advice=_CONNECTION_ADVICE)
    if isinstance(error, known.AuthenticationError | known.PermissionDeniedError):
        return _Failure(f"the provider refused the key: {words}", advice=_KEY_ADVICE)
    retry = status is None or status in _RETRIED_STATUS or status >= 500  # noqa: PLR2004 - HTTP's own number
    return _Failure(f"HTTP {status}: {words}", retry=retry, retry_after=_retry_after(error))


_CONNECTION_ADVICE = (
    "Check the network and the base URL (the stage's `api_base`, or the provider's environment variable such as "
    "OPENAI_BASE_URL), then run again: only the missing calls are made."
)
_KEY_ADVICE = (
    "Set the provider's key in the environment (for openai/... models: OPENAI_API_KEY), then run again: only the "
    "missing calls are made."
)


def _retry_after(error: Exception) -> float | None:
    headers = getattr(error, "litellm_response_headers", None)
    value = headers.get("retry-after") if headers is not None else None
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _answer(response: Any) -> Answer:
    choice = response.choices[0]
    message = choice.message
    fields = getattr(message, "provider_specific_fields", None) or {}
    usage = getattr(response, "usage", None)
    cost = response._hidden_params.get("response_cost")
    return Answer(
        text=storable(message.content or "")[0],
        finish_reason=choice.finish_reason or "stop",
        refusal=fields.get("refusal"),
        usage=Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else Usage(),
        cost=float(cost) if cost is not None else None,
    )


@functools.cache
def _litellm() -> Any:
    # Without this, litellm fetches its price map from the network while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    # vcrpy records httpx's own transport; litellm's aiohttp one would be recorded twice or not at all.
    litellm.disable_aiohttp_transport = True
    litellm.suppress_debug_info = True
    return litellm
