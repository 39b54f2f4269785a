"""The planner: which assistant turns to change, and to what end (rule D2)."""

from __future__ import annotations

import json

from pytest_jrh.stages.stage import ONE_CALL, StageSpec


def _steps(answer: str) -> int | None:
    try:
        return len(json.loads(answer)["steps"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


PLANNER = StageSpec(
    name="planner",
    title="the planner",
    variables=frozenset(
        {
            "rubric_id",
            "rubric_instructions",
            "assistant_transcript",
            "max_steps",
            "ordinal_guidance",
        }
    ),
    required=frozenset({"rubric_instructions", "assistant_transcript"}),
    prompt_per="objective",
    calls=lambda _case: ONE_CALL,
    edits_in=_steps,
)
