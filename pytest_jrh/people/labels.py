"""The labels of a suite's runs, from all the places that its config names: label files (CSV or JSON
lines), and scores and fields of the log. The votes of annotators are joined.

Nothing is left out in silence: each row is a label, a problem with its line, or counted, and
columns that mean nothing here are named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pytest_jrh.config.places import Places
from pytest_jrh.config.schema import LabelSection
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import frozen
from pytest_jrh.core.documents import DamagedError, listed, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.ids import question_digest
from pytest_jrh.core.runs import Label, LabelKey, LabelledBy, Rubric, RunSummary, VoteSource
from pytest_jrh.core.text import counted, nearest_hint, same_lines
from pytest_jrh.sources import tables
from pytest_jrh.sources.source import MISSING, Source, as_pointer, at, pointer_to
from pytest_jrh.sources.tables import CANNOT_TELL, NoLabelError
from pytest_jrh.stats.intervals import grouped

# The columns that a label file needs, with the names that they may have.
_NEEDED: Mapping[str, Sequence[str]] = {
    "run_id": ("run_id", "id", "case_id"),
    "label": ("label", "target"),
}
# What Inspect's own scorers say of a right and of a wrong answer.
_SCORER_MAP: Mapping[str, int] = {"C": 0, "I": 1}
# A text that people may have chosen for a label: a number has another meaning on another scale.
_WORD = re.compile(r"(?=.*[^\W\d_]).{1,40}")
_REPEATED = "lines that repeat another"
_NO_LABEL = "values that are no label"
_UNDECIDED = "runs without a label, as at most half of all who voted give one label"
_UNTARGETED = "lines of rubrics that cases.rubrics leaves out"
_REWORDED = "labels of another wording of their rubric, which are not used"


@frozen
class LabelRow:
    """One line: who says what of which run, and where it stands."""

    run_id: str
    label: Any
    rubric_id: str = ""
    epoch: int | None = None
    annotator: str = ""
    split: str = ""
    note: str = ""
    digest: str = ""
    """Of the text that was labelled, by the columns of a table; see `verdicts.text_digests`."""
    rubric_digest: str = ""
    """Of what was asked; see `question_digest`. Another wording is another question."""
    line: int | None = None
    """None for what the log says."""


_COLUMNS = tuple(field.name for field in fields(LabelRow) if field.name != "line")


class LabelFile(NamedTuple):
    """The rows of a file, the columns that mean nothing here, and sentences about what is left out.

    `is_raw` says that labels are another tool's scores, whose scale nobody has said.
    """

    rows: list[LabelRow]
    unused: list[str]
    notices: tuple[str, ...] = ()
    is_raw: bool = False


def read_rows(path: Path, file: str) -> LabelFile:
    """Read a label file; raises `InputError` with the lines that cannot be read."""
    table = tables.with_rows(tables.read_table(path, file), (), ("label",))
    columns: dict[str, str] = {}
    problems = []
    for role in _COLUMNS:
        names = _NEEDED.get(role, (role,))
        there = [column for name in names for column in table.named(name)]
        columns[role] = there[0] if there else ""
        if not there and role in _NEEDED:
            message = f"has no column {' or '.join(names)}; its columns are {listed(table.columns)}"
            problems.append(table.problem(message, 1))
    if problems:
        raise InputError(problems)
    rows = []
    for row, (line, texts) in enumerate(table.rows(columns)):
        epoch = tables.whole_number(texts["epoch"])
        if texts["epoch"] and epoch is None:
            message = f"got {shown(texts['epoch'])}; must be an integer"
            problems.append(table.problem(message, line, "epoch"))
        values = {**texts, "epoch": epoch, "label": table.columns[columns["label"]][row]}
        rows.append(LabelRow(**values, line=line))
    if problems:
        raise InputError(tables.first_problems(problems, file))
    is_raw = table.results is not None
    unused = [name for name in table.columns if not is_raw and name not in columns.values()]
    return LabelFile(rows, unused, table.notices, is_raw)


@dataclass(slots=True)
class JoinedLabels:
    """The labels of runs; what is wrong with rows, and sentences about what was left out."""

    labels: dict[LabelKey, Label] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Joiner:
    """Puts rows to runs and rubrics.

    `rubrics` are those of the suite, which is `ordinal` or not, `untargeted` the ids in the rubric
    file that it leaves out; `aliases` are other names of runs, such as the uuid of a sample;
    `unclear` names mean no run by themselves, and each has the names of those that it may mean.
    """

    runs: Sequence[RunSummary]
    rubrics: Sequence[Rubric]
    untargeted: frozenset[str] = frozenset()
    aliases: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    unclear: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ordinal: bool = False

    @cached_property
    def _epochs(self) -> dict[str, list[int]]:
        return grouped((run.run_id, run.epoch) for run in self.runs)

    @cached_property
    def _as_written(self) -> dict[str, str]:
        """The ids of runs by what a table holds of them, whatever ends a line there."""
        return {_as_written(run.run_id): run.run_id for run in self.runs}

    @cached_property
    def _rubrics(self) -> dict[str, Rubric]:
        return {rubric.id: rubric for rubric in self.rubrics}

    def join(
        self, rows: Iterable[LabelRow], settings: LabelSection, file: str, kept_file: str = ""
    ) -> JoinedLabels:
        """Join the rows of one source of labels.

        `file` names it in messages, and `kept_file` in records, which are the same in any folder;
        it is empty for labels of the log.
        """
        joined = JoinedLabels()
        votes: dict[LabelKey, dict[str, tuple[int | None, LabelRow]]] = {}
        left_out: Counter[str] = Counter()
        for row in rows:
            try:
                rubric_id = self._rubric(row.rubric_id or settings.rubric_id or "")
                if rubric_id in self.untargeted:
                    left_out[_UNTARGETED] += 1
                    continue
                if row.rubric_digest not in ("", question_digest(self._rubrics[rubric_id])):
                    left_out[_REWORDED] += 1
                    continue
                key = self._run(row, with_hint=len(joined.problems) < MOST_PROBLEMS)
                value = self._value(row, rubric_id, settings.map)
                left_out[_NO_LABEL] += value is None
                if not _add_vote(votes.setdefault((rubric_id, *key), {}), row, value):
                    left_out[_REPEATED] += 1
            except DamagedError as error:
                problem = Problem(str(error), file, row.line, str(error.path[0]), error.hint)
                joined.problems.append(problem)
        for label_key, of_run in votes.items():
            given = [(value, row) for value, row in of_run.values() if value is not None]
            counts = Counter(value for value, _ in given)
            if counts and len(given) < len(of_run) and 2 * max(counts.values()) <= len(of_run):
                left_out[_UNDECIDED] += 1
            elif given:
                label = _label(given, settings.labelled_by, kept_file or file)
                joined.labels[label_key] = label
        if left_out[_REWORDED] and not votes:
            message = "each label is of another wording of its rubric"
            hint = "label again, or where the meaning is the same, empty its column rubric_digest"
            joined.problems.append(Problem(message, file, hint=hint))
        for reason, count in left_out.items():
            if count:
                joined.notices.append(f"{file}: {reason}: {count:,}.")
        joined.problems = tables.first_problems(joined.problems, file)
        return joined

    def _rubric(self, rubric_id: str) -> str:
        if rubric_id in self._rubrics or rubric_id in self.untargeted:
            return rubric_id
        if not rubric_id and len(self._rubrics) == 1:
            return next(iter(self._rubrics))
        rubrics = f"the suite's rubrics are {listed(self._rubrics)}"
        if rubric_id:
            raise DamagedError(f"got {shown(rubric_id)}; {rubrics}", path=("rubric_id",))
        hint = "add the column rubric_id, or set rubric_id beside the path of the labels"
        raise DamagedError(f"names no rubric; {rubrics}", hint, ("rubric_id",))

    def _run(self, row: LabelRow, *, with_hint: bool) -> tuple[str, int]:
        """The run that a row is about; to look for the nearest one takes long."""
        run_id = row.run_id
        if row.line and run_id in self.unclear:
            message = f"got {shown(run_id)}, which is not the name of one run"
            names = listed(self.unclear[run_id], 5)
            raise DamagedError(message, f"name the run that is meant: {names}", ("run_id",))
        if run_id not in self._epochs:
            run_id = self._as_written.get(_as_written(run_id), run_id)
        if run_id not in self._epochs and run_id in self.aliases:
            run_id, epoch = self.aliases[run_id]
            if epoch is not None:
                return run_id, epoch
        epochs = self._epochs.get(run_id)
        if epochs is None:
            hint = nearest_hint(run_id, self._epochs, "id") if with_hint else None
            message = f"got {shown(run_id)}, and there is no such run"
            message += f"; the runs are {listed(self._epochs, 5)}"
            raise DamagedError(message, hint, ("run_id",))
        if row.epoch is None and len(epochs) == 1:
            return run_id, epochs[0]
        if row.epoch in epochs:
            return run_id, row.epoch
        got = "is missing" if row.epoch is None else f"got {row.epoch}"
        names = listed(map(str, sorted(epochs)), 8)
        message = f"{got}; the epochs of the run {shown(row.run_id)} are {names}"
        raise DamagedError(message, path=("epoch",))

    def _value(self, row: LabelRow, rubric_id: str, mapping: Mapping[str, Any]) -> int | None:
        """The label of a row; None where the mapping says that there is none."""
        raw, hint = row.label, None
        if tables.as_word(raw) == CANNOT_TELL:
            return None
        try:
            if mapping:
                raw = tables.mapped(raw, mapping)
                if raw is None:
                    return None
            return tables.label_value(raw, self._rubrics[rubric_id].scale)
        except NoLabelError as error:
            word = tables.as_seen(raw)
            if _WORD.fullmatch(word) and not mapping and not self.ordinal:
                meaning = f"{{{shown(word)}: 1}} if that is violated, else 0"
                hint = f"say what its words mean: map: {meaning}"
            raise DamagedError(str(error), hint, ("label",)) from None


def _as_written(run_id: str) -> str:
    return same_lines(tables.as_text(run_id))


def _add_vote(
    votes: dict[str, tuple[int | None, LabelRow]], row: LabelRow, value: int | None
) -> bool:
    """Add what an annotator says of a run; False where that only repeats another row."""
    first_value, first_row = votes.setdefault(row.annotator, (value, row))
    if first_value == value:
        return first_row is row
    message = (
        f"this label ({value}) of the run {shown(row.run_id)} disagrees with line "
        f"{first_row.line} ({first_value})"
    )
    hint = "remove one of the two"
    if not row.annotator:
        hint += ", or add the column annotator where they are of two people"
    raise DamagedError(message, hint, ("label",))


def _label(votes: Iterable[tuple[int, LabelRow]], by: LabelledBy, file: str) -> Label:
    values, rows = zip(*votes, strict=True)
    sources = []
    for row in rows:
        place = f"{file}:{row.line}" if row.line else file
        sources.append(VoteSource(place, row.annotator, row.note))
    return Label(values, by, rows[0].split, tuple(sources))


def find_labels(
    suite: Suite, source: Source, runs: Sequence[RunSummary], places: Places
) -> JoinedLabels:
    """Find the labels of the runs; `places` names files in messages.

    What is wrong with any label is in the `problems`, and so is it where there is none at all.
    """
    joiner = Joiner(
        runs,
        suite.rubrics,
        suite.untargeted,
        source.aliases(),
        source.unclear_names(),
        ordinal=suite.mode == "ordinal",
    )
    found = JoinedLabels()
    labels: dict[LabelKey, Label] = {}
    for index, settings in enumerate(suite.labels):
        place = f"labels.{index}.{settings.source}"
        if settings.path is not None:
            joined = _from_file(settings, Path(settings.path), joiner, places)
        else:
            joined = _from_log(settings, place, joiner, source)
        found.problems += joined.problems
        found.notices += joined.notices
        for rubric_id, run_id, epoch in joined.labels:
            if (rubric_id, run_id, epoch) in labels:
                message = (
                    f"the run {shown(run_id)} (epoch {epoch}) has a label under "
                    f"{shown(rubric_id)} here and in a place before"
                )
                found.problems.append(Problem(message, key=place, hint="keep one of them"))
                break
        labels |= joined.labels
    if not labels and not found.problems:
        place = f"labels.0.{suite.labels[0].source}"
        found.problems.append(Problem("no run has a label", key=place))
    # In the order of the log, whatever the order of the labels.
    for rubric in suite.rubrics:
        for run in runs:
            key = (rubric.id, run.run_id, run.epoch)
            if key in labels:
                found.labels[key] = labels[key]
    return found


def _from_file(settings: LabelSection, path: Path, joiner: Joiner, places: Places) -> JoinedLabels:
    file = places.name(path)
    read = read_rows(path, file)
    is_unclear = read.is_raw and not settings.map and not joiner.ordinal
    if is_unclear and (problem := _unclear(file, read.rows, tables.BARE)):
        return JoinedLabels(problems=[problem])
    inside = relative_path(path, places.rootdir)
    # No name of a folder of this machine goes into a record.
    kept_file = path.name if inside.is_absolute() else inside.as_posix()
    joined = joiner.join(read.rows, settings, file, kept_file)
    joined.notices += (f"{file}: {notice}" for notice in read.notices)
    if read.unused:
        joined.notices.append(f"{file}: columns that are not used: {listed(read.unused)}.")
    return joined


def _from_log(settings: LabelSection, place: str, joiner: Joiner, source: Source) -> JoinedLabels:
    """Labels that the log itself has; runs without the score or the field have none."""
    name = settings.scorer or settings.metadata or ""
    pointer = as_pointer(name)
    keys = {(run.run_id, run.epoch) for run in joiner.runs}
    names: dict[str, None] = {}
    rows = []
    for run in source.fields():
        values = run.scores if settings.scorer else run.metadata
        value = at(values, pointer)
        names.update(dict.fromkeys(values))
        if isinstance(value, dict | list):
            return JoinedLabels(problems=[_several_values(value, name, settings.source, place)])
        # A score that was not given is NaN.
        if run.key in keys and value is not MISSING and tables.as_text(value):
            run_id, epoch = run.key
            rows.append(LabelRow(run_id, value, epoch=epoch))
    if not rows:
        what = "scorers" if settings.scorer else "fields"
        there = f"the {what} are {listed(names)}" if names else f"no run has {what}"
        message = f"got {shown(name)}, which no run has; {there}"
        return JoinedLabels(problems=[Problem(message, key=place)])
    if not settings.map and not joiner.ordinal:
        if problem := _unclear(place, rows):
            return JoinedLabels(problems=[problem])
        if settings.scorer:
            settings = settings.model_copy(update={"map": _SCORER_MAP})
    joined = joiner.join(rows, settings, f"{place}: {name}")
    joined.problems = list(dict.fromkeys(joined.problems))
    if without := len(keys) - len(rows):
        noun = "score of" if settings.scorer else "field"
        joined.notices.append(f"{counted(without, 'run')} without the {noun} {name}: no label.")
    return joined


def _several_values(value: Any, name: str, source: str, place: str) -> Problem:
    """Refuse a score or a field that is several; a label is one of them."""
    keys = [*value, "NAME"] if isinstance(value, dict) else [0]
    pointer = shown(as_pointer(name) + pointer_to(str(keys[0])))
    message = f"{shown(name)} has several values, and a label is one of them"
    hint = f"name it by a pointer, such as labels: {{{source}: {pointer}}}"
    return Problem(message, key=place, hint=hint)


def _unclear(place: str, rows: Sequence[LabelRow], bare: Collection[str] = ()) -> Problem | None:
    """Refuse values whose meaning nobody has said: those of the log, and words of another tool that
    are `bare`.

    1 is violated on the scale of verdicts, and right on that of most scorers and rewards.
    """
    labels = [row.label for row in rows]
    unclear = [one for one in labels if not isinstance(one, str) or tables.as_word(one) in bare]
    values = sorted({*map(tables.as_text, unclear)})
    if not values:
        return None
    message = f"has the values {listed(values, 5)}, and no map says which of them is violated"
    hint = "say of each by `map` whether it is violated, satisfied or (null) no label"
    return Problem(message, key=place, hint=hint)
