"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.cases.ids import case_id
from pytest_jrh.cases.tests import AGENT_LABELS
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import (
    CaseResult,
    CaseSpec,
    Label,
    Outcome,
    Rubric,
    ScoreLevel,
    most_frequent,
)
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.reports.session import Session
from pytest_jrh.sources.verdict_tables import (
    OPTIONS,
    Scores,
    TableCase,
    VerdictTable,
    cases_of,
    choose_columns,
    names_log,
    read_table,
    rows_as_table,
    with_labels,
)
from pytest_jrh.stats.baseline import Baseline, BaselineCase, Scope, short
from pytest_jrh.stats.gate import decide
from pytest_jrh.store.baseline import KeptVerdict
from pytest_jrh.store.labels import Grounds, drawn_labels

if TYPE_CHECKING:
    from pytest_jrh.core.model import LabelKey
    from pytest_jrh.engine.generate import Reliability
    from pytest_jrh.sources.verdict_tables import CaseKey, Columns, RawTable
    from pytest_jrh.stats.gate import GateDecision


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How a table is read, and what it is held against.

    `columns` name columns by role (`OPTIONS`), all but those of `verdicts`. `labels` is the file
    with what people said, where that is another one; empty where it is a column. `map` gives scores
    for words, and `scale` the lowest and the highest score of an ordinal table; None where its
    values say it. `baseline` is a column, a judge of a table in long form, or a file; empty for
    none, and then `max_drop` and `proof` (`gate.max_drop`, `gate.proof`) decide nothing.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    labels: str = ""
    map: Mapping[str, Any] = field(default_factory=dict)
    scale: tuple[int, int] | None = None
    baseline: str = ""
    max_drop: float = 0.0
    proof: bool = False


@dataclass(frozen=True)
class CheckedTable:
    """What a table of verdicts came to.

    `session` is what reports are made of; `judge_names` are the judges, without that of the
    baseline; `unlabelled` are the cases without a label, which count in no figure of accuracy.
    `baseline` is the column or file of the earlier verdicts, and `absent` counts its verdicts on
    cases that are not in the table.
    """

    table: VerdictTable
    session: Session
    judge_names: tuple[str, ...]
    unlabelled: tuple[TableCase, ...] = ()
    baseline: str = ""
    absent: int = 0

    @property
    def columns(self) -> Columns:
        """Which column was taken for what."""
        return self.table.columns

    @property
    def results(self) -> Sequence[CaseResult]:
        """What each case came to under each judge."""
        return self.session.results

    @property
    def decision(self) -> GateDecision | None:
        """The gate's decision; None without a baseline."""
        return next(iter(self.session.decisions.values()), None)

    @property
    def is_unlabelled(self) -> bool:
        """Whether nothing has a label: all there is to say is how often the judges say violated."""
        are_all = len(self.unlabelled) == len(self.table.cases)
        return are_all and self.session.table.overall.counts.unlabelled > 0 and not self.baseline

    @property
    def is_good(self) -> bool:
        """Whether the gate is passed, or nothing could be wrong."""
        return self.passed or self.is_unlabelled

    @property
    def passed(self) -> bool:
        """Whether there are figures, and the gate, where there is one, passed."""
        return self.session.table.overall.counts.n > 0 and self.session.passed is not False

    @cached_property
    def judges(self) -> Mapping[str, Reliability]:
        """The figures of each judge, by its name."""
        # It brings the whole pipeline, which the command has no need of.
        from pytest_jrh.engine.generate import reliability

        names = self.judge_names
        by_judge: dict[str, list[CaseResult]] = {name: [] for name in names}
        for result in self.results:
            by_judge[result.judge or names[0]].append(result)
        return {name: reliability(results) for name, results in by_judge.items() if results}


