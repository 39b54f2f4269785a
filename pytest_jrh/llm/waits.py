"""How long an answer of a server asks to wait, in whatever form it says so.

Said in so many words (`Retry-After`, `retry-after-ms`, Gemini's `retryDelay`, "Please try again in
1m30s") it is the wait. Else it may follow from the times at which the limits are reset
(`x-ratelimit-reset-tokens`, `anthropic-ratelimit-requests-reset`). A proxy passes headers on in the
body, so that both are read alike.
"""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

LONGEST_WAIT = 600.0
"""In seconds: what a call waits at most. A quota of hours or days is not waited for."""

_MOST_TEXT = 20_000
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = (
    r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|d|days?)(?![a-z])"
)
_AMOUNTS = re.compile(_AMOUNT, re.IGNORECASE)
_DURATION = rf"(?:{_AMOUNT}(?:,?\s?(?:and\s)?)?)+"
_WHOLE_DURATION = re.compile(_DURATION, re.IGNORECASE)
_IN_WORDS = re.compile(
    rf"(?:retry(?:ing)?|again|wait|available|resets?(?= in))\b[^.\d]{{0,40}}(?P<span>{_DURATION})",
    re.IGNORECASE,
)
_EPOCH, _EPOCH_IN_MS = 1e9, 1e11


def asked_wait(headers: Mapping[str, str], body: str) -> float | None:
    """The seconds that an answer asks to wait; None where it does not say."""
    body = body[:_MOST_TEXT]
    values: dict[str, str] = {}
    with contextlib.suppress(ValueError, RecursionError):
        values.update(_leaves("", json.loads(body)))
    values.update({_plain(name): value for name, value in headers.items()})
    told = [_seconds(found["span"]) for found in _IN_WORDS.finditer(body)]
    resets: dict[str, float] = {}
    for name, value in values.items():
        is_told = re.search(r"retry(?:after|delay|in)", name) is not None
        if not is_told and "reset" not in name:
            continue
        wait = _wait(value, in_ms=name.endswith(("ms", "milliseconds")))
        if wait is None or name.endswith("nanos"):
            continue
        if is_told:
            told.append(wait)
        else:
            resets[name] = wait
    if told:
        return max(told)
    used_up = []
    for name, wait in resets.items():
        if values.get(name.replace("reset", "remaining")) == "0":
            used_up.append(wait)
    if used_up:
        return max(used_up)
    # Which of the limits was met is not said.
    return min(resets.values(), default=None)


def _plain(name: str) -> str:
    """A name however it is written: `x-ratelimit-reset` and `X_RateLimitReset` are one."""
    return re.sub("[^a-z]", "", name.lower())


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    """The values in a JSON value, each with the names that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(name + _plain(key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(name, inner)
    else:
        yield name, str(value)


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
    if _WHOLE_DURATION.fullmatch(value):
        return _seconds(value)
    for read in (datetime.fromisoformat, email.utils.parsedate_to_datetime):
        with contextlib.suppress(ValueError, OverflowError):
            return max(0.0, read(value).timestamp() - time_now)
    return None


def _seconds(span: str) -> float:
    total = 0.0
    for number, unit in _AMOUNTS.findall(span):
        short = "ms" if unit.lower().startswith(("ms", "milli")) else unit[0].lower()
        total += float(number) * _SECONDS[short]
    return total
