"""When the page opens, what the terminal says of it, and Ctrl-C while it is open."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.review import serving as review_server
from tests.plugin.recorded import Recorded, environment, run_pytest
from tests.plugin.test_stopping import PATIENCE, interrupt, read_until, running
from tests.support.fork_server import python
from tests.support.label_session import entered, labelling_session, news
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite

RECORDING = "--jrh-record-mode=once"
HITL = {"admin": {"perturbation_config": {"use_HITL_process": True}}}


@contextmanager
def on_a_terminal(
    suite: SuiteFiles, server: ModelServer, *arguments: str
) -> Iterator[tuple[subprocess.Popen, int]]:
    """A session that a person started on a terminal of its own.

    The other end of it is given too.
    """
    ours, theirs = os.openpty()
    command = [*python(), "-m", "pytest", suite.option, RECORDING, *arguments]
    with subprocess.Popen(
        command,
        cwd=suite.folder,
        env=environment({**server.environment, "TERM": "xterm"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            if process.poll() is None:
                process.kill()
            os.close(ours)


def shown(terminal: int, until: str = "") -> str:
    """What is shown on the terminal until this text comes, or until the session ends."""
    seen = ""
    while not until or until not in seen:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # as Linux says that nobody is at the other end
            break
        seen += part.decode("utf-8", "replace")
    assert until in seen, seen
    return seen


def press_finish(url: str) -> None:
    """Press Finish as a browser would that was let in by the address."""
    with entered(url) as client:
        client.post("/finish", json={}).raise_for_status()


def address(said: str) -> str:
    [url] = re.findall(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+", said)
    return str(url)


def test_judging_waits_for_finish_and_no_case_holds_another_up(tmp_path: Path) -> None:
    judges = [
        {"name": name, "model": f"openai/{name}", "template": "agent_judge"}
        for name in ("strict", "kind")
    ]
    panel = {"admin": {"evaluation_config": {"judges": judges}}}
    suite = write_suite(tmp_path, runs=3, tests=["agent_positives"], overrides=panel, workers=1)
    (tmp_path / "conftest.py").write_text(
        "def pytest_runtest_logstart(location):\n    open('begun', 'w').close()\n", encoding="utf-8"
    )
    with (
        ModelServer() as server,
        running(suite, server, "--jrh-review") as process,
    ):
        url = address(read_until(process, "jrh: review the cases at"))
        assert "the run goes on when you press Finish" in read_until(
            process, "jrh: the run goes on"
        )
        # With one place for work, all are made nevertheless: who waits for a person holds none.
        server.wait_for(3, "verifier", answered=True, timeout=PATIENCE)
        assert server.count("judge") == 0
        # Nor has any item begun: no limit on its time counts while people look.
        assert not (tmp_path / "begun").exists()
        press_finish(url)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert (process.returncode, server.count("judge"), server.peak_in_flight) == (
            pytest.ExitCode.OK,
            6,
            1,
        )
    # Each case once, though it has two judges.
    assert "Reviewed by people: 3 undecided.\n" in rest


def test_on_replay_the_verdict_is_there_before_people_decide_and_the_report_stays(
    recorded: Recorded,
) -> None:
    """`--lf --jrh-review` is what a red session says to do next."""
    suite, folder = recorded.tiny, recorded.tiny.folder
    assert run_pytest(folder, suite.option).code == pytest.ExitCode.TESTS_FAILED
    [report] = folder.rglob("report.html")
    before = report.read_bytes()
    with labelling_session(folder, suite.option, "--lf", "--jrh-review") as (process, url):
        with entered(url) as client:
            rows: dict[str, Any] = {}
            for piece in news(client):
                rows |= {row["run"]: row for row in piece["rows"]}
                if len(rows) == 2 and rows["run-2"]["kind"] == "missed":
                    break
            # Those alone that were red: one is wrong, and one judge's recording is gone.
            assert rows.keys() == {"run-2", "run-4"}
            wrong = rows["run-2"]
            voices = client.get(f"/cases/{wrong['key']}").json()["voices"]
            assert [(voice["who"], voice["wrong"]) for voice in voices][-1] == ("judge", True)
            decision = {"digest": wrong["digest"], "action": "rejected", "note": "no violation"}
            client.post(f"/cases/{wrong['key']}/decision", json=decision).raise_for_status()
            client.post("/finish", json={}).raise_for_status()
        said, _ = process.communicate(timeout=PATIENCE)
    # What is decided is obeyed at once.
    assert "1 skipped, 6 deselected, 1 error" in said
    assert report.read_bytes() == before
    assert run_pytest(folder, suite.option, "-rs").stdout.count("rejected in review: no viol") == 1


def test_a_suite_that_asks_for_the_page_gets_it_on_a_terminal(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=2, tests=["agent_positives"], overrides=HITL)
    with ModelServer() as server, on_a_terminal(suite, server) as (process, terminal):
        url = address(shown(terminal, "the run goes on when you press Finish"))
        server.wait_for(2, "verifier", answered=True, timeout=PATIENCE)
        press_finish(url)
        assert "2 passed" in shown(terminal)
        assert process.wait(PATIENCE) == pytest.ExitCode.OK
        assert server.count("judge") == 2


def test_ctrl_c_while_the_page_is_open_ends_cleanly(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=2, tests=["agent_positives"])
    with ModelServer() as server, running(suite, server, "--jrh-review") as process:
        read_until(process, "jrh: the run goes on")
        server.wait_for(2, "verifier", answered=True, timeout=PATIENCE)
        interrupt(process)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == pytest.ExitCode.INTERRUPTED
        assert server.count("judge") == 0
    assert "Traceback" not in rest
    assert not list(tmp_path.rglob(".spool*"))


def test_no_page_where_ci_is_set_and_the_run_goes_on(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"], overrides=HITL)
    result = pytester.runpytest_inprocess(suite.option, RECORDING, "--jrh-review", "-q")
    result.assert_outcomes(passed=1)
    said = [line for line in result.outlines if "page" in line]
    assert said == ["jrh: no review page where CI is set; recorded decisions apply"]


def test_without_the_extra_the_option_is_a_usage_error_that_says_what_to_install(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"])
    monkeypatch.setattr(review_server, "find_spec", lambda _name: None)
    result = pytester.runpytest_inprocess(suite.option, "--jrh-review")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --jrh-review: *starlette and uvicorn*", "*pip install 'pytest-jrh[[]review]'*"]
    )
