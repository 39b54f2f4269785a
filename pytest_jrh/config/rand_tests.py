"""RAND's tests of answers: under their names the kinds of tests and the probes that they are here.

Importing this makes the names known. RAND has models change the layout of an answer; here code
does, which cannot change more.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Annotated, TypeAlias

from pydantic import Field

from pytest_jrh.cases import probes, tests
from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.probe import Base, Derived, Probe, Variant, shipped
from pytest_jrh.cases.tests import LABELS, PERTURBATION
from pytest_jrh.core.sections import ConfigSection, Count, Flag, Runs, Takes

FLIP, ORDINAL = "label_flip", "synthetic_ordinal"
STABLE, AMBIGUITY = "stochastic_stability", "answer_ambiguity"
UNCHANGED = LABELS.name
"""The test of the rows that probes change, as they are."""
_SINGLE = ("recall", "false_positive_rate")

for _kind in (
    replace(PERTURBATION, name=FLIP, answer="each", figures=_SINGLE, flips=True),
    replace(PERTURBATION, name=ORDINAL, answer="each", figures=_SINGLE),
    replace(LABELS, name=STABLE),
    replace(LABELS, name=AMBIGUITY),
):
    tests.OTHER_NAMES[_kind.name] = replace(_kind, key=_kind.name)

# By name what the editor is told: by a probe of ours and its variant, whose text that is.
_TEXTS = {
    "semantic_paraphrase": ("paraphrase", "words"),
    "verbosity_bias_long": ("verbosity", "long"),
    "verbosity_bias_short": ("verbosity", "short"),
}
_LAYOUTS = {
    "format_invariance_1": "blank_lines",
    "format_invariance_2": "spaces",
    "format_invariance_3": "indents",
}
NAMES = (FLIP, ORDINAL, STABLE, AMBIGUITY, *_TEXTS, *_LAYOUTS)


def _in_layout(layout: str) -> Probe:
    """The probe of one layout, as one by text, whose only variant is that nothing changes."""
    derive = FORMAT_INVARIANCE.derive
    assert derive is not None

    def derived(base: Base, _variant: Variant, random: Random) -> Derived:
        return derive(base, Variant(layout), random)

    return replace(FORMAT_INVARIANCE, variants=lambda: (Variant("none"),), derive=derived)


for _name, _layout in _LAYOUTS.items():
    probes.OTHER_NAMES[_name] = _in_layout(_layout)


_KINDS = "|".join((UNCHANGED, FLIP, ORDINAL, STABLE, AMBIGUITY))
RandTestName: TypeAlias = Annotated[str, Field(pattern=f"^({_KINDS})$"), Takes(_KINDS)]


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
    if name in _LAYOUTS:
        return _LAYOUTS[name]
    probe, variant = _TEXTS[name]
    text: str = shipped("rewriting.yml")[probe][variant]
    return text
