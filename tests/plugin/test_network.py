"""On replay no judge's code reaches the network, from before its module is imported."""

from __future__ import annotations

import sys

import pytest

from tests.plugin.own_judges import ONE, MakeJudged, summary, words
from tests.plugin.recorded import run_pytest
from tests.support.judge_service import JudgeService

JUDGE = """
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


def test_a_judge_that_goes_past_the_recording_is_stopped_and_named_on_replay(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    with JudgeService() as service:
        made = judged(JUDGE.format(url=service.url))
        port = service.url.split(":")[2].partition("/")[0]
        replayed = run_pytest(pytester.path, made.suite.option, *ONE)
        assert not service.asked
        assert summary(replayed) == "7 deselected, 1 error", replayed.stdout
        assert (
            f"The judge judges.py:judge was stopped: it tried to reach 127.0.0.1:{port}, which no "
            "recording answers."
        ) in words(replayed)


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


@pytest.mark.parametrize("way", AT_IMPORT)
def test_a_module_that_asks_when_it_is_imported_is_refused_on_replay(
    judged: MakeJudged, pytester: pytest.Pytester, way: str
) -> None:
    with JudgeService() as service:
        source = IMPORTED.format(url=service.url, way=AT_IMPORT[way].replace("\n", "\n    "))
        made = judged(source)
        replayed = run_pytest(pytester.path, made.suite.option, *ONE)
        assert not service.asked
        assert replayed.code == pytest.ExitCode.USAGE_ERROR, replayed.stdout
        port = service.url.split(":")[2].partition("/")[0]
        reached = "judge.example:80" if way == "by a name" else f"127.0.0.1:{port}"
        said = " ".join(replayed.stderr.split())
        assert f"tried to reach {reached} when its module was imported" in said


def test_a_thread_that_outlives_the_session_sends_nothing(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    with JudgeService() as service:
        made = judged(
            f"import threading, requests\nURL = {service.url!r}\n"
            "def late():\n    threading.main_thread().join()\n    requests.post(URL, json=1)\n"
            "threading.Thread(target=late).start()\n"
            "def judge(case):\n    return int('ok-marker-violation' in case.transcript)\n"
        )
        replayed = run_pytest(pytester.path, made.suite.option, *ONE, interpreter=[sys.executable])
        assert summary(replayed) == "1 passed, 7 deselected", replayed.stdout
        assert not service.asked


JUDGE_BESIDE_TESTS = """
import time
from pathlib import Path
MARK = Path(__file__).with_name("judging")
def judge(case):
    MARK.touch()
    while not MARK.with_name("tested").exists():
        time.sleep(0.01)
    return int("ok-marker-violation" in case.transcript)
"""
OWN_TEST = """
import socket, threading, time
from pathlib import Path
FOLDER = Path({folder!r})
def test_own():
    while not (FOLDER / "judging").exists():
        time.sleep(0.01)
    failed = []
    def work():
        try:
            with socket.create_server(("127.0.0.1", 0)) as server:
                with socket.create_connection(server.getsockname()) as line:
                    line.sendall(b"?")
        except BaseException as error:
            failed.append(error)
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (FOLDER / "tested").touch()
    assert not failed
"""


def test_the_projects_own_tests_connect_while_a_judge_replays(
    judged: MakeJudged, pytester: pytest.Pytester
) -> None:
    made = judged(JUDGE_BESIDE_TESTS)
    own = pytester.makepyfile(test_own=OWN_TEST.format(folder=str(made.suite.config.parent)))
    done = run_pytest(pytester.path, str(own), made.suite.option, "-k", "test_own or run-1")
    assert "3 passed" in summary(done), done.stdout
