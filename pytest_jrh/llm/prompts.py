"""Finding a stage's prompt, checking its variables, and turning it into messages.

A prompt file is the user message. One that has a line `---user---` is a system message above that
line and the user message below it; the built-in prompts are of this kind, so that a copy of one can
be changed and used as an override.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from pytest_jrh.core.documents import read_text
from pytest_jrh.core.stages import STAGES
from pytest_jrh.core.templates import Template, parse_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.core.model import EditsOf, Mode, Objective, ScoreLevel


_SEPARATOR = re.compile(r"^---user---[ \t\r]*$", re.MULTILINE)

INTEGERS: Final = frozenset({"max_steps", "message_index", "lowest_score", "highest_score"})
"""The variables that are whole numbers."""


def load_template(
    stage: str,
    *,
    mode: Mode,
    objective: Objective,
    prompt_path: Path | None = None,
    override: Path | None = None,
    edits: EditsOf = "text",
) -> Template:
    """Find a stage's prompt: `override` where that file exists, else `prompt_path`, else the
    built-in one.

    The judge has no override. Raises `InputError` for a file that cannot be read or is invalid.
    """
    spec = STAGES[stage]
    if override is not None and spec.makes_cases and override.is_file():
        return parse_prompt(read_text(override, str(override)), str(override), stage=stage)
    if prompt_path is not None:
        return parse_prompt(read_text(prompt_path, str(prompt_path)), str(prompt_path), stage=stage)
    name = built_in_name(stage, mode=mode, objective=objective, edits=edits)
    return built_in(name, allowed=spec.variables, required=spec.required)


@lru_cache(maxsize=64)
def built_in(name: str, *, allowed: frozenset[str], required: frozenset[str]) -> Template:
    """The prompt of this name that ships with the package."""
    source = (
        resources.files("pytest_jrh.llm")
        .joinpath("templates", f"{name}.md")
        .read_text(encoding="utf-8")
    )
    return parse_template(source, f"built-in {name}", allowed=allowed, required=required)


def parse_prompt(source: str, origin: str, *, stage: str) -> Template:
    """Check a prompt's text: its names, its syntax, and that it renders."""
    spec = STAGES[stage]
    template = parse_template(source, origin, allowed=spec.variables, required=spec.required)
    full = {
        name: 3 if name in INTEGERS else f"[0] user\n  a {name}\n[1] assistant\n  more"
        for name in spec.variables
    }
    # Values that may be empty are empty once here, so that both branches of an `if` are tested.
    bare = {
        name: "" if name in spec.variables - spec.required - INTEGERS else full[name]
        for name in full
    }
    messages(template, full)
    messages(template, bare)
    return template


def override_path(custom_prompts_dir: Path, test: str, stage: str) -> Path:
    """Where a project keeps its own prompt for a stage of a test, of one module."""
    return custom_prompts_dir / test / f"{stage}.md"


def built_in_name(stage: str, *, mode: Mode, objective: Objective, edits: EditsOf = "text") -> str:
    """Name the prompt that ships with the package, such as `planner.binary.fail`."""
    spec = STAGES[stage]
    name = f"{stage}.acts" if edits == "acts" and spec.prompt_of_acts else stage
    if not spec.prompt_per:
        return name
    if spec.prompt_per == "mode" or mode == "ordinal":
        return f"{name}.{mode}"
    return f"{name}.{mode}.{objective}"


def messages(
    template: Template, values: Mapping[str, object], *, system_prompt: str | None = None
) -> list[dict[str, str]]:
    """Render the chat messages of one call.

    `system_prompt`, a setting of the stage, is the system message where it is given, and is never
    rendered; the template's own system part then opens the user message, so that nothing is lost.
    """
    system, user = _parts(template)
    head = system.render(values).strip() if system else ""
    body = user.render(values)
    if system_prompt:
        head, body = system_prompt, f"{head}\n\n{body}" if head else body
    opening = [{"role": "system", "content": head}] if head else []
    return [*opening, {"role": "user", "content": body}]


def score_levels_table(levels: Sequence[ScoreLevel], names: Mapping[int, str] | None = None) -> str:
    """Write the scale, one line per level: `score: label`, from the lowest score up.

    With `names` each score is written as its name, and a level without one is left out.
    """
    lines: list[str] = []
    for level in sorted(levels, key=lambda level: level.score):
        if names is None or level.score in names:
            lines.append(_level_line(level, names))
    return "\n".join(lines)


def ordinal_guidance(levels: Sequence[ScoreLevel], target: ScoreLevel) -> str:
    """Describe the target to planner and editor: the score, its neighbours, the scale."""
    lines = [f"Target score: {target.score}", f"To be reached exactly: {_level_line(target)}"]
    by_score = {level.score: level for level in levels}
    below, above = by_score.get(target.score - 1), by_score.get(target.score + 1)
    lines.append(f"One level too low: {_level_line(below)}" if below else "No level lies below it.")
    lines.append(
        f"One level too high: {_level_line(above)}" if above else "No level lies above it."
    )
    return "\n".join([*lines, "", "The whole scale:", score_levels_table(levels)])


def _level_line(level: ScoreLevel, names: Mapping[int, str] | None = None) -> str:
    name = level.score if names is None else names[level.score]
    # A label of several lines would read as further levels.
    return f"{name}: {' '.join(level.label.split()) or '(no description)'}"


@lru_cache(maxsize=64)
def _parts(template: Template) -> tuple[Template | None, Template]:
    """Split at the separator before anything is filled in, so that no value can move it."""
    separator = _SEPARATOR.search(template.source)
    if separator is None:
        return None, template
    above, below = template.source[: separator.start()], template.source[separator.end() :]
    return replace(template, source=above), replace(template, source=below.lstrip("\n"))
