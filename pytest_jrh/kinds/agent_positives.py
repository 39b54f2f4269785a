"""`agent_positives`: a transcript that satisfies its rubric, kept as it is or repaired (rules B,
D7).
"""

from __future__ import annotations

from pytest_jrh.kinds.kind import Kind

AGENT_POSITIVES = Kind(
    name="agent_positives",
    marker="a case whose transcript satisfies its rubric",
    label="positive",
    figures=("false_positive_rate",),
    objective=lambda _configured: "pass",
    folder=lambda _module: "outputs/agent_positives",
    targets=lambda scale, _wanted: tuple(scale[-1:]),
    highest_only=True,
)
