"""Baseline and gate in a session: what turns red, what is tolerated, and what is written."""

from __future__ import annotations

import html
import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_jrh.reports.ending import PAGE_HEAD
from tests.plugin.gated import (
    BASELINE,
    BROKEN,
    FILE,
    LAX,
    LIMIT,
    REGRESSED,
    TINY,
    UPDATE,
    Project,
    section,
)
from tests.plugin.recorded import PERTURBATION, POSITIVES, Done, run_pytest
from tests.support.drifting import Versioned
from tests.support.faults import Fault
from tests.support.fork_server import python
from tests.support.model_server import ModelServer


@pytest.fixture
def project(project: Project) -> Project:
    """With a limit for the laxer judge."""
    project.rules(LAX, LIMIT)
    return project


def test_what_was_wrong_in_the_baseline_is_xfailed_and_the_gate_is_green(
    pytester: pytest.Pytester, project: Project
) -> None:
    result = pytester.runpytest(project.suite.option, BASELINE, "-rx", "--junitxml=junit.xml")
    result.assert_outcomes(passed=7, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "XFAIL *::rubric-1::run-2?e1? - wrong in the baseline too",
            "PASS  the judge is as good as before on 8 cases",
        ]
    )
    [skipped] = ET.parse("junit.xml").getroot().iter("skipped")
    assert skipped.get("type") == "pytest.xfail"
    assert skipped.get("message") == "wrong in the baseline too"


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that several tests read, and its folder."""

    folder: Path
    done: Done


@pytest.fixture(scope="module")
def laxer(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two workers under the laxer prompt, with reports and a step of GitHub's."""
    project = project_once.copied(tmp_path_factory.mktemp("laxer"))
    project.rules(LAX, LIMIT)
    (project.folder / "step.md").write_text("before\n", encoding="utf-8")
    options = ("--jrh-report=out/report.html", "--jrh-report=out/summary.md", "-v", "-n", "2")
    env = {"GITHUB_STEP_SUMMARY": str(project.folder / "step.md")}
    done = run_pytest(project.folder, f"--jrh-config={LAX}", BASELINE, *options, env=env)
    return Ended(project.folder, done)


def test_a_laxer_prompt_fails_with_its_regressions_named(laxer: Ended) -> None:
    assert laxer.done.code == pytest.ExitCode.TESTS_FAILED
    assert section(laxer.done.lines, "regressions (3):") == REGRESSED
    assert laxer.done.lines.count(f"FAIL  {BROKEN}") == 1
    told = " ".join(laxer.done.lines)
    assert "8 of 8 cases of the baseline compared: 3 regressions, 0 fixes." in told
    assert "      also unclear: the new prompt always says 0 (satisfied)" in laxer.done.lines


def test_reports_are_written_where_they_are_asked_for(laxer: Ended) -> None:
    [line] = [line for line in laxer.done.lines if line.startswith("report  ")]
    assert line.startswith("report      out/report.html, out/summary.md ")
    # In place of the one that a session leaves where nothing else is asked for.
    assert not list(laxer.folder.glob("outputs/**/report.html"))
    assert BROKEN.removeprefix("the") in (laxer.folder / "out/report.html").read_text("utf-8")
    summary = (laxer.folder / "out/summary.md").read_text("utf-8")
    assert BROKEN.replace("_", r"\_") in summary
    assert (laxer.folder / "step.md").read_text("utf-8") == f"before\n{summary}"


