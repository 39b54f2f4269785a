"""Making and judging cases from Python, without pytest or recordings: the pipeline of a test, as a
session uses it too, and the figures of a judge that is a function.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import cast

from pytest_jrh.cases.act_edits import edit_acts, plan_acts
from pytest_jrh.cases.acts import Tool, tools_of
from pytest_jrh.cases.pipeline import (
    ConversationSummarizer,
    Goal,
    Work,
    edit_words,
    make_llm_planner,
    make_llm_verifier,
)
from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core import InputError, Problem, collecting, error_text, frozen
from pytest_jrh.core.calls import (
    EDITOR,
    MAKING,
    PLANNER,
    SUMMARY,
    VERIFIER,
    Complete,
    PromptsOf,
    StageModel,
    StageSpec,
)
from pytest_jrh.core.cases import (
    AgentRun,
    Case,
    NoVerdictCase,
    PerturbationOutcome,
    PlanStep,
    Rubric,
    Skip,
    Unscored,
    Verdict,
    Why,
)
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import BINARY, Mode, Objective
from pytest_jrh.core.templates import Template
from pytest_jrh.core.transcript import assistant_indices
from pytest_jrh.judges.judge import JudgedCase, judged_case
from pytest_jrh.judges.own_code import Scoring, code_answer, code_digest, no_verdict
from pytest_jrh.llm.calls import Stage, load_template, override_path
from pytest_jrh.store.ledger import case_result
from pytest_jrh.store.made_cases import read_jsonl


@frozen
class Pipeline:
    """Everything that making the cases of one test needs, but the way to the models.

    `models` and `templates` are keyed by stage; a missing verifier is off. `mode` and `objective`
    say what `goals` are to be, for which the templates are written, and `edits` what may be
    changed; `tools` are those of the log, for acts: without any, of a run those that it calls.
    `pass_required` False keeps positives that the verifier does not confirm, unverified.
    """

    models: Mapping[str, StageModel]
    templates: Mapping[str, Template]
    mode: Mode = BINARY.name
    objective: Objective = "fail"
    max_edit_rounds: int = 3
    max_summary_messages: int = 20
    pass_required: bool = True
    edits: PromptsOf = "text"
    tools: Mapping[str, Tool] = field(default_factory=dict)
    of_pairs: bool = False
    """Whether the answer that is edited stays beside what is made of it, as the better one."""

    @classmethod
    def default(
        cls,
        model: str,
        *,
        mode: Mode = BINARY.name,
        objective: Objective = "fail",
        max_edit_rounds: int = 3,
        edits: PromptsOf = "text",
    ) -> Pipeline:
        """A pipeline with the built-in prompts and one model, by its name in litellm."""
        models = {}
        templates = {}
        for stage in MAKING:
            models[stage.name] = StageModel(stage.name, model)
            templates[stage.name] = load_template(
                stage.name, mode=mode, objective=objective, of=edits
            )
        return cls(
            models=models,
            templates=templates,
            mode=mode,
            objective=objective,
            max_edit_rounds=max_edit_rounds,
            edits=edits,
        )

    def goals(self, rubric: Rubric) -> Sequence[Goal]:
        """The cases to make of a run under a rubric: one, or one for each of several answers."""
        if self.mode == BINARY.name:
            return (Goal(self.objective),)
        return [Goal(self.objective, target) for target in rubric.scale.targets]

    def perturber(self, complete: Complete) -> ConversationPerturber:
        """A perturber that asks its models through `complete`."""
        return ConversationPerturber(self, complete)


@frozen
class ConversationPerturber:
    """Makes one case from one run, or says why there is none."""

    pipeline: Pipeline
    complete: Complete

    async def perturb(self, run: AgentRun, rubric: Rubric, goal: Goal) -> PerturbationOutcome:
        """Plan, edit and verify.

        Returns an outcome whose `no_case` says why where there is no case; raises `Unscored` where
        a model could not be had or understood.
        """
        if not assistant_indices(run.messages):
            return PerturbationOutcome(run.messages, no_case=Skip("no_assistant_turn"))
        work = Work(run, rubric, goal, self._stage(EDITOR), run.messages)
        if SUMMARY.name in self.pipeline.models:
            most = self.pipeline.max_summary_messages
            stage = self._stage(SUMMARY)
            work.summarizer = ConversationSummarizer(stage, run.messages, max_messages=most)
        no_case: Skip | None = None
        try:
            if self.pipeline.of_pairs:
                await self._verify(replace(work, goal=Goal("pass")))
            await self._edit(work)
            await self._verify(work)
        except NoVerdictCase as reason:
            no_case = reason.skip
        return PerturbationOutcome(
            messages=work.messages if no_case is None else run.messages,
            rejected=work.messages if no_case and work.verification else None,
            plan=work.plan,
            edits=tuple(work.edits),
            verification=work.verification,
            confirmed=work.confirmed,
            final_summary=work.final_summary,
            no_case=no_case,
        )

    def _stage(self, stage: StageSpec) -> Stage:
        pipeline = self.pipeline
        return Stage(pipeline.models[stage.name], pipeline.templates[stage.name], self.complete)

    async def _edit(self, work: Work) -> None:
        pipeline, goal = self.pipeline, work.goal
        if pipeline.edits == "answer":
            step = PlanStep(assistant_indices(work.messages)[-1], goal="", rationale="")
            may_stay = not goal.case_class(work.rubric).not_planned
            await edit_words(work, step, name="the answer", may_stay=may_stay)
            return
        stage, most, tools = self._stage(PLANNER), pipeline.max_edit_rounds, pipeline.tools
        of_acts = pipeline.edits == "acts"
        if of_acts:
            tools = tools or tools_of(work.run.messages)
            # It may have no edit that reads a summary.
            plan = await plan_acts(stage, tools, work.messages, work.rubric, goal, most)
        else:
            planner = make_llm_planner(self.complete, stage.model, stage.template)
            planning = planner(work.messages, work.rubric, goal, max_steps=most)
            # The editor's first summary needs only the original transcript, as the plan does: they
            # are asked side by side. A summary that failed is raised to who reads it.
            summary = work.summary(work.editor.template)
            planned, _ = await asyncio.gather(planning, summary, return_exceptions=True)
            if isinstance(planned, BaseException):
                raise planned
            plan = planned
        work.plan = plan
        if plan is None or not plan.steps:
            if not_planned := goal.case_class(work.rubric).not_planned:
                raise NoVerdictCase("no_plan", not_planned)
            return
        steps = plan.steps[:most]
        if of_acts:
            await edit_acts(work, steps, tools)
            return
        for step in steps:
            await edit_words(work, step)

    async def _verify(self, work: Work) -> None:
        pipeline, goal = self.pipeline, work.goal
        scale, expected = goal.scale(work.rubric), goal.expected(work.rubric)
        is_positive = goal.case_class(work.rubric).objective == "pass"
        if VERIFIER.name not in pipeline.models:
            if is_positive and pipeline.pass_required:
                raise NoVerdictCase(
                    "not_confirmed",
                    "not confirmed: the verifier is off, and `pass_required: true` keeps only "
                    "confirmed positives",
                )
            return
        stage, of_acts = self._stage(VERIFIER), pipeline.edits == "acts"
        work.final_summary = await work.summary(stage.template) or None
        verify = make_llm_verifier(self.complete, stage.model, stage.template, of_acts=of_acts)
        verification = await verify(work.messages, work.rubric, goal, work.final_summary or "")
        answer = verification.answer(scale)
        work.verification, work.confirmed = verification, answer == expected
        # A run that nobody edited may contradict itself.
        if verification.contradiction and work.edits:
            work.confirmed = False
            contradiction = " ".join(verification.contradiction.split())
            raise NoVerdictCase(
                "contradiction", f"the transcript contradicts itself: {contradiction}"
            )
        if work.confirmed or (is_positive and not pipeline.pass_required):
            return
        finding = f"the verifier scores it {scale.said(answer)}, not {scale.said(expected)}"
        if not scale.is_ordered and answer is not None:
            finding = f"the verifier says {scale.word(answer)}"
        rationale = " ".join(verification.rationale.split())
        raise NoVerdictCase("not_confirmed", f"not confirmed: {finding}: {rationale}")


def build_pipeline(suite: Suite, test: SuiteTest, problems: list[Problem]) -> Pipeline:
    """Find and check the templates of one test's stages; what is wrong is added to `problems`."""
    templates = {}
    edits, of_pairs = suite.config.prompts_of, bool(suite.scale.orders)
    if edits == "acts" and not test.kind.is_made:
        # A probe changes cases in ways of its own.
        edits = "text"
    # The verifier may be off.
    models = {name: suite.stages[name] for name in test.kind.stages if name in suite.stages}
    for name, model in models.items():
        with collecting(problems):
            templates[name] = load_template(
                name,
                mode=BINARY.name if of_pairs else suite.prompt_mode,
                objective=test.objective,
                prompt_path=model.prompt_path,
                override=override_path(suite.custom_prompts_dir, test.name, name),
                of=edits,
            )
    return Pipeline(
        models=models,
        templates=templates,
        max_edit_rounds=suite.config.cases.edits_at_most,
        max_summary_messages=suite.config.rand.summary_turns,
        pass_required=suite.config.rand.confirmed,
        edits=edits,
        of_pairs=of_pairs,
    )


