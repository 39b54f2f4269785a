"""What a session would ask and what that may cost, found out without asking (`--jrh-plan`).

Every case is replayed as far as its cassettes reach. What lies behind the first missing call cannot
be known, so the planner is counted as one call, the judge as one for each repeat, edits and
summaries as at most so many. Re-asks of answers that do not validate are not foreseen. The plan is
printed as lines of text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core.errors import InputError, NoVerdictCase, Unrecorded, Unscored
from pytest_jrh.core.model import StageModel
from pytest_jrh.core.stages import (
    EDITOR,
    JUDGE,
    MOST_FOLLOWING_EDITS,
    NO_CALL,
    ONE_CALL,
    PLANNER,
    SUMMARY,
    VERIFIER,
    Bounds,
)
from pytest_jrh.core.text import GAP, aligned, all_wrapped, columns, counted, one_line
from pytest_jrh.core.transcript import has_media, render_transcript
from pytest_jrh.engine.case import Attempt
from pytest_jrh.llm.limits import price_for
from pytest_jrh.reports.grounds import kin_sentence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseSpec, Judgment, Message
    from pytest_jrh.engine.case import Calls
    from pytest_jrh.engine.suite import LoadedSuites, ReadySuite
    from pytest_jrh.recording.tapes import Lookup


# Tokens are estimated from characters: few letters a token makes many tokens.
_MOST_LETTERS, _FEWEST_LETTERS = 5.0, 2.5
_SHORTEST_ANSWER, _LONGEST_ANSWER = 30, 2_000
_NO_CENT = "$0.00"


@dataclass(frozen=True, slots=True)
class Survey:
    """How far one case got by replay: what it looked up, and the calls that are still to be made
    for it, by the model of each stage.

    `letters` is the length of its transcript. `stays_unrecorded` says that the record modes do not
    let a missing call be made, and `unreadable` what of its input cannot be read.
    """

    spec: CaseSpec
    lookups: tuple[Lookup, ...]
    to_make: Mapping[StageModel, Bounds]
    letters: int
    stays_unrecorded: bool
    unreadable: str


async def surveyed(
    attempt: Attempt,
    ready: ReadySuite,
    judge: Callable[[Attempt], Awaitable[Judgment | None]],
    calls: Calls,
    say: Callable[[CaseSpec, str], None],
) -> Survey:
    """Replay a case as far as its cassettes reach; `judge` makes and judges it."""
    spec = attempt.spec
    ended, letters, unreadable = True, 0, ""
    try:
        await judge(attempt)
    except Unrecorded:
        messages = _messages(attempt, ready)
        ended, letters = False, len(render_transcript(messages))
        if has_media(messages) and ready.sends_images(spec.judge):
            say(spec, "the images that its judge gets are not in the plan's tokens and costs.")
    except Unscored as trouble:
        if trouble.outcome == "input_error":
            unreadable = trouble.cause
    except NoVerdictCase:
        pass
    except InputError as error:
        unreadable = str(error)
    # A judge that has not been reached is asked through a tape of its own.
    judging = attempt.judging or calls.tape(Attempt(spec), ready, judging=True)
    can_be_made = attempt.case is not None or all(tape.records for tape in attempt.making)
    can_be_judged = judging.records or not _evaluates(spec, ready)
    to_make: dict[str, Bounds] = {}
    if not ended and can_be_made:
        to_make = _making(attempt, ready)
        if can_be_judged:
            to_make[JUDGE.name] = _judging(attempt, ready)
    return Survey(
        spec=spec,
        lookups=tuple(lookup for tape in attempt.tapes for lookup in tape.lookups),
        to_make={model: to_make.get(model.stage, NO_CALL) for model in _models(spec, ready)},
        letters=letters,
        stays_unrecorded=not (ended or (can_be_made and can_be_judged)),
        unreadable=unreadable,
    )


def _messages(attempt: Attempt, ready: ReadySuite) -> tuple[Message, ...]:
    """The transcript whose length stands for that of the prompts: of a frozen suite the case's."""
    case = attempt.case or (attempt.base.case if attempt.base is not None else None)
    if ready.source is None and case is not None:
        return case.messages
    return ready.read(attempt.spec).messages


def _evaluates(spec: CaseSpec, ready: ReadySuite) -> bool:
    return ready.test(spec.test).evaluate or spec in ready.bases


def _models(spec: CaseSpec, ready: ReadySuite) -> list[StageModel]:
    """The models of a case's stages; a judge's own code, which may ask any, has its label."""
    judge = ready.judges[spec.judge]
    judges = [StageModel(JUDGE.name, judge.label)] if judge.runs_code else judge.models
    return [*ready.suite.stages.values(), *judges]


