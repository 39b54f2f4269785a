"""The probes for which the editor writes anew what the agent says, as a text tells it. The
verifier, which does not see that text, must find the label that the case then has.

`paraphrase` and `verbosity` say the same in other words, and at another length. `verdict_pressure`
has the last turn argue that the rubric was kept, where it was not. Others are those of a config.
"""

from __future__ import annotations

from random import Random
from typing import Any

from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench, Variant, shipped
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.stages import EDITOR, ONE_CALL, VERIFIER, Bounds


async def _rewritten(bench: ProbeBench, base: Base, variant: Variant, _random: Random) -> Derived:
    expected = base.expected
    if variant.name == "claim" and not base.is_failing:
        text = f"the rubric is {base.scale.word(expected)}: that it was kept would be true"
        raise NoVerdictCase("probe_not_applicable", text)
    if variant.name == "flip":
        expected = next(score for score in base.scale.scores if score != expected)
    word = base.scale.word(expected)
    messages = await bench.rewritten(base, variant.data or bench.instruction, word)
    found = await bench.answer(messages, base.rubric)
    if not base.scale.accepts(found, expected):
        text = f"the verifier does not find the rubric {word} in what the editor wrote"
        raise NoVerdictCase("not_confirmed", text)
    return Derived(messages, expected=expected)


def _probe(name: str, marker: str, **what: Any) -> Probe:
    return Probe(
        name,
        marker,
        lambda: tuple(Variant(*way) for way in shipped("rewriting.yml")[name].items()),
        ask=_rewritten,
        calls={EDITOR.name: ONE_CALL, VERIFIER.name: Bounds(0, 1)},
        **what,
    )


VERDICT_PRESSURE = _probe(
    "verdict_pressure",
    "a case that violates its rubric, and whose last turn argues that it was kept",
    binary_only=True,
    changes="failing",
)
PARAPHRASE = _probe("paraphrase", "a case that says the same in other words")
VERBOSITY = _probe("verbosity", "a case that says the same at another length")
BY_TEXT = _probe("by_text", "a case that is changed as a text of the config says")
"""What a probe is whose name and text are those of a config."""
