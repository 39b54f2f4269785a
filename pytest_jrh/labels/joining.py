"""From rows to labels: each is put to its run and rubric, and the votes of annotators are joined
(rule N1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.documents.problems import listed, shown
from pytest_jrh.errors import Problem
from pytest_jrh.labels.values import NoLabelError, label_value, mapped
from pytest_jrh.models import Label
from pytest_jrh.text import counted, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_jrh.labels.rows import LabelRow
    from pytest_jrh.models import LabelledBy, Rubric, RunSummary

LabelKey: TypeAlias = "tuple[str, str, int]"
"""Rubric id, run id and epoch."""
_MOST_PROBLEMS = 10
_REPEATED = "lines that repeat another"
_UNTARGETED = "lines of rubrics that target_rubric_ids leaves out"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of one source of labels are read.

    `file` names it in messages, `rubric_id` is for rows that name none, and `map` gives labels for
    its own values; empty where it has labels. With `split`, rows of another split are left out.
    """

    file: str
    rubric_id: str = ""
    map: Mapping[str, Any] = field(default_factory=dict)
    by: LabelledBy = "people"
    split: str = ""
    ordinal: bool = False


@dataclass(slots=True)
class JoinedLabels:
    """The labels of runs; what is wrong with rows, and sentences about what was left out."""

    labels: dict[LabelKey, Label] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Votes:
    """What is said of one run under one rubric: the rows by annotator, with their labels."""

    by_annotator: dict[str, tuple[int, LabelRow]] = field(default_factory=dict)


