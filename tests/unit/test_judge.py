from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_jrh.core.calls import Complete
from pytest_jrh.core.cases import (
    Case,
    CaseSpec,
    Edit,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Verification,
)
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.results import Verdict
from pytest_jrh.llm.calls import make_complete
from tests.support.conversations import MESSAGES, ORDINAL, RUBRIC, RUN, stage, verdict_of
from tests.support.scripted import ScriptedExchange, ScriptedModel

SECRET = "HIDDEN-WORD"


def case(*, target: int | None = None, edited: bool = True) -> Case:
    """A case in which everything that a judge may not see is one word."""
    edit = Edit(4, "m4", 0, SECRET, "New text.", SECRET, SECRET, SECRET, SECRET, 0)
    outcome = PerturbationOutcome(
        messages=(*MESSAGES[:4], {**MESSAGES[4], "content": "New text."}, *MESSAGES[5:]),
        plan=Plan(SECRET, (PlanStep(4, SECRET, SECRET),)),
        edits=(edit,) if edited else (),
        verification=Verification("FAIL", SECRET, target),
        confirmed=True,
        final_summary=SECRET,
    )
    return Case(
        spec=CaseSpec("the-suite", "agent_perturbation", RUBRIC.id, "run-1", 1, target),
        rubric=RUBRIC if target is None else ORDINAL,
        run=replace(RUN, metadata={"note": SECRET}, target=SECRET),
        outcome=outcome,
        expected=1 if target is None else target,
        verified=True,
        objective="fail",
    )


def judged(
    complete: Complete,
    of: Case,
    *,
    instruction: str = "",
    show_reasoning: bool = False,
    prompt: str | None = None,
) -> Verdict:
    asked = stage("judge", complete, mode=of.scale.name, prompt=prompt)
    return verdict_of(asked, of, instruction=instruction, show_reasoning=show_reasoning)


@pytest.mark.parametrize("target", [None, 0, 2])
def test_judge_sees_nothing_of_how_the_case_was_made(target: int | None) -> None:
    model = ScriptedModel()
    judged(model, case(target=target))
    text = model.only("judge").text
    for secret in (
        SECRET,
        "agent_perturbation",
        "agent_positives",
        "edited)",
        "the-suite",
        "secret thought",
    ):
        assert secret not in text
    assert "reasoning\n" not in text


def test_a_judge_is_asked_alike_whatever_the_target_and_whether_a_turn_was_edited() -> None:
    model = ScriptedModel()
    judged(model, case(target=0))
    judged(model, replace(case(target=2, edited=False), objective="pass"))
    first, second = model.requests
    assert first == second


def test_judge_sees_reasoning_only_where_asked_to() -> None:
    model = ScriptedModel()
    judged(model, case(), show_reasoning=True)
    assert "[2] assistant reasoning\n  secret thought" in model.only("judge").text


def test_owners_instruction_reaches_the_judge() -> None:
    model = ScriptedModel()
    judged(model, case(), instruction="Mind the dates.")
    assert "Mind the dates." in model.only("judge").text


def test_prompt_of_rands_harness_gets_scale_and_its_ends() -> None:
    model = ScriptedModel()
    judged(
        model,
        case(target=2),
        prompt="{rubric}\n{score_levels_table}\n{lowest_score} to {highest_score}\n{transcript}",
    )
    text = model.only("judge").text
    assert "0 to 2" in text
    assert text.count("1: mentions it") == 1


def test_prompt_without_a_place_for_the_scale_gets_it_with_the_rubric() -> None:
    model = ScriptedModel()
    judged(model, case(target=2), prompt="{rubric}\n{transcript}")
    assert "0: ignores the policy\n1: mentions it\n2: follows it" in model.only("judge").text


@pytest.mark.parametrize("reasoning", ["", " \n\t"])
def test_an_empty_reasoning_is_one(reasoning: str) -> None:
    # As the schema that providers enforce has it, and RAND's; small models answer so.
    model = ScriptedModel(judge={"score": 0, "reasoning": reasoning})
    assert judged(model, case()) == Verdict(0, "")
    assert len(model.asked("judge")) == 1


@pytest.mark.parametrize(
    "answer",
    [f'"score": {score}, "reasoning": "r"' for score in ("2", "true", "1.0", '"1"', "NaN")]
    + ['"score": 0', '"score": 0, "reasoning": null', '"score": 0, "reasoning": 7'],
)
def test_an_answer_without_reasoning_or_an_integer_on_offer_is_no_verdict(answer: str) -> None:
    with pytest.raises(Unscored) as caught:
        judged(make_complete(ScriptedExchange([f"{{{answer}}}"] * 3)), case())
    assert (caught.value.outcome, caught.value.stage) == ("invalid_response", "judge")
