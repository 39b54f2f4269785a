"""The prompts of planner and editor as people change them on the page, per suite and test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import unified
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.ids import short_digest
from pytest_jrh.core.stages import EDITOR, PLANNER, STAGES
from pytest_jrh.llm.prompts import load_template, override_path, parse_prompt
from pytest_jrh.review.board import KEY_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.config.suite import Suite, SuiteTest
    from pytest_jrh.core.templates import Template


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """The prompt of one stage of one test. What is saved counts from the next run on."""

    suite: Suite
    test: SuiteTest
    stage: str

    @property
    def key(self) -> str:
        """Its name in addresses, without any character of those that it is of."""
        name = "\0".join([self.suite.name, self.test.name, self.stage])
        return short_digest(name, KEY_LENGTH)

    def values(self) -> dict[str, Any]:
        """As JSON values: `text` is what is used now, from `file` where that is an override, and
        `default` what is used without one.
        """
        default, text, stage = self._default(), self._override_text(), STAGES[self.stage]
        module, test = self.suite.module_name, self.test.name
        return {
            "key": self.key,
            "suite": self.suite.name,
            "test": test,
            "stage": self.stage,
            "file": f"inputs/custom_prompts/{module}/{test}/{self.stage}.md",
            "origin": default.origin,
            "default": default.source,
            "text": default.source if text is None else text,
            "overridden": text is not None,
            "variables": sorted(stage.variables),
            "required": sorted(stage.required),
        }

    def check(self, text: str) -> None:
        """Raise `InputError` for a draft that cannot be used."""
        parse_prompt(text, f"{self.test.name}/{self.stage}.md", stage=self.stage)

    def difference(self, text: str) -> list[str]:
        """How a draft differs from the default, as the lines of a diff."""
        return unified(self._default().source.splitlines(), text.splitlines())

    def save(self, text: str) -> None:
        """Write the override, whole or not at all; raises `InputError` where it cannot be used, and
        `OSError` as it comes.
        """
        self.check(text)
        # One line ending, whatever the browser sent: the file is read, compared and committed on
        # any system.
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        atomic_write(self._override, lines if lines.endswith("\n") else f"{lines}\n")

    def revert(self) -> None:
        """Delete the override, and the folders that this leaves empty."""
        self._override.unlink(missing_ok=True)
        for folder in (self._override.parent, self._override.parent.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    @property
    def _override(self) -> Path:
        return override_path(self.suite.custom_prompts_dir, self.test.name, self.stage)

    def _override_text(self) -> str | None:
        try:
            return self._override.read_text(encoding="utf-8-sig", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            message = f"the override cannot be read: {error.strerror}"
            raise InputError(Problem(message, str(self._override))) from error

    def _default(self) -> Template:
        path = self.suite.stages[self.stage].prompt_path
        return load_template(
            self.stage,
            mode=self.suite.mode,
            objective=self.test.objective,
            prompt_path=Path(path) if path else None,
            edits=self.suite.config.cases.edits,
        )


def agent_templates(suites: Sequence[Suite]) -> dict[str, AgentTemplate]:
    """The templates that suites use, by key: by suite, test and stage."""
    templates = []
    for suite in suites:
        for test in suite.tests:
            if not (KINDS[test.name].natural or KINDS[test.name].derived):
                templates += [AgentTemplate(suite, test, stage.name) for stage in (PLANNER, EDITOR)]
    return {template.key: template for template in templates}
