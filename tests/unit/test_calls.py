import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError, create_model

from pytest_jrh.cases import pipeline
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.sections import RateLimitSection
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import Answer, CallRequest, digest, make_complete, parse, stable_schema
from pytest_jrh.llm.client import Sending, answer_of
from tests.support.conversations import wait_for
from tests.support.scripted import ScriptedExchange

JUDGE = StageModel("judge", "openai/test", temperature=0.5, max_tokens=100)
QUESTION = ({"role": "system", "content": "Judge."}, {"role": "user", "content": "Grüße\n\ud800"})
GOOD = '{"score": 1, "reasoning": "r"}'


def asked(*answers: Answer | str, stage: StageModel = JUDGE) -> tuple[Any, ScriptedExchange]:
    exchange = ScriptedExchange(list(answers))
    return wait_for(make_complete(exchange)(stage, QUESTION, judge_response((0, 1)))), exchange


def trouble(*given: Answer | str, stage: StageModel = JUDGE) -> tuple[Unscored, list[CallRequest]]:
    exchange = ScriptedExchange(list(given))
    with pytest.raises(Unscored) as caught:
        wait_for(make_complete(exchange)(stage, QUESTION, judge_response((0, 1))))
    return caught.value, exchange.requests


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1, "reasoning": "r", "score": 0}',
        '{"score": 1, "reasoning": "r", "sc\\u006fre": 0}',
        '{"score": 1, "reasoning": "r", "score\\u0000": 0}',
        '{"score": 1, "reasoning": "r", "more": [{"a": 1, "a": 2}]}',
    ],
)
def test_a_key_that_an_object_has_twice_is_invalid_and_named_in_the_re_ask(text: str) -> None:
    error, requests = trouble(text, text, text)
    assert error.outcome == "invalid_response"
    assert "more than once" in error.cause
    assert "more than once" in requests[1].messages[-1]["content"]


BAD = ["", "no JSON", '{"score": 1', '{"score": 7, "reasoning": "r"}', '{"reasoning": "r"}', "[]"]


@pytest.mark.parametrize("bad", BAD)
def test_answer_that_does_not_validate_is_asked_again_with_the_error(bad: str) -> None:
    completion, exchange = asked(bad, GOOD)
    assert completion.parsed.score == 1
    first, second = exchange.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2] == {"role": "assistant", "content": bad or "(nothing)"}
    assert second.messages[3]["role"] == "user"
    assert "cannot be used" in second.messages[3]["content"]


def test_re_ask_says_what_was_wrong_and_where() -> None:
    _, exchange = asked('{"score": "high", "reasoning": 3}', GOOD)
    complaint = exchange.requests[1].messages[-1]["content"]
    for said in ("score: ", "0, 1", "(got 'high')", "reasoning: "):
        assert said in complaint
    # The third bad answer is an invalid response.
    error, requests = trouble("one", "two", "three", GOOD)
    assert (error.outcome, error.stage) == ("invalid_response", "judge")
    assert "3 unusable answers" in error.cause
    assert len(requests) == 3


@pytest.mark.parametrize(
    ("finish_reason", "changed", "advice"),
    [
        ("length", {"max_tokens": 50}, "Raise the stage's `max_tokens` (50 now): the answer was"),
        ("length", {"prompt_path": "p/judge.md"}, "Raise the stage's `max_tokens`: the answer was"),
        ("stop", {"prompt_path": "p/judge.md"}, "Make judge.md ask for one JSON object with only"),
        ("stop", {}, "The prompt is the built-in one, so give the stage a model that supports"),
    ],
)
def test_what_to_change_is_told(finish_reason: str, changed: dict[str, Any], advice: str) -> None:
    stage = replace(StageModel("judge", "openai/test"), **changed)
    error, _ = trouble(*[Answer("prose", finish_reason)] * 3, stage=stage)
    assert error.advice.startswith(advice)


@pytest.mark.parametrize(
    "answer", [Answer(GOOD, refusal="I cannot help"), Answer("", finish_reason="content_filter")]
)
def test_refusal_is_not_asked_again(answer: Answer) -> None:
    error, requests = trouble(answer, GOOD)
    assert error.outcome == "refused"
    assert len(requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        *(GOOD, f" \n{GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```\n"),
        f"\n```json\n{GOOD}```",
        # Objects may share their keys.
        '{"score": 1, "reasoning": "r", "more": [{"a": 1}, {"a": 2}], "Score": 0}',
    ],
)
def test_one_object_is_read_bare_or_in_one_fence(text: str) -> None:
    assert parse(text, judge_response((0, 1))).model_dump()["score"] == 1


