"""The repeat number of a call, of which the first one is what was always recorded; and pruning."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_jrh.core.calls import StageModel
from pytest_jrh.judges.judge import judge_response
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.recording.cassettes import Cassette, cassettes_in, prune, unused_cassettes
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


def cassette(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    return path


def test_pruning_removes_unused_cassettes_leaves_all_else_and_names_what_it_cannot_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = cassette(tmp_path, "agent_positives/r/a.e1.generation.yaml")
    unused = cassette(tmp_path, "agent_positives/r/b.e1.judge-default.yaml")
    other = cassette(tmp_path, "agent_positives/r/notes.yaml")
    assert unused_cassettes(cassettes_in(tmp_path), {used}, frozen=False) == [unused]
    # What a frozen suite was made with is no rubbish: a run that gave no case is not in the frozen
    # file, and asking its models again would be paid for again.
    assert unused_cassettes(cassettes_in(tmp_path), (), frozen=True) == [unused]
    assert prune(tmp_path, [unused]) == ([unused], [])
    assert (used.exists(), other.exists(), unused.exists()) == (True, True, False)

    def refuse(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert prune(tmp_path, [used]) == ([], [f"{used} could not be removed: Permission denied."])
