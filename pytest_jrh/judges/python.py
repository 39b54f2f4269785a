"""Judges that are code of the user's: a Python function, how it is called with a case, and how it
is found; and a scorer of Inspect, the models that it asks, and how its value is read. Calls of
models by a scorer go through Inspect.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import json
import math
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pytest_jrh.core import (
    Fields,
    InputError,
    frozen,
    listed,
    nearest_hint,
    short_digest,
    shortened,
    shown,
)
from pytest_jrh.core.calls import Completion, ResponseT, StageModel
from pytest_jrh.core.cases import Case, Unscored, Verdict
from pytest_jrh.core.scales import BINARY, NO_SUCH, Mode, Said
from pytest_jrh.core.sections import FreeMapping, Takes, Text
from pytest_jrh.core.transcript import is_pair
from pytest_jrh.judges.judge import (
    OTHERS_STAND,
    CodeAnswer,
    Function,
    JudgeCalls,
    JudgedCase,
    JudgedRubric,
    JudgeKind,
    JudgeSettings,
    Submit,
    judged_case,
    judged_rubric,
)
from pytest_jrh.judges.own_code import (
    LONGEST_REASONING,
    OwnCodeJudge,
    OwnCodeKeys,
    Scoring,
    code_answer,
    code_digest,
    file_of,
    imported_modules,
    loading,
    shown_path,
    value_text,
)

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import TaskState

_PLAIN = (bool, int, float, str, type(None))
_KEY = "python"
_IN_CONFIG = f"judge.{_KEY}"
_IMPORT_PATH = (
    "make its folder importable (pytest's ini option `pythonpath = .` adds the project's folder), "
    "or name the judge as file.py:function"
)
_TAKES = "a function, as pkg.mod:function or file.py:function"


class PythonKeys(OwnCodeKeys):
    """The keys of a judge that is a Python function."""

    python: Annotated[Text | None, Takes(_TAKES)] = None
    """A function that is the judge: pkg.mod:function, or file.py:function (the path is relative to
    the config)."""


@frozen
class PythonJudge(OwnCodeJudge):
    """A judge that is a function: it gets a `JudgedCase`, and `complete` where it takes that.

    It returns a `Verdict`, a score, or a pair of score and reasoning. A function that is not async
    runs in a thread.
    """

    function: Function

    @property
    def parts(self) -> Fields:
        """The function, as the config names it."""
        return {"kind": _KEY, "path": self.path}

    def answer(self, judged: JudgedCase, case: Case, calls: JudgeCalls, submit: Submit) -> object:
        """What the function returns for a case."""
        del case
        if "complete" not in inspect.signature(self.function).parameters:
            return self.function(judged)
        return self.function(judged, complete=self._complete(calls, submit))

    def _complete(self, calls: JudgeCalls, submit: Submit) -> Function:
        """The `complete` of the function, which asks the judge's model, or a named one."""

        async def ask(
            messages: str | Sequence[Mapping[str, str]],
            response_model: type[ResponseT],
            *,
            model: str | None = None,
        ) -> Completion[ResponseT]:
            stage = self.settings.stage
            if model is not None:
                stage = replace(stage, model=model)
            if not stage.model:
                raise ValueError(
                    "complete has no model: set `model` in the judge's section of the config, or "
                    "call complete(..., model=...)"
                )
            if isinstance(messages, str):
                messages = [{"role": "user", "content": messages}]
            if stage.system_prompt:
                messages = [{"role": "system", "content": stage.system_prompt}, *messages]
            return await calls.complete(stage, messages, response_model)

        async def complete(*args: Any, **keywords: Any) -> Any:
            return await asyncio.wrap_future(submit(ask(*args, **keywords)))

        def complete_and_wait(*args: Any, **keywords: Any) -> Any:
            return submit(ask(*args, **keywords)).result()

        method = getattr(self.function, "__call__", None)  # noqa: B004 - the method itself
        is_async = any(map(inspect.iscoroutinefunction, (self.function, method)))
        return complete if is_async else complete_and_wait


