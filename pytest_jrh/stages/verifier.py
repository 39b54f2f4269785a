"""The verifier: a second opinion on the label of a case (rule D6)."""

from __future__ import annotations

from pytest_jrh.stages.editor import EDITOR
from pytest_jrh.stages.stage import CallRange, StageSpec

VERIFIER = StageSpec(
    name="verifier",
    title="the verifier",
    variables=frozenset(
        {
            "rubric_id",
            "rubric_instruction",
            "summary",
            "transcript",
            "score_levels_table",
            "lowest_score",
            "highest_score",
        }
    ),
    required=frozenset({"rubric_instruction", "transcript"}),
    prompt_per="mode",
    calls=lambda case: CallRange(int(case.verifies), int(case.verifies)),
    model_from=EDITOR.name,
)
