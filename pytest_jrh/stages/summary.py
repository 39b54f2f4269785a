"""The summarizer: what the conversation was about, for editor and verifier (rule D5)."""

from __future__ import annotations

from pytest_jrh.stages.editor import EDITOR
from pytest_jrh.stages.stage import CallRange, StageSpec, Workload


def _calls(case: Workload) -> CallRange:
    """One before each edit, and one more for the verifier; the first is made in any case."""
    return CallRange(
        max(1, case.edits.low + case.verifies), max(1, case.edits.high + case.verifies)
    )


SUMMARY = StageSpec(
    name="summary",
    title="the summarizer",
    variables=frozenset({"chronological_log"}),
    required=frozenset({"chronological_log"}),
    prompt_per="",
    calls=_calls,
    model_from=EDITOR.name,
    settings_from_model=True,
    shared_at_start=True,
)