@frozen
class TogetherPython(PythonJudge):
    """A function that returns a mapping of rubric ids to verdicts.

    Its answer is kept as one reasoning, a text of JSON, which is stored and freed of secrets as
    that of any other.
    """

    async def __call__(self, case: Case, calls: JudgeCalls) -> Verdict:
        """Have `calls` run the code; raises `Unscored` where what it answers is no verdict."""
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        question = replace(
            judged,
            rubric=JudgedRubric("", ""),
            levels=(),
            scores=(),
            rubrics=tuple(map(judged_rubric, self.settings.rubrics)),
        )
        scoring = self.scoring(judged)
        code = self.code(question, case, calls)
        code = replace(code, read=partial(self.read, scoring), verdict=_with_text)
        verdicts = json.loads((await calls.run(code)).reasoning)
        try:
            if case.rubric.id not in verdicts:
                raise scoring.invalid(f"gave no verdict on {shown(case.rubric.id)}")
            return scoring.verdict(CodeAnswer(*verdicts[case.rubric.id]), judged)
        except Unscored as trouble:
            # Others do not end alike.
            trouble.alone, trouble.alike, trouble.advice = True, "", OTHERS_STAND
            raise

    def read(self, scoring: Scoring, value: object) -> CodeAnswer:
        """The verdicts of a mapping as text; raises `Unscored` where it is none of the rubrics."""
        ids = [rubric.id for rubric in self.settings.rubrics]
        if not isinstance(value, Mapping):
            raise scoring.invalid(
                f"gave {value_text(value)}; with `together`, a judge must return a mapping of "
                "rubric ids to verdicts, such as {rubric.id: 0 for rubric in case.rubrics}"
            )
        verdicts = {}
        for rubric_id, verdict in value.items():
            if rubric_id not in ids:
                hint = (
                    nearest_hint(str(rubric_id), ids, "id")
                    or f"the rubrics are {listed(map(shown, ids))}"
                )
                raise scoring.invalid(
                    f"gave a verdict on {shown(rubric_id)}, which is not a rubric; {hint}"
                )
            said, reasoning = code_answer(verdict)
            if type(said) not in _PLAIN:
                said = value_text(said)
            # What is no text is said by whoever reads the verdict.
            words = reasoning[:LONGEST_REASONING] if isinstance(reasoning, str) else None
            verdicts[rubric_id] = [said, words]
        return CodeAnswer(0, json.dumps(verdicts, ensure_ascii=False))


def _with_text(answer: CodeAnswer) -> Verdict:
    """The reasoning that holds the verdicts; raises `ValueError` where it does not."""
    json.loads(str(answer.reasoning))
    return Verdict(0, str(answer.reasoning))


