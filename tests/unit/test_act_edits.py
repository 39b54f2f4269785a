"""Cases of `edits: acts`, made by the real perturber with scripted stages."""

import json
import re
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.cases import AgentRun, Message, PerturbationOutcome, Rubric
from pytest_jrh.core.diffs import edited_turns
from pytest_jrh.engine.library import Pipeline
from tests.support.conversations import wait_for
from tests.support.made_cases import undone
from tests.support.scripted import ScriptedModel
from tests.unit.test_acts import call, result, says

USER: Message = {"role": "user", "content": "My lamp A-7731 came broken.", "id": "m0"}
MESSAGES: tuple[Message, ...] = (
    USER,
    {**says("I check who you are.", call("identify", "c1", mail="kim@example.org")), "id": "m1"},
    {**result('{"name": "Kim Brown", "verified": true}', "c1", function="identify"), "id": "m2"},
    {**says("I look it up.", call("find_order", "c2", order="A-7731")), "id": "m3"},
    {**result('{"order": "A-7731", "price": 80.5}', "c2", function="find_order"), "id": "m4"},
    {**says("", call("refund", "c3", order="A-7731", amount=56.0)), "id": "m5"},
    {**result('{"refund": "RF-19", "amount": 56.0}', "c3", function="refund"), "id": "m6"},
    {**says("I have refunded $56.00 for A-7731, as RF-19."), "id": "m7"},
    {"role": "user", "content": "Thanks.", "id": "m8"},
    {**says("You are welcome."), "id": "m9"},
)
RUN = AgentRun("r1", 1, MESSAGES)
RUBRIC = Rubric("refunds", "The agent refunds at most 70.")
FAIL = Goal("fail")
NO_CONTRADICTION = {"contradiction": "", "contradicts_itself": False}
CONFIRMED = {"rationale": "Too much.", "verdict": "FAIL", **NO_CONTRADICTION}


def plan(*steps: tuple[Any, ...]) -> dict[str, Any]:
    """A plan of steps, each with its kind, its turn and, where that has several, its call."""
    names = ("kind", "message_index", "call")
    about = {"call": "", "goal": "Do so.", "rationale": "Why."}
    planned = [about | dict(zip(names, step, strict=False)) for step in steps]
    return {"thesis": "The thesis.", "steps": planned}


def act(arguments: Any, answer: str, **more: Any) -> dict[str, Any]:
    fields = {"words": "", "result": answer, "result_is_error": False, "reason": "So."}
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {**fields, "arguments": written, **more}


def words(text: str) -> dict[str, Any]:
    return {"new_content": text, "reason": "So."}


def refund(amount: float, reference: str = "RF-19", **more: Any) -> dict[str, Any]:
    answer = json.dumps({"refund": reference, "amount": amount})
    return act({"order": "A-7731", "amount": amount}, answer, **more)


NINETY = refund(90.0)
SAID_NINETY = words("I have refunded $90.00 for A-7731, as RF-19.")


def perturbed(
    planned: dict[str, Any], *editor: dict[str, Any], verifier: Any = CONFIRMED, run: Any = MESSAGES
) -> tuple[PerturbationOutcome, ScriptedModel]:
    model = ScriptedModel(planner=planned, editor=list(editor) or words("x"), verifier=verifier)
    perturber = Pipeline.default("scripted/model", edits="acts", max_edit_rounds=7).perturber(model)
    return wait_for(perturber.perturb(AgentRun("r1", 1, run), RUBRIC, FAIL)), model


def made(*asked: dict[str, Any], run: Any = MESSAGES) -> tuple[PerturbationOutcome, ScriptedModel]:
    """The case that comes out, which is its run once undone, and what the stages were asked."""
    outcome, model = perturbed(*asked, run=run)
    assert outcome.no_case is None
    assert json.dumps(undone(outcome.messages, outcome.edits)) == json.dumps(run)
    return outcome, model


def test_changed_call_changes_with_its_result_and_with_what_follows() -> None:
    outcome, model = made(plan(("call", 5)), NINETY, SAID_NINETY)
    first, second = outcome.edits
    assert outcome.messages[5]["tool_calls"][0]["arguments"]["amount"] == 90.0
    assert outcome.messages[5]["tool_calls"][0]["id"] == "c3"
    assert json.loads(outcome.messages[6]["content"])["amount"] == 90.0
    assert (first.kind, first.message_index, first.follows) == ("call", 5, "")
    assert first.original_content == (
        'refund: {"order": "A-7731", "amount": 56.0}\n{"refund": "RF-19", "amount": 56.0}'
    )
    assert (second.kind, second.message_index) == ("say", 7)
    assert second.follows == "[7] still says 56.00"
    assert edited_turns(outcome.edits) == {5, 6, 7}
    assert "Steps allowed: 7." in model.only("planner").text
    assert "Real" not in model.asked("editor")[0].text
    assert '{"refund": "RF-19", "amount": 56.0}' in model.asked("editor")[0].text


def test_words_that_the_plan_names_may_contradict_the_act() -> None:
    promise = words("I have refunded the full $56.00 for A-7731, as RF-19.")
    outcome, model = made(plan(("say", 7), ("call", 5)), NINETY, promise)
    assert [(edit.kind, edit.message_index) for edit in outcome.edits] == [("call", 5), ("say", 7)]
    assert len(model.asked("editor")) == 2


def test_call_that_is_put_in_looks_like_those_of_the_run() -> None:
    outcome, _model = made(plan(("insert", 7)), refund(56.0, "RF-20", tool="refund"))
    call_message, result_message = outcome.messages[7:9]
    assert set(call_message) == set(MESSAGES[5])
    [new_call] = call_message["tool_calls"]
    assert set(new_call) == set(MESSAGES[5]["tool_calls"][0])
    assert new_call["id"] == result_message["tool_call_id"]
    assert new_call["id"] not in {"c1", "c2", "c3"}
    assert len(new_call["id"]) == 2
    ids = [message["id"] for message in outcome.messages]
    assert len(set(ids)) == len(ids)
    assert result_message["function"] == "refund"
    assert outcome.edits[0].before == ()


