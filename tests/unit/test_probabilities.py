"""Judges whose verdicts are probabilities: the figures beside scikit-learn's, their intervals by
simulation, and what `check` makes of a table of them."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pytest_jrh.__main__ import main
from pytest_jrh.cli.checking import CheckedTable, check_table
from pytest_jrh.core import InputError
from pytest_jrh.reports.for_programs import probability_data
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.stats.probabilities import Probabilities, probabilities_of
from pytest_jrh.stats.verdicts import Verdicts
from pytest_jrh.store.ledger import table_bytes
from tests.support.figures import ends
from tests.support.made_cases import make_result, make_spec

Numbers = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
GRADED = [0.93, 0.6, 0.2, 0.41, 0.07, 0.5, 0.88, 0.02, 0.3, 1e-05, 1, 0]
LABELS = [1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]


def results_of(probabilities: Sequence[float], labels: Sequence[int], size: int = 1) -> Verdicts:
    """Verdicts of a judge whose threshold is 0.5, with so many cases of a run."""
    results = []
    for number, (value, label) in enumerate(zip(probabilities, labels, strict=True)):
        spec = make_spec(f"run {number // size}", epoch=number)
        about: Any = {"label": int(label), "probabilities": (float(value),)}
        results.append(make_result(spec, score=int(value >= 0.5), **about))
    return Verdicts.of(results)


def known(figures: Probabilities | None) -> Probabilities:
    assert figures is not None
    return figures


def drawn(
    rng: np.random.Generator, n: int, size: int, spread: float, *, is_tied: bool = False
) -> tuple[Numbers, Marks]:
    """Probabilities that are true, and labels by them; half of what moves them is that of a run."""
    weight = 0.7 if size > 1 else 0.0
    shared = np.repeat(rng.normal(size=n // size), size)
    latent = weight * shared + np.sqrt(1 - weight**2) * rng.normal(size=n)
    probabilities = 1 / (1 + np.exp(-spread * latent))
    labels = rng.random(n) < probabilities
    return in_tenths(probabilities) if is_tied else probabilities, labels


def in_tenths(values: Numbers) -> Numbers:
    """The probabilities of a judge that knows ten of them."""
    return np.floor(values * 10) / 10 + 0.05


def surer(values: Numbers) -> Numbers:
    """How sure a judge is of its verdicts by a threshold of 0.5, without what rounding adds."""
    return np.maximum(values, 1 - values).round(9)


def as_sure(sure: Numbers, counts: Numbers) -> Numbers:
    """How much there is of cases that are at least as sure as each one."""
    return np.array([counts[sure >= least].sum() for least in sure])


@pytest.mark.parametrize(("size", "is_tied"), [(1, False), (3, False), (3, True)])
def test_the_figures_are_those_of_scikit_learn(size: int, is_tied: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    calibration = pytest.importorskip("sklearn.calibration")
    values, labels = drawn(np.random.default_rng(size), 300, size, 4, is_tied=is_tied)
    results = results_of(list(values), list(labels), size)
    figures = known(probabilities_of(results))
    assert figures.brier.value == pytest.approx(metrics.brier_score_loss(labels, values))
    shares, _ = calibration.calibration_curve(labels, values, n_bins=10)
    assert [share.value for share in figures.bins.values()] == pytest.approx(list(shares))

    def at_few_alarms(of: Marks) -> float:
        alarms, _, thresholds = metrics.roc_curve(labels[of], values[of], drop_intermediate=False)
        return float(thresholds[alarms <= 0.05].min())

    right, sureness = (values >= 0.5) == labels, surer(values)

    def sure_enough(of: Marks) -> float:
        shares, _, thresholds = metrics.precision_recall_curve(right[of], sureness[of])
        return float(thresholds[shares[:-1] >= 0.95 - 1e-12].min(initial=np.inf))

    everybody = np.full(len(values), True)
    assert figures.threshold == pytest.approx(at_few_alarms(everybody))
    assert figures.sure == pytest.approx(sure_enough(everybody))
    called, alone = np.zeros(len(values), bool), np.zeros(len(values), bool)
    tenths = results.cluster % 10
    for fold in (tenths == tenth for tenth in range(10)):
        called[fold] = values[fold] >= at_few_alarms(~fold) - 1e-12
        alone[fold] = sureness[fold] >= sure_enough(~fold) - 1e-12
    for share, counted, among in (
        (figures.missed, ~called, labels),
        (figures.false_alarms, called, ~labels),
        (figures.alone, alone, everybody),
        (figures.wrong, ~right, alone),
    ):
        assert (share.count, share.n) == (sum(counted & among), sum(among))


@pytest.mark.parametrize(
    ("n", "size", "spread", "is_tied"), [(80, 1, 6, False), (200, 10, 4, False), (200, 1, 1, True)]
)
def test_nine_of_ten_intervals_hold_truth(n: int, size: int, spread: float, is_tied: bool) -> None:
    """The truth is that of all cases: their quantiles, each with its share of violations."""
    quantiles = [NormalDist().inv_cdf(place / 4_000) for place in range(1, 4_000, 2)]
    every = 1 / (1 + np.exp(-spread * np.array(quantiles)))
    given = in_tenths(every) if is_tied else every
    alarms = as_sure(given, 1 - every) / (1 - every).sum()
    missed = every[alarms > 0.05].sum() / every.sum()
    wrong = as_sure(surer(given), np.minimum(every, 1 - every))
    alone = np.mean(wrong / as_sure(surer(given), np.ones(len(every))) <= 0.05)
    rng = np.random.default_rng(n)
    held, samples = np.zeros(2), 200
    for _ in range(samples):
        values, labels = drawn(rng, n, size, spread, is_tied=is_tied)
        figures = known(probabilities_of(results_of(list(values), list(labels), size)))
        for place, (share, truth) in enumerate(((figures.missed, missed), (figures.alone, alone))):
            lower, upper = ends(share)
            held[place] += lower <= truth <= upper
    assert min(held) >= 0.9 * samples


@pytest.mark.parametrize(
    ("values", "labels", "size"),
    [([], [], 1), ([0, 1], [0, 1], 1), ([0.2, 0.9], [1, 1], 1), ([0.2, 0.9], [0, 1], 2)],
    ids=["none", "verdicts", "one label", "one run"],
)
def test_nothing_is_said_of_too_little(values: list[float], labels: list[int], size: int) -> None:
    assert probabilities_of(results_of(values, labels, size)) is None


@pytest.mark.parametrize(("surest", "rest"), [(0.9, 0.6), (0.5, 0.5)], ids=["wrong", "equal"])
def test_a_threshold_that_no_case_reaches_is_none(surest: float, rest: float) -> None:
    """The surest verdicts are all false alarms."""
    figures = known(probabilities_of(results_of([surest] * 5 + [rest] * 5, [0] * 5 + [1] * 5)))
    assert (figures.missed.value, figures.alone.value) == (1, 0)
    data = probability_data(figures)
    assert (data["threshold"], data["sure"]) == (None, None)


def rows_of(values: Sequence[object], labels: Sequence[object] = LABELS) -> list[dict[str, Any]]:
    return [{"human": label, "score": value} for label, value in zip(labels, values, strict=True)]


def of_judge(checked: CheckedTable) -> Any:
    [figures] = checked.session.probabilities.values()
    return figures


def test_verdicts_are_those_of_the_threshold() -> None:
    checked = check_table(rows_of(GRADED), one="violated", threshold=0.5)
    verdicts = [int(value >= 0.5) for value in GRADED]
    plain = check_table(rows_of(verdicts), one="violated")
    assert [result.scores for result in checked.results] == [(score,) for score in verdicts]
    assert checked.judges["score"].figures == plain.judges["score"].figures
    assert plain.session.probabilities == {}
    # The probability of a pass is that of no violation.
    passed = rows_of([1 - value for value in GRADED], [1 - label for label in LABELS])
    turned = check_table(passed, one="passed", threshold=0.5 + 1e-9)
    assert [result.scores for result in turned.results] == [(score,) for score in verdicts]
    assert of_judge(turned) == of_judge(checked)


@pytest.mark.parametrize(
    "cells",
    [["0,71", "0,2", "1,00", "0"], ["0,710", ",2", "1", "0,0"], ["0.71", "0,2", "1,0", "0."]],
)
def test_a_decimal_comma_is_a_point(cells: list[str]) -> None:
    how: dict[str, Any] = {"one": "violated", "threshold": 0.7}
    checked = check_table(rows_of(cells, [1, 0, 1, 0]), **how)
    plain = check_table(rows_of([0.71, 0.2, 1, 0], [1, 0, 1, 0]), **how)
    assert [result.extra.probabilities for result in checked.results] == [
        (0.71,),
        (0.2,),
        (1,),
        (0,),
    ]
    assert of_judge(checked) == of_judge(plain)


def test_a_baseline_decides_by_thresholded_verdicts() -> None:
    rows = rows_of([0.4 + number % 2 / 100 for number in range(60)], [1] * 30 + [0] * 30)
    rows = [{**row, "old": 0.9 if row["human"] else 0.1} for row in rows]
    checked = check_table(rows, verdict="score", one="violated", threshold=0.5, baseline="old")
    assert checked.decision is not None
    assert (checked.decision.word, len(checked.decision.regressions)) == ("FAIL", 30)


def test_the_command_prints_them_beside_missed_and_false_alarms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values, labels = drawn(np.random.default_rng(5), 200, 1, 4)
    rows = rows_of([round(value, 2) for value in values], [int(label) for label in labels])
    Path("t.csv").write_bytes(table_bytes([*rows[0]], rows))
    command = ["check", "t.csv", "--one=violated", "--threshold=0.5", "--error=0.1"]
    assert main([*command, "-v", "--report=r.json", "--report=r.md", "--report=r.html"]) == 0
    printed = capsys.readouterr().out
    checked = check_table("t.csv", one="violated", threshold=0.5, error=0.1)
    figures = of_judge(checked)
    assert "0, below 0.5 = satisfied; 1, from 0.5 = violated" in printed
    missed = f"{figures.missed.value:.1%}"
    [row] = [line.split() for line in printed.splitlines() if line.startswith("t  ")]
    assert row[1:4:2] == [missed, f"{figures.threshold:.4g}"]
    assert "decides alone, 10% wrong" in printed
    assert re.search("Probabilities of t\nprobability +violated\n0%-10% ", printed)
    [of_table] = json.loads(Path("r.json").read_text("utf-8"))["suites"]["t"]["judges"].values()
    data = of_table["probabilities"]
    assert (data["threshold"], data["error"]) == (figures.threshold, 0.1)
    assert data["alone"]["value"] == figures.alone.value
    assert data["bins"]["0.9"]["n"] == figures.bins[9].n
    assert f"| {missed} (" in MarkdownReport().text(checked.session)


def test_a_repeat_counts_by_the_mean_and_a_tie_not_at_all() -> None:
    rows = ["a,1,1,0.9", "a,2,1,0.4", "a,3,1,0.8", "b,1,0,0.9", "b,2,0,0.1", "c,1,0,0.25"]
    table = csv.DictReader(["case,repeat,label,verdict", *rows])
    checked = check_table(table, one="violated", threshold=0.5)
    assert checked.results[0].extra.probabilities == (0.9, 0.4, 0.8)
    assert [result.score for result in checked.results] == [1, None, 0]
    assert of_judge(checked).brier.value == pytest.approx((0.3**2 + 0.25**2) / 2)


def test_what_one_option_reads_is_one_problem() -> None:
    with pytest.raises(InputError, match=r"pass --threshold 0\.5") as caught:
        check_table(rows_of(GRADED), one="violated")
    assert len(caught.value.problems) == 1


def test_words_stay_verdicts_and_labels_are_no_probabilities() -> None:
    rows = rows_of(["fail", 0.7, "", 0.2], ["fail", "fail", "pass", "pass"])
    checked = check_table(rows, one="violated", threshold=0.5, map={"": None})
    assert [result.scores for result in checked.results] == [(1,), (1,), (), (0,)]
    assert [result.extra.probabilities for result in checked.results] == [(), (0.7,), (), (0.2,)]
    with pytest.raises(InputError, match=r'human: got "0\.9"'):
        check_table(rows_of([0.7, 0.2], [0.9, 0.1]), one="violated", threshold=0.5)
