"""Cassettes that no case uses any more: found by their names, and removed inside their folder alone
(rule G7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.kinds import TESTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_KINDS = ("generation", "judge-*")


def unused_cassettes(folder: Path, used: Collection[Path], *, frozen: bool = False) -> list[Path]:
    """The cassettes in a folder but the used ones, sorted.

    A folder of cassettes may hold other things too: only what is named like a cassette counts. A
    `frozen` suite does not know which runs gave no case, so recordings of generation count as used.
    """
    kinds = _KINDS[1:] if frozen else _KINDS
    named = (
        path for test in TESTS for kind in kinds for path in folder.glob(f"{test}/*/*.{kind}.yaml")
    )
    return sorted(path for path in named if path not in used)


def prune(folder: Path, cassettes: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Remove cassettes from their folder; returns those removed, and a sentence for each that was
    not.

    What a symbolic link leads to outside of the folder is not removed.
    """
    inside = folder.resolve()
    removed, problems = [], []
    for path in cassettes:
        place = path.parent.resolve()
        if not place.is_relative_to(inside):
            problems.append(
                f"{path} was not removed: a symbolic link leads out of the cassette folder, to "
                f"{place}."
            )
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path} could not be removed: {error.strerror or error}.")
        else:
            removed.append(path)
    return removed, problems
