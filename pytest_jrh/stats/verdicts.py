"""The verdicts of a session, or of a table, as one frozen table: a row for each case under each
judge, and a column for each thing that figures ask of it.

A figure is a function of such a table, and a set of cases, such as a rubric, a class or a probe, is
some of its rows (`where`, `grouped`). Texts stay with the results, which `row` finds again.

Most columns hold few different values. What depends on these alone, such as the majority of
repeats, is computed once for each of them in plain Python (`Coded.each`) and looked up for all
rows; so is what depends on several columns (`kinds`).

Then the baseline, which is the accepted verdict of each judge on each case, and the verdicts of a
session beside it: what is compared, and what is not.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pytest_jrh.core import Fields, Json, counted, frozen
from pytest_jrh.core.cases import JUDGED, UNSCORED, Outcome, Slices, Why
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.results import CaseResult, CaseSpending, Extra, JudgeLine
from pytest_jrh.core.scales import NOT_APPLICABLE, CaseClass, RubricScales, Scale
from pytest_jrh.core.sections import GateRules

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[Any] | Sequence[int] | slice
"""Which rows are meant: their numbers, a mark for each row, or a part of all."""

_Name = TypeVar("_Name", bound=Hashable)

NOT_COMPARED: Fields = {"before": None, "apart": "", "same_judge": False}
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
    def of_rows(cls, rows: Iterable[Fields], same: Fields = NOT_COMPARED) -> Verdicts:
        """The table of rows, each with the value of every column but the row's number, and but
        those that are the `same` in all.
        """
        names: dict[str, dict[Any, int]] = {column.name: {} for column in fields(cls)}
        codes: dict[str, array[int]] = {name: array("i") for name in names}
        # Coded as they come, since of most columns the values of all rows would be far larger.
        for row in rows:
            for name, value in row.items():
                known = names[name]
                codes[name].append(known.setdefault(value, len(known)))
        columns: dict[str, Any] = {}
        for name, known in names.items():
            smallest = np.min_scalar_type(len(known))
            columns[name] = Coded([*known], np.array(codes[name], smallest))
        for name, value in same.items():
            if not codes[name]:
                columns[name] = Coded([value], np.zeros(len(codes["ids"]), np.uint8))
        columns["ids"] = np.array(columns["ids"].values, object)
        columns["cluster"] = numbered(columns["cluster"])
        columns["row"] = np.arange(len(columns["ids"]), dtype=np.int32)
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
        if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
            return self
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
        ends = [0, *np.cumsum(np.bincount(kinds.codes)).tolist()]
        groups = zip(kinds.names, pairwise(ends), strict=True)
        return {name: in_order[start:end] for name, (start, end) in groups}

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
    def wrong_ids(self) -> Sequence[str]:
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


def _rows_of(results: Iterable[CaseResult], scales: RubricScales) -> Iterator[Json]:
    for result in results:
        spec = result.spec
        yield {
            "ids": result.case_id,
            "suite": result.suite,
            "judge": result.judge,
            "rubric": result.rubric_id,
            "test": result.test,
            "variant": spec.variant,
            "made": result.made_id,
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


def numbered(clusters: Coded[Any]) -> Ints:
    """Of each row the number of its cluster, in an order that is not that of the rows."""
    in_order = sorted(range(len(clusters.names)), key=lambda code: repr(clusters.names[code]))
    return np.argsort(in_order)[clusters.codes]


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


DIGEST_LENGTH = 16
NEVER_REPORTED = "never reported"
WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_DECISION = "left to `decision`"
ACCEPTED = "accepted into the baseline"


@frozen
class PromptChange:
    """A judge whose verdicts are compared with those of another one; `before` is the prompt of that
    one, None where it was not kept.
    """

    now: JudgeLine
    before: str | None

    @property
    def is_reworded(self) -> bool:
        """Whether both prompts are known, and differ."""
        return self.before is not None and self.before != self.now.prompt


@frozen
class Baseline:
    """The accepted verdicts, lines of a ledger by case id, and the judges that gave them.

    Digests are their first 16 hex digits, so that a line stays readable. `extra.reason` is written
    by a person and kept by updates.
    """

    cases: Mapping[str, CaseResult] = field(default_factory=dict)
    judge_lines: Sequence[JudgeLine] = ()

    def line(self, result: CaseResult) -> CaseResult | None:
        """The line of the case that was judged: same id, same digest."""
        line = self.cases.get(result.case_id)
        return line if line is not None and same_case(line, result) else None

    def prompt_change(self, judge: JudgeLine, digests: Set[str]) -> PromptChange | None:
        """The prompts before and now of a judge with a prompt whose verdicts are compared with
        those of these judges; None where they are its own.
        """
        earlier = digests - {short(judge.judge_digest)}
        if not earlier or not judge.prompt:
            return None
        prompts = [known.prompt for known in self.judge_lines if known.judge_digest in earlier]
        return PromptChange(judge, next(filter(None, prompts), None))

    def ids_of(self, judge: JudgeLine) -> list[str]:
        """The ids of the cases of a judge, or of the one that had its name before."""
        known = self.cases.items()
        return [id_ for id_, of in known if (of.suite, of.judge) == (judge.suite, judge.judge)]

    def earlier_judges(self, case_ids: Iterable[str]) -> set[str]:
        """The digests of the judges that gave these verdicts."""
        return {short(self.cases[case_id].judge_digest) for case_id in case_ids}


NO_BASELINE = Baseline()


@frozen
class Scope:
    """The cases that a session could have run, and those that it selected, by id.

    `known` holds every case of the suites in play, also what `-k`, `--lf` or a node id left out;
    `selected` is the rest after that. Cases of other suites are no part of either.
    """

    known: frozenset[str]
    selected: frozenset[str]

    @classmethod
    def of(cls, known: Iterable[str], selected: Iterable[str] | None = None) -> Scope:
        """Build a scope; without `selected`, all known cases are selected."""
        everything = frozenset(known)
        return cls(everything, everything if selected is None else frozenset(selected))

    @property
    def suites(self) -> frozenset[str]:
        """The suites of this session, as ids name them."""
        return frozenset(map(suite_of, self.known | self.selected))

    @property
    def deselected(self) -> frozenset[str]:
        """The cases that were deselected."""
        return self.known - self.selected


def same_case(line: CaseResult, result: CaseResult) -> bool:
    """Whether both are verdicts on one case (rubric, transcript and label)."""
    return short(line.case_digest) == short(result.case_digest)


def same_judge(line: CaseResult, result: CaseResult) -> bool:
    """Whether both are verdicts of one judge (model, prompt, parameters)."""
    return short(line.judge_digest) == short(result.judge_digest)


@frozen
class Update:
    """An updated baseline, and what changed, in order of case ids.

    `kept` gives for each selected case without a verdict the reason, its line, if any, being
    unchanged: where it is not empty, the session did not finish cleanly.
    """

    baseline: Baseline
    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]
    kept: Mapping[str, str]


def suite_of(case_id: str) -> str:
    """The suite's part of a case id."""
    return case_id.partition("::")[0]


