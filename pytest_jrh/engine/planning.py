"""What a session would ask and what that may cost, found out without asking (`--jrh-plan`).

Every case is replayed as far as its cassettes reach. What lies behind the first missing call cannot
be known, so the planner is counted as one call, the judge as one for each repeat, edits and
summaries as a range. Re-asks of answers that do not validate are not foreseen. The plan is printed
as lines of text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pytest_jrh.cases.ids import Recorded
from pytest_jrh.core.documents import listed
from pytest_jrh.core.model import StageModel
from pytest_jrh.core.stages import (
    EDITOR,
    JUDGE,
    NO_CALL,
    ONE_CALL,
    STAGES,
    VERIFIER,
    CallRange,
    Workload,
)
from pytest_jrh.core.text import GAP, aligned, all_wrapped, columns, counted, dollars, one_line
from pytest_jrh.llm.budget import price_for
from pytest_jrh.reports.grounds import kin_sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.config.options import Options
    from pytest_jrh.core.model import CaseSpec, StageName
    from pytest_jrh.engine.loading import LoadedSuites, ReadySuite
    from pytest_jrh.recording.tapes import Lookup


# Tokens are estimated from characters: few letters a token makes many tokens.
_MOST_LETTERS, _FEWEST_LETTERS = 5.0, 2.5
_SHORTEST_ANSWER, _LONGEST_ANSWER = 30, 2_000
# Of so many thousands, or millions, the first decimal tells nothing.
_ONE_DECIMAL = 10
_NO_CENT = "$0.00"


@dataclass(frozen=True, slots=True)
class Bounds:
    """At least and at most."""

    low: float = 0
    high: float = 0

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.low + other.low, self.high + other.high)

    def times(self, low: float, high: float) -> Bounds:
        """Both ends multiplied."""
        return Bounds(self.low * low, self.high * high)

    def less(self, number: int) -> Bounds:
        """Both ends less so many, but never below none."""
        return Bounds(max(0, self.low - number), max(0, self.high - number))


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One stage and model: calls that are recorded, calls to make, their tokens, and their cost in
    US dollars.

    `cost` is None where the model has no known price, and so is `promise`: what a budget sets aside
    for one of these calls before it is sent, at the least.
    """

    suite: str
    stage: StageName
    model: str
    recorded: int
    calls: Bounds
    tokens: Bounds
    cost: Bounds | None
    promise: float | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """How far one case got by replay: what it looked up, and the size of its prompts in characters.

    `ended` says that the case reached its end, so nothing is missing, and `made` that only its
    judge may be. `letters` is the length of its transcript. `makes` says that the making of the
    case counts for this one of several judges. `records_making` and `records_judging` say whether
    the record modes let missing calls be made, and `complete` that a cassette of the case was
    complete. `judge_calls` are those of one verdict, and `repeats` counts the verdicts that are
    missing. `unusable` says that the case ends in recorded answers that cannot be used, and
    `renewed` that such are asked again; `unreadable` says what of its input cannot be read.
    `beside` is a case that is no
    item of the session, and that a probe changes. `asks` are the calls with which a probe makes
    the case, once it has begun. `most_following` is how many edits may follow from those of a plan
    of acts, and `summarized_for` names the stages whose prompts name the summary.
    """

    spec: CaseSpec
    lookups: tuple[Lookup, ...]
    ended: bool
    made: bool
    most_edits: int
    verifies: bool
    evaluates: bool
    letters: int
    makes: bool = True
    records_making: bool = True
    records_judging: bool = True
    judge_calls: CallRange = ONE_CALL
    repeats: int = 1
    complete: bool = False
    unusable: bool = False
    unreadable: str = ""
    renewed: bool = False
    beside: bool = False
    asks: Mapping[StageName, CallRange] | None = None
    most_following: int = 0
    summarized_for: Collection[StageName] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether any call of the case is."""
        return any(lookup.answer is not None for lookup in self.lookups)

    @property
    def stays_unrecorded(self) -> bool:
        """Whether a call is missing that the record modes do not let be made."""
        if self.ended:
            return False
        return not (self.made or self.records_making) or (
            self.evaluates and not self.records_judging
        )

    @property
    def edits(self) -> CallRange:
        """How many edits the case has or may have."""
        for lookup in self.lookups:
            stage = STAGES.get(lookup.stage)
            if stage is None or stage.edits_in is None or lookup.answer is None:
                continue
            planned = stage.edits_in(lookup.answer, self.most_edits)
            if planned is not None:
                return CallRange(planned, planned + self.most_following if planned else planned)
        return CallRange(0, self.most_edits + self.most_following)

    @property
    def _summaries(self) -> CallRange:
        """How many summaries the case takes: one for each edit whose prompt names it, of which the
        first is asked beside the plan, and one of the edited transcript for the verifier.
        """
        first, for_edits = 0, NO_CALL
        if EDITOR.name in self.summarized_for and self.most_following:
            # An editor of calls sees the transcript, and takes no summary.
            for_edits = CallRange(0, self.edits.high)
        elif EDITOR.name in self.summarized_for:
            first, for_edits = 1, self.edits
        last = self.verifies and VERIFIER.name in self.summarized_for
        return CallRange(max(first, for_edits.low + last), max(first, for_edits.high + last))

    def to_make(self) -> dict[StageName, Bounds]:
        """The calls of each stage that are still to be made for this case."""
        if self.ended:
            return {}
        if not self.made and not self.records_making:
            return {}
        judging = NO_CALL
        if self.evaluates and self.records_judging:
            judging = CallRange(*(number * self.repeats for number in self.judge_calls))
        if self.asks is not None and not self.made:
            # There may be no case: models are asked whether there is one.
            judging = CallRange(0, judging.high)
        workload = Workload(self.edits, self.verifies, judging, self._summaries)
        calls = {stage.name: Bounds(*stage.calls(workload)) for stage in STAGES.values()}
        if self.made or not self.makes:
            return {name: calls[name] for name in calls if not STAGES[name].makes_cases}
        if self.asks is not None:
            begun = bool(self.lookups)
            for name in calls:
                if STAGES[name].makes_cases:
                    call_range = self.asks.get(name, NO_CALL)
                    calls[name] = Bounds(call_range.low if begun else 0, call_range.high)
        done = Counter(lookup.stage for lookup in self.lookups if lookup.answer is not None)
        return {stage: bounds.less(done[stage]) for stage, bounds in calls.items()}


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a session would ask: calls per stage and model, and what of its cases has to be said
    beside them.

    `unrecorded` counts the cases that miss calls which the record modes do not let be made,
    `unusable` those that end in recorded answers that cannot be used, `renewed` those that ask such
    again, `unreadable` has for each case whose input cannot be read what is wrong with it, and
    `complete` says that calls are missing of a case whose recording was complete. `derived` counts
    those of probes, `asking` those of these that models make, `bases` the cases that they change,
    and `beside` those among these that are no cases of the session. `new_runs` are those of which
    nothing is recorded, with the calls of their cases, and `kept` the cases that are recorded to
    their end.
    """

    rows: tuple[PlanRow, ...]
    cases: int
    unrecorded: int = 0
    unusable: int = 0
    unreadable: tuple[str, ...] = ()
    renewed: int = 0
    complete: bool = False
    derived: int = 0
    asking: int = 0
    bases: int = 0
    beside: int = 0
    new_runs: int = 0
    new_calls: Bounds = Bounds()
    kept: int = 0


