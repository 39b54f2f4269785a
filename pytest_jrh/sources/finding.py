"""The files with transcripts below folders (rule R1)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.documents.problems import listed
from pytest_jrh.sources.log_parts import refused
from pytest_jrh.suite.places import MOST_FILES
from pytest_jrh.suite.rubrics import looks_like_rubrics, read_head
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_JSON = ".json"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Files with transcripts, in order, and sentences about what was left out."""

    files: tuple[Path, ...]
    notices: tuple[str, ...] = ()


def find_files(
    paths: Sequence[Path], suffixes: Sequence[str], is_whole: Callable[[Path], bool]
) -> Found:
    """List the files that the paths stand for, each once: a file for itself, a folder for all
    below it whose names end in one of the suffixes, or for itself where it `is_whole`.

    Of a folder's `.json` files those count that look like transcripts. Hidden files are left out,
    and links to folders are not followed. Raises InputError for a folder without transcripts, or
    with too many.
    """
    files: dict[Path, Path] = {}
    notices = []
    for path in paths:
        if not path.is_dir() or is_whole(path):
            files.setdefault(path.resolve(), path)
            continue
        inside = _inside(path, suffixes)
        others = [file for file in inside if not _has_transcripts(file)]
        files.update({file.resolve(): file for file in inside if file not in set(others)})
        if others:
            names = listed((str(file.relative_to(path)) for file in others), _MOST_NAMED)
            notices.append(
                f"{path.name}: left out {counted(len(others), 'file')} that "
                f"{'does' if len(others) == 1 else 'do'} not look like transcripts: {names}"
            )
        if len(inside) == len(others):
            raise refused(path, f"holds no transcripts; their names end in {', '.join(suffixes)}")
    return Found(tuple(files.values()), tuple(notices))


def _inside(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for file in _walk(folder):
        if file.suffix.lower() in suffixes and file.is_file():
            found.append(file)
            if len(found) > MOST_FILES:
                raise refused(folder, f"holds more than {MOST_FILES:,} files with transcripts")
    return sorted(found)


def _walk(folder: Path) -> Iterator[Path]:
    def cannot(error: OSError) -> None:
        raise refused(Path(error.filename), f"cannot be read: {error.strerror or error}")

    for where, folders, files in os.walk(folder, onerror=cannot):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(where, name) for name in files if not name.startswith("."))


def _has_transcripts(file: Path) -> bool:
    """Whether a file of a folder is meant: any by its name, but one that is called `.json` may be
    anything.
    """
    if file.suffix.lower() != _JSON:
        return True
    head = read_head(file)
    if head.lstrip("\ufeff \t\r\n").startswith("["):
        return not looks_like_rubrics(file) and '"role"' in head
    return '"eval"' in head and '"version"' in head
