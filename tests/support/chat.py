"""The real conversations of `../shared`."""

from __future__ import annotations

from pathlib import Path

import pytest

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def tau_bench() -> Path:
    """200 runs of GPT-4o in OpenAI messages; skips the test where they are absent."""
    path = _DATA / "tau-bench" / "gpt-4o-airline.json"
    if not path.is_file():
        pytest.skip("the runs of tau-bench are not there (../shared/data/tau-bench)")
    return path
