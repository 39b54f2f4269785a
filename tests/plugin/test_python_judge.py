"""A judge that is a Python function: values, errors, and requests on replay."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.engine.suite import make_ready
from tests.plugin.own_judges import ONE, RECORD, Judged, MakeJudged, asking, summary, words
from tests.plugin.recorded import run_pytest
from tests.support.judge_service import JudgeService
from tests.support.obedient import VIOLATION
from tests.support.offline import LOCAL, needs_cut_network, offline
from tests.support.suites import write_suite

# Each client asks with a number of its own, so that each has a recording of its own.
CLIENTS = """
import http.client, json, urllib.request
from concurrent.futures import ThreadPoolExecutor
import httpx, requests, urllib3

URL = {url!r}
ASKED = []


def judge(case):
    def body(client):
        ASKED.append(client)
        return {{"client": client, "transcript": case.transcript}}

    def by_urllib():
        data = json.dumps(body("urllib")).encode()
        asked = urllib.request.Request(URL, data, {{"content-type": "application/json"}})
        return json.load(urllib.request.urlopen(asked))

    def by_http_client():
        connection = http.client.HTTPConnection(URL.split("/")[2])
        connection.request("POST", "/judge", json.dumps(body("http.client")))
        return json.load(connection.getresponse())

    with requests.Session() as session, ThreadPoolExecutor(1) as pool:
        answers = [
            requests.post(URL, json=body("requests")).json(),
            *(session.post(URL, json=body("session")).json() for _ in range(2)),
            httpx.post(URL, json=body("httpx")).json(),
            urllib3.request("POST", URL, json=body("urllib3")).json(),
            by_urllib(),
            by_http_client(),
            pool.submit(httpx.post, URL, json=body("pool")).result().json(),
        ]
    [score] = {{answer["score"] for answer in answers}}
    return score, answers[0]["why"]
"""
ASYNC_CLIENTS = """
import aiohttp, httpx

URL = {url!r}
shared = httpx.AsyncClient()


async def judge(case):
    async with aiohttp.ClientSession() as session:
        async with session.post(URL, json=["aiohttp", case.transcript]) as response:
            one = await response.json()
    two = (await shared.post(URL, json=["httpx", case.transcript])).json()
    assert one == two
    return one["score"], one["why"]
"""


def compressed(_path: str, body: str) -> tuple[int, dict[str, str], bytes]:
    answer = {"score": int(VIOLATION in body), "why": "Read."}
    return 200, {"content-encoding": "gzip"}, gzip.compress(json.dumps(answer).encode())


@needs_cut_network
@pytest.mark.parametrize(("source", "requests"), [(CLIENTS, 8), (ASYNC_CLIENTS, 2)])
def test_what_a_function_asks_is_recorded_as_text_and_answered_without_a_network(
    judged: MakeJudged, pytester: pytest.Pytester, source: str, requests: int
) -> None:
    with JudgeService(reply=compressed) as service:
        made = judged(source.format(url=service.url))
        first = run_pytest(pytester.path, made.suite.option, RECORD, *ONE)
        assert summary(first) == "1 passed, 7 deselected", first.stdout
    assert f"{requests} calls" in words(first)
    assert made.cassette.read_text("utf-8").count('"why": "Read."') >= 1
    assert "!!binary" not in made.cassette.read_text("utf-8")
    replayed = run_pytest(pytester.path, made.suite.option, *ONE, *LOCAL, interpreter=offline())
    assert replayed.code == 0, replayed.stdout
    assert "0 calls, " in words(replayed)


def test_a_changed_function_is_tested_for_real(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    with JudgeService() as service:
        made = judged(asking(service.url))
        run_pytest(pytester.path, made.suite.option, RECORD, *ONE)
    source = asking(service.url)
    made.write(source.replace("a['score']", "1 - a['score']"))
    mapped = run_pytest(pytester.path, made.suite.option, *ONE)
    assert summary(mapped) == "1 failed, 7 deselected"
    assert "0 calls, " in words(mapped)
    made.write(source.replace("'transcript':", "'tone': 'strict', 'transcript':"))
    asked = run_pytest(pytester.path, made.suite.option, *ONE)
    assert summary(asked) == "7 deselected, 1 error"
    assert "No verdict (unrecorded): the judge's call is not recorded." in words(asked)
    assert "The judge judges.py:judge sent POST http://127.0.0.1:" in words(asked)
    assert '    + "tone": "strict",' in asked.lines
    assert "`once`" not in words(asked)


HELPED = """
from words import is_violated


