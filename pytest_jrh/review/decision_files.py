"""Where decisions are kept: asked of every suite before anything, so it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.suite.suite import Suite


def decisions_path(output_dir: Path) -> Path:
    """Where the decisions about the cases of a test's folder are kept (rule K2)."""
    return output_dir / "review" / "decisions.jsonl"


def has_decisions(suite: Suite) -> bool:
    """Whether anybody has ever decided about cases of this suite's folders."""
    return any(decisions_path(test.output_dir).exists() for test in suite.tests)
