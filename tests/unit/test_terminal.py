"""The terminal's section: figures, changes, decision, panels."""

from __future__ import annotations

import pytest

from pytest_jrh.core.model import CaseResult
from pytest_jrh.core.text import Styled, columns, visible
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import answer_lines, quiet_lines, session_lines
from pytest_jrh.stats.figures import all_warnings
from tests.support.judged_sessions import (
    HOSTILE,
    Answer,
    always,
    coin,
    judged,
    misses,
    right,
    scored,
    session_of,
    wrong_on,
)
from tests.support.made_cases import make_result, make_spec, result_with


def texts(session: Session, width: int = 80, verbosity: int = 1) -> list[str]:
    """With `-v`."""
    return [line.text for line in session_lines(session, width=width, verbosity=verbosity)]


def short(session: Session, width: int = 80) -> list[str]:
    """Without, and with the answer."""
    lines = session_lines(session, width=width)
    return [line.text for line in [*lines, *answer_lines(session, width)]]


def row(lines: list[str], name: str) -> list[str]:
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_table_gives_each_rubric_over_both_tests_then_all() -> None:
    lines = texts(session_of(judged(wrong_on("run-003"))))
    assert [line.split()[0] for line in lines[2:4]] == ["refund_policy", "tone"]
    assert row(lines, "refund_policy")[1:3] == ["24", "91.7%"]
    assert row(lines, "all")[1:] == ["48", "91.7%", "62.6-98.6", "91.7%", "8.3%", "0.83"]


def test_single_test_and_single_rubric_have_one_row() -> None:
    results = [
        result
        for result in judged(right, rubrics=("tone",))
        if result.spec.test == "agent_positives"
    ]
    lines = texts(session_of(results))
    assert [line.split()[0] for line in lines[1:3]] == ["rubric", "tone"]
    assert lines[3:5] == ["95% intervals       FPR", "tone           0.0-24.2"]
    assert lines[5] == "! Only satisfied cases: a judge that always says 0 would get 100%."


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_the_terminal_whatever_the_names(width: int) -> None:
    results = judged(
        wrong_on("run-001"),
        rubrics=("identity_check_before_any_refund_or_change", "規約を守ること" * 3),
    )
    panel = [
        *judged(right, judge="the strictest judge of them all"),
        *judged(coin(), judge="規約" * 20),
    ]
    for given_results in (results, panel, [*scored(right), *results]):
        assert max(map(columns, short(session_of(given_results), width))) <= width
    # Where a panel is split, its cases are named whole.
    assert max(map(columns, texts(session_of(results), width))) <= width


