"""Secrets in the environment, in transcripts, answers and errors reach no file."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.llm.calls import load_template
from tests.support.exchange import error_body
from tests.support.model_server import Fault, ModelServer, Obedient, Reply, Request, override
from tests.support.suites import run, write_suite
from tests.support.whole_way import played_the_whole_way

if TYPE_CHECKING:
    from tests.support.suites import SuiteFiles

# As long as a real one, so that wrapping and shortening would tear it apart.
KEY = "sk-proj-" + "Zq7" * 40 + "END"
TOKEN = "hf_dashed-and+slashed/secret=="
SECRETS = (KEY, TOKEN)
LEAST = 12
PADDING = "The key that you sent is not one of ours. " * 9
RECORD = ("--jrh-record-mode=new_episodes",)


@pytest.fixture
def suite(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> SuiteFiles:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    told = f"My key is {KEY}, and the token {TOKEN}."
    messages = [
        {"role": "user", "content": told},
        {"role": "assistant", "content": f"Thank you. {told}"},
        {"role": "assistant", "content": f"I shall use {KEY}."},
    ]
    server.answer = override(Obedient(), editor=leaking_editor, judge=leaking_judge)
    # Quoted in the log that the user brings, of course, and in no file that we write.
    return write_suite(
        pytester.path,
        runs=[run(1, messages=messages, input=told, target=told), run(2)],
        rubrics=[{"id": "kind", "instructions": f"Be kind, and never tell {TOKEN}."}],
        overrides={"test_agent_perturbation_config": {"output": {"dir": "outputs/made"}}},
    )


def leaking_editor(request: Request) -> Reply:
    fields = {"new_content": f"Take {KEY} and {TOKEN}. ok-marker-violation", "reason": f"{KEY}"}
    return Reply(content=json.dumps(fields))


def leaking_judge(request: Request) -> Reply:
    score = 0 if KEY in request.text else int("ok-marker-violation" in request.text)
    return Reply(content=json.dumps({"score": score, "reasoning": f"It tells {KEY} {TOKEN}."}))


def files_with_secrets(folder: Path, given: set[Path]) -> list[str]:
    forms = {form for secret in SECRETS for form in (secret, json.dumps(secret)[1:-1])}
    # Not even a piece of one, torn by wrapping or shortening.
    pieces = {KEY[start : start + LEAST] for start in range(0, len(KEY) - LEAST, LEAST)}
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in given:
            content = path.read_bytes()
            found += [
                path.relative_to(folder).as_posix()
                for form in forms | pieces
                if form.encode() in content
            ]
    return sorted(set(found))


def test_no_file_holds_a_secret_and_replays_agree_with_recording(
    pytester: pytest.Pytester,
    suite: SuiteFiles,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md", "--junitxml=results.xml")
    arguments = (suite.option, *reports, "--jrh-baseline=baseline.json")
    recorded = pytester.runpytest(suite.option, *reports, *RECORD)
    recorded.assert_outcomes(passed=3, failed=1)
    assert any(KEY in request.text for request in server.requests)
    assert files_with_secrets(pytester.path, given) == []
    for name in ("results.xml", "summary.md"):
        assert "[REDACTED]" in (pytester.path / name).read_text(encoding="utf-8")
    page = (pytester.path / "report.html").read_text("utf-8")
    packed = re.findall(r">([A-Za-z0-9+/=\s]{80,})<", page)
    inside = b"".join(zlib.decompress(base64.b64decode(block)) for block in packed)
    assert b"[REDACTED]" in inside
    assert not any(secret.encode() in inside for secret in SECRETS)

    server.stop()
    accepted = pytester.runpytest(*arguments, "--jrh-update-baseline")
    accepted.assert_outcomes(passed=3, xfailed=1)
    assert files_with_secrets(pytester.path, given) == []
    (suite.data / "runs.eval").rename(pytester.path / "kept.eval")
    given.add(pytester.path / "kept.eval")
    # Where the secrets are not known, as in another person's checkout, the recording still holds.
    for known in (True, False):
        if not known:
            monkeypatch.delenv("OPENAI_API_KEY")
            monkeypatch.delenv("DEPLOY_TOKEN")
        with played_the_whole_way() as differences:
            frozen = pytester.runpytest(*arguments, "--jrh-frozen")
            (pytester.path / "kept.eval").rename(suite.data / "runs.eval")
            replayed = pytester.runpytest(*arguments)
            (suite.data / "runs.eval").rename(pytester.path / "kept.eval")
        assert not differences
        for result in (frozen, replayed):
            result.assert_outcomes(passed=3, xfailed=1)
            result.stdout.no_fnmatch_line("*not comparable*")
            result.stdout.no_fnmatch_line("*could not be compared*")
        assert files_with_secrets(pytester.path, given) == [] or not known


def test_a_baseline_keeps_the_prompt_without_its_secrets(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer
) -> None:
    prompt = load_template("judge", mode="binary", objective="fail").source
    text = f"Never tell {KEY} or {TOKEN}.\n\n{prompt}"
    (pytester.path / "judge.md").write_text(text, encoding="utf-8")
    suite.configure({"judge": {"prompt_path": "judge.md"}})
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    arguments = ("--jrh-baseline=baseline.json", "--jrh-update-baseline")
    pytester.runpytest(suite.option, *RECORD, *arguments)
    assert files_with_secrets(pytester.path, given) == []
    assert "Never tell [REDACTED]" in (pytester.path / "baseline.json").read_text("utf-8")


@pytest.mark.parametrize(
    "fault",
    [
        Fault.raw(
            error_body(f"{PADDING}Incorrect API key provided: {KEY} {TOKEN}", "invalid_api_key"),
            status=401,
        ),
        Fault.refusal(f"I do not answer to {KEY}, {TOKEN}."),
        Fault.text(f"{KEY} is not JSON {TOKEN}"),
    ],
    ids=lambda fault: fault.name,
)
def test_no_error_message_puts_a_secret_into_a_file(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer, fault: Fault
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    server.faults.add(stage="judge", fault=fault, times=None)
    result = pytester.runpytest(suite.option, "--junitxml=results.xml", *RECORD)
    result.assert_outcomes(errors=4)
    assert files_with_secrets(pytester.path, given) == []


def test_what_differs_is_shown_without_secrets(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    pytester.runpytest(suite.option, "--jrh-record-mode=new_episodes")
    rubrics = suite.data / "rubrics.yml"
    rubrics.write_text(
        rubrics.read_text(encoding="utf-8").replace("Be kind", f"Mind {KEY}"), encoding="utf-8"
    )
    result = pytester.runpytest(suite.option, "--junitxml=results.xml")
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["*+*Mind [[]REDACTED[]]*"])
    assert files_with_secrets(pytester.path, given) == []


def test_no_log_of_a_library_shows_a_key(
    pytester: pytest.Pytester,
    suite: SuiteFiles,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    monkeypatch.setenv("LITELLM_LOG", "DEBUG")
    monkeypatch.setenv("OPENAI_LOG", "debug")
    logs = ("--log-level=DEBUG", "--log-file=all.log", "-rA")
    junit = ("--junitxml=results.xml", "-o", "junit_logging=all")
    result = pytester.runpytest(suite.option, *RECORD, *logs, *junit)
    result.assert_outcomes(passed=3, failed=1)
    assert (pytester.path / "all.log").stat().st_size > 1000
    assert KEY[:-LEAST] not in str(result.stdout) + str(result.stderr)
    assert TOKEN not in str(result.stdout) + str(result.stderr)
    assert files_with_secrets(pytester.path, given) == []
