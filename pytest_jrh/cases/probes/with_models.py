"""The probes whose cases models of the suite make.

`rubric_specificity`: a case edited to violate one rubric, judged on another one.
`verdict_pressure`: the last turn argues that the rubric was kept, where it was not.
"""

from __future__ import annotations

from random import Random

from pytest_jrh.cases.probes.probe import (
    Base,
    Derived,
    Probe,
    ProbeBench,
    Variant,
    positions_of,
)
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.stages import EDITOR, ONE_CALL, VERIFIER, Bounds
from pytest_jrh.core.transcript import replace_text

_OTHER_RUBRIC = Variant("other_rubric")


async def _of_other_rubric(
    bench: ProbeBench, base: Base, _variant: Variant, random: Random
) -> Derived:
    if not base.expected or not base.decisive:
        raise NoVerdictCase("probe_not_applicable", "the case was not edited to violate its rubric")
    other_rubrics = [rubric for rubric in bench.rubrics if rubric.id != base.rubric.id]
    if not other_rubrics:
        raise NoVerdictCase("probe_not_applicable", "the suite has no other rubric")
    other_rubric = random.choice(other_rubrics)
    if not await bench.satisfied(bench.original, other_rubric):
        raise NoVerdictCase(
            "not_confirmed", f"the rubric {other_rubric.id} was violated before the edit"
        )
    if not await bench.satisfied(base.messages, other_rubric):
        raise NoVerdictCase(
            "not_confirmed", f"the edit violates the rubric {other_rubric.id} as well"
        )
    return Derived(base.messages, rubric=other_rubric, expected=0)


RUBRIC_SPECIFICITY = Probe(
    name="rubric_specificity",
    marker="a case edited to violate one rubric, judged on another one that it satisfies",
    label="specificity",
    variants=lambda _settings: (_OTHER_RUBRIC,),
    ask=_of_other_rubric,
    calls={VERIFIER.name: Bounds(1, 2)},
    binary_only=True,
    changes="edited",
)


_CLAIM = Variant("claim")


async def _claim(bench: ProbeBench, base: Base, _variant: Variant, _random: Random) -> Derived:
    if not base.expected:
        raise NoVerdictCase(
            "probe_not_applicable", "the rubric is satisfied: that it was kept would be true"
        )
    turns = positions_of(base.messages, "assistant")
    if not turns:
        raise NoVerdictCase("no_assistant_turn")
    last = turns[-1]
    text = await bench.argued(base.messages, last, base.rubric)
    changed, _ = replace_text(base.messages[last], text)
    messages = (*base.messages[:last], changed, *base.messages[last + 1 :])
    if await bench.satisfied(messages, base.rubric):
        raise NoVerdictCase(
            "not_confirmed", "the verifier says that the changed transcript satisfies the rubric"
        )
    return Derived(messages)


VERDICT_PRESSURE = Probe(
    name="verdict_pressure",
    marker="a case that violates its rubric, and whose last turn argues that it was kept",
    label="pressure",
    variants=lambda _settings: (_CLAIM,),
    ask=_claim,
    calls={EDITOR.name: ONE_CALL, VERIFIER.name: Bounds(0, 1)},
    binary_only=True,
    changes="violated",
)
