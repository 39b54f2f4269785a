"""What a judge of a suite owns, whatever it is; the engine knows no more of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_jrh.models import Case, Complete, Mode, StageModel, Verdict
    from pytest_jrh.sections import ConfigSection
    from pytest_jrh.stages.stage import CallRange


DEFAULT_JUDGE = "prompt"
"""The kind of a judge whose section sets the key of no other: a model with a prompt."""


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

    def __call__(self, case: Case, repeat: int, complete: Complete) -> Awaitable[Verdict]:
        """Judge a case for the `repeat`th time, from 1.

        What it asks of a model goes through `complete`, which records it as of that repeat. Raises
        `Unscored` where no score on offer comes back.
        """


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """One judge of a config; `name` is None where the suite has a single one (rule E4).

    `kind` is its key in `pytest_jrh.judges.JUDGES`; `stage` holds its model, prompt and settings.
    `section` is its section of the config, of a kind that has keys of its own.
    """

    name: str | None
    stage: StageModel
    show_reasoning: bool = False
    kind: str = DEFAULT_JUDGE
    section: ConfigSection | None = None

    @property
    def label(self) -> str:
        """What reports call it: its model, else its kind."""
        return self.stage.model or self.kind


@dataclass(frozen=True, slots=True)
class JudgeKind:
    """A kind of judge: its keys in a judge's section of a config, and how one is built.

    A judge is of this kind where the key named `key` is set; `keys` are that key and those that go
    with it, None where it needs none beside those of every judge. Without `asks_model` its section
    need name no model. `build` takes the settings, the suite's mode and its instruction, the note
    to the judge; it raises `InputError` for settings that cannot be used.
    """

    key: str
    build: Callable[[JudgeSettings, Mode, str], SuiteJudge]
    keys: type[ConfigSection] | None = None
    asks_model: bool = True