def _judging(attempt: Attempt, ready: ReadySuite) -> Bounds:
    """The calls of the verdicts that are missing."""
    spec = attempt.spec
    if not _evaluates(spec, ready):
        return NO_CALL
    repeats = attempt.missing_repeats or ready.suite.repeats_of(spec.judge)
    calls = ready.judges[spec.judge].calls.times(repeats, repeats)
    if attempt.case is None and _asking(spec) is not None:
        # There may be no case: models are asked whether there is one.
        return Bounds(0, calls.high)
    return calls


def _asking(spec: CaseSpec) -> Mapping[str, Bounds] | None:
    """The calls with which a probe makes a case, once it has begun; None where it makes none."""
    probe = PROBES.get(spec.test)
    return probe.calls if probe is not None and probe.asks else None


def _making(attempt: Attempt, ready: ReadySuite) -> dict[str, Bounds]:
    """The calls of each stage that are still to be made for the case itself, which count for the
    first judge of a panel.
    """
    if attempt.case is not None:
        return {}
    making = attempt.making
    lookups = [lookup for tape in making for lookup in tape.lookups]
    asking = _asking(attempt.spec)
    calls: dict[str, Bounds] = {}
    if asking is not None:
        if making or attempt.spec.judge == ready.suite.judges[0].name:
            for stage, bounds in asking.items():
                calls[stage] = bounds if lookups else Bounds(0, bounds.high)
    elif making:
        cases, pipeline = ready.suite.config.cases, ready.pipelines[attempt.spec.test]
        edits = cases.edits_at_most
        if cases.edits == "acts":
            edits += MOST_FOLLOWING_EDITS
        verifies = int(VERIFIER.name in ready.suite.stages)
        summaries = edits if EDITOR.name in pipeline.summarized_for else 0
        # One of the edited transcript.
        summaries += int(verifies and VERIFIER.name in pipeline.summarized_for)
        calls[VERIFIER.name] = Bounds(verifies, verifies)
        if not any(lookup.stage == VERIFIER.name for lookup in lookups):
            calls[PLANNER.name] = ONE_CALL
            calls[EDITOR.name] = Bounds(0, edits)
            calls[SUMMARY.name] = Bounds(0, summaries)
    done = Counter(lookup.stage for lookup in lookups if lookup.answer is not None)
    return {stage: bounds.less(done[stage]) for stage, bounds in calls.items()}


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One stage and model: calls that are recorded, calls to make, and their cost in US dollars,
    which is None where the model has no known price.
    """

    suite: str
    stage: str
    model: str
    recorded: int = 0
    calls: Bounds = NO_CALL
    cost: Bounds | None = NO_CALL


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a session would ask: calls per stage and model.

    `cases` counts those of the session and those that its probes change, `unrecorded` those that
    miss calls which the record modes do not let be made, and `unreadable` has for each case whose
    input cannot be read what is wrong with it.
    """

    rows: tuple[PlanRow, ...]
    cases: int
    unrecorded: int = 0
    unreadable: tuple[str, ...] = ()


def plan_of(surveys: Iterable[Survey]) -> CallPlan:
    """Add surveys up, per suite, stage and model."""
    rows: dict[tuple[str, str, str], PlanRow] = {}
    cases = unrecorded = 0
    unreadable = []
    for survey in surveys:
        cases += 1
        unrecorded += survey.stays_unrecorded
        if survey.unreadable:
            unreadable.append(survey.unreadable)
        answered = Counter(lookup.stage for lookup in survey.lookups if lookup.answer is not None)
        for model, calls in survey.to_make.items():
            key = (survey.spec.suite, model.stage, model.model)
            row = rows.get(key, PlanRow(*key))
            cost = _cost_of(model, calls, survey.letters)
            rows[key] = replace(
                row,
                recorded=row.recorded + answered[model.stage],
                calls=row.calls + calls,
                cost=None if row.cost is None or cost is None else row.cost + cost,
            )
    return CallPlan(tuple(rows.values()), cases, unrecorded, tuple(unreadable))


def _cost_of(model: StageModel, calls: Bounds, letters: int) -> Bounds | None:
    """What calls about a transcript of so many letters may cost; None without a known price."""
    price = price_for(model)
    if price is None:
        return None
    read = calls.times(letters / _MOST_LETTERS, letters / _FEWEST_LETTERS)
    written = calls.times(_SHORTEST_ANSWER, model.max_tokens or _LONGEST_ANSWER)
    return read.times(price.read, price.read) + written.times(price.written, price.written)


