"""Secrets that are known by their place alone reach no file and no output (rule G4)."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote
from zipfile import ZipFile, is_zipfile

import pytest

from tests.plugin.own_judges import ONE, RECORD, judged_suite, summary
from tests.plugin.recorded import run_pytest
from tests.support.judge_service import JudgeService

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.plugin.own_judges import Judged
    from tests.plugin.recorded import Done, Recorded

# By where each stands; none is in the environment, and no name but the place says what it is.
PLACES = {
    "file": "env+Value/0012xyz==",
    "header": 'head-Qz77-tail"quoted',
    "basic": "b4sic&word<9>",
    "cookie": "c00kie-Monster-77aa",
    "parameter": "para?Meter/88-zz",
    "field": "f1eld+Secret/99",
    "json": "js0n Secret 55xx",
    "short": "hunt3r2",
    "token": "tok_9f8e7d6c5b4a",
    "refresh": "ref_1a2b3c4d5e6f",
    "location": "loc-Sign-4242-abcd",
    "link": "lnk-Sign-2424-dcba",
    "password": "0ther:Pass/w0rd",
}
JUDGE = """
import base64, json, logging
import {client} as client
from pathlib import Path
from dotenv import dotenv_values

URL = {url!r}


def judge(case):
    own = dotenv_values(Path(__file__).with_name("service.conf"))
    form = {{"grant_type": "client_credentials", "client_secret": own["field"]}}
    got = client.post(URL + "/token", data=form).json()
    basic = base64.b64encode(("me:" + own["basic"]).encode()).decode()
    headers = {{
        "X-Api-Key": own["header"],
        "Authorization": "Basic " + basic,
        "Cookie": "session=" + own["cookie"],
        "X-Other": own["file"],
        "X-Auth-Token": own["short"],
    }}
    asked = {{
        "transcript": case.transcript,
        "login": {{"password": own["json"], "user": "me"}},
        "nested": json.dumps({{"Authorization": "Bearer " + got["access_token"]}}),
    }}
    answer = client.post(
        URL + "/judge", params={{"api_key": own["parameter"]}}, headers=headers, json=asked{more}
    )
    logging.getLogger("own").warning("logged %s %s", answer.text, got)
    if {fails}:
        raise RuntimeError(f"{{answer.url}} {{answer.text}} {{got}} {{own['short']}}")
    return answer.json()["score"], json.dumps([answer.text, str(answer.url), got])
