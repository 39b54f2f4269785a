"""The stages of the work, each in a file of its own, in the order in which they are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.stages.editor import EDITOR
from pytest_jrh.stages.judge import JUDGE
from pytest_jrh.stages.planner import PLANNER
from pytest_jrh.stages.summary import SUMMARY
from pytest_jrh.stages.verifier import VERIFIER

__all__ = ["EDITOR", "JUDGE", "MAKING", "PLANNER", "STAGES", "SUMMARY", "VERIFIER"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.stages.stage import StageSpec

STAGES: Mapping[str, StageSpec] = {
    stage.name: stage for stage in (PLANNER, EDITOR, SUMMARY, VERIFIER, JUDGE)
}
MAKING: tuple[StageSpec, ...] = tuple(stage for stage in STAGES.values() if stage.makes_cases)
"""The stages that make cases, each with a section of its own in the config."""
