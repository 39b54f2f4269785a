"""JSON pointers (RFC 6901): a place in JSON as text, such as `/task/id`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MISSING: Any = object()
"""What `at` gives where nothing is at the place."""


def at(value: Any, pointer: str) -> Any:
    """The value at a pointer, or `MISSING`; the empty pointer is the whole value."""
    for name in names_in(pointer):
        value = _below(value, name)
        if value is MISSING:
            break
    return value


def names_in(pointer: str) -> list[str]:
    """The names that a pointer goes by, outermost first; none of the empty pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def pointer_to(*names: str) -> str:
    """The pointer to a name below names."""
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)


def _below(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        # An index has no sign and no leading zero; a longer one than this is past any list.
        is_index = name.isascii() and name.isdigit() and len(name) < 10  # noqa: PLR2004
        if is_index and str(int(name)) == name and int(name) < len(value):
            return value[int(name)]
    return MISSING
