"""How far people agree who label the same cases, and how judges do beside them."""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core.scales import BINARY, Scale, numbered
from pytest_jrh.stats.people import VotedCase, Votes, agreement, alt_test, people_beside
from pytest_jrh.stats.statistics import judge_pairs
from pytest_jrh.stats.verdicts import Coded, Verdicts
from tests.support.made_cases import make_result, make_spec

stats = pytest.importorskip("scipy.stats")
LEVELS = numbered(1, 5)
Units = Sequence[Sequence[int]]


def agreement_on(units: Units, scale: Scale) -> Any:
    cases = [VotedCase(n, n, None, dict(enumerate(unit))) for n, unit in enumerate(units)]
    return agreement(Votes(cases, scale))


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


@pytest.mark.parametrize("scale", [LEVELS, BINARY], ids=["levels", "two"])
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
        test = stats.ttest_1samp(differences, tolerance, alternative="less")
        p_values[person] = float(test.pvalue)
        advantages.append(np.mean(won))
    adjusted = stats.false_discovery_control([*p_values.values()], method="by")
    matched = [name for name, p in zip(p_values, adjusted, strict=True) if p <= 0.05]
    return matched, float(np.mean(advantages))


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
    people = Coded.of(np.repeat([*said], len(judge)).tolist())
    case, clusters = np.tile(np.arange(len(judge)), len(said)), np.arange(len(judge))
    answers = np.concatenate([*said.values()]).astype(float)
    found = alt_test(judge.astype(float), case, people, answers, clusters, ordered=ordered)
    assert found is not None
    of_cases = {name: dict(enumerate(answers.tolist())) for name, answers in said.items()}
    for tolerance, matched in found.matched.items():
        expected = read_again(dict(enumerate(judge)), of_cases, tolerance, ordered=ordered)
        assert [*matched] == expected[0]
        assert found.advantage.value == pytest.approx(expected[1])
    assert [*found.matched[0.2]] == experts


def test_of_few_cases_ranks_are_summed() -> None:
    """Of forty cases two people have all, and the third has twelve."""
    said = people_who(np.random.default_rng(4), 40, {"judge": 0.2, "ann": 0.2, "bo": 0.2}, 2)
    judge = said.pop("judge").astype(float)
    people = Coded.of(["ann"] * 40 + ["bo"] * 40 + ["cy"] * 12)
    case = np.concatenate([np.arange(40), np.arange(40), np.arange(12)])
    answers = np.concatenate([said["ann"], said["bo"], judge[:12]])

    def of_first(cases: int) -> Any:
        is_first = case < cases
        votes = case[is_first], people[is_first], answers[is_first]
        return alt_test(judge, *votes, np.arange(40), ordered=False)

    found = of_first(40)
    assert found is not None
    # Twelve ties: each choice of signs but one has a higher sum.
    assert "cy" in found.matched[0.2]
    assert of_first(29) is None


def test_a_judge_is_held_against_people_in_runs_as_they_are() -> None:
    """An edited run has another right answer than the one that people labelled."""
    spec = make_spec("run-1", test="labels")
    as_it_is = make_result(spec, "agree", score=1, label=1)
    edited = make_result(make_spec("run-1"), "agree", score=0, label=0)
    case = VotedCase((spec.rubric_id, "run-1", 1), "run-1", 1, {"ann": 1, "bo": 1})
    for results in ([as_it_is, edited], [edited, as_it_is]):
        people = people_beside(Votes([case], BINARY), {"": Verdicts.of(results)})
        assert people.judges[""].agreement.value == 1
        pairs = [" ".join(pair.judges) for pair in people.pairs]
        assert pairs == ["the judge ann", "the judge bo", "ann bo"]


# Tables of several people.

ROWS = [
    {"case": "a", "ann": 1, "bo": 1, "cy": 0, "judge": 1, "final": ""},
    {"case": "b", "ann": 1, "bo": 0, "cy": "n/a", "judge": 0, "final": 0},
    {"case": "c", "ann": 0, "bo": 0, "cy": "", "judge": 0, "final": ""},
    {"case": "d", "ann": 1, "bo": "n/a", "cy": "n/a", "judge": 1, "final": ""},
]
PEOPLE = ["ann", "bo", "cy"]


def wide(**settings: Any) -> CheckedTable:
    return check_table(ROWS, label=PEOPLE, map={"n/a": ""}, one="violated", **settings)


def labels_of(checked: CheckedTable) -> list[int | None]:
    return [case.label for case in checked.table.cases.values()]


def test_a_column_a_person_is_as_a_row_a_person() -> None:
    long = []
    for row, person in product(ROWS, PEOPLE):
        values = {"case": row["case"], "judge": row["judge"]}
        long.append({**values, "who": person, "said": row[person]})
    named = {"label": "said", "annotator": "who", "verdict": "judge"}
    of_rows = check_table(long, **named, map={"n/a": ""}, one="violated")
    of_columns = wide()
    assert labels_of(of_columns) == labels_of(of_rows) == [1, None, 0, None]
    [one], [other] = (of.session.people.values() for of in (of_columns, of_rows))
    assert (one.agreement, one.judges, one.pairs) == (other.agreement, other.judges, other.pairs)
    # That most say nothing can be told of a case is no dispute.
    assert one.votes.disputed == [1]


