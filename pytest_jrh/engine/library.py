"""Making and judging cases, and reading the figures, from Python: without pytest or recordings."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_jrh.core.errors import InputError, Problem, Unscored, error_places, error_text
from pytest_jrh.core.model import (
    Judgment,
    Why,
)
from pytest_jrh.judges.judge import JudgedCase, judged_case
from pytest_jrh.judges.own_code import Scale, code_digest, said_by
from pytest_jrh.store.ledger import case_result
from pytest_jrh.store.made_cases import read_jsonl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Sequence

    from pytest_jrh.cases.pipeline import Goal
    from pytest_jrh.core.model import (
        AgentRun,
        Case,
        CaseResult,
        Complete,
        PerturbationOutcome,
        Rubric,
        Verdict,
    )
    from pytest_jrh.engine.suite import Pipeline


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One outcome of `generate_agent_perturbations`, with what it was made from."""

    run: AgentRun
    rubric: Rubric
    goal: Goal
    outcome: PerturbationOutcome


async def generate_agent_perturbations(
    runs: Iterable[AgentRun],
    rubrics: Sequence[Rubric],
    pipeline: Pipeline,
    complete: Complete,
    *,
    target_scores: Collection[int] | None = None,
    concurrency: int = 10,
) -> AsyncIterator[Perturbation]:
    """Make every case of runs x rubrics x goals, at most `concurrency` at once, yielding them in
    that order.

    The way to use the pipeline from Python without pytest: `complete` is any `Complete`. An ordinal
    pipeline aims at every level of a rubric, or at those of `target_scores`. `runs` is consumed as
    work proceeds. Raises `Unscored` at the first case that a model's trouble stops; cases still at
    work are cancelled then, and where the caller stops listening.
    """

    async def make(run: AgentRun, rubric: Rubric, goal: Goal) -> Perturbation:
        return Perturbation(
            run,
            rubric,
            goal,
            await pipeline.for_run(run).perturber(complete).perturb(run, rubric, goal),
        )

    at_work: list[asyncio.Task[Perturbation]] = []
    try:
        for run in runs:
            for rubric in rubrics:
                for goal in pipeline.goals(rubric):
                    if target_scores is not None and goal.target_score not in target_scores:
                        continue
                    if len(at_work) >= concurrency:
                        yield await at_work.pop(0)
                    at_work.append(asyncio.create_task(make(run, rubric, goal)))
        while at_work:
            yield await at_work.pop(0)
    finally:
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)


JudgeFunction = Callable[[JudgedCase], object]


_SCALE = Scale("The judge", None)


def load_cases(path: str | Path) -> list[Case]:
    """Read the made cases of a JSONL file, without RAND's lines; raises `InputError` with file and
    line for what is missing or cannot be used.
    """
    if not Path(path).is_file():
        raise InputError(Problem("there is no such file", str(path)))
    return [entry.case() for entry in read_jsonl(Path(path)).entries.values()]


async def judge_cases(
    cases: Iterable[Case], judge: JudgeFunction, *, repeats: int = 1, concurrency: int = 10
) -> list[CaseResult]:
    """Judge cases `repeats` times each, and hold the most frequent score against each label.

    `judge` gets a `JudgedCase` and returns a `Verdict`, a score or a pair of
    score and reasoning; it may be async, and runs in a thread where it is not. At most
    `concurrency` cases are judged at once; the results are in the order of the cases. What the
    judge raises is a result with the outcome `model_error`, and a value that is no score on offer
    one with `invalid_response`: neither is a verdict. Nothing is recorded.

    Raises `ValueError` for `repeats` or `concurrency` below 1.
    """
    for name, number in (("repeats", repeats), ("concurrency", concurrency)):
        if number < 1:
            raise ValueError(f"{name} is {number}; must be an integer >= 1")
    places = asyncio.Semaphore(concurrency)
    fingerprint = code_digest(judge)

    async def result(case: Case) -> CaseResult:
        async with places:
            try:
                verdicts = [await _verdict(case, judge) for _ in range(repeats)]
            except Unscored as trouble:
                return _result(case, fingerprint, trouble)
        return _result(case, fingerprint, Judgment(tuple(verdicts)))

    return list(await asyncio.gather(*(result(case) for case in cases)))


async def _verdict(case: Case, judge: JudgeFunction) -> Verdict:
    judged = judged_case(case, show_reasoning=False)
    try:
        if inspect.iscoroutinefunction(judge):
            value: object = await judge(judged)
        else:
            value = await asyncio.to_thread(judge, judged)
            if inspect.isawaitable(value):
                value = await cast("Awaitable[object]", value)
    except Unscored:
        raise
    except Exception as error:
        raise Unscored(
            "model_error",
            stage="judge",
            cause=f"The judge raised {error_text(error)}",
            places=error_places(error),
        ) from error
    return _SCALE.verdict(said_by(value), judged)


def _result(case: Case, fingerprint: str, came: Judgment | Unscored) -> CaseResult:
    if isinstance(came, Unscored):
        why = Why(came.outcome, " ".join([came.cause, *came.places]))
        return case_result(case.spec, case, why, judge_digest=fingerprint)
    return case_result(case.spec, case, verdicts=came.verdicts, judge_digest=fingerprint)
