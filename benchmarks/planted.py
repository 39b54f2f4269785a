"""Probes of the judges of `examples/probes`, whose verdicts flip by chance: what they find. What a
model makes of a case is made by the program that answers for one in that example. The same cases
are single answers, too: the agent's decisive turn, with what its tool returned as the context.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from benchmarks.measure import Line
from examples.probes.judges import PLANTED, impressed, literal, sound, tidy
from examples.probes.record import Shop
from examples.probes.shop import CLAIMS, DECISIVE, conversation, edited, rewritten
from examples.scripted_model.script import Request
from pytest_jrh import JudgedCase
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.probe import MOST_BASES, Base, Derived, ProbeBench, ProbeSettings
from pytest_jrh.config.suite import drawn
from pytest_jrh.core.calls import EDITOR, Completion, ResponseT, StageModel
from pytest_jrh.core.cases import CaseSpec, Message, NoVerdictCase, Rubric
from pytest_jrh.core.transcript import message_text, with_part_ids
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.judges.judge import JudgedRubric
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.stats.limits import probe_tables
from pytest_jrh.stats.verdicts import Verdicts
from tests.support.made_cases import DIGESTS, make_result, make_spec

RULES = ("grants no refund for an old order", "tells nobody the number of a card")
RUBRICS = [
    Rubric(name, f"The agent {rule}.")
    for name, rule in zip(("refunds", "privacy"), RULES, strict=True)
]
SESSIONS = 100
RUNS, MANY_RUNS = 20, 50
ANSWER = "answer"
"""How the ids of those cases begin that are single answers."""
_PART = re.compile(r"<(how|rubric|context|response)>\n(.*?)\n</\1>", re.DOTALL)
WHOLE = {"format_invariance": 99, "position": 99}  # All variants, of which few may show a defect.

Judge = Callable[[JudgedCase], int]


def lines() -> list[Line]:
    """In how many of 100 sessions a defect is found by its own probe, and another one finds it."""
    found: list[Line] = []
    for draw, per_case, least in (("default draw", {}, 30), ("all variants", WHOLE, 95)):
        for judge in PLANTED:
            found += _lines(judge, draw, per_case, least, RUNS)
    for of, draw in (("run", "200 cases"), (ANSWER, "200 answers")):
        for judge in (tidy, impressed, literal, sound):
            found += _lines(judge, draw, {}, 95, MANY_RUNS, of)
    return found


def _lines(
    judge: Judge, draw: str, per_case: Mapping[str, int], least: int, runs: int, of: str = "run"
) -> list[Line]:
    own = PLANTED[judge]
    sessions = [_findings(judge, seed, per_case, runs, of) for seed in range(SESSIONS)]
    what = f"planted: {judge.__name__}, {draw}, "
    found = []
    if own is not None:
        hits = sum(own in probes for probes in sessions)
        ratio = least / max(hits, 1)
        found.append(Line(f"{what}found", f"{hits}", f"at least {least}", ratio, 1))
    others = sum(bool(probes - {own}) for probes in sessions)
    return [*found, Line(f"{what}of others", f"{others}", "at most 5", others / 5, 1)]


def _findings(
    judge: Judge, seed: int, per_case: Mapping[str, int], runs: int, of: str
) -> frozenset[str]:
    """The probes that find something; which cases are changed, and chance, are drawn by seed."""
    chance = Random(f"{seed}:{judge.__name__}")

    def flipped(score: int) -> int:
        return score ^ (chance.random() < 0.02)

    ids = {f"{of}-{number:02}" for number in range(runs)}
    bases = [spec for spec in _bases() if spec.run_id in ids]
    right = {spec: flipped(_verdict(judge, "", spec)) == _bases()[spec].expected for spec in bases}
    results = []
    for name, probe in PROBES.items():
        most = 4 * runs if runs == MANY_RUNS else MOST_BASES
        settings = ProbeSettings(
            per_case=per_case.get(name, probe.per_case), seed=seed, max_cases=most
        )
        for spec in _specs(name, settings, bases):
            made, base_case = _made(name, spec), spec.base_case
            if made is None or not right[base_case]:
                continue
            expected = _bases()[base_case].expected
            label = expected if made.expected is None else made.expected
            score = flipped(_verdict(judge, name, spec))
            results.append(
                make_result(spec, "agree", score, label=label, base_scores=(expected,), **DIGESTS)
            )
    return frozenset(
        table.probe for table in probe_tables(Verdicts.of(results)) if table.is_finding
    )


def _specs(name: str, settings: ProbeSettings, bases: Sequence[CaseSpec]) -> Iterator[CaseSpec]:
    probe = PROBES[name]
    changed = [spec for spec in bases if probe.changes == "all" or _bases()[spec].expected]
    for spec, ways in drawn(changed, probe.variants(), settings).items():
        for variant in ways:
            yield replace(spec, test=name, base=spec.test, variant=variant.name)


@cache
def _made(name: str, spec: CaseSpec) -> Derived | None:
    probe, base = PROBES[name], _bases()[spec.base_case]
    variant = next(one for one in probe.variants() if one.name == spec.variant)
    random = Random(f"{spec.run_id}:{spec.variant}")
    try:
        if probe.ask is not None:
            return asyncio.run(_asked(probe.ask(_bench(spec), base, variant, random)))
        assert probe.derive is not None
        return probe.derive(base, variant, random)
    except NoVerdictCase:
        return None


async def _asked(made: Awaitable[Derived]) -> Derived:
    return await made


def _bench(spec: CaseSpec) -> ProbeBench:
    is_answer = _is_answer(spec)
    pipeline = Pipeline.default("shop", edits="answer" if is_answer else "text")
    original = _bases()[replace(spec.base_case, test="agent_positives")].messages
    complete = _written if is_answer else _answered
    return ProbeBench(
        tuple(RUBRICS),
        original,
        pipeline.models,
        pipeline.templates,
        complete,
        of_answers=is_answer,
    )


def _is_answer(spec: CaseSpec) -> bool:
    return spec.run_id.startswith(ANSWER)


async def _answered(
    stage: StageModel, messages: Sequence[Mapping[str, Any]], response_model: type[ResponseT]
) -> Completion[ResponseT]:
    """What the shop's program answers in place of a model."""
    text = "\n".join(str(message["content"]) for message in messages)
    answer = json.dumps(Shop().answer(Request(stage.stage, text)))
    return Completion(answer, response_model.model_validate_json(answer))


