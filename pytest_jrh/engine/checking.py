"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
    Label,
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


def read_input(name: str, settings: CheckSettings | None = None) -> Table:
    """Read a table, or a log by what the settings name of it; raises `InputError` for what cannot
    be read.
    """
    if settings is not None:
        named = [*settings.verdicts, *settings.columns.values(), settings.baseline]
        if names_log(Path(name), named):
            return log_table(Path(name), name, named)
    table = read_table(Path(name), name, MAX_TABLE_BYTES)
    if table.problems:
        raise InputError(first_problems(table.problems, name))
    if not table.lines:
        raise InputError(table.problem("has no row below the names of the columns", 1))
    return table


def check(table: Table, settings: CheckSettings) -> CheckedTable:
    """Check a table that was read, with the labels and the baseline of other files."""
    of_file, name = _baseline(table, settings)
    column = name if name in table.columns else ""
    named = settings.columns
    if settings.labels:
        # A column may be of either table.
        named = {role: name for role, name in named.items() if name in table.columns}
    needed = ("verdict",) if settings.labels else ("label", "verdict")
    columns = choose_columns(
        table, named, settings.verdicts, baseline=column, mapping=settings.map, needed=needed
    )
    sources = {"": _Source(table, columns, column)}
    if settings.labels:
        sources["labels"] = _of_labels(columns, settings)
    if of_file is not None:
        sources["baseline"] = _Source(of_file, _columns_of_baseline(of_file, columns, settings))
    for source in sources.values() if len(sources) > 1 else ():
        if not names_cases(source.table, source.columns):
            message = "no column names the cases, so that rows of two files cannot be put together"
            hint = "name the column of their ids: --case COL"
            raise InputError(source.table.problem(message, 1, hint=hint))
    asked = [one for what, source in sources.items() for one in source.asked(what)]
    low, high = settings.scale or (0, -1)
    scores = Scores(asked, settings.map, range(low, high + 1), settings.one)
    tables = {what: source.read(scores) for what, source in sources.items()}
    read = tables[""]
    if settings.labels:
        read = add_labels(read, tables["labels"])
    if of_file is not None:
        return _checked(read, _Earlier(tables["baseline"]), settings)
    return _checked(read, _Earlier(read, name) if name else None, settings)


class _Source(NamedTuple):
    """A table, which column is what in it, and that of earlier verdicts, where it has one."""

    table: Table
    columns: Columns
    baseline: str = ""

    def asked(self, what: str) -> Iterator[Asked]:
        """The columns whose values are to be read; `what` names the file if it is not the first."""
        of = f" of the {what}" if what else ""
        if self.columns.label:
            yield Asked(self.table, self.columns.label, f"the labels{of}")
        for name in dict.fromkeys((*self.columns.verdicts, self.baseline)):
            if name:
                yield Asked(self.table, name, f"the verdicts{of}")

    def read(self, scores: Scores) -> VerdictTable:
        """Its cases."""
        return cases_of(self.table, self.columns, scores, self.baseline)


def _of_labels(columns: Columns, settings: CheckSettings) -> _Source:
    """What people said, where that is a table of its own."""
    labels = read_input(settings.labels)
    named = {role: name for role, name in settings.columns.items() if name in labels.columns}
    of_labels = choose_columns(labels, named, mapping=settings.map, needed=("label",))
    if not of_labels.label:
        raise InputError(labels.problem("no column of labels", 1, hint="name it: --label COL"))
    if columns.label:
        message = f"the table has a column {columns.label!r}, too"
        hint = "leave out --labels, or name another column there"
        raise InputError(labels.problem(message, hint=hint))
    return _Source(labels, of_labels)


class _Earlier(NamedTuple):
    """The table with the baseline's verdicts, and their judge; empty where it has the same name."""

    table: VerdictTable
    judge: str = ""

    def of(self, judge: str) -> str:
        """The judge of the baseline whose verdicts are held against those of a judge."""
        judges = self.table.judges
        return self.judge or (judges[0] if judge not in judges and len(judges) == 1 else judge)


