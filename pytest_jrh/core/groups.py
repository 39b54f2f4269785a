"""Items put together by what they have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def grouped(items: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Put items under their keys, in the order in which these appear."""
    groups: dict[_Key, list[_Item]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def grouped_by(items: Iterable[_Item], *attributes: str) -> dict[Any, list[_Item]]:
    """Put items under an attribute of theirs, such as `judge` or `now.judge`, or under several."""
    key = attrgetter(*attributes)
    return grouped((key(item), item) for item in items)
