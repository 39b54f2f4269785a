"""Judges of own code: what they ask is recorded, counted and answered again, and what they give is
a verdict or none."""

import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from pytest_jrh.core import InputError
from pytest_jrh.core.calls import RecordMode
from pytest_jrh.core.results import CaseResult
from pytest_jrh.llm.limits import Ledger, unpriced_reason
from pytest_jrh.recording import tapes
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench, said
from tests.support.judge_service import JudgeService
from tests.support.model_server import ModelServer
from tests.support.obedient import VIOLATION
from tests.support.suites import write_suite

CALLS_OF_A_CASE = 4


class OwnCode(Bench):
    """The smallest suite, whose case is made, and whose judge stands in `judges.py` and asks a
    service."""

    service: JudgeService

    def write(self, source: str, name: str = "judges.py") -> None:
        """Write a file beside the config; what was imported from there is imported anew."""
        importlib.invalidate_caches()
        for module_name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(self.files.folder)):
                del sys.modules[module_name]
        self.files.config.with_name(name).write_text(source, encoding="utf-8")

    def judge_by(self, source: str, **keys: Any) -> None:
        """Have the function `judge` of this source for the judge."""
        self.write(source)
        self.files.configure({"judge": {"python": "judges.py:judge", **keys}})
        self.reload()

    def judge(self, mode: RecordMode = "none", **more: Any) -> CaseResult:
        return self.run("none", judge_record_mode=mode, **more).only

    @property
    def cassette(self) -> Path:
        return next(self.cassettes.rglob("*.judge-default.yaml"))


