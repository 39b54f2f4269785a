"""Agent templates: a preview is what the pipeline sends, and what does not render is not saved
(rule K3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import StageModel
from pytest_jrh.engine.generate import build_pipeline
from pytest_jrh.llm.prompts import load_template, override_path
from pytest_jrh.review.agent_templates import AgentTemplate, AgentTemplates
from tests.support.conversations import wait_for
from tests.support.made_cases import (
    LEVELS,
    RUBRIC,
    make_act_case,
    make_case,
    make_spec,
    make_suite,
    suite_with,
)
from tests.support.scripted import ScriptedModel

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
    saved = templates.save(one(templates, "planner").key, PLANNER, make_case())
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
        (PLANNER + "\n{{ 1 // (max_steps - 3) }}", 7, "does not render"),
        (PLANNER + "\n{{ cycler() }}", 7, "at least one item has to be provided"),
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
        templates.save(key, text, make_case())
    assert caught.value.problems[0].line == line
    assert templates.get(key).text == PLANNER
    preview = templates.preview(key, text, make_case())
    assert (preview.messages, preview.problems) == ((), caught.value.problems)


def test_an_override_that_fails_on_the_real_case_alone_is_refused(
    templates: AgentTemplates,
) -> None:
    text = PLANNER + "{{ assistant_transcript.split('column zero marker')[1] }}"
    with pytest.raises(InputError):
        templates.save(one(templates, "planner").key, text, make_case())


@pytest.mark.parametrize("stage", ["planner", "editor"])
@pytest.mark.parametrize("target", [None, 2])
def test_the_preview_is_what_the_pipeline_sent_for_the_case(
    tmp_path: Path, stage: str, target: int | None
) -> None:
    suite = make_suite(tmp_path, mode="binary" if target is None else "ordinal")
    planner = StageModel("planner", "m", system_prompt="Be careful.")
    suite = suite_with(
        suite,
        stages={
            **suite.stages,
            "planner": planner,
            "verifier": StageModel("verifier", "m"),
        },
    )
    steps = [
        {"message_index": index, "goal": f"goal {index}", "rationale": "why"} for index in (3, 1)
    ]
    said = {"verdict": "FAIL", "rationale": "r", **({} if target is None else {"score": target})}
    model = ScriptedModel(planner={"thesis": "Late.", "steps": steps}, verifier=said)
    case = make_case(make_spec(target_score=target))
    rubric = RUBRIC if target is None else replace(RUBRIC, score_levels=LEVELS)
    perturber = build_pipeline(suite, suite.tests[0]).perturber(model)
    case = replace(
        case, outcome=wait_for(perturber.perturb(case.run, rubric, Goal("fail", target)))
    )
    assert case.outcome.edits

    templates = AgentTemplates([suite])
    shown = templates.preview(one(templates, stage).key, one(templates, stage).text, case).messages
    assert shown == model.asked(stage)[0].messages


def test_the_preview_shows_the_difference_from_the_default(templates: AgentTemplates) -> None:
    planner = one(templates, "planner")
    preview = templates.preview(planner.key, planner.text.replace("You plan", "You devise"), None)
    assert [line[0] for line in preview.difference if line.startswith(("+Y", "-Y"))] == ["-", "+"]
    assert templates.preview(planner.key, planner.text, None).difference == ()


def test_a_case_without_plan_can_still_be_tried(templates: AgentTemplates) -> None:
    editor = one(templates, "editor", "agent_positives")
    case = make_case(make_spec(test="agent_positives"), edited=False)
    assert "(no goal)" in templates.preview(editor.key, editor.text, case).messages[-1]["content"]


def test_an_override_broken_by_hand_is_shown_with_its_problem(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    path.parent.mkdir(parents=True)
    path.write_text("{{ rubrik }}")
    planner = one(AgentTemplates([suite]), "planner")
    assert (planner.overridden, planner.text) == (True, "{{ rubrik }}")
    assert planner.problems


def test_the_configs_own_prompt_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text(PLANNER)
    suite = make_suite(tmp_path)
    stage = StageModel("planner", "m", prompt_path=str(tmp_path / "own.md"))
    planner = one(
        AgentTemplates([suite_with(suite, stages={**suite.stages, "planner": stage})]),
        "planner",
    )
    assert (planner.default, planner.origin) == (PLANNER, str(tmp_path / "own.md"))


def test_suites_of_one_module_say_that_they_share_an_override(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    shared = AgentTemplates([suite, replace(suite, name="refunds_ordinal", mode="ordinal")])
    assert one(shared, "planner").shared_with == ("refunds_ordinal",)


def test_line_ends_of_browsers_do_not_reach_the_file(tmp_path: Path) -> None:
    suite = make_suite(tmp_path)
    templates = AgentTemplates([suite])
    templates.save(one(templates, "planner").key, PLANNER.rstrip().replace("\n", "\r\n"))
    path = override_path(suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_bytes() == PLANNER.encode()


def test_a_suite_of_acts_shows_what_its_planner_is_sent(tmp_path: Path) -> None:
    suite = suite_with(make_suite(tmp_path), edits="acts")
    templates = AgentTemplates([suite])
    planner = one(templates, "planner")
    (case, editor) = make_act_case(), one(templates, "editor")
    sent = templates.preview(planner.key, planner.text, case).messages[-1]["content"]
    assert "[3] assistant calls refund (call 1, id c2)" in sent
    assert "- verify: " in sent
    # The plan has no step of words: the preview is of the last turn.
    text = templates.preview(editor.key, editor.text, case).messages[-1]["content"]
    assert "I have refunded 56.00." in text
