"""Probes of the judges of `examples/probes`, whose verdicts flip by chance: what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random

from benchmarks.measure import Line
from examples.probes.judges import PLANTED
from examples.probes.shop import DECISIVE, conversation, edited
from pytest_jrh import JudgedCase
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import Base, Derived, ProbeSettings
from pytest_jrh.config.probes import drawn
from pytest_jrh.core.cases import CaseSpec
from pytest_jrh.core.errors import NoVerdictCase
from pytest_jrh.core.runs import Message, Rubric
from pytest_jrh.judges.judge import JudgedRubric
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.stats.probes import probe_tables
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.made_cases import DIGESTS, make_result, make_spec

RUBRICS = [Rubric(name, f"The rule on {name}.") for name in ("refunds", "privacy")]
# Those that ask no model.
OFFLINE = {name: probe for name, probe in PROBES.items() if probe.ask is None}
SESSIONS = 100
WHOLE = {"format_invariance": 99, "position": 99}  # All variants, of which few may show a defect.

Judge = Callable[[JudgedCase], int]


def lines() -> list[Line]:
    """In how many of 100 sessions a defect is found by its own probe, and another one finds it."""
    found: list[Line] = []
    for draw, per_case, least in (("default draw", {}, 30), ("all variants", WHOLE, 95)):
        for judge, own in PLANTED.items():
            sessions = [_findings(judge, seed, per_case) for seed in range(SESSIONS)]
            what = f"planted: {judge.__name__}, {draw}, "
            hits = sum(own in probes for probes in sessions)
            if own in OFFLINE:
                ratio = least / max(hits, 1)
                found.append(Line(f"{what}found", f"{hits}", f"at least {least}", ratio, 1))
            others = sum(bool(probes - {own}) for probes in sessions)
            found.append(Line(f"{what}of others", f"{others}", "at most 5", others / 5, 1))
    return found


def _findings(judge: Judge, seed: int, per_case: Mapping[str, int]) -> frozenset[str]:
    """The probes that find something; which cases are changed, and chance, are drawn by seed."""
    chance = Random(f"{seed}:{judge.__name__}")

    def flipped(score: int) -> int:
        return score ^ (chance.random() < 0.02)

    right = {
        spec: flipped(_judged(judge, base.messages, base.rubric)) == base.expected
        for spec, base in _bases().items()
    }
    results = []
    for name, probe in OFFLINE.items():
        settings = ProbeSettings(per_case=per_case.get(name, probe.per_case), seed=seed)
        for spec in _specs(name, settings):
            base, made = _bases()[spec.base_case], _made(name, spec)
            if made is None or not right[spec.base_case]:
                continue
            score = flipped(_judged(judge, made.messages, base.rubric))
            results.append(
                make_result(spec, "agree", score, base_scores=(base.expected,), **DIGESTS)
            )
    return frozenset(
        table.probe for table in probe_tables(Verdicts.of(results)) if table.is_finding
    )


def _specs(name: str, settings: ProbeSettings) -> Iterator[CaseSpec]:
    probe = PROBES[name]
    bases = [spec for spec, base in _bases().items() if probe.changes == "all" or base.expected]
    for spec, ways in drawn(bases, probe.variants(), settings).items():
        for variant in ways:
            yield replace(spec, test=name, base=spec.test, variant=variant.name)


@cache
def _made(name: str, spec: CaseSpec) -> Derived | None:
    probe, base = PROBES[name], _bases()[spec.base_case]
    variant = next(one for one in probe.variants() if one.name == spec.variant)
    random = Random(f"{spec.run_id}:{spec.variant}")
    assert probe.derive is not None
    try:
        made = probe.derive(base, variant, random)
    except NoVerdictCase:
        return None
    return None if made.style else made  # Code gets messages, and sees no headers.


def _judged(judge: Judge, messages: tuple[Message, ...], rubric: Rubric) -> int:
    return judge(JudgedCase(JudgedRubric(rubric.id, rubric.instructions), messages))


@cache
def _bases() -> dict[CaseSpec, Base]:
    """The cases that are changed: each run under each rubric, as it is and violating it."""
    made: dict[CaseSpec, Base] = {}
    for number in range(20):
        messages, _ = read_messages(conversation(number))
        for rubric in RUBRICS:
            spec = make_spec(f"run-{number:02}", rubric_id=rubric.id, test="agent_positives")
            made[spec] = Base(messages, 0, rubric)
            turn = dict(messages[DECISIVE])
            turn["content"] = edited(rubric.id, turn["content"])
            violated = (*messages[:DECISIVE], turn, *messages[DECISIVE + 1 :])
            violation = replace(spec, test="agent_perturbation")
            made[violation] = Base(violated, 1, rubric, frozenset({DECISIVE}))
    return made