def short(digest: str) -> str:
    """The hex digits of a SHA-256 that the baseline keeps."""
    return digest[:DIGEST_LENGTH]


def is_active(rules: GateRules, baseline: Baseline | None) -> bool:
    """Whether a limit or a baseline decides."""
    return baseline is not None or rules.has_limits


def tolerated(
    result: CaseResult, baseline: Baseline | None, rules: GateRules, *, accepts: bool = False
) -> str | None:
    """Why a case's disagreement does not fail its item; None where it does, or the case agrees.

    Needs only the case's own result, so that every xdist worker can call it.
    """
    if result.outcome != "disagree":
        return None
    before = baseline.line(result) if baseline else None
    if accepts and (baseline is None or result.case_id not in baseline.cases):
        return ACCEPTED
    if before is not None and not result.scale.accepts(before.score, result.label):
        reason = before.extra.reason
        return f"{WRONG_BEFORE}: {reason}" if reason else WRONG_BEFORE
    return LEFT_TO_THE_DECISION if accepts or is_active(rules, baseline) else None


def update(
    baseline: Baseline,
    results: Iterable[CaseResult],
    scope: Scope,
    judges: Iterable[JudgeLine] = (),
) -> Update:
    """Update a baseline with a session's verdicts and judges, and leave all other lines unchanged.

    Cases that were deselected, belong to other suites, are unscored or were never reported keep
    their lines. A line is removed where its case is no longer in the suite, or has no
    case or no label now.
    """
    cases = dict(baseline.cases)
    by_id = {result.case_id: result for result in results}
    kept = {}
    added, changed = [], []
    suites, there = scope.suites, scope.known | by_id.keys()
    removed = [case_id for case_id in cases if suite_of(case_id) in suites and case_id not in there]
    for case_id in sorted(scope.selected | by_id.keys()):
        result, before = by_id.get(case_id), cases.get(case_id)
        if result is None or result.outcome in UNSCORED:
            kept[case_id] = NEVER_REPORTED if result is None else f"unscored: {result.outcome}"
        elif result.outcome in JUDGED:
            line = replace(
                result,
                case_digest=short(result.case_digest),
                judge_digest=short(result.judge_digest),
                why=Why(),
                spending=CaseSpending(),
                extra=Extra(reason=before.extra.reason if before is not None else ""),
            )
            cases[case_id] = line
            if before is None:
                added.append(case_id)
                continue
            # Reasonings are others each time that a judge is asked.
            is_same = same_case(before, line) and same_judge(before, line)
            if before.scores != line.scores or not is_same:
                changed.append(case_id)
        elif result.outcome in ("no_case", "unlabelled") and before is not None:
            removed.append(case_id)
    for case_id in removed:
        del cases[case_id]
    updated = Baseline(cases, _judges_of(cases, baseline, judges))
    return Update(updated, added, changed, sorted(removed), kept)


