"""How often made cases are told from untouched runs (rule D11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.cases.questions import ask_realism
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import (
    CaseResult,
    EditKind,
    Realism,
    RealismAnswer,
    SharedCall,
    Spending,
    StageModel,
)
from pytest_jrh.llm.calls import Answer, CallRequest, Stage, make_complete
from pytest_jrh.llm.prompts import load_template
from pytest_jrh.reports.spending import total_spending
from pytest_jrh.stats.realism import realism_tables
from pytest_jrh.store.results import read_results, result_from, result_text, stored_data
from tests.support.made_cases import DIGESTS, MESSAGES, make_result, make_spec

ANSWERS = st.sampled_from([True, False, None])


def answered(altered: bool | None, *turns: int) -> RealismAnswer:
    if altered is None:
        return RealismAnswer(None, reason="No answer.", trouble="refused")
    return RealismAnswer(altered, turns, "Because.")


def asked(
    run: int, of_case: bool | None, of_run: bool | None, *, rubric: int = 1, kind: EditKind = "say"
) -> CaseResult:
    spec = make_spec(run_id=f"run-{run}", rubric_id=f"rubric-{rubric}")
    turns = (3,) if of_case else ()
    realism = Realism(answered(of_case, *turns), answered(of_run), (3,), (kind,))
    return make_result(spec, "agree", expected=1, score=1, realism=realism, **DIGESTS)


@given(st.lists(st.tuples(st.integers(1, 5), ANSWERS, ANSWERS), min_size=1, max_size=30))
def test_as_many_transcripts_are_altered_as_are_not(
    cases: Sequence[tuple[int, bool | None, bool | None]],
) -> None:
    [table] = realism_tables(asked(*case, rubric=n) for n, case in enumerate(cases))
    total = table.total
    pairs = [case for case in cases if None not in case]
    assert total.right.n == 2 * len(pairs)
    assert total.right.count == sum(bool(of_case) + (not of_run) for _, of_case, of_run in pairs)
    if total.right.value is None:
        assert total.right.why == "no question has an answer"
    assert total.suspected.n <= len({run for run, _, _ in cases})


@pytest.mark.parametrize("constant", [True, False])
@given(cases=st.lists(st.integers(1, 5), min_size=2, max_size=30))
def test_a_constant_answer_is_right_in_half(constant: bool, cases: list[int]) -> None:
    [table] = realism_tables(
        asked(run, constant, constant, rubric=n) for n, run in enumerate(cases)
    )
    assert table.total.right.value == 0.5
    assert not table.tells_apart


def test_kinds_of_edits_and_tests_have_rows_of_their_own_where_there_are_several() -> None:
    results = [asked(run, run < 11, False, kind="say") for run in range(20)]
    results += [asked(run, True, False, kind="omit", rubric=2) for run in range(20)]
    [table] = realism_tables(results)
    rows = [(row.name, row.level, row.right.count, row.right.n) for row in table.rows]
    assert rows == [("all", "total", 71, 80), ("say", "kind", 31, 40), ("omit", "kind", 40, 40)]
    assert table.tells_apart
    assert (table.named.count, table.named.n) == (31, 31)
    # Twenty runs, each of two cases.
    assert table.total.suspected.n == 20


def test_a_result_travels_and_is_stored_with_it(tmp_path: Path) -> None:
    shared = SharedCall("f" * 64, Spending(calls=1, cost=0.5))
    realism = Realism(answered(True, 3), answered(None), (1, 3), ("say", "omit"), shared)
    result = make_result(expected=1, score=1, realism=realism, **DIGESTS)
    assert result_from(result_text(result)) == result
    path = tmp_path / "case_results.jsonl"
    path.write_text(json.dumps(stored_data(result)) + "\n", "utf-8")
    [stored] = read_results(path).values()
    assert stored.result == result
    assert "realism" not in stored_data(make_result(expected=1, score=1, **DIGESTS))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"case": {"altered": None}}, "realism says why there is no answer exactly where"),
        ({"case": {"altered": True, "trouble": "refused"}}, "exactly where there is none"),
        ({"case": {"altered": None, "trouble": "bored"}}, "a trouble of realism must be one of"),
        ({"case": {"altered": True, "turns": [-1]}}, "realism.case.turns.0: .* or equal to 0"),
        ({"edited_turns": [-2]}, "realism.edited_turns.0: .* or equal to 0"),
        ({"edited_turns": [2, 2]}, "realism.edited_turns: .* a value is there twice"),
        ({"edit_kinds": ["say", "say"]}, "realism.edit_kinds: .* a value is there twice"),
        ({"edit_kinds": ["sing"]}, "realism.edit_kinds.0: .* 'say', 'call', 'insert' or 'omit'"),
        ({"case": {"altered": "yes"}}, "realism.case.altered"),
        ({"shared": {"fingerprint": "f", "spending": {"calls": -1}}}, "must be numbers from 0"),
    ],
)
def test_a_stored_line_that_contradicts_itself_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    realism = Realism(answered(True, 3), answered(False), (3,), ("say",))
    data = stored_data(make_result(expected=1, score=1, realism=realism, **DIGESTS))
    data["realism"] |= change
    path = tmp_path / "case_results.jsonl"
    path.write_text(json.dumps(data) + "\n", "utf-8")
    with pytest.raises(InputError, match=said):
        read_results(path)


def test_the_question_about_a_run_is_counted_once() -> None:
    def of_rubric(rubric: int, call: Spending) -> CaseResult:
        realism = Realism(
            answered(True), answered(False), (3,), ("say",), SharedCall("f" * 64, call)
        )
        spec = make_spec(rubric_id=f"rubric-{rubric}")
        return make_result(spec, expected=1, score=1, realism=realism, spending=call, **DIGESTS)

    paid = of_rubric(1, Spending(calls=1, cost=0.5, paid=0.5))
    copied = of_rubric(2, Spending(replayed=1, cost=0.5))
    assert total_spending([copied, paid]) == Spending(calls=1, cost=0.5, paid=0.5)


@given(st.lists(st.integers(), max_size=20), st.booleans(), st.text(max_size=20).map(str.strip))
def test_turns_that_are_not_there_are_dropped(turns: list[int], altered: bool, reason: str) -> None:
    content = json.dumps({"reason": reason, "turns": turns, "altered": altered})
    sent: list[CallRequest] = []

    async def exchange(request: CallRequest) -> Answer:
        sent.append(request)
        return Answer(content)

    template = load_template("realism", mode="binary", objective="fail")
    stage = Stage(StageModel("realism", "m"), template, make_complete(exchange))
    answer = asyncio.run(ask_realism(stage, MESSAGES))
    assert answer.altered is altered
    assert set(answer.turns) <= set(range(len(MESSAGES)))
    assert answer.turns == tuple(sorted(set(answer.turns)))
    assert altered or not answer.turns
    prompt = sent[0].messages[-1]["content"]
    assert "Was this transcript altered?" in prompt
    assert "[3] assistant" in prompt


@pytest.mark.parametrize(
    "content",
    [
        '{"reason": "r", "turns": [], "altered": "true"}',
        '{"reason": "r", "turns": [], "altered": 1}',
        '{"reason": "r", "turns": [1.0], "altered": true}',
        '{"reason": "r", "turns": "all", "altered": true}',
        '{"reason": "r", "turns": [], "altered": null}',
        '{"reason": "r", "altered": true, "altered": false, "turns": []}',
        "It was altered.",
    ],
)
def test_what_is_no_answer_is_never_taken_for_one(content: str) -> None:
    async def exchange(request: CallRequest) -> Answer:
        return Answer(content)

    template = load_template("realism", mode="binary", objective="fail")
    stage = Stage(StageModel("realism", "m"), template, make_complete(exchange))
    with pytest.raises(Unscored, match="invalid_response"):
        asyncio.run(ask_realism(stage, MESSAGES))
