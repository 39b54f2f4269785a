"""Labels that people gave: of runs, from all the places that a config names (label files, and
scores and fields of the log), and of made cases, which they label blind on a page.

Nothing of a label file is left out in silence: each row is a label, a problem with its line, or
counted, and columns that mean nothing here are named.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import ConfigDict, StringConstraints, TypeAdapter

from pytest_jrh.core import (
    MOST_PROBLEMS,
    Fields,
    InputError,
    Json,
    Problem,
    as_known,
    collecting,
    counted,
    first_problems,
    frozen,
    grouped,
    listed,
    nearest_hint,
    relative_path,
    same_lines,
    shown,
    spreadsheet_hint,
)
from pytest_jrh.core.cases import (
    SETTLED,
    Answer,
    Case,
    Label,
    LabelKey,
    LabelledBy,
    Rubric,
    RunSummary,
    VoteSource,
    majority,
)
from pytest_jrh.core.documents import (
    CANNOT_TELL,
    DamagedError,
    NoLabelError,
    as_seen,
    as_text,
    as_word,
    label_value,
    mapped,
    parsed_lines,
    whole_number,
)
from pytest_jrh.core.files import append_line, atomic_write, exists
from pytest_jrh.core.scales import BARE, NO_SUCH, NO_SUCH_WORDS, NOT_APPLICABLE, Said
from pytest_jrh.sources.answers import place_named
from pytest_jrh.sources.columns import Table, columns_named
from pytest_jrh.sources.source import Aliases, Source, as_pointer, at, several_values, top_field
from pytest_jrh.sources.tables import guarded, read_table
from pytest_jrh.store.ledger import table_bytes
from pytest_jrh.store.records import case_digest, record_line

if TYPE_CHECKING:
    from pytest_jrh.config.schema import LabelSection
    from pytest_jrh.config.suite import Places, Suite

# Labels of runs, from the config to one `Label` for each run and rubric.


@dataclass
class JoinedLabels:
    """The labels of runs; what is wrong with rows, and sentences about what was left out."""

    labels: dict[LabelKey, Label] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def find_labels(
    suite: Suite, source: Source, runs: Sequence[RunSummary], places: Places
) -> JoinedLabels:
    """Find the labels of the runs; `places` names files in messages.

    What is wrong with any label is in the `problems`, and so is it where there is none at all.
    """
    joiner = Joiner(
        runs,
        suite.rubric_by_id,
        suite.untargeted,
        source.aliases(),
        source.unclear_names(),
        ordinal=not suite.scale.is_verdict,
    )
    of_suite = JoinedLabels()
    labels = of_suite.labels
    for index, settings in enumerate(suite.labels):
        config_key = f"labels.{index}.{settings.source}"
        joined = JoinedLabels()
        with collecting(of_suite.problems):
            if settings.path is not None:
                joined = _from_file(settings, Path(settings.path), joiner, places)
            else:
                joined = _from_log(settings, config_key, joiner, source)
        of_suite.problems += joined.problems
        of_suite.notices += joined.notices
        for rubric_id, run_id, epoch in joined.labels:
            if (rubric_id, run_id, epoch) in labels:
                of_suite.problems.append(
                    Problem(
                        f"the case {shown(run_id)} (epoch {epoch}) has two labels for "
                        f"{shown(rubric_id)}, here and in an earlier entry of labels",
                        key=config_key,
                        hint="keep one of the two labels",
                    )
                )
                break
        labels.update(joined.labels)
    if not labels and not of_suite.problems:
        of_suite.problems.append(Problem("no case has a label", key="labels"))
    labelled = len({key[1:] for key in labels})
    # A sample that labelled runs fill leaves the others out by itself.
    is_drawn = 0 < suite.config.cases.sample <= labelled
    if labelled < len(runs) and not (is_drawn or suite.judges_unlabelled):
        text = f"{len(runs) - labelled:,} of {len(runs):,} {suite.config.suite.of} have no label"
        if not any(test.kind.is_made for test in suite.tests):
            text += ", and are not judged"
        of_suite.notices.append(f"{suite.name}: {text}.")
    return of_suite


def _from_file(settings: LabelSection, path: Path, joiner: Joiner, places: Places) -> JoinedLabels:
    file = places.name(path)
    label_file = read_rows(path, file)
    is_raw = label_file.table.results is not None
    if is_raw and not settings.map and not joiner.ordinal:
        _refuse_unclear(file, label_file.rows, BARE)
    # No name of a folder of this machine goes into a record.
    inside = relative_path(path, places.rootdir)
    kept_file = path.name if inside.is_absolute() else inside.as_posix()
    joined = joiner.join(label_file.rows, settings, file, kept_file)
    joined.notices += (f"{file}: {notice}" for notice in label_file.table.notices)
    if any(row.weight for row in label_file.rows):
        joined.notices.append(f"{file}: weights are not used, because each label counts once.")
    if label_file.unused and not is_raw:
        joined.notices.append(f"{file}: columns that are not used: {listed(label_file.unused)}.")
    return joined


# What Inspect's own scorers say of a right and of a wrong answer.
_SCORER_MAP: Mapping[str, int] = {"C": 0, "I": 1}


def _from_log(
    settings: LabelSection, config_key: str, joiner: Joiner, source: Source
) -> JoinedLabels:
    """Labels that the log itself has; runs without the score or the field have none."""
    if settings.scorer:
        name, plural = settings.scorer, "scorers"
    else:
        name, plural = settings.metadata or "", "fields"
    pointer = as_pointer(name)
    keys = {run.key for run in joiner.runs}
    known_names = {}
    rows = []
    for run in source.fields():
        values = run.scores if settings.scorer else run.metadata
        known_names.update(dict.fromkeys(values))
        value = at(values, pointer)
        if any(rubric.scale.orders for rubric in joiner.rubrics.values()):
            value = place_named(value, run.metadata)
        if isinstance(value, dict | list):
            raise InputError(several_values(value, name, config_key))
        # A score that was not given is NaN.
        if run.key in keys and as_text(value):
            run_id, epoch = run.key
            rows.append(LabelRow(run_id, epoch=epoch, label=value))
    if not rows:
        raise InputError(
            f"no case has {shown(name)}; the {plural} of the cases are "
            f"{listed(map(shown, known_names)) or 'none'}",
            key=config_key,
        )
    if not settings.map and not joiner.ordinal:
        _refuse_unclear(config_key, rows)
        if settings.scorer:
            settings = settings.model_copy(update={"map": _SCORER_MAP})
    return joiner.join(rows, settings, f"labels.{settings.source}: {name}")


def _refuse_unclear(key: str, rows: Sequence[LabelRow], bare_words: Collection[str] = ()) -> None:
    """Refuse values whose meaning nobody has said: those of the log, and of another tool its
    numbers and the words that are `bare_words`.

    1 is violated on the scale of verdicts, and right on that of most scorers and rewards.
    """
    values = set()
    for row in rows:
        if not isinstance(row.label, str) or as_word(row.label) in bare_words:
            values.add(as_text(row.label))
    if values:
        raise InputError(
            f"has the values {listed(sorted(values), 5)}, but no map says which of them is "
            "violated",
            key=key,
            hint="set `map`, to map each value to violated, satisfied or null (no label)",
        )


# The label file: its rows, as they are written.


@frozen
class LabelRow:
    """One line of a label file, and its columns in the order in which they are written: who says
    what of which run.
    """

    run_id: str
    rubric_id: str = ""
    epoch: int | None = None
    annotator: str = ""
    label: Any = None
    note: str = ""
    split: str = ""
    digest: str = ""
    """Of the text that was labelled, by the columns of a table; see `TextToLabel`."""
    rubric_digest: str = ""
    """Of what was asked; see `Rubric.digest`. Another wording is another question."""
    weight: str = ""
    """How many cases the label stands for, of those that were drawn by what a judge said."""
    line: int | None = None
    """None for what the log says."""

    @property
    def is_settled(self) -> bool:
        """Whether who gave it saw the votes of others."""
        return self.split.casefold() == SETTLED


_COLUMNS = tuple(field.name for field in fields(LabelRow) if field.name != "line")
# The columns that a label file needs, with the names that they may have.
_NEEDED: Mapping[str, Sequence[str]] = {
    "run_id": ("run_id", "id", "case_id"),
    "label": ("label", "target"),
}


class LabelFile(NamedTuple):
    """The rows of a file, the columns that mean nothing here, and the table that it is read as: of
    another tool's results, nobody has said the scale.
    """

    rows: list[LabelRow]
    unused: list[str]
    table: Table


def read_rows(path: Path, file: str = "") -> LabelFile:
    """Read a label file; raises `InputError` with the lines that cannot be read."""
    table = read_table(path, ("label",), file=file)
    columns = {}
    for role in _COLUMNS:
        columns[role] = column_of(table, role)
        if not columns[role] and role in _NEEDED:
            raise table.error(
                f"has no column {' or '.join(_NEEDED[role])}; the columns are "
                f"{listed(map(shown, table.columns))}"
            )
    problems = []
    rows = []
    cells_of_rows = table.cells(*columns.values())
    labels = table.columns[columns["label"]]
    for line, label, cells in zip(table.lines, labels, cells_of_rows, strict=True):
        texts = dict(zip(columns, cells, strict=True))
        epoch = whole_number(texts["epoch"])
        if texts["epoch"] and epoch is None:
            problems.append(
                Problem(
                    f"got {shown(texts['epoch'])}; must be an integer", table.file, line, "epoch"
                )
            )
        values: Json = {**texts, "epoch": epoch, "label": label}
        rows.append(LabelRow(**values, line=line))
    table.refuse(problems)
    return LabelFile(rows, [name for name in table.columns if name not in columns.values()], table)


def column_of(table: Table, role: str) -> str:
    """The column of a role; empty where there is none."""
    names = _NEEDED.get(role, (role,))
    named_columns = [column for name in names for column in columns_named(table, name)]
    return named_columns[0] if named_columns else ""


def label_fields(suite: Suite, metadata: Fields) -> set[str]:
    """The fields of a run's metadata that hold its label, or what people say of it, where the log
    is the label file, too.
    """
    table = Table("", (), dict.fromkeys(metadata, ()))
    fields = {""}
    # A frozen suite has labels in its config alone.
    for source in (*suite.config.labels, *suite.labels):
        if source.metadata:
            fields.add(top_field(source.metadata))
        elif source.path and Path(source.path).resolve() in {log.resolve() for log in suite.logs}:
            fields |= {column_of(table, role) for role in ("label", "annotator", "note")}
    return fields.intersection(metadata)


# A text that people may have chosen for a label: a number has another meaning on another scale.
_WORD = r"(?=.*[^\W\d_]).{1,40}"
_REPEATED = "lines that repeat another line"
_NO_LABEL = "values that are not labels"
_UNDECIDED = "cases without a label, because no label has more than half of the votes"
_NOT_APPLICABLE = f"{NO_SUCH} counts as a label (if n/a is no label, map n/a to null)"
_UNTARGETED = "lines for rubrics that cases.rubrics leaves out"
_REWORDED = "labels for another wording of their rubric (not used)"
_Votes = dict[str, tuple[int | None, LabelRow]]
"""What each annotator says of one run under one rubric, None being no label, and in which row."""


@dataclass(frozen=True)
class Joiner:
    """Finds the run and the rubric of each row, and makes one label of the votes of annotators.

    `rubrics` are those of the suite by their ids, whose answers are `ordinal` or have names or not,
    `untargeted` the ids in the rubric file that it leaves out; `aliases` are other names of runs,
    such as the uuid of a sample; `unclear` names mean no run by themselves, and each has the names
    of those that it may mean.
    """

    runs: Sequence[RunSummary]
    rubrics: Mapping[str, Rubric]
    untargeted: frozenset[str] = frozenset()
    aliases: Aliases = field(default_factory=dict)
    unclear: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ordinal: bool = False

    @cached_property
    def _epochs(self) -> dict[str, list[int]]:
        return grouped(run.key for run in self.runs)

    @cached_property
    def _as_written(self) -> dict[str, str]:
        """The ids of runs by what a table holds of them, whatever ends a line there."""
        return {same_lines(run.run_id).strip(): run.run_id for run in self.runs}

    def join(
        self, rows: Iterable[LabelRow], settings: LabelSection, file: str, kept_file: str = ""
    ) -> JoinedLabels:
        """Join the rows of one source of labels.

        `file` names it in messages, and `kept_file` in records, which are the same in any folder;
        it is empty for labels of the log.
        """
        joined = JoinedLabels()
        votes_by_key: dict[LabelKey, _Votes] = {}
        left_out = Counter[str]()
        for written in rows:
            row = replace(written, annotator=written.annotator or settings.annotator or "")
            try:
                rubric_id = self._rubric(row.rubric_id or settings.rubric_id or "")
                if rubric_id in self.untargeted:
                    left_out[_UNTARGETED] += 1
                    continue
                if row.rubric_digest not in ("", self.rubrics[rubric_id].digest):
                    left_out[_REWORDED] += 1
                    continue
                run_id, epoch = self.run_of(row, with_hint=len(joined.problems) < MOST_PROBLEMS)
                value = self._value(row, rubric_id, settings.map)
                if value is None:
                    left_out[_NO_LABEL] += 1
                elif value == NOT_APPLICABLE:
                    left_out[_NOT_APPLICABLE] += 1
                votes = votes_by_key.setdefault((rubric_id, run_id, epoch), {})
                if not _add_vote(votes, row, value):
                    left_out[_REPEATED] += 1
            except DamagedError as error:
                joined.problems.append(
                    Problem(str(error), file, row.line, str(error.path[0]), error.hint)
                )
        for key, votes in votes_by_key.items():
            values = [(value, row) for value, row in votes.values() if value is not None]
            said = [value for value, _ in votes.values()]
            if SETTLED in votes:
                said = [votes[SETTLED][0]]
                values.sort(key=lambda vote: not vote[1].is_settled)
            # Who cannot tell has voted, too: a majority of the others alone is none of all.
            if values and None in said and majority(said) is None:
                left_out[_UNDECIDED] += 1
            elif values:
                joined.labels[key] = _label(values, settings.labelled_by, kept_file or file)
        if left_out[_REWORDED] and not votes_by_key:
            joined.problems.append(
                Problem(
                    "each label was given for another wording of its rubric",
                    file,
                    hint="label again; if the rubric means the same, empty the rubric_digest",
                )
            )
        for reason, count in left_out.items():
            if count:
                joined.notices.append(f"{file}: {reason}: {count:,}.")
        # Rows of the log have no lines, so that many of them have one and the same problem.
        joined.problems = first_problems(list(dict.fromkeys(joined.problems)), file)
        return joined

    def _rubric(self, rubric_id: str) -> str:
        if rubric_id in self.rubrics or rubric_id in self.untargeted:
            return rubric_id
        if not rubric_id and len(self.rubrics) == 1:
            return next(iter(self.rubrics))
        rubrics = f"the suite's rubrics are {listed(map(shown, self.rubrics))}"
        if rubric_id:
            raise DamagedError(f"got {shown(rubric_id)}; {rubrics}", path=("rubric_id",))
        raise DamagedError(
            f"names no rubric; {rubrics}",
            "add the column rubric_id to the file, or set rubric_id of these labels in the config",
            ("rubric_id",),
        )

    def run_of(self, row: LabelRow, *, with_hint: bool) -> tuple[str, int]:
        """The run that a row is about; to look for the nearest one takes long."""
        run_id = as_known(row.run_id, self._epochs)
        if row.line and run_id in self.unclear:
            raise DamagedError(
                f"got {shown(run_id)}, which can be several cases",
                f"write the full id of one case, such as {listed(self.unclear[run_id], 5)}",
                ("run_id",),
            )
        if run_id not in self._epochs:
            run_id = self._as_written.get(same_lines(run_id).strip(), run_id)
        if run_id not in self._epochs and run_id in self.aliases:
            run_id, epoch = self.aliases[run_id]
            if epoch is not None:
                return run_id, epoch
        epochs = self._epochs.get(run_id)
        if epochs is None:
            hint = None
            if with_hint:
                hint = spreadsheet_hint(run_id, self._epochs)
                hint = hint or nearest_hint(run_id, self._epochs, "id")
            raise DamagedError(
                f"no case has the id {shown(run_id)}; the ids are "
                f"{listed(map(shown, self._epochs), 5)}",
                hint,
                ("run_id",),
            )
        if row.epoch is None and len(epochs) == 1:
            return run_id, epochs[0]
        if row.epoch in epochs:
            return run_id, row.epoch
        got = "is missing" if row.epoch is None else f"got {row.epoch}"
        raise DamagedError(
            f"{got}; the epochs of the case {shown(row.run_id)} are "
            f"{listed(map(str, sorted(epochs)), 8)}",
            path=("epoch",),
        )

    def _value(self, row: LabelRow, rubric_id: str, mapping: Fields) -> int | None:
        """The label of a row; None where the mapping says that there is none."""
        raw = row.label
        if as_word(raw) == CANNOT_TELL:
            return None
        try:
            if mapping:
                raw = mapped(raw, mapping)
                if raw is None:
                    return None
            return label_value(raw, self.rubrics[rubric_id].scale)
        except NoLabelError as error:
            hint = None
            word = as_seen(raw)
            if as_word(raw) in NO_SUCH_WORDS:
                hint = (
                    "if n/a is an answer, say when n/a is right: `not_applicable: TEXT` in the "
                    f"rubric; if n/a is no label, add `{NO_SUCH}: null` to map"
                )
            elif re.fullmatch(_WORD, word) and not mapping and not self.ordinal:
                meaning = f"map: {{{shown(word)}: 1}} if {shown(word)} means violated, else 0"
                hint = f"map words to labels in the config: {meaning}"
            raise DamagedError(str(error), hint, ("label",)) from None


def _add_vote(votes: _Votes, row: LabelRow, value: int | None) -> bool:
    """Add what an annotator says of a run; False where that only repeats another row."""
    person = SETTLED if row.is_settled else f"by {row.annotator}"
    first_value, first_row = votes.setdefault(person, (value, row))
    if first_value == value:
        return first_row is row
    message = (
        f"the case {shown(row.run_id)} has the label {as_seen(row.label)} here, but "
        f"{as_seen(first_row.label)} in line {first_row.line}"
    )
    hint = "remove one of the two labels"
    if not row.annotator:
        hint += ", or add the column annotator if two people gave the labels"
    raise DamagedError(message, hint, ("label",))


def _label(votes: Iterable[tuple[int, LabelRow]], by: LabelledBy, file: str) -> Label:
    values, rows = zip(*votes, strict=True)
    sources = []
    for row in rows:
        line = f":{row.line}" if row.line else ""
        sources.append(VoteSource(f"{file}{line}", row.annotator, row.note))
    # What was drawn at random is so once it is settled, too.
    splits = [row.split for row in rows[: 1 + rows[0].is_settled]]
    return Label(values, by, " ".join(splits).strip(), tuple(sources))


# Labels of made cases: one type, whether they are kept in `review/labels.jsonl` or in a table.


@frozen
class PersonLabel:
    """What one person says of one made case, as a line of `review/labels.jsonl` has it; `label` is
    None where the person cannot tell.

    `blind`: the label was given before the person saw the case's own label, plan and edits.
    `withdrawn`: this takes back what the person said of the case before.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", defer_build=True)

    case_digest: Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
    reviewer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: Answer | None
    blind: bool = False
    note: str = ""
    withdrawn: bool = False
    time: str = field(default="", compare=False)
    # Who writes a label by hand may name the case for who reads it.
    case_id: str = field(default="", compare=False)


