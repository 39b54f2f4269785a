"""The table of judges: which kind a section of a config is of, and that a new one owns its keys."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_jrh import judges
from pytest_jrh.core.model import StageModel
from pytest_jrh.core.sections import ConfigSection, JudgeStage, Text
from pytest_jrh.judges import JUDGES, kind_of, with_own_keys
from pytest_jrh.judges.judge import DEFAULT_JUDGE, JudgeKind, JudgeSettings
from tools.schema import purposes_of_keys

STAGE = StageModel("judge", "")


class CoinKeys(ConfigSection):
    """The keys of a judge that throws a coin."""

    coin: Text | None = None
    """Which coin."""
    seeds: tuple[int, ...] | None = None
    """Its seeds."""


def never_built(*_: Any) -> Any:
    raise AssertionError


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> JudgeKind:
    kind = JudgeKind("coin", never_built, CoinKeys, asks_model=False)
    monkeypatch.setattr(judges, "JUDGES", {DEFAULT_JUDGE: JUDGES[DEFAULT_JUDGE], "coin": kind})
    return kind


def test_a_kind_brings_its_keys_into_the_section_of_a_judge(coin: JudgeKind) -> None:
    section = with_own_keys(JudgeStage)
    assert kind_of(section.model_validate({"coin": "penny", "timeout": 3.0})) is coin
    assert kind_of(section.model_validate({"model": "openai/x"})) is JUDGES[DEFAULT_JUDGE]
    # The keys of every judge come first, as editors show them.
    assert list(section.model_fields) == [*JudgeStage.model_fields, "coin", "seeds"]
    assert purposes_of_keys(section)["coin"] == "Which coin."
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        section.model_validate({"coyn": "penny"})


def test_a_judge_without_a_model_is_called_by_its_kind(coin: JudgeKind) -> None:
    assert JudgeSettings(None, STAGE, kind=coin.key).label == "coin"
