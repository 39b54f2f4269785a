"""A suite of `edits: acts`: planned, recorded over HTTP, and replayed without a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_jrh.store.made_cases import read_jsonl
from tests.plugin.recorded import run_pytest
from tests.support.model_server import ModelServer, Obedient, Request, override
from tests.support.obedient import VIOLATION
from tests.support.suites import write_suite
from tests.support.undoing import undone


def planner(request: Request) -> Mapping[str, object]:
    assert "[2] assistant calls look_up_order (call 1, id call-" in request.text
    goal = f"Find what says {VIOLATION}."
    step = {"kind": "call", "message_index": 2, "call": "1", "goal": goal, "rationale": "Why."}
    return {"thesis": "Another order is looked up.", "steps": [step]}


def editor(request: Request) -> Mapping[str, object]:
    if "<original_turn>" in request.text:
        return {"new_content": f"It has {VIOLATION}, that is all.", "reason": "r"}
    number = request.text.rpartition("look_up_order: ")[2].partition('"order": 100')[2][0]
    return {
        "words": "",
        "arguments": json.dumps({"order": 2000 + int(number)}),
        "result": VIOLATION,
        "result_is_error": False,
        "reason": "r",
    }


def verifier(request: Request) -> Mapping[str, object]:
    contradiction = "[3] is no order." if "2002" in request.text else ""
    return {
        "rationale": "So.",
        "verdict": "FAIL",
        "contradiction": contradiction,
        "contradicts_itself": bool(contradiction),
    }


def test_acts_are_planned_recorded_and_replayed(tmp_path: Path) -> None:
    suite = write_suite(
        tmp_path,
        runs=2,
        tests=["agent_perturbation"],
        overrides={"test_agent_perturbation_config": {"edits": "acts"}},
    )
    answers = override(Obedient(), planner=planner, editor=editor, verifier=verifier)
    with ModelServer(answers) as server:
        planned = run_pytest(tmp_path, suite.option, "--jrh-plan", env=server.environment)
        assert server.requests == []
        recorded = run_pytest(
            tmp_path, suite.option, "--jrh-record-mode=once", "-v", env=server.environment
        )
        stages = [request.stage for request in server.requests]
    assert "0 to 18" in planned.stdout, "three planned edits and six that follow, of two cases"
    assert "the transcript contradicts itself" in recorded.stdout
    assert stages.count("editor") == 4, "each call, and the words that name the old order"
    made = tmp_path / "outputs/agent_perturbation/tiny"
    [entry] = read_jsonl(made / "agent_perturbations.jsonl").entries.values()
    case = entry.case()
    assert [edit.kind for edit in case.outcome.edits] == ["call", "say"]
    assert case.outcome.edits[1].follows == "[4] still says shipped yesterday, 1001"
    assert json.dumps(undone(case.messages, case.outcome.edits)) == json.dumps(case.run.messages)
    rejected = (made / "rejected_cases.jsonl").read_text("utf-8")
    assert '"contradiction":"[3] is no order."' in rejected
    replayed = run_pytest(tmp_path, suite.option, "-n", "2")
    assert replayed.code == recorded.code
    assert "1 passed, 1 skipped" in replayed.stdout
