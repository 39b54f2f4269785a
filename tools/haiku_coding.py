"""Write examples/haiku_coding/verdicts.csv from the data of judgekeeper 0.1.3 (PyPI), unpacked:
`python -m tools.haiku_coding judgekeeper/demo_data/fields/coding`.

Ids, labels and verdicts alone: no text of what was judged, and no reason.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

TABLE = Path(__file__).parents[1] / "examples" / "haiku_coding" / "verdicts.csv"
COLUMNS = ("id", "label", "prompt", "run", "verdict")


def main(arguments: list[str]) -> int:
    """Write the table from the folder that is named."""
    write(Path(arguments[0]), TABLE)
    sys.stdout.write(f"{TABLE}\n")
    return 0


def write(data: Path, table: Path) -> None:
    """Write a row for each verdict of both prompts of the data."""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for prompt in ("quick", "full"):
            results = data / f"results-{prompt}.csv"
            with results.open(encoding="utf-8", newline="") as source:
                writer.writerows({**row, "prompt": prompt} for row in csv.DictReader(source))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