def supplied_judge(settings: JudgeSettings, function: Function) -> PythonJudge:
    """The judge that a project's code supplies as a function."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", "")
    return python_judge(settings, code_digest(function), f"{module}:{name}", function)


def python_judge(
    settings: JudgeSettings, digest: str, path: str, function: Function
) -> PythonJudge:
    """The judge of a function, which is asked about all rubrics where its settings say so."""
    kind = TogetherPython if settings.rubrics else PythonJudge
    return kind(settings, digest, path, function)


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> PythonJudge:
    del mode, instruction
    path: str = getattr(settings.section, _KEY).strip()
    function = imported(path, key=_IN_CONFIG)
    # Imported before, with its mistakes named.
    module_file = _module(path.rpartition(":")[0]).__file__ or ""
    for name, imported_file in imported_modules(Path(module_file)):
        # It may have got a module of that name that was imported before, such as another suite's.
        file_beside = Path(module_file).with_name(f"{name}.py")
        if imported_file != file_beside and file_beside.is_file():
            message = (
                f"{shown_path(path)!r} imports {shown(name)} from its folder, but a module of this "
                f"name was imported before, from {imported_file.parent.name}/{imported_file.name}"
            )
            raise InputError(message, key=_IN_CONFIG, hint="rename one of the two modules")
    digest = code_digest(function, module_file=module_file)
    return python_judge(settings, digest, shown_path(path), function)


def imported(path: str, *, key: str) -> Function:
    """The function at `pkg.mod:function` or `file.py:function`.

    Raises `InputError` with what is there instead, or what its module raised.
    """
    module_name, _, name = path.strip().rpartition(":")
    is_module = all(map(str.isidentifier, module_name.split(".")))
    if not name or not (is_module or module_name.endswith(".py")):
        raise InputError(f"got {shown(path)}; must be {_TAKES}", key=key)
    shown_name = repr(shown_path(path))
    with loading(f"the judge {shown_name} cannot be imported", key, _IMPORT_PATH):
        module = _module(module_name)
    member: object = getattr(module, name, None)
    if member is None:
        functions = [member_name for member_name, value in vars(module).items() if callable(value)]
        hint = nearest_hint(name, functions)
        raise InputError(f"{shown_name}: the module has no function {name!r}", key=key, hint=hint)
    if not callable(member):
        message = f"{shown_name} cannot be a judge: {type(member).__name__} is not callable"
        raise InputError(message, key=key)
    return member


def _module(path: str) -> types.ModuleType:
    """The module of an import path, or of a file, which is imported once, and may import files
    beside it.
    """
    if not path.endswith(".py"):
        return importlib.import_module(path)
    file = Path(path)
    # Two suites may have files of one name.
    name = f"jrh_judge_{file.stem}_{short_digest(str(file), 8)}"
    if name in sys.modules:
        return sys.modules[name]
    spec: Any = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
    return module


PYTHON = JudgeKind(
    key=_KEY,
    build=_build,
    keys=PythonKeys,
    notes=("score_map: {pass: 0, fail: 1}   # if it returns other values than scores",),
)


_LONGEST = 300
_SCORER = "inspect_scorer"
_NAMES = "name a scorer as file.py@name, or as package/name if its package is installed"
# Inspect's own words for right and wrong.
_BINARY_MAP: dict[str, Said] = {"C": 0, "I": 1, NO_SUCH: NO_SUCH}
# How Inspect's graders begin the explanation of an answer without a grade.
_NO_GRADE = "Grade not found"


class ScorerKeys(OwnCodeKeys):
    """The keys of a judge that is a scorer of Inspect."""

    inspect_scorer: Annotated[Text | None, Takes("a scorer, as file.py@name or package/name")] = (
        None
    )
    """A scorer of Inspect, which becomes the judge: file.py@name (the path is relative to the
    config) or package/name."""
    args: FreeMapping | None = None
    """The arguments that the scorer is called with."""
    model_roles: Annotated[
        dict[str, str] | None,
        Takes("a mapping of roles to models, such as {grader: openai/gpt-4.1}"),
    ] = None
    """The models of the scorer's roles, by Inspect's names of models. `model` is used for all other
    roles."""


@frozen
class ScorerJudge(OwnCodeJudge):
    """A judge that is a scorer of Inspect; it gets a `TaskState` of each case, and asks models
    through Inspect.
    """

    section: ScorerKeys
    scorer: Scorer

    @property
    def parts(self) -> Fields:
        """The scorer, as the config names it, with what it is made with and its models."""
        section = self.section
        return {
            "kind": _SCORER,
            "scorer": self.path,
            "args": section.args,
            "model_roles": section.model_roles,
            # Of keys that there were: the digests of recordings have them.
            "value_key": None,
            "target": None,
        }

    def scoring(self, judged: JudgedCase) -> Scoring:
        """How its values become scores: Inspect's own without a map, and names of the answers."""
        section = self.settings.section
        score_map = section.score_map
        if not judged.levels or judged.levels[0].label == BINARY.words[0]:
            score_map = score_map or _BINARY_MAP
        return Scoring(f"The judge {self.label}", score_map, section.threshold, one_passes=True)

    async def answer(
        self, judged: JudgedCase, case: Case, calls: JudgeCalls, submit: Submit
    ) -> CodeAnswer:
        """What the scorer gives for a case, asking the models that the config names."""
        del calls, submit
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
        target = Target(judged.rubric.text)
        state = task_state(judged, case, target, stage.model or "none/none")
        return answer_of(await self.scorer(state, target), self.scoring(judged))


