"""What the ledger of a session holds."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_jrh.llm.limits import Spent


def spent(path: Path) -> Spent:
    """What has been spent or promised, as the file of a ledger has it."""
    return Spent(**json.loads(path.read_text("ascii"))) if path.exists() else Spent()
