"""The terminal's section: the answer in few lines, and with `-v` what it rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.model import CaseResult, Spending
from pytest_jrh.core.text import Styled, columns, visible
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Extent, Session
from pytest_jrh.reports.terminal import MOST_LINES, answer_lines
from pytest_jrh.stats.baseline import JudgePrompt, short
from pytest_jrh.stats.figures import all_warnings
from tests.support.judged_sessions import (
    DIGEST,
    HOSTILE,
    Answer,
    always,
    coin,
    judged,
    misses,
    panel,
    printed,
    right,
    scored,
    session_of,
    styled,
    wrong_on,
)
from tests.support.made_cases import make_result, make_spec, result_with

PROMPT = JudgePrompt("refunds", "", short(DIGEST), "Be strict.\nSay why.", "/repo/judge.md")


def row(lines: list[str], name: str) -> list[str]:
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_the_answer_says_what_got_worse_what_to_read_and_what_next() -> None:
    before, now = judged(right), judged(misses(6))
    session = session_of(now, before, prompt_before="Be kind.\nSay why.", prompts=[PROMPT])
    lines = styled(session)
    assert lines[0] == (
        "FAIL  the judge misses 6 of 24 violations that it found before",
        "bold red",
    )
    assert [line.text.rstrip() for line in lines[1:]] == [
        "      no new false alarms (0 of 24); chance does as much in 2 of 100",
        "rubric          missed  before  false alarms",
        "tone           6 of 12       0       0 of 12",
        "refund_policy  0 of 12       0       0 of 12",
        "all            6 of 24       0       0 of 24",
        'changed in judge.md: "kind." -> "strict."',
        "read first  run-000  tone: perturbation",
        "            missed; label violated (verifier)",
        '            judge: "The order is late."',
        "            run-001, run-002, run-003, run-004, run-005",
        "next        label wrong: press r; right: fix judge.md, or --jrh-update-baseline",
        "cost        48 calls, 96 replayed, $0.0480",
    ]


def test_the_last_line_has_the_report_and_the_cost() -> None:
    session = session_of(judged(misses(1)))
    display = Display(Path("/repo"), written=(Path("/repo/out/report.html"),))
    line = answer_lines(session, display)[-1].text
    assert line.startswith("report      out/report.html  ")
    assert line.endswith("  48 calls, 96 replayed, $0.0480")
    assert columns(line) == 80
    quiet = answer_lines(session, replace(display, verbosity=-1))
    assert [line.text[:6] for line in quiet] == ["FAIL  ", "report"]


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_the_terminal_whatever_the_names(width: int) -> None:
    results = judged(
        wrong_on("run-001"),
        rubrics=("identity_check_before_any_refund_or_change", "規約を守ること" * 3),
    )
    judges = [
        *judged(right, judge="the strictest judge of them all"),
        *judged(coin(), judge="規約" * 20),
    ]
    for given_results in (results, judges, [*scored(right), *results]):
        lines = printed(session_of(given_results), width)
        assert max(map(columns, lines)) <= width
        assert len(lines) <= MOST_LINES
    # Where a panel is split, its cases are named whole.
    verbose = printed(session_of(results), width, 1)
    assert max(columns(line) for line in verbose if "suites/refunds" not in line) <= width


def test_an_answer_has_at_most_so_many_lines() -> None:
    names = [f"rubric-{number:02}" for number in range(30)]
    several = [result_with(each, suite=suite) for suite in "abc" for each in judged(misses(9), 12)]
    doubtful = [*panel({"one": always(1), "two": coin()}), make_result(make_spec("x"), "refused")]
    for results in (judged(wrong_on("run-001"), 4, names), several, doubtful):
        lines = printed(session_of(results))
        assert len(lines) <= MOST_LINES, "\n".join(lines)
        assert lines[0].startswith("FAIL  ")


def test_where_room_is_short_the_worst_rubrics_are_named() -> None:
    names = [f"rubric-{number:02}" for number in range(30)]
    results = judged(right, 2, names)
    wrong = [result_with(each, score=1, outcome="disagree") for each in results[-1:]]
    lines = printed(session_of([*results[:-1], *wrong]))
    rows = [line.split()[0] for line in lines if line.startswith("rubric-")]
    assert rows == ["rubric-29", *names[: len(rows) - 1]]
    assert 3 <= len(rows) <= 8
    assert not any(line.startswith("rubric-") for line in printed(session_of(results)))


def test_of_several_suites_the_worst_comes_first() -> None:
    good = [result_with(each, suite="good") for each in judged(right)]
    bad = [result_with(each, suite="bad") for each in judged(misses(6))]
    lines = printed(session_of([*good, *bad]))
    assert lines[0] == "FAIL  1 of 2 suites fails: bad"
    assert lines[1].startswith("FAIL  bad: the judge misses 6 of 24 violations")
    assert any(line.startswith("PASS  good: the judge agrees with all 48 labels") for line in lines)


def test_where_nothing_is_wrong_few_lines_say_so() -> None:
    lines = printed(session_of(judged(right), before=judged(right)))
    assert lines[:2] == [
        "PASS  the judge is as good as before on 48 cases",
        "      0 of 24 violations missed, 0 false alarms on 24 satisfied cases",
    ]
    assert len(lines) <= 7


def test_what_was_kept_of_an_interrupted_session_is_said() -> None:
    session = replace(
        session_of(judged(right, runs=2)), extents={"refunds": Extent(8, 32, interrupted=True)}
    )
    assert printed(session)[1] == (
        "! interrupted: 8 of 32 cases kept; the same command goes on ($0.0080 so far)"
    )


def test_a_case_that_is_explained_above_is_only_named() -> None:
    session = session_of(judged(misses(2)))
    display = Display(Path("/repo"), explained=frozenset())
    first = next(each for each in session.results if each.outcome == "disagree").case_id
    lines = [
        line.text for line in answer_lines(session, replace(display, explained=frozenset([first])))
    ]
    assert "read first  run-000 (above), run-001" in lines
    assert not any("; label " in line for line in lines)
    alone = session_of(judged(misses(1)))
    lines = [
        line.text for line in answer_lines(alone, replace(display, explained=frozenset([first])))
    ]
    assert not any(line.startswith("read first") for line in lines)


def test_money_that_was_paid_is_said_whatever_is_printed() -> None:
    session = session_of(judged(right))
    assert printed(session, verbosity=-1)[-1] == "cost        48 calls, 96 replayed, $0.0480"
    assert not any("cost" in line for line in printed(replace(session, is_table=True)))
    assert Spending().calls == 0


def test_a_session_without_a_verdict_has_no_table() -> None:
    lines = printed(session_of([make_result(make_spec(run), "refused") for run in "ab"]))
    assert lines[0] == "FAIL  2 cases have no verdict (2 refused)"
    assert not any("missed" in line for line in lines)


def test_cases_without_a_transcript_are_counted_by_the_kind_of_their_reason() -> None:
    skipped = {
        "a": ("not_confirmed", "not confirmed: the verifier says PASS: It is fine."),
        "b": ("not_confirmed", "not confirmed: the verifier says FAIL: It is not."),
        "c": ("no_plan", "no plan: the planner found no edit"),
        # Of an earlier version, which wrote no kind.
        "d": (None, "not confirmed: the verifier says PASS: All is well."),
    }
    results = [
        make_result(make_spec(run), "no_case", skip_kind=kind, detail=detail)
        for run, (kind, detail) in skipped.items()
    ]
    [line] = [line for line in printed(session_of(results), 200) if "left out" in line]
    assert line.strip() == (
        "left out: 4 without a case (2 label not confirmed, 1 no plan, 1 not confirmed: the "
        "verifier says PASS)"
    )


def test_verbose_gives_each_rubric_over_both_tests_then_all() -> None:
    lines = printed(session_of(judged(wrong_on("run-003"))), verbosity=1)
    start = lines.index("Figures of refunds")
    assert [line.split()[0] for line in lines[start + 3 : start + 6]] == [
        "refund_policy",
        "tone",
        "all",
    ]
    assert row(lines[start:], "refund_policy")[1:3] == ["24", "91.7%"]
    assert row(lines[start:], "all")[1:] == ["48", "91.7%", "62.6-98.6", "91.7%", "8.3%", "0.83"]


def test_verbose_names_changes_by_node_id_in_pytests_colours() -> None:
    session = session_of(judged(wrong_on("run-003")), before=judged(wrong_on("run-001")))
    verbose = styled(session, verbosity=1)
    red = [line.text for line in verbose if line.style == "red"]
    green = [line.text for line in verbose if line.style == "green"]
    assert "  suites/refunds.jrh.yml::agent_positives::tone::run-003[e1]" in red
    assert "  suites/refunds.jrh.yml::agent_positives::tone::run-001[e1]" in green
    assert any(line.text.startswith("Test by exchange") for line in verbose)
    assert not any(line.startswith("Test by exchange") for line in printed(session))


def test_verbose_adds_matrices_and_why_figures_are_missing() -> None:
    whole = judged(wrong_on("run-003"))
    session = session_of(whole)
    verbose = printed(session, verbosity=1)
    title = "Confusion matrices and missing figures, refunds:"
    assert title not in printed(session)
    start = verbose.index(title)
    assert verbose[start + 1 : start + 5] == [
        "all",
        "right answer  judge gave 0  judge gave 1",
        "0                       22             2",
        "1                        2            22",
    ]
    satisfied = session_of([result for result in whole if result.label == 0])
    reason = "- kappa: one class only: every label is 0 (refund_policy, tone, all)"
    assert reason in printed(satisfied, verbosity=1)


def test_a_panel_is_a_table_of_judges_and_with_verbose_their_agreement() -> None:
    session = session_of([*judged(right, judge="a"), *judged(always(1), judge="b")])
    lines = printed(session)
    assert row(lines, "judge") == ["judge", "missed", "false", "alarms"]
    assert row(lines, "b")[1:] == ["0", "of", "24", "24", "of", "24"]
    verbose = printed(session, verbosity=1)
    start = verbose.index("Panel of refunds: 2 judges")
    assert " ".join(verbose[start + 1 : start + 4]).startswith(
        "No majority in 24 of 48 cases (2 judges); right in the other 24."
    )
    assert ["a", "/", "b", "24", "of", "48", "(34.2-65.8)", "0.00", "(-0.08", "to", "0.08)"] in [
        line.split() for line in verbose
    ]


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (always(1), "Constant verdict: 1 (violated) for all 48 cases."),
        (always(0), "Constant verdict: 0 (satisfied) for all 48 cases."),
        (coin(), "Worth little: kappa -0.08 where 0 is chance (-0.45 to 0.31)."),
        (
            lambda spec, expected: 1 - expected,
            "Worth little: kappa -1.00 where 0 is chance (-1.00 to -0.70).",
        ),
    ],
)
def test_judge_that_judges_nothing_is_called_so(answer: Answer, warning: str) -> None:
    session = session_of(judged(answer))
    (section,) = session.table.judges
    assert all_warnings(section, ()) == [warning]
    # The decision says it already; without one the warning does.
    assert "also unclear: the judge " in "\n".join(printed(session))
    assert Styled(f"! {warning}", "yellow") in styled(replace(session, decisions={}))


def test_good_judge_is_not_warned_about_even_on_few_cases() -> None:
    for runs in (2, 12):
        (section,) = session_of(judged(right, runs=runs, rubrics=("tone",))).table.judges
        assert all_warnings(section, ()) == []


def test_ordinal_judge_that_scores_at_random_is_called_so() -> None:
    (constant,) = session_of(scored(lambda spec, expected: 1)).table.judges
    assert all_warnings(constant, ()) == ["Constant verdict: 1 for all 30 cases."]
    (turned,) = session_of(scored(lambda spec, expected: (expected + 1) % 3)).table.judges
    assert all_warnings(turned, ()) == [
        "Worth little: weighted kappa -0.50 where 0 is chance (-0.69 to -0.25)."
    ]


def test_hostile_names_reach_the_terminal_as_visible_escapes() -> None:
    results: list[CaseResult] = [
        result_with(
            result,
            rubric_id=HOSTILE,
            suite=f"{HOSTILE}{result.judge}",
            judge=HOSTILE,
            reasoning=HOSTILE,
        )
        for judge in ("a", "b")
        for result in judged(wrong_on("run-001"), judge=judge, rubrics=("tone",))
    ]
    for verbosity in (-1, 0, 1):
        for line in printed(session_of(results), verbosity=verbosity):
            assert line == visible(line)
            assert "\n" not in line
            line.encode()


def test_nothing_is_said_where_nothing_ran() -> None:
    assert printed(Session([])) == []
