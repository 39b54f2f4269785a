"""Decisions are on the disk at once, survive a killed process, and change a case; what the page
shows beside them, with nothing invisible; and templates: what does not render is not saved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.config.suite import Suite
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Case, Label, VoteSource
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import indented_json
from pytest_jrh.engine.library import build_pipeline
from pytest_jrh.llm.calls import load_template, override_path
from pytest_jrh.people.board import ReviewCase, Reviewed
from pytest_jrh.people.decisions import (
    Decision,
    DecisionStore,
    TurnEdit,
    Withdrawn,
    decisions_path,
    with_edits,
)
from pytest_jrh.review import AgentTemplate, ReviewedCases, agent_templates
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import make_case, make_suite, suite_with
from tests.support.sessions import ANY_JSON

CASE = make_case()
SPEC = CASE.spec


def decision(
    action: str = "accepted", case_id: str = "s::t::r::run[e1]", **changes: object
) -> Decision:
    about = {"case_id": case_id, "case_digest": case_digest(CASE), "action": action}
    return Decision.model_validate(about | changes)


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


def test_the_last_decision_about_a_case_wins_also_after_a_restart(suite: Suite, path: Path) -> None:
    store = DecisionStore([suite])
    for action in ("accepted", "rejected", "accepted"):
        store.append(SPEC, decision(action))
    store.append(SPEC, decision("rejected", case_id="another"))
    loaded = DecisionStore([suite]).decisions
    actions = {case_id: one.action for case_id, one in loaded.items()}
    assert actions == {"s::t::r::run[e1]": "accepted", "another": "rejected"}
    for case_id in actions:
        store.append(SPEC, Withdrawn(case_id=case_id, action="withdrawn"))
    assert (store.decisions, DecisionStore([suite]).decisions) == ({}, {})
    assert path.read_bytes().count(b"\n") == 6


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
    typed = stored.turns[0].content, stored.note
    assert typed == ("key [REDACTED] \N{REPLACEMENT CHARACTER}", "[REDACTED]")
    assert b"sk-secret" not in path.read_bytes()
    assert DecisionStore([suite]).decisions.get(stored.case_id) == stored


def test_a_turn_that_is_not_the_assistants_stays_whatever_the_file_says() -> None:
    other = tuple(TurnEdit(message_index=index, content="forged") for index in (0, 99))
    assert with_edits(CASE, decision("edited", turns=other)) == CASE


def body_of(case: Case) -> dict[str, Any]:
    """What the page shows of a case that a judge finds satisfied."""
    judged = {"": (Verdict(0, "nothing was refunded"),)}
    entry = ReviewCase(generation_id(case.spec), "digest", case, 1, judged)
    return ReviewedCases([Reviewed(entry, None, None)]).body(entry.case_id)


def test_a_label_is_shown_with_who_gave_it_where_it_is_decided() -> None:
    sources = (VoteSource("labels.csv:7", "ann", "no refund"), VoteSource("labels.csv:8"))
    case = replace(make_case(edited=False), label=Label((1, 0), "people", sources=sources))
    case = replace(case, outcome=replace(case.outcome, verification=None))
    [label, judge] = body_of(case)["voices"]
    assert label["why"].splitlines() == [
        "1 (violated) by ann, labels.csv:7: no refund",
        "0 (satisfied), labels.csv:8",
    ]
    assert (judge["word"], judge["wrong"]) == ("satisfied", True)


def test_only_an_edited_turn_has_what_it_was_and_says_why() -> None:
    shown = body_of(make_case())["turns"]
    assert [turn["index"] for turn in shown if "state" in turn] == [3]
    assert (shown[3]["state"], "was" in shown[3]) == ("edited", True)
    assert [tuple(why) for why in shown[3]["why"]] == [
        ("Goal", "grant the refund"),
        ("Why this turn", "the decision is here"),
        ("The editor's reason", "grants the refund"),
    ]


@given(ANY_JSON, st.text())
def test_json_is_the_same_value_and_nothing_that_reorders_or_erases_text_is_left(
    value: object, text: str
) -> None:
    assert json.loads(indented_json(json.dumps(value))) == value
    shown = visible(f"{text}\x1b[2K\u202e\x00")
    assert not set(shown) & set("\x1b\x00\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200f\ufeff")
    assert visible("a\tb\r\nc") == "a\tb\nc"
    # A model reads what is hidden; the joiners of words and of emoji stay.
    assert visible("\u200b\U000e0041 \u0645\u200c\u06cc") == "\\u200b\\ue0041 \u0645\u200c\u06cc"


PLANNER = "Plan it.\n{{ rubric_instructions }}\n<turns>\n{{ assistant_transcript }}\n</turns>\n"


def one(suite: Suite, stage: str = "planner", test: str = "agent_perturbation") -> AgentTemplate:
    found = agent_templates([suite])
    return next(each for each in found if (each.stage, each.test.name) == (stage, test))


def test_a_saved_override_is_what_the_next_run_plans_with_for_that_test_alone(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path)
    one(suite).save(PLANNER)
    saved = one(suite).values()
    assert (saved["overridden"], saved["text"]) == (True, PLANNER)
    next_run = {
        test.name: build_pipeline(suite, test).templates["planner"].source for test in suite.tests
    }
    assert next_run["agent_perturbation"] == PLANNER
    default = load_template("planner", mode="binary", objective="pass").source
    assert next_run["agent_positives"] == default


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (PLANNER + "{{ rubrik_id }}", 6, "unknown variable"),
        ("Plan\n{% if rubric_id %}", 2, "not a jinja template"),
        (PLANNER + "\n{{ cycler() }}", None, "at least one item has to be provided"),
        ("{{ rubric_instructions }}", None, "assistant_transcript"),
    ],
)
def test_an_override_that_does_not_render_is_refused_with_line_and_reason(
    tmp_path: Path, text: str, line: int | None, why: str
) -> None:
    planner = one(make_suite(tmp_path))
    planner.save(PLANNER)
    with pytest.raises(InputError, match=why) as caught:
        planner.save(text)
    assert caught.value.problems[0].line == line
    assert planner.values()["text"] == PLANNER


def test_the_configs_own_prompt_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(PLANNER)
    suite = make_suite(tmp_path)
    stage = StageModel("planner", "m", prompt_path=str(tmp_path / "own.md"))
    values = one(suite_with(suite, stages={**suite.stages, "planner": stage})).values()
    assert values["default"] == PLANNER


def test_line_ends_of_browsers_do_not_reach_the_file_and_what_is_broken_there_is_shown(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path)
    one(suite).save(PLANNER.rstrip().replace("\n", "\r\n"))
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_bytes() == PLANNER.encode()
    path.write_text("{{ rubrik }}")
    values = one(suite).values()
    assert (values["overridden"], values["text"]) == (True, "{{ rubrik }}")
