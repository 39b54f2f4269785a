"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pytest_jrh.cli.table_results import TableResults
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.documents import Fields, listed, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.runs import Rubric
from pytest_jrh.core.scales import BINARY, numbered
from pytest_jrh.people import Grounds
from pytest_jrh.reports.session import Session
from pytest_jrh.sources.tables import Table, read_table, table_of
from pytest_jrh.sources.verdicts import (
    NONE,
    OPTIONS,
    Columns,
    TableCase,
    Values,
    VerdictTable,
    add_labels,
    by_people,
    cases_of,
    choose_columns,
    of_one_question,
    of_these_texts,
    only_column,
    refuse_strangers,
)
from pytest_jrh.stats.baseline import NEVER_REPORTED, Scope
from pytest_jrh.stats.comparison import NOT_IN_SUITE, Comparison
from pytest_jrh.stats.decision import Decision, Held, Reason, decide, opposite
from pytest_jrh.stats.figures import Reliability, reliability
from pytest_jrh.stats.probabilities import ERROR
from pytest_jrh.stats.rule import Asked

_ITSELF = "is held against itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """How a table is read, and what it is held against.

    The first name columns, `verdict` one or several. `labels` is the file with what people said,
    where that is another one. `map` gives scores for words, `one` says what 1 means (`ONES`), of
    all columns or by their names, whatever these say, and `scale` is the lowest and the highest
    score of levels, None without any, of which `within` so many a verdict may be off and is still
    right. From a `threshold` on a verdict, a number from
    0 to 1, is a 1; `error` is how much may be wrong of what a judge decides alone. `baseline` is a
    column, a judge of a table in long form, or a file; empty for none, and then the others decide
    nothing. What is UNCLEAR passes or fails as `unclear` says; where it says nothing, what is
    unclear about a change fails. `common` compares the cases alone that both have; `same_judge`
    says that the baseline is of the same judge, whatever it is called.
    """

    label: str = ""
    verdict: str | Sequence[str] = ()
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    repeat: str = ""
    judge: str = ""
    labels: str | Path = ""
    map: Fields = field(default_factory=dict)
    one: str | Mapping[str, str] = ""
    scale: tuple[int, int] | None = None
    within: int | None = None
    threshold: float | None = None
    error: float = ERROR
    baseline: str = ""
    max_drop: float = 0.05
    unclear: Literal["pass", "fail"] | None = None
    proof: bool = False
    common: bool = False
    same_judge: bool = False

    def named(self) -> list[tuple[str, str]]:
        """The columns that are named, each behind its role; "" for a role that none has."""
        verdicts = [self.verdict] if isinstance(self.verdict, str) else self.verdict
        assigned = [("verdict", column) for column in verdicts if column]
        for role in (*OPTIONS, "baseline"):
            column = getattr(self, role)
            is_none = column == NONE and role not in ("label", "baseline")
            if column:
                assigned.append((role, "" if is_none else column))
        return assigned

    @property
    def ones(self) -> Mapping[str, str]:
        """What 1 means by columns, and under "" in all others."""
        return {"": self.one} if isinstance(self.one, str) else self.one


@dataclass(frozen=True)
class CheckedTable:
    """What a table of verdicts came to.

    `session` is what reports are made of; `judge_names` are the judges, without that of the
    baseline. `labels` and `earlier` are the tables of other files.
    """

    table: VerdictTable
    session: Session
    judge_names: tuple[str, ...]
    labels: VerdictTable | None
    earlier: VerdictTable | None = None

    @property
    def columns(self) -> Columns:
        """Which column was taken for what."""
        return self.table.columns

    @property
    def results(self) -> Sequence[CaseResult]:
        """What each case came to under each judge."""
        return self.session.results

    @property
    def decision(self) -> Decision | None:
        """The gate's decision; None without a baseline."""
        return next(iter(self.session.decisions.values()), None)

    @property
    def unlabelled(self) -> list[TableCase]:
        """The cases without a label, which count in no figure of accuracy."""
        return [case for case in self.table.cases.values() if case.label is None]

    @property
    def passed(self) -> bool:
        """Whether there are figures, and the gate, where there is one, passed."""
        return self.session.is_judged and self.session.passed

    @cached_property
    def judges(self) -> Mapping[str, Reliability]:
        """The figures of each judge, by its name."""
        by_judge = self.session.verdicts.grouped("judge")
        figures = {}
        for name in self.judge_names:
            of_judge = by_judge.get(name, by_judge.get(""))
            if of_judge is not None:
                figures[name] = reliability(of_judge)
        return figures