@pytest.mark.parametrize(
    "text",
    [
        *(f"Here it is: {GOOD}", f"{GOOD}\n{GOOD}", f"```json\n{GOOD}\n```\nThat is all."),
        *(f"[{GOOD}]", json.dumps(GOOD)),
    ],
)
def test_anything_around_the_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse(text, judge_response((0, 1)))


def request(**changes: Any) -> CallRequest:
    stage = replace(JUDGE, **changes)
    return CallRequest(stage, QUESTION, judge_response((0, 1)))


def test_fingerprint_is_what_it_always_was() -> None:
    """Every cassette ever recorded hangs on this value: what is hashed changes on purpose alone."""
    known = "374f4082a50b200c6de2bd6c23e1c7daa3b6a7fd9776e157af86ec95ac002e76"
    assert request().fingerprint == known
    # A schema is part of it: another one voids every recording of that stage.
    for response_model, expected in (
        (pipeline.response_for(pipeline.Turns((2, 4))), "8f1e9a8a0154"),
        (pipeline.EditorResponse, "a578412eaebf"),
        (pipeline.SummaryResponse, "be302c85e9df"),
        (pipeline.VerifierResponse, "66dd024e8ff3"),
        (judge_response((0, 1, 2)), "fec0977c425d"),
    ):
        assert digest(stable_schema(response_model.model_json_schema()))[:12] == expected


@pytest.mark.parametrize(
    ("is_same", "other"),
    [
        # Where and how fast a model is asked; the text of a system prompt is in the messages.
        (True, request(api_base="http://h/v1", prompt_path="other.md", system_prompt="Hello.")),
        (True, request(timeout=3.0, rate_limit=RateLimitSection(calls=1, period=1))),
        (False, request(stage="verifier")),
        (False, request(model="openai/other")),
        (False, request(temperature=0.6)),
        (False, request(temperature=None)),
        (False, request(max_tokens=101)),
        (False, CallRequest(JUDGE, QUESTION[:1], judge_response((0, 1)))),
        (False, CallRequest(JUDGE, QUESTION, judge_response((0, 1, 2)))),
    ],
)
def test_what_changes_the_answer_changes_the_fingerprint(is_same: bool, other: CallRequest) -> None:
    assert (other.fingerprint == request().fingerprint) is is_same


def test_what_pydantic_words_anew_from_version_to_version_is_left_out() -> None:
    field, title = {"type": "integer", "const": 1, "title": "Score"}, {"type": "string"}
    worded = {"title": "X", "description": "y", "properties": {"score": field, "title": title}}
    assert stable_schema(worded) == {"properties": {"score": {"enum": [1]}, "title": title}}
    one_of = {"anyOf": [{"title": "t", "enum": [1, 2], "type": "integer"}]}
    assert stable_schema(one_of) == {"anyOf": [{"enum": [1, 2]}]}


def test_true_is_no_number_whatever_the_model_of_an_answer() -> None:
    opinion = create_model("Opinion", score=(int, ...))
    for text in ('{"score": true}', '{"score": "1"}', '{"score": 1.0}'):
        with pytest.raises(ValidationError):
            parse(text, opinion)


@pytest.mark.parametrize(
    ("cost", "kept"),
    [
        (0.25, 0.25),
        (0, 0.0),
        *((None, None), (-1.0, None), (float("nan"), None), (1e308, None)),
        pytest.param(10**400, None, id="a 401-digit integer"),
    ],
)
def test_a_cost_that_no_cassette_could_keep_is_none(cost: object, kept: float | None) -> None:
    message = SimpleNamespace(content="{}", tool_calls=None, provider_specific_fields=None)
    response = SimpleNamespace(
        model_dump=lambda **_: {},
        choices=[SimpleNamespace(message=message, finish_reason="stop")],
        usage=SimpleNamespace(prompt_tokens=3, completion_tokens=2),
        _hidden_params={"response_cost": cost},
    )
    answer = answer_of(response, Sending(frozenset(), "json_schema"))
    assert isinstance(answer, Answer)
    assert answer.cost == kept
