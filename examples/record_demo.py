"""Record the demo's cassettes anew: the scripted model over HTTP, litellm and vcrpy as in any recording.

    python -m examples.record_demo inputs/configs/refund_agent.yml ...

The port is fixed, because the cassettes hold the address that was asked.
"""

from __future__ import annotations

import os
import subprocess
import sys

from examples.scripted_model.server import ScriptedModel

PORT = 8797


def main(configs: list[str]) -> int:
    """Record the suites of these config files; returns pytest's exit code."""
    with ScriptedModel(port=PORT) as model:
        environment = {**os.environ, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-key-is-needed"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--jrh-record-mode=all",
            *(f"--jrh-config={name}" for name in configs),
        ]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
