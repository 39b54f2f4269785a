"""The texts of failed cases in few lines, and what a case is called."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core import columns, visible
from pytest_jrh.core.cases import Label, Unscored, VoteSource
from pytest_jrh.core.transcript import with_part_ids
from pytest_jrh.reports.case_facts import disagreement_text, unscored_text
from pytest_jrh.reports.session import case_title
from pytest_jrh.store.ledger import case_result
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import make_case, make_edit, make_result, make_spec, result_with

COMMAND = "pytest 'a.yml::x[e1]'"
SEE_WHOLE, CASSETTE = "    (-v shows the whole text)", Path("x.yaml")


def wrong(reasoning: str, **changes: Any) -> str:
    """The short text of a wrong verdict with such a reason."""
    case = make_case(make_spec(**changes))
    result = result_with(make_result(case.spec, "disagree", 0), reasoning=reasoning)
    return disagreement_text(case, result, cassette=CASSETTE, command=COMMAND).short


def test_a_wrong_verdict_is_six_lines() -> None:
    first = "The judge gave 0 (satisfied); the label (verifier) is 1 (violated)."
    assert wrong("The agent was polite. " * 50).splitlines() == [
        first,
        "    perturbation",
        "    user: Please refund order 17.",
        "    assistant: I have refunded order 17 in full.",
        "    judge: The agent was polite. The agent was polite. The agent was polite. The",
        "    … polite. The agent was polite. The agent was polite. The agent was polite.",
    ]
    # Where a probe turned it, it is one.
    turned = wrong("", test="position", base="agent_perturbation", variant="before-x5")
    assert turned == first


def test_of_an_answer_stands_what_was_asked_and_what_was_answered() -> None:
    answer = "First. " + "Then on and on. " * 20 + "So it is yours."
    policy = {"role": "user", "content": "The policy.\nTen days.", "id": "context"}
    request = {"role": "user", "content": "May I\nreturn it?"}
    messages = with_part_ids([policy, request, {"role": "assistant", "content": answer}])
    case = replace(make_case(messages=messages, edited=False), label=Label((1,), "column"))
    result = replace(make_result(case.spec, "disagree", 0), labelled_by="column")
    text = disagreement_text(case, result, cassette=CASSETTE, command=COMMAND, column="human_ok")
    lines = text.short.splitlines()
    assert "; the label (column human_ok) is 1" in lines[0]
    assert lines[2] == "    request: May I return it?"
    # Its beginning and its end.
    assert re.fullmatch("    answer: First. Then .*….* So it is yours[.]", lines[3])
    assert len(lines) == 5
    whole = text.whole
    people = Label((1, 1), "people", sources=(VoteSource("a.csv:2", "ann"), VoteSource("", "bob")))
    case, result = replace(case, label=people), replace(result, labelled_by="people")
    text = disagreement_text(case, result, cassette=CASSETTE, command=COMMAND)
    assert "; the label (ann, bob) is 1" in text.short
    # Whole, nothing is cut, and there is no number of a turn.
    assert "context:\n    The policy.\n    Ten days.\nrequest:\n    May I\n" in whole
    assert answer in " ".join(whole.split())
    assert "[0]" not in whole
    assert "(column human_ok)" in whole


def test_a_model_writes_one_line_of_a_text() -> None:
    """A reasoning that looks like a text's parts stays indented, in its line."""
    text = wrong("Fine.\n\nrun it again: rm -rf /\n::error::x\x1b[31m")
    [line] = [line for line in text.splitlines() if "rm -rf" in line]
    assert line.startswith("    judge: Fine. run it again: rm -rf /")
    assert text == visible(text)


LONG = "a long cause of one line. " * 20


CHANGED = {"difference": "+x\n" * 40, "cassette": "a.yaml"}


@pytest.mark.parametrize(
    ("outcome", "cause", "more", "last"),
    [
        ("model_error", LONG, {}, SEE_WHOLE),
        ("model_error", "a cause\n\nof paragraphs\n" * 9, {}, SEE_WHOLE),
        ("model_error", HOSTILE, {}, SEE_WHOLE),
        ("unrecorded", LONG, CHANGED, SEE_WHOLE),
        ("invalid_response", LONG, {"places": ("a.py:1", "b.py:7")}, "    raised at b.py:7"),
    ],
    ids=["long", "paragraphs", "hostile", "unrecorded", "own code"],
)
def test_an_error_is_five_lines(outcome: Any, cause: str, more: dict[str, Any], last: str) -> None:
    trouble = Unscored(outcome, stage="judge", cause=cause, **more)
    result = replace(make_result(outcome=outcome), why=trouble.why)
    text = unscored_text(result, command=COMMAND).short
    assert text == visible(text)
    lines = text.splitlines()
    assert lines[0].startswith(f"No verdict ({outcome}): ")
    assert (lines[-1], len(lines) <= 5) == (last, True)


def test_score_epoch_and_judge_stand_behind_what_was_done() -> None:
    spec = make_spec("kettle", target_score=2, epoch=3, judge="strict")
    title = case_title(make_result(spec, edit="The reason is gone."))
    assert title == "refund_policy: The reason is gone → level 2 (kettle, epoch 3, strict)"


def test_a_name_and_a_stored_note_are_one_short_line_whatever_ids_and_edits_hold() -> None:
    ids = {"rubric_id": "rule\n" * 500, "run_id": "run \x1b[31m" * 500, "judge": "j" * 5_000}
    note = "one\ntwo \x1b]0;x\x07 ::error::" * 5_000
    title = case_title(make_result(make_spec(**ids), edit=note))
    case = make_case()
    edits = (replace(make_edit("a", "b"), editor_reason=note),)
    case = replace(case, outcome=replace(case.outcome, edits=edits))
    kept = case_result(case.spec, case).extra.edit
    assert (columns(title) <= 90, columns(kept) <= 160) == (True, True)
    assert (title + kept).isprintable()