def check_table(
    rows: str | Path | Iterable[Mapping[str, Any]],
    *,
    verdict: str | Sequence[str] = (),
    map: Mapping[str, Any] | None = None,  # noqa: A002 - the option's name
    scale: tuple[int, int] | None = None,
    labels: str | Path = "",
    baseline: str = "",
    max_drop: float = 0.0,
    proof: bool = False,
    **columns: str,
) -> CheckedTable:
    """Check the verdicts of a table against its labels.

    `rows` is a file (CSV or JSON lines, or an Inspect log, whose columns are `scorer:NAME`,
    `metadata:FIELD` and the label `edits`), or rows as mappings. `labels` is the file with what
    people said, where that is another one. `columns` are `label`, `case`,
    `rubric`, `cluster`, `repeat` and `judge`; what is not named is found by common names. Raises
    `InputError` for what cannot be understood.
    """
    for role in columns:
        if role not in OPTIONS:
            raise TypeError(f"check_table() got an unexpected keyword argument {role!r}")
    settings = CheckSettings(
        columns=columns,
        verdicts=(verdict,) if isinstance(verdict, str) else tuple(verdict),
        labels=str(labels) if labels else "",
        map=map or {},
        scale=scale,
        baseline=baseline,
        max_drop=max_drop,
        proof=proof,
    )
    if isinstance(rows, str | Path):
        return check(*read_input(str(rows), settings))
    return check(rows_as_table(rows, "rows"), settings)


def read_input(name: str, settings: CheckSettings) -> tuple[RawTable, CheckSettings]:
    """Read a table or a log; raises `InputError` for what cannot be read."""
    # A table is spared the imports of what reads logs.
    path = Path(name)
    label = settings.columns.get("label", "")
    columns = [*settings.verdicts, *settings.columns.values(), settings.baseline]
    if names_log(path, columns):
        from pytest_jrh.sources.log_tables import log_table, words_of_log

        log_label = label if not settings.labels else None
        table = log_table(path, name, label=log_label, columns=columns)
        settings = replace(settings, map=words_of_log(table, settings.map))
    else:
        table = read_table(path, name)
    if not settings.labels:
        return table, settings
    labels = read_table(Path(settings.labels), settings.labels)
    table, label = with_labels(table, labels, settings.columns)
    return table, replace(settings, columns={**settings.columns, "label": label})


def check(table: RawTable, settings: CheckSettings) -> CheckedTable:
    """Check a table that was read."""
    source = _baseline_source(table, settings)
    column = source if isinstance(source, str) and source in table.columns else ""
    columns = choose_columns(
        table,
        named=settings.columns,
        verdicts=settings.verdicts,
        baseline=column,
        mapping=settings.map,
    )
    scale = settings.scale
    scores = Scores(settings.map, () if scale is None else range(scale[0], scale[1] + 1))
    verdicts = dict.fromkeys([*columns.verdicts, *([column] if column else [])], "verdict")
    labels = [(columns.label, "label")] if columns.label else []
    of_tables = [(table, [*labels, *verdicts.items()])]
    if isinstance(source, str):
        scores.settle(of_tables)
        read = cases_of(table, columns, scores, baseline=column)
        earlier = _Earlier(read.cases, source) if source else None
        return _checked(read, earlier, settings)
    its_columns = _columns_of_baseline(source, columns, settings)
    its_label = [(its_columns.label, "label")] if its_columns.label else []
    of_tables.append((source, [*its_label, *((name, "verdict") for name in its_columns.verdicts)]))
    scores.settle(of_tables)
    earlier = _Earlier(cases_of(source, its_columns, scores).cases)
    return _checked(cases_of(table, columns, scores), earlier, settings)


class _Earlier(NamedTuple):
    """The cases with the baseline's verdicts, and their judge; empty where it has the same name."""

    cases: Mapping[CaseKey, TableCase]
    judge: str = ""

    def verdict(self, key: CaseKey, judge: str) -> tuple[tuple[int, ...], str]:
        """The scores that the baseline has of a case of a judge, and the reasoning."""
        case = self.cases.get(key)
        if case is None:
            return (), ""
        judge = self._judge(case, judge)
        return case.scores(judge), case.reasonings.get(judge, "")

    def _judge(self, case: TableCase, judge: str) -> str:
        """The judge of the baseline whose verdicts are held against those of a judge."""
        if self.judge:
            return self.judge
        if judge not in case.judges and len(case.judges) == 1:
            return case.judges[0]
        return judge

    def label(self, key: CaseKey) -> int | None:
        """The label that the baseline has of a case; None without one."""
        case = self.cases.get(key)
        if case is None or not case.labels:
            return None
        return Label(tuple(case.labels.values()), "people").value