"""


def forms(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        quote(secret),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        # The letters that are the secret's alone, behind `me:`.
        base64.b64encode(b"me:" + raw).decode()[4 : 4 + 8 * len(raw) // 6],
    }


def reply(path: str, body: str) -> tuple[int, Mapping[str, str], bytes]:
    if path == "/token":
        assert parse_qs(body)["client_secret"] == [PLACES["field"]]
        tokens = {"access_token": PLACES["token"], "refresh_token": PLACES["refresh"]}
        return 200, {}, json.dumps({**tokens, "password": PLACES["password"]}).encode()
    if path.startswith("/judge"):
        to = f"/end?X-Amz-Signature={PLACES['location']}&part=1"
        more = {"location": to, "link": f'</n?sig={PLACES["link"]}>; rel="next"'}
        return 307, more, b""
    echo = " ".join(form for secret in PLACES.values() for form in sorted(forms(secret)))
    return 200, {}, json.dumps({"score": 1, "echo": echo}).encode()


def texts_of(folder: Path, given: set[Path]) -> dict[str, bytes]:
    texts = {}
    for path in sorted(set(folder.rglob("*")) - given):
        if not path.is_file():
            continue
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        texts[name] = content
        if is_zipfile(path):
            with ZipFile(path) as archive:
                texts |= {f"{name}:{part}": archive.read(part) for part in archive.namelist()}
        if path.suffix == ".html":
            blocks = re.findall(r">([A-Za-z0-9+/=\s]{80,})<", content.decode())
            for number, block in enumerate(blocks):
                texts[f"{name}:{number}"] = zlib.decompress(base64.b64decode(block))
    return texts


def leaks(texts: Mapping[str, bytes]) -> list[tuple[str, str]]:
    return [
        (place, name)
        for place, secret in PLACES.items()
        for form in forms(secret)
        for name, text in texts.items()
        if form.encode() in text
    ]


def outputs(done: Done) -> dict[str, bytes]:
    return {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}


def write(judged: Judged, url: str, client: str, *, fails: bool) -> None:
    more = ", follow_redirects=True" if client == "httpx" else ""
    judged.write(JUDGE.format(url=url, client=client, fails=fails, more=more))


def configure(judged: Judged, values: Mapping[str, str]) -> None:
    lines = (f"{name}='{value}'\n" for name, value in values.items())
    path = judged.suite.config.with_name("service.conf")
    path.write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("client", ["requests", "httpx"])
def test_what_a_judge_sends_gets_and_says_is_kept_without_secrets(
    recorded: Recorded, pytester: pytest.Pytester, client: str
) -> None:
    judged = judged_suite(recorded.tiny, "")
    configure(judged, PLACES)
    arguments = (
        judged.suite.option,
        *("-rA", "--junitxml=results.xml", "--log-file=all.log", "--log-level=DEBUG"),
        *("-o", "junit_logging=all", "--jrh-report=report.html", "--jrh-report=summary.md"),
        *ONE,
    )
    with JudgeService(reply=reply) as service:
        url = service.url.removesuffix("/judge")
        write(judged, url, client, fails=True)
        given = {path for path in pytester.path.rglob("*") if path.is_file()}
        failed = run_pytest(pytester.path, *arguments, "--jrh-judge-record-mode=new_episodes")
        assert summary(failed) == "7 deselected, 1 error", failed.stdout
        assert leaks({**texts_of(pytester.path, given), **outputs(failed)}) == []
        assert "[REDACTED]" in failed.stdout
        write(judged, url, client, fails=False)
        judged.cassette.unlink(missing_ok=True)
        done = run_pytest(pytester.path, *arguments, RECORD)
        assert summary(done) == "1 passed, 7 deselected", done.stdout
        assert any(PLACES["header"] in asked.get("x-api-key", "") for asked in service.headers)
    assert leaks({**texts_of(pytester.path, given), **outputs(done)}) == []
    assert "part=1" in judged.cassette.read_text(encoding="utf-8")
    # Where the secrets are others, as on a machine that has none of them.
    configure(judged, dict.fromkeys(PLACES, "n0thing-of-that-1"))
    replayed = run_pytest(pytester.path, *arguments)
    assert summary(replayed) == "1 passed, 7 deselected", replayed.stdout


JUDGE_OF_SETTINGS = """
import httpx

def judge(case):
    answer = httpx.post({url!r}, json={{"transcript": case.transcript}}).json()
    return answer["verdict"], answer["why"]
"""


def test_settings_named_like_secrets_leave_the_answer_readable(
    recorded: Recorded, pytester: pytest.Pytester
) -> None:
    judged = judged_suite(recorded.tiny, JUDGE_OF_SETTINGS)
    env = judged.suite.config.with_name(".env")
    env.write_text("USE_AUTH=true\nDB_PASSWORD=verdict\n", encoding="utf-8")
    said = b'{\n  "verdict": true, "why": "The verdict is plain."}'
    with JudgeService(reply=lambda _path, _body: (200, {}, said)) as service:
        judged.write(JUDGE_OF_SETTINGS.format(url=service.url))
        judged.configure({"python": "judges.py:judge", "score_map": {"true": 1, "false": 0}})
        done = pytester.runpytest_inprocess(judged.suite.option, RECORD, *ONE)
        done.assert_outcomes(passed=1, deselected=7)
    assert "The [REDACTED] is plain." in judged.cassette.read_text(encoding="utf-8")
    replayed = pytester.runpytest_inprocess(judged.suite.option, *ONE)
    replayed.assert_outcomes(passed=1, deselected=7)
