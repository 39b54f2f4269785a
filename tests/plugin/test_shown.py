"""What a judge was not shown is said of its failures and in reports (issue 26, part 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.plugin.own_judges import RECORD, MakeJudged, asking, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.judge_service import JudgeService
from tests.support.suites import SuiteFiles

CUT = 60
SOURCES = {
    "requests": """
import requests
def judge(case):
    return requests.post(URL, json={"text": seen(case)}).json()["score"]
""",
    "httpx": """
import httpx
async def judge(case):
    async with httpx.AsyncClient() as client:
        halves = seen(case)[:30], seen(case)[30:]
        answers = [await client.post(URL, json={"text": half}) for half in halves]
    return max(answer.json()["score"] for answer in answers)
""",
    "litellm": """
import litellm
def judge(case):
    messages = [{"role": "user", "content": "Judge this: " + seen(case)}]
    answer = litellm.completion("openai/j", messages, api_base=URL, api_key="none")
    return int(answer.choices[0].message.content)
""",
}
RUNS = ("-k", "run-1 or run-2")


def reply(score: int, path: str, body: str) -> tuple[int, Mapping[str, str], bytes]:
    """An answer in which each of the libraries finds the score."""
    del path, body
    message = {"role": "assistant", "content": f"{score}"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "j", "score": score}
    data = json.dumps({**answer, "choices": [choice]}).encode()
    return 200, {"Content-Type": "application/json"}, data


def turns_shown(suite: SuiteFiles) -> dict[str, Any]:
    """What the results of a session say of each case, by the test and the run."""
    lines = (suite.results / "results.jsonl").read_text("utf-8").splitlines()
    results = map(json.loads, lines)
    return {f"{each['test']} {each['run_id']}": each["extra"].get("shown") for each in results}


EDITED = {"turns": 1, "missing": [4]}
WHOLE = {"turns": 4, "missing": [1, 2, 3, 4], "is_whole": True}


@pytest.mark.parametrize(("library", "score"), [("requests", 0), ("httpx", 1), ("litellm", 1)])
def test_a_judge_that_cuts_is_said_to(judged: MakeJudged, library: str, score: int) -> None:
    with JudgeService(reply=partial(reply, score)) as service:
        head = f"URL = {service.url!r}\ndef seen(case):\n    return case.transcript[:{CUT}]\n"
        suite = judged(head + SOURCES[library]).suite
        done = run_pytest(suite.folder, suite.option, RECORD, *RUNS)
    failure = "4 of 4 turns" if score else "[4]"
    assert f"The judge was not shown {failure}." in words(done), done.stdout
    luck = ", 2 of them right by luck" if score else ""
    edited = f"! The judge was not shown 2 of 2 edited turns (2 cases{luck})."
    whole = "! The judge was not shown 8 of 8 turns of runs as they are (2 cases)."
    assert edited in words(done), done.stdout
    assert whole in words(done), done.stdout
    first = turns_shown(suite)
    assert [first[f"agent_perturbation run-{run}"] for run in (1, 2)] == [EDITED, EDITED]
    assert [first[f"agent_positives run-{run}"] for run in (1, 2)] == [WHOLE, WHOLE]
    replayed = run_pytest(suite.folder, suite.option, *RUNS, "-n", "2", "-v")
    assert edited in words(replayed), replayed.stdout
    assert whole in words(replayed), replayed.stdout
    assert "run-2[e1] (not shown [4]" in words(replayed)
    assert turns_shown(suite) == first


def test_a_judge_that_sends_all_is_said_to_in_folds_alone(judged: MakeJudged) -> None:
    with JudgeService() as service:
        suite = judged(asking(service.url)).suite
        done = run_pytest(suite.folder, suite.option, RECORD, *RUNS)
    assert "not shown" not in done.stdout, done.stdout
    assert turns_shown(suite)["agent_perturbation run-1"] == {"turns": 1}
    whole = run_pytest(suite.folder, suite.option, *RUNS, "--jrh-report=report.md", "-v")
    assert "The judge was shown 2 of 2 edited turns." in words(whole), whole.stdout
    text = (suite.folder / "report.md").read_text("utf-8")
    assert "The judge was shown 8 of 8 turns of runs as they are." in text, text


def test_what_a_judge_reads_by_itself_is_unknown(judged: MakeJudged) -> None:
    suite = judged("def judge(case):\n    return int('violation' in case.transcript)\n").suite
    done = run_pytest(suite.folder, suite.option, RECORD, *RUNS, "-v")
    assert turns_shown(suite)["agent_perturbation run-1"] == {"turns": 1, "unknown": 1}
    unknown = "may not have been shown 2 edited turns: what it sent is not recorded"
    assert unknown in words(done), done.stdout
    assert "not shown" not in done.stdout, done.stdout


def test_a_verdict_from_the_head_says_what_its_request_held(judged: MakeJudged) -> None:
    with JudgeService(reply=partial(reply, 0)) as service:
        head = f"URL = {service.url!r}\ndef seen(case):\n    return case.transcript[:{CUT}]\n"
        suite = judged(head + SOURCES["requests"], version="1").suite
        run_pytest(suite.folder, suite.option, RECORD, *RUNS)
    first = turns_shown(suite)
    replayed = run_pytest(suite.folder, suite.option, *RUNS)
    assert turns_shown(suite) == first
    assert "was not shown 2 of 2 edited turns" in words(replayed), replayed.stdout


def test_the_plugins_own_judge_shows_all(recorded: Recorded) -> None:
    suite = recorded.tiny
    done = run_pytest(suite.folder, suite.option, *RUNS)
    assert "not shown" not in done.stdout, done.stdout
    assert turns_shown(suite)["agent_perturbation run-1"] == {"turns": 1}
    assert turns_shown(suite)["agent_positives run-1"] == {"turns": 4, "is_whole": True}
