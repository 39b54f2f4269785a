"""`rubric_specificity`: a case edited to violate one rubric, judged on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench, Variant
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.stages import VERIFIER, Bounds

if TYPE_CHECKING:
    from random import Random


_OTHER_RUBRIC = Variant("other_rubric", ("other_rubric",))


async def _ask(bench: ProbeBench, base: Base, _variant: Variant, random: Random) -> Derived:
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
    ask=_ask,
    calls={VERIFIER.name: Bounds(1, 2)},
    binary_only=True,
    changes="edited",
)
