"""When the page opens, what the terminal says of it, and Ctrl-C while it is open."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.probed import PROBE, write_probed
from tests.plugin.recorded import PERTURBATION, Recorded, environment
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
    # The probe's cases come before those that they are derived of.
    suite = write_probed(
        tmp_path,
        tests=(PROBE, "agent_perturbation"),
        evaluation={"judges": judges, "max_workers": 1},
    )
    (tmp_path / "conftest.py").write_text(
        "def pytest_runtest_logstart(location):\n    open('begun', 'w').close()\n", encoding="utf-8"
    )
    with ModelServer() as server, running(suite, server, "--jrh-review") as process:
        url = address(read_until(process, "jrh: review the cases at"))
        assert "the session goes on when you press Finish" in read_until(
            process, "jrh: the session goes on"
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
            12,
            1,
        )
    # Each case once, though it has two judges and a probe.
    assert "Reviewed by people: 3 undecided.\n" in rest


def test_on_replay_the_verdict_is_there_before_people_decide_and_the_report_stays(
    recorded: Recorded,
) -> None:
    """`--lf --jrh-review` is what a red session says to do next."""
    suite, folder = recorded.tiny, recorded.tiny.folder
    report = suite.results / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("of the red session", "utf-8")
    red = [f"inputs/configs/tiny.yml::{PERTURBATION}run-{number}[e1]" for number in (2, 4)]
    failed = folder / ".pytest_cache/v/cache/lastfailed"
    failed.parent.mkdir(parents=True)
    failed.write_text(json.dumps(dict.fromkeys(red, True)), "utf-8")
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
    assert report.read_text("utf-8") == "of the red session"


def test_a_suite_that_asks_gets_the_page_on_a_terminal_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, runs=2, tests=["agent_positives"], overrides=HITL)
    with ModelServer() as server, on_a_terminal(suite, server) as (process, terminal):
        shown(terminal, "the session goes on when you press Finish")
        server.wait_for(2, "verifier", answered=True, timeout=PATIENCE)
        interrupt(process)
        assert "Traceback" not in shown(terminal)
        assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
        assert server.count("judge") == 0
    assert not list(tmp_path.rglob(".spool*"))


def test_no_page_where_ci_is_set_and_the_run_goes_on(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ini key takes what the option takes."""
    monkeypatch.setenv("CI", "true")
    suite = write_suite(pytester.path, runs=1, tests=["agent_positives"], overrides=HITL)
    pytester.makeini("[pytest]\njrh_review = blind\n")
    result = pytester.runpytest_inprocess(suite.option, RECORDING, "-q")
    result.assert_outcomes(passed=1)
    said = [line for line in result.outlines if "page" in line]
    assert said == ["jrh: no review page where CI is set; recorded decisions apply"]
