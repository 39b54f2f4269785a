"""On replay no judge's code reaches the network, however long it lives, and all else does."""

import sys

import pytest

from tests.plugin.recorded import ONE, MakeJudged, run_pytest, summary
from tests.support.judge_service import JudgeService


def test_a_late_thread_sends_nothing(judged: MakeJudged, pytester: pytest.Pytester) -> None:
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


def test_other_tests_connect_during_a_replay(judged: MakeJudged, pytester: pytest.Pytester) -> None:
    made = judged(JUDGE_BESIDE_TESTS)
    own = pytester.makepyfile(test_own=OWN_TEST.format(folder=str(made.suite.config.parent)))
    done = run_pytest(pytester.path, str(own), made.suite.option, "-k", "test_own or run-1")
    assert "3 passed" in summary(done), done.stdout