def plan_of(
    surveys: Iterable[Survey],
    models: Mapping[tuple[str, StageName, str | None], StageModel],
) -> CallPlan:
    """Add surveys up; `models` are those of `plan_rows`."""
    all_cases = list(surveys)
    derived = [survey.spec for survey in all_cases if survey.spec.variant]
    new_cases = _of_new_runs(all_cases)
    return CallPlan(
        rows=tuple(plan_rows(all_cases, models)),
        cases=sum(not survey.beside for survey in all_cases),
        unrecorded=sum(survey.stays_unrecorded for survey in all_cases),
        unusable=sum(survey.unusable for survey in all_cases),
        unreadable=tuple(survey.unreadable for survey in all_cases if survey.unreadable),
        renewed=sum(survey.renewed for survey in all_cases),
        complete=any(survey.complete and not survey.ended for survey in all_cases),
        derived=len(derived),
        asking=sum(survey.asks is not None for survey in all_cases),
        bases=len({spec.base_case for spec in derived}),
        beside=sum(survey.beside for survey in all_cases),
        new_runs=len(set(map(_run_of, new_cases))),
        new_calls=_calls(plan_rows(new_cases, models)),
        kept=sum(survey.is_recorded and survey.ended for survey in all_cases if not survey.beside),
    )


