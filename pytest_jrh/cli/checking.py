"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pytest_jrh.cli.table_results import TableResults
from pytest_jrh.config.schema import GateRules
from pytest_jrh.core.documents import Fields, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.runs import Rubric
from pytest_jrh.core.scales import BINARY, numbered
from pytest_jrh.core.values import as_word
from pytest_jrh.people import Grounds
from pytest_jrh.reports.session import Session
from pytest_jrh.sources.columns import (
    NONE,
    OF_PEOPLE,
    PLACE,
    ROLES,
    Columns,
    choose_columns,
    labels_for,
    only_column,
    refuse_missing,
)
from pytest_jrh.sources.tables import read_table, table_of, with_named
from pytest_jrh.sources.verdicts import (
    TableCase,
    Values,
    VerdictTable,
    add_labels,
    cases_of,
    refuse_strangers,
    table_scale,
    weigh,
)
from pytest_jrh.stats.annotators import VotedCase, Votes
from pytest_jrh.stats.baseline import NEVER_REPORTED, Scope
from pytest_jrh.stats.comparison import NOT_IN_SUITE, Comparison
from pytest_jrh.stats.decision import Decision, Held, Reason, decide, opposite
from pytest_jrh.stats.figures import Reliability, reliability
from pytest_jrh.stats.probabilities import ERROR
from pytest_jrh.stats.rule import Asked

