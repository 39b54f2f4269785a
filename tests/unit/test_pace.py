"""When a call may be sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.model import RateLimit, StageModel
from pytest_jrh.llm.limits import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(calls: int, period: float) -> StageModel:
    return StageModel("judge", "openai/m", rate_limit=RateLimit(calls, period))


def sent_times(pace: Pace, clock: Clock, stage: StageModel, count: int) -> list[float]:
    times: list[float] = []
    while len(times) < count:
        wait = pace.wait(stage)
        if wait:
            clock.now += wait
        else:
            times.append(clock.now)
    return times


@given(st.integers(1, 5), st.floats(0.1, 10), st.integers(1, 4))
def test_no_window_of_the_period_holds_more_calls_than_the_limit(
    calls: int, period: float, processes: int
) -> None:
    clock = Clock()
    times = sent_times(Pace(clock, processes=processes), clock, limited(calls, period), 4 * calls)
    for early, late in zip(times, times[calls:], strict=False):
        assert late - early >= period * processes - 1e-6


def test_a_slow_down_holds_back_every_stage_of_the_model_and_no_other_model() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.slow_down("openai/m", 3.0)
    pace.slow_down("openai/m", 1.0)
    assert pace.wait(StageModel("judge", "openai/m")) == pytest.approx(3.0)
    assert pace.wait(StageModel("planner", "openai/m")) == pytest.approx(3.0)
    assert pace.wait(StageModel("judge", "openai/other")) == 0.0
    clock.now += 3.0
    assert pace.wait(StageModel("judge", "openai/m")) == 0.0
