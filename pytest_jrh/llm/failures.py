"""Failed attempts at a call: the cause as text, and whether to retry.

An exhausted quota, a rejected API key, an unknown model and a long prompt are permanent: the same
call fails again. Where a provider's message leaves open whether every call to the model fails, only
the one call does: an error about one request must not leave all other cases without a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.user_code import error_text
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.llm.transport import UnusableAnswer, is_retried, litellm, seconds_asked_for

_BAD_REQUEST, _UNAUTHORIZED, _PAYMENT, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = (
    400,
    401,
    402,
    403,
    404,
    429,
)
# Codes for an account without credit, whatever the status: Anthropic and litellm's proxy answer
# 400, OpenAI 429, DeepSeek 402.
_NO_CREDIT_CODE = re.compile(
    r"insufficient_quota|billing_hard_limit|billing_not_active|insufficient_credits|credit "
    r"balance is too low"
    r"|reached your specified (?:workspace )?api usage limits|budget has been exceeded! current",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient (?:quota|balance|credits?|funds)|out of credits|(?:no|any) credits\b(?! "
    r"(?:were|have been))"
    r"|spending limit|account is not active|exceeded your current quota",
    re.IGNORECASE,
)
# Gemini reports its limits per minute as an exhausted quota, too, but with a time to retry after.
_PASSES = re.compile(
    r"retry.?(?:in|after|delay)|try again in|per.?(?:minute|second)|requests? per|tokens? per",
    re.IGNORECASE,
)
# A gateway's 403 may be about one prompt (a guardrail, a firewall); these words are about the
# account.
_WHO_ASKS = re.compile(
    r"api.?key|permission|not authorized|not have access|access to (?:the |this )?model|account|"
    r"organization|project"
    r"|billing|quota|country, region",
    re.IGNORECASE,
)
# These take precedence: an error about one text does not concern the next one. OpenRouter's 403
# ends in "No credits were charged", and gateways quote what they stopped.
_ABOUT_TEXT = re.compile(
    r"flagged|moderation|guardrail|content.?(?:policy|filter|management)", re.IGNORECASE
)
_BAD_KEY = re.compile(r"(?:api.?key not valid|(?:invalid|incorrect) api.?key)", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.?length|context.?size|context.?window|maximum context|prompt is too long|input is "
    r"too long"
    r"|input token count|too many (?:input )?tokens|request too large|reduce the length|maximum "
    r"(?:number of )?tokens"
    r"|maximum prompt length|range of input length",
    re.IGNORECASE,
)
_REQUEST_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
_TOO_LONG_STATUS = frozenset({_BAD_REQUEST, 413, 422, _TOO_MANY})

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
    "https://docs.litellm.ai/docs/providers lists them."
)
_LENGTH_ADVICE = (
    "Shorten what is sent (a transcript preprocessor such as drop_tool_messages, a smaller "
    "`max_tokens`), or give the stage a model with a longer context."
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt: how to go on, and `cause` and `advice` for the user.

    `throttled` holds back every call to the model; `repaired` means that the next attempt leaves
    out what the model does not accept, and does not count. `keyless` means that no API key is set,
    `timed_out` that no answer came in time, and `ends` that no call to the model can succeed.
    """

    cause: str
    retry: bool = False
    retry_after: float | None = None
    refused: bool = False
    throttled: bool = False
    repaired: bool = False
    keyless: bool = False
    timed_out: bool = False
    ends: bool = False
    advice: str = ""

    def unscored(self, request: CallRequest, attempts: int) -> Unscored:
        """The failure of the whole call, after its last attempt."""
        times = "" if attempts == 1 else f" ({attempts} attempts)"
        return Unscored(
            "refused" if self.refused else "model_error",
            stage=request.stage.stage,
            cause=f"{request.stage.model}: {self.cause.rstrip('.')}{times}.",
            advice=self.advice or (_AGAIN_ADVICE if self.retry else _CHANGE_ADVICE),
            keyless=self.keyless,
        )

    def unasked(self, request: CallRequest, first: str) -> Unscored:
        """The same failure for a call that is not made, because the case `first` failed with it."""
        return Unscored(
            "model_error",
            stage=request.stage.stage,
            cause=f"{request.stage.model}: {self.cause.rstrip('.')}.",
            same_as=first,
        )


def permanent_failure(status: int | None, words: str) -> Failure | None:
    """Classify an answer's status (None: litellm itself rejected the call) and message.

    None where a retry may succeed.
    """
    return next((failure for holds, failure in _PERMANENT if holds(status, words)), None)


