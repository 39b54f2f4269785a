"""Weights of labels in a file: how many cases of a table one of them stands for."""

from __future__ import annotations

from pytest_jrh.core.documents import shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.text import counted
from pytest_jrh.sources.columns import CaseKey
from pytest_jrh.sources.verdicts import VerdictTable


def weigh(labels: VerdictTable, table: VerdictTable) -> str:
    """Give the cases of a label file the weights of its rows, and say how many cases of a table
    they stand for; empty where no row has a weight.

    Raises `InputError` for weights that cannot be, are missing, or stand for more cases than there
    are.
    """
    of_file, columns, cases = labels.table, labels.columns, len(table.cases)
    weights = of_file.texts("weight")
    if not any(weights):
        return ""
    labels.columns = columns._replace(weight="weight")
    problems = []
    keys = of_file.cells(columns.case, columns.rubric, columns.epoch)
    for line, key, text in zip(of_file.lines, keys, weights, strict=True):
        case = labels.cases[CaseKey.of(*key)]
        try:
            weight = float(text or 0)
        except ValueError:
            weight = 0
        if not 1 <= weight <= cases:
            message = f"got {shown(text)}; must be a number from 1 to {cases:,}, the cases of "
            message += f"{table.table.file}, in each line of the file or in none"
            problems.append(Problem(message, of_file.file, line, "weight"))
        elif case.weight not in (0, weight):
            message = f"got {shown(text)}, and the same case has {case.weight:g} above"
            problems.append(Problem(message, of_file.file, line, "weight"))
        else:
            case.weight = weight
    of_file.refuse(problems)
    labelled = [case.weight for case in labels.cases.values() if case.label is not None]
    number, total = counted(len(labelled), "label"), round(sum(labelled))
    if total > cases:
        message = f"{number} stand for {total:,} cases, and {table.table.file} has {cases:,}"
        hint = "draw the labels from this table, into a file of their own"
        raise InputError(message, of_file.file, key="weight", hint=hint)
    return f"weighted: {number} stand for {total:,} of {counted(cases, 'case')}"
