"""A table of verdicts as a suite is: what its cases came to, in columns for the figures, and as
results for those that are named.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from pytest_jrh.cases.tests import LABELS
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.documents import Json
from pytest_jrh.core.ids import case_id, empty_result, id_ends, node_part
from pytest_jrh.core.results import CaseResult, Extra, most_frequent
from pytest_jrh.core.runs import LabelSource, Message
from pytest_jrh.core.skips import Outcome, Why
from pytest_jrh.core.text import ELLIPSIS, same_lines
from pytest_jrh.sources.columns import (
    TEXTS,
    CaseKey,
    columns_named,
    table_slices,
    texts_of_row,
)
from pytest_jrh.sources.verdicts import TableCase, VerdictTable
from pytest_jrh.stats.baseline import NEVER_REPORTED
from pytest_jrh.stats.comparison import NOT_IN_SUITE, why_apart
from pytest_jrh.stats.verdicts import NOT_COMPARED, Verdicts, numbered
from pytest_jrh.stats.weights import Stratum, strata


class _Line(NamedTuple):
    """What a case was in the baseline."""

    case: TableCase
    scores: tuple[int, ...]
    label: int


_MOST_KEPT = 8192
_LONGEST_TEXT = 8_000


class TableResults(Sequence[CaseResult]):
    """What the cases of a table came to under its judges: `rows` are cases with the judge.

    `verdicts` are all of them in columns, beside those of the `earlier` table, whose judges are
    `before` by those of now; `gone` are by their ids its cases without a row now, with why they are
    not compared. A result is made when it is asked for, as most cases are never named.
    """

    def __init__(
        self,
        table: VerdictTable,
        judges: Sequence[str],
        earlier: VerdictTable,
        before: Mapping[str, str],
        *,
        common: bool,
    ) -> None:
        self.table = table
        self.has_judges = len({*judges, *before}) > 1
        self.name = Path(table.table.file).stem or table.table.file
        # What a page lists is asked for several times.
        self._at = lru_cache(maxsize=_MOST_KEPT)(self._result)
        self._earlier_table, self.judges_before = earlier, before
        self.earlier = _OnDemand({}, partial(self._result, of_baseline=True))
        """What was said before, by the result's id."""
        self.rows: list[tuple[TableCase, str]] = []
        for judge in judges:
            for case in table.cases.values():
                # One with neither label nor verdict counts for nothing, and of some the judge has
                # no row; one on which people disagree has their votes.
                is_rated = (table.values.scale.is_verdict or case.votes) and case.given.get(judge)
                if judge in case.given and (case.label is not None or is_rated):
                    self.rows.append((case, judge))
        self._slices = table_slices(table.table, table.columns)
        self.gone = dict(self._gone(common=common))
        self.verdicts = Verdicts.of_rows(self._columns())
        places = {its_id: row for row, its_id in enumerate(self.verdicts.ids)}
        self.nodes = _OnDemand(places, self._node)
        """By the result's id what reports call a case: its line and its name."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [*map(self._at, range(len(self))[row])]
        return self._at(row)

    @cached_property
    def _text_columns(self) -> list[str]:
        """The columns that hold what was judged."""
        used = self.table.columns.used
        return [name for name in columns_named(self.table.table, TEXTS) if name not in used]

    def texts(self, result: CaseResult) -> Sequence[Message]:
        """What the first row of a case holds of what was judged; long texts are cut."""
        case, _ = self.rows[self.nodes.data[result.case_id]]
        turns = []
        for turn in texts_of_row(self.table.table, self._text_columns, case.row):
            text = str(turn["content"])
            if (more := len(text) - _LONGEST_TEXT) > 0:
                text = f"{text[:_LONGEST_TEXT]} {ELLIPSIS} ({more:,} more characters)"
            turns.append({**turn, "content": text})
        return turns

    def rubric(self, case: TableCase) -> str:
        """The name of its rubric; where there are none, that of the column of labels."""
        columns = self.table.columns
        return case.key.rubric or columns.label or columns.verdicts[0]

    def _gone(self, *, common: bool) -> Iterator[tuple[str, str]]:
        there = {(case.key, judge) for case, judge in self.rows}
        for judge in self.judges_before:
            for key, case in self._earlier_table.cases.items():
                if (key, judge) in there or self._line(key, judge, has_row=False) is None:
                    continue
                # Cases whose text is another one have left, and are not missed.
                has_left = common or key.case in self.table.changed
                reason = NOT_IN_SUITE if has_left else NEVER_REPORTED
                yield case_id(self._spec(case, judge)), reason

    def _line(self, key: CaseKey, judge: str, *, has_row: bool) -> _Line | None:
        """What the baseline's judge said of a case; None where it said nothing, or nobody knows
        what is right.
        """
        earlier = self._earlier_table.cases.get(key)
        if earlier is None:
            return None
        scores = earlier.scores(self.judges_before[judge])
        now = self.table.cases.get(key)
        label_now = earlier.label if now is None else now.label
        has_left = label_now is None and key.case in self.table.changed
        is_rated = self.table.values.scale.is_verdict or label_now is not None or has_left
        if not scores or not is_rated:
            return None
        label = earlier.label
        if label is None:
            # A case without a row now, or of another text, is missed, whatever its label.
            label = scores[0] if has_left or not has_row else label_now
        return None if label is None else _Line(earlier, scores, label)

    def _node(self, row: int) -> str:
        case, judge = self.rows[row]
        table = self.table.table
        line = f":{table.lines[case.row]}" if table.path is None else ""
        name = f"{table.file}{line}: {case.key.case}"
        return f"{name} [{judge}]" if self.has_judges else name

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
        line = self._line(case.key, judge, has_row=True) if of_baseline else None
        if line is not None:
            table, case, label = self._earlier_table, line.case, line.label
            judge = self.judges_before[judge]
        given = case.given[judge]
        # One with neither label nor verdict is no result; without a label alone it counts for the
        # rate of violations.
        why = Why() if given else Why("invalid_response", "the verdict is empty")
        by: LabelSource = "column" if self.table.columns.guessed_label else "people"
        return replace(
            empty_result(spec),
            answers=scale.line,
            within=scale.within,
            label=label,
            labelled_by=None if label is None else by,
            # What changes with a case: of a table, its label is all that is known of it.
            case_digest="" if label is None else f"label {label}",
            # Another column of the same table is another judge, too.
            judge_digest="earlier" if of_baseline else "now",
            scores=case.scores(judge),
            reasons=tuple(_reasoning(table, row, judge) for row, _ in given),
            why=why,
            extra=Extra(probabilities=case.probabilities(judge)),
        )

    def _columns(self) -> Iterator[Json]:
        """The columns of each row, for which no result is made."""
        scale = self.table.values.scale
        same = {
            **NOT_COMPARED,
            "suite": self.name,
            "test": LABELS.name,
            "variant": "",
            "scale": scale,
            "base": (),
            "base_case": "",
        }
        texts = []
        for name in self._text_columns:
            if name in self._earlier_table.table.columns:
                now, then = self.table.table.texts(name), self._earlier_table.table.texts(name)
                texts.append((now, then))
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
            repeats = case.scores(judge)
            score = most_frequent(repeats)
            outcome: Outcome = "agree" if scale.accepts(score, case.label) else "disagree"
            if not repeats:
                outcome = "invalid_response"
            elif case.label is None:
                outcome = "unlabelled"
            compared: Json = {}
            if self.judges_before:
                line = self._line(case.key, judge, has_row=True)
                is_same = False
                if line is not None:
                    self.earlier.data[its_id] = row
                    is_same = line.label == case.label and all(
                        same_lines(now[case.row]) == same_lines(then[line.case.row])
                        for now, then in texts
                    )
                apart = why_apart(outcome, has_line=line is not None, is_same=is_same)
                compared = {"apart": apart, "before": line.scores if line and not apart else None}
            yield {
                **same,
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
        clusters = numbered(case.cluster or str(key) for key, case in cases.items())
        return dict(zip(cases, strata(weights, clusters), strict=True))


def _reasoning(table: VerdictTable, row: int, judge: str) -> str:
    """Why a judge says what it says in a row; empty where no column tells."""
    # The reasons beside a column of earlier verdicts are those of now.
    if judge == table.columns.baseline:
        return ""
    return table.columns.texts[table.columns.reasoning][row]


class _OnDemand(UserDict[str, Any]):
    """What there is to say of rows by their ids, made when it is asked for."""

    def __init__(self, rows: dict[str, int], make: Callable[[int], Any]) -> None:
        # Not copied, as there may be many.
        self.data = rows
        self._make = make

    def __getitem__(self, id_: str) -> Any:
        return self._make(self.data[id_])
