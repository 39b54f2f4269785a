"""The planner and editor prompts of each test: shown, checked, overridden, and put back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import unified
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.stages import EDITOR, PLANNER, STAGES
from pytest_jrh.llm.prompts import load_template, override_path, parse_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.suite import Suite, SuiteTest
    from pytest_jrh.core.model import StageModel
    from pytest_jrh.core.templates import Template


ENCODING = "utf-8-sig"


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """The prompt of one stage of one test, as the page shows it. `text` is what is used now: the
    override where there is one, in `file`.

    `default` is what is used without one, out of `origin`.
    """

    key: str
    suite: str
    test: str
    stage: str
    file: str
    origin: str
    default: str
    text: str
    overridden: bool
    variables: tuple[str, ...]
    required: tuple[str, ...]


class AgentTemplates:
    """The templates that the suites of a session use. What is saved counts from the next run on."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._prompts: dict[str, _Prompt] = {}
        for suite in suites:
            for test in suite.tests:
                if KINDS[test.name].natural or KINDS[test.name].derived:
                    continue
                for stage in (PLANNER.name, EDITOR.name):
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
        )

    def problems(self, key: str, text: str) -> tuple[Problem, ...]:
        """Why a draft cannot be used; raises `LookupError` for an unknown key."""
        try:
            self._prompts[key].checked(text)
        except InputError as error:
            return error.problems
        return ()

    def difference(self, key: str, text: str) -> list[str]:
        """How a draft differs from the default, as the lines of a diff."""
        return unified(self._prompts[key].default().source.splitlines(), text.splitlines())

    def save(self, key: str, text: str) -> AgentTemplate:
        """Write the override, whole or not at all.

        Raises `InputError` where the text does not check, and `OSError` as it comes; the override
        on the disk is then as it was.
        """
        prompt = self._prompts[key]
        prompt.checked(text)
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
    stage: str

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
            edits=self.suite.config.cases.edits,
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
