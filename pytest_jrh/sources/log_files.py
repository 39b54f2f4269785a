"""Inspect log files on disk, read one piece at a time: an `.eval` archive or a `.json` file.

Collecting thousands of runs must neither import inspect_ai nor hold the log in memory, and reading
one sample must not cost more in a bigger log. So the pieces are found here, with the standard
library; what a sample means is inspect_ai's to say (`eval_logs`).
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
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pytest_jrh.documents.problems import shown
from pytest_jrh.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Span: TypeAlias = "tuple[int, int]"

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTANDARD = 93
_STDLIB_ZSTANDARD = (3, 14)
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
_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?+|[{}\[\]"]', re.DOTALL)


class DamagedError(ValueError):
    """A piece of a log file cannot be read; the caller says which sample or file that spoils."""


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

    def rows(self) -> list[SampleRow] | None:
        """One row per sample, in the log's own order; None where this layout is not known here."""

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """One sample as JSON; None where it is not there. Raises DamagedError."""

    def check_sizes(self) -> None:
        """Refuse a log that Inspect's own readers, which know no limit, would
        unpack too much of.
        """

    def close(self) -> None:
        """Let go of the file."""


def open_log(path: Path, most_bytes: int) -> LogFile:
    """Open a log by what is in the file, not by what it is called; no piece of it may be more than
    `most_bytes`.

    Raises InputError saying what the file is not: missing, a folder, empty, truncated, foreign.
    """
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except FileNotFoundError:
        raise refused(path, "there is no such log file") from None
    except IsADirectoryError:
        raise refused(
            path, "is a folder, not an Inspect log", "name one .eval or .json file in it"
        ) from None
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror or error}") from None
    if not start:
        raise refused(path, "is empty, so it is no Inspect log")
    if start.startswith(_ZIP_STARTS):
        return ZipLog(path, most_bytes)
    if start.lstrip().startswith(b"{"):
        return JsonLog(path, most_bytes)
    raise refused(
        path, "is no Inspect log: neither an .eval archive (a zip file) nor a JSON object"
    )


def refused(path: Path, message: str, hint: str | None = None) -> InputError:
    """Make the error for a log that cannot be used at all."""
    return InputError(Problem(message, file=str(path), hint=hint))


