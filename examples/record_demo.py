"""Record the demo's cassettes anew: the scripted model over HTTP, litellm and vcrpy as in any
recording.

    python -m examples.record_demo inputs/configs/refund_agent.yml ...

Then the demo's baseline is written from its verdicts, and examples/prompt_change is recorded: its
cases are the demo's, so that only its judge is asked. The port is fixed, because the cassettes hold
the address that was asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from examples.scripted_model.server import ScriptedModel

PORT = 8797
DEMO = "inputs/configs/refund_agent.yml"
BASELINE = "inputs/baselines/refund_agent.json"
CHANGED = "examples/prompt_change/refund_agent.yml"
CASES = Path("inputs/cassettes/refund_agent")
CHANGED_CASES = Path("examples/prompt_change/cassettes")


def main(configs: list[str]) -> int:
    """Record the suites of these config files.

    Returns pytest's exit code, the first that is not 0.
    """
    with ScriptedModel(port=PORT) as model:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "no-key-is-needed",
        }
        code = _pytest(
            environment, "--jrh-record-mode=all", *(f"--jrh-config={name}" for name in configs)
        )
        if code or DEMO not in configs:
            return code
        baseline = (f"--jrh-baseline={BASELINE}", "--jrh-update-baseline")
        return _pytest(environment, f"--jrh-config={DEMO}", *baseline) or _record_changed(
            environment
        )


def _record_changed(environment: Mapping[str, str]) -> int:
    """Record the changed prompt's verdicts on the demo's cases.

    That some of them are wrong is the example's point.
    """
    shutil.rmtree(CHANGED_CASES, ignore_errors=True)
    for source in sorted(CASES.rglob("*.yaml")):
        if ".judge-" not in source.name:
            copy = CHANGED_CASES / source.relative_to(CASES)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    code = _pytest(
        environment,
        f"--jrh-config={CHANGED}",
        "--jrh-record-mode=none",
        "--jrh-judge-record-mode=all",
        "--tb=no",
    )
    return 0 if code == 1 else code or 1


def _pytest(environment: Mapping[str, str], *arguments: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
