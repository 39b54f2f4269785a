"""When a call may be sent."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.sections import RateLimitSection
from pytest_jrh.llm.limits import Pace, Turn


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
