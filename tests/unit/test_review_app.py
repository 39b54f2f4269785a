"""The page over HTTP: who is let in, how much is read, and that no transcript is markup."""

import base64
import hashlib
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_jrh.core import InputError
from pytest_jrh.core.cases import Skip, Verdict, Verification
from pytest_jrh.core.results import JudgeLine
from pytest_jrh.people import DecisionStore
from pytest_jrh.people.board import ReviewBoard
from pytest_jrh.people.labels import PersonLabel
from pytest_jrh.review import Deciding, serving
from pytest_jrh.review.serving import MAX_BODY, ReviewServer, reply, serve
from pytest_jrh.stats.verdicts import Baseline
from pytest_jrh.store.ledger import case_result
from tests.browser.material import hostile_case, made_case, review_suite
from tests.support.label_session import entered, news
from tests.support.made_cases import make_act_case

pytest.importorskip("starlette", reason="needs starlette (the extra `review`)")
pytest.importorskip("uvicorn", reason="needs uvicorn (the extra `review`)")


@dataclass
class Page:
    """A running page, and a client that was let in."""

    board: ReviewBoard
    server: ReviewServer
    client: httpx.Client
    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = next(news(self.client))["rows"]
        return rows

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    suite = review_suite(tmp_path)
    board = ReviewBoard(DecisionStore([suite]))
    board.add(made_case())
    server = serve(Deciding(board, [suite]), port=0)
    try:
        with entered(server.url) as client:
            yield Page(board, server, client, tmp_path)
    finally:
        server.stop()


def stranger(page: Page, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=page.client.base_url, headers=headers, trust_env=False)


def test_nothing_is_served_without_the_token_and_its_cookie_is_strict(page: Page) -> None:
    for wrong in ({}, {"cookie": f"jrh_review_{page.server.port}=wrong"}):
        with stranger(page, **wrong) as client:
            for address in ("/", "/events", "/cases/x", "/templates", "/?token=wrong"):
                assert client.get(address).status_code == 403
    with stranger(page) as client:
        cookie = client.get(page.server.url).headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


def test_a_foreign_host_or_origin_and_a_change_without_a_token_are_refused(page: Page) -> None:
    port = page.server.port
    hosts = "evil.example", "127.0.0.1:1", f"localhost.evil.example:{port}"
    origins = "http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{port}"
    strange = [{"host": host} for host in hosts] + [{"origin": origin} for origin in origins]
    for headers in strange:
        assert page.client.get("/", headers=headers).status_code == 403
        assert page.client.post("/finish", headers=headers).status_code == 403
    with stranger(page, cookie=f"jrh_review_{port}=x") as client:
        assert client.post("/finish").status_code == 403
    del page.client.headers["origin"]
    assert page.client.post("/finish").status_code == 403
    assert not page.board.finalized.is_set()


