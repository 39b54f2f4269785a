"""Baseline and gate in a session: what turns red, what is tolerated, and what is written."""

from __future__ import annotations

import html
import json
import shlex
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

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
    WORKERS,
    Project,
    section,
)
from tests.plugin.recorded import PERTURBATION, POSITIVES
from tests.support.baselines import case_lines
from tests.support.faults import Fault
from tests.support.flipping import Flipping
from tests.support.fork_server import python
from tests.support.model_server import ModelServer
from tests.support.suites import write_suite


@pytest.fixture
def project(project: Project) -> Project:
    """With a limit for the laxer judge."""
    project.rules(LAX, LIMIT)
    return project


@WORKERS
def test_what_was_wrong_in_the_baseline_is_xfailed_and_the_gate_is_green(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    result = pytester.runpytest(
        project.suite.option, BASELINE, "-rx", "--junitxml=junit.xml", *workers
    )
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


@WORKERS
def test_a_laxer_prompt_fails_with_its_regressions_named(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, "-v", *workers)
    result.assert_outcomes(passed=4, xfailed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert section(result.outlines, "regressions (3):") == REGRESSED
    assert result.outlines.count(f"FAIL  {BROKEN}") == 1
    told = " ".join(result.outlines)
    assert "8 of 8 cases of the baseline compared: 3 regressions, 0 fixes." in told
    assert "      also unclear: the new prompt always says 0 (satisfied)" in result.outlines


LAXER = {"passed": 4, "xfailed": 4}
OF_BASELINE = {"passed": 7, "xfailed": 1}
# Three lost cases, each asked once, may well be chance.
CHANCE = (
    "the new prompt misses 3 of 3 violations that it found before; chance does as much in 12 of 100"
)


@pytest.mark.parametrize(
    ("config", "rules", "baseline", "outcomes", "is_green", "said"),
    [
        (LAX, "{max_drop: 0.05}", BASELINE, LAXER, True, f"UNCLEAR  {CHANCE}"),
        (LAX, "{unclear: fail}", BASELINE, LAXER, False, f"UNCLEAR  {CHANCE}"),
        (
            LAX,
            "{min_recall: 0}",
            "-rx",
            LAXER,
            True,
            "UNCLEAR  the judge always says 0 (satisfied)",
        ),
        (
            *(LAX, "{max_false_alarms: 0, min_recall: 0.3}", "-rx", LAXER, False),
            "FAIL  the judge misses 4 of 4 violations; min_recall 30% allows 2",
        ),
        (
            *(LAX, "{min_accuracy: 0.6}", "-rx", LAXER, False),
            "FAIL  the judge is wrong on 4 of 8 cases; min_accuracy 60% allows 3",
        ),
        (
            *(TINY, "{min_recall: 0.75}", "-rx", OF_BASELINE, True),
            "PASS  the judge is wrong on 1 of 8 cases, as the limits allow",
        ),
        (
            *(TINY, "{max_drop: 0.05, proof: true}", BASELINE, OF_BASELINE, True),
            "PASS  the judge is as good as before on 8 cases",
        ),
        (
            *(TINY, "{max_drop: 0.05}", "-rx", {"passed": 7, "failed": 1}, False),
            "FAIL  the judge misses 1 of 4 violations",
        ),
    ],
)
def test_the_rules_decide_and_say_why(
    pytester: pytest.Pytester,
    project: Project,
    config: str,
    rules: str,
    baseline: str,
    outcomes: dict[str, int],
    is_green: bool,
    said: str,
) -> None:
    result = pytester.runpytest(project.rules(config, rules), baseline)
    result.assert_outcomes(**outcomes)
    assert result.ret == (pytest.ExitCode.OK if is_green else pytest.ExitCode.TESTS_FAILED)
    printed = " ".join(result.stdout.str().split())
    assert " ".join(said.split()) in printed


@WORKERS
def test_what_a_decision_fails_for_failed_last(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    option = project.rules(LAX, LIMIT)
    pytester.runpytest(option, *workers).assert_outcomes(passed=4, xfailed=4)
    again = pytester.runpytest(option, "--lf", *workers)
    again.assert_outcomes(xfailed=4)
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    pytester.runpytest(f"--jrh-config={TINY}", BASELINE, *workers)
    assert project.rules(LAX, "{min_recall: 0}")
    pytester.runpytest(option, "--lf", *workers).assert_outcomes(xfailed=4)
    pytester.runpytest(option, "--lf", *workers).assert_outcomes(passed=4, xfailed=4)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("{max_regressions: 2}", "was removed: set gate.max_drop: 0"),
        ("{inconclusive: pass}", "was removed: set gate.unclear: fail or pass"),
        ("{min_compared: 0.8}", "was removed: what left the comparison is UNCLEAR"),
        ("{min_accuracy: {agent_perturbation: 0.5}}", "*min_recall*"),
    ],
)
def test_rules_of_before_are_refused_with_what_to_write_instead(
    pytester: pytest.Pytester, project: Project, rules: str, told: str
) -> None:
    result = pytester.runpytest(project.rules(TINY, rules))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told}*"])