def judge(case):
    return int(is_violated(case.transcript))
"""
WORDS = "def is_violated(text):\n    return 'ok-marker-violation' in text\n"


def helped(judged: MakeJudged, **keys: Any) -> Judged:
    """A judge whose verdict is that of a function in another file."""
    made = judged(HELPED, **keys)
    (made.suite.config.parent / "words.py").write_text(WORDS, encoding="utf-8")
    return made


def test_a_new_version_is_no_judge_whose_verdict_is_recorded(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    """The recording stands in the head: it answers though the code raises."""
    made = helped(judged, version="1")
    pytester.runpytest_inprocess(made.suite.option, RECORD, *ONE)
    made.write("def judge(case):\n    raise ValueError\n")
    pytester.runpytest_inprocess(made.suite.option, *ONE).assert_outcomes(passed=1, deselected=7)
    made.configure({"python": "judges.py:judge", "version": "2"})
    stale = pytester.runpytest_inprocess(made.suite.option, *ONE)
    stale.assert_outcomes(errors=1, deselected=7)
    said = " ".join(stale.stdout.str().split())
    assert "answers from its recorded verdict, which is that of another judge" in said
    stale.stdout.fnmatch_lines(['    -{"judge": "1", "case": *', '    +{"judge": "2", "case": *'])


def test_another_version_is_another_judge(judged: MakeJudged) -> None:
    made, digests = helped(judged), set()
    folder = made.suite.folder
    for version in ("1", "2"):
        made.configure({"python": "judges.py:judge", "version": version})
        ready = make_ready(made.suite.config, cwd=folder, rootdir=folder)
        digests |= {*ready.judge_fingerprints.values()}
    assert len(digests) == 2


def test_a_helper_that_would_be_another_files_is_a_usage_error(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    made = judged("from helper import SCORE\ndef judge(case):\n    return SCORE\n")
    beside = made.suite.config.parent / "helper.py"
    beside.write_text("SCORE = 0\n", encoding="utf-8")
    other = pytester.mkdir("other") / "helper.py"
    other.write_text("SCORE = 1\n", encoding="utf-8")
    pytester.makeconftest("import sys\nsys.path.append('other')\nimport helper\n")
    done = run_pytest(pytester.path, made.suite.option)
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert (
        "'judges.py:judge' imports \"helper\" from its folder, but a module of that name was "
        "imported before, from other/helper.py"
    ) in " ".join(done.stderr.split())


def test_what_a_changed_helper_turns_is_no_flicker(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    made = helped(judged)
    baseline = "--jrh-baseline=baseline.json"
    run_pytest(pytester.path, made.suite.option, baseline, "--jrh-update-baseline")
    words_file = made.suite.config.parent / "words.py"
    words_file.write_text(WORDS.replace(" in ", " not in "), encoding="utf-8")
    changed = run_pytest(pytester.path, made.suite.option, baseline, "-v")
    assert "judge judges.py:judge, not the baseline's judge" in words(changed)
    assert "regressions" in words(changed)
    assert "by flicker" not in words(changed), changed.stdout


ERRORS = {
    "def raises": ("raise ValueError('no luck')", "model_error", "raised ValueError: no luck."),
    "async def exits": ("raise SystemExit(3)", "model_error", "raised SystemExit: 3."),
    "def bool": ("return True", "invalid_response", "gave True; a score must be the integer 0 or"),
    "async def late": (
        "import time; time.sleep(9)",
        "model_error",
        "no verdict within 0.3 s, its `timeout`",
    ),
}


def test_what_is_no_verdict_is_said_in_a_few_lines(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    made = judged(
        "".join(f"{start}(case):\n    {body}\n" for start, (body, _, _) in ERRORS.items())
    )
    made.panel(
        {"name": name, "python": f"judges.py:{name}", "timeout": 0.3 if name == "late" else 60}
        for name in (start.rpartition(" ")[2] for start in ERRORS)
    )
    done = pytester.runpytest_inprocess(made.suite.option, *ONE)
    done.assert_outcomes(errors=4, deselected=28)
    texts = done.stdout.str().split("No verdict (")[1:]
    for text, (start, (_, outcome, said)) in zip(texts, ERRORS.items(), strict=False):
        part = re.split(r"\n(?:___|===)", text)[0].splitlines()
        assert len(part) <= 25
        flat = " ".join(" ".join(part).split())
        name = start.rpartition(" ")[2]
        assert flat.startswith(f"{outcome}): the judge gave no verdict. The judge judges.py:{name}")
        assert said in flat
    assert "    inputs/configs/judges.py:2 in raises" in done.outlines


def test_errors_of_a_service_are_not_kept_where_the_judge_asked_again(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    retrying = (
        "    for _ in range(3):\n        r = requests.post(URL, json=BODY)\n"
        "        if r.ok: return r.json()['score']\n"
    )
    head = "import requests\nURL = {!r}\ndef judge(case):\n    BODY = case.transcript\n"
    with JudgeService(429, 503) as service:
        made = judged(head.format(service.url) + retrying)
        done = run_pytest(pytester.path, made.suite.option, RECORD, *ONE)
        assert "3 calls" in words(done)
    replayed = run_pytest(pytester.path, made.suite.option, *ONE)
    assert summary(replayed) == "1 passed, 7 deselected"
    assert made.cassette.read_text().count("method: POST") == 1


def test_the_budget_counts_each_request(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    with JudgeService() as service:
        made = judged(
            f"import requests\nURL = {service.url!r}\ndef judge(case):\n    try:\n"
            "        for n in range(3): a = requests.post(URL, json=[n, case.transcript]).json()\n"
            "    except Exception:\n        return 1\n    return a['score']\n"
        )
        done = run_pytest(pytester.path, made.suite.option, RECORD, "--jrh-max-calls=2", *ONE)
        assert "No verdict (over_budget): the budget was exhausted before the judge's" in words(
            done
        )
        assert "2 of 2 calls are spent" in words(done)
        assert len(service.asked) == 2
        # What was answered is kept, and not asked again.
        done = run_pytest(pytester.path, made.suite.option, RECORD, *ONE)
        assert summary(done) == "1 passed, 7 deselected"
        assert len(service.asked) == 3
        refused = run_pytest(pytester.path, made.suite.option, RECORD, "--jrh-max-cost=1", *ONE)
        assert "no known price for judges.py:judge" in refused.stdout + refused.stderr


def test_a_plan_runs_no_judges_code(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    made = judged("def judge(case):\n    raise ValueError\n")
    send = httpx.HTTPTransport.handle_request
    done = pytester.runpytest_inprocess(made.suite.option, RECORD, "--jrh-plan", *ONE)
    assert httpx.HTTPTransport.handle_request is send
    flat = " ".join(done.stdout.str().split())
    assert "(0 to 1 judge)" in flat
    assert "A plan runs no judge's own code: it counts as at most one call a case here;" in flat


@pytest.mark.parametrize(
    ("source", "path", "said"),
    [
        ("def strict(case): ...", "judges.py:strikt", "the module has no 'strikt'"),
        ("strict = 7", "judges.py:strict", "int is not callable"),
        ("", "no_such_package:strict", "cannot be imported: ModuleNotFoundError"),
        ("", "../../etc/passwd:strict", "must be a function, as pkg.mod:function"),
        ("def strict(:", "judges.py:strict", "SyntaxError: invalid syntax (judges.py, line 1)"),
    ],
)
def test_a_function_that_is_not_there_is_refused(
    tmp_path: Path, source: str, path: str, said: str
) -> None:
    suite = write_suite(tmp_path, runs=1, overrides={"judge": {"python": path}})
    suite.config.with_name("judges.py").write_text(source, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        make_ready(suite.config, cwd=tmp_path, rootdir=tmp_path)
    assert said in " ".join(str(refused.value).split())
