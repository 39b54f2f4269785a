"""Nothing is paid for twice, also where each case is judged several times, no limit is passed, and
`--jrh-plan` foresees what a session then asks."""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.calls import Bounds, RecordMode, Spending
from pytest_jrh.core.cases import Verdict
from pytest_jrh.core.results import ShownTurns, total_spending
from pytest_jrh.llm.limits import Ledger
from tests.e2e.bench import Bench, MakeBench, cassette_files, exactly, read_cassette, said
from tests.plugin.recorded import run_pytest
from tests.support.exchange import Answer
from tests.support.ledgers import results_in, spent
from tests.support.model_server import Fault, ModelServer, Obedient, Request, environment_for
from tests.support.suites import BOTH_TESTS, run, write_suite


def asked(bench: Bench, server: ModelServer, mode: RecordMode | None, **how: Any) -> dict[str, int]:
    """The requests that a session sends, by stage."""
    before = server.count()
    bench.run(mode, **how)
    return dict(Counter(request.stage for request in server.requests[before:]))


def first_summaries(requests: Iterable[Request]) -> Counter[str]:
    """The summaries of unedited transcripts that were asked for, by their digests."""
    return Counter(
        request.digest
        for request in requests
        if request.stage == "summary" and "] assistant (edited)" not in request.text
    )


@pytest.mark.parametrize(
    ("stage", "mode"), [("planner", "once"), ("verifier", "new_episodes"), ("judge", "once")]
)
def test_a_plan_says_what_retrying_the_unscored_asks(
    make_bench: MakeBench, server: ModelServer, stage: str, mode: RecordMode
) -> None:
    bench = make_bench(runs=2)
    server.faults.add(stage=stage, fault=Fault.invalid_json(), times=None)
    bench.run(mode)
    server.faults.clear()
    files = cassette_files(bench.cassettes)
    without, plan = bench.plan(mode), bench.plan(mode, retry_unscored=True)
    assert without.to_make == {}
    assert files == cassette_files(bench.cassettes)
    calls = asked(bench, server, mode, retry_unscored=True)
    assert plan.foresees(calls)
    assert stage == "planner" or plan.to_make == exactly(calls)
    assert bench.plan(mode, retry_unscored=True).to_make == {}


def test_a_retry_renews_every_unusable_answer(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=2, tests=BOTH_TESTS)
    server.faults.add(stage="planner", fault=Fault.invalid_json(), times=None)
    server.faults.add(stage="summary", fault=Fault.refusal(), times=None)
    assert {outcome for outcome, _ in bench.run("once").outcomes} <= {"refused", "invalid_response"}
    server.faults.clear()
    plan = bench.plan("once", retry_unscored=True)
    before = server.count()
    session = bench.run("once", retry_unscored=True, session="the second")
    assert session.outcomes == [("agree", 1)] * 2 + [("agree", 0)] * 2
    calls = Counter(request.stage for request in server.requests[before:])
    # That a summary cannot be used, either, is known when its plan is.
    assert plan.foresees({stage: calls[stage] for stage in calls if stage != "summary"})
    assert calls["planner"] == 4
    # The first summary of a run is asked once for all of its cases, in a retry, too.
    assert first_summaries(server.requests[before:]).total() == 2
    assert asked(bench, server, "once", retry_unscored=True) == {}


def test_a_plan_obeys_each_parts_record_mode(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3)
    bench.run("once")
    for path in bench.cassettes.rglob("*.judge-*.yaml"):
        path.unlink()
    next(iter(sorted(bench.cassettes.rglob("*.generation.yaml")))).unlink()
    judge_alone: dict[str, Any] = {"judge_record_mode": "new_episodes"}
    plan = bench.plan("none", **judge_alone)
    assert (plan.to_make, plan.unrecorded) == ({"judge": Bounds(2, 2)}, 1)
    plan = bench.plan("once", judge_record_mode="none")
    assert ("judge" in plan.to_make, plan.unrecorded) == (False, 3)
    assert asked(bench, server, "none", **judge_alone) == {"judge": 2}


def test_a_test_not_evaluated_asks_no_judge(make_bench: MakeBench, server: ModelServer) -> None:
    judges = [{"name": name, "model": "openai/a", "template": "agent_judge"} for name in "ab"]
    judged = {"judges": judges, "tests_to_evaluate": ["agent_positives"]}
    overrides = {"admin": {"evaluation_config": judged}}
    bench = make_bench(runs=1, tests=BOTH_TESTS, overrides=overrides)
    assert bench.plan("once").to_make["judge"] == Bounds(2, 2)
    session = bench.run("once")
    assert session.outcomes == [("generated", None), *[("agree", 0)] * 2]
    assert server.count("judge") == 2
    assert [spec.test for spec in session.made] == list(BOTH_TESTS)


