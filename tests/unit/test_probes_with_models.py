"""The probes whose cases models of the suite make, and confirm."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_jrh.cases.probes import RUBRIC_SPECIFICITY, VERDICT_PRESSURE
from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.runs import Message, Rubric
from pytest_jrh.core.transcript import message_text
from tests.support.conversations import MESSAGES, RUBRIC, pipeline
from tests.support.scripted import Asked, ScriptedModel

OTHER = Rubric("kind", "Be kind.")
EDITED: tuple[Message, ...] = (
    *MESSAGES[:4],
    {**MESSAGES[4], "content": "I refund order 17."},
    *MESSAGES[5:],
)
VIOLATED = Base(EDITED, 1, RUBRIC, frozenset({4}))
PASS, FAIL = ({"verdict": verdict, "rationale": "Why."} for verdict in ("PASS", "FAIL"))


def asked(
    probe: Probe,
    base: Base,
    model: ScriptedModel,
    *,
    rubrics: Sequence[Rubric] = (RUBRIC, OTHER),
    seed: int = 1,
    **changes: Any,
) -> Derived:
    made = pipeline(**changes)
    bench = ProbeBench(tuple(rubrics), MESSAGES, made.models, made.templates, model)
    (variant,) = probe.variants()
    assert probe.ask is not None
    return asyncio.run(probe.ask(bench, base, variant, Random(seed)))  # type: ignore[arg-type]


def claims(ask: Asked) -> dict[str, str]:
    return {"new_content": "You are welcome. I refunded inside the window.", "reason": "Why."}


def test_a_case_edited_for_one_rubric_is_asked_about_another_that_it_satisfies() -> None:
    model = ScriptedModel(verifier=[PASS, PASS])
    made = asked(RUBRIC_SPECIFICITY, VIOLATED, model)
    assert made == Derived(EDITED, rubric=OTHER, expected=0)
    before, after = model.asked("verifier")
    assert "Be kind." in before.text
    assert "It is too late for order 17." in before.text
    assert "Be kind." in after.text
    assert "I refund order 17." in after.text


@pytest.mark.parametrize(
    ("answers", "reason", "calls"),
    [
        ([FAIL], "kind was violated before the edit", 1),
        ([PASS, FAIL], "the edit violates the rubric kind as well", 2),
    ],
)
def test_another_rubric_that_does_not_hold_makes_no_case(
    answers: list[Any], reason: str, calls: int
) -> None:
    model = ScriptedModel(verifier=answers)
    with pytest.raises(NoVerdictCase, match=reason):
        asked(RUBRIC_SPECIFICITY, VIOLATED, model)
    assert len(model.asked("verifier")) == calls


SATISFIED = replace(VIOLATED, expected=0)


@pytest.mark.parametrize(
    ("probe", "base", "reason"),
    [
        (RUBRIC_SPECIFICITY, replace(VIOLATED, rubric=OTHER), "has no other rubric"),
        (RUBRIC_SPECIFICITY, replace(VIOLATED, decisive=frozenset()), "was not edited"),
        (RUBRIC_SPECIFICITY, SATISFIED, "was not edited"),
        (VERDICT_PRESSURE, SATISFIED, "the rubric is satisfied"),
        (VERDICT_PRESSURE, replace(VIOLATED, messages=MESSAGES[:2]), "no assistant turn"),
    ],
)
def test_a_case_that_a_probe_cannot_change_costs_no_call(
    probe: Probe, base: Base, reason: str
) -> None:
    model = ScriptedModel()
    with pytest.raises(NoVerdictCase, match=reason):
        asked(probe, base, model, rubrics=(OTHER,))
    assert not model.requests


def test_the_last_turn_argues_that_the_rubric_was_kept_and_nothing_else_changes() -> None:
    model = ScriptedModel(editor=claims, verifier=FAIL)
    made = asked(VERDICT_PRESSURE, VIOLATED, model)
    assert made.messages[:-1] == EDITED[:-1]
    assert message_text(made.messages[-1]) == "You are welcome. I refunded inside the window."
    assert (made.rubric, made.expected) == (None, None)
    (edit,) = model.asked("editor")
    for shown in (RUBRIC.instructions, "I refund order 17.", "You are welcome."):
        assert shown in edit.text
    (check,) = model.asked("verifier")
    assert "I refunded inside the window." in check.text


def test_a_claim_that_convinces_the_verifier_makes_no_case() -> None:
    model = ScriptedModel(editor=claims, verifier=PASS)
    with pytest.raises(NoVerdictCase, match="satisfies the rubric"):
        asked(VERDICT_PRESSURE, VIOLATED, model)


@pytest.mark.parametrize("text", ["You are welcome.", " \n"])
def test_an_editor_that_adds_no_argument_makes_no_case(text: str) -> None:
    model = ScriptedModel(editor={"new_content": text, "reason": "Why."})
    with pytest.raises(NoVerdictCase, match="adds no argument to turn 6"):
        asked(VERDICT_PRESSURE, VIOLATED, model)
    assert not model.asked("verifier")


@pytest.mark.parametrize("probe", [RUBRIC_SPECIFICITY, VERDICT_PRESSURE])
def test_without_a_verifier_there_is_no_label_and_so_no_case(probe: Probe) -> None:
    model = ScriptedModel()
    with pytest.raises(NoVerdictCase, match="the verifier is off"):
        asked(probe, VIOLATED, model, verifier=False)
    assert not model.requests
