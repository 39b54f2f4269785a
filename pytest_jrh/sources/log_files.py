"""Inspect log files on disk, read one piece at a time: an `.eval` archive or a `.json` file.

Collecting thousands of runs must neither import inspect_ai nor hold the log in memory, and reading
one sample must not cost more in a bigger log. So the pieces are found here, with the standard
library; what a sample means is inspect_ai's to say (`eval_logs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.sources.json_logs import JsonLog
from pytest_jrh.sources.log_parts import refused
from pytest_jrh.sources.zip_logs import ZipLog

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.sources.log_parts import LogFile

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_START = 64


def looks_like_log(path: Path) -> bool:
    """Whether a file begins like an archive or a JSON object; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return False
    return _is_archive(start) or _is_object(start)


def open_log(path: Path, most_bytes: int) -> LogFile:
    """Open a log by what is in the file, not by what it is called; no piece of it may be more than
    `most_bytes`.

    Raises InputError saying what the file is not: missing, a folder, empty, truncated, foreign.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except FileNotFoundError:
        raise refused(path, "no such log file") from None
    except IsADirectoryError:
        raise refused(
            path, "is a folder, not an Inspect log", "name one .eval or .json file in it"
        ) from None
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror or error}") from None
    if not start:
        raise refused(path, "is empty, so it is not an Inspect log")
    if _is_archive(start):
        return ZipLog(path, most_bytes)
    if _is_object(start):
        return JsonLog(path, most_bytes)
    raise refused(
        path, "is not an Inspect log: neither an .eval archive (a zip file) nor a JSON object"
    )


def _is_archive(start: bytes) -> bool:
    return start.startswith(_ZIP_STARTS)


def _is_object(start: bytes) -> bool:
    return start.lstrip().startswith(b"{")
