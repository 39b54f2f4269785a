"""What a judge was not shown is said of its failures and in reports."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from pytest_jrh.core.results import ShownTurns
from tests.plugin.recorded import RECORD, Recorded, judged_suite, run_pytest, words
from tests.support.judge_service import JudgeService
from tests.support.ledgers import results_in

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


def misses(case):
    return requests.post(f"{URL}/missed", json={"text": case.transcript}).json()["score"]


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


@dataclass(frozen=True, slots=True)
class Sessions:
    """A panel of judges, recorded and then replayed by two workers: what each session printed, what
    its results say of each case by judge, test and run, and the reports of the first one."""

    printed: list[str]
    turns: list[Turns]
    reports: dict[str, str]


@pytest.fixture(scope="module")
def sessions(recorded_once: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    suite = recorded_once.copied(tmp_path_factory.mktemp("shown")).tiny
    names = (*CUTTING[:3], "sends_all", "misses", "reads_alone")
    judges = [{"name": name, "python": f"judges.py:{name}"} for name in names]
    # Its verdict is answered from the head of its recording.
    judges.append({"name": "cuts_with_version", "python": "judges.py:cuts", "version": "1"})
    done = Sessions([], [], {})

    def session(*arguments: str) -> None:
        done.printed.append(words(run_pytest(suite.folder, suite.option, *RUNS, *arguments)))
        results = results_in(suite.results)
        turns = {(of.judge, of.spec.test, of.run_id): of.extra.shown for of in results}
        done.turns.append(turns)

    forms = ("md", "json", "html")
    with JudgeService(reply=reply) as service:
        made = judged_suite(suite, f"URL = {service.url!r}\n{SOURCE}")
        made.panel(judges)
        session(RECORD, *(f"--jrh-report=r.{form}" for form in forms))
    done.reports.update((form, (suite.folder / f"r.{form}").read_text("utf-8")) for form in forms)
    session("-n", "2", "-v")
    return done


def test_results_say_what_each_judge_was_shown(sessions: Sessions) -> None:
    every = (1, 2, 3, 4)
    all_of_it = ShownTurns(1), ShownTurns(4, is_whole=True)
    of_judges = {"sends_all": all_of_it, "misses": all_of_it}
    of_judges["reads_alone"] = ShownTurns(1, unknown=1), ShownTurns(4, unknown=4, is_whole=True)
    for judge in CUTTING:
        of_judges[judge] = ShownTurns(1, every[3:]), ShownTurns(4, every, is_whole=True)
    expected: Turns = {}
    for judge, (edited, whole) in of_judges.items():
        for run_id in ("run-1", "run-2"):
            expected[judge, "agent_perturbation", run_id] = edited
            expected[judge, "agent_positives", run_id] = whole
    assert sessions.turns == [expected, expected]


def test_a_judge_that_cuts_is_said_to_and_of_others_in_folds(sessions: Sessions) -> None:
    recorded, replayed = sessions.printed
    assert "The judge was not shown 4 of 4 turns." in recorded
    missed = "(in 2 of its 2 missed violations)"
    assert "more warnings about these figures; -v shows them" in recorded
    assert "The judge was not shown [4]." in replayed
    assert "run-2[e1-cuts] (not shown [4])" in replayed
    for judge in CUTTING:
        is_lucky = judge in ("cuts_in_halves", "cuts_a_prompt")
        fate = "(in 2 verdicts right by luck)" if is_lucky else missed
        assert f'! The judge "{judge}" was not shown 2 of 2 edited turns {fate}.' in replayed
        whole = "8 of 8 turns of unedited cases (in 2 cases)."
        assert f'! The judge "{judge}" was not shown {whole}' in replayed
    for judge in ("sends_all", "reads_alone"):
        assert f'The judge "{judge}" was' not in recorded
        assert f'! The judge "{judge}"' not in replayed
    assert '- The judge "sends_all" was shown 2 of 2 edited turns.' in replayed
    unknown = "whether 2 edited turns were shown, because the judge's request is not recorded"
    assert f'- The judge "reads_alone": it is not known {unknown}' in replayed


def test_every_report_counts_the_edited_turns_that_a_judge_did_not_send(sessions: Sessions) -> None:
    """Of those that it was sent a judge may miss some, and of the others get some right."""
    text = sessions.reports["json"]
    [suite] = json.loads(text)["suites"].values()
    found = {}
    for judge, figures in suite["judges"].items():
        edited, _ = figures["shown"]
        counts = ("turns", "not_shown", "unknown", "missed", "missed_unseen", "right_by_luck")
        found[judge] = tuple(edited[name] for name in counts)
    assert found == {
        "cuts": (2, 2, 0, 2, 2, 0),
        "cuts_in_halves": (2, 2, 0, 0, 0, 2),
        "cuts_a_prompt": (2, 2, 0, 0, 0, 2),
        "sends_all": (2, 0, 0, 0, 0, 0),
        "misses": (2, 0, 0, 2, 0, 0),
        "reads_alone": (2, 0, 2, 0, 0, 0),
        "cuts_with_version": (2, 2, 0, 2, 2, 0),
    }
    title = 'The judge "cuts" was not shown 2 of 2 edited turns (in 2 of its 2 missed violations)'
    for form in ("html", "md"):
        assert title in sessions.reports[form].replace("\\", "")
