"""`compare` says of each judge how many seconds its verdicts took (rule M10)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.own_judges import MakeJudged
from tests.support.exchange import Answer
from tests.support.judge_service import JudgeService
from tests.support.model_server import ModelServer, Obedient, Request
from tests.support.suites import SuiteFiles, write_suite

RECORD = "--jrh-record-mode=once"
NAP = 1.0


def slow_one(request: Request) -> Answer:
    """An obedient model, of which the judge named slow takes its time."""
    if request.stage == "judge" and "slow" in request.model:
        time.sleep(NAP)
    return Obedient()(request)


def panel(folder: Path, server: ModelServer, *names: str) -> SuiteFiles:
    server.answer = slow_one
    judges = [
        {
            "name": name,
            "model": f"openai/{name}",
            "template": "agent_judge",
        }
        for name in names
    ]
    overrides = {"admin": {"evaluation_config": {"judges": judges}}}
    return write_suite(folder, runs=2, overrides=overrides, workers=1)


def results(files: SuiteFiles) -> list[dict[str, Any]]:
    [path] = files.folder.glob("outputs/**/case_results.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def compared(*arguments: str) -> dict[str, Any]:
    # Exit code 0 is not the point here, and 4 would leave no report.
    assert main(["compare", *arguments, "--report=compare.json"]) in (0, 1)
    read: dict[str, Any] = json.loads(Path("compare.json").read_text("utf-8"))["compare"]
    return read


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "-n 2"])
def test_a_judge_that_takes_its_time_is_shown_to_be_slower(
    pytester: pytest.Pytester,
    server: ModelServer,
    workers: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = panel(pytester.path, server, "quick", "slow")
    pytester.runpytest_inprocess(files.option, RECORD, *workers).assert_outcomes(passed=8)
    capsys.readouterr()
    seconds = compared("outputs", "--old=quick", "--new=slow")["seconds"]
    # One verdict of each of four cases.
    assert (seconds["old"]["verdicts"], seconds["new"]["verdicts"]) == (4, 4)
    assert seconds["new"]["median"] >= NAP
    assert seconds["new"]["sum"] >= 4 * NAP
    assert seconds["old"]["median"] < seconds["new"]["median"]
    told = capsys.readouterr().out
    assert "seconds a verdict" in told
    assert told.count("(median of 4)\n") == 2
    before = [result for result in results(files) if result["judge"] == "slow"]
    Path("outputs").rename("before")
    asked = server.count()
    pytester.runpytest_inprocess(files.option, *workers).assert_outcomes(passed=8)
    assert server.count() == asked
    # No recording has them, and a replay takes none.
    assert not any("seconds" in result for result in results(files))
    assert "seconds" not in compared("outputs", "--old=quick", "--new=slow")
    assert len(before) == 4
    seconds = compared("before", "outputs", "--old=slow", "--new=quick")["seconds"]
    assert seconds["old"]["verdicts"] == 4
    assert seconds["new"] == {"sum": None, "median": None, "verdicts": 0}
    assert "not measured" in capsys.readouterr().out


def test_what_waits_for_a_place_is_not_the_judges_time(
    pytester: pytest.Pytester, server: ModelServer
) -> None:
    files = panel(pytester.path, server, "slow", "slow too")
    pytester.runpytest_inprocess(files.option, RECORD).assert_outcomes(passed=8)
    seconds = sorted(second for result in results(files) for second in result["seconds"])
    assert seconds[0] >= NAP
    # One after the other: the last of eight has waited for seven naps before it was sent.
    assert seconds[4] < 4 * NAP


def test_a_judge_of_own_code_is_measured_where_it_asks(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    source = (
        "import time, requests\nURL = {url!r}\ndef judge(case):\n    time.sleep({nap})\n"
        "    a = requests.post(URL, json={{'transcript': case.transcript}}).json()\n"
        "    return a['score'], a['why']\n"
    )
    chosen = ("-k", "run-1")
    with JudgeService() as service:
        made = judged(source.format(url=service.url, nap=NAP))
        pytester.runpytest_inprocess(made.suite.option, "--jrh-judge-record-mode=once", *chosen)
    measured = [result["seconds"] for result in results(made.suite)]
    assert len(measured) == 2
    assert all(seconds[0] >= NAP for seconds in measured)
    # The code runs again, and its requests are replayed.
    pytester.runpytest_inprocess(made.suite.option, *chosen)
    assert not any("seconds" in result for result in results(made.suite))