def test_a_disputed_case_counts_by_its_votes_and_a_settled_one_by_its_label() -> None:
    [people] = wide().session.people.values()
    by_votes = people.judges[""].by_votes
    # One of three calls b violated, and one satisfied: the judge misses a third of a case.
    assert by_votes["missed"].value == pytest.approx((1 / 3) / (1 + 1 / 3))
    assert by_votes["false alarms"].value == 0
    settled = wide(settled="final")
    assert labels_of(settled) == [1, 0, 0, None]
    last = [result.extra.votes[-1].partition(": ")[0] for result in settled.results]
    assert last == ["cy", "settled", "bo", "cy"]
    [people] = settled.session.people.values()
    assert (people.votes.disputed, people.judges[""].by_votes) == ([], {})


def test_the_median_of_levels_may_lie_between_two() -> None:
    rows = [{"case": n, "ann": 3, "bo": 4, "judge": n, "old": 5 - n // 5} for n in range(1, 6)]
    settings: dict[str, Any] = {"scale": (1, 5), "baseline": "old", "max_drop": 0}
    checked = check_table(rows, label=["ann", "bo"], verdict="judge", **settings)
    assert labels_of(checked) == [3.5] * 5
    figures = checked.judges["judge"].figures
    agrees = [result.score for result in checked.results if result.outcome == "agree"]
    assert (agrees, figures["exact"].count) == ([3, 4], 2)
    assert figures["mean_absolute_error"].value == pytest.approx((2.5 + 1.5 + 0.5 + 0.5 + 1.5) / 5)
    assert figures["bias"].value == pytest.approx(-0.5)


def test_labels_alone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> tuple[int, str]:
        code = main(["check", "labels.csv", *arguments])
        captured = capsys.readouterr()
        return code, " ".join((captured.err + captured.out).split())

    monkeypatch.chdir(tmp_path)
    table = Path("labels.csv")
    table.write_text("case,annotator,label\na,<b>ann</b>,bad\na,bo,good\nb,bo,good\n")
    code, text = printed("-v", *(f"--report=r.{end}" for end in ("html", "md", "json")))
    assert code == 0
    assert 'labels.csv: used: "label" as label, "case" as case, "annotator" as' in text
    assert "people agree with each other in 0.0% of pairs" in text
    assert "without a label, because people disagree (1): a (<b>ann</b>: violated, bo" in text
    assert "label cases no label 1 satisfied 1" in text
    assert "<b>ann</b>" not in Path("r.html").read_text("utf-8")
    [suite] = json.loads(Path("r.json").read_text("utf-8"))["suites"].values()
    assert suite["people"]["people"] == ["<b>ann</b>", "bo"]
    # Whoever asks for a judge does not get by without one.
    for option in ("--verdict=judge", "--baseline=old", "--threshold=0.5", "--judge=annotator"):
        assert printed(option)[0] == 4
    table.write_text("case,label\na,bad\nb,good\n")
    assert "recognized as verdicts" in printed()[1]


@pytest.mark.parametrize(("others", "has_interval"), [(9, False), (10, True)])
def test_agreement_on_values_that_hardly_vary_is_unsure(others: int, has_interval: bool) -> None:
    units = [(5, 5)] * 80 + [(1 + number % 4,) * 2 for number in range(others)]
    scores = np.array(units, float)
    alpha = agreement_on(units, LEVELS).alpha
    [pair] = judge_pairs(("a", "b"), scores, np.arange(len(units)), is_ordered=True)
    for figure in (alpha, pair.kappa):
        assert figure.value == pytest.approx(1)
        assert (figure.lower is not None) is has_interval
        assert ("fewer than 10 cases" in figure.why) is not has_interval


def beside_people(rows: Sequence[tuple[str, ...]], **settings: Any) -> Any:
    """The people and the judge of a table with a column for each of them, the judge's last."""
    names = ["ann", "bo", "cy"][: len(rows[0]) - 1]
    lines = []
    for number, row in enumerate(rows):
        lines.append({"case": f"c{number}", **dict(zip((*names, "judge"), row, strict=True))})
    [people] = check_table(lines, label=names, verdict="judge", **settings).session.people.values()
    return people


def test_cases_without_a_majority_count_where_a_judge_is_held_against_people() -> None:
    rows = [("a", "a", "a", "a")] * 40 + [("b", "c", "d", "a")] * 40
    people = beside_people(rows, classes=["a", "b", "c", "d"])
    beside = people.judges[""]
    assert beside.agreement.value == pytest.approx(0.5)
    assert {pair.agreement.n for pair in people.pairs} == {80}
    assert beside.by_votes["b missed"].value == 1
    assert beside.alt_test is not None


def test_a_judge_that_flees_to_not_applicable_is_no_better_than_people() -> None:
    rng = np.random.default_rng(3)
    rows = []
    for number in range(120):
        level = int(rng.integers(1, 6))
        votes = [str(min(5, max(1, level + int(rng.integers(-1, 2))))) for _ in range(3)]
        rows.append((*votes, "n/a" if number % 4 else str(level)))
    people = beside_people(rows, scale=(1, 5))
    beside = people.judges[""]
    assert beside.agreement.value < 0.25
    assert beside.alt_test is not None
    assert not any(beside.alt_test.matched.values())
    kappas = {pair.judges: pair.kappa.value for pair in people.pairs}
    assert kappas["the judge", "ann"] < 0.2
    assert kappas["ann", "bo"] > 0.5
    # People who say so of a level disagree.
    people = beside_people([("3", "n/a", "3")] * 20 + [("4", "4", "4")] * 20, scale=(1, 5))
    assert people.agreement.raw.value == pytest.approx(0.5)
    assert people.agreement.alpha.value < 0.5