_ITSELF = "is held against itself"
_WEIGHTED = (
    "its labels were drawn by what a judge says, so that its mistakes are among them more often "
    "than those of before: nothing compares the two"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """How a table is read, and what it is held against.

    The first name columns, `label` and `verdict` one or several, one a person and one a judge;
    `annotator` is who gave the label of a row, and `settled` a label that wins. `labels` is the
    file with what people said, where that is another one. `map` gives scores for words, `one` says
    what 1 means (`ONES`), of all columns or by their names, whatever these say, and `scale` is the
    lowest and the highest score of levels, None without any; `classes` are answers without an
    order. Of levels a verdict may be `within` so many off and is still right. From a `threshold` on
    a verdict, a number from 0 to 1, is a 1; `error` is how much may be wrong of what a judge
    decides alone. `baseline` is a column, a judge of a table in long form, or a file; empty for
    none, and then the others decide nothing. What is UNCLEAR passes or fails as `unclear` says;
    where it says nothing, what is unclear about a change fails. `common` compares the cases alone
    that both have; `same_judge` says that the baseline is of the same judge, whatever it is called.
    `by` is one or several columns, such as a category, for each of whose values figures are shown;
    with `gate_by` these slices decide, too.
    """

    label: str | Sequence[str] = ""
    verdict: str | Sequence[str] = ()
    case: str = ""
    rubric: str = ""
    cluster: str = ""
    repeat: str = ""
    judge: str = ""
    annotator: str = ""
    settled: str = ""
    labels: str | Path = ""
    map: Fields = field(default_factory=dict)
    one: str | Mapping[str, str] = ""
    scale: tuple[int, int] | None = None
    classes: Sequence[str] = ()
    within: int | None = None
    threshold: float | None = None
    error: float = ERROR
    baseline: str = ""
    max_drop: float = 0.05
    unclear: Literal["pass", "fail"] | None = None
    proof: bool = False
    common: bool = False
    same_judge: bool = False
    by: str | Sequence[str] = ()
    gate_by: bool = False

    def named(self) -> list[tuple[str, str]]:
        """The columns that are named, each behind its role; "" for a role that none has."""
        assigned = []
        for role in ROLES:
            columns = getattr(self, role, "")
            for column in [columns] if isinstance(columns, str) else columns:
                is_none = column == NONE and role not in ("label", "verdict", "baseline")
                if column:
                    assigned.append((role, "" if is_none else column))
        if any(PLACE in column for _, column in assigned):
            if self.rubric:
                raise InputError(f"has no meaning beside {PLACE}", key="--rubric")
            assigned.append(("rubric", PLACE))
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
    earlier: VerdictTable | None

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
        return self.session.decision

    @property
    def unlabelled(self) -> list[TableCase]:
        """The cases without a label, which count in no figure of accuracy."""
        return [case for case in self.table.cases.values() if case.label is None]

    @property
    def passed(self) -> bool:
        """Whether there are figures, and the gate, where there is one, passed."""
        return (self.session.is_judged or not self.judge_names) and self.session.passed

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
    if how.gate_by and not how.by:
        raise InputError("has no meaning without --by", key="--gate-by")
    named, baseline = how.named(), how.baseline
    labels = earlier = labelled = before = None
    needed: Sequence[str] = ("label", "verdict")
    # Files become tables.
    if how.labels:
        needed = ("verdict",)
        labels = read_table(how.labels, ("label",), named)
        rubrics = {*labels.texts(how.rubric or only_column(labels, "rubric"))}
        named += [("labelled", rubric) for rubric in rubrics]
    if isinstance(rows, str | Path):
        table = read_table(rows, needed, named)
    else:
        table = table_of(enumerate(rows, 1), "rows")
    # Unlike a path's own question, false of a name that is too long for a file.
    if baseline not in table.columns and os.path.exists(baseline):  # noqa: PTH110
        if Path(table.file).resolve() == Path(baseline).resolve():
            hint = "name a file or a column of earlier verdicts"
            raise InputError(_ITSELF, table.file, key="--baseline", hint=hint)
        earlier = read_table(baseline, ("verdict",), named)
        baseline = ""
    # Columns are taken for what they are.
    named = how.named()
    table = with_named(table, named, needed)
    labels = labels and with_named(labels, named, ("label",))
    earlier = earlier and with_named(earlier, named, ("verdict",))
    options = [*named, *(("one", column) for column in how.ones)]
    refuse_missing(options, [*filter(None, (table, labels, earlier))], labels)
    if labels is not None:
        # What the table itself has of labels is not asked for.
        named = [(role, column) for role, column in named if role not in OF_PEOPLE]
        named += [(role, "") for role in OF_PEOPLE]
    columns = choose_columns(table, named, needed, is_alone=labels is None and earlier is None)
    # Rows become cases, and those of several files are joined.
    every_columns = [columns]
    changed: Collection[str] = ()
    if labels is not None:
        labels, changed = labels_for(labels, table, columns.case)
        label_columns = choose_columns(labels, how.named(), ("label",))
        every_columns.append(label_columns)
    if earlier is not None:
        earlier_columns = choose_columns(earlier, named, ("verdict",))
        every_columns.append(earlier_columns)
    mapping = {as_word(word): value for word, value in how.map.items()}
    scale = BINARY
    if how.scale is not None:
        scale = numbered(*how.scale, how.within)
    if how.threshold is None:
        scale = table_scale(every_columns, mapping, how.classes, how.scale and scale)
    values = Values(mapping, scale, how.ones, how.threshold)
    checked = cases_of(table, columns, values)
    checked.changed = changed
    if labels is not None:
        labelled = cases_of(labels, label_columns, values)
        if stand_for := weigh(labelled, checked):
            if baseline or earlier is not None:
                hint = "label a sample that is drawn at random: --sample N without --by"
                raise InputError(_WEIGHTED, labels.file, key="--baseline", hint=hint)
            checked.notices.append(stand_for)
        add_labels(checked, labelled)
    if earlier is not None:
        before = cases_of(earlier, earlier_columns, values)
        refuse_strangers(checked, before, "case")
    elif baseline and baseline not in (columns.baseline, *checked.judges):
        message = f"{shown(baseline)} is no column, and no such file"
        raise InputError(message, table.file, key="--baseline")
    values.refuse_unclear(table)
    return _checked(checked, labelled, before, baseline, how)


def _checked(
    table: VerdictTable,
    labels: VerdictTable | None,
    earlier: VerdictTable | None,
    baseline: str,
    how: CheckSettings,
) -> CheckedTable:
    """What a table comes to that is held against an earlier one, or against its own judge
    `baseline`; that is empty where the judges are called as now.
    """
    judges = table.judges
    if baseline:
        judges = tuple(judge for judge in judges if judge != baseline)
        if not judges:
            message = f"{baseline} {_ITSELF}"
            raise InputError(message, table.table.file, key="--baseline", hint="name another one")
    table_before = earlier or table
    before = {}
    if how.baseline:
        judges_before = table_before.judges
        if not baseline and len(judges_before) == 1:
            [baseline] = judges_before
        elif table.columns.judge:
            # Of some the table has no row any more.
            before = {judge: judge for judge in judges_before if judge != baseline}
        before |= {judge: baseline or judge for judge in judges}
    results = TableResults(table, judges, table_before, before, common=how.common)
    decisions = {}
    if how.baseline:
        decisions[results.name] = _decision(results, how)
    else:
        reasons: list[Reason] = []
        for judge, of_judge in results.verdicts.judged.grouped("judge").items():
            subject = f"judge {judge}" if judge else "the judge"
            reasons += opposite(of_judge, subject, table.turning)
        if reasons:
            headline, *beside = [reason.text for reason in reasons]
            decisions[results.name] = Decision(
                "UNCLEAR",
                headline,
                passed=how.unclear == "pass",
                active=False,
                beside=tuple(beside),
                reasons=tuple(reasons),
            )
    rubrics = {}
    for name in results.verdicts.rubric.names:
        rubrics[results.name, name] = Rubric(name, "", answers=table.values.scale)
    session = Session(
        results,
        columns=results.verdicts,
        decisions=decisions,
        nodes=results.nodes,
        rubrics=rubrics,
        grounds={results.name: Grounds(column=table.columns.guessed_label, votes=_votes(results))},
        earlier=results.earlier,
        error=how.error,
        is_table=True,
        texts=results.texts,
        redactor=Redactor(secrets_of(os.environ)),
    )
    return CheckedTable(table, session, judges, labels, earlier)


def _decision(results: TableResults, how: CheckSettings) -> Decision:
    """What is decided about a table beside an earlier one."""
    gone: Mapping[str, str] = results.gone
    verdicts = results.verdicts.in_order(results.verdicts.ids)
    # A case of the baseline without a row is one without a result.
    missed = {case_id for case_id, reason in gone.items() if reason == NEVER_REPORTED}
    lines = {*results.earlier, *gone}
    if how.common:
        left = verdicts.where(verdicts.unscored)
        gone = {**gone, **dict.fromkeys(lines.intersection(left.ids), NOT_IN_SUITE)}
        verdicts = verdicts.where(~verdicts.unscored)
    asked = {}
    for judge, its_judge in results.judges_before.items():
        if its_judge != judge and not how.same_judge:
            asked[judge if results.has_judges else ""] = Asked("another")
    scope = Scope.of([*verdicts.ids, *missed])
    held = Held(scope, asked, common=how.common, turning=results.table.turning)
    rules = GateRules(max_drop=how.max_drop, proof=how.proof, unclear=how.unclear, by=how.gate_by)
    return decide(Comparison(verdicts, lines, gone), rules, held)


def _votes(results: TableResults) -> Votes:
    """What people say of the cases of a table."""
    cases: list[VotedCase] = []
    if all(case.votes.keys() <= {""} for case in results.table.cases.values()):
        return Votes()
    for case in results.table.cases.values():
        key = (results.rubric(case), case.key.case, case.key.epoch)
        cases.append(VotedCase(key, case.cluster or case.key.case, case.label, case.votes))
    return Votes(cases, results.table.values.scale)
