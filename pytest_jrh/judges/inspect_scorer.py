"""The judge that is a scorer of Inspect (rule Q3); its model calls go through Inspect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.judges.judge import JudgeKind
from pytest_jrh.judges.judged_case import judged_case
from pytest_jrh.judges.own_code import OwnCodeJudge
from pytest_jrh.judges.own_keys import OwnCodeKeys, Scale
from pytest_jrh.judges.python import shown_path
from pytest_jrh.sections import FreeMapping, Takes, Text
from pytest_jrh.text import shortened
from pytest_jrh.user_code import error_places, error_text, source_of

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from inspect_ai.scorer import Scorer
    from inspect_ai.solver import TaskState

    from pytest_jrh.judges.judge import JudgeCalls, JudgeSettings
    from pytest_jrh.judges.judged_case import JudgedCase
    from pytest_jrh.models import Case, Mode, StageModel, Verdict

_KEY = "inspect_scorer"
_BINARY_MAP = {"C": 0, "I": 1}
_LONGEST = 300
_NO_KEY = "no-key-is-set"


class InspectKeys(OwnCodeKeys):
    """The keys of a judge that is a scorer of Inspect."""

    inspect_scorer: Annotated[Text | None, Takes("a scorer, as file.py@name or package/name")] = (
        None
    )
    """A scorer of Inspect that judges: file.py@name, with a path from the config, or package/name.
    """
    args: FreeMapping | None = None
    """The arguments that the scorer is made with."""
    model_roles: Annotated[
        dict[str, str] | None,
        Takes("a mapping of roles to models, such as {grader: openai/gpt-4.1}"),
    ] = None
    """The models of the scorer's roles, as Inspect names them; `model` is that of all others."""
    value_key: Text | None = None
    """Which value of a scorer counts that gives several."""
    target: Annotated[Literal["rubric", "sample"] | None, Takes("rubric or sample")] = None
    """What the scorer gets as its target: the rubric's text, or the target of the log's sample.
    Left out: rubric."""


@dataclass(frozen=True, slots=True)
class InspectJudge(OwnCodeJudge):
    """A judge that is a scorer of Inspect; it gets a `TaskState` of each case."""

    section: InspectKeys
    scorer: Scorer
    path: str
    source: str

    @property
    def label(self) -> str:
        """The scorer, as the config names it."""
        return self.path

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the scorer's source, its arguments, its version, and its models."""
        section = self.section
        parts = {
            "scorer": self.path,
            "source": self.source,
            "args": section.args,
            "model_roles": section.model_roles,
            "value_key": section.value_key,
            "target": section.target,
        }
        return self.fingerprint_of(_KEY, parts)

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """Score a case; raises `Unscored` where the scorer gives no score on offer."""
        del repeat  # `calls` records each repeat by itself
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        section = self.section
        scale = self.scale(None if judged.levels else _BINARY_MAP)
        target = case.run.target if section.target == "sample" else judged.rubric.text
        code = self.own_code(
            judged,
            lambda _submit: self._scored(judged, case, target),
            lambda score: _read(score, section.value_key, scale, judged),
        )
        return await calls.run(code)

    async def _scored(self, judged: JudgedCase, case: Case, target: str) -> object:
        from inspect_ai.model import GenerateConfig
        from inspect_ai.model._model import init_active_model, init_model_roles
        from inspect_ai.scorer import Target

        stage = self.settings.stage
        if stage.model:
            init_active_model(_model(stage.model, stage), GenerateConfig())
        roles = {
            role: _model(name, stage) for role, name in (self.section.model_roles or {}).items()
        }
        init_model_roles({**roles})
        state = task_state(judged, case, target, stage.model or "none/none")
        return await self.scorer(state, Target(target))


def task_state(judged: JudgedCase, case: Case, target: str, model: str) -> TaskState:
    """The state of a finished run, as a scorer gets it: its output is the last assistant turn."""
    from inspect_ai.model import ChatCompletionChoice, ChatMessage, ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatMessage]).validate_python([dict(m) for m in judged.messages])
    last = next((each for each in reversed(messages) if each.role == "assistant"), None)
    output = ModelOutput(
        model=model, choices=[] if last is None else [ChatCompletionChoice(message=last)]
    )
    return TaskState(
        model=ModelName(model),
        sample_id=case.run.sample_id or case.run.run_id,
        epoch=case.run.epoch,
        input=judged.input,
        messages=messages,
        target=Target(target),
        output=output,
        completed=True,
        metadata=dict(judged.metadata),
    )


def _model(name: str, stage: StageModel) -> Model:
    """A model of Inspect's; without a key in the environment one that no server takes, so that a
    replay needs none.
    """
    from inspect_ai.model import GenerateConfig, get_model

    config = GenerateConfig(temperature=stage.temperature, max_tokens=stage.max_tokens)
    try:
        return get_model(name, config=config, base_url=stage.api_base)
    except Exception as error:
        if "API_KEY" not in str(error):
            raise
        return get_model(name, config=config, base_url=stage.api_base, api_key=_NO_KEY)


def _read(score: object, value_key: str | None, scale: Scale, case: JudgedCase) -> Verdict:
    from inspect_ai.scorer import Score

    if not isinstance(score, Score):
        raise scale.invalid(f"gave {type(score).__name__}, which is no Score")
    value: object = score.value
    reasoning = score.explanation or ""
    if isinstance(value, Mapping):
        if value_key is None or value_key not in value:
            keys = ", ".join(map(str, value))
            named = "none of them" if value_key is None else repr(value_key)
            raise scale.invalid(f"gave several values ({keys}), and `value_key` names {named}")
        value = value[value_key]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        said = shortened(" ".join(reasoning.split()), _LONGEST)
        raise scale.invalid(f"left the case unscored: {said or '(no explanation)'}")
    if isinstance(value, float) and value.is_integer() and scale.score_map is None:
        # Inspect's own values of scores are floats.
        value = int(value)
    return scale.verdict(value, reasoning, case)


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> InspectJudge:
    del mode, instruction  # the scorer gets the rubric as its target
    section = settings.section
    assert isinstance(section, InspectKeys)
    spec = section.inspect_scorer
    assert spec is not None
    path = shown_path(spec.replace("@", ":")).replace(":", "@")
    from inspect_ai._eval.loader import scorer_from_spec
    from inspect_ai._util.registry import registry_info, registry_lookup
    from inspect_ai.scorer._scorer import ScorerSpec

    try:
        scorer = scorer_from_spec(ScorerSpec(scorer=spec), None, **(section.args or {}))
        made = registry_lookup("scorer", registry_info(scorer).name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's module runs here, and may raise anything
        places = "".join(f"; {place}" for place in error_places(error))
        message = f"the scorer {path!r} cannot be loaded: {error_text(error)[:_LONGEST]}{places}"
        raise InputError(Problem(message, key=f"judge.{_KEY}")) from error
    source = source_of(made) if callable(made) else path
    return InspectJudge(settings, section, scorer, path, source)


def _with_files(section: Any, each: Callable[[str, tuple[str, ...]], str]) -> Any:
    file, separator, name = (section.inspect_scorer or "").rpartition("@")
    if not separator or not file.endswith(".py"):
        return section
    return section.model_copy(update={_KEY: f"{each(file, (_KEY,))}@{name}"})


INSPECT_SCORER = JudgeKind(
    key=_KEY, build=_build, keys=InspectKeys, asks_model=False, with_files=_with_files
)
