"""Tables of verdicts: what people said of cases and what judges said, as CSV or JSON lines.

First a table is read as it is; then its columns are taken for what they are, by the names that
people use or as options say; then words become scores, and rows become cases.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import listed, printable, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.text import counted, nearest_hint
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.label_files import (
    WORDS,
    LabelFile,
    NoLabelError,
    as_text,
    first_problems,
    is_json_lines,
    label_value,
    mapped,
    read_cells,
    read_objects,
    table_text,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


ROLES: Mapping[str, tuple[str, ...]] = {
    "label": (
        "label",
        "human",
        "gold",
        "target",
        "expected",
        "human_label",
        "gold_label",
        "true_label",
        "ground_truth",
    ),
    "verdict": (
        "verdict",
        "judge",
        "score",
        "prediction",
        "predicted",
        "pred",
        "judgment",
        "judgement",
        "grade",
        "judge_verdict",
        "judge_score",
        "judge_label",
        "model_label",
    ),
    "case": ("case", "case_id", "id", "sample_id", "transcript_id", "example_id", "example"),
    "rubric": ("rubric", "rubric_id", "criterion", "criteria"),
    "cluster": ("cluster", "run", "run_id", "task", "task_id", "item", "item_id"),
    "epoch": ("epoch",),
    "repeat": ("repeat", "replicate"),
    "reasoning": ("reasoning", "rationale", "explanation", "reason"),
    "annotator": ("annotator", "rater", "labeler", "labeller"),
    "split": ("split", "drawn"),
}
"""What columns are taken for, each with the names that it may have, whatever their case."""
_NAMES = tuple(name for names in ROLES.values() for name in names)
MAX_TABLE_BYTES = 128 * 2**20
_LONGEST_CELL = 131_072
"""Characters of one value: as many as Python's reader of CSV takes."""
_MOST_LEVELS = 101
_LOOKED_AT = 50
_SEVERAL = re.compile(r"(?:verdict|judge|score)_.+")
VERDICT_WORDS: Mapping[str, int] = {**WORDS, "no": 0, "yes": 1}
"""What a binary value may be, whatever its case: 1 is violated, 0 is satisfied."""


SCORER, METADATA, EDITS = "scorer:", "metadata:", "edits"
"""How options name what a log has: a scorer, a field of the metadata, the edits of a score."""
_LOG_SUFFIX = ".eval"


def names_log(path: Path, columns: Sequence[str]) -> bool:
    """Whether a table is to be made of a log, or of a folder such as a job of Harbor: by its name,
    or by what options name of it.
    """
    # Unlike a path's own question, false of a name that is too long for a file.
    is_folder = os.path.isdir(path)  # noqa: PTH112
    return is_folder or path.suffix.lower() == _LOG_SUFFIX or any(map(is_in_log, columns))


def is_in_log(column: str) -> bool:
    """Whether the name of a column is one of what a log has."""
    return column.startswith((SCORER, METADATA))


@dataclass(slots=True)
class RawTable:
    """A table as it was read: each row has its line and the values by column."""

    file: str
    columns: Sequence[str]
    rows: Sequence[tuple[int, Mapping[str, Any]]]

    def values(self, column: str) -> Iterator[Any]:
        """The values of a column, row by row; None where a row has none."""
        return (row.get(column) for _, row in self.rows)

    def problem(
        self, message: str, line: int | None = None, key: str | None = None, hint: str | None = None
    ) -> Problem:
        """What is wrong with a line of the table."""
        return Problem(message, self.file, line, key, hint)


def read_table(path: Path, file: str) -> RawTable:
    """Read a table: CSV (commas, semicolons or tabs), or JSON lines where it begins with `{`.

    `file` is how messages name it. Raises `InputError` with the first problems.
    """
    text = table_text(path, file, MAX_TABLE_BYTES)
    if not text.strip():
        raise InputError(Problem("is empty; must be a table of labels and verdicts", file, 1))
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InputError(Problem("has a NUL character; must be CSV or JSON lines", file, line))
    problems = LabelFile(file)
    rows = list(_json_rows(text, problems) if is_json_lines(text) else _csv_rows(text, problems))
    if problems.problems:
        raise InputError(first_problems(problems.problems, file))
    if not rows:
        message = "has no row below the names of the columns"
        raise InputError(Problem(message, file, 1))
    return _table(file, rows)


