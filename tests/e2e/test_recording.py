"""Recording: the modes, the file, and what two recordings have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.transcript import storable
from pytest_jrh.llm.limits import Ledger
from tests.e2e.bench import Bench, MakeBench, cassette_files, is_complete, read_cassette, said
from tests.e2e.test_plan import exactly, planned, to_make, unrecorded
from tests.support.model_server import Fault, ModelServer, Obedient, Reply, Request, override
from tests.support.suites import BOTH_TESTS

ODD = (
    "emoji \U0001f600, next line \x85, separator \u2028, escape \x1b[31m, bell \x07, return \r, "
    "mark \ufeff, é"
)


def test_none_asks_nothing_and_once_adds_nothing_to_what_is_complete_and_a_plan_knows_it(
    bench: Bench, server: ModelServer
) -> None:
    result = bench.run("none").only
    assert result.outcome == "unrecorded"
    assert "case has no recording" in said(result)
    assert (server.count(), bench.cassettes.exists()) == (0, False)
    bench.run("once")
    before, asked = cassette_files(bench.cassettes), server.count()
    bench.configure({"judge": {"temperature": 0.5}})
    plan = planned(bench, "once")
    assert (to_make(plan), unrecorded(plan)) == ({}, 1)
    result = bench.run("once").only
    assert result.outcome == "unrecorded"
    assert "mode `once` does not add" in said(result)
    assert (cassette_files(bench.cassettes), server.count()) == (before, asked)
    for mode in (None, "new_episodes"):
        assert to_make(planned(bench, mode)) == exactly({"judge": 1})


def test_all_against_a_server_that_is_down_leaves_the_old_recording(
    bench: Bench, server: ModelServer
) -> None:
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
    assert all(is_complete(path) for path in bench.cassettes.rglob("*.yaml"))


def test_cases_recorded_anew_over_a_judge_that_is_not_take_the_place_of_the_old(
    bench: Bench, server: ModelServer
) -> None:
    bench.run()
    server.answer = override(Obedient(), editor=reworded)
    assert bench.run("all", judge_record_mode="none").only.outcome == "unrecorded"
    assert bench.run("none", judge_record_mode="new_episodes").outcomes == [("agree", 1)]
    assert server.count() == 5 + 4 + 1


def test_the_suites_own_modes_hold_where_the_command_line_says_nothing(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(overrides={"recording": {"mode": "once"}})
    assert bench.run(None, judge_record_mode="none").only.outcome == "unrecorded"
    assert (server.count("judge"), server.count()) == (0, 4)


def test_two_recordings_have_the_same_bytes_and_no_header_but_the_content_type(
    make_bench: MakeBench, server: ModelServer
) -> None:
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
def test_odd_characters_in_answers_come_back_on_replay_as_they_were_used(
    bench: Bench, server: ModelServer, odd: str
) -> None:
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
def test_a_folder_that_cannot_be_used_is_named_before_any_call(
    bench: Bench, server: ModelServer, obstacle: str, outcome: str
) -> None:
    bench.cassettes.mkdir()
    (bench.cassettes / obstacle).write_text("a file where a folder should be", encoding="utf-8")
    result = bench.run().only
    assert result.outcome == outcome
    assert str(bench.cassettes) in "".join(said(result).split())
    assert server.count() == 0


def test_a_file_that_is_no_cassette_is_an_input_error_that_names_it(
    bench: Bench, server: ModelServer
) -> None:
    bench.run()
    path = next(bench.cassettes.rglob("*generation.yaml"))
    for content in ("", "interactions: []\nversion: 1\n", path.read_text("utf-8")[:300], "\x00"):
        path.write_text(content, encoding="utf-8")
        result = bench.run("new_episodes").only
        assert result.outcome == "input_error"
        assert path.name in "".join(said(result).split())
    assert server.count() == 5
