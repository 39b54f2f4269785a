"""Agent templates: what does not render is not saved (rule K3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import StageModel
from pytest_jrh.engine.suite import build_pipeline
from pytest_jrh.llm.prompts import load_template, override_path
from pytest_jrh.review.pages import AgentTemplate, AgentTemplates
from tests.support.made_cases import (
    make_suite,
    suite_with,
)

PLANNER = "Plan it.\n{{ rubric_instructions }}\n<turns>\n{{ assistant_transcript }}\n</turns>\n"


@pytest.fixture
def templates(tmp_path: Path) -> AgentTemplates:
    return AgentTemplates([make_suite(tmp_path)])


def one(templates: AgentTemplates, stage: str, test: str = "agent_perturbation") -> AgentTemplate:
    return next(
        found for found in templates.listing() if (found.stage, found.test) == (stage, test)
    )


def test_planner_and_editor_of_every_test_are_listed_with_their_variables(
    templates: AgentTemplates,
) -> None:
    assert [(found.test, found.stage) for found in templates.listing()] == [
        ("agent_perturbation", "planner"),
        ("agent_perturbation", "editor"),
        ("agent_positives", "planner"),
        ("agent_positives", "editor"),
    ]
    planner = one(templates, "planner")
    assert (
        planner.text
        == planner.default
        == load_template("planner", mode="binary", objective="fail").source
    )
    assert planner.required == ("assistant_transcript", "rubric_instructions")
    assert "max_steps" in planner.variables


def test_a_saved_override_is_what_the_next_run_plans_with_for_that_test_alone(
    tmp_path: Path,
) -> None:
    suite = make_suite(tmp_path)
    templates = AgentTemplates([suite])
    saved = templates.save(one(templates, "planner").key, PLANNER)
    assert (saved.overridden, saved.text) == (True, PLANNER)
    next_run = {
        test.name: build_pipeline(suite, test).templates["planner"].source for test in suite.tests
    }
    assert next_run["agent_perturbation"] == PLANNER
    assert (
        next_run["agent_positives"]
        == load_template("planner", mode="binary", objective="pass").source
    )


def test_reverting_deletes_the_override_and_the_folder_it_leaves_empty(tmp_path: Path) -> None:
    templates = AgentTemplates([make_suite(tmp_path)])
    key = one(templates, "planner").key
    templates.save(key, PLANNER)
    assert not templates.revert(key).overridden
    assert not (tmp_path / "custom_prompts").exists()
    assert not templates.revert(key).overridden


def test_reverting_leaves_the_other_overrides(tmp_path: Path) -> None:
    templates = AgentTemplates([make_suite(tmp_path)])
    templates.save(one(templates, "planner").key, PLANNER)
    editor = one(templates, "editor")
    templates.save(editor.key, editor.default)
    templates.revert(one(templates, "planner").key)
    assert one(templates, "editor").overridden


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (PLANNER + "{{ rubrik_id }}", 6, "unknown variable"),
        ("Plan\n{% if rubric_id %}", 2, "not a jinja template"),
        (PLANNER + "\n{{ 1 // (max_steps - 3) }}", None, "does not render"),
        (PLANNER + "\n{{ cycler() }}", None, "at least one item has to be provided"),
        ("{{ rubric_instructions }}", None, "assistant_transcript"),
    ],
)
def test_an_override_that_does_not_render_is_refused_with_line_and_reason(
    tmp_path: Path, text: str, line: int | None, why: str
) -> None:
    suite = make_suite(tmp_path)
    templates = AgentTemplates([suite])
    key = one(templates, "planner").key
    templates.save(key, PLANNER)
    with pytest.raises(InputError, match=why) as caught:
        templates.save(key, text)
    assert caught.value.problems[0].line == line
    assert templates.get(key).text == PLANNER
    assert templates.problems(key, text) == caught.value.problems


def test_a_draft_is_shown_by_its_difference_from_the_default(templates: AgentTemplates) -> None:
    planner = one(templates, "planner")
    lines = templates.difference(planner.key, planner.text.replace("You plan", "You devise"))
    assert [line[0] for line in lines if line.startswith(("+Y", "-Y"))] == ["-", "+"]
    assert templates.difference(planner.key, planner.text) == []


def test_an_override_broken_by_hand_is_shown_with_its_problem(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    path.parent.mkdir(parents=True)
    path.write_text("{{ rubrik }}")
    templates = AgentTemplates([suite])
    planner = one(templates, "planner")
    assert (planner.overridden, planner.text) == (True, "{{ rubrik }}")
    assert templates.problems(planner.key, planner.text)


def test_the_configs_own_prompt_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(PLANNER)
    suite = make_suite(tmp_path)
    stage = StageModel("planner", "m", prompt_path=str(tmp_path / "own.md"))
    planner = one(
        AgentTemplates([suite_with(suite, stages={**suite.stages, "planner": stage})]),
        "planner",
    )
    assert (planner.default, planner.origin) == (PLANNER, str(tmp_path / "own.md"))


def test_line_ends_of_browsers_do_not_reach_the_file(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    templates = AgentTemplates([suite])
    templates.save(one(templates, "planner").key, PLANNER.rstrip().replace("\n", "\r\n"))
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_bytes() == PLANNER.encode()
