"""Runs from Inspect logs, an `.eval` archive or a `.json` file: summaries to collect from, samples
read one at a time.

Importing inspect_ai takes longer than replaying some hundred cases. So a sample as Inspect writes
it today is read as it stands there (`plain_samples`), and any other by inspect_ai, imported late.
"""

from __future__ import annotations

import importlib
import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_jrh.core.documents import DamagedError, printable, shown
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.plain_samples import attached_size, is_plain
from pytest_jrh.sources.source import (
    OTHER_TOOLS,
    Source,
    changed_note,
    foreign_format,
    refused,
    too_big,
    written_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from inspect_ai.log import EvalSample

    from pytest_jrh.sources.source import Key

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTANDARD = 93
_READS_ZSTANDARD = (3, 14)
_STEP = 4096
_LONGEST_CAUSE = 300
# Everything else of a sample (events, store, scores, usage) is most of its bulk and none of a run;
# the oldest logs keep their attachments in `transcript`.
_RUN_FIELDS = {"id", "epoch", "input", "target", "messages", "metadata", "attachments"}
_RUN_FIELDS |= {"transcript"}


class EvalLog(Source):
    """One Inspect log.

    `max_sample_mb` is how much a sample, the header or the summaries of an archive may be when
    unpacked, and how much a `.json` log may be, in MB.
    """

    suffixes = (".eval", ".json")
    form = "Inspect log"

    def _prepare(self) -> None:
        # A `.json` log has no archive: its rows are the samples themselves.
        self._zip: zipfile.ZipFile | None = None
        self._header: dict[str, Any] = {}
        self._rows: dict[Key, dict[str, Any]] = {}

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file begins like an archive or like a JSON object, whatever it is called."""
        try:
            return _start(path).startswith((*_ZIP_STARTS, b"{"))
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._zip is not None:
                self._zip.close()
            self._prepare()

    def summaries(self) -> tuple[RunSummary, ...]:
        """See `Source`: one summary per sample and epoch."""
        return tuple(RunSummary(*key, _skip(row)) for key, row in self._opened().items())

    def metadata(self, field: str) -> Iterator[tuple[Key, dict[str, Any]]]:
        return self._parts("metadata", field)

    def scores(self, *, whole: bool = False) -> Iterator[tuple[Key, dict[str, Any]]]:
        """See `Source`: summaries have the values alone."""
        for key, scores in self._parts("scores", whole=whole):
            given = {k: v for k, v in scores.items() if isinstance(v, dict) and "value" in v}
            yield key, given if whole else {name: given[name]["value"] for name in given}

    def _parts(
        self, name: str, field: str = "", *, whole: bool = False
    ) -> Iterator[tuple[Key, dict[str, Any]]]:
        """A mapping of each run: its summary's, or its sample's where it is not `whole` there.

        It is empty where the sample is damaged, as its cases will say.
        """
        for key, row in self._opened().items():
            part = row.get(name)
            if whole or not isinstance(part, dict) or _is_shortened(part.get(field)):
                try:
                    part = self._stored(key).get(name)
                except DamagedError:
                    part = None
            yield key, part if isinstance(part, dict) else {}

    def aliases(self) -> dict[str, Key]:
        """See `Source`: the uuids of samples, which Scout knows them by; older logs have none."""
        rows = self._opened().items()
        return {row["uuid"]: key for key, row in rows if isinstance(row.get("uuid"), str)}

    def created(self) -> datetime | None:
        self._opened()
        return written_time(self._header["eval"].get("created"))

    def read(
        self, run_id: str, epoch: int, *, with_raw: bool = False
    ) -> tuple[AgentRun, EvalSample | None]:
        """See `Source`: one sample, and if `with_raw` Inspect's own object."""
        raw = None
        try:
            stored = self._stored((run_id, epoch))
            kept = {key: value for key, value in stored.items() if with_raw or key in _RUN_FIELDS}
            data, changed = storable(kept)
            if with_raw or not is_plain(data):
                raw = self._as_inspect_reads(data)
                fields = {"id", "input", "target", "messages"}
                data = raw.model_dump(mode="json", exclude_none=True, include=fields)
                data["metadata"] = raw.metadata
        except Exception as error:
            # Nowhere is it said what inspect_ai raises on damaged and foreign samples.
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path} cannot be "
                f"read: {_cause(error)}.",
                advice="Copy the log again, or leave this sample out.",
            ) from error
        task, target = data["input"], data["target"]
        if isinstance(task, list):
            task = "\n".join(message_text(said) for said in task if said["role"] == "user")
        run = AgentRun(
            run_id=run_id,
            epoch=epoch,
            messages=tuple(data["messages"]),
            input=task,
            target=target if isinstance(target, str) else "\n".join(target),
            metadata=data.get("metadata", {}),
            sample_id=data["id"],
            notes=changed_note(changed),
        )
        return run, raw if with_raw else None

    def _as_inspect_reads(self, data: dict[str, Any]) -> EvalSample:
        """Make Inspect's object of a stored sample of any version."""
        from inspect_ai.log import EvalSample, resolve_sample_attachments

        # The context that Inspect's own readers give: a message without an id is not given a random
        # one.
        sample = EvalSample.model_validate(data, context={"deserializing": True})
        if attached_size(data, sample.attachments) > self._most_bytes:
            raise DamagedError(f"its attachments would be {too_big(self._most_bytes)}")
        return resolve_sample_attachments(sample, True)  # noqa: FBT003

    def _stored(self, key: Key) -> dict[str, Any]:
        """The JSON of a sample; raises DamagedError."""
        row = self._opened().get(key)
        if row is None:
            raise DamagedError("the log has no such sample")
        if self._zip is None:
            return row
        sample = self._json(self._zip, f"samples/{row['id']}_epoch_{row['epoch']}.json")
        if not isinstance(sample, dict):
            raise DamagedError(f"the sample must be a JSON object, and is {shown(sample)}")
        return sample

    def _opened(self) -> dict[Key, dict[str, Any]]:
        """The summaries of the samples, by storable id and epoch.

        What a file is, is said by what is in it, not by what it is called.
        """
        with self._lock:
            if self._rows:
                return self._rows
            try:
                start = _start(self.path)
                if start.startswith(_ZIP_STARTS):
                    found = self._open_archive()
                elif start.startswith(b"{"):
                    found = self._open_json()
                else:
                    raise DamagedError("neither an .eval archive (a zip file) nor a JSON object")
                self._rows = self._by_key(found)
            except OSError as error:
                raise refused(self.path, f"cannot be read: {error.strerror or error}") from None
            except DamagedError as error:
                message = f"is not an Inspect log, or a damaged one: {error}"
                raise refused(self.path, message, error.hint) from None
            return self._rows

    def _open_archive(self) -> Any:
        try:
            archive = self._zip = zipfile.ZipFile(self.path)
            zstandard = any(info.compress_type == _ZSTANDARD for info in archive.filelist)
            if zstandard and sys.version_info < _READS_ZSTANDARD:
                importlib.import_module("zipfile_zstd")
        except Exception as error:
            # Whatever a damaged directory leads zipfile to.
            raise DamagedError(
                f"a truncated or damaged .eval archive ({error})",
                "copy the log again, whole, when its run has ended",
            ) from error
        names = archive.NameToInfo
        self._header = self._json(
            archive, "header.json" if "header.json" in names else "_journal/start.json"
        )
        if "summaries.json" in names:
            return self._json(archive, "summaries.json")
        # The run was cut off: what had been written then is in the log's journal.
        journal = [name for name in names if name.startswith("_journal/summaries/")]
        if sum(names[name].file_size for name in journal) > self._most_bytes:
            raise DamagedError(f"its sample summaries are {too_big(self._most_bytes)}")
        rows: list[Any] = []
        for name in sorted(journal, key=lambda name: (len(name), name)):
            part = self._json(archive, name)
            rows += part if isinstance(part, list) else [part]
        return rows

    def _open_json(self) -> Any:
        if self.path.stat().st_size > self._most_bytes:
            hint = "make an .eval archive of it: inspect log convert"
            raise DamagedError(f"it is {too_big(self._most_bytes)}", hint)
        try:
            self._header = json.loads(self.path.read_bytes())
        except (ValueError, RecursionError, MemoryError) as error:
            hint = "copy the log again, whole"
            raise DamagedError(f"truncated or damaged JSON: {error}", hint) from None
        if foreign := foreign_format(self._header):
            raise DamagedError(f"it is {foreign}, which is not read", OTHER_TOOLS)
        return self._header.get("samples") or []

    def _json(self, archive: zipfile.ZipFile, name: str) -> Any:
        """A member of the archive; raises DamagedError."""
        info = archive.NameToInfo.get(name)
        if info is None:
            raise DamagedError(f"{name} is not there")
        if info.file_size > self._most_bytes:
            raise DamagedError(f"{name} is {too_big(self._most_bytes)}")
        try:
            with archive.open(info) as member:
                # What is read of some compressions is unpacked at once, whatever size the directory
                # names.
                return json.loads(b"".join(iter(lambda: member.read(_STEP), b"")))
        except Exception as error:
            # Each compression has errors of its own.
            raise DamagedError(f"{name}: {error or type(error).__name__}") from error

    def _by_key(self, found: Any) -> dict[Key, dict[str, Any]]:
        if not isinstance(self._header, dict) or not isinstance(self._header.get("eval"), dict):
            raise DamagedError(
                "it has no header with `eval`",
                "conversations are one with `messages`, or a list of them, in a .json file, or "
                "one a line in a .jsonl file",
            )
        dataset = self._header["eval"].get("dataset")
        ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
        ids = ids if isinstance(ids, list) else []
        # An archive holds but one of the samples 1 and "1", under one name.
        numbers = {str(item) for item in ids if isinstance(item, int)}
        for text in sorted(numbers & {item for item in ids if isinstance(item, str)}):
            raise DamagedError(
                f"the dataset has the sample ids {text} and {text!r}, which are stored alike",
                "give the samples ids that differ as text, and run the task again",
            )
        if not isinstance(found, list) or not found:
            hint = "it may have been cut off before the first one ended"
            raise DamagedError("it has no list of samples", hint)
        rows: dict[Key, dict[str, Any]] = {}
        for number, row in enumerate(found, start=1):
            name, epoch = (row.get("id"), row.get("epoch")) if isinstance(row, dict) else (None, 0)
            if type(name) not in (int, str) or type(epoch) is not int:
                raise DamagedError(
                    f"sample {number} has the id {shown(name)} and the epoch {shown(epoch)}"
                )
            key = storable(str(name))[0], epoch
            first = rows[key]["id"] if key in rows else name
            # A sample that Inspect ran again has two rows in an archive, and the later one counts.
            if first != name or (key in rows and self._zip is None):
                raise DamagedError(
                    f"two samples have the ids {first!r} and {name!r}, epoch {epoch}"
                )
            rows[key] = row
        return rows


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64).lstrip()


def _skip(row: Mapping[str, Any]) -> Skip | None:
    messages, error = row.get("messages"), row.get("error")
    count = len(messages) if isinstance(messages, list) else row.get("message_count")
    if count != 0:
        return None
    if error is None:
        return Skip("no_messages")
    cause = printable(
        str(error.get("message") if isinstance(error, dict) else error), _LONGEST_CAUSE
    )
    return Skip("no_messages", f"the sample ended in an error before its first message: {cause}")


def _is_shortened(value: object) -> bool:
    """Whether a value of a summary may not be the sample's own (Inspect's `thin_metadata`)."""
    return isinstance(value, str) and (
        value.endswith("...") or value.startswith("Key removed from summary")
    )


def _cause(error: Exception) -> str:
    """Say it in one line; of pydantic's report the first mistake and its place."""
    text = str(error) or type(error).__name__
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
        text = f"{where}: {first['msg']}"
    return printable(text, _LONGEST_CAUSE)
