"""A table of verdicts checked as a session is: the same figures, warnings, gate and reports, and no
config, model or recording. What its cases came to stands in columns for the figures, and in results
for those that are named.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_jrh.cases.tests import LABELS
from pytest_jrh.core import Fields, InputError, Json, listed, nearest_hint, same_lines, shown
from pytest_jrh.core.cases import (
    CaseSpec,
    LabelSource,
    Message,
    Outcome,
    Rubric,
    Why,
    label_of,
)
from pytest_jrh.core.documents import as_word
from pytest_jrh.core.ids import case_id, id_ends, node_part
from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.core.results import CaseResult, Extra
from pytest_jrh.core.scales import BINARY, PLACES, numbered, paired
from pytest_jrh.core.sections import GateRules
from pytest_jrh.people import Grounds
from pytest_jrh.reports.session import Session
from pytest_jrh.sources.answers import orders_of, placed, systems_of
from pytest_jrh.sources.columns import (
    NONE,
    OF_PEOPLE,
    PLACE,
    ROLES,
    TEXTS,
    CaseKey,
    choose_columns,
    columns_named,
    labels_for,
    only_column,
    refuse_missing,
    table_slices,
    texts_of_row,
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
from pytest_jrh.stats.changes import Asked
from pytest_jrh.stats.decision import Decision, Held, Reason, decide, opposite
from pytest_jrh.stats.figures import Reliability, reliability
from pytest_jrh.stats.people import VotedCase, Votes
from pytest_jrh.stats.probabilities import ERROR
from pytest_jrh.stats.statistics import Stratum, strata
from pytest_jrh.stats.verdicts import (
    CASE_CHANGED,
    NEVER_REPORTED,
    NO_VERDICT,
    NOT_COMPARED,
    Coded,
    Comparison,
    Scope,
    Verdicts,
    why_apart,
)

_MOST_KEPT = 8192
_MOST_NAMED = 3
_ITSELF = "would be compared with itself"
_WEIGHTED = (
    "the labelled cases were drawn by the judge's verdicts, so the judge has more mistakes among "
    "them than the baseline has, and their accuracies cannot be compared"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """How a table is read, and what it is held against.

    The first name columns, `label` and `verdict` one or several, one a person and one a judge;
    `annotator` is who gave the label of a row, and `settled` a label that wins. `labels` is the
    file with what people said, where that is another one. `map` gives scores for words, `one`
    says what 1 means (`ONES`), of all columns or by their names, whatever these say, and
    `scale` is the lowest and the highest score of levels, None without any; `classes` are
    answers without an order; of `pairs` they say which of two answers is better, by its place
    in a row, and the column `order` tells the rows that show the two the other way round. Of
    levels a verdict may be `within` so many off and is still right. From a `threshold` on a
    verdict, a number from 0 to 1, is a 1; `error` is how much may be wrong of what a judge
    decides alone. `baseline` is a column, a judge of a table in long form, or a file; empty for
    none, and then the others decide nothing. What is UNCLEAR passes or fails as `unclear` says;
    where it says nothing, what is unclear about a change fails. `common` compares the cases
    alone that both have; `same_judge` says that the baseline is of the same judge, whatever it
    is called. `by` is one or several columns, such as a category, for each of whose values
    figures are shown; with `gate_by` these slices decide, too.
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
    pairs: bool = False
    order: str = ""
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
                raise InputError(
                    f"cannot be used, because another option names a column with {PLACE}",
                    key="--rubric",
                )
            assigned.append(("rubric", PLACE))
        return assigned


@dataclass(frozen=True)
class CheckedTable:
    """What a table of verdicts came to.

    `session` is what reports are made of; `judge_names` are the judges, without that of the
    baseline. `labels` and `earlier` are the tables of other files.
    """

    table: VerdictTable
    session: Session
    judge_names: Sequence[str]
    labels: VerdictTable | None
    earlier: VerdictTable | None

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
        return {judge or self.judge_names[0]: reliability(of) for judge, of in by_judge.items()}