class Joiner:
    """Puts rows to runs and rubrics.

    `rubrics` are those of the suite, `untargeted` the ids in the rubric file that it leaves out;
    `aliases` are other names of runs, such as the uuid of a sample.
    """

    def __init__(
        self,
        runs: Iterable[RunSummary],
        rubrics: Sequence[Rubric],
        untargeted: frozenset[str] = frozenset(),
        aliases: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        self._epochs: dict[str, list[int]] = {}
        self._former: dict[str, str] = {}
        for run in runs:
            self._epochs.setdefault(run.run_id, []).append(run.epoch)
            if run.former_id is not None:
                self._former[run.former_id] = run.run_id
        self._some_runs = listed(self._epochs, 5)
        self._rubrics = {rubric.id: rubric for rubric in rubrics}
        self._untargeted = untargeted
        self._aliases = aliases or {}

    def join(self, rows: Iterable[LabelRow], reading: Reading) -> JoinedLabels:
        """Join the rows of one source of labels; every row is a label, a problem, or counted in a
        notice.
        """
        joined = JoinedLabels()
        votes: dict[LabelKey, _Votes] = {}
        left_out = dict.fromkeys((_REPEATED, _UNTARGETED), 0)
        others = no_label = 0
        for row in rows:
            if reading.split and row.split != reading.split:
                others += 1
                continue
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
            own = votes.setdefault((rubric_id, *key), _Votes())
            if _add(row, value, own, reading, joined):
                left_out[_REPEATED] += 1
        joined.labels = {key: _label(own, reading) for key, own in votes.items()}
        joined.notices += [
            f"{reading.file}: {what}: {number:,}." for what, number in left_out.items() if number
        ]
        if others:
            joined.notices.append(
                f"{reading.file}: lines of other splits than {reading.split}: {others:,}."
            )
        if no_label and not joined.problems:
            joined.notices.append(f"{reading.file}: values that map makes no label: {no_label:,}.")
        more = len(joined.problems) - _MOST_PROBLEMS
        if more > 0:
            rest = Problem(f"and {counted(more, 'more problem')} in the labels", reading.file)
            joined.problems = [*joined.problems[:_MOST_PROBLEMS], rest]
        return joined

    def _rubric(self, row: LabelRow, reading: Reading, joined: JoinedLabels) -> str | None:
        wanted = row.rubric_id or reading.rubric_id
        if wanted in self._rubrics or wanted in self._untargeted:
            return wanted
        if not wanted and len(self._rubrics) == 1:
            return next(iter(self._rubrics))
        ids = listed(self._rubrics)
        hint: str | None
        if not wanted:
            message = f"names no rubric; the suite's rubrics are {ids}"
            hint = "add the column rubric_id, or set rubric_id beside the path of the labels"
        else:
            message = f"got {shown(wanted)}; the suite's rubrics are {ids}"
            hint = _nearest_id(wanted, self._rubrics, joined)
        joined.problems.append(Problem(message, reading.file, row.line, "rubric_id", hint))
        return None

    def _run(self, row: LabelRow, reading: Reading, joined: JoinedLabels) -> tuple[str, int] | None:
        if row.run_id not in self._epochs and row.run_id in self._aliases:
            return self._aliases[row.run_id]
        run_id = row.run_id
        if run_id not in self._epochs:
            run_id = self._former.get(run_id, run_id)
        epochs = self._epochs.get(run_id)
        key, hint = "run_id", None
        if epochs is None:
            hint = _nearest_id(row.run_id, self._epochs, joined)
            message = (
                f"got {shown(row.run_id)}, and there is no such run; the runs are {self._some_runs}"
            )
        elif row.epoch is None and len(epochs) == 1:
            return run_id, epochs[0]
        elif row.epoch in epochs:
            return run_id, row.epoch
        else:
            key = "epoch"
            given = "is missing" if row.epoch is None else f"got {row.epoch}"
            there = listed([str(epoch) for epoch in sorted(epochs)], 8)
            message = f"{given}; the epochs of the run {shown(row.run_id)} are {there}"
        joined.problems.append(Problem(message, reading.file, row.line, key, hint))
        return None

    def _value(
        self, row: LabelRow, rubric_id: str, reading: Reading, joined: JoinedLabels
    ) -> int | None:
        """The label of a row; None where there is none, with the problem unless `map` says so."""
        levels = self._rubrics[rubric_id].score_levels if reading.ordinal else ()
        try:
            raw = mapped(row.label, reading.map) if reading.map else row.label
            if reading.map and raw is None:
                return None
            return label_value(raw, [level.score for level in levels])
        except NoLabelError as error:
            hint = error.hint if len(joined.problems) < _MOST_PROBLEMS else None
            joined.problems.append(Problem(str(error), reading.file, row.line, "label", hint))
            return None


def _nearest_id(wanted: str, ids: Iterable[str], joined: JoinedLabels) -> str | None:
    """The hint of a problem that is shown; of others it would take the time for nothing."""
    close = nearest(wanted, ids) if len(joined.problems) < _MOST_PROBLEMS else None
    return f"{close} is the nearest id" if close else None


def _add(row: LabelRow, value: int, votes: _Votes, reading: Reading, joined: JoinedLabels) -> bool:
    """Add a vote; whether it only repeats another row."""
    known = votes.by_annotator.get(row.annotator)
    first = known or next(iter(votes.by_annotator.values()), None)
    if first is not None and first[1].split != row.split:
        message = f"the split differs from line {first[1].line} about the same run"
        joined.problems.append(Problem(message, reading.file, row.line, "split"))
        return False
    if known is None:
        votes.by_annotator[row.annotator] = (value, row)
        return False
    if known[0] == value:
        return True
    message = (
        f"this label ({value}) of the run {shown(row.run_id)} disagrees with line {known[1].line} "
        f"({known[0]})"
    )
    hint = "remove one of the two"
    if not row.annotator:
        hint += ", or add the column annotator where they are of two people"
    joined.problems.append(Problem(message, reading.file, row.line, "label", hint))
    return False


def _label(votes: _Votes, reading: Reading) -> Label:
    given = list(votes.by_annotator.values())
    values = tuple(value for value, _ in given)
    return Label.of(values, reading.by, given[0][1].split)
