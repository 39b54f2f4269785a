"""Edits that are acts, in records, tables and reports (docs/acts.md)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cases.acts import turn_pairs, undone
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Case, Judgment, Verdict
from pytest_jrh.core.transcript import text_to_compare
from pytest_jrh.reports.evidence import shown_edits
from pytest_jrh.reports.failures import disagreement_text
from pytest_jrh.store.records import case_digest, read_case, record_line, to_record
from tests.support.made_cases import ACT_RUN, make_act_case, make_case

CASE = make_act_case()


def with_edits(case: Case, *edits: Any) -> Case:
    return replace(case, outcome=replace(case.outcome, edits=edits))


def shown(case: Case) -> str:
    return disagreement_text(
        case, Judgment((Verdict(0, "fine"),)), debug_bundle=None, cassette=None, command="pytest"
    )


def test_the_case_of_these_tests_is_one_that_can_be_undone() -> None:
    assert undone(CASE.messages, CASE.outcome.edits) == ACT_RUN


def test_a_record_holds_acts_and_gives_the_same_case_again() -> None:
    line = record_line(to_record(CASE))
    again = read_case(line)
    assert again.outcome.edits == CASE.outcome.edits
    assert again.outcome.plan == CASE.outcome.plan
    assert not again.altered
    assert record_line(to_record(again)) == line


def test_a_record_of_words_is_as_it_was_before_there_were_acts() -> None:
    perturbation = to_record(make_case())["perturbation"]
    keys = {*perturbation["steps"][0], *perturbation["plan"]["steps"][0]}
    assert keys.isdisjoint({"kind", "before", "after", "follows", "call_id"})


@pytest.mark.parametrize(
    ("name", "message", "problem"),
    [
        ("before", {"role": "tool"}, "perturbation.steps.1.before.0: has the content None"),
        ("after", {"content": ""}, "perturbation.steps.1.after.0: has the role None"),
    ],
)
def test_a_message_of_an_edit_that_is_none_is_named(
    name: str, message: dict[str, Any], problem: str
) -> None:
    record = to_record(CASE)
    record["perturbation"]["steps"][1][name][0] = message
    with pytest.raises(InputError, match=problem.replace(".", r"\.")):
        read_case(record_line(record))


def test_turns_are_paired_with_those_of_the_run() -> None:
    pairs = turn_pairs(ACT_RUN, CASE.messages, CASE.outcome.edits)
    assert [tuple(pair) for pair in pairs] == [
        (0, 0),
        (1, None),
        (2, None),
        (3, 1),
        (4, 2),
        (None, 3),
        (None, 4),
        (5, 5),
        (6, 6),
    ]
    # Where a record was changed by somebody, the edits lead nowhere.
    moved = [replace(edit, message_index=edit.message_index + 40) for edit in CASE.outcome.edits]
    for edits in (moved, moved[:1], [replace(moved[0], message_index=-3)]):
        assert [tuple(pair) for pair in turn_pairs(ACT_RUN, CASE.messages, edits)] == [
            (index, index) for index in range(7)
        ]


def test_a_call_is_compared_line_by_line_with_its_result_below() -> None:
    before, after = CASE.outcome.edits[1].before, CASE.outcome.edits[1].after
    assert text_to_compare(before).split("\n") == [
        "assistant calls refund",
        "  {",
        '    "order": 17,',
        '    "amount": 56.0,',
        '    "lines": [',
        "      {",
        '        "sku": "K1",',
        '        "sum": 56.0',
        "      }",
        "    ]",
        "  }",
        "tool refund",
        "  {",
        '    "refunded": 56.0,',
        '    "reference": "R-1"',
        "  }",
    ]
    pieces = next(edit for edit in shown_edits(CASE) if edit.turn == 1 and "changed" in edit.note)
    gone = "".join(piece.text for piece in pieces.pieces if piece.kind == "gone")
    assert (gone.count("56"), gone.count("order")) == (2, 0)
    assert text_to_compare(after) != text_to_compare(before)


def test_a_failure_shows_each_act_as_what_it_is() -> None:
    text = shown(CASE)
    for line in (
        "4 edits made this case:",
        "    turn 1 (assistant), call of verify omitted before it",
        "    - assistant calls verify",
        "    turn 1 (assistant), call of refund changed",
        '    -     "amount": 56.0,',
        '    +     "amount": 96.0,',
        "    turn 3 (assistant), call of refund inserted",
        "    + assistant calls refund",
        "    turn 5 (assistant), since [5] still says 56.00",
    ):
        assert line in text.split("\n"), text


def test_a_call_left_out_at_the_end_is_shown_there() -> None:
    case = make_act_case()
    edit = replace(case.outcome.edits[0], message_index=len(case.messages))
    assert [shown_edit.title for shown_edit in shown_edits(with_edits(case, edit))] == [
        "turn 7 (the end), call of verify omitted before it"
    ]


def test_the_audit_of_a_case_can_be_read_as_json(tmp_path: Path) -> None:
    steps = to_record(CASE)["perturbation"]["steps"]
    assert [step.get("kind", "say") for step in steps] == ["omit", "call", "insert", "say"]
    assert (
        json.loads(json.dumps(steps))
        == json.loads(record_line(to_record(CASE)))["perturbation"]["steps"]
    )
    assert case_digest(read_case(record_line(to_record(CASE)))) == case_digest(CASE)
