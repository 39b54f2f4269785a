"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_jrh.cases.ids import case_id
from pytest_jrh.cases.tests import AGENT_LABELS
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import (
    UNSCORED,
    CaseResult,
    CaseSpec,
    Outcome,
    Rubric,
    ScoreLevel,
    most_frequent,
)
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.reports.session import Session
from pytest_jrh.sources.log_tables import log_table, names_log
from pytest_jrh.sources.tables import first_problems, read_table, table_of
from pytest_jrh.sources.verdict_tables import (
    MAX_TABLE_BYTES,
    OPTIONS,
    Asked,
    Scores,
    TableCase,
    VerdictTable,
    add_labels,
    cases_of,
    choose_columns,
    names_cases,
)
from pytest_jrh.stats.baseline import Baseline, BaselineCase, Scope, short
from pytest_jrh.stats.gate import decide
from pytest_jrh.store.baseline import KeptVerdict
from pytest_jrh.store.labels import Grounds, drawn_labels

if TYPE_CHECKING:
    from pytest_jrh.engine.generate import Reliability
    from pytest_jrh.sources.tables import Table
    from pytest_jrh.sources.verdict_tables import CaseKey, Columns
    from pytest_jrh.stats.gate import GateDecision


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How a table is read, and what it is held against.

    `columns` name columns by role (`OPTIONS`), all but those of `verdicts`. `labels` is the file
    with what people said, where that is another one; empty where it is a column. `map` gives scores
    for words, `one` says what 1 means ("violated" or "passed") where the names of columns do not,
    and `scale` is the lowest and the highest score of an ordinal table; None where its values say
    it. `baseline` is a column, a judge of a table in long form, or a file; empty for none, and then
    the others decide nothing. `common` compares the cases alone that both have; `same_judge` says
    that the baseline is of the same judge, whatever it is called.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    labels: str = ""
    map: Mapping[str, Any] = field(default_factory=dict)
    one: str = ""
    scale: tuple[int, int] | None = None
    baseline: str = ""
    max_drop: float = 0.05
    proof: bool = False
    common: bool = False
    same_judge: bool = False


@dataclass(frozen=True)
class CheckedTable:
    """What a table of verdicts came to.

    `session` is what reports are made of; `judge_names` are the judges, without that of the
    baseline; `unlabelled` are the cases without a label, which count in no figure of accuracy.
    `baseline` is the column or file of the earlier verdicts.
    """

    table: VerdictTable
    session: Session
    judge_names: tuple[str, ...]
    unlabelled: tuple[TableCase, ...] = ()
    baseline: str = ""

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
    labels: str | Path = "",
    **settings: Any,
) -> CheckedTable:
    """Check the verdicts of a table against its labels.

    `rows` is a file (CSV or JSON lines, or an Inspect log, whose columns are `scorer:NAME`,
    `metadata:FIELD` and the label `edits`), or rows as mappings. The settings are those of
    `CheckSettings`; `label`, `case`, `rubric`, `cluster`, `repeat` and `judge` name columns, and
    what is not named is found by common names. Raises `InputError` for what cannot be understood.
    """
    columns = {role: settings.pop(role) for role in OPTIONS if role in settings}
    verdicts = (verdict,) if isinstance(verdict, str) else tuple(verdict)
    named = CheckSettings(columns, verdicts, str(labels) if labels else "", **settings)
    if isinstance(rows, str | Path):
        return check(read_input(str(rows), named), named)
    return check(table_of(enumerate(rows, 1), "rows"), named)


def read_input(name: str, settings: CheckSettings) -> Table:
    """Read a table, or a log by what the settings name of it; raises `InputError` for what cannot
    be read.
    """
    named = [*settings.verdicts, *settings.columns.values(), settings.baseline]
    return log_table(Path(name), name, named) if names_log(Path(name), named) else _read(name)


def _read(name: str) -> Table:
    table = read_table(Path(name), name, MAX_TABLE_BYTES)
    if table.problems:
        raise InputError(first_problems(table.problems, name))
    if not table.lines:
        raise InputError(table.problem("has no row below the names of the columns", 1))
    return table


