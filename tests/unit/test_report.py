from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_jrh.errors import Unrecorded, Unscored
from pytest_jrh.models import TESTS, CaseResult, Outcome, PerturbationOutcome, Spending, Usage, Verdict
from pytest_jrh.results.explain import disagreement_text, edit_diff, unscored_text
from pytest_jrh.results.metrics import group_stats
from pytest_jrh.results.report import summary_lines
from pytest_jrh.results.text import columns, shortened, visible
from tests.support.made_cases import MESSAGES, RUBRIC, make_case, make_edit, make_result, make_spec

OUTCOMES: tuple[Outcome, ...] = ("agree", "agree", "disagree", "no_case", "model_error")
BASE = Path("/repo")
RAW = "\x1b[31m\x07\x00\x9b\u202e\u2066\ud800\r"
UNPRINTABLE = set(RAW) - set("[31m")


def results_of(*rubrics: str, **changes: str) -> list[CaseResult]:
    return [
        make_result(make_spec(f"run-{number}", test=test, rubric_id=rubric, **changes), outcome)
        for test in TESTS
        for rubric in rubrics
        for number, outcome in enumerate(OUTCOMES)
    ]


def summary(results: list[CaseResult], spending: Spending | None = None) -> list[str]:
    return summary_lines(group_stats(results), spending or Spending(), 1.25)


def explained(case: object = None, **changes: object) -> str:
    settings = {
        "debug_bundle": BASE / "outputs/debug/x_edits_audit.json",
        "cassette": BASE / "cassettes/x.yaml",
        "command": "pytest 'a::b[c]'",
        "base": BASE,
        **changes,
    }
    verdict = Verdict(0, "The agent was polite.")
    return disagreement_text(case or make_case(), verdict, **settings)  # type: ignore[arg-type]


def test_table_shows_counts_per_test_and_rubric_and_their_total() -> None:
    lines = summary(results_of("refund_policy", "tone"))
    assert lines[0].split() == ["test", "rubric", "n", "agree", "accuracy", "no", "case", "unscored"]
    assert lines[1].split() == ["agent_perturbation", "refund_policy", "3", "2", "66.7%", "1", "1"]
    assert lines[4].split() == ["agent_positives", "tone", "3", "2", "66.7%", "1", "1"]
    assert lines[6].split() == ["total", "12", "8", "66.7%", "4", "4"]


def test_table_fits_eighty_columns_and_keeps_its_columns_aligned() -> None:
    lines = summary(results_of("identity_check_before_any_refund_or_change", "規約を守ること" * 3, "tone"))
    table = lines[: lines.index("")]
    assert all(columns(line) <= 80 for line in table)
    assert len({columns(line) for line in table}) == 1
    assert "identity_check_be" in table[1]
    assert "…" in table[1]


def test_no_verdict_shows_no_accuracy() -> None:
    (row,) = summary([make_result(outcome="model_error")])[1:2]
    assert row.split() == ["agent_perturbation", "refund_policy", "0", "0", "-", "0", "1"]


def test_suites_and_judges_get_sections_only_where_there_are_several() -> None:
    one, other = results_of("tone", judge="strict"), results_of("tone", judge="lax")
    assert not any("strict" in line for line in summary(one))
    assert [line for line in summary([*one, *other]) if "judge" in line] == ["judge strict", "judge lax"]
    moved = [replace(result, suite="ordinal") for result in one]
    assert [line for line in summary([*one, *moved]) if "suite" in line] == ["suite refunds", "suite ordinal"]


def test_generated_and_unverified_cases_are_shown_where_there_are_any() -> None:
    assert "made" not in summary(results_of("tone"))[0]
    lines = summary([make_result(outcome="generated"), make_result(verified=False)])
    assert lines[0].endswith("made")
    assert any(line.startswith("1 label unverified") for line in lines)


@pytest.mark.parametrize(
    ("spending", "line"),
    [
        (Spending(2, 0, Usage(1000, 24), 0.5, 0.5), "2 calls made, 0 replayed | 1,024 tokens | $0.5000 | 1.2 s"),
        (Spending(0, 9, Usage(5, 5), 1.5), "0 calls made, 9 replayed | 10 tokens | $0.00 ($1.50 recorded) | 1.2 s"),
        (Spending(1, 9, Usage(5, 5), 1.5, 0.5), "1 call made, 9 replayed | 10 tokens | $0.5000 | 1.2 s"),
        (Spending(3, 0, Usage(1, 1), 0, 0, 3), "3 calls made, 0 replayed | 2 tokens | 3 calls unpriced | 1.2 s"),
        (
            Spending(3, 0, Usage(1, 1), 0.5, 0.5, 1),
            "3 calls made, 0 replayed | 2 tokens | $0.5000, 1 call unpriced | 1.2 s",
        ),
    ],
)
def test_spending_line_never_counts_an_unpriced_call_as_free(spending: Spending, line: str) -> None:
    assert summary(results_of("tone"), spending)[-1] == line


def test_nothing_is_said_where_nothing_ran() -> None:
    assert summary([]) == []


