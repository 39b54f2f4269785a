"""Probes of the planted judges of `examples/probes`, without pytest and without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random

from examples.probes.judges import sound
from examples.probes.shop import CLAIMS, DECISIVE, conversation, edited
from pytest_jrh import JudgedCase
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import Base, Derived, Probe, ProbeBench, ProbeSettings
from pytest_jrh.config.probes import drawn
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.model import CaseResult, CaseSpec, Message, Outcome, Rubric
from pytest_jrh.judges.judge import JudgedRubric
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.stats.probes import ProbeTable, probe_tables
from tests.support.judged_sessions import DIGEST
from tests.support.made_cases import make_result, make_spec, result_with
from tests.support.scripted import ScriptedModel

RUBRICS = {name: Rubric(name, f"The rule on {name}.") for name in ("refunds", "privacy")}
RUNS = 20
FLIPS = 0.02
"""How often a verdict of these judges is the other one by chance."""
DEFAULT: Mapping[str, ProbeSettings] = {
    name: ProbeSettings(per_case=probe.per_case) for name, probe in PROBES.items()
}
GRID: Mapping[str, ProbeSettings] = {
    **DEFAULT,
    **dict.fromkeys(("format_invariance", "position"), ProbeSettings(per_case=99)),
}
"""All variants of the probes of which a defect may show in a few."""

Planted = Callable[[JudgedCase], int]


def probed(judge: Planted, seed: int, settings: Mapping[str, ProbeSettings]) -> list[ProbeTable]:
    """What all probes say of a judge; which cases are changed, and chance, are drawn by seed."""
    chance = Random(f"{seed}:{judge.__name__}")

    def flipped(score: int) -> int:
        return score ^ (chance.random() < FLIPS)

    right = {
        spec: flipped(_judged(judge, base.messages, base.rubric)) == base.expected
        for spec, base in _bases().items()
    }
    results: list[CaseResult] = []
    for name, probe in PROBES.items():
        own = replace(settings[name], seed=seed)
        for spec in _specs(probe, own):
            scores = _scores(judge, name, spec) if right[spec.base_case] else None
            if scores is not None:
                results.append(_result(spec, flipped(scores[0]), scores[1]))
    return list(probe_tables(results))


def _specs(probe: Probe, settings: ProbeSettings) -> Iterator[CaseSpec]:
    variants = probe.variants(settings)
    bases = [spec for spec, base in _bases().items() if probe.changes == "all" or base.expected]
    for spec, ways in drawn(bases, variants, settings).items():
        for variant in ways:
            yield replace(spec, test=probe.name, base=spec.test, variant=variant.name)


def _result(spec: CaseSpec, score: int, expected: int) -> CaseResult:
    outcome: Outcome = "agree" if score == expected else "disagree"
    result = make_result(spec, outcome, score, case_digest=DIGEST, judge_fingerprint=DIGEST)
    return result_with(
        result, expected=expected, score=score, base_scores=(_bases()[spec.base_case].expected,)
    )


@cache
def _scores(judge: Planted, name: str, spec: CaseSpec) -> tuple[int, int] | None:
    """What the judge says of a changed case, and what is right; None where there is no case."""
    base = _bases()[spec.base_case]
    made = _made(name, spec)
    if made is None:
        return None
    expected = base.expected if made.expected is None else made.expected
    return _judged(judge, made.messages, made.rubric or base.rubric), expected


@cache
def _made(name: str, spec: CaseSpec) -> Derived | None:
    probe, base = PROBES[name], _bases()[spec.base_case]
    variant = next(one for one in probe.variants(ProbeSettings()) if one.name == spec.variant)
    random = Random(f"{spec.run_id}:{spec.variant}")

    async def make() -> Derived:
        if probe.ask is None:
            assert probe.derive is not None
            return probe.derive(base, variant, random)
        original = _bases()[replace(spec.base_case, test="agent_positives")].messages
        bench = _Models(tuple(RUBRICS.values()), original, {}, {}, ScriptedModel())
        return await probe.ask(bench, base, variant, random)

    try:
        made = asyncio.run(make())
    except NoVerdictCase:
        return None
    # The judges are code, which gets messages: it sees no headers.
    return None if made.style else made


class _Models(ProbeBench):
    """A verifier that is right, and an editor that adds what the agent claims."""

    async def satisfied(self, messages: tuple[Message, ...], rubric: Rubric) -> bool:
        return not _judged(sound, messages, rubric)

    async def argued(self, messages: tuple[Message, ...], position: int, rubric: Rubric) -> str:
        return f"{messages[position]['content']} {CLAIMS[rubric.id]}"


def _judged(judge: Planted, messages: tuple[Message, ...], rubric: Rubric) -> int:
    return judge(JudgedCase(JudgedRubric(rubric.id, rubric.instructions), messages))


@cache
def _bases() -> dict[CaseSpec, Base]:
    """The cases that are changed: each run under each rubric, as it is and violating it."""
    made: dict[CaseSpec, Base] = {}
    for number in range(RUNS):
        messages, _ = read_messages(conversation(number))
        for rubric in RUBRICS.values():
            spec = make_spec(f"run-{number:02}", rubric_id=rubric.id, test="agent_positives")
            made[spec] = Base(messages, 0, "binary", (), rubric)
            turn = dict(messages[DECISIVE])
            turn["content"] = edited(rubric.id, turn["content"])
            violated = (*messages[:DECISIVE], turn, *messages[DECISIVE + 1 :])
            made[replace(spec, test="agent_perturbation")] = Base(
                violated, 1, "binary", (), rubric, frozenset({DECISIVE})
            )
    return made
