"""Which cases probes have, and what they are called."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_jrh.cases.probes.probe import MOST_BASES, ProbeSettings, Variant
from pytest_jrh.config import suite as cases
from pytest_jrh.config.suite import Suite, drawn
from pytest_jrh.core import ids
from pytest_jrh.core.cases import CaseSpec, RunSummary
from pytest_jrh.recording.cassettes import cassettes_in
from tests.support.configs import Folder, changed, minimal
from tests.support.made_cases import RUBRIC, make_spec, make_suite

LAYOUT, INJECTION = "format_invariance", "prompt_injection"
TESTS = "admin.perturbation_config.tests_to_run"
SECTION = "admin.perturbation_config.probes"


def suite_with(folder: Path, *probes: str, **settings: Any) -> Suite:
    suite = make_suite(folder)
    more = [replace(suite.tests[0], name=name) for name in probes]
    of = ProbeSettings(of=tuple(test.name for test in suite.tests), **settings)
    return replace(suite, tests=(*suite.tests, *more), probes=dict.fromkeys(probes, of))


def derived(suite: Suite, runs: int = 30, *recorded: ids.Recorded) -> list[CaseSpec]:
    summaries = [RunSummary(f"run-{number}", 1) for number in range(runs)]
    return [spec for spec in cases.expand(suite, summaries, {}, *recorded) if spec.variant]


def test_the_cases_of_a_probe_have_ids_of_their_own(tmp_path: Path) -> None:
    specs = derived(suite_with(tmp_path, LAYOUT), runs=4)
    names = {ids.case_name(spec) for spec in specs}
    assert len(names) == len({ids.case_id(spec) for spec in specs}) == len(specs) == 8
    for spec in specs:
        base = "" if spec.base == "agent_perturbation" else f"{spec.base}-"
        assert ids.case_name(spec) == f"{spec.run_id}[e1-{base}{spec.variant}]"
    assert all(spec.base_case.test == spec.base for spec in specs)


@pytest.mark.parametrize("probe", [INJECTION, LAYOUT])
def test_probes_keep_the_cases_and_variants_that_were_recorded(tmp_path: Path, probe: str) -> None:
    suite = suite_with(tmp_path, probe, per_case=4)

    def record(specs: Sequence[CaseSpec], folder: str = "kept") -> ids.Recorded:
        for spec in specs:
            cassette = ids.cassette_path(tmp_path / folder, spec, judging=True)
            cassette.parent.mkdir(parents=True, exist_ok=True)
            cassette.touch()
        return ids.Recorded.of(tmp_path / folder, cassettes_in(tmp_path / folder))

    first = derived(suite, 6, ids.Recorded())
    # Some variants do not fit, and leave no recording: the same are dealt again all the same.
    recorded = record([spec for index, spec in enumerate(first) if index % 3])
    assert derived(suite, 6, recorded) == first
    grown = derived(suite, 60, recorded)
    assert set(first) < set(grown)
    assert len({spec.base_case for spec in grown}) == MOST_BASES
    assert derived(suite, 60, record(grown)) == grown
    # What was dealt in turn, before the key was set, stays, too.
    in_turn = derived(suite, 20)
    assert derived(suite, 20, record(in_turn, "in turn")) == in_turn


def test_more_runs_leave_most_of_the_draw_as_it_is(tmp_path: Path) -> None:
    suite = suite_with(tmp_path, LAYOUT)
    before, after = ({spec.base_case for spec in derived(suite, runs)} for runs in (30, 33))
    assert len(before & after) >= MOST_BASES - 6


def test_a_rubric_may_opt_out(tmp_path: Path, folder: Folder) -> None:
    rubric = {"id": "kind", "instructions": "Is it kind?"}
    folder.rubrics([{**rubric, "probes": {"skip": [LAYOUT]}}])
    [kind] = folder.load(changed(TESTS, ["agent_perturbation", LAYOUT])).rubrics
    assert kind.skips == (LAYOUT,)
    suite = suite_with(tmp_path, LAYOUT)
    assert derived(suite)
    assert derived(replace(suite, rubrics=(replace(RUBRIC, skips=kind.skips),))) == []


@given(bases=st.integers(0, 50), variants=st.integers(1, 12), number=st.integers(1, 15))
def test_every_base_gets_distinct_variants(bases: int, variants: int, number: int) -> None:
    specs = [make_spec(f"run-{each}") for each in range(bases)]
    grid = [Variant(f"v{each}") for each in range(variants)]
    picked = drawn(specs, grid, ProbeSettings(max_cases=30, per_case=number))
    assert len(picked) == min(bases, 30)
    assert [spec for spec in specs if spec in picked] == list(picked)
    counts = Counter(variant.name for each in picked.values() for variant in each)
    for each in picked.values():
        assert len(set(each)) == len(each) == min(number, variants)
    if picked:
        assert max(counts.values()) - min(counts.get(each.name, 0) for each in grid) <= 1


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("variants", "json_layuot", "the variants of", '"json_layout" is the nearest name'),
        ("of", "labels", "but", f'add "labels" to {TESTS}'),
    ],
)
def test_mistakes_are_placed(folder: Folder, key: str, value: str, message: str, hint: str) -> None:
    config = changed(TESTS, ["agent_perturbation", LAYOUT])
    config["admin"]["perturbation_config"]["probes"] = {LAYOUT: {key: [value]}}
    problem = folder.problem(config)
    assert problem.key == f"{SECTION}.{LAYOUT}.{key}[0]"
    assert f'got "{value}"' in problem.message.partition(message)[0]
    assert problem.hint == hint
    assert problem.line is not None


def test_a_probe_that_does_not_run_is_said_or_refused(folder: Folder) -> None:
    config = minimal()
    config["admin"]["perturbation_config"]["probes"] = {LAYOUT: {"max_cases": 3}}
    [notice] = folder.load(config).notices
    assert "probes.format_invariance has no effect" in notice
    config["gate"] = {"probes": {LAYOUT: {"max_rate": 0.05}}}
    problem = folder.problem(config)
    assert problem.key == f"gate.probes.{LAYOUT}"
    assert f'got "{LAYOUT}", but {TESTS} has only ' in problem.message