_LINES = TypeAdapter(PersonLabel)


def labels_path(output_dir: Path) -> Path:
    """Where the labels of people about the cases of a test's folder are kept."""
    return output_dir / "review" / "labels.jsonl"


_RESTORE = "restore the line from git, or delete it"


def read_people(suite: Suite) -> tuple[PersonLabel, ...]:
    """The labels of people about a suite's cases, in the order of their files, without those that
    they took back. A last line that a killed process left unfinished is ignored.

    Raises `InputError` with file and line for the first line that is no label.
    """
    paths = [labels_path(test.output_dir) for test in suite.tests]
    if suite.blind_labels is not None:
        paths.insert(0, suite.blind_labels)
    answers: dict[int, Said] = {}
    for rubric in suite.rubrics:
        answers |= zip(rubric.scale.answers, rubric.scale.on_offer, strict=True)
    labels: list[PersonLabel] = []
    for path in dict.fromkeys(paths):
        lines = parsed_lines(
            path, _LINES.validate_json, "this line is not the label of a person", _RESTORE
        )
        for number, label in lines:
            if label.label is not None and label.label not in answers:
                raise InputError(
                    f"is not an answer; must be {listed(map(str, answers.values()))}, or null",
                    path,
                    number,
                    "label",
                )
            if label.withdrawn:
                person = label.case_digest, label.reviewer
                labels = [kept for kept in labels if (kept.case_digest, kept.reviewer) != person]
            labels.append(label)
    return tuple(labels)