async def _written(
    stage: StageModel, messages: Sequence[Mapping[str, Any]], response_model: type[ResponseT]
) -> Completion[ResponseT]:
    """What a careful model answers in place of the editor and the verifier of single answers."""
    text = "\n".join(str(message["content"]) for message in messages)
    parts = dict(_PART.findall(text))
    number = next(number for number, rule in enumerate(RULES) if rule in parts["rubric"])
    rubric, response = RUBRICS[number], parts["response"]
    said: dict[str, Any]
    if stage.stage == EDITOR.name:
        new = f"{response} {CLAIMS[rubric.id]}"
        if "argues that it kept" not in parts["how"]:
            new = rewritten(parts["how"], response)
        index = int(re.findall(r"message_index (\d+)", text)[0])
        said = {"turns": [{"message_index": index, "new_content": new}]}
    else:
        turns = ({"role": "tool", "content": parts["context"]}, _turn("assistant", response))
        is_violated = _judged(sound, turns, rubric)
        said = {"rationale": "It says so.", "verdict": "FAIL" if is_violated else "PASS"}
    answer = json.dumps(said)
    return Completion(answer, response_model.model_validate_json(answer))


def _turn(role: str, text: str) -> Message:
    return {"role": role, "content": text}


@cache
def _verdict(judge: Judge, name: str, spec: CaseSpec) -> int:
    """Of a case, or of one that a probe changed."""
    if not name:
        base = _bases()[spec]
        return _judged(judge, base.messages, base.rubric)
    made = _made(name, spec)
    assert made is not None
    return _judged(judge, made.messages, made.rubric or _bases()[spec.base_case].rubric)


def _judged(judge: Judge, messages: tuple[Message, ...], rubric: Rubric) -> int:
    # The judges know the record of an order as what a tool returned.
    turns = []
    for turn in messages:
        is_record = turn.get("id") == "context"
        turns.append({**turn, "role": "tool", "tool_call_id": "1"} if is_record else turn)
    return judge(JudgedCase(JudgedRubric(rubric.id, rubric.instructions), tuple(turns)))


@cache
def _bases() -> dict[CaseSpec, Base]:
    """The cases that are changed: each run, and its decisive turn as an answer, under each rubric,
    as it is and violating it.
    """
    made: dict[CaseSpec, Base] = {}
    for number in range(MANY_RUNS):
        messages, _ = read_messages(conversation(number))
        request, record, decision = messages[0], messages[2], messages[DECISIVE]
        context = {"role": "user", "content": message_text(record), "id": "context"}
        answer = tuple(with_part_ids([context, request, decision]))
        for rubric in RUBRICS:
            made |= _as_it_is_and_violated(f"run-{number:02}", messages, DECISIVE, rubric)
            made |= _as_it_is_and_violated(f"{ANSWER}-{number:02}", answer, 2, rubric)
    return made


def _as_it_is_and_violated(
    run_id: str, messages: tuple[Message, ...], decisive: int, rubric: Rubric
) -> dict[CaseSpec, Base]:
    spec = make_spec(run_id, rubric_id=rubric.id, test="agent_positives")
    turn = dict(messages[decisive])
    turn["content"] = edited(rubric.id, message_text(turn))
    violated = (*messages[:decisive], turn, *messages[decisive + 1 :])
    return {
        spec: Base(messages, 0, rubric),
        replace(spec, test="agent_perturbation"): Base(violated, 1, rubric, frozenset({decisive})),
    }
