"""What lies below a call: litellm (imported here alone, for it takes seconds to import), what is
accepted from a server, what its failures mean, and how long they ask to wait.

Answers of a model's server are of bounded size, have status 200, and come from where they were
asked. The guard for this sits in httpcore's connection pools, which every httpx client of litellm
and the provider SDKs goes through, and below vcrpy, which reads answers whole. (litellm's other
transport, aiohttp, is switched off.) It applies to requests made for a suite only, not to other
users of httpx in the process.

An exhausted quota, a rejected API key and an unknown model are permanent: the same call fails
again. Where a provider's message leaves open whether every call to the model fails, only the one
call does: an error about one request must not leave all other cases without a verdict.
"""

from __future__ import annotations

import contextlib
import email.utils
import json
import logging
import math
import os
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from pytest_jrh.core import causes_of, error_text, frozen, printable, shortened
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.documents import leaves
from pytest_jrh.llm.calls import CallRequest


@cache
def litellm() -> Any:
    """litellm, imported when first needed and set up for recording."""
    keep_libraries_local()
    import litellm as library
    from litellm.litellm_core_utils.prompt_templates import image_handling

    _install_guard()
    # vcrpy records httpx's own transport; litellm's aiohttp one would be recorded twice or not at
    # all.
    library.disable_aiohttp_transport = True
    library.suppress_debug_info = True
    library.disable_hf_tokenizer_download = True
    # The URL of an image may be a stranger's: who is sent it fetches it, not this machine.
    image_handling.MAX_IMAGE_URL_DOWNLOAD_SIZE_MB = 0  # type: ignore[attr-defined]
    if "LITELLM_LOG" not in os.environ:
        # What goes wrong is said in the case, without litellm's tracebacks.
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return library


# What litellm looks up by itself: everything, where it is new enough to know the first name.
_NO_LOOK_UPS = (
    "LITELLM_OFFLINE_MODE",
    "LITELLM_LOCAL_MODEL_COST_MAP",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
)


def keep_libraries_local() -> None:
    """Let litellm and tiktoken use the prices, headers and vocabularies that litellm brings.

    Else they download them when they are imported or first used, which is in one case of all where
    a judge's code uses them.
    """
    for name in _NO_LOOK_UPS:
        os.environ.setdefault(name, "True")
    spec = find_spec("litellm")
    locations = spec.submodule_search_locations if spec is not None else None
    for package in locations or ():
        folder = Path(package) / "litellm_core_utils" / "tokenizers"
        if folder.is_dir():
            os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))


def missing_keys(model: str) -> list[str]:
    """The environment variables with a key for the model of which none is set.

    None where it is set, or not needed.
    """
    environment = litellm().validate_environment(model)
    if environment["keys_in_environment"]:
        return []
    missing: list[str] = environment["missing_keys"]
    # litellm names all that a provider may need where one of them is not there.
    return [name for name in missing if "KEY" in name and not os.environ.get(name)]


LONGEST_ANSWER = 32 * 2**20
_OK, _ERROR = 200, 400


class UnusableAnswer(Exception):
    """An answer that is not read; the message says why."""


@dataclass
class Sent:
    """How many requests have left this machine, and the JSON that came as their answers.

    `paced` is awaited before a request goes out, and once it is on its way (`is_sent`).
    """

    paced: Callable[..., Awaitable[None]]
    requests: int = 0
    documents: list[Any] = field(default_factory=list)


GUARDED: ContextVar[Sent | None] = ContextVar("pytest_jrh_guarded", default=None)
"""Notes the HTTP requests to models that are made in a context, which are guarded then."""