def check_table(rows: str | Path | Iterable[Fields], **settings: Any) -> CheckedTable:
    """Check the verdicts of a table against its labels.

    `rows` is a file, of any form that `check` reads, or rows as mappings. The settings are those of
    `CheckSettings`; columns that are not named are found by common names. Raises `InputError` for
    what cannot be understood.
    """
    how = CheckSettings(**settings)
    assigned, baseline = how.named(), how.baseline
    labels = earlier = None
    needed: Sequence[str] = ("label", "verdict")
    # Files are read.
    if how.labels:
        needed = ("verdict",)
        labels = read_table(Path(how.labels), str(how.labels), ("label",), assigned)
        rubrics = {*labels.texts(how.rubric or only_column(labels, "rubric"))}
        assigned += [("labelled", rubric) for rubric in rubrics]
    if isinstance(rows, str | Path):
        table = read_table(Path(rows), str(rows), needed, assigned)
    else:
        table = table_of(enumerate(rows, 1), "rows")
    # Unlike a path's own question, false of a name that is too long for a file.
    if baseline not in table.columns and os.path.exists(baseline):  # noqa: PTH110
        if Path(table.file).resolve() == Path(baseline).resolve():
            hint = "name a file or a column of earlier verdicts"
            raise InputError(table.problem(_ITSELF, key="--baseline", hint=hint))
        earlier = read_table(Path(baseline), baseline, ("verdict",), assigned)
        baseline = ""
    _refuse_missing(how, [*filter(None, (table, labels, earlier))], labels)
    # Rows become cases.
    scale = BINARY if how.scale is None else numbered(*how.scale, how.within)
    values = Values(how.map, scale, how.ones, how.threshold)
    checked = _cases(table, needed, how, values, is_alone=labels is None and earlier is None)
    labelled = before = None
    if labels is not None:
        ids = {*labels.texts("case_id")}
        labels = of_these_texts(of_one_question(labels, table), table, checked.columns.case)
        checked.changed = ids.difference(labels.texts("case_id"))
        labelled = _cases(labels, ("label",), how, values, is_alone=False)
    if earlier is not None:
        before = _cases(earlier, ("verdict",), how, values, is_alone=False)
    values.refuse_unclear(table)
    # Cases of several files are joined.
    if labelled is not None:
        add_labels(checked, labelled)
    if before is not None:
        refuse_strangers(checked, before, "case")
    elif baseline and baseline not in (checked.columns.baseline, *checked.judges):
        message = f"{shown(baseline)} is no column, and no such file"
        raise InputError(table.problem(message, key="--baseline"))
    session, judges = _session(checked, before or checked, baseline, how)
    return CheckedTable(checked, session, judges, labelled, before)


def _refuse_missing(settings: CheckSettings, tables: Sequence[Table], labels: Table | None) -> None:
    """Refuse a column that is named and that none of the tables has; that of labels stands in their
    file, where there is one.
    """
    for role, column in [*settings.named(), *(("one", column) for column in settings.ones)]:
        its_tables = tables if labels is None or role != "label" else [labels]
        columns: dict[str, None] = {}
        for table in its_tables:
            columns |= dict.fromkeys(table.columns)
            columns |= table.results.metrics if table.results else {}
        if column and column not in columns and role != "baseline":
            message = f"has no column {shown(column)}; its columns are {listed(columns)}"
            raise InputError(its_tables[0].problem(message, key=f"--{role}"))


def _cases(
    table: Table, needed: Sequence[str], settings: CheckSettings, values: Values, *, is_alone: bool
) -> VerdictTable:
    """Read what is `needed`, labels or verdicts; a table that is not alone must name its cases."""
    possible = (*table.columns, "")
    assigned = [(role, column) for role, column in settings.named() if column in possible]
    columns = choose_columns(table, assigned, needed)
    if settings.labels and "label" not in needed:
        columns = columns._replace(label="")
    if not columns.case and (not is_alone or columns.repeat or columns.judge):
        message = "no column names the cases, so that rows cannot be put together"
        hint = "name the column of their ids: --case COL"
        raise InputError(table.problem(message, 1, hint=hint))
    return cases_of(table, columns, values)


