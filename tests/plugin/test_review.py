"""When the page of a review opens, what the terminal says of it, and Ctrl-C while it is open; and
what has become of made cases since: decisions on the disk count in every run, a frozen suite judges
a reworded rubric with its new text, and says that the labels stand for the old one."""

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.people import decisions_path
from pytest_jrh.store.records import case_digest, record_line
from tests.plugin.recorded import PERTURBATION, Done, Recorded, environment, judges, run_pytest
from tests.plugin.test_probes import PROBE, write_probed
from tests.plugin.test_stopping import PATIENCE, interrupt, read_until
from tests.support.fork_server import python
from tests.support.label_session import entered, labelling_session, news
from tests.support.ledgers import results_in
from tests.support.made_cases import case_from
from tests.support.model_server import ModelServer, Request
from tests.support.page_reader import Page, bodies, session_data
from tests.support.reviews import decide, records
from tests.support.suites import SuiteFiles, write_suite

RECORDING = "--jrh-record-mode=once"
HITL = {"admin": {"perturbation_config": {"use_HITL_process": True}}}


@contextmanager
def on_a_terminal(
    suite: SuiteFiles, server: ModelServer, *arguments: str
) -> Iterator[tuple[subprocess.Popen, int]]:
    """A session that a person started on a terminal of its own. The other end of it is given
    too."""
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


def test_judging_waits_for_finish_and_no_case_holds_another_up(tmp_path: Path) -> None:
    # The probe's cases come before those that they are derived of.
    suite = write_probed(
        tmp_path,
        tests=(PROBE, "agent_perturbation"),
        evaluation={"judges": judges("strict", "kind"), "max_workers": 1},
    )
    begun = "def pytest_runtest_logstart(location):\n    open('begun', 'w').close()\n"
    (tmp_path / "conftest.py").write_text(begun, encoding="utf-8")
    command = (suite.option, RECORDING, "--jrh-review")
    with (
        ModelServer() as server,
        labelling_session(tmp_path, *command, env=server.environment) as (process, url),
        entered(url) as client,
    ):
        read_until(process, "the session continues when you press Finish")
        # With one place for work, all are made nevertheless: who waits for a person holds none.
        server.wait_for(3, "verifier", answered=True, timeout=PATIENCE)
        assert server.count("judge") == 0
        # Nor has any item begun: no limit on its time counts while people look.
        assert not (tmp_path / "begun").exists()
        client.post("/finish", json={}).raise_for_status()
        rest, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == pytest.ExitCode.OK
        assert (server.count("judge"), server.peak_in_flight) == (12, 1)
    # Each case once, though it has two judges and a probe.
    assert "Cases that people reviewed: 3 undecided.\n" in rest


def test_on_replay_the_verdict_is_there_before_people_decide(recorded: Recorded) -> None:
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
            voice = client.get(f"/cases/{wrong['key']}").json()["voices"][-1]
            assert (voice["who"], voice["wrong"]) == ("judge", True)
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
        shown(terminal, "the session continues when you press Finish")
        server.wait_for(2, "verifier", answered=True, timeout=PATIENCE)
        interrupt(process)
        assert "Traceback" not in shown(terminal)
        assert process.wait(PATIENCE) == pytest.ExitCode.INTERRUPTED
        assert server.count("judge") == 0
    assert not list(tmp_path.rglob(".spool*"))


def test_nobody_is_waited_for_without_a_terminal(recorded: Recorded) -> None:
    folder = recorded.tiny.folder
    conftest = "from pytest_jrh.plugin import session\nsession._SECONDS_TO_OPEN = 0\n"
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    done = run_pytest(folder, recorded.tiny.option, "--jrh-review")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "nobody opened the page" in done.stdout + done.stderr


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
    assert said == ["jrh: no page is opened, because CI is set; decisions of earlier reviews apply"]


NEW_TEXT = "I changed my mind, and say so kindly: ok-marker-satisfied"
ANEW = "--jrh-judge-record-mode=new_episodes"
BASELINE = "--jrh-baseline=baseline.jsonl"
CASES = "agent_perturbations.jsonl"


