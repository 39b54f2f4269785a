"""What a case is called by people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_jrh.core.model import CaseResult, Why
from pytest_jrh.core.text import columns
from pytest_jrh.reports.session import case_title
from pytest_jrh.store.ledger import case_result
from tests.support.made_cases import make_case, make_edit, make_result, make_spec

SPEC = make_spec("damaged-kettle")


def titled(note: str, width: int = 72, **changes: Any) -> str:
    return case_title(make_result(make_spec(**{"run_id": "kettle", **changes}), edit=note), width)


def made(reason: str) -> CaseResult:
    case = make_case(SPEC)
    edits = (replace(make_edit("a", "b"), editor_reason=reason),)
    return case_result(SPEC, replace(case, outcome=replace(case.outcome, edits=edits)))


def test_a_rejected_case_is_named_by_its_edit_too() -> None:
    result = case_result(SPEC, None, Why("no_case"), rejected=make_case(SPEC))
    assert case_title(result) == "refund_policy: grants the refund (damaged-kettle)"


def test_score_epoch_and_judge_stand_behind_what_was_done() -> None:
    title = titled("The reason is gone.", target_score=2, epoch=3, judge="strict")
    assert title == "refund_policy: The reason is gone → level 2 (kettle, epoch 3, strict)"


def test_a_name_is_one_short_line_whatever_the_ids_and_the_note_hold() -> None:
    ids: dict[str, Any] = {
        "rubric_id": "rule\n" * 500,
        "run_id": "run \x1b[31m" * 500,
        "judge": "j" * 5_000,
    }
    title = titled("one\ntwo \x1b]0;x\x07 ::error::" * 5_000, **ids)
    assert columns(title) <= 90
    assert title.isprintable()


def test_a_stored_note_is_one_bounded_line() -> None:
    note = made("one\ntwo \x1b[31m" * 50_000).extra.edit
    assert columns(note) <= 160
    assert note.isprintable()
