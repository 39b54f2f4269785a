"""Baseline and gate in a session: what turns red, what is tolerated, and what is written."""

import html
import json
import shlex
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.plugin.gated import BASELINE, BROKEN, LAX, LIMIT, REGRESSED, TINY, UPDATE, Project, under
from tests.plugin.recorded import PERTURBATION, Done, run_pytest
from tests.support.fork_server import python
from tests.support.model_server import ModelServer

REASON = "\x1b[31mred ##[error]owned\n::error::owned"


def test_what_was_wrong_before_is_xfailed(pytester: pytest.Pytester, project: Project) -> None:
    path = project.folder / "baseline.json"
    known = project.cases["agent_perturbation::run-2[e1]"]
    line = json.dumps({**known, "extra": {"reason": REASON}})
    path.write_text(path.read_text("utf-8").replace(json.dumps(known), line), encoding="utf-8")
    result = pytester.runpytest(project.suite.option, BASELINE, "-rx", "--junitxml=junit.xml")
    # One of them is `decision`.
    result.assert_outcomes(passed=8, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
    xfail = "XFAIL * wrong in the baseline too: \\x1b?31mred #\\x23?error?owned ::error::owned"
    headline = "PASS  no verdict changed: as good as before on 8 cases (4 *"
    result.stdout.fnmatch_lines([xfail, headline])
    [skipped] = ET.parse("junit.xml").getroot().iter("skipped")
    assert skipped.get("type") == "pytest.xfail"
    assert str(skipped.get("message")).startswith("wrong in the baseline too: ")
    # What `next` opens with `--lf`, though all is green.
    assert _last_failed(Path(".pytest_cache")) == [f"{TINY}::{PERTURBATION}run-2[e1]"]


def _last_failed(cache: Path) -> list[str]:
    return [*json.loads((cache / "v/cache/lastfailed").read_text("utf-8"))]


def test_a_first_baseline_is_green_and_names_what_it_accepts(project_once: Project) -> None:
    first = project_once.first
    assert first.code == pytest.ExitCode.OK
    said = "The baseline baseline.json now has 8 cases: 8 added, 0 changed, 0 removed."
    assert said in first.lines
    assert len(under(first.lines, "accepted into the baseline, though wrong (1):")) == 1
    [xfailed] = [line for line in first.lines if line.startswith("XFAIL")]
    assert xfailed.endswith("accepted into the baseline")
    assert (
        "To allow two more mistakes of each kind than today, add to the config: gate: "
        "{min_recall: 0.25, max_false_alarms: 0.5}"
    ) in first.lines


def test_a_laxer_prompt_fails_with_its_regressions_named(project_once: Project) -> None:
    laxer = project_once.laxer
    assert laxer.code == pytest.ExitCode.TESTS_FAILED
    assert under(laxer.lines, "regressions (3):") == REGRESSED
    # In the answer, which is the failure of `decision`.
    assert laxer.lines.count(f"FAIL  {BROKEN}") == 1
    told = " ".join(laxer.lines)
    assert "are compared, with 3 regressions (newly wrong) and 0 fixes (newly right)." in told
    assert "      also: the new prompt always says 0 (satisfied)" in laxer.lines
    # What a decision fails for is what `--lf` runs again.
    failed = _last_failed(project_once.left / "cache")
    assert {*failed} >= {*REGRESSED}
    assert not any(node.endswith("::decision") for node in failed)


def test_reports_are_written_where_they_are_asked_for(project_once: Project) -> None:
    left = project_once.left
    [line] = [line for line in project_once.laxer.lines if line.startswith("report  ")]
    assert "report.html" in line
    # In place of the one that a session leaves where nothing else is asked for.
    assert not list(left.glob("outputs/**/report.html"))
    assert BROKEN.removeprefix("the") in (left / "report.html").read_text("utf-8")
    summary = (left / "summary.md").read_text("utf-8")
    assert BROKEN.replace("_", r"\_") in summary
    assert (left / "step.md").read_text("utf-8") == f"before\n{summary}"


@pytest.fixture(scope="module")
def unasked(project_once: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The folder of a session under a prompt whose verdicts are not recorded, and that session."""
    project = project_once.copied(tmp_path_factory.mktemp("unrecorded"))
    project.prompt("Overlook whatever may be overlooked.")
    options = (f"--jrh-config={LAX}", BASELINE, "--junitxml=junit.xml")
    return project.folder, run_pytest(project.folder, *options)


def test_a_changed_prompt_is_unrecorded_and_red(unasked: tuple[Path, Done]) -> None:
    """Each case has few lines, in JUnit too."""
    folder, done = unasked
    assert done.code == pytest.ExitCode.TESTS_FAILED
    why = "No verdict (unrecorded): the judge's call is not recorded."
    assert sum(line.startswith(why) for line in done.lines) == 1
    assert done.lines.count("    (-v shows the whole text)") == 1
    assert done.lines.count("No verdict (unrecorded), as above.") == 7
    # What the pull request changed is said, though nothing could be compared.
    assert any(line.startswith("changed in judge.md: ") for line in done.lines)
    named = [line for line in done.lines if line.startswith("ERROR ")]
    assert len(named) == 8
    assert any("is not recorded, so 8 cases have no verdict" in line for line in done.lines)
    text = html.unescape((folder / "junit.xml").read_text("utf-8"))
    assert text.count("(-v shows the whole text)") == 1
    assert "Overlook whatever" not in text


def test_the_shown_command_records(unasked: tuple[Path, Done], server: ModelServer) -> None:
    folder, done = unasked
    start = "next        pytest "
    [command] = [line for line in done.lines if line.startswith(start)]
    arguments = shlex.split(command.removeprefix(start))
    recorded = run_pytest(folder, *arguments, env=server.environment)
    assert recorded.code == pytest.ExitCode.OK
    assert "9 passed" in recorded.lines[-1]
    assert [request.stage for request in server.requests] == ["judge"] * 8


def test_a_failed_gate_masks_no_exit_code(pytester: pytest.Pytester, project: Project) -> None:
    pytester.makeconftest(
        """
        def pytest_runtest_teardown(item):
            if "agent_positives" in item.nodeid:
                raise KeyboardInterrupt
        """
    )
    project.rules(LAX, LIMIT)
    before = project.cases
    result = pytester.run(*python(), "-m", "pytest", f"--jrh-config={LAX}", BASELINE, UPDATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    told = " ".join(result.stdout.str().split())
    assert "FAIL 3 cases have no verdict (3 never reported)" in told
    assert "was not updated, because the session did not finish" in told
    assert project.cases == before


def test_a_missing_baseline_is_a_usage_error(pytester: pytest.Pytester, project: Project) -> None:
    result = pytester.runpytest(project.suite.option, "--jrh-baseline=none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["none.json: no such file", "*=FILE --jrh-update-baseline"])
    for cassette in pytester.path.rglob("*.judge-*.yaml"):
        cassette.unlink()
    result = pytester.runpytest(project.suite.option, "--jrh-baseline=none.json", UPDATE)
    result.stdout.fnmatch_lines([f"next*=new_episodes --jrh-baseline=none.json {UPDATE}"])


SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "run-2" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="too hard"))
"""


def test_what_a_conftest_skips_is_left_out(pytester: pytest.Pytester, project: Project) -> None:
    pytester.makeconftest(SKIPS)
    with_limits = project.rules(TINY, "{min_recall: 0.1}")
    done = pytester.runpytest(with_limits)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["UNCLEAR  judged 6 of 8 cases, and skipped 2"])
    done.assert_outcomes(failed=1, passed=6, skipped=2)
    project.rules(TINY, "{}")
    assert pytester.runpytest(with_limits, BASELINE, UPDATE).ret == pytest.ExitCode.OK
    assert not [case for case in project.cases if "run-2" in case]


def test_a_failed_decision_is_not_run_again(pytester: pytest.Pytester, project: Project) -> None:
    done = pytester.runpytest(project.rules(TINY, "{min_recall: 1}"), "--reruns=1")
    done.assert_outcomes(failed=1, passed=7, xfailed=1)
    done.stdout.no_fnmatch_line("=* rerun in *")


def test_a_pull_request_that_changes_its_baseline_says_what_it_accepts(
    pytester: pytest.Pytester, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "the base")
    laxer = f"--jrh-config={LAX}"
    assert pytester.runpytest(laxer, BASELINE, UPDATE).ret == pytest.ExitCode.OK
    git("commit", "-q", "-a", "-m", "an update")
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", "HEAD~1")
    done = pytester.runpytest(laxer, BASELINE)
    headline = "UNCLEAR  this change updates the baseline: it accepts 3 newly missed; *"
    done.stdout.fnmatch_lines([headline])
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", "0" * 40)
    done = pytester.runpytest(laxer, BASELINE)
    done.stdout.fnmatch_lines(["note: whether this pull request changes the baseline is unknown*"])
