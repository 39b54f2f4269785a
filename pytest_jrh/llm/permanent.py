"""Permanent failures, which a retry cannot change: exhausted quota, a rejected API key, an unknown
model, a long prompt.

They are not retried (rule F3). Some concern every call to the model, others only the one call.
Where a provider's message leaves that open, only the one call fails: otherwise an error about one
request would leave all other cases without a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

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
class PermanentFailure:
    """A permanent failure: `what` it is, `advice` for the user, and whether it `ends` all calls to
    the model.
    """

    what: str
    advice: str
    ends: bool = True


def permanent_failure(status: int | None, words: str) -> PermanentFailure | None:
    """Classify an answer's status (None: litellm itself rejected the call) and message.

    None where a retry may succeed.
    """
    return next((found for holds, found in _KINDS if holds(status, words)), None)


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


_KINDS: tuple[tuple[Callable[[int | None, str], bool], PermanentFailure], ...] = (
    (
        is_too_long,
        PermanentFailure("the request is too long for the model", _LENGTH_ADVICE, ends=False),
    ),
    (
        _is_unknown_provider,
        PermanentFailure("litellm does not know this provider", _PROVIDER_ADVICE),
    ),
    (
        _is_without_credit,
        PermanentFailure("the account's quota or credit is exhausted", _CREDIT_ADVICE),
    ),
    (_is_bad_key, PermanentFailure("the provider rejected the API key", KEY_ADVICE)),
    (_is_no_access, PermanentFailure("the provider denied access", KEY_ADVICE)),
    (
        lambda status, _: status == _FORBIDDEN,
        PermanentFailure("the provider rejected the request", KEY_ADVICE, ends=False),
    ),
    (
        lambda status, _: status == _NOT_FOUND,
        PermanentFailure("model or URL not found", _MODEL_ADVICE),
    ),
)
