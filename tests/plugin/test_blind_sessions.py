"""Sessions in which people label cases blind: frozen, replayed, without a judge, and refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plugin.recorded import run_pytest
from tests.support.label_session import labelling_session, let_in

pytest.importorskip("starlette", reason="needs starlette (the extra `review`)")
pytest.importorskip("uvicorn", reason="needs uvicorn (the extra `review`)")

ROOT = Path(__file__).parents[2]
DEMO = "--jrh-config=inputs/configs/refund_agent.yml"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_frozen_suite_is_labelled_without_recordings_rejected_cases_included(
    tmp_path: Path,
) -> None:
    shutil.copytree(ROOT / "inputs", tmp_path / "inputs")
    assert run_pytest(tmp_path, DEMO).code == pytest.ExitCode.OK
    shutil.rmtree(tmp_path / "inputs" / "cassettes")
    (tmp_path / "inputs" / "data" / "refund_agent" / "refund_agent.eval").unlink()
    # The labels that the demo comes with.
    (tmp_path / "inputs" / "data" / "refund_agent" / "blind_labels.jsonl").write_text("", "utf-8")
    asked = (DEMO, "--jrh-frozen", "--jrh-review=blind", "-q")
    outputs = tmp_path / "outputs" / "refund_agent"
    with labelling_session(tmp_path, *asked) as (process, url), let_in(url) as ann:
        assert len(ann.rows) == 54 + 2
        for row in ann.rows[:25]:
            assert ann.give(row["key"], 1).json()["value"] == "1"
        ann.finish()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "54 errors" in said
    assert "Traceback" not in said
    labels = lines(outputs / "review" / "labels.jsonl")
    # What had no label then is noted as such.
    assert [bool(label.get("withdrawn")) for label in labels] == [False] * 25 + [True] * 31
    # The next session goes on, and another one with the judge's recordings uses the labels.
    with (
        labelling_session(tmp_path, *asked, "--jrh-reviewer=ann") as (process, url),
        let_in(url) as ann,
    ):
        assert [row["value"] for row in ann.rows].count("") == 31
        process.kill()
    shutil.copytree(ROOT / "inputs", tmp_path / "inputs", dirs_exist_ok=True)
    done = run_pytest(tmp_path, DEMO)
    said = " ".join(done.stdout.split())
    assert "people checked 30" in said, done.stdout
    assert "next read the labels that people found wrong" in said, done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_two_people_label_in_clones_comes_together(tmp_path: Path) -> None:
    def git(folder: Path, *arguments: str) -> None:
        person = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)

    clones = {"ann": tmp_path / "first", "ben": tmp_path / "second"}
    shutil.copytree(ROOT / "inputs", clones["ann"] / "inputs")
    (clones["ann"] / "inputs" / "data" / "refund_agent" / "blind_labels.jsonl").write_text("")
    config = clones["ann"] / "inputs" / "configs" / "refund_agent.yml"
    blind = "\nblind:\n  sample: 12\n  overlap: 1.0\n"
    config.write_text(config.read_text("utf-8").replace("\nblind:\n", blind), "utf-8")
    git(clones["ann"], "init", "-q", "-b", "main")
    git(clones["ann"], "add", "-f", ".")
    git(clones["ann"], "commit", "-qm", "begin")
    git(tmp_path, "clone", "-q", "first", "second")
    for name, clone in clones.items():
        with (
            labelling_session(clone, DEMO, "--jrh-review=blind") as (process, url),
            let_in(url, name) as reviewer,
        ):
            # Ann leaves one without a label.
            for row in reviewer.rows[name == "ann" :]:
                assert reviewer.give(row["key"], 1).status_code == 200
            reviewer.finish()
            process.communicate(timeout=60)
        git(clone, "add", "-f", "outputs/refund_agent/review")
        git(clone, "commit", "-qm", f"labels of {name}")
    git(clones["ann"], "pull", "-q", "--no-rebase", "--no-edit", "../second", "main")
    labels = lines(clones["ann"] / "outputs" / "refund_agent" / "review" / "labels.jsonl")
    digests_by_name = {
        name: {label["case_digest"] for label in labels if label["reviewer"] == name}
        for name in clones
    }
    assert digests_by_name["ann"] == digests_by_name["ben"]
    assert [label["reviewer"] for label in labels if label.get("withdrawn")] == ["ann"]
    # Ann has one to do.
    with (
        labelling_session(clones["ann"], DEMO, "--jrh-review=blind") as (process, url),
        let_in(url) as reviewer,
    ):
        assert [row["value"] for row in reviewer.rows].count("") == 1
        process.kill()
