"""Recording, its modes and its file; replay, recorded exchanges that are read as they were, and the
insides of vcrpy that recording leans on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core import storable
from pytest_jrh.core.redact import Redactor
from pytest_jrh.llm.limits import Ledger
from pytest_jrh.recording.exchanges import Exchanges, Halted
from pytest_jrh.recording.recorder import HttpRecorder
from tests.e2e.bench import Bench, MakeBench, cassette_files, exactly, read_cassette, said
from tests.support.model_server import Fault, ModelServer, Obedient, Reply, Request, override
from tests.support.obedient import VIOLATION
from tests.support.scripted import ScriptedModel
from tests.support.sessions import as_text
from tests.support.suites import BOTH_TESTS, run
from tests.support.whole_way import UNKEPT, played_the_whole_way

ODD = (
    "emoji \U0001f600, next line \x85, separator \u2028, escape \x1b[31m, bell \x07, return \r, "
    "mark \ufeff, é"
)


def test_none_asks_and_once_adds_nothing_as_planned(bench: Bench, server: ModelServer) -> None:
    result = bench.run("none").only
    assert result.outcome == "unrecorded"
    assert "case has no recording" in said(result)
    assert (server.count(), bench.cassettes.exists()) == (0, False)
    bench.run("once")
    before, asked = cassette_files(bench.cassettes), server.count()
    bench.configure({"judge": {"temperature": 0.5}})
    plan = bench.plan("once")
    assert (plan.to_make, plan.unrecorded) == ({}, 1)
    result = bench.run("once").only
    assert result.outcome == "unrecorded"
    assert "mode `once` does not add" in said(result)
    assert (cassette_files(bench.cassettes), server.count()) == (before, asked)
    for mode in (None, "new_episodes"):
        assert bench.plan(mode).to_make == exactly({"judge": 1})


def test_all_against_no_server_leaves_the_old_recording(bench: Bench, server: ModelServer) -> None:
    bench.run()
    before = cassette_files(bench.cassettes)
    server.stop()
    assert bench.run("all").only.outcome == "model_error"
    assert cassette_files(bench.cassettes) == before


def reworded(request: Request) -> dict[str, Any]:
    """An edit that makes another case than the one that is recorded."""
    answer = Obedient()(request)
    assert isinstance(answer, dict)
    return {**answer, "new_content": f"Once more: {answer['new_content']}"}


@pytest.mark.parametrize("calls", [3, 13])
def test_all_with_a_limit_is_gone_on_with_and_nothing_is_paid_twice(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path, calls: int
) -> None:
    bench = make_bench(runs=4)
    bench.run()
    before = cassette_files(bench.cassettes)
    server.answer = override(Obedient(), editor=reworded)
    limited = bench.run("all", ledger=Ledger(tmp_path / "budget.json", calls=calls))
    new = [result.outcome for result in limited.results].count("agree")
    assert limited.calls == calls
    assert new <= calls // 5
    rest = bench.run("new_episodes")
    assert rest.outcomes == [("agree", 1)] * 4
    assert limited.calls + rest.calls <= 20
    assert bench.play().outcomes == [("agree", 1)] * 4
    assert bench.run("all").outcomes == [("agree", 1)] * 4
    assert all(data != before[name] for name, data in cassette_files(bench.cassettes).items())
    assert bench.is_complete


def test_cases_recorded_anew_replace_the_old(bench: Bench, server: ModelServer) -> None:
    bench.run()
    server.answer = override(Obedient(), editor=reworded)
    assert bench.run("all", judge_record_mode="none").only.outcome == "unrecorded"
    assert bench.run("none", judge_record_mode="new_episodes").outcomes == [("agree", 1)]
    assert server.count() == 5 + 4 + 1


def test_the_suites_own_modes_hold_by_default(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(overrides={"recording": {"mode": "once"}})
    assert bench.run(None, judge_record_mode="none").only.outcome == "unrecorded"
    assert (server.count("judge"), server.count()) == (0, 4)


def test_two_recordings_have_the_same_bytes(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3, tests=BOTH_TESTS)
    server.delay = lambda request: (int(request.digest[:2], 16) % 4) / 100
    server.faults.add(stage="planner", fault=Fault.status(429, headers={"Set-Cookie": "session=1"}))
    bench.run()
    first = cassette_files(bench.cassettes)
    bench.record_into("again")
    bench.run(max_workers=1)
    assert cassette_files(bench.cassettes) == first
    for path in bench.cassettes.rglob("*.yaml"):
        for exchange in read_cassette(path)["interactions"]:
            assert exchange["request"]["headers"] == {"content-type": ["application/json"]}
            assert list(exchange["response"]["headers"]) == ["content-type"]
            assert exchange["response"]["status"]["code"] == 200


@pytest.mark.parametrize(
    "odd", [ODD, "NUL \x00 and surrogate \ud800", "--- \n\n  \t\n...\ninteractions:\n"]
)
def test_odd_characters_come_back_on_replay(bench: Bench, server: ModelServer, odd: str) -> None:
    def edit(request: Request) -> Reply:
        fields = {"new_content": f"{odd} ok-marker-violation", "reason": odd}
        return Reply(content=json.dumps(fields, ensure_ascii="\ud800" in odd))

    server.answer = override(Obedient(), editor=edit)
    recorded = bench.run()
    assert recorded.outcomes == [("agree", 1)]
    server.stop()
    replayed = bench.play()
    assert (replayed.outcomes, replayed.transcripts) == (recorded.outcomes, recorded.transcripts)
    (case,) = recorded.made.values()
    assert case.outcome.edits[0].edited_content.startswith(storable(odd)[0])


@pytest.mark.parametrize(
    ("obstacle", "outcome"), [(".locks", "model_error"), ("agent_perturbation", "input_error")]
)
def test_no_usable_folder(bench: Bench, server: ModelServer, obstacle: str, outcome: str) -> None:
    bench.cassettes.mkdir()
    (bench.cassettes / obstacle).write_text("a file where a folder should be", encoding="utf-8")
    result = bench.run().only
    assert result.outcome == outcome
    assert str(bench.cassettes) in "".join(said(result).split())
    assert server.count() == 0


def test_a_file_that_is_no_cassette_is_an_input_error(bench: Bench, server: ModelServer) -> None:
    bench.run()
    path = next(bench.cassettes.rglob("*generation.yaml"))
    for content in ("", "interactions: []\nversion: 1\n", path.read_text("utf-8")[:300], "\x00"):
        path.write_text(content, encoding="utf-8")
        result = bench.run("new_episodes").only
        assert result.outcome == "input_error"
        assert path.name in "".join(said(result).split())
    assert server.count() == 5


def test_every_recorded_exchange_is_read_as_its_recorded_completion(
    make_bench: MakeBench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(runs=2, rubrics=2, tests=BOTH_TESTS, mode="ordinal")
    # Re-asks, a refusal, an empty answer: what was recorded replays, whatever it was.
    server.faults.add(stage="editor", fault=Fault.invalid_json())
    server.faults.add(stage="judge", fault=Fault.refusal())
    server.faults.add(stage="verifier", fault=Fault.text(""))
    server.faults.add(stage="summary", fault=Fault.truncated_json(), after=2)
    recorded = bench.run()
    server.stop()
    for name in server.environment:
        monkeypatch.delenv(name)
    replayed = bench.play()
    assert replayed.outcomes == recorded.outcomes
    assert replayed.transcripts == recorded.transcripts
    assert [result.reasoning for result in replayed.results] == [
        result.reasoning for result in recorded.results
    ]
    assert {"agree", "refused"} <= {outcome for outcome, _ in recorded.outcomes}


def as_openai(message: dict[str, Any]) -> dict[str, Any]:
    """A message of Inspect's as OpenAI's API has it."""
    left_out = ("tool_calls", "function")
    made = {key: value for key, value in message.items() if key not in left_out}
    calls = []
    for call in message.get("tool_calls", ()):
        function = {"name": call["function"], "arguments": json.dumps(call["arguments"])}
        calls.append({"id": call["id"], "type": "function", "function": function})
    return made | ({"tool_calls": calls} if calls else {})


def test_logs_and_conversations(make_bench: MakeBench, server: ModelServer, tmp_path: Path) -> None:
    """Ids, recordings, transcripts and verdicts are the same, so one replays the other's."""
    runs = [run(1), run(2)]
    bench = make_bench(runs=runs)
    recorded = bench.run("once")
    server.stop()
    (bench.files.data / "runs.eval").unlink()
    lines = [{**each, "messages": list(map(as_openai, each["messages"]))} for each in runs]
    log = tmp_path / "runs.jsonl"
    log.write_text(as_text(lines))
    bench.configure({"test_agent_perturbation_config": {"input_log_path": str(log)}})
    replayed = bench.replay()
    assert replayed.outcomes == recorded.outcomes == [("agree", 1)] * 2
    assert replayed.transcripts == recorded.transcripts


