"""`swap`: a pair with its two answers the other way round, for judges that are asked in one order;
and a pair that is made of a single answer.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pytest_jrh.cases.probes.probe import Base, Derived, Probe, Variant
from pytest_jrh.core import short_digest
from pytest_jrh.core.cases import Case, NoVerdictCase, Rubric
from pytest_jrh.core.scales import PLACES, code_of, other_place
from pytest_jrh.core.transcript import in_other_order, is_pair, paired


def in_order(case: Case, *, is_turned: bool) -> Case:
    """The case as its judge is asked about it."""
    if not is_turned:
        return case
    return replace(case, outcome=replace(case.outcome, messages=in_other_order(case.messages)))


def made_pair(case: Case, rubric: Rubric) -> Case:
    """The pair of an answer that satisfies its rubric, and so is the better one, and of what was
    made of it, in an order that is drawn by their texts.
    """
    *before, good = case.run.messages
    order = int(short_digest(repr((good, case.messages[-1])), 2), 16) % 2
    pair = paired(good, case.messages[-1])
    if order:
        pair = in_other_order(pair)
    return replace(
        case,
        rubric=rubric,
        outcome=replace(case.outcome, messages=(*before, *pair), edits=()),
        expected=code_of(PLACES[order]),
    )


def _swapped(base: Base, _variant: Variant, _random: Random) -> Derived:
    if not is_pair(base.messages):
        raise NoVerdictCase("probe_not_applicable", "the case is not a pair of answers")
    return Derived(in_other_order(base.messages), expected=other_place(base.expected))


SWAP = Probe(
    name="swap",
    marker="a pair with its two answers the other way round",
    variants=lambda: (Variant("other_order"),),
    derive=_swapped,
)
