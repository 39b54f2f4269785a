"""The conversations of a file: where each begins and ends, the lines of a JSONL file or the items
of a JSON list, and what of its JSON is its id, its messages and the rest.

One item at a time is in memory, whatever the size of the file. For a file of another shape, the
places of these parts are guessed, for `init` to propose.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.config.values import MAX_SAMPLE_MB, InputFormat
from pytest_jrh.core.documents import (
    MISSING,
    DamagedError,
    at,
    check_depth,
    dotted,
    listed,
    names_in,
    parsed,
    pointer_to,
    printable,
    shown,
)
from pytest_jrh.core.errors import Problem
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.responses import PlacedItem, check_whole, is_item, items_of, turns_of
from pytest_jrh.sources.source import refused, too_big

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.documents import KeyPath


Bytes: TypeAlias = "bytes | mmap.mmap"

LINES = (".jsonl", ".ndjson")
"""What the names of files end in that hold one conversation a line."""
# By fields that they have at the top.
_OTHER_FORMATS = {
    ("schema_version", "steps"): "an ATIF trajectory, which belongs in a .json file of its own",
    ("resourceSpans",): "a trace of OpenTelemetry (OTLP)",
    ("resource_spans",): "a trace of OpenTelemetry (OTLP)",
}
_START = 4096
_BOM = b"\xef\xbb\xbf"
_LONGEST_FIRST = 2**20
# All up to the next bracket that is in no string.
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}\[\]])', re.DOTALL)
_COMMA = re.compile(rb"\s*+,\s*+")
_BLANK = re.compile(rb"\s*+")
_MESSAGES = re.compile(rb'"messages"\s*+:\s*+\[\Z')


class FileItem(NamedTuple):
    """One conversation in its file: its bytes, and its line (`number`) or place in the list."""

    start: int
    end: int
    number: int


class ItemFile:
    """A file of conversations; `most_bytes` is how much one of them may be."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.in_lines = path.suffix.lower() in LINES
        self._most_bytes = most_bytes

    @cached_property
    def is_one(self) -> bool:
        """Whether the file is one conversation, which it names."""
        return not self.in_lines and is_one_conversation(self.path)

    def items(self) -> Iterator[tuple[FileItem, bytes]]:
        """Each item with its bytes.

        Raises InputError for a file that cannot be read or split, naming the line.
        """
        try:
            if self.path.stat().st_size == 0:
                raise refused(self.path, "is empty, so it holds no conversation")
            if self.in_lines:
                yield from self._lines()
            elif self.is_one:
                yield from self._whole()
            else:
                yield from self._elements()
        except IsADirectoryError:
            raise refused(self.path, "is a folder, not a file of conversations") from None
        except OSError as error:
            raise refused(self.path, f"cannot be read: {error.strerror or error}") from None

    def value(self, item: FileItem) -> Any:
        """The JSON of an item; raises DamagedError."""
        try:
            with self.path.open("rb") as file:
                file.seek(item.start)
                return self.parsed(file.read(item.end - item.start))
        except OSError as error:
            raise DamagedError(f"cannot be read: {error.strerror or error}") from None

    def place(self, item: FileItem) -> str:
        """The place of an item in words, such as `line 3`."""
        return f"{'line' if self.in_lines else 'item'} {item.number}"

    def problem(self, item: FileItem, error: DamagedError) -> Problem:
        """Make the problem of one item; in a list its own line is looked up."""
        key = dotted(error.path)
        line: int | None = item.number
        if not self.in_lines:
            line = self._line_of(item.start)
            key = f"item {item.number}, {key}" if key else f"item {item.number}"
        return Problem(str(error), str(self.path), line, key or None, error.hint)

    def parsed(self, data: bytes) -> Any:
        """The conversation in the bytes of an item; raises DamagedError."""
        value = parsed(data)
        if self.is_one and "messages" in value and value.get("id") is None:
            return {**value, "id": self.path.stem}
        return value

    def _lines(self) -> Iterator[tuple[FileItem, bytes]]:
        start = 0
        number = 0
        with self.path.open("rb") as file:
            while line := file.readline(self._most_bytes + 2):
                number += 1
                item = FileItem(start, start + len(line), number)
                start = item.end
                self._check_size(item, len(line.rstrip(b"\r\n")))
                if line.strip(b" \t\r\n" + _BOM):
                    yield item, line

    def _whole(self) -> Iterator[tuple[FileItem, bytes]]:
        item = FileItem(0, self.path.stat().st_size, 1)
        self._check_size(item, item.end)
        yield item, self.path.read_bytes()

    def _elements(self) -> Iterator[tuple[FileItem, bytes]]:
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            try:
                for number, (start, end) in enumerate(elements(data), start=1):
                    item = FileItem(start, end, number)
                    self._check_size(item, end - start)
                    yield item, data[start:end]
            except DamagedError as error:
                hint = "one JSON object a line belongs in a .jsonl file"
                raise refused(self.path, f"is no whole JSON list: {error}", hint) from None

    def _check_size(self, item: FileItem, size: int) -> None:
        if size > self._most_bytes:
            raise refused(self.path, f"{self.place(item)} is {too_big(self._most_bytes)}")

    def _line_of(self, offset: int) -> int | None:
        try:
            with self.path.open("rb") as file:
                return file.read(offset).count(b"\n") + 1
        except OSError:
            return None