@pytest.fixture(scope="module")
def unrecorded(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A session under a prompt whose verdicts are not recorded, and a baseline's first update."""
    project = project_once.copied(tmp_path_factory.mktemp("unrecorded"))
    project.prompt("Overlook whatever may be overlooked.")
    options = ("--jrh-baseline=first.json", UPDATE, "--junitxml=junit.xml")
    return Ended(project.folder, run_pytest(project.folder, f"--jrh-config={LAX}", *options))


def test_a_changed_prompt_without_recordings_is_unrecorded_and_red(unrecorded: Ended) -> None:
    """What is the same for all is said once, and listed in part."""
    done = unrecorded.done
    assert done.code == pytest.ExitCode.TESTS_FAILED
    assert "No verdict (unrecorded): the judge's call is not recorded." in done.stdout
    assert done.lines.count("    +Overlook whatever may be overlooked.") == 1
    start = done.lines.index("8 cases:")
    assert done.lines[start + 1] == f"  {LAX}::{PERTURBATION}run-1[e1]"
    assert done.lines[start + 4] == "  and 5 more"
    named = [line for line in done.lines[start:] if line.startswith("ERROR ")]
    assert len(named) == 6
    assert named[-1] == f"ERROR {LAX} - 3 more cases, named with -v"
    assert "FAIL  8 cases have no verdict (8 unrecorded)" in done.lines


def test_junit_has_the_whole_text_of_each_case(unrecorded: Ended) -> None:
    text = html.unescape((unrecorded.folder / "junit.xml").read_text("utf-8"))
    for whole in ("No verdict (unrecorded): the judge", "    +Overlook whatever", "\nrecord it: "):
        assert text.count(whole) >= 8, whole


def test_a_first_baseline_is_not_written_without_a_verdict(unrecorded: Ended) -> None:
    said = "The baseline first.json was not written, because no case has a verdict."
    assert said in unrecorded.done.lines
    assert not (unrecorded.folder / "first.json").exists()


def test_without_a_key_a_changed_prompt_is_unrecorded_in_a_recording_mode(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    project.prompt("Overlook whatever may be overlooked.")
    result = pytester.runpytest(
        f"--jrh-config={LAX}", BASELINE, "--jrh-judge-record-mode=new_episodes"
    )
    result.assert_outcomes(errors=8)
    result.stdout.fnmatch_lines(["*no API key (OPENAI_API_KEY is not set)*", "*0 calls, *"])


def test_a_killed_worker_leaves_a_red_session_that_names_what_never_came(
    pytester: pytest.Pytester, project: Project
) -> None:
    # Both workers die, so that what was waiting for them is lost as well.
    pytester.makeconftest(
        """
        import os

        def pytest_runtest_setup(item):
            if "agent_positives" in item.nodeid:
                os._exit(3)
        """
    )
    before = (project.folder / FILE).read_bytes()
    arguments = [project.suite.option, BASELINE, UPDATE, "-v", "-n", "2", "--max-worker-restart=0"]
    result = pytester.run(*python(), "-m", "pytest", *arguments)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    [title] = [line for line in result.outlines if line.startswith("never reported")]
    missing = section(result.outlines, title)
    assert {f"{TINY}::{POSITIVES}run-{number}[e1]" for number in (1, 2, 3, 4)} <= set(missing)
    result.stdout.fnmatch_lines([f"FAIL  *{len(missing)} never reported)*"])
    said = "The baseline baseline.json was not updated, because the session did not finish."
    assert said in result.outlines
    assert (project.folder / FILE).read_bytes() == before


def test_a_failed_gate_masks_no_other_exit_code(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.makeconftest(
        """
        def pytest_runtest_teardown(item):
            if "agent_positives" in item.nodeid:
                raise KeyboardInterrupt
        """
    )
    before = project.cases
    result = pytester.run(*python(), "-m", "pytest", f"--jrh-config={LAX}", BASELINE, UPDATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    told = " ".join(result.stdout.str().split())
    assert "FAIL 3 cases have no verdict (3 never reported)" in told
    assert BROKEN.removeprefix("the") in told
    assert project.cases == before


def test_reports_and_a_baseline_that_cannot_be_written_are_told_and_the_session_is_red(
    pytester: pytest.Pytester, project: Project
) -> None:
    (project.folder / "taken").write_text("a file", encoding="utf-8")
    reports = ("--jrh-report=taken/report.html", "--jrh-report=summary.md")
    result = pytester.runpytest(
        project.suite.option, "--jrh-baseline=taken/b.json", UPDATE, *reports, "-k", "run-1"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines_random(
        [
            "note: *taken/report.html was not written: *",
            "report      summary.md *",
            "note: The baseline taken/b.json was not written: *",
        ]
    )


def test_an_update_takes_the_last_attempt(
    pytester: pytest.Pytester, project: Project, server: ModelServer
) -> None:
    before = project.cases
    server.faults.add(stage="judge", fault=Fault.status(400))
    arguments = [
        project.suite.option,
        BASELINE,
        UPDATE,
        "--jrh-judge-record-mode=all",
        "-k",
        "run-1",
    ]
    result = pytester.runpytest(*arguments, "--reruns", "1")
    assert result.parseoutcomes()["rerun"] == 1
    result.stdout.fnmatch_lines(
        ["The baseline baseline.json now holds 8 cases: 0 added, 0 changed, 0 removed."]
    )
    assert project.cases == before


def test_a_loss_that_may_be_chance_is_unclear_and_red_where_the_rules_say_so(
    pytester: pytest.Pytester, project: Project
) -> None:
    result = pytester.runpytest(project.rules(LAX, "{unclear: fail}"), BASELINE)
    result.assert_outcomes(passed=4, xfailed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["UNCLEAR  the new prompt misses 3 of 3 violations that it found before; *"]
    )


def test_what_a_decision_fails_for_failed_last(pytester: pytest.Pytester, project: Project) -> None:
    option = project.rules(LAX, LIMIT)
    pytester.runpytest(option)
    again = pytester.runpytest(option, "--lf")
    again.assert_outcomes(xfailed=4)
    assert again.ret == pytest.ExitCode.TESTS_FAILED


def test_the_command_that_is_shown_records_what_is_missing_and_nothing_else(
    pytester: pytest.Pytester, project: Project, server: ModelServer
) -> None:
    project.prompt("Overlook whatever may be overlooked.")
    red = pytester.runpytest(f"--jrh-config={LAX}", BASELINE)
    start = "next        pytest "
    [command] = [line for line in red.outlines if line.startswith(start)]
    recorded = pytester.runpytest(*shlex.split(command.removeprefix(start)))
    recorded.assert_outcomes(passed=8)
    assert [request.stage for request in server.requests] == ["judge"] * 8


def test_an_update_takes_the_verdicts_over_and_keeps_the_reasons(
    pytester: pytest.Pytester, project: Project
) -> None:
    path = project.folder / FILE
    known = project.cases["agent_perturbation::run-2[e1]"]
    reason = "\x1b[31mred ##[error]owned\n::error::owned"
    line = json.dumps({**known, "extra": {"reason": reason}})
    path.write_text(path.read_text("utf-8").replace(json.dumps(known), line), encoding="utf-8")
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, UPDATE, "-rx")
    result.stdout.fnmatch_lines(
        [
            "XFAIL * wrong in the baseline too: \\x1b?31mred #\\x23?error?owned ::error::owned",
            "The baseline baseline.json now holds 8 cases: 0 added, 8 changed, 0 removed.",
        ]
    )
    assert project.cases["agent_perturbation::run-2[e1]"]["extra"] == {"reason": reason}
    assert project.wrong == {f"agent_perturbation::run-{number}[e1]" for number in (1, 2, 3, 4)}


def test_an_update_that_would_lose_verdicts_leaves_the_baseline_as_it_is(
    pytester: pytest.Pytester, project: Project
) -> None:
    before = (project.folder / FILE).read_bytes()
    for path in project.suite.cassettes.glob("*/*/run-1.e1.judge-*.yaml"):
        path.unlink()
    result = pytester.runpytest(project.suite.option, BASELINE, UPDATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    head = (
        "The baseline baseline.json was not updated, because this session has no verdict on 2 "
        "cases of it:"
    )
    assert section(result.outlines, head) == [
        f"{TINY}::{test}run-1[e1] (unscored: unrecorded)" for test in (PERTURBATION, POSITIVES)
    ]
    assert (project.folder / FILE).read_bytes() == before


def test_a_first_baseline_is_green_and_names_what_it_accepts(
    pytester: pytest.Pytester, project: Project
) -> None:
    (project.folder / FILE).unlink()
    first = pytester.runpytest(project.suite.option, BASELINE, UPDATE, "-rx", "-v")
    first.assert_outcomes(passed=7, xfailed=1)
    assert first.ret == pytest.ExitCode.OK
    assert len(section(first.outlines, "accepted into the baseline, though wrong (1):")) == 1
    [xfailed] = [line for line in first.outlines if line.startswith("XFAIL")]
    assert xfailed.endswith("accepted into the baseline")
    assert (
        "Add to the config, two cases below these figures: gate: {min_recall: 0.25, "
        "max_false_alarms: 0.5}"
    ) in first.outlines
    [report] = (project.folder / "outputs" / "tiny").glob("*_report.json")
    gate = json.loads(report.read_text("utf-8"))["gate"]
    assert (len(gate["accepted"]), len(gate["new_wrong"])) == (1, 1)


def test_what_is_not_green_leaves_a_page_and_a_green_session_removes_it(
    pytester: pytest.Pytester, project: Project
) -> None:
    page = project.folder / "outputs/lax/tiny/report.html"
    lines = pytester.runpytest(f"--jrh-config={LAX}", BASELINE).outlines
    assert sum(line.startswith("report      outputs/lax/tiny/report.html ") for line in lines) == 1
    assert page.read_bytes().startswith(PAGE_HEAD)
    green = pytester.runpytest(project.rules(LAX, "{min_recall: 0}"))
    assert green.ret == pytest.ExitCode.OK
    assert not page.exists()


def test_a_page_that_no_session_wrote_stays(pytester: pytest.Pytester, project: Project) -> None:
    kept = project.folder / "kept.html"
    kept.write_text("<!doctype html>\n<title>Of another tool</title>", encoding="utf-8")
    green, red = (project.folder / "outputs" / name / "report.html" for name in ("tiny", LAX[:-4]))
    for page in (green, red):
        page.parent.mkdir(parents=True)
    green.write_bytes(kept.read_bytes())
    red.symlink_to(kept)
    assert pytester.runpytest(project.suite.option, BASELINE).ret == pytest.ExitCode.OK
    assert pytester.runpytest(f"--jrh-config={LAX}", BASELINE).ret == pytest.ExitCode.TESTS_FAILED
    assert green.read_bytes() == kept.read_bytes()
    assert red.is_symlink()
    assert b"Of another tool" in kept.read_bytes()


def test_a_baseline_that_is_not_there_is_a_usage_error(
    pytester: pytest.Pytester, project: Project
) -> None:
    result = pytester.runpytest(project.suite.option, "--jrh-baseline=none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["none.json: no such file", "*--jrh-baseline=FILE --jrh-update-baseline"]
    )


CHANGED = "judge: the model answered as gpt-4.1-mini-2025-04-14; the recordings have gpt-4.1-mini."


def test_a_model_that_changed_behind_its_name_is_named(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(Versioned()) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        result = pytester.runpytest(project.suite.option, "--jrh-judge-record-mode=all")
    assert server.count() == server.count("judge") == 8
    assert " ".join(result.stdout.str().split()).count(CHANGED) == 1
