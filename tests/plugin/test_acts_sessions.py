"""Sessions of a suite of `edits: acts`: made, judged, reported, replayed, frozen, and edited by a
person in review (docs/more_tests.md)."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.store.people import CallEdit, Decision, DecisionStore, TurnEdit, decisions_path
from pytest_jrh.store.records import BY_HAND, read_case
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import SuiteFiles, built_log, run, write_suite
from tests.support.undoing import undone

RECORD = "--jrh-record-mode=once"
RUN: list[dict[str, Any]] = [
    {"id": "m0", "role": "user", "content": "Order 17 came broken. I want my money back."},
    {
        "id": "m1",
        "role": "assistant",
        "content": "Let me see who you are.",
        "tool_calls": [{"id": "c1", "function": "verify", "arguments": {"name": "Ada"}}],
    },
    {"id": "m2", "role": "tool", "function": "verify", "tool_call_id": "c1", "content": "known"},
    {
        "id": "m3",
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c2", "function": "refund", "arguments": {"order": 17, "amount": 56.5}}
        ],
    },
    {
        "id": "m4",
        "role": "tool",
        "function": "refund",
        "tool_call_id": "c2",
        "content": '{"refunded": 56.5}',
    },
    {"id": "m5", "role": "assistant", "content": "I have refunded 56.50."},
]
STEPS = [
    {"kind": "omit", "message_index": 1, "call": "c1", "goal": "No check.", "rationale": "Why."},
    {"kind": "call", "message_index": 3, "call": "c2", "goal": "96.5.", "rationale": "Why."},
]
VERDICT = {
    "rationale": "Too much is refunded.",
    "verdict": "FAIL",
    "contradiction": "",
    "contradicts_itself": False,
}


def edit(request: Request) -> dict[str, Any]:
    """The editor: of words, or of a call with its result."""
    if "arguments" not in request.fields:
        return {"new_content": "I have refunded 96.50.", "reason": "The amount."}
    return {
        "words": "",
        "arguments": '{"order": 17, "amount": 96.5}',
        "result": '{"refunded": 96.5}',
        "result_is_error": False,
        "reason": "Refunds 40.00 too much.",
    }


@pytest.fixture
def files(pytester: pytest.Pytester, server: ModelServer) -> SuiteFiles:
    overrides = {"test_agent_perturbation_config": {"edits": "acts"}}
    server.answer = override(
        Obedient(),
        planner={"thesis": "Too much, unchecked.", "steps": STEPS},
        editor=edit,
        verifier=VERDICT,
        judge={"reasoning": "All is well.", "score": 0},
    )
    runs = [run(1, messages=RUN)]
    return write_suite(pytester.path, runs=runs, tests=("agent_perturbation",), overrides=overrides)


def record(files: SuiteFiles) -> Any:
    (line,) = (files.negatives / "agent_perturbations.jsonl").read_bytes().splitlines()
    return read_case(line)


def test_acts_are_made_shown_replayed_and_frozen(
    pytester: pytest.Pytester, server: ModelServer, files: SuiteFiles
) -> None:
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md")
    done = pytester.runpytest_inprocess(files.option, "-v", RECORD, *reports)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*3 edits made this case:",
            "*turn 1 (assistant), call of verify omitted before it",
            "*turn 1 (assistant), call of refund changed",
            '*-     "amount": 56.5',
            '*+     "amount": 96.5',
            "*turn 3 (assistant), since*56.5*",
        ]
    )
    case = record(files)
    assert [edited.kind for edited in case.outcome.edits] == ["omit", "call", "say"]
    assert undone(case.messages, case.outcome.edits) == case.run.messages
    assert "call of verify omitted before it" in Path("summary.md").read_text("utf-8")
    assert "rubric-1: the call of verify is left out" in done.stdout.str()
    (table,) = files.folder.rglob("synthetic*.csv")
    with table.open(newline="", encoding="utf-8") as read:
        (row,) = csv.DictReader(read)
    assert 'refund: {"order": 17, "amount": 96.5}' in row["generation_response"]
    before = (files.negatives / "agent_perturbations.jsonl").read_bytes()
    asked = server.count()
    pytester.runpytest_inprocess(files.option, "--jrh-frozen").assert_outcomes(failed=1)
    assert server.count() == asked
    assert (files.negatives / "agent_perturbations.jsonl").read_bytes() == before


def test_a_call_that_a_person_edited_is_judged_and_stored(
    pytester: pytest.Pytester, server: ModelServer, files: SuiteFiles
) -> None:
    pytester.runpytest_inprocess(files.option, RECORD).assert_outcomes(failed=1)
    made = json.loads((files.negatives / "agent_perturbations.jsonl").read_text("utf-8"))
    # Not in the order of the alphabet: judges read it as it was typed.
    call = CallEdit(call=0, arguments={"order": 17, "amount": 76.5}, result='{"refunded": 76.5}')
    DecisionStore(decisions_path(files.negatives)).append(
        Decision(
            case_id=made["case_id"],
            case_digest=made["case_digest"],
            action="edited",
            turns=(TurnEdit(message_index=1, content="", calls=(call,)),),
        )
    )
    server.answer = override(server.answer, judge={"reasoning": "76.5 is too much.", "score": 1})
    option = "--jrh-judge-record-mode=new_episodes"
    pytester.runpytest_inprocess(files.option, option).assert_outcomes(passed=1)
    case = record(files)
    assert case.messages[1]["tool_calls"][0]["arguments"]["amount"] == 76.5
    assert case.outcome.edits[-1].editor_reason == BY_HAND
    assert undone(case.messages, case.outcome.edits) == case.run.messages
    request = server.requests[-1].text.replace('\\"', '"')
    assert '{"order": 17, "amount": 76.5}' in request
    assert '"refunded": 76.5' in request


SECRET = "tok-9fK2mQ7xR4vT8wZ1-LIVE"


def test_a_secret_in_a_call_is_in_no_file_and_the_case_stays_usable(
    pytester: pytest.Pytester,
    server: ModelServer,
    files: SuiteFiles,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", SECRET)
    text = json.dumps(RUN).replace("Ada", f"Ada {SECRET}")
    text = text.replace('"order": 17', f'"order": 17, "key": "{SECRET}"')
    messages = json.loads(text.replace("56.50.", f"56.50 by {SECRET}."))
    shutil.copyfile(built_log([run(1, messages=messages)]), files.data / "runs.eval")
    steps = [{**step, "rationale": f"Why {SECRET}.", "goal": SECRET} for step in STEPS]
    arguments = {"order": 17, "key": f"{SECRET}2", "amount": 96.5}

    def edit_with_secret(request: Request) -> dict[str, Any]:
        if "arguments" not in request.fields:
            return {"new_content": f"I have refunded 96.50 by {SECRET}.", "reason": SECRET}
        return {**edit(request), "arguments": json.dumps(arguments), "words": SECRET}

    server.answer = override(
        server.answer,
        planner={"thesis": SECRET, "steps": steps},
        editor=edit_with_secret,
        verifier={**VERDICT, "rationale": SECRET},
        judge={"reasoning": f"All is well in [1]: {SECRET}.", "score": 0},
    )
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md", "--junitxml=junit.xml")
    for mode in (RECORD, "--jrh-frozen"):
        done = pytester.runpytest_inprocess(files.option, "-vv", mode, *reports)
        done.assert_outcomes(failed=1)
        assert SECRET not in done.stdout.str() + done.stderr.str()
        holders = []
        for path in files.folder.rglob("*"):
            if path.is_file() and path.suffix != ".eval" and SECRET.encode() in path.read_bytes():
                holders.append(path.relative_to(files.folder).as_posix())
        assert holders == []
    case = record(files)
    assert not case.altered
    assert undone(case.messages, case.outcome.edits) == case.run.messages