def begins_list(path: Path) -> bool:
    """Whether a file begins like a JSON list; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_START).removeprefix(_BOM).lstrip().startswith(b"[")
    except OSError:
        return False


def is_one_conversation(path: Path) -> bool:
    """Whether a file begins like a JSON object with messages in it, not in a list of others, and
    like no log of Inspect and no ATIF trajectory.
    """
    head = read_head(path).lstrip().encode()
    if not head.startswith(b"{") or (b'"eval"' in head and b'"version"' in head):
        return False
    return b"ATIF-v" not in head and _has_messages(head)


def _has_messages(head: bytes) -> bool:
    lists = at = 0
    while (bracket := _BRACKET.match(head, at)) is not None:
        if bracket[1] == b"[":
            if not lists and _MESSAGES.search(bracket[0]):
                return True
            lists += 1
        lists -= bracket[1] == b"]"
        at = bracket.end()
    return False


def first_of_list(path: Path) -> Any:
    """The first item of a file that is a JSON list; None where there is none, or it is damaged.

    Raises OSError where the file cannot be read.
    """
    if not begins_list(path):
        return None
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        contextlib.suppress(DamagedError),
    ):
        start, end = next(elements(data), (0, 0))
        return parsed(data[start:end]) if end - start <= _LONGEST_FIRST else None
    return None


def elements(data: Bytes) -> Iterator[tuple[int, int]]:
    """Find the objects and lists right below a JSON list, by their brackets alone.

    Raises DamagedError for brackets that do not match, and other values between the items.
    """
    first = _BRACKET.match(data)
    if first is None or first[1] != b"[" or first.start(1) != _opening(data):
        raise DamagedError("it does not begin with [")
    depth, start, done, at = 1, 0, 0, first.end()
    edge = at
    while depth:
        bracket = _BRACKET.match(data, at)
        if bracket is None:
            raise DamagedError("unexpected end of input: unclosed brace or string")
        at = bracket.end()
        if bracket[1] in b"{[":
            depth += 1
            if depth == 2:  # noqa: PLR2004 - an item of the list
                start = at - 1
                _check_between(data, edge, start, first=not done)
            continue
        depth -= 1
        if depth == 1:
            yield start, at
            done, edge = done + 1, at
        elif not depth and bracket[1] != b"]":
            raise DamagedError("it does not end with ]")
    if not _BLANK.fullmatch(data, edge, at - 1):
        raise DamagedError(f"every item must be an object or a list, see byte {edge}")
    if not _BLANK.fullmatch(data, at):
        raise DamagedError(f"unexpected data after byte {at}")


def _opening(data: Bytes) -> int:
    bom = len(_BOM) if data[: len(_BOM)] == _BOM else 0
    blank = _BLANK.match(data, bom)
    return blank.end() if blank else bom


def _check_between(data: Bytes, edge: int, start: int, *, first: bool) -> None:
    fits = _BLANK.fullmatch(data, edge, start) if first else _COMMA.fullmatch(data, edge, start)
    if not fits:
        raise DamagedError(f"every item must be an object or a list, see byte {edge}")


KEY = "input_format"
_REQUEST, _ANSWER, _MESSAGE = "/request/messages", "/response/choices/0/message", "/response"
UNREAD_ANSWER = (
    f"an answer beside the messages that is not read (`{KEY}: {{answer: {_ANSWER}}}` adds it)"
)
NO_ANSWER = (
    "a request without an answer that can be read, so that they end with the request "
    f"(`{KEY}: {{answer: /pointer}}` says where it is)"
)
_DIGEST = 12
_DEEPEST = 4
_MOST_LOOKED_AT = 2_000
_JOINED_BY = "-"


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
    id_parts = _scalars(value, places.id, "id")
    if not id_parts:
        sample_id: int | str = _digest(turns)
    elif len(id_parts) == 1:
        sample_id = id_parts[0]
    else:
        sample_id = _joined(id_parts)
    cluster_parts = _scalars(value, places.cluster, "cluster")
    return Identity(
        sample_id,
        _epoch(value, places.epoch),
        str(storable(_joined(cluster_parts))[0]) if cluster_parts else None,
        named=bool(id_parts),
        has_messages=bool(turns),
    )


def messages_of(value: Any, places: InputFormat) -> list[Any]:
    """The messages as they stand in the file, with the answer that stands beside them.

    Raises DamagedError where there are none.
    """
    if places.messages is None:
        items = items_of(value)
        if items is not None:
            check_depth(value)
            check_whole(value)
            return turns_of(items)
        if isinstance(value, list):
            return _with_items_read(value, ())
    pointer = "/messages" if places.messages is None else places.messages
    answer = places.answer
    if places.messages is None and is_exchange(value):
        pointer, answer = _REQUEST, answer or _place_of_answer(value)
    messages = at(value, pointer)
    if isinstance(messages, list):
        messages = _with_items_read(messages, tuple(names_in(pointer)))
        turn = MISSING if answer is None else at(value, answer)
        return messages if turn is MISSING or turn is None else [*messages, turn]
    problem = "has no messages" if messages is MISSING else f"has {shown(messages)} for messages"
    for fields, other_format in _OTHER_FORMATS.items():
        if isinstance(value, dict) and value.keys() >= {*fields}:
            problem += f" at {pointer or 'the top'}; it is {other_format}"
            raise DamagedError(problem, "write conversations, one a line: {id, messages}")
    elsewhere = [
        pointer_there for pointer_there in places_of_messages(value) if pointer_there != pointer
    ]
    hint = f"{KEY}: {{messages: {elsewhere[0]}}} would find some" if elsewhere else None
    raise DamagedError(f"{problem} at {pointer or 'the top'}; {_keys(value)}", hint)


def _with_items_read(messages: list[Any], path: KeyPath) -> list[Any]:
    """The messages; where some are items of OpenAI's Responses API, those that all of them make."""
    if not any(map(is_item, messages)):
        return messages
    check_depth(messages)
    return turns_of(PlacedItem((*path, at), item) for at, item in enumerate(messages))


