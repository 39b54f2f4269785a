"""Label files: labels of runs, as CSV or JSON lines.

Nothing is left out in silence: what cannot be read is a problem with its line, and columns that
mean nothing here are named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.text import nearest
from pytest_jrh.sources.tables import Table, as_text, read_table, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.core.errors import Problem


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "run_id": ("run_id", "id"),
    "rubric_id": ("rubric_id",),
    "label": ("label", "target"),
    "epoch": ("epoch",),
    "annotator": ("annotator",),
    "split": ("split",),
    "note": ("note",),
    "step": ("step", "steps"),
}
"""The columns of a label file, each with the names that it may have."""
_NAMES = tuple(chain.from_iterable(COLUMNS.values()))
_NEEDED = ("run_id", "label")
_MOST_STEPS = 100
_STEPS = re.compile(r"\s*\d{1,5}(?:\s*[,;]\s*\d{1,5})*+\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One line: who says what of which run, and where it stands.

    `steps` are the turns that a label is about.
    """

    run_id: str
    label: Any
    rubric_id: str = ""
    epoch: int | None = None
    annotator: str = ""
    split: str = ""
    line: int = 1
    note: str = ""
    steps: tuple[int, ...] = ()


@dataclass(slots=True)
class LabelFile:
    """The rows of a file, what is wrong with others, and the columns that mean nothing here."""

    rows: list[LabelRow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)


def read_rows(path: Path, file: str) -> LabelFile:
    """Read a label file. What is wrong with a line is in `problems`; raises `InputError` for a file
    that cannot be read at all.
    """
    table = read_table(path, file)
    read = LabelFile(problems=table.problems)
    if table.columns and not read.problems:
        columns = _columns(table, read)
        if not read.problems:
            for number, line in enumerate(table.lines):
                values: dict[str, Any] = {}
                for name, meaning in columns.items():
                    value = table.columns[name][number]
                    # Lines of JSON may have the names of several programs.
                    if value is not None and values.setdefault(meaning, value) != value:
                        message = f"the column {shown(name)} means the same as another one"
                        read.problems.append(table.problem(message, line))
                _add(values, line, table, read)
    if not table.lines and not read.problems:
        message = "has no label: there is no line below the names of the columns"
        read.problems.append(table.problem(message, 1))
    return read


def _columns(table: Table, read: LabelFile) -> dict[str, str]:
    """The meaning of each column that has one; problems where they cannot be used."""
    columns: dict[str, str] = {}
    unknown: list[str] = []
    for name in table.columns:
        meaning = _meaning(name)
        if meaning is None:
            unknown.append(name)
        else:
            columns[name] = meaning
    for needed in _NEEDED:
        if needed not in columns.values():
            names = COLUMNS[needed]
            close = nearest(needed, unknown)
            hint = f"rename {close} to {needed}" if close else None
            message = f"has no column {' or '.join(names)}; its columns are {listed(table.columns)}"
            read.problems.append(table.problem(message, 1, hint=hint))
    for name in unknown:
        close = nearest(name, _NAMES, 0.8)
        if close and _meaning(close) not in (*_NEEDED, *columns.values()):
            message, hint = f"unknown column {shown(name)}", f"{close} is the nearest"
            read.problems.append(table.problem(message, 1, hint=hint))
    read.unused.update(dict.fromkeys(unknown))
    return columns


def _meaning(name: str) -> str | None:
    lowered = name.casefold()
    return next((column for column, names in COLUMNS.items() if lowered in names), None)


def _add(values: Mapping[str, Any], line: int, table: Table, read: LabelFile) -> None:
    """Add a row, or say what is wrong with it."""
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for column in ("run_id", "rubric_id", "annotator", "split"):
        value = values.get(column)
        texts[column] = as_text(value)
        if isinstance(value, bool | float | dict | list):
            problems.append(table.problem(f"got {shown(value)}; must be text", line, column))
    label, epoch = values.get("label"), as_text(values.get("epoch"))
    if epoch and not (epoch.isascii() and epoch.isdigit() and len(epoch) < 10):  # noqa: PLR2004 - digits
        message = f"got {shown(values['epoch'])}; must be an integer >= 0"
        problems.append(table.problem(message, line, "epoch"))
    if not texts["run_id"] and not problems:
        problems.append(table.problem("the id of the run is empty", line, "run_id"))
    if isinstance(label, dict | list):
        problems.append(table.problem(f"got {shown(label)}; must be one value", line, "label"))
    read.problems += problems
    if problems:
        return
    note, steps = values.get("note"), step_numbers(values.get("step"))
    if steps is None:
        # The column means something else than turns.
        read.unused["step"] = None
    read.rows.append(
        LabelRow(
            **texts,
            label=label,
            epoch=int(epoch) if epoch else None,
            line=line,
            # Nothing rests on what is said beside a value.
            note=note.strip() if isinstance(note, str) else "",
            steps=steps or (),
        )
    )


def step_numbers(value: Any) -> tuple[int, ...] | None:
    """The numbers of turns that a value names, one or several between commas; none where it is
    empty, None where it is no list of numbers.
    """
    if not as_text(value):
        return ()
    numbers: Sequence[Any] = value if isinstance(value, list) else [value]
    if isinstance(value, str) and _STEPS.fullmatch(value.strip("[] \t")):
        numbers = re.split("[,;]", value.strip("[] \t"))
    steps = [whole_number(number) for number in numbers[:_MOST_STEPS]]
    if None in steps:
        return None
    return tuple(step for step in steps if step is not None and step >= 0)
