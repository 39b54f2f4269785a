"""A plan of calls as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_jrh.core.model import StageModel
from pytest_jrh.core.stages import JUDGE
from pytest_jrh.core.text import counted, dollars, shortened, wrapped
from pytest_jrh.engine.planning import CallPlan, Estimate, PlanRow, plan_of
from pytest_jrh.llm.budget import Price, price_of
from pytest_jrh.reports.grounds import kin_sentence
from pytest_jrh.reports.planner import prospect_sentences
from pytest_jrh.stats.planning import PlannedCase, foreseen, prospects

if TYPE_CHECKING:
    from pytest_jrh.config.options import Options
    from pytest_jrh.core.model import StageName
    from pytest_jrh.engine.loading import LoadedSuites, ReadySuite
    from pytest_jrh.engine.planning import Survey


_HEAD = ("stage", "model", "recorded", "to make", "tokens", "cost")


def session_plan(
    suites: LoadedSuites, surveys: Iterable[Survey], options: Options, width: int
) -> list[str]:
    """What a session of these suites would ask, of whose cases the recordings were surveyed, and
    what it can show.
    """
    surveyed = list(surveys)
    models: dict[tuple[str, StageName, str | None], StageModel] = {}
    by_code: dict[str, None] = {}
    for ready in suites:
        for stage, model in ready.suite.generation.stages.items():
            models[ready.suite.name, stage, None] = model
        for name, judge in ready.judges.items():
            for model in judge.models:
                models[ready.suite.name, model.stage, name] = model
            if judge.runs_code:
                models[ready.suite.name, JUDGE.name, name] = StageModel(JUDGE.name, judge.label)
                by_code[judge.label] = None

    def price(model: str) -> Price | None:
        return Price(0.0, 0.0) if model in options.free_models else price_of(model)

    disabled = ("disabled", "disabled")
    calls = plan_lines(
        plan_of(surveyed, models, price),
        {
            ready.suite.name: disabled if options.disable_recording else suites.modes(ready)
            for ready in suites
        },
        max_calls=options.max_calls,
        max_cost=options.max_cost,
        by_code=tuple(by_code),
        width=width,
    )
    kin_sentences: dict[str, None] = {}
    for ready in suites:
        kin_sentences.update(dict.fromkeys(map(kin_sentence, ready.grounds.kin)))
    calls += [line for sentence in kin_sentences for line in wrapped(sentence, width)]
    return [*calls, *(line for ready in suites for line in prospect_lines(ready, surveyed, width))]


def prospect_lines(ready: ReadySuite, surveys: Iterable[Survey], width: int = 80) -> list[str]:
    """What a comparison of a suite with a baseline can show; nothing where no case is judged."""
    suite = ready.suite
    cases = [
        PlannedCase(survey.spec.judge or "", survey.spec.cluster_id, survey.scores)
        for survey in surveys
        if survey.spec.suite == suite.name and survey.is_judged and not survey.spec.variant
        if not survey.beside
    ]
    outlook = prospects(foreseen(cases, suite.repeats_of), suite.gate.max_drop)
    lines = [line for text in prospect_sentences(outlook) for line in wrapped(text, width)]
    head = f"suite {suite.name}, compared with a baseline"
    return ["", head, *lines] if lines else []


def plan_lines(
    plan: CallPlan,
    modes: Mapping[str, tuple[str, str]],
    *,
    max_calls: int | None = None,
    max_cost: float | None = None,
    by_code: Sequence[str] = (),
    width: int = 80,
) -> list[str]:
    """A table per suite, the total, and what the bounds rest on.

    `modes` are generation's and judging's, per suite; `max_calls` and `max_cost` (US dollars) the
    session's limits; `by_code` are the judges whose own code asks.
    """
    lines: list[str] = []
    for suite in dict.fromkeys(row.suite for row in plan.rows):
        generation, judging = modes[suite]
        mode = generation if generation == judging else f"{generation}, judge {judging}"
        lines += [
            f"suite {suite}, recording {mode}",
            *_table([row for row in plan.rows if row.suite == suite]),
            "",
        ]
    recorded = sum(row.recorded for row in plan.rows)
    to_make, cost = _calls(plan.rows), _cost(plan.rows)
    sentences = [
        f"{counted(plan.cases, 'case')}: {recorded:,} calls recorded, {_whole(to_make)} to make, "
        f"{cost}.",
        *_probed(plan),
        *_limits(plan.rows, max_calls, max_cost),
        *_cases(plan, modes),
    ]
    if by_code:
        sentences.append(
            f"{', '.join(by_code)}: judges by code of its own, which a plan does not run. It "
            "counts as at most one call a case here; in a session each of its requests counts."
        )
    if to_make.high:
        sentences.append(
            "The planner is counted as one call a case and the judge as one call a verdict, edits "
            "and summaries as a range; "
            "answers that have to be asked for again come on top, and so do attempts that fail, "
            "which count as made. Tokens are estimated from the transcripts' letters, an answer "
            "as at most max_tokens, or 2,000 tokens where none is set."
        )
    return [*lines, *(line for sentence in sentences for line in wrapped(sentence, width))]


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
    cost = sum((row.cost for row in rows if row.cost is not None), Estimate())
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
        yield f"No known price for {', '.join(unpriced)}: its cost is not in these figures."
    if plan.unrecorded:
        yield (
            f"{counted(plan.unrecorded, 'case')} would be unrecorded: the record mode does not "
            "make their missing calls (once does not add to a complete recording; new_episodes "
            "does)."
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


def _table(rows: Sequence[PlanRow]) -> list[str]:
    cells = [_HEAD]
    cells += [
        (
            row.stage,
            shortened(row.model, 28),
            f"{row.recorded:,}",
            _whole(row.calls),
            _whole(row.tokens),
            "unknown" if row.cost is None else _dollars(row.cost),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    names = 2
    return [
        "  ".join(
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _probed(plan: CallPlan) -> Iterator[str]:
    """How many cases are those of probes, which cost a verdict each."""
    if not plan.derived:
        return
    beside = f", {plan.beside:,} of which are made and judged for them alone" if plan.beside else ""
    how = "without a call"
    if plan.asking:
        others = "" if plan.asking == plan.derived else ", the others without a call"
        how = f"{plan.asking:,} by models{others}"
    there = " and models find that there is a case" if plan.asking else ""
    yield (
        f"{plan.derived:,} of them {'is' if plan.derived == 1 else 'are'} made by probes of "
        f"{counted(plan.bases, 'case')}{beside}: {how}, and counted as judged, which they are "
        f"where the judge is right on the unchanged case{there}."
    )


def _calls(rows: Sequence[PlanRow]) -> Estimate:
    return sum((row.calls for row in rows), Estimate())


def _unpriced(rows: Sequence[PlanRow]) -> list[str]:
    return sorted({row.model for row in rows if row.cost is None and row.calls.high})


def _cost(rows: Sequence[PlanRow]) -> str:
    """The cost of the calls to make; what has no price is unknown, and never counted as nothing."""
    priced = sum((row.cost for row in rows if row.cost is not None), Estimate())
    if not _unpriced(rows):
        return _dollars(priced)
    return f"{_dollars(priced)} and an unknown cost" if priced.high else "at an unknown cost"


def _whole(bounds: Estimate) -> str:
    low, high = f"{bounds.low:,.0f}", f"{bounds.high:,.0f}"
    return low if low == high else f"{low} to {high}"


def _dollars(bounds: Estimate) -> str:
    low, high = dollars(bounds.low), dollars(bounds.high)
    if not bounds.high:
        return "$0"
    return low if low == high else f"{low} to {high}"
