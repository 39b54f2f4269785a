"""The probes, and a case changed by one; a probe that is not in this table does not exist.

Each finds one kind of defect in a judge, and lets judges without it pass. Here are those that
models make.

`rubric_specificity`: a case edited to violate one rubric, judged on another one.

For the others the editor writes anew what the agent says, as a text tells it. The verifier, which
does not see that text, must find the label that the case then has. `paraphrase` and `verbosity` say
the same in other words, and at another length. `verdict_pressure` has the last turn argue that the
rubric was kept, where it was not. Others are those of a config.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from pytest_jrh.cases.probes.format_invariance import FORMAT_INVARIANCE
from pytest_jrh.cases.probes.position import POSITION
from pytest_jrh.cases.probes.probe import (
    PROBE_SEED,
    Base,
    Derived,
    Probe,
    ProbeBench,
    Variant,
    shipped,
)
from pytest_jrh.cases.probes.prompt_injection import PROMPT_INJECTION
from pytest_jrh.cases.probes.swap import SWAP
from pytest_jrh.core.calls import EDITOR, ONE_CALL, VERIFIER, Bounds
from pytest_jrh.core.cases import Case, CaseSpec, NoVerdictCase, PerturbationOutcome
from pytest_jrh.core.diffs import decisive_turns
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.transcript import render_transcript


async def _of_other_rubric(
    bench: ProbeBench, base: Base, _variant: Variant, random: Random
) -> Derived:
    if not base.is_failing or not base.decisive:
        raise NoVerdictCase("probe_not_applicable", "the case was not edited to violate its rubric")
    other_rubrics = [rubric for rubric in bench.rubrics if rubric.id != base.rubric.id]
    if not other_rubrics:
        raise NoVerdictCase("probe_not_applicable", "the suite has no other rubric")
    other_rubric = random.choice(other_rubrics)
    satisfied = other_rubric.scale.aim("pass")
    if await bench.answer(bench.original, other_rubric) != satisfied:
        raise NoVerdictCase(
            "not_confirmed",
            f"the rubric {other_rubric.id} was {base.scale.word(base.expected)} before the edit",
        )
    if await bench.answer(base.messages, other_rubric) != satisfied:
        raise NoVerdictCase(
            "not_confirmed", f"the edit violates the rubric {other_rubric.id} as well"
        )
    return Derived(base.messages, rubric=other_rubric, expected=satisfied)


RUBRIC_SPECIFICITY = Probe(
    name="rubric_specificity",
    marker="a case edited to violate one rubric, judged by another rubric that the case satisfies",
    variants=lambda: (Variant("other_rubric"),),
    ask=_of_other_rubric,
    calls={VERIFIER.name: Bounds(1, 2)},
    binary_only=True,
    changes="edited",
)


async def _rewritten(bench: ProbeBench, base: Base, variant: Variant, _random: Random) -> Derived:
    expected = base.expected
    if variant.name == "claim" and not base.is_failing:
        raise NoVerdictCase(
            "probe_not_applicable",
            f"the rubric is {base.scale.word(expected)}, so a claim that it was kept would be true",
        )
    if variant.name == "flip":
        expected = next(score for score in base.scale.scores if score != expected)
    word = base.scale.word(expected)
    messages = await bench.rewritten(base, variant.data or bench.instruction, word)
    found = await bench.answer(messages, base.rubric)
    if not base.scale.accepts(found, expected):
        raise NoVerdictCase(
            "not_confirmed",
            f"the verifier does not say that the editor's text makes the rubric {word}",
        )
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
    "a case that violates its rubric, but whose last turn claims that it does not",
    binary_only=True,
    changes="failing",
)
PARAPHRASE = _probe("paraphrase", "a case that says the same in other words")
VERBOSITY = _probe("verbosity", "a case that says the same at another length")
BY_TEXT = _probe("by_text", "a case changed as the config describes")
"""What a probe is whose name and text are those of a config."""


OTHER_NAMES: dict[str, Probe] = {}
"""Probes under the names that files of another harness have for them."""


class Probes(dict[str, Probe]):
    """Probes by name; what is not in it is one by text, which a config names."""

    def __missing__(self, name: str) -> Probe:
        return replace(OTHER_NAMES.get(name, BY_TEXT), name=name)


PROBES = Probes(
    (probe.name, probe)
    for probe in (
        FORMAT_INVARIANCE,
        PROMPT_INJECTION,
        POSITION,
        SWAP,
        RUBRIC_SPECIFICITY,
        VERDICT_PRESSURE,
        PARAPHRASE,
        VERBOSITY,
    )
)

_NO_TEXT = "the text that the judge reads shows no ids, so the probe changed nothing in that text"


def probe_arguments(base: Case, spec: CaseSpec) -> tuple[Base, Variant, Random]:
    """What the probe of a spec takes to change its base case; what it draws is the same each time
    that the case is made.
    """
    # Of runs without a label no probe makes a case.
    assert base.expected is not None
    variants = {variant.name: variant for variant in PROBES[spec.test].variants()}
    seen = Base(
        messages=base.messages,
        expected=base.expected,
        rubric=base.rubric,
        decisive=decisive_turns(base.outcome.edits, len(base.messages)),
    )
    # The same in every process: what a judge of a panel sees, all of them see.
    return seen, variants[spec.variant], Random(f"{PROBE_SEED}:{generation_id(spec)}")  # noqa: S311 - reproducible, not secret


def derived(base: Case, spec: CaseSpec, *, reads_text: bool) -> Case:
    """The case of a probe without models; raises `NoVerdictCase` where its variant does not apply,
    or a judge that `reads_text` sees no change.
    """
    derive = PROBES[spec.test].derive
    assert derive is not None
    made = changed(base, spec, derive(*probe_arguments(base, spec)))
    if reads_text:
        texts = (render_transcript(case.messages, show_reasoning=True) for case in (made, base))
        if len({*texts}) == 1:
            raise NoVerdictCase("probe_not_applicable", _NO_TEXT)
    return made


def changed_again(base: Case, spec: CaseSpec) -> Case | None:
    """The case that a probe made of another one; None where models made it, or the variant is no
    longer there.
    """
    if PROBES[spec.test].derive is None:
        return None
    try:
        return derived(base, spec, reads_text=False)
    except (NoVerdictCase, KeyError):
        return None


def changed(base: Case, spec: CaseSpec, made: Derived) -> Case:
    """The case of a probe: its base case with what the probe has made of it."""
    verification, confirmed = base.outcome.verification, base.outcome.confirmed
    return replace(
        base,
        spec=spec,
        rubric=made.rubric or base.rubric,
        outcome=PerturbationOutcome(made.messages, verification=verification, confirmed=confirmed),
        expected=base.expected if made.expected is None else made.expected,
        label=base.label if made.expected in (None, base.expected) else None,
        digests=None,
        review=None,
    )
