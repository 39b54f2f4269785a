"""What judges' code gives that is no verdict is an outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.results import Verdict
from pytest_jrh.judges.judge import CodeAnswer, judged_case
from pytest_jrh.judges.own_code import Scoring
from pytest_jrh.judges.python import answer_of
from tests.support.made_cases import make_case

CASE = judged_case(make_case(), show_reasoning=True)


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
        answer_of(score, Scoring("The judge j", {"I": 1, "C": 0}))
    assert caught.value.outcome == "invalid_response"
    assert said in caught.value.cause


def _verdict(value: Any, threshold: float | None = None) -> Verdict:
    return Scoring("The judge j", None, threshold).verdict(CodeAnswer(value, "why"), CASE)


@pytest.mark.parametrize(
    ("value", "score"), [(0.6, 1), (0.59, 0), (1, 1), (0, 0), (np.float64(0.7), 1)]
)
def test_a_probability_is_the_verdict_of_its_threshold(value: float, score: int) -> None:
    assert _verdict(value, 0.6) == Verdict(score, "why", float(value))
    scorer = Scoring("The judge j", {"C": 0, "I": 1}, 0.6, one_passes=True)
    assert scorer.verdict(CodeAnswer(value, "why"), CASE) == Verdict(1 - score, "why", 1 - value)


@pytest.mark.parametrize("value", [True, float("nan"), -0.1, 1.01, "0.5", None, np.float32(0.5)])
def test_what_is_no_probability_is_no_verdict(value: object) -> None:
    with pytest.raises(Unscored, match="`threshold` needs a number from 0 to 1") as caught:
        _verdict(value, 0.6)
    assert caught.value.outcome == "invalid_response"
    with pytest.raises(Unscored, match="a probability needs `threshold`"):
        _verdict(0.7)
