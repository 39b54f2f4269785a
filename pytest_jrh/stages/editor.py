"""The editor: one assistant turn rewritten (rules D3, D4)."""

from __future__ import annotations

from pytest_jrh.stages.stage import StageSpec

EDITOR = StageSpec(
    name="editor",
    title="the editor",
    variables=frozenset(
        {
            "run_id",
            "message_id",
            "message_index",
            "original_message",
            "tool_calls",
            "summary",
            "rubric",
            "plan_thesis",
            "goal",
            "rationale",
            "earlier_edits",
            "ordinal_guidance",
        }
    ),
    required=frozenset({"original_message", "rubric"}),
    prompt_per="objective",
    calls=lambda case: case.edits,
)