def test_the_first_summary_is_asked_once(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(runs=3, rubrics=2, tests=BOTH_TESTS)
    session = bench.run()
    assert len(session.results) == 12
    assert sorted(first_summaries(server.requests).values()) == [1, 1, 1]
    # What a replay calls recorded is what the recording took: a shared call is paid for once, and
    # counts once.
    made, replayed = (total_spending(session.results), total_spending(bench.replay().results))
    assert (made.calls, made.replayed) == (server.count(), 0)
    assert replayed.usage == made.usage
    assert replayed.cost == pytest.approx(made.paid)
    assert made.paid > 0


def test_each_cassette_replays_its_case_alone(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(rubrics=2, tests=BOTH_TESTS)
    bench.run()
    for path in bench.cassettes.rglob("*.generation.yaml"):
        others = bench.cassettes.with_name("alone")
        shutil.rmtree(others, ignore_errors=True)
        alone = others / path.relative_to(bench.cassettes)
        alone.parent.mkdir(parents=True)
        shutil.copy(path, alone)
        judge = path.with_name(path.name.replace(".generation.", ".judge-default."))
        shutil.copy(judge, alone.with_name(judge.name))
        one = Bench(bench.files, others)
        assert [outcome for outcome, _ in one.play().outcomes].count("agree") == 1


def test_a_shared_summary_is_asked_anew_by_all(make_bench: MakeBench, server: ModelServer) -> None:
    bench = make_bench(rubrics=2)
    bench.run("all", session="first")
    bench.run("all", session="second")
    assert sorted(first_summaries(server.requests).values()) == [2]


def test_a_limit_of_calls_is_never_passed_and_a_later_session_pays_for_the_rest_alone(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    bench = make_bench(runs=3)
    # An attempt that fails counts, too.
    server.faults.add(stage="planner", fault=Fault.status(500))
    ledger = Ledger(tmp_path / "budget.json", calls=7)
    limited = bench.run(ledger=ledger)
    assert server.count() == 7
    assert spent(tmp_path / "budget.json").calls == 7
    stopped = [result for result in limited.results if result.outcome == "over_budget"]
    assert stopped
    assert "7 of 7 calls are spent" in said(stopped[0])
    assert {result.outcome for result in bench.run().results} == {"agree"}
    assert server.count() == 16


def test_what_was_not_sent_takes_nothing_of_a_limit_in_dollars(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment_for("http://127.0.0.1:1/v1").items():
        monkeypatch.setenv(name, value)
    # Enough for one attempt, of three.
    result = bench.run(ledger=Ledger(tmp_path / "budget.json", cost=0.06)).only
    assert (result.outcome, result.spending.all) == ("model_error", Spending())
    assert "no connection" in said(result)
    assert spent(tmp_path / "budget.json").cost == 0


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 9},
        {"prompt_tokens": -1_000_000, "completion_tokens": -1_000_000},
        {"prompt_tokens": 10**15, "completion_tokens": 10**15},
    ],
)
def test_an_answer_without_counts_that_can_be_is_unpriced_and_its_reserve_charged(
    bench: Bench, server: ModelServer, tmp_path: Path, usage: dict[str, int] | None
) -> None:
    fault = Fault.envelope(lambda whole: whole.update(usage=usage))
    server.faults.add(fault=fault, times=None)
    path = tmp_path / "budget.json"
    session = bench.run(ledger=Ledger(path, cost=10.0))
    assert session.outcomes == [("agree", 1)]
    spending = session.only.spending.all
    assert (spending.paid, spending.unpriced) == (0.0, 5)
    assert spent(path).calls == 5
    # Five times the longest answer of the model, at its price.
    assert spent(path).cost > 5 * 32_768 * 1.6e-06
    [notice] = session.notices
    assert "no plausible token counts" in notice
    replayed = bench.play().only.spending.all
    assert (replayed.cost, replayed.unpriced) == (0.0, 5)


def test_a_limit_below_one_call_is_said(bench: Bench, server: ModelServer, tmp_path: Path) -> None:
    result = bench.run(ledger=Ledger(tmp_path / "budget.json", cost=0.01)).only
    assert result.outcome == "over_budget"
    assert "$0.00 of $0.0100 are spent or reserved" in said(result)
    assert "a lower `max_tokens` in its stage makes calls cheaper" in said(result)
    assert server.count() == 0


def test_a_limit_in_dollars_is_never_passed_even_by_what_calls_in_flight_may_cost(
    make_bench: MakeBench, server: ModelServer, tmp_path: Path
) -> None:
    short = {key: {"max_tokens": 50} for key in ("planner", "editor", "verifier")}
    bench = make_bench(runs=6, overrides={"test_agent_perturbation_config": short})
    session = bench.run(ledger=Ledger(tmp_path / "budget.json", cost=0.06))
    assert 0 < spent(tmp_path / "budget.json").cost <= 0.06
    outcomes = {result.outcome for result in session.results}
    assert "over_budget" in outcomes
    assert outcomes <= {"over_budget", "agree"}


def test_a_ledger_keeps_what_a_dead_process_had_promised(tmp_path: Path) -> None:
    first, second = (Ledger(tmp_path / "budget.json", cost=1.0) for _ in range(2))
    assert first.enter(0.7) is None
    refusal = second.enter(0.4)
    assert refusal is not None
    assert "$0.7000 of $1.00" in refusal
    first.correct(0.7, 0.1)
    assert second.enter(0.4) is None
    assert spent(tmp_path / "budget.json").calls == 2
    assert spent(tmp_path / "budget.json").cost == pytest.approx(0.5)


def test_a_limit_in_dollars_needs_a_price(tmp_path: Path, server: ModelServer) -> None:
    unpriced = {"synthetic_data_params": {"generation_model_name": "openai/some-local-model"}}
    files = write_suite(tmp_path / "suite", runs=1, overrides=unpriced)
    limited = (files.option, "--jrh-record-mode=once", "--jrh-max-cost=1")
    done = run_pytest(files.folder, *limited)
    assert done.code == 4
    assert "no known price for openai/some-local-model" in done.stderr
    assert "Traceback" not in done.stderr
    assert server.count() == 0
    files.configure({"models": {"api_base": server.base_url}})
    assert run_pytest(files.folder, *limited).code == 0


def test_a_frozen_suite_needs_no_log_nor_heavy_library(tmp_path: Path, server: ModelServer) -> None:
    call = {"id": "c", "function": "refund", "type": "function"}
    arguments = {"zip": "LS6", "amount": 3}
    messages: list[dict[str, Any]] = [
        {"id": "u", "role": "user", "content": "Refund me."},
        {
            "id": "a",
            "role": "assistant",
            "content": "Done soon.",
            "tool_calls": [{**call, "arguments": arguments}],
        },
        {"id": "b", "role": "assistant", "content": "Done."},
    ]
    output = {"dir": "inputs/suites/tiny", "overwrite": False}
    overrides = {"test_agent_perturbation_config": {"output": output}}
    files = write_suite(tmp_path, runs=[run(1, messages=messages), run(2)], overrides=overrides)
    run_pytest(tmp_path, files.option, "--jrh-record-mode=once", "-q")
    for path in files.cassettes.rglob("*.generation.yaml"):
        path.unlink()
    # What is on the disk is taken where it is not to be overwritten.
    cases = tmp_path / "inputs" / "suites" / "tiny" / "agent_perturbations.jsonl"
    made = cases.read_bytes()
    again = run_pytest(tmp_path, files.option, "-q")
    assert again.code == 0, again.stdout
    assert cases.read_bytes() == made
    (files.data / "runs.eval").unlink()
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    heavy = 'litellm openai inspect_ai vcr aiohttp httpx requests urllib3'.split()\n"
        "    print('loaded:', [name for name in heavy if name in sys.modules])\n"
    )
    frozen = run_pytest(tmp_path, files.option, "--jrh-frozen", interpreter=[sys.executable])
    assert frozen.code == 0, frozen
    assert "4 passed" in frozen.stdout
    assert "loaded: []" in frozen.stdout