def check_table(rows: str | Path | Iterable[Fields], **settings: Any) -> CheckedTable:
    """Check the verdicts of a table against its labels.

    `rows` is a file, of any form that `check` reads, or rows as mappings. The settings are those of
    `CheckSettings`; columns that are not named are found by common names. Raises `InputError` for
    what cannot be understood.
    """
    how = CheckSettings(**settings)
    if how.gate_by and not how.by:
        raise InputError("needs --by", key="--gate-by")
    named, baseline = how.named(), how.baseline
    labels = earlier = labelled = before = None
    of_verdicts, roles = named, named
    needed: Sequence[str] = ("label", "verdict")
    # Files become tables, and their columns are taken for what they are.
    if how.labels:
        needed = ("verdict",)
        labels = with_named(read_table(how.labels, ("label",), named), named, ("label",))
        rubrics = {*labels.texts(how.rubric or only_column(labels, "rubric"))}
        roles = [*named, *(("labelled", rubric) for rubric in rubrics)]
        # What the table itself has of labels is not asked for.
        of_verdicts = [(role, column) for role, column in named if role not in OF_PEOPLE]
        of_verdicts += [(role, "") for role in OF_PEOPLE]
    if isinstance(rows, str | Path):
        table = read_table(rows, needed, roles)
    else:
        table = table_of(enumerate(rows, 1), "rows")
    table = with_named(table, named, needed)
    # Unlike a path's own question, false of a name that is too long for a file.
    if baseline not in table.columns and os.path.exists(baseline):  # noqa: PTH110
        if Path(table.file).resolve() == Path(baseline).resolve():
            raise InputError(
                f"the table {_ITSELF}",
                table.file,
                key="--baseline",
                hint="name a file or a column with earlier verdicts",
            )
        earlier = with_named(read_table(baseline, ("verdict",), roles), named, ("verdict",))
        baseline = ""
    # What 1 means by columns, and under "" in all others.
    ones = {"": how.one} if isinstance(how.one, str) else how.one
    options = [*named, *(("one", column) for column in ones)]
    tables = [*filter(None, (table, labels, earlier))]
    refuse_missing(options, tables, labels)
    columns = choose_columns(table, of_verdicts, needed, is_alone=len(tables) == 1)
    # Rows become cases, and those of several files are joined.
    every_columns = [columns]
    changed: Collection[str] = ()
    if labels is not None:
        labels, changed = labels_for(labels, table, columns.case)
        label_columns = choose_columns(labels, named, ("label",))
        every_columns.append(label_columns)
    if earlier is not None:
        earlier_columns = choose_columns(earlier, of_verdicts, ("verdict",))
        every_columns.append(earlier_columns)
    mapping = {as_word(word): value for word, value in how.map.items()}
    scale = BINARY if any(ones.values()) else None
    if how.scale:
        scale = numbered(*how.scale, how.within)
    orders = orders_of(table, columns.order) if columns.order else None
    if how.pairs:
        scale = paired(len(PLACES) if orders else 1)
    elif how.threshold is None:
        scale = table_scale(every_columns, mapping, how.classes, scale)
    values = Values(mapping, scale or BINARY, ones, how.threshold)
    if how.pairs:
        columns = placed(table, columns, values, orders)
    checked = cases_of(table, columns, values, orders.swapped if orders else ())
    checked.changed = changed
    checked.systems = systems_of(table, orders) if how.pairs else ()
    if labels is not None:
        labelled = cases_of(labels, label_columns, values)
        if stand_for := weigh(labelled, checked):
            if baseline or earlier is not None:
                raise InputError(
                    _WEIGHTED,
                    labels.file,
                    key="--baseline",
                    hint="label a sample that is drawn at random: `label --sample N` without --by",
                )
            checked.notices.append(stand_for)
        add_labels(checked, labelled)
    if earlier is not None:
        before = cases_of(earlier, earlier_columns, values)
        refuse_strangers(checked, before, "case")
    elif baseline and baseline not in (columns.baseline, *checked.judges):
        names = {*table.names, *checked.judges, *map(str, Path(baseline).parent.glob("*"))}
        raise InputError(
            f"{shown(baseline)} is neither a column nor a file",
            table.file,
            key="--baseline",
            hint=nearest_hint(baseline, sorted(names - {table.file})),
        )
    values.refuse_unclear(table)
    results = TableResults(checked, before or checked, baseline, how)
    return CheckedTable(checked, _session(results), results.judges, labelled, before)


