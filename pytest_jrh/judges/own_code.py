"""What judges of own code have in common, which are all that are no prompt: their keys, how their
values become scores, what the engine runs for a verdict, and what such code is, so that a changed
judge is told from the one that was recorded. Then the judge that is a Python function.

Its files are the one that it is in, the modules of the project that this one has imported, and
those that the config names; the judge's `version` stands for the rest. They are named as the code
names them, never by where they lie on this machine.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import hashlib
import importlib.util
import inspect
import json
import sys
import types
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pytest_jrh.core import frozen
from pytest_jrh.core.calls import Completion, ResponseT, StageModel
from pytest_jrh.core.cases import Case
from pytest_jrh.core.documents import shown
from pytest_jrh.core.errors import (
    InputError,
    Unscored,
    error_places,
    error_text,
    is_ours_or_installed,
    source_of,
)
from pytest_jrh.core.files import same_text
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.scales import Mode
from pytest_jrh.core.sections import ConfigSection, Takes, Text
from pytest_jrh.core.skips import UnscoredKind
from pytest_jrh.core.stages import JUDGE, Bounds
from pytest_jrh.core.text import nearest_hint, shortened
from pytest_jrh.judges.judge import (
    JudgeCalls,
    JudgedCase,
    JudgeKind,
    JudgeSettings,
    OwnCode,
    Said,
    Submit,
    SuiteJudge,
    judged_case,
    key_of,
)
from pytest_jrh.judges.keys import advice_on_keys
from pytest_jrh.llm.transport import keep_libraries_local, may_pass

FIX_AND_RUN = "Fix it and run again: recorded calls are kept, and only the missing ones are made."
_LONGEST_VALUE = 80
_LONGEST_REASONING = 20_000
_LONGEST_CAUSE = 300
_PAIR = 2


class OwnCodeKeys(ConfigSection):
    """The keys of every judge that is not a prompt."""

    version: Text | None = None
    """The version of the judge. While it is the same, recorded verdicts are replayed without
    running the judge; a new version judges anew. Left out: the judge runs on replay, and its
    requests are answered from the recording."""


def _alike(outcome: UnscoredKind, error: BaseException | None) -> str:
    if outcome == "invalid_response":
        return outcome
    return "" if error is None or may_pass(error) else type(error).__name__


def no_verdict(
    outcome: UnscoredKind, cause: str, advice: str = "", error: BaseException | None = None
) -> Unscored:
    """The outcome of a judge of own code without a verdict, for an error with its places."""
    return Unscored(
        outcome,
        stage=JUDGE.name,
        cause=cause,
        advice=advice,
        places=() if error is None else error_places(error),
        happened="the judge gave no verdict",
        alike=_alike(outcome, error),
    )


@frozen
class Scale:
    """What is made of the values of a judge, `who`. A number from `threshold` on is a violation, or
    a pass where `one_passes`.
    """

    who: str
    score_map: Mapping[str, int] | None
    threshold: float | None = None
    one_passes: bool = False

    def verdict(self, said: Said, case: JudgedCase) -> Verdict:
        """The verdict that a judge's value is; raises `Unscored` (invalid_response) where it is
        none.

        Without a map a value has to be an integer on offer: nothing is coerced, so that no verdict
        is invented.
        """
        value, reasoning = said
        if not isinstance(reasoning, str):
            raise self.invalid(f"gave {_shown(reasoning)} as its reasoning, which is no text")
        probability = None
        offered = f"{', '.join(map(str, case.scores[:-1]))} or {case.scores[-1]}"
        if self.threshold is not None:
            if type(value) is bool or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise self.invalid(f"gave {_shown(value)}; `threshold` needs a number from 0 to 1")
            probability, score = float(value), int(value >= self.threshold)
            if self.one_passes:
                probability, score = 1 - probability, 1 - score
        elif self.score_map is not None:
            if key_of(value) not in self.score_map:
                values = ", ".join(self.score_map)
                raise self.invalid(f"gave {_shown(value)}; `score_map` has no value but {values}")
            score = self.score_map[key_of(value)]
        elif type(value) is int:
            score = value
        else:
            raise self.invalid(
                f"gave {_shown(value)}; a score must be the integer {offered}, or one that "
                "`score_map` gives for the value; a probability needs `threshold`"
            )
        if score not in case.scores:
            raise self.invalid(f"gave the score {_shown(score)}; it must be {offered}")
        return Verdict(score, reasoning[:_LONGEST_REASONING].strip(), probability)

    def invalid(self, problem: str) -> Unscored:
        """The outcome of a judge whose value is no verdict."""
        return no_verdict("invalid_response", f"{self.who} {problem}.")


def shown_path(path: str, separator: str) -> str:
    """A judge's code as messages name it: a file by its name alone, wherever it lies."""
    file, _, name = path.rpartition(separator)
    return f"{Path(file).name}{separator}{name}" if file else path


