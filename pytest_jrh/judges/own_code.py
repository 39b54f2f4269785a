"""What the judges that are code, and no prompts, have in common: their keys in a config, what the
engine runs for a verdict, which values of theirs are a verdict, and which code one is, so that a
changed judge is told from the one that was recorded.

Where such code does not find the key of a service, as on a replay, an error says which variable to
set, whoever raised it. Nothing is sent there, so any value will do.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import inspect
import os
import re
import sys
import traceback
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_jrh.core import (
    Fields,
    InputError,
    causes_of,
    error_places,
    error_text,
    frozen,
    is_ours_or_installed,
    shortened,
)
from pytest_jrh.core.calls import JUDGE
from pytest_jrh.core.cases import Case, Unscored, UnscoredKind, Verdict
from pytest_jrh.core.files import text_digest
from pytest_jrh.core.redact import names_a_credential
from pytest_jrh.core.scales import Said, coded
from pytest_jrh.core.sections import ConfigSection, Flag, Text
from pytest_jrh.judges.judge import (
    CodeAnswer,
    Function,
    JudgeCalls,
    JudgedCase,
    OwnCode,
    Submit,
    SuiteJudge,
    json_digest,
    judged_case,
    key_of,
)
from pytest_jrh.llm.transport import DEFAULT_TIMEOUT, keep_libraries_local, may_pass

FIX_AND_RUN = (
    "Fix the cause and run again: recorded calls are kept, and only the missing ones are made."
)
_DIGEST = 12
_LONGEST_VALUE = 80
LONGEST_REASONING = 20_000
_LONGEST_CAUSE = 300
_PAIR = 2


class OwnCodeKeys(ConfigSection):
    """The keys of every judge that is not a prompt."""

    version: Text | None = None
    """The version of a judge in Python. As long as the version stays the same, recorded verdicts
    are replayed and the code does not run. With a new version, all cases are judged again. Left
    out: the code runs on replay, and its requests are answered from the recording."""
    random: Flag | None = None
    """true: the judge draws random numbers, or asks a model by a call that is not recorded, so
    chance may explain a loss since the baseline. Left out: code without a recorded call is assumed
    to be deterministic, so each loss counts as real."""


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
    def parts(self) -> Fields:
        """What tells it from other judges, its kind among it, beside its code and settings."""

    @property
    def version(self) -> str | None:
        """The version in its section: with one, recorded verdicts are replayed without its code."""
        section = self.settings.section
        assert isinstance(section, OwnCodeKeys)
        return section.version

    @property
    def runs_code(self) -> bool:
        """Its requests are recorded as those of code are, and their price is not known."""
        return True

    @abstractmethod
    def answer(self, judged: JudgedCase, case: Case, calls: JudgeCalls, submit: Submit) -> object:
        """What its code answers; it is awaited where it can be."""

    async def __call__(self, case: Case, calls: JudgeCalls) -> Verdict:
        """Have `calls` run the code; raises `Unscored` where what it answers is no verdict."""
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        return await calls.run(self.code(judged, case, calls))

    def code(self, judged: JudgedCase, case: Case, calls: JudgeCalls) -> OwnCode:
        """Its code about a case."""
        case_parts = asdict(judged)
        # The place of its recording says which run it is, and its levels which scores there are.
        del case_parts["run_id"], case_parts["epoch"], case_parts["scores"]
        del case_parts["rubric"]["levels"]
        if not judged.rubrics:
            del case_parts["rubrics"]
        files = f"files {json_digest(self._answer_rests_on(None))[:_DIGEST]}"
        return OwnCode(
            label=self.label,
            call=functools.partial(self.answer, judged, case, calls),
            read=code_answer,
            verdict=functools.partial(self.scoring(judged).verdict, case=judged),
            timeout=self.settings.stage.timeout or DEFAULT_TIMEOUT,
            key={"judge": self.version or files, "case": json_digest(case_parts)[:_DIGEST]},
            files=files,
            from_head=self.version is not None,
        )

    def scoring(self, judged: JudgedCase) -> Scoring:
        """How its values become scores of a case."""
        del judged
        section = self.settings.section
        return Scoring(f"The judge {self.label}", section.score_map, section.threshold)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its code or version, its parts, map or threshold, and its model's settings."""
        section = self.settings.section
        values_read_by = section.score_map or section.threshold
        rests_on = {**self._answer_rests_on(self.version), **self.settings.orders}
        return json_digest({**rests_on, "score_map": values_read_by})

    def _answer_rests_on(self, version: str | None) -> Fields:
        """All that its answers depend on: not its map, which is for their meaning."""
        code = self.code_digest if version is None else ""
        return {**self.settings.parts, **self.parts, "code": code, "version": version}


def code_answer(value: object) -> CodeAnswer:
    """The answer of a function that returns a `Verdict`, a pair of value and reasoning, or a value
    alone.
    """
    if isinstance(value, Verdict):
        return CodeAnswer(value.score, value.reasoning)
    if isinstance(value, tuple) and len(value) == _PAIR:
        return CodeAnswer(*value)
    return CodeAnswer(value, "")