def check(table: Table, settings: CheckSettings) -> CheckedTable:
    """Check a table that was read, with the labels and the baseline of other files."""
    name, named = settings.baseline, settings.columns
    # Unlike a path's own question, false of a name that is too long for a file.
    of_file = _read(name) if name not in table.columns and os.path.exists(name) else None  # noqa: PTH110
    needed: tuple[str, ...] = ("label", "verdict")
    if settings.labels:
        # A column may be of either table.
        named = {role: column for role, column in named.items() if column in table.columns}
        needed = ("verdict",)
    column = name if name in table.columns else ""
    columns = choose_columns(table, named, settings.verdicts, column, settings.map, needed)
    sources = [_Source(table, columns, column)]
    if settings.labels:
        sources.append(_other(_read(settings.labels), columns, settings, ("label",)))
    if of_file is not None:
        sources.append(_other(of_file, columns, settings, ("verdict",)))
    for source in sources if len(sources) > 1 else ():
        if not names_cases(source.table, source.columns):
            message = "no column names the cases, so that rows of two files cannot be put together"
            hint = "name the column of their ids: --case COL"
            raise InputError(source.table.problem(message, 1, hint=hint))
    asked = [one for source in sources for one in source.asked()]
    low, high = settings.scale or (0, -1)
    scores = Scores(asked, settings.map, range(low, high + 1), settings.one)
    tables = [cases_of(source.table, source.columns, scores, source.baseline) for source in sources]
    read = add_labels(tables[0], tables[1]) if settings.labels else tables[0]
    if of_file is not None:
        return _checked(read, tables[-1], "", settings)
    if name and not column and name not in read.judges:
        close = nearest_hint(name, [*table.columns, *read.judges], "column")
        message = f"{name!r} is no column, and no such file"
        raise InputError(table.problem(message, key="--baseline", hint=close))
    return _checked(read, read if name else None, name, settings)


class _Source(NamedTuple):
    """A table, which column is what in it, and that of earlier verdicts, where it has one."""

    table: Table
    columns: Columns
    baseline: str = ""

    def asked(self) -> Iterator[Asked]:
        """The columns whose values are to be read."""
        if self.columns.label:
            yield Asked(self.table, self.columns.label, f"the labels of {self.table.file}")
        for name in dict.fromkeys((*self.columns.verdicts, self.baseline)):
            if name:
                yield Asked(self.table, name, f"the verdicts of {self.table.file}")


def _other(
    table: Table, columns: Columns, settings: CheckSettings, needed: Sequence[str]
) -> _Source:
    """Another file, of labels or of a baseline: its columns are called as in the table itself where
    it has them, too.
    """
    of_table = {role: columns.taken().get(role, "") for role in OPTIONS if role != "verdict"}
    named: dict[str, str] = {**of_table, **settings.columns}
    if "label" in needed and columns.label:
        hint = "leave out --labels, or rename that column"
        raise InputError(table.problem(f"labels are in the table, too: {columns.label}", hint=hint))
    named = {role: column for role, column in named.items() if column in table.columns}
    verdicts = [column for column in columns.verdicts if column in table.columns]
    if "verdict" not in needed:
        verdicts = []
    chosen = choose_columns(table, named, verdicts, "", settings.map, needed)
    if "label" in needed and not chosen.label:
        raise InputError(table.problem("no column of labels", 1, hint="name it: --label COL"))
    return _Source(table, chosen)


def _checked(
    table: VerdictTable, earlier: VerdictTable | None, baseline: str, settings: CheckSettings
) -> CheckedTable:
    """The table held against an earlier one, of which `baseline` names the judge; empty where it is
    called as now.
    """
    suite = Path(table.file).stem or table.file
    judges = tuple(judge for judge in table.judges if judge != baseline or not table.columns.judge)
    if baseline in judges:
        message = f"{baseline} is held against itself"
        raise InputError(Problem(message, table.file, key="--baseline", hint="name another one"))
    made = _Maker(suite, table, several=len(judges) > 1)
    for case in table.cases.values():
        for judge in judges:
            # A judge with rows of its own may have none about a case.
            if judge in case.verdicts:
                made.add(case, judge)
    decisions = {}
    if earlier is not None:
        of_earlier = {}
        for judge in judges:
            only = len(earlier.judges) == 1 and judge not in earlier.judges
            of_earlier[judge] = baseline or (earlier.judges[0] if only else judge)
            made.add_earlier(judge, earlier.cases.values(), of_earlier[judge])
        is_other = any(judge != was for judge, was in of_earlier.items())
        decisions[suite] = _decision(made, settings, is_other=is_other)
    labels = {}
    for case in table.cases.values():
        if case.label is not None:
            labels[made.rubric(case), case.key.case, case.key.epoch] = case.label
    grounds = Grounds(
        ordinal=bool(table.scale),
        votes=tuple(label.votes for label in labels.values()),
        drawn=drawn_labels(labels),
    )
    session = Session(
        tuple(made.results.values()),
        decisions=decisions,
        nodes=made.nodes,
        rubrics=made.rubrics,
        grounds={suite: grounds},
        earlier=made.earlier,
        is_table=True,
    )
    unlabelled = tuple(case for case in table.cases.values() if case.label is None)
    return CheckedTable(table, session, judges, unlabelled, settings.baseline)


