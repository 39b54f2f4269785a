"""The judge that is a scorer of Inspect: its keys, how one is loaded, the models that it asks, and
how its value is read. Its calls of models go through Inspect.
"""

from __future__ import annotations

import ast
import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pytest_jrh.core.documents import listed, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.sections import FreeMapping, Takes, Text
from pytest_jrh.core.text import nearest_hint, one_line, shortened
from pytest_jrh.core.user_code import error_places, error_text
from pytest_jrh.judges.judge import JudgeKind, Said, judged_case
from pytest_jrh.judges.own_code import (
    PLACEHOLDER,
    PLACEHOLDERS,
    OwnCodeJudge,
    OwnCodeKeys,
    Scale,
    shown_path,
    with_file,
)
from pytest_jrh.judges.own_source import OwnSource, own_source
from pytest_jrh.llm.transport import keep_libraries_local

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model
    from inspect_ai.scorer import Scorer
    from inspect_ai.solver import TaskState

    from pytest_jrh.core.model import Case, Mode, StageModel, Verdict
    from pytest_jrh.judges.judge import JudgeCalls, JudgedCase, JudgeSettings


_LONGEST = 300
_SCORER = "inspect_scorer"
_KEY = f"judge.{_SCORER}"
# Inspect's own words for right and wrong.
_BINARY_MAP: Mapping[str, int] = {"C": 0, "I": 1}
# How Inspect's graders begin the explanation of an answer without a grade.
_NO_GRADE = "Grade not found"


class ScorerKeys(OwnCodeKeys):
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
    """The models of its roles, as Inspect names them; `model` is that of all others."""
    value_key: Text | None = None
    """Which value counts of a scorer that gives several."""
    target: Annotated[Literal["rubric", "sample"] | None, Takes("rubric or sample")] = None
    """What it gets as its target: the rubric's text, or the target of the log's sample. Left out:
    rubric."""


@dataclass(frozen=True, slots=True)
class ScorerJudge(OwnCodeJudge):
    """A judge that is a scorer of Inspect; it gets a `TaskState` of each case, and asks models
    through Inspect. `path` is what the config names, by its name.
    """

    section: ScorerKeys
    path: str
    scorer: Scorer

    @property
    def label(self) -> str:
        """The scorer, as the config names it."""
        return self.path

    @property
    def lacks(self) -> str:
        """The model that its code is seen to ask, where nothing names one, and what a model that is
        named needs, such as the package of its provider.

        Whatever code asks besides is known when it runs.
        """
        stage, section = self.settings.stage, self.section
        named_roles = section.model_roles or {}
        model = stage.model or os.environ.get("INSPECT_EVAL_MODEL")
        for name in filter(None, dict.fromkeys([model, *named_roles.values()])):
            if reason := _not_asked(name, stage):
                return reason
        if model:
            return ""
        for role in _roles_asked(self.path, section.args or {}, self.source.function):
            if role is None:
                return "it asks a model, and `model` in its section of the config names none"
            if role not in named_roles:
                return (
                    f"it asks the model of the role {role}, and neither `model_roles` nor `model` "
                    "in its section of the config names one"
                )
        return ""

    @property
    def parts(self) -> Mapping[str, Any]:
        """The scorer, as the config names it, with what it is made with and its models."""
        section = self.section
        return {
            "kind": _SCORER,
            "scorer": self.path,
            "args": section.args,
            "model_roles": section.model_roles,
            "value_key": section.value_key,
            "target": section.target,
        }

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """Score a case; raises `Unscored` where no score on offer comes back."""
        del repeat  # `calls` records each repeat by itself
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        scale = self.scale(None if judged.levels else _BINARY_MAP)
        target = case.run.target if self.section.target == "sample" else judged.rubric.text
        code = self.own_code(
            judged,
            lambda _submit: self._score(judged, case, target),
            lambda value: self._said(value, scale),
            scale,
        )
        return await calls.run(code)

    async def _score(self, judged: JudgedCase, case: Case, target: str) -> object:
        """What the scorer gives for a case, asking the models that the config names."""
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

    def _said(self, answer: object, scale: Scale) -> Said:
        from inspect_ai.scorer import Score

        if not isinstance(answer, Score):
            raise scale.invalid(f"gave {type(answer).__name__}, which is no Score")
        reasoning = answer.explanation or ""
        # Inspect's graders before 0.3.245, and scorers that were copied from them, give an answer
        # without a grade the value of an incorrect one.
        value: object = None if reasoning.startswith(_NO_GRADE) else answer.value
        key = self.section.value_key
        if isinstance(value, Mapping):
            if key is None or key not in value:
                keys = ", ".join(map(str, value))
                key_text = "none of them" if key is None else repr(key)
                raise scale.invalid(
                    f"gave several values ({keys}), and `value_key` names {key_text}"
                )
            value = value[key]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            explanation = shortened(" ".join(reasoning.split()), _LONGEST)
            raise scale.invalid(f"left the case unscored: {explanation or '(no explanation)'}")
        if isinstance(value, float) and value.is_integer() and scale.score_map is None:
            # Inspect's own values of scores are floats.
            value = int(value)
        return Said(value, reasoning)


