"""The verdicts of a session, or of a table, as one frozen table: a row for each case under each
judge, and a column for each thing that figures ask of it.

A figure is a function of such a table, and a set of cases, such as a rubric, a class or a probe, is
some of its rows (`where`, `grouped`). Texts stay with the results, which `row` finds again.

Most columns hold few different values. What depends on these alone, such as the majority of
repeats, is computed once for each of them in plain Python (`Coded.each`) and looked up for all
rows; so is what depends on several columns (`kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pytest_jrh.core.cases import JUDGED, UNSCORED, Outcome, Slices
from pytest_jrh.core.ids import generation_id, made_case_id
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import NOT_APPLICABLE, CaseClass, RubricScales, Scale

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[Any] | Sequence[int] | slice
"""Which rows are meant: their numbers, a mark for each row, or a part of all."""

_Name = TypeVar("_Name", bound=Hashable)

# The columns whose values are nearly all different, or marks.
_ARRAYS: Mapping[str, type] = {"row": np.int32, "ids": object}
NOT_COMPARED: Mapping[str, Any] = {"before": None, "apart": "", "same_judge": False}
"""What the columns of the baseline have where there is none."""
# Scores beyond this are of no scale, and are counted as this.
_LARGEST_SCORE = 10**12


@dataclass(frozen=True, eq=False)
class Coded(Generic[_Name]):
    """A column with few different values: `names` are these, in order of appearance, and `codes`
    say for each row which one it has.
    """

    names: Sequence[_Name]
    codes: Ints

    @classmethod
    def of(cls, values: Iterable[_Name]) -> Coded[_Name]:
        """The column of these values."""
        known: dict[_Name, int] = {}
        codes = [known.setdefault(value, len(known)) for value in values]
        return cls([*known], np.array(codes, np.int32))

    def __getitem__(self, rows: Rows) -> Coded[_Name]:
        return Coded(self.names, self.codes[rows])

    def each(self, function: Callable[[_Name], Any], kind: type = bool) -> npt.NDArray[Any]:
        """What a function gives for each row, which is computed for each value once."""
        return np.array([function(name) for name in self.names], kind)[self.codes]

    def equals(self, name: object) -> Bools:
        """Which rows have this value."""
        return self.each(lambda other: other == name)

    @property
    def values(self) -> list[_Name]:
        """The value of each row."""
        return [self.names[code] for code in self.codes]

    @property
    def sizes(self) -> Ints:
        """How many rows have the value of each row."""
        return np.bincount(self.codes)[self.codes]

    def present(self) -> list[_Name]:
        """The different values that rows have, in order of appearance."""
        _, first = distinct(self.codes)
        return self[first].values


@dataclass(frozen=True, eq=False)
class Verdicts:
    """A row for each case under each judge, in the order of the session.

    `row` is the number of a row's result in the session. `made` is the id of the made case, which
    judges share, and `cluster` is the same for cases that are not independent. `run` is the id of
    a run with its epoch.
    `answers` are the scores of all repeats, of a case with a verdict, and `score` the most frequent
    one; `base` are those of the case that a probe changed, which is called `base_case`. `before`
    are the answers in the baseline, None where the case is not compared, and `apart` says why;
    empty, it is compared, or has nothing to compare. `same_judge` is whether the judge is that of
    the baseline. `probabilities` are those of all repeats. `slices` are those that the case is in.
    `weight` is the stratum of a label that stands for several cases, None of others. `systems` are
    those that gave the two answers of a pair, empty where they are not known.
    """

    ids: npt.NDArray[np.object_]
    row: Ints
    suite: Coded[str]
    judge: Coded[str]
    rubric: Coded[str]
    test: Coded[str]
    variant: Coded[str]
    made: Coded[str]
    cluster: Ints
    run: Coded[tuple[str, int]]
    scale: Coded[Scale]
    label: Coded[int | None]
    score: Coded[int | None]
    answers: Coded[tuple[int, ...]]
    outcome: Coded[Outcome]
    base: Coded[tuple[int, ...]]
    base_case: Coded[str]
    before: Coded[tuple[int, ...] | None]
    apart: Coded[str]
    same_judge: Coded[bool]
    probabilities: Coded[tuple[float, ...]]
    slices: Coded[Slices]
    weight: Coded[Any]
    systems: Coded[tuple[str, ...]]

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Verdicts:
        """The table of rows, each with the value of every column but the row's number."""
        values: dict[str, list[Any]] = {}
        for field in fields(cls):
            values[field.name] = []
        for number, row in enumerate(rows):
            values["row"].append(number)
            for name, value in row.items():
                values[name].append(value)
        columns: dict[str, Any] = {}
        for name, of_rows in values.items():
            if name == "cluster":
                columns[name] = numbered(of_rows)
            elif name in _ARRAYS:
                columns[name] = np.array(of_rows, _ARRAYS[name])
            else:
                columns[name] = Coded.of(of_rows)
        return cls(**columns)

    @classmethod
    def of(cls, results: Iterable[CaseResult], scales: RubricScales | None = None) -> Verdicts:
        """The table of results, before they are compared; with `scales` the levels are known that
        are on offer under their rubrics.
        """
        return cls.of_rows(_rows_of(results, scales or {}))

    def __len__(self) -> int:
        return len(self.row)

    def where(self, rows: Rows) -> Verdicts:
        """Some of the rows."""
        columns = {field.name: getattr(self, field.name)[rows] for field in fields(self)}
        return replace(self, **columns)

    def shared(self, others: Verdicts) -> Verdicts:
        """The rows that are among the others, too."""
        return self.where(np.isin(self.row, others.row))

    def in_order(self, *keys: npt.ArrayLike) -> Verdicts:
        """The rows in ascending order of these keys, of which the first counts first."""
        return self.where(np.lexsort([np.asarray(key) for key in reversed(keys)]))

    def kinds(self, *columns: str) -> Coded[Any]:
        """The different values of several columns together, and which of them each row has."""
        of_rows = [getattr(self, column) for column in columns]
        codes, first = distinct(*(column.codes for column in of_rows))
        names = zip(*(column[first].values for column in of_rows), strict=True)
        return Coded([*names], codes)

    def grouped(self, *columns: str) -> dict[Any, Verdicts]:
        """The rows by their value in a column, or values in several, in order of appearance."""
        groups = {}
        for key, rows in self.places(*columns).items():
            groups[key if len(columns) > 1 else key[0]] = self.where(rows)
        return groups

    def places(self, *columns: str) -> dict[tuple[Any, ...], Ints]:
        """The numbers of the rows with the same values in these columns."""
        kinds = self.kinds(*columns)
        in_order = np.argsort(kinds.codes, kind="stable")
        ends = np.cumsum(np.bincount(kinds.codes))[:-1]
        return dict(zip(kinds.names, np.split(in_order, ends), strict=False))

    @property
    def derived(self) -> Bools:
        """Which rows are of probes: these count in no figure of the judge's accuracy."""
        return self.variant.each(bool)

    @property
    def has_verdict(self) -> Bools:
        """Which rows have a verdict that is right or wrong."""
        return self.outcome.each(JUDGED.__contains__)

    @property
    def right(self) -> Bools:
        """Which verdicts are the label."""
        return self.outcome.equals("agree")

    @property
    def wrong(self) -> Bools:
        """Which verdicts are another than the label."""
        return self.outcome.equals("disagree")

    @property
    def wrong_ids(self) -> tuple[str, ...]:
        """The ids of the cases with a wrong verdict."""
        return tuple(self.ids[self.wrong])

    @property
    def unscored(self) -> Bools:
        """Which rows should have a verdict and have none."""
        return self.outcome.each(UNSCORED.__contains__)

    @property
    def case_class(self) -> Coded[CaseClass | None]:
        """The class of each case; None without a label."""
        kinds = self.kinds("scale", "label")
        return Coded.of(scale.class_of(label) for scale, label in kinds.names)[kinds.codes]

    @property
    def was_right(self) -> Bools:
        """Whether the majority in the baseline is right by the label of now."""
        kinds = self.kinds("scale", "label", "before")
        return kinds.each(lambda kind: kind[0].accepts(kind[0].settled(kind[2] or ()), kind[1]))

    @property
    def judged(self) -> Verdicts:
        """The rows with a verdict."""
        return self.where(self.has_verdict)

    @property
    def is_ordered(self) -> bool:
        """Whether the answers of some are levels."""
        return bool(self.scale.each(lambda scale: scale.is_ordered).any())

    @property
    def answered(self) -> tuple[Verdicts, Floats]:
        """The rows that have both, a label and an answer that counts, and these side by side;
        n/a beside levels is no number, and left out.
        """
        rows, pairs = self.paired
        is_level = rows.scale.each(lambda scale: scale.is_ordered)
        is_none = is_level & (pairs == NOT_APPLICABLE).any(axis=1)
        return (rows.where(~is_none), pairs[~is_none]) if is_none.any() else (rows, pairs)

    @property
    def paired(self) -> tuple[Verdicts, Floats]:
        """The rows with a label and an answer that counts, n/a among them, and these."""
        kinds = self.kinds("scale", "label", "score")
        answers = Coded([answer_of(*kind) for kind in kinds.names], kinds.codes)
        is_known = ~answers.equals(None)
        columns = self.label[is_known], answers[is_known]
        pairs = np.stack([column.each(_bounded, float) for column in columns], axis=1)
        return self.where(is_known), pairs