def _of_new_runs(surveys: Sequence[Survey]) -> list[Survey]:
    """The cases of runs of which nothing is recorded."""
    recorded = {_run_of(survey) for survey in surveys if survey.is_recorded or survey.ended}
    return [survey for survey in surveys if _run_of(survey) not in recorded]


def _run_of(survey: Survey) -> tuple[str, str, int]:
    return survey.spec.suite, survey.spec.run_id, survey.spec.epoch


def plan_rows(
    surveys: Iterable[Survey],
    models: Mapping[tuple[str, StageName, str | None], StageModel],
) -> list[PlanRow]:
    """Add surveys up, per suite, stage and model, with shared calls once; `models` are by suite,
    stage and judge name (None but for the judge stage).
    """
    recorded: Counter[tuple[str, StageName, str]] = Counter()
    calls: dict[tuple[str, StageName, str], Bounds] = {}
    letters: dict[tuple[str, StageName, str], Bounds] = {}
    stages: dict[tuple[str, StageName, str], StageModel] = {}
    missing_once: set[str] = set()
    for survey in surveys:
        bounds_by_stage = survey.to_make()
        for stage, spec in STAGES.items():
            suite = survey.spec.suite
            # A panel's judges have a model each, and all cases those of the stages that make them.
            judge = survey.spec.judge if spec is JUDGE else None
            model = models.get((suite, stage, judge))
            if model is None:
                continue
            key = (suite, stage, model.model)
            stages[key] = model
            lookups = [lookup for lookup in survey.lookups if lookup.stage == stage]
            recorded[key] += sum(lookup.answer is not None for lookup in lookups)
            expected = bounds_by_stage.get(stage, Bounds())
            if spec.shared_calls and expected.high:
                for lookup in lookups:
                    if lookup.answer is None and lookup.fingerprint in missing_once:
                        expected = expected.less(1)
                    elif lookup.answer is None:
                        missing_once.add(lookup.fingerprint)
            calls[key] = calls.get(key, Bounds()) + expected
            letters[key] = letters.get(key, Bounds()) + expected.times(
                survey.letters, survey.letters
            )
    rows = []
    for key, model in stages.items():
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
    cost = promise = None
    if price is not None:
        promise = (model.max_tokens or price.longest) * price.written
        cost = read.times(price.read, price.read) + written.times(price.written, price.written)
    suite, stage, name = key
    return PlanRow(suite, stage, name, recorded, calls, read + written, cost, promise)


def session_plan(
    suites: LoadedSuites, surveys: Iterable[Survey], options: Options, width: int
) -> list[str]:
    """What a session of these surveyed cases would ask, and what it can show."""
    surveyed = list(surveys)
    models: dict[tuple[str, StageName, str | None], StageModel] = {}
    by_code: dict[str, None] = {}
    for ready in suites:
        for stage, model in ready.suite.stages.items():
            models[ready.suite.name, stage, None] = model
        for name, judge in ready.judges.items():
            for model in judge.models:
                models[ready.suite.name, model.stage, name] = model
            if judge.runs_code:
                models[ready.suite.name, JUDGE.name, name] = StageModel(JUDGE.name, judge.label)
                by_code[judge.label] = None

    calls = plan_lines(
        plan_of(surveyed, models),
        {ready.suite.name: suites.modes(ready) for ready in suites},
        max_calls=options.max_calls,
        max_cost=options.max_cost,
        by_code=tuple(by_code),
        width=width,
    )
    calls += all_wrapped(chain.from_iterable(_left_out(ready) for ready in suites), width)
    kin_sentences: dict[str, None] = {}
    for ready in suites:
        kin_sentences.update(dict.fromkeys(map(kin_sentence, ready.grounds.kin)))
    calls += all_wrapped(kin_sentences, width)
    return calls