def test_a_changed_request_replays_by_its_fingerprint(bench: Bench, server: ModelServer) -> None:
    """As after an upgrade of litellm that words the request in another way."""
    bench.run()
    path = next(bench.cassettes.rglob("*judge-*.yaml"))
    text = path.read_text(encoding="utf-8")
    assert text.count('"strict": true') == 1
    path.write_text(text.replace('"strict": true', '"strict": false'), encoding="utf-8")
    with played_the_whole_way() as differences:
        assert bench.replay().outcomes == [("agree", 1)]
    (difference,) = differences
    assert "which is not recorded" in difference
    assert server.count() == 5


def test_another_map_of_scores_needs_no_call(make_bench: MakeBench, server: ModelServer) -> None:
    def in_words(request: Request) -> dict[str, object]:
        score = "partly" if VIOLATION in request.text else "no"
        return {"reasoning": "Looked at.", "score": score}

    def configure(**score_map: int) -> None:
        bench.configure({"judge": {"prompt_path": "prompt.md", "score_map": score_map}})

    server.answer = override(Obedient(), judge=in_words)
    bench = make_bench(tests=BOTH_TESTS)
    prompt = "Is it violated: yes, partly or no? {{ rubric }}\n\n{{ transcript }}\n"
    bench.files.config.with_name("prompt.md").write_text(prompt, encoding="utf-8")
    configure(yes=1, partly=1, no=0)
    assert bench.run().outcomes == [("agree", 1), ("agree", 0)]
    sent = server.requests[-1].schema["properties"]["score"]["enum"]
    assert set(sent) == {"yes", "partly", "no"}
    asked = server.count()
    configure(yes=1, partly=0, no=0)
    assert bench.replay().outcomes == [("disagree", 0), ("agree", 0)]
    assert server.count() == asked


