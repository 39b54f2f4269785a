"""How long an answer asks to wait, in the forms that providers write."""

import email.utils
import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.llm.limits import RetryPolicy
from pytest_jrh.llm.transport import asked_wait

NOW = time.time()
OPENAI = "Rate limit reached for gpt-4 on requests per min (RPM): Limit 3, Used 3. {} Visit x."
IN_RFC_3339 = datetime.fromtimestamp(NOW + 33, UTC).isoformat().replace("+00:00", "Z")


def google(delay: object) -> str:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    return json.dumps({"error": {"code": 429, "message": "Resource exhausted.", "details": [info]}})


BODIES = {
    OPENAI.format("Please try again in 1m30s."): 90,
    OPENAI.format("Please try again in 350ms."): 0.35,
    "Please try again in 7m12.5s": 432.5,
    "You exceeded your current quota. Please retry in 19.2s.": 19.2,
    google("19s"): 19,
    google({"seconds": "19", "nanos": 200_000_000}): 19,
    "You have exceeded call rate limit. Please retry after 30 seconds.": 30,
    "Rate limit is exceeded. Try again in 8 seconds.": 8,
    "Please wait 2 minutes and 5 seconds before you try again.": 125,
    "Rate limited, retrying in 12 sec": 12,
    '{"detail": "Request was throttled. Expected available in 17 seconds."}': 17,
    "The limit resets in 5 hours.": 18_000,
    '{"error": {"retry_after": 12.5}}': 12.5,
    '{"retry_after_ms": 1500}': 1.5,
    "Too many requests, please try again later. The limit is 200 requests per day.": None,
    "Limit 10000, please try again.": None,
    "[" * 30_000: None,
}


@pytest.mark.parametrize(("body", "seconds"), BODIES.items())
def test_a_body_says_how_long_to_wait(body: str, seconds: float | None) -> None:
    assert asked_wait({}, body) == (None if seconds is None else pytest.approx(seconds))


BOTH = {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "5h"}
USED_UP = {"x-ratelimit-remaining-requests": "4", "x-ratelimit-remaining-tokens": "0"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30),
        ({"Retry-After": email.utils.formatdate(NOW + 45, usegmt=True)}, 45),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "14000", "retry-after": "14"}, 14),
        ({"x-ms-retry-after-ms": "2000"}, 2),
        ({"x-ratelimit-reset-tokens": "60000ms"}, 60),
        ({"ratelimit-reset": "17"}, 17),
        ({"x-ratelimit-reset": str(int(NOW + 20))}, 20),
        ({"X-RateLimit-Reset": str(int((NOW + 20) * 1000))}, 20),
        ({"anthropic-ratelimit-requests-reset": IN_RFC_3339}, 33),
        # The limit that is used up counts, and else the one that is reset first.
        (BOTH, 1),
        (BOTH | USED_UP, 18_000),
        ({"x-ratelimit-reset-tokens": "5h", "retry-after": "3"}, 3),
        ({"retry-after": "never"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Mon, 01 Jan 999999999999999999999 00:00:00 GMT"}, None),
        ({"retry-after": ""}, None),
        ({"date": email.utils.formatdate(NOW + 45)}, None),
    ],
)
def test_headers_say_how_long_to_wait(
    headers: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    for passed_on in ("", json.dumps({"error": {"metadata": {"headers": headers}}})):
        # A proxy's answer has the headers of the provider in its body.
        wait = asked_wait({} if passed_on else headers, passed_on)
        # Dates have no fractions of a second.
        assert wait == (None if seconds is None else pytest.approx(seconds, abs=1))


@given(st.text('0123456789ms hd.retryagain in:{}"', max_size=200))
def test_no_answer_is_a_traceback(body: str) -> None:
    wait = asked_wait({"retry-after": body}, body)
    assert wait is None or wait >= 0


def test_attempts_outlast_a_minute_where_a_limit_names_no_time() -> None:
    policy = RetryPolicy()
    for asked in (None, 0.1):
        attempts = range(1, policy.attempts)
        waits = [policy.wait(attempt, asked, throttled=True) for attempt in attempts]
        assert sum(waits) > 55
    assert 20 <= policy.wait(1, 20.0, throttled=True) <= 21
