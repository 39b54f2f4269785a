"""What a log says of its runs, as a table of verdicts and labels: scores, fields of the metadata,
and scores that people edited.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import MISSING, at, pointer_to
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.sources import open_sources
from pytest_jrh.sources.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.sources.source import Key


SCORER, METADATA, EDITS = "scorer:", "metadata:", "edits"
"""How options name what a log has: a scorer, a field of the metadata, the edits of a score."""
_LOG_SUFFIX = ".eval"
_UNCHANGED = "UNCHANGED"


def names_log(path: Path, columns: Iterable[str]) -> bool:
    """Whether a table is to be made of a log, or of a folder such as a job of Harbor: by its name,
    or by what options name of it.
    """
    # Unlike a path's own question, false of a name that is too long for a file.
    is_folder = os.path.isdir(path)  # noqa: PTH112
    return is_folder or path.suffix.lower() == _LOG_SUFFIX or any(map(is_in_log, columns))


def is_in_log(column: str) -> bool:
    """Whether the name of a column is one of what a log has."""
    return column.startswith((SCORER, METADATA))


def log_table(path: Path, file: str, named: Sequence[str]) -> Table:
    """A table with a row for each run of a log: its id, epoch, scores and fields of metadata, also
    parts of them that are `named` by a pointer.

    Where `edits` is named, and one scorer, its column has the score before people edited it, and
    the column `edits` what they made of it, where they did. Rows are counted from 1.
    """
    columns: dict[str, Mapping[Key, Any]] = {}
    with open_sources((path,)) as source:
        keys = [(run.run_id, run.epoch) for run in source.summaries()]
        for prefix, values in ((SCORER, source.score_values()), (METADATA, source.metadata())):
            by_run = list(values)
            names = [f"{prefix}{name}" for _, of_run in by_run for name in of_run]
            names += [name for name in named if name.startswith(f"{prefix}/")]
            for name in dict.fromkeys(names):
                pointer = _pointer(name.removeprefix(prefix))
                columns[name] = {key: at(of_run, pointer) for key, of_run in by_run}
        if EDITS in named:
            scorers = [name for name in named if name.startswith(SCORER)]
            if len(scorers) != 1:
                message = "the edits are of the scores of one scorer"
                hint = "name it: --verdict scorer:NAME"
                raise InputError(Problem(message, file, key="--verdict", hint=hint))
            if scorers[0] in columns:
                columns |= _edits(source.scores(), scorers[0], file)
    cells = {name: [_cell(of.get(key)) for key in keys] for name, of in columns.items()}
    ids, epochs = [run_id for run_id, _ in keys], [epoch for _, epoch in keys]
    return Table(file, range(1, len(keys) + 1), {"id": ids, "epoch": epochs, **cells})


def _pointer(name: str) -> str:
    return name if name.startswith("/") else pointer_to(name)


def _cell(value: Any) -> Any:
    """A value of the log; None for a score that a scorer left out, which Inspect writes as NaN."""
    if value is MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def _edits(
    scores: Iterable[tuple[Key, Mapping[str, Any]]], column: str, file: str
) -> dict[str, Mapping[Key, Any]]:
    """The scores of a scorer before people edited them, and what they made of them."""
    pointer = _pointer(column.removeprefix(SCORER))
    originals: dict[Key, Any] = {}
    edited: dict[Key, Any] = {}
    for key, of_run in scores:
        before, after = before_and_after_edits(of_run)
        originals[key], edited[key] = at(before, pointer), at(after, pointer)
    if all(value is MISSING for value in edited.values()):
        message = f"nobody has edited a score of {column.removeprefix(SCORER)} in this log"
        hint = "edits are those of Inspect's edit_score(); labels from elsewhere: --labels FILE"
        raise InputError(Problem(message, file, key="--label", hint=hint))
    return {column: originals, EDITS: edited}


def before_and_after_edits(scores: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a sample's scores as they were given, and of those that people edited since
    (Inspect's `edit_score`) the last value that they gave.

    The first entry of a history is the score as it was; one of a single entry is of a person alone.
    """
    originals: dict[str, Any] = {}
    edited: dict[str, Any] = {}
    for name, score in scores.items():
        history = score.get("history")
        entries = history if isinstance(history, list) else []
        values = [entry.get("value", _UNCHANGED) for entry in entries if isinstance(entry, dict)]
        if not values:
            originals[name] = score["value"]
        elif len(values) > 1 and values[0] != _UNCHANGED:
            originals[name] = values[0]
            for value in values[1:]:
                if value != _UNCHANGED:
                    edited[name] = value
    return originals, edited
