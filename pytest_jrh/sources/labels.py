"""The labels of a suite's runs, from all the places that its config names.

From rows to labels: each is put to its run and rubric, and the votes of annotators are joined.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.documents import MISSING, at, listed, pointer_to, printable, shown
from pytest_jrh.core.errors import MOST_PROBLEMS, Problem
from pytest_jrh.core.files import relative_path
from pytest_jrh.core.model import Label, VoteSource
from pytest_jrh.core.text import counted, nearest_hint
from pytest_jrh.sources.label_files import LabelRow, read_rows
from pytest_jrh.sources.tables import (
    NoLabelError,
    as_text,
    first_problems,
    label_value,
    mapped,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.config.places import Places
    from pytest_jrh.config.suite import LabelSettings, Suite
    from pytest_jrh.core.model import LabelKey, LabelledBy, Rubric, RunSummary
    from pytest_jrh.sources.source import Source


_Votes: TypeAlias = dict[str, tuple[int, LabelRow]]
"""What is said of one run under one rubric: labels with their rows, by annotator."""
_LONGEST_WORD = 40
_REPEATED = "lines that repeat another"
_UNTARGETED = "lines of rubrics that cases.rubrics leaves out"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of one source of labels are read.

    `file` names it in messages, `rubric_id` is for rows that name none, and `map` gives labels for
    its own values; empty where it has labels.
    """

    file: str
    rubric_id: str = ""
    map: Mapping[str, Any] = field(default_factory=dict)
    by: LabelledBy = "people"
    ordinal: bool = False
    kept_file: str = ""
    """How records, which are the same in any folder, name the file; empty for labels of the log."""


