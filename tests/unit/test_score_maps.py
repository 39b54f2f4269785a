"""Judges that answer with values of their own in place of scores."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.results import Verdict
from pytest_jrh.judges.judge import PromptJudge, judge_response, key_of, value_of
from pytest_jrh.llm.calls import parse, parse_prompt
from tests.support.conversations import judge_settings, stage, verdict_of
from tests.support.scripted import ScriptedModel
from tests.unit.test_judge import case

KEYS = ("yes", "no", "7", "-1", "true", "1.5", "007")


def test_a_key_stands_for_a_value_of_its_own_type() -> None:
    assert [value_of(key) for key in KEYS] == ["yes", "no", 7, -1, True, "1.5", "007"]
    assert tuple(key_of(value_of(key)) for key in KEYS) == KEYS


@pytest.mark.parametrize("value", ["YES", " yes", 1, "7", 7.0, False, None, ["yes"]])
def test_what_is_no_key_is_no_answer(value: Any) -> None:
    answer = json.dumps({"reasoning": "r", "score": value})
    with pytest.raises(ValidationError, match='must be one of "yes", "no", 7, -1, true'):
        parse(answer, judge_response((0, 1), KEYS))


@pytest.mark.parametrize(("answer", "score"), [("yes", 1), ("no", 0), (5, 1)])
def test_a_binary_judge_answers_in_words(answer: Any, score: int) -> None:
    model = ScriptedModel(judge={"score": answer, "reasoning": "Because."})
    asked = stage("judge", model, prompt="Is it violated, yes or no? {{ rubric }}{{ transcript }}")
    score_map = {"yes": 1, "no": 0, "5": 1}
    assert verdict_of(asked, case(), score_map=score_map) == Verdict(score, "Because.")


ENDS = r"Verdict: (pass|fail)\b"


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("It keeps to it.\nVerdict: pass", 0),
        ("First I thought Verdict: FAIL, and so it is.\nVerdict: fail.", 1),
        ("Verdict: pass\nVerdict: fail", None),
        ("It does not pass.", None),
        ("Verdict: passable", None),
        ("", None),
        ('{"score": 1, "reasoning": "r"}', None),
    ],
)
def test_a_verdict_is_found_in_a_text_or_there_is_none(answer: str, score: int | None) -> None:
    shape = judge_response((0, 1), ("pass", "fail"), ENDS)
    assert shape.model_json_schema() == {}
    if score is None:
        with pytest.raises(ValidationError, match="to hold one verdict, one of pass, fail"):
            parse(answer, shape)
    else:
        parsed = parse(answer, shape)
        assert ({"pass": 0, "fail": 1}[parsed.score], parsed.reasoning) == (score, answer)


def test_a_pattern_finds_scores_where_no_map_names_values() -> None:
    """A group that is not there, and a score that is not on offer, are no verdicts."""
    shape = judge_response((1, 2, 3), None, r"(?:\[\[(\d+)\]\]|Score unclear)")
    assert parse("So: [[3]]", shape).score == 3
    for answer in ("Score unclear", "[[4]]", "3"):
        with pytest.raises(ValidationError):
            parse(answer, shape)


MARKS = {"poor": 0, "bad": 0, "good": 2, "excellent": 9}


@pytest.mark.parametrize("table", ["", "{{ score_levels_table }}"])
def test_an_ordinal_judge_sees_the_scale_in_its_own_words(table: str) -> None:
    model = ScriptedModel(judge={"score": "good", "reasoning": "r"})
    prompt = "{{ rubric }}" + table + "{{ transcript }}"
    asked = stage("judge", model, mode="ordinal", prompt=prompt)
    assert verdict_of(asked, case(target=1), score_map=MARKS).score == 2
    text = model.only("judge").text
    assert text.count("poor or bad: ignores the policy\ngood: follows it") == 1
    offered = model.only("judge").response_model.model_json_schema()["properties"]["score"]["enum"]
    assert offered == ["poor", "bad", "good"]


def test_a_map_without_a_score_of_the_rubric_is_an_error_of_the_input() -> None:
    asked = stage("judge", ScriptedModel(), mode="ordinal", prompt="{{ rubric }}{{ transcript }}")
    with pytest.raises(Unscored, match="has no value for any score of this rubric"):
        verdict_of(asked, case(target=1), score_map={"excellent": 9})


def test_a_map_is_part_of_what_makes_a_judge_this_judge() -> None:
    model = StageModel("judge", "openai/x")
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    fingerprints = set()
    for score_map in (None, {"yes": 1, "no": 0}, {"yes": 0, "no": 1}):
        settings = judge_settings(model, score_map=score_map)
        fingerprints.add(PromptJudge(settings, template).fingerprint)
    for pattern in (ENDS, "(pass|fail)"):
        settings = judge_settings(model, verdict=pattern)
        fingerprints.add(PromptJudge(settings, template).fingerprint)
    assert len(fingerprints) == 5