def chat_messages(case: JudgedCase) -> list[ChatMessage]:
    """The messages of a case as Inspect's own."""
    from inspect_ai.model import ChatMessage
    from pydantic import TypeAdapter

    return TypeAdapter(list[ChatMessage]).validate_python([dict(m) for m in case.messages])


def _loaded(
    spec: str, args: Mapping[str, Any], settings: JudgeSettings
) -> tuple[Scorer, OwnSource]:
    """The scorer that `spec` names, and its code.

    Raises `InputError` where it is not there, with the nearest that is, or with what its module
    raised.
    """
    keep_libraries_local()
    path = shown_path(spec, "@")
    from inspect_ai._eval.loader import scorer_from_spec
    from inspect_ai._util.registry import registry_info, registry_lookup
    from inspect_ai.scorer._scorer import ScorerSpec

    try:
        problem = _misnamed(spec)
        if problem is not None:
            raise InputError(problem)
        scorer = scorer_from_spec(ScorerSpec(scorer=spec), None, **args)
        factory = registry_lookup("scorer", registry_info(scorer).name)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the user's module runs here, and may raise anything
        frames = "".join(f"; {frame}" for frame in error_places(error, own_only=True))
        # The ellipsis tells that a secret may be cut there.
        cause = shortened(error_text(error), _LONGEST)
        message = f"the scorer {path!r} cannot be loaded: {cause}{frames}"
        raise InputError(Problem(message, key=_KEY)) from error
    code = factory if callable(factory) else scorer
    file = spec.rpartition("@")[0]
    module_file = file if file.endswith(".py") else None
    return scorer, own_source(
        code, module_file=module_file, named=_named_files(args, settings.folders)
    )


def _named_files(args: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Path]:
    """The files that arguments of the config name, by their names there."""
    files: dict[str, Path] = {}
    for value in args.values():
        for folder in folders if isinstance(value, str) else ():
            # A text for a grader is no name of a file, and may be too long for one.
            with contextlib.suppress(OSError, ValueError):
                if (folder / value).is_file():
                    files.setdefault(value, folder / value)
    return files


def _misnamed(spec: str) -> Problem | None:
    """Why there is no such scorer, as far as that is known without running its file."""
    from inspect_ai._util.decorator import parse_decorators
    from inspect_ai._util.registry import registry_find, registry_info, registry_lookup

    file, separator, name = spec.rpartition("@")
    if not separator:
        if registry_lookup("scorer", spec) is not None:
            return None
        registered = registry_find(lambda info: info.type == "scorer")
        installed = [registry_info(entry).name for entry in registered]
        message = f"no installed package has a scorer {shown(spec)}"
        hint = nearest_hint(spec, installed) or "one of your own is named by its file: file.py@name"
        return Problem(message, key=_KEY, hint=hint)
    if not file.endswith(".py") or not name:
        message = (
            f"got {shown(shown_path(spec, '@'))}; must be a scorer, as file.py@name or package/name"
        )
        return Problem(message, key=_KEY)
    if not Path(file).is_file():
        return Problem(f"{shown(Path(file).name)} is not a file", key=_KEY)
    # Inspect's reading passes over a file that is no Python.
    ast.parse(Path(file).read_bytes(), filename=Path(file).name)
    names = [entry for entry, _ in parse_decorators(Path(file), "scorer")]
    if name in names:
        return None
    message = f"{Path(file).name} has no @scorer named {shown(name)}"
    choices_text = f"it has {listed(names)}" if names else "it has no @scorer at all"
    return Problem(message, key=_KEY, hint=nearest_hint(name, names) or choices_text)


