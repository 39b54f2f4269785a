"""RAND's tests of answers: under their names the kinds of tests and the probes that they are here.

Importing this makes the names known. RAND has models change the layout of an answer; here code
does, which cannot change more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Annotated, TypeAlias

from pydantic import Field

from pytest_jrh.cases import probes, tests
from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.probe import Base, Derived, Variant, shipped
from pytest_jrh.cases.tests import LABELS, PERTURBATION
from pytest_jrh.core.sections import ConfigSection, Count, Flag, Runs, Takes

FLIP, ORDINAL = "label_flip", "synthetic_ordinal"
STABLE, AMBIGUITY = "stochastic_stability", "answer_ambiguity"
UNCHANGED = LABELS.name
"""The test of the rows that probes change, as they are."""

for _kind in (
    replace(PERTURBATION, name=FLIP, answer="each", flips=True),
    replace(PERTURBATION, name=ORDINAL, answer="each"),
    replace(LABELS, name=STABLE),
    replace(LABELS, name=AMBIGUITY),
):
    tests.OTHER_NAMES[_kind.name] = replace(_kind, key=_kind.name)

# By name the probe of ours, and its variant.
_PROBES = {
    "semantic_paraphrase": ("paraphrase", "words"),
    "verbosity_bias_long": ("verbosity", "long"),
    "verbosity_bias_short": ("verbosity", "short"),
    "format_invariance_1": (FORMAT_INVARIANCE.name, "blank_lines"),
    "format_invariance_2": (FORMAT_INVARIANCE.name, "spaces"),
    "format_invariance_3": (FORMAT_INVARIANCE.name, "indents"),
}
NAMES = (FLIP, ORDINAL, STABLE, AMBIGUITY, *_PROBES)
_KINDS = "|".join((UNCHANGED, FLIP, ORDINAL, STABLE, AMBIGUITY))
RandTestName: TypeAlias = Annotated[str, Field(pattern=f"^({_KINDS})$"), Takes(_KINDS)]


def _in_layout(layout: str, base: Base, _variant: Variant, random: Random) -> Derived:
    assert FORMAT_INVARIANCE.derive is not None
    return FORMAT_INVARIANCE.derive(base, Variant(layout), random)


for _name, (_probe, _layout) in _PROBES.items():
    if _probe == FORMAT_INVARIANCE.name:
        # As one by text, whose only variant is that nothing changes.
        probes.OTHER_NAMES[_name] = replace(
            FORMAT_INVARIANCE,
            variants=lambda: (Variant("none"),),
            derive=partial(_in_layout, _layout),
        )


class RandTest(ConfigSection):
    """A test of answers by RAND's name."""

    rows: Runs = 0
    """How many rows of the table are drawn, as RAND draws them; 0 means all."""
    again: Flag = False
    """Whether a row may be drawn again."""
    judged: Flag = True
    """Whether its cases are judged, not only made."""
    seeds: Count = 1
    """How often each of its cases is judged at least, as RAND's harness has seeds for it."""
    repetitions: Count = 1
    """How often for each of the seeds, which no model is sent."""


def instruction(name: str) -> str:
    """What the editor is told to do in a probe of RAND's; in one of layouts it is not asked."""
    probe, variant = _PROBES[name]
    text: str = shipped("rewriting.yml").get(probe, {}).get(variant, variant)
    return text