def is_exchange(value: Any) -> bool:
    """Whether a conversation is a request with its answer, as proxies of OpenAI's API log them."""
    return at(value, "/messages") is MISSING and isinstance(at(value, _REQUEST), list)


def _place_of_answer(value: Any) -> str:
    # What Anthropic's API answers is a message itself.
    return _MESSAGE if at(value, f"{_MESSAGE}/role") == "assistant" else _ANSWER


def has_no_answer(value: Any, places: InputFormat) -> bool:
    """Whether a request stands where its answer is looked for in vain."""
    is_guessed = places.messages is None and places.answer is None and is_exchange(value)
    return is_guessed and at(value, _place_of_answer(value)) in (MISSING, None)


def has_unread_answer(value: Any, places: InputFormat) -> bool:
    """Whether there is an answer beside the messages that is none of them, so that the transcript
    ends before it.
    """
    answer = at(value, _ANSWER)
    return isinstance(answer, dict) and answer not in messages_of(value, places)


def metadata_of(value: Any, places: InputFormat) -> dict[str, Any]:
    """The metadata: an object as it is, any other value under its own name."""
    if places.metadata is None:
        metadata = _part(value, None, "metadata")
        if metadata is None:
            return {}
        return metadata if isinstance(metadata, dict) else {"metadata": metadata}
    if len(places.metadata) == 1 and isinstance(metadata := at(value, places.metadata[0]), dict):
        return dict(metadata)
    return {_last(pointer): _required(value, pointer, "metadata") for pointer in places.metadata}


