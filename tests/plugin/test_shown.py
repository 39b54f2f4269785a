"""What a judge was not shown is said of its failures and in reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from pytest_jrh.core.results import ShownTurns
from tests.plugin.own_judges import RECORD, judged_suite, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.judge_service import JudgeService
from tests.support.ledgers import results_in
from tests.support.model_server import ModelServer
from tests.support.obedient import VIOLATION
from tests.support.suites import run, write_suite

SOURCE = """
import httpx
import litellm
import requests


def cuts(case):
    return requests.post(f"{URL}/missed", json={"text": case.transcript[:60]}).json()["score"]


async def cuts_in_halves(case):
    async with httpx.AsyncClient() as client:
        halves = case.transcript[:30], case.transcript[30:60]
        answers = [await client.post(URL, json={"text": half}) for half in halves]
    return max(answer.json()["score"] for answer in answers)


def cuts_a_prompt(case):
    messages = [{"role": "user", "content": "Judge this: " + case.transcript[:60]}]
    answer = litellm.completion("openai/j", messages, api_base=URL, api_key="none")
    return int(answer.choices[0].message.content)


def sends_all(case):
    return requests.post(URL, json={"text": case.transcript}).json()["score"]


def reads_alone(case):
    return int("violation" in case.transcript)
"""
CUTTING = ("cuts", "cuts_in_halves", "cuts_a_prompt", "cuts_with_version")
RUNS = ("-k", "run-1 or run-2")


def reply(path: str, body: str) -> tuple[int, Mapping[str, str], bytes]:
    """An answer in which each of the libraries finds the score."""
    del body
    score = 0 if "missed" in path else 1
    message = {"role": "assistant", "content": f"{score}"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "j", "score": score}
    data = json.dumps({**answer, "choices": [choice]}).encode()
    return 200, {"Content-Type": "application/json"}, data


Turns: TypeAlias = "dict[tuple[str, str, str], ShownTurns | None]"


@pytest.fixture(scope="module")
def sessions(
    recorded_once: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, Turns]]:
    """What sessions of a panel of judges print, recorded and then replayed by two workers, and what
    their results say of each case by judge, test and run."""
    suite = recorded_once.copied(tmp_path_factory.mktemp("shown")).tiny
    names = (*CUTTING[:3], "sends_all", "reads_alone")
    judges = [{"name": name, "python": f"judges.py:{name}"} for name in names]
    # Its verdict is answered from the head of its recording.
    judges.append({"name": "cuts_with_version", "python": "judges.py:cuts", "version": "1"})

    def session(*arguments: str) -> tuple[str, Turns]:
        done = run_pytest(suite.folder, suite.option, *RUNS, *arguments)
        results = results_in(suite.results)
        return words(done), {(of.judge, of.spec.test, of.run_id): of.extra.shown for of in results}

    with JudgeService(reply=reply) as service:
        made = judged_suite(suite, f"URL = {service.url!r}\n{SOURCE}")
        made.panel(judges)
        recorded = session(RECORD)
    return [recorded, session("-n", "2", "-v")]


def test_results_say_what_each_judge_was_shown(sessions: list[tuple[str, Turns]]) -> None:
    every = (1, 2, 3, 4)
    of_judges = {"sends_all": (ShownTurns(1), ShownTurns(4, is_whole=True))}
    of_judges["reads_alone"] = ShownTurns(1, unknown=1), ShownTurns(4, unknown=4, is_whole=True)
    for judge in CUTTING:
        of_judges[judge] = ShownTurns(1, every[3:]), ShownTurns(4, every, is_whole=True)
    expected: Turns = {}
    for judge, (edited, whole) in of_judges.items():
        for run_id in ("run-1", "run-2"):
            expected[judge, "agent_perturbation", run_id] = edited
            expected[judge, "agent_positives", run_id] = whole
    assert [turns for _, turns in sessions] == [expected, expected]


def test_a_judge_that_cuts_is_said_to_and_of_others_in_folds(
    sessions: list[tuple[str, Turns]],
) -> None:
    recorded, replayed = (printed for printed, _ in sessions)
    assert "The judge was not shown 4 of 4 turns." in recorded
    missed = "(2 of its 2 missed violations)"
    assert "doubts about these figures: see -v" in recorded
    assert "The judge was not shown [4]." in replayed
    assert "run-2[e1-cuts] (not shown [4])" in replayed
    for judge in CUTTING:
        is_lucky = judge in ("cuts_in_halves", "cuts_a_prompt")
        fate = "(2 right by luck)" if is_lucky else missed
        assert f"! The judge {judge} was not shown 2 of 2 edited turns {fate}." in replayed
        whole = "8 of 8 turns of cases as they are (2 cases)."
        assert f"! The judge {judge} was not shown {whole}" in replayed
    for judge in ("sends_all", "reads_alone"):
        assert f"The judge {judge} was" not in recorded
        assert f"! The judge {judge}" not in replayed
    assert "- The judge sends_all was shown 2 of 2 edited turns." in replayed
    unknown = "may not have been shown 2 edited turns: what it sent is not recorded"
    assert f"- The judge reads_alone {unknown}" in replayed


def test_doubts_count_the_edited_turns_that_a_judge_that_cuts_did_not_send(tmp_path: Path) -> None:
    """Of those that it was sent it misses one, and of the others it gets one right."""
    runs = [run(number) for number in range(1, 26)]
    for number, made in enumerate(runs, start=1):
        made["messages"][3]["content"] = "It is on its way.\n" * 10 * number
    suite = write_suite(tmp_path, runs=runs)

    def judge(path: str, body: str) -> tuple[int, Mapping[str, str], bytes]:
        is_right = VIOLATION in body and "order 1003" not in body
        return reply("" if is_right or "order 1020" in body else "missed", body)

    with ModelServer() as server, JudgeService(reply=judge) as service:
        cutting = "def judge(case):\n    text = {'text': case.transcript[:3_000]}\n"
        answer = "    return requests.post(URL, json=text).json()['score']\n"
        judged_suite(suite, f"import requests\nURL = {service.url!r}\n{cutting}{answer}")
        reports = [f"--jrh-report=r.{suffix}" for suffix in ("md", "json", "html")]
        record = "--jrh-record-mode=once"
        done = run_pytest(suite.folder, suite.option, record, *reports, env=server.environment)
    unseen = 25 - sum(VIOLATION in body for body in service.asked)
    assert 0 < unseen < 25
    fates = f"({unseen - 1} of its {unseen} missed violations, 1 right by luck)"
    title = f"The judge was not shown {unseen} of 25 edited turns {fates}"
    assert f"! {title}." in words(done)
    page, markdown, data = (
        (tmp_path / f"r.{suffix}").read_text("utf-8") for suffix in ("html", "md", "json")
    )
    assert title in page
    assert title in markdown
    [suite_figures] = json.loads(data)["suites"].values()
    edited, whole = suite_figures["judges"]["default"]["shown"]
    assert len(edited.pop("cases")) == len(whole["cases"]) == unseen
    counts = {"turns": 25, "not_shown": unseen, "unknown": 0, "missed": unseen}
    fates_of = {"missed_unseen": unseen - 1, "right_by_luck": 1, "cut_by_server": []}
    assert edited == {"name": "edited turns", **counts, **fates_of}
