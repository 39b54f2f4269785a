"""Draw the pictures of the documentation by the commands that a user has: `python -m
tools.pictures`.

They are of the committed examples: a changed prompt, judges with planted defects, and one judge
under five prompts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = ("pytest", "-q", "--tb=no", "-p", "no:cacheprovider")
CARD = (
    *SUITE,
    "--jrh-config=examples/prompt_change/refund_agent.yml",
    "--jrh-baseline=inputs/baselines/refund_agent.json",
    "--jrh-card=card.svg",
)
MATRIX = (*SUITE, "--jrh-config=examples/probes/probes.yml", "--jrh-card=matrix.svg")
PROMPTS = ("vanilla", "vanilla_norules", "cot", "metrics_reference", "swap")
MAP = (
    "pytest_jrh",
    "check",
    "examples/strong_judges/llmbar-gpt4.csv",
    *(f"--verdict={prompt}" for prompt in PROMPTS),
    "--report=map.svg",
)
PICTURES = {
    "card.svg": CARD,
    "card-badge.svg": CARD,
    "matrix.svg": MATRIX,
    "map.svg": MAP,
}
"""The pictures in `docs/`, and what draws them, as arguments of `python -m`."""


def main() -> int:
    """Write the pictures; a gate that fails is part of what they show."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inputs in ("inputs", "examples"):
            shutil.copytree(ROOT / inputs, folder / inputs)
        for command in dict.fromkeys(PICTURES.values()):
            subprocess.run([sys.executable, "-m", *command], cwd=folder, check=False)  # noqa: S603
        for picture in PICTURES:
            (ROOT / "docs" / picture).write_bytes((folder / picture).read_bytes())
            sys.stdout.write(f"docs/{picture}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
