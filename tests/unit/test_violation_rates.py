"""How often runs are violated, where only some of those that were judged have a label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.cases.probes.probe import ProbeSettings
from pytest_jrh.config.probes import expand
from pytest_jrh.config.schema import GateRules, LabelSection
from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core.cases import Label, Outcome, RunSummary
from pytest_jrh.core.results import CaseResult
from pytest_jrh.people import Grounds
from pytest_jrh.reports.grounds import violation_sentences
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.comparison import Scope
from pytest_jrh.stats.decision import Held, decide
from pytest_jrh.stats.people import violation_rates
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.figures import comparison_of, describe, ends
from tests.support.made_cases import (
    DIGESTS,
    RUBRIC,
    make_result,
    make_spec,
    make_suite,
    result_with,
)


def judged(run: int, score: int, label: int | None, **changes: Any) -> CaseResult:
    outcome: Outcome = "unlabelled"
    if label is not None:
        outcome = "agree" if score == label else "disagree"
    spec = make_spec(f"run-{run:04}", test="labels", **changes)
    return result_with(make_result(spec, outcome), score=score, label=label, **DIGESTS)


def session(labelled: int = 60, unlabelled: int = 600) -> list[CaseResult]:
    """A judge that calls half of the runs violated, of which half are; all others are satisfied."""
    results = [judged(run, run % 2, int(run % 4 == 1)) for run in range(labelled)]
    results += [judged(1_000 + run, run % 2, None) for run in range(unlabelled)]
    return results


def sentences(results: Iterable[CaseResult], grounds: Grounds = Grounds()) -> list[str]:  # noqa: B008 - frozen
    results = list(results)
    suite = results[0].suite
    return list(violation_sentences(Session(results, grounds={suite: grounds}), suite))


def test_the_judges_share_is_corrected_by_the_labels() -> None:
    tie = result_with(judged(9_999, 0, None), scores=(0, 1))
    [(name, rate)] = violation_rates(Verdicts.of([*session(), tie]), ())
    assert (name, rate.labelled, rate.drawn) == ("", 60, False)
    assert (rate.judged.count, rate.judged.n) == (330, 660)
    assert rate.corrected.value == pytest.approx(0.25, abs=0.01)
    # Without the correction it is one half.
    lower, upper = ends(rate.corrected)
    assert 0.15 < lower < 0.25 < upper < 0.4


def test_labels_that_are_drawn_alone_correct_the_rate() -> None:
    results = session()
    # Half of the labels are of runs that somebody picked since they are violated.
    results += [judged(5_000 + run, 1, 1) for run in range(60)]
    labels = {
        result.spec.label_key: Label((result.label,), "people", split)
        for result in results
        if result.label is not None
        for split in ["Drawn" if result.spec.run_id < "run-1" else "picked"]
    }
    grounds = Grounds(drawn=frozenset(key for key in labels if labels[key].is_drawn))
    [rate] = sentences(results, grounds)
    assert "corrected by 60 labels drawn at random" in rate
    [(_, figure)] = violation_rates(Verdicts.of(results), grounds.drawn)
    assert figure.corrected.value == pytest.approx(0.27, abs=0.02)
    [(_, biased)] = violation_rates(Verdicts.of(results), ())
    assert (biased.corrected.value or 0) > 0.3


@pytest.mark.parametrize(("labelled", "said"), [(0, "0 labels"), (1, "1 label"), (19, "19 labels")])
def test_too_few_labels_correct_nothing(labelled: int, said: str) -> None:
    [rate] = sentences(session(labelled))
    assert rate.endswith(f"not corrected: {said}; at least 20 are needed.")


def test_verdicts_without_a_label_are_in_no_other_figure_and_the_gate_does_not_wait() -> None:
    figures, decisions = [], []
    for results in (session(), session(unlabelled=0)):
        assert describe(results).counts.n == 60
        figures.append(describe(results).figures)
        scope = Scope.of(result.case_id for result in results)
        compared = comparison_of(None, results, scope)
        decisions.append(decide(compared, GateRules(min_recall=0.5), Held(scope)))
    assert figures[0] == figures[1]
    assert decisions[0] == decisions[1]


def natural_suite(folder: Path, judges_unlabelled: bool, **changes: Any) -> Suite:
    """A suite of natural runs under two rubrics, with a probe of them."""
    targets: dict[str, tuple[int | None, ...]] = {RUBRIC.id: (None,), "other": (None,)}
    names = ("labels", "format_invariance")
    return make_suite(
        folder,
        rubrics=(RUBRIC, replace(RUBRIC, id="other")),
        tests=tuple(SuiteTest(name, "fail", folder, True, targets) for name in names),
        labels=(LabelSection(unlabelled="judge" if judges_unlabelled else None),),
        probes={"format_invariance": ProbeSettings(of=("labels",))},
        **changes,
    )


@pytest.mark.parametrize("sample_num", [None, 5])
def test_labelled_cases_are_the_same_beside_those_without_a_label(
    tmp_path: Path, sample_num: int | None
) -> None:
    runs = [RunSummary(f"run-{number}", 1) for number in range(40)]
    label = Label((1,), "people")
    labels = {(RUBRIC.id, run.run_id, 1): label for run in runs[::2]}
    labels[("other", "run-0", 1)] = label
    alone, beside = (
        list(expand(natural_suite(tmp_path, judged, sample=sample_num), runs, labels))
        for judged in (False, True)
    )
    assert [spec for spec in beside if spec.variant or spec.label_key in labels] == alone
    added = [spec for spec in beside if spec not in alone]
    assert added
    assert not [spec for spec in added if spec.variant]
    runs_of_rubric = len({spec.run_id for spec in added if spec.rubric_id == RUBRIC.id})
    assert runs_of_rubric == (20 if sample_num is None else 5)
    # Each test and rubric is one part of the listing.
    parts = [key for key, _ in groupby(beside, key=lambda spec: (spec.test, spec.rubric_id))]
    assert len(parts) == len(set(parts))
