"""A judge that is a service, and one that a project's conftest supplies (rule Q1)."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any

import pytest
import yaml

from pytest_jrh.core.model import RateLimit, StageModel
from pytest_jrh.llm.transport import Pace
from tests.plugin.own_judges import ONE, RECORD, summary, words
from tests.plugin.recorded import Recorded, run_pytest
from tests.support.judge_service import JudgeService
from tests.support.model_server import ModelServer
from tests.support.offline import needs_cut_network, offline
from tests.support.suites import SuiteFiles

BODY = '{"text": {{ transcript | tojson }}, "why": {{ rubric | tojson }}, "turns": {{ messages }}}'


@pytest.fixture
def suite(recorded: Recorded) -> SuiteFiles:
    for path in recorded.tiny.cassettes.rglob("*.judge-default.yaml"):
        path.unlink()
    return recorded.tiny


def configure(suite: SuiteFiles, judge: Mapping[str, Any] | None = None, **http: Any) -> None:
    config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
    config["judge"] = {**(judge or {}), "http": http}
    suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")


def packed(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return bytes(pytest.importorskip("zstandard").compress(body))
    if encoding == "deflate":
        return zlib.compress(body)
    return gzip.compress(body) if encoding else body


@needs_cut_network
def test_a_service_judges_and_is_replayed_without_a_network(
    suite: SuiteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "service-0123456789abcdef")
    (suite.config.parent / "body.json.j2").write_text(BODY, encoding="utf-8")
    with JudgeService(429, 503) as service:
        configure(
            suite,
            url=service.url,
            headers={"Authorization": "Bearer ${SERVICE_TOKEN}"},
            body="body.json.j2",
            score="/score",
            reasoning="/why",
        )
        first = run_pytest(suite.folder, suite.option, RECORD, "-k", "run-1 or run-2")
    # The service sees the violation that the prompt's judge overlooks in run 2.
    assert summary(first) == "4 passed, 4 deselected", first.stdout
    assert "6 calls made" in words(first)
    assert set(service.asked[0]) == {"text", "why", "turns"}
    assert service.headers[0]["authorization"] == "Bearer service-0123456789abcdef"
    cassettes = [path.read_text() for path in suite.cassettes.rglob("*.judge-default.yaml")]
    assert not any("service-0123" in text for text in cassettes)
    monkeypatch.delenv("SERVICE_TOKEN")
    replayed = run_pytest(suite.folder, suite.option, "-k", "run-1 or run-2", interpreter=offline())
    assert summary(replayed) == "4 passed, 4 deselected", replayed.stdout
    (suite.config.parent / "body.json.j2").write_text(BODY.replace("text", "said"))
    changed = run_pytest(suite.folder, suite.option, *ONE)
    assert summary(changed) == "7 deselected, 1 error"
    assert "No verdict (unrecorded)" in words(changed)


def test_answers_that_end_in_an_empty_line_are_replayed(
    suite: SuiteFiles, pytester: pytest.Pytester
) -> None:
    with JudgeService(end="\n\n") as service:
        configure(suite, url=service.url)
        first = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
        first.assert_outcomes(passed=1, deselected=7)
        again = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    again.assert_outcomes(passed=1, deselected=7)
    assert len(service.asked) == 1
    pytester.runpytest_inprocess(suite.option, *ONE).assert_outcomes(passed=1, deselected=7)


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ({"score": "/verdict"}, "(invalid_response): the judge gave no verdict."),
        ({"score": "/verdict"}, 'has nothing at /verdict, its `score`; it answered {"score": 1,'),
        ({"score": "/why"}, "gave 'It says so.'; a score must be the integer 0 or 1."),
        ({"reasoning": "/score"}, "gave 1 as its reasoning, which is no text."),
    ],
)
def test_an_answer_without_a_verdict_says_what_was_there(
    suite: SuiteFiles, pytester: pytest.Pytester, http: dict[str, Any], said: str
) -> None:
    with JudgeService() as service:
        configure(suite, url=service.url, **http)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(errors=1, deselected=7)
    assert said in " ".join(done.stdout.str().split())


def test_a_service_that_refuses_is_a_model_error(
    suite: SuiteFiles, pytester: pytest.Pytester
) -> None:
    with JudgeService(401) as service:
        configure(suite, url=service.url)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    flat = " ".join(done.stdout.str().split())
    assert "(model_error): the judge gave no verdict. The judge 127.0.0.1:" in flat
    assert "it answered with HTTP status 401" in flat


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_to_another_server_gets_neither_key_nor_transcript(
    suite: SuiteFiles, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "service-0123456789abcdef")
    with JudgeService() as other:
        moved = (status, {"location": other.url}, b"")
        with JudgeService(reply=lambda _path, _body: moved) as service:
            headers = {"X-Api-Key": "${SERVICE_TOKEN}"}
            configure(suite, url=service.url, headers=headers)
            for _ in range(2):
                # The second time, the redirect may be answered from a recording.
                done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
                done.assert_outcomes(errors=1, deselected=7)
    assert not other.headers
    said = f"the server redirects to {other.url.removesuffix('/judge')}; redirects to another"
    assert said in " ".join(done.stdout.str().split())


@pytest.mark.parametrize(
    "path", ["http://xn--bcher-kva.example/moved", "/moved", "//BÜCHER.example/moved"]
)
def test_a_service_with_a_name_in_another_script_is_one_server(
    suite: SuiteFiles, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def reply(asked: str, _body: str) -> tuple[int, dict[str, str], bytes]:
        if asked.endswith("/judge"):
            return 307, {"location": path}, b""
        return 200, {}, b'{"score": 1}'

    with JudgeService(reply=reply) as service:
        # A proxy gets what the name's own server would get.
        monkeypatch.setenv("HTTP_PROXY", service.url)
        configure(suite, url="http://Bücher.example/judge")
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(passed=1, deselected=7)
    assert [headers["host"] for headers in service.headers] == ["xn--bcher-kva.example"] * 2


def test_a_recorded_redirect_to_another_server_is_not_followed_there(
    suite: SuiteFiles, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "service-0123456789abcdef")

    def reply(path: str, _body: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/judge":
            return 307, {"location": "/moved"}, b""
        return 200, {}, b'{"score": 1}'

    with JudgeService() as other, JudgeService(reply=reply) as service:
        configure(suite, url=service.url, headers={"X-Api-Key": "${SERVICE_TOKEN}"})
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
        done.assert_outcomes(passed=1, deselected=7)
        assert len(service.headers) == 2
        [cassette] = suite.cassettes.rglob("*.judge-default.yaml")
        text = cassette.read_text(encoding="utf-8")
        cassette.write_text(text.replace("- /moved", f"- {other.url}"), encoding="utf-8")
        again = "--jrh-judge-record-mode=new_episodes"
        pytester.runpytest_inprocess(suite.option, again, *ONE).assert_outcomes(
            errors=1, deselected=7
        )
    assert not other.headers


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_an_answer_that_is_too_long_is_not_read(
    suite: SuiteFiles, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr("pytest_jrh.llm.transport.LONGEST_ANSWER", 2**20)
    answer = packed(json.dumps({"score": 1, "why": " " * 2**21}).encode(), encoding)
    headers = {"content-encoding": encoding} if encoding else {}
    with JudgeService(reply=lambda _path, _body: (200, headers, answer)) as service:
        configure(suite, url=service.url)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(errors=1, deselected=7)
    assert "the answer is longer than 1 MB" in " ".join(done.stdout.str().split())
    assert sum(path.stat().st_size for path in suite.cassettes.rglob("*.judge*")) < 2**20


def test_a_rate_limit_paces_the_verdicts_that_are_not_recorded(
    suite: SuiteFiles, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[StageModel] = []
    real = Pace.wait

    def wait(pace: Pace, stage: StageModel) -> float:
        waited.append(stage)
        return real(pace, stage)

    monkeypatch.setattr(Pace, "wait", wait)
    again = "--jrh-judge-record-mode=new_episodes"
    with JudgeService() as service:
        configure(suite, url=service.url)
        config = yaml.safe_load(suite.config.read_text(encoding="utf-8"))
        config["judge"]["rate_limit"] = {"calls": 1, "period": 0.01}
        suite.config.write_text(yaml.safe_dump(config), encoding="utf-8")
        for chosen in ("run-1", "run-1 or run-2"):
            done = pytester.runpytest_inprocess(suite.option, again, "-k", chosen)
            assert done.ret == 0
    label = service.url.removeprefix("http://")
    assert {(each.model, each.rate_limit) for each in waited} == {(label, RateLimit(1, 0.01))}
    # Four verdicts were asked for; who had to wait asked more than once.
    assert len(service.asked) == 4 <= len(waited)
    before = len(waited)
    pytester.runpytest_inprocess(suite.option, again, "-k", "run-1 or run-2")
    assert len(waited) == before


def test_a_header_whose_variable_is_not_set_is_named_before_anything_is_asked(
    suite: SuiteFiles, pytester: pytest.Pytester, server: ModelServer
) -> None:
    with JudgeService() as service:
        configure(suite, url=service.url, headers={"X-Api-Key": "${NO_SUCH_KEY_HERE}"})
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
        said = "cannot be asked: the headers need NO_SUCH_KEY_HERE, which the environment does not"
        assert said in " ".join(done.stdout.str().split())
        # Nor are cases made for it.
        shutil.rmtree(suite.cassettes)
        done = pytester.runpytest_inprocess(suite.option, "--jrh-record-mode=once")
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        assert said in " ".join(done.stderr.str().split())
        done.assert_outcomes()
    assert not service.asked
    assert not server.count()


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ({"url": "ftp://x"}, "must be a URL that starts with http:// or https://"),
        ({"url": "http://x", "headers": {"X-Api-Key": "abc"}}, "a config never holds a key"),
        ({"url": "http://x", "score": "score"}, "must be a JSON pointer into the answer"),
        ({"url": "http://x", "body": "none.j2"}, 'file "none.j2" does not exist'),
        ({"url": "http://x", "body": "bad.j2"}, "the request's body is no JSON"),
        ({"url": "http://x", "verb": "GET"}, "unknown key"),
        ({}, "is missing; must be a URL"),
    ],
)
def test_mistakes_of_a_service_are_usage_errors(
    suite: SuiteFiles, pytester: pytest.Pytester, http: dict[str, Any], said: str
) -> None:
    (suite.config.parent / "bad.j2").write_text('{"text": {{ rubric }}}', encoding="utf-8")
    configure(suite, **http)
    done = pytester.runpytest_inprocess(suite.option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in " ".join((done.stderr.str() + done.stdout.str()).split())


@contextlib.contextmanager
def serving(answer: Callable[[BufferedIOBase], None]) -> Iterator[str]:
    """A service that writes what it likes to each request; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            with contextlib.suppress(OSError):
                answer(self.wfile)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/judge"
        server.shutdown()