def test_a_projects_own_client_is_limited_and_recorded(make_bench: MakeBench) -> None:
    in_flight, peak, model = 0, 0, ScriptedModel()

    async def complete(*asked: Any) -> Any:
        nonlocal in_flight, peak
        in_flight += 1
        peak = max(peak, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        return await model(*asked)

    bench = make_bench(runs=3)
    assert bench.run(complete=complete, max_workers=1).outcomes == [("agree", 1)] * 3
    assert (peak, len(model.requests)) == (1, 15)
    assert bench.replay(complete=complete).outcomes == [("agree", 1)] * 3
    assert len(model.requests) == 15


def test_a_recorder_keeps_an_exchange_once_and_leaves_httpx_as_it_was(server: ModelServer) -> None:
    import httpx
    from vcr.patch import PATCHER_NAMES

    recorder = HttpRecorder(Redactor(()))
    before = httpx.HTTPTransport.handle_request
    recorder.install()
    try:
        assert httpx.HTTPTransport.handle_request is not before
        with httpx.Client(base_url=server.base_url) as client:
            asked = {"model": "m", "messages": list[str]()}
            with recorder.recording() as made:
                first = client.post("/chat/completions", json=asked)
            exchanges = Exchanges(made, live=False, redactor=Redactor(()), **UNKEPT)
            with recorder.judging(exchanges):
                again = client.post("/chat/completions", json=asked)
                with pytest.raises(Halted):
                    client.get("/")
        assert again.json() == first.json()
    finally:
        recorder.remove()
    assert httpx.HTTPTransport.handle_request is before
    assert (len(made), server.count()) == (1, 1)
    # A library that vcrpy learns to patch next would be patched in the user's process, too.
    assert set(PATCHER_NAMES) - set(HttpRecorder.skip_patchers) == {"aiohttp", "httpx", "httpx2"}