def _install_guard() -> None:
    """Put the guard into httpcore, for as long as the process lives."""
    import httpcore

    plain = httpcore.AsyncConnectionPool.handle_async_request

    async def handle(pool: Any, request: Any) -> Any:
        sent = GUARDED.get()
        if sent is None:
            return await plain(pool, request)

        async def trace(event: str, _: object) -> None:
            if event.endswith("send_request_body.complete"):
                await sent.paced(is_sent=True)

        await sent.paced(is_sent=False)
        request.extensions = {**request.extensions, "trace": trace}
        sent.requests += 1
        try:
            response = await plain(pool, request)
        except (httpcore.ConnectError, httpcore.ConnectTimeout):
            sent.requests -= 1
            raise
        if _OK < response.status < _ERROR:
            await response.aclose()
            raise UnusableAnswer(_not_read(response))
        response.stream = _Bounded(response, sent.documents)
        return response

    vars(httpcore)["AsyncConnectionPool"].handle_async_request = handle


def _not_read(response: Any) -> str:
    """Why an answer that is neither 200 nor an error is not read."""
    headers = {name.lower(): value for name, value in response.headers}
    location = headers.get(b"location", b"").decode("latin-1")
    if not location:
        return f"unexpected HTTP status {response.status}"
    origin = "/".join(location.split("/")[:3]) if "://" in location else "another path"
    return (
        f"the server redirects (HTTP {response.status}) to {origin}; redirects are not followed, "
        "because they would send the API key and the case there"
    )


class _Bounded:
    """A response's bytes, up to the maximum length of an answer; `documents` gets their JSON."""

    def __init__(self, response: Any, documents: list[Any]) -> None:
        self._stream = response.stream
        self._headers = response.headers
        self._documents = documents

    async def __aiter__(self) -> AsyncIterator[bytes]:
        import httpx

        # Nothing packed is asked for. Gzip that comes all the same is unpacked for its size, as a
        # small answer may be a large one; what is packed otherwise, or twice, cannot be measured.
        packing = httpx.Headers(self._headers).get("content-encoding", "identity")
        if packing not in ("identity", "gzip"):
            await self.aclose()
            raise UnusableAnswer(
                f"the answer is compressed ({printable(packing)}), which was not requested"
            )
        body = bytearray()
        unpacked: Callable[[bytes], bytes] = bytes
        if packing == "gzip":
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress
        size = 0
        async for chunk in self._stream:
            body += chunk
            with contextlib.suppress(zlib.error):
                size += len(unpacked(chunk))
            if max(size, len(body)) > LONGEST_ANSWER:
                await self.aclose()
                raise UnusableAnswer(f"the answer is longer than {LONGEST_ANSWER // 2**20} MB")
            yield chunk
        # What cannot be read here is litellm's to report.
        with contextlib.suppress(ValueError, httpx.DecodingError):
            response = httpx.Response(_OK, headers=self._headers, content=bytes(body))
            self._documents.append(response.json())

    async def aclose(self) -> None:
        """Give the connection back."""
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()


# The parts of an answer in which providers say how it ended. What a model wrote, and what a server
# repeats of the request, is not among them: its words mean nothing here.
_ENVELOPE = (
    "choices message delta content output candidates incomplete_details promptFeedback "
    "provider_specific_fields"
)
# Of OpenAI and those like it, Azure's filters, Anthropic, Gemini, Bedrock, Cohere and MiniMax.
_FILTERED = (
    r"(?i)(?:\w*reason|.*guardrailaction)=.*(?:refus|filter|safety|guardrail|interven|block|prohibit"
    r"|recitation|spii|toxic|sensitive|moderat|policy)"
    r"|(?:content_filter|prompt_filter|safety)\w*=.*'(?:filtered|blocked)': True"
    r"|output_sensitive=True"
)


def refusal_in(documents: Sequence[Any]) -> str | None:
    """The words of a refusal in the answers of a server; empty where they say without words that
    the model refused or was filtered, None where it did answer.
    """
    refusal = None
    unread = [*documents]
    while unread:
        part = unread.pop()
        if isinstance(part, list):
            unread += part
        elif isinstance(part, dict):
            for name, value in part.items():
                if name == "refusal" and value:
                    return str(value)
                if name in _ENVELOPE.split():
                    unread.append(value)
                elif re.match(_FILTERED, f"{name}={value}"):
                    refusal = ""
    return refusal


