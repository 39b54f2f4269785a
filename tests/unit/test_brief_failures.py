"""The texts of failed cases in few lines, and what a case is called."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.cases import Label
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.text import columns, visible
from pytest_jrh.core.transcript import with_part_ids
from pytest_jrh.reports.case_facts import WIDTH, disagreement_text, unscored_text
from pytest_jrh.reports.session import case_title
from pytest_jrh.store.ledger import case_result
from tests.support.judged_sessions import HOSTILE
from tests.support.made_cases import make_case, make_edit, make_result, make_spec, result_with

BASE = Path("/work")
COMMAND = "pytest 'a.yml::x[e1]'"
SEE_WHOLE = "    (use -v to see it whole)"


def wrong(reasoning: str) -> str:
    """The short text of a wrong verdict with such a reason."""
    case = make_case()
    result = result_with(make_result(case.spec, "disagree", 0), reasoning=reasoning)
    return disagreement_text(case, result, cassette=Path("x.yaml"), command=COMMAND).short


def error(trouble: Unscored) -> list[str]:
    """The lines of the short text of a case without a verdict."""
    result = replace(make_result(outcome=trouble.outcome), why=trouble.why)
    text = unscored_text(result, command=COMMAND).short
    assert text == visible(text)
    return text.splitlines()


def test_a_wrong_verdict_is_five_lines() -> None:
    assert wrong("The agent was polite. " * 50).splitlines() == [
        "The judge gave 0 (satisfied); the right answer is 1 (violated).",
        "    refund_policy: perturbation (run-1)",
        "    judge: The agent was polite. The agent was polite. The agent was polite. Th…",
        "    label 1 (verifier)",
        SEE_WHOLE,
    ]


def test_of_an_answer_stands_what_was_asked_and_what_was_answered() -> None:
    answer = "First. " + "Then on and on. " * 20 + "So it is yours."
    messages = with_part_ids(
        [
            {"role": "user", "content": "The policy.\nTen days.", "id": "context"},
            {"role": "user", "content": "May I\nreturn it?"},
            {"role": "assistant", "content": answer},
        ]
    )
    case = make_case(messages=messages, edited=False)
    label = Label((1,), "column")
    case = replace(case, label=label)
    result = replace(make_result(case.spec, "disagree", 0), labelled_by="column")
    text = disagreement_text(
        case, result, cassette=Path("x.yaml"), command=COMMAND, column="human_ok"
    )
    lines = text.short.splitlines()
    assert lines[2] == "    request: May I return it?"
    assert re.fullmatch("    answer: First. Then .*….*So it is yours[.]", lines[3])
    assert len(lines[3]) == WIDTH
    assert lines[5:] == ["    label 1 (column human_ok)", SEE_WHOLE]
    # Whole, nothing is cut, and there is no number of a turn.
    whole = text.whole
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


def test_a_verdict_that_a_probe_turned_is_one_line() -> None:
    spec = make_spec(test="position", base="agent_perturbation", variant="before-x5")
    result = make_result(spec, "disagree", 0)
    text = disagreement_text(make_case(spec), result, cassette=Path("x.yaml"), command=COMMAND)
    assert text.short == "The judge gave 0 (satisfied); the right answer is 1 (violated)."


LONG = "a long cause of one line. " * 20


@pytest.mark.parametrize(
    ("trouble", "last"),
    [
        (Unscored("model_error", stage="judge", cause=LONG), SEE_WHOLE),
        (Unscored("model_error", stage="judge", cause="a cause\n\nof paragraphs\n" * 9), SEE_WHOLE),
        (Unscored("model_error", stage="judge", cause=HOSTILE), SEE_WHOLE),
        (
            Unscored(
                "unrecorded",
                stage="judge",
                cause=LONG,
                difference="+x\n" * 40,
                cassette="a.yaml",
            ),
            SEE_WHOLE,
        ),
        (
            Unscored(
                "invalid_response", stage="judge", cause=LONG, places=("a.py:1", "judges.py:7")
            ),
            "    raised at judges.py:7",
        ),
    ],
    ids=["long", "paragraphs", "hostile", "unrecorded", "own code"],
)
def test_an_error_is_five_lines_at_most(trouble: Unscored, last: str) -> None:
    lines = error(trouble)
    assert lines[0].startswith(f"No verdict ({trouble.outcome}): ")
    assert lines[-1] == last
    assert len(lines) <= 5


def titled(note: str, **changes: Any) -> str:
    return case_title(make_result(make_spec(**changes), edit=note), 72)


def test_score_epoch_and_judge_stand_behind_what_was_done() -> None:
    title = titled("The reason is gone.", run_id="kettle", target_score=2, epoch=3, judge="strict")
    assert title == "refund_policy: The reason is gone → level 2 (kettle, epoch 3, strict)"


def test_a_name_is_one_short_line_whatever_the_ids_and_the_note_hold() -> None:
    ids = {"rubric_id": "rule\n" * 500, "run_id": "run \x1b[31m" * 500, "judge": "j" * 5_000}
    title = titled("one\ntwo \x1b]0;x\x07 ::error::" * 5_000, **ids)
    assert columns(title) <= 90
    assert title.isprintable()


def test_a_stored_note_is_one_bounded_line() -> None:
    case = make_case()
    edits = (replace(make_edit("a", "b"), editor_reason="one\ntwo \x1b[31m" * 50_000),)
    case = replace(case, outcome=replace(case.outcome, edits=edits))
    note = case_result(case.spec, case).extra.edit
    assert columns(note) <= 160
    assert note.isprintable()