@frozen
class Scoring:
    """How the values of a judge become scores; `who` is the judge in messages.

    A number from `threshold` on is a violation, or a pass where `one_passes`.
    """

    who: str
    score_map: Mapping[str, Said] | None
    threshold: float | None = None
    one_passes: bool = False

    def verdict(self, answer: CodeAnswer, case: JudgedCase) -> Verdict:
        """The verdict that an answer is; raises `Unscored` (invalid_response) where it is none.

        Without a map a value has to be an integer or a word on offer: nothing is coerced, so that
        no verdict is invented.
        """
        value, reasoning = answer
        if not isinstance(reasoning, str):
            raise self.invalid(f"gave {value_text(reasoning)} as its reasoning, which is not text")
        probability = None
        score: Any = value
        offered = f"{', '.join(map(str, case.scores[:-1]))} or {case.scores[-1]}"
        if self.threshold is not None:
            if type(value) is bool or not isinstance(value, int | float) or not 0 <= value <= 1:
                problem = f"gave {value_text(value)}; `threshold` needs a number from 0 to 1"
                raise self.invalid(problem)
            score, probability = int(value >= self.threshold), float(value)
            if self.one_passes:
                score, probability = 1 - score, 1 - probability
        elif self.score_map is not None:
            if key_of(value) not in self.score_map:
                raise self.invalid(
                    f"gave {value_text(value)}; `score_map` has only {', '.join(self.score_map)}"
                )
            score = self.score_map[key_of(value)]
        elif type(value) not in map(type, case.scores):
            offered = offered if str in map(type, case.scores) else f"the integer {offered}"
            raise self.invalid(
                f"gave {value_text(value)}; must be {offered}, or a value that `score_map` maps to "
                "a score (a probability needs `threshold`, and a mapping of rubrics to verdicts "
                "needs `together: true`)"
            )
        if score not in case.scores:
            raise self.invalid(f"gave the score {value_text(score)}; must be {offered}")
        return Verdict(coded(score), reasoning[:LONGEST_REASONING].strip(), probability)

    def invalid(self, problem: str) -> Unscored:
        """The outcome of a judge whose value is no verdict."""
        return no_verdict("invalid_response", f"{self.who} {problem}.")


def value_text(value: object) -> str:
    """What a judge gave, in a message: a value, or what type it has."""
    if value is None or isinstance(value, bool | int | float | str):
        return shortened(repr(value), _LONGEST_VALUE)
    # With its module: numpy's bool is called `bool`, too.
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"a value of the type {name.removeprefix('builtins.')}"


def no_verdict(
    outcome: UnscoredKind, cause: str, advice: str = "", error: BaseException | None = None
) -> Unscored:
    """The outcome of a judge of own code without a verdict; `error` is what it raised."""
    # Other cases meet the same, unless it may pass.
    same_trouble = ""
    if outcome == "invalid_response":
        same_trouble = outcome
    elif error is not None and not may_pass(error):
        same_trouble = type(error).__name__
    return Unscored(
        outcome,
        stage=JUDGE.name,
        cause=cause,
        advice=advice,
        places=() if error is None else error_places(error),
        happened="the judge gave no verdict",
        alike=same_trouble,
    )


@contextlib.contextmanager
def loading(failure: str, key: str, hint: str) -> Iterator[None]:
    """Load code of the user's in the block; raises `InputError` for what it raises, with what to
    set where it misses a key. The hint is for code that is not found.
    """
    keep_libraries_local()
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's module runs here, and may raise anything
        frames = error_places(error, own_only=True)
        advice = advice_on_keys(error)
        if not advice and not frames and not isinstance(error, SyntaxError):
            advice = hint
        # The ellipsis tells that a secret may be cut there.
        cause = shortened(error_text(error), _LONGEST_CAUSE)
        message = ", at ".join([f"{failure}: {cause}", *frames])
        raise InputError(message, key=key, hint=advice or None) from error


def file_of(path: str) -> str | None:
    """The Python file of a judge's code, as the config names it: file.py:name or file.py@name."""
    match = re.match(r"(.+\.py)[:@]", path)
    return match[1] if match else None


def shown_path(path: str) -> str:
    """A judge's code as messages name it: a file by its name alone, wherever it lies."""
    return Path(path).name if file_of(path) else path


