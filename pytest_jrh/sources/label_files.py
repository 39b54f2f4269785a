"""Label files: labels of runs, as CSV or JSON lines.

Nothing is left out in silence: what cannot be read is a problem with its line, and columns that
mean nothing here are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.sources.tables import first_problems, read_table, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "run_id": ("run_id", "id"),
    "label": ("label", "target"),
    "rubric_id": ("rubric_id",),
    "epoch": ("epoch",),
    "annotator": ("annotator",),
    "split": ("split",),
    "note": ("note",),
}
"""The columns of a label file, each with the names that it may have; the first two are needed."""
_NEEDED = ("run_id", "label")


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One line: who says what of which run, and where it stands."""

    run_id: str
    label: Any
    rubric_id: str = ""
    epoch: int | None = None
    annotator: str = ""
    split: str = ""
    note: str = ""
    line: int = 1


class LabelFile(NamedTuple):
    """The rows of a file, and the columns that mean nothing here."""

    rows: list[LabelRow]
    unused: list[str]


def read_rows(path: Path, file: str) -> LabelFile:
    """Read a label file; raises `InputError` with the lines that cannot be read."""
    table = read_table(path, file)
    columns: dict[str, str] = {}
    for role, names in COLUMNS.items():
        there = [column for name in names for column in table.named((name,))]
        columns[role] = there[0] if there else ""
    unused = [name for name in table.columns if name not in columns.values()]
    problems = []
    for role in _NEEDED:
        if not columns[role]:
            either = " or ".join(COLUMNS[role])
            message = f"has no column {either}; its columns are {listed(table.columns)}"
            problems.append(table.problem(message, 1))
    if problems:
        raise InputError(problems)
    rows = []
    labels = table.columns[columns["label"]]
    texts = {role: table.texts(name) for role, name in columns.items() if role != "label"}
    for row, line in enumerate(table.lines):
        of_row: dict[str, Any] = {role: of_column[row] for role, of_column in texts.items()}
        epoch = of_row.pop("epoch")
        number = whole_number(epoch)
        if epoch and number is None:
            message = f"got {shown(epoch)}; must be an integer"
            problems.append(table.problem(message, line, "epoch"))
        rows.append(LabelRow(label=labels[row], epoch=number, line=line, **of_row))
    if problems:
        raise InputError(first_problems(problems, file))
    return LabelFile(rows, unused)
