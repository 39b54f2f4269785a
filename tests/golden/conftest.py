"""What the golden sessions share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _forks(forks: None) -> None:
    """Have the fork server import while the first session runs."""
