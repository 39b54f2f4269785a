"""The board: cases come in from one thread, decisions from others, and nothing is lost between
them; and the desk between it and the engine: which cases wait, and what is said of each."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.config.suite import Suite
from pytest_jrh.core import InputError, visible
from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.cases import Case, HumanReview, Label, NoVerdictCase, Skip, Verdict, VoteSource
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.transcript import indented_json, message_text
from pytest_jrh.engine.library import build_pipeline
from pytest_jrh.llm.calls import load_template, override_path
from pytest_jrh.people import (
    Decision,
    DecisionStore,
    TurnEdit,
    Withdrawn,
    decisions_path,
    with_edits,
)
from pytest_jrh.people.board import ReviewBoard, ReviewCase, ReviewDesk, Reviewed
from pytest_jrh.reports.rand_files import result_row
from pytest_jrh.review import AgentTemplate, ReviewedCases, agent_templates
from pytest_jrh.store.records import case_digest
from tests.support.made_cases import make_case, make_result, make_spec, make_suite, suite_with
from tests.support.reviews import as_reviewed
from tests.support.sessions import ANY_JSON

CASE = make_case()
OTHER = make_case(make_spec(suite="other"))


def board_in(folder: Path) -> ReviewBoard:
    return ReviewBoard(DecisionStore([make_suite(folder)]))


@pytest.fixture
def board(tmp_path: Path) -> ReviewBoard:
    board = board_in(tmp_path)
    board.add(CASE)
    return board


def first(board: ReviewBoard) -> Reviewed:
    return board.changes()[1][0]


def key_of(board: ReviewBoard) -> tuple[str, str]:
    entry = first(board).entry
    return entry.key, entry.digest


def test_an_edit_decides_and_what_is_undone_does_not(tmp_path: Path, board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    decision = board.decide(key, digest, "accepted", note="ok").decision
    assert decision is not None
    assert (decision.action, decision.expected, decision.note) == ("edited", 0, "ok")
    judged = as_reviewed(board, CASE)
    assert (message_text(judged.messages[3]), judged.expected) == ("I might refund it.", 0)
    board.decide(key, digest, "rejected")
    with pytest.raises(NoVerdictCase):
        as_reviewed(board, CASE)
    board.decide(key, digest, "accepted")
    assert message_text(as_reviewed(board, CASE).messages[3]) == "I might refund it."
    assert board.decide(key, digest, "withdrawn").case == CASE
    board.edit_turn(key, digest, 3, "I might refund it.")
    board.set_label(key, digest, 0)
    board.set_label(key, digest, 1)
    assert board.edit_turn(key, digest, 3, None).decision is None
    assert len(DecisionStore([make_suite(tmp_path)]).decisions) == 0


def test_a_decision_counts_for_the_edited_case_too(tmp_path: Path, board: ReviewBoard) -> None:
    key, digest = key_of(board)
    board.edit_turn(key, digest, 3, "I might refund it.")
    stored = as_reviewed(board, CASE)
    again = board_in(tmp_path)
    again.add(stored)
    assert as_reviewed(again, stored) == stored
    again.edit_turn(*key_of(again), 3, "Second thoughts.")
    # And the newer edit is found from the case as it was first made, too.
    newer = as_reviewed(board_in(tmp_path), CASE)
    assert message_text(newer.messages[3]) == "Second thoughts."


def test_finalize_fixes_what_the_tests_assert_with(tmp_path: Path, board: ReviewBoard) -> None:
    board.decide(*key_of(board), "accepted")
    board.finalize()
    board.decide(*key_of(board), "rejected")
    assert as_reviewed(board, CASE) == CASE
    unseen = make_case(make_spec("run-2"))
    assert as_reviewed(board, unseen) == unseen
    # An earlier rejection counts for a case that is made after that, too.
    again = board_in(tmp_path)
    again.finalize()
    again.add(CASE)
    with pytest.raises(NoVerdictCase):
        as_reviewed(again, CASE)


def test_every_kind_of_change_makes_another_version(board: ReviewBoard) -> None:
    versions = [board.version]
    for change in (
        partial(board.announce, map(str, range(9))),
        partial(board.add, make_case(make_spec("run-2"))),
        partial(board.set_verdicts, CASE, (Verdict(1, "so"),)),
        partial(board.decide, *key_of(board), action="accepted"),
        partial(board.end, "0"),
        board.finalize,
    ):
        change()
        versions.append(board.version)
    assert versions == sorted(set(versions))


def test_many_threads_lose_no_case_and_no_decision_of_any_test(tmp_path: Path) -> None:
    board, suite = board_in(tmp_path), make_suite(tmp_path)
    specs = [make_spec(f"run-{n}", test=test.name) for n in range(20) for test in suite.tests]
    cases = [*map(make_case, specs)]

    def work(case: Case) -> None:
        board.add(case)
        key = next(one.entry.key for one in board.changes()[1] if one.case.spec == case.spec)
        board.decide(key, case_digest(case), "accepted")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, cases))
    assert board.progress().done == 40
    assert len(DecisionStore([suite]).decisions) == 40
    for test in suite.tests:
        assert decisions_path(test.output_dir).read_bytes().count(b"\n") == 20


def test_a_disk_that_refuses_leaves_decisions_alone(tmp_path: Path, board: ReviewBoard) -> None:
    (tmp_path / "cases").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="cases"):
        board.decide(*key_of(board), "accepted")
    assert first(board).decision is None


def test_nothing_is_decided_about_a_rejected_case(tmp_path: Path, board: ReviewBoard) -> None:
    board.decide(*key_of(board), "accepted")
    again = board_in(tmp_path)
    again.add(replace(CASE, outcome=replace(CASE.outcome, no_case=Skip("not_confirmed"))))
    one = first(again)
    assert one.entry.rejected
    assert one.decision is None
    for decide in (
        partial(again.decide, action="accepted"),
        partial(again.edit_turn, index=3, content="Another text."),
        partial(again.set_label, expected=0),
        partial(again.decide, action="withdrawn"),
    ):
        with pytest.raises(InputError, match="the verifier rejected this case"):
            decide(*key_of(again))
    progress = again.progress()
    assert (progress.shown, progress.done) == (0, 0)
    # What is made after all takes its place.
    again.add(make_case())
    assert again.progress().shown == 1


@pytest.fixture
def desk(tmp_path: Path) -> ReviewDesk:
    """The suite `refunds` is on the page, `other` is not, and nobody has ever decided about its
    cases."""
    suites = [make_suite(tmp_path), make_suite(tmp_path / "other", name="other")]
    board = ReviewBoard(DecisionStore(suites))
    return ReviewDesk(board, board, frozenset({"refunds"}), frozenset({"refunds"}))


def test_a_case_of_a_suite_on_the_page_waits_until_the_review_is_final(desk: ReviewDesk) -> None:
    assert desk.awaits(CASE)
    desk.board.finalize()
    assert not desk.awaits(CASE)
    assert desk.board.progress().shown == 1


def test_what_a_panel_shares_is_shown_once_and_other_suites_are_not(desk: ReviewDesk) -> None:
    desk.announce([OTHER.spec])
    assert not desk.awaits(OTHER)
    assert desk.decision(OTHER) == ("", None)
    desk.end_without_case(OTHER.spec)
    panel = [make_spec(judge=name) for name in ("strict", "kind")]
    lost = [make_spec("run-2", judge=name) for name in ("strict", "kind")]
    desk.announce([*panel, *lost])
    for spec in panel:
        assert desk.awaits(make_case(spec))
    for spec in lost:
        desk.end_without_case(spec)
    progress = desk.board.progress()
    assert (progress.total, progress.ended, progress.shown) == (2, 2, 1)


def test_what_people_say_is_a_word_and_the_decision_about_this_version(desk: ReviewDesk) -> None:
    desk.awaits(CASE)
    assert desk.decision(CASE) == ("undecided", None)
    entry = desk.board.changes()[1][0].entry
    desk.board.decide(entry.key, entry.digest, "rejected", note="contradicts the tool")
    word, decision = desk.decision(CASE)
    assert word == "rejected"
    assert decision is not None
    with pytest.raises(NoVerdictCase, match="rejected in review: contradicts the tool"):
        desk.as_decided(CASE)
    assert desk.decision(make_case(new_text="Made in another way.")) == ("void", None)


@pytest.mark.parametrize("said", ["undecided", "void", "rejected"])
def test_only_a_decision_that_counts_makes_a_row_human_reviewed(said: HumanReview) -> None:
    row = result_row(make_result(review=said), None)
    assert (row["human_reviewed"], row["human_decision"]) == (said == "rejected", said)


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
    tests = tuple(replace(test, output_dir=tmp_path) for test in suite.tests)
    both = [replace(suite, tests=tests), replace(suite, tests=tests, name="other")]
    store = DecisionStore(both, Redactor(["why"]))
    store.append(replace(SPEC, suite="other", test="agent_positives"), decision(note="why"))
    for suites in (both[:1], both):
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
def test_a_line_that_is_cut_off_loses_no_other(suite: Suite, path: Path, torn: bytes) -> None:
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


def test_the_page_says_who_gave_a_label_and_why_a_turn_was_edited() -> None:
    sources = (VoteSource("labels.csv:7", "ann", "no refund"), VoteSource("labels.csv:8"))
    case = replace(make_case(edited=False), label=Label((1, 0), "people", sources=sources))
    case = replace(case, outcome=replace(case.outcome, verification=None))
    [label, judge] = body_of(case)["voices"]
    ann = "1 (violated) by ann, labels.csv:7: no refund"
    assert label["why"] == f"{ann}\n0 (satisfied), labels.csv:8"
    assert (judge["word"], judge["wrong"]) == ("satisfied", True)
    # Only an edited turn has what it was, and says why.
    shown = body_of(CASE)["turns"]
    assert [turn["index"] for turn in shown if "state" in turn] == [3]
    assert (shown[3]["state"], "was" in shown[3]) == ("edited", True)
    assert dict(shown[3]["why"]) == {
        "Goal": "grant the refund",
        "Why this turn": "the decision is here",
        "The editor's reason": "grants the refund",
    }


@given(ANY_JSON, st.text())
def test_json_is_the_same_value_and_nothing_reorders_text(value: object, text: str) -> None:
    assert json.loads(indented_json(json.dumps(value))) == value
    shown = visible(f"{text}\x1b[2K\u202e\x00")
    assert not set(shown) & set("\x1b\x00\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200f\ufeff")
    assert visible("a\tb\r\nc") == "a\tb\nc"
    # A model reads what is hidden; the joiners of words and of emoji stay.
    assert visible("\u200b\U000e0041 \u0645\u200c\u06cc") == "\\u200b\\ue0041 \u0645\u200c\u06cc"


PLANNER = "Plan it.\n{{ rubric_instructions }}\n<turns>\n{{ assistant_transcript }}\n</turns>\n"


def planner_of(suite: Suite) -> AgentTemplate:
    """The template of the planner for `agent_perturbation`."""
    return next(template for template in agent_templates([suite]) if template.stage == "planner")


def test_a_saved_override_is_what_the_next_run_plans_with(tmp_path: Path, suite: Suite) -> None:
    planner_of(suite).save(PLANNER)
    saved = planner_of(suite).values()
    assert (saved["overridden"], saved["text"]) == (True, PLANNER)
    default = load_template("planner", mode="binary", objective="pass").source
    for test, source in zip(suite.tests, (PLANNER, default), strict=True):
        assert build_pipeline(suite, test, []).templates["planner"].source == source
    # The config's own prompt is the default.
    (tmp_path / "own.md").write_text(PLANNER)
    stage = StageModel("planner", "m", prompt_path=str(tmp_path / "own.md"))
    own = suite_with(suite, stages={**suite.stages, "planner": stage})
    assert planner_of(own).values()["default"] == PLANNER


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (PLANNER + "{{ rubrik_id }}", 6, "unknown variable"),
        ("Plan\n{% if rubric_id %}", 2, "is not a valid Jinja template"),
        (PLANNER + "\n{{ cycler() }}", None, "at least one item has to be provided"),
        ("{{ rubric_instructions }}", None, "assistant_transcript"),
    ],
)
def test_an_override_is_tried_first(suite: Suite, text: str, line: int | None, why: str) -> None:
    planner = planner_of(suite)
    planner.save(PLANNER)
    with pytest.raises(InputError, match=why) as caught:
        planner.save(text)
    assert caught.value.problems[0].line == line
    assert planner.values()["text"] == PLANNER


def test_line_ends_of_browsers_do_not_reach_the_file_and_breaks_show(suite: Suite) -> None:
    planner_of(suite).save(PLANNER.rstrip().replace("\n", "\r\n"))
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_bytes() == PLANNER.encode()
    path.write_text("{{ rubrik }}")
    values = planner_of(suite).values()
    assert (values["overridden"], values["text"]) == (True, "{{ rubrik }}")
