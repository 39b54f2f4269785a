"""A suite on a scale of 101 levels: what is near its label is right, in every place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.recorded import run_pytest
from tests.support.ledgers import results_in

CONFIG = """suite: {{log: runs.jsonl, rubrics: rubrics.yml{more}}}
cases: {{kinds: [labels]}}
rand: {{scale: [0, 100]}}
labels: {{path: labels.csv}}
judge: {{python: judges.py:level}}
"""
BASELINE = "--jrh-baseline=base.jsonl"
# The labels are all 50.
SCORES = (50, 51, 48, 47, 60)
JUDGE = f"def level(case):\n    return {SCORES}[int(case.run_id[-1])], 'Looked at it.'\n"


def configured(folder: Path, more: str = "") -> str:
    config = folder / "wide.yml"
    config.write_text(CONFIG.format(more=more), encoding="utf-8")
    return f"--jrh-config={config}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs, labels = "", "run_id,label\n"
    for number in range(len(SCORES)):
        messages = [
            {"role": "user", "content": f"Where is order {number}?"},
            {"role": "assistant", "content": f"Order {number} has left."},
        ]
        runs += json.dumps({"id": f"run-{number}", "messages": messages}) + "\n"
        labels += f"run-{number},50\n"
    rubrics = "- {id: tone, instructions: Is it kind?}\n"
    for name, text in {"runs.jsonl": runs, "labels.csv": labels, "rubrics.yml": rubrics}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "judges.py").write_text(JUDGE, encoding="utf-8")
    return tmp_path


def test_right_is_within_a_fiftieth_of_the_scale(folder: Path) -> None:
    done = run_pytest(folder, configured(folder), "-v", BASELINE, "--jrh-update-baseline")
    assert "4 passed, 2 xfailed" in done.stdout
    assert "right means within 2 levels of the label" in done.stdout
    assert "judge gave" not in done.stdout
    line = next(line for line in done.lines if line.startswith("tone "))
    assert line.split()[:4] == ["tone", "5", "20.0%", "60.0%"]
    results = results_in(folder / "outputs/wide.yml")
    assert [result.outcome for result in results] == ["agree"] * 3 + ["disagree"] * 2
    assert {result.within for result in results} == {2}
    # The baseline is read by what is right now: nothing has changed but that.
    again = run_pytest(folder, configured(folder, ", within: 3"), BASELINE)
    assert again.code == 0
    assert "right means within 3 levels of the label" in again.stdout
    assert "5 passed, 1 xfailed" in again.stdout
    assert "fixes" not in again.stdout
