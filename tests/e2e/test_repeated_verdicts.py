"""`repeats: K` over HTTP: every case is judged K times, and each answer is paid for once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pytest_jrh.core.model import CaseResult, Verdict
from pytest_jrh.core.stages import Bounds
from tests.e2e.bench import Bench, cassette_files, is_complete, read_cassette
from tests.e2e.test_kill import pytest_process
from tests.e2e.test_plan import asked, exactly, planned, to_make
from tests.e2e.test_spending import pytest_in
from tests.support.flipping import Flipping, Saying
from tests.support.fork_server import python
from tests.support.model_server import Fault, ModelServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import MakeBench
    from tests.support.suites import SuiteFiles


def repeating(repeats: int, **config: Any) -> dict[str, Any]:
    return {"admin": {"evaluation_config": {"repeats": repeats, **config}}}


def set_repeats(bench: Bench, repeats: int) -> None:
    config = yaml.safe_load(bench.files.config.read_text())
    config["admin"]["evaluation_config"]["repeats"] = repeats
    bench.files.config.write_text(yaml.safe_dump(config))
    bench.reload()


def judge_cassettes(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.judge-*.yaml"))


def recorded_repeats(path: Path) -> list[int]:
    calls = read_cassette(path)["metadata"]["jrh"]["calls"]
    return [call["asked"].get("repeat", 1) for call in calls]


def scores(results: list[CaseResult]) -> list[tuple[int, ...]]:
    return [result.scores for result in results]


def test_each_repeat_is_asked_once_recorded_and_replayed(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1, 0, 1)
    bench = make_bench(runs=3, overrides=repeating(3))
    session = bench.run("once")
    assert server.count("judge") == 9
    assert scores(list(session.results)) == [(1, 0, 1)] * 3
    assert session.outcomes == [("agree", 1)] * 3
    assert {result.reasoning for result in session.results} == {"It is plainly 1."}
    assert {result.minority.score for result in session.results if result.minority} == {0}
    for path in judge_cassettes(bench.cassettes):
        assert recorded_repeats(path) == [1, 2, 3]
        assert is_complete(path)
    files = cassette_files(bench.cassettes)
    replayed = bench.play()
    assert replayed.calls == 0
    assert scores(list(replayed.results)) == scores(list(session.results))
    assert cassette_files(bench.cassettes) == files


def test_a_raised_number_asks_what_is_missing_and_a_lowered_one_nothing(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1)
    bench = make_bench(runs=2)
    bench.run("once")
    first = judge_cassettes(bench.cassettes)[0].read_bytes()
    for repeats, new in ((3, 2), (5, 2), (3, 0), (1, 0), (5, 0)):
        set_repeats(bench, repeats)
        before = server.count()
        plan = to_make(planned(bench, "new_episodes"))
        session = bench.run("new_episodes")
        assert server.count() - before == 2 * new
        assert plan == exactly({"judge": 2 * new} if new else {})
        assert scores(list(session.results)) == [(1,) * repeats] * 2
    assert recorded_repeats(judge_cassettes(bench.cassettes)[0]) == [1, 2, 3, 4, 5]
    # A suite without repeats writes what it wrote before there were any.
    assert b"repeat" not in first


def test_without_a_recording_mode_a_raised_number_says_which_repeat_is_missing(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1)
    bench = make_bench(overrides=repeating(3))
    bench.run("once")
    set_repeats(bench, 4)
    replayed = bench.replay().only
    assert replayed.outcome == "unrecorded"
    assert "repeat: -1 +4" in " ".join(replayed.why.text.split())
    # As every recording that is complete: `once` does not add to it.
    assert bench.run("once").only.outcome == "unrecorded"
    assert server.count("judge") == 3


def test_a_repeat_without_a_verdict_leaves_the_case_unscored_and_the_others_recorded(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(1, 7, 7, 7, 1)
    bench = make_bench(overrides=repeating(3))
    unscored = bench.run("once").only
    assert (unscored.outcome, unscored.score, unscored.all_scores) == ("invalid_response", None, ())
    assert unscored.verdicts == (Verdict(1, "It is plainly 1."),)
    assert "earlier: 1, in 1 of 1 before it, because\n    It is plainly 1." in unscored.why.text
    # The second one was asked again twice, and the third one not at all.
    assert server.count("judge") == 4
    (cassette,) = judge_cassettes(bench.cassettes)
    assert recorded_repeats(cassette) == [1, 2, 2, 2]
    assert bench.replay().only.outcome == "invalid_response"

    server.answer = Saying(1)
    plan = planned(bench, "once", retry_unscored=True)
    before = server.count()
    again = bench.run("once", retry_unscored=True).only
    assert again.scores == (1, 1, 1)
    assert server.count() - before == 2
    assert to_make(plan) == exactly({"judge": 2})
    assert (again.spending.all.calls, again.spending.judge) == (2, None)


def test_a_failing_repeat_is_asked_again_in_the_next_run_alone(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(overrides=repeating(3))
    server.faults.add(
        stage="judge", fault=Fault.status(400), when=lambda _: server.count("judge") > 2
    )
    assert bench.run("once").only.outcome == "model_error"
    server.faults.clear()
    before = server.count()
    assert asked(bench, server, "once") == {"judge": 1}
    assert server.count() - before == 1
    assert bench.replay().only.scores == (1, 1, 1)


def test_a_disagreement_shows_the_majority_and_the_minority(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Saying(0, 1, 0)
    wrong = make_bench(overrides=repeating(3)).run().only
    assert (wrong.outcome, wrong.score) == ("disagree", 0)
    first, _, rest = wrong.why.text.partition("\n")
    assert first.startswith("The judge gave 0 (2 of 3 said 0, 1 of 3 said 1)")
    assert "given: 0 (satisfied), in 2 of 3, because\n    It is plainly 0." in rest
    assert "given: 1 (violated), in 1 of 3, because\n    It is plainly 1." in rest


def test_each_judge_of_a_panel_repeats_into_a_cassette_of_its_own(
    make_bench: MakeBench, server: ModelServer
) -> None:
    judges = [{"name": "one"}, {"name": "two", "system_prompt": "Be strict."}]
    bench = make_bench(overrides=repeating(3, judges=judges))
    assert to_make(planned(bench, "once"))["judge"] == exactly({"judge": 6})["judge"]
    session = bench.run("once")
    assert server.count("judge") == 6
    assert scores(list(session.results)) == [(1, 1, 1)] * 2
    assert [recorded_repeats(path) for path in judge_cassettes(bench.cassettes)] == [[1, 2, 3]] * 2
    assert [spent.calls for result in session.results if (spent := result.spending.judge)] == [3, 3]


@pytest.mark.parametrize("limit", [13, 17])
def test_no_process_makes_a_repeat_beyond_the_limit(
    make_bench: MakeBench, server: ModelServer, limit: int
) -> None:
    bench = make_bench(runs=8, overrides=repeating(3))
    arguments = ("--jrh-record-mode=once", "-n4", f"--jrh-max-calls={limit}")
    made = pytest_in(bench.files, server, *arguments)
    assert "over_budget" in made.stdout
    assert server.count() == limit
    # 4 calls make a case and 3 judge it; what is there is not asked again.
    whole = pytest_in(bench.files, server, "--jrh-record-mode=once", "-n4")
    assert whole.returncode == 0, whole.stdout
    assert server.count() == 8 * (4 + 3)
    digests = Counter(request.digest for request in server.requests if request.stage == "judge")
    assert set(digests.values()) == {3}


def test_a_killed_run_asks_only_the_repeats_that_are_missing(
    make_bench: MakeBench, server: ModelServer
) -> None:
    bench = make_bench(runs=4, overrides=repeating(5))
    server.delay = 0.02
    with pytest_process(bench.files, server, "--jrh-record-mode=once") as killed:  # type: ignore[arg-type]
        server.wait_for(9, "judge", answered=True, timeout=60)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
    server.delay = 0
    own = Bench(bench.files, bench.files.cassettes)
    on_disk = sum(
        len(read_cassette(path)["metadata"]["jrh"]["calls"])
        for path in own.cassettes.rglob("*.yaml")
    )
    judged = sum(len(recorded_repeats(path)) for path in judge_cassettes(own.cassettes))
    assert 0 < judged < 20
    plan = planned(own, "once")
    before = server.count()
    session = own.run("once")
    assert scores(list(session.results)) == [(1,) * 5] * 4
    assert server.count() - before == 4 * (4 + 5) - on_disk
    assert to_make(plan)["judge"] == exactly({"judge": 20 - judged})["judge"]
    assert own.replay().calls == 0


def test_four_processes_plan_make_and_replay_the_same_calls(
    make_bench: MakeBench, server: ModelServer
) -> None:
    server.answer = Flipping(0.3, seed=3)
    files = make_bench(runs=6, overrides=repeating(3)).files
    plan = pytest_in(files, server, "--jrh-record-mode=once", "--jrh-plan")
    assert re.search(r"[( ]18\s+judge[,)]", plan.stdout), plan.stdout
    assert server.count() == 0
    made = pytest_in(files, server, "--jrh-record-mode=once", "-n4")
    assert server.count("judge") == 18
    results = files.results / "results.jsonl"
    recorded = {line["case_id"]: line["scores"] for line in map(json.loads, open_lines(results))}
    assert all(len(each) == 3 for each in recorded.values())
    assert sum(len(set(each)) > 1 for each in recorded.values()) > 0
    alone = pytest_in(files, None)
    assert alone.returncode == made.returncode
    again = {line["case_id"]: line["scores"] for line in map(json.loads, open_lines(results))}
    assert again == recorded
    for line in map(json.loads, open_lines(results)):
        assert len(line["reasons"]) == len(line["scores"])
    frozen = pytest_in(files, None, "--jrh-frozen")
    assert frozen.returncode == made.returncode
    assert "18 replayed" in frozen.stdout


def open_lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


@pytest.fixture
def reported(make_bench: MakeBench, server: ModelServer) -> SuiteFiles:
    """A suite of three runs with every report: right, right but flickering, and wrong."""
    answers: dict[str, tuple[int, ...]] = {"1001": (1, 1, 1), "1002": (1, 0, 1), "1003": (0, 1, 0)}
    servants = {order: Saying(*given) for order, given in answers.items()}
    server.answer = lambda request: next(
        servant(request) for order, servant in servants.items() if order in request.text
    )
    files = make_bench(runs=3, overrides=repeating(3)).files
    pytest_in(
        files,
        server,
        "--jrh-record-mode=once",
        "--jrh-report=report.html",
        "--jrh-report=summary.md",
        "--junitxml=junit.xml",
    )
    return files


def test_results_of_another_number_of_repeats_are_not_kept(
    reported: SuiteFiles,
) -> None:
    files = reported
    shard = files.folder / "shard"
    shutil.copytree(files.results, shard / files.name)
    kept = open_lines(files.results / "results.jsonl")
    assert "in 2 of 3 repeated cases" in merged(files).stdout
    whole = open_lines(files.results / "results.jsonl")
    for before, after in zip(map(json.loads, kept), map(json.loads, whole), strict=True):
        assert len(before["reasons"]) == 3
        assert after["reasons"] == before["reasons"]
    config = yaml.safe_load(files.config.read_text())
    config["admin"]["evaluation_config"]["repeats"] = 1
    files.config.write_text(yaml.safe_dump(config))
    one = pytest_in(files, None, "-k", "run-1")
    assert "2 results of earlier sessions left out" in one.stdout
    assert "repeats has changed" in one.stdout


def merged(files: SuiteFiles) -> subprocess.CompletedProcess[str]:
    command = [*python(), "-m", "pytest_jrh", "merge", files.option, "shard"]
    return subprocess.run(command, cwd=files.folder, capture_output=True, text=True, check=False)


def test_each_judge_of_a_panel_is_asked_as_often_as_it_is_repeated(
    make_bench: MakeBench, server: ModelServer
) -> None:
    judges = [
        {"name": "often", "model": "openai/often", "repeats": 3},
        {"name": "once", "model": "openai/once"},
    ]
    bench = make_bench(runs=2, overrides=repeating(1, judges=judges))
    assert to_make(planned(bench, "once"))["judge"] == Bounds(8, 8)
    bench.run("once")
    models = Counter(each.body["model"] for each in server.requests if each.stage == "judge")
    assert models == {"often": 6, "once": 2}
    session = bench.replay()
    assert [len(result.scores) for result in session.results] == [3, 1, 3, 1]
    assert session.calls == 0
