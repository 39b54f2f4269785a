"""The one way in which files with transcripts in JSON are read, whatever their form.

A file has a conversation in each line, or in each item of a JSON list, or it is one. It is indexed
once, and each conversation is read when it is asked for: one at a time is in memory.
"""

from __future__ import annotations

import contextlib
import json
import mmap
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import (
    DamagedError,
    check_depth,
    dotted,
    inside,
    line_in_json,
    parsed,
    printable,
    received,
)
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.sources.source import (
    BOM,
    LINES,
    Conversation,
    Key,
    RunFields,
    Source,
    changed_note,
    elements,
    refused,
    written_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

# The reader that knows lines is slow, so problems in larger files name none.
_MOST_BYTES_FOR_LINES = 5_000_000
_DIGEST = 12


class Item(NamedTuple):
    """One conversation in its file: its bytes, and its line (`number`) or place in the list."""

    start: int
    end: int
    number: int


class _Row(NamedTuple):
    """What collection knows of a conversation; `named` is False for an id made of its messages."""

    item: Item
    sample_id: int | str
    named: bool
    summary: RunSummary


class Transcripts(Source):
    """The conversations of a file."""

    def _prepare(self) -> None:
        self._notices: dict[str, None] = {}
        self._created: datetime | None = None
        self._file = self.path
        self._is_whole = self._form is not None and self._form.is_whole

    def conversation(self, value: Any) -> Conversation:
        """What the form makes of the JSON of a conversation; raises DamagedError."""
        assert self._form is not None
        assert self._form.conversation is not None
        with inside():
            return self._form.conversation(value)

    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary for each conversation, in the file's order.

        Raises InputError with the lines of the first mistakes: no JSON, no messages, an unusable
        id, or one that another conversation has.
        """
        return tuple(row.summary for row in self._rows.values())

    def fields(self) -> Iterator[RunFields]:
        """See `Source`: each conversation is parsed once more, and its messages are not read."""
        for key, row in self._rows.items():
            value, conversation = None, Conversation(())
            # What is damaged has nothing, as its cases will say.
            with contextlib.suppress(DamagedError):
                value = self._value(self._bytes(row.item))
                conversation = self.conversation(value)
            beside = self._beside(value)
            yield RunFields(key, conversation.metadata, conversation.scores, beside)

    def _beside(self, value: Any) -> Mapping[str, Any]:  # noqa: ARG002 - here nothing
        """What of the JSON the config could make metadata of."""
        return {}

    def values(self) -> Iterator[Any]:
        """The JSON of each conversation; raises InputError and DamagedError."""
        for _, data in self._items():
            yield self._value(data)

    def notices(self) -> tuple[str, ...]:
        """What was unusual about the conversations so far."""
        with self._lock:
            return tuple(f"{self.path.name}: {notice}" for notice in self._notices)

    def created(self) -> datetime | None:
        """See `Source`: when the first conversation was begun, where its form says it."""
        return self._created if self._rows else None

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one conversation: the run, and if `with_raw` its JSON.

        Raises Unscored (`input_error`) where it is missing, or its messages cannot be read.
        """
        row = self._rows.get((run_id, epoch))
        try:
            if row is None:
                raise DamagedError("the file has no such conversation")
            value = self._value(self._bytes(row.item))
            check_depth(value)
            conversation = self.conversation(value)
            if self._row(row.item, conversation) != row:
                raise DamagedError("the file has changed since it was collected")
            run = self._run(run_id, row.sample_id, conversation)
        except DamagedError as error:
            why = printable(str(error), 300)
            if row is not None:
                why = f"{self._place(row.item)}: {why}"
            advice = "Mend the conversation, or leave it out."
            raise self._unreadable(run_id, epoch, why, advice) from error
        return run, value if with_raw else None

    def _run(self, run_id: str, sample_id: int | str, conversation: Conversation) -> AgentRun:
        messages, unusual = read_messages(conversation.messages, conversation.system)
        stored: dict[str, Any] = {
            "messages": messages,
            "input": conversation.input,
            "target": conversation.target or "",
            "metadata": dict(conversation.metadata),
            "tools": definitions_of(conversation.tools),
        }
        clean, changed = storable(stored)
        with self._lock:
            for what in unusual:
                self._notices[f"some conversations have {what}; these are kept as they are"] = None
        task = clean["input"]
        if task is None:
            asked = (message for message in clean["messages"] if message["role"] == "user")
            task = message_text(next(asked, {}))
        return AgentRun(
            run_id=run_id,
            epoch=conversation.epoch,
            messages=tuple(clean["messages"]),
            input=task,
            target=clean["target"],
            metadata=clean["metadata"],
            sample_id=sample_id,
            notes=(*unusual, *changed_note(changed)),
            tools=tuple(clean["tools"]),
        )

    @cached_property
    def _rows(self) -> dict[Key, _Row]:
        rows: dict[Key, _Row] = {}
        problems: list[Problem] = []
        for item, data in self._items():
            try:
                conversation = self.conversation(self._value(data))
                row = self._row(item, conversation)
                first = rows.setdefault((row.summary.run_id, row.summary.epoch), row)
                if first is not row:
                    raise self._twice(first, row)
                if len(rows) == 1:
                    self._created = written_time(conversation.created)
                self._notices.update(dict.fromkeys(conversation.notices))
            except DamagedError as error:
                problems.append(self._problem(item, data, error))
            if len(problems) == MOST_PROBLEMS:
                break
        if problems:
            raise InputError(problems)
        if not rows:
            raise refused(self.path, "holds no conversation")
        return rows

    def _row(self, item: Item, conversation: Conversation) -> _Row:
        sample_id, named = conversation.id, True
        if sample_id is None and self._is_whole:
            sample_id = self._file_name
        elif sample_id is None:
            # The same wherever in a file it stands.
            check_depth(list(conversation.messages))
            text = json.dumps(conversation.messages, sort_keys=True, separators=(",", ":"))
            sample_id, named = short_digest(text, _DIGEST), False
        skip = None
        if not conversation.messages:
            skip = Skip("no_messages", conversation.no_messages)
        run_id, cluster = storable(str(sample_id))[0], storable(conversation.cluster)[0]
        return _Row(item, sample_id, named, RunSummary(run_id, conversation.epoch, skip, cluster))

    def _twice(self, first: _Row, row: _Row) -> DamagedError:
        place, run = self._place(first.item), row.summary
        if not row.named and not first.named:
            message = f"is the same conversation as {place}, and neither has an id"
            how = "give each an `id`, or name what makes one with suite.format: {id: /pointer}"
            return DamagedError(message, how)
        message = f"has the id {printable(run.run_id)!r} (epoch {run.epoch}), as {place} has"
        how = "give each its own id or epoch; suite.format: {id: [/task, /trial]} puts one together"
        return DamagedError(message, how)

    @property
    def _file_name(self) -> str:
        return self.path.stem

    @property
    def _is_list(self) -> bool:
        return self._file.suffix.lower() == ".json"

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        """Each item with its bytes.

        Raises InputError for a file that cannot be read or split, naming the line.
        """
        try:
            size = self._file.stat().st_size
            if size == 0:
                raise refused(self._file, "is empty, so it holds no conversation")
            if self._is_whole:
                item = Item(0, size, 1)
                self._check_size(item)
                yield item, self._bytes(item)
            elif self._is_list:
                yield from self._elements()
            else:
                yield from self._lines()
        except IsADirectoryError:
            raise refused(self._file, "is a folder, not a file of conversations") from None
        except OSError as error:
            raise refused(self._file, f"cannot be read: {error.strerror or error}") from None

    def _lines(self) -> Iterator[tuple[Item, bytes]]:
        start = number = 0
        with self._file.open("rb") as file:
            while line := file.readline(self.most_mb * 1_000_000 + 2):
                number += 1
                item = Item(start, start + len(line), number)
                start = item.end
                self._check_size(item._replace(end=item.start + len(line.rstrip(b"\r\n"))))
                if line.strip(b" \t\r\n" + BOM):
                    yield item, line

    def _elements(self) -> Iterator[tuple[Item, bytes]]:
        with (
            self._file.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            try:
                for number, (start, end) in enumerate(elements(data), start=1):
                    item = Item(start, end, number)
                    self._check_size(item)
                    yield item, data[start:end]
            except DamagedError as error:
                hint = "one JSON object a line belongs in a .jsonl file"
                raise refused(self._file, f"is no whole JSON list: {error}", hint) from None

    def _check_size(self, item: Item) -> None:
        if too_big := self._too_big(item.end - item.start):
            raise refused(self._file, f"{self._place(item)} is {too_big}")

    def _bytes(self, item: Item) -> bytes:
        try:
            with self._file.open("rb") as file:
                file.seek(item.start)
                return file.read(item.end - item.start)
        except OSError as error:
            raise DamagedError(f"cannot be read: {error.strerror or error}") from None

    def _value(self, data: bytes) -> Any:
        """The JSON of an item; of a file that is one conversation in lines, the list of theirs."""
        if not self._is_whole:
            return parsed(data)
        if self._file.suffix.lower() in LINES:
            return _values_of_lines(data)
        value = parsed(data)
        check_depth(value)
        return value

    def _place(self, item: Item) -> str:
        if self._is_whole:
            return "its conversation"
        return f"{'item' if self._is_list else 'line'} {item.number}"

    def _problem(self, item: Item, data: bytes, error: DamagedError) -> Problem:
        """What is wrong with an item, with its line, or where it is known the line in it."""
        path, line = error.path, error.line
        key = dotted(path)
        if not self._is_whole and not self._is_list:
            line = item.number
        elif not self._is_whole:
            with self._file.open("rb") as file:
                line = file.read(item.start).count(b"\n") + 1
            key = f"item {item.number}, {key}" if key else f"item {item.number}"
        elif self._file.suffix.lower() not in LINES:
            if path and len(data) <= _MOST_BYTES_FOR_LINES:
                line = line_in_json(data.decode("utf-8-sig"), path)
        elif path and isinstance(path[0], int):
            line, key = _numbered(data)[path[0]][0], dotted(path[1:])
        return Problem(str(error), str(self._file), line, key or None, error.hint)


def _numbered(data: bytes) -> list[tuple[int, bytes]]:
    rows = enumerate(data.split(b"\n"), start=1)
    return [(number, row) for number, row in rows if row.strip(b" \t\r" + BOM)]


def _values_of_lines(data: bytes) -> list[dict[str, Any]]:
    values = []
    rows = _numbered(data)
    for number, row in rows:
        try:
            value = parsed(row)
            if not isinstance(value, dict):
                raise DamagedError(received(value, "an object with a type"))
            check_depth(value)
        except DamagedError as error:
            hint = None
            if number == rows[-1][0] and not data.endswith(b"\n"):
                hint = "the line is cut off: copy the session again when it has ended, or remove it"
            raise DamagedError(str(error), hint, line=number) from None
        values.append(value)
    return values


def definitions_of(tools: Any) -> list[dict[str, Any]]:
    """The definitions of tools, as OpenAI's API has them or Anthropic's: each with a name and the
    JSON schema of its arguments.
    """
    definitions: list[dict[str, Any]] = []
    for entry in tools if isinstance(tools, list) else ():
        definition = entry.get("function", entry) if isinstance(entry, dict) else None
        if isinstance(definition, dict) and isinstance(definition.get("name"), str):
            parameters = definition.get("parameters", definition.get("input_schema"))
            definitions.append({"name": definition["name"], "parameters": parameters})
    return definitions
