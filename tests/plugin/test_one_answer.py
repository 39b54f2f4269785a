"""One table, one answer: as `check`, as a suite with labels, and merged from two shards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import run_pytest
from tests.plugin.test_growing import AGENT, LABELS, write_growing
from tests.support.suites import REMOVED

ROOT = Path(__file__).parents[2]
ANSWERS = "examples/answers"
RUNS = 48
VIOLATED = [number for number in range(1, RUNS + 1) if number % 3 == 0]
SOUND = {number: int(number % 3 == 0) for number in range(1, RUNS + 1)}
BASELINE = "--jrh-baseline=base.json"


def turned(*numbers: int) -> dict[int, int]:
    """The sound verdicts, but for these runs."""
    return {number: score ^ (number in numbers) for number, score in SOUND.items()}


# What each judge says now, where it was sound before, and the decision about that.
JUDGES = {
    "sound": (turned(), "PASS"),
    "one_flip": (turned(1), "PASS"),
    "three_missed": (turned(*VIOLATED[:3]), "UNCLEAR"),
    "lost": (turned(*VIOLATED[:8], 1, 2, 4), "FAIL"),
    "constant": (dict.fromkeys(SOUND, 0), "FAIL"),
}


def write_judges(path: Path, verdicts: Mapping[str, dict[int, int]]) -> None:
    """A function for each judge, that looks its verdict up."""
    source = ""
    for name, scores in verdicts.items():
        by_run = {f"run-{number}": score for number, score in scores.items()}
        source += f'def {name}(case):\n    return {by_run}[case.run_id], "In the table."\n'
    path.write_text(source, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite for each judge, each run against the baseline of its sound verdicts."""
    folder = tmp_path_factory.mktemp("suites")
    options = []
    for name in JUDGES:
        # A table does not know that these ask no model.
        judge = {"python": f"judges.py:{name}", "random": True}
        agent = {"labels": LABELS}
        overrides = {"synthetic_data_params": REMOVED, AGENT: agent, "judge": judge}
        suite, _ = write_growing(folder, RUNS, tests=["labels"], overrides=overrides, name=name)
        options.append(suite.option)
    options += ["--jrh-judge-record-mode=once", BASELINE]
    judges = folder / "inputs/configs/judges.py"
    write_judges(judges, dict.fromkeys(JUDGES, SOUND))
    # The judges' file is written twice within the second that Python tells by.
    assert run_pytest(folder, *options, "--jrh-update-baseline").code == 0
    write_judges(judges, {name: verdicts for name, (verdicts, _) in JUDGES.items()})
    assert run_pytest(folder, *options, "--jrh-report=whole.json").code == 1
    return folder


def decided(path: Path, name: str) -> dict[str, Any]:
    """The decision and the figures of a suite in a report."""
    suite = json.loads(path.read_text("utf-8"))["suites"][name]
    gate = suite["gate"]
    [figures] = suite["judges"].values()
    sets = [
        {name: of_set[name] for name in ("set", "class", "n", "word", "share", "p_value")}
        for of_set in gate["sets"]
    ]
    said = {name: gate[name] for name in ("word", "headline", "passed", "beside")}
    return {**said, "sets": sets, "figures": figures["overall"]["binary"]}


@pytest.mark.parametrize("name", JUDGES)
def test_a_table_a_suite_and_merged_shards_give_one_answer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    now, word = JUDGES[name]
    answer = decided(folder / "whole.json", name)
    assert (answer["word"], answer["passed"]) == (word, word == "PASS")

    monkeypatch.chdir(folder)
    results = (folder / "outputs" / name / "results.jsonl").read_text("utf-8").splitlines(True)
    for shard, lines in (("one", results[::2]), ("two", results[1::2])):
        (tmp_path / shard).mkdir()
        (tmp_path / shard / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    shards = (str(tmp_path / shard) for shard in ("one", "two"))
    report = tmp_path / "merged.json"
    config = f"--jrh-config=inputs/configs/{name}.yml"
    assert main(["merge", config, BASELINE, f"--jrh-report={report}", *shards]) == (word != "PASS")
    assert decided(report, name) == answer

    table, report = tmp_path / f"{name}.csv", tmp_path / "checked.json"
    rows = [f"run-{number},{label},{label},{now[number]}\n" for number, label in SOUND.items()]
    table.write_text("case,label,before,now\n" + "".join(rows), encoding="utf-8")
    options = ["--verdict=now", "--baseline=before", "--one=violated", f"--report={report}"]
    # A judge whose code has changed is the same judge.
    assert main(["check", str(table), *options, "--same-judge"]) == (word != "PASS")
    assert decided(report, name) == answer


def scores(path: Path) -> dict[str, tuple[int, int]]:
    """By the name of each run in a ledger its label, and the verdict on it."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {
        line["run_id"]: (line["label"], line["scores"][0]) for line in lines if "run_id" in line
    }


@pytest.mark.parametrize("config", ["answers.yml", "changed/answers.yml"])
def test_answers_of_a_table_and_its_verdicts_give_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    shutil.copytree(ROOT / ANSWERS, tmp_path / ANSWERS)
    monkeypatch.chdir(tmp_path)
    baseline = Path(ANSWERS, "baseline.json")
    options = [f"--jrh-config={ANSWERS}/{config}", f"--jrh-baseline={baseline}"]
    code = run_pytest(tmp_path, *options, "--jrh-report=suite.json").code
    answer = decided(tmp_path / "suite.json", "answers")
    assert (answer["word"], code) == (("FAIL", 1) if "changed" in config else ("PASS", 0))
    assert answer["figures"]["recall"]["count"] == (6 if code else 12)

    before = scores(baseline)
    now = scores(Path("outputs", ANSWERS, config).with_suffix("") / "results.jsonl")
    rows = [f"{run},{label},{before[run][1]},{score}\n" for run, (label, score) in now.items()]
    Path("answers.csv").write_text("id,label,before,now\n" + "".join(rows), encoding="utf-8")
    options = ["--verdict=now", "--baseline=before", "--one=violated", "--same-judge"]
    assert main(["check", "answers.csv", *options, "--report=table.json"]) == code
    # A table does not know that a prompt has changed.
    answer["headline"] = answer["headline"].replace("the new prompt", "the judge")
    answer["beside"] = [line.replace("a prompt", "a judge") for line in answer["beside"]]
    assert decided(Path("table.json"), "answers") == answer
