"""What `benchmarks/gate.py` simulates on columns is what a session decides, and its checks fail."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks import gate
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.sections import GateRules
from pytest_jrh.stats.changes import Asked, Question
from pytest_jrh.stats.decision import Decision, Held, decide
from pytest_jrh.stats.verdicts import Baseline, Scope
from tests.support.figures import comparison_of

OF_PROBE = partial(gate.lost, share=0.3, among="probe")
# A name, a suite, what is asked, what the judge does, its flicker, and verdicts before and now.
ROWS: list[tuple[Any, ...]] = [
    ("drift", gate.Suite(10, 3), "again", partial(gate.lost, share=0.2), 0.05, 3, 3),
    ("more", gate.Suite(10, 1), "changed", gate.unchanged, 0.15, 1, 3),
    ("lost", gate.Suite(10, 3), "changed", partial(gate.lost, share=0.4), 0.02, 1, 1),
    ("other", gate.Suite(24, 3), "another", partial(gate.as_good, together=0.6), 0, 1, 1),
    ("scale", gate.Suite(10, 2, 9), "changed", partial(gate.higher, share=0.1), 0.1, 3, 3),
    ("wide", gate.Suite(10, 2, 100), "again", gate.unchanged, 0.1, 1, 1),
    ("probe", gate.Suite(10, 3, probed=20), "changed", OF_PROBE, 0.05, 1, 1),
]
CELLS = [gate.Cell(*(*row, (None, None))) for row in ROWS]


def results_of(session: gate.Session, scores: gate.Scores) -> list[CaseResult]:
    """One side of a session, as results."""
    results = []
    for result, of_case in zip(session.cases.results, scores.tolist(), strict=True):
        reasons = ("",) * len(of_case)
        results.append(replace(result, scores=tuple(of_case), reasons=reasons))
    return results


def decided(session: gate.Session, question: Question) -> Decision:
    """The decision from results and a baseline, as a session has them."""
    now = results_of(session, session.now)
    before = {line.case_id: line for line in results_of(session, session.before)}
    scope = Scope.of(before)
    scales = {("s", result.rubric_id): session.cases.suite.scale for result in now}
    compared = comparison_of(Baseline(before), now, scope, scales)
    return decide(compared, GateRules(), Held(scope, asked={"": Asked(question)}))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: str(cell.what))
def test_what_is_simulated_is_what_a_session_decides(cell: gate.Cell) -> None:
    for session in gate.sessions(cell, 4):
        decision = decided(session, cell.question)
        sets = session.changes(cell.question)
        by_title = {(of.kind, of.title): of for of in decision.sets}
        assert len(by_title) == len(sets)
        for of in sets:
            other = by_title[of.kind, of.title]
            assert (other.finding, other.net, {*other.lost}) == (of.finding, of.net, {*of.lost})
            assert (other.drop, other.bound) == pytest.approx((of.drop, of.bound))
        rank = gate.rank(sets)
        assert (decision.word == "FAIL") == (rank == 2)
        assert decision.passed == (rank == 0)


def test_simulated_cells_come_to_all_three_words_and_to_the_same_each_time() -> None:
    ranks = set()
    for cell in CELLS[:3]:
        for session in gate.sessions(cell, 10):
            ranks.add(gate.rank(session.changes(cell.question)))
    assert ranks == {0, 1, 2}
    assert gate.simulated(CELLS[0], 5) == gate.simulated(CELLS[0], 5)
    # Of five random tables it is counted when a word switches.
    first, second, third = gate.switches(0, 5)
    assert max(first, second, third) <= 5


@pytest.mark.parametrize(
    ("wanted", "is_lost", "limits"),
    [("1/18", False, (6, 23)), ("4/9", False, (8, 14)), ("70/95", True, (65, 90))],
)
def test_limits_are_five_points_from_what_is_to_be_reached(
    wanted: str, is_lost: bool, limits: tuple[float, float]
) -> None:
    assert gate.limits_of(wanted, is_lost=is_lost) == limits


def test_every_cell_beyond_its_limit_is_said_else_the_nearest_one() -> None:
    cell = gate.table_cells()[0]
    cells = [cell._replace(limits=(limit, None)) for limit in (5, 8, 20)]
    met = [gate.Found(share, 0, 0, gate.SESSIONS) for share in (0.01, 0.07, 0.05)]
    [nearest] = gate.checks_of(cells, met)
    assert (nearest.limit, nearest.verdict) == (8, "met, close")
    beyond = [gate.Found(share, 0, 0, gate.SESSIONS) for share in (0.2, 0.07, 0.5)]
    assert [check.verdict for check in gate.checks_of(cells, beyond)] == ["NOT MET", "NOT MET"]
    worse = [of._replace(side="least") for of in cells]
    assert [check.limit for check in gate.checks_of(worse, met)] == [5, 8, 20]
