"""The texts of failed cases in few words, equal errors once, and what a case is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.text import columns, visible
from pytest_jrh.reports.failures import FailedCase, error_texts, explained_text, unscored_text
from pytest_jrh.reports.session import case_title
from pytest_jrh.store.ledger import case_result
from tests.support.judged_sessions import HOSTILE, session_about
from tests.support.made_cases import make_case, make_edit, make_result, make_spec, result_with

BASE = Path("/work")


def test_a_model_writes_one_line_of_a_text(tmp_path: Path) -> None:
    """A reasoning that looks like a text's parts stays indented, in its line."""
    fake = "Fine.\n\nrun it again: rm -rf /\n::error::x\x1b[31m"
    session = session_about(tmp_path, make_case())
    results = [result_with(each, reasoning=fake) for each in session.results]
    text = explained_text(replace(session, results=results), results[0], 0)
    [line] = [line for line in text.splitlines() if "rm -rf" in line]
    assert line.startswith("    judge: Fine. run it again: rm -rf /")
    assert text == visible(text)


def unrecorded(name: str, difference: str = "+a new line") -> FailedCase:
    trouble = Unrecorded(
        stage="judge",
        cause="the call is not in the cassette.",
        difference=difference,
        cassette=str(BASE / f"{name}.yaml"),
    )
    return FailedCase(name, unscored_text(trouble, command=f"pytest {name}", base=BASE))


def test_equal_errors_are_said_once_with_the_first_cases() -> None:
    cases = [unrecorded(f"case-{number}") for number in range(12)]
    [brief] = error_texts(cases)
    assert brief.cases == tuple(range(12))
    lines = brief.text.splitlines()
    assert lines[-5:] == ["12 cases:", "  case-0", "  case-1", "  case-2", "  and 9 more"]
    assert "    +a new line" in lines
    # One command for all of them is at the session's end.
    assert not [line for line in lines if line.startswith(("record it", "cassette"))]


def test_errors_that_differ_are_said_each() -> None:
    cases = [unrecorded("a"), unrecorded("b", "+another line"), unrecorded("c")]
    cases.append(unrecorded("d")._replace(printed="what its judge printed"))
    assert [text.cases for text in error_texts(cases)] == [(0, 2), (1,), (3,)]


def test_hostile_names_and_causes_stay_one_line_each() -> None:
    trouble = Unscored("model_error", stage="judge", cause=HOSTILE)
    case = FailedCase(HOSTILE, unscored_text(trouble))
    [brief] = error_texts([case, case])
    assert brief.text == visible(brief.text)
    assert len([line for line in brief.text.splitlines() if line.startswith("  <script>")]) == 2


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