@dataclass(frozen=True, slots=True)
class Frozen:
    """Two suites after a frozen session in which judges were asked anew. Of `decided`, run 1 is
    rejected, run 2 edited, and run 3 accepted after its record was changed by hand. Of `reworded`,
    whose cases a baseline has accepted, the rubric has another text since. `before` is what the
    files of cases held then, and `asked` what the session asked."""

    decided: SuiteFiles
    reworded: SuiteFiles
    before: list[bytes]
    asked: list[Request]
    done: Done

    @property
    def folder(self) -> Path:
        return self.decided.folder

    @property
    def said(self) -> str:
        return " ".join(self.done.stdout.split())

    @property
    def cases(self) -> list[bytes]:
        return [(suite.negatives / CASES).read_bytes() for suite in (self.decided, self.reworded)]


def changed_by_hand(suite: SuiteFiles, run: str) -> str:
    """Put another word into the transcript of a run; its digest from then on."""
    path = suite.negatives / CASES
    record = records(suite.negatives)[run]
    record["perturbed_messages"][0]["content"] += " Please."
    others = [line for line in path.read_bytes().splitlines() if f'"{run}"'.encode() not in line]
    path.write_bytes(b"\n".join([*others, record_line(record).rstrip(b"\n"), b""]))
    return case_digest(case_from(record_line(record)))


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    folder = tmp_path_factory.mktemp("frozen")
    keep = {"test_agent_perturbation_config": {"output": {"overwrite": False}}}
    tests = ["agent_perturbation"]
    decided = write_suite(folder, runs=3, tests=tests, overrides=keep, name="decided")
    reworded = write_suite(folder, runs=2, tests=tests, name="reworded")
    both = (decided.option, reworded.option, BASELINE)
    with ModelServer() as server:
        env = server.environment
        once = ("--jrh-record-mode=once", "--jrh-update-baseline")
        assert run_pytest(folder, *both, *once, env=env).code == pytest.ExitCode.OK
        decide(decided.negatives, "run-1", "rejected", note="contradicts the tool")
        decide(decided.negatives, "run-2", "edited", expected=0, turns={4: NEW_TEXT})
        digest = changed_by_hand(decided, "run-3")
        decide(decided.negatives, "run-3", "accepted", digest=digest)
        rubrics = reworded.data / "rubrics.yml"
        rubrics.write_text(rubrics.read_text("utf-8").replace("kindly", "curtly"), "utf-8")
        before = [(suite.negatives / CASES).read_bytes() for suite in (decided, reworded)]
        asked = server.count()
        reports = ("--jrh-report=report.html", "--jrh-report=summary.md")
        done = run_pytest(folder, *both, "--jrh-frozen", ANEW, "-v", "-rs", *reports, env=env)
        return Frozen(decided, reworded, before, server.requests[asked:], done)


def test_frozen_suites_keep_their_file(frozen: Frozen) -> None:
    assert "4 passed, 1 skipped" in frozen.said
    assert frozen.cases == frozen.before


def test_decisions_are_obeyed(frozen: Frozen) -> None:
    """A rejected case is skipped, and an edited one judged as edited, against its label."""
    assert "rejected in review: contradicts the tool" in frozen.said
    assert "Cases that people reviewed: 1 accepted, 1 edited, 1 rejected." in frozen.said
    assert [NEW_TEXT in request.text for request in frozen.asked].count(True) == 1
    judged = {result.run_id: result for result in results_in(frozen.decided.results)}
    assert (judged["run-2"].label, judged["run-2"].outcome) == (0, "agree")
    assert judged["run-1"].outcome == "no_case"


def test_a_record_that_was_changed_by_hand_is_confirmed_by_a_review(frozen: Frozen) -> None:
    results = results_in(frozen.decided.results)
    assert [result.extra.altered for result in results] == [False, False, True]
    assert "changed on the disk" not in frozen.said


