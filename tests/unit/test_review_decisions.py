"""Decisions are on the disk at once, survive a killed process, and change a case."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.config.suite import Suite
from pytest_jrh.core.redact import Redactor
from pytest_jrh.people.decisions import (
    Decision,
    DecisionStore,
    TurnEdit,
    Withdrawn,
    decisions_path,
    with_edits,
)
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import make_case, make_suite

CASE = make_case()
SPEC = CASE.spec
DIGEST = case_digest(CASE)
EDIT = TurnEdit(message_index=3, content="I may have refunded it.")


def decision(
    action: str = "accepted", case_id: str = "s::t::r::run[e1]", **changes: object
) -> Decision:
    return Decision.model_validate(
        {"case_id": case_id, "case_digest": DIGEST, "action": action, **changes}
    )


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path)


@pytest.fixture
def path(suite: Suite) -> Path:
    return decisions_path(suite.tests[0].output_dir)


def test_tests_that_share_a_folder_share_their_decisions(suite: Suite, tmp_path: Path) -> None:
    together = replace(
        suite, tests=tuple(replace(test, output_dir=tmp_path) for test in suite.tests)
    )
    store = DecisionStore([together, replace(together, name="other")], Redactor(["why"]))
    store.append(replace(SPEC, suite="other", test="agent_positives"), decision(note="why"))
    for suites in ([together], [together, replace(together, name="other")]):
        assert [*DecisionStore(suites).decisions.values()] == [decision(note="[REDACTED]")]
    assert DecisionStore([suite]).decisions == {}


def test_the_last_decision_about_a_case_wins(suite: Suite) -> None:
    store = DecisionStore([suite])
    for action in ("accepted", "rejected", "accepted"):
        store.append(SPEC, decision(action))
    store.append(SPEC, decision("rejected", case_id="another"))
    loaded = DecisionStore([suite]).decisions
    actions = {case_id: one.action for case_id, one in loaded.items()}
    assert actions == {"s::t::r::run[e1]": "accepted", "another": "rejected"}


def test_a_withdrawn_decision_is_none_also_after_a_restart(suite: Suite, path: Path) -> None:
    store = DecisionStore([suite])
    store.append(SPEC, decision())
    store.append(SPEC, Withdrawn(case_id="s::t::r::run[e1]", action="withdrawn"))
    assert (store.decisions, DecisionStore([suite]).decisions) == ({}, {})
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    "torn", [b'{"case_id": "x", "case_digest": "d", "action": "acc\xc3', b"\x00\x00"]
)
def test_a_line_that_a_killed_process_left_unfinished_loses_no_other(
    suite: Suite, path: Path, torn: bytes
) -> None:
    DecisionStore([suite]).append(SPEC, decision())
    with path.open("ab") as file:
        file.write(torn)
    store = DecisionStore([suite])
    assert len(store.decisions) == 1
    store.append(SPEC, decision("rejected", case_id="next"))
    # A last line that lacks its newline alone is whole.
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(DecisionStore([suite]).decisions) == 2
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_what_people_type_is_redacted_and_made_storable(suite: Suite, path: Path) -> None:
    store = DecisionStore([suite], Redactor(["sk-secret"]))
    turns = (TurnEdit(message_index=3, content="key sk-secret \x00\ud800"),)
    store.append(SPEC, decision("edited", turns=turns, note="sk-secret"))
    [stored] = store.decisions.values()
    assert (stored.turns[0].content, stored.note) == (
        "key [REDACTED] \N{REPLACEMENT CHARACTER}",
        "[REDACTED]",
    )
    assert b"sk-secret" not in path.read_bytes()
    assert DecisionStore([suite]).decisions.get(stored.case_id) == stored


def test_a_turn_that_is_not_the_assistants_stays_whatever_the_file_says() -> None:
    other = (
        TurnEdit(message_index=0, content="forged"),
        TurnEdit(message_index=99, content="forged"),
    )
    assert with_edits(CASE, decision("edited", turns=other)) == replace(CASE)
