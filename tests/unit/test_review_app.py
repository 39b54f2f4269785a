"""The page over HTTP: who is let in, how much is read, and that nothing of a transcript is markup
(rule K4)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import Judgment, Verdict
from pytest_jrh.review import serving as server_module
from pytest_jrh.review.board import ReviewBoard
from pytest_jrh.review.pages import AgentTemplates, DecidePage
from pytest_jrh.review.serving import MAX_BODY, ReviewServer, serve
from pytest_jrh.store.decisions import open_stores
from tests.browser.material import HOSTILE, hostile_case, made_case, review_suite
from tests.support.made_cases import make_act_case

pytest.importorskip("starlette", reason="needs starlette (the extra `review`)")
pytest.importorskip("uvicorn", reason="needs uvicorn (the extra `review`)")

PLANNER = "Plan it: {{ rubric_instructions }} {{ assistant_transcript }}"


@dataclass
class Page:
    """A running page, and a client that was let in."""

    board: ReviewBoard
    server: ReviewServer
    client: httpx.Client
    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = next(self.news())["rows"]
        return rows

    def news(self, last: str = "") -> Iterator[dict[str, Any]]:
        with self.client.stream(
            "GET", "/events", headers={"last-event-id": last}, timeout=30
        ) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)


@contextmanager
def entered(server: ReviewServer) -> Iterator[httpx.Client]:
    origin = f"http://127.0.0.1:{server.port}"
    with httpx.Client(base_url=origin, headers={"origin": origin}, trust_env=False) as client:
        assert client.get(server.url).status_code == 200
        yield client


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    suite = review_suite(tmp_path)
    board = ReviewBoard(open_stores([suite]))
    board.add(made_case())
    server = serve(DecidePage(board, AgentTemplates([suite])), port=0)
    try:
        with entered(server) as client:
            yield Page(board, server, client, tmp_path)
    finally:
        server.stop()


def stranger(page: Page, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=page.client.base_url, headers=headers, trust_env=False)


ADDRESSES = [
    "/",
    "/static/decide.js",
    "/events",
    "/cases/x",
    "/templates",
    "/?token=wrong",
    "/?token=",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_served_without_the_token(page: Page, address: str) -> None:
    with stranger(page) as client:
        assert client.get(address).status_code == 403
    with stranger(page, cookie=f"jrh_review_{page.server.port}=wrong") as client:
        assert client.get(address).status_code == 403


def test_the_cookie_is_strict_and_out_of_reach_of_scripts(page: Page) -> None:
    with stranger(page) as client:
        cookie = client.get(page.server.url).headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}"]
)
def test_a_foreign_host_is_refused_even_with_the_token(page: Page, host: str) -> None:
    response = page.client.get("/", headers={"host": host.format(port=page.server.port)})
    assert response.status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
def test_a_foreign_origin_is_refused_even_with_the_token(page: Page, origin: str) -> None:
    headers = {"origin": origin.format(port=page.server.port)}
    assert page.client.get("/", headers=headers).status_code == 403
    assert page.client.post("/finalize", headers=headers).status_code == 403
    assert not page.board.finalized


def test_a_change_without_an_origin_is_refused(page: Page) -> None:
    with stranger(page, cookie=f"jrh_review_{page.server.port}=x") as client:
        assert client.post("/finalize").status_code == 403
    del page.client.headers["origin"]
    assert page.client.post("/finalize").status_code == 403
    assert not page.board.finalized


def test_a_request_of_50_mb_is_refused_and_the_page_lives_on(page: Page) -> None:
    assert page.client.post("/finalize", content=b"x" * 50_000_000).status_code == 413
    assert page.client.get("/").status_code == 200
    assert not page.board.finalized


def test_a_request_that_reads_cannot_bring_50_mb_either(page: Page) -> None:
    assert page.client.request("GET", "/templates", content=b"x" * 50_000_000).status_code == 413


def test_a_body_that_hides_its_size_is_refused_too(page: Page) -> None:
    chunks = (b"x" * 65_536 for _ in range(MAX_BODY // 65_536 + 2))
    assert page.client.post("/finalize", content=chunks).status_code == 413


def test_every_answer_has_the_policy(page: Page) -> None:
    with stranger(page) as client:
        answers = [page.client.get("/"), page.client.get("/cases/none"), client.get("/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_has_inline_script_or_style_or_an_address_elsewhere(page: Page) -> None:
    text = page.client.get("/").text + page.client.get(f"/cases/{page.rows[0]['key']}").text
    assert "<script>" not in text
    assert "<style" not in text
    assert 'style="' not in text
    assert "://" not in text


@pytest.mark.parametrize(
    "name", ["../page.html", "..%2Fserver.py", "%2e%2e/server.py", "/etc/passwd", "app.py", ""]
)
def test_no_path_of_a_request_reaches_a_file(page: Page, name: str) -> None:
    assert page.client.get(f"/static/{name}").status_code == 404
    assert page.client.get(f"/cases/{name}").status_code == 404


def test_a_hostile_transcript_is_text_and_nothing_else(page: Page) -> None:
    page.board.add(hostile_case())
    body = page.client.get(f"/cases/{page.rows[1]['key']}").text
    assert body.count("&lt;script&gt;window.ran") > 10
    for markup in ("<script", "<img", "<svg", 'onerror="', '<a href="javascript', "\x1b", "\u202e"):
        assert markup not in body
    assert "59552089" not in body
    assert "{{ 7717*7717 }}" in body


def test_a_hostile_rubric_id_writes_nothing_outside(page: Page) -> None:
    page.board.add(hostile_case())
    one = page.rows[1]
    assert (
        page.post(
            f"/cases/{one['key']}/decision", digest=one["digest"], action="rejected"
        ).status_code
        == 200
    )
    written = {
        str(path.relative_to(page.folder)) for path in page.folder.rglob("*") if path.is_file()
    }
    assert written == {"cases/agent_perturbation/review/decisions.jsonl"}
    assert not list(page.folder.parent.glob("x*"))


def test_deciding_editing_and_labelling_over_http(page: Page) -> None:
    one = page.rows[0]
    case, digest = f"/cases/{one['key']}", one["digest"]
    assert (
        page.post(f"{case}/turns/4", digest=digest, content=HOSTILE).json()["row"]["action"]
        == "edited"
    )
    assert page.client.get(f"{case}/turns/4").json()["content"] == HOSTILE
    assert page.post(f"{case}/label", digest=digest, expected=0).json()["row"]["expected"] == 0
    rejected = page.post(f"{case}/decision", digest=digest, action="rejected", note="no").json()
    assert (rejected["row"]["action"], rejected["progress"]["decided"]) == ("rejected", 1)
    assert (
        page.post(f"{case}/decision", digest=digest, action="withdrawn").json()["row"]["action"]
        is None
    )


def test_a_call_is_edited_over_http_and_mistakes_are_told(page: Page) -> None:
    page.board.add(make_act_case())
    one = page.rows[1]
    case, digest = f"/cases/{one['key']}", one["digest"]
    turn = page.client.get(f"{case}/turns/1").json()
    assert (turn["calls"][0]["name"], turn["calls_changed"]) == ("refund", False)
    arguments, result = turn["calls"][0]["arguments"], '{"refunded": 76.0}'

    def edit(typed: str) -> httpx.Response:
        call = {"call": 0, "arguments": typed, "result": result}
        return page.post(f"{case}/turns/1", digest=digest, content="", calls=[call])

    for typed, mistake in (
        ("{", "what you typed as arguments is not valid JSON: "),
        ('{"order": 1, "order": 2}', "duplicate key"),
        ("[" * 90_000, "nested more than 100 levels deep"),
        ("[1]", "the arguments are [1], no object"),
        ("{}", "is missing from its arguments"),
        (arguments.replace("96.0", '"<b>"'), "not a number"),
    ):
        answer = edit(typed)
        assert (answer.status_code, mistake in answer.json()["error"]) == (409, True), answer.text
    assert page.rows[1]["action"] is None
    assert edit(arguments.replace("96.0", "76.0")).json()["row"]["action"] == "edited"
    turn = page.client.get(f"{case}/turns/1").json()
    assert (turn["calls"][0]["result"], turn["calls_changed"]) == (result, True)
    shown = page.client.get(case).text
    assert 'id="turn-was-1"' in shown
    assert page.client.get(f"{case}/omitted/2/parts/0").text == '{\n  "ok": true\n}'
    back = page.post(f"{case}/turns/1", digest=digest, content=None).json()
    assert back["row"]["action"] is None
    # Cases of words offer no calls.
    words = page.client.get(f"/cases/{page.rows[0]['key']}/turns/2").json()
    assert set(words) == {"content", "made"}


@pytest.mark.parametrize(
    ("address", "body", "status"),
    [
        ("/cases/none/decision", {"digest": "{digest}", "action": "accepted"}, 404),
        ("/cases/{key}/decision", {"digest": "older", "action": "accepted"}, 409),
        ("/cases/{key}/decision", {"digest": "{digest}", "action": "maybe"}, 422),
        (
            "/cases/{key}/decision",
            {"digest": "{digest}", "action": "accepted", "path": "/etc/x"},
            422,
        ),
        ("/cases/{key}/turns/0", {"digest": "{digest}", "content": "x"}, 409),
        ("/cases/{key}/turns/-4", {"digest": "{digest}", "content": "x"}, 404),
        ("/cases/{key}/turns/" + "9" * 5000, {"digest": "{digest}", "content": "x"}, 404),
        ("/cases/{key}/turns/../4", {"digest": "{digest}", "content": "x"}, 404),
        ("/cases/{key}/label", {"digest": "{digest}", "expected": 7}, 409),
        ("/cases/{key}/label", {"digest": "{digest}", "expected": "1"}, 422),
    ],
)
def test_what_cannot_be_decided_is_refused_and_decides_nothing(
    page: Page, address: str, body: dict[str, Any], status: int
) -> None:
    one = page.rows[0]
    filled = {
        name: value.format(**one) if isinstance(value, str) else value
        for name, value in body.items()
    }
    assert page.client.post(address.format(**one), json=filled).status_code == status
    assert page.rows[0]["action"] is None


def test_of_repeats_each_verdict_that_differs_is_shown(page: Page) -> None:
    verdicts = (
        Verdict(0, "the first"),
        Verdict(1, "<b>the odd one</b>"),
        Verdict(0, "the third"),
        Verdict(0, "the first"),
    )
    page.board.set_verdict(made_case(), Judgment(verdicts))
    text = page.client.get(f"/cases/{page.rows[0]['key']}").text
    assert "0 (3 of 4 said 0, 1 of 4 said 1) · disagrees" in text
    assert text.count("the first") == 1
    assert "Repeat 2 gave 1" in text
    assert "Repeat 3 gave 0</span> the third" in text
    assert "&lt;b&gt;the odd one&lt;/b&gt;" in text


def test_events_bring_what_is_there_and_then_what_changes(page: Page) -> None:
    news = page.news()
    assert [one["run"] for one in next(news)["rows"]] == ["support-000"]
    page.board.add(made_case(1))
    assert [one["run"] for one in next(news)["rows"]] == ["support-001"]


def test_a_reconnecting_browser_gets_only_what_it_missed_and_all_from_another_session(
    page: Page,
) -> None:
    first = next(page.news())
    version, _ = page.board.changes()
    page.board.add(made_case(1))
    missed = next(page.news(f"{first['session']}:{version}"))
    assert (missed["all"], len(missed["rows"])) == (False, 1)
    anew = next(page.news(f"another:{version}"))
    assert (anew["all"], len(anew["rows"])) == (True, 2)


def test_templates_over_http(page: Page) -> None:
    listing = page.client.get("/templates").json()["templates"]
    address = f"/templates/{listing[0]['key']}"
    checked = page.post(f"{address}/check", text=PLANNER).json()
    assert checked["problems"] == []
    assert f"+{PLANNER}" in checked["difference"]
    refused = page.post(address, text=f"{PLANNER}\n{{{{ rubrik }}}}")
    assert refused.status_code == 409
    assert refused.json()["problems"][0]["line"] == 2
    assert page.post(address, text=PLANNER).json()["overridden"]
    override = page.folder / "custom_prompts" / "agent_perturbation" / "planner.md"
    assert override.read_text() == f"{PLANNER}\n"
    assert not page.post(f"{address}/revert").json()["overridden"]
    assert not override.exists()


def test_a_taken_port_is_passed_over_and_only_loopback_is_served(page: Page) -> None:
    other = serve(DecidePage(ReviewBoard({}), AgentTemplates([])), port=page.server.port)
    try:
        assert other.port > page.server.port
        assert other.url.startswith(f"http://127.0.0.1:{other.port}/?token=")
        with entered(other) as client:
            # The two sessions of one host do not take each other's place, nor each other's token.
            assert client.get("/").status_code == 200
            assert page.client.get("/").status_code == 200
            stolen = client.cookies[f"jrh_review_{other.port}"]
        with stranger(page, cookie=f"jrh_review_{page.server.port}={stolen}") as client:
            assert client.get("/").status_code == 403
    finally:
        other.stop()


def test_stopping_ends_open_streams_and_frees_the_port(page: Page) -> None:
    news = page.news()
    next(news)
    page.server.stop()
    page.server.stop()
    with pytest.raises((StopIteration, httpx.HTTPError)):
        next(news)
    with socket.create_server(("127.0.0.1", page.server.port)):
        pass


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        server_module, "find_spec", lambda name: None if name == "uvicorn" else object()
    )
    with pytest.raises(
        InputError, match=r"uvicorn.*not installed\n.*pip install 'pytest-jrh\[review\]'"
    ):
        serve(DecidePage(ReviewBoard({}), AgentTemplates([])))
