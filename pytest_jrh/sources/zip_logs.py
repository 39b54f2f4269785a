"""An `.eval` archive on disk, one member of it unpacked at a time."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import zipfile
from typing import TYPE_CHECKING, Any

from pytest_jrh.documents.problems import shown
from pytest_jrh.documents.strict_json import DamagedError
from pytest_jrh.sources.log_parts import (
    STDLIB_ZSTANDARD,
    SampleRow,
    created_at,
    damage,
    dataset_ids,
    json_object,
    log_header,
    refused,
    rows_of,
    too_big,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

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
