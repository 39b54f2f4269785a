"""Calls a provider through litellm, with one retry policy for all transport errors.

Provider, base URL and key come from litellm's own conventions (environment variables); a stage's
`api_base` wins over them. Retries inside litellm and the provider SDKs are switched off, so that
each attempt is ours and a cassette never holds the failures of another layer.

The parameters that the model's provider accepts are learned from its errors: litellm's table lists
few models, so a response format is sent wherever the provider's protocol has one, until the
provider rejects it. Models that the table does not list get the schema in the prompt as well: many
servers silently ignore a response format.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

from pytest_jrh.core import Fields, Json, frozen, holding, is_ours
from pytest_jrh.core.calls import Usage
from pytest_jrh.core.cases import Unscored
from pytest_jrh.llm.calls import Answer, CallRequest, SchemaSent, Stopped, TextResponse
from pytest_jrh.llm.limits import EarlyStop, Ledger, Pace, RetryPolicy, Turn, is_loopback, price_for
from pytest_jrh.llm.transport import (
    DEFAULT_TIMEOUT,
    GUARDED,
    Failure,
    Sent,
    UnusableAnswer,
    failure_of,
    http_status,
    litellm,
    missing_keys,
    permanent_failure,
    refusal_in,
    refused_parameter,
    reported_status,
    timed_out,
)

_MOST_TOKENS = 10**12
_MOST_COST = 10**12
# In characters.
_SURELY_A_TOKEN = 8
_NEVER_PAID_STATUS = (400, 401, 403, 404, 429)
_BUDGET_POLL = 0.1
_NO_COUNTS = (
    "{} reported no plausible token counts, so its calls have no price, and --jrh-max-cost counts "
    "the most that each call may cost."
)


def answer_of(response: Any, sending: Sending, documents: Sequence[Any] = ()) -> Answer | Failure:
    """The answer in a response; a failure where there is none, or more than one.

    An answer that `max_tokens` cut off is read like any other: strict parsing accepts only a
    complete object, and text after it would not change it. `documents` are what the server sent.
    """
    refusal = refusal_in([response.model_dump(warnings=False), *documents])
    choices: Sequence[Any] = response.choices or ()
    text, finish_reason = "", "content_filter"
    if refusal is None:
        if len(choices) != 1:
            return Failure(
                f"no usable answer: the response has {len(choices) or 'no'} choices", retry=True
            )
        choice = choices[0]
        text = choice.message.content or ""
        finish_reason = choice.finish_reason or "stop"
        if not isinstance(text, str):
            return Failure("no usable answer: the content of the response is not text", retry=True)
    usage = _usage(response)
    cost = response._hidden_params.get("response_cost")
    # A price computed from no count, or from an impossible one, is not a price; and a cassette with
    # a cost out of all proportion would not be read again.
    if usage is None or not isinstance(cost, int | float) or not 0 <= cost <= _MOST_COST:
        cost = None
    return Answer(
        text=text,
        finish_reason=finish_reason,
        refusal=refusal or None,
        usage=usage or Usage(),
        cost=cost if cost is None else float(cost),
        left_out=sending.left_out,
        schema_sent=sending.schema_sent,
    )


def _usage(response: Any) -> Usage | None:
    """The tokens of a call; None where its server gives no count, or one that cannot be."""
    usage = getattr(response, "usage", None)
    read, written = getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0)
    for count in (read, written):
        if type(count) is not int or not 0 <= count <= _MOST_TOKENS:
            return None
    # litellm gives zeros for what the server left out, and a call reads and writes something.
    texts = [choice.message.content or "" for choice in response.choices or ()]
    if not read or (sum(map(len, texts)) >= _SURELY_A_TOKEN and not written):
        return None
    return Usage(read, written)


@dataclass(eq=False)
class LiteLLMExchange:
    """Calls models through litellm; one instance, and so one connection pool, per session.

    `limit` bounds the calls in flight. `redact` removes secrets from a provider's error messages.
    Each attempt is entered in `pace` and in `ledger`, the budget, before it is sent; none is where
    `stops` says so. Use it from one event loop only.
    """

    limit: int = 10
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    redact: Callable[[str], str] = str
    pace: Pace = field(default_factory=Pace)
    stops: EarlyStop = field(default_factory=EarlyStop)
    ledger: Ledger = field(default_factory=lambda: Ledger(None))

    def __post_init__(self) -> None:
        self._stopping = asyncio.Event()
        self._slots = asyncio.Semaphore(self.limit)
        self._in_flight = 0
        self._negotiation = Negotiation()
        # For the user, each once.
        self.notices = self._negotiation.notices
        self._answers = Counter[Server]()

    def stop(self) -> None:
        """Send no more calls; calls in flight finish."""
        self._stopping.set()

    async def aclose(self) -> None:
        """Close the session's connections."""
        library = litellm()
        await library.close_litellm_async_clients()
        # Its cache is keyed by the loop's id, which a later session's loop may get again.
        library.in_memory_llm_clients_cache.flush_cache()

    async def __call__(self, request: CallRequest) -> Answer:
        attempt = late = 0
        server = server_of(request)
        answers = self._answers[server]
        while True:
            attempt += 1
            failure = await self._attempt(request)
            if isinstance(failure, Answer):
                self._answers[server] += 1
                return failure
            if failure.throttled and self._answers[server] > answers:
                # The limit lets calls through, and this one's turn comes, too.
                attempt, answers = 1, self._answers[server]
            late += failure.timed_out
            if not failure.retry or attempt >= self.retry.attempts or late >= self.retry.timeouts:
                raise failure.unscored(request, attempt)
            wait = self.retry.wait(attempt, failure.retry_after, throttled=failure.throttled)
            if failure.throttled:
                # One case has hit the provider's rate limit, which holds for all others, too.
                self.pace.slow_down(request.stage.model, wait)
            else:
                await self._pause(wait)

    async def _attempt(self, request: CallRequest) -> Answer | Failure:
        while True:
            async with self._slots:
                self._in_flight += 1
                result = None
                try:
                    while result is None:
                        # Before another call is sent, which would be refused for the same.
                        result = await self._try(request)
                finally:
                    self._in_flight -= 1
            if not isinstance(result, float):
                return result
            await self._pause(result)

    async def _try(self, request: CallRequest) -> Answer | Failure | float | None:
        """Send a call where it may be sent now; else the seconds until it is tried again.

        None means that the next attempt leaves out what the model does not accept.
        """
        if self._stopping.is_set():
            raise Stopped
        self.stops.check(request.case, request.needs)
        turn = Turn(request.stage)
        if wait := self.pace.wait(turn):
            return wait
        most = 0.0
        if self.ledger.most_cost is not None and (price := price_for(request.stage)):
            most = price.most(request)
        refusal = self.ledger.enter(most)
        if refusal is None:
            return await self._send(request, most, turn)
        if most and self._in_flight > 1:
            # Calls in flight may cost less than reserved.
            return _BUDGET_POLL
        raise Unscored("over_budget", stage=request.stage.stage, cause=f"{refusal}.")

    async def _send(self, request: CallRequest, most: float, turn: Turn) -> Answer | Failure | None:
        timeout = request.stage.timeout or DEFAULT_TIMEOUT
        sending: Sending | None = None
        actual = most
        sent = Sent(partial(self._sending, turn))
        attempts = request.attempts
        attempts.sent += 1
        try:
            sending = self._negotiation.sending(request)
            # The provider's own timeout restarts with every chunk; the outer one bounds the whole
            # call.
            async with asyncio.timeout(timeout + 1):
                with holding(GUARDED, sent):
                    response = await litellm().acompletion(
                        **arguments(request, sending), timeout=timeout
                    )
            answer = answer_of(response, sending, sent.documents)
            if isinstance(answer, Failure):
                attempts.lost += 1
                return answer
            self._negotiation.answered(request)
            if answer.cost is not None:
                actual = answer.cost
            if answer.usage == Usage():
                model = request.stage.model
                self.notices[model, "tokens"] = _NO_COUNTS.format(model)
        except TimeoutError:
            attempts.lost += 1
            return timed_out(request)
        except Exception as error:
            if is_ours(error) and not isinstance(error, UnusableAnswer):
                raise
            if sending and refusal_in(sent.documents) is not None:
                # In a form that litellm cannot read.
                return answer_of(litellm().ModelResponse(), sending, sent.documents)
            status = http_status(error)
            words = str(error)
            parameter = refused_parameter(error)
            if sending and self._negotiation.repaired(request, sending, status, words, parameter):
                actual = 0.0
                attempts.sent -= status is None
                return None
            was_sent = status is not None or sent.requests > 0
            failure = failure_of(error, request, self.redact, sent=was_sent)
            attempts.sent -= not was_sent
            attempts.lost += was_sent and status is None
            if not was_sent or reported_status(error) in _NEVER_PAID_STATUS:
                actual = 0.0
            return failure
        finally:
            self.ledger.correct(most, actual)
        return answer

    async def _sending(self, turn: Turn, *, is_sent: bool) -> None:
        # The others only wait for their turn, which they have had.
        while turn.sent_at is not None and (wait := self.pace.wait(turn, is_sent=is_sent)):
            await asyncio.sleep(wait)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
        raise Stopped