WriteLabel = Callable[[Case, PersonLabel], None]
"""Writes down what a person says of a case; raises `OSError` as it comes."""


_MERGED_BY_LINE = "labels.jsonl merge=union\n"
"""So that git keeps the lines of both sides, where two people label in a clone each."""


def write_beside_cases(suites: Iterable[Suite]) -> WriteLabel:
    """What writes the labels of these suites' cases, a line each, into the folder of their test."""
    folders = {}
    for suite in suites:
        for test in suite.tests:
            folders[suite.name, test.name] = test.output_dir

    def write(case: Case, label: PersonLabel) -> None:
        path = labels_path(folders[case.spec.suite, case.spec.test])
        attributes = path.with_name(".gitattributes")
        if not attributes.exists():
            atomic_write(attributes, _MERGED_BY_LINE)
        label = replace(label, time=datetime.now(UTC).isoformat(timespec="seconds"))
        line = _LINES.dump_python(label, exclude_defaults=True)
        if label.label is not None:
            line["label"] = case.scale.said(label.label)
        append_line(path, record_line(line))

    return write


Disputes = Mapping[str, Sequence[LabelRow]]
"""What people say of cases on which they disagree, by the digests of these."""


class LabelTable:
    """The labels of people about `cases` in a CSV file, to which other commands may write at the
    same time. New rows belong to the part `split` of the labels; where that is what is settled, the
    others are no labels here, and else those are none that are settled.
    """

    def __init__(
        self,
        path: Path,
        cases: Iterable[Case],
        split: str,
        weights: Mapping[LabelKey, str] = MappingProxyType({}),
    ) -> None:
        self.path, self._split, self._weights = path, split, weights
        self._settles = split == SETTLED
        self._cases = {case.spec.label_key: case for case in cases}
        self._ids = {run_id for _, run_id, _ in self._cases}
        # What is meant where a row names no rubric.
        rubrics = {rubric for rubric, _, _ in self._cases}
        self._rubric = rubrics.pop() if len(rubrics) == 1 else ""

    def rows(self) -> list[LabelRow]:
        """What the file says now; raises `InputError` for a file that is of something else."""
        if not exists(self.path):
            return []
        label_file = read_rows(self.path)
        if label_file.unused:
            raise InputError(
                "has columns that a file of labels does not have: "
                f"{listed(map(shown, label_file.unused))}",
                self.path,
                1,
                hint="name another file with --out, so that this file is not overwritten",
            )
        return label_file.rows

    def people(self) -> list[PersonLabel]:
        """What the file says of these cases, row by row; each label in it was given blind."""
        labels = []
        for row in self.rows():
            case = self.case_of(row)
            if case is None or row.is_settled != self._settles:
                continue
            label = None
            # A word that is no label is kept as it is, and stands for one who cannot tell.
            with contextlib.suppress(NoLabelError):
                label = label_value(row.label, case.scale)
            labels.append(
                PersonLabel(case_digest(case), row.annotator, label, blind=True, note=row.note)
            )
        return labels

    def disputes(self, file: str) -> tuple[Disputes, Sequence[str]]:
        """What people say of each case on which they disagree, and a sentence where `file`, which
        was labelled, does not have the text of all such cases.

        Raises `InputError` where there is none to be settled.
        """
        rows_by_question = grouped(
            ((self._about(row), row.digest, row.rubric_digest), row)
            for row in self.rows()
            if not row.is_settled
        )
        votes: dict[str, Sequence[LabelRow]] = {}
        lost = []
        for rows in rows_by_question.values():
            if len({as_word(row.label) for row in rows}) > 1:
                case = self.case_of(rows[0])
                if case is None:
                    lost.append(rows[0].run_id)
                else:
                    votes[case_digest(case)] = rows
        gone = (
            f"people disagree on {counted(len(lost), 'case')} ({listed(lost, 5)}) whose text or "
            f"rubric is different in {file}, so the page does not show this"
        )
        if not votes:
            message = gone if lost else f"no case in {file} has labels that differ"
            if not exists(self.path):
                message = "no such file"
            raise InputError(
                message,
                self.path,
                hint="name the labelled table and its labels, with the same options as before",
            )
        return votes, [gone] if lost else []

    def write(self, case: Case, label: PersonLabel) -> None:
        """Put a label in the place of what the same person has said of a case."""
        from filelock import FileLock

        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            split = self._split
            weight = self._weights.get(case.spec.label_key, "")
            rows = []
            for row in self.rows():
                of_row = self.case_of(row)
                # Whoever settles a case again settles it for all.
                is_for_all = self._settles and not label.withdrawn
                is_own = is_for_all or row.annotator == label.reviewer
                if of_row == case:
                    weight = weight or row.weight
                    if is_own and row.is_settled == self._settles:
                        split = row.split
                        continue
                about = self._about(row)
                # Beside rows of a second rubric, one that names no question would be of neither.
                rubric = row.rubric_id if row.rubric_digest else about[0]
                # A table that has grown since has others.
                known = self._weights.get(about, row.weight)
                rows.append(replace(row, rubric_id=rubric, weight=known))
            if not label.withdrawn:
                rows.append(
                    LabelRow(
                        case.spec.run_id,
                        case.spec.rubric_id,
                        case.spec.epoch,
                        label.reviewer,
                        label_word(case, label.label),
                        label.note,
                        split,
                        case.run.metadata["text"].digest,
                        case.rubric.digest,
                        weight,
                    )
                )
            if rows:
                header = ["case_id", *_COLUMNS[1:]]
                if not any(row.weight for row in rows):
                    header.remove("weight")
                lines = [{"case_id": row.run_id, **asdict(row)} for row in rows]
                atomic_write(
                    self.path, table_bytes(header, lines, lambda value: guarded(as_text(value)))
                )
            else:
                self.path.unlink(missing_ok=True)

    def _about(self, row: LabelRow) -> LabelKey:
        epoch = 1 if row.epoch is None else row.epoch
        return row.rubric_id or self._rubric, as_known(row.run_id, self._ids), epoch

    def case_of(self, row: LabelRow) -> Case | None:
        """The case that a row is about. With another text, or asked otherwise, it is another case;
        a row that says neither is about any.
        """
        case = self._cases.get(self._about(row))
        if case is None or row.digest not in ("", case.run.metadata["text"].digest):
            return None
        return case if row.rubric_digest in ("", case.rubric.digest) else None


def label_word(case: Case, label: int | None) -> str:
    """A label of a case as a file and a list have it: a word, or a score of a scale."""
    if label is None:
        return CANNOT_TELL
    scale = case.scale
    return str(scale.said(label)) if scale.is_ordered else scale.word(label)
