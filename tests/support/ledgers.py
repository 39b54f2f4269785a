"""What a session has left in a ledger, and the lines of a ledger or a baseline, to look at and to
change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.results import CaseResult
from pytest_jrh.store.ledger import read_ledger


def results_in(folder: Path) -> list[CaseResult]:
    """The results in a suite's results folder, in the order of its ledger."""
    return [stored.result for stored in read_ledger(folder / LEDGER_FILE).values()]


def case_lines(path: Path) -> list[dict[str, Any]]:
    """Those of its cases."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [line for line in lines if "case_id" in line]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has spent or reserved: calls sent, and the maximum of dollars."""

    calls: int = 0
    cost: float = 0.0


def spent(path: Path) -> Spent:
    """What has been spent or promised, as the file of a budget has it."""
    return Spent(**json.loads(path.read_text("ascii"))) if path.exists() else Spent()
