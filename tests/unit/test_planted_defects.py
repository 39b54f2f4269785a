"""Each planted defect is found by its own probe and by no other, with judges that err."""

from __future__ import annotations

from functools import cache

import pytest

from examples.probes.judges import PLANTED, sound
from pytest_jrh.cases.probes import PROBES
from tests.support.planted import GRID, Planted, probed

SEEDS = 8


@cache
def findings(judge: Planted) -> tuple[frozenset[str], ...]:
    """The probes that find something, in sessions of this judge."""
    return tuple(
        frozenset(table.probe for table in probed(judge, seed, GRID) if table.is_finding)
        for seed in range(SEEDS)
    )


@pytest.mark.parametrize("judge", [judge for judge, probe in PLANTED.items() if probe])
def test_a_defect_is_found_by_its_own_probe_in_each_session(judge: Planted) -> None:
    own = PLANTED[judge]
    assert sum(own in found for found in findings(judge)) == SEEDS


def test_other_probes_and_sound_judges_give_findings_in_5_of_100_sessions_at_most() -> None:
    wrong = [
        found - {PLANTED[judge]}
        for judge in PLANTED
        if judge is not sound
        for found in findings(judge)
    ]
    assert sum(map(bool, wrong)) <= 0.05 * len(wrong)
    assert sum(map(bool, findings(sound))) <= 0.05 * SEEDS


def test_there_is_a_planted_defect_for_every_probe() -> None:
    assert sorted(filter(None, PLANTED.values())) == sorted(PROBES)
