"""Writing files so that no reader ever sees half of one, and none lands outside its folder; and
reading those that hold something in each line; and what git says of a folder.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import hashlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from pytest_jrh.core import InputError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a hidden temporary file beside `path` that takes its place when the block ends well.

    Folders are made. A file that already holds the same bytes is not touched; a symbolic link is
    replaced, never written through. Raises `OSError` as it comes; the temporary file is then gone
    and the old content still there. A device or a pipe, which would be lost by that, is refused.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "Is a device or a pipe, not a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".jrh-{secrets.token_hex(8)}.tmp")
    # os.open instead of tempfile: the result is to be shared, so it gets the mode that the umask
    # gives.
    descriptor = os.open(
        temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
    )
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
        if not path.is_symlink() and path.is_file() and filecmp.cmp(temporary, path, shallow=False):
            temporary.unlink()
        else:
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def atomic_write(path: Path, data: bytes | str) -> None:
    """Write a whole file at once, as `replacing` does; text becomes UTF-8 whatever it holds."""
    content = encoded(data) if isinstance(data, str) else data
    # Nearly always so in a replay, and much quicker than a file that goes again.
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    with replacing(path) as file:
        file.write(content)


_BOM = b"\xef\xbb\xbf"


class LinePlace(NamedTuple):
    """Where a line of a file is: `number` counts from 1, `offset` and `length` are in bytes.

    What ends the line is no part of it.
    """

    path: Path
    number: int
    offset: int
    length: int


class FileLine(NamedTuple):
    """A line of a file; `is_ended` is False of a last line that a killed process may not have
    finished.
    """

    place: LinePlace
    data: bytes
    is_ended: bool

    @property
    def number(self) -> int:
        """Which line it is, from 1."""
        return self.place.number


def lines_of(path: Path, *, hint: str | None = None) -> Iterator[FileLine]:
    """Read the lines of a file that are not blank, one at a time; a missing file has none.

    `hint` is what messages advise. Raises `InputError` where it cannot be read.
    """
    try:
        with path.open("rb") as file:
            offset = 0
            for number, raw in enumerate(file, 1):
                skipped = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
                data = raw[skipped:].rstrip(b"\r\n")
                if data.strip():
                    yield FileLine(
                        LinePlace(path, number, offset + skipped, len(data)),
                        data,
                        raw.endswith(b"\n"),
                    )
                offset += len(raw)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(f"this file cannot be read: {error.strerror}", path, hint=hint) from error


class LineFile:
    """A file that lines are added to, by one thread at a time; it appears with the first one, and
    stays open until `close`.

    A last line without an end that is no JSON was left by a killed process, and goes. A failed
    write, as on a full disk, takes its half line back, and raises `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def add(self, line: bytes, *, synced: bool = False) -> None:
        """Add a line, given without its end; it has then reached the operating system, or if
        `synced` the disk.
        """
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)
            self._end_last_line(self._file)
        unwritten = line + b"\n"
        try:
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError:
            written = len(line) + 1 - len(unwritten)
            if written:
                self._file.truncate(self._file.tell() - written)
            raise
        if synced:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, which may then be replaced, or added to again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @staticmethod
    def _end_last_line(file: IO[bytes]) -> None:
        file.seek(0)
        content = file.read()
        complete = content.rfind(b"\n") + 1
        try:
            json.loads(content[complete:])
        except ValueError:
            file.truncate(complete)
        else:
            file.write(b"\n")


class LineFiles:
    """Files that lines are added to, as to a `LineFile`, until all are closed."""

    def __init__(self) -> None:
        self._files: dict[Path, LineFile] = {}

    def add(self, path: Path, line: bytes) -> None:
        """Add a line to one of them; raises `OSError`."""
        self._files.setdefault(path, LineFile(path)).add(line)

    def close(self) -> None:
        """Close the files, which may then be replaced."""
        for file in self._files.values():
            file.close()


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, and wait for the disk; raises `OSError` as it comes."""
    with contextlib.closing(LineFile(path)) as file:
        file.add(line, synced=True)


def encoded(text: str) -> bytes:
    """UTF-8.

    Surrogate pairs are joined and lone surrogates become U+FFFD, so that any text can be stored.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def text_digest(path: Path) -> str:
    """SHA-256 of a file of text without a byte order mark and with the line ends of Unix: the same
    in every checkout, also where git's `autocrlf` changes line ends. Raises `OSError`.
    """
    return hashlib.sha256(path.read_bytes().removeprefix(_BOM).replace(b"\r\n", b"\n")).hexdigest()


def exists(path: Path) -> bool:
    """Whether a path exists; one where nobody may look, or that no file can have, does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def remote_hint(name: str) -> str | None:
    """Say what to do about a URL such as s3://bucket/runs.eval; None for a path."""
    scheme, separator, _ = name.partition("://")
    if not separator or not scheme.isalnum():
        return None
    return "remote files are not supported; copy the file to this machine first, and name the copy"


def file_name_part(text: str) -> str:
    """Write a model's or judge's name as part of a file name: `openai/gpt-4.1-mini` ->
    `openai_gpt-4.1-mini`.
    """
    return re.sub("[^A-Za-z0-9._-]", "_", text).lstrip(".")[:80] or "_"


_PATIENCE = 3.0
# Nothing is fetched, asked or locked.
_QUIETLY = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def git_output(folder: Path, *arguments: str) -> str | None:
    """What git says of a folder; None where it does not know, is not there, or takes too long."""
    try:
        done = subprocess.run(  # noqa: S603 - without a shell
            ["git", *arguments],  # noqa: S607
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            env={**os.environ, **_QUIETLY},
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    return done.stdout.decode("utf-8", "replace")


LONGEST_HEAD = 2**16


def read_head(path: Path) -> str:
    """Read the first 64 kB of a file as text, or nothing where that cannot be had."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            head = file.read(LONGEST_HEAD)
    except (OSError, ValueError):
        return ""
    return "" if b"\x00" in head else head.decode("utf-8-sig", errors="replace")
