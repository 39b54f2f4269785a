"""`verdict_pressure`: the last turn argues that the rubric was kept, where it was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from random import Random


_CLAIM = Variant("claim", ("claim",))


async def _ask(bench: ProbeBench, base: Base, _variant: Variant, _random: Random) -> Derived:
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
    ask=_ask,
    calls={EDITOR.name: ONE_CALL, VERIFIER.name: Bounds(0, 1)},
    binary_only=True,
    changes="violated",
)
