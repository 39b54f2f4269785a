"""Driving the pipeline: from runs and rubrics to cases, with or without pytest.

What a probe may ask of the suite's models to make a case.

Judging made cases and reading the figures from Python, without recordings.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_jrh.cases.acts import Tool, tools_of
from pytest_jrh.cases.pipeline import (
    ConversationPerturber,
    EditorResponse,
    Goal,
    goal_of,
    make_llm_planner,
    make_llm_verifier,
    reads_summary,
)
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core.errors import InputError, NoVerdictCase, Problem, Unscored, collecting
from pytest_jrh.core.model import (
    AgentRun,
    Case,
    CaseResult,
    CaseSpec,
    Complete,
    EditsOf,
    Judgment,
    Mode,
    Objective,
    PerturbationOutcome,
    Rubric,
    StageModel,
    StageName,
    TestName,
    Verdict,
)
from pytest_jrh.core.stages import EDITOR, MAKING, PLANNER, SUMMARY, VERIFIER, StageSpec
from pytest_jrh.core.templates import Template
from pytest_jrh.core.transcript import message_text, render_tool_calls, render_transcript, storable
from pytest_jrh.core.user_code import error_places, error_text
from pytest_jrh.judges.judge import JudgedCase, judged_case
from pytest_jrh.judges.own_code import Scale, said_by
from pytest_jrh.judges.own_source import own_source
from pytest_jrh.llm.calls import Stage
from pytest_jrh.llm.prompts import built_in, load_template, override_path
from pytest_jrh.stats.diagnosis import figure_text, named_figures, section_warnings
from pytest_jrh.stats.figures import sections
from pytest_jrh.stats.statistics import tabulate
from pytest_jrh.store.results import case_result
from pytest_jrh.store.spools import read_jsonl

if TYPE_CHECKING:
    from pytest_jrh.core.model import Message
    from pytest_jrh.stats.formulas import Estimate


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that making the cases of one test needs, but the way to the models.

    `models` and `templates` are keyed by stage; a missing verifier is off. `mode` and `objective`
    say what the templates are written for, and `edits` what may be changed; `tools` are those of
    the log, for acts: without any, of a run those that it calls.
    """

    models: Mapping[StageName, StageModel]
    templates: Mapping[StageName, Template]
    mode: Mode = "binary"
    objective: Objective = "fail"
    max_edit_rounds: int = 3
    max_summary_messages: int = 20
    pass_required: bool = True
    edits: EditsOf = "text"
    tools: Mapping[str, Tool] = field(default_factory=dict)

    @classmethod
    def default(
        cls,
        model: str,
        *,
        mode: Mode = "binary",
        objective: Objective = "fail",
        temperature: float | None = None,
        max_edit_rounds: int = 3,
        edits: EditsOf = "text",
    ) -> Pipeline:
        """A pipeline with the built-in prompts and one model, by its name in litellm."""
        models: dict[StageName, StageModel] = {}
        templates: dict[StageName, Template] = {}
        for stage in MAKING:
            models[stage.name] = StageModel(stage.name, model, temperature=temperature)
            templates[stage.name] = load_template(
                stage.name, mode=mode, objective=objective, edits=edits
            )
        return cls(
            models=models,
            templates=templates,
            mode=mode,
            objective=objective,
            max_edit_rounds=max_edit_rounds,
            edits=edits,
        )

    def goals(self, rubric: Rubric) -> tuple[Goal, ...]:
        """The cases to make of a run under a rubric: one, or one for each ascending level."""
        if self.mode == "binary":
            return (Goal(self.objective),)
        return tuple(goal_of(self.objective, level.score) for level in rubric.score_levels)

    def for_run(self, run: AgentRun) -> Pipeline:
        """The pipeline for a run: where no tools are known, acts are held to those of the run."""
        if self.edits == "text" or self.tools:
            return self
        return replace(self, tools=tools_of([run.messages], run.tools))

    @property
    def summarized_for(self) -> frozenset[StageName]:
        """The stages whose prompts name the summary."""
        templates = self.templates.items()
        return frozenset(stage for stage, template in templates if reads_summary(template))

    def perturber(self, complete: Complete) -> ConversationPerturber:
        """A perturber that asks its models through `complete`."""
        verifier, of_acts = None, self.edits == "acts"
        if VERIFIER.name in self.models:
            verifier = make_llm_verifier(complete, *self._parts(VERIFIER), of_acts=of_acts)
        planner_parts = self._parts(PLANNER)
        perturber = ConversationPerturber(
            planner=make_llm_planner(complete, *planner_parts),
            editor=Stage(*self._parts(EDITOR), complete),
            summary=Stage(*self._parts(SUMMARY), complete),
            verifier=verifier,
            max_edit_rounds=self.max_edit_rounds,
            max_summary_messages=self.max_summary_messages,
            pass_required=self.pass_required,
            verifies_by_summary=VERIFIER.name in self.summarized_for,
        )
        if not of_acts:
            return perturber
        # No other suite takes the import.
        from pytest_jrh.cases.act_edits import ACT_VARIABLES, ActEditor, make_acts_planner

        act_template = built_in("editor.acts", allowed=ACT_VARIABLES, required=frozenset())
        return replace(
            perturber,
            planner=make_acts_planner(complete, *planner_parts, self.tools),
            acts=ActEditor(act_template, self.tools),
        )

    def _parts(self, stage: StageSpec) -> tuple[StageModel, Template]:
        return self.models[stage.name], self.templates[stage.name]