def _session(results: TableResults) -> Session:
    """What reports are made of."""
    table, how, verdicts = results.table, results.how, results.verdicts
    decisions = {}
    if how.baseline:
        decisions[results.name] = _decision(results)
    else:
        reasons: list[Reason] = []
        for judge, of_judge in verdicts.judged.grouped("judge").items():
            subject = f'judge "{judge}"' if judge else "the judge"
            reasons += opposite(of_judge, subject, table.turning)
        if reasons:
            headline, *beside = [reason.text for reason in reasons]
            decisions[results.name] = Decision(
                "UNCLEAR",
                headline,
                passed=how.unclear == "pass",
                active=False,
                beside=tuple(beside),
                reasons=reasons,
            )
    rubrics = {}
    wordings = table.table.texts("rubric_text")
    rows = {results.rubric(case): case.row for case, _ in results.rows}
    for name, row in rows.items():
        rubrics[results.name, name] = Rubric(name, wordings[row], answers=table.values.scale)
    return Session(
        results,
        columns=verdicts,
        decisions=decisions,
        nodes=results.nodes,
        rubrics=rubrics,
        grounds={
            results.name: Grounds(
                column=table.columns.guessed_label, votes=_votes(results), file=str(how.labels)
            )
        },
        earlier=results.earlier,
        error=how.error,
        is_table=True,
        texts=results.texts,
        redactor=Redactor(secrets_of()),
    )


def _decision(results: TableResults) -> Decision:
    """What is decided about a table beside an earlier one."""
    how, gone = results.how, results.gone
    verdicts = results.verdicts.in_order(results.verdicts.ids)
    # A case of the baseline without a row is one without a result.
    missed = {case_id for case_id, reason in gone.items() if reason == NEVER_REPORTED}
    lines = {*results.rows_before, *gone}
    left = verdicts.where(verdicts.unscored)
    if how.common:
        gone = {**gone, **dict.fromkeys(lines.intersection(left.ids), NO_VERDICT)}
        verdicts = verdicts.where(~verdicts.unscored)
    asked = {}
    for judge, its_judge in results.judges_before.items():
        if its_judge != judge and not how.same_judge:
            asked[judge if results.has_judges else ""] = Asked("another")
    scope = Scope.of([*verdicts.ids, *missed])
    held = Held(
        scope,
        asked,
        common=how.common,
        no_verdict=_no_verdict(results, left.row, missed),
        turning=results.table.turning,
    )
    rules = GateRules(max_drop=how.max_drop, proof=how.proof, unclear=how.unclear, by=how.gate_by)
    return decide(Comparison(verdicts, lines, gone), rules, held)


def _no_verdict(results: TableResults, rows: Iterable[int], missed: Iterable[str]) -> str:
    """Which cases have no verdict: in these rows, or without one, by their ids."""
    columns = results.table.columns
    names: dict[str, list[str]] = {}
    for row in rows:
        case, judge = results.rows[row]
        column = columns.verdicts[0] if columns.judge else judge
        # Two answers that were shown in one order have as little.
        why = "no verdict in each order" if columns.order else f"{shown(column)} is empty"
        names.setdefault(why, []).append(str(case.key))
    if cases := [results.nodes[its_id] for its_id in sorted(missed)]:
        names["no row"] = cases
    parts = [f"{listed(cases, _MOST_NAMED)}: {why}" for why, cases in names.items()]
    return f"({'; '.join(parts)}): --common leaves these cases out"


def _votes(results: TableResults) -> Votes:
    """What people say of the cases of a table."""
    table_cases = results.table.cases.values()
    if all(case.votes.keys() <= {""} for case in table_cases):
        return Votes()
    cases = [
        VotedCase(
            (results.rubric(case), case.key.case, case.key.epoch),
            case.cluster or case.key.case,
            case.label,
            case.votes,
        )
        for case in table_cases
    ]
    return Votes(cases, results.table.values.scale)


class _Line(NamedTuple):
    """What a case was in the baseline."""

    case: TableCase
    scores: tuple[int, ...]
    label: int


