"""Which cases a subset has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.config.probes import evenly
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.model import CaseSpec
from tests.support.made_cases import make_spec

TESTS = ("agent_perturbation", "agent_positives")
RUBRICS = ("kind", "safe", "true")


def answer(spec: CaseSpec) -> int:
    return int((spec.base or spec.test) == TESTS[0])


def specs_of(runs: int, judges: tuple[str | None, ...] = (None,)) -> list[CaseSpec]:
    return [
        replace(make_spec(f"run-{number}"), test=test, rubric_id=rubric, judge=judge)
        for test in TESTS
        for rubric in RUBRICS
        for number in range(runs)
        for judge in judges
    ]


def test_answers_rubrics_and_tests_are_chosen_evenly() -> None:
    layout = [
        replace(spec, test="format_invariance", base=spec.test, variant="line_ends")
        for spec in specs_of(5)
    ]
    chosen = evenly([*specs_of(5), *layout], 5, answer)
    assert sorted(Counter(map(answer, chosen)).values()) == [2, 3]
    assert sorted(Counter(spec.rubric_id for spec in chosen).values()) == [1, 2, 2]
    assert Counter(spec.test for spec in chosen).keys() == {*TESTS, "format_invariance"}
    twelve = Counter((spec.test, spec.rubric_id) for spec in evenly(specs_of(5), 12, answer))
    assert set(twelve.values()) == {2}


def test_a_rare_class_is_among_few_cases() -> None:
    rare = replace(make_spec("only"), test=TESTS[1], rubric_id="kind")
    many = [spec for spec in specs_of(30) if spec.test == TESTS[0]]
    for number in (2, 5):
        chosen = evenly([*many, rare], number, answer)
        assert replace(rare, judge=None) in chosen
        assert len(chosen) == number


def test_all_judges_of_a_panel_get_the_same_cases() -> None:
    assert evenly(specs_of(9, ("a", "b")), 5, answer) == evenly(specs_of(9), 5, answer)


@given(st.integers(1, 40), st.integers(1, 12), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing_and_a_new_run_little(
    runs: int, number: int, random: object
) -> None:
    before = specs_of(runs)
    number = min(number, len(before))
    shuffled = list(before)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    chosen = evenly(before, number, answer)
    assert evenly(shuffled, number, answer) == chosen
    if number > runs * len(RUBRICS):
        return
    # A run more has a case of each kind, of which each takes the place of one at most.
    after = set(map(generation_id, evenly(specs_of(runs + 1), number, answer)))
    added = {case for case in after if f"run-{runs}[" in case}
    assert len(set(map(generation_id, chosen)) - after) <= len(added)