def too_big(most_bytes: int) -> str:
    """Say what is too much, and which key of the config allows more."""
    return (
        f"more than {most_bytes // 1_000_000:,} MB when unpacked (max_sample_mb in "
        "test_agent_perturbation_config)"
    )


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
        return _dataset_ids(self._header)

    def rows(self) -> list[SampleRow] | None:
        """Read the consolidated summaries.

        None for a log that was cut off before they were written.
        """
        if "summaries.json" not in self._zip.NameToInfo:
            return None
        try:
            data = self._json("summaries.json")
        except DamagedError as error:
            raise refused(self._path, f"its sample summaries are damaged: {error}") from None
        if not isinstance(data, list):
            raise refused(self._path, f"its sample summaries must be a list, and are {shown(data)}")
        # A sample that Inspect ran again has two rows; as in Inspect's own readers the later one
        # counts.
        latest = {(row.id, row.epoch): row for row in _rows(self._path, data)}
        return list(latest.values())

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """See `LogFile`."""
        name = f"samples/{sample_id}_epoch_{epoch}.json"
        return _object(self._json(name)) if name in self._zip.NameToInfo else None

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

    def _read_header(self) -> dict[str, Any]:
        for name in ("header.json", "_journal/start.json"):
            if name in self._zip.NameToInfo:
                try:
                    return _log_header(self._path, self._json(name))
                except DamagedError as error:
                    raise refused(self._path, f"its header is damaged: {error}") from None
        raise refused(self._path, "is a zip archive, but no Inspect log: it has no header.json")

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
            raise DamagedError("it is not as long as the archive's directory says")
        return data


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
            raise refused(path, "is JSON, but no Inspect log: it has no `version` and `eval`")
        try:
            spec = self._json(keys["eval"])
        except DamagedError as error:
            raise refused(path, f"its header is damaged: {error}") from None
        self._header = _log_header(path, {"eval": spec})
        self._rows = _rows(path, self._summaries())
        self._places = {
            (str(row.id), row.epoch): span
            for row, span in zip(self._rows, self._spans, strict=True)
        }

    def dataset_ids(self) -> list[int | str]:
        """See `LogFile`."""
        return _dataset_ids(self._header)

    def rows(self) -> list[SampleRow] | None:
        """See `LogFile`; each sample was read once to know its row."""
        return self._rows

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """See `LogFile`."""
        span = self._places.get((sample_id, epoch))
        return None if span is None else _object(self._json(span))

    def close(self) -> None:
        """See `LogFile`; nothing stays open here."""

    def check_sizes(self) -> None:
        """See `LogFile`; Inspect reads none of this."""

    def _summaries(self) -> Iterator[Any]:
        for number, span in enumerate(self._spans, start=1):
            try:
                sample = _object(self._json(span))
            except DamagedError as error:
                raise refused(
                    self._path, f"sample {number} of {len(self._spans)} is damaged: {error}"
                ) from None
            failure = sample.get("error")
            yield {
                "id": sample.get("id"),
                "epoch": sample.get("epoch"),
                "error": failure.get("message") if isinstance(failure, dict) else failure,
                "message_count": len(sample["messages"])
                if isinstance(sample.get("messages"), list)
                else None,
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
        return _scan_bytes(data)


def _scan_bytes(data: mmap.mmap) -> tuple[dict[str, Span], list[Span]]:
    keys: dict[str, Span] = {}
    samples: list[Span] = []
    key = ""
    opened: list[int] = []
    for token in _TOKEN.finditer(data):
        match token[0][:1]:
            case b'"':
                if token[1] is None:
                    raise DamagedError(f"a text that begins at byte {token.start()} does not end")
                if len(opened) == 1 and token[2]:
                    key = token[1][1:-1].decode("utf-8", "replace")
                    keys[key] = (token.end(), token.end())
            case b"{" | b"[":
                opened.append(token.start())
            case _ if opened:
                span = (opened.pop(), token.end())
                if len(opened) == 1:
                    keys[key] = span
                elif len(opened) == 2 and key == "samples":  # noqa: PLR2004 - the object, and its list
                    samples.append(span)
            case _:
                raise DamagedError(f"a brace too many at byte {token.start()}")
    if opened:
        raise DamagedError("it ends before its last brace")
    return keys, samples


def _log_header(path: Path, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict) or not isinstance(data.get("eval"), dict):
        raise refused(path, "is no Inspect log: its header has no `eval`")
    return data


def _dataset_ids(header: dict[str, Any]) -> list[int | str]:
    dataset = header["eval"].get("dataset")
    ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
    return [item for item in ids if isinstance(item, int | str)] if isinstance(ids, list) else []


def _rows(path: Path, entries: Iterator[Any] | list[Any]) -> list[SampleRow]:
    rows = []
    for number, entry in enumerate(entries, start=1):
        sample_id, epoch = (
            (entry.get("id"), entry.get("epoch")) if isinstance(entry, dict) else (None, None)
        )
        if (
            isinstance(sample_id, bool)
            or not isinstance(sample_id, int | str)
            or not isinstance(epoch, int)
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


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DamagedError(f"the sample must be a JSON object, and is {shown(data)}")
    return data


def _enable_zstandard() -> None:
    """Teach zipfile the compression that newer Inspect versions write, through Inspect's own
    dependency.
    """
    if sys.version_info < _STDLIB_ZSTANDARD:
        importlib.import_module("zipfile_zstd")


def damage() -> tuple[type[Exception], ...]:
    """List what reading a damaged member raises.

    A compression's own error is known once a log needed it.
    """
    zstandard = sys.modules.get(
        "zstandard" if sys.version_info < _STDLIB_ZSTANDARD else "compression.zstd"
    )
    # Not every Python has it.
    lzma = sys.modules.get("lzma")
    own = [module.ZstdError for module in [zstandard] if module] + [
        module.LZMAError for module in [lzma] if module
    ]
    return (*_UNREADABLE, *own)
