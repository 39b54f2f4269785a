"""Runs of pytest that people review in the browser, from the first case to the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.live import live
from tests.plugin.recorded import run_pytest
from tests.support.faults import Fault
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite

NEW_TEXT = "I looked again, and kindly correct myself: ok-marker-satisfied"
OVERRIDE = "Plan with care.\n{{ rubric_instructions }}\n{{ assistant_transcript }}\n"


def test_a_review_while_cases_are_made_decides_what_the_tests_assert_now_and_later(
    browser: Any, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, runs=4, tests=["agent_perturbation"])
    with ModelServer() as server:
        hang = Fault.hang()
        server.faults.add(fault=hang, stage="planner", when=lambda request: "1004" in request.text)
        with live(browser, suite, server) as session:
            page = session.page
            page.wait_for_selector("#list a >> nth=2")
            page.wait_for_selector("#sub:has-text('1 still to be made')")
            session.open("run-1")
            page.keyboard.press("a")
            session.wait_decision("run-1", "accepted")
            hang.release()
            page.wait_for_selector("#headline:text-is('Decided: 1 of 4')")
            session.open("run-2")
            page.fill("#note", "contradicts the tool")
            page.keyboard.press("Escape")
            page.keyboard.press("r")
            session.wait_decision("run-2", "rejected")
            session.open("run-3")
            page.keyboard.press("e")
            page.wait_for_selector(".editor")
            page.fill("#edit-0", NEW_TEXT)
            page.keyboard.press("Control+Enter")
            session.wait_decision("run-3", "edited")
            page.wait_for_selector(".editor", state="detached")
            page.select_option("#label", "0")
            page.wait_for_selector("#decision:has-text('was violated')")
            assert server.count("judge") == 0
            said = session.finish()
        assert session.process.returncode == pytest.ExitCode.OK
        assert "3 passed, 1 skipped" in said
        assert "Reviewed by people: 1 accepted, 1 edited, 1 rejected, 1 undecided." in said
        asked = [request.text for request in server.requests if request.stage == "judge"]
        assert (len(asked), sum(NEW_TEXT in text for text in asked)) == (3, 1)
        assert not any("1002" in text for text in asked)
    later = run_pytest(tmp_path, suite.option, "-rs")
    assert later.code == pytest.ExitCode.OK
    assert "3 passed, 1 skipped" in later.stdout
    assert "rejected in review: contradicts the tool" in later.stdout


def test_a_killed_session_that_is_started_again_shows_what_was_decided(
    browser: Any, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, runs=2, tests=["agent_perturbation"])
    with ModelServer() as server:
        with live(browser, suite, server) as session:
            session.page.wait_for_selector("#list a >> nth=1")
            session.open("run-2")
            session.page.keyboard.press("r")
            session.wait_decision("run-2", "rejected")
            session.process.kill()
            session.page.wait_for_selector("#banner:has-text('The session has ended')")
        made = server.count()
        with live(browser, suite, server) as session:
            session.wait_decision("run-2", "rejected")
            assert session.row("run-1").locator(".tag").count() == 0
            assert "1 passed, 1 skipped" in session.finish()
        # What had been made before the kill was recorded, so the judge alone was asked.
        assert server.count() == made + 1


def test_a_saved_template_is_used_by_the_next_run_for_its_module_and_test_alone(
    browser: Any, tmp_path: Path
) -> None:
    suite = write_suite(tmp_path, runs=1)
    other = write_suite(tmp_path, runs=1, name="other")
    both = [suite.option, other.option]
    with ModelServer() as server:
        with live(browser, suite, server, other.option) as session:
            session.page.wait_for_selector("#list a >> nth=3")
            session.save_template("^planner.*perturbation", OVERRIDE)
            assert "4 passed" in session.finish()
        assert not any("Plan with care." in request.text for request in server.requests)
        override = (
            tmp_path / "inputs" / "custom_prompts" / "tiny" / "agent_perturbation" / "planner.md"
        )
        assert override.read_text("utf-8") == OVERRIDE

        replayed = run_pytest(tmp_path, *both)
        assert "3 passed, 1 error" in replayed.stdout
        assert "No verdict (unrecorded): the planner's call is not recorded." in replayed.stdout
        assert "recorded (-) and asked for now (+):" in replayed.stdout

        before = len(server.requests)
        with live(browser, suite, server, other.option) as session:
            session.page.wait_for_selector("#list a >> nth=3")
            planned = [
                request for request in server.requests[before:] if request.stage == "planner"
            ]
            assert [request.text.count("Plan with care.") for request in planned] == [1]
            session.revert_template("^planner.*perturbation")
            assert "4 passed" in session.finish()
        assert not override.exists()
    assert "4 passed" in run_pytest(tmp_path, *both).stdout
