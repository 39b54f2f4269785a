"""Where the parts of conversations are in a file of another shape, for `init` to propose (rule
R2).
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.pointers import pointer_to
from pytest_jrh.documents.strict_json import parsed
from pytest_jrh.sources.conversations.items import ItemFile
from pytest_jrh.sources.conversations.layout import places_of_messages
from pytest_jrh.suite.suite import MAX_SAMPLE_MB, InputFormat

if TYPE_CHECKING:
    from pathlib import Path

_ID = re.compile(r"(?:.*_)?(?:id|uid|uuid|key|name)")
_TRIAL = re.compile(r"(?:.*_)?(?:trial|epoch|run|attempt|rollout|repeat|seed|sample|index)")
_LONGEST = 200
_MOST_KEYS = 40


def guessed_format(path: Path) -> InputFormat | None:
    """Where messages and ids seem to be; None where they are where they are looked for anyway, or
    nothing looks like messages.

    An id is a field that names each conversation, or a task and a number of its trials. Raises
    InputError and DamagedError for a file that cannot be read.
    """
    values: dict[str, list[Any]] = {}
    messages = ""
    for _, data in ItemFile(path, MAX_SAMPLE_MB * 1_000_000).items():
        value = parsed(data)
        if not messages:
            found = places_of_messages(value)
            if not found or "/messages" in found or not isinstance(value, dict):
                return None
            messages = found[0]
            values = {key: [] for key in list(value)[:_MOST_KEYS]}
        for key in list(values):
            part = value.get(key) if isinstance(value, dict) else None
            if _can_name(part):
                values[key].append(part)
            else:
                del values[key]
    if "id" in values:
        return InputFormat(messages=messages)
    names, cluster = _names(values)
    return InputFormat(
        messages=messages,
        id=tuple(map(pointer_to, names)) or None,
        cluster=(pointer_to(cluster),) if cluster else None,
    )


def _can_name(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _LONGEST
    return type(value) is int


def _names(values: dict[str, list[Any]]) -> tuple[tuple[str, ...], str | None]:
    """The fields that name each conversation, and the one whose values several of them share."""
    tasks = [key for key in values if _ID.fullmatch(key.lower())]
    trials = [key for key in values if _TRIAL.fullmatch(key.lower())]
    repeated = [key for key in tasks if 1 < len(set(values[key])) < len(values[key])]
    own = [key for key in tasks if len(set(values[key])) == len(values[key])]
    if own:
        return (own[0],), next(iter(repeated), None)
    for task, trial in product(tasks, trials):
        pairs = set(zip(values[task], values[trial], strict=True))
        if len(pairs) == len(values[task]):
            return (task, trial), task
    return (), None