class Saying:
    """The obedient model, but for a judge that gives these scores in turn to each request."""

    def __init__(self, *scores: object) -> None:
        self._obedient = Obedient()
        self._scores = scores
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        if request.stage != "judge":
            return self._obedient(request)
        asked = _asked(request)
        score = self._scores[self._asked[asked] % len(self._scores)]
        self._asked[asked] += 1
        return {"score": score, "reasoning": f"It is plainly {score}."}


def _asked(request: Request) -> str:
    """What a verdict is asked about: the same where an unusable answer is asked for again."""
    roles = [message.get("role") for message in request.messages]
    end = roles.index("assistant") if "assistant" in roles else len(roles)
    return json.dumps(request.messages[:end])


def repeating(repeats: int, **config: Any) -> dict[str, Any]:
    return {"admin": {"evaluation_config": {"repeats": repeats, **config}}}


def judge_cassettes(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.judge-*.yaml"))


def recorded_repeats(path: Path) -> list[int]:
    calls = read_cassette(path)["metadata"]["jrh"]["calls"]
    return [call["asked"].get("repeat", 1) for call in calls]


def test_a_raised_number_asks_what_is_missing(make_bench: MakeBench, server: ModelServer) -> None:
    server.answer = Saying(1)
    bench = make_bench(runs=2)
    bench.run("once")
    first = judge_cassettes(bench.cassettes)[0].read_bytes()
    for repeats, new in ((3, 2), (5, 2), (1, 0), (5, 0)):
        bench.configure(repeating(repeats))
        before = server.count()
        plan = bench.plan("new_episodes").to_make
        session = bench.run("new_episodes")
        assert server.count() - before == 2 * new
        assert plan == exactly({"judge": 2 * new} if new else {})
        assert session.scores == [(1,) * repeats] * 2
    assert recorded_repeats(judge_cassettes(bench.cassettes)[0]) == [1, 2, 3, 4, 5]
    bench.configure(repeating(6))
    missed = bench.replay().results[0]
    assert missed.outcome == "unrecorded"
    assert "repeat 6 was never recorded" in said(missed)
    # As every recording that is complete: `once` does not add to it.
    assert bench.run("once").results[0].outcome == "unrecorded"
    # A suite without repeats writes what it wrote before there were any.
    assert b"repeat" not in first


def test_a_verdict_of_a_second_request_says_so(make_bench: MakeBench, server: ModelServer) -> None:
    server.answer = Saying(7, 1)
    bench = make_bench()
    for session in (bench.run("once"), bench.replay()):
        assert (session.only.outcome, session.only.scores) == ("agree", (1,))
        assert session.only.extra.shown == ShownTurns(1, asked_again=True)


def test_a_repeat_without_a_verdict_is_no_score(make_bench: MakeBench, server: ModelServer) -> None:
    server.answer = Saying(1, 7, 7, 7, 1)
    bench = make_bench(overrides=repeating(3))
    unscored = bench.run("once").only
    assert unscored.outcome == "invalid_response"
    assert (unscored.score, unscored.complete_scores) == (None, ())
    assert unscored.verdicts == (Verdict(1, "It is plainly 1."),)
    # The second one was asked again twice, and the third one not at all.
    assert server.count("judge") == 4
    (cassette,) = judge_cassettes(bench.cassettes)
    assert recorded_repeats(cassette) == [1, 2, 2, 2]
    assert bench.replay().only.outcome == "invalid_response"

    server.answer = Saying(1)
    plan = bench.plan("once", retry_unscored=True)
    before = server.count()
    again = bench.run("once", retry_unscored=True).only
    assert again.scores == (1, 1, 1)
    assert server.count() - before == 2
    assert plan.to_make == exactly({"judge": 2})
    assert again.spending.all.calls == 2


def test_no_process_repeats_beyond_the_limit(make_bench: MakeBench, server: ModelServer) -> None:
    server.answer = Saying(1, 0, 1)
    files = make_bench(runs=6, overrides=repeating(3)).files
    recording = (files.option, "--jrh-record-mode=once", "-n2")
    made = run_pytest(files.folder, *recording, "--jrh-max-calls=17")
    assert "over_budget" in made.stdout
    assert server.count() == 17
    # 4 calls make a case and 3 judge it; what is there is not asked again.
    whole = run_pytest(files.folder, *recording)
    assert whole.code == 0, whole.stdout
    assert server.count() == 6 * (4 + 3)
    assert not list(files.cassettes.glob(".locks/budget-*"))
    digests = Counter(request.digest for request in server.requests if request.stage == "judge")
    assert set(digests.values()) == {3}
    recorded = results_in(files.results)
    assert [result.scores for result in recorded] == [(1, 0, 1)] * 6
    assert [len(result.reasons) for result in recorded] == [3] * 6
    frozen = run_pytest(files.folder, files.option, "--jrh-frozen")
    assert frozen.code == 0, frozen.stdout
    assert "18 replayed" in frozen.stdout
    assert [result.scores for result in results_in(files.results)] == [(1, 0, 1)] * 6
    # Results of another number of repeats are not kept.
    files.configure(repeating(1))
    one = run_pytest(files.folder, files.option, "-k", "run-1")
    assert "leaves out 5 results of earlier sessions" in one.stdout
    assert "the number of repeats has changed" in " ".join(one.stdout.split())
