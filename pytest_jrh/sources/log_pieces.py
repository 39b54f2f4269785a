"""An `.eval` archive on disk, one member of it unpacked at a time.

What the two layouts of Inspect log files have in common: their pieces, and what is wrong with
one.

A `.json` log on disk, its samples found by scanning for their braces.
"""

from __future__ import annotations

import importlib
import json
import mmap
import re
import struct
import sys
import threading
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pytest_jrh.core.documents import DamagedError, printable, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path


STDLIB_ZSTANDARD = (3, 14)
"""The Python whose zipfile reads zstandard by itself."""
# What opening an archive and unpacking a member raise on damaged, encrypted and foreign ones.
_UNREADABLE: tuple[type[Exception], ...] = (
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
    MemoryError,
    LookupError,
)
_UNREADABLE += (EOFError, zipfile.BadZipFile, zlib.error, struct.error)
_ATTACHMENT = "attachment://"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """What a log's summary tells of one sample; `message_count` is None where it does not say."""

    id: int | str
    epoch: int
    error: str | None = None
    message_count: int | None = None


class LogFile(Protocol):
    """The pieces of one log."""

    def dataset_ids(self) -> list[int | str]:
        """List the sample ids that the log's header names."""

    def created(self) -> datetime | None:
        """When the log was begun, as its header says; None where it does not."""

    def rows(self) -> list[SampleRow] | None:
        """One row per sample, in the log's own order; None where this layout is not known here."""

    def values(self, name: str) -> Iterator[tuple[int | str, int, Any]]:
        """Id, epoch and one value of each sample, such as its metadata, shortened where the
        summaries are so; nothing where this layout is not known here.
        """

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """One sample as JSON; None where it is not there. Raises DamagedError."""

    def check_sizes(self) -> None:
        """Refuse a log that Inspect's own readers, which know no limit, would
        unpack too much of.
        """

    def close(self) -> None:
        """Let go of the file."""


def refused(path: Path, message: str, hint: str | None = None) -> InputError:
    """Make the error for a log that cannot be used at all."""
    return InputError(Problem(message, file=str(path), hint=hint))


def too_big(most_bytes: int) -> str:
    """Say what is too much, and which key of the config allows more."""
    return (
        f"more than {most_bytes // 1_000_000:,} MB when unpacked (max_sample_mb in "
        "test_agent_perturbation_config)"
    )


def created_at(header: Mapping[str, Any]) -> datetime | None:
    """The time in a log's header."""
    return written_time(header["eval"].get("created"))


def written_time(written: Any) -> datetime | None:
    """A time of ISO 8601, taken for UTC where it names no time zone; None for anything else."""
    try:
        time = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


OTHER_TOOLS = "write conversations, one a line: {id, messages}"
_FOREIGN: Mapping[str, tuple[frozenset[str], ...]] = {
    "an ATIF trajectory, which belongs in a .json file of its own": (
        frozenset({"schema_version", "steps"}),
    ),
    "a trace of OpenTelemetry (OTLP)": (
        frozenset({"resourceSpans"}),
        frozenset({"resource_spans"}),
    ),
}


def foreign_format(keys: Collection[str]) -> str | None:
    """What a JSON object with these keys is, where it is known to be of another tool."""
    for name, known_keys in _FOREIGN.items():
        if any(needed <= {*keys} for needed in known_keys):
            return name
    return None


def log_header(path: Path, data: Any) -> dict[str, Any]:
    """The header, where it is one; raises InputError."""
    if not isinstance(data, dict) or not isinstance(data.get("eval"), dict):
        raise refused(path, "is not an Inspect log: its header has no `eval`")
    return data


def dataset_ids(header: dict[str, Any]) -> list[int | str]:
    """The sample ids that a header names."""
    dataset = header["eval"].get("dataset")
    ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
    return [item for item in ids if isinstance(item, int | str)] if isinstance(ids, list) else []