_BAD_REQUEST, _UNAUTHORIZED, _PAYMENT, _FORBIDDEN, _NOT_FOUND = 400, 401, 402, 403, 404
_TOO_LARGE, _UNPROCESSABLE, _TOO_MANY = 413, 422, 429
_RETRIED_STATUS = (408, 409, 425, _TOO_MANY)
_FIRST_OF_SERVER = 500
# Anthropic and litellm's proxy answer 400 where there is no credit, OpenAI 429, xAI 403.
_NO_CREDIT = (
    r"(?i)insufficient.(?:quota|balance|credits?)|credit balance is too low|any credits"
    r"|exceeded your current quota|billing.(?:hard.limit|not.active)|spending limit"
    r"|specified (?:workspace )?api usage limits|budget has been exceeded! current"
)
# Gemini reports its limits per minute as an exhausted quota, too, but with a time to retry after.
_PASSES = r"(?i)retry.?(?:in|after|delay)|try again in|per.?(?:minute|second)"
# Its limits per day too, with a time as short, though nothing is let through until the next day.
_DAILY = r"(?i)quotaId\W+\w*PerDay"
_BAD_KEY = r"(?i)api.?key not valid|(?:invalid|incorrect) api.?key"
_TOO_LONG = (
    r"(?i)context.?(?:length|size|window)|maximum (?:context|prompt)|too long|reduce the length"
    r"|input token count|too many (?:input )?tokens|range of input length"
)

KEY_ADVICE = (
    "Set the provider's key in the environment (for openai/... models: OPENAI_API_KEY), then run "
    "again: only the missing calls are made."
)
_CREDIT_ADVICE = (
    "Add credit or raise the limit in the provider's account, or give the stage another model; "
    "then run again: only the missing calls are made."
)
_MODEL_ADVICE = (
    "Check the name of the model and the base URL (the stage's `api_base`, or the provider's "
    "environment variable such as OPENAI_BASE_URL), then run again."
)
_PROVIDER_ADVICE = (
    "Name the provider before the model, as in openai/gpt-4.1-mini; "
    "https://docs.litellm.ai/docs/providers lists the names."
)
_LENGTH_ADVICE = (
    "Shorten what is sent (by a preprocessor such as drop_tool_messages, or a smaller "
    "`max_tokens`), or give the stage a model with a longer context."
)
_AGAIN_ADVICE = "Run again: recorded calls are kept, and only the missing ones are made."
_LATER_ADVICE = (
    "Run again after that time, or give the stage another model: recorded calls are kept, and only "
    "the missing ones are made."
)
_CHANGE_ADVICE = (
    "Change what the provider rejects (the stage's model, its settings or its prompt), then run "
    "again: recorded calls are kept."
)
_SERVER_ADVICE = (
    "Check the network and the base URL (the stage's `api_base`, or the provider's environment "
    "variable such as OPENAI_BASE_URL), which must be that of the API itself. Then run again: "
    "only the missing calls are made."
)
_SETTING_ADVICE = (
    "Nothing was sent. Set what is missing, in the environment or in the stage's section (`model`, "
    "`api_base`, `params`), then run again."
)
_INSIDE_ADVICE = (
    "The error is inside litellm: its version or the server's answer may be the cause. Fix that, "
    "then run again: recorded calls are kept, and only the missing ones are made."
)
DEFAULT_TIMEOUT = 120.0
LONGEST_WAIT = 600.0
"""In seconds: what a call waits at most. A quota of hours or days is not waited for."""
_LONGEST_WORDS = 400
_Cause = TypeVar("_Cause", bound=BaseException)
# litellm puts the names of its classes before the provider's message, and a traceback after it.
_CLASS_NAMES = r"^(?:(?:litellm\.)?\w+(?:Error|Exception): )*(?:(?:\w+(?:Error|Exception) )+- )?"
_TRACEBACK = "Traceback (most recent call last)"


