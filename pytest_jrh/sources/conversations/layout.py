"""What of a conversation's JSON is its id, its messages and the rest (rule R2)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.pointers import MISSING, at, names_in, pointer_to
from pytest_jrh.documents.problems import listed, printable, shown
from pytest_jrh.documents.strict_json import DamagedError
from pytest_jrh.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.suite.suite import InputFormat

KEY = "input_format"
_DIGEST = 12
_DEEPEST = 4
_MOST_LOOKED_AT = 2_000
_JOINED_BY = "-"


class MisplacedError(DamagedError):
    """Something is not where it should be; `hint` says where it may be."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Identity:
    """What collection has to know of a conversation; `named` is False for an id made of its
    messages.
    """

    sample_id: int | str
    epoch: int
    cluster: str | None
    named: bool
    has_messages: bool

    @property
    def run_id(self) -> str:
        """The id as text that can be stored."""
        return str(storable(str(self.sample_id))[0])


def identity(value: Any, places: InputFormat) -> Identity:
    """Read id, epoch and cluster of a conversation; raises DamagedError."""
    turns = messages_of(value, places)
    sample_id = _id(value, places.id)
    named = sample_id is not None
    return Identity(
        sample_id if sample_id is not None else _digest(turns),
        _epoch(value, places.epoch),
        _cluster(value, places.cluster),
        named=named,
        has_messages=bool(turns),
    )


def messages_of(value: Any, places: InputFormat) -> list[Any]:
    """The messages as they stand in the file; raises DamagedError where there are none."""
    if places.messages is None and isinstance(value, list):
        return value
    pointer = places.messages if places.messages is not None else "/messages"
    found = at(value, pointer)
    if isinstance(found, list):
        return found
    what = "has no messages" if found is MISSING else f"has {shown(found)} for messages"
    elsewhere = [other for other in places_of_messages(value) if other != pointer]
    hint = f"{KEY}: {{messages: {elsewhere[0]}}} would find some" if elsewhere else None
    raise MisplacedError(f"{what} at {pointer or 'the top'}; {_keys(value)}", hint)


def metadata_of(value: Any, places: InputFormat) -> dict[str, Any]:
    """The metadata: an object as it is, any other value under its own name."""
    if places.metadata is None:
        found = at(value, "/metadata")
        if found is MISSING or found is None:
            return {}
        return found if isinstance(found, dict) else {"metadata": found}
    if len(places.metadata) == 1 and isinstance(found := at(value, places.metadata[0]), dict):
        return dict(found)
    return {_last(pointer): _required(value, pointer, "metadata") for pointer in places.metadata}


def text_of(value: Any, pointer: str | None, name: str) -> str | None:
    """A text such as `input` or `target`; other JSON is written out. None where there is none."""
    found = at(value, f"/{name}") if pointer is None else _required(value, pointer, name)
    if found is MISSING or found is None:
        return None
    if isinstance(found, str):
        return found
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        return "\n".join(found)
    return json.dumps(found, ensure_ascii=False)


def system_of(value: Any, places: InputFormat) -> Any:
    """The system prompt that stands beside the messages, as Anthropic has it; None without."""
    if places.system is not None:
        return _required(value, places.system, "system")
    found = at(value, "/system") if isinstance(value, dict) else None
    return found if isinstance(found, str | list) else None


def places_of_messages(value: Any) -> list[str]:
    """Pointers to what look like lists of messages, the longest list first."""
    found: list[tuple[int, str]] = []
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        here, path = waiting.pop(0)
        if isinstance(here, list):
            if here and all(isinstance(each, dict) and "role" in each for each in here):
                found.append((len(here), pointer_to(*path)))
        elif isinstance(here, dict) and len(path) < _DEEPEST:
            waiting += [(each, (*path, key)) for key, each in here.items()]
    return [pointer for _, pointer in sorted(found, key=lambda each: -each[0])]


def _id(value: Any, pointers: Sequence[str] | None) -> int | str | None:
    if pointers is None:
        found = at(value, "/id") if isinstance(value, dict) else None
        if found is MISSING or found is None:
            return None
        return _scalar(found, "/id", "id")
    parts = [_scalar(_required(value, each, "id"), each, "id") for each in pointers]
    return parts[0] if len(parts) == 1 else _JOINED_BY.join(map(str, parts))


def _cluster(value: Any, pointers: Sequence[str] | None) -> str | None:
    if pointers is None:
        found = at(value, "/cluster") if isinstance(value, dict) else None
        if found is MISSING or found is None:
            return None
        parts = [_scalar(found, "/cluster", "cluster")]
    else:
        parts = [_scalar(_required(value, each, "cluster"), each, "cluster") for each in pointers]
    return str(storable(_JOINED_BY.join(map(str, parts)))[0])


def _epoch(value: Any, pointer: str | None) -> int:
    if pointer is None:
        found = at(value, "/epoch") if isinstance(value, dict) else None
        if found is MISSING or found is None:
            return 1
    else:
        found = _required(value, pointer, "epoch")
    if type(found) is not int or found < 0:
        raise DamagedError(f"has the epoch {shown(found)}; must be an integer >= 0")
    return found


def _required(value: Any, pointer: str, key: str) -> Any:
    found = at(value, pointer)
    if found is MISSING or found is None:
        raise DamagedError(f"has nothing at {pointer} ({KEY}.{key}); {_keys(value)}")
    return found


def _scalar(value: Any, pointer: str, key: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise DamagedError(
            f"has {shown(value)} at {pointer} for its {key}; must be text or an integer"
        )
    return value


def _digest(turns: list[Any]) -> str:
    """Name a conversation by its messages: the same wherever in a file it stands."""
    text = json.dumps(turns, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _keys(value: Any) -> str:
    if not isinstance(value, dict):
        return f"it is {shown(value)}"
    return f"its keys are {listed(value, 12)}" if value else "it has no keys"


def _last(pointer: str) -> str:
    names = names_in(pointer)
    return printable(names[-1]) if names else ""