def rows_of(path: Path, entries: Iterator[Any] | list[Any]) -> list[SampleRow]:
    """The rows of a log's summaries; raises InputError for one without id or epoch."""
    rows = []
    for number, entry in enumerate(entries, start=1):
        sample_id, epoch = (
            (entry.get("id"), entry.get("epoch")) if isinstance(entry, dict) else (None, None)
        )
        if (
            isinstance(sample_id, bool)
            or not isinstance(sample_id, int | str)
            or type(epoch) is not int
        ):
            raise refused(
                path, f"sample {number} has the id {shown(sample_id)} and the epoch {shown(epoch)}"
            )
        error, count = entry.get("error"), entry.get("message_count")
        rows.append(
            SampleRow(
                sample_id,
                epoch,
                None if error is None else str(error),
                count if isinstance(count, int) else None,
            )
        )
    return rows


def rows_by_key(path: Path, rows: Sequence[SampleRow]) -> dict[tuple[str, int], SampleRow]:
    """The rows by storable id and epoch; raises InputError for none, or two of one name."""
    if not rows:
        raise refused(
            path,
            "is an Inspect log without samples",
            "it may have been cut off before the first one ended",
        )
    by_key: dict[tuple[str, int], SampleRow] = {}
    for row in rows:
        first = by_key.setdefault((storable(str(row.id))[0], row.epoch), row)
        if first is not row:
            raise refused(
                path,
                f"two samples have the same name: the ids {first.id!r} and {row.id!r} at epoch "
                f"{row.epoch}",
            )
    return by_key


def refuse_ids_alike(path: Path, ids: Sequence[int | str]) -> None:
    """Refuse a dataset with the ids 1 and "1": an archive holds but one of them, under one name."""
    by_text: dict[str, int | str] = {}
    for item in ids:
        first = by_text.setdefault(str(item), item)
        if type(first) is not type(item):
            raise refused(
                path,
                f"the dataset has the sample ids {first!r} and {item!r}, which Inspect stores "
                "under one name",
                "give the samples ids that differ as text, and run the task again",
            )


def json_object(data: Any) -> dict[str, Any]:
    """A sample's JSON, where it is an object; raises DamagedError."""
    if not isinstance(data, dict):
        raise DamagedError(f"the sample must be a JSON object, and is {shown(data)}")
    return data


def damage() -> tuple[type[Exception], ...]:
    """List what reading a damaged member raises.

    A compression's own error is known once a log needed it.
    """
    zstandard = sys.modules.get(
        "zstandard" if sys.version_info < STDLIB_ZSTANDARD else "compression.zstd"
    )
    # Not every Python has it.
    lzma = sys.modules.get("lzma")
    of_compressions = [module.ZstdError for module in [zstandard] if module] + [
        module.LZMAError for module in [lzma] if module
    ]
    return (*_UNREADABLE, *of_compressions)


def attached_size(sample: dict[str, Any]) -> int:
    """Count the characters that a sample's texts have once each reference to an attachment is
    replaced by it.
    """
    attachments = sample.get("attachments")
    if not isinstance(attachments, dict) or not attachments:
        return 0
    sizes = {key: len(text) for key, text in attachments.items() if isinstance(text, str)}
    size, waiting = 0, [value for key, value in sample.items() if key != "attachments"]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and value.startswith(_ATTACHMENT):
            size += sizes.get(value.removeprefix(_ATTACHMENT), 0)
    return size


_ZSTANDARD = 93


