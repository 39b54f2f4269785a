"""The figures of probes, their findings, and their rule of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import columns
from pytest_jrh.reports.blocks import Sentence
from pytest_jrh.reports.counts import finding_sentences, probe_blocks
from pytest_jrh.reports.markdown import MarkdownReport
from pytest_jrh.reports.page import HtmlReport
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import block_lines
from pytest_jrh.stats.probes import SUPPOSED_FLICKER, ProbeTable, chance_of, probe_tables
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.judged_sessions import HOSTILE, INJECTION, LAYOUT, derived, judged, right
from tests.support.made_cases import make_result, make_spec, result_with


def only(results: Sequence[CaseResult]) -> ProbeTable:
    (table,) = probe_tables(Verdicts.of(results))
    return table


def is_flicker_supposed(table: ProbeTable) -> bool:
    notes = [block for block in probe_blocks([table]) if isinstance(block, Sentence)]
    return any(note.text.startswith("Without repeats it is not known") for note in notes)


def test_turned_verdicts_are_counted_by_variant() -> None:
    table = only(derived(["json_layout"]))
    assert (table.total.n, table.total.turned, table.total.rate.value) == (20, 10, 0.5)
    assert [(row.variant, row.n, row.turned) for row in table.rows] == [
        ("ids", 10, 0),
        ("json_layout", 10, 10),
    ]
    assert table.total.towards == {"satisfied": 10}
    lower, upper = table.total.rate.lower, table.total.rate.upper
    assert lower is not None
    assert upper is not None
    assert 0.25 < lower < 0.5 < upper < 0.75
    assert table.is_finding
    (sentence,) = finding_sentences([table])
    assert sentence.startswith(
        f"{LAYOUT} turns 10 of 20 right verdicts (50.0%, 95% interval 29.9-70.1), towards "
        "10 satisfied"
    )
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
    results = [
        result_with(
            result,
            target=2,
            label=2,
            score=score,
            outcome="agree" if score == 2 else "disagree",
            base_scores=(2,),
        )
        for result, score in zip(derived(runs=4), (2, 0, 1, 2), strict=True)
    ]
    table = only(results)
    assert (table.total.turned, table.total.shift) == (2, -0.75)
    assert table.total.towards == {}


def test_what_has_no_verdict_is_not_counted() -> None:
    results = derived(runs=3)
    results[0] = result_with(results[0], outcome="no_case", score=None, base_scores=())
    results[1] = result_with(results[1], outcome="unrecorded", score=None, base_scores=())
    assert only(results).total.n == 1


def turned_of(*runs: tuple[int, int]) -> list[CaseResult]:
    """Results of a probe, so many turned of so many in each run."""
    return [
        make_result(
            make_spec(f"run-{run}", rubric_id=f"rubric-{number}"),
            "disagree" if number < turned else "agree",
        )
        for run, (turned, n) in enumerate(runs)
        for number in range(n)
    ]


def test_no_verdict_that_turned_is_certain_and_none_at_all_is_chance() -> None:
    assert chance_of(Verdicts.of(turned_of((0, 3))), SUPPOSED_FLICKER) == 1
    assert chance_of(Verdicts.of(turned_of((1, 1), (1, 1))), 0.02) == pytest.approx(0.02**2)
    # Of cases that come in clusters there are fewer.
    assert chance_of(Verdicts.of(turned_of(*[(4, 4)] * 3)), 0.02) > chance_of(
        Verdicts.of(turned_of(*[(1, 1)] * 12)), 0.02
    )


def test_no_name_from_outside_is_markup_or_moves_a_terminal(tmp_path: Path) -> None:
    judges = (HOSTILE, "other")
    results = [
        result_with(each, suite=HOSTILE if judge == "other" else each.spec.suite)
        for judge in judges
        for each in derived(["json_layout"], judge=judge)
    ]
    session = Session([*judged(right, runs=2), *results])
    for line in block_lines(probe_blocks(session.probes), 80, verbose=True):
        assert not set(line.text) & set("\x00\x1b\n\u202e")
        assert columns(line.text) <= 80
    assert "\x1b" not in MarkdownReport().text(session)
    HtmlReport().write(tmp_path / "report.html", session)
    shown = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert "Probes: suite " in shown