def is_too_long(status: int | None, words: str) -> bool:
    """Whether the provider reports that this one request is too long for the model."""
    # Too many tokens per minute are a rate limit, unless this request alone exceeds it.
    pattern = _REQUEST_TOO_LARGE if status == _TOO_MANY else _TOO_LONG
    return status in _TOO_LONG_STATUS and pattern.search(words) is not None


def _is_without_credit(status: int | None, words: str) -> bool:
    if status == _PAYMENT or (
        status in {_BAD_REQUEST, _FORBIDDEN, _TOO_MANY} and _NO_CREDIT_CODE.search(words)
    ):
        return True
    if status == _FORBIDDEN and _ABOUT_TEXT.search(words):
        return False
    return (
        status in {_FORBIDDEN, _TOO_MANY}
        and bool(_NO_CREDIT.search(words))
        and not _PASSES.search(words)
    )


def _is_bad_key(status: int | None, words: str) -> bool:
    return status == _UNAUTHORIZED or (
        status == _BAD_REQUEST and _BAD_KEY.search(words) is not None
    )


def _is_unknown_provider(status: int | None, words: str) -> bool:
    return status is None and "llm provider not provided" in words.lower()


def _is_no_access(status: int | None, words: str) -> bool:
    return (
        status == _FORBIDDEN
        and _WHO_ASKS.search(words) is not None
        and _ABOUT_TEXT.search(words) is None
    )


_PERMANENT: Sequence[tuple[Callable[[int | None, str], bool], Failure]] = (
    (is_too_long, Failure("the request is too long for the model", advice=_LENGTH_ADVICE)),
    (
        _is_unknown_provider,
        Failure("litellm does not know this provider", ends=True, advice=_PROVIDER_ADVICE),
    ),
    (
        _is_without_credit,
        Failure("the account's quota or credit is exhausted", ends=True, advice=_CREDIT_ADVICE),
    ),
    (_is_bad_key, Failure("the provider rejected the API key", ends=True, advice=KEY_ADVICE)),
    (_is_no_access, Failure("the provider denied access", ends=True, advice=KEY_ADVICE)),
    (
        lambda status, _: status == _FORBIDDEN,
        Failure("the provider rejected the request", advice=KEY_ADVICE),
    ),
    (
        lambda status, _: status == _NOT_FOUND,
        Failure("model or URL not found", ends=True, advice=_MODEL_ADVICE),
    ),
)


_LONGEST_WORDS = 400
_LONGEST_PROBE = 3.0
"""Seconds to wait for a connection that is only tried."""
_PORTS = {"http": 80, "https": 443}
_Cause = TypeVar("_Cause", bound=BaseException)
# litellm puts the names of its classes before the provider's message, and a traceback after it.
_CLASS_NAMES = re.compile(
    r"^(?:(?:litellm\.)?\w+(?:Error|Exception): )*(?:\w+(?:Error|Exception) - )?"
)
_TRACEBACK = "Traceback (most recent call last)"


def timed_out(request: CallRequest, timeout: float) -> Failure:
    """No answer came in time."""
    stage = request.stage
    limit = "no `max_tokens` is set"
    if stage.max_tokens is not None:
        limit = f"`max_tokens` is {stage.max_tokens:,}"
    default = " (the default)" if stage.timeout is None else ""
    return Failure(
        f"no answer within {timeout:g} s; `timeout` is {timeout:g}{default} and {limit}",
        retry=True,
        timed_out=True,
        advice="Set a `max_tokens` that ends a runaway answer, or a longer `timeout`, for this "
        "stage or for all of them under `models`; then run again: only the missing calls are "
        "made.",
    )


def failure_of(
    error: Exception, unanswered: Failure, redact: Callable[[str], str], missing: Sequence[str] = ()
) -> Failure:
    """Classify an error of the provider's SDK; `redact` removes secrets from the provider's
    message.

    `unanswered` is the failure to use for a time-out (`timed_out`). `missing` are the environment
    variables of API keys that the model needs and that are not set.
    """
    import httpx

    litellm_errors = litellm().exceptions
    message = _said(error, redact)
    words = _shortened(message)
    if isinstance(error, litellm_errors.ContentPolicyViolationError):
        return Failure(f"the provider's content policy stopped the call: {words}", refused=True)
    if isinstance(error, litellm_errors.Timeout):
        return unanswered
    if unusable := _cause_of(error, UnusableAnswer):
        return Failure(f"no usable answer: {redact(str(unusable))}", advice=_SERVER_ADVICE)
    if broken := _cause_of(error, httpx.TransportError):
        reason = redact(str(broken)) or words
        return Failure(f"no connection: {reason}", retry=True, advice=_CONNECTION_ADVICE)
    answered = http_status(error)
    if answered is None:
        return _refused(error, message, words, missing)
    return _status(error, answered, message, words)


