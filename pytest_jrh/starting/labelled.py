"""The labels that a new suite begins with (rule N1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.errors import InputError
from pytest_jrh.labels.rows import read_rows

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class GivenLabels:
    """A label file: where the suite keeps it, the rubrics that it names, and its lines."""

    file: Path
    place: str
    rubric_ids: tuple[str, ...]
    lines: int


def look_at_labels(file: Path, name: str) -> GivenLabels:
    """Read a label file for the suite `name`; raises `InputError` with every line that is none."""
    read = read_rows(file, file=str(file))
    if read.problems:
        raise InputError(read.problems)
    rubrics = dict.fromkeys(row.rubric_id for row in read.rows if row.rubric_id)
    place = f"inputs/data/{name}/labels{file.suffix.lower() or '.csv'}"
    return GivenLabels(file, place, tuple(rubrics), len(read.rows))
