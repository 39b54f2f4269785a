"""One table, one answer: as `check`, and as a suite with labels (merged: `test_merge.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.recorded import LABELLED, run_pytest, write_labelled

SOUND = {number: int(number % 3 == 0) for number in range(1, 49)}
VIOLATED = [number for number, label in SOUND.items() if label]
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
    runs = {f"run-{number}": (f"Order {number} is late.", label) for number, label in SOUND.items()}
    write_labelled(folder, runs, "")
    for name in JUDGES:
        # A table does not know that these ask no model.
        judge = f"judge: {{python: judges.py:{name}, random: true}}\n"
        (folder / f"{name}.yml").write_text(LABELLED + judge, encoding="utf-8")
    options = [f"--jrh-config={name}.yml" for name in JUDGES]
    options += ["--jrh-judge-record-mode=once", BASELINE]
    judges = folder / "judges.py"
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
def test_a_table_and_a_suite_give_one_answer(folder: Path, tmp_path: Path, name: str) -> None:
    now, word = JUDGES[name]
    answer = decided(folder / "whole.json", name)
    assert (answer["word"], answer["passed"]) == (word, word == "PASS")

    table, report = tmp_path / f"{name}.csv", tmp_path / "checked.json"
    rows = [f"run-{number},{label},{label},{now[number]}\n" for number, label in SOUND.items()]
    table.write_text("case,label,before,now\n" + "".join(rows), encoding="utf-8")
    options = ["--verdict=now", "--baseline=before", "--one=violated", f"--report={report}"]
    # A judge whose code has changed is the same judge.
    assert main(["check", str(table), *options, "--same-judge"]) == (word != "PASS")
    assert decided(report, name) == answer