def test_reworded_cases_are_judged_with_the_new_text(frozen: Frozen) -> None:
    about = [request for request in frozen.asked if "curtly" in request.text]
    assert (len(about), {request.stage for request in frozen.asked}) == (2, {"judge"})
    # The baseline's verdicts are about the old text, and are not compared.
    why = "the text, rubric or label of the case has changed"
    assert why in frozen.said


def test_every_report_names_the_reworded_cases(frozen: Frozen) -> None:
    told = "2 cases of the rubric 'rubric-1' (suite 'reworded'): the text of the rubric has changed"
    suite = "inputs/configs/reworded.yml::agent_perturbation::rubric-1"
    nodes = [f"{suite}::run-1[e1]", f"{suite}::run-2[e1]"]
    assert f"{told} since the label was given, so the label is about the" in frozen.said
    assert all(node in frozen.said for node in nodes)
    markdown = (frozen.folder / "summary.md").read_text("utf-8")
    assert "the text of the rubric has changed since" in markdown
    plain = markdown.replace("\\", "")
    assert all(f"- <code>{node}</code>" in plain for node in nodes)
    page = Page.of((frozen.folder / "report.html").read_text("utf-8"))
    doubts = session_data(page)["blocks"]["doubts"]
    named = next(block["cases"] for block in doubts if "has changed since" in str(block))
    keys = {case["key"] for case in named}
    [text] = {body["rubric"]["text"] for key, body in bodies(page).items() if key in keys}
    assert text.index("curtly") < text.index("made and labelled for:") < text.index("kindly")
    assert all(result.extra.reworded for result in results_in(frozen.reworded.results))
    [table] = frozen.reworded.results.glob("agent_perturbation_results_*.csv")
    with table.open(encoding="utf-8", newline="") as file:
        assert ["curtly" in row["rubric"] for row in csv.DictReader(file)] == [True, True]
    [path] = frozen.reworded.results.glob("*_report.json")
    cases = json.loads(path.read_text("utf-8"))["reworded"]["rubric-1"]
    assert [case.rpartition("::")[2] for case in cases] == ["run-1[e1]", "run-2[e1]"]


def test_decided_cases_are_kept_as_people_left_them(frozen: Frozen, tmp_path: Path) -> None:
    """Cases that are there stay as they are, but not over what a person wrote; and what was decided
    about a case as it was made also counts for the case that has the edits in it."""
    shutil.copytree(frozen.folder, tmp_path, dirs_exist_ok=True)
    config = tmp_path / frozen.decided.config.relative_to(frozen.folder)
    decided = replace(frozen.decided, folder=tmp_path, config=config)
    for overwrite in (False, True):
        decided.configure({"test_agent_perturbation_config": {"output": {"overwrite": overwrite}}})
        done = run_pytest(tmp_path, decided.option, "-n2", "--jrh-review", "-v")
        assert "jrh: the review page is not supported under xdist; review with -n0" in done.stdout
        kept = records(decided.negatives)
        assert kept["run-2"]["perturbed_messages"][4]["content"] == NEW_TEXT
    assert "run-1" not in kept
    assert kept["run-2"]["review"] == {"action": "edited", "note": ""}
    assert (kept["run-2"]["expected"], kept["run-2"]["human_reviewed"]) == (0, True)
    bundles = (decided.negatives / "debug").glob("*_edits_audit.json")
    assert any("edited in review" in bundle.read_text("utf-8") for bundle in bundles)


def test_decisions_that_cannot_be_read_are_a_usage_error(pytester: pytest.Pytester) -> None:
    suite = write_suite(pytester.path, runs=1, tests=["agent_perturbation"])
    path = decisions_path(suite.negatives)
    path.parent.mkdir(parents=True)
    path.write_text('{"case_id": "x"}\n', encoding="utf-8")
    result = pytester.runpytest_inprocess(suite.option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    place = path.relative_to(suite.folder)
    result.stderr.fnmatch_lines([f"*{place}:1*", "*accepted, rejected or edited*"])
