"""The cases that the verifier rejected are kept beside the made ones, and people label them too."""

import json
import re
import shutil
from pathlib import Path

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import json_lines, run_pytest
from tests.support.label_session import labelling_session, let_in

ROOT = Path(__file__).parents[2]
NAME = "refund_agent"
CONFIG = f"--jrh-config=inputs/configs/{NAME}.yml"
FILE = f"outputs/{NAME}/rejected_cases.jsonl"

pytestmark = pytest.mark.skipif(
    not (ROOT / "inputs/cassettes" / NAME).exists(),
    reason="the demo is not recorded: make record-demo",
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo without its labels, after one session of two workers: its verifier has rejected two
    cases."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "inputs", folder / "inputs")
    config = folder / f"inputs/configs/{NAME}.yml"
    text = re.sub(r"blind:\n  labels: .*\n", "", config.read_text("utf-8"))
    config.write_text(text, encoding="utf-8")
    assert run_pytest(folder, CONFIG, "-n", "2").code == pytest.ExitCode.OK
    return folder


@pytest.fixture
def project(ran: Path, tmp_path: Path) -> Path:
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_merge_and_a_part_change_no_byte(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (project / FILE).read_bytes()
    assert len(before.splitlines()) == 2
    (project / "outputs").rename(project / "shard")
    monkeypatch.chdir(project)
    assert main(["merge", CONFIG, "shard"]) == 0
    assert (project / FILE).read_bytes() == before
    run_pytest(project, CONFIG, "-k", "honest_about_actions")
    assert (project / FILE).read_bytes() == before


def label(project: Path, *, wrong: int = 0) -> None:
    """Label 28 made cases and both rejected ones blind, as a person who contradicts the suite's
    label of the first `wrong` made ones, and the verifier about all that it rejected."""
    folder = project / f"outputs/{NAME}"
    made = json_lines(folder / "agent_perturbations.jsonl")[:28]
    said = [record["expected"] ^ (number < wrong) for number, record in enumerate(made)]
    rejected = json_lines(project / FILE)
    said += [record["expected"] for record in rejected]
    lines = [
        {"case_digest": record["case_digest"], "reviewer": "ann", "label": label, "blind": True}
        for record, label in zip([*made, *rejected], said, strict=True)
    ]
    (folder / "review").mkdir()
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "review/labels.jsonl").write_text(text, encoding="utf-8")


def test_every_report_of_a_frozen_suite_holds_judges_against_people(project: Path) -> None:
    label(project, wrong=3)
    reports = ("--jrh-report=r.html", "--jrh-report=r.md")
    done = run_pytest(project, CONFIG, "--jrh-frozen", "-v", *reports)
    assert done.code == pytest.ExitCode.OK, done.stdout
    terminal = " ".join(done.lines)
    figure = r"Compared with people \(\d+ blind labels\): accuracy [\d.]+% \([\d.]+-"
    [shown] = re.findall(figure, terminal)
    confirmed = "The verifier confirmed wrong labels in 3 of "
    rejected = "The verifier rejected right labels in 2 of 2 cases that people labelled blind"
    markdown, page = ((project / f"r.{form}").read_text("utf-8") for form in ("md", "html"))
    for text in (terminal, markdown.replace("\\", ""), page.replace("%25", "%")):
        assert {part for part in (shown, confirmed, rejected) if part not in text} == set()


def test_rejected_cases_that_cannot_be_read_stop_a_session_with_labels(project: Path) -> None:
    label(project)
    (project / FILE).write_text('{"format": 1}\n', encoding="utf-8")
    done = run_pytest(project, CONFIG, "--jrh-frozen", "-v")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert f"{FILE}:1: case_id: is missing, so this line is not a m" in done.stderr + done.stdout


def test_a_frozen_suite_is_labelled_without_recordings_with_rejected_cases(project: Path) -> None:
    pytest.importorskip("starlette", reason="needs starlette (the extra `review`)")
    pytest.importorskip("uvicorn", reason="needs uvicorn (the extra `review`)")
    shutil.rmtree(project / "inputs" / "cassettes")
    (project / "inputs" / "data" / NAME / f"{NAME}.eval").unlink()
    asked = (CONFIG, "--jrh-frozen", "--jrh-review=blind", "-q")
    outputs = project / "outputs" / NAME
    with labelling_session(project, *asked) as (process, url), let_in(url) as ann:
        assert len(ann.rows) == 54 + 2
        for row in ann.rows[:25]:
            assert ann.give(row["key"], 1).json()["value"] == "1"
        ann.finish()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "54 errors" in said
    assert "Traceback" not in said
    labels = json_lines(outputs / "review" / "labels.jsonl")
    # What had no label then is noted as such.
    assert [bool(label.get("withdrawn")) for label in labels] == [False] * 25 + [True] * 31