class TableResults(Sequence[CaseResult]):
    """What the cases of a table came to under its judges: `rows` are cases with the judge.

    It is held against an earlier table, or against its own judge `baseline`; that is empty where
    the judges are called as now, and `judges_before` are by those of now. `verdicts` are all of
    them in columns, beside the earlier ones; `gone` are by their ids the earlier cases without a
    row now, with why they are not compared, and `rows_before` the rows that have an earlier one.
    `nodes` are what reports call a case: its line and its name. A result is made when it is asked
    for, as most cases are never named.
    """

    def __init__(
        self, table: VerdictTable, earlier: VerdictTable, baseline: str, how: CheckSettings
    ) -> None:
        self.table, self.how, self._earlier_table = table, how, earlier
        self.judges = table.judges
        if baseline:
            self.judges = [judge for judge in table.judges if judge != baseline]
            if not self.judges:
                raise InputError(
                    f"{shown(baseline)} {_ITSELF}",
                    table.table.file,
                    key="--baseline",
                    hint="name another column, or a file with earlier verdicts",
                )
        self.judges_before: dict[str, str] = {}
        if how.baseline:
            judges_before = earlier.judges
            if not baseline and len(judges_before) == 1:
                [baseline] = judges_before
            elif table.columns.judge:
                # Of some the table has no row any more.
                self.judges_before = {name: name for name in judges_before if name != baseline}
            self.judges_before |= {judge: baseline or judge for judge in self.judges}
        self.has_judges = len({*self.judges, *self.judges_before}) > 1
        self.name = Path(table.table.file).stem or table.table.file
        # What a page lists is asked for several times.
        self._at = lru_cache(maxsize=_MOST_KEPT)(self._result)
        is_verdict = table.values.scale.is_verdict
        self.rows: list[tuple[TableCase, str]] = []
        for judge in self.judges:
            for case in table.cases.values():
                # One with neither label nor verdict counts for nothing, and of some the judge has
                # no row; one on which people disagree has their votes.
                is_rated = (is_verdict or case.votes) and case.given.get(judge)
                if judge in case.given and (case.label is not None or is_rated):
                    self.rows.append((case, judge))
        self._slices = table_slices(table.table, table.columns)
        self.rows_before: dict[str, int] = {}
        self.nodes: dict[str, str] = {}
        self.gone = dict(self._gone())
        same = {
            **NOT_COMPARED,
            "suite": self.name,
            "test": LABELS.name,
            "variant": "",
            "scale": table.values.scale,
            "base": (),
            "base_case": "",
        }
        self.verdicts = Verdicts.of_rows(self._columns(), same)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [*map(self._at, range(len(self))[row])]
        return self._at(row)

    def earlier(self, case_id: str) -> CaseResult | None:
        """What was said before of a case."""
        row = self.rows_before.get(case_id)
        return None if row is None else self._result(row, of_baseline=True)

    def texts(self, row: int) -> Sequence[Message]:
        """What the first row of a case holds of what was judged."""
        case, _ = self.rows[row]
        return texts_of_row(self.table.table, self.table.columns.shown, case.row)

    def rubric(self, case: TableCase) -> str:
        """The name of its rubric; where there are none, that of the column of labels."""
        columns = self.table.columns
        return case.key.rubric or columns.label or columns.verdicts[0]

    def _gone(self) -> Iterator[tuple[str, str]]:
        there = {(case.key, judge) for case, judge in self.rows}
        has_labels = self.how.labels or self._earlier_table.columns.labels
        for judge, judge_before in self.judges_before.items():
            for key, case in self._earlier_table.cases.items():
                if (key, judge) in there or not case.given.get(judge_before):
                    continue
                now, is_changed = self.table.cases.get(key, case), key.case in self.table.changed
                # Where nobody knows what is right, no verdict is missed.
                is_unlabelled = now.label is None and (now is not case or has_labels)
                if is_unlabelled and not is_changed:
                    continue
                # Cases whose text is another one have left, and are not missed.
                reason = NO_VERDICT if self.how.common else NEVER_REPORTED
                its_id = case_id(self._spec(case, judge))
                self.nodes[its_id] = str(key)
                yield its_id, CASE_CHANGED if is_changed else reason

    def _line(self, case: TableCase, judge: str) -> _Line | None:
        """What the baseline's judge said of a case; None where it said nothing, or nobody knows
        what is right.
        """
        earlier = self._earlier_table.cases.get(case.key)
        if earlier is None:
            return None
        scores = earlier.scores(self.judges_before[judge])
        if not scores:
            return None
        label = case.label if earlier.label is None else earlier.label
        if label is None and case.key.case in self.table.changed:
            label = scores[0]
        return None if label is None else _Line(earlier, scores, label)

    def _spec(self, case: TableCase, judge: str) -> CaseSpec:
        return CaseSpec(
            self.name,
            LABELS.name,
            self.rubric(case),
            case.key.case,
            case.key.epoch,
            target_score=self.table.values.scale.target(case.label),
            judge=judge if self.has_judges else None,
            cluster=case.cluster,
        )

    def _result(self, row: int, *, of_baseline: bool = False) -> CaseResult:
        """What the case of a row comes to by the verdicts of its judge, now or in the baseline."""
        table, (case, judge) = self.table, self.rows[row]
        spec, label, scale = self._spec(case, judge), case.label, table.values.scale
        line = self._line(case, judge) if of_baseline else None
        if line is not None:
            table, case, label = self._earlier_table, line.case, line.label
            judge = self.judges_before[judge]
        given = case.given[judge]
        # One with neither label nor verdict is no result; without a label alone it counts for the
        # rate of violations.
        why = Why() if given else Why("invalid_response", "the verdict is empty")
        columns = table.columns
        reasons, is_baseline = columns.texts[columns.reasoning], judge == columns.baseline
        by: LabelSource = "column" if self.table.columns.guessed_label else "people"
        votes = []
        for person, vote in case.votes.items():
            note = (case.notes or {}).get(person, "")
            said = f"{person}: {Votes((), scale).word(vote)}. {note}"
            # Of a person without a name the note alone.
            votes.append(said.rstrip() if person else note)
        if votes and label != label_of([*case.votes.values()], is_ordered=scale.is_ordered):
            votes.append(f"settled: {Votes((), scale).word(label)}")
        return replace(
            CaseResult.of(spec),
            answers=scale.line,
            within=scale.within,
            label=label,
            labelled_by=None if label is None else by,
            # What changes with a case: of a table, its label is all that is known of it.
            case_digest="" if label is None else f"label {label}",
            # Another column of the same table is another judge, too.
            judge_digest="earlier" if of_baseline else "now",
            scores=case.scores(judge),
            # Those beside a column of earlier verdicts are of now.
            reasons=tuple("" if is_baseline else reasons[row] for row, _ in given),
            why=why,
            extra=Extra(
                slices=self._slices[case.row],
                probabilities=case.probabilities(judge),
                votes=tuple(votes),
            ),
        )

    def _columns(self) -> Iterator[Json]:
        """The columns of each row, for which no result is made."""
        scale, table = self.table.values.scale, self.table.table
        texts = []
        for name in columns_named(table, TEXTS):
            # What is shown of others may be written anew with each verdict.
            if name in {*self.table.columns.shown} & self._earlier_table.table.columns.keys():
                texts.append((table.texts(name), self._earlier_table.table.texts(name)))
        ends: dict[tuple[Any, ...], tuple[str, str, str]] = {}
        strata_of_cases = self._strata()
        for row, (case, judge) in enumerate(self.rows):
            rubric, run, epoch = self.rubric(case), case.key.case, case.key.epoch
            key = (rubric, epoch, judge, scale.target(case.label))
            if key not in ends:
                ends[key] = id_ends(self._spec(case, judge))
            head, of_case, of_judge = ends[key]
            made_id = f"{head}{node_part(run)}[{of_case}]"
            its_id = f"{made_id[:-1]}{of_judge}]" if of_judge else made_id
            line_number = f":{table.lines[case.row]}" if table.path is None else ""
            of_several = f" [{judge}]" if self.has_judges else ""
            self.nodes[its_id] = f"{table.file}{line_number}: {run}{of_several}"
            repeats = case.scores(judge)
            score = scale.settled(repeats)
            outcome: Outcome = "agree" if scale.accepts(score, case.label) else "disagree"
            if not repeats:
                outcome = "invalid_response"
            elif case.label is None:
                outcome = "unlabelled"
            compared: Json = {}
            if self.judges_before:
                line = self._line(case, judge)
                is_same = False
                if line is not None:
                    self.rows_before[its_id] = row
                    is_same = line.label == case.label and all(
                        same_lines(now[case.row]) == same_lines(then[line.case.row])
                        for now, then in texts
                    )
                apart = why_apart(outcome, has_line=line is not None, is_same=is_same)
                compared = {"apart": apart, "before": line.scores if line and not apart else None}
            yield {
                **compared,
                "ids": its_id,
                "judge": judge if self.has_judges else "",
                "rubric": rubric,
                "made": made_id,
                "cluster": (case.cluster, run if case.cluster is None else ""),
                "run": (run, epoch),
                "label": case.label,
                "score": score,
                "answers": repeats,
                "outcome": outcome,
                "slices": self._slices[case.row],
                "systems": self.table.systems[case.row] if self.table.systems else (),
                # No figure of probabilities is weighted.
                "probabilities": () if strata_of_cases else case.probabilities(judge),
                "weight": strata_of_cases.get(case.key),
            }

    def _strata(self) -> Mapping[CaseKey, Stratum | None]:
        """The stratum of each case's label; nothing where no label has a weight."""
        cases = self.table.cases
        weights = []
        for case in cases.values():
            weight = case.weight if case.label is not None else 0.0
            weights.append((case.stratum if weight else "", weight))
        if not any(weight for _, weight in weights):
            return {}
        clusters = Coded.of(case.cluster or str(key) for key, case in cases.items())
        return dict(zip(cases, strata(weights, clusters.codes), strict=True))