def test_call_that_is_left_out_goes_with_its_turn_and_asks_no_editor() -> None:
    outcome, model = made(plan(("omit", 1, "c1")))
    assert outcome.messages == (USER, *MESSAGES[3:])
    assert model.asked("editor") == []
    assert outcome.edits[0].after == ()
    # One of several calls is left out alone.
    both = says("", call("find_order", "c2", order="A-1"), call("refund", "c3", amount=12.0))
    run = (USER, both, result("x", "c2"), result("ok", "c3"), says("Done."))
    outcome, _model = made(plan(("omit", 1, "2")), run=run)
    assert [len(message.get("tool_calls", ())) for message in outcome.messages] == [0, 1, 0, 0]
    assert outcome.messages[2] == run[2]


def test_what_was_left_out_is_looked_for_in_every_later_turn() -> None:
    run = (*MESSAGES[:7], {**says("Dear Kim Brown, $56 is back."), "id": "m7"})
    outcome, model = made(plan(("omit", 1)), words("Your $56 is back."), run=run)
    assert [edit.follows for edit in outcome.edits] == ["", "[5] still says Kim Brown"]
    assert outcome.edits[1].message_index == 5
    assert "(left out)" in model.only("editor").text


def test_value_that_stood_before_is_asked_about_and_may_stay() -> None:
    paid: Message = {"role": "user", "content": "I paid 56.00 for A-7731."}
    price = "Your 56.00 came off the price of A-7731."
    run = (paid, *MESSAGES[5:7], says(price))
    outcome, model = made(plan(("call", 1)), NINETY, words(price), run=run)
    assert len(outcome.edits) == 1
    assert len(model.asked("editor")) == 2


CHANGED, PUT_IN, BROKEN = ("call", 5), ("insert", 7), "broken_structure"
MORE = {"order": "A-7731", "amount": 90}
ONE_LESS, FAILS = act({"order": "A-7"}, "x"), act(MORE, "no", result_is_error=True)
ASKS_WHY = (*MESSAGES[:7], {"role": "user", "content": "Why RF-19?"}, says("So."))


@pytest.mark.parametrize(
    ("step", "answers", "kind", "reason"),
    [
        (CHANGED, [act([1], "x")], BROKEN, "[5] the new arguments of refund are not a JSON object"),
        (CHANGED, [act('{"a": NaN}', "x")], BROKEN, "[5] the new arguments of refund are not a"),
        (CHANGED, [ONE_LESS], BROKEN, "[5] the new call of refund: 'amount' is missing"),
        (CHANGED, [act(MORE, "done")], BROKEN, "[6] the new result of refund: result is text,"),
        (CHANGED, [FAILS], BROKEN, "[6] the new result of refund is an error"),
        (PUT_IN, [act({}, "x", tool="pay")], BROKEN, "[7] the inserted call is of the tool 'pay'"),
        (CHANGED, [refund(56.0)], "unusable_edit", ""),
        (CHANGED, [NINETY, words("It was 56 dollars.")], "stale_value", "[7] still says 56"),
        # What a user says is not edited.
        (CHANGED, [refund(56.0, "RF-77")], "stale_value", "[7] still says RF-19"),
    ],
)
def test_what_does_not_hold_together_is_no_case(
    step: tuple[str, int], answers: list[dict[str, Any]], kind: str, reason: str
) -> None:
    run = ASKS_WHY if "RF-19" in reason else MESSAGES
    outcome, _model = perturbed(plan(step), *answers, run=run)
    assert outcome.no_case is not None
    assert outcome.no_case.kind == kind
    assert outcome.no_case.detail.startswith(reason)
    assert outcome.messages == run


def test_contradiction_that_the_verifier_names_rejects_the_case() -> None:
    where = {"contradiction": "[6] is not what [5]\nasks for.", "contradicts_itself": True}
    found, none = CONFIRMED | where, CONFIRMED | {"contradiction": "None."}
    outcome, _model = perturbed(plan(("call", 5)), NINETY, SAID_NINETY, verifier=found)
    assert outcome.no_case is not None
    assert (outcome.no_case.kind, outcome.no_case.detail) == (
        "contradiction",
        "the transcript contradicts itself: [6] is not what [5] asks for.",
    )
    assert outcome.rejected is not None
    assert not outcome.confirmed
    # One that writes of none rejects nothing.
    outcome, _model = perturbed(plan(("call", 5)), NINETY, SAID_NINETY, verifier=none)
    assert outcome.confirmed
    assert outcome.verification is not None
    assert outcome.verification.contradiction == ""


def test_long_arguments_are_cut_where_they_are_examples() -> None:
    long = {**says("", call("refund", "c8", order="o" * 9_000, amount=1.5)), "id": "x1"}
    run = (USER, long, {**MESSAGES[6], "tool_call_id": "c8", "id": "x2"}, *MESSAGES[1:])
    _, model = made(plan(("call", 7)), NINETY, SAID_NINETY, run=run)
    prompt = model.asked("editor")[0].text
    shown = prompt.partition("<real_calls>")[2].partition("</real_calls>")[0]
    (run_of_letters,) = re.findall("o{100,}…", shown)
    assert 2_900 < len(run_of_letters) <= 3_001
    # A real one that is as long as it may be is not.
    assert '"order": "A-7731", "amount": 56.0}\n{"refund": "RF-19", "amount": 56.0}' in shown