def build_pipeline(suite: Suite, test: SuiteTest) -> Pipeline:
    """Find and check the templates of one test's stages; raises `InputError` with all problems."""
    templates: dict[StageName, Template] = {}
    problems: list[Problem] = []
    # A probe changes cases in ways of its own.
    edits = "text" if test.name in PROBES else suite.generation.edits
    for name, model in suite.stages.items():
        with collecting(problems):
            templates[name] = load_template(
                name,
                mode=suite.mode,
                objective=test.objective,
                prompt_path=Path(model.prompt_path) if model.prompt_path else None,
                override=override_path(suite.custom_prompts_dir, test.name, name),
                edits=edits,
            )
    if problems:
        raise InputError(problems)
    return Pipeline(
        models=suite.stages,
        templates=templates,
        mode=suite.mode,
        objective=test.objective,
        max_edit_rounds=suite.generation.max_edit_rounds,
        max_summary_messages=suite.generation.max_summary_messages,
        pass_required=suite.generation.pass_required,
        edits=edits,
    )


def build_pipelines(suite: Suite, tests: Sequence[SuiteTest]) -> dict[TestName, Pipeline]:
    """Build the pipelines of tests; raises `InputError` with the problems of all."""
    pipelines: dict[TestName, Pipeline] = {}
    problems: list[Problem] = []
    for test in tests:
        with collecting(problems):
            pipelines[test.name] = build_pipeline(suite, test)
    if problems:
        raise InputError(problems)
    return pipelines


async def generate_case(
    pipeline: Pipeline,
    complete: Complete,
    spec: CaseSpec,
    run: AgentRun,
    rubric: Rubric,
    goal: Goal,
) -> Case:
    """Make one case; raises `NoVerdictCase`, with the case if it was rejected, and `Unscored`."""
    outcome = await pipeline.for_run(run).perturber(complete).perturb(run, rubric, goal)
    if outcome.no_case is not None and outcome.rejected is None:
        raise NoVerdictCase(outcome.no_case.kind, outcome.no_case.text)
    messages = outcome.messages if outcome.rejected is None else outcome.rejected
    case = Case(
        spec=spec,
        rubric=rubric,
        run=run,
        outcome=replace(outcome, messages=messages, rejected=None),
        expected=goal.expected,
        verified=outcome.confirmed,
        mode=goal.mode,
        objective=goal.objective,
        levels=rubric.score_levels if goal.mode == "ordinal" else (),
    )
    if outcome.no_case is not None:
        raise NoVerdictCase(outcome.no_case.kind, outcome.no_case.text, case)
    return case


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


_CLAIM = frozenset({"rubric", "transcript", "message_index", "original_message", "tool_calls"})


@dataclass(frozen=True, slots=True)
class ProbeModels:
    """The models of a suite for a probe: `probes.probe.ProbeBench`."""

    rubrics: tuple[Rubric, ...]
    original: tuple[Message, ...]
    pipeline: Pipeline
    complete: Complete

    async def satisfied(self, messages: tuple[Message, ...], rubric: Rubric) -> bool:
        """Ask the verifier, with the prompt that it has for the suite's other cases."""
        model, template = self._verifier()
        verify = make_llm_verifier(self.complete, model, template)
        verification = await verify(messages, rubric, Goal("fail"), "")
        return verification.verdict == "PASS"

    async def argued(self, messages: tuple[Message, ...], position: int, rubric: Rubric) -> str:
        """Ask the editor's model by its own prompt, since an edit must not name the rubric."""
        self._verifier()  # Without one the argument would be paid for and of no use.
        message = messages[position]
        original = message_text(message)
        template = built_in("editor.claim", allowed=_CLAIM, required=_CLAIM)
        values = {
            "rubric": rubric.instructions,
            "transcript": render_transcript(messages),
            "message_index": position,
            "original_message": original,
            "tool_calls": render_tool_calls(message),
        }
        stage = Stage(self.pipeline.models[EDITOR.name], template, self.complete)
        answer = (await stage.ask(values, EditorResponse)).parsed
        text: str = storable(answer.new_content)[0]
        if text.strip() in ("", original.strip()):
            raise NoVerdictCase(
                "unusable_edit", f"unusable edit: the editor adds no argument to turn {position}"
            )
        return text

    def _verifier(self) -> tuple[StageModel, Template]:
        if VERIFIER.name not in self.pipeline.models:
            text = "the verifier is off, and nothing else can say what the label is"
            raise NoVerdictCase("not_confirmed", text)
        return self.pipeline.models[VERIFIER.name], self.pipeline.templates[VERIFIER.name]


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
    fingerprint = own_source(judge).digest

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

    figures: dict[str, Estimate]
    rubrics: dict[str, dict[str, Estimate]]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{name}: {figure_text(name, figure)}" for name, figure in self.figures.items()]
        return "\n".join([*lines, *(f"! {warning}" for warning in self.warnings)])


def reliability(results: Iterable[CaseResult]) -> Reliability:
    """Compute one judge's figures with 95% intervals, clustered by run; raises `ValueError` for no
    results, and for those of several judges or suites.
    """
    judge_sections = sections(tabulate(results))
    if len(judge_sections) != 1:
        raise ValueError(f"the results are of {len(judge_sections)} judges or suites; must be one")
    [section] = judge_sections

    rubrics = {row.name: named_figures(row.statistics, section.mode) for row in section.rubrics}
    total = named_figures(section.total, section.mode)
    return Reliability(total, rubrics, tuple(section_warnings(section)))


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
        detail = " ".join([came.cause, *came.places])
        return case_result(
            case.spec, case, came.outcome, detail=detail, judge_fingerprint=fingerprint
        )
    outcome = "agree" if came.score == case.expected else "disagree"
    return case_result(case.spec, case, outcome, judgment=came, judge_fingerprint=fingerprint)
