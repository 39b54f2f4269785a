"""What a session would ask and what that may cost, found out without asking (`--jrh-plan`).

Every case is replayed as far as its cassettes reach. What lies behind the first missing call cannot
be known, so the planner is counted as one call, the judge as one for each repeat, edits and
summaries as a range. Re-asks of answers that do not validate are not foreseen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.core.stages import NO_CALL, ONE_CALL, STAGES, CallRange, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_jrh.core.model import CaseSpec, StageModel, StageName
    from pytest_jrh.llm.budget import Price
    from pytest_jrh.recording.shared_calls import Lookup


# Tokens are estimated from characters: few letters a token makes many tokens.
_MOST_LETTERS, _FEWEST_LETTERS = 5.0, 2.5
_SHORTEST_ANSWER, _LONGEST_ANSWER = 30, 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """At least and at most."""

    low: float = 0
    high: float = 0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.low + other.low, self.high + other.high)

    def times(self, low: float, high: float) -> Estimate:
        """Both ends multiplied."""
        return Estimate(self.low * low, self.high * high)


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
    calls: Estimate
    tokens: Estimate
    cost: Estimate | None
    promise: float | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """How far one case got by replay: what it looked up, and the size of its prompts in characters.

    `ended` says that the case reached its end, so nothing is missing, and `made` that only its
    judge may be. `letters` is the length of its transcript. `makes` says that the making of the
    case counts for this one of several judges. `records_making` and `records_judging` say whether
    the record modes let missing calls be made, and `complete` that a cassette of the case was
    complete. `judge_calls` are those of one verdict, and `repeats` counts the verdicts that are
    missing. `unusable` says that the case ends in recorded answers that cannot be used,
    and `renewed` that such are asked again. `scores` are those that are recorded, where none is
    missing. `beside` is a case that is no item of the session, and that a probe changes. `asks`
    are the calls with which a probe makes the case, once it has begun.
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
    renewed: bool = False
    scores: tuple[int, ...] = ()
    beside: bool = False
    asks: Mapping[StageName, CallRange] | None = None

    @property
    def is_judged(self) -> bool:
        """Whether the case has a verdict or may get one: it was made, or may still be."""
        return self.evaluates and (self.made or not self.ended)

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
            planned = stage.edits_in(lookup.answer)
            if planned is not None:
                edits = min(planned, self.most_edits)
                return CallRange(edits, edits)
        return CallRange(0, self.most_edits)

    def to_make(self) -> dict[StageName, Estimate]:
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
        workload = Workload(self.edits, self.verifies, judging)
        whole = {stage.name: Estimate(*stage.calls(workload)) for stage in STAGES.values()}
        if self.made or not self.makes:
            return {name: whole[name] for name in whole if not STAGES[name].makes_cases}
        if self.asks is not None:
            begun = bool(self.lookups)
            for name in whole:
                if STAGES[name].makes_cases:
                    asked = self.asks.get(name, NO_CALL)
                    whole[name] = Estimate(asked.low if begun else 0, asked.high)
        done = Counter(lookup.stage for lookup in self.lookups if lookup.answer is not None)
        return {
            stage: Estimate(max(0, bounds.low - done[stage]), max(0, bounds.high - done[stage]))
            for stage, bounds in whole.items()
        }


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What a session would ask: calls per stage and model, and what of its cases has to be said
    beside them.

    `unrecorded` counts the cases that miss calls which the record modes do not let be made,
    `unusable` those that end in recorded answers that cannot be used, `renewed` those that ask such
    again, and `complete` says that calls are missing of a case whose recording was complete.
    `derived` counts those of probes, `asking` those of these that models make, `bases` the cases
    that they change, and `beside` those among these that are no cases of the session.
    """

    rows: tuple[PlanRow, ...]
    cases: int
    unrecorded: int = 0
    unusable: int = 0
    renewed: int = 0
    complete: bool = False
    derived: int = 0
    asking: int = 0
    bases: int = 0
    beside: int = 0


def plan_of(
    surveys: Iterable[Survey],
    models: Mapping[tuple[str, StageName, str | None], StageModel],
    prices: Callable[[str], Price | None],
) -> CallPlan:
    """Add surveys up; `models` and `prices` are those of `plan_rows`."""
    all_cases = list(surveys)
    derived = [survey.spec for survey in all_cases if survey.spec.variant]
    return CallPlan(
        rows=tuple(plan_rows(all_cases, models, prices)),
        cases=sum(not survey.beside for survey in all_cases),
        unrecorded=sum(survey.stays_unrecorded for survey in all_cases),
        unusable=sum(survey.unusable for survey in all_cases),
        renewed=sum(survey.renewed for survey in all_cases),
        complete=any(survey.complete and not survey.ended for survey in all_cases),
        derived=len(derived),
        asking=sum(survey.asks is not None for survey in all_cases),
        bases=len({spec.base_case for spec in derived}),
        beside=sum(survey.beside for survey in all_cases),
    )


def plan_rows(
    surveys: Iterable[Survey],
    models: Mapping[tuple[str, StageName, str | None], StageModel],
    prices: Callable[[str], Price | None],
) -> list[PlanRow]:
    """Add surveys up, per suite, stage and model.

    `models` gives the stage model by suite, stage and judge name (None but for the judge stage). A
    call that several cases share, such as the first summary of a run, counts once.
    """
    recorded: Counter[tuple[str, StageName, str]] = Counter()
    calls: dict[tuple[str, StageName, str], Estimate] = {}
    letters: dict[tuple[str, StageName, str], Estimate] = {}
    stages: dict[tuple[str, StageName, str], StageModel] = {}
    missing_once: set[str] = set()
    for survey in surveys:
        made = survey.to_make()
        for stage, spec in STAGES.items():
            suite = survey.spec.suite
            # A panel's judges have a model each, and all cases those of the stages that make them.
            judge = None if spec.makes_cases else survey.spec.judge
            model = models.get((suite, stage, judge))
            if model is None:
                continue
            key = (suite, stage, model.model)
            stages[key] = model
            own = [lookup for lookup in survey.lookups if lookup.stage == stage]
            recorded[key] += sum(lookup.answer is not None for lookup in own)
            more = made.get(stage, Estimate())
            shared = [
                lookup.fingerprint
                for lookup in own
                if lookup.answer is None and spec.shared_at_start
            ]
            for fingerprint in shared if more.high else ():
                if fingerprint in missing_once:
                    more = Estimate(max(0, more.low - 1), max(0, more.high - 1))
                missing_once.add(fingerprint)
            calls[key] = calls.get(key, Estimate()) + more
            letters[key] = letters.get(key, Estimate()) + more.times(survey.letters, survey.letters)
    return [
        _row(key, stages[key], recorded[key], calls[key], letters[key], prices) for key in stages
    ]


def _row(
    key: tuple[str, StageName, str],
    model: StageModel,
    recorded: int,
    calls: Estimate,
    letters: Estimate,
    prices: Callable[[str], Price | None],
) -> PlanRow:
    longest = model.max_tokens or _LONGEST_ANSWER
    read = Estimate(letters.low / _MOST_LETTERS, letters.high / _FEWEST_LETTERS)
    written = calls.times(_SHORTEST_ANSWER, longest)
    price = prices(model.model)
    cost = promise = None
    if price is not None:
        promise = (model.max_tokens or price.longest) * price.written
        cost = read.times(price.read, price.read) + written.times(price.written, price.written)
    suite, stage, name = key
    return PlanRow(suite, stage, name, recorded, calls, read + written, cost, promise)
