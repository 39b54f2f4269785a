"""A session of a suite of `edits: acts`: made, reported and frozen without its secrets
(docs/more_tests.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.made_cases import case_from, undone
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.suites import run, write_suite

SECRET = "tok-9fK2mQ7xR4vT8wZ1-LIVE"
RUN: list[dict[str, Any]] = [
    {"id": "m0", "role": "user", "content": "Order 17 came broken. I want my money back."},
    {
        "id": "m1",
        "role": "assistant",
        "content": "Let me see who you are.",
        "tool_calls": [{"id": "c1", "function": "verify", "arguments": {"name": f"Ada {SECRET}"}}],
    },
    {"id": "m2", "role": "tool", "function": "verify", "tool_call_id": "c1", "content": "known"},
    {
        "id": "m3",
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "c2",
                "function": "refund",
                "arguments": {"order": 17, "key": SECRET, "amount": 56.5},
            }
        ],
    },
    {
        "id": "m4",
        "role": "tool",
        "function": "refund",
        "tool_call_id": "c2",
        "content": '{"refunded": 56.5}',
    },
    {"id": "m5", "role": "assistant", "content": f"I have refunded 56.50 by {SECRET}."},
]
WHY = {"goal": SECRET, "rationale": f"Why {SECRET}."}
STEPS = [
    {"kind": "omit", "message_index": 1, "call": "c1", **WHY},
    {"kind": "call", "message_index": 3, "call": "c2", **WHY},
]
VERDICT = {"rationale": SECRET, "verdict": "FAIL", "contradiction": "", "contradicts_itself": False}


def edit(request: Request) -> dict[str, Any]:
    """The editor: of words, or of a call with its result."""
    if "arguments" not in request.fields:
        return {"new_content": f"I have refunded 96.50 by {SECRET}.", "reason": SECRET}
    return {
        "words": SECRET,
        "arguments": json.dumps({"order": 17, "key": f"{SECRET}2", "amount": 96.5}),
        "result": '{"refunded": 96.5}',
        "result_is_error": False,
        "reason": "Refunds 40.00 too much.",
    }


def test_a_secret_in_a_call_is_in_no_file_and_the_case_stays_usable(
    pytester: pytest.Pytester, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", SECRET)
    server.answer = override(
        Obedient(),
        planner={"thesis": SECRET, "steps": STEPS},
        editor=edit,
        verifier=VERDICT,
        judge={"reasoning": f"All is well in [1]: {SECRET}.", "score": 0},
    )
    files = write_suite(
        pytester.path,
        runs=[run(1, messages=RUN)],
        tests=("agent_perturbation",),
        overrides={"test_agent_perturbation_config": {"edits": "acts"}},
    )
    reports = ("--jrh-report=report.html", "--jrh-report=summary.md", "--junitxml=junit.xml")
    for mode in ("--jrh-record-mode=once", "--jrh-frozen"):
        done = pytester.runpytest_inprocess(files.option, "-vv", mode, *reports)
        done.assert_outcomes(failed=1)
        assert SECRET not in done.stdout.str() + done.stderr.str()
        holders = []
        for path in files.folder.rglob("*"):
            if path.is_file() and path.suffix != ".eval" and SECRET.encode() in path.read_bytes():
                holders.append(path.relative_to(files.folder).as_posix())
        assert holders == []
    (line,) = (files.negatives / "agent_perturbations.jsonl").read_bytes().splitlines()
    case = case_from(line)
    assert not case.altered
    assert [edited.kind for edited in case.outcome.edits] == ["omit", "call", "say"]
    assert undone(case.messages, case.outcome.edits) == case.run.messages