def test_a_request_of_50_mb_is_refused_and_the_page_lives_on(page: Page) -> None:
    assert page.client.post("/finish", content=b"x" * 50_000_000).status_code == 413
    # One that hides its size, too.
    chunks = (b"x" * 65_536 for _ in range(MAX_BODY // 65_536 + 2))
    assert page.client.post("/finish", content=chunks).status_code == 413
    assert page.client.get("/").status_code == 200
    assert not page.board.finalized.is_set()


@pytest.mark.parametrize(
    "body",
    ['{"digest": "x", "expected": 0, "expected": 1}', "{", "[" * 100_000, '{"expected": NaN}'],
)
def test_a_request_that_says_things_twice_or_nothing_changes_nothing(page: Page, body: str) -> None:
    [row] = page.rows
    body = body.replace('"x"', f'"{row["digest"]}"')
    answer = page.client.post(f"/cases/{row['key']}/label", content=body)
    assert (answer.status_code, bool(answer.json()["error"]), page.rows) == (422, True, [row])


def test_every_answer_has_the_policy(page: Page) -> None:
    with stranger(page) as client:
        answers = [page.client.get("/"), page.client.get("/cases/none"), client.get("/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'"):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    # It runs the page's own script alone.
    [script] = re.findall(r"<script>(.*?)</script>", answers[0].text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answers[0].headers["content-security-policy"]


def test_no_path_of_a_request_reaches_a_file(page: Page) -> None:
    names = "../page.html", "..%2Fserver.py", "/etc/passwd", "app.py", ""
    for folder, name in product(("static", "cases", "templates"), names):
        answer = page.client.get(f"/{folder}/{name}")
        assert answer.status_code in (404, 405)
        assert "import" not in answer.text


def test_a_hostile_case_is_text_in_json_and_writes_nothing_outside(page: Page) -> None:
    page.board.add(hostile_case())
    row = page.rows[1]
    case = f"/cases/{row['key']}"
    answer = page.client.get(case)
    assert answer.headers["content-type"] == "application/json"
    assert answer.text.count("<script>window.ran") > 10
    told = json.dumps([answer.json(), row], ensure_ascii=False)
    # Neither as an escape of JSON, which a backslash before it is not.
    assert not re.search(r"(?<!\\)(\\\\)*\\u001b|\u202e", told)
    assert "{{ 7717*7717 }}" in answer.text
    assert page.post(f"{case}/decision", digest=row["digest"], action="rejected").is_success
    written = [path.relative_to(page.folder) for path in page.folder.rglob("*") if path.is_file()]
    assert [*map(str, written)] == ["cases/agent_perturbation/review/decisions.jsonl"]
    assert not list(page.folder.parent.glob("x*"))


@pytest.mark.parametrize(
    ("address", "body", "status"),
    [
        ("/cases/none/decision", {"digest": "{digest}", "action": "accepted"}, 404),
        ("/cases/{key}/decision", {"digest": "older", "action": "accepted"}, 409),
        ("/cases/{key}/decision", {"digest": "{digest}", "action": "accepted", "path": "x"}, 422),
        ("/cases/{key}/turns/0", {"digest": "{digest}", "content": "x"}, 409),
        ("/cases/{key}/turns/-4", {"digest": "{digest}", "content": "x"}, 404),
        ("/cases/{key}/label", {"digest": "{digest}", "expected": 7}, 409),
        ("/cases/{key}/label", {"digest": "{digest}", "expected": "1"}, 422),
    ],
)
def test_nothing_is_decided(page: Page, address: str, body: dict[str, Any], status: int) -> None:
    one = page.rows[0]
    filled = json.dumps(body).replace("{digest}", one["digest"])
    assert page.client.post(address.format(**one), content=filled).status_code == status
    assert page.rows == [one]
    for number in ("9" * 5_000, "9" * 900):
        assert page.client.get(f"/cases/{one['key']}/turns/{number}").status_code == 404


def test_what_people_and_the_old_prompt_said_stands_beside_what_was_said(tmp_path: Path) -> None:
    suite, case = review_suite(tmp_path), made_case(0)
    board = ReviewBoard(DecisionStore([suite]))
    board.add(case)
    board.set_verdicts(case, (Verdict(0, "kept to it"),))
    line = case_result(case.spec, case, verdicts=[Verdict(1, "broke it")], judge_digest="old")
    people = PersonLabel(line.case_digest, "ann", 0, blind=True, note="no refund")
    before = JudgeLine(suite.name, "old", "prompt", ("openai/m",), {}, True, prompt="Be strict.")
    now = replace(before, judge_digest="new", prompt="Be kind.", file="inputs/prompts/judge.md")
    deciding = Deciding(board, [suite], (people,), Baseline({line.case_id: line}, (before,)), [now])
    told = deciding.news(-1)[1]
    [row] = told["rows"]
    assert (row["tags"], told["fix"]) == (["label in doubt"], "judge.md")
    answer = next(answer for _, path, answer, _ in deciding.routes() if path == "/cases/{key}")
    voices = reply(answer, {"key": row["key"]})[1]["voices"]
    said = [" ".join((voice["who"], voice["word"], voice["why"])) for voice in voices[1:]]
    assert said[:1] == ["ann, blind satisfied no refund"]
    assert said[1:] == ["old prompt violated broke it", "new prompt satisfied kept to it"]
    # Of another version of the case it is not a word.
    board.add(replace(case, expected=0))
    assert "old prompt" not in str(reply(answer, {"key": row["key"]})[1]["voices"])


def test_a_case_that_contradicts_itself_says_where_and_offers_no_decision(page: Page) -> None:
    place = "[5] names <b>56.00</b>"
    said, case = Verification("FAIL", "Why.", None, place), make_act_case()
    why = Skip("contradiction", f"the transcript contradicts itself: {place}")
    told = news(page.client)
    assert [one["run"] for one in next(told)["rows"]] == ["support-000"]
    page.board.add(replace(case, outcome=replace(case.outcome, verification=said, no_case=why)))
    # A browser is told what changes, and who comes back everything again.
    [row] = next(told)["rows"]
    assert page.rows[1] == row
    body = page.client.get(f"/cases/{row['key']}").json()
    assert (row["decision"], row["kind"]) == ("rejected by the verifier", "not judged")
    assert (f"contradicts itself: {place})" in body["closed"], body["editable"]) == (True, [])


def test_a_taken_port_is_passed_over_and_only_loopback_is_served(page: Page) -> None:
    other = serve(Deciding(ReviewBoard(DecisionStore([])), []), port=page.server.port)
    try:
        assert other.port != page.server.port
        assert other.url.startswith(f"http://127.0.0.1:{other.port}/?token=")
        with entered(other.url) as client:
            # The two sessions of one host do not take each other's place, nor each other's token.
            assert client.get("/").status_code == 200
            assert page.client.get("/").status_code == 200
            stolen = client.cookies[f"jrh_review_{other.port}"]
        with stranger(page, cookie=f"jrh_review_{page.server.port}={stolen}") as client:
            assert client.get("/").status_code == 403
    finally:
        other.stop()


def test_stopping_ends_open_streams_and_frees_the_port(page: Page) -> None:
    told = news(page.client)
    next(told)
    page.server.stop()
    page.server.stop()
    with pytest.raises((StopIteration, httpx.HTTPError)):
        next(told)
    socket.create_server(("127.0.0.1", page.server.port)).close()


def test_without_the_extra_a_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "find_spec", lambda _name: None)
    with pytest.raises(
        InputError, match=r"(?s)starlette and uvicorn.*pip install 'pytest-jrh\[rev"
    ):
        serve(Deciding(ReviewBoard(DecisionStore([])), []), port=0)
