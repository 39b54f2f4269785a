"""The probes, each in a file of its own; one that is not in this table does not exist.

Each finds one kind of defect in a judge, and lets judges without it pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.position import POSITION
from pytest_jrh.cases.probes.prompt_injection import PROMPT_INJECTION
from pytest_jrh.cases.probes.rubric_specificity import RUBRIC_SPECIFICITY
from pytest_jrh.cases.probes.verdict_pressure import VERDICT_PRESSURE

if TYPE_CHECKING:
    from pytest_jrh.cases.probes.probe import Probe


PROBES: dict[str, Probe] = {
    probe.name: probe
    for probe in (
        FORMAT_INVARIANCE,
        PROMPT_INJECTION,
        POSITION,
        RUBRIC_SPECIFICITY,
        VERDICT_PRESSURE,
    )
}
