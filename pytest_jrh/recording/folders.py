"""The cassettes in a folder of recordings: which there are, those of a test and rubric gathered in
one file, and unused ones removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from pathlib import Path

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import grouped_by
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import GENERATION, JUDGING
from pytest_jrh.llm.limits import file_lock
from pytest_jrh.recording.cassettes import SHARED, Cassette, shared, update_shared
from pytest_jrh.recording.tapes import lock_file
from pytest_jrh.store.made_cases import cause


def cassettes_in(folder: Path) -> list[Path]:
    """The cassettes in a folder, sorted, those in a shared file by the paths that their own would
    have.

    Raises `InputError` where a shared file cannot be read.
    """
    cassettes: set[Path] = set()
    for path in folder.glob("*/*/*.yaml"):
        if path.name == SHARED:
            cassettes.update(path.with_name(f"{name}.yaml") for name in shared(path))
        else:
            cassettes.add(path)
    return sorted(cassettes)


def _kind(path: Path) -> str:
    """Whose calls a cassette holds; empty for a file that is not named like one."""
    kind = path.stem.rpartition(".")[2]
    return kind if kind == GENERATION or kind.startswith(JUDGING) else ""


def unused_cassettes(
    recorded: Iterable[Path], used: Collection[Path], *, frozen: bool
) -> list[Path]:
    """The recorded cassettes of a folder but the used ones.

    A folder of cassettes may hold other things too: only what is named like a cassette counts. A
    `frozen` suite does not know which runs gave no case, so recordings of generation count as used.
    """
    kept_kinds = ("", GENERATION) if frozen else ("",)
    unused = []
    for path in recorded:
        if path.parts[-3] in KINDS and _kind(path) not in kept_kinds and path not in used:
            unused.append(path)
    return unused


def prune(folder: Path, cassettes: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Remove cassettes of a folder; returns those removed, and a sentence for each that was not."""
    removed = []
    problems = []
    for rubric_folder, paths in grouped_by(cassettes, "parent").items():
        file = rubric_folder / SHARED
        if file.exists():
            try:
                with file_lock(lock_file(folder, file)):
                    update_shared(file, dict.fromkeys(path.stem for path in paths))
            except OSError as error:
                problems.append(f"{file} was not written: {cause(error)}.")
                continue
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                problems.append(f"{path} could not be removed: {cause(error)}.")
            else:
                removed.append(path)
    return removed, problems


def gather(folder: Path) -> list[str]:
    """Put the cassettes of cases into the shared ones of their tests and rubrics, and remove their
    own files, but those that somebody records into; returns sentences about what went wrong.

    A process that dies leaves both, and what is in its own file counts.
    """
    problems = []
    own = sorted(filter(_kind, folder.glob("*/*/*.yaml")))
    for rubric_folder, paths in grouped_by(own, "parent").items():
        file = rubric_folder / SHARED
        try:
            with file_lock(lock_file(folder, file)):
                contents = {path: path.read_bytes() for path in paths if path.exists()}
                cassettes = [Cassette.load(path, interactions=True) for path in contents]
                update_shared(file, {cassette.path.stem: cassette for cassette in cassettes})
            for path, content in contents.items():
                _remove(folder, path, content)
        except (OSError, InputError) as error:
            problems.append(f"{file} was not written: {cause(error)}.")
    return problems


def _remove(folder: Path, path: Path, content: bytes) -> None:
    """Remove the cassette of a case, unless it has another content by now."""
    lock = file_lock(lock_file(folder, path))
    with contextlib.suppress(TimeoutError, FileNotFoundError), lock.acquire(blocking=False):
        if path.read_bytes() == content:
            path.unlink()
