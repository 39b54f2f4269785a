"""Cases judged from Python: a value is a verdict or it is none; the figures are a suite's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_jrh import (
    Case,
    CaseResult,
    InputError,
    JudgedCase,
    Unscored,
    Verdict,
    judge_cases,
    load_cases,
    reliability,
)
from pytest_jrh.store.records import case_digest, record_line, to_record
from tests.support.figures import describe
from tests.support.made_cases import make_case, make_spec

VIOLATED = [make_case(make_spec(f"run-{n}")) for n in range(6)]
SATISFIED = [make_case(make_spec(f"run-{n}", test="agent_positives")) for n in range(6)]
LEVEL = make_case(make_spec(target_score=2))


class Number:
    """As numpy's numbers: an integer for all who ask, and none."""

    def __int__(self) -> int:
        return 1

    __index__ = __int__


def judged(
    cases: list[Case], judge: Callable[[JudgedCase], object], **how: int
) -> list[CaseResult]:
    return asyncio.run(judge_cases(cases, judge, **how))


@pytest.mark.parametrize(
    ("value", "reasoning"), [(1, ""), ((1, " why "), "why"), (Verdict(1, "because"), "because")]
)
def test_a_score_is_held_against_the_label(value: object, reasoning: str) -> None:
    right, wrong = judged([VIOLATED[0], SATISFIED[0]], lambda _: value)
    assert (right.outcome, right.score, right.reasoning) == ("agree", 1, reasoning)
    assert (wrong.outcome, wrong.score, wrong.label) == ("disagree", 1, 0)
    assert right.case_digest == case_digest(VIOLATED[0])


@pytest.mark.parametrize(
    ("case", "value", "words"),
    [
        (VIOLATED[0], float("inf"), "gave inf"),
        (VIOLATED[0], Number(), f"a value of the type {__name__}.Number"),
        (VIOLATED[0], b"1", "a value of the type bytes"),
        (VIOLATED[0], (1, 2, 3), "a value of the type tuple"),
        (VIOLATED[0], "y" * 10**6, "gave 'yyy"),
        (VIOLATED[0], "1", "gave '1'"),
        (VIOLATED[0], 2, "gave the score 2; it must be 0 or 1"),
        (VIOLATED[0], (1, 5), "gave 5 as its reasoning"),
        (LEVEL, True, "gave True"),
        (LEVEL, 9, "gave the score 9"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_no_score_on_offer_is_no_verdict(
    case: Case, value: object, words: str
) -> None:
    [result] = judged([case], lambda _: value)
    assert (result.outcome, result.score, result.scores) == ("invalid_response", None, ())
    assert words in result.why.cause
    assert len(result.why.cause) < 500


def test_reasoning_is_kept_in_bounds() -> None:
    [result] = judged(VIOLATED[:1], lambda _: (1, "r" * 10**7))
    assert len(result.reasoning) == 20_000


def test_what_the_judge_raises_is_named_with_its_place() -> None:
    def broken(case: JudgedCase) -> object:
        raise LookupError("no such order")

    [result] = judged(VIOLATED[:1], broken)
    assert (result.outcome, result.score) == ("model_error", None)
    assert result.why.cause.startswith("The judge raised LookupError: no such order")
    assert result.why.places[0].endswith("in broken")

    def refused(case: JudgedCase) -> object:
        raise Unscored("refused", stage="judge", cause="it would not say.")

    [result] = judged(VIOLATED[:1], refused)
    assert (result.outcome, result.why.cause) == ("refused", "it would not say.")


def test_a_judge_sees_no_label_and_cannot_change_the_case() -> None:
    def meddling(case: JudgedCase) -> object:
        assert not hasattr(case, "expected")
        dict.update(case.messages[-1], content="changed")
        return 1

    before = VIOLATED[0].messages[-1]["content"]
    judged(VIOLATED[:1], meddling, repeats=2)
    assert VIOLATED[0].messages[-1]["content"] == before


def test_the_most_frequent_score_counts_and_a_tie_is_wrong() -> None:
    answers = iter([1, 0, 1, 0, 0, 1, 1, 0])
    first, second = judged(VIOLATED[:2], lambda _: (next(answers), "so"), repeats=3, concurrency=1)
    assert (first.outcome, first.score, first.scores) == ("agree", 1, (1, 0, 1))
    assert (second.outcome, second.score, second.scores) == ("disagree", 0, (0, 0, 1))
    [tie] = judged(VIOLATED[:1], lambda _: next(answers), repeats=2)
    assert (tie.outcome, tie.score, tie.scores) == ("disagree", None, (1, 0))


def test_results_come_in_the_order_of_the_cases_however_many_are_judged_at_once() -> None:
    running = most = 0

    async def judge(case: JudgedCase) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return 1

    results = judged(VIOLATED, judge, concurrency=3)
    assert [result.spec.run_id for result in results] == [case.spec.run_id for case in VIOLATED]
    assert most == 3


@pytest.mark.parametrize("how", [{"repeats": 0}, {"concurrency": 0}])
def test_less_than_one_is_refused(how: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        judged(VIOLATED, lambda _: 1, **how)


def test_the_figures_are_those_of_a_suite_with_intervals_and_warnings() -> None:
    results = judged([*VIOLATED, *SATISFIED], lambda case: 1)
    figures = reliability(results)
    total = describe(results)
    assert figures.figures["accuracy"].value == total.accuracy.value == 0.5
    assert figures.figures["accuracy"].lower == total.accuracy.lower
    assert list(figures.rubrics) == [VIOLATED[0].rubric.id]
    assert any("Constant verdict" in warning for warning in figures.warnings)
    assert "accuracy: 50.0%" in str(figures)
    assert "! Constant verdict" in str(figures)


def test_results_of_nothing_or_of_several_judges_have_no_figures() -> None:
    with pytest.raises(ValueError, match="of 0 judges or suites; must be one"):
        reliability([])
    others = [make_case(make_spec(suite="other"))]
    with pytest.raises(ValueError, match="of 2 judges or suites; must be one"):
        reliability(judged([*VIOLATED, *others], lambda _: 1))


def test_cases_are_read_as_they_were_made(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join(record_line(to_record(case)) for case in VIOLATED))
    read = load_cases(path)
    assert [case_digest(case) for case in read] == [case_digest(case) for case in VIOLATED]
    with pytest.raises(InputError, match="there is no such file"):
        load_cases(tmp_path / "none.jsonl")
    path.write_text('{"case_id": 5, "format": 1}\n', "utf-8")
    with pytest.raises(InputError, match=r"cases.jsonl:1"):
        load_cases(path)
