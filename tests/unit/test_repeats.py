"""The repeat number of a call: the first one is what was always recorded."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from pytest_jrh.cases.pipeline import SummaryResponse
from pytest_jrh.core.model import StageModel
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.recording.cassettes import Cassette, RecordedCall
from pytest_jrh.recording.tapes import difference

CASSETTES = Path(__file__).parents[2] / "inputs/cassettes/refund_agent"
FILES = {
    stage: next(CASSETTES.glob(f"*/*/*.{kind}.yaml"))
    for stage, kind in (("summary", "generation"), ("judge", "judge-default"))
}
SHAPES: dict[str, type[BaseModel]] = {"summary": SummaryResponse, "judge": judge_response((0, 1))}


def recorded(stage: str) -> tuple[RecordedCall, CallRequest]:
    """A committed recording, and the request that it is of, read from its HTTP body."""
    cassette = Cassette.load(FILES[stage], interactions=True)
    entry = next(entry for entry in cassette.entries.values() if entry.stage == stage)
    (interaction,) = entry.exchanges
    body = json.loads(interaction["request"]["body"])
    model = StageModel(stage, entry.asked["model"])
    return entry, CallRequest(model, tuple(body["messages"]), SHAPES[stage])


def test_a_further_repeat_is_another_call_which_a_miss_names() -> None:
    entry, request = recorded("judge")
    again = CallRequest(request.stage, request.messages, request.response_model, repeat=2)
    assert again.fingerprint != request.fingerprint
    assert difference(entry, again) == "repeat:\n-1\n+2"
    assert difference(entry, request) == ""
