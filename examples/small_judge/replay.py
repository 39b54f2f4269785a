"""Replay the small judge: `python -m examples.small_judge.replay [PYTEST ARGUMENT ...]`, as `make
demo-real` does.

The run is red, which is what it should show; so this ends with 0 where pytest ends with 1 and every
case has a recorded answer, and with another code where the replay itself is broken.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from pytest_jrh.store.ledger import read_ledger

CONFIG = "examples/small_judge/refund_agent.yml"
RESULTS = Path("outputs/examples/small_judge/refund_agent/results.jsonl")
ANSWERED = {"agree", "disagree", "invalid_response"}
"""The outcomes that come of what the model answered.

All others come of a recording that is missing or broken.
"""


def main(arguments: list[str]) -> int:
    """Run the suite and explain its exit code."""
    RESULTS.unlink(missing_ok=True)
    options = [f"--jrh-config={CONFIG}", "--tb=no", *arguments]
    code = subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode
    counts = outcomes(RESULTS)
    red = int(set(counts) != {"agree"})
    if code != red or not counts or not ANSWERED.issuperset(counts):
        print(
            f"\nThe replay is broken: exit code {code}, outcomes {dict(counts)}.", file=sys.stderr
        )
        return code or 1
    if red:
        print(
            "\nThis is what it should show: a model that cannot judge, a red run, and the report "
            "that says so."
        )
    return 0


def outcomes(results: Path) -> Counter[str]:
    """Count what the cases came to."""
    return Counter(stored.result.outcome for stored in read_ledger(results).values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
