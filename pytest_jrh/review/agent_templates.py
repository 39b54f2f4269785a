"""The planner and editor prompts of each test: shown, tried on a case, overridden, and put back."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.cases.acts import tools_of
from pytest_jrh.cases.pipeline import generate_single_edit, goal_of, make_llm_planner
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import unified
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.model import Plan, PlanStep
from pytest_jrh.core.stages import EDITOR, PLANNER, STAGES
from pytest_jrh.core.transcript import assistant_indices
from pytest_jrh.llm.calls import Stage
from pytest_jrh.llm.prompts import load_template, override_path, parse_prompt

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from typing import Any, NoReturn

    from pydantic import BaseModel

    from pytest_jrh.config.suite import Suite, SuiteTest
    from pytest_jrh.core.model import Case, Rubric, StageModel, StageName
    from pytest_jrh.core.templates import Template


ENCODING = "utf-8-sig"


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """The prompt of one stage of one test, as the page shows it. `text` is what is used now: the
    override where there is one, in `file`.

    `default` is what is used without one, out of `origin`. `shared_with` names other suites that
    the same override counts for; `problems` say why an override on the disk cannot be used.
    """

    key: str
    suite: str
    test: str
    stage: StageName
    file: str
    origin: str
    default: str
    text: str
    overridden: bool
    variables: tuple[str, ...]
    required: tuple[str, ...]
    shared_with: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What a draft would be sent as, how it differs from the default, and why it cannot be used."""

    messages: tuple[Mapping[str, str], ...]
    difference: tuple[str, ...]
    problems: tuple[Problem, ...]