@WORKERS
def test_a_changed_prompt_without_recordings_is_unrecorded_and_red(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    project.prompt("Overlook whatever may be overlooked.")
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, *workers)
    result.assert_outcomes(errors=8)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of 8 cases *",
            "No verdict (unrecorded): the judge's call is not recorded.*",
            "    +Overlook whatever may be overlooked.",
            "8 cases:",
            f"  {LAX}::{PERTURBATION}run-1?e1?",
            "  and 5 more",
        ]
    )
    assert result.stdout.str().count("    +Overlook whatever may be overlooked.") == 1
    # One next command, and not one a case beside it.
    assert [line for line in result.outlines if " pytest --jrh-config" in line] == [
        f"next        pytest --jrh-config={LAX} {BASELINE} --jrh-record-mode=none "
        "--jrh-judge-record-mode=new_episodes"
    ]
    result.stdout.fnmatch_lines(
        [
            "FAIL  8 cases have no verdict (8 unrecorded)",
            f"next        pytest --jrh-config={LAX} {BASELINE} --jrh-record-mode=none "
            "--jrh-judge-record-mode=new_episodes",
            "            with an API key this records 8 cases, and only what is missing",
        ]
    )


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


def test_without_a_key_what_is_recorded_is_replayed_in_a_recording_mode_too(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    result = pytester.runpytest(f"--jrh-config={LAX}", "--jrh-record-mode=new_episodes")
    result.stdout.fnmatch_lines(["*0 calls, *"])


@pytest.mark.parametrize(
    ("start", "asked"),
    [("record it: pytest ", 1), ("next        pytest ", 8)],
    ids=["one case", "all"],
)
def test_the_command_that_is_shown_records_what_is_missing_and_nothing_else(
    pytester: pytest.Pytester, project: Project, server: ModelServer, start: str, asked: int
) -> None:
    project.prompt("Overlook whatever may be overlooked.")
    red = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, "--junitxml=junit.xml")
    # What is printed is for all cases; the text of a case has its own.
    texts = [*red.outlines, *(pytester.path / "junit.xml").read_text("utf-8").splitlines()]
    command = next(html.unescape(line) for line in texts if line.startswith(start))
    command = command.partition("</error>")[0]
    recorded = pytester.runpytest(*shlex.split(command.removeprefix(start)))
    recorded.assert_outcomes(passed=asked)
    assert [request.stage for request in server.requests] == ["judge"] * asked
    again = pytester.runpytest(f"--jrh-config={LAX}", BASELINE)
    again.assert_outcomes(passed=asked, errors=8 - asked)


def test_without_gate_and_baseline_a_disagreement_fails_its_item(
    pytester: pytest.Pytester, project: Project
) -> None:
    result = pytester.runpytest(project.suite.option)
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.no_fnmatch_line("*Gate*")


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
    assert (project.folder / FILE).read_bytes() == before


