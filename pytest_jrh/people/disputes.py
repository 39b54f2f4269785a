"""Cases on which people disagree: their votes, for somebody who sees them all and settles it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pytest_jrh.core import grouped
from pytest_jrh.core.documents import listed
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.files import exists
from pytest_jrh.core.text import counted
from pytest_jrh.core.values import as_word
from pytest_jrh.people.labels import LabelRow, LabelTable
from pytest_jrh.store.records import case_digest

Votes: TypeAlias = Mapping[str, Sequence[LabelRow]]
"""What people say of cases, by the digests of these."""


def disputes(labels: LabelTable, file: str) -> tuple[Votes, Sequence[str]]:
    """What people say of each case on which they disagree, and a sentence where `file`, which was
    labelled, does not have the text of all such cases.

    Raises `InputError` where there is none to be settled.
    """
    votes: dict[str, Sequence[LabelRow]] = {}
    lost = []
    blind = [row for row in labels.rows() if not row.is_settled]
    for rows in grouped((row.about, row) for row in blind).values():
        if len({as_word(row.label) for row in rows}) > 1:
            case = labels.case_of(rows[0])
            if case is None:
                lost.append(rows[0].run_id)
            else:
                votes[case_digest(case)] = rows
    gone = f"{counted(len(lost), 'case')} on which people disagree, with another text or rubric "
    gone += f"than in {file} ({listed(lost, 5)}): not shown"
    if not votes:
        message = gone if lost else f"people disagree on no case of {file}"
        if not exists(labels.path):
            message = "no such file"
        hint = "name the file that was labelled, with the same --rubric, --text and --case"
        raise InputError(message, str(labels.path), hint=hint)
    return votes, [gone] if lost else []