def rows_as_table(rows: Iterable[Mapping[str, Any]], name: str) -> RawTable:
    """A table of rows that a program has, numbered from 1."""
    numbered = [(number, dict(row)) for number, row in enumerate(rows, 1)]
    if not numbered:
        raise InputError(Problem("there is no row", name))
    problems = LabelFile(name)
    for number, row in numbered:
        _check_cells(row, problems, number)
    if problems.problems:
        raise InputError(first_problems(problems.problems, name))
    return _table(name, numbered)


def _table(file: str, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> RawTable:
    columns: dict[str, None] = {}
    for _, row in rows:
        columns.update(dict.fromkeys(row))
    return RawTable(file, tuple(columns), rows)


def _csv_rows(text: str, problems: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    columns: list[str] | None = None
    for line, cells in read_cells(text, problems, _NAMES):
        if columns is None:
            columns = [cell.strip() for cell in cells]
            counts = Counter(column for column in columns if column)
            for column, count in counts.items():
                if count > 1:
                    problems.problem(f"duplicate column {shown(column)}", line)
        elif len(cells) < len(columns) and len(cells) < len(_without_empty_end(columns)):
            problems.problem(
                f"has {counted(len(cells), 'cell')}, and there are {len(columns)} columns", line
            )
        else:
            yield line, {name: cell for name, cell in zip(columns, cells, strict=False) if name}


def _without_empty_end(columns: Sequence[str]) -> Sequence[str]:
    """The columns up to the last one with a name: a spreadsheet may write empty ones after it."""
    last = max((place for place, column in enumerate(columns) if column), default=-1)
    return columns[: last + 1]


def _json_rows(text: str, problems: LabelFile) -> Iterator[tuple[int, dict[str, Any]]]:
    # One text for the name of a column, not one a row.
    names: dict[str, str] = {}
    for line, value in read_objects(text, problems):
        row = {}
        for name, cell in value.items():
            row[names.setdefault(name, storable(name)[0].strip())] = cell
        _check_cells(row, problems, line)
        yield line, row


def _check_cells(row: dict[str, Any], problems: LabelFile, line: int) -> None:
    """Make the texts of a row storable, and refuse those that are longer than a cell."""
    for name, cell in row.items():
        if isinstance(cell, str):
            if len(cell) > _LONGEST_CELL:
                message = f"has {len(cell):,} characters; at most {_LONGEST_CELL:,} are read"
                problems.problem(message, line, printable(name))
            row[name] = storable(cell)[0]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is taken for what; empty where none is.

    `verdicts` are one column a judge; with `judge` there is one, and that column names the judge.
    """

    label: str = ""
    verdicts: tuple[str, ...] = ()
    judge: str = ""
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    epoch: str = ""
    repeat: str = ""
    reasoning: str = ""
    annotator: str = ""
    split: str = ""

    def taken(self) -> dict[str, str]:
        """Each role with its column, in the order in which they are told."""
        roles = {"label": self.label, "verdict": ", ".join(self.verdicts), "judge": self.judge}
        for role in ("case", "rubric", "cluster", *_FREE_ROLES):
            roles[role] = getattr(self, role)
        return {role: column for role, column in roles.items() if column}

    def used(self) -> set[str]:
        """The columns that are taken for something."""
        single = {getattr(self, role) for role in ("label", "judge", *_SINGLE_ROLES)}
        return {*self.verdicts, *single} - {""}


_FREE_ROLES = ("epoch", "repeat", "reasoning", "annotator", "split")
_SINGLE_ROLES = ("case", "rubric", "cluster", *_FREE_ROLES)
OPTIONS = ("label", "verdict", "case", "rubric", "cluster", "repeat", "judge")
"""The roles that an option of the command names a column for."""


def _plain_name(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().casefold())


def columns_named(table: RawTable, role: str) -> list[str]:
    """The columns of a table that have a name of this role."""
    return [column for column in table.columns if _plain_name(column) in ROLES[role]]


class _Choice:
    """Finds the columns of a table for their roles."""

    def __init__(
        self,
        table: RawTable,
        named: Mapping[str, str],
        verdicts: Sequence[str],
    ) -> None:
        self._table = table
        self._named = {role: column for role, column in named.items() if column}
        self._verdicts = tuple(dict.fromkeys(verdicts))
        self.problems: list[Problem] = []

    def columns(self, baseline: str, mapping: Mapping[str, Any], *, labelled: bool) -> Columns:
        """All columns; `labelled` says that one which may be that of labels has to be named so."""
        for role, column in [*self._named.items(), *(("verdict", name) for name in self._verdicts)]:
            self._check(role, column)
        self._stop_at_problems()
        taken = {*self._named.values(), *self._verdicts, baseline}
        label = self._named.get("label") or self._one("label", taken)
        taken.add(label)
        judge = self._named.get("judge", "")
        verdicts = self._verdicts
        if not verdicts:
            verdicts, judge = self._verdict_columns(taken, judge, mapping)
        taken |= {*verdicts, judge}
        if judge and len(verdicts) > 1:
            names = f"the column {shown(judge)} names the judge"
            self._add(
                f"{names}, and there are several of verdicts",
                hint="name one: --verdict COL",
            )
        single = {role: self._named.get(role) or self._one(role, taken) for role in _SINGLE_ROLES}
        if not self._named.get("cluster"):
            single["cluster"] = self._cluster(taken)
        if single["epoch"] and not _are_epochs(self._table, single["epoch"]):
            single["epoch"] = ""
        if len(verdicts) > 1:
            # Of which judge it is, the column does not say.
            single["reasoning"] = ""
        self._stop_at_problems()
        columns = Columns(label=label, verdicts=verdicts, judge=judge, **single)
        if labelled and not label:
            self._stop_at_unnamed_label({*columns.used(), baseline}, mapping)
        return columns

    def _stop_at_problems(self) -> None:
        if self.problems:
            raise InputError(first_problems(self.problems, self._table.file))

    def _check(self, role: str, column: str) -> None:
        if column not in self._table.columns:
            hint = nearest_hint(column, self._table.columns, "column")
            self._add(f"has no column {shown(column)}; {self._there_are}", f"--{role}", hint)

    @property
    def _there_are(self) -> str:
        return f"its columns are {listed(self._table.columns)}"

    def _add(self, message: str, key: str | None = None, hint: str | None = None) -> None:
        line = self._table.rows[0][0] if key is None else None
        first = 1 if line is not None else None
        self.problems.append(self._table.problem(message, first, key, hint))

    def _candidates(self, role: str, taken: set[str]) -> list[str]:
        return [column for column in columns_named(self._table, role) if column not in taken]

    def _one(self, role: str, taken: set[str]) -> str:
        """The only column whose name fits; a problem where several do."""
        candidates = self._candidates(role, taken)
        if len(candidates) == 1:
            return candidates[0]
        if candidates and role in OPTIONS and role != "cluster":
            self._ambiguous(role, candidates)
        return ""

    def _stop_at_unnamed_label(self, used: set[str], mapping: Mapping[str, Any]) -> None:
        """Refuse a table without a column of labels where one that is not used may be that."""
        unused = [column for column in self._table.columns if column not in used]
        close = nearest_hint("label", unused, "column")
        words = {*VERDICT_WORDS, *(key.casefold() for key in mapping)}
        candidates = []
        for column in unused:
            values = {
                as_text(row.get(column)).casefold() for _, row in self._table.rows[:_LOOKED_AT]
            }
            if values & words:
                candidates.append(column)
        if close or candidates:
            hint = "name it: --label COL"
            if candidates:
                hint += f"; where nothing has a label, leave out {listed(candidates, 5)}"
            names = " or ".join(ROLES["label"][:5])
            self._add(
                f"has no column {names}; {self._there_are}",
                hint=f"{close}; {hint}" if close else hint,
            )
        self._stop_at_problems()

    def _ambiguous(self, role: str, candidates: Sequence[str]) -> None:
        ways = " or ".join(f"--{role} {printable(column)}" for column in candidates)
        self._add(
            f"several columns may be the {role}: {listed(candidates)}; {self._there_are}",
            hint=f"say which: {ways}",
        )

    def _verdict_columns(
        self, taken: set[str], judge: str, mapping: Mapping[str, Any]
    ) -> tuple[tuple[str, ...], str]:
        """The columns of verdicts, and the one that names judges, which may be called `judge`."""
        readable = {
            column
            for column in self._table.columns
            if column not in taken and _is_readable(self._table, column, mapping)
        }
        candidates = self._candidates("verdict", taken)
        names_judges = [column for column in candidates if _plain_name(column) == "judge"]
        if len(candidates) == 2 and not judge and names_judges and names_judges[0] not in readable:  # noqa: PLR2004
            candidates.remove(names_judges[0])
            # A session with one judge writes no name of it.
            if any(map(as_text, self._table.values(names_judges[0]))):
                judge = names_judges[0]
        if len(candidates) > 1:
            candidates = [column for column in candidates if column in readable] or candidates
        if len(candidates) == 1:
            return tuple(candidates), judge
        several = [
            column
            for column in self._table.columns
            if column in readable and _SEVERAL.fullmatch(_plain_name(column))
        ]
        if len(several) > 1 and not candidates:
            return tuple(several), judge
        if candidates:
            self._ambiguous("verdict", candidates)
            return (), judge
        if several:
            return tuple(several), judge
        options = [column for column in self._table.columns if column in readable]
        ways = " ".join(f"--verdict {printable(column)}" for column in options[:_MOST_WAYS])
        names = " or ".join(ROLES["verdict"][:3])
        self._add(
            f"has no column {names}; {self._there_are}",
            hint=f"name those of the judges: {ways or '--verdict COL'}",
        )
        return (), judge

    def _cluster(self, taken: set[str]) -> str:
        """The column of what rows have in common: of several, each a part of the next, the widest.

        Rows that are taken for independent and are not make every interval too narrow.
        """
        candidates = self._candidates("cluster", taken)
        if len(candidates) <= 1:
            return candidates[0] if candidates else ""
        sizes = {
            column: len({as_text(value) for value in self._table.values(column)})
            for column in candidates
        }
        several = sorted(
            (column for column in candidates if sizes[column] > 1), key=sizes.__getitem__
        )
        if not several:
            return candidates[0]
        widest = several[0]
        if all(_is_part(self._table, column, widest) for column in several[1:]):
            return widest
        self._ambiguous("cluster", several)
        return ""


_MOST_WAYS = 5


def _is_part(table: RawTable, narrow: str, wide: str) -> bool:
    """Whether rows that are equal in one column are equal in the other."""
    wide_of: dict[str, str] = {}
    for _, row in table.rows:
        value = as_text(row.get(wide))
        if wide_of.setdefault(as_text(row.get(narrow)), value) != value:
            return False
    return True


def _is_readable(table: RawTable, column: str, mapping: Mapping[str, Any]) -> bool:
    """Whether most of the first values of a column are words of verdicts, or whole numbers."""
    texts = [as_text(row.get(column)) for _, row in table.rows[:_LOOKED_AT]]
    there = [text for text in texts if text]
    words = {*VERDICT_WORDS, *(key.casefold() for key in mapping)}
    readable = [
        text for text in there if text.casefold() in words or whole_number(text) is not None
    ]
    return 2 * len(readable) > len(there)


def _are_epochs(table: RawTable, column: str) -> bool:
    numbers = map(whole_number, table.values(column))
    return all(number is not None and number >= 0 for number in numbers)


def choose_columns(
    table: RawTable,
    *,
    named: Mapping[str, str] | None = None,
    verdicts: Sequence[str] = (),
    baseline: str = "",
    mapping: Mapping[str, Any] | None = None,
    labelled: bool = True,
) -> Columns:
    """Say which column of a table is what.

    `named` are columns by role, `verdicts` those of judges, `baseline` is the one of earlier
    verdicts. Raises `InputError` where one is not there, or not clear.
    """
    choice = _Choice(table, named or {}, verdicts)
    return choice.columns(baseline, mapping or {}, labelled=labelled)


def with_labels(
    table: RawTable, labels: RawTable, named: Mapping[str, str]
) -> tuple[RawTable, str]:
    """The table with the labels of another one, and the name of their column.

    Rows belong together where they name the same case, and the same rubric and epoch where both do.
    A label of a case that the table does not have counts for nothing. `named` are columns by role.
    Raises `InputError` where columns are not clear, labels contradict each other, one may be of
    several rubrics or epochs, or none is of a row of the table.
    """
    label_column = _only_column(labels, "label", named)
    if label_column in table.columns:
        hint = f"rename the one in {labels.file}"
        raise InputError(table.problem(f"has a column {shown(label_column)}, too", 1, hint=hint))
    keys, label_keys = [_only_column(table, "case", named)], [_only_column(labels, "case", named)]
    told_apart_by = []
    for role in ("rubric", "epoch"):
        if of_table := columns_named(table, role):
            if of_labels := columns_named(labels, role):
                keys.append(of_table[0])
                label_keys.append(of_labels[0])
            else:
                told_apart_by.append(of_table[0])
    splits = columns_named(labels, "split")
    added_columns = [label_column, *(name for name in splits[:1] if name not in table.columns)]
    by_case = _labels_by_case(labels, label_keys, label_column)
    rows, problems = [], []
    told_apart: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line, row in table.rows:
        case = _texts(row, keys)
        of_case = by_case.get(case, {})
        parts = _texts(row, told_apart_by)
        if of_case and told_apart.setdefault(case, parts) != parts:
            message = f"a label of {shown(case[0])} may be of several: {listed(told_apart_by)}"
            hint = f"add the column to {labels.file}"
            problems.append(table.problem(message, line, told_apart_by[0], hint))
        rows.append((line, {**row, **{name: of_case.get(name) for name in added_columns}}))
    if not told_apart:
        ids = listed((case[0] for case in by_case), 3)
        cases = listed((as_text(value) for value in table.values(keys[0])), 3)
        message = f"has no label of a row of {table.file}: here {label_keys[0]} is {ids}, there "
        hint = "name the column that both have: --case COL"
        problems.append(labels.problem(f"{message}{keys[0]} is {cases}", hint=hint))
    if problems:
        raise InputError(first_problems(problems, table.file))
    return RawTable(table.file, (*table.columns, *added_columns), rows), label_column


def _texts(row: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(as_text(row.get(column)) for column in columns)


def _labels_by_case(
    labels: RawTable, keys: Sequence[str], label_column: str
) -> dict[tuple[str, ...], Mapping[str, Any]]:
    """The rows of a table of labels by what they are of; raises `InputError` where two differ."""
    lines: dict[tuple[str, ...], int] = {}
    by_case: dict[tuple[str, ...], Mapping[str, Any]] = {}
    problems = []
    for line, row in labels.rows:
        case = _texts(row, keys)
        first = by_case.setdefault(case, row)
        first_line = lines.setdefault(case, line)
        if as_text(first.get(label_column)) != as_text(row.get(label_column)):
            message = f"the label of {shown(case[0])} is another one in line {first_line}"
            problems.append(labels.problem(message, line, label_column, "remove one of the two"))
    if problems:
        raise InputError(first_problems(problems, labels.file))
    return by_case


def _only_column(table: RawTable, role: str, named: Mapping[str, str]) -> str:
    """The column of a role in one of two tables that are put together."""
    column = named.get(role, "")
    if column in table.columns:
        return column
    candidates = columns_named(table, role)
    if len(candidates) == 1:
        return candidates[0]
    message = f"which column is the {role} is not clear; its columns are {listed(table.columns)}"
    raise InputError(table.problem(message, 1, hint=f"name it: --{role} COL"))


class CaseKey(NamedTuple):
    """Which case a row is about; `rubric` is empty where the table has none."""

    case: str
    rubric: str = ""
    epoch: int = 1


@dataclass(slots=True)
class TableCase:
    """A case of a table: its labels by annotator, and the verdicts by judge and repeat.

    A verdict is None where its cell is empty. `line` is that of its first row.
    """

    key: CaseKey
    line: int
    cluster: str | None = None
    split: str = ""
    labels: dict[str, int] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], int | None] = field(default_factory=dict)
    reasonings: dict[str, str] = field(default_factory=dict)

    def scores(self, judge: str) -> tuple[int, ...]:
        """The verdicts of a judge that there are, one a repeat."""
        scores = []
        for (name, _), score in self.verdicts.items():
            if name == judge and score is not None:
                scores.append(score)
        return tuple(scores)

    @property
    def judges(self) -> list[str]:
        """The judges with a row of this case, each once."""
        return list(dict.fromkeys(name for name, _ in self.verdicts))


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """The cases of a table in its order; `scale` are the scores of an ordinal one, else empty.

    `meanings` says for each score which words stand for it in this table.
    """

    file: str
    columns: Columns
    unused: tuple[str, ...]
    cases: Mapping[CaseKey, TableCase]
    scale: tuple[int, ...]
    meanings: Mapping[int, tuple[str, ...]]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges, each once, in the order of the table."""
        if not self.columns.judge:
            return self.columns.verdicts
        of_cases = chain.from_iterable(case.judges for case in self.cases.values())
        return tuple(dict.fromkeys(of_cases))


class Scores:
    """Reads the values of a table: words or whole numbers, after a mapping."""

    def __init__(self, mapping: Mapping[str, Any], scale: Sequence[int] = ()) -> None:
        self._mapping = mapping
        self.scale = tuple(scale)
        self._scores: dict[str, int | None] = {}
        self.meanings: dict[int, dict[str, None]] = {}

    def settle(self, tables: Sequence[tuple[RawTable, Sequence[tuple[str, str]]]]) -> None:
        """Find out what all values mean, of each table those of its columns, each with its role.

        Raises `InputError` with those that mean nothing, and where labels and verdicts are on two
        scales.
        """
        values = _first_places(tables)
        texts = {text for of_role in values.values() for text in of_role}
        read = {text: self._mapped(text) for text in texts}
        self._check_mapping(texts, tables[0][0])
        if not self.scale:
            self.scale = _scale(read, values, tables[0][0])
        problems: list[Problem] = []
        for of_role in values.values():
            for text, place in of_role.items():
                if text not in self._scores:
                    is_shown = len(problems) < MOST_PROBLEMS
                    problem = self._settle(text, read[text], place, is_shown=is_shown)
                    problems += [problem] if problem else []
        if problems:
            raise InputError(first_problems(problems, problems[0].file or ""))

    def score(self, raw: Any) -> int | None:
        """The score of a value; None where it is empty, or is mapped to nothing."""
        text = as_text(raw)
        return self._scores[text] if text else None

    def _mapped(self, text: str) -> Any:
        if not self._mapping:
            return text
        try:
            return mapped(text, self._mapping)
        except NoLabelError:
            pass
        return text

    def _check_mapping(self, texts: set[str], table: RawTable) -> None:
        problems = []
        for word in self._mapping:
            if not any(_are_equal(text, word) for text in texts):
                hint = nearest_hint(word, texts, "value")
                message = f"got {shown(word)}, which no label and no verdict is"
                problems.append(table.problem(message, key="--map", hint=hint))
        if problems:
            raise InputError(first_problems(problems, table.file))

    def _settle(self, text: str, value: Any, place: _Place, *, is_shown: bool) -> Problem | None:
        """Settle what one value means; the problem where it means nothing."""
        if value is None or value == "":
            self._scores[text] = None
            return None
        try:
            score = label_value(value, self.scale, VERDICT_WORDS)
        except NoLabelError as error:
            hint = self._way(text, error.hint) if is_shown else None
            return place.table.problem(str(error), place.line, place.column, hint)
        self._scores[text] = score
        self.meanings.setdefault(score, {})[text] = None
        return None

    def _way(self, text: str, close: str | None) -> str:
        """How to say what a word means."""
        word = printable(text, 40)
        word = word if re.fullmatch(r"[\w.+-]+", word) else f"'{word}'"
        scores = f"--map {word}=0 (satisfied) or --map {word}=1 (violated)"
        if self.scale:
            scores = f"--map {word}={self.scale[0]}"
        way = f"say what it means: {scores}; --map {word}= counts it as missing"
        return f"{close}; {way}" if close else way


class _TableRole(NamedTuple):
    """A role in one of the tables that are read together: the first, or that of the baseline."""

    table: int
    role: str

    def __str__(self) -> str:
        return f"{self.role}s of the other file" if self.table else f"{self.role}s"


class _Place(NamedTuple):
    """Where a value is first met."""

    table: RawTable
    line: int
    column: str


def _first_places(
    tables: Sequence[tuple[RawTable, Sequence[tuple[str, str]]]],
) -> dict[_TableRole, dict[str, _Place]]:
    """By table and role all values that are there, each where it is first met.

    Raises `InputError` for those that are no single value.
    """
    values: dict[_TableRole, dict[str, _Place]] = {}
    problems = []
    for number, (table, columns) in enumerate(tables):
        for column, role in columns:
            of_role = values.setdefault(_TableRole(number, role), {})
            for line, row in table.rows:
                raw = row.get(column)
                if isinstance(raw, dict | list | tuple | set):
                    message = f"got {shown(raw)}; must be one value"
                    problems.append(table.problem(message, line, column))
                elif text := as_text(raw):
                    of_role.setdefault(text, _Place(table, line, column))
    if problems:
        raise InputError(first_problems(problems, problems[0].file or ""))
    return values


def _are_equal(text: str, word: str) -> bool:
    if text == word:
        return True
    number = whole_number(word)
    return number is not None and number == whole_number(text)


def _scale(
    read: Mapping[str, Any], values: Mapping[_TableRole, Mapping[str, Any]], table: RawTable
) -> tuple[int, ...]:
    """The scale of all values: none where they are words or 0 and 1, from the lowest to the highest
    where they are whole numbers.
    """
    there = [value for value in read.values() if value is not None and value != ""]
    numbers = [whole_number(value) for value in there]
    whole = [number for number in numbers if number is not None]
    words = [value for value in there if as_text(value).casefold() in VERDICT_WORDS]
    if len(words) >= len(there) or len(whole) < len(there):
        return ()
    low, high = min(whole), max(whole)
    if low >= 0 and high <= 1:
        # So are 0.0 and 1.0, as columns with empty cells are often written.
        return ()
    if high - low >= _MOST_LEVELS:
        message = f"has scores from {low} to {high}; a scale has at most {_MOST_LEVELS} levels"
        raise InputError(table.problem(printable(message, 200), hint="map them: --map WORD=VALUE"))
    by_role = {
        role: {whole_number(read[text]) for text in of_role} - {None}
        for role, of_role in values.items()
    }
    for role, numbers_of_role in by_role.items():
        # A judge that always says 1 may say it on a scale from 1 to 5.
        if numbers_of_role == {0, 1}:
            others = " and ".join(str(other) for other in by_role if by_role[other] - {0, 1})
            raise InputError(
                table.problem(
                    f"the {role} are 0 and 1, and the {others} are up to {high}: two scales",
                    1,
                    hint="map one of them (--map WORD=VALUE), or say that both are on one: "
                    f"--scale {low}-{high}",
                )
            )
    return tuple(range(low, high + 1))


def cases_of(table: RawTable, columns: Columns, scores: Scores, baseline: str = "") -> VerdictTable:
    """Put the rows of a table together as cases.

    The verdicts of the column `baseline` are those of a judge of that name, beside the others.
    Raises `InputError` where rows contradict each other, or one case is there twice.
    """
    verdicts = tuple(dict.fromkeys([*columns.verdicts, *([baseline] if baseline else [])]))
    cases: dict[CaseKey, TableCase] = {}
    problems: list[Problem] = []
    key_of = _key_reader(table, columns)
    for line, row in table.rows:
        key = key_of(line, row)
        cluster = as_text(row.get(columns.cluster)) if columns.cluster else None
        case = cases.get(key)
        if case is None:
            case = TableCase(key, line, cluster or None)
            cases[key] = case
            if columns.split:
                case.split = as_text(row.get(columns.split))
        problem = _add_row(case, table, columns, verdicts, scores, line, row)
        problems += [problem] if problem else []
    if problems:
        raise InputError(first_problems(problems, table.file))
    used = {*columns.used(), baseline}
    unused = tuple(column for column in table.columns if column not in used)
    meanings = {score: tuple(words) for score, words in sorted(scores.meanings.items())}
    return VerdictTable(table.file, columns, unused, cases, scores.scale, meanings)


def _key_reader(table: RawTable, columns: Columns) -> Callable[[int, Mapping[str, Any]], CaseKey]:
    """How the case of a row is named: by its column, by that of the cluster where each row has its
    own, or else by its line.
    """

    def key_of(line: int, row: Mapping[str, Any]) -> CaseKey:
        name = as_text(row.get(by)) if by else ""
        rubric = as_text(row.get(columns.rubric)) if columns.rubric else ""
        epoch = whole_number(row.get(columns.epoch)) if columns.epoch else 1
        return CaseKey(name or f"line {line}", rubric, 1 if epoch is None else epoch)

    by = columns.case or columns.cluster
    if not columns.case and by and not (columns.repeat or columns.annotator or columns.judge):
        keys = {key_of(line, row) for line, row in table.rows}
        if len(keys) < len(table.rows):
            by = ""
    return key_of


def _add_row(
    case: TableCase,
    table: RawTable,
    columns: Columns,
    verdicts: Sequence[str],
    scores: Scores,
    line: int,
    row: Mapping[str, Any],
) -> Problem | None:
    """Add what a row says of its case; the problem where another row has said it, or otherwise."""
    annotator = as_text(row.get(columns.annotator)) if columns.annotator else ""
    repeat = as_text(row.get(columns.repeat)) if columns.repeat else ""
    label = scores.score(row.get(columns.label)) if columns.label else None
    is_new_vote = label is not None and annotator not in case.labels
    # Without a column of annotators all rows are of one.
    if label is not None and case.labels.setdefault(annotator, label) != label:
        return _differs("label", case, table, line, columns.label)
    for column in verdicts:
        of_row = columns.judge and column in columns.verdicts
        judge = as_text(row.get(columns.judge)) if of_row else column
        score = scores.score(row.get(column))
        if (judge, repeat) not in case.verdicts:
            case.verdicts[judge, repeat] = score
        elif not (columns.annotator and is_new_vote):
            return table.problem(
                f"the case {shown(case.key.case)} is in line {case.line} too",
                line,
                columns.case or columns.cluster,
                "name the column that tells its rows apart: --repeat, --rubric, --judge or --case",
            )
        elif case.verdicts[judge, repeat] != score:
            return _differs("verdict", case, table, line, column)
        has_reasoning = columns.reasoning and column in columns.verdicts
        reasoning = row.get(columns.reasoning) if has_reasoning else None
        if isinstance(reasoning, str) and reasoning and judge not in case.reasonings:
            case.reasonings[judge] = reasoning
    return None


def _differs(what: str, case: TableCase, table: RawTable, line: int, column: str) -> Problem:
    message = f"the {what} of the case {shown(case.key.case)} is another one in line {case.line}"
    return table.problem(message, line, column, f"the rows of a case must have one {what}")