class ZipLog:
    """An `.eval` archive: one member per sample beside its header and summaries.

    The archive's directory is read once, and stays open; reading is safe from several threads.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        try:
            self._zip = zipfile.ZipFile(path)
        except damage() as error:
            raise refused(
                path,
                f"is a truncated or damaged .eval archive ({error})",
                "copy the log again, whole; one that Inspect is still writing is complete when "
                "the run has ended",
            ) from None
        if any(info.compress_type == _ZSTANDARD for info in self._zip.filelist):
            try:
                _enable_zstandard()
            except ImportError as error:
                hint = "install zipfile-zstd, which newer versions of Inspect need too"
                raise refused(
                    path, f"is compressed with zstandard, which cannot be read here ({error})", hint
                ) from None
        self._header = self._read_header()

    def dataset_ids(self) -> list[int | str]:
        """See `LogFile`."""
        return dataset_ids(self._header)

    def created(self) -> datetime | None:
        """See `LogFile`."""
        return created_at(self._header)

    def rows(self) -> list[SampleRow] | None:
        """Read the consolidated summaries.

        None for a log that was cut off before they were written.
        """
        data = self._summaries()
        if data is None:
            return None
        # A sample that Inspect ran again has two rows; as in Inspect's own readers the later one
        # counts.
        latest = {(row.id, row.epoch): row for row in rows_of(self._path, data)}
        return list(latest.values())

    def values(self, name: str) -> Iterator[tuple[int | str, int, Any]]:
        """See `LogFile`: what the summaries have, where Inspect leaves out what is long."""
        for entry in self._summaries() or ():
            yield entry["id"], entry["epoch"], entry.get(name)

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """See `LogFile`."""
        name = f"samples/{sample_id}_epoch_{epoch}.json"
        return json_object(self._json(name)) if name in self._zip.NameToInfo else None

    def close(self) -> None:
        """See `LogFile`."""
        self._zip.close()

    def check_sizes(self) -> None:
        """See `LogFile`: Inspect reads the summaries in the journal, all of them, and then single
        samples.
        """
        journal = sum(
            info.file_size for info in self._zip.filelist if info.filename.startswith("_journal/")
        )
        biggest = max((info.file_size for info in self._zip.filelist), default=0)
        if max(journal, biggest) > self._most_bytes:
            raise refused(self._path, f"has a part that is {too_big(self._most_bytes)}")

    def _summaries(self) -> list[Any] | None:
        if "summaries.json" not in self._zip.NameToInfo:
            return None
        try:
            data = self._json("summaries.json")
        except DamagedError as error:
            raise refused(self._path, f"its sample summaries are damaged: {error}") from None
        if not isinstance(data, list):
            raise refused(self._path, f"its sample summaries must be a list, and are {shown(data)}")
        return data

    def _read_header(self) -> dict[str, Any]:
        for name in ("header.json", "_journal/start.json"):
            if name in self._zip.NameToInfo:
                try:
                    return log_header(self._path, self._json(name))
                except DamagedError as error:
                    raise refused(self._path, f"its header is damaged: {error}") from None
        raise refused(self._path, "is a zip archive, but not an Inspect log: it has no header.json")

    def _json(self, name: str) -> Any:
        try:
            with self._lock:
                data = self._unpacked(self._zip.NameToInfo[name])
            return json.loads(data)
        except damage() as error:
            raise DamagedError(f"{name}: {error or type(error).__name__}") from error

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        if info.file_size > self._most_bytes:
            raise DamagedError(f"it is {too_big(self._most_bytes)}")
        with self._zip.open(info) as member:
            # Asked for a number of bytes, zipfile unpacks no more than these, whatever the
            # archive's directory says.
            data = member.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise DamagedError("its length differs from the archive's directory")
        return data


def _enable_zstandard() -> None:
    """Teach zipfile the compression that newer Inspect versions write, through Inspect's own
    dependency.
    """
    if sys.version_info < STDLIB_ZSTANDARD:
        importlib.import_module("zipfile_zstd")


Span: TypeAlias = "tuple[int, int]"

_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?+|[{}\[\]"]', re.DOTALL)
_BLANK = re.compile(rb"\s*+")
_COMMA = re.compile(rb"\s*+,\s*+")


class JsonLog:
    """A `.json` log: one JSON object, its samples found by scanning for their braces.

    Only where each sample begins and ends is kept; a sample is parsed when it is asked for.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        try:
            keys, self._spans = _scan(path)
        except (DamagedError, OSError) as error:
            raise refused(
                path, f"is truncated or damaged JSON: {error}", "copy the log again, whole"
            ) from None
        if not {"version", "eval"} <= keys.keys():
            foreign = foreign_format(keys)
            if foreign is not None:
                raise refused(path, f"is {foreign}, which is not read", OTHER_TOOLS)
            raise refused(
                path,
                "is JSON, but not an Inspect log: it has no `version` and `eval`",
                "conversations are one with `messages`, or a list of them, in a .json file, or "
                "one a line in a .jsonl file",
            )
        try:
            spec = self._json(keys["eval"])
        except DamagedError as error:
            raise refused(path, f"its header is damaged: {error}") from None
        self._header = log_header(path, {"eval": spec})
        self._rows = rows_of(path, self._summaries())
        self._places = {
            (str(row.id), row.epoch): span
            for row, span in zip(self._rows, self._spans, strict=True)
        }

    def dataset_ids(self) -> list[int | str]:
        """See `LogFile`."""
        return dataset_ids(self._header)

    def created(self) -> datetime | None:
        """See `LogFile`."""
        return created_at(self._header)

    def rows(self) -> list[SampleRow] | None:
        """See `LogFile`; each sample was read once to know its row."""
        return self._rows

    def values(self, name: str) -> Iterator[tuple[int | str, int, Any]]:
        """See `LogFile`; each sample is parsed once more."""
        for row in self._rows:
            yield row.id, row.epoch, (self.sample(str(row.id), row.epoch) or {}).get(name)

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """See `LogFile`."""
        span = self._places.get((sample_id, epoch))
        return None if span is None else json_object(self._json(span))

    def close(self) -> None:
        """See `LogFile`; nothing stays open here."""

    def check_sizes(self) -> None:
        """See `LogFile`; Inspect reads none of this."""

    def _summaries(self) -> Iterator[Any]:
        for number, span in enumerate(self._spans, start=1):
            try:
                sample = json_object(self._json(span))
            except DamagedError as error:
                raise refused(
                    self._path, f"sample {number} of {len(self._spans)} is damaged: {error}"
                ) from None
            failure, messages = sample.get("error"), sample.get("messages")
            yield {
                "id": sample.get("id"),
                "epoch": sample.get("epoch"),
                "error": failure.get("message") if isinstance(failure, dict) else failure,
                "message_count": len(messages) if isinstance(messages, list) else None,
            }

    def _json(self, span: Span) -> Any:
        start, end = span
        if end - start > self._most_bytes:
            raise DamagedError(f"it is {too_big(self._most_bytes)}")
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                return json.loads(file.read(end - start))
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(str(error) or type(error).__name__) from error