def _decision(made: _Maker, settings: CheckSettings, *, is_other: bool) -> GateDecision:
    """The decision about a table: the one call of what decides about a suite, too.

    A case of the baseline without a row is one without a result. Verdicts are exchanged inside of a
    case where the judge is the same, and in whole runs where it `is_other`.
    """
    unit: Literal["cases", "runs"] = "cases"
    if is_other and not settings.same_judge:
        unit = "runs"
    del unit
    results = list(made.results.values())
    selected = {result.case_id for result in results} | made.lines.keys()
    if settings.common:
        results = [result for result in results if result.outcome not in UNSCORED]
        selected = {result.case_id for result in results}
    rules = GateRules(max_drop=settings.max_drop, proof=settings.proof)
    return decide(results, Baseline(made.lines), rules, Scope.of(selected))


_NOW, _EARLIER = "a" * 64, "e" * 64


class _Maker:
    """Makes of the cases of a table the `results`, by case and judge, and the `lines` of a
    baseline, with its verdicts in `earlier`; `nodes` are what reports call a case: its line and its
    name.
    """

    def __init__(self, suite: str, table: VerdictTable, *, several: bool) -> None:
        self.results: dict[tuple[CaseKey, str], CaseResult] = {}
        self.lines: dict[str, BaselineCase] = {}
        self.earlier: dict[str, KeptVerdict] = {}
        self.nodes: dict[str, str] = {}
        self.rubrics: dict[tuple[str, str], Rubric] = {}
        self._suite = suite
        self._table = table
        self._several = several

    def add(self, case: TableCase, judge: str) -> None:
        """Add what a case came to by the verdicts of a judge; nothing where it counts for nothing,
        with neither label nor verdict.
        """
        scores, label = case.scores(judge), case.label
        if label is None and (self._table.scale or not scores):
            return
        spec = self._spec(case, judge)
        place = f"{self._table.file}:{case.line}"
        score, expected = most_frequent(scores), label.value if label is not None else None
        outcome: Outcome = "agree" if score == expected else "disagree"
        detail = ""
        if label is None:
            # It counts for the rate of violations alone.
            outcome = "unlabelled"
        elif expected is None:
            outcome, detail = "no_case", label.dispute or ""
        elif not scores:
            outcome, detail = "invalid_response", f"{place}: the verdict of {judge} is empty"
        result = CaseResult(
            spec,
            case_id(spec),
            outcome,
            expected=expected,
            score=score,
            reasoning=case.reasonings.get(judge, ""),
            verified=None if expected is None else True,
            detail=detail,
            case_digest="" if expected is None else _digest(expected),
            judge_fingerprint="" if outcome == "no_case" else _NOW,
            scores=scores if len(scores) > 1 else (),
            labelled_by=None if label is None else "people",
            skip_kind="disputed_label" if outcome == "no_case" else None,
        )
        self.results[case.key, judge] = result
        name = "" if case.key.case == f"line {case.line}" else f": {case.key.case}"
        of_judge = f" [{judge}]" if self._several else ""
        self.nodes[result.case_id] = f"{place}{name}{of_judge}"

    def add_earlier(self, judge: str, cases: Iterable[TableCase], its_judge: str) -> None:
        """Add what the baseline's judge said of these cases, also of those without a row now."""
        for case in cases:
            scores, label = case.scores(its_judge), case.label
            result = self.results.get((case.key, judge))
            expected = label.value if label is not None else None
            if expected is None and result is not None:
                expected = result.expected
                if expected is None:
                    # Without a label on either side there is nothing to compare.
                    continue
            if not scores:
                continue
            id_ = case_id(self._spec(case, judge)) if result is None else result.case_id
            score = most_frequent(scores)
            self.lines[id_] = BaselineCase(
                id_,
                short(_digest(expected)),
                short(_EARLIER),
                "agree" if expected in (score, None) else "disagree",
                score,
                scores=scores if len(scores) > 1 else (),
            )
            reasoning = case.reasonings.get(its_judge, "")
            self.earlier[id_] = KeptVerdict(id_, short(_EARLIER), score, reasoning)

    def rubric(self, case: TableCase) -> str:
        """A case's rubric: its own, else the column of labels, else that of verdicts."""
        columns = self._table.columns
        return case.key.rubric or columns.label or columns.verdicts[0]

    def _spec(self, case: TableCase, judge: str) -> CaseSpec:
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
            target_score=case.label.lowest if case.label and self._table.scale else None,
            judge=judge if self._several else None,
            cluster=case.cluster,
        )


@lru_cache
def _digest(label: int | None) -> str:
    """What changes with a case: of a table, its label is all that is known of it."""
    return hashlib.sha256(f"label {label}".encode()).hexdigest()