def session_plan(suites: LoadedSuites, surveys: Iterable[Survey], width: int) -> list[str]:
    """What a session of these surveyed cases would ask."""
    modes = {ready.suite.name: suites.modes(ready.suite) for ready in suites}
    runs_code = any(judge.runs_code for ready in suites for judge in ready.judges.values())
    lines = plan_lines(plan_of(surveys), modes, runs_code=runs_code, width=width)
    kin_sentences: dict[str, None] = {}
    for ready in suites:
        kin_sentences.update(dict.fromkeys(map(kin_sentence, ready.grounds.kin)))
    return [*lines, *all_wrapped(kin_sentences, width)]


def plan_lines(
    plan: CallPlan,
    modes: Mapping[str, tuple[str, str]],
    *,
    runs_code: bool = False,
    width: int = 80,
) -> list[str]:
    """The total, the cases that stay without an answer, a table per suite, and what the bounds rest
    on.

    `modes` are generation's and judging's, per suite; `runs_code` says that a judge's own code
    asks.
    """
    to_make = _sum(row.calls for row in plan.rows)
    calls = "1 call" if to_make.low == to_make.high == 1 else f"{_whole(to_make)} calls"
    recorded = counted(sum(row.recorded for row in plan.rows), "call")
    sentences = [
        f"{calls}, {_cost(plan.rows)}: {counted(plan.cases, 'case')}, {recorded} recorded."
    ]
    if plan.unrecorded:
        sentences.append(
            f"{counted(plan.unrecorded, 'case')} would be unrecorded: the record mode does not "
            "make their missing calls (once does not add to a complete recording; new_episodes "
            "does)."
        )
    if plan.unreadable:
        sentences.append(
            f"{counted(len(plan.unreadable), 'case')} with an invalid input (input_error), about "
            f"which nothing is asked, such as: {plan.unreadable[0]}"
        )
    if to_make.high and all(pair == ("none", "none") for pair in modes.values()):
        sentences.append(
            "Record mode none makes no calls: these would be made with "
            "--jrh-record-mode=new_episodes."
        )
    lines = [*all_wrapped(sentences, width), ""]
    for suite in dict.fromkeys(row.suite for row in plan.rows):
        generation, judging = modes[suite]
        mode = generation if generation == judging else f"{generation}, judge {judging}"
        lines += [
            f"suite {suite}, recording {mode}",
            *_table([row for row in plan.rows if row.suite == suite], width),
            "",
        ]
    if to_make.high and runs_code:
        footnotes = [_RUNS_CODE, _ESTIMATED]
    else:
        footnotes = [_ESTIMATED] if to_make.high else []
    return [*lines, *all_wrapped(footnotes, width)]


_RUNS_CODE = (
    "A plan runs no judge's own code: it counts as at most one call a case here; in a session each "
    "of its requests counts."
)
_ESTIMATED = (
    "Answers that have to be asked for again come on top, and so do attempts that fail, which "
    "count as made. Costs are estimated from the transcripts' letters, an answer as at most "
    "max_tokens, or 2,000 tokens where none is set."
)


def _table(rows: Sequence[PlanRow], width: int) -> list[str]:
    """The stages that have calls, and what those to make may cost, in at most `width` columns."""
    in_use = [row for row in rows if row.recorded or row.calls.high]
    if not in_use:
        return []
    names_room = max(columns(row.stage) for row in in_use)
    lines = [(f"{'stage':<{names_room}}{GAP}model", "recorded", "to make", "cost")]
    for row in in_use:
        name = f"{row.stage:<{names_room}}{GAP}{one_line(row.model)}"
        cost = "unknown" if row.cost is None else _dollars(row.cost)
        lines.append((name, f"{row.recorded:,}", _whole(row.calls), cost))
    if not any(row.calls.high for row in in_use):
        return aligned([line[:3] for line in lines], width)
    return aligned(lines, width)


def _sum(bounds: Iterable[Bounds]) -> Bounds:
    return sum(bounds, Bounds())


def _cost(rows: Sequence[PlanRow]) -> str:
    """The cost of the calls to make; what has no price is unknown, and never counted as nothing."""
    priced = _sum(row.cost for row in rows if row.cost is not None)
    if not any(row.cost is None and row.calls.high for row in rows):
        return _dollars(priced)
    return f"{_dollars(priced)} and an unknown cost" if priced.high else "at an unknown cost"


def _whole(bounds: Bounds) -> str:
    return _range(f"{bounds.low:,.0f}", f"{bounds.high:,.0f}")


def _dollars(bounds: Bounds) -> str:
    """At least and at most so much, to the cent."""
    if not bounds.high:
        return "$0"
    low, high = f"${bounds.low:,.2f}", f"${bounds.high:,.2f}"
    if high == _NO_CENT:
        return "under $0.01"
    return f"up to {high}" if low == _NO_CENT else _range(low, high)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