Server: TypeAlias = "tuple[str, str | None]"
_FALLBACK: Mapping[SchemaSent, SchemaSent] = {
    "json_schema": "json_object+words",
    "json_schema+words": "json_object+words",
    "json_object+words": "words",
}
_NOTICES: Mapping[SchemaSent, str] = {
    "json_object+words": "does not accept response_format json_schema, so json_object is sent, "
    "with the schema in the prompt.",
    "words": "does not accept response_format, so the schema is sent only in the prompt.",
}
_BAD_REQUEST = (400, 422)
# What is sent as the response format.
_NAMES_FORMAT = r"response.?format|json.?(?:schema|object)|\bschema\b"
# Gemma's template, and those of vLLM, do not call it by its name.
_NAMES_SYSTEM = r"\bsystem\b|developer instruction|roles must alternate|messages\W*0\W*role"
# Where what is sent has no other way: the model, and what messages say.
_NAMES_OTHER = r"(?i)\s*(?:model\b|(?:messages|input)(?!.*role))"
# The class that litellm raises where it knows that a provider does not accept a parameter.
_UNSUPPORTED = "UnsupportedParamsError"
# Groq's code for one answer that did not fit the schema, and litellm's class for one prompt that
# was not let through: the next may.
_ABOUT_ONE = r"(?i)json_validate_failed|failed_generation|ContentPolicyViolation"


