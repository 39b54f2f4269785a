"""Record the small judge anew: `python -m examples.small_judge.record PYTHON`, as `make
record-demo-real` does.

PYTHON is the interpreter of an environment with requirements.txt in it. The cases are those of the
demo: replaying it writes them, and they are frozen here, so that the judge alone is asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path("examples/small_judge")
CONFIG = HERE / "refund_agent.yml"
DEMO = "inputs/configs/refund_agent.yml"
DEMO_CASES = Path("outputs/refund_agent/agent_perturbations.jsonl")
PORT = 8798
"""Fixed, because the config names it and the cassettes hold the address that was asked."""
READY_WITHIN = 120.0  # seconds


def main(python: str) -> int:
    """Make the cases, serve the model, record its verdicts.

    Returns pytest's exit code, 0 for the expected 1.
    """
    made = _pytest(f"--jrh-config={DEMO}", "--quiet", "--no-header")
    if made:
        return made
    shutil.copyfile(DEMO_CASES, HERE / "agent_perturbations.jsonl")
    command = [python, str(HERE / "serve.py"), str(PORT)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(server)
        # A case waits for the model longer than the 300 s that this repository gives a test.
        code = _pytest(f"--jrh-config={CONFIG}", "--jrh-record-mode=all", "--timeout=0", "--tb=no")
    finally:
        server.terminate()
        server.wait()
    return 0 if code == 1 else code or 1


def _wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5).close()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    sys.exit(
        f"The model is not served on port {PORT}; to see why, run examples/small_judge/serve.py "
        f"{PORT} by hand."
    )


def _pytest(*arguments: str) -> int:
    environment = {**os.environ, "OPENAI_API_KEY": "no-key-is-needed"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
