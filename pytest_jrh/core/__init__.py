"""What everything else rests on: values, errors, transcripts, text and files; and here how classes
of values are made, and how values are grouped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_Value = TypeVar("_Value")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_Value]) -> type[_Value]:
    """A data class whose fields nobody may set, nor add one."""
    made: Any = dataclass(frozen=True, slots=True, repr=False, eq=False)(cls)
    compared = [each.name for each in fields(made) if each.compare]
    values_of: Callable[[Any], Any] = attrgetter(*compared) if compared else type

    # The library would write and compile each of these for each class, in a fifth of a start.
    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if type(self) is type(other) else NotImplemented

    def digest(self: Any) -> int:
        return hash(values_of(self))

    made.__eq__, made.__hash__, made.__repr__ = is_equal, digest, _shown
    return made  # type: ignore[no-any-return]


def _shown(value: Any) -> str:
    shown = [f"{each.name}={getattr(value, each.name)!r}" for each in fields(value) if each.repr]
    return f"{type(value).__qualname__}({', '.join(shown)})"


def grouped(items: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Put items under their keys, in the order in which these appear."""
    groups: dict[_Key, list[_Value]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def grouped_by(items: Iterable[_Value], *attributes: str) -> dict[Any, list[_Value]]:
    """Put items under an attribute of theirs, such as `judge` or `now.judge`, or under several."""
    key = attrgetter(*attributes)
    return grouped((key(item), item) for item in items)