def _baseline(table: Table, settings: CheckSettings) -> tuple[Table | None, str]:
    """The table that the baseline is in, where it is another; else its column, or its judge."""
    name = settings.baseline
    if not name or name in table.columns:
        return None, name
    # Unlike a path's own question, false of a name that is too long for a file.
    if os.path.exists(name):  # noqa: PTH110
        return read_input(name), ""
    named = [column for column in table.columns if column.casefold() == "judge"]
    judges = {*table.texts(settings.columns.get("judge") or next(iter(named), ""))}
    if name in judges:
        return None, name
    hint = nearest_hint(name, [*table.columns, *judges], "column")
    message = f"{name!r} is no column, and no such file"
    raise InputError(table.problem(message, key="--baseline", hint=hint))


def _columns_of_baseline(table: Table, columns: Columns, settings: CheckSettings) -> Columns:
    """Those of the table itself where the file has them too; its labels are not needed."""
    named = {
        role: column
        for role, column in columns.taken().items()
        if role in OPTIONS and column in table.columns
    }
    named.pop("verdict", None)
    verdicts = [name for name in columns.verdicts if name in table.columns]
    return choose_columns(table, named, verdicts, mapping=settings.map, needed=("verdict",))


def _checked(
    table: VerdictTable, earlier: _Earlier | None, settings: CheckSettings
) -> CheckedTable:
    suite = Path(table.file).stem or table.file
    of_baseline = earlier.judge if earlier is not None and table.columns.judge else ""
    judges = tuple(judge for judge in table.judges if judge != of_baseline)
    if earlier is not None and earlier.judge in judges:
        message = f"{earlier.judge} is held against itself"
        raise InputError(Problem(message, table.file, key="--baseline", hint="name another one"))
    made = _Maker(suite, table, several=len(judges) > 1)
    labels = {key: label for key, case in table.cases.items() if (label := _label(case))}
    results: dict[tuple[CaseKey, str], CaseResult] = {}
    for key, case in table.cases.items():
        for judge in judges:
            # A judge with rows of its own may have none about a case.
            has_row = judge in case.verdicts
            result = made.result(case, judge, labels.get(key)) if has_row else None
            if result is not None:
                results[key, judge] = result
    before = made.before(results, earlier)
    counted_labels = {}
    for key, label in labels.items():
        counted_labels[made.rubric(key), key.case, key.epoch] = label
    session = Session(
        tuple(results.values()),
        decisions={} if earlier is None else {suite: _decision(results, before, settings)},
        nodes=made.nodes,
        rubrics=made.rubrics,
        grounds={
            suite: Grounds(
                ordinal=bool(table.scale),
                votes=tuple(label.votes for label in labels.values()),
                drawn=drawn_labels(counted_labels),
            )
        },
        earlier=before.verdicts,
        is_table=True,
    )
    unlabelled = tuple(case for key, case in table.cases.items() if key not in labels)
    return CheckedTable(table, session, judges, unlabelled, settings.baseline)


def _label(case: TableCase) -> Label | None:
    return Label(tuple(case.labels.values()), "people", case.split) if case.labels else None


class _Before(NamedTuple):
    """The baseline's lines and reasonings by case id; `is_other` says that a judge of another name
    gave them.
    """

    lines: dict[str, BaselineCase]
    verdicts: dict[str, KeptVerdict]
    is_other: bool


def _decision(
    results: Mapping[Any, CaseResult], before: _Before, settings: CheckSettings
) -> GateDecision:
    """The decision about a table: the one call of it, which a suite's session makes, too.

    A case of the baseline without a row is one without a result. Verdicts are exchanged inside of a
    case where the judge is the same, and in whole runs where it is another.
    """
    unit: Literal["cases", "runs"] = "cases"
    if before.is_other and not settings.same_judge:
        unit = "runs"
    del unit
    counting = list(results.values())
    selected = {result.case_id for result in counting} | before.lines.keys()
    if settings.common:
        counting = [result for result in counting if result.outcome not in UNSCORED]
        selected = {result.case_id for result in counting}
    rules = GateRules(max_drop=settings.max_drop, proof=settings.proof)
    return decide(counting, Baseline(before.lines), rules, Scope.of(selected))


_NOW, _EARLIER = "a" * 64, "e" * 64


