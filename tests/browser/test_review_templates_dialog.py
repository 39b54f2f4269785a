"""The dialog of the agent templates in headless Chromium."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_jrh.engine.library import build_pipeline
from pytest_jrh.llm.calls import override_path
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
    page.wait_for_selector("#turns > .turn")
    page.click("text=Agent Templates")
    page.wait_for_selector("#difference:text-is('The draft is the default.')")
    return page


def test_planner_and_editor_of_each_test_are_listed_with_their_variables(page: Any) -> None:
    assert page.locator("#template option").all_inner_texts() == [
        f"{stage} agent_{test} · refunds"
        for test in ("perturbation", "positives")
        for stage in ("planner", "editor")
    ]
    assert "{{ assistant_transcript }} required" in page.inner_text("#variables")
    page.select_option("#template", index=3)
    file = "inputs/custom_prompts/refunds/agent_positives/editor.md"
    page.wait_for_selector(f"#template-file:has-text('{file}')")


def test_a_draft_is_shown_against_the_default_while_it_is_typed(page: Any) -> None:
    page.fill("#draft", DRAFT)
    page.wait_for_selector("#difference ins:has-text('care')")
    assert "You plan material" in "".join(page.locator("#difference del").all_inner_texts())


def test_what_is_saved_is_what_the_next_run_plans_with_for_this_test_alone(
    page: Any, session: Session
) -> None:
    page.fill("#draft", DRAFT)
    page.click("#templates [data-do=saveTemplate]")
    page.wait_for_selector("#template-status:has-text('used from the next run on')")
    assert page.inner_text("#template-file").endswith("planner.md, override")
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
    default = page.input_value("#draft")
    page.fill("#draft", DRAFT)
    page.click("#templates [data-do=saveTemplate]")
    page.wait_for_selector("#template-status:has-text('used from the next run on')")
    page.click("#templates [data-do=revertTemplate]")
    page.wait_for_selector("#template-status:has-text('Reverted')")
    assert page.input_value("#draft") == default
    assert page.is_disabled("#templates [data-do=revertTemplate]")
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
    page.fill("#draft", draft)
    page.wait_for_selector(f"#problems:has-text('{said}')")
    assert page.is_disabled("#templates [data-do=saveTemplate]")
    assert page.get_attribute("#draft", "aria-invalid") == "true"
    assert not session.suite.custom_prompts_dir.exists()


def test_an_unsaved_draft_is_not_lost_without_asking(page: Any) -> None:
    asked: list[str] = []

    def refuse(dialog: Any) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.fill("#draft", DRAFT)
    page.select_option("#template", index=1)
    page.click("#templates button:text-is('Close')")
    page.keyboard.press("Escape")
    assert page.input_value("#draft") == DRAFT
    assert len(asked) == 3
