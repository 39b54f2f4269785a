"""The terminal's section: the answer in few lines, and with `-v` what it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_jrh.core.model import Spending
from pytest_jrh.core.text import columns
from pytest_jrh.reports.session import Extent, Session
from pytest_jrh.reports.terminal import MOST_LINES
from pytest_jrh.stats.baseline import JudgePrompt, short
from tests.support.judged_sessions import (
    DIGEST,
    coin,
    judged,
    misses,
    printed,
    right,
    scored,
    session_of,
    styled,
    wrong_on,
)

PROMPT = JudgePrompt("refunds", "", short(DIGEST), "Be strict.\nSay why.", "/repo/judge.md")


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


def test_what_was_kept_of_an_interrupted_session_is_said() -> None:
    extents = {"refunds": Extent(8, 32, interrupted=True)}
    session = replace(session_of(judged(right, runs=2)), extents=extents)
    assert printed(session)[1] == (
        "! interrupted: 8 of 32 cases kept; the same command goes on ($0.0080 so far)"
    )


def test_money_that_was_paid_is_said_whatever_is_printed() -> None:
    session = session_of(judged(right))
    assert printed(session, verbosity=-1)[-1] == "cost        48 calls, 96 replayed, $0.0480"
    assert not any("cost" in line for line in printed(replace(session, is_table=True)))
    assert Spending().calls == 0


def test_nothing_is_said_where_nothing_ran() -> None:
    assert printed(Session([])) == []
