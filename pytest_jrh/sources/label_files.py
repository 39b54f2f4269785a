"""Label files: labels of runs, as CSV or JSON lines.

Nothing is left out in silence: what cannot be read is a problem with its line, and columns that
mean nothing here are named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.text import nearest
from pytest_jrh.sources.tables import read_table, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_jrh.core.errors import Problem


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


@dataclass(slots=True)
class LabelFile:
    """The rows of a file, what is wrong with others, and the columns that mean nothing here."""

    rows: list[LabelRow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def read_rows(path: Path, file: str) -> LabelFile:
    """Read a label file. What is wrong with a line is in `problems`; raises `InputError` for a file
    that cannot be read at all.
    """
    table = read_table(path, file)
    read = LabelFile(problems=table.problems)
    columns: dict[str, str] = {}
    for role, names in COLUMNS.items():
        there = [column for name in names for column in table.named((name,))]
        columns[role] = there[0] if there else ""
    read.unused = [name for name in table.columns if name not in columns.values()]
    for role in () if read.problems else _NEEDED:
        if not columns[role]:
            close = nearest(role, read.unused)
            hint = f"rename {close} to {role}" if close else None
            either = " or ".join(COLUMNS[role])
            message = f"has no column {either}; its columns are {listed(table.columns)}"
            read.problems.append(table.problem(message, 1, hint=hint))
    if not table.lines and not read.problems:
        message = "has no label: there is no line below the names of the columns"
        read.problems.append(table.problem(message, 1))
    if read.problems:
        return read
    labels = table.columns[columns["label"]]
    texts = {role: table.texts(name) for role, name in columns.items() if role != "label"}
    for row, line in enumerate(table.lines):
        of_row: dict[str, Any] = {role: of_column[row] for role, of_column in texts.items()}
        epoch = of_row.pop("epoch")
        number = whole_number(epoch)
        if epoch and number is None:
            message = f"got {shown(epoch)}; must be an integer"
            read.problems.append(table.problem(message, line, "epoch"))
        else:
            read.rows.append(LabelRow(label=labels[row], epoch=number, line=line, **of_row))
    return read
