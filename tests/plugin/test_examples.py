"""The worked examples, as far as no golden session has them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.conversations import from_log
from examples.probes import shop
from examples.probes.judges import PLANTED
from examples.small_judge.replay import RESULTS, outcomes
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.probes.swap import SWAP
from tests.plugin.recorded import run_pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/__snapshots__/test_sessions"
HTTP = "examples/http_judge"
SMALL = "examples/small_judge"
ANSWERS = "examples/answers"
LABELLED = "labels      25 by people (authors)\n"
NEEDED = {".csv", ".json", ".md", ".yaml", ".yml"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the judges' examples need: neither the log nor the demo's recordings."""
    for name in (HTTP, SMALL):
        shutil.copytree(ROOT / name, tmp_path / name)
    rubrics = "inputs/data/refund_agent/rubrics.yml"
    (tmp_path / rubrics).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / rubrics, tmp_path / rubrics)
    return tmp_path


@contextlib.contextmanager
def serving(project: Path) -> Iterator[int]:
    """The example's service, started as its README says, on the port that is given."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "examples.http_judge.service", str(port)]
    with subprocess.Popen(command, cwd=project) as service:
        try:
            deadline = time.monotonic() + 20
            while service.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            service.kill()


def test_the_service_is_asked_anew_as_its_readme_says(project: Path) -> None:
    judges = project / HTTP / "judges.py"
    with serving(project) as port:
        judges.write_text(judges.read_text("utf-8").replace("8799", str(port)), "utf-8")
        done = run_pytest(
            project, f"--jrh-config={HTTP}/refund_agent.yml", "--tb=no", "--jrh-record-mode=all"
        )
    assert "17 passed, 3 xfailed" in done.lines[-1], done.stdout
    assert any("  19 calls, " in line for line in done.lines), done.stdout


def test_the_verdicts_of_a_small_model_replay_red_and_are_said_to_be_no_better_than_chance(
    project: Path,
) -> None:
    done = run_pytest(project, f"--jrh-config={SMALL}/refund_agent.yml", "--tb=no")
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert outcomes(project / RESULTS) == {"agree": 32, "disagree": 22}
    assert "also unclear: the judge is not shown to be better than chance" in "\n".join(done.lines)
    assert any("  0 calls, " in line for line in done.lines)


def test_a_kinder_prompt_for_answers_fails_and_all_reports_say_whose_the_labels_are(
    tmp_path: Path,
) -> None:
    shutil.copytree(ROOT / ANSWERS, tmp_path / ANSWERS)
    reports = [tmp_path / f"report.{form}" for form in ("html", "md", "json")]
    done = run_pytest(
        tmp_path,
        f"--jrh-config={ANSWERS}/changed/answers.yml",
        f"--jrh-baseline={ANSWERS}/baseline.json",
        *(f"--jrh-report={report}" for report in reports),
    )
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    readme = (ROOT / ANSWERS / "README.md").read_text("utf-8")
    answer = readme.partition("FAIL ")[2].partition("read first")[0]
    assert f"FAIL {answer}read first" in done.stdout
    assert LABELLED in readme
    assert LABELLED in done.stdout
    page, comment, values = (report.read_text("utf-8") for report in reports)
    assert "25 by people (authors)" in page
    assert "25 by people (authors)" in comment
    assert json.loads(values)["suites"]["answers"]["annotators"] == ["authors"]


def test_answers_and_those_that_were_made_of_them_replay(tmp_path: Path) -> None:
    shutil.copytree(ROOT / ANSWERS, tmp_path / ANSWERS)
    done = run_pytest(tmp_path, f"--jrh-config={ANSWERS}/made.yml", "--jrh-record-mode=none")
    assert done.code == pytest.ExitCode.OK, done.stdout
    assert "labels      3 by openai/gpt-4.1, 3 by people (authors)" in done.lines


def test_the_recordings_of_answers_are_small_and_have_no_label() -> None:
    # What a session needs of them; the server's texts are for who records.
    needed = [path for path in (ROOT / ANSWERS).rglob("*") if path.suffix in NEEDED]
    size = sum(path.stat().st_size for path in needed if path.stem not in ("README", "script"))
    assert size <= 150_000
    cassettes = [path.read_text("utf-8") for path in needed if path.name == "cassette.yaml"]
    assert len(cassettes) == 2
    for word in ("satisfied", "violated", "authors"):
        assert not any(word in text for text in cassettes)


def test_each_planted_defect_is_found_by_its_own_probe_and_by_no_other() -> None:
    printed = (GOLDEN / "probes.summary.txt").read_text("utf-8").replace("\\", "")
    head, *rows = printed.partition("| verdicts turned |")[2].partition("\n\n")[0].splitlines()
    probes = [title.strip().replace(" ", "_") for title in head.split("|")[:-1]]
    findings = {}
    for row in rows[1:]:
        judge, *counts = re.findall(r"<code>(\w+)</code>|(\d+) of \d+", row)
        turned = [probe for probe, (_, count) in zip(probes, counts, strict=True) if count != "0"]
        findings[judge[0]] = turned
    assert next(iter(findings)) == "obedient", "the worst comes first"
    planted = {judge.__name__: [probe] for judge, probe in PLANTED.items() if probe is not None}
    assert {judge: turned for judge, turned in findings.items() if turned} == planted
    # That of pairs is planted in examples/pairs.
    found = {probe for turned in planted.values() for probe in turned}
    assert found == set(PROBES) - {SWAP.name}


@pytest.mark.parametrize(
    ("write", "kept"),
    [(shop.write_conversations, shop.DEFAULT), (from_log.write_conversations, from_log.DEFAULT)],
    ids=["of the shop", "of the log"],
)
def test_the_conversations_are_those_that_their_program_writes(
    tmp_path: Path, write: Callable[[Path], object], kept: Path
) -> None:
    write(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == kept.read_bytes()
