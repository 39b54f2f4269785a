"""What went wrong with an attempt at a call: in words, and whether another attempt is worth it."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_jrh.errors import Unscored
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.llm.provider import litellm

_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_KEY_STATUS = frozenset({401, 403})
_LONGEST_WORDS = 400
# litellm puts the names of its classes before what the provider said, and a traceback behind what it made of it.
_CLASS_NAMES = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception): )*(?:\w+(?:Error|Exception) - )?")
_TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt: what to do next, and `cause` and `advice` for the user.

    `throttled` holds back every call to the model; `repaired` means that the next attempt leaves out what the
    model does not take, and does not count. `keyless` means that there is no key to ask with.
    """

    cause: str
    retry: bool = False
    retry_after: float | None = None
    refused: bool = False
    throttled: bool = False
    repaired: bool = False
    keyless: bool = False
    advice: str = ""

    def unscored(self, request: CallRequest, attempts: int) -> Unscored:
        """The failure of the whole call, after its last attempt."""
        times = "" if attempts == 1 else f" ({attempts} attempts)"
        return Unscored(
            "refused" if self.refused else "model_error",
            stage=request.stage.stage,
            cause=f"{request.stage.model}: {self.cause.rstrip('.')}{times}.",
            advice=self.advice or "Run again: what has been recorded is kept, and only the missing calls are made.",
            keyless=self.keyless,
        )


def failure_of(error: Exception, timeout: float, redact: Callable[[str], str], missing: Sequence[str] = ()) -> Failure:
    """Read what the provider's SDK raised; `redact` takes secrets out of the provider's words.

    `missing` are the environment variables of keys that the model would need and that are not set.
    """
    import httpx

    known = litellm().exceptions

    words = " ".join(_CLASS_NAMES.sub("", redact(str(getattr(error, "message", error)))).split())
    words = words.partition(_TRACEBACK)[0].rstrip()
    words = words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"
    if isinstance(error, known.ContentPolicyViolationError):
        return Failure(f"the provider's content policy stopped the call: {words}", refused=True)
    if isinstance(error, known.Timeout):
        return Failure(f"no answer within {timeout:g} s", retry=True)
    causes = list(_causes(error))
    broken = next((cause for cause in causes if isinstance(cause, httpx.TransportError)), None)
    if broken is not None:
        return Failure(f"no connection: {redact(str(broken)) or words}", retry=True, advice=_CONNECTION_ADVICE)
    status = getattr(error, "status_code", None)
    retry = status is None or status in _RETRIED_STATUS or status >= 500  # noqa: PLR2004 - HTTP's own number
    # litellm gives a status to failures of its own, too: an unreadable answer becomes a 500.
    answered = http_status(error)
    keyless = answered is None and bool(missing)
    if keyless or answered in _KEY_STATUS or isinstance(error, known.AuthenticationError):
        unset = f"there is no key to ask it with ({' or '.join(missing)} is not set)"
        cause = unset if keyless else f"the provider refused the key: {words}"
        return Failure(cause, keyless=keyless, advice=_KEY_ADVICE)
    if answered is None:
        return Failure(f"no usable answer: {words}" if retry else words, retry=retry)
    throttled = answered == 429  # noqa: PLR2004 - HTTP's own number
    return Failure(f"HTTP {answered}: {words}", retry=retry, retry_after=_retry_after(error), throttled=throttled)


def http_status(error: BaseException) -> int | None:
    """The status that the server answered with; None where no answer led to the error."""
    import httpx

    answers = (cause.response for cause in _causes(error) if isinstance(cause, httpx.HTTPStatusError))
    return next((answer.status_code for answer in answers), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


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
