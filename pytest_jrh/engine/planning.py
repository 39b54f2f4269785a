"""What a session would ask and what that may cost, found out without asking (`--jrh-plan`).

Every case is replayed as far as its cassettes reach. What lies behind the first missing call cannot
be known, so the planner is counted as one call, the judge as one for each repeat, edits and
summaries as at most so many. Re-asks of answers that do not validate are not foreseen. The plan is
printed as lines of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import chain

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core import InputError, all_wrapped, counted, frozen
from pytest_jrh.core.calls import (
    EDITOR,
    JUDGE,
    MOST_FOLLOWING_EDITS,
    NO_CALL,
    ONE_CALL,
    PLANNER,
    SUMMARY,
    VERIFIER,
    Bounds,
    StageModel,
)
from pytest_jrh.core.cases import CaseSpec, NoVerdictCase, Unscored
from pytest_jrh.core.transcript import media_in, render_transcript
from pytest_jrh.engine.case import Attempt, Calls
from pytest_jrh.engine.suite import LoadedSuites, ReadySuite
from pytest_jrh.llm.limits import price_for
from pytest_jrh.recording.tapes import Tape

# Tokens are estimated from characters: few letters a token makes many tokens.
_MOST_LETTERS, _FEWEST_LETTERS = 5.0, 2.5
_SHORTEST_ANSWER, _LONGEST_ANSWER = 30, 2_000
_NO_CENT = "$0.00"


@frozen
class Survey:
    """How far one case got by replay: how many calls were answered, and those that are still to be
    made for it, by the model of each stage.

    `letters` is the length of its transcript. `stays_unrecorded` says that the record modes do not
    let a missing call be made.
    """

    spec: CaseSpec
    recorded: int
    to_make: Mapping[StageModel, Bounds]
    letters: int
    stays_unrecorded: bool


async def surveyed(
    attempt: Attempt, ready: ReadySuite, judging: Awaitable[None], calls_of_session: Calls
) -> Survey:
    """Replay a case as far as its cassettes reach; `judging` makes and judges it."""
    spec = attempt.spec
    # Of a case that is made and not judged a panel has no judge.
    evaluates = ready.test(spec).evaluate or spec in ready.bases
    judge = ready.judges[spec.judge] if evaluates else None
    ended, letters = True, 0
    try:
        await judging
    except (NoVerdictCase, Unscored, InputError) as end:
        # With all others it comes to its end without another call.
        ended = not isinstance(end, Unscored) or end.outcome != "unrecorded"
    if not ended:
        case = attempt.case
        if case is None and attempt.base is not None:
            case = attempt.base.case
        # It stands for the length of the prompts; a frozen suite has the case's alone.
        if ready.source is None and case is not None:
            messages = case.messages
        else:
            messages = ready.read(spec).messages
        letters = len(render_transcript(messages))
        if judge is not None and judge.settings.sends_images and media_in(messages):
            calls_of_session.say(
                f"suite {spec.suite}: these tokens and costs do not include the images that its "
                "judge gets."
            )
    can_be_made = attempt.case is not None or all(tape.records for tape in attempt.making)
    can_be_judged = True
    if judge is not None:
        # A judge that has not been reached is asked through a tape of its own.
        tape = attempt.judging or calls_of_session.tape(Attempt(spec), ready, judging=True)
        can_be_judged = tape.records
    to_make = {}
    if not ended and can_be_made:
        to_make = _making(attempt, ready)
        if judge is not None and can_be_judged:
            repeats = ready.suite.repeats_of(spec) - len(attempt.verdicts)
            # There may be no case of a probe: models are asked whether there is one. The requests
            # of code are not known: a verdict counts as one call at most.
            is_made = attempt.case is not None or not _asking(spec)
            is_sure = is_made and not judge.runs_code
            to_make[JUDGE.name] = Bounds(repeats if is_sure else 0, repeats)
    models = [*ready.suite.stages.values()]
    if judge is not None:
        models.append(judge.model)
    return Survey(
        spec=spec,
        recorded=_answered(attempt.tapes).total(),
        to_make={model: to_make.get(model.stage, NO_CALL) for model in models},
        letters=letters,
        stays_unrecorded=not (ended or (can_be_made and can_be_judged)),
    )


def _asking(spec: CaseSpec) -> Mapping[str, Bounds]:
    """The calls with which a probe makes a case, once it has begun; empty where it makes none."""
    return PROBES[spec.test].calls if spec.variant else {}


def _making(attempt: Attempt, ready: ReadySuite) -> dict[str, Bounds]:
    """The calls of each stage that are still to be made for the case itself, which count for the
    first judge of a panel.
    """
    if attempt.case is not None:
        return {}
    making = attempt.making
    looked_up = {lookup.stage for tape in making for lookup in tape.lookups}
    asking = _asking(attempt.spec)
    calls = {}
    if asking:
        if making or attempt.spec.judge == ready.suite.judges[0].name:
            for stage, bounds in asking.items():
                calls[stage] = bounds if looked_up else Bounds(0, bounds.high)
    elif making:
        cases, pipeline = ready.suite.config.cases, ready.pipelines[attempt.spec.test]
        edits = cases.edits_at_most
        if cases.edits == "acts":
            edits += MOST_FOLLOWING_EDITS
        verifies = int(VERIFIER.name in ready.suite.stages)
        templates = pipeline.templates.items()
        reading = [name for name, template in templates if "summary" in template.variables]
        summaries = edits if EDITOR.name in reading else 0
        # One of the edited transcript.
        summaries += VERIFIER.name in reading
        calls[VERIFIER.name] = Bounds(verifies, verifies)
        if VERIFIER.name not in looked_up:
            calls[PLANNER.name] = ONE_CALL
            calls[EDITOR.name] = Bounds(0, edits)
            calls[SUMMARY.name] = Bounds(0, summaries)
    answered = _answered(making)
    return {stage: bounds.less(answered[stage]) for stage, bounds in calls.items()}


def _answered(tapes: Iterable[Tape]) -> Counter[str]:
    """The calls of each stage that recordings answered."""
    lookups = chain.from_iterable(tape.lookups for tape in tapes)
    return Counter(lookup.stage for lookup in lookups if lookup.is_recorded)


def plan_lines(suites: LoadedSuites, surveys: Sequence[Survey], width: int) -> list[str]:
    """What a session of these surveyed cases would ask: the total, the cases that stay without an
    answer, each suite, and what the bounds rest on.
    """
    modes = {ready.suite.name: suites.modes(ready.suite) for ready in suites}
    runs_code = any(judge.runs_code for ready in suites for judge in ready.judges.values())
    asks = any(_by_stage(surveys).values())
    recorded = counted(sum(survey.recorded for survey in surveys), "call")
    sentences = [f"{_asked(surveys)}: {counted(len(surveys), 'case')}, {recorded} recorded."]
    if unrecorded := sum(survey.stays_unrecorded for survey in surveys):
        sentences.append(
            f"{counted(unrecorded, 'case')} would be unrecorded, because the record mode does not "
            "make missing calls (`once` does not add to a complete recording; `new_episodes` does)."
        )
    if asks and all(pair == ("none", "none") for pair in modes.values()):
        sentences.append(
            "Record mode none makes no calls; the calls above need --jrh-record-mode=new_episodes."
        )
    sentences.append("")
    for suite in dict.fromkeys(survey.spec.suite for survey in surveys):
        generation, judging = modes[suite]
        mode = generation if generation == judging else f"{generation}, judge {judging}"
        of_suite = [survey for survey in surveys if survey.spec.suite == suite]
        stages = [f"{_whole(calls)} {stage}" for stage, calls in _by_stage(of_suite).items()]
        by_stage = f" ({', '.join(stages)})" if stages else ""
        sentences.append(f"suite {suite}, record mode {mode}: {_asked(of_suite)}{by_stage}")
    if asks:
        sentences.append("")
        if runs_code:
            sentences.append(_RUNS_CODE)
        if any(judge.settings.rubrics for ready in suites for judge in ready.judges.values()):
            sentences.append(_TOGETHER)
        sentences.append(_ESTIMATED)
    return all_wrapped(sentences, width)


_RUNS_CODE = (
    "Judges in code are not called now, so the total has at most one call per case for each of "
    "these judges; a session counts each request."
)
_TOGETHER = (
    "A judge with `together: true` judges an unedited run under all rubrics in one call, which is "
    "counted once."
)
_ESTIMATED = (
    "The total has no second calls after unusable answers and no failed attempts; a session "
    "counts both. Costs are estimated from the length of the cases; an answer counts as "
    "max_tokens, or as 2,000 tokens if max_tokens is not set."
)


def _by_stage(surveys: Iterable[Survey]) -> dict[str, Bounds]:
    """The calls to make of each stage that has some."""
    by_stage: dict[str, Bounds] = {}
    for survey in surveys:
        for model, calls in survey.to_make.items():
            if calls.high:
                by_stage[model.stage] = by_stage.get(model.stage, NO_CALL) + calls
    return by_stage


def _asked(surveys: Sequence[Survey]) -> str:
    """The calls to make and their cost; what has no price is unknown, never counted as nothing."""
    calls = sum(_by_stage(surveys).values(), NO_CALL)
    cost, is_known = NO_CALL, True
    for survey in surveys:
        letters = survey.letters
        for model, of_model in survey.to_make.items():
            price = price_for(model)
            if price is None:
                is_known = is_known and not of_model.high
                continue
            read = of_model.times(letters / _MOST_LETTERS, letters / _FEWEST_LETTERS)
            written = of_model.times(_SHORTEST_ANSWER, model.max_tokens or _LONGEST_ANSWER)
            cost += read.times(price.read, price.read)
            cost += written.times(price.written, price.written)
    text = "1 call, " if calls == ONE_CALL else f"{_whole(calls)} calls, "
    if is_known:
        return text + _dollars(cost)
    if not cost.high:
        return f"{text}at an unknown cost"
    return f"{text}{_dollars(cost)} and an unknown cost"


def _whole(bounds: Bounds) -> str:
    low, high = f"{bounds.low:,.0f}", f"{bounds.high:,.0f}"
    return low if low == high else f"{low} to {high}"


def _dollars(bounds: Bounds) -> str:
    """At least and at most so much, to the cent."""
    if not bounds.high:
        return "$0"
    low, high = f"${bounds.low:,.2f}", f"${bounds.high:,.2f}"
    if high == _NO_CENT:
        return "under $0.01"
    if low == _NO_CENT:
        return f"up to {high}"
    return low if low == high else f"{low} to {high}"
