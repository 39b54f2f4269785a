"""Secrets in the environment, in transcripts, answers and errors reach no file."""

import json
from pathlib import Path

import pytest

from pytest_jrh.core.redact import Redactor
from pytest_jrh.llm.calls import load_template
from tests.e2e.bench import MakeBench, said
from tests.support.model_server import Fault, ModelServer, Obedient, Reply, Request, override
from tests.support.page_reader import Page, data_blocks
from tests.support.suites import SuiteFiles, run, write_suite
from tests.support.whole_way import played_the_whole_way

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
    # Quoted in the files that the user brings, of course, and in no file that we write.
    prompt = load_template("judge", mode="binary", objective="fail").source
    (pytester.path / "judge.md").write_text(f"Never tell {TOKEN}.\n\n{prompt}", "utf-8")
    return write_suite(
        pytester.path,
        runs=[run(1, messages=messages, input=told, target=told), run(2)],
        rubrics=[{"id": "kind", "instructions": f"Be kind, and never tell {TOKEN}."}],
        overrides={
            "test_agent_perturbation_config": {"output": {"dir": "outputs/made"}},
            "judge": {"prompt_path": "judge.md"},
        },
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
    page = Page.of((pytester.path / "report.html").read_text("utf-8"))
    inside = json.dumps(data_blocks(page), ensure_ascii=False)
    assert "[REDACTED]" in inside
    assert not any(secret in inside for secret in SECRETS)

    server.stop()
    with played_the_whole_way() as differences:
        accepted = pytester.runpytest(*arguments, "--jrh-update-baseline")
    accepted.assert_outcomes(passed=4, xfailed=1)
    assert not differences
    assert files_with_secrets(pytester.path, given) == []
    assert "Never tell [REDACTED]" in (pytester.path / "baseline.json").read_text("utf-8")
    # Where the secrets are not known, as in another person's checkout, the recording still holds.
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("DEPLOY_TOKEN")
    with played_the_whole_way() as differences:
        replayed = pytester.runpytest(*arguments)
        (suite.data / "runs.eval").unlink()
        frozen = pytester.runpytest(*arguments, "--jrh-frozen")
    assert not differences
    for result in (replayed, frozen):
        result.assert_outcomes(passed=4, xfailed=1)
        result.stdout.no_fnmatch_line("*not comparable*")
        result.stdout.no_fnmatch_line("*could not be compared*")


BAD_KEY = Fault.error(f"{PADDING}Incorrect API key provided: {KEY} {TOKEN}", status=401)
REFUSAL = Fault.refusal(f"I do not answer to {KEY}, {TOKEN}.")
NO_JSON = Fault.text(f"{KEY} is not JSON {TOKEN}")


@pytest.mark.parametrize("faults", [(BAD_KEY,), (REFUSAL, NO_JSON)], ids=["error", "answers"])
def test_no_error_message_puts_a_secret_into_a_file(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer, faults: tuple[Fault, ...]
) -> None:
    given = {path for path in pytester.path.rglob("*") if path.is_file()}
    *first, last = faults
    for fault in first:
        server.faults.add(stage="judge", fault=fault)
    server.faults.add(stage="judge", fault=last, times=None)
    result = pytester.runpytest(suite.option, "--junitxml=results.xml", *RECORD)
    result.assert_outcomes(errors=4)
    assert {request.kind for request in server.requests if request.stage == "judge"} == {
        fault.name for fault in faults
    }
    assert files_with_secrets(pytester.path, given) == []


def test_what_differs_is_shown_without_secrets(make_bench: MakeBench, server: ModelServer) -> None:
    redactor = Redactor(SECRETS)
    bench = make_bench(rubrics=[{"id": "kind", "instructions": "Be kind."}])
    bench.run(redactor=redactor)
    rubrics = bench.files.data / "rubrics.yml"
    rubrics.write_text(rubrics.read_text("utf-8").replace("Be kind", f"Mind {KEY}"), "utf-8")
    bench.reload()
    result = bench.replay(redactor=redactor).only
    assert result.outcome == "unrecorded"
    assert "Mind [REDACTED]" in said(result)
    assert KEY[:LEAST] not in said(result)


@pytest.mark.parametrize("place", [0, len(KEY) // 2, len(KEY) - 1])
def test_no_reasoning_shows_a_key_of_which_a_letter_is_escaped(
    pytester: pytest.Pytester, suite: SuiteFiles, server: ModelServer, place: int
) -> None:
    escaped = f"{KEY[:place]}\\u{ord(KEY[place]):04x}{KEY[place + 1 :]}"
    answer = f'{{"reasoning": "It tells {escaped}.", "score": 0}}'
    server.faults.add(stage="judge", fault=Fault.text(answer), times=None)
    result = pytester.runpytest(suite.option, "--junitxml=results.xml", "-v", *RECORD)
    shown = str(result.stdout) + (pytester.path / "results.xml").read_text("utf-8")
    assert "It tells [REDACTED]." in shown
    assert KEY not in "".join(shown.split())


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