def not_loaded(what: str, error: BaseException, key: str, hint: str | None) -> InputError:
    """The error of code of the user's that raised when it was loaded, with what to set where it
    misses a key; the hint is for what has raised in none of its lines.
    """
    frames = "".join(f"; {frame}" for frame in error_places(error, own_only=True))
    # The ellipsis tells that a secret may be cut there.
    cause = shortened(error_text(error), _LONGEST_CAUSE)
    hint = advice_on_keys(error) or (None if frames else hint)
    return InputError(f"{what}: {cause}{frames}", key=key, hint=hint)


def said_by(value: object) -> Said:
    """What a function says by its value: a `Verdict`, a pair of value and reasoning, or a value
    alone.
    """
    if isinstance(value, Verdict):
        return Said(value.score, value.reasoning)
    if isinstance(value, tuple) and len(value) == _PAIR:
        return Said(*value)
    return Said(value, "")


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return shortened(repr(value), _LONGEST_VALUE)
    # With its module: numpy's bool is called `bool`, too.
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"a value of the type {name.removeprefix('builtins.')}"


DEFAULT_TIMEOUT = 120.0
_SHORT = 12


@frozen
class OwnCodeJudge(SuiteJudge):
    """A judge whose requests are recorded as they are sent, by whatever code sends them.

    `path` is its code, as the config names it.
    """

    code_digest: str
    path: str

    @property
    def label(self) -> str:
        """Its code, as the config names it."""
        return self.path

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """What tells it from other judges, its kind among it, beside its code and settings."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its code or version, its parts, map or threshold, and its model's settings."""
        section = self.settings.section
        return _sha256(
            {**self._asked_with(self.version), "score_map": section.score_map or section.threshold}
        )

    def _asked_with(self, version: str | None) -> Mapping[str, Any]:
        """All that what it says rests on: its map is none of that."""
        stage = self.settings.stage
        return {
            **self.parts,
            "code": self.code_digest if version is None else "",
            "version": version,
            "model": stage.model,
            "system_prompt": stage.system_prompt,
            "temperature": stage.temperature,
            "max_tokens": stage.max_tokens,
            "show_reasoning": self.settings.show_reasoning,
        }

    @property
    def models(self) -> tuple[StageModel, ...]:
        """Itself, in place of the models that it may ask."""
        return (StageModel(JUDGE.name, self.label),)

    @property
    def calls(self) -> Bounds:
        """Its requests are not known, so a verdict counts as one call at most."""
        return Bounds(0, 1)

    @property
    def runs_code(self) -> bool:
        """Its requests are recorded as those of code are, and their price is not known."""
        return True

    @property
    def version(self) -> str | None:
        """The version in its section: with one, recorded verdicts are replayed without its code."""
        section = self.settings.section
        assert isinstance(section, OwnCodeKeys)
        return section.version

    async def judged(
        self,
        case: JudgedCase,
        calls: JudgeCalls,
        call: Callable[[Submit], object],
        scale: Scale,
    ) -> Verdict:
        """Have `calls` run the code; raises `Unscored` where it gives no score on offer.

        `call` runs it, and the scale makes a verdict of what it says.
        """
        parts = asdict(case)
        # Where a verdict is recorded says of which run it is.
        del parts["run_id"], parts["epoch"]
        files = f"files {_sha256(self._asked_with(None))[:_SHORT]}"
        code = OwnCode(
            label=self.label,
            call=call,
            verdict=lambda said: scale.verdict(said, case),
            timeout=self.settings.stage.timeout or DEFAULT_TIMEOUT,
            key={
                "judge": self.version or files,
                "case": _sha256(parts)[:_SHORT],
            },
            files=files,
            from_head=self.version is not None,
        )
        return await calls.run(code)

    def scale(self, default: Mapping[str, int] | None = None, *, one_passes: bool = False) -> Scale:
        """How its values become scores; `default` is the map where its section has none."""
        section, who = self.settings.section, f"The judge {self.label}"
        return Scale(who, section.score_map or default, section.threshold, one_passes)