@frozen
class Sending:
    """How one attempt is sent: `left_out` names parameters that are not sent, `schema_sent` how the
    schema is.

    `renames_limit`: max_tokens is sent as max_completion_tokens. `merges_system`: the system
    message is sent at the beginning of the user's.
    """

    left_out: frozenset[str]
    schema_sent: SchemaSent
    renames_limit: bool = False
    merges_system: bool = False


class Negotiation:
    """What each model of a session accepts; use it from one event loop only.

    A request that is refused is sent otherwise: what the error names, or where it names nothing
    that was sent, and the model has never answered what is sent so, the response format. Other
    requests are sent so only once it was answered: an error about one request, which may contain
    anything, must not change them. `notices` say what a model does not accept, in the order
    learned.
    """

    def __init__(self) -> None:
        self._refused = defaultdict[Server, set[str]](set)
        self.notices: dict[tuple[str, str], str] = {}
        self._answered = set[object]()

    def sending(self, request: CallRequest) -> Sending:
        """How the next attempt at a call is sent.

        Raises litellm's error for an unknown provider.
        """
        refused = request.attempts.refused | self._refused[server_of(request)]
        schema_sent: SchemaSent = "nothing"
        if not issubclass(request.response_model, TextResponse):
            schema_sent = _first_try(request.stage.model)
        while schema_sent in refused:
            schema_sent = _FALLBACK[schema_sent]
        left_out = refused & request.parameters.keys()
        renames_limit = "max_tokens" in left_out
        if renames_limit and _LIMIT not in refused:
            left_out -= {"max_tokens"}
        return Sending(
            frozenset(left_out),
            schema_sent,
            renames_limit,
            has_system(request) and _SYSTEM in refused,
        )

    def repaired(
        self,
        request: CallRequest,
        sending: Sending,
        status: int | None,
        words: str,
        parameter: str = "",
    ) -> bool:
        """Whether to retry in another way, which `sending` then returns.

        `status` is HTTP's, None where litellm itself rejected the call; `parameter` is the one
        that the answer names apart from its `words`. What counts is what this attempt sent: another
        one may have learned the same in the meantime.
        """
        by_itself = status is None and _UNSUPPORTED in words
        if (status not in _BAD_REQUEST and not by_itself) or permanent_failure(status, words):
            return False
        if re.search(_ABOUT_ONE, words):
            return False
        refused = request.attempts.refused
        ways = _other_ways(request, sending)
        for name, rejected in ways.items():
            if re.search(name, parameter or words, re.IGNORECASE):
                refused.add(rejected)
                return True
        # Most servers that refuse something without its name refuse the response format.
        is_proven = _as_sent(request, sending) in self._answered
        if is_proven or re.match(_NAMES_OTHER, parameter) or _NAMES_FORMAT not in ways:
            return False
        refused.add(ways[_NAMES_FORMAT])
        return True

    def answered(self, request: CallRequest) -> None:
        """Record that a model answered: what it refused is not sent again, and a notice is due."""
        model = request.stage.model
        self._refused[server_of(request)] |= request.attempts.refused
        sending = self.sending(request)
        self._answered.add(_as_sent(request, sending))
        for name in sorted(sending.left_out):
            self.notices[model, name] = f"{model} does not accept {name}, so {name} is not sent."
        if sending.schema_sent in _NOTICES:
            self.notices[model, "response_format"] = f"{model} {_NOTICES[sending.schema_sent]}"


