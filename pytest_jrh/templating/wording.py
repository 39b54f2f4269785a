"""Messages about mistakes in both kinds of templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.errors import Problem
from pytest_jrh.text import nearest

if TYPE_CHECKING:
    from collections.abc import Collection


def unknown_problem(
    shown: str, name: str, origin: str, line: int | None, allowed: Collection[str]
) -> Problem:
    """Describe an unknown variable of a template, with the nearest match."""
    near = nearest(name, sorted(allowed))
    return Problem(
        f"unknown variable {shown}; available: {listed(allowed)}",
        file=origin,
        line=line,
        hint=f"nearest match: {near}" if near else None,
    )


def listed(names: Collection[str]) -> str:
    """Join names for a sentence."""
    return ", ".join(sorted(names)) or "none"
