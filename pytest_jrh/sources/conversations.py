"""Runs from a file of conversations: indexed once, each read when it is asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.config.schema import MAX_SAMPLE_MB, InputFormat
from pytest_jrh.core.documents import DamagedError, check_depth, parsed, printable
from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.chat_messages import read_messages
from pytest_jrh.sources.json_items import (
    KEY,
    LINES,
    FileItem,
    Identity,
    ItemFile,
    MisplacedError,
    begins_list,
    identity,
    messages_of,
    metadata_of,
    system_of,
    text_of,
)
from pytest_jrh.sources.log_pieces import refused
from pytest_jrh.sources.source import Source, changed_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


Key = tuple[str, int]
_MOST_PROBLEMS = 10


class _Row(NamedTuple):
    item: FileItem
    identity: Identity


class Conversations(Source):
    """A `.jsonl` file with one conversation a line, or a `.json` file with a list of them."""

    suffixes = (*LINES, ".json")

    def __init__(
        self,
        path: Path,
        *,
        max_sample_mb: int = MAX_SAMPLE_MB,
        input_format: InputFormat | None = None,
    ) -> None:
        self.path = path
        self._places = input_format or InputFormat()
        self._file = ItemFile(path, max_sample_mb * 1_000_000)
        self._lock = threading.Lock()
        self._rows: dict[Key, _Row] | None = None
        self._unusual: dict[str, None] = {}

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file is called like JSON lines, or begins like a JSON list."""
        if path.suffix.lower() in LINES:
            return path.is_file()
        return begins_list(path)

    def close(self) -> None:
        """Nothing stays open; where each conversation is stays known."""

    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per conversation, in the file's order; one at a time is in memory.

        Raises InputError with the lines of the first mistakes: no JSON, no messages, an unusable
        id, or one that another conversation has.
        """
        return tuple(
            RunSummary(
                run_id,
                epoch,
                None if row.identity.has_messages else Skip("no_messages"),
                row.identity.cluster,
            )
            for (run_id, epoch), row in self._index().items()
        )

    def metadata(self, field: str) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: each conversation is parsed once more, and its messages are not read."""
        del field
        for key, row in self._index().items():
            try:
                fields = metadata_of(self._file.value(row.item), self._places)
            except DamagedError:
                fields = {}
            yield key, fields

    def notices(self) -> tuple[str, ...]:
        """What was unusual about conversations that were read."""
        with self._lock:
            return tuple(
                f"{self.path.name}: some conversations have {what}; these are kept as they are"
                for what in self._unusual
            )

    def read(self, run_id: str, epoch: int, *, whole: bool = False) -> tuple[AgentRun, Any]:
        """Read one conversation: the run, and if `whole` its JSON.

        Raises Unscored (`input_error`) where it is missing, or its messages cannot be read.
        """
        row = self._index().get((run_id, epoch))
        try:
            if row is None:
                raise DamagedError("the file has no such conversation")
            value = self._file.value(row.item)
            check_depth(value)
            return self._run(run_id, epoch, row, value), value if whole else None
        except DamagedError as error:
            where = f", {self._file.place(row.item)}," if row is not None else ""
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path}{where} cannot "
                f"be read: {printable(str(error), 300)}.",
                advice="Mend the conversation, or leave it out.",
            ) from error

    def _run(self, run_id: str, epoch: int, row: _Row, value: Any) -> AgentRun:
        if identity(value, self._places) != row.identity:
            raise DamagedError("the file has changed since it was collected")
        turns = messages_of(value, self._places)
        messages, unusual = read_messages(turns, system_of(value, self._places))
        stored: dict[str, Any] = {
            "messages": messages,
            "input": text_of(value, self._places.input, "input"),
            "target": text_of(value, self._places.target, "target"),
            "metadata": metadata_of(value, self._places),
        }
        clean, changed = storable(stored)
        with self._lock:
            self._unusual.update(dict.fromkeys(unusual))
        task = clean["input"]
        if task is None:
            asked = (message for message in clean["messages"] if message["role"] == "user")
            task = message_text(next(asked, {}))
        return AgentRun(
            run_id=run_id,
            epoch=epoch,
            messages=tuple(clean["messages"]),
            input=task,
            target=clean["target"] or "",
            metadata=clean["metadata"],
            sample_id=row.identity.sample_id,
            notes=(*unusual, *changed_note(changed)),
        )

    def _index(self) -> dict[Key, _Row]:
        with self._lock:
            if self._rows is None:
                self._rows = self._indexed()
            return self._rows

    def _indexed(self) -> dict[Key, _Row]:
        rows: dict[Key, _Row] = {}
        problems: list[Problem] = []
        for item, data in self._file.items():
            try:
                row = _Row(item, identity(parsed(data), self._places))
            except DamagedError as error:
                hint = error.hint if isinstance(error, MisplacedError) else None
                problems.append(self._file.problem(item, str(error), hint))
            else:
                key = (row.identity.run_id, row.identity.epoch)
                first = rows.setdefault(key, row)
                if first is not row:
                    problems.append(self._twice(first, row))
            if len(problems) == _MOST_PROBLEMS:
                break
        if problems:
            raise InputError(problems)
        if not rows:
            raise refused(self.path, "holds no conversation")
        return rows

    def _twice(self, first: _Row, row: _Row) -> Problem:
        where = self._file.place(first.item)
        if not row.identity.named and not first.identity.named:
            return self._file.problem(
                row.item,
                f"is the same conversation as {where}, and neither has an id",
                f"give each an `id`, or name what makes one with {KEY}: {{id: /pointer}}",
            )
        name, epoch = printable(row.identity.run_id), row.identity.epoch
        return self._file.problem(
            row.item,
            f"has the id {name!r} (epoch {epoch}), as {where} has",
            f"give each its own id or epoch; {KEY}: {{id: [/task, /trial]}} puts one together",
        )
