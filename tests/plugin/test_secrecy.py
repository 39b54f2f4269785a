"""What pytest shows of our own mistakes and of what judges print, and what an honest judge of own
code sends, gets and says, holds no secret; nor does a call of a case (docs/more_tests.md)."""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench
from tests.plugin.recorded import ONE, RECORD, Judged, MakeJudged, Recorded, run_pytest, summary
from tests.support.fork_server import python
from tests.support.judge_service import JudgeService
from tests.support.made_cases import calling, case_from, given, turn, undone
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import run, write_suite

KEY = "sk-proj-" + "Zq7" * 20 + "END"
PIECE = KEY[8:20]

_BROKEN_RESULT = """
import logging, sys
from pytest_jrh.plugin.session import SuiteSession

def result(self, spec):
    key = self.redactor.secrets[0]
    print("printed", key)
    logging.getLogger("some").warning("logged %s", key)
    raise ValueError("held by " + key)

SuiteSession.result = result
"""
_BROKEN_START = """
from pytest_jrh.plugin.session import SuiteSession

def start(self, specs):
    secret = self.redactor.secrets[0]
    raise RuntimeError("held by " + secret)

SuiteSession.start = start
"""
_BROKEN_COLLECTION = """
from pytest_jrh.engine.suite import ReadySuite

def specs(self):
    import os
    secret = os.environ["OPENAI_API_KEY"]
    raise RuntimeError("held by " + secret)

ReadySuite.specs = specs
"""
_BROKEN_PLUGIN = """
import os

def pytest_runtestloop():
    raise RuntimeError("held by " + os.environ["OPENAI_API_KEY"])
"""