def _said(error: Exception, redact: Callable[[str], str]) -> str:
    """The provider's message on one line, without class names of the SDK and its traceback."""
    message = redact(str(getattr(error, "message", error)))
    line = " ".join(_CLASS_NAMES.sub("", message).split())
    return line.partition(_TRACEBACK)[0].rstrip()


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"


def _cause_of(error: Exception, kind: type[_Cause]) -> _Cause | None:
    """The error itself, or what it was raised from, of this kind."""
    return next((cause for cause in _causes(error) if isinstance(cause, kind)), None)


def unforeseen(error: Exception, unanswered: Failure, redact: Callable[[str], str]) -> Failure:
    """Classify an undocumented error of litellm.

    Arguments as in `failure_of`.
    """
    import httpx

    if isinstance(error, httpx.TransportError | UnusableAnswer):
        return failure_of(error, unanswered, redact)
    words = redact(error_text(error))
    return Failure(
        f"litellm raised {_shortened(words)}",
        advice="The error is inside litellm: another version of it, or what the server answers, "
        "may be the cause. Then run again: recorded calls are kept, and only the missing ones are "
        "made.",
    )


def _refused(error: Exception, message: str, words: str, missing: Sequence[str]) -> Failure:
    """Classify an error of litellm without a server's answer, or about an unreadable one."""
    if missing:
        unset = f"no API key ({' or '.join(missing)} is not set)"
        return Failure(unset, keyless=True, advice=KEY_ADVICE)
    if permanent := permanent_failure(None, message):
        return replace(permanent, cause=f"{permanent.cause}: {words}")
    if isinstance(error, litellm().exceptions.AuthenticationError):
        return Failure(f"the provider rejected the API key: {words}", advice=KEY_ADVICE)
    # litellm gives a status to its own failures, too: an unreadable answer becomes a 500.
    status = reported_status(error)
    retry = status is None or is_retried(status)
    return Failure(f"no usable answer: {words}" if retry else words, retry=retry)


def _status(error: Exception, answered: int, message: str, words: str) -> Failure:
    if permanent := permanent_failure(answered, message):
        return replace(permanent, cause=f"{permanent.cause} (HTTP {answered}): {words}")
    return Failure(
        f"HTTP {answered}: {words}",
        retry=is_retried(answered),
        retry_after=_retry_after(error),
        throttled=answered == 429,  # noqa: PLR2004 - HTTP's own number
    )


def reported_status(error: BaseException) -> int | None:
    """The status that litellm gives an error.

    None where it is not a number but text of the answer's body.
    """
    status = getattr(error, "status_code", None)
    return status if type(status) is int else None


def http_status(error: BaseException) -> int | None:
    """The status of the server's answer; None where the error did not come from an answer."""
    import httpx

    answers = (
        cause.response for cause in _causes(error) if isinstance(cause, httpx.HTTPStatusError)
    )
    return next((answer.status_code for answer in answers), None)


def was_sent(error: BaseException) -> bool:
    """Whether the request left this machine: not where litellm itself rejected it, or there was no
    connection.
    """
    import httpx

    if http_status(error) is not None:
        return True
    if lacks_connection(error):
        return False
    causes = tuple(_causes(error))
    litellm_errors = litellm().exceptions
    if isinstance(error, litellm_errors.BadRequestError | litellm_errors.AuthenticationError):
        return False
    of_answers = httpx.HTTPError | UnusableAnswer | litellm_errors.Timeout | ValueError
    return any(isinstance(cause, of_answers) for cause in causes)


def lacks_connection(error: BaseException) -> bool:
    """Whether there was no connection, so that nothing was sent."""
    import httpx

    return any(
        isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout) for cause in _causes(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


_AGAIN_ADVICE = "Run again: recorded calls are kept, and only the missing ones are made."
_CHANGE_ADVICE = (
    "Change what the provider rejects (the stage's model, its settings or its prompt), then run "
    "again: recorded calls are kept."
)
_SERVER_ADVICE = (
    "Check the base URL (the stage's `api_base`, or the provider's environment variable such as "
    "OPENAI_BASE_URL): it must be the address of the API itself. Then run again: only the missing "
    "calls are made."
)
_CONNECTION_ADVICE = (
    "Check the network and the base URL (the stage's `api_base`, or the provider's environment "
    "variable such as OPENAI_BASE_URL), then run again: only the missing calls are made."
)


def _retry_after(error: Exception) -> float | None:
    headers = getattr(error, "litellm_response_headers", None)
    return None if headers is None else seconds_asked_for(headers.get("retry-after"))