def _scan(path: Path) -> tuple[dict[str, Span], list[Span]]:
    """Find the objects and lists right below the top, by key, and each of the `samples`."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        keys, samples = _scan_bytes(data)
        _check_list(data, keys.get("samples", (0, 0)), samples)
        return keys, samples


def _scan_bytes(data: mmap.mmap) -> tuple[dict[str, Span], list[Span]]:
    keys: dict[str, Span] = {}
    samples: list[Span] = []
    key = ""
    opened: list[int] = []
    for token in _TOKEN.finditer(data):
        match token[0][:1]:
            case b'"':
                if token[1] is None:
                    raise DamagedError(f"unterminated string at byte {token.start()}")
                if len(opened) == 1 and token[2]:
                    key = _new_key(token[1], keys)
                    keys[key] = (token.end(), token.end())
            case b"{" | b"[":
                opened.append(token.start())
            case _:
                span = (opened.pop(), token.end())
                if len(opened) == 1:
                    keys[key] = span
                elif len(opened) == 2 and key == "samples":  # noqa: PLR2004 - the object, and its list
                    samples.append(span)
                elif not opened:
                    _check_end(data, token.end())
                    return keys, samples
    raise DamagedError("unexpected end of input: unclosed brace")


def _new_key(text: bytes, keys: dict[str, Span]) -> str:
    key = text[1:-1].decode("utf-8", "replace")
    if key in keys:
        raise DamagedError(f"duplicate key {printable(key)!r}")
    return key


def _check_end(data: mmap.mmap, end: int) -> None:
    if not _BLANK.fullmatch(data, end):
        raise DamagedError(f"unexpected data after byte {end}")


def _check_list(data: mmap.mmap, span: Span, samples: list[Span]) -> None:
    """Refuse `samples` that is no list of objects: another value in it would go unnoticed."""
    start, end = span
    if start == end:
        return
    edges = [start + 1, *(edge for sample in samples for edge in sample), end - 1]
    between = list(zip(edges[::2], edges[1::2], strict=True))
    if (data[start : start + 1], data[end - 1 : end]) != (b"[", b"]"):
        raise DamagedError("`samples` must be a list")
    for number, (before, right) in enumerate(between):
        inside = 0 < number < len(between) - 1
        if inside:
            fits = _COMMA.fullmatch(data, before, right)
        else:
            fits = _BLANK.fullmatch(data, before, right)
        if not fits:
            raise DamagedError(f"`samples` must be a list of objects, see byte {before}")
