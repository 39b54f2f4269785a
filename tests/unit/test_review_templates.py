"""Agent templates: what does not render is not saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.errors import InputError
from pytest_jrh.engine.library import build_pipeline
from pytest_jrh.llm.calls import load_template, override_path
from pytest_jrh.review import AgentTemplate, agent_templates
from tests.support.made_cases import make_suite, suite_with

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite

PLANNER = "Plan it.\n{{ rubric_instructions }}\n<turns>\n{{ assistant_transcript }}\n</turns>\n"


def one(suite: Suite, stage: str = "planner", test: str = "agent_perturbation") -> AgentTemplate:
    found = agent_templates([suite])
    return next(each for each in found if (each.stage, each.test.name) == (stage, test))


def test_a_saved_override_is_what_the_next_run_plans_with_for_that_test_alone(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path)
    one(suite).save(PLANNER)
    saved = one(suite).values()
    assert (saved["overridden"], saved["text"]) == (True, PLANNER)
    next_run = {
        test.name: build_pipeline(suite, test).templates["planner"].source for test in suite.tests
    }
    assert next_run["agent_perturbation"] == PLANNER
    default = load_template("planner", mode="binary", objective="pass").source
    assert next_run["agent_positives"] == default


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (PLANNER + "{{ rubrik_id }}", 6, "unknown variable"),
        ("Plan\n{% if rubric_id %}", 2, "not a jinja template"),
        (PLANNER + "\n{{ cycler() }}", None, "at least one item has to be provided"),
        ("{{ rubric_instructions }}", None, "assistant_transcript"),
    ],
)
def test_an_override_that_does_not_render_is_refused_with_line_and_reason(
    tmp_path: Path, text: str, line: int | None, why: str
) -> None:
    planner = one(make_suite(tmp_path))
    planner.save(PLANNER)
    with pytest.raises(InputError, match=why) as caught:
        planner.save(text)
    assert caught.value.problems[0].line == line
    assert planner.values()["text"] == PLANNER


def test_an_override_broken_by_hand_is_shown_with_its_problem(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    path.parent.mkdir(parents=True)
    path.write_text("{{ rubrik }}")
    values = one(suite).values()
    assert (values["overridden"], values["text"]) == (True, "{{ rubrik }}")
    with pytest.raises(InputError):
        one(suite).save(values["text"])


def test_the_configs_own_prompt_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(PLANNER)
    suite = make_suite(tmp_path)
    stage = StageModel("planner", "m", prompt_path=str(tmp_path / "own.md"))
    values = one(suite_with(suite, stages={**suite.stages, "planner": stage})).values()
    assert values["default"] == PLANNER


def test_line_ends_of_browsers_do_not_reach_the_file(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    one(suite).save(PLANNER.rstrip().replace("\n", "\r\n"))
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_bytes() == PLANNER.encode()