@pytest.fixture
def option(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return write_suite(pytester.path, runs=1).option


@pytest.mark.parametrize(
    ("broken", "processes"),
    [
        (_BROKEN_RESULT, ("-n1",)),
        (_BROKEN_START, ()),
        (_BROKEN_COLLECTION, ()),
        (_BROKEN_PLUGIN, ()),
    ],
    ids=["result", "start", "collection", "another plugin"],
)
def test_a_mistake_of_ours_or_of_another_plugin_shows_no_secret(
    pytester: pytest.Pytester, option: str, broken: str, processes: tuple[str, ...]
) -> None:
    pytester.makeconftest(broken)
    more = ("--showlocals", "-rA", "--junitxml=results.xml", *processes)
    result = pytester.run(*python(), "-m", "pytest", option, *more)
    assert result.ret != 0
    report = pytester.path / "results.xml"
    shown = f"{result.stdout}{result.stderr}"
    if report.exists():
        shown += report.read_text(encoding="utf-8")
    assert "held by [REDACTED]" in shown
    assert PIECE not in shown


_OF_ITS_CASE = """
import asyncio, logging, os, sys, threading, warnings

KEY = os.environ["OPENAI_API_KEY"]
print("imported", KEY)
KEPT, LOG = sys.stderr, logging.getLogger("own")
LOG.addHandler(logging.StreamHandler())


async def judge(case):
    who = f"<{case.run_id}>"
    await asyncio.sleep(0)
    print(who, "print", KEY)
    sys.stdout.write(who + " pieces " + KEY[:9])
    await asyncio.sleep(0)
    sys.stdout.write(KEY[9:] + "\\n")
    print(who, "stderr", KEY, file=sys.stderr)
    print(who, "kept", KEY, file=KEPT)
    print(who, "original", KEY, file=sys.__stdout__, flush=True)
    LOG.warning("%s log %s", who, KEY)
    warnings.warn(who + " warning " + KEY)
    try:
        raise ValueError(KEY)
    except ValueError:
        LOG.exception("no answer", stack_info=True)
    thread = threading.Thread(target=print, args=(who, "thread", KEY))
    thread.start()
    thread.join()
    return 0
"""
_WAYS = ("print", "pieces", "stderr", "kept", "original", "log", "thread")


@pytest.mark.parametrize("options", [(), ("-n2",), ("-s",), ("--capture=sys", RECORD)])
def test_what_code_prints_stands_in_its_own_case_without_keys(
    judged: MakeJudged,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged(_OF_ITS_CASE)
    # A suite that is found among other tests is as one that is named.
    suite = str(made.suite.config) if "-n2" in options else made.suite.option
    junit = ("--junitxml=results.xml", "-o", "junit_logging=all")
    arguments = (suite, "-k", "positives and not run-3", "-rA", *junit, *options)
    done = run_pytest(pytester.path, *arguments)
    report = (pytester.path / "results.xml").read_text("utf-8")
    assert PIECE not in done.stdout + done.stderr + report
    for text in ("UserWarning: <run-1> warning [REDACTED]", "ValueError: [REDACTED]"):
        assert text in done.stdout + done.stderr
    for case in ElementTree.fromstring(report).iter("testcase"):
        text = "".join(output.text or "" for output in case if output.tag.startswith("system"))
        words = re.findall(r"<([\w-]+)> (\w+) \[REDACTED\]", text)
        run_id = case.attrib["name"].partition("[")[0]
        expected = {} if "-s" in options else {(run_id, way) for way in _WAYS}
        assert set(words) == set(expected)


_OF_PROGRAMS = """
import os, time


def judge(case):
    for _ in range(5):
        time.sleep(0.02)
        os.write(1, b"written " + os.environb[b"OPENAI_API_KEY"] + b"\\n")
        os.system("echo spoken $OPENAI_API_KEY; echo complained $OPENAI_API_KEY >&2")
    return 0
"""


@pytest.mark.parametrize("options", [(), ("-n2",)])
def test_what_programs_of_a_judge_print_never_reaches_the_terminal_raw(
    judged: MakeJudged,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    """Between two items pytest gives the terminal back, and the next judges are at work."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged(_OF_PROGRAMS)
    done = run_pytest(pytester.path, made.suite.option, RECORD, "-rA", *options)
    shown = done.stdout + done.stderr
    assert KEY not in shown
    for word in ("written", "spoken", "complained"):
        assert f"{word} [REDACTED]" in shown
    # The way to the terminal is pytest's own again.
    assert re.search(r"= 3 failed, 3 passed, .* =+\n", done.stdout)


def test_what_a_module_raises_that_cannot_be_imported_is_shown_without_secrets(
    judged: MakeJudged, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = judged("import os\nraise ValueError('no more ' + os.environ['OPENAI_API_KEY'])\n")
    done = run_pytest(pytester.path, made.suite.option)
    assert "ValueError: no more [REDACTED]" in done.stdout + done.stderr
    assert KEY[:8] not in done.stdout + done.stderr


OWN_KEY = "sk-Honest/77+key==0123456789"
HEADER = "of-a-File-0123456789abcdef"
TOKEN = "tok_9f8e7d6c5b4a3210"
LATE = "plain-words-0123456789"
ASKING = """
import base64, json, logging, os
import httpx, requests
from pathlib import Path

URL = {url!r}


def ask(client, case):
    key = os.environ["JUDGE_API_KEY"]
    late = os.environ["LATE_API_KEY"] = "-".join(["plain", "words", "0123456789"])
    got = client.post(URL + "/token", data={{"client_secret": key}}).json()
    basic = base64.b64encode(("me:" + key).encode()).decode()
    headers = {{
        "Authorization": "Basic " + basic,
        "X-Api-Key": Path(__file__).with_name("key.txt").read_text(),
    }}
    asked = {{
        "transcript": case.transcript,
        "login": {{"password": key, "user": "me", "late": late}},
        "nested": json.dumps({{"Authorization": "Bearer " + got["access_token"], "key": key}}),
    }}
    answer = client.post(URL + "/judge", params={{"api_key": key}}, headers=headers, json=asked)
    logging.getLogger("own").warning("logged %s", answer.text)
    print(answer.text, late)
    return answer


def judging(case):
    answer = ask(requests, case)
    said = [answer.text, str(answer.url), os.environ["LATE_API_KEY"]]
    return answer.json()["score"], json.dumps(said)


def failing(case):
    answer = ask(httpx, case)
    raise RuntimeError(f"{{answer.url}} {{answer.text}}")
"""


def forms(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        quote(secret),
        base64.b64encode(raw).decode().rstrip("=")[:-1],
        base64.urlsafe_b64encode(raw).decode().rstrip("=")[:-1],
        # The letters that are the secret's alone, behind `me:`.
        base64.b64encode(b"me:" + raw).decode()[4 : 4 + 8 * len(raw) // 6],
    }


def reply(path: str, _body: str) -> tuple[int, Mapping[str, str], bytes]:
    if path == "/token":
        return 200, {}, json.dumps({"access_token": TOKEN, "expires_in": 5}).encode()
    echo = " ".join(form for secret in (OWN_KEY, HEADER) for form in sorted(forms(secret)))
    return 200, {}, json.dumps({"score": 1, "echo": echo}).encode()


def texts_of(folder: Path, given: set[Path]) -> dict[str, bytes]:
    texts: dict[str, bytes] = {}
    for path in filter(Path.is_file, sorted(set(folder.rglob("*")) - given)):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        texts[name] = content
        if path.suffix == ".html":
            blocks = re.findall(r">([A-Za-z0-9+/=\s]{80,})<", content.decode())
            for number, block in enumerate(blocks):
                texts[f"{name}:{number}"] = zlib.decompress(base64.b64decode(block))
    return texts


def test_what_judges_send_get_and_say_is_kept_without_keys(
    recorded: Recorded, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", OWN_KEY)
    judged = Judged(recorded.tiny)
    judged.panel({"name": name, "python": f"judges.py:{name}"} for name in ("judging", "failing"))
    judged.suite.config.with_name("key.txt").write_text(HEADER, encoding="utf-8")
    arguments = (
        judged.suite.option,
        *("-rA", "--junitxml=results.xml", "--log-file=all.log", "--log-level=DEBUG"),
        *("-o", "junit_logging=all", "--jrh-report=report.html", "--jrh-report=summary.md"),
        *ONE,
    )
    with JudgeService(reply=reply) as service:
        judged.write(ASKING.format(url=service.url.removesuffix("/judge")))
        given = {path for path in pytester.path.rglob("*") if path.is_file()}
        done = run_pytest(pytester.path, *arguments, RECORD)
        assert summary(done) == "1 passed, 14 deselected, 1 error", done.stdout
        assert any(HEADER in asked.get("x-api-key", "") for asked in service.headers)
        assert any(LATE in asked for asked in service.asked)
    outputs = {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    texts = {**texts_of(pytester.path, given), **outputs}
    for secret in (OWN_KEY, HEADER, TOKEN, LATE):
        for form in forms(secret):
            assert not [name for name, text in texts.items() if form.encode() in text]
    assert "[REDACTED]" in done.stdout
    # Where the keys are others, as on a machine that has none of them.
    monkeypatch.setenv("JUDGE_API_KEY", "n0thing-of-that-1")
    monkeypatch.setenv("LATE_API_KEY", "")
    first = Bench(judged.suite, judged.suite.cassettes).replay().results[0]
    assert (first.outcome, first.spending.all.calls) == ("agree", 0), no_verdict_text(first.why)


SECRET = "tok-9fK2mQ7xR4vT8wZ1-LIVE"
RUN = (
    turn(0, "user", "Order 17 came broken. I want my money back."),
    calling(1, "Let me see who you are.", "c1", "verify", name=f"Ada {SECRET}"),
    given(2, "known", "c1", "verify"),
    calling(3, "", "c2", "refund", order=17, key=SECRET, amount=56.5),
    given(4, '{"refunded": 56.5}', "c2", "refund"),
    turn(5, "assistant", f"I have refunded 56.50 by {SECRET}."),
)
WHY = {"goal": SECRET, "rationale": f"Why {SECRET}."}
STEPS = [
    {"kind": "omit", "message_index": 1, "call": "c1", **WHY},
    {"kind": "call", "message_index": 3, "call": "c2", **WHY},
]
VERDICT = {"rationale": SECRET, "verdict": "FAIL", "contradiction": "", "contradicts_itself": False}


def edit(request: Request) -> dict[str, Any]:
    """The editor: of words, or of a call with its result."""
    if "arguments" not in request.fields:
        return {"new_content": f"I have refunded 96.50 by {SECRET}.", "reason": SECRET}
    return {
        "words": SECRET,
        "arguments": json.dumps({"order": 17, "key": f"{SECRET}2", "amount": 96.5}),
        "result": '{"refunded": 96.5}',
        "result_is_error": False,
        "reason": "Refunds 40.00 too much.",
    }


def test_a_secret_in_a_call_is_in_no_file_and_the_case_stays_usable(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", SECRET)
    server.answer = override(
        Obedient(),
        planner={"thesis": SECRET, "steps": STEPS},
        editor=edit,
        verifier=VERDICT,
        judge={"reasoning": f"All is well in [1]: {SECRET}.", "score": 0},
    )
    files = write_suite(
        pytester.path,
        runs=[run(1, messages=RUN)],
        tests=("agent_perturbation",),
        overrides={"test_agent_perturbation_config": {"edits": "acts"}},
    )
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md", "--junitxml=junit.xml")
    for mode in ("--jrh-record-mode=once", "--jrh-frozen"):
        done = pytester.runpytest_inprocess(files.option, "-vv", mode, *reports)
        done.assert_outcomes(failed=1)
        assert SECRET not in done.stdout.str() + done.stderr.str()
        kept = [path for path in files.folder.rglob("*") if path.is_file()]
        holders = [path for path in kept if SECRET.encode() in path.read_bytes()]
        assert {path.suffix for path in holders} <= {".eval"}
    [case] = map(case_from, (files.negatives / "agent_perturbations.jsonl").open("rb"))
    kinds = [edited.kind for edited in case.outcome.edits]
    assert (case.altered, kinds) == (False, ["omit", "call", "say"])
    assert undone(case.messages, case.outcome.edits) == case.run.messages
