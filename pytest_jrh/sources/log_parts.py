"""What the two layouts of Inspect log files have in common: their pieces, and what is wrong with
one.
"""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from pytest_jrh.documents.problems import shown
from pytest_jrh.documents.strict_json import DamagedError
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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
    """The time in a log's header; one without a time zone is taken for UTC."""
    written = header["eval"].get("created")
    try:
        time = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


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
        known = by_key.setdefault((storable(str(row.id))[0], row.epoch), row)
        if known is not row:
            raise refused(
                path,
                f"two samples have the same name: the ids {known.id!r} and {row.id!r} at epoch "
                f"{row.epoch}",
            )
    return by_key


def refuse_ids_alike(path: Path, ids: Sequence[int | str]) -> None:
    """Refuse a dataset with the ids 1 and "1": an archive holds but one of them, under one name."""
    seen: dict[str, int | str] = {}
    for item in ids:
        known = seen.setdefault(str(item), item)
        if type(known) is not type(item):
            raise refused(
                path,
                f"the dataset has the sample ids {known!r} and {item!r}, which Inspect stores "
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
    own = [module.ZstdError for module in [zstandard] if module] + [
        module.LZMAError for module in [lzma] if module
    ]
    return (*_UNREADABLE, *own)


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