@frozen
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
    concurrency: int = 10,
) -> AsyncIterator[Perturbation]:
    """Make every case of runs x rubrics x goals, at most `concurrency` at once, yielding them in
    that order.

    The way to use the pipeline from Python without pytest: `complete` is any `Complete`. An ordinal
    pipeline aims at every level of a rubric. `runs` is consumed as work proceeds. Raises `Unscored`
    at the first case that a model's trouble stops; cases still at work are cancelled then, and
    where the caller stops listening.
    """

    async def make(run: AgentRun, rubric: Rubric, goal: Goal) -> Perturbation:
        return Perturbation(
            run, rubric, goal, await pipeline.perturber(complete).perturb(run, rubric, goal)
        )

    at_work: list[asyncio.Task[Perturbation]] = []
    try:
        for run in runs:
            for rubric in rubrics:
                for goal in pipeline.goals(rubric):
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
_SCORING = Scoring("The judge", None)


def load_cases(path: str | Path) -> list[Case]:
    """Read the made cases of a JSONL file, without RAND's lines; raises `InputError` with file and
    line for what is missing or cannot be used.
    """
    if not Path(path).is_file():
        raise InputError("no such file", path)
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
    slots = asyncio.Semaphore(concurrency)
    fingerprint = code_digest(judge)

    async def result(case: Case) -> CaseResult:
        verdicts = []
        why = Why()
        async with slots:
            try:
                for _ in range(repeats):
                    verdicts.append(await _verdict(case, judge))
            except Unscored as trouble:
                verdicts, why = [], trouble.why
        return case_result(case.spec, case, why, verdicts=verdicts, judge_digest=fingerprint)

    return list(await asyncio.gather(*(result(case) for case in cases)))


async def _verdict(case: Case, judge: JudgeFunction) -> Verdict:
    judged = judged_case(case, show_reasoning=False)
    try:
        value = await asyncio.to_thread(judge, judged)
        if inspect.isawaitable(value):
            value = await cast("Awaitable[object]", value)
    except Unscored:
        raise
    except Exception as error:
        raise no_verdict(
            "model_error", f"The judge raised {error_text(error)}", error=error
        ) from error
    return _SCORING.verdict(code_answer(value), judged)