def code_digest(
    code: Function,
    *,
    module_file: str | None = None,
    config_files: Mapping[str, Path] | None = None,
) -> str:
    """SHA-256 of a judge's own code, which has been imported: equal where two sessions run the
    same.

    Its files are its module, the modules of the project that this one has imported, and those that
    the config names (`config_files`); the judge's `version` stands for the rest. They are named as
    the code names them, never by where they lie on this machine. `module_file` is the module that
    the config takes it from, else it is the one that it was defined in.
    """
    files = dict(config_files or {})
    parts: list[object] = []
    start = module_file or _file_of(code)
    pending = []
    if start is None:
        # Nobody can read it.
        parts.append(f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', '')}")
    else:
        pending.append((Path(start).name, Path(start)))
    seen = set()
    while pending:
        name, path = pending.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            files[name] = path
            pending += imported_modules(path)
    for name, path in sorted(files.items()):
        parts.append((name, text_digest(path)))
    return json_digest(parts)


def _file_of(code: Function) -> str | None:
    while isinstance(code, functools.partial):
        code = code.func
    code = inspect.unwrap(code)
    owner = code if inspect.isroutine(code) or inspect.isclass(code) else type(code)
    try:
        return inspect.getsourcefile(owner)
    except TypeError:
        return None


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
    modules = []
    for name in _imported_names(ast.parse(path.read_bytes()), package):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and file.endswith(".py") and not is_ours_or_installed(file):
            modules.append((name, Path(file)))
    return modules


def _imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        pending += ast.iter_child_nodes(node)
        base = ""
        if isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            base += "."
        elif not isinstance(node, ast.Import):
            continue
        for alias in node.names:
            # With the packages that it is in, whose code has run, too.
            parts = f"{base}{alias.name}".split(".")
            for end in range(1, len(parts) + 1):
                yield ".".join(parts[:end])


_NAME = r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|(?<=[\"'`])[A-Z][A-Z0-9]+(?=[\"'`])"
_ABOUT_VARIABLES = r"(?i)environ|env ?var|\.env\b"
_IS_MISSING = r"(?i)\b(?:not|no|un)\s?(?:set|found)|missing|required|\bset\b"
_ABOUT_KEYS = r"(?i)credential|api.?key|auth|token"
_MOST_NAMES = 2
_ANY_VALUE = "On replay nothing is sent, so any value will do"
# Libraries whose errors do not name the variable that they look for.
_VARIABLES = {
    "anthropic.": "ANTHROPIC_API_KEY",
    "google.genai.": "GEMINI_API_KEY",
    "huggingface_hub.": "HF_TOKEN",
}
_OF_CLOUDS = ("botocore.", "boto3.", "aiobotocore.", "google.auth.", "azure.identity.", "msal.")
_METADATA_HOSTS = frozenset(
    {"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200"}
    | {"fd00:ec2::254", "fd00:ec2::23", "metadata.google.internal", "metadata.goog", "metadata"}
)


def asks_for_credentials(url: str) -> bool:
    """Whether a URL, or `HOST:PORT`, is of a machine's metadata service, which gives a cloud's
    libraries the keys that they find nowhere else.
    """
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        host = None
    # An IPv6 address may stand without brackets before the port of a socket.
    return host in _METADATA_HOSTS or url.rpartition(":")[0] in _METADATA_HOSTS


def advice_on_keys(error: BaseException) -> str:
    """What to set where an error says that a key is missing; empty for any other error."""
    causes = [*causes_of(error)]
    for cause in causes:
        if names := _named(cause):
            return f"{' or '.join(names)} is not set. {_to_set(names[:1])}"
    for cause in causes:
        if not re.search(_ABOUT_KEYS, str(cause)):
            continue
        for module in (type(cause).__module__, *_modules(cause)):
            if f"{module}.".startswith(_OF_CLOUDS):
                return ADVICE_ON_CREDENTIALS
            for library, name in _VARIABLES.items():
                if f"{module}.".startswith(library):
                    return f"{name} is not set. {_to_set([name])}"
    return ""


def _to_set(names: list[str]) -> str:
    """What to write for variables that a replay needs, whatever they hold."""
    lines = "".join(f"\n    {name}: replay" for name in names)
    return f"{_ANY_VALUE}. In the workflow's `env`, write:{lines}"


ADVICE_ON_CREDENTIALS = (
    "Cloud credentials are missing. "
    f"{_to_set(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'])}\n"
    "For Google, GOOGLE_APPLICATION_CREDENTIALS must name a file with the same kind of credentials "
    "as in the recording; for Azure, AZURE_TENANT_ID and AZURE_CLIENT_ID must be the same, too. "
    "Or set `version` in the judge's section, to use its recorded verdicts"
)
"""What to set in place of what a metadata service would be asked for."""


def _modules(error: BaseException) -> list[str]:
    frames = traceback.walk_tb(error.__traceback__)
    return [frame.f_globals.get("__name__", "") for frame, _ in frames]


def _named(error: BaseException) -> list[str]:
    """The variable that `os.environ[NAME]` has not found, or those, not set, that the text of an
    error asks for.
    """
    if isinstance(error, KeyError) and _modules(error)[-1:] == ["os"]:
        return [error.args[0]]
    text = str(error)
    about_variables = re.search(_ABOUT_VARIABLES, text) is not None
    if not about_variables and not re.search(_IS_MISSING, text):
        return []
    names = []
    for name in dict.fromkeys(re.findall(_NAME, text)):
        if not os.environ.get(name) and (about_variables or names_a_credential(name)):
            names.append(name)
    return names[:_MOST_NAMES]