def _left_out(ready: ReadySuite) -> Iterator[str]:
    """Say of recorded runs that others are drawn in their place, since the log has grown."""
    suite = ready.suite
    if suite.frozen is not None or suite.source.sample_num is None:
        return
    recorded = Recorded.read(suite.cassette_dir)
    drawn = {(spec.run_id, spec.epoch) for spec in ready.specs()}
    new = sum(not recorded.has_run(*run) for run in drawn)
    log = {(run.run_id, run.epoch) for run in ready.runs}
    left_out = sum(recorded.has_run(*run) for run in log - drawn)
    if replaced := min(new, left_out):
        runs = "1 recorded run is" if replaced == 1 else f"{replaced:,} recorded runs are"
        yield (
            f"suite {suite.name}: {runs} not drawn any more, and others in their place "
            f"(sample_num_from_orig: {suite.source.sample_num}); `sampling: kept` keeps them."
        )


def plan_lines(
    plan: CallPlan,
    modes: Mapping[str, tuple[str, str]],
    *,
    max_calls: int | None = None,
    max_cost: float | None = None,
    by_code: Sequence[str] = (),
    width: int = 80,
) -> list[str]:
    """The total, what limits and recordings make of it, a table per suite, and what the bounds rest
    on.

    `modes` are generation's and judging's, per suite; `max_calls` and `max_cost` (US dollars) the
    session's limits; `by_code` are the judges whose own code asks.
    """
    to_make = _calls(plan.rows)
    calls = "1 call" if to_make.low == to_make.high == 1 else f"{_whole(to_make)} calls"
    recorded = counted(sum(row.recorded for row in plan.rows), "call")
    sentences = [
        f"{calls}, {_cost(plan.rows)}: {counted(plan.cases, 'case')}, {recorded} recorded.",
        *_grown(plan),
        *_probed(plan),
        *_limits(plan.rows, max_calls, max_cost),
        *_cases(plan, modes),
    ]
    lines = [*all_wrapped(sentences, width), ""]
    for suite in dict.fromkeys(row.suite for row in plan.rows):
        generation, judging = modes[suite]
        mode = generation if generation == judging else f"{generation}, judge {judging}"
        lines += [
            f"suite {suite}, recording {mode}",
            *_table([row for row in plan.rows if row.suite == suite], width),
            "",
        ]
    return [*lines, *all_wrapped(_counted(plan.rows, by_code), width)]


def _grown(plan: CallPlan) -> Iterator[str]:
    """What is new beside what was recorded before."""
    if plan.new_runs and plan.kept:
        calls = "1 call" if plan.new_calls.high == 1 else f"{_whole(plan.new_calls)} calls"
        kept = counted(plan.kept, "case")
        yield f"{counted(plan.new_runs, 'new run')}: {calls}; {kept} kept."


def _counted(rows: Sequence[PlanRow], by_code: Sequence[str]) -> Iterator[str]:
    """What the bounds of the calls to make rest on."""
    asked = [row for row in rows if row.calls.high]
    if not asked:
        return
    if any(row.model in by_code for row in asked):
        yield (
            "A plan runs no judge's own code: it counts as at most one call a case here; in a "
            "session each of its requests counts."
        )
    ranges: dict[str, None] = {}
    for row in asked:
        if row.calls.low < row.calls.high and row.model not in by_code:
            ranges[STAGES[row.stage].title] = None
    if ranges:
        *first, last = ranges
        titles = f"{', '.join(first)} and {last} take" if first else f"{last} takes"
        yield f"How many calls {titles} is known once cases are made."
    yield (
        "Answers that have to be asked for again come on top, and so do attempts that fail, which "
        "count as made. Tokens are estimated from the transcripts' letters, an answer as at most "
        "max_tokens, or 2,000 tokens where none is set."
    )


