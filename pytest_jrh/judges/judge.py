"""What a judge of a suite owns, whatever it is (rule Q7); the engine knows no more of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from pytest_jrh.models import Case, Complete, Mode, StageModel, Verdict
    from pytest_jrh.sections import ConfigSection
    from pytest_jrh.stages.stage import CallRange


DEFAULT_JUDGE = "prompt"
"""The kind of a judge whose section sets the key of no other: a model with a prompt."""


class Submit(Protocol):
    """Runs a coroutine of ours, such as a call of `complete`, for a judge's own code."""

    def __call__(self, work: Coroutine[Any, Any, Any]) -> Future[Any]: ...


@dataclass(frozen=True, slots=True)
class OwnCode:
    """One verdict that is given by code which may ask whom it likes (rules Q2, Q4).

    `who` is the judge in messages. `call` is the code: `is_async` says that it is to run in the
    session's loop for such code, else it has a thread of its own; what it returns is awaited where
    it can be. `read` makes a verdict of that, strictly, or raises `Unscored`. `timeout` is for the
    whole of it, in seconds. `scores` are those on offer. `key` says what a recorded verdict rests
    on, each part as a short text; with `from_head` that verdict is taken where the key is the same,
    and the code not run. `earlier_key` is the key as earlier versions of this package wrote it,
    which looked at less of the code; empty where they wrote the same.
    """

    who: str
    call: Callable[[Submit], object]
    is_async: bool
    read: Callable[[object], Verdict]
    timeout: float
    scores: tuple[int, ...]
    key: Mapping[str, str] = field(default_factory=dict)
    from_head: bool = False
    earlier_key: Mapping[str, str] = field(default_factory=dict)


class JudgeCalls(Protocol):
    """What a judge asks with, for one repeat of one case; all of it is recorded."""

    @property
    def complete(self) -> Complete:
        """Asks a model through us."""

    def run(self, code: OwnCode) -> Awaitable[Verdict]:
        """Run code that is not ours; raises `Unscored` for whatever goes wrong in it."""


class SuiteJudge(Protocol):
    """A judge under test; `name` is None where the suite has a single one (rule E4)."""

    @property
    def name(self) -> str | None: ...

    @property
    def label(self) -> str:
        """What reports call it, such as its model."""

    @property
    def fingerprint(self) -> str:
        """Identifies the judge: equal where two sessions asked the same one (rule J2)."""

    @property
    def models(self) -> tuple[StageModel, ...]:
        """The models that it asks, as far as that is known before it does."""

    @property
    def calls(self) -> CallRange:
        """How many calls of these models one verdict takes, for plans and their costs."""

    @property
    def runs_code(self) -> bool:
        """Whether it asks by code of its own, so that its calls and their price are not known."""

    @property
    def lacks(self) -> str:
        """What is missing that it cannot be asked without, as a sentence; empty if nothing is."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What it sends to say who asks, as far as that is known before it does."""

    def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Awaitable[Verdict]:
        """Judge a case for the `repeat`th time, from 1.

        What it asks goes through `calls`, which records it as of that repeat. Raises `Unscored`
        where no score on offer comes back.
        """


@runtime_checkable
class PromptedJudge(SuiteJudge, Protocol):
    """A judge that tells a model what to do, in texts that can be changed."""

    @property
    def prompts(self) -> Mapping[str, str]:
        """Its texts, by what each is: "prompt", and "system_prompt" where it has one."""

    def with_prompt(self, which: str, text: str) -> SuiteJudge:
        """The same judge with another text in place of one of them."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """One judge of a config; `name` is None where the suite has a single one (rule E4).

    `kind` is its key in `pytest_jrh.judges.JUDGES`; `stage` holds its model, prompt and settings.
    `section` is its section of the config, of a kind that has keys of its own. `sends_images` says
    that it gets the images of a transcript, not their names alone (rule R5). It judges each case
    `repeats` times (rule M1). `score_map` has the scores of its values, where these are none.
    `folders` are those in which its own code may name files.
    """

    name: str | None
    stage: StageModel
    show_reasoning: bool = False
    kind: str = DEFAULT_JUDGE
    section: ConfigSection | None = None
    sends_images: bool = False
    repeats: int = 1
    score_map: Mapping[str, int] | None = None
    folders: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """What reports call it: its model, else its kind."""
        return self.stage.model or self.kind


@dataclass(frozen=True, slots=True)
class JudgeStart:
    """How a new suite begins with a judge that `init --judge=KEY:TEXT` names.

    `keys` makes its keys in the config of the text and the suite's mode, `notes` are the lines of a
    comment on more of them, and `extra` is that of this package that it needs.
    """

    keys: Callable[[str, Mode], dict[str, Any]]
    notes: tuple[str, ...] = ()
    extra: str = ""


@dataclass(frozen=True, slots=True)
class JudgeKind:
    """A kind of judge: its keys in a judge's section of a config, and how one is built.

    A judge is of this kind where the key named `key` is set; `keys` are that key and those that go
    with it, None where it needs none beside those of every judge. Without `asks_model` its section
    need name no model. `build` takes the settings, the suite's mode and its instruction, the note
    to the judge; it raises `InputError` for settings that cannot be used. `start` says how
    a new suite begins with one, where it can.
    """

    key: str
    build: Callable[[JudgeSettings, Mode, str], SuiteJudge]
    keys: type[ConfigSection] | None = None
    asks_model: bool = True
    with_files: Callable[[Any, Callable[[str, tuple[str, ...]], str]], Any] = (
        lambda section, _each: section
    )
    start: JudgeStart | None = None
