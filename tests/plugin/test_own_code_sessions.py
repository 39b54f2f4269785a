"""Judges of own code with repeats, on a scale, in every record mode, and in merged shards."""

from __future__ import annotations

import re
import shutil

import pytest

from pytest_jrh.__main__ import main
from tests.plugin.own_judges import ONE, MakeJudged, asking, summary, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.judge_service import JudgeService
from tests.support.model_server import ModelServer
from tests.support.results import results_in
from tests.support.suites import SuiteFiles

RECORD = "--jrh-judge-record-mode={}".format
TWO = ("-k", "run-1")


def scores_of(suite: SuiteFiles) -> list[tuple[str, list[int]]]:
    """Outcome and scores of every case, in the order of their ids."""
    results = sorted(results_in(suite.results), key=lambda result: result.case_id)
    return [(result.outcome, [*result.scores]) for result in results]


def test_each_repeat_has_requests_of_its_own(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    with JudgeService(scores=(1, 0, 1)) as service:
        made = judged(asking(service.url), repeats=3)
        first = run_pytest(pytester.path, made.suite.option, RECORD("once"), *ONE)
        assert "3 calls" in words(first), first.stdout
        assert scores_of(made.suite) == [("agree", [1, 0, 1])]
        made.configure({"python": "judges.py:judge", "repeats": 4})
        service.scores = [0]
        more = run_pytest(pytester.path, made.suite.option, RECORD("new_episodes"), *ONE)
        assert "1 call, 7 replayed" in words(more), more.stdout
    assert scores_of(made.suite) == [("disagree", [1, 0, 1, 0])]


def test_record_modes_mean_what_they_mean_for_prompts(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    def session(mode: str) -> str:
        return words(run_pytest(pytester.path, made.suite.option, RECORD(mode), *TWO))

    with JudgeService() as service:
        made = judged(asking(service.url))
        assert "2 errors" in session("none")
        assert not service.asked
        assert "2 passed" in session("new_episodes")
        assert len(service.asked) == 2
        assert "2 passed" in session("new_episodes")
        assert len(service.asked) == 2
        service.scores = [0, 0]
        assert "1 failed, 1 passed" in session("all")
        assert len(service.asked) == 4


def test_recording_anew_without_an_answer_keeps_the_old_requests(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    with JudgeService() as service:
        checked = asking(service.url).replace(
            "}).json()", "})\n    a.raise_for_status()\n    a = a.json()"
        )
        made = judged(checked)
        done = run_pytest(pytester.path, made.suite.option, RECORD("once"), *ONE)
        assert summary(done) == "1 passed, 7 deselected", done.stdout
        before = made.cassette.read_bytes()
        service.statuses = [401]
        refused = run_pytest(pytester.path, made.suite.option, RECORD("all"), *ONE)
        assert summary(refused) == "7 deselected, 1 error", refused.stdout
    assert made.cassette.read_bytes() == before


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


def test_a_key_that_a_judge_takes_from_a_file_is_not_kept(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    key = "plain-words-0123456789"
    with JudgeService() as service:
        made = judged(
            f"import os, requests\nURL = {service.url!r}\ndef judge(case):\n"
            f"    key = os.environ['LATE_API_KEY'] = '-'.join(['plain', 'words', '0123456789'])\n"
            "    asked = {'key': key, 'transcript': case.transcript}\n"
            "    return requests.post(URL, json=asked).json()['score'], f'asked with {key}'\n"
        )
        done = run_pytest(pytester.path, made.suite.option, RECORD("once"), *ONE)
        assert summary(done) == "1 passed, 7 deselected", done.stdout
        assert service.asked[0]["key"] == key
    files = [path for path in pytester.path.rglob("*") if path.is_file()]
    assert made.cassette in files
    assert [path for path in files if key.encode() in path.read_bytes()] == []


def test_pytest_exit_of_a_judge_is_named_and_never_green(judged: MakeJudged) -> None:
    made = judged("import pytest\ndef judge(case):\n    pytest.exit('done', returncode=0)\n")
    done = run_pytest(made.suite.folder, made.suite.option, RECORD("once"), *ONE)
    assert done.code == pytest.ExitCode.TESTS_FAILED, done
    assert "raised Exit: done" in words(done)
    assert "INTERNALERROR" not in done.stdout + done.stderr


IDIOM = """
import json
from openai import OpenAI
client = OpenAI(max_retries=0)

def judge(case):
    messages = [{"role": "user", "content": case.transcript}]
    answer = client.chat.completions.create(model="strict", messages=messages)
    return json.loads(answer.choices[0].message.content)["score"]
"""


def test_a_client_made_at_import_replays_without_its_key_and_address_and_is_told_once(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    gone = {"OPENAI_API_KEY": None, "OPENAI_BASE_URL": None, "OPENAI_API_BASE": None}
    with ModelServer(lambda _request: {"score": 1}) as server:
        made = judged(IDIOM)
        keyless = run_pytest(pytester.path, made.suite.option, RECORD("once"), *TWO, env=gone)
        assert keyless.code == 4
        assert "Missing credentials" in keyless.stderr
        env = {**server.environment, "OPENAI_BASE_URL": server.base_url}
        first = run_pytest(pytester.path, made.suite.option, RECORD("once"), *TWO, env=env)
        assert "2 calls" in words(first), first.stdout
    replayed = run_pytest(pytester.path, made.suite.option, *TWO, "-v", env=gone)
    assert "0 calls" in words(replayed), replayed.stdout
    assert words(replayed).count("OPENAI_API_KEY") == 1
    assert (
        "the judge judges.py:judge looks for OPENAI_API_KEY, not set here: on replay it gets a "
        "placeholder, and nothing is sent."
    ) in words(replayed)
    assert scores_of(made.suite) == [("agree", [1]), ("disagree", [1])]


def test_a_key_that_is_needed_is_found_on_replay_and_one_that_may_be_missing_is_not(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    source = (
        "import os, subprocess, sys\nDIRECT = os.environ['GATEWAY_TOKEN']\n"
        "assert os.environ.get('LANGFUSE_SECRET_KEY') is None\n"
        "def judge(case):\n"
        "    assert os.environ['LATER_API_KEY'] == DIRECT\n"
        "    assert os.getenv('ANTHROPIC_API_KEY') is None\n"
        "    try:\n        os.environ['NO_SUCH_FOLDER']\n"
        "    except KeyError:\n        return 1, 'ok'\n"
    )
    with_key = {"OPENAI_API_KEY": "of-a-person"}
    made = judged(source)
    variables = {**with_key, "GATEWAY_TOKEN": "abcdefgh", "LATER_API_KEY": "abcdefgh"}
    first = run_pytest(pytester.path, made.suite.option, RECORD("once"), *ONE, env=variables)
    assert summary(first) == "1 passed, 7 deselected", first.stdout
    replayed = run_pytest(pytester.path, made.suite.option, *ONE, env=with_key)
    assert summary(replayed) == "1 passed, 7 deselected", replayed.stdout
    assert "looks for GATEWAY_TOKEN" in words(replayed)
    assert "looks for LATER_API_KEY" in words(replayed)
