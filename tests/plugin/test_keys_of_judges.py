"""What an honest judge of own code sends, gets and says is written without keys."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench
from tests.plugin.own_judges import ONE, RECORD, Judged, summary
from tests.plugin.recorded import run_pytest
from tests.support.judge_service import JudgeService

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from tests.plugin.recorded import Recorded

KEY = "sk-Honest/77+key==0123456789"
HEADER = "of-a-File-0123456789abcdef"
TOKEN = "tok_9f8e7d6c5b4a3210"
LATE = "plain-words-0123456789"
JUDGES = """
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
    echo = " ".join(form for secret in (KEY, HEADER) for form in sorted(forms(secret)))
    return 200, {}, json.dumps({"score": 1, "echo": echo}).encode()


def texts_of(folder: Path, given: set[Path]) -> dict[str, bytes]:
    texts: dict[str, bytes] = {}
    for path in sorted(set(folder.rglob("*")) - given):
        if not path.is_file():
            continue
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        texts[name] = content
        if path.suffix == ".html":
            blocks = re.findall(r">([A-Za-z0-9+/=\s]{80,})<", content.decode())
            for number, block in enumerate(blocks):
                texts[f"{name}:{number}"] = zlib.decompress(base64.b64decode(block))
    return texts


def leaks(texts: Mapping[str, bytes]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for secret in (KEY, HEADER, TOKEN, LATE):
        for form in forms(secret):
            found += ((secret, name) for name, text in texts.items() if form.encode() in text)
    return found


def test_what_judges_send_get_and_say_is_kept_without_keys(
    recorded: Recorded, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", KEY)
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
        judged.write(JUDGES.format(url=service.url.removesuffix("/judge")))
        given = {path for path in pytester.path.rglob("*") if path.is_file()}
        done = run_pytest(pytester.path, *arguments, RECORD)
        assert summary(done) == "1 passed, 14 deselected, 1 error", done.stdout
        assert any(HEADER in asked.get("x-api-key", "") for asked in service.headers)
        assert any(LATE in asked for asked in service.asked)
    outputs = {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    assert leaks({**texts_of(pytester.path, given), **outputs}) == []
    assert "[REDACTED]" in done.stdout
    # Where the keys are others, as on a machine that has none of them.
    monkeypatch.setenv("JUDGE_API_KEY", "n0thing-of-that-1")
    monkeypatch.setenv("LATE_API_KEY", "")
    first = Bench(judged.suite, judged.suite.cassettes).replay().results[0]
    assert (first.outcome, first.spending.all.calls) == ("agree", 0), no_verdict_text(first.why)