def whole(body: str, status: str = "200 OK", headers: str = "") -> Callable[[BufferedIOBase], None]:
    sent = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}"

    def answer(out: BufferedIOBase) -> None:
        out.write(sent.encode())

    return answer


def endless(out: BufferedIOBase) -> None:
    out.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        out.write(b" ")
        out.flush()
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"score": 0, "score": 1}', "that is not valid JSON: duplicate key 'score'"),
        ('{"score": 1, "why": NaN}', "that is not valid JSON: NaN is not JSON"),
        ("<html>", "that is not valid JSON: expecting value at character 1; it answered '<html>'"),
        ("[" * 200 + "]" * 200, "that is nested more than 100 levels deep"),
    ],
)
def test_an_answer_that_readers_read_differently_is_no_verdict(
    suite: SuiteFiles, pytester: pytest.Pytester, body: str, said: str
) -> None:
    with serving(whole(body)) as url:
        configure(suite, url=url)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(errors=1, deselected=7)
    flat = " ".join(done.stdout.str().split())
    assert "(invalid_response): the judge gave no verdict." in flat
    assert said in flat


@pytest.mark.parametrize("asked_for", ["inf", "86400"])
def test_a_service_that_asks_for_more_time_than_a_verdict_has_is_not_waited_for(
    suite: SuiteFiles, pytester: pytest.Pytester, asked_for: str
) -> None:
    busy = whole("{}", "429 Too Many Requests", f"Retry-After: {asked_for}\r\n")
    with serving(busy) as url:
        configure(suite, url=url)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(errors=1, deselected=7)
    assert (
        f"it answered with HTTP status 429 and `Retry-After: {asked_for}`, which is later than "
        "the judge's `timeout` of 120 s"
    ) in " ".join(done.stdout.str().split())