def _sha256(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def code_digest(
    code: Callable[..., object],
    *,
    module_file: str | None = None,
    named: Mapping[str, Path] | None = None,
) -> str:
    """SHA-256 of a judge's own code, which has been imported: equal where two sessions run the
    same.

    `module_file` is the file that the config takes it from, else it is the one that it was defined
    in; `named` are the files that the config names.
    """
    files = dict(named or {})
    start = module_file or _file_of(code)
    pending = [] if start is None else [(Path(start).name, Path(start))]
    seen: set[Path] = set()
    while pending:
        name, path = pending.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            files[name] = path
            pending += imported_modules(path)
    parts: list[object] = [] if start is not None else [source_of(code)]
    for name, path in sorted(files.items()):
        parts.append((name, hashlib.sha256(same_text(path.read_bytes())).hexdigest()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def imported_modules(path: Path) -> list[tuple[str, Path]]:
    """The modules of the project that a module has imported when it was loaded, each with its name
    and its file: those that it names outside of functions.
    """
    if path.suffix != ".py":
        return []
    package = ""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            package = module.__package__ or ""
    modules: list[tuple[str, Path]] = []
    for name in _imported_names(ast.parse(path.read_bytes()), package):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and file.endswith(".py") and not is_ours_or_installed(file):
            modules.append((name, Path(file)))
    return modules


def _imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        pending += ast.iter_child_nodes(node)
        names: list[str] = []
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            # With the packages that it is in, whose code has run, too.
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _file_of(code: Callable[..., object]) -> str | None:
    while isinstance(code, functools.partial):
        code = code.func
    code = inspect.unwrap(code)
    owner = code if inspect.isroutine(code) or inspect.isclass(code) else type(code)
    try:
        return inspect.getsourcefile(owner)
    except TypeError:
        return None


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

    function: Callable[..., object]

    @property
    def parts(self) -> Mapping[str, Any]:
        """The function, as the config names it."""
        return {"kind": _KEY, "path": self.path}

    async def __call__(self, case: Case, calls: JudgeCalls) -> Verdict:
        """Run the function on a case; raises `Unscored` where it gives no score on offer."""
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)

        def call(submit: Submit) -> object:
            if "complete" not in inspect.signature(self.function).parameters:
                return self.function(judged)
            return self.function(judged, complete=self._asking(calls, submit))

        return await self.judged(judged, calls, call, self.scale())

    def _asking(self, calls: JudgeCalls, submit: Submit) -> Callable[..., object]:
        """The `complete` of the function, which asks the judge's model, or a named one."""

        async def asked(
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
            return await asyncio.wrap_future(submit(asked(*args, **keywords)))

        def complete_and_wait(*args: Any, **keywords: Any) -> Any:
            return submit(asked(*args, **keywords)).result()

        return complete if _is_async(self.function) else complete_and_wait


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> PythonJudge:
    del mode, instruction
    section = settings.section
    assert isinstance(section, PythonKeys)
    assert section.python is not None
    path = section.python.strip()
    function = imported(path, key=_IN_CONFIG)
    # Imported before, with its mistakes named.
    module_file = _module(path.rpartition(":")[0]).__file__ or ""
    for name, runs in imported_modules(Path(module_file)):
        beside = Path(module_file).with_name(f"{name}.py")
        if runs != beside and beside.is_file():
            message = (
                f"{shown_path(path, ':')!r} imports {shown(name)} from its folder, but a module of "
                f"that name was imported before, from {runs.parent.name}/{runs.name}"
            )
            hint = "rename one of the two modules, or make packages of their folders"
            raise InputError(message, key=_IN_CONFIG, hint=hint)
    digest = code_digest(function, module_file=module_file)
    return PythonJudge(settings, digest, shown_path(path, ":"), function)


def supplied_judge(settings: JudgeSettings, function: Callable[..., object]) -> PythonJudge:
    """The judge that a project's code supplies as a function."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", "")
    return PythonJudge(settings, code_digest(function), f"{module}:{name}", function)


def imported(path: str, *, key: str) -> Callable[..., object]:
    """The function at `pkg.mod:function` or `file.py:function`.

    Raises `InputError` with what is there instead, or what its module raised.
    """

    def refused(message: str, hint: str | None = None) -> InputError:
        return InputError(message, key=key, hint=hint)

    module_name, _, name = path.strip().rpartition(":")
    is_module = all(map(str.isidentifier, module_name.split(".")))
    if not name or not (is_module or module_name.endswith(".py")):
        raise refused(f"got {shown(path)}; must be {_TAKES}")
    shown_name = repr(shown_path(path, ":"))
    try:
        keep_libraries_local()
        module = _module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's module runs here, and may raise anything
        hint = _IMPORT_PATH if isinstance(error, ModuleNotFoundError) else None
        raise not_loaded(f"the judge {shown_name} cannot be imported", error, key, hint) from error
    member = getattr(module, name, None)
    if member is None:
        members = [entry for entry, value in vars(module).items() if callable(value)]
        hint = nearest_hint(name, members)
        raise refused(f"{shown_name}: the module has no {name!r}", hint)
    if not callable(member):
        type_name = type(member).__name__
        raise refused(f"{shown_name} is not the judge: {type_name} is not callable")
    function: Callable[..., object] = member
    return function


def _module(name: str) -> types.ModuleType:
    return _from_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)


def _from_file(path: Path) -> types.ModuleType:
    """The module of a file, imported once; files beside it can be imported by it."""
    name = f"jrh_judge_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
    return module


def _is_async(function: Callable[..., object]) -> bool:
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - the method itself
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


PYTHON = JudgeKind(
    key=_KEY,
    build=_build,
    keys=PythonKeys,
    asks_model=False,
    behind_file=":",
    notes=("score_map: {pass: 0, fail: 1}   # where it returns other values than scores",),
)
