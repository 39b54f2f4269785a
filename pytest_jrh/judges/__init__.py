"""The kinds of judges, each in a file of its own, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.judges.prompt import PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.judges.judge import JudgeKind

JUDGES: Mapping[str, JudgeKind] = {kind.key: kind for kind in (PROMPT,)}
"""The kinds of judges by `JudgeSettings.kind`."""