def test_a_worker_that_dies_and_is_replaced_leaves_its_case_named_and_the_baseline_as_it_was(
    pytester: pytest.Pytester, project: Project
) -> None:
    pytester.makeconftest(
        """
        import os

        def pytest_runtest_setup(item):
            if "agent_positives" in item.nodeid and "run-2" in item.nodeid:
                os._exit(3)
        """
    )
    before = (project.folder / FILE).read_bytes()
    result = pytester.run(
        *python(), "-m", "pytest", project.suite.option, BASELINE, UPDATE, "-v", "-n", "2"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert section(result.outlines, "never reported (1):") == [f"{TINY}::{POSITIVES}run-2[e1]"]
    result.stdout.fnmatch_lines(
        ["The baseline baseline.json was not updated, because the session did not finish."]
    )
    assert (project.folder / FILE).read_bytes() == before


def test_what_a_marker_skips_is_not_missed(pytester: pytest.Pytester, project: Project) -> None:
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.skip("known to be odd"))
        """
    )
    result = pytester.runpytest(project.suite.option, BASELINE)
    result.assert_outcomes(passed=6, xfailed=1, skipped=1)
    assert result.ret == pytest.ExitCode.OK


def test_a_session_stopped_by_a_failure_says_what_it_did_not_reach(
    pytester: pytest.Pytester, project: Project
) -> None:
    project.prompt("Overlook whatever may be overlooked.")
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, UPDATE, "-x", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(section(result.outlines, "never reported (7):")) == 7
    result.stdout.fnmatch_lines(
        ["The baseline baseline.json was not updated, because the session did not finish."]
    )
    assert len(project.cases) == 8


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


@WORKERS
def test_an_update_takes_the_verdicts_over_and_keeps_the_reasons(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    path = project.folder / FILE
    known = project.cases["agent_perturbation::run-2[e1]"]
    text = path.read_text("utf-8")
    line = json.dumps(known)
    assert line in text
    path.write_text(
        text.replace(line, json.dumps({**known, "extra": {"reason": "the rubric is vague here"}})),
        encoding="utf-8",
    )
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, UPDATE, "-rx", *workers)
    result.stdout.fnmatch_lines(
        [
            "XFAIL * wrong in the baseline too: the rubric is vague here",
            "The baseline baseline.json now holds 8 cases: 0 added, 8 changed, 0 removed.",
        ]
    )
    cases = project.cases
    assert cases["agent_perturbation::run-2[e1]"]["extra"] == {"reason": "the rubric is vague here"}
    assert project.wrong == {f"agent_perturbation::run-{number}[e1]" for number in (1, 2, 3, 4)}
    again = pytester.runpytest(project.rules(LAX, "{max_drop: 0}"), BASELINE)
    again.assert_outcomes(passed=4, xfailed=4)
    assert again.ret == pytest.ExitCode.OK


def test_a_baselines_reason_reaches_the_terminal_as_text_alone(
    pytester: pytest.Pytester, project: Project
) -> None:
    path = project.folder / FILE
    known = project.cases["agent_perturbation::run-2[e1]"]
    reason = "\x1b[31mred ##[error]owned\n::error::owned"
    hostile = json.dumps({**known, "extra": {"reason": reason}})
    path.write_text(path.read_text("utf-8").replace(json.dumps(known), hostile), encoding="utf-8")
    result = pytester.runpytest(project.suite.option, BASELINE, "-rx")
    result.stdout.fnmatch_lines(
        ["XFAIL * wrong in the baseline too: \\x1b?31mred #\\x23?error?owned ::error::owned"]
    )


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
    # What the file says nothing of cannot get worse.
    result = pytester.runpytest(project.suite.option, "--jrh-baseline=first.json", UPDATE)
    assert len(section(result.outlines, "Not updated, because they have no verdict (2):")) == 2
    result.stdout.fnmatch_lines(["The baseline first.json now holds 6 cases: 6 added, *"])


@WORKERS
def test_a_first_baseline_is_green_and_names_what_it_accepts(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    (project.folder / FILE).unlink()
    option = project.rules(LAX, "{max_drop: 0}")
    first = pytester.runpytest(option, BASELINE, UPDATE, "-rx", "-v", *workers)
    first.assert_outcomes(passed=4, xfailed=4)
    assert first.ret == pytest.ExitCode.OK
    assert len(section(first.outlines, "accepted into the baseline, though wrong (4):")) == 4
    xfailed = [line for line in first.outlines if line.startswith("XFAIL")]
    assert sum(line.endswith("accepted into the baseline") for line in xfailed) == 4
    [report] = (project.folder / "outputs" / "lax" / "tiny").glob("*_report.json")
    gate = json.loads(report.read_text("utf-8"))["gate"]
    assert (len(gate["accepted"]), len(gate["new_wrong"])) == (4, 4)
    assert gate["word"] == "UNCLEAR"
    again = pytester.runpytest(option, BASELINE, *workers)
    again.assert_outcomes(passed=4, xfailed=4)
    assert again.ret == pytest.ExitCode.OK


def test_a_first_baseline_is_not_written_without_a_verdict(
    pytester: pytest.Pytester, project: Project
) -> None:
    project.prompt("Be yourself.")
    result = pytester.runpytest(f"--jrh-config={LAX}", "--jrh-baseline=first.json", UPDATE)
    result.stdout.fnmatch_lines(
        ["The baseline first.json was not written, because no case has a verdict."]
    )
    assert not (project.folder / "first.json").exists()


@WORKERS
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--jrh-baseline=none.json"],
            ["none.json: no such file", "*--jrh-baseline=FILE --jrh-update-baseline"],
        ),
        ([UPDATE], ["*--jrh-update-baseline: name the file to update with --jrh-baseline=FILE"]),
        ([f"--jrh-baseline={TINY}"], [f"{TINY}:1: is not valid JSON: *"]),
    ],
    ids=["missing", "no file to update", "no baseline"],
)
def test_a_mistake_about_the_gates_files_is_a_usage_error(
    pytester: pytest.Pytester,
    project: Project,
    options: list[str],
    told: list[str],
    workers: list[str],
) -> None:
    result = pytester.runpytest(project.suite.option, *options, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(told)
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_discovered_suite_without_its_baseline_is_a_collection_error(
    pytester: pytest.Pytester, project: Project
) -> None:
    shutil.move(project.suite.config, "tiny.jrh.yml")
    result = pytester.runpytest("tiny.jrh.yml", "--jrh-baseline=none.json")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting tiny.jrh.yml*", "none.json: no such file"])


def test_a_discovered_suite_is_gated_by_its_controller(
    pytester: pytest.Pytester, project: Project
) -> None:
    shutil.move(project.folder / LAX, "tiny.jrh.yml")
    project.suite.config.unlink()
    path = project.folder / FILE
    path.write_text(path.read_text("utf-8").replace('"tiny::', '"tiny.jrh::'), encoding="utf-8")
    project.suite.cassettes.rename(project.suite.cassettes.with_name("tiny.jrh"))
    result = pytester.runpytest("tiny.jrh.yml", BASELINE, "-n", "1")
    result.assert_outcomes(passed=4, xfailed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"FAIL  {BROKEN}" in result.outlines


class Scripts(HTMLParser):
    """Counts what an HTML report would run."""

    found = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        data = ("text/plain", "application/json")
        self.found += tag == "script" and dict(attrs).get("type") not in data


@WORKERS
def test_what_is_not_green_leaves_a_page_that_the_answer_names(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    page = project.folder / "outputs/lax/tiny/report.html"
    red = (f"--jrh-config={LAX}", BASELINE, *workers)
    for options in (["--collect-only"], ["--jrh-plan", "-n0"], ["--jrh-report=none"]):
        pytester.runpytest(*red, *options)
        assert not list(project.folder.glob("**/*.html"))
    lines = pytester.runpytest(*red).outlines
    assert sum(line.startswith("report      outputs/lax/tiny/report.html ") for line in lines) == 1
    assert "results: outputs/lax/tiny" not in lines
    assert list(project.folder.glob("**/*.html")) == [page]
    assert page.read_bytes().startswith(PAGE_HEAD)


def test_a_green_session_removes_the_page_of_an_earlier_one(
    pytester: pytest.Pytester, project: Project
) -> None:
    page = project.folder / "outputs/tiny/report.html"
    page.parent.mkdir(parents=True)
    page.write_bytes(PAGE_HEAD)
    pytester.runpytest(project.suite.option, BASELINE, "-k", "run-1")
    assert page.exists()
    result = pytester.runpytest(project.suite.option, BASELINE)
    assert result.ret == pytest.ExitCode.OK
    assert not page.exists()
    assert "eport: " not in result.stdout.str()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_page_that_no_session_wrote_stays(
    pytester: pytest.Pytester, project: Project, *, is_link: bool
) -> None:
    kept = project.folder / "kept.html"
    kept.write_text("<!doctype html>\n<title>Of another tool</title>", encoding="utf-8")
    for folder in ("outputs/tiny", "outputs/lax/tiny"):
        page = project.folder / folder / "report.html"
        page.parent.mkdir(parents=True)
        if is_link:
            page.symlink_to(kept)
        else:
            page.write_bytes(kept.read_bytes())
    green = pytester.runpytest(project.suite.option, BASELINE)
    assert green.ret == pytest.ExitCode.OK
    pytester.runpytest(f"--jrh-config={LAX}", BASELINE)
    for page in project.folder.glob("outputs/**/report.html"):
        assert page.read_bytes() == kept.read_bytes()
        assert page.is_symlink() == is_link


@WORKERS
def test_reports_are_written_where_they_are_asked_for(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    step = project.folder / "step.md"
    step.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    names = ("out/report.html", "out/summary.md")
    options = [f"--jrh-report={names[0]}", f"--jrh-report={names[1]}"]
    result = pytester.runpytest(f"--jrh-config={LAX}", BASELINE, *options, *workers)
    [line] = [line for line in result.outlines if line.startswith("report  ")]
    assert line.startswith(f"report      {', '.join(names)} ")
    # In place of the one that a session leaves where nothing else is asked for.
    assert not list(project.folder.glob("outputs/**/report.html"))
    page = (project.folder / names[0]).read_text("utf-8")
    parser = Scripts()
    parser.feed(page)
    assert parser.found == 1
    assert BROKEN.removeprefix("the") in page
    summary = (project.folder / names[1]).read_text("utf-8")
    assert BROKEN.replace("_", r"\_") in summary
    assert "<script>" not in summary
    assert step.read_text("utf-8") == f"before\n{summary}"


def test_a_report_that_cannot_be_written_is_told_and_the_others_are(
    pytester: pytest.Pytester, project: Project
) -> None:
    (project.folder / "taken").write_text("a file", encoding="utf-8")
    result = pytester.runpytest(
        project.suite.option, BASELINE, "--jrh-report=taken/report.html", "--jrh-report=summary.md"
    )
    result.stdout.fnmatch_lines(
        ["note: *taken/report.html was not written: *", "report      summary.md *"]
    )


def test_a_baseline_that_cannot_be_written_is_red(
    pytester: pytest.Pytester, project: Project
) -> None:
    (project.folder / "taken").write_text("a file", encoding="utf-8")
    result = pytester.runpytest(
        project.suite.option, "--jrh-baseline=taken/b.json", UPDATE, "-k", "run-1"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["note: The baseline taken/b.json was not written: *"])


def test_the_decision_is_annotated_at_the_changed_lines_of_the_prompt_on_github_alone(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [f"--jrh-config={LAX}", BASELINE, "-q"]
    pytester.runpytest(*arguments).stdout.no_fnmatch_line("::*")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.folder))
    result = pytester.runpytest(*arguments)
    [told] = [line for line in result.outlines if line.startswith("::")]
    assert told.startswith("::error file=lax/judge.md,line=1,endLine=2,title=FAIL%3A ")


def test_an_update_of_a_selection_touches_that_alone(
    pytester: pytest.Pytester, project: Project
) -> None:
    before = project.cases
    selection = ("-k", "agent_perturbation and not run-2")
    pytester.runpytest(f"--jrh-config={LAX}", BASELINE, UPDATE, *selection)
    changed = {name for name, case in project.cases.items() if case != before[name]}
    assert changed == {f"agent_perturbation::run-{number}[e1]" for number in (1, 3, 4)}


@WORKERS
def test_a_first_baseline_says_which_limits_to_add(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    arguments = ("--jrh-baseline=first.json", UPDATE, *workers)
    told = (
        "Add to the config, two cases below these figures: gate: {min_recall: 0.25, "
        "max_false_alarms: 0.5}"
    )
    part = pytester.runpytest(project.suite.option, "-k", "run-1", *arguments)
    part.stdout.no_fnmatch_line("Add to the config*")
    (project.folder / "first.json").unlink()
    assert told in pytester.runpytest(project.suite.option, *arguments).outlines
    again = pytester.runpytest(project.suite.option, *arguments)
    again.stdout.no_fnmatch_line("Add to the config*")
    (project.folder / "first.json").unlink()
    limited = pytester.runpytest(project.rules(TINY, "{min_recall: 0.5}"), *arguments)
    limited.stdout.no_fnmatch_line("Add to the config*")


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


@WORKERS
def test_a_baseline_of_other_cases_fails_and_says_how_to_update_it(
    pytester: pytest.Pytester, project: Project, workers: list[str]
) -> None:
    path = project.folder / FILE
    path.write_text(path.read_text("utf-8").replace('"tiny::', '"another::'), encoding="utf-8")
    first = pytester.runpytest(project.suite.option, BASELINE, "-k", "agent_positives", *workers)
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    why = "FAIL  nothing could be compared with the baseline: it has no case of this suite"
    assert why in first.outlines
    command = f"pytest --jrh-config={TINY} --jrh-baseline={FILE} --jrh-update-baseline"
    assert f"next        {command}" in first.outlines
    if workers:
        return
    assert (
        pytester.runpytest(*command.split()[1:], "-k", "agent_positives").ret == pytest.ExitCode.OK
    )


@WORKERS
def test_a_judge_that_flips_is_gated_on_all_of_its_repeats(
    pytester: pytest.Pytester, server: ModelServer, workers: list[str]
) -> None:
    suite = write_suite(
        pytester.path,
        runs=4,
        overrides={
            "admin": {"evaluation_config": {"repeats": 3}},
            "gate": {"max_drop": 0.3},
        },
    )
    record = [suite.option, "--jrh-record-mode=once", BASELINE]
    server.answer = Flipping(0.3, seed=2)
    first = pytester.runpytest(*record, UPDATE, *workers)
    assert "The baseline baseline.json now holds 8 cases: 8 added," in " ".join(first.outlines)
    lines = case_lines(pytester.path / FILE)
    assert [len(line["scores"]) for line in lines] == [3] * 8
    assert len({tuple(line["scores"]) for line in lines}) > 2
    replayed = pytester.runpytest(suite.option, BASELINE, *workers)
    assert "UNCLEAR  the judge is not shown to be better than chance" in replayed.outlines
    assert replayed.ret == pytest.ExitCode.OK
    server.answer = Flipping(0.3, seed=5)
    again = pytester.runpytest(
        suite.option, BASELINE, "--jrh-judge-record-mode=all", "-v", *workers
    )
    assert again.ret == pytest.ExitCode.OK
    assert any("by flicker: the judge has not changed (" in line for line in again.outlines)
    [report] = (pytester.path / "outputs" / "tiny").glob("*_report.json")
    gate = json.loads(report.read_text("utf-8"))["gate"]
    found = sum(line["scores"].count(1) for line in lines if "perturbation" in line["case_id"])
    [violated] = [of for of in gate["sets"] if of["set"] == "violated"]
    assert (violated["before"]["verdicts"], violated["before"]["wrong"]) == (12, 12 - found)
    assert violated["exchanged"] == "cases"
    assert gate["baseline"]["flickered"]
