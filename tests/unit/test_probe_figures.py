"""The figures of probes, their findings, and their rule of a gate."""

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_jrh.core import columns
from pytest_jrh.core.results import CaseResult
from pytest_jrh.reports.blocks import Sentence
from pytest_jrh.reports.counts import finding_sentences, probe_blocks
from pytest_jrh.reports.terminal import block_lines
from pytest_jrh.stats.limits import SUPPOSED_FLICKER, ProbeTable, chance_of, probe_tables
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.judged_sessions import INJECTION, LAYOUT, derived, hostile_session
from tests.support.made_cases import make_result, make_spec, result_with


def only(results: Sequence[CaseResult]) -> ProbeTable:
    (table,) = probe_tables(Verdicts.of(results))
    return table


def is_flicker_supposed(table: ProbeTable) -> bool:
    notes = [block for block in probe_blocks([table]) if isinstance(block, Sentence)]
    return any(note.text.startswith("Only repeats show how often") for note in notes)


def test_turned_verdicts_are_counted_by_variant() -> None:
    table = only(derived(["json_layout"]))
    rows = [(row.variant, row.n, row.turned) for row in table.rows]
    assert rows == [("ids", 10, 0), ("json_layout", 10, 10)]
    assert table.is_finding
    (sentence,) = finding_sentences([table])
    said = f"{LAYOUT} misled the judge in 10 of 20 verdicts that were right without the probe"
    assert sentence.startswith(f"{said} (50.0%, 95% interval 29.9-70.1); the misled verdicts")
    assert is_flicker_supposed(table)


def test_one_variant_of_many_is_found() -> None:
    variants = [f"v{number}" for number in range(8)]
    assert only(derived(["v1"], variants=variants)).is_finding
    assert not only(derived(["v1"], variants=variants, runs=8)).is_finding


def test_a_judge_that_contradicts_itself_as_often_has_no_finding() -> None:
    table = only(derived(["ids"], base_scores=(1, 1, 0)))
    assert table.flicker.value == pytest.approx(2 / 3)
    assert not table.is_finding
    assert not is_flicker_supposed(table)


def test_holm_counts_the_probes_of_a_suite() -> None:
    alone = only(derived(["v1"], variants=["v1", "v2", "v3"], runs=5))
    others = [derived(probe=probe) for probe in (INJECTION, "position")]
    results = [*derived(["v1"], variants=["v1", "v2", "v3"], runs=5), *others[0], *others[1]]
    first, *_ = probe_tables(Verdicts.of(results))
    assert alone.adjusted == alone.p_value
    assert first.adjusted == pytest.approx(3 * alone.p_value)


def test_an_ordinal_probe_has_a_mean_shift() -> None:
    of_scale: dict[str, Any] = {"target": 2, "label": 2, "base_scores": (2,)}
    scored = zip(derived(runs=4), (2, 0, 1, 2), strict=True)
    table = only([result_with(result, score=score, **of_scale) for result, score in scored])
    assert (table.total.turned, table.total.shift) == (2, -0.75)
    assert table.total.towards == {}


def test_what_has_no_verdict_is_not_counted() -> None:
    results = derived(runs=3)
    results[0] = result_with(results[0], outcome="no_case", score=None, base_scores=())
    results[1] = result_with(results[1], outcome="unrecorded", score=None, base_scores=())
    assert only(results).total.n == 1


def turned_of(*runs: tuple[int, int]) -> list[CaseResult]:
    """Results of a probe, so many turned of so many in each run."""
    results = []
    for run, (turned, n) in enumerate(runs):
        specs = [make_spec(f"run-{run}", rubric_id=f"rubric-{number}") for number in range(n)]
        results += [make_result(spec, "disagree") for spec in specs[:turned]]
        results += [make_result(spec) for spec in specs[turned:]]
    return results


def test_no_verdict_that_turned_is_certain_and_none_at_all_is_chance() -> None:
    assert chance_of(Verdicts.of(turned_of((0, 3))), SUPPOSED_FLICKER) == 1
    assert chance_of(Verdicts.of(turned_of((1, 1), (1, 1))), 0.02) == pytest.approx(0.02**2)
    # Of cases that come in clusters there are fewer.
    clusters, apart = (Verdicts.of(turned_of(*runs)) for runs in ([(4, 4)] * 3, [(1, 1)] * 12))
    assert chance_of(clusters, 0.02) > chance_of(apart, 0.02)


def test_no_name_from_outside_moves_a_terminal() -> None:
    for line in block_lines(probe_blocks(hostile_session().probes), 80, verbose=True):
        assert not set(line.text) & set("\x00\x1b\n\u202e")
        assert columns(line.text) <= 80