_LIMIT, _SYSTEM = "max_completion_tokens", "system"


def _other_ways(request: CallRequest, sending: Sending) -> dict[str, str]:
    """What an attempt has sent that may be sent otherwise, each as what is refused then, by a
    pattern of what an error calls it.
    """
    ways = {}
    for name in request.parameters:
        if name in sending.left_out:
            continue
        if name != "max_tokens":
            ways[rf"\b{re.escape(name)}\b"] = name
        else:
            ways[rf"\b(?:max_tokens|{_LIMIT})\b"] = _LIMIT if sending.renames_limit else name
    if has_system(request) and not sending.merges_system:
        ways[_NAMES_SYSTEM] = _SYSTEM
    if sending.schema_sent in _FALLBACK:
        ways[_NAMES_FORMAT] = sending.schema_sent
    return ways


def _as_sent(request: CallRequest, sending: Sending) -> object:
    return server_of(request), sending, frozenset(request.parameters), has_system(request)


def has_system(request: CallRequest) -> bool:
    """Whether a request has a system message before another one."""
    return len(request.messages) > 1 and request.messages[0]["role"] == "system"


def arguments(request: CallRequest, sending: Sending) -> Json:
    """The call as keyword arguments of litellm's `acompletion`."""
    stage = request.stage
    keywords: Json = {
        "model": stage.model,
        "messages": [dict(message) for message in request.messages],
        **request.parameters,
        "num_retries": 0,
        "max_retries": 0,
        # A cassette keeps no headers but the content type, so bodies travel uncompressed.
        "extra_headers": {"Accept-Encoding": "identity"},
    }
    for name in sending.left_out:
        keywords.pop(name, None)
    if sending.renames_limit and "max_tokens" in keywords:
        keywords[_LIMIT] = keywords.pop("max_tokens")
    if sending.merges_system:
        system, user, *turns = keywords["messages"]
        keywords["messages"] = [_with_text(user, f"{system['content']}\n\n", first=True), *turns]
    if sending.schema_sent.startswith("json_schema"):
        keywords["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": stage.stage, "schema": request.schema, "strict": True},
        }
    elif sending.schema_sent.startswith("json_object"):
        keywords["response_format"] = {"type": "json_object"}
    if sending.schema_sent.endswith("words"):
        # For models without structured output.
        shape = json.dumps(request.schema, indent=2, ensure_ascii=False)
        text = (
            "\n\nAnswer with one JSON object that fits this JSON schema, and with nothing "
            f"else:\n{shape}"
        )
        keywords["messages"][-1] = _with_text(keywords["messages"][-1], text)
    if stage.api_base is not None:
        keywords["api_base"] = stage.api_base
        if is_loopback(stage.api_base) and missing_keys(stage.model):
            # Nobody asks for a key there, but the provider's SDK does.
            keywords["api_key"] = "none"
    return keywords


def _with_text(message: Fields, text: str, *, first: bool = False) -> Json:
    """A message with a text after what it says, or before it."""
    content = message["content"]
    part: Any = text if isinstance(content, str) else [{"type": "text", "text": text}]
    return {**message, "content": part + content if first else content + part}


def server_of(request: CallRequest) -> Server:
    """The server of a call: the model, and the base URL that its stage sets."""
    return request.stage.model, request.stage.api_base


@cache
def _first_try(model: str) -> SchemaSent:
    # For Ollama's models litellm asks the server instead of its table, and blocks meanwhile.
    is_ollama = model.startswith(("ollama/", "ollama_chat/"))
    if not is_ollama and litellm().supports_response_schema(model):
        return "json_schema"
    supported = litellm().get_supported_openai_params(model=model) or ()
    return "json_schema+words" if "response_format" in supported else "words"
