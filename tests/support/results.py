"""What a session has left in the ledger of a suite."""

from __future__ import annotations

from pathlib import Path

from pytest_jrh.core.ids import LEDGER_FILE
from pytest_jrh.core.results import CaseResult
from pytest_jrh.store.ledger import read_ledger


def results_in(folder: Path) -> list[CaseResult]:
    """The results in a suite's results folder, in the order of its ledger."""
    return [stored.result for stored in read_ledger(folder / LEDGER_FILE).values()]
