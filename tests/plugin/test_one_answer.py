"""One table, one answer: as `check`, and as a suite with labels (merged: `test_merge.py`)."""

import json
from pathlib import Path
from typing import Any

from pytest_jrh.__main__ import main
from tests.plugin.recorded import LABELLED, run_pytest, write_labelled

SOUND = {number: int(number % 3 == 0) for number in range(1, 49)}


def turned(*numbers: int) -> dict[int, int]:
    """The sound verdicts, but for these runs."""
    return {number: score ^ (number in numbers) for number, score in SOUND.items()}


# What each judge says now, where it was sound before, and the decision about that.
JUDGES = {
    "one_flip": (turned(1), "PASS"),
    "three_missed": (turned(3, 6, 9), "UNCLEAR"),
    "lost": (turned(*range(3, 25, 3), 1, 2, 4), "FAIL"),
}


def decided(path: Path, name: str) -> dict[str, Any]:
    """The decision and the figures of a suite in a report."""
    suite = json.loads(path.read_text("utf-8"))["suites"][name]
    gate, [figures] = suite["gate"], suite["judges"].values()
    parts = ("set", "class", "n", "word", "share", "p_value")
    sets = [{part: of_set[part] for part in parts} for of_set in gate["sets"]]
    said = {part: gate[part] for part in ("word", "headline", "passed", "beside")}
    return {**said, "sets": sets, "figures": figures["overall"]["binary"]}


def test_a_table_and_a_suite_give_one_answer(tmp_path: Path) -> None:
    runs = {f"run-{number}": (f"Order {number} is late.", label) for number, label in SOUND.items()}
    write_labelled(tmp_path, runs, "")
    options = ["--jrh-judge-record-mode=once", "--jrh-baseline=base.json"]
    before, source = "", ""
    for name, (now, _) in JUDGES.items():
        # A table does not know that these ask no model.
        judge = f"judge: {{python: judges.py:{name}, random: true}}\n"
        (tmp_path / f"{name}.yml").write_text(LABELLED + judge, encoding="utf-8")
        options.append(f"--jrh-config={name}.yml")
        code = "def {}(case):\n    return {}[int(case.run_id[4:])], 'In the table.'\n"
        before, source = before + code.format(name, SOUND), source + code.format(name, now)
    # The judges' file is written twice within the second that Python tells by.
    (tmp_path / "judges.py").write_text(before, encoding="utf-8")
    assert run_pytest(tmp_path, *options, "--jrh-update-baseline").code == 0
    (tmp_path / "judges.py").write_text(source, encoding="utf-8")
    assert run_pytest(tmp_path, *options, "--jrh-report=whole.json").code == 1
    for name, (now, word) in JUDGES.items():
        answer = decided(tmp_path / "whole.json", name)
        assert (answer["word"], answer["passed"]) == (word, word == "PASS")
        table, report = tmp_path / f"{name}.csv", tmp_path / "checked.json"
        rows = [f"run-{number},{label},{label},{now[number]}\n" for number, label in SOUND.items()]
        table.write_text("case,label,before,now\n" + "".join(rows), encoding="utf-8")
        asked = ["--verdict=now", "--baseline=before", "--one=violated", f"--report={report}"]
        # A judge whose code has changed is the same judge.
        assert main(["check", str(table), *asked, "--same-judge"]) == (word != "PASS")
        assert decided(report, name) == answer
