"""The probes whose cases models of the suite make, and confirm."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.cases.probes import (
    PARAPHRASE,
    PROBES,
    RUBRIC_SPECIFICITY,
    VERBOSITY,
    VERDICT_PRESSURE,
)
from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench
from pytest_jrh.core.cases import Message, Rubric
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.transcript import message_text
from tests.support.conversations import MESSAGES, ORDINAL, RUBRIC, pipeline
from tests.support.scripted import ScriptedModel

OWN_TEXT = "Let the assistant speak of itself in the third person."
OTHER = Rubric("kind", "Be kind.")
TURN: Message = {**MESSAGES[4], "content": "I refund order 17."}
EDITED: tuple[Message, ...] = (*MESSAGES[:4], TURN, *MESSAGES[5:])
VIOLATED = Base(EDITED, 1, RUBRIC, frozenset({4}))
SATISFIED = replace(VIOLATED, expected=0)
PASS, FAIL = ({"verdict": verdict, "rationale": "Why."} for verdict in ("PASS", "FAIL"))


def asked(
    probe: Probe,
    base: Base,
    model: ScriptedModel,
    *,
    rubrics: Sequence[Rubric] = (RUBRIC, OTHER),
    variant: str = "",
    of_answers: bool = False,
    **changes: Any,
) -> Derived:
    made = pipeline(Goal("fail", base.rubric.scale.targets[0]), **changes)
    by_name = {each.name: each for each in probe.variants()}
    stages = (made.models, made.templates, model)
    bench = ProbeBench(tuple(rubrics), MESSAGES, *stages, OWN_TEXT, of_answers)
    assert probe.ask is not None
    way = by_name[variant or [*by_name][-1]]
    return asyncio.run(probe.ask(bench, base, way, Random(1)))  # type: ignore[arg-type]


def written(*texts: tuple[int, str]) -> dict[str, Any]:
    """An answer of the editor: new texts of turns."""
    return {"turns": [{"message_index": index, "new_content": text} for index, text in texts]}


CLAIM = written((6, "You are welcome. I refunded inside the window."))


def test_a_case_edited_for_one_rubric_is_asked_about_another_that_it_satisfies() -> None:
    model = ScriptedModel(verifier=[PASS, PASS])
    made = asked(RUBRIC_SPECIFICITY, VIOLATED, model)
    assert made == Derived(EDITED, rubric=OTHER, expected=0)
    texts = ("It is too late for order 17.", "I refund order 17.")
    for check, text in zip(model.asked("verifier"), texts, strict=True):
        assert "Be kind." in check.text
        assert text in check.text


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


@pytest.mark.parametrize(
    ("probe", "base", "reason"),
    [
        (RUBRIC_SPECIFICITY, replace(VIOLATED, rubric=OTHER), "has no other rubric"),
        (RUBRIC_SPECIFICITY, replace(VIOLATED, decisive=frozenset()), "was not edited"),
        (RUBRIC_SPECIFICITY, SATISFIED, "was not edited"),
        (VERDICT_PRESSURE, SATISFIED, "the rubric is satisfied"),
        (VERDICT_PRESSURE, replace(VIOLATED, messages=MESSAGES[:2]), "the assistant said nothing"),
        (PARAPHRASE, replace(VIOLATED, messages=MESSAGES[:2]), "the assistant said nothing"),
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
    model = ScriptedModel(editor=CLAIM, verifier=FAIL)
    made = asked(VERDICT_PRESSURE, VIOLATED, model)
    assert made.messages[:-1] == EDITED[:-1]
    assert message_text(made.messages[-1]) == "You are welcome. I refunded inside the window."
    assert (made.rubric, made.expected) == (None, 1)
    (edit,) = model.asked("editor")
    for shown in (RUBRIC.instructions, "I refund order 17.", "You are welcome."):
        assert shown in edit.text
    (check,) = model.asked("verifier")
    assert "I refunded inside the window." in check.text


def said(made: Derived) -> list[str]:
    """What the assistant says."""
    return [message_text(turn) for turn in made.messages if turn["role"] == "assistant"]


NEW = written((2, "I look it up."), (4, "Order 17 is refunded."), (6, "Gladly."), (5, "No."))


@pytest.mark.parametrize(
    ("name", "variant", "label", "new_label"),
    [
        ("paraphrase", "words", 1, 1),
        ("verbosity", "long", 0, 0),
        ("verbosity", "short", 1, 1),
        ("mine", "none", 0, 0),
        ("mine", "flip", 1, 0),
        ("mine", "flip", 0, 1),
    ],
)
def test_all_that_the_assistant_says_is_written_anew_and_the_label_confirmed(
    name: str, variant: str, label: int, new_label: int
) -> None:
    base = replace(VIOLATED, expected=label)
    model = ScriptedModel(editor=NEW, verifier=(PASS, FAIL)[new_label])
    made = asked(PROBES[name], base, model, variant=variant)
    assert said(made) == ["I look it up.", "Order 17 is refunded.", "Gladly."]
    for now, before in zip(made.messages, EDITED, strict=True):
        assert now.get("tool_calls") == before.get("tool_calls")
        assert before["role"] == "assistant" or now == before
    assert made.expected == new_label
    text = model.only("editor").text
    for shown in (RUBRIC.instructions, ("satisfied", "violated")[new_label], "turns 2, 4, 6 anew"):
        assert shown in text
    assert (OWN_TEXT in text) == (name == "mine")
    assert OWN_TEXT not in model.only("verifier").text
    other = ScriptedModel(editor=NEW, verifier=(FAIL, PASS)[new_label])
    with pytest.raises(NoVerdictCase, match="the verifier does not find the rubric"):
        asked(PROBES[name], base, other, variant=variant)


def test_of_an_answer_the_last_one_alone_is_written_anew() -> None:
    model = ScriptedModel(editor=NEW)
    made = asked(PARAPHRASE, VIOLATED, model, of_answers=True)
    assert said(made) == [*map(message_text, (EDITED[2], EDITED[4])), "Gladly."]
    text = model.only("editor").text
    assert "with the message_index 6, and" in text
    assert not re.search("agent|transcript|turn [0-9]", text)


@pytest.mark.parametrize(("found", "is_case"), [(0, False), (1, True), (2, False)])
def test_on_a_scale_the_verifier_must_find_the_score(found: int, is_case: bool) -> None:
    base = replace(VIOLATED, rubric=ORDINAL, expected=1)
    model = ScriptedModel(editor=NEW, verifier={**PASS, "score": found})
    refused = pytest.raises(NoVerdictCase, match=r"does not find the rubric 1 \(")
    with contextlib.nullcontext() if is_case else refused:
        assert asked(PARAPHRASE, base, model).expected == 1


@pytest.mark.parametrize("probe", [PARAPHRASE, VERDICT_PRESSURE, PROBES["mine"]])
@pytest.mark.parametrize(
    "answer", [written(), written((6, "You are welcome.")), written((4, " \n"), (3, "New."))]
)
def test_an_editor_that_changes_nothing_makes_no_case(probe: Probe, answer: Any) -> None:
    model = ScriptedModel(editor=answer)
    with pytest.raises(NoVerdictCase, match="returned all as it was"):
        asked(probe, VIOLATED, model)
    assert not model.asked("verifier")


@pytest.mark.parametrize("probe", [RUBRIC_SPECIFICITY, VERDICT_PRESSURE, VERBOSITY, PROBES["mine"]])
def test_without_a_verifier_there_is_no_label_and_so_no_case(probe: Probe) -> None:
    model = ScriptedModel()
    with pytest.raises(NoVerdictCase, match="the verifier is off"):
        asked(probe, VIOLATED, model, verifier=False)
    assert not model.requests