def _baseline_source(table: RawTable, settings: CheckSettings) -> RawTable | str:
    """The table that the baseline is in, where it is another; else its column, or its judge."""
    name = settings.baseline
    if not name or name in table.columns:
        return name
    # Unlike a path's own question, false of a name that is too long for a file.
    if os.path.exists(name):  # noqa: PTH110
        return read_table(Path(name), name)
    judges = _judges_of_rows(table, settings)
    if name in judges:
        return name
    hint = nearest_hint(name, [*table.columns, *judges], "column")
    message = f"{name!r} is no column, and no such file"
    raise InputError(Problem(message, table.file, key="--baseline", hint=hint))


def _judges_of_rows(table: RawTable, settings: CheckSettings) -> list[str]:
    """The judges that a column names, each once; none where no column does."""
    column = settings.columns.get("judge", "")
    column = column or next((name for name in table.columns if name.casefold() == "judge"), "")
    return list(dict.fromkeys(map(str, table.values(column)))) if column else []


def _columns_of_baseline(
    earlier_table: RawTable, columns: Columns, settings: CheckSettings
) -> Columns:
    """Those of the table itself where the file has them too; its labels are not needed."""
    named = {
        role: getattr(columns, role)
        for role in OPTIONS
        if role != "verdict" and getattr(columns, role) in earlier_table.columns
    }
    verdicts = [name for name in columns.verdicts if name in earlier_table.columns]
    return choose_columns(
        earlier_table,
        named=named,
        verdicts=verdicts,
        mapping=settings.map,
        labelled=False,
    )


def _checked(
    table: VerdictTable, earlier: _Earlier | None, settings: CheckSettings
) -> CheckedTable:
    suite = Path(table.file).stem or table.file
    of_baseline = earlier.judge if earlier is not None and table.columns.judge else ""
    judges = tuple(judge for judge in table.judges if judge != of_baseline)
    made = _Maker(suite, table, several=len(judges) > 1)
    judged: list[tuple[CaseKey, str, CaseResult]] = []
    unlabelled = []
    nodes: dict[str, str] = {}
    labels: dict[LabelKey, Label] = {}
    for key, case in table.cases.items():
        label = None
        if case.labels:
            label = Label(tuple(case.labels.values()), "people", case.split)
            labels[made.rubric(case), key.case, key.epoch] = label
        else:
            unlabelled.append(case)
        for judge in _with_rows(judges, case, table):
            if label is not None:
                result = made.result(case, label, judge)
            elif case.scores(judge) and not table.scale:
                result = made.unlabelled(case, judge)
            else:
                # What has neither label nor verdict counts for nothing.
                continue
            judged.append((key, judge, result))
            nodes[result.case_id] = made.node(case, judge)
    results = [result for _, _, result in judged]
    before = _before(judged, earlier)
    decisions = {}
    if earlier is not None:
        scope = Scope.of(result.case_id for result in results)
        rules = GateRules(max_drop=settings.max_drop, proof=settings.proof)
        decisions[suite] = decide(results, Baseline(before.lines), rules, scope)
    session = Session(
        tuple(results),
        decisions=decisions,
        nodes=nodes,
        rubrics=made.rubrics,
        grounds={
            suite: Grounds(
                ordinal=bool(table.scale),
                votes=tuple(label.votes for label in labels.values()),
                drawn=drawn_labels(labels),
            )
        },
        earlier=before.verdicts,
        is_table=True,
    )
    absent = _absent(table, judges, earlier)
    cases, baseline = tuple(unlabelled), settings.baseline
    return CheckedTable(table, session, judges, cases, baseline, absent)


def _with_rows(judges: Sequence[str], case: TableCase, table: VerdictTable) -> Sequence[str]:
    """Those of the judges that have a row about a case; all where judges are columns."""
    if not table.columns.judge:
        return judges
    there = case.judges
    return [judge for judge in judges if judge in there]


def _absent(table: VerdictTable, judges: Iterable[str], earlier: _Earlier | None) -> int:
    """How many verdicts the baseline has on cases of which the table has no row of the judge."""
    absent = 0
    if earlier is None:
        return absent
    for judge in judges:
        for key in earlier.cases:
            case = table.cases.get(key)
            has_row = case is not None and _with_rows((judge,), case, table)
            if not has_row and earlier.verdict(key, judge)[0]:
                absent += 1
    return absent


class _Before(NamedTuple):
    """The baseline's lines and reasonings by case id, of cases with a label."""

    lines: dict[str, BaselineCase]
    verdicts: dict[str, KeptVerdict]


