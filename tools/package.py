"""Look into the built packages: `python -m tools.package dist`. The wheel has no test and no
recording but those of the demo, and its size is bounded.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from pytest_jrh.cli.demo import EXAMPLE, FILES

LARGEST = 1_500_000


def problems_of(wheel: Path) -> list[str]:
    """What should not be in a wheel, or is missing."""
    demo = {f"pytest_jrh/demo/{EXAMPLE}/{file}" for file in FILES}
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    problems = [f"{name} is missing" for name in sorted(demo - names)]
    for name in sorted(names - demo):
        is_ours = name.startswith(("pytest_jrh/", "pytest_jrh-"))
        if not is_ours or "tests/" in name or name.endswith((".eval", "cassette.yaml")):
            problems.append(f"{name} does not belong there")
    size = wheel.stat().st_size
    if size > LARGEST:
        problems.append(f"{size:,} bytes; at most {LARGEST:,}")
    return problems


if __name__ == "__main__":
    [built] = Path(sys.argv[1]).glob("*.whl")
    found = problems_of(built)
    said = [*found, f"{built.name}: {built.stat().st_size:,} bytes, {len(found)} problems"]
    sys.stdout.write("\n".join(said) + "\n")
    sys.exit(bool(found))
