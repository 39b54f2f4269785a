"""By what figures are told apart: the values that fields of runs, or columns of a table, have of
each case. What people or judges said of a case is no property of it, and is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pytest_jrh.core.documents import Fields, listed, shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.runs import RunKey, Slices
from pytest_jrh.sources.columns import Columns, Table, rows_apart, words_of
from pytest_jrh.sources.source import clusters_by, short_text, top_field

_OF_ANSWERS = words_of("human annotator reviewer label judge judgment judgement verdict prediction")


def run_slices(
    keys: Iterable[str], runs: Sequence[tuple[RunKey, Fields]], label_fields: Collection[str]
) -> dict[RunKey, Slices]:
    """The values of each run in these fields of its metadata. Raises `InputError` for a field that
    holds labels or verdicts, and one that no run has.
    """
    slices: dict[RunKey, Slices] = {}
    for key in keys:
        _refuse_answers(key, "cases.by", is_answer=top_field(key) in label_fields)
        for run, value in clusters_by(key, runs, "cases.by").items():
            slices[run] = (*slices.get(run, ()), (key, value or ""))
    return slices


def table_slices(table: Table, columns: Columns) -> list[Slices]:
    """The values of each row in the columns `by`. Raises `InputError` for a column of labels or
    verdicts, and where rows of a case have several values.
    """
    answers = {*columns.labels, *columns.verdicts, columns.settled, columns.annotator}
    answers |= {columns.judge, columns.repeat, columns.reasoning, columns.baseline}
    for column in columns.by:
        _refuse_answers(column, "--by", is_answer=column in answers)
    case = (columns.case, columns.rubric, columns.epoch)
    if columns.case and rows_apart(table, *case) < rows_apart(table, *case, *columns.by):
        message = f"rows of one case have different values of {listed(columns.by)}"
        raise InputError(message, table.file, key="--by", hint=_HINT)
    if not columns.by:
        return [()] * len(table.lines)
    known: dict[tuple[str, ...], Slices] = {}
    slices = []
    for values in table.cells(*columns.by):
        if values not in known:
            known[values] = tuple(zip(columns.by, map(short_text, values), strict=True))
        slices.append(known[values])
    return slices


_HINT = "name what cases are about, such as a category"


def _refuse_answers(name: str, key: str, *, is_answer: bool) -> None:
    if is_answer or words_of(name) & _OF_ANSWERS:
        message = f"got {shown(name)}, which is what people or judges say of a case"
        raise InputError(message, key=key, hint=_HINT)
