"""Asks a provider through litellm, with one retry policy for every fault of transport.

Provider, base URL and key come from litellm's own conventions (environment variables); a stage's
`api_base` wins over them. Retries inside litellm and the provider SDKs are switched off, so that
each attempt is ours and a cassette never holds the failures of another layer.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_jrh.errors import Unscored
from pytest_jrh.llm.budget import Ledger
from pytest_jrh.llm.calls import Answer, CallRequest, Stopped
from pytest_jrh.llm.failures import Failure, failure_of
from pytest_jrh.llm.locks import Slots
from pytest_jrh.llm.pace import Pace
from pytest_jrh.llm.prices import price_of
from pytest_jrh.llm.provider import litellm, missing_keys
from pytest_jrh.models import Usage

DEFAULT_TIMEOUT = 120.0
_NEVER_PAID_STATUS = frozenset({400, 401, 403, 404, 429})
_BUDGET_POLL = 0.1


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, and the jittered exponential wait between tries, in seconds.

    A provider's Retry-After is obeyed; a longer one than `longest_wait` is cut to it.
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

    `limit` bounds the calls in flight, and so do `shared_slots`, one lock file each, over all processes that have
    them. `notices` are sentences for the user, each said once. `api_key`
    replaces the environment's key, for replays that need none. `redact` takes secrets out of what a
    provider says about a failure. Rate limits are shared out over `processes`; `ledger` holds a budget
    that each attempt is entered in before it is sent. Use it from one event loop only.
    """

    def __init__(
        self,
        *,
        limit: int = 10,
        shared_slots: Sequence[Path] = (),
        retry: RetryPolicy = RetryPolicy(),
        api_key: str | None = None,
        redact: Callable[[str], str] = str,
        processes: int = 1,
        ledger: Ledger | None = None,
    ) -> None:
        self.notices: list[str] = []
        self._pace = Pace(time.monotonic, processes=processes)
        self._ledger = ledger
        self._in_flight = 0
        self._retry = retry
        self._api_key = api_key
        self._redact = redact
        self._stopping = asyncio.Event()
        self._slots = Slots(limit, shared_slots, self._stopping.is_set)
        self._without_temperature: set[str] = set()
        self._without_schema: set[str] = set()

    def stop(self) -> None:
        """Send nothing more; calls in flight go on to their end."""
        self._stopping.set()

    async def aclose(self) -> None:
        """Close the session's connections."""
        library = litellm()
        await library.close_litellm_async_clients()
        # Its cache is keyed by the loop's id, which a later session's loop may get again.
        library.in_memory_llm_clients_cache.flush_cache()

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
            wait = self._retry.wait(attempt, failure.retry_after)
            if failure.throttled:
                # One case has met the provider's limit: the others need not run into it one by one.
                self._pace.slow_down(request.stage.model, wait)
            else:
                await self._pause(wait)

    async def _attempt(self, request: CallRequest) -> Answer | Failure:
        while True:
            async with self._slots.one():
                if self._stopping.is_set():
                    raise Stopped
                wait = self._pace.wait(request.stage)
                if not wait:
                    most = self._enter(request)
                    if most is not None:
                        return await self._send(request, most)
                    wait = _BUDGET_POLL
            await self._pause(wait)

    def _enter(self, request: CallRequest) -> float | None:
        """Enter the call in the budget and return the most that it can cost; None asks to wait.

        Raises `Unscored` (over_budget) where the budget does not allow it. What calls in flight have
        promised may come back, so while there are any, waiting is worth it.
        """
        if self._ledger is None:
            return 0.0
        most = 0.0
        if self._ledger.limits.cost is not None:
            price = price_of(request.stage.model)
            most = price.most(request) if price is not None else 0.0
        refusal = self._ledger.enter(most)
        if refusal is None:
            return most
        if most and self._in_flight:
            return None
        raise Unscored("over_budget", stage=request.stage.stage, cause=f"{refusal}.")

    async def _send(self, request: CallRequest, most: float) -> Answer | Failure:
        from openai import OpenAIError

        timeout = request.stage.timeout or DEFAULT_TIMEOUT
        left_out = self._left_out(request)
        actual = most
        self._in_flight += 1
        try:
            # The provider's own timeout restarts with every chunk; the outer one bounds the whole call.
            async with asyncio.timeout(timeout + 1):
                response = await litellm().acompletion(**self._arguments(request, left_out), timeout=timeout)
            answer = _answer(response, left_out)
            if isinstance(answer, Answer) and answer.cost is not None:
                actual = answer.cost
        except TimeoutError:
            return Failure(f"no answer within {timeout:g} s", retry=True)
        except OpenAIError as error:
            if getattr(error, "status_code", None) in _NEVER_PAID_STATUS:
                actual = 0.0
            missing = missing_keys(request.stage.model) if self._api_key is None else []
            failure = self._repair(request, left_out, error) or failure_of(error, timeout, self._redact, missing)
            if failure.keyless:
                actual = 0.0
            return failure
        finally:
            self._in_flight -= 1
            if self._ledger is not None:
                self._ledger.correct(most, actual)
        return answer

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
        raise Stopped

    def _left_out(self, request: CallRequest) -> frozenset[str]:
        """What is not sent of this call, because the model does not take it or the recorded call did without."""
        model = request.stage.model
        refused = {"temperature": self._without_temperature, "response_format": self._without_schema}
        return request.left_out | {name for name, models in refused.items() if model in models}

    def _arguments(self, request: CallRequest, left_out: frozenset[str]) -> dict[str, Any]:
        model = request.stage.model
        arguments: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in request.messages],
            **{name: value for name, value in request.parameters.items() if name not in left_out},
            "num_retries": 0,
            "max_retries": 0,
            # A cassette keeps no headers but the content type, so bodies travel uncompressed.
            "extra_headers": {"Accept-Encoding": "identity"},
        }
        if "response_format" not in left_out and litellm().supports_response_schema(model):
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

    def _repair(self, request: CallRequest, left_out: frozenset[str], error: Exception) -> Failure | None:
        """Leave out what the model does not take, with one notice (semantics A6).

        What counts is what this very attempt sent: others may have learned it while it was on its way.
        """
        if getattr(error, "status_code", None) != 400:  # noqa: PLR2004 - HTTP's own number
            return None
        model, text = request.stage.model, str(error).lower()
        sent = {*request.parameters, "response_format"} - left_out
        if "temperature" in sent and "temperature" in text:
            self._learn(self._without_temperature, model, f"{model} takes no temperature: it is left out.")
            return Failure("", repaired=True)
        if "response_format" in sent and ("response_format" in text or "json_schema" in text):
            notice = f"{model} takes no response schema: the schema is put into the prompt."
            self._learn(self._without_schema, model, notice)
            return Failure("", repaired=True)
        return None

    def _learn(self, models: set[str], model: str, notice: str) -> None:
        if model not in models:
            models.add(model)
            self.notices.append(notice)


def with_schema(message: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, str]:
    """A message that asks for JSON in words, for models without structured output."""
    shape = json.dumps(schema, indent=2, ensure_ascii=False)
    return {
        **message,
        "content": f"{message['content']}\n\nAnswer with one JSON object that fits this JSON schema, and with nothing "
        f"else:\n{shape}",
    }


def _answer(response: Any, left_out: frozenset[str]) -> Answer | Failure:
    if not response.choices:
        return Failure("no usable answer: it holds no choices", retry=True)
    choice = response.choices[0]
    message = choice.message
    fields = getattr(message, "provider_specific_fields", None) or {}
    usage = getattr(response, "usage", None)
    cost = response._hidden_params.get("response_cost")
    return Answer(
        text=message.content or "",
        finish_reason=choice.finish_reason or "stop",
        refusal=fields.get("refusal"),
        usage=Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else Usage(),
        cost=float(cost) if cost is not None else None,
        left_out=left_out,
    )