def _limits(
    rows: Sequence[PlanRow], max_calls: int | None, max_cost: float | None
) -> Iterator[str]:
    """What the limits leave of the calls."""
    calls = _calls(rows)
    if max_calls is not None and calls.high > max_calls:
        stops = "are made" if calls.low > max_calls else "can be made"
        yield (
            f"With --jrh-max-calls={max_calls} at most {max_calls:,} of them {stops}; the rest "
            "is over_budget."
        )
    if max_cost is None or not calls.high:
        return
    limit = f"--jrh-max-cost={max_cost:g}"
    if unpriced := _unpriced(rows):
        yield f"A run with {limit} is refused: no known price for {', '.join(unpriced)}."
        return
    cost = sum((row.cost for row in rows if row.cost is not None), Bounds())
    promises = {row.stage: row.promise for row in rows if row.calls.high and row.promise}
    if out := [stage for stage, promise in promises.items() if promise > max_cost]:
        most = max(promises.values())
        yield (
            f"With {limit} no call of {', '.join(out)} is made: a budget reserves the maximum "
            f"cost of each call, here {dollars(most)} or more. A smaller max_tokens lowers "
            "that."
        )
    elif cost.low > max_cost:
        yield (
            f"With {limit} not all of them are made: they cost {dollars(cost.low)} or more. The "
            "rest is over_budget."
        )
    elif cost.high + sum(promises.values()) > max_cost:
        yield f"With {limit} perhaps not all of them are made; the rest is over_budget."


def _cases(plan: CallPlan, modes: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """What there is to know about cases whose calls are not simply recorded or to be made."""
    if unpriced := _unpriced(plan.rows):
        whose = "its cost is" if len(unpriced) == 1 else "their cost is"
        yield f"No known price for {listed(unpriced)}: {whose} not in these figures."
    if plan.unrecorded:
        yield (
            f"{counted(plan.unrecorded, 'case')} would be unrecorded: the record mode does not "
            "make their missing calls (once does not add to a complete recording; new_episodes "
            "does)."
        )
    if plan.unreadable:
        different = len(set(plan.unreadable))
        others = f" (and {different - 1:,} more)" if different > 1 else ""
        yield (
            f"{counted(len(plan.unreadable), 'case')} with an invalid input (input_error), about "
            f"which nothing is asked: {plan.unreadable[0]}{others}"
        )
    if plan.renewed:
        yield f"--jrh-retry-unscored asks again in {counted(plan.renewed, 'case')}."
    elif plan.unusable:
        yield (
            f"{counted(plan.unusable, 'case')} with unusable recorded answers; "
            "--jrh-retry-unscored in a recording mode asks again."
        )
    if _calls(plan.rows).high and all(pair == ("none", "none") for pair in modes.values()):
        mode = "new_episodes" if plan.complete else "once"
        yield f"Record mode none makes no calls: these would be made with --jrh-record-mode={mode}."


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


def _probed(plan: CallPlan) -> Iterator[str]:
    """How many cases are those of probes, which cost a verdict each."""
    if not plan.derived:
        return
    bases_text = (
        f", {plan.beside:,} of which are made and judged for them alone" if plan.beside else ""
    )
    how = "without a call"
    if plan.asking:
        free_text = "" if plan.asking == plan.derived else ", the others without a call"
        how = f"{plan.asking:,} by models{free_text}"
    findings_text = " and models find that there is a case" if plan.asking else ""
    yield (
        f"{plan.derived:,} of the cases {'is' if plan.derived == 1 else 'are'} made by probes of "
        f"{counted(plan.bases, 'case')}{bases_text}: {how}, and counted as judged, which they are "
        f"where the judge is right on the unchanged case{findings_text}."
    )


def _calls(rows: Sequence[PlanRow]) -> Bounds:
    return sum((row.calls for row in rows), Bounds())


def _unpriced(rows: Sequence[PlanRow]) -> list[str]:
    return sorted({row.model for row in rows if row.cost is None and row.calls.high})


def _cost(rows: Sequence[PlanRow]) -> str:
    """The cost of the calls to make; what has no price is unknown, and never counted as nothing."""
    priced = sum((row.cost for row in rows if row.cost is not None), Bounds())
    if not _unpriced(rows):
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