def _judges_of(
    cases: Mapping[str, CaseResult], baseline: Baseline, judges: Iterable[JudgeLine]
) -> Sequence[JudgeLine]:
    """The judges of the cases, in order, by what is known now, else by the baseline."""
    used = {(line.suite, line.judge, line.judge_digest) for line in cases.values()}
    known: dict[tuple[str, str, str], JudgeLine] = {}
    for judge in (*baseline.judge_lines, *judges):
        key = (judge.suite, judge.judge, short(judge.judge_digest))
        # Of a session of some cases, in which code asked nothing, it is still known that it asks.
        asks_model = judge.asks_model or known.get(key, judge).asks_model
        if key in used:
            known[key] = replace(judge, judge_digest=key[2], asks_model=asks_model)
    return [judge for _, judge in sorted(known.items())]


NOT_IN_BASELINE = "not in the baseline"
NOT_IN_SUITE = "no longer in the suite"
NO_VERDICT = "without a verdict"
CASE_CHANGED = "the text, rubric or label of the case has changed"
# What a suite is compared by where it has grown: fewer runs cannot show a loss of another judge.
_FEWEST_RUNS = 5
_KINDS = {
    NOT_IN_SUITE: NOT_IN_SUITE,
    NO_VERDICT: NO_VERDICT,
    CASE_CHANGED: "with another label or text",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The verdicts of a session in order of case ids, with those of the baseline beside them.

    `lines` are the ids of the cases that the baseline has of these suites, None without a baseline,
    and `gone` gives for those that the session has no result of the reason.
    """

    verdicts: Verdicts
    lines: Collection[str] | None = None
    gone: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def everything(self) -> Verdicts:
        """The cases with a verdict on both sides and the same digest."""
        return self.verdicts.where(~self.verdicts.before.equals(None))

    @cached_property
    def compared(self) -> Verdicts:
        """Those that count in figures: all but those of probes."""
        return self.everything.where(~self.everything.derived)

    @cached_property
    def judged(self) -> Verdicts:
        """All verdicts, compared or not."""
        return self.verdicts.judged

    @cached_property
    def not_comparable(self) -> Mapping[str, str]:
        """Why each other case is not compared, in order of case ids."""
        reasons = dict(self.gone)
        apart = self.verdicts.where(self.verdicts.apart.each(bool))
        reasons |= dict(zip(apart.ids, apart.apart.values, strict=True))
        return dict(sorted(reasons.items()))

    @cached_property
    def new(self) -> Verdicts:
        """The verdicts on cases that the baseline does not have; those of probes count in none."""
        judged = self.judged
        return judged.where(judged.apart.equals(NOT_IN_BASELINE) & ~judged.derived)

    def has_group(self, verdicts: Verdicts) -> Bools:
        """Of which verdicts cases of the judge were compared under the rubric, and of the class."""
        rubrics = {*self.compared.kinds("judge", "rubric").names}
        classes = {*self.compared.kinds("judge", "case_class").names}
        under = verdicts.kinds("judge", "rubric").each(rubrics.__contains__)
        of_class = verdicts.kinds("judge", "case_class").each(classes.__contains__)
        both: Bools = under & of_class
        return both

    @cached_property
    def regressions(self) -> Sequence[str]:
        """Right before, wrong now."""
        return tuple(self.everything.ids[self.everything.was_right & ~self.everything.right])

    @cached_property
    def fixes(self) -> Sequence[str]:
        """Wrong before, right now."""
        return tuple(self.everything.ids[~self.everything.was_right & self.everything.right])


def compare(
    baseline: Baseline | None, results: Sequence[CaseResult], verdicts: Verdicts, scope: Scope
) -> Comparison:
    """Compare verdicts, which are of some of the results, with the baseline.

    A case that was deselected is on neither side.
    """
    verdicts = verdicts.in_order(verdicts.ids)
    if baseline is None:
        return Comparison(verdicts)
    suites = scope.suites
    lines = {case_id for case_id in baseline.cases if suite_of(case_id) in suites}
    before = []
    apart, of_same_judge = [], []
    for row in verdicts.row:
        result = results[row]
        line = baseline.cases.get(result.case_id)
        is_same = line is not None and same_case(line, result)
        reason = why_apart(result.outcome, has_line=line is not None, is_same=is_same)
        before.append(None if line is None or reason else line.complete_scores)
        apart.append(reason)
        of_same_judge.append(line is not None and same_judge(line, result))
    gone = {}
    for case_id in lines - scope.deselected - {*verdicts.ids}:
        gone[case_id] = NEVER_REPORTED if case_id in scope.selected else NOT_IN_SUITE
    return Comparison(
        replace(
            verdicts,
            before=Coded.of(before),
            apart=Coded.of(apart),
            same_judge=Coded.of(of_same_judge),
        ),
        lines,
        gone,
    )


def why_apart(outcome: Outcome, *, has_line: bool, is_same: bool) -> str:
    """Why a case is not compared; empty where it is, or has no verdict on either side."""
    if not has_line:
        return NOT_IN_BASELINE if outcome in JUDGED else ""
    if outcome not in JUDGED:
        return f"no verdict now: {outcome}"
    return "" if is_same else CASE_CHANGED


def missing_from(comparison: Comparison) -> tuple[set[str], list[str]]:
    """The cases, by id, that left the comparison, but what was deselected and what has no verdict;
    and clauses that count them, repeats that are gone among them.

    Of new cases those are counted that are of a compared run: a suite that has grown by runs, or by
    a judge, rubric or class, has none. Where hardly a run was compared, and more cases are new than
    were, all of such a judge, rubric and class. What probes turn is decided by itself.
    """
    verdicts, compared = comparison.verdicts, comparison.compared
    unscored = {*verdicts.ids[verdicts.unscored]}
    missing = set()
    kinds = Counter[str]()
    for case_id, reason in comparison.not_comparable.items():
        if reason not in (NOT_IN_BASELINE, NEVER_REPORTED) and case_id not in unscored:
            missing.add(case_id)
            kinds[_KINDS.get(reason, "without a case or label")] += 1
    clauses = [f"{number:,} {kind}" for kind, number in kinds.most_common()]
    repeats = compared.kinds("before", "answers")
    fewer = int(repeats.each(lambda kind: len(kind[1]) < len(kind[0])).sum())
    if fewer:
        clauses.append(f"{counted(fewer, 'case')} with fewer repeats")
    new = comparison.new
    new = new.where(comparison.has_group(new))
    runs = {*compared.run.present()}
    hardly_any = len(runs) < _FEWEST_RUNS and len(new) > len(compared)
    if not hardly_any:
        new = new.where(new.run.each(runs.__contains__))
    added = {*new.ids}
    if added:
        clauses.append(f"{counted(len(added), 'case')} not in the baseline")
    return missing | added, clauses
