"""Replay the small judge: `python -m examples.small_judge.replay [PYTEST ARGUMENT ...]`, as `make
demo-real` does.

The run is red, which is what it should show; so this ends with 0 where pytest ends with 1 and every
case has a recorded answer, and with another code where the replay itself is broken.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

CONFIG = "examples/small_judge/refund_agent.yml"
ANSWERED = {"agree", "disagree", "invalid_response"}
"""The outcomes that come of what the model answered.

All others come of a recording that is missing or broken.
"""


def main(arguments: list[str]) -> int:
    """Run the suite and explain its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "small_judge.xml"
        options = [f"--jrh-config={CONFIG}", "--tb=no", f"--junitxml={junit}", *arguments]
        code = subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode
        counts = outcomes(junit) if junit.exists() else Counter()
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


def outcomes(junit: Path) -> Counter[str]:
    """Count the outcomes of the cases in a JUnit file; a test without one counts as "nothing"."""
    counts: Counter[str] = Counter()
    for case in ET.parse(junit).iter("testcase"):
        values = [
            one.get("value", "") for one in case.iter("property") if one.get("name") == "outcome"
        ]
        counts[values[0] if values else "nothing"] += 1
    return counts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
