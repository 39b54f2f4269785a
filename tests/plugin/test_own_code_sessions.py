"""Judges of own code in sessions: what a plan does of them, and shards of the hook's judge."""

from __future__ import annotations

import re
import shutil

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.own_judges import ONE, RECORD, MakeJudged
from tests.plugin.recorded import Recorded, run_pytest


def test_a_plan_runs_no_judges_code(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    made = judged("def judge(case):\n    raise ValueError\n")
    done = pytester.runpytest_inprocess(made.suite.option, RECORD, "--jrh-plan", *ONE)
    flat = " ".join(done.stdout.str().split())
    assert "(0 to 1 judge)" in flat
    assert "No judge's own code is called here: it counts as at most one call a case;" in flat


HOOK = """
from by_hook import judge

def pytest_jrh_judge(config, suite):
    return judge
"""
BY_HOOK = "def judge(case):\n    return int('ok-marker-violation' in case.transcript)\n"


def test_shards_of_a_judge_of_the_hook_are_merged_where_it_is_named(
    recorded: Recorded,
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = recorded.tiny
    pytester.makeconftest(HOOK)
    pytester.makepyfile(by_hook=BY_HOOK)
    run_pytest(suite.folder, suite.option)
    shutil.move(suite.folder / "outputs", suite.folder / "shard")
    capsys.readouterr()
    assert main(["merge", suite.option, "shard"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "is of another judge (model, prompt or parameters) than the config's" in said
    assert "A judge of the hook pytest_jrh_judge is named with --judge=MODULE:FUNCTION." in said
    monkeypatch.syspath_prepend(suite.folder)
    assert main(["merge", "-v", suite.option, "--judge=by_hook:judge", "shard"]) == 0
    assert re.search(r"\nrubric-1 +6 +100.0%", capsys.readouterr().out)
    assert main(["merge", suite.option, "--judge=by_hook:judged", "shard"]) == 4
    assert "judge is the nearest" in capsys.readouterr().err
