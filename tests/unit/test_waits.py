"""How long an answer asks to wait, in the forms of providers; and when a call may be sent."""

import email.utils
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.sections import RateLimitSection
from pytest_jrh.llm.limits import Pace, RetryPolicy, Turn
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


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def limited(calls: int, period: float) -> StageModel:
    return StageModel("judge", "openai/m", rate_limit=RateLimitSection(calls=calls, period=period))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.floats(0.1, 10), st.integers(1, 4))
def test_no_period_holds_more_than_the_limit(calls: int, period: float, processes: int) -> None:
    clock = Clock()
    with TemporaryDirectory() as folder:
        paces = [Pace(Path(folder) / "pace.json", clock=clock) for _ in range(processes)]
        times: list[float] = []
        # When calls go out that processes take turns to ask for.
        while len(times) < 4 * calls:
            waits = [pace.wait(Turn(limited(calls, period))) for pace in paces]
            times += [clock.now] * waits.count(0)
            clock.now += min(waits)
    for early, late in zip(times, times[calls:], strict=False):
        assert late - early >= period - 1e-6


def test_a_call_counts_from_when_it_is_sent_and_not_when_it_was_allowed(tmp_path: Path) -> None:
    clock = Clock()
    pace, other = (Pace(tmp_path / "pace.json", clock=clock) for _ in range(2))
    turn, later = Turn(limited(1, 2.0)), Turn(limited(1, 2.0))
    assert pace.wait(turn) == 0.0
    clock.now += 1.5
    assert pace.wait(turn, is_sent=True) == 0.0
    assert other.wait(later) == 2.0
    clock.now += 2.0
    assert other.wait(later) == 0.0
    # Its own turn does not hold it back, and that of another process does.
    assert other.wait(later) == 0.0
    assert pace.wait(turn) == 2.0


@pytest.mark.parametrize("left", ["", '{"openai/m 1/2": [1e9]}'], ids=["half", "another start"])
def test_what_was_left_before_a_restart_holds_nothing_back(tmp_path: Path, left: str) -> None:
    path = tmp_path / "pace.json"
    path.write_text(left)
    path.with_suffix(".lock").touch()
    assert Pace(path, clock=Clock()).wait(Turn(limited(1, 2.0))) == 0.0


def test_a_call_that_cannot_be_counted_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "pace.json").mkdir()
    with pytest.raises(Unscored, match="calls cannot be counted in "):
        Pace(tmp_path / "pace.json").wait(Turn(limited(1, 2.0)))


def test_a_slow_down_holds_back_every_stage_of_the_model_and_no_other_model() -> None:
    clock = Clock()
    pace = Pace(clock=clock)
    pace.slow_down("openai/m", 3.0)
    pace.slow_down("openai/m", 1.0)
    for stage in ("judge", "planner"):
        assert pace.wait(Turn(StageModel(stage, "openai/m"))) == pytest.approx(3.0)
    assert pace.wait(Turn(StageModel("judge", "openai/other"))) == 0.0
    clock.now += 3.0
    assert pace.wait(Turn(StageModel("judge", "openai/m"))) == 0.0