@pytest.fixture
def bench(tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # A judge's file is written twice within the second that Python tells by.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    files = write_suite(tmp_path / "suite", runs=1, tests=["agent_perturbation"])
    made = OwnCode(files, tmp_path / "cassettes")
    made.run("once", judge_record_mode="none")
    with JudgeService() as made.service:
        yield made
    made.write("")


def calls(result: CaseResult) -> tuple[int, int]:
    """The requests of the judge that were sent, and that were answered from the recording."""
    spending = result.spending.all
    return spending.calls, spending.replayed - CALLS_OF_A_CASE


def asking(url: str) -> str:
    return (
        f"import requests\ndef judge(case):\n"
        f"    a = requests.post({url!r}, json={{'transcript': case.transcript}})\n"
        "    a.raise_for_status()\n"
        "    return a.json()['score'], a.json()['why']\n"
    )


# What each client sends names it, so that each has a recording of its own.
CLIENTS = """
import http.client, json, urllib.request
from concurrent.futures import ThreadPoolExecutor
import httpx, httpx2, requests, urllib3

URL = {url!r}


def judge(case):
    def body(client):
        return {{"client": client, "transcript": case.transcript}}

    data, kind = json.dumps(body("urllib")).encode(), {{"content-type": "application/json"}}
    by_urllib = urllib.request.Request(URL, data, kind)
    connection = http.client.HTTPConnection(URL.split("/")[2])
    connection.request("POST", "/judge", json.dumps(body("http.client")))
    with requests.Session() as session, ThreadPoolExecutor(1) as pool:
        answers = [
            json.load(connection.getresponse()),
            json.load(urllib.request.urlopen(by_urllib)),
            requests.post(URL, json=body("requests")).json(),
            *(session.post(URL, json=body("session")).json() for _ in range(2)),
            httpx.post(URL, json=body("httpx")).json(),
            httpx2.post(URL, json=body("httpx2")).json(),
            urllib3.request("POST", URL, json=body("urllib3")).json(),
            pool.submit(httpx.post, URL, json=body("pool")).result().json(),
        ]
    [score] = {{answer["score"] for answer in answers}}
    return score, answers[0]["why"]
"""
ASYNC_CLIENTS = """
import aiohttp, httpx, httpx2

URL = {url!r}
shared, newer = httpx.AsyncClient(), httpx2.AsyncClient()


async def judge(case):
    async with aiohttp.ClientSession() as session:
        async with session.post(URL, json=["aiohttp", case.transcript]) as response:
            one = await response.json()
    two = (await shared.post(URL, json=["httpx", case.transcript])).json()
    three = (await newer.post(URL, json=["httpx2", case.transcript])).json()
    assert one == two == three
    return one["score"], one["why"]
"""


def compressed(_path: str, body: str) -> tuple[int, dict[str, str], bytes]:
    answer = {"score": int(VIOLATION in body), "why": "Read."}
    return 200, {"content-encoding": "gzip"}, gzip.compress(json.dumps(answer).encode())


@pytest.mark.parametrize(("source", "requests"), [(CLIENTS, 9), (ASYNC_CLIENTS, 3)])
def test_what_every_client_asks_is_kept_as_text(bench: OwnCode, source: str, requests: int) -> None:
    with JudgeService(reply=compressed) as service:
        bench.judge_by(source.format(url=service.url))
        first = bench.judge("once")
    assert (first.outcome, calls(first)) == ("agree", (requests, 0)), said(first)
    assert '"why": "Read."' in bench.cassette.read_text("utf-8")
    assert "!!binary" not in bench.cassette.read_text("utf-8")
    again = bench.judge()
    assert (again.outcome, calls(again)) == ("agree", (0, requests)), said(again)


def test_a_changed_function_is_tested_for_real(bench: OwnCode) -> None:
    source = asking(bench.service.url)
    bench.judge_by(source)
    bench.judge("once")
    bench.judge_by(source.replace("return a.json()['score']", "return 1 - a.json()['score']"))
    mapped = bench.judge()
    assert (mapped.outcome, calls(mapped)) == ("disagree", (0, 1))
    bench.judge_by(source.replace("'transcript':", "'tone': 'strict', 'transcript':"))
    asked = bench.judge()
    assert asked.outcome == "unrecorded"
    assert "The judge judges.py:judge sent POST http://127.0.0.1:" in said(asked)
    assert "    /tone:\n    -\n    +strict" in no_verdict_text(asked.why)
    assert "`once`" not in said(asked)
    assert len(bench.service.asked) == 1


def test_record_modes_mean_what_they_mean_for_prompts(bench: OwnCode) -> None:
    bench.judge_by(asking(bench.service.url))
    assert bench.judge("none").outcome == "unrecorded"
    assert not bench.service.asked
    assert bench.judge("new_episodes").outcome == "agree"
    assert bench.judge("new_episodes").outcome == "agree"
    assert len(bench.service.asked) == 1
    before = bench.cassette.read_bytes()
    # Recording anew without an answer keeps the old one.
    bench.service.statuses = [401]
    assert bench.judge("all").outcome == "model_error"
    assert bench.cassette.read_bytes() == before
    bench.service.scores = [0]
    assert bench.judge("all").outcome == "disagree"
    assert len(bench.service.asked) == 3


def test_each_repeat_has_requests_of_its_own(bench: OwnCode) -> None:
    bench.judge_by(asking(bench.service.url), repeats=3)
    bench.service.scores = [1, 0, 1]
    first = bench.judge("once")
    assert (first.outcome, first.scores, calls(first)) == ("agree", (1, 0, 1), (3, 0))
    bench.judge_by(asking(bench.service.url), repeats=4)
    bench.service.scores = [0]
    more = bench.judge("new_episodes")
    assert (more.outcome, more.scores, calls(more)) == ("disagree", (1, 0, 1, 0), (1, 3))


def test_no_request_is_sent_without_room(bench: OwnCode, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.judge_by(asking(bench.service.url))
    with monkeypatch.context() as patch:
        patch.setattr(tapes, "room_for", Mock(side_effect=OSError(28, "No space left on device")))
        full = bench.judge("once")
    assert (full.outcome, bench.service.asked) == ("model_error", [])
    assert "The judge judges.py:judge was stopped before a request (" in said(full)
    assert "No space left on device" in said(full)
    assert bench.judge("once").outcome == "agree"


def test_errors_of_a_service_are_not_kept_where_the_judge_asked_again(bench: OwnCode) -> None:
    bench.service.statuses = [429, 503]
    bench.judge_by(
        f"import requests\nURL = {bench.service.url!r}\ndef judge(case):\n    for _ in range(3):\n"
        "        r = requests.post(URL, json=case.transcript)\n"
        "        if r.ok: return r.json()['score']\n"
    )
    assert calls(bench.judge("once")) == (3, 0)
    again = bench.judge()
    assert (again.outcome, calls(again)) == ("agree", (0, 1))
    assert bench.cassette.read_text("utf-8").count("method: POST") == 1


def test_the_budget_counts_each_request(bench: OwnCode, tmp_path: Path) -> None:
    bench.judge_by(
        f"import requests\nURL = {bench.service.url!r}\ndef judge(case):\n    try:\n"
        "        for n in range(3): a = requests.post(URL, json=[n, case.transcript]).json()\n"
        "    except Exception:\n        return 1\n    return a['score']\n"
    )
    limited = bench.judge("once", ledger=Ledger(tmp_path / "budget.json", calls=2))
    assert limited.outcome == "over_budget"
    assert "2 of 2 calls are spent" in said(limited)
    assert len(bench.service.asked) == 2
    # What was answered is kept, and not asked again.
    assert bench.judge("once").outcome == "agree"
    assert len(bench.service.asked) == 3
    refused = unpriced_reason(1, [bench.ready.judges[None].model])
    assert "no known price for judges.py:judge" in str(refused)


HELPED = """
from words import is_violated


def judge(case):
    return int(is_violated(case.transcript))
"""
WORDS = "def is_violated(text):\n    return 'ok-marker-violation' in text\n"


def test_with_a_version_the_recorded_verdict_answers_and_no_other_judges(bench: OwnCode) -> None:
    bench.write(WORDS, "words.py")
    bench.judge_by(HELPED, version="1")
    first = bench.ready.judge_fingerprints[None]
    bench.judge("once")
    bench.judge_by("def judge(case):\n    raise ValueError\n", version="1")
    assert bench.judge().outcome == "agree"
    assert bench.ready.judge_fingerprints[None] == first
    bench.judge_by(HELPED, version="2")
    assert bench.ready.judge_fingerprints[None] != first
    stale = bench.judge()
    assert stale.outcome == "unrecorded"
    assert "needs its recorded verdict, but that verdict is of another judge" in said(stale)
    assert '    -{"judge": "1", "case": ' in no_verdict_text(stale.why)
    assert '    +{"judge": "2", "case": ' in no_verdict_text(stale.why)


def test_a_helper_that_would_be_another_files_is_refused(
    bench: OwnCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "helper.py").write_text("SCORE = 1\n", encoding="utf-8")
    bench.write("SCORE = 0\n", "helper.py")
    monkeypatch.syspath_prepend(other)
    monkeypatch.setitem(sys.modules, "helper", importlib.import_module("helper"))
    with pytest.raises(InputError) as refused:
        bench.judge_by("from helper import SCORE\ndef judge(case):\n    return SCORE\n")
    assert (
        "'judges.py:judge' imports \"helper\" from its folder, but a module of this name was "
        "imported before, from "
    ) in " ".join(str(refused.value).split())


CLOUD = (
    "Cloud credentials are missing. On replay nothing is sent, so any value will do. In the "
    "workflow's `env`, write: AWS_ACCESS_KEY_ID: replay AWS_SECRET_ACCESS_KEY: replay"
)
TIMEOUT = "The judge judges.py:judge gave no verdict within 0.3 s, its `timeout`"
AWS = (
    "import boto3\n    boto3.client('bedrock-runtime', 'us-east-1').converse(\n"
    "        modelId='m', messages=[{'role': 'user', 'content': [{'text': 'a'}]}])"
)
GOOGLE = (
    "import urllib.request as asked\n"
    "    asked.urlopen('http://metadata.google.internal/computeMetadata/v1/')"
)
AZURE = "import requests\n    requests.get('http://169.254.169.254/metadata/identity/oauth2/token')"
NO_VERDICT = {
    "exit": ("raise SystemExit(3)", "The judge judges.py:judge raised SystemExit: 3."),
    "pytest": ("import pytest; pytest.exit('x', 0)", "The judge judges.py:judge raised Exit: x."),
    "timeout": ("import time; time.sleep(1)", TIMEOUT),
    "AWS": (AWS, CLOUD),
    "Google": (GOOGLE, CLOUD),
    "Azure": (AZURE, CLOUD),
    "socket": ("import socket\n    socket.create_connection(('169.254.170.2', 80))", CLOUD),
}


@pytest.mark.parametrize("start", ["def", "async def"])
@pytest.mark.parametrize(("body", "words"), NO_VERDICT.values(), ids=NO_VERDICT)
def test_what_is_no_verdict_is_said_in_a_few_lines(
    bench: OwnCode, monkeypatch: pytest.MonkeyPatch, start: str, body: str, words: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "none")
    timeout = 0.3 if "sleep" in body else 60
    bench.judge_by(f"{start} judge(case):\n    {body}\n", timeout=timeout)
    result = bench.judge()
    assert result.outcome == "model_error"
    assert words in said(result)
    assert "ecord it" not in said(result)
    lines = no_verdict_text(result.why).splitlines()
    assert len(lines) <= 25
    assert any("judges.py:2 in judge" in line for line in lines) is ("raised" in words)


@pytest.mark.parametrize(
    ("source", "judge", "words"),
    [
        ("def strict(case): ...", "judges.py:strikt", "the module has no function 'strikt'"),
        ("strict = 7", "judges.py:strict", "int is not callable"),
        ("", "no_such_package:strict", "cannot be imported: ModuleNotFoundError"),
        ("", "../../etc/passwd:strict", "must be a function, as pkg.mod:function"),
        ("def strict(:", "judges.py:strict", "SyntaxError: invalid syntax (judges.py, line 1)"),
        ("", "judges.py@no_such", "judge.inspect_scorer: the scorer 'judges.py@no_such' cannot be"),
        ("", "judges.py@no_such", "file.py@name, or as package/name if its package is"),
    ],
)
def test_missing_code_is_refused(bench: OwnCode, source: str, judge: str, words: str) -> None:
    bench.write(source)
    key = "inspect_scorer" if "@" in judge else "python"
    bench.files.configure({"judge": {key: judge}})
    with pytest.raises(InputError) as refused:
        bench.reload()
    assert words in " ".join(str(refused.value).split())


IDIOM = """
import json
from openai import OpenAI
client = OpenAI(max_retries=0)

def judge(case):
    messages = [{"role": "user", "content": case.transcript}]
    answer = client.chat.completions.create(model="strict", messages=messages)
    return json.loads(answer.choices[0].message.content)["score"]
"""


def replays_without_a_key(name: str) -> str:
    return f"nothing is sent, so any value will do. In the workflow's `env`, write: {name}: replay"


def test_a_client_made_at_import_replays_with_any_key_and_the_error_says_so(
    bench: OwnCode, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    server.answer = lambda _request: {"score": 1}
    bench.judge_by(IDIOM)
    assert calls(bench.judge("once")) == (1, 0)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError) as refused:
        bench.judge_by(IDIOM)
    assert "'judges.py:judge' cannot be imported: OpenAIError" in str(refused.value)
    words = " ".join(str(refused.value).split())
    assert "OPENAI_API_KEY or OPENAI_ADMIN_KEY is not set." in words
    assert replays_without_a_key("OPENAI_API_KEY") in words
    monkeypatch.setenv("OPENAI_API_KEY", "replay")
    bench.judge_by(IDIOM)
    again = bench.judge()
    assert (again.outcome, calls(again)) == ("agree", (0, 1))


NO_AUTHENTICATION = (
    "import types\n    anthropic = types.ModuleType('anthropic')\n"
    "    exec(\"def ask(): raise TypeError('Could not resolve authentication method')\","
    " vars(anthropic))\n    anthropic.ask()"
)
CAUGHT = "try:\n        os.environ['A_KEY']\n    except KeyError:\n        raise OSError('no key')"
MISSING = {
    "environ": ("return os.environ['GATEWAY_NAME']", "GATEWAY_NAME"),
    "caught": (CAUGHT, "A_KEY"),
    "said": ("sys.exit('Please set GATEWAY_TOKEN.')", "GATEWAY_TOKEN"),
    "anthropic": (NO_AUTHENTICATION, "ANTHROPIC_API_KEY"),
    "inspect": ("import inspect_ai.model as m\n    m.get_model('openai/x')", "OPENAI_API_KEY"),
    "another number": ("raise ValueError('HTTP_404 is not set here')", None),
    "a key that is there": ("raise ValueError('RATE_LIMIT_KEY: slow down')", None),
    "nothing": ("raise ValueError('None')", None),
}


@pytest.mark.parametrize(("body", "name"), MISSING.values(), ids=MISSING)
def test_a_judge_that_misses_a_variable_is_told_which_and_what_to_set(
    bench: OwnCode, monkeypatch: pytest.MonkeyPatch, body: str, name: str | None
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    bench.judge_by(f"import os, sys\ndef judge(case):\n    {body}\n")
    told = bench.judge()
    assert told.outcome == "model_error"
    if name is None:
        assert "is not set." not in said(told)
    else:
        assert replays_without_a_key(name) in said(told)


PAST_THE_RECORDING = """
import socket
URL = {url!r}

def judge(case):
    host, _, port = URL.split("/")[2].partition(":")
    try:
        with socket.create_connection((host, int(port))) as line:
            line.sendall(b"POST / HTTP/1.1\\r\\ncontent-length: 1\\r\\n\\r\\n1")
    except Exception:
        pass
    return int("ok-marker-violation" in case.transcript)
"""


def test_a_judge_that_goes_past_the_recording_is_stopped_and_named(bench: OwnCode) -> None:
    bench.judge_by(PAST_THE_RECORDING.format(url=bench.service.url))
    stopped = bench.judge()
    assert not bench.service.asked
    assert stopped.outcome == "unrecorded"
    reached = f"127.0.0.1:{bench.service.port}, which cannot be recorded."
    assert f"The judge judges.py:judge was stopped, because it tried to reach {reached}" in said(
        stopped
    )


NEW_EACH_TIME = {
    "a time": ("json={'at': time.time(), 't': case.transcript}", "/at:"),
    "an id": ("params={'id': str(uuid.uuid4())}, json=case.transcript", "parameter id of the URL:"),
    "text": ("json=[f'Now it is {datetime.datetime.now()}. {case.transcript}']", "/0:"),
    "a counter": ("json={'n': next(COUNTER), 't': case.transcript}", "/n:"),
}


@pytest.mark.parametrize(("asked", "place"), NEW_EACH_TIME.values(), ids=NEW_EACH_TIME)
def test_a_request_that_is_new_each_time_is_named(bench: OwnCode, asked: str, place: str) -> None:
    source = (
        "import datetime, itertools, requests, time, uuid\n"
        f"COUNTER, URL = itertools.count(), {bench.service.url!r}\n"
        f"def judge(case):\n    return requests.post(URL, {asked}).json()['score']\n"
    )
    bench.judge_by(source)
    recorded = bench.run("none", judge_record_mode="once")
    assert (recorded.only.outcome, recorded.notices) == ("agree", ())
    again = bench.judge()
    assert again.outcome == "unrepeatable"
    assert "although the code and the case have not changed" in said(again)
    assert "recording again does not help: set `version` on the judge" in said(again)
    lines = [line.strip() for line in no_verdict_text(again.why).splitlines()]
    assert lines[lines.index(place) + 1][0] + lines[lines.index(place) + 2][0] == "-+"
    assert "ecord it" not in said(again)
    # The requests of changed code are to be recorded, whatever differs.
    bench.judge_by(source.replace("case.transcript", "case.transcript.upper()"))
    assert bench.judge().outcome == "unrecorded"
    bench.judge_by(source, version="1")
    assert bench.judge().outcome == "agree"
    assert len(bench.service.asked) == 1


AT_IMPORT = {
    "in a thread": "t = threading.Thread(target=requests.post, args=(URL, None, 1))\n"
    "t.start()\nt.join()",
    "by a name": "requests.post('http://judge.example/', json=1)",
}
IMPORTED = """
import threading, requests
URL = {url!r}
try:
    {way}
except Exception:
    pass
def judge(case):
    return int("ok-marker-violation" in case.transcript)
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", AT_IMPORT)
def test_a_module_that_asks_when_imported_is_refused_on_replay(bench: OwnCode, way: str) -> None:
    code = AT_IMPORT[way].replace("\n", "\n    ")
    with pytest.raises(InputError) as refused:
        bench.judge_by(IMPORTED.format(url=bench.service.url, way=code))
    assert not bench.service.asked
    reached = "judge.example:80" if way == "by a name" else f"127.0.0.1:{bench.service.port}"
    words = " ".join(str(refused.value).split())
    assert f"tried to reach {reached} when its module was imported" in words
