"""A suite with a probe, and judges that a change of layout moves: for tests of probes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.model_server import Answer, Obedient, Request
from tests.support.suites import SuiteFiles, run, write_suite

PROBE = "format_invariance"


def runs(number: int) -> list[dict[str, Any]]:
    """Runs with a tool result that is JSON."""
    made = []
    for each in range(1, number + 1):
        sample = run(each)
        for message in sample["messages"]:
            if message["role"] == "tool":
                message["content"] = json.dumps({"order": 1000 + each, "state": "shipped"})
        made.append(sample)
    return made


def write_probed(
    folder: Path,
    *,
    number: int = 3,
    tests: Sequence[str] = ("agent_perturbation", PROBE),
    probes: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    **more: Any,
) -> SuiteFiles:
    """Write the suite; `probes` and `evaluation` go into its config."""
    overrides = {
        "admin": {
            "perturbation_config": {
                "probes": {PROBE: {"variants": ["json_layout"]}, **(probes or {})}
            },
            "evaluation_config": dict(evaluation or {}),
        },
        **more.pop("overrides", {}),
    }
    given = {"name": "probed", **more}
    return write_suite(folder, runs=runs(number), tests=tests, overrides=overrides, **given)


def read_layout(request: Request) -> Answer:
    """The obedient model, but for its judge: it takes order 1002 for satisfied where its JSON is
    indented.
    """
    moved = '"order": 1002' in request.text and '    "state"' in request.text
    if request.stage == "judge" and moved:
        return {"reasoning": "This looks good.", "score": 0}
    return Obedient()(request)
