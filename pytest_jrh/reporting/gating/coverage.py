"""How much of the baseline a gate's decision rests on, in sentences (rule J9)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from pytest_jrh.documents.problems import listed
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_jrh.gate.coverage import Coverage
    from pytest_jrh.gate.decision import GateDecision

_MOST_NAMED = 5


def coverage_sentences(decision: GateDecision) -> Iterator[str]:
    """Say what of the baseline was not compared, or with fewer repeats, and which rules decided
    nothing; nothing where the comparison is whole.
    """
    covered = decision.coverage
    if covered is not None and covered.compared:
        if less := list(_less(covered)):
            yield f"Compared: {_how_many(covered)}; {'; '.join(less)}."
        elif covered.compared < covered.of:
            yield f"Compared: {_how_many(covered)}."
    if decision.undecided:
        yield f"Not decided, as none of its cases was selected: {listed(decision.undecided)}."


def _how_many(covered: Coverage) -> str:
    deselected = f" ({covered.deselected:,} deselected)" if covered.deselected else ""
    return f"{covered.compared:,} of {counted(covered.of, 'case')} of the baseline{deselected}"


def _less(covered: Coverage) -> Iterator[str]:
    for one in covered.repeats:
        repeats = counted(one.now, "repeat")
        yield f"{counted(one.cases, 'case')} with {repeats} instead of {one.before:,}"
    if covered.missing:
        names = [f"{each.kind} {one_line(unquote(each.name))}" for each in covered.missing]
        yield f"nothing of {listed(names, _MOST_NAMED)}"
    if covered.added:
        yield f"{counted(covered.added, 'verdict')} on cases that it does not have"
