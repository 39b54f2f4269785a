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


def test_no_file_holds_a_secret_and_replay_agrees_with_recording(
    pytester: pytest.Pytester,
    suite: SuiteFiles,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    arguments = (suite.option, "--junitxml=results.xml", "-rA")
    recorded = pytester.runpytest(*arguments, "--jrh-record-mode=new_episodes")
    assert files_with_secrets(pytester.path, given) == []
    recorded.assert_outcomes(passed=3, failed=1)
    assert any(KEY in request.text for request in server.requests)
    assert "[REDACTED]" in (pytester.path / "results.xml").read_text(encoding="utf-8")
    server.stop()
    with played_the_whole_way() as differences:
        assert _verdicts(pytester.runpytest(*arguments)) == _verdicts(recorded)
    assert not differences
    assert files_with_secrets(pytester.path, given) == []
    # Where the secrets are not known, as in another person's checkout, the recording still holds.
    for name in ("OPENAI_API_KEY", "DEPLOY_TOKEN"):
        monkeypatch.delenv(name)
    with played_the_whole_way() as differences:
        assert _verdicts(pytester.runpytest(*arguments)) == _verdicts(recorded)
    assert not differences


def test_no_error_message_puts_a_secret_into_a_file(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    arguments = (suite.option, "--junitxml=results.xml", "--jrh-record-mode=new_episodes")
    padding = "The key that you sent is not one of ours. " * 9
    wrong_key = error_body(f"{padding}Incorrect API key provided: {KEY} {TOKEN}", "invalid_api_key")
    faults = [
        Fault.raw(wrong_key, status=401),
        Fault.raw(wrong_key, status=400),
        Fault.refusal(f"I do not answer to {KEY}, {TOKEN}."),
        Fault.text(f"{KEY} is not JSON {TOKEN}"),
    ]
    for fault in faults:
        server.faults.clear()
        server.faults.add(stage="judge", fault=fault, times=None)
        pytester.runpytest(*arguments).assert_outcomes(errors=4)
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


def test_cases_that_hold_secrets_run_frozen_as_they_ran_live(
    pytester: pytest.Pytester,
    suite: SuiteFiles,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = (suite.option, "--jrh-baseline=baseline.json", "-rA")
    recorded = pytester.runpytest(
        *arguments, "--jrh-record-mode=new_episodes", "--jrh-update-baseline"
    )
    recorded.assert_outcomes(passed=3, xfailed=1)
    server.stop()
    (suite.data / "runs.eval").unlink(missing_ok=True)
    for name in (None, "OPENAI_API_KEY", "DEPLOY_TOKEN"):
        if name is not None:
            monkeypatch.delenv(name)
        with played_the_whole_way() as differences:
            frozen = pytester.runpytest(*arguments, "--jrh-frozen")
        assert not differences
        frozen.assert_outcomes(passed=3, xfailed=1)
        frozen.stdout.no_fnmatch_line("*not comparable*")
        frozen.stdout.no_fnmatch_line("*could not be compared*")


def test_no_file_beside_the_reports_holds_a_secret(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer
) -> None:
    prompt = load_template("judge", mode="binary", objective="fail").source
    text = f"Never tell {KEY} or {TOKEN}.\n\n{prompt}"
    (pytester.path / "judge.md").write_text(text, encoding="utf-8")
    config = suite.config.read_text(encoding="utf-8")
    suite.config.write_text(f"{config}\njudge:\n  prompt_path: judge.md\n", encoding="utf-8")
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    reports = ("report.html", "summary.md")
    arguments = (
        *(f"--jrh-report={file}" for file in reports),
        "--jrh-baseline=baseline.json",
        "--junitxml=results.xml",
    )
    for more in ("--jrh-update-baseline", "-rA"):
        pytester.runpytest(suite.option, "--jrh-record-mode=new_episodes", *arguments, more)
        assert files_with_secrets(pytester.path, given) == []
    kept = (pytester.path / "baseline.json").read_text(encoding="utf-8")
    assert "Never tell [REDACTED]" in kept
    packed = re.findall(
        r">([A-Za-z0-9+/=\s]{80,})<", (pytester.path / "report.html").read_text("utf-8")
    )
    inside = [zlib.decompress(base64.b64decode(block)) for block in packed]
    assert b"[REDACTED]" in b"".join(inside)
    assert not any(secret.encode() in each for secret in SECRETS for each in inside)


def test_no_log_of_a_library_shows_a_key(
    pytester: pytest.Pytester,
    suite: SuiteFiles,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    monkeypatch.setenv("LITELLM_LOG", "DEBUG")
    monkeypatch.setenv("OPENAI_LOG", "debug")
    arguments = (
        "--log-level=DEBUG",
        "--log-file=all.log",
        "--junitxml=results.xml",
        "-rA",
        "-o",
        "junit_logging=all",
    )
    result = pytester.runpytest(suite.option, "--jrh-record-mode=new_episodes", *arguments)
    result.assert_outcomes(passed=3, failed=1)
    assert (pytester.path / "all.log").stat().st_size > 1000
    assert KEY[:-LEAST] not in str(result.stdout) + str(result.stderr)
    assert TOKEN not in str(result.stdout) + str(result.stderr)
    assert files_with_secrets(pytester.path, given) == []


def _verdicts(result: pytest.RunResult) -> list[str]:
    kinds = ("PASSED ", "FAILED ", "SKIPPED ", "ERROR ")
    return sorted(" ".join(line.split()[:2]) for line in result.outlines if line.startswith(kinds))