@frozen
class Failure:
    """A failed attempt: how to go on, and `cause` and `advice` for the user.

    `throttled` holds back every call to the model. `keyless` means that no API key is set,
    `timed_out` that no answer came in time, and `ends` that no call to the model can succeed.
    """

    cause: str
    retry: bool = False
    retry_after: float | None = None
    refused: bool = False
    throttled: bool = False
    keyless: bool = False
    timed_out: bool = False
    ends: bool = False
    advice: str = ""

    def unscored(self, request: CallRequest, attempts: int) -> Unscored:
        """The failure of the whole call, after its last attempt."""
        times = "" if attempts == 1 else f" ({attempts} attempts)"
        # What is the same for other cases; how long a request is depends on its own.
        alike = self.cause.partition(":")[0]
        if self.retry or self.refused or self.advice == _LENGTH_ADVICE:
            alike = ""
        return Unscored(
            "refused" if self.refused else "model_error",
            stage=request.stage.stage,
            cause=f"{request.stage.model}: {self.cause.rstrip('.')}{times}.",
            advice=self.advice or (_AGAIN_ADVICE if self.retry else _CHANGE_ADVICE),
            keyless=self.keyless,
            alike=alike,
            ends=self.ends,
        )


def permanent_failure(status: int | None, words: str) -> Failure | None:
    """Classify an answer's status (None: litellm itself rejected the call) and message.

    None where a retry may succeed.
    """
    is_rejected = status in {_BAD_REQUEST, _UNPROCESSABLE}
    if status == _TOO_LARGE or (is_rejected and re.search(_TOO_LONG, words)):
        return Failure("the request is too long for the model", advice=_LENGTH_ADVICE)
    if status is None and "llm provider not provided" in words.lower():
        return Failure("litellm does not know this provider", ends=True, advice=_PROVIDER_ADVICE)
    says_no_credit = re.search(_NO_CREDIT, words) is not None and not re.search(_PASSES, words)
    says_no_credit |= re.search(_DAILY, words) is not None
    if status == _PAYMENT or (status in {_BAD_REQUEST, _FORBIDDEN, _TOO_MANY} and says_no_credit):
        return Failure(
            "the account's quota or credit is exhausted", ends=True, advice=_CREDIT_ADVICE
        )
    if status == _UNAUTHORIZED or (status == _BAD_REQUEST and re.search(_BAD_KEY, words)):
        return Failure("the provider rejected the API key", ends=True, advice=KEY_ADVICE)
    if status == _FORBIDDEN:
        # It may be about one prompt, as of a guardrail.
        return Failure("the provider rejected the request", advice=KEY_ADVICE)
    if status == _NOT_FOUND:
        return Failure("model or URL not found", ends=True, advice=_MODEL_ADVICE)
    return None


def timed_out(request: CallRequest) -> Failure:
    """No answer came in time."""
    return Failure(
        f"no answer within {request.stage.timeout or DEFAULT_TIMEOUT:g} s",
        retry=True,
        timed_out=True,
        advice="Set a `max_tokens` that ends a runaway answer, or a longer `timeout`, for this "
        "stage, or for all stages under `models`; then run again: only the missing calls are made.",
    )


