"""What the ledger of a session holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has spent or reserved: calls sent, and the maximum of dollars."""

    calls: int = 0
    cost: float = 0.0


def spent(path: Path) -> Spent:
    """What has been spent or promised, as the file of a ledger has it."""
    return Spent(**json.loads(path.read_text("ascii"))) if path.exists() else Spent()