_GRADER = "grader"
# Each asks the model of a role, which is `grader` for graders, unless it is given a model.
_ASKING_CALLS: Mapping[str, str | None] = {
    "get_model": None,
    "model_graded_fact": _GRADER,
    "model_graded_qa": _GRADER,
}
_ROLE_KEYS = ("role", "model_role")
_MODEL_KEYS = frozenset({"model", "default"})


def _roles_asked(path: str, args: Mapping[str, object], source: str) -> Iterator[str | None]:
    """The roles whose models a scorer asks without a condition, as far as that is seen;
    None is the model of no role.
    """
    name = path.rpartition("/")[2]
    if name in _ASKING_CALLS and "@" not in path:
        if not _MODEL_KEYS & args.keys():
            role = args.get("model_role", _ASKING_CALLS[name])
            yield role if isinstance(role, str) else None
        return
    try:
        pending: list[ast.AST] = [ast.parse(source)]
    except SyntaxError:
        return
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If | ast.IfExp | ast.BoolOp | ast.Try | ast.Match):
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call):
            yield from _role_of_call(node)


def _role_of_call(call: ast.Call) -> Iterator[str | None]:
    """The role whose model a call asks, where it is one that asks and names no model."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    # `**settings` may name the model, and so may what stands in its place.
    names_model = None in keywords or _MODEL_KEYS & keywords.keys() or call.args
    if name not in _ASKING_CALLS or names_model:
        return
    roles = [keywords[key] for key in _ROLE_KEYS if key in keywords]
    if not roles:
        yield _ASKING_CALLS[name]
    elif isinstance(roles[0], ast.Constant):
        role = roles[0].value
        yield role if isinstance(role, str) else None


def _model(name: str, stage: StageModel) -> Model:
    """A model of Inspect's; on replay it needs no key in the environment."""
    from inspect_ai.model import GenerateConfig, get_model

    config = GenerateConfig(temperature=stage.temperature, max_tokens=stage.max_tokens)
    try:
        return get_model(name, config=config, base_url=stage.api_base)
    except Exception as error:
        if PLACEHOLDERS.get() is None or "API_KEY" not in str(error):
            raise
        return get_model(name, config=config, base_url=stage.api_base, api_key=PLACEHOLDER)


def _not_asked(name: str, stage: StageModel) -> str:
    """Why Inspect cannot ask a model, in its words; nothing where it can."""
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import get_model

    try:
        get_model(name, base_url=stage.api_base, memoize=False)
    except PrerequisiteError as error:
        reason = str(error.message)
        for markup in ("[bold]", "[/bold]", "ERROR: "):
            reason = reason.replace(markup, "")
    except (ImportError, ValueError) as error:
        reason = str(error)
    else:
        return ""
    return f"Inspect cannot ask {name}: {shortened(one_line(reason), _LONGEST).rstrip('.')}"


def task_state(judged: JudgedCase, case: Case, target: str, model: str) -> TaskState:
    """The state of a finished run, as a scorer gets it: its output is the last assistant turn."""
    from inspect_ai.model import ChatCompletionChoice, ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    messages = chat_messages(judged)
    last = next((turn for turn in reversed(messages) if turn.role == "assistant"), None)
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


def _build_scorer(settings: JudgeSettings, mode: Mode, instruction: str) -> ScorerJudge:
    del mode, instruction  # the scorer gets the rubric as its target
    section = settings.section
    assert isinstance(section, ScorerKeys)
    spec = section.inspect_scorer
    assert spec is not None

    scorer, source = _loaded(spec, section.args or {}, settings)
    return ScorerJudge(settings, source, section, shown_path(spec, "@"), scorer)


INSPECT_SCORER = JudgeKind(
    key=_SCORER,
    build=_build_scorer,
    keys=ScorerKeys,
    asks_model=False,
    with_files=lambda section, relocated: with_file(section, _SCORER, "@", relocated),
    notes=(
        "args: {partial_credit: false}          # what the scorer is made with",
        "model_roles: {grader: openai/gpt-4.1}  # as Inspect names models; or `model`",
        'score_map: {"true": 0, "false": 1}     # where its values are not C and I',
    ),
)
