"""What everything else rests on: values, errors, transcripts, text and files; and here how classes
of values are made, and how values are grouped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_Value = TypeVar("_Value")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_Value]) -> type[_Value]:
    """A data class whose fields nobody may set, nor add one."""
    return dataclass(frozen=True, slots=True)(cls)


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