def failure_of(
    error: Exception, request: CallRequest, redact: Callable[[str], str], *, sent: bool
) -> Failure:
    """Classify an error of litellm; `redact` removes secrets from the provider's message.

    Where nothing was `sent`, something is missing on this machine, which no retry changes.
    """
    import httpx
    from openai import OpenAIError

    litellm_errors = litellm().exceptions
    message = redact(str(getattr(error, "message", error)))
    # The provider's, on one line, without class names of the SDK and its traceback.
    message = " ".join(re.sub(_CLASS_NAMES, "", message).split()).partition(_TRACEBACK)[0].rstrip()
    words = shortened(message, _LONGEST_WORDS)
    if isinstance(error, litellm_errors.ContentPolicyViolationError):
        return Failure(f"the provider's content policy stopped the call: {words}", refused=True)
    if isinstance(error, litellm_errors.Timeout):
        return timed_out(request)
    if unusable := _cause_of(error, UnusableAnswer):
        return Failure(f"no usable answer: {redact(str(unusable))}", advice=_SERVER_ADVICE)
    if broken := _cause_of(error, httpx.TransportError):
        reason = redact(str(broken)) or words
        # Where nothing listens, nothing will in a few seconds.
        may_come = _cause_of(error, ConnectionRefusedError) is None
        return Failure(f"no connection: {reason}", retry=may_come, advice=_SERVER_ADVICE)
    if not sent and (absent := _cause_of(error, ImportError)):
        package = _package_of(absent)
        return Failure(
            f"the package {package} is not installed, and litellm needs it for this model",
            ends=True,
            advice=f"Nothing was sent. First pip install '{package}', then run again.",
        )
    if not isinstance(error, OpenAIError):
        # Not one of its documented exceptions.
        return Failure(
            shortened(f"litellm raised {redact(error_text(error))}", _LONGEST_WORDS),
            advice=_INSIDE_ADVICE,
        )
    status = http_status(error)
    if not sent and (missing := missing_keys(request.stage.model)):
        return Failure(
            f"no API key ({' or '.join(missing)} is not set)", keyless=True, advice=KEY_ADVICE
        )
    if permanent := permanent_failure(status, message):
        answered = "" if status is None else f" (HTTP {status})"
        return replace(permanent, cause=f"{permanent.cause}{answered}: {words}")
    if status is not None:
        wait = None
        if failed := _cause_of(error, httpx.HTTPStatusError):
            with contextlib.suppress(httpx.ResponseNotRead):
                message = failed.response.text
            wait = asked_wait(failed.response.headers, message)
        if wait is not None and wait > LONGEST_WAIT and _is_retried(status):
            return Failure(
                f"HTTP {status}, which asks to wait {timedelta(seconds=round(wait))}: {words}",
                ends=True,
                advice=_LATER_ADVICE,
            )
        return Failure(
            f"HTTP {status}: {words}",
            retry=_is_retried(status),
            retry_after=wait,
            throttled=status == _TOO_MANY,
        )
    if not sent:
        return Failure(words, advice=_SETTING_ADVICE)
    # litellm gives a status to its own failures, too: an unreadable answer becomes a 500.
    reported = reported_status(error)
    retry = reported is None or _is_retried(reported)
    return Failure(f"no usable answer: {words}" if retry else words, retry=retry)


def may_pass(error: BaseException) -> bool:
    """Whether an error of code that is not ours may be of the network, or of a busy server."""
    return _cause_of(error, OSError) is not None or _is_retried(reported_status(error) or 0)


def _is_retried(status: int) -> bool:
    """Whether a request that was answered with this HTTP status may succeed when it is repeated."""
    return status in _RETRIED_STATUS or status >= _FIRST_OF_SERVER


_MOST_TEXT = 20_000
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = (
    r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|d|days?)(?![a-z])"
)
_DURATION = rf"(?:{_AMOUNT}(?:,?\s?(?:and\s)?)?)+"
_IN_WORDS = (
    rf"(?i)(?:retry(?:ing)?|again|wait|available|resets?(?= in))\b[^.\d]{{0,40}}"
    rf"(?P<span>{_DURATION})"
)
_EPOCH, _EPOCH_IN_MS = 1e9, 1e11


