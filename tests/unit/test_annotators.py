"""How far people agree who label the same cases, and how judges do beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from pytest_jrh.core.scales import BINARY, Scale, classed, numbered
from pytest_jrh.stats.alt_test import AltTest, alt_test
from pytest_jrh.stats.annotators import Agreement, Votes, agreement
from pytest_jrh.stats.verdicts import Coded

stats = pytest.importorskip("scipy.stats")
LEVELS = numbered(1, 5)
CLASSES = classed((("first", ""), ("second", ""), ("tie", ""), ("neither", "")))
Units = Sequence[Sequence[int]]


def agreement_on(units: Units, scale: Scale) -> Agreement:
    cases = []
    for number, unit in enumerate(units):
        cases.append((number, number, None, dict(enumerate(unit))))
    return agreement(Votes.of(cases, scale))


# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section C: 4 observers, 12 units.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def test_alpha_is_that_of_a_published_table() -> None:
    nominal, ordinal = agreement_on(UNITS, BINARY), agreement_on(UNITS, LEVELS)
    assert nominal.alpha.value == pytest.approx(0.743, abs=5e-4)
    assert ordinal.alpha.value == pytest.approx(0.815, abs=5e-4)
    assert nominal.raw.n == nominal.alpha.n == 11


def alpha_of(units: Units, *, is_ordered: bool) -> float:
    """Alpha from all pairs of values, as its definition has them."""
    values = [value for unit in units if len(unit) > 1 for value in unit]

    def distance(one: int, other: int) -> float:
        if not is_ordered:
            return float(one != other)
        between = [value for value in values if min(one, other) <= value <= max(one, other)]
        return float((len(between) - (values.count(one) + values.count(other)) / 2) ** 2)

    far = {pair: distance(*pair) for pair in product({*values}, repeat=2) if pair[0] != pair[1]}
    observed = 0.0
    for unit in units:
        for one, other in product(unit, repeat=2):
            observed += far.get((one, other), 0.0) / max(1, len(unit) - 1)
    expected = sum(far.get(pair, 0.0) for pair in product(values, repeat=2))
    return 1 - observed / expected * (len(values) - 1)


@pytest.mark.parametrize("scale", [LEVELS, CLASSES], ids=["levels", "classes"])
def test_alpha_is_that_of_all_pairs(scale: Scale) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        units = []
        for _ in range(int(rng.integers(4, 30))):
            size = int(rng.integers(0, 5))
            units.append([int(value) for value in rng.choice(scale.scores, size)])
        expected = alpha_of(units, is_ordered=scale.is_ordered)
        assert agreement_on(units, scale).alpha.value == pytest.approx(expected)


def test_what_says_nothing_of_agreement() -> None:
    for units, raw in (([[1], [0]], None), ([[1, 1], [1, 1]], 1.0), ([], None)):
        found = agreement_on(units, BINARY)
        assert (found.raw.value, found.alpha.value) == (raw, None)
    whole = agreement_on([[1, 1], [0, 0]] * 20, BINARY).alpha
    assert whole.value == 1
    assert whole.lower is not None
    assert 0.5 < whole.lower < 1


# The alternative annotator test, read again from its paper, case by case.

Said = Mapping[str, Mapping[int, int]]


def read_again(judge: Mapping[int, int], people: Said, tolerance: float, *, ordered: bool) -> Any:
    """Whom a judge matches, and its advantage probability."""

    def score(answer: int, others: Sequence[int]) -> float:
        if ordered:
            return -math.sqrt(np.mean([(answer - other) ** 2 for other in others]))
        return float(np.mean([answer == other for other in others]))

    p_values, advantages = {}, []
    for person, answers in people.items():
        won, lost = [], []
        for case, answer in answers.items():
            others = [people[name][case] for name in people if name != person]
            others_score = round(score(answer, others), 12)
            judge_score = round(score(judge[case], others), 12)
            won.append(judge_score >= others_score)
            lost.append(others_score >= judge_score)
        differences = np.array(lost, float) - np.array(won, float)
        if len(differences) < 30:
            p_values[person] = exact_ranks(differences - tolerance)
        else:
            test = stats.ttest_1samp(differences, tolerance, alternative="less")
            p_values[person] = float(test.pvalue)
        advantages.append(np.mean(won))
    adjusted = stats.false_discovery_control([*p_values.values()], method="by")
    matched = [name for name, p in zip(p_values, adjusted, strict=True) if p <= 0.05]
    return matched, float(np.mean(advantages))


def exact_ranks(values: Any) -> float:
    """The signed-rank test by all choices of signs."""
    ranks = stats.rankdata(np.abs(values))
    seen = ranks[values > 0].sum()
    signs = np.array([*product((0, 1), repeat=len(ranks))])
    return float(np.mean(signs @ ranks <= seen + 1e-9))


def people_who(rng: Any, cases: int, errors: Mapping[str, float], levels: int) -> Any:
    """What they say of cases; so often each of them says another thing than is so."""
    truth = rng.integers(0, levels, cases)
    said = {}
    for name, share in errors.items():
        is_wrong = rng.random(cases) < share
        said[name] = np.where(is_wrong, (truth + 1) % levels, truth)
    return said


@pytest.mark.parametrize(
    ("errors", "levels", "experts"),
    [
        # Nobody is behind those who are all alike, everybody before those who guess.
        ({"judge": 0.1, "ann": 0.1, "bo": 0.1, "cy": 0.1}, 2, ["ann", "bo", "cy"]),
        ({"judge": 0.5, "ann": 0.02, "bo": 0.02, "cy": 0.02}, 2, []),
        ({"judge": 0.5, "ann": 0.02, "bo": 0.02, "di": 0.02, "cy": 0.7}, 3, ["cy"]),
        ({"judge": 0.0, "ann": 0.3, "bo": 0.3, "cy": 0.3, "di": 0.3}, 5, ["ann", "bo", "cy", "di"]),
        ({"judge": 0.9, "ann": 0.0, "bo": 0.0, "cy": 0.0}, 5, []),
    ],
)
@pytest.mark.parametrize("ordered", [False, True], ids=["classes", "levels"])
def test_the_alternative_annotator_test_is_that_of_its_paper(
    errors: dict[str, float], levels: int, experts: list[str], ordered: bool
) -> None:
    said = people_who(np.random.default_rng(3), 200, errors, levels)
    judge = said.pop("judge")
    found = held(judge, said, ordered=ordered)
    of_cases = {name: dict(enumerate(answers.tolist())) for name, answers in said.items()}
    for tolerance, matched in found.matched.items():
        expected = read_again(dict(enumerate(judge)), of_cases, tolerance, ordered=ordered)
        assert [*matched] == expected[0]
        assert found.advantage.value == pytest.approx(expected[1])
    assert [*found.matched[0.2]] == experts


def held(judge: Any, said: Mapping[str, Any], *, ordered: bool) -> AltTest:
    people = Coded.of(np.repeat([*said], len(judge)).tolist())
    case = np.tile(np.arange(len(judge)), len(said))
    answers = np.concatenate([*said.values()]).astype(float)
    clusters = np.arange(len(judge))
    found = alt_test(judge.astype(float), case, people, answers, clusters, ordered=ordered)
    assert found is not None
    return found


def test_of_few_cases_ranks_are_summed() -> None:
    """Of forty cases two people have all, and the third has twelve."""
    said = people_who(np.random.default_rng(4), 40, {"judge": 0.2, "ann": 0.2, "bo": 0.2}, 2)
    judge = said.pop("judge").astype(float)
    third = np.full(40, math.nan)
    third[:12] = judge[:12]
    people = Coded.of(["ann"] * 40 + ["bo"] * 40 + ["cy"] * 12)
    case = np.concatenate([np.arange(40), np.arange(40), np.arange(12)])
    answers = np.concatenate([said["ann"], said["bo"], judge[:12]])
    arguments = (judge, case, people, answers, np.arange(40))
    found = alt_test(*arguments, ordered=False)
    assert found is not None
    # Twelve ties: each choice of signs but one has a higher sum.
    assert exact_ranks(np.full(12, -0.2)) == 2**-12
    assert "cy" in found.matched[0.2]
    judge[11:] = math.nan
    assert alt_test(*arguments, ordered=False) is None
