"""A session as one list of blocks, which every report renders."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.config.options import Options
from pytest_jrh.config.suite import Commands
from pytest_jrh.core import columns, cut_in_the_middle, replace_what_cannot_be_shown
from pytest_jrh.core.cases import LabelSource, Why
from pytest_jrh.core.diffs import changed_places, differences
from pytest_jrh.core.results import CaseResult, ShownTurns
from pytest_jrh.people import Grounds
from pytest_jrh.people.labels import PersonLabel
from pytest_jrh.reports.blocks import Cases, Diff, Line
from pytest_jrh.reports.ending import Concluded, ending_lines, print_ending
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.summary import compose, next_lines, worst_cases, worst_verdicts
from pytest_jrh.reports.terminal import MOST_LINES, block_lines
from tests.support.judged_sessions import (
    coin,
    derived,
    judged,
    misses,
    printed,
    right,
    scored,
    session_of,
    wrong_on,
)
from tests.support.made_cases import make_result, make_spec, result_with


def with_people(results: list[CaseResult], labels: dict[int, int]) -> Session:
    """A session in which Ann has given labels to some cases, by their place, without the answer."""
    results = [result_with(each, case_digest=f"{at:064x}") for at, each in enumerate(results)]
    people = tuple(
        PersonLabel(results[at].case_digest, "ann", label, blind=True)
        for at, label in labels.items()
    )
    return replace(session_of(results), grounds={"refunds": Grounds(people=people)})


def test_labels_that_people_found_wrong_come_first() -> None:
    session = with_people(judged(right), {0: 0, 1: 1, 2: 0})
    composed = compose(session)
    wrong = composed.answer[1]
    assert isinstance(wrong, Cases)
    assert wrong.title == "2 wrong labels, according to people who did not see the answer."
    whys = [case.why for case in wrong.cases]
    assert whys == ["violated by verifier; labelling blind, ann says satisfied"] * 2
    lines = [block for block in composed.steps if isinstance(block, Line)]
    [labels] = [line for line in lines if line.title == "labels"]
    assert labels.text.endswith("people checked 3 (20 needed), 2 wrong")
    assert labels.weight == "warning"


def test_what_a_person_confirmed_or_what_is_new_is_read_first() -> None:
    # The first three are violations of which the judge misses all.
    session = with_people(judged(misses(9), rubrics=("tone",)), {2: 1, 0: 0})
    worst = worst_cases(session)
    assert worst is not None
    first, *_, last = worst.cases
    assert (first.run, first.basis) == ("run-002", "verifier; blind: ann")
    assert (last.run, last.basis) == ("run-000", "verifier; labelling blind, ann says satisfied")
    # New mistakes are read before old ones.
    before = judged(wrong_on("run-001"), runs=6)
    now = judged(wrong_on("run-001", "run-004"), runs=6)
    session = session_of(now, before=before)
    ordered = session.results_in(worst_verdicts(session))
    assert {result.spec.run_id for result in ordered[: len(ordered) // 2]} == {"run-004"}


def test_what_no_recording_has_is_shown_where_it_is_the_same_of_all() -> None:
    why = Why("unrecorded", difference="message 1 (system):\n-Be strict.\n+Be kind.")
    results = [result_with(make_result(make_spec(run), "unrecorded"), why=why) for run in "ab"]
    [diff] = [block for block in compose(session_of(results)).answer if isinstance(block, Diff)]
    assert diff.places == (("Be strict.", "Be kind."),)
    results[0] = result_with(results[0], why=replace(why, difference="-a"))
    answer = compose(session_of(results)).answer
    assert not any(isinstance(block, Diff) for block in answer)


def test_each_changed_place_of_a_prompt_is_counted_in_words_of_the_files() -> None:
    """Words that two lines share by chance make no pair of them, and the first place is named."""
    text = "You are a {} auditor.\nRead the rule and the transcript, and decide.\n{}\nBegin.\n"
    old = "Mind the calls: what the agent did counts, not what it said."
    new = "Give the agent room: small slips in what it said are none."
    pieces = differences(text.format("strict", old), text.format("lenient", new))
    [one, two] = changed_places(pieces)
    assert one == ("You are a strict", "You are a lenient")
    assert (two[0].strip(), two[1].strip()) == (old, new)
    places = (one, ("", "Hm."), ("a b", ""), two)
    shown = " ".join(line.text for line in block_lines([Diff((), "changed", places)], 64))
    assert shown.startswith('changed: "You are a strict" -> "You are a lenient"; added "Hm."; ')
    assert shown.endswith('removed "a b" and 1 more')


def test_what_probes_turn_is_read_behind_what_is_wrong_without_them() -> None:
    turned = derived(["ids"], runs=20)
    first = next(result.case_id for result in turned if result.outcome == "disagree")
    results = [*judged(wrong_on("run-003"), rubrics=("tone",)), *turned]
    worst = worst_cases(session_of(results))
    assert worst is not None
    assert [case.case_id for case in worst.cases].index(first) == 2
    assert worst.cases[2].title == "run-001, refund_policy: misled by format_invariance"


@pytest.mark.parametrize("labelled_by", ["made", "unconfirmed", "people", "program"])
def test_only_labels_of_a_model_are_rejected(labelled_by: LabelSource) -> None:
    is_made = labelled_by in ("made", "unconfirmed")
    [line] = next_lines(session_of([make_result(None, "disagree", labelled_by=labelled_by)]))
    assert isinstance(line, Line)
    advice = "drop cases with a wrong label" if is_made else "correct wrong labels"
    assert line.text == (
        f"{advice}, or fix the judge; to accept the verdicts, add "
        "--jrh-baseline=inputs/baselines/refunds.json --jrh-update-baseline"
    )


def test_the_command_that_records_keeps_limits_and_selection() -> None:
    results = [make_result(None, "invalid_response", judge_digest="1"), make_result()]
    suite: Any = SimpleNamespace(name=results[0].suite, config_file=Path("/p/s.yml"))
    options = Options(configs=(suite.config_file,), record_mode="all", max_cost=2.5, max_calls=40)
    commands = Commands(options, Path("/p"), lambda _: suite, ["-k", "r1 or r2"])
    command = commands.record_all([suite], results)
    assert command == (
        "pytest --jrh-config=s.yml --jrh-record-mode=none --jrh-judge-record-mode=new_episodes "
        "--jrh-retry-unscored --jrh-max-cost=2.5 --jrh-max-calls=40 -k 'r1 or r2'"
    )
    assert commands.record_all([suite], results[1:]) == ""
    unrecorded = make_result(None, "unrecorded", judge_digest="1")
    of_one = commands.again(unrecorded.spec, unrecorded)
    assert "=new_episodes --jrh-max-cost=2.5 --jrh-max-calls=40 's.yml::" in of_one
    # Nothing about the model is to be mended where a word of its answers has no meaning yet.
    [line] = next_lines(replace(session_of(results), record_command=command))
    assert isinstance(line, Line)
    assert line.command == command
    assert "1 case; before that, change the prompt, the model, or `verdict`" in line.text


@pytest.mark.parametrize(("why", "is_said"), [(Why("no_plan"), True), (Why("no_answer"), False)])
def test_a_rubric_that_no_edit_breaks_may_be_one_about_calls(why: Why, is_said: bool) -> None:
    results = [make_result(make_spec(run), "no_case", why=why) for run in "ab"]
    said = "".join(line.text for line in next_lines(session_of(results)))
    assert ("if only tool calls can break the rubric, set `edits: acts`" in said) == is_said


def test_verdicts_that_took_a_second_request_are_counted() -> None:
    first, *others = judged(misses(9))
    again = result_with(first, shown=ShownTurns(1, asked_again=True))
    told = "asked again for 1 verdict, because its first answer could not be used."
    for results, is_told in (([again, *others], True), ([first, *others], False)):
        lines = " ".join(" ".join(printed(session_of(results), 80)).split())
        assert (told in lines) is is_told


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_the_terminal_whatever_the_names(width: int) -> None:
    rubrics = "identity_check_before_any_refund_or_change", "規約を守ること" * 3
    results = judged(wrong_on("run-001"), rubrics=rubrics)
    judges = judged(right, judge="the strictest of them all") + judged(coin(), judge="規約" * 20)
    for given_results in (results, judges, [*scored(right), *results]):
        lines = printed(session_of(given_results), width)
        assert max(map(columns, lines)) <= width
        assert len(lines) <= MOST_LINES
    # Where a panel is split, its cases are named whole.
    verbose = printed(session_of(results), width, 1)
    assert max(columns(line) for line in verbose if "suites/refunds" not in line) <= width


def test_what_a_judge_was_not_shown_is_said_whole_where_other_doubts_are_cut() -> None:
    results = []
    for result in judged(misses(9), rubrics=("first", "second", "tone")):
        shown = ShownTurns(1, (4,), is_whole=result.label == 0)
        results.append(result_with(result, shown=shown))
    lines = printed(session_of(results), 48)
    assert len(lines) <= MOST_LINES
    unseen = "(in 9 of its 9 missed violations and in 27 verdicts right by luck)."
    assert unseen in " ".join(" ".join(lines).split())
    assert any(line.startswith("! ") and line.endswith("…") for line in lines)


@given(st.text(max_size=40), st.integers(2, 30))
def test_a_name_that_is_cut_fits_and_keeps_its_ends(name: str, width: int) -> None:
    cut = cut_in_the_middle(f"{name} to the end", width)
    assert columns(cut) <= width
    assert "to the end".endswith(cut.rpartition("…")[2][-10:])


def test_money_that_was_paid_is_said_whatever_is_printed() -> None:
    session = session_of(judged(right))
    assert printed(session, verbosity=-1)[-1] == "cost        48 calls, 96 replayed, $0.0480"
    assert not any("cost" in line for line in printed(replace(session, is_table=True)))
    # Nothing is said where nothing ran.
    assert printed(Session([])) == []


def test_a_table_keeps_its_total_and_says_how_many_rows_it_leaves_out() -> None:
    rubrics = [f"rubric-{number:02}" for number in range(22)]
    for width in (80, 120):
        lines = printed(session_of(judged(wrong_on("run-001"), rubrics=rubrics)), width)
        [more] = [place for place, line in enumerate(lines) if line.endswith("more rows")]
        assert lines[more - 1].startswith("all  ")
        shown = sum(line.startswith("rubric-") for line in lines)
        assert lines[more] == f"and {22 - shown} more rows"


def test_of_more_than_20_cases_a_count_has_its_share() -> None:
    lines = printed(session_of(judged(misses(9))))
    assert any(re.search(r" 9 of 24 \(38%\)", line) for line in lines)


def test_lines_are_at_most_120_columns_however_wide_the_terminal_is() -> None:
    results = judged(misses(9), rubrics=[f"rubric-{number:02}" for number in range(22)])
    concluded = Concluded(session_of(results), passed=False, written=())
    lines = ending_lines(concluded, Display(Path("/repo"), 250), notices=())
    commands = [line.text for line in lines if len(line.text) > 120]
    assert all("pytest" in command for command in commands)


def test_colours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    concluded = Concluded(session_of(judged(misses(9))), passed=False, written=())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_ending(concluded, Path(), 0, notices=())
    assert capsys.readouterr().out.startswith("\x1b[1m\x1b[31mFAIL  ")
    monkeypatch.setenv("NO_COLOR", "1")
    print_ending(concluded, Path(), 0, notices=())
    assert capsys.readouterr().out.startswith("FAIL  ")


def test_what_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    replace_what_cannot_be_shown()
    stream.write("caf\u00e9")
    assert stream.buffer.getvalue() == b"caf?"


def test_a_case_that_failed_alone_is_not_told_twice() -> None:
    """Its failure has the same words."""
    [alone] = [result for result in judged(wrong_on("run-001")) if result.outcome == "disagree"][:1]
    assert not any(line.startswith("read first") for line in printed(session_of([alone])))
