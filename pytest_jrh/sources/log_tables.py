"""What a log says of its runs, as a table of verdicts and labels: scores, fields of the metadata,
and scores that people edited.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import MISSING, at, listed, pointer_to, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.sources import open_sources
from pytest_jrh.sources.label_files import as_text, whole_number
from pytest_jrh.sources.labels import SCORER_MAP
from pytest_jrh.sources.verdict_tables import EDITS, METADATA, SCORER, RawTable, is_in_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.sources.source import Key, Source


_UNCHANGED = "UNCHANGED"


def log_table(path: Path, file: str, *, label: str | None, columns: Sequence[str]) -> RawTable:
    """A table with a row for each run of a log: its id, epoch, and what the columns name.

    With `label` "edits", a scorer's column has the score before people edited it, and the column
    `edits` what they made of it, where they did; None where labels come from elsewhere. Rows are
    counted from 1. Raises `InputError` for what the log has not, with the names of what it has.
    """
    with open_sources((path,)) as source:
        keys = [(run.run_id, run.epoch) for run in source.summaries()]
        values: dict[str, Mapping[Key, Any]] = {}
        named = dict.fromkeys(column for column in columns if column == EDITS or is_in_log(column))
        if not named or (label is not None and (label not in named or len(named) == 1)):
            raise InputError(_nothing_named(source, file))
        if label == EDITS:
            del named[EDITS]
            scorers = [name for name in named if name.startswith(SCORER)]
            if len(scorers) != 1:
                message = f"the edits are of one scorer's scores; {_there_are(source, SCORER)}"
                raise InputError(Problem(message, file, key="--verdict", hint="name it once"))
            values |= _edits(source, scorers[0], file)
        for column in named:
            if column not in values and is_in_log(column):
                values[column] = _values(source, column, file)
    rows = []
    for number, key in enumerate(keys, 1):
        row: dict[str, Any] = {"id": key[0], "epoch": key[1]}
        for column, by_run in values.items():
            row[column] = _cell(by_run.get(key))
        rows.append((number, row))
    return RawTable(file, ("id", "epoch", *values), rows)


def words_of_log(table: RawTable, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """What the words of a log's scorers mean, where `mapping` does not say it.

    Raises `InputError` for 0 and 1 of which nobody has said what they mean: 1 is violated here, and
    right on the scale of most scorers.
    """
    columns = [column for column in table.columns if column == EDITS or is_in_log(column)]
    cells: dict[str, Any] = {}
    for column in columns:
        for value in table.values(column):
            if not isinstance(value, dict | list):
                cells.setdefault(as_text(value), value)
    numbers: dict[str, int] = {}
    for text, value in cells.items():
        number = int(value) if isinstance(value, bool) else whole_number(value)
        if not isinstance(value, str) and number is not None and not _is_mapped(text, mapping):
            numbers[text] = number
    if numbers and {*numbers.values()} <= {0, 1}:
        texts = sorted(numbers, key=numbers.__getitem__)
        right = " ".join(f"--map {text}={1 - numbers[text]}" for text in texts)
        wrong = " ".join(f"--map {text}={numbers[text]}" for text in texts)
        message = f"{listed(columns)}: the values are {listed(texts)}, and nothing says which of "
        hint = f"where {texts[-1]} is right, as with most scorers: {right}; else {wrong}"
        raise InputError(Problem(f"{message}them is violated", table.file, key="--map", hint=hint))
    words = {word: score for word, score in SCORER_MAP.items() if word in cells}
    return {**words, **mapping}


def _is_mapped(text: str, mapping: Mapping[str, Any]) -> bool:
    number = whole_number(text)
    return text in mapping or (number is not None and number in map(whole_number, mapping))


def _cell(value: Any) -> Any:
    """A value of the log; None for a score that a scorer left out, which Inspect writes as NaN."""
    if value is MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def _values(source: Source, column: str, file: str) -> dict[Key, Any]:
    """What the log has of each run; a problem where it has it of none."""
    kind, _, name = column.partition(":")
    by_run = source.score_values() if f"{kind}:" == SCORER else source.metadata()
    values = {key: at(of_run, _pointer(name)) for key, of_run in by_run}
    if all(value is MISSING or value is None for value in values.values()):
        raise InputError(_not_there(source, column, file))
    return values


def _pointer(name: str) -> str:
    return name if name.startswith("/") else pointer_to(name)


def _edits(source: Source, column: str, file: str) -> dict[str, Mapping[Key, Any]]:
    """The scores of a scorer before people edited them, and what they made of them."""
    pointer = _pointer(column.removeprefix(SCORER))
    originals: dict[Key, Any] = {}
    edited: dict[Key, Any] = {}
    for key, scores in source.scores():
        before, after = before_and_after_edits(scores)
        originals[key] = at(before, pointer)
        edited[key] = at(after, pointer)
    if all(value is MISSING for value in originals.values()):
        raise InputError(_not_there(source, column, file))
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


def _names(source: Source, prefix: str) -> list[str]:
    names: dict[str, None] = {}
    by_run = source.score_values() if prefix == SCORER else source.metadata()
    for _, of_run in by_run:
        names.update(dict.fromkeys(of_run))
    return list(names)


def _there_are(source: Source, prefix: str) -> str:
    what = "scorers" if prefix == SCORER else "fields of the metadata"
    names = [f"{prefix}{name}" for name in _names(source, prefix)]
    return f"its {what} are {listed(names)}" if names else f"it has no {what}"


def _not_there(source: Source, column: str, file: str) -> Problem:
    prefix = SCORER if column.startswith(SCORER) else METADATA
    names = [f"{prefix}{name}" for name in _names(source, prefix)]
    message = f"got {shown(column)}, which no run has; {_there_are(source, prefix)}"
    return Problem(message, file, hint=nearest_hint(column, names))


def _nothing_named(source: Source, file: str) -> Problem:
    message = (
        "is a log: say what in it are verdicts and what are labels; "
        f"{_there_are(source, SCORER)}, {_there_are(source, METADATA)}"
    )
    hint = "--verdict scorer:NAME --label metadata:FIELD, or --label edits"
    return Problem(message, file, hint=hint)