def test_names_that_differ_at_their_end_are_cut_in_the_middle() -> None:
    names = [f"the_agent_keeps_to_the_policy_on_{what}" for what in ("refunds", "returns")]
    lines = texts(session_of(judged(right, rubrics=names)))
    shown = [line.split()[0] for line in lines if line.startswith("the_a")]
    assert [name[-7:] for name in shown] == ["refunds", "returns"] * (len(shown) // 2)
    assert any("…" in name for name in shown)


def test_the_worst_rubrics_have_a_line_each_where_a_judge_is_wrong() -> None:
    names = [f"rubric-{number:02}" for number in range(30)]
    results = judged(right, 2, names)
    wrong = [result_with(each, score=1, outcome="disagree") for each in results[-1:]]
    lines = short(session_of([*results[:-1], *wrong]))
    rows = [line.split()[0] for line in lines if line.startswith("rubric-")]
    assert rows == ["rubric-29", *names[:7]]
    assert len(lines) < 30
    assert not any(line.startswith("rubric-") for line in short(session_of(results)))
    verbose = texts(session_of(results))
    assert [line.split()[0] for line in verbose[2:4]] == ["rubric-00", "rubric-01"]


def test_few_cases_have_no_table() -> None:
    results = judged(wrong_on("run-000"), 1)
    assert any(line.startswith("tone ") for line in short(session_of(judged(coin(), 3))))
    assert not any(line.startswith("tone ") for line in short(session_of(results)))


def test_the_answer_stands_last_and_is_short() -> None:
    session = session_of(judged(misses(6)), before=judged(right))
    answer = list(answer_lines(session))
    title = "FAIL: the judge misses 6 of 24 violations that it found before"
    assert answer[0] == (title, "bold red")
    assert answer[1].text == "No new false alarms (0 of 24); chance does as much in 2 of 100."
    assert answer[2].text.startswith("Misses 6 of 24 violations (25%, ")
    start = answer.index(Styled("wrong, worst first (6):", "bold"))
    assert answer[start + 1].text == "  tone: perturbation (run-000)"
    assert answer[start + 5].text.startswith("Next: read the 6 cases;")
    assert len(answer) <= 12


def test_a_quiet_session_has_a_line_for_each_judge_and_the_gate() -> None:
    session = session_of(judged(wrong_on("run-003")), before=judged(right))
    lines = [line.text for line in quiet_lines(session, 80)]
    assert lines == [
        "refunds: 48 verdicts, accuracy 91.7% (62.6-98.6), 4 wrong",
        "PASS: the judge is not shown to be worse than before: 4 of 48 cases newly wrong",
        "48 calls made, 96 replayed | 5,760 tokens | $0.0480",
    ]
    panel = session_of([*judged(right, judge="a"), *judged(always(1), judge="b")])
    assert [line.text for line in quiet_lines(panel, 80)][:-1] == [
        "refunds, judge a: 48 verdicts, accuracy 100.0% (84.8-100.0), 0 wrong",
        "refunds, judge b: 48 verdicts, accuracy 50.0% (34.2-65.8), 24 wrong",
        "! Constant verdict: 1 (violated) for all 48 cases.",
        "FAIL: judge b raises 24 false alarms on 24 satisfied cases",
    ]


def test_a_session_without_a_verdict_has_no_table() -> None:
    session = session_of([make_result(make_spec(run), "refused") for run in "ab"])
    assert "! Not in these figures: 2 unscored." in texts(session)
    lines = short(session)
    assert not any("figures" in line for line in lines)
    assert lines[-1] == "FAIL: 2 cases have no verdict (2 refused)"


def test_changes_are_named_by_node_id_in_pytests_colours() -> None:
    session = session_of(judged(wrong_on("run-003")), before=judged(wrong_on("run-001")))
    styled = session_lines(session, verbosity=1)
    red = [line.text for line in styled if line.style == "red"]
    green = [line.text for line in styled if line.style == "green"]
    assert "  suites/refunds.jrh.yml::agent_positives::tone::run-003[e1]" in red
    assert "  suites/refunds.jrh.yml::agent_positives::tone::run-001[e1]" in green
    assert any(line.text.startswith("Test by exchange") for line in styled)
    plain = short(session)
    assert not any(line.startswith("Test by exchange") for line in plain)
    assert "  refund_policy: positive (run-001)" in plain


def test_passed_gate_is_green() -> None:
    session = session_of(judged(right), before=judged(right))
    assert next(answer_lines(session)) == (
        "PASS: the judge is as good as before on 48 cases",
        "bold green",
    )
    styled = session_lines(session, verbosity=1)
    assert " ".join(line.text for line in styled if line.style == "green") == (
        "PASS: the judge is as good as before on 48 cases"
    )


def test_verbose_adds_matrices_and_why_figures_are_missing() -> None:
    whole = judged(wrong_on("run-003"))
    session = session_of(whole)
    plain, verbose = short(session), texts(session)
    title = "Confusion matrices and missing figures, refunds:"
    assert title not in plain
    start = verbose.index(title)
    assert verbose[start + 1 : start + 5] == [
        "all",
        "right answer  judge gave 0  judge gave 1",
        "0                       22             2",
        "1                        2            22",
    ]
    satisfied = session_of([result for result in whole if result.label == 0])
    reason = "- kappa: one class only: every label is 0 (refund_policy, tone, all)"
    assert reason in texts(satisfied)


def test_judges_get_sections_and_the_panel_its_agreement() -> None:
    lines = texts(session_of([*judged(right, judge="a"), *judged(always(1), judge="b")]))
    assert [line for line in lines if line.startswith("judge ")] == ["judge a", "judge b"]
    start = next(place for place, line in enumerate(lines) if line.startswith("Panel of refunds"))
    assert " ".join(lines[start : start + 5]).startswith(
        "Panel of refunds: 2 judges The majority is right in 24 of 48 cases (50.0%, 95% interval "
        "34.2-65.8); 24 cases without a majority"
    )
    assert ["a", "/", "b", "24", "of", "48", "(34.2-65.8)", "0.00", "(-0.08", "to", "0.08)"] in [
        line.split() for line in lines
    ]


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
    lines = texts(session_of(results))
    start = lines.index("Not in these figures: 4 without a case.")
    assert lines[start + 1 : start + 4] == [
        "  2 without a case: label not confirmed",
        "  1 without a case: no plan: the planner found no edit",
        "  1 without a case: not confirmed: the verifier says PASS",
    ]


def test_nothing_is_said_where_nothing_ran() -> None:
    assert session_lines(session_of([])) == []


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (always(1), "Constant verdict: 1 (violated) for all 48 cases."),
        (always(0), "Constant verdict: 0 (satisfied) for all 48 cases."),
        (coin(), "Worth little: kappa -0.08 (-0.45 to 0.31); 0 is chance."),
        (
            lambda spec, expected: 1 - expected,
            "Worth little: kappa -1.00 (-1.00 to -0.70); 0 is chance.",
        ),
    ],
)
def test_judge_that_judges_nothing_is_called_so(answer: Answer, warning: str) -> None:
    (section,) = session_of(judged(answer)).table.judges
    assert all_warnings(section, ()) == [warning]
    assert any(
        line.style == "yellow" and line.text.startswith(f"! {warning[:13]}")
        for line in session_lines(session_of(judged(answer)))
    )


def test_good_judge_is_not_warned_about_even_on_few_cases() -> None:
    for runs in (2, 12):
        (section,) = session_of(judged(right, runs=runs, rubrics=("tone",))).table.judges
        assert all_warnings(section, ()) == []


def test_ordinal_judge_that_scores_at_random_is_called_so() -> None:
    (constant,) = session_of(scored(lambda spec, expected: 1)).table.judges
    assert all_warnings(constant, ()) == ["Constant verdict: 1 for all 30 cases."]
    (turned,) = session_of(scored(lambda spec, expected: (expected + 1) % 3)).table.judges
    assert all_warnings(turned, ()) == [
        "Worth little: weighted kappa -0.50 (-0.69 to -0.25); 0 is chance."
    ]


def test_hostile_names_reach_the_terminal_as_visible_escapes() -> None:
    results: list[CaseResult] = [
        result_with(result, rubric_id=HOSTILE, suite=f"{HOSTILE}{result.judge}", judge=HOSTILE)
        for judge in ("a", "b")
        for result in judged(wrong_on("run-001"), judge=judge, rubrics=("tone",))
    ]
    quiet = [line.text for line in quiet_lines(session_of(results), 80)]
    for line in [*texts(session_of(results)), *quiet]:
        assert line == visible(line)
        assert "\n" not in line
        line.encode()
