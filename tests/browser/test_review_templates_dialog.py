"""The dialog of the agent templates in headless Chromium (rule K3)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_jrh.engine.suite import build_pipeline
from pytest_jrh.llm.prompts import override_path
from tests.browser.material import made_case
from tests.browser.opened import Session, Sessions

DRAFT = "Plan with care.\n{{ rubric_instructions }}\n{{ assistant_transcript }}\n"


@pytest.fixture
def session(sessions: Sessions) -> Session:
    started = sessions.start()
    started.board.add(made_case(0))
    started.board.add(made_case(0, test="agent_positives"))
    return started


@pytest.fixture
def page(sessions: Sessions, session: Session) -> Any:
    page = sessions.page(session)
    page.wait_for_selector("#case article")
    page.click("#open-templates")
    page.wait_for_selector("#panel-difference p")
    return page


def test_planner_and_editor_of_each_test_are_listed_with_their_variables(page: Any) -> None:
    entries = page.eval_on_selector_all(
        "#template-list button", "all => all.map(one => one.textContent)"
    )
    assert entries == [
        f"{stage} agent_{test}"
        for test in ("perturbation", "positives")
        for stage in ("planner", "editor")
    ]
    assert page.inner_text("#template-variables .required >> nth=0") == "assistant_transcript"
    page.click("#template-list button >> nth=3")
    page.wait_for_selector(
        "#template-file:text-is('inputs/custom_prompts/refunds/agent_positives/editor.md')"
    )


def test_a_draft_is_shown_beside_the_default_while_it_is_typed(page: Any) -> None:
    page.fill("#template-text", DRAFT)
    page.wait_for_selector("#panel-difference ins:has-text('+Plan with care.')")
    page.click("#tab-difference")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#panel-default pre").startswith("You plan material")


def test_nothing_can_be_typed_into_a_template_that_is_still_to_come(page: Any) -> None:
    held: list[Any] = []
    page.route("**/templates/*", lambda route, _request: held.append(route))
    with page.expect_request("**/templates/*"):
        page.click("#template-list button >> nth=3")
    page.wait_for_selector("#template-text:read-only")
    [route] = held
    route.continue_()
    page.wait_for_selector("#template-text:read-write")
    file = "inputs/custom_prompts/refunds/agent_positives/editor.md"
    assert page.inner_text("#template-file") == file


def test_what_is_saved_is_what_the_next_run_plans_with_for_this_test_alone(
    page: Any, session: Session
) -> None:
    page.fill("#template-text", DRAFT)
    page.click("#template-save")
    page.wait_for_selector("#template-says:has-text('used from the next run on')")
    assert page.inner_text("#template-state") == "override"
    path = override_path(session.suite.custom_prompts_dir, "agent_perturbation", "planner")
    assert path.read_text() == DRAFT
    used = {
        test.name: build_pipeline(session.suite, test).templates["planner"].source
        for test in session.suite.tests
    }
    assert used["agent_perturbation"] == DRAFT
    assert "Plan with care." not in used["agent_positives"]


def test_reverting_deletes_the_override_and_shows_the_default(page: Any, session: Session) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    default = page.input_value("#template-text")
    page.fill("#template-text", DRAFT)
    page.click("#template-save")
    page.wait_for_selector("#template-says:has-text('used from the next run on')")
    page.click("#template-revert")
    page.wait_for_selector("#template-says:has-text('Reverted')")
    assert page.input_value("#template-text") == default
    assert page.is_disabled("#template-revert")
    assert not session.suite.custom_prompts_dir.exists()


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (DRAFT + "{{ rubrik_id }}", "line 4: unknown variable"),
        ("Plan\n{% if rubric_id %}", "line 2: not a jinja template"),
        (DRAFT + "{{ 1 // (max_steps - 3) }}", "the template does not render"),
        ("No variable.", "does not use the required"),
    ],
)
def test_an_override_that_does_not_render_is_refused_with_line_and_reason(
    page: Any, session: Session, draft: str, said: str
) -> None:
    page.fill("#template-text", draft)
    page.wait_for_selector(f"#template-problems:has-text('{said}')")
    assert page.is_disabled("#template-save")
    assert page.get_attribute("#template-text", "aria-invalid") == "true"
    assert not session.suite.custom_prompts_dir.exists()


def test_an_unsaved_draft_is_not_lost_without_asking(page: Any) -> None:
    asked: list[str] = []

    def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.fill("#template-text", DRAFT)
    page.click("#template-list button >> nth=1")
    page.click("#templates header button")
    assert page.input_value("#template-text") == DRAFT
    assert len(asked) == 2


def test_a_variable_is_put_where_the_cursor_is(page: Any) -> None:
    page.fill("#template-text", "Plan: ")
    page.click("#template-variables button:text-is('rubric_id')")
    assert page.input_value("#template-text") == "Plan: {{ rubric_id }}"
