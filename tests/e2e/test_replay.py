"""Replay, recorded exchanges that are read as they were, and the insides of vcrpy that recording
leans on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_jrh.core.calls import Completion
from pytest_jrh.core.redact import Redactor
from pytest_jrh.recording.exchanges import Exchanges, Halted
from pytest_jrh.recording.recorder import HttpRecorder
from tests.e2e.bench import Bench, MakeBench
from tests.support.model_server import Fault, ModelServer, Obedient, Request, override
from tests.support.obedient import VIOLATION
from tests.support.suites import BOTH_TESTS
from tests.support.whole_way import UNKEPT, played_the_whole_way

LISTED = """
import json, sys
from tests.e2e.bench import Bench
from tests.support.suites import SuiteFiles
from pathlib import Path
folder = Path(sys.argv[1])
files = SuiteFiles(folder, folder / "inputs" / "configs" / "tiny.yml", "tiny")
bench = Bench(files, Path(sys.argv[2]))
outcomes = bench.replay().outcomes
heavy = {"litellm", "vcr", "openai", "aiohttp", "httpx", "requests", "urllib3", "multiprocessing",
         "inspect_ai"}
found = sorted(name for name in sys.modules if name.partition(".")[0] in heavy)
print(json.dumps([outcomes, found]))
"""


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


def test_replay_by_fingerprint_imports_no_http_stack(bench: Bench, server: ModelServer) -> None:
    bench.run()
    server.stop()
    command = [sys.executable, "-c", LISTED, str(bench.files.folder), str(bench.cassettes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[[["agree", 1]], []]'


def test_a_request_that_has_become_another_replays_by_its_fingerprint(
    bench: Bench, server: ModelServer
) -> None:
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


def test_another_map_of_scores_is_another_verdict_without_a_call(
    make_bench: MakeBench, server: ModelServer
) -> None:
    def in_words(request: Request) -> Mapping[str, object]:
        word = "partly" if VIOLATION in request.text else "no"
        return {"reasoning": "Looked at.", "score": word}

    def set_map(**score_map: int) -> None:
        bench.files.configure({"judge": {"prompt_path": "prompt.md", "score_map": score_map}})
        bench.reload()

    server.answer = override(Obedient(), judge=in_words)
    bench = make_bench(tests=BOTH_TESTS)
    prompt = "Is it violated: yes, partly or no? {{ rubric }}\n\n{{ transcript }}\n"
    (bench.files.config.parent / "prompt.md").write_text(prompt, encoding="utf-8")
    set_map(yes=1, partly=1, no=0)
    assert bench.run().outcomes == [("agree", 1), ("agree", 0)]
    sent = server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert set(sent["properties"]["score"]["enum"]) == {"yes", "partly", "no"}
    set_map(yes=1, partly=0, no=0)
    asked = server.count()
    assert bench.replay().outcomes == [("disagree", 0), ("agree", 0)]
    assert server.count() == asked


def test_a_projects_own_client_is_recorded_and_replays(bench: Bench) -> None:
    asked: list[str] = []

    async def complete(stage: Any, messages: Any, response_model: Any) -> Completion[Any]:
        asked.append(stage.stage)
        text = f"{ANSWERS[stage.stage]}"
        return Completion(text, response_model.model_validate_json(text))

    assert bench.run(complete=complete).outcomes == [("agree", 1)]
    assert len(asked) == 5
    assert bench.replay(complete=complete).outcomes == [("agree", 1)]
    assert len(asked) == 5


def test_a_recorder_keeps_each_exchange_once_and_leaves_httpx_as_it_was(
    server: ModelServer,
) -> None:
    import httpx
    from vcr.patch import PATCHER_NAMES

    recorder = HttpRecorder(Redactor(()))
    before = httpx.HTTPTransport.handle_request
    recorder.install()
    try:
        assert httpx.HTTPTransport.handle_request is not before
        with httpx.Client() as client:
            with recorder.recording() as made:
                first = _ask(client, server)
            exchanges = Exchanges(made, live=False, redactor=Redactor(()), **UNKEPT)
            with recorder.judging(exchanges):
                assert _ask(client, server).json() == first.json()
                with pytest.raises(Halted):
                    client.get(server.base_url)
    finally:
        recorder.remove()
    assert httpx.HTTPTransport.handle_request is before
    assert (len(made), server.count()) == (1, 1)
    # A library that vcrpy learns to patch next would be patched in the user's process, too.
    assert set(PATCHER_NAMES) - set(HttpRecorder.skip_patchers) == {"aiohttp", "httpx", "httpx2"}


def _ask(client: Any, server: ModelServer) -> Any:
    return client.post(f"{server.base_url}/chat/completions", json={"model": "m", "messages": []})


ANSWERS = {
    "planner": '{"thesis": "Rude.", "steps": [{"message_index": 4, "goal": "Be rude.", '
    '"rationale": "Last."}]}',
    "summary": '{"summary": "s", "user_intent": "u", "assistant_progress": [], '
    '"outstanding_items": [], "risks": []}',
    "editor": '{"new_content": "Go away.", "reason": "Rude."}',
    "verifier": '{"verdict": "FAIL", "rationale": "Rude."}',
    "judge": '{"score": 1, "reasoning": "Rude."}',
}
