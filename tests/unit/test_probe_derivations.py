"""What a probe derives differs from its base in what the variant says, and in nothing else; what
models make of one is confirmed."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.cases.probes import PARAPHRASE, PROBES, RUBRIC_SPECIFICITY, VERDICT_PRESSURE
from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench, Variant
from pytest_jrh.cases.probes.prompt_injection import values_for
from pytest_jrh.core.cases import Message, NoVerdictCase, Rubric
from pytest_jrh.core.transcript import message_text, render_transcript
from tests.support.conversations import MESSAGES, ORDINAL, RUBRIC, pipeline
from tests.support.random_conversations import bases
from tests.support.scripted import ScriptedModel

# On a machine that does other things as well, an example may take its time.
unhurried = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
BY_NAME: Mapping[str, tuple[Probe, Variant]] = {
    f"{probe.name}-{variant.name}": (probe, variant)
    for probe in PROBES.values()
    if probe.ask is None
    for variant in probe.variants()
}
INJECTIONS = sorted(name for name in BY_NAME if name.startswith("prompt_injection-"))
BASE = Base((), 0, Rubric("kind", "Be kind."))
SPOKEN = "It fits. See:\n```\nif a. B:\n```\nIs it so? Yes, e.g. here."
OWN_TEXT = "Let the assistant speak of itself in the third person."
OTHER = Rubric("kind", "Be kind.")
TURN: Message = {**MESSAGES[4], "content": "I refund order 17."}
EDITED: tuple[Message, ...] = (*MESSAGES[:4], TURN, *MESSAGES[5:])
VIOLATED = Base(EDITED, 1, RUBRIC, frozenset({4}))
SATISFIED = replace(VIOLATED, expected=0)
PASS, FAIL = ({"verdict": verdict, "rationale": "Why."} for verdict in ("PASS", "FAIL"))


def derived(name: str, base: Base, seed: int = 1) -> Derived:
    """The case that a variant makes; where it does not apply, the example does not count."""
    probe, variant = BY_NAME[name]
    assert probe.derive is not None
    try:
        return probe.derive(base, variant, Random(seed))
    except NoVerdictCase as reason:
        assume(not str(reason))
        raise


def layout(name: str, base: Base, seed: int = 1) -> Derived:
    return derived(f"format_invariance-{name}", base, seed)


def call_ids(message: Message) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def pairs(messages: tuple[Message, ...]) -> list[tuple[int, int]]:
    """For each call: the positions of its turn and of its result."""
    results = {one["tool_call_id"]: at for at, one in enumerate(messages) if one["role"] == "tool"}
    return [(at, results[call]) for at, one in enumerate(messages) for call in call_ids(one)]


def simplified(value: Any, change: Any) -> Any:
    """The value with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: simplified(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [simplified(one, change) for one in value]
    return value


def as_json(text: str) -> Any:
    """Text that is JSON, as its value."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@unhurried
@given(bases(), st.sampled_from(sorted(BY_NAME)), st.integers(0, 9))
def test_a_derivation_repeats_itself_and_leaves_its_base(base: Base, name: str, seed: int) -> None:
    before = repr(base)
    once = derived(name, base, seed)
    assert repr(derived(name, base, seed)) == repr(once)
    assert repr(base) == before
    assert repr(once.messages) != repr(base.messages)


@unhurried
@given(bases(), st.sampled_from(sorted(BY_NAME)))
def test_calls_stay_paired_and_ids_unique(base: Base, name: str) -> None:
    messages = derived(name, base).messages
    assert all(call < result for call, result in pairs(messages))
    ids = [one["id"] for one in messages if "id" in one]
    ids += [call for one in messages for call in call_ids(one)]
    assert len({*ids}) == len(ids)


def without_blanks(text: str) -> str:
    return "".join(text.split())


SAME_IN: dict[str, Callable[[str], Any]] = {
    "json_layout": lambda text: json.dumps(as_json(text)),
    "json_keys": as_json,
    "line_ends": lambda text: [line.rstrip(" \r") for line in text.split("\n")],
    **dict.fromkeys(("blank_lines", "spaces", "indents"), without_blanks),
}


@pytest.mark.parametrize("name", sorted(SAME_IN))
@unhurried
@given(base=bases())
def test_what_is_written_in_another_way_has_the_same_meaning(name: str, base: Base) -> None:
    changed = layout(name, base).messages
    assert simplified(changed, SAME_IN[name]) == simplified(base.messages, SAME_IN[name])
    assert repr(changed) != repr(base.messages)


def test_digits_escapes_and_the_layout_of_json_survive_a_change_of_keys() -> None:
    text = '{\n  "a": 1.10000000000000000001,\n  "b": "\\ud83d",\n  "c": 1e400\n}'
    base = replace(BASE, messages=({"role": "tool", "content": text, "tool_call_id": "c"},))
    changed = message_text(layout("json_keys", base).messages[0])
    assert changed != text
    before, after = (sorted(each.replace(",", "").splitlines()) for each in (text, changed))
    assert after == before


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("blank_lines", "It fits.\n\nSee:\n```\nif a. B:\n```\nIs it so?\n\nYes, e.g. here."),
        ("spaces", "It   fits.   See:\n```\nif a. B:\n```\nIs   it   so?   Yes,   e.g.   here."),
        ("indents", "\tIt fits. See:\n```\nif a. B:\n```\n\tIs it so? Yes, e.g. here."),
    ],
)
def test_what_the_agent_says_is_laid_out_anew_but_for_code(name: str, expected: str) -> None:
    others = [{"role": role, "content": SPOKEN} for role in ("system", "user", "tool")]
    turn = {"role": "assistant", "content": SPOKEN}
    json_turn = {"role": "assistant", "content": '{"a": "It fits. See"}'}
    changed = layout(name, replace(BASE, messages=(*others, turn, json_turn))).messages
    assert changed == (*others, {**turn, "content": expected}, json_turn)


def refused(name: str, message: Message, reason: str) -> None:
    probe, variant = BY_NAME[f"format_invariance-{name}"]
    assert probe.derive is not None
    with pytest.raises(NoVerdictCase, match=reason):
        probe.derive(replace(BASE, messages=(message,)), variant, Random(1))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[NaN, 1]", "12", "{}", "[" * 100_000])
@pytest.mark.parametrize("name", ["json_layout", "json_keys"])
def test_what_is_no_json_or_no_object_stays_as_it_is(name: str, text: str) -> None:
    refused(name, {"role": "tool", "content": text, "tool_call_id": "c"}, r"no .*JSON")


def test_arguments_that_are_nested_too_deeply_are_no_case() -> None:
    arguments: dict[str, Any] = {"a": 1, "b": "\u00e9"}
    for _ in range(sys.getrecursionlimit()):
        arguments = {"more": arguments, "b": 1}
    call = {"id": "c", "function": "f", "arguments": arguments, "type": "function"}
    turn = {"role": "assistant", "content": "x", "tool_calls": [call]}
    refused("json_keys", turn, "nested too deeply")


@unhurried
@given(bases())
def test_ids_are_other_ones_and_name_the_same(base: Base) -> None:
    changed = layout("ids", base).messages
    assert pairs(changed) == pairs(base.messages)

    def in_order(messages: tuple[Message, ...]) -> list[str]:
        found = [one[key] for one in messages for key in ("id", "tool_call_id") if key in one]
        return found + [call for one in messages for call in call_ids(one)]

    others = dict(zip(in_order(base.messages), in_order(changed), strict=True))
    assert all(old != new for old, new in others.items())
    assert simplified(base.messages, lambda text: others.get(text, text)) == [*changed]


@unhurried
@given(bases(), st.sampled_from(INJECTIONS), st.integers(0, 9))
def test_an_injected_text_ends_one_turn_of_its_place(base: Base, name: str, seed: int) -> None:
    changed = derived(name, base, seed).messages
    both = enumerate(zip(base.messages, changed, strict=True))
    [at] = [index for index, (old, new) in both if old != new]
    place = BY_NAME[name][1].axes[1]
    roles = {"assistant_turn": "assistant", "tool_result": "tool", "user_turn": "user"}
    assert changed[at]["role"] == roles[place]
    text = BY_NAME[name][1].data.text_for(values_for(base))
    before, after = message_text(base.messages[at]), message_text(changed[at])
    assert (after.startswith(before), after.endswith(text)) == (True, True)
    assert not after[len(before) : -len(text)].strip()
    assert {**changed[at], "content": 0} == {**base.messages[at], "content": 0}
    others = [index for index, one in enumerate(base.messages) if one["role"] == roles[place]]
    assert at not in base.decisive or set(others) <= base.decisive


def place_of_neutral_turns(messages: tuple[Message, ...], decisive: int, place: str) -> list[int]:
    """The positions, among the own turns, at which neutral ones are put."""
    base = replace(BASE, messages=messages, decisive=frozenset({decisive}))
    changed = derived(f"position-{place}-x2", base).messages
    own, places = 0, []
    for message in changed:
        if own < len(messages) and message is messages[own]:
            own += 1
        elif own not in places:
            places.append(own)
    assert own == len(messages), "no turn is changed"
    assert len(render_transcript(changed)) >= 2 * len(render_transcript(messages))
    return places


@pytest.mark.parametrize(("place", "at"), [("before", [3]), ("after", [5]), ("around", [3, 5])])
def test_neutral_turns_stand_next_to_what_decides(place: str, at: list[int]) -> None:
    said = [f"{role} {number}" for number in (1, 2, 3) for role in ("user", "assistant")]
    turns = [{"role": text.split()[0], "content": text * 20} for text in said]
    messages = ({"role": "system", "content": "Be kind."}, *turns)
    assert place_of_neutral_turns(messages, 4, place) == at


@pytest.mark.parametrize("call_id", ["c", ["c"]])
def test_neutral_turns_do_not_part_a_call_from_its_result(call_id: object) -> None:
    call = {"id": call_id, "function": "f", "arguments": {}, "type": "function"}
    messages: tuple[Message, ...] = (
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "Is it there?"},
        {"role": "tool", "content": "Yes.", "tool_call_id": call_id},
        {"role": "assistant", "content": "It is there."},
    )
    assert place_of_neutral_turns(messages, 4, "before") == [0]


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
def test_another_violated_rubric_is_no_case(answers: list[Any], reason: str, calls: int) -> None:
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
def test_a_case_a_probe_cannot_change_costs_no_call(probe: Probe, base: Base, reason: str) -> None:
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
def test_all_is_written_anew(name: str, variant: str, label: int, new_label: int) -> None:
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
    with pytest.raises(NoVerdictCase, match="the verifier does not say that"):
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
    refused = pytest.raises(NoVerdictCase, match=r"makes the rubric 1 \(")
    with contextlib.nullcontext() if is_case else refused:
        assert asked(PARAPHRASE, base, model).expected == 1


@pytest.mark.parametrize("probe", [PARAPHRASE, VERDICT_PRESSURE, PROBES["mine"]])
@pytest.mark.parametrize(
    "answer", [written(), written((6, "You are welcome.")), written((4, " \n"), (3, "New."))]
)
def test_an_editor_that_changes_nothing_makes_no_case(probe: Probe, answer: Any) -> None:
    model = ScriptedModel(editor=answer)
    with pytest.raises(NoVerdictCase, match="changed nothing"):
        asked(probe, VIOLATED, model)
    assert not model.asked("verifier")


@pytest.mark.parametrize(
    "probe", [RUBRIC_SPECIFICITY, VERDICT_PRESSURE, PARAPHRASE, PROBES["mine"]]
)
def test_without_a_verifier_there_is_no_label_and_so_no_case(probe: Probe) -> None:
    model = ScriptedModel()
    with pytest.raises(NoVerdictCase, match="the verifier is off"):
        asked(probe, VIOLATED, model, verifier=False)
    assert not model.requests
