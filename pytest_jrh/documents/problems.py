"""Texts about problems in a user's file: places and received values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

KeyPath: TypeAlias = "tuple[str | int, ...]"

_LONGEST_VALUE = 80
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)


def printable(text: str, limit: int = _LONGEST_VALUE) -> str:
    """Make text safe and short enough for one line of a terminal: no escapes, no control
    characters.
    """
    flat = "".join(char if char.isprintable() else " " for char in _ANSI.sub("", text[: 4 * limit]))
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def shown(value: object) -> str:
    """Render a received value as a user may have typed it; collections are only named."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(printable(value), ensure_ascii=False)
        case int() | float():
            return printable(str(value))
        case dict():
            return "a mapping of keys"
        case _:
            return "a list"


def dotted(path: KeyPath) -> str:
    """Write a key path as text: `admin.tests_to_run[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{printable(part, 40)}"
    return text.removeprefix(".")


def listed(names: Iterable[str], limit: int = 30) -> str:
    """Join names for a sentence; the end of a long list is counted instead of printed."""
    all_names = list(names)
    more = len(all_names) - limit
    return ", ".join(printable(name, 60) for name in all_names[:limit]) + (
        f" and {more} more" if more > 0 else ""
    )


def received(value: Any, expected: str) -> str:
    """Describe a value of the wrong kind: what was there and what may be there."""
    return f"got {shown(value)}; must be {expected}"