class AgentTemplates:
    """The templates that the suites of a session use. What is saved counts from the next run on."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._prompts: dict[str, _Prompt] = {}
        for suite in suites:
            for test in suite.tests:
                if KINDS[test.name].natural or KINDS[test.name].derived:
                    continue
                for stage in _PREVIEWS:
                    prompt = _Prompt(suite, test, stage)
                    self._prompts[prompt.key] = prompt

    def listing(self) -> tuple[AgentTemplate, ...]:
        """Every template, by suite, test and stage."""
        return tuple(self.get(key) for key in self._prompts)

    def get(self, key: str) -> AgentTemplate:
        """One template as it is on the disk now; raises `LookupError` for an unknown key."""
        prompt = self._prompts[key]
        suite, test, stage = prompt.suite, prompt.test, prompt.stage
        default = prompt.default()
        text = prompt.read()
        problems: tuple[Problem, ...] = ()
        if text is not None:
            try:
                prompt.checked(text)
            except InputError as error:
                problems = error.problems
        return AgentTemplate(
            key=key,
            suite=suite.name,
            test=test.name,
            stage=stage,
            file=f"inputs/custom_prompts/{suite.module_name}/{test.name}/{stage}.md",
            origin=default.origin,
            default=default.source,
            text=default.source if text is None else text,
            overridden=text is not None,
            variables=tuple(sorted(STAGES[stage].variables)),
            required=tuple(sorted(STAGES[stage].required)),
            shared_with=self._sharing(prompt),
            problems=problems,
        )

    def _sharing(self, prompt: _Prompt) -> tuple[str, ...]:
        """The names of the other suites that the same override counts for."""
        return tuple(
            sharing.suite.name
            for sharing in self._prompts.values()
            if sharing.override == prompt.override and sharing.suite is not prompt.suite
        )

    def preview(self, key: str, text: str, case: Case | None) -> Preview:
        """Render a draft as the pipeline would for a real case, without asking a model.

        Raises `LookupError` for an unknown key; problems of the draft are part of the preview.
        """
        prompt = self._prompts[key]
        difference = unified(prompt.default().source.splitlines(), text.splitlines())
        if difference:
            difference = ["--- default", "+++ override", *difference]
        try:
            template = prompt.checked(text)
            messages = _sent(prompt, template, case) if case else ()
        except InputError as error:
            return Preview((), tuple(difference), error.problems)
        return Preview(messages, tuple(difference), ())

    def save(self, key: str, text: str, case: Case | None = None) -> AgentTemplate:
        """Write the override, whole or not at all.

        Raises `InputError` where the text does not check, or does not render (on `case`, where one
        is given), and `OSError` as it comes; the override on the disk is then as it was.
        """
        prompt = self._prompts[key]
        template = prompt.checked(text)
        if case is not None:
            _sent(prompt, template, case)
        # One line ending, whatever the browser sent: the file is read, compared and committed on
        # any system.
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        atomic_write(prompt.override, lines if lines.endswith("\n") else f"{lines}\n")
        return self.get(key)

    def revert(self, key: str) -> AgentTemplate:
        """Delete the override, and the folders that this leaves empty."""
        override = self._prompts[key].override
        override.unlink(missing_ok=True)
        for folder in (override.parent, override.parent.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        return self.get(key)


@dataclass(frozen=True, slots=True)
class _Prompt:
    suite: Suite
    test: SuiteTest
    stage: StageName

    @property
    def key(self) -> str:
        name = "\0".join([self.suite.name, self.test.name, self.stage])
        return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    @property
    def override(self) -> Path:
        return override_path(self.suite.custom_prompts_dir, self.test.name, self.stage)

    @property
    def model(self) -> StageModel:
        return self.suite.stages[self.stage]

    def default(self) -> Template:
        path = self.model.prompt_path
        return load_template(
            self.stage,
            mode=self.suite.mode,
            objective=self.test.objective,
            prompt_path=Path(path) if path else None,
            edits=self.suite.generation.edits,
        )

    def read(self) -> str | None:
        try:
            return self.override.read_text(encoding=ENCODING, errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(
                Problem(f"the override cannot be read: {error.strerror}", str(self.override))
            ) from error

    def checked(self, text: str) -> Template:
        return parse_prompt(text, f"{self.test.name}/{self.stage}.md", stage=self.stage)


class _Sent(Exception):
    """Ends a stage where it would ask its model, with what it would have sent."""

    def __init__(self, messages: Sequence[Mapping[str, str]]) -> None:
        self.messages = tuple(messages)
        super().__init__("sent")


async def _capture(
    stage: StageModel,  # noqa: ARG001 - the shape of `Complete`
    messages: Sequence[Mapping[str, str]],
    response_model: type[BaseModel],  # noqa: ARG001
) -> NoReturn:
    raise _Sent(messages)


def _sent(prompt: _Prompt, template: Template, case: Case) -> tuple[Mapping[str, str], ...]:
    """Run the stage itself up to its call, and give what it would send for this case."""
    try:
        asyncio.run(_PREVIEWS[prompt.stage](prompt, template, case))
    except _Sent as sent:
        return sent.messages
    raise AssertionError("a stage ended without asking its model")


def _planner(prompt: _Prompt, template: Template, case: Case) -> Coroutine[Any, Any, object]:
    plan = make_llm_planner(_capture, prompt.model, template)
    if prompt.suite.generation.edits == "acts":
        # No other suite takes the import.
        from pytest_jrh.cases.act_edits import make_acts_planner

        tools = tools_of([case.run.messages], case.run.tools)
        plan = make_acts_planner(_capture, prompt.model, template, tools)
    goal = goal_of(prompt.test.objective, case.spec.target_score)
    return plan(
        case.run.messages, _scaled(case), goal, max_steps=prompt.suite.generation.max_edit_rounds
    )


def _editor(prompt: _Prompt, template: Template, case: Case) -> Coroutine[Any, Any, object]:
    """The first edit of words of the case, or else one of its last assistant turn."""
    plan = case.outcome.plan or Plan("(this case has no plan)")
    steps = [step for step in plan.steps if step.kind == "say"]
    if not steps:
        last_turn = assistant_indices(case.run.messages)[-1]
        steps = [PlanStep(last_turn, "(no goal)", "(no reason)")]
    summary = case.outcome.final_summary or "(this case has no summary)"
    for edit in case.outcome.edits:
        if edit.message_index == steps[0].message_index:
            summary = edit.summary_snapshot
            break
    return generate_single_edit(
        Stage(prompt.model, template, _capture),
        run=case.run,
        messages=case.run.messages,
        rubric=_scaled(case),
        goal=goal_of(prompt.test.objective, case.spec.target_score),
        plan=plan,
        step=steps[0],
        earlier=(),
        summary=summary,
    )


_PREVIEWS = {PLANNER.name: _planner, EDITOR.name: _editor}
"""The stages with a prompt that is shown and changed here, and what each would send."""


def _scaled(case: Case) -> Rubric:
    return replace(case.rubric, score_levels=case.levels) if case.levels else case.rubric
