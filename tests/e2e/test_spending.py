"""Nothing is paid for twice, and no limit is passed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.calls import Spending
from pytest_jrh.core.results import total_spending
from pytest_jrh.llm.limits import Ledger
from tests.e2e.bench import Bench, MakeBench, said
from tests.e2e.test_plan import first_summaries
from tests.plugin.recorded import run_pytest
from tests.support.ledgers import spent
from tests.support.model_server import Fault, ModelServer, environment_for
from tests.support.suites import BOTH_TESTS, run, write_suite


def test_the_first_summary_of_a_run_is_asked_once_for_all_rubrics_and_tests(
    make_bench: MakeBench, server: ModelServer
) -> None:
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


def test_each_cassette_holds_the_shared_summary_so_that_one_case_replays_alone(
    make_bench: MakeBench, server: ModelServer
) -> None:
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


def test_a_shared_summary_is_asked_anew_in_a_session_that_records_everything_anew(
    make_bench: MakeBench, server: ModelServer
) -> None:
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
    assert "no token counts that can be" in notice
    replayed = bench.play().only.spending.all
    assert (replayed.cost, replayed.unpriced) == (0.0, 5)


def test_a_limit_below_one_calls_reserve_says_what_lowers_it(
    bench: Bench, server: ModelServer, tmp_path: Path
) -> None:
    result = bench.run(ledger=Ledger(tmp_path / "budget.json", cost=0.01)).only
    assert result.outcome == "over_budget"
    assert "$0.00 of $0.0100 are spent or reserved" in said(result)
    assert "a lower `max_tokens` of its stage lowers that" in said(result)
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


def test_a_limit_in_dollars_over_a_model_without_a_price_refuses_to_start(
    tmp_path: Path, server: ModelServer
) -> None:
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


def test_a_frozen_suite_needs_neither_its_log_nor_inspect_nor_litellm(
    tmp_path: Path, server: ModelServer
) -> None:
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
        "    heavy = ('litellm', 'openai', 'inspect_ai', 'vcr')\n"
        "    print('loaded:', [name for name in heavy if name in sys.modules])\n"
    )
    frozen = run_pytest(tmp_path, files.option, "--jrh-frozen", interpreter=[sys.executable])
    assert frozen.code == 0, frozen
    assert "4 passed" in frozen.stdout
    assert "loaded: []" in frozen.stdout
