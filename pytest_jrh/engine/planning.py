"""What a session would ask and what that may cost, found out without asking (`--jrh-plan`).

Every case is replayed as far as its cassettes reach. What lies behind the first missing call cannot
be known, so the planner is counted as one call, the judge as one for each repeat, edits and
summaries as a range. Re-asks of answers that do not validate are not foreseen. The plan is printed
as lines of text.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
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
    STAGES,
    SUMMARY,
    VERIFIER,
    Bounds,
)
from pytest_jrh.core.text import GAP, aligned, all_wrapped, columns, counted, one_line
from pytest_jrh.core.transcript import has_media, render_transcript
from pytest_jrh.engine.case import Attempt
from pytest_jrh.llm.budget import price_for
from pytest_jrh.reports.grounds import kin_sentence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.core.model import CaseSpec, Judgment, Message, StageName
    from pytest_jrh.engine.case import Calls
    from pytest_jrh.engine.suite import LoadedSuites, ReadySuite
    from pytest_jrh.recording.tapes import Lookup


# Tokens are estimated from characters: few letters a token makes many tokens.
_MOST_LETTERS, _FEWEST_LETTERS = 5.0, 2.5
_SHORTEST_ANSWER, _LONGEST_ANSWER = 30, 2_000
# Of so many thousands, or millions, the first decimal tells nothing.
_ONE_DECIMAL = 10
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
    can_be_made = attempt.case is not None or all(
        tape.records for tape in attempt.tapes if tape is not attempt.judging
    )
    can_be_judged = judging.records or not _evaluates(spec, ready)
    to_make: dict[StageName, Bounds] = {}
    if not ended and can_be_made:
        to_make = _making(attempt, ready)
        if can_be_judged:
            to_make[JUDGE.name] = _judging(attempt, ready)
    return Survey(
        spec=spec,
        lookups=_lookups(attempt),
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


def _lookups(attempt: Attempt) -> tuple[Lookup, ...]:
    return tuple(lookup for tape in attempt.tapes for lookup in tape.lookups)


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
    if _asks(spec) is not None and attempt.case is None:
        # There may be no case: models are asked whether there is one.
        return Bounds(0, calls.high)
    return calls


def _asks(spec: CaseSpec) -> Mapping[StageName, Bounds] | None:
    """The calls with which a probe makes a case, once it has begun; None where it makes none."""
    probe = PROBES.get(spec.test)
    return probe.calls if probe is not None and probe.asks else None


def _making(attempt: Attempt, ready: ReadySuite) -> dict[StageName, Bounds]:
    """The calls of each stage that are still to be made for the case itself."""
    if attempt.case is not None:
        return {}
    making = [tape for tape in attempt.tapes if tape is not attempt.judging]
    lookups, asks = _lookups(attempt), _asks(attempt.spec)
    calls: dict[StageName, Bounds] = {}
    if asks is not None:
        # What a probe asks is counted for the first judge of a panel, before it has begun.
        if making or attempt.spec.judge == ready.suite.judges[0].name:
            for stage, bounds in asks.items():
                calls[stage] = bounds if lookups else Bounds(0, bounds.high)
    elif making:
        verifies = int(VERIFIER.name in ready.suite.stages)
        edits = _edits(attempt, ready)
        calls = {
            PLANNER.name: ONE_CALL,
            EDITOR.name: edits,
            SUMMARY.name: _summaries(attempt.spec, ready, edits),
            VERIFIER.name: Bounds(verifies, verifies),
        }
    done = Counter(lookup.stage for lookup in lookups if lookup.answer is not None)
    return {stage: bounds.less(done[stage]) for stage, bounds in calls.items()}


def _edits(attempt: Attempt, ready: ReadySuite) -> Bounds:
    """How many edits a case has or may have."""
    most = ready.suite.config.cases.edits_at_most
    following = MOST_FOLLOWING_EDITS if ready.suite.config.cases.edits == "acts" else 0
    for lookup in _lookups(attempt):
        if lookup.stage == PLANNER.name and lookup.answer is not None:
            try:
                kinds = [step.get("kind") for step in json.loads(lookup.answer)["steps"][:most]]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
            # What is left out, nobody writes.
            planned = len(kinds) - kinds.count("omit")
            return Bounds(planned, planned + following if planned else planned)
    return Bounds(0, most + following)


def _summaries(spec: CaseSpec, ready: ReadySuite, edits: Bounds) -> Bounds:
    """How many summaries a case takes: one for each edit whose prompt names it, of which the first
    is asked beside the plan, and one of the edited transcript for the verifier.
    """
    pipeline = ready.pipelines[spec.test]
    first, for_edits = 0, NO_CALL
    if EDITOR.name in pipeline.summarized_for and pipeline.edits == "acts":
        # An editor of calls sees the transcript, and takes no summary.
        for_edits = Bounds(0, edits.high)
    elif EDITOR.name in pipeline.summarized_for:
        first, for_edits = 1, edits
    last = VERIFIER.name in ready.suite.stages and VERIFIER.name in pipeline.summarized_for
    return Bounds(max(first, for_edits.low + last), max(first, for_edits.high + last))


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One stage and model: calls that are recorded, calls to make, their tokens, and their cost in
    US dollars, which is None where the model has no known price.
    """

    suite: str
    stage: StageName
    model: str
    recorded: int
    calls: Bounds
    tokens: Bounds
    cost: Bounds | None


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
    """Add surveys up."""
    all_cases = list(surveys)
    return CallPlan(
        rows=tuple(plan_rows(all_cases)),
        cases=len(all_cases),
        unrecorded=sum(survey.stays_unrecorded for survey in all_cases),
        unreadable=tuple(survey.unreadable for survey in all_cases if survey.unreadable),
    )


