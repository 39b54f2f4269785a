"""What judge, verifier and summarizer are asked, and what is read of their answers."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_jrh.cases.pipeline import ConversationSummarizer, Goal, make_llm_verifier
from pytest_jrh.core.calls import Complete, StageModel
from pytest_jrh.core.cases import Rubric, Unscored, Verdict, Verification
from pytest_jrh.core.scales import ScoreLevel, scale_of
from pytest_jrh.judges.judge import (
    PROMPT,
    JudgedCase,
    JudgedRubric,
    JudgeSettings,
    PromptJudge,
    TogetherPrompt,
    judge_response,
    key_of,
    value_of,
)
from pytest_jrh.judges.python import TogetherPython, supplied_judge
from pytest_jrh.llm.calls import load_template, make_complete, parse, parse_prompt
from tests.support.conversations import (
    MESSAGES,
    MODEL,
    ORDINAL,
    judge_settings,
    stage,
    verdict_of,
    wait_for,
)
from tests.support.scripted import ScriptedExchange, ScriptedModel
from tests.unit.test_judge import case

LEVELS = (ScoreLevel(1, "rude"), ScoreLevel(2, ""), ScoreLevel(3, "kind"))
RUBRICS = (
    Rubric("polite", "It is kind.\nAlways."),
    Rubric("</rubrics>", "It is markup."),
    Rubric("how kind", "How kind?", answers=scale_of(LEVELS)),
)
SETTINGS = JudgeSettings(None, StageModel("judge", "m"), rubrics=RUBRICS)


def asked(settings: JudgeSettings = SETTINGS) -> TogetherPrompt:
    judge = PROMPT.build(settings, "binary", "")
    assert isinstance(judge, TogetherPrompt)
    return judge


def test_the_prompt_holds_each_rubric_below_its_id() -> None:
    text = asked().question(RUBRICS[0])["rubrics"]
    assert text == (
        '"polite":\n  It is kind.\n  Always.\n\n"</rubrics>":\n  It is markup.\n\n"how kind":\n'
        "  How kind?\n\n  Scores:\n  1: rude\n  2: (no description)\n  3: kind"
    )
    assert text in asked().prompt
    # The judge is another one where any rubric, or their order, is.
    reworded = (replace(RUBRICS[0], instructions="It is kind."), *RUBRICS[1:])
    others = [SETTINGS, *(replace(SETTINGS, rubrics=new) for new in (reworded, RUBRICS[::-1], ()))]
    assert len({asked(other).fingerprint for other in others[:3]}) == 3
    assert PROMPT.build(others[3], "binary", "").__class__ is PromptJudge


def said(score: object, reasoning: object = "So it is.") -> dict[str, object]:
    return {"reasoning": reasoning, "score": score}


def verdicts(answer: object) -> list[int | str]:
    """What is read of an answer under each rubric: the score, or why there is none."""
    judge, found = asked(), list[int | str]()
    parsed = parse(json.dumps(answer), judge.shape(RUBRICS[0]))
    for rubric in RUBRICS:
        try:
            found.append(judge.verdict(parsed, rubric).score)
        except Unscored as trouble:
            is_alone = trouble.outcome == "invalid_response" and trouble.alone
            found.append(trouble.cause.partition(": ")[2] if is_alone else "not alone")
    return found


MISSING = "the verdict is missing."


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ([said(0), said(1), said(3)], [0, 1, 3]),
        ([said(0), None, said(3)], [0, MISSING, 3]),
        ([said(0), "violated", said(3)], [0, "the answer: must be an object (got 'violated').", 3]),
        ([said(0), said(True), said(3)], [0, "score: must be one of 0, 1 (got 'true').", 3]),
        ([said(0), said(1), said(0)], [0, 1, "score: must be one of 1, 2, 3 (got '0')."]),
        ([said(0), said([[1]]), said(3)], [0, "score: must be one of 0, 1 (got '[[1]]').", 3]),
        ([said(0), said(1, 7), said(3)], [0, "reasoning: must be a text (got '7').", 3]),
    ],
)
def test_a_mistake_of_one_rubric_leaves_others(answer: list[Any], wanted: list[int | str]) -> None:
    by_id = dict(zip((rubric.id for rubric in RUBRICS), answer, strict=True))
    assert verdicts(by_id) == wanted
    others = {f"<b>{number}</b>": said(0) for number in range(10_000)}
    assert verdicts({**others, **by_id}) == wanted


SATISFIED = '{"reasoning": "", "score": 0}'
UNUSABLE = ["{}", "[]", '"violated"', "polite: 0", '{"polite": "violated", "how kind": 2}']
UNUSABLE += ['{"verdicts": {"polite": 0}}', f'{{"polite": {SATISFIED}, "polite": {SATISFIED}}}']


@pytest.mark.parametrize("text", UNUSABLE)
def test_an_answer_without_a_usable_verdict_is_asked_for_again(text: str) -> None:
    with pytest.raises(ValidationError):
        parse(text, asked().shape(RUBRICS[0]))


def test_the_schema_has_each_rubric_without_a_reference_or_a_default() -> None:
    schema = asked().shape(RUBRICS[0]).model_json_schema()
    ids = [rubric.id for rubric in RUBRICS]
    assert [*schema["properties"]] == schema["required"] == ids
    assert schema["additionalProperties"] is False
    assert not {"$ref", "$defs", "default"} & {*json.dumps(schema).split('"')}
    assert schema["properties"]["how kind"]["properties"]["score"]["enum"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1, "gave 1; with `together`, a judge must return a mapping of rubric ids to verdicts"),
        (
            {"polit": 0},
            'gave a verdict on "polit", which is not a rubric; "polite" is the nearest id',
        ),
        ({0: 0}, "gave a verdict on 0, which is not a rubric; the rubrics are "),
        ({"polite": {0}}, '{"polite": ["a value of the type set", ""]}'),
        ({"polite": (0, 7), "how kind": (2, "ü")}, '{"polite": [0, null], "how kind": [2, "ü"]}'),
        ({}, "{}"),
    ],
)
def test_a_function_judges_known_rubrics_only(value: Mapping[object, object], wanted: str) -> None:
    judge = supplied_judge(SETTINGS, lambda _case: value)
    assert isinstance(judge, TogetherPython)
    rubrics = tuple(JudgedRubric(rubric.id, rubric.instructions) for rubric in RUBRICS)
    question = JudgedCase(JudgedRubric("", ""), (), rubrics=rubrics)
    if wanted.startswith("{"):
        assert judge.read(judge.scoring(question), value) == (0, wanted)
        return
    with pytest.raises(Unscored) as refused:
        judge.read(judge.scoring(question), value)
    assert wanted in refused.value.cause


def test_a_key_stands_for_a_value_of_its_own_type_and_nothing_else_is_an_answer() -> None:
    keys = ("yes", "no", "7", "-1", "true", "1.5", "007")
    assert [value_of(key) for key in keys] == ["yes", "no", 7, -1, True, "1.5", "007"]
    assert tuple(key_of(value_of(key)) for key in keys) == keys
    for value in ("YES", " yes", 1, "7", 7.0, False, None, ["yes"]):
        answer = json.dumps({"reasoning": "r", "score": value})
        with pytest.raises(ValidationError, match='must be one of "yes", "no", 7, -1, true'):
            parse(answer, judge_response((0, 1), keys))


@pytest.mark.parametrize(("answer", "score"), [("yes", 1), ("no", 0), (5, 1)])
def test_a_binary_judge_answers_in_words(answer: Any, score: int) -> None:
    model = ScriptedModel(judge={"score": answer, "reasoning": "Because."})
    asked = stage("judge", model, prompt="Is it violated, yes or no? {{ rubric }}{{ transcript }}")
    score_map = {"yes": 1, "no": 0, "5": 1}
    assert verdict_of(asked, case(), score_map=score_map) == Verdict(score, "Because.")


ENDS = r"Verdict: (pass|fail)\b"


def test_a_verdict_is_found_in_a_text_or_there_is_none() -> None:
    shape = judge_response((0, 1), ("pass", "fail"), ENDS)
    assert shape.model_json_schema() == {}
    twice = "First I thought Verdict: FAIL, and so it is.\nVerdict: fail."
    for answer, word in (("It keeps to it.\nVerdict: pass", "pass"), (twice, "fail")):
        parsed = parse(answer, shape)
        assert (parsed.score, parsed.reasoning) == (word, answer)
    neither = "Verdict: pass\nVerdict: fail", "It does not pass.", "Verdict: passable", ""
    for answer in (*neither, '{"score": 1, "reasoning": "r"}'):
        with pytest.raises(ValidationError, match="to hold one verdict, one of pass, fail"):
            parse(answer, shape)
    # A group that is not there, and a score that is not on offer, are no verdicts.
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
    with pytest.raises(Unscored, match="has no value for any score of this rubric"):
        verdict_of(asked, case(target=1), score_map={"excellent": 9})


def test_a_map_is_part_of_what_makes_a_judge_this_judge() -> None:
    model = StageModel("judge", "openai/x")
    template = parse_prompt("{{ rubric }}{{ transcript }}", "p", stage="judge")
    settings = [judge_settings(model, verdict=pattern) for pattern in (ENDS, "(pass|fail)")]
    for score_map in (None, {"yes": 1, "no": 0}, {"yes": 0, "no": 1}):
        settings.append(judge_settings(model, score_map=score_map))
    assert len({PromptJudge(each, template).fingerprint for each in settings}) == 5


def summarizer(model: ScriptedModel, most: int = 20) -> ConversationSummarizer:
    return ConversationSummarizer(stage("summary", model), MESSAGES, max_messages=most)


def test_only_the_last_turns_are_summarized_under_their_own_numbers() -> None:
    model = ScriptedModel()
    wait_for(summarizer(model, 3).summary())
    text = model.only("summary").text
    assert "It is too late for order 17." in text
    assert "[4] assistant" in text
    assert "bought 45 days ago" not in text


def test_one_state_is_asked_for_once_however_many_wait_also_where_that_fails() -> None:
    down = Unscored("model_error", stage="summary", cause="down")
    for model, fails in ((ScriptedModel(), False), (ScriptedModel(summary=down), True)):
        rolling = summarizer(model)

        async def three(rolling: ConversationSummarizer = rolling) -> list[Any]:
            waiting = [rolling.summary() for _ in range(2)]
            both = await asyncio.gather(*waiting, return_exceptions=True)
            return [*both, *await asyncio.gather(rolling.summary(), return_exceptions=True)]

        first, *others = wait_for(three())
        assert others == [first] * 2
        assert (first is down) == fails
        assert len(model.requests) == 1


def verified(complete: Complete, goal: Goal) -> Verification:
    template = load_template("verifier", mode="ordinal", objective=goal.objective)
    verifier = make_llm_verifier(complete, StageModel("verifier", MODEL), template)
    return wait_for(verifier(MESSAGES, ORDINAL, goal, "What happened."))


def test_the_verifier_is_asked_the_same_whatever_the_goal() -> None:
    model = ScriptedModel(verifier={"verdict": "PASS", "rationale": "", "score": 1})
    for goal in (Goal("fail", 0), Goal("pass", 2)):
        verified(model, goal)
    first, second = model.requests
    assert first == second
    assert "0: ignores the policy\n1: mentions it\n2: follows it" in first.text
    assert "Target" not in first.text


@pytest.mark.parametrize(
    ("verdict", "score"),
    [('"pass"', "1"), ('"MAYBE"', "1"), ("true", "1"), ('"PASS"', "3"), ('"PASS"', '"1"')],
)
def test_all_but_pass_fail_or_a_score_of_the_scale_is_no_verdict(verdict: str, score: str) -> None:
    answer = f'{{"verdict": {verdict}, "rationale": "r", "score": {score}}}'
    with pytest.raises(Unscored) as caught:
        verified(make_complete(ScriptedExchange([answer] * 3)), Goal("fail", 1))
    assert caught.value.outcome == "invalid_response"
