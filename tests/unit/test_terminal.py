"""The terminal's section: the answer in few lines, and with `-v` what it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.core.calls import Spending
from pytest_jrh.core.results import ShownTurns
from pytest_jrh.core.text import columns, cut_in_the_middle
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import MOST_LINES
from tests.support.judged_sessions import (
    coin,
    judged,
    misses,
    printed,
    right,
    scored,
    session_of,
    wrong_on,
)


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


def test_what_a_judge_was_not_shown_is_said_whole_where_other_doubts_are_cut() -> None:
    results = []
    for result in judged(misses(9), rubrics=("first", "second", "tone")):
        is_whole = result.label == 0
        shown = ShownTurns(1, (4,), is_whole=is_whole)
        results.append(replace(result, extra=replace(result.extra, shown=shown)))
    lines = printed(session_of(results), 60)
    assert len(lines) <= MOST_LINES
    unseen = "(9 of its 9 missed violations, 27 right by luck)."
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
    assert Spending().calls == 0


def test_nothing_is_said_where_nothing_ran() -> None:
    assert printed(Session([])) == []