def text_of(value: Any, pointer: str | None, name: str) -> str | None:
    """A text such as `input` or `target`; other JSON is written out. None where there is none, or
    where it is the items of a response.
    """
    text = _part(value, pointer, name)
    if text is None or isinstance(text, str):
        return text
    if pointer is None and items_of(value) is not None:
        return None
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "\n".join(text)
    return json.dumps(text, ensure_ascii=False)


def system_of(value: Any, places: InputFormat) -> Any:
    """The system prompt that stands beside the messages, as Anthropic has it; None without."""
    system = _part(value, places.system, "system")
    if system is None and places.messages is None and is_exchange(value):
        system = value["request"].get("system")
    return system if places.system is not None or isinstance(system, str | list) else None


def places_of_messages(value: Any) -> list[str]:
    """Pointers to what look like lists of messages, the longest list first."""
    lists: list[tuple[int, str]] = []
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        node, path = waiting.pop(0)
        if isinstance(node, list):
            if node and all(isinstance(item, dict) and "role" in item for item in node):
                lists.append((len(node), pointer_to(*path)))
        elif isinstance(node, dict) and len(path) < _DEEPEST:
            waiting += [(inner, (*path, key)) for key, inner in node.items()]
    return [pointer for _, pointer in sorted(lists, key=lambda sized: -sized[0])]


def _part(value: Any, pointer: str | None, key: str) -> Any:
    """What stands at a pointer, where there must be something; without a pointer, under the key's
    own name, where there may be nothing: None.
    """
    if pointer is not None:
        return _required(value, pointer, key)
    part = at(value, pointer_to(key))
    return None if part is MISSING else part


def _scalars(value: Any, pointers: Sequence[str] | None, key: str) -> list[int | str]:
    parts = []
    for pointer in pointers or (None,):
        part = _part(value, pointer, key)
        if part is not None:
            parts.append(_scalar(part, pointer or pointer_to(key), key))
    return parts


def _joined(parts: Sequence[int | str]) -> str:
    return _JOINED_BY.join(map(str, parts))


def _epoch(value: Any, pointer: str | None) -> int:
    epoch = _part(value, pointer, "epoch")
    if epoch is None:
        return 1
    if type(epoch) is not int or epoch < 0:
        raise DamagedError(f"has the epoch {shown(epoch)}; must be an integer >= 0")
    return epoch


def _required(value: Any, pointer: str, key: str) -> Any:
    part = at(value, pointer)
    if part is MISSING or part is None:
        raise DamagedError(f"has nothing at {pointer} ({KEY}.{key}); {_keys(value)}")
    return part


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
    values: dict[str, list[Any]] | None = None
    messages: str | None = None
    for _, data in ItemFile(path, MAX_SAMPLE_MB * 1_000_000).items():
        value = parsed(data)
        if values is None:
            pointers = places_of_messages(value)
            is_read = is_exchange(value) or items_of(value) is not None
            if not isinstance(value, dict) or "/messages" in pointers:
                return None
            if not pointers and not is_read:
                return None
            messages = None if is_read else pointers[0]
            values = {key: [] for key in list(value)[:_MOST_KEYS]}
        for key in list(values):
            part = value.get(key) if isinstance(value, dict) else None
            if _can_name(part):
                values[key].append(part)
            else:
                del values[key]
    if values is None or ("id" in values and messages is None):
        return None
    if "id" in values:
        return InputFormat(messages=messages)
    names, cluster = _names(values)
    if not names and messages is None:
        return None
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
    unique = [key for key in tasks if len(set(values[key])) == len(values[key])]
    if unique:
        return (unique[0],), next(iter(repeated), None)
    for task, trial in product(tasks, trials):
        pairs = set(zip(values[task], values[trial], strict=True))
        if len(pairs) == len(values[task]):
            return (task, trial), task
    return (), None
