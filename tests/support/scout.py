"""Inspect Scout is large, and no part of the `dev` extra."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

HAS_SCOUT = find_spec("inspect_scout") is not None
# Not `importorskip`, which would also skip where Scout is installed and cannot be imported.
needs_scout = pytest.mark.skipif(not HAS_SCOUT, reason="needs pytest-jrh[scout]")
