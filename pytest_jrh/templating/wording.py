"""What is said of the mistakes of both kinds of templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.errors import Problem
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Collection


def unknown_problem(
    shown: str, name: str, origin: str, line: int | None, allowed: Collection[str]
) -> Problem:
    """Say that a name is no variable of the template, and which one it may have meant."""
    near = nearest(name, sorted(allowed))
    return Problem(
        f"unknown variable {shown}; there are {listed(allowed)}",
        file=origin,
        line=line,
        hint=f"nearest match: {near}" if near else None,
    )


def listed(names: Collection[str]) -> str:
    """Join names for a sentence."""
    return ", ".join(sorted(names)) or "none"