@dataclass(slots=True)
class JoinedLabels:
    """The labels of runs; what is wrong with rows, and sentences about what was left out."""

    labels: dict[LabelKey, Label] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class Joiner:
    """Puts rows to runs and rubrics.

    `rubrics` are those of the suite, `untargeted` the ids in the rubric file that it leaves out;
    `aliases` are other names of runs, such as the uuid of a sample; `unclear` names may mean one of
    several runs, and each has clear names of them.
    """

    def __init__(
        self,
        runs: Iterable[RunSummary],
        rubrics: Sequence[Rubric],
        untargeted: frozenset[str] = frozenset(),
        aliases: Mapping[str, tuple[str, int | None]] | None = None,
        unclear: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._epochs: dict[str, list[int]] = {}
        for run in runs:
            self._epochs.setdefault(run.run_id, []).append(run.epoch)
        self.some_runs = listed(self._epochs, 5)
        self._rubrics = {rubric.id: rubric for rubric in rubrics}
        self._untargeted = untargeted
        self._aliases = aliases or {}
        self._unclear = unclear or {}

    def join(self, rows: Iterable[LabelRow], reading: Reading) -> JoinedLabels:
        """Join the rows of one source of labels; every row is a label, a problem, or counted in a
        notice.
        """
        joined = JoinedLabels()
        votes: dict[LabelKey, _Votes] = {}
        left_out = dict.fromkeys((_REPEATED, _UNTARGETED), 0)
        no_label = 0
        for row in rows:
            rubric_id = self._rubric(row, reading, joined)
            if rubric_id in self._untargeted:
                left_out[_UNTARGETED] += 1
                continue
            key = self._run(row, reading, joined)
            if rubric_id is None or key is None:
                continue
            value = self._value(row, rubric_id, reading, joined)
            if value is None:
                no_label += 1
                continue
            of_run = votes.setdefault((rubric_id, *key), {})
            if _add(row, value, of_run, reading, joined):
                left_out[_REPEATED] += 1
        joined.labels = {key: _label(of_run, reading) for key, of_run in votes.items()}
        joined.notices += _counts(left_out, reading.file)
        if no_label and not joined.problems:
            joined.notices.append(f"{reading.file}: values that map makes no label: {no_label:,}.")
        joined.problems = first_problems(joined.problems, reading.file)
        return joined

    def _rubric(self, row: LabelRow, reading: Reading, joined: JoinedLabels) -> str | None:
        rubric_id = row.rubric_id or reading.rubric_id
        if rubric_id in self._rubrics or rubric_id in self._untargeted:
            return rubric_id
        if not rubric_id and len(self._rubrics) == 1:
            return next(iter(self._rubrics))
        ids = listed(self._rubrics)
        message, hint = f"got {shown(rubric_id)}; the suite's rubrics are {ids}", None
        if not rubric_id:
            message = f"names no rubric; the suite's rubrics are {ids}"
            hint = "add the column rubric_id, or set rubric_id beside the path of the labels"
        joined.problems.append(Problem(message, reading.file, row.line, "rubric_id", hint))
        return None

    def _run(self, row: LabelRow, reading: Reading, joined: JoinedLabels) -> tuple[str, int] | None:
        if row.run_id in self._unclear:
            message = (
                f"got {shown(row.run_id)}, which several files have, and they do not say which was "
                "begun first"
            )
            clear_names = listed(self._unclear[row.run_id], 5)
            how = f"name the run with its file, one of {clear_names}"
            joined.problems.append(Problem(message, reading.file, row.line, "run_id", how))
            return None
        run_id = row.run_id
        if run_id not in self._epochs and run_id in self._aliases:
            run_id, epoch_of_name = self._aliases[run_id]
            if epoch_of_name is not None:
                return run_id, epoch_of_name
        epochs = self._epochs.get(run_id)
        key, hint = "run_id", None
        if epochs is None:
            # Of a problem that is shown; of others it would take the time for nothing.
            if len(joined.problems) < MOST_PROBLEMS:
                hint = nearest_hint(row.run_id, self._epochs, "id")
            message = (
                f"got {shown(row.run_id)}, and there is no such run; the runs are {self.some_runs}"
            )
        elif row.epoch is None and len(epochs) == 1:
            return run_id, epochs[0]
        elif row.epoch in epochs:
            return run_id, row.epoch
        else:
            key = "epoch"
            epoch = "is missing" if row.epoch is None else f"got {row.epoch}"
            epochs_text = listed([str(epoch) for epoch in sorted(epochs)], 8)
            message = f"{epoch}; the epochs of the run {shown(row.run_id)} are {epochs_text}"
        joined.problems.append(Problem(message, reading.file, row.line, key, hint))
        return None

    def _value(
        self, row: LabelRow, rubric_id: str, reading: Reading, joined: JoinedLabels
    ) -> int | None:
        """The label of a row; None where there is none, with the problem unless `map` says so."""
        scale = self._rubrics[rubric_id].scores if reading.ordinal else ()
        try:
            raw = mapped(row.label, reading.map) if reading.map else row.label
            if reading.map and raw is None:
                return None
            return label_value(raw, scale)
        except NoLabelError as error:
            hint = _about_word(row.label, reading)
            joined.problems.append(Problem(str(error), reading.file, row.line, "label", hint))
            return None


def _counts(left_out: Mapping[str, int], file: str) -> list[str]:
    """How many lines of a file were left out, for each reason."""
    return [f"{file}: {reason}: {number:,}." for reason, number in left_out.items() if number]


def _about_word(raw: object, reading: Reading) -> str | None:
    """How to say what a word that is no label means."""
    is_word = isinstance(raw, str) and raw.strip() and whole_number(raw) is None
    if reading.map or reading.ordinal or not is_word:
        return None
    mapping = f"map: {{{printable(as_text(raw), _LONGEST_WORD)}: 1}}"
    return f"say what its words mean: {mapping} if that is violated, else 0"


def _add(row: LabelRow, value: int, votes: _Votes, reading: Reading, joined: JoinedLabels) -> bool:
    """Add a vote; whether it only repeats another row."""
    vote = votes.get(row.annotator)
    if vote is None:
        votes[row.annotator] = (value, row)
        return False
    if vote[0] == value:
        return True
    message = (
        f"this label ({value}) of the run {shown(row.run_id)} disagrees with line {vote[1].line} "
        f"({vote[0]})"
    )
    hint = "remove one of the two"
    if not row.annotator:
        hint += ", or add the column annotator where they are of two people"
    joined.problems.append(Problem(message, reading.file, row.line, "label", hint))
    return False


def _label(votes: _Votes, reading: Reading) -> Label:
    values = []
    sources = []
    for value, row in votes.values():
        place = f"{reading.kept_file}:{row.line}" if reading.kept_file else reading.file
        values.append(value)
        sources.append(VoteSource(place, row.annotator, row.note))
    split = next(iter(votes.values()))[1].split
    return Label(tuple(values), reading.by, split, tuple(sources))


# What Inspect's own scorers say of a right and of a wrong answer.
SCORER_MAP: Mapping[str, int] = {"C": 0, "I": 1}


def find_labels(
    suite: Suite, source: Source, runs: Sequence[RunSummary], places: Places
) -> JoinedLabels:
    """Find the labels of the runs; `places` names files in messages.

    What is wrong with any label is in the `problems`, and so is it where there is none at all.
    """
    found_labels = JoinedLabels()
    origins: dict[LabelKey, str] = {}
    for settings in suite.labels:
        by_file = settings.path is not None
        aliases = source.aliases() if by_file else {}
        unclear = source.unclear_names() if by_file else {}
        joiner = Joiner(runs, suite.rubrics, suite.untargeted, aliases, unclear)
        if settings.path is not None:
            joined = _from_file(settings, settings.path, suite, joiner, places)
        else:
            joined = _from_log(settings, suite, source, runs, joiner)
        found_labels.problems += joined.problems
        found_labels.notices += joined.notices
        where = places.name(settings.path) if settings.path is not None else settings.key
        for key, label in joined.labels.items():
            if key in origins:
                found_labels.problems.append(_twice(key, where, origins[key], settings))
                break
            origins[key] = where
            found_labels.labels[key] = label
    if not found_labels.labels and not found_labels.problems:
        message = "no run has a label"
        found_labels.problems.append(Problem(message, key=suite.labels[0].key))
    # In the order of the log, whatever the order of the labels.
    found_labels.labels = _in_order(found_labels.labels, suite, runs)
    return found_labels


def _from_file(
    settings: LabelSettings, path: Path, suite: Suite, joiner: Joiner, places: Places
) -> JoinedLabels:
    file = places.name(path)
    read = read_rows(path, file=file)
    inside = relative_path(path, places.rootdir)
    # No name of a folder of this machine goes into a record.
    kept_file = path.name if inside.is_absolute() else inside.as_posix()
    reading = replace(_reading(settings, suite, file), kept_file=kept_file)
    joined = joiner.join(read.rows, reading)
    if read.unused:
        joined.notices.append(f"{file}: columns that are not used: {listed(read.unused)}.")
    return joined


def _from_log(
    settings: LabelSettings,
    suite: Suite,
    source: Source,
    runs: Sequence[RunSummary],
    joiner: Joiner,
) -> JoinedLabels:
    """Labels that the log itself has; runs without the score or the field have none."""
    name = settings.scorer or settings.metadata
    values = _values(settings, source)
    keys = {(run.run_id, run.epoch) for run in runs}
    rows = [
        LabelRow(run_id, value, epoch=epoch)
        for (run_id, epoch), value in values.items()
        if (run_id, epoch) in keys and value is not None
    ]
    if not rows:
        return JoinedLabels(problems=[_nothing_there(settings, source)])
    if problem := _not_a_label(settings, suite, rows):
        return JoinedLabels(problems=[problem])
    joined = joiner.join(rows, _reading(settings, suite, f"{settings.key}: {name}"))
    section = settings.key.rpartition(".")[0]
    of_config = [
        Problem(one.message, key=f"{section}.map", hint=one.hint) for one in joined.problems
    ]
    joined.problems = list(dict.fromkeys(of_config))
    if without := len(keys) - len(rows):
        noun = "score of" if settings.scorer else "field"
        joined.notices.append(f"{counted(without, 'run')} without the {noun} {name}: no label.")
    return joined


def _values(settings: LabelSettings, source: Source) -> dict[tuple[str, int], object]:
    """What the log has of each run; None where it has nothing."""
    if settings.scorer:
        name, values = settings.scorer, source.scores()
    else:
        name = settings.metadata
        values = source.metadata()
    pointer = name if name.startswith("/") else pointer_to(name)
    labels: dict[tuple[str, int], object] = {}
    for key, value in values:
        label = at(value, pointer)
        labels[key] = None if label is MISSING else label
    return labels


def _reading(settings: LabelSettings, suite: Suite, file: str) -> Reading:
    mapping = settings.map or (SCORER_MAP if settings.scorer and suite.mode == "binary" else {})
    return Reading(
        file=file,
        rubric_id=settings.rubric_id,
        map=mapping,
        by=settings.by,
        ordinal=suite.mode == "ordinal",
    )


def _nothing_there(settings: LabelSettings, source: Source) -> Problem:
    """No run has the score, or the field: say what there is."""
    name = settings.scorer or settings.metadata
    names: dict[str, None] = {}
    for _, of_run in source.scores() if settings.scorer else source.metadata():
        names.update(dict.fromkeys(of_run))
    what = "scorers" if settings.scorer else "fields"
    there = f"the {what} are {listed(names)}" if names else f"no run has {what}"
    return Problem(f"got {shown(name)}, which no run has; {there}", key=settings.key)


def _not_a_label(settings: LabelSettings, suite: Suite, rows: Sequence[LabelRow]) -> Problem | None:
    """Refuse values of the log of which nobody has said what they mean.

    1 is violated on the scale of verdicts, and right on that of most scorers and rewards.
    """
    if settings.map or suite.mode == "ordinal":
        return None
    odd = [row.label for row in rows if not isinstance(row.label, str)]
    if not odd:
        return None
    values = sorted({as_text(value) for value in odd})
    hint = (
        f"say which are which: map: {{{values[0]}: satisfied"
        + (f", {values[1]}: violated" if len(values) > 1 else "")
        + "}, or the other way round"
    )
    message = f"has the values {listed(values, 5)}, and no map says which of them is violated"
    return Problem(message, key=settings.key, hint=hint)


def _twice(key: LabelKey, where: str, first_source: str, settings: LabelSettings) -> Problem:
    rubric_id, run_id, epoch = key
    message = (
        f"the run {shown(run_id)} (epoch {epoch}) has a label under {shown(rubric_id)} in {where} "
        f"and in {first_source}"
    )
    return Problem(message, key=settings.key, hint="keep one of them")


def _in_order(
    labels: Mapping[LabelKey, Label], suite: Suite, runs: Sequence[RunSummary]
) -> dict[LabelKey, Label]:
    ordered = ((rubric.id, run.run_id, run.epoch) for rubric in suite.rubrics for run in runs)
    return {key: labels[key] for key in ordered if key in labels}
