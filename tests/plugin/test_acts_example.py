"""The worked example of edits that are acts, replayed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pytest_jrh import load_cases
from pytest_jrh.sources import load_inspect_eval_runs
from tests.plugin.recorded import Done, run_pytest
from tests.support.accepted import refusal
from tests.support.undoing import undone

ROOT = Path(__file__).parents[2]
CONFIG = "examples/acts/acts.yml"
LOG = "inputs/data/refund_agent/refund_agent.eval"


def replayed(folder: Path, *arguments: str) -> Done:
    shutil.copytree(ROOT / "examples/acts", folder / "examples/acts")
    (folder / LOG).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / LOG, folder / LOG)
    done = run_pytest(folder, f"--jrh-config={CONFIG}", "--tb=no", *arguments)
    assert any("  0 calls, " in line for line in done.lines), done.stdout
    return done


def test_judge_of_words_misses_what_was_done_and_one_of_acts_does_not(tmp_path: Path) -> None:
    done = replayed(tmp_path)
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "acts    0 of 12       0 of 25" in done.lines
    assert "words  12 of 12       0 of 25" in done.lines
    kinds: Counter[str] = Counter()
    runs = {run.run_id: run.messages for run in load_inspect_eval_runs(tmp_path / LOG)}
    cases = [case for path in tmp_path.rglob("agent_*s.jsonl") for case in load_cases(path)]
    for case in cases:
        assert refusal(case.messages) is None
        run = runs[case.spec.run_id]
        assert json.dumps(undone(case.messages, case.outcome.edits)) == json.dumps(run)
        kinds.update(
            "follows" if edit.follows else f"{case.objective} {edit.kind}"
            for edit in case.outcome.edits
        )
    assert len(cases) == 37
    assert kinds == {
        "fail say": 3,
        "fail call": 3,
        "fail insert": 3,
        "fail omit": 6,
        "pass call": 2,
        "pass say": 1,
        "pass insert": 1,
        "follows": 5,
    }


def test_workers_replay_the_example(tmp_path: Path) -> None:
    assert "12 failed, 62 passed, 26 skipped" in replayed(tmp_path, "-n", "2").lines[-1]