def answer_of(score: object, scoring: Scoring) -> CodeAnswer:
    """The value and the explanation of a scorer's score; raises `Unscored` for what is no value."""
    from inspect_ai.scorer import Score

    if not isinstance(score, Score):
        raise scoring.invalid(f"gave a value of type {type(score).__name__}, not a Score")
    value: object = score.value
    reasoning = score.explanation or ""
    if reasoning.startswith(_NO_GRADE):
        # Inspect's graders before 0.3.245, and scorers that were copied from them, give an answer
        # without a grade the value of an incorrect one.
        value = None
    if isinstance(value, Mapping):
        raise scoring.invalid(
            f"gave several values ({', '.join(map(str, value))}), but a judge must give one value"
        )
    if value is None or (isinstance(value, float) and math.isnan(value)):
        explanation = shortened(" ".join(reasoning.split()), _LONGEST)
        raise scoring.invalid(f"left the case unscored: {explanation or '(no explanation)'}")
    if isinstance(value, float) and value.is_integer() and scoring.score_map is None:
        # Inspect's own values of scores are floats.
        value = int(value)
    return CodeAnswer(value, reasoning)


def _named_files(args: Fields, folders: Sequence[Path]) -> dict[str, Path]:
    """The files that arguments of the config name, by their names there."""
    files: dict[str, Path] = {}
    for value in args.values():
        for folder in folders if isinstance(value, str) else ():
            # A text for a grader is no name of a file, and may be too long for one.
            with contextlib.suppress(OSError, ValueError):
                if (folder / value).is_file():
                    files.setdefault(value, folder / value)
    return files


def _model(name: str, stage: StageModel) -> Model:
    from inspect_ai.model import GenerateConfig, get_model

    config = GenerateConfig(temperature=stage.temperature, max_tokens=stage.max_tokens)
    return get_model(name, config=config, base_url=stage.api_base)


def task_state(judged: JudgedCase, case: Case, target: Target, model: str) -> TaskState:
    """The state of a finished run, as a scorer gets it: its output is the last assistant turn, of
    a pair both answers, each a choice.
    """
    from inspect_ai.model import ChatCompletionChoice, ChatMessage, ModelName, ModelOutput
    from inspect_ai.solver import TaskState
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatMessage]).validate_python([*map(dict, judged.messages)])
    answers = [turn for turn in messages if turn.role == "assistant"]
    answers = answers[-2 if is_pair(judged.messages) else -1 :]
    choices = [ChatCompletionChoice(message=turn) for turn in answers]
    output = ModelOutput(model=model, choices=choices)
    return TaskState(
        model=ModelName(model),
        sample_id=case.run.sample_id or case.run.run_id,
        epoch=case.run.epoch,
        input=judged.input,
        messages=messages,
        target=target,
        output=output,
        completed=True,
        metadata=dict(judged.metadata),
    )


def _build_scorer(settings: JudgeSettings, mode: Mode, instruction: str) -> ScorerJudge:
    """The judge of a scorer.

    Raises `InputError` with what Inspect says where it is not there, or its module raised.
    """
    del mode, instruction  # the scorer gets the rubric as its target
    section = settings.section
    assert isinstance(section, ScorerKeys)
    spec, args = section.inspect_scorer, section.args or {}
    assert spec is not None
    path = shown_path(spec)
    with loading(f"the scorer {path!r} cannot be loaded", f"judge.{_SCORER}", _NAMES):
        from inspect_ai._eval.loader import scorer_from_spec
        from inspect_ai._util.registry import registry_info, registry_lookup
        from inspect_ai.scorer._scorer import ScorerSpec

        scorer = scorer_from_spec(ScorerSpec(scorer=spec), None, **args)
        factory = registry_lookup("scorer", registry_info(scorer).name)
    digest = code_digest(
        factory if callable(factory) else scorer,
        module_file=file_of(spec),
        config_files=_named_files(args, settings.folders),
    )
    return ScorerJudge(settings, digest, path, section, scorer)


INSPECT_SCORER = JudgeKind(
    key=_SCORER,
    build=_build_scorer,
    keys=ScorerKeys,
    one_rubric="cannot be used with a scorer of Inspect, which is given only one rubric at a time",
    notes=(
        "args: {partial_credit: false}          # the scorer's arguments",
        "model_roles: {grader: openai/gpt-4.1}  # as Inspect names models; other roles use `model`",
        'score_map: {"true": 0, "false": 1}     # if its values are not C and I',
    ),
)
