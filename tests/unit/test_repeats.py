"""The repeat number of a call: the first one is what was always recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pytest_jrh.core.calls import StageModel
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.recording.cassettes import Cassette
from pytest_jrh.recording.tapes import difference

CASSETTES = Path(__file__).parents[2] / "inputs/cassettes/refund_agent"


def test_a_further_repeat_is_another_call_which_a_miss_names() -> None:
    cassette = Cassette.load(next(CASSETTES.glob("*/*/*.judge-default.yaml")), interactions=True)
    [entry] = cassette.entries.values()
    [interaction] = entry.exchanges
    messages = tuple(json.loads(interaction["request"]["body"])["messages"])
    model = StageModel("judge", entry.asked["model"])
    request = CallRequest(model, messages, judge_response((0, 1)))
    again = replace(request, repeat=2)
    assert again.fingerprint != request.fingerprint
    assert difference(entry, again) == "repeat:\n-1\n+2"
    assert difference(entry, request) == ""
