"""The judge that is a Python function: how it is called with a case, and how it is found."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pytest_jrh.core import frozen
from pytest_jrh.core.calls import Completion, ResponseT
from pytest_jrh.core.cases import Case
from pytest_jrh.core.documents import shown
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.scales import Mode
from pytest_jrh.core.sections import Takes, Text
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.judges.judge import (
    Function,
    JudgeCalls,
    JudgedCase,
    JudgeKind,
    JudgeSettings,
    Submit,
)
from pytest_jrh.judges.own_code import (
    OwnCodeJudge,
    OwnCodeKeys,
    code_digest,
    imported_modules,
    loading,
    shown_path,
)

_KEY = "python"
_IN_CONFIG = f"judge.{_KEY}"
_IMPORT_PATH = (
    "its folder must be importable; pytest's ini option `pythonpath = .` adds the project's, and "
    "file.py:function needs no import path"
)
_TAKES = "a function, as pkg.mod:function or file.py:function"


class PythonKeys(OwnCodeKeys):
    """The keys of a judge that is a Python function."""

    python: Annotated[Text | None, Takes(_TAKES)] = None
    """A function that judges: pkg.mod:function, or file.py:function with a path from the config."""


@frozen
class PythonJudge(OwnCodeJudge):
    """A judge that is a function: it gets a `JudgedCase`, and `complete` where it takes that.

    It returns a `Verdict`, a score, or a pair of score and reasoning. A function that is not async
    runs in a thread.
    """

    function: Function

    @property
    def parts(self) -> Mapping[str, Any]:
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
                    "complete: no model; set `model` in the judge's section of the config, or give "
                    "complete(..., model=...)"
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


def supplied_judge(settings: JudgeSettings, function: Function) -> PythonJudge:
    """The judge that a project's code supplies as a function."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", "")
    return PythonJudge(settings, code_digest(function), f"{module}:{name}", function)


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
                f"{shown_path(path)!r} imports {shown(name)} from its folder, but a module of "
                "that name was imported before, from "
                f"{imported_file.parent.name}/{imported_file.name}"
            )
            hint = "rename one of the two modules, or make packages of their folders"
            raise InputError(message, key=_IN_CONFIG, hint=hint)
    digest = code_digest(function, module_file=module_file)
    return PythonJudge(settings, digest, shown_path(path), function)


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
        raise InputError(f"{shown_name}: the module has no {name!r}", key=key, hint=hint)
    if not callable(member):
        message = f"{shown_name} is not the judge: {type(member).__name__} is not callable"
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
    notes=("score_map: {pass: 0, fail: 1}   # where it returns other values than scores",),
)