def _before(judged: Iterable[tuple[CaseKey, str, CaseResult]], earlier: _Earlier | None) -> _Before:
    before = _Before({}, {})
    if earlier is None:
        return before
    for key, judge, result in judged:
        scores, reasoning = earlier.verdict(key, judge)
        if scores and result.expected is not None:
            line = _line(result, scores, earlier.label(key))
            before.lines[result.case_id] = line
            before.verdicts[result.case_id] = KeptVerdict(
                result.case_id, line.judge_fingerprint, line.score, reasoning
            )
    return before


def _line(result: CaseResult, scores: tuple[int, ...], label: int | None) -> BaselineCase:
    """The baseline's line for these verdicts on a result's case; `label` is None if not known."""
    score = most_frequent(scores)
    digest = result.case_digest if label is None else _digest(label)
    return BaselineCase(
        result.case_id,
        short(digest),
        short(_EARLIER),
        "agree" if score == result.expected else "disagree",
        score,
        scores=scores if len(scores) > 1 else (),
    )


_NOW, _EARLIER = "a" * 64, "e" * 64


class _Maker:
    """Makes results of the cases of a table."""

    def __init__(self, suite: str, table: VerdictTable, *, several: bool) -> None:
        self.rubrics: dict[tuple[str, str], Rubric] = {}
        self._suite = suite
        self._table = table
        self._several = several

    def node(self, case: TableCase, judge: str) -> str:
        """What reports call a case: its line and its name."""
        place = f"{self._table.file}:{case.line}"
        name = "" if case.key.case == f"line {case.line}" else f": {case.key.case}"
        return f"{place}{name} [{judge}]" if self._several else f"{place}{name}"

    def result(self, case: TableCase, label: Label, judge: str) -> CaseResult:
        """What a case came to, by the verdicts of a judge."""
        spec = self._spec(case, judge, label.lowest if self._table.scale else None)
        expected = label.value
        if expected is None:
            return CaseResult(
                spec,
                case_id(spec),
                "no_case",
                labelled_by="people",
                detail=label.dispute or "",
                skip_kind="disputed_label",
            )
        scores = case.scores(judge)
        score = most_frequent(scores)
        outcome: Outcome = "agree" if score == expected else "disagree"
        detail = ""
        if not scores:
            outcome = "invalid_response"
            detail = f"{self._table.file}:{case.line}: the verdict of {judge} is empty"
        reasoning = case.reasonings.get(judge, "")
        return CaseResult(
            spec,
            case_id(spec),
            outcome,
            expected=expected,
            score=score,
            reasoning=reasoning,
            verified=True,
            detail=detail,
            case_digest=_digest(expected),
            judge_fingerprint=_NOW,
            scores=scores if len(scores) > 1 else (),
            labelled_by="people",
        )

    def unlabelled(self, case: TableCase, judge: str) -> CaseResult:
        """What a case without a label came to, which counts for the rate of violations alone."""
        spec, scores = self._spec(case, judge, None), case.scores(judge)
        return CaseResult(
            spec,
            case_id(spec),
            "unlabelled",
            score=most_frequent(scores),
            scores=scores if len(scores) > 1 else (),
            judge_fingerprint=_NOW,
            reasoning=case.reasonings.get(judge, ""),
        )

    def rubric(self, case: TableCase) -> str:
        """A case's rubric: its own, else the column of labels, else that of verdicts."""
        columns = self._table.columns
        return case.key.rubric or columns.label or columns.verdicts[0]

    def _spec(self, case: TableCase, judge: str, target_score: int | None) -> CaseSpec:
        key, rubric = case.key, self.rubric(case)
        if (self._suite, rubric) not in self.rubrics:
            levels = tuple(ScoreLevel(score, "") for score in self._table.scale)
            self.rubrics[self._suite, rubric] = Rubric(rubric, "", levels)
        return CaseSpec(
            self._suite,
            AGENT_LABELS.name,
            rubric,
            key.case,
            key.epoch,
            target_score=target_score,
            judge=judge if self._several else None,
            cluster=case.cluster,
        )


def _digest(label: int) -> str:
    """What changes with a case: of a table, its label is all that is known of it."""
    return hashlib.sha256(f"label {label}".encode()).hexdigest()