class _Maker:
    """Makes results of the cases of a table; `nodes` are what reports call them: the line of a case
    and its name.
    """

    def __init__(self, suite: str, table: VerdictTable, *, several: bool) -> None:
        self.rubrics: dict[tuple[str, str], Rubric] = {}
        self.nodes: dict[str, str] = {}
        self._suite = suite
        self._table = table
        self._several = several

    def result(self, case: TableCase, judge: str, label: Label | None) -> CaseResult | None:
        """What a case came to by the verdicts of a judge; None where it counts for nothing, with
        neither label nor verdict.
        """
        scores = case.scores(judge)
        if label is None and (self._table.scale or not scores):
            return None
        spec = self._spec(case, judge, label)
        id_ = case_id(spec)
        place = f"{self._table.file}:{case.line}"
        name = "" if case.key.case == f"line {case.line}" else f": {case.key.case}"
        self.nodes[id_] = f"{place}{name} [{judge}]" if self._several else f"{place}{name}"
        score, expected = most_frequent(scores), label.value if label is not None else None
        judged: dict[str, Any] = {
            "score": score,
            "scores": scores if len(scores) > 1 else (),
            "reasoning": case.reasonings.get(judge, ""),
            "judge_fingerprint": _NOW,
        }
        if label is None:
            # It counts for the rate of violations alone.
            return CaseResult(spec, id_, "unlabelled", **judged)
        if expected is None:
            return CaseResult(
                spec,
                id_,
                "no_case",
                labelled_by="people",
                detail=label.dispute or "",
                skip_kind="disputed_label",
            )
        outcome: Outcome = "agree" if score == expected else "disagree"
        detail = ""
        if not scores:
            outcome, detail = "invalid_response", f"{place}: the verdict of {judge} is empty"
        return CaseResult(
            spec,
            id_,
            outcome,
            expected=expected,
            verified=True,
            detail=detail,
            case_digest=_digest(expected),
            labelled_by="people",
            **judged,
        )

    def before(
        self, results: Mapping[tuple[CaseKey, str], CaseResult], earlier: _Earlier | None
    ) -> _Before:
        """What the baseline says of these cases, and of those that the table has no row of."""
        lines: dict[str, BaselineCase] = {}
        verdicts: dict[str, KeptVerdict] = {}
        is_other = False
        if earlier is None:
            return _Before(lines, verdicts, is_other)
        for judge in dict.fromkeys(judge for _, judge in results):
            its_judge = earlier.of(judge)
            is_other = is_other or judge != its_judge
            for key, case in earlier.table.cases.items():
                scores, label = case.scores(its_judge), _label(case)
                result = results.get((key, judge))
                expected = label.value if label is not None else None
                if expected is None and result is not None:
                    # Without a label on either side there is nothing to compare.
                    expected = result.expected
                if not scores or (expected is None and result is not None):
                    continue
                id_ = case_id(self._spec(case, judge, label)) if result is None else result.case_id
                score = most_frequent(scores)
                lines[id_] = BaselineCase(
                    id_,
                    short(_digest(expected)),
                    short(_EARLIER),
                    "agree" if expected in (score, None) else "disagree",
                    score,
                    scores=scores if len(scores) > 1 else (),
                )
                reasoning = case.reasonings.get(its_judge, "")
                verdicts[id_] = KeptVerdict(id_, short(_EARLIER), score, reasoning)
        return _Before(lines, verdicts, is_other)

    def rubric(self, key: CaseKey) -> str:
        """A case's rubric: its own, else the column of labels, else that of verdicts."""
        columns = self._table.columns
        return key.rubric or columns.label or columns.verdicts[0]

    def _spec(self, case: TableCase, judge: str, label: Label | None) -> CaseSpec:
        key, rubric = case.key, self.rubric(case.key)
        if (self._suite, rubric) not in self.rubrics:
            levels = tuple(ScoreLevel(score, "") for score in self._table.scale)
            self.rubrics[self._suite, rubric] = Rubric(rubric, "", levels)
        return CaseSpec(
            self._suite,
            AGENT_LABELS.name,
            rubric,
            key.case,
            key.epoch,
            target_score=label.lowest if label is not None and self._table.scale else None,
            judge=judge if self._several else None,
            cluster=case.cluster,
        )


def _digest(label: int | None) -> str:
    """What changes with a case: of a table, its label is all that is known of it."""
    return hashlib.sha256(f"label {label}".encode()).hexdigest()