def test_long_run_is_told_in_minutes() -> None:
    stats = group_stats(results_of("tone"))
    assert summary_lines(stats, Spending(), 125)[-1].endswith("2 min 5 s")
    assert summary_lines(stats, Spending(), 7_500)[-1].endswith("2 h 5 min")


def test_disagreement_shows_all_that_a_reader_needs() -> None:
    text = explained()
    for part in (
        "The judge gave 0 (satisfied); the right answer is 1 (violated).",
        "rubric: refund_policy (rubrics.yml:7)",
        RUBRIC.instructions,
        "confirmed by the verifier:\n    It grants a late refund.",
        "The agent was polite.",
        "    turn 3 (assistant)\n    - Order 17 is outside the window, so I cannot refund it.\n"
        "    + I have refunded order 17 in full.",
        "debug bundle: outputs/debug/x_edits_audit.json",
        "cassette:     cassettes/x.yaml",
        "run it again: pytest 'a::b[c]'",
    ):
        assert part in text


def test_ordinal_scores_carry_their_labels() -> None:
    text = explained(make_case(make_spec(target_score=2)))
    assert "The judge gave 0 (ignores the policy); the right answer is 2 (follows it)." in text


def test_unverified_label_is_called_so() -> None:
    case = make_case()
    unverified = replace(case, verified=False, outcome=replace(case.outcome, verification=None, confirmed=False))
    assert "1 (violated), a label that nobody verified" in explained(unverified)
    assert "although the verifier did not confirm it" in explained(replace(case, verified=False))


def test_case_without_edits_says_so_and_names_no_bundle() -> None:
    case = make_case(make_spec(test="agent_positives"), edited=False)
    text = explained(case, debug_bundle=None)
    assert "no edits" in text
    assert "debug bundle" not in text


def test_panel_member_is_named() -> None:
    assert "The judge strict gave" in explained(make_case(make_spec(judge="strict")))


def test_model_text_reaches_the_terminal_as_visible_escapes() -> None:
    case = make_case(new_text=f"refunded {RAW}")
    for text in (
        explained(replace(case, rubric=replace(RUBRIC, id=f"r{RAW}", instructions=RAW))),
        unscored_text(Unscored("refused", stage="judge", cause=RAW, advice=RAW), command=RAW),
        "\n".join(summary([make_result(make_spec(rubric_id=RAW, suite=RAW)), make_result(make_spec(suite="b"))])),
    ):
        assert not set(text) & UNPRINTABLE
        assert "\\x1b[31m" in text


def test_long_texts_are_bounded_and_say_what_is_missing() -> None:
    words = " ".join(f"word{number}." for number in range(20_000))
    case = make_case(new_text=words)
    case = replace(case, rubric=replace(RUBRIC, instructions=words))
    text = explained(case)
    assert len(text.splitlines()) < 140
    assert "more lines)" in text
    assert "in the debug bundle)" in text


def test_many_edits_are_bounded() -> None:
    edits = tuple(make_edit("old text", f"new text {number}", 1) for number in range(9))
    text = explained(replace(make_case(), outcome=PerturbationOutcome(MESSAGES, edits=edits)))
    assert "9 edits made this case" in text
    assert "3 more edits in the debug bundle" in text


def test_diff_shows_the_changed_sentence_with_its_neighbours() -> None:
    start = [f"Sentence {number}." for number in range(6)]
    edited = [*start[:3], "Something else.", *start[4:]]
    assert edit_diff(make_edit(" ".join(start), " ".join(edited))) == [
        "  ...",
        "  Sentence 2.",
        "- Sentence 3.",
        "+ Something else.",
        "  Sentence 4.",
        "  ...",
    ]


@given(before=st.text(max_size=300), after=st.text(max_size=300))
@settings(max_examples=50)
def test_diff_of_any_texts_is_printable_and_narrow(before: str, after: str) -> None:
    for line in edit_diff(make_edit(before, after), 60):
        assert len(line) <= 60
        assert "\n" not in line
        assert line == visible(line)
        line.encode()


def test_unscored_is_a_paragraph_with_stage_cause_and_advice() -> None:
    trouble = Unscored("invalid_response", stage="summary", cause="the answer was empty.", advice="Raise max_tokens.")
    assert unscored_text(trouble, command="pytest x") == (
        "No verdict (invalid_response): the summarizer's model gave no answer that can be\n"
        "used. The answer was empty. Raise max_tokens.\n"
        "\n"
        "run it again: pytest x"
    )


def test_unrecorded_shows_the_difference_the_cassette_and_the_command() -> None:
    trouble = Unrecorded(stage="judge", cause="it differs", difference="- old\n+ new", cassette="/repo/c/x.yaml")
    text = unscored_text(trouble, command="pytest x --jrh-record-mode=new_episodes", base=BASE)
    assert "    - old\n    + new" in text
    assert "cassette: c/x.yaml" in text
    assert "record it: pytest x --jrh-record-mode=new_episodes" in text


def test_shortening_counts_columns_not_characters() -> None:
    assert shortened("規約規約", 8) == "規約規約"
    assert shortened("規約規約", 7) == "規約規…"
    assert columns("e\u0301") == 1