def asked_wait(headers: Mapping[str, str], body: str) -> float | None:
    """The seconds that an answer asks to wait; None where it does not say.

    What it says in so many words (`Retry-After`, `retry-after-ms`, Gemini's `retryDelay`, "Please
    try again in 1m30s") is the wait. Else it may follow from the times at which the limits are
    reset (`x-ratelimit-reset-tokens`, `anthropic-ratelimit-requests-reset`). A proxy passes headers
    on in the body, so that both are read alike.
    """
    body = body[:_MOST_TEXT]
    values: dict[str, str] = {}
    with contextlib.suppress(ValueError, RecursionError):
        values.update((_plain(name), value) for name, value in leaves(json.loads(body)))
    values.update({_plain(name): value for name, value in headers.items()})
    asked_waits = [_seconds(match["span"]) for match in re.finditer(_IN_WORDS, body)]
    used_up, others = [], []
    for name, value in values.items():
        is_wait = re.search(r"retry(?:after|delay|in)", name) is not None
        if name.endswith("nanos") or not (is_wait or "reset" in name):
            continue
        wait = _wait(value, in_ms=name.endswith(("ms", "milliseconds")))
        if wait is None:
            continue
        if is_wait:
            asked_waits.append(wait)
        elif values.get(name.replace("reset", "remaining")) == "0":
            used_up.append(wait)
        else:
            others.append(wait)
    if waits := asked_waits or used_up:
        return max(waits)
    # Which of the limits was met is not said.
    return min(others, default=None)


def _plain(name: str) -> str:
    """A name however it is written: `x-ratelimit-reset` and `X_RateLimitReset` are one."""
    return re.sub("[^a-z]", "", name.lower())


def _wait(value: str, *, in_ms: bool) -> float | None:
    """The seconds from now on that a value stands for: a number of them, a duration or a time."""
    value = value.strip()
    time_now = time.time()
    with contextlib.suppress(ValueError):
        number = float(value)
        if not math.isfinite(number):
            return None
        if number > _EPOCH_IN_MS:
            number = number / 1000 - time_now
        elif number > _EPOCH:
            number -= time_now
        elif in_ms:
            number /= 1000
        return max(0.0, number)
    if re.fullmatch(_DURATION, value, re.IGNORECASE):
        return _seconds(value)
    for read in (datetime.fromisoformat, email.utils.parsedate_to_datetime):
        with contextlib.suppress(ValueError, OverflowError):
            return max(0.0, read(value).timestamp() - time_now)
    return None


def _seconds(span: str) -> float:
    total = 0.0
    for number, unit in re.findall(_AMOUNT, span, re.IGNORECASE):
        short = "ms" if unit.lower().startswith(("ms", "milli")) else unit[0].lower()
        total += float(number) * _SECONDS[short]
    return total


def refused_parameter(error: Exception) -> str:
    """The parameter that an answer names apart from its message, as OpenAI's do; empty without."""
    body = getattr(error, "body", None)
    parameter = body.get("param") if isinstance(body, dict) else None
    return parameter if isinstance(parameter, str) else ""


def reported_status(error: BaseException) -> int | None:
    """The status that litellm gives an error.

    None where it is not a number but text of the answer's body.
    """
    status = getattr(error, "status_code", None)
    return status if type(status) is int else None


def http_status(error: BaseException) -> int | None:
    """The status of the server's answer; None where the error did not come from an answer."""
    import httpx

    failed = _cause_of(error, httpx.HTTPStatusError)
    if failed is None:
        return None
    return failed.response.status_code


_INSTALLED_AS = {"google": "google-auth", "botocore": "boto3"}
_INSTALLS = r"pip install ['\"]?([\w.\[\]-]+\w\]?)"


def _package_of(absent: ImportError) -> str:
    """The package to install: the one that litellm names, or the one that the module is of."""
    if match := re.search(_INSTALLS, str(absent)):
        return match[1]
    module = _cause_of(absent, ModuleNotFoundError) or absent
    name = (module.name or str(absent)).partition(".")[0]
    return _INSTALLED_AS.get(name, name)


def _cause_of(error: BaseException, kind: type[_Cause]) -> _Cause | None:
    return next((cause for cause in causes_of(error) if isinstance(cause, kind)), None)