def plan_rows(surveys: Iterable[Survey]) -> list[PlanRow]:
    """Add surveys up, per suite, stage and model, with shared calls once."""
    recorded: Counter[tuple[str, StageName, str]] = Counter()
    calls: dict[tuple[str, StageName, str], Bounds] = {}
    letters: dict[tuple[str, StageName, str], Bounds] = {}
    models: dict[tuple[str, StageName, str], StageModel] = {}
    missing_once: set[str] = set()
    for survey in surveys:
        for model, bounds in survey.to_make.items():
            key = (survey.spec.suite, model.stage, model.model)
            models[key], expected = model, bounds
            lookups = [lookup for lookup in survey.lookups if lookup.stage == model.stage]
            recorded[key] += sum(lookup.answer is not None for lookup in lookups)
            if STAGES[model.stage].shared_calls and expected.high:
                for lookup in lookups:
                    if lookup.answer is None and lookup.fingerprint in missing_once:
                        expected = expected.less(1)
                    elif lookup.answer is None:
                        missing_once.add(lookup.fingerprint)
            calls[key] = calls.get(key, NO_CALL) + expected
            of_case = expected.times(survey.letters, survey.letters)
            letters[key] = letters.get(key, NO_CALL) + of_case
    rows = []
    for key, model in models.items():
        rows.append(_row(key, model, recorded[key], calls[key], letters[key]))
    return rows


def _row(
    key: tuple[str, StageName, str],
    model: StageModel,
    recorded: int,
    calls: Bounds,
    letters: Bounds,
) -> PlanRow:
    longest = model.max_tokens or _LONGEST_ANSWER
    read = Bounds(letters.low / _MOST_LETTERS, letters.high / _FEWEST_LETTERS)
    written = calls.times(_SHORTEST_ANSWER, longest)
    price = price_for(model)
    cost = None
    if price is not None:
        cost = read.times(price.read, price.read) + written.times(price.written, price.written)
    suite, stage, name = key
    return PlanRow(suite, stage, name, recorded, calls, read + written, cost)


def session_plan(suites: LoadedSuites, surveys: Iterable[Survey], width: int) -> list[str]:
    """What a session of these surveyed cases would ask."""
    modes = {ready.suite.name: suites.modes(ready) for ready in suites}
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
    return [*lines, *all_wrapped(_estimated(to_make, runs_code=runs_code), width)]


def _estimated(to_make: Bounds, *, runs_code: bool) -> Iterator[str]:
    """What the bounds of the calls to make rest on."""
    if not to_make.high:
        return
    if runs_code:
        yield (
            "A plan runs no judge's own code: it counts as at most one call a case here; in a "
            "session each of its requests counts."
        )
    yield (
        "Answers that have to be asked for again come on top, and so do attempts that fail, which "
        "count as made. Tokens are estimated from the transcripts' letters, an answer as at most "
        "max_tokens, or 2,000 tokens where none is set."
    )


def _table(rows: Sequence[PlanRow], width: int) -> list[str]:
    """The stages that have calls, and what those to make may cost, in at most `width` columns."""
    in_use = [row for row in rows if row.recorded or row.calls.high]
    names_room = max((columns(row.stage) for row in in_use), default=0)
    asks = any(row.calls.high for row in in_use)
    lines = [(f"{'stage':<{names_room}}{GAP}model", "recorded", "to make")]
    for row in in_use:
        name = f"{row.stage:<{names_room}}{GAP}{one_line(row.model)}"
        lines.append((name, f"{row.recorded:,}", _whole(row.calls)))
    if not asks:
        return aligned(lines, width) if in_use else []
    costs = ["unknown" if row.cost is None else _dollars(row.cost) for row in in_use]
    amounts = [("tokens", "cost"), *zip(map(_tokens, in_use), costs, strict=True)]
    return aligned([(*line, *more) for line, more in zip(lines, amounts, strict=True)], width)


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


def _tokens(row: PlanRow) -> str:
    """The tokens of a row, of which no more than two or three digits are known."""
    return _range(_short(row.tokens.low), _short(row.tokens.high))


def _short(number: float) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            amount = number / size
            return f"{amount:.1f}{unit}" if amount < _ONE_DECIMAL else f"{amount:,.0f}{unit}"
    return f"{number:.0f}"


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
