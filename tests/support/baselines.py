"""The lines of a ledger or a baseline, to look at and to change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def case_lines(path: Path) -> list[dict[str, Any]]:
    """Those of its cases."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [line for line in lines if "case_id" in line]


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a baseline of these lines."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
