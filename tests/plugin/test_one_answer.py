"""One table, one answer: as `check`, as a suite with labels, and merged from two shards."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.test_growing import AGENT, LABELS, write_growing
from tests.support.suites import REMOVED, SuiteFiles

RUNS = 48
VIOLATED = [number for number in range(1, RUNS + 1) if number % 3 == 0]
SOUND = {number: int(number % 3 == 0) for number in range(1, RUNS + 1)}
SOURCE = """\
VERDICTS = {verdicts}
def judge(case):
    return VERDICTS[case.run_id], "It is in the table."
"""
BASELINE = "--jrh-baseline=base.json"


def turned(*numbers: int) -> dict[int, int]:
    """The sound verdicts, but for these runs."""
    return {number: score ^ (number in numbers) for number, score in SOUND.items()}


def judged_by(suite: SuiteFiles, verdicts: dict[int, int]) -> None:
    by_run = {f"run-{number}": score for number, score in verdicts.items()}
    source = SOURCE.format(verdicts=by_run)
    (suite.config.parent / "judges.py").write_text(source, encoding="utf-8")


def decided(folder: Path) -> dict[str, Any]:
    """The decision and the figures of the one report in a folder."""
    [path] = folder.rglob("report.json")
    report = json.loads(path.read_text("utf-8"))
    [suite] = report["suites"].values()
    gate = suite["gate"]
    [figures] = suite["judges"].values()
    sets = [
        {name: of_set[name] for name in ("set", "n", "runs", "p_value", "adjusted_p_value")}
        for of_set in gate["sets"]
    ]
    said = {name: gate[name] for name in ("word", "headline", "passed", "beside")}
    return {**said, "sets": sets, "figures": figures["overall"]["binary"]}


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (turned(), "PASS"),
        (turned(1), "PASS"),
        (turned(*VIOLATED[:3]), "UNCLEAR"),
        (turned(*VIOLATED[:8], 1, 2, 4), "FAIL"),
        (dict.fromkeys(SOUND, 0), "FAIL"),
    ],
    ids=["sound", "one flip", "three missed", "lost", "constant"],
)
def test_a_table_a_suite_and_merged_shards_give_one_answer(
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    now: dict[int, int],
    word: str,
) -> None:
    # The judge's file is written twice within the second that Python tells by.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    suite, _ = write_growing(
        pytester.path,
        RUNS,
        tests=["agent_labels"],
        overrides={
            "synthetic_data_params": REMOVED,
            AGENT: {"labels": LABELS},
            "judge": {"python": "judges.py:judge"},
        },
    )
    judged_by(suite, SOUND)
    record = "--jrh-judge-record-mode=once"
    update = pytester.runpytest(suite.option, record, BASELINE, "--jrh-update-baseline")
    assert update.ret == 0
    judged_by(suite, now)
    whole = pytester.runpytest(suite.option, record, BASELINE, "--jrh-report=whole/report.json")
    shutil.rmtree("outputs")
    for shard, of_shard in (("one", "run-1"), ("two", "not run-1")):
        pytester.runpytest(suite.option, record, "-k", of_shard)
        shutil.move("outputs", shard)
    merged = main(["merge", suite.option, BASELINE, "--jrh-report=both/report.json", "one", "two"])
    rows = [f"run-{number},{number % 3 == 0:d},{SOUND[number]},{now[number]}\n" for number in SOUND]
    Path("table.csv").write_text("case,label,before,now\n" + "".join(rows), encoding="utf-8")
    table = ["check", "table.csv", "--verdict=now", "--baseline=before", "--one=violated"]
    # A judge whose code has changed is the same judge.
    table.append("--same-judge")
    checked = main([*table, "--report=checked/report.json"])
    capsys.readouterr()

    answer = decided(Path("whole"))
    assert answer["word"] == word
    assert decided(Path("both")) == answer
    assert decided(Path("checked")) == answer
    assert {int(whole.ret), merged, checked} == {int(word == "FAIL")}
