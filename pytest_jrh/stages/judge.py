"""The judge under test, where it is a model with a prompt (rules E)."""

from __future__ import annotations

from pytest_jrh.stages.stage import StageSpec

JUDGE = StageSpec(
    name="judge",
    title="the judge",
    variables=frozenset(
        {
            "rubric_id",
            "rubric",
            "transcript",
            "score_levels_table",
            "lowest_score",
            "highest_score",
            "instruction",
        }
    ),
    required=frozenset({"rubric", "transcript"}),
    prompt_per="mode",
    calls=lambda case: case.judge_calls,
    makes_cases=False,
)