def _rows_of(results: Iterable[CaseResult], scales: RubricScales) -> Iterator[dict[str, Any]]:
    for result in results:
        spec = result.spec
        yield {
            **NOT_COMPARED,
            "ids": result.case_id,
            "suite": result.suite,
            "judge": result.judge,
            "rubric": result.rubric_id,
            "test": result.test,
            "variant": spec.variant,
            "made": made_case_id(result),
            "cluster": spec.cluster_id,
            "run": (result.run_id, result.epoch),
            "scale": scales.get((result.suite, result.rubric_id), result.scale),
            "label": result.label,
            "score": result.score,
            "answers": result.complete_scores,
            "outcome": result.outcome,
            "base": result.base_scores,
            "base_case": generation_id(spec.base_case) if spec.derived else "",
            "probabilities": result.extra.probabilities,
            "slices": result.extra.slices,
            "weight": None,
            "systems": result.extra.systems,
        }


def answer_of(scale: Scale, label: int | None, score: int | None) -> int | None:
    """The answer that counts: the score, and for a tie of the repeats a wrong one.

    None without a label, and for a tie on an ordered scale: there is no telling how far off it is.
    """
    if label is None:
        return None
    return scale.tie(label) if score is None else score


def _bounded(score: int | None) -> int:
    return max(-_LARGEST_SCORE, min(score or 0, _LARGEST_SCORE))


def numbered(clusters: Iterable[Hashable]) -> Ints:
    """Of each row the number of its cluster, in an order that is not that of the rows."""
    of_rows = Coded.of(clusters)
    in_order = sorted(range(len(of_rows.names)), key=lambda code: repr(of_rows.names[code]))
    return np.argsort(in_order)[of_rows.codes]


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """For each row which of the different combinations it has, in the order in which these appear,
    and of each the first row.
    """
    combined = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        # Coded again, so that the product stays small.
        combined = combined * (int(column.max(initial=0)) + 1) + column
        _, combined = np.unique(combined, return_inverse=True)
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    in_order = np.argsort(first)
    return np.argsort(in_order)[codes], first[in_order]