@pytest.mark.parametrize(
    ("judge", "http", "said"),
    [
        ({"timeout": 0.5}, {}, "gave no verdict within 0.5 s, its `timeout`."),
        ({}, {"timeout": 0.5}, ": TimeoutError (2 attempts)."),
        ({"timeout": 1}, {"timeout": 60}, "gave no verdict within 1 s, its `timeout`."),
    ],
)
def test_an_answer_that_never_ends_is_late_though_bytes_come_all_the_time(
    suite: SuiteFiles,
    pytester: pytest.Pytester,
    judge: dict[str, Any],
    http: dict[str, Any],
    said: str,
) -> None:
    with serving(endless) as url:
        configure(suite, judge, url=url, **http)
        done = pytester.runpytest_inprocess(suite.option, RECORD, *ONE)
    done.assert_outcomes(errors=1, deselected=7)
    assert said in " ".join(done.stdout.str().split())


HOOK = """
def judge(case):
    return "ok-marker-violation" in case.transcript

def pytest_jrh_judge(config, suite):
    {body}
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "-n 2"])
def test_a_conftest_supplies_the_judge_of_a_suite(
    suite: SuiteFiles, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(HOOK.format(body="return judge if suite == 'tiny' else None"))
    done = run_pytest(suite.folder, suite.option, *workers)
    assert summary(done) == "6 passed, 2 skipped", done.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no judge')", "the hook pytest_jrh_judge raised ValueError: no judge"),
        ("return 7", "the hook pytest_jrh_judge returned int, no function"),
    ],
)
def test_a_hook_that_fails_is_a_usage_error(
    suite: SuiteFiles, pytester: pytest.Pytester, body: str, said: str
) -> None:
    pytester.makeconftest(HOOK.format(body=body))
    done = pytester.runpytest_inprocess(suite.option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in " ".join((done.stderr.str() + done.stdout.str()).split())