def _decision(
    results: TableResults,
    gone: Mapping[str, str],
    judges_before: Mapping[str, str],
    settings: CheckSettings,
    turning: str,
) -> Decision:
    """What is decided about a table beside an earlier one, some of whose cases are `gone`."""
    verdicts = results.verdicts.in_order(results.verdicts.ids)
    # A case of the baseline without a row is one without a result.
    missed = {case_id for case_id, reason in gone.items() if reason == NEVER_REPORTED}
    lines = {*results.earlier, *gone}
    if settings.common:
        left = verdicts.where(verdicts.unscored)
        gone = {**gone, **dict.fromkeys(lines.intersection(left.ids), NOT_IN_SUITE)}
        verdicts = verdicts.where(~verdicts.unscored)
    asked = {}
    for judge, its_judge in judges_before.items():
        if its_judge != judge and not settings.same_judge:
            asked[judge if results.has_judges else ""] = Asked("another")
    scope = Scope.of([*verdicts.ids, *missed])
    held = Held(scope, asked, common=settings.common, turning=turning)
    rules = GateRules(max_drop=settings.max_drop, proof=settings.proof, unclear=settings.unclear)
    return decide(Comparison(verdicts, lines, gone), rules, held)


def _session(
    table: VerdictTable, earlier: VerdictTable, baseline: str, settings: CheckSettings
) -> tuple[Session, tuple[str, ...]]:
    """The table held against an earlier one, of which `baseline` names the judge; empty where it is
    called as now. And the judges, without that one.
    """
    judges = table.judges
    if baseline:
        judges = tuple(judge for judge in judges if judge != baseline)
        if not judges:
            message = f"{baseline} {_ITSELF}"
            hint = "name another one"
            raise InputError(table.table.problem(message, key="--baseline", hint=hint))
    gone_judges: list[str] = []
    if settings.baseline and table.columns.judge and len(earlier.judges) > 1:
        # Of these the table has no row any more.
        gone_judges = [judge for judge in earlier.judges if judge not in (*judges, baseline)]
    columns = table.columns
    is_known = bool(settings.label or settings.labels or table.table.results)
    is_known = is_known or by_people(table.table, columns.label, columns.annotator)
    label_column = "" if is_known else columns.label
    has_judges = len(judges) + len(gone_judges) > 1
    results = TableResults(table, judges, has_judges=has_judges, label_column=label_column)
    decisions = {}
    turning = table.values.turning((*columns.verdicts, columns.label))
    if settings.baseline:
        before = {}
        for judge in (*judges, *gone_judges):
            before[judge] = baseline or judge
            if not baseline and len(earlier.judges) == 1:
                [before[judge]] = earlier.judges
        gone = results.hold_against(earlier, before, common=settings.common)
        decisions[results.name] = _decision(results, gone, before, settings, turning)
    else:
        reasons: list[Reason] = []
        for judge, of_judge in results.verdicts.judged.grouped("judge").items():
            reasons += opposite(of_judge, f"judge {judge}" if judge else "the judge", turning)
        if reasons:
            texts = [reason.text for reason in reasons]
            decisions[results.name] = Decision(
                "UNCLEAR",
                texts[0],
                passed=settings.unclear == "pass",
                active=False,
                beside=tuple(texts[1:]),
                reasons=tuple(reasons),
            )
    rubrics = {}
    for rubric in {
        results.rubric(case) for case in (*table.cases.values(), *earlier.cases.values())
    }:
        rubrics[results.name, rubric] = Rubric(rubric, "", answers=table.values.scale)
    session = Session(
        results,
        columns=results.verdicts,
        decisions=decisions,
        nodes=results.nodes,
        rubrics=rubrics,
        grounds={results.name: Grounds(column=label_column)},
        earlier=results.earlier,
        error=settings.error,
        is_table=True,
    )
    return session, judges
