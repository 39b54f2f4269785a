"""What judges' code may give, and what comes of it: a score, or an outcome that says why not."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Verdict
from pytest_jrh.engine.own_code import _judged
from pytest_jrh.judges.inspect_code import ScorerJudge
from pytest_jrh.judges.judge import OwnCode, judged_case
from pytest_jrh.judges.own_code import Scale, said_by
from tests.support.made_cases import make_case

CASE = judged_case(make_case(), show_reasoning=True)


class Number:
    """As numpy's numbers: an integer for all who ask, and none."""

    def __int__(self) -> int:
        return 1

    __index__ = __int__


class Mute(str):
    def __repr__(self) -> str:
        raise ValueError("no repr")

    def strip(self, chars: str | None = None, /) -> str:
        raise ValueError("no strip")


def read(value: object, score_map: dict[str, int] | None = None) -> Verdict:
    scale = Scale("The judge j", score_map)
    code = OwnCode(
        "The judge j",
        lambda _: None,
        is_async=False,
        read=said_by,
        verdict=lambda said: scale.verdict(said, CASE),
        timeout=1,
    )
    return _judged(code, value).verdict


@pytest.mark.parametrize("score_map", [None, {"1": 1, "true": 1}])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("inf"), "gave inf"),
        (Number(), f"a value of the type {__name__}.Number"),
        (Mute("x"), "gave a value that cannot be read: ValueError: no repr"),
        (b"1", "a value of the type bytes"),
        ((1, 2, 3), "a value of the type tuple"),
        ("y" * 10**6, "gave 'yyy"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_score_is_an_outcome_in_few_words(
    value: object, said: str, score_map: dict[str, int] | None
) -> None:
    with pytest.raises(Unscored) as caught:
        read(value, score_map)
    assert caught.value.outcome == "invalid_response"
    assert said in caught.value.cause
    assert len(str(caught.value)) < 500


def test_reasoning_is_kept_in_bounds() -> None:
    assert len(read((1, "r" * 10**7)).reasoning) == 20_000
    assert read((1, Mute(" why "))).reasoning == "why"


@pytest.mark.parametrize(
    ("value", "explanation", "said"),
    [
        ({"bad": True, "length": 7}, "Read it.", "gave several values (bad, length), and a judge"),
        (float("nan"), "Too long to read.", "left the case unscored: Too long to read."),
        # As the graders of Inspect did before 0.3.245.
        ({"grade": "I"}, "Grade not found in it: Hm.", "left the case unscored: Grade not found"),
    ],
)
def test_a_score_of_inspect_may_be_no_verdict(value: Any, explanation: str, said: str) -> None:
    from inspect_ai.scorer import Score

    score = Score(value=value, explanation=explanation)
    with pytest.raises(Unscored) as caught:
        ScorerJudge._said(Mock(), score, Scale("The judge j", {"I": 1, "C": 0}))
    assert caught.value.outcome == "invalid_response"
    assert said in caught.value.cause
