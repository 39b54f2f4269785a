"""Judging made cases and reading the figures from Python, without pytest and without recordings."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.model import CaseResult, Judgment, Verdict
from pytest_jrh.core.user_code import error_places, error_text
from pytest_jrh.judges.judge import JudgedCase, judged_case
from pytest_jrh.judges.own_code import Scale, split_value
from pytest_jrh.judges.own_source import own_source
from pytest_jrh.stats.diagnosis import NamedFigure, named_figures, section_warnings
from pytest_jrh.stats.figures import sections
from pytest_jrh.stats.statistics import tabulate
from pytest_jrh.store.results import case_result
from pytest_jrh.store.spools import read_jsonl

if TYPE_CHECKING:
    from pytest_jrh.core.model import Case
    from pytest_jrh.stats.statistics import Statistics


JudgeFunction = Callable[[JudgedCase], object]
_SCALE = Scale("The judge", None)


def load_cases(path: str | Path) -> list[Case]:
    """Read the made cases of a JSONL file, such as `agent_perturbations.jsonl`.

    Lines of RAND's harness, which have no label of ours, are left out. Raises `InputError` where
    the file is missing, and with file and line for a line that cannot be used.
    """
    if not Path(path).is_file():
        raise InputError(Problem("there is no such file", str(path)))
    return [entry.case() for entry in read_jsonl(Path(path)).entries.values()]


async def judge_cases(
    cases: Iterable[Case], judge: JudgeFunction, *, repeats: int = 1, concurrency: int = 10
) -> list[CaseResult]:
    """Judge cases `repeats` times each, and hold the most frequent score against each label.

    `judge` gets a `JudgedCase` and returns a `Verdict`, a score, a bool (binary alone) or a pair of
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
    fingerprint = own_source(judge, [Path.cwd()]).digest

    async def result(case: Case) -> CaseResult:
        async with places:
            try:
                verdicts = [await _verdict(case, judge) for _ in range(repeats)]
            except Unscored as trouble:
                return _result(case, fingerprint, trouble)
        return _result(case, fingerprint, Judgment(tuple(verdicts)))

    return list(await asyncio.gather(*(result(case) for case in cases)))


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well a judge agrees with the labels: `figures` over all cases, and per rubric, by name.

    The names are those of the JSON report: `accuracy`, `recall`, `false_positive_rate`, `kappa` and
    more for a binary judge, `exact`, `within_one`, `weighted_kappa` and more for an ordinal one.
    `warnings` say what makes a figure worthless, such as a constant verdict.
    """

    figures: dict[str, NamedFigure]
    rubrics: dict[str, dict[str, NamedFigure]]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{figure.name}: {figure.whole_text}" for figure in self.figures.values()]
        return "\n".join([*lines, *(f"! {warning}" for warning in self.warnings)])


def reliability(results: Iterable[CaseResult]) -> Reliability:
    """Compute the figures of one judge with their 95% intervals, clustered by run.

    Only verdicts count; a figure that cannot be computed is None, with the reason. Raises
    `ValueError` for no results, and for those of several judges or suites.
    """
    judge_sections = sections(tabulate(results))
    if len(judge_sections) != 1:
        raise ValueError(f"the results are of {len(judge_sections)} judges or suites; must be one")
    [section] = judge_sections

    def of(statistics: Statistics) -> dict[str, NamedFigure]:
        return {figure.name: figure for figure in named_figures(statistics, section.mode)}

    rubrics = {row.name: of(row.statistics) for row in section.rows if row.level == "rubric"}
    return Reliability(of(section.total), rubrics, tuple(section_warnings(section)))


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
    return _SCALE.verdict(*split_value(value), judged)


def _result(case: Case, fingerprint: str, came: Judgment | Unscored) -> CaseResult:
    if isinstance(came, Unscored):
        detail = " ".join([came.cause, *came.places])
        return case_result(
            case.spec, case, came.outcome, detail=detail, judge_fingerprint=fingerprint
        )
    outcome = "agree" if came.score == case.expected else "disagree"
    return case_result(case.spec, case, outcome, judgment=came, judge_fingerprint=fingerprint)
