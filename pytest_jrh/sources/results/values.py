"""What may be in the JSON of strangers, each as nothing where it is of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text(value: object) -> str:
    """A value where it is text, else nothing."""
    return value.strip() if isinstance(value, str) else ""


def mapping(value: object) -> Mapping[str, Any]:
    """A value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a value where it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def is_plain(value: object) -> bool:
    """Whether a value is a word, a number or a truth."""
    return isinstance(value, bool | int | float) or bool(text(value))


def plain_fields(prefix: str, values: object) -> dict[str, Any]:
    """The words, numbers and truths of a mapping, as columns with a prefix."""
    named = mapping(values).items()
    return {f"{prefix}.{name}": value for name, value in named if is_plain(value)}
