"""What a project's own client or preprocessor raises: an outcome of its case, and never a session
that hangs."""

import asyncio
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core import error_text
from pytest_jrh.core.calls import Completion, RecordMode, StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.engine.runner import Engine, _cancelled
from pytest_jrh.llm.limits import Ledger
from pytest_jrh.plugin.activation import current_test_hidden
from pytest_jrh.reports.case_facts import no_verdict_text
from tests.e2e.bench import Bench
from tests.support.ledgers import spent
from tests.support.scripted import ScriptedModel
from tests.support.suites import write_suite

HERE = Path(__file__).name
SECRET = "sesame-open-sesame-4711"
RAISED: tuple[tuple[BaseException, str], ...] = (
    (ValueError("no"), "ValueError: no"),
    (asyncio.CancelledError("cancelled"), "CancelledError: cancelled"),
    (GeneratorExit("closed"), "GeneratorExit: closed"),
    (SystemExit(3), "SystemExit: 3"),
    (StopIteration("empty"), "RuntimeError: coroutine raised StopIteration"),
    (pytest.skip.Exception("not today"), "Skipped: not today"),
    (pytest.fail.Exception("not so"), "Failed: not so"),
)


def bench_in(folder: Path, runs: int) -> Bench:
    suite = write_suite(folder / "suite", runs=runs, tests=["agent_positives"])
    return Bench(suite, folder / "cassettes")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """As many cases as there are errors to raise, and one more."""
    return bench_in(tmp_path_factory.mktemp("user_code"), len(RAISED) + 1)


def started(bench: Bench, mode: RecordMode, **settings: Any) -> Engine:
    engine = Engine({bench.ready.suite.name: bench.ready}, bench.settings(mode, [], **settings))
    engine.start(bench.specs)
    return engine


def number_of(messages: object) -> int:
    return int(re.findall("order 100([0-9])", str(messages))[0])


def told(result: CaseResult) -> str:
    """What is said of a case, on one line, and of places in this file without their numbers."""
    text = re.sub(rf"\S*{HERE}:\d+", HERE, no_verdict_text(result.why))
    return " ".join(text.split())


def test_whatever_a_client_raises_is_the_model_error_of_its_case(bench: Bench) -> None:
    def helper(number: int) -> None:
        raise [*(error for error, _ in RAISED), OSError(f"Bearer {SECRET} " * 900)][number - 1]

    async def complete(stage: StageModel, messages: object, response_model: object) -> None:
        helper(number_of(messages))

    session = bench.run(complete=complete, redactor=Redactor((SECRET,)))
    assert {result.outcome for result in session.results} == {"model_error"}
    for result, (_, said) in zip(session.results, RAISED, strict=False):
        assert f"The client of `pytest_jrh_complete` raised {said}." in told(result)
        assert f"raised at: {HERE} in complete {HERE} in helper" in told(result)
    for result in session.results:
        assert len(no_verdict_text(result.why).splitlines()) <= 25
        assert SECRET[:8] not in no_verdict_text(result.why)


def test_a_background_task_of_a_client_that_exits_ends_no_other_case(bench: Bench) -> None:
    async def leave() -> None:
        raise SystemExit(5)

    async def complete(stage: StageModel, messages: object, response_model: object) -> None:
        if number_of(messages) == 1:
            await asyncio.create_task(leave())
        raise ValueError

    first, *others = bench.run(complete=complete).results
    assert "raised SystemExit: 5." in told(first)
    assert all("raised ValueError." in told(other) for other in others)


def test_an_interrupt_of_a_client_ends_every_wait_at_once(bench: Bench) -> None:
    interrupted = threading.Event()

    async def complete(stage: StageModel, messages: object, response_model: object) -> None:
        if number_of(messages) == 2:
            raise KeyboardInterrupt("enough")
        while not interrupted.is_set():
            await asyncio.sleep(0.01)

    engine = started(bench, "new_episodes", complete=complete, max_workers=2 * len(bench.specs))
    for spec in bench.specs:
        with pytest.raises(KeyboardInterrupt, match="enough"):
            engine.result(spec)
    interrupted.set()
    engine.stop()


def test_a_replay_runs_some_cases_ahead(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_jrh.engine.runner._TOGETHER", 3)
    engine = started(bench, "none")
    done = []
    for number in (0, 2, 7, 5, 1, 3, 4, 6):
        assert engine.result(bench.specs[number]).outcome == "unrecorded"
        done.append(engine.progress.done)
    engine.stop()
    assert done == [3, 3, 8, 8, 8, 8, 8, 8]
    assert engine.progress.total == len(bench.specs) == 8


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_dies_leaves_nobody_waiting(tmp_path: Path) -> None:
    # Of its own, since what the loop leaves unfinished goes on holding the locks of its cassettes.
    bench = bench_in(tmp_path, 1)

    def die() -> None:
        raise KeyboardInterrupt

    async def complete(stage: StageModel, messages: object, response_model: object) -> None:
        if stage.stage == "planner":
            asyncio.get_running_loop().call_soon(die)
        await asyncio.sleep(3600)

    # No error is one that the engine expects of its loop, so this one ends the thread.
    engine = started(bench, "new_episodes", complete=complete, ends_session=())
    with pytest.raises(RuntimeError, match="the engine's thread has stopped"):
        engine.result(bench.specs[0])
    engine._thread.join()
    # What a dead thread has left behind would warn, in whichever test it is collected.
    engine._loop.run_until_complete(_cancelled())
    engine._loop.run_until_complete(engine._loop.shutdown_default_executor())
    engine.stop()


def test_a_client_that_returns_something_else_is_a_model_error(bench: Bench) -> None:
    async def complete(stage: StageModel, messages: object, response_model: object) -> Any:
        number: Any = number_of(messages)
        return {"score": 0} if number == 1 else Completion(number, None)

    first, second, *_ = bench.run(complete=complete).results
    said = "AttributeError: 'dict' object has no attribute 'text'"
    assert f"The client of `pytest_jrh_complete` raised {said}" in told(first)
    assert "raised TypeError: the client must return a `pytest_jrh.Completion`" in told(second)
    assert first.outcome == second.outcome == "model_error"


def with_preprocessor(bench: Bench, step: Callable[[dict[str, Any]], None]) -> Bench:
    copied = Bench(bench.files, bench.cassettes)
    copied.ready = replace(copied.ready, preprocessors=(step,))
    return copied


def test_whatever_a_preprocessor_raises_is_the_input_error_of_its_case(bench: Bench) -> None:
    def raising(run: dict[str, Any]) -> None:
        raise RAISED[min(int(run["run_id"][-1]), len(RAISED)) - 1][0].with_traceback(None)

    # An interrupt ends the session.
    def interrupted(run: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_preprocessor(bench, interrupted).run("none")
    results = with_preprocessor(bench, raising).run("none").results
    assert {result.outcome for result in results} == {"input_error"}
    for number, (result, (error, _)) in enumerate(zip(results, RAISED, strict=False), 1):
        assert f"raising raised {error_text(error)} (case run-{number}, epoch 1)." in told(result)
        assert f"{HERE} in raising" in told(result)


PASS = {"rationale": "It is fine.", "verdict": "PASS"}
SATISFIED: dict[str, Any] = {"planner": {"thesis": "", "steps": []}, "verifier": PASS}


class Silent(ScriptedModel):
    """Gives nothing when it is asked to judge."""

    async def __call__(self, stage: StageModel, messages: Any, response_model: Any) -> Any:
        completion = await super().__call__(stage, messages, response_model)
        return None if stage.stage == "judge" else completion


@pytest.mark.parametrize(
    ("failure", "sent", "lost"),
    [
        (ValueError("no"), 1, 1),
        (pytest.skip.Exception("no"), 1, 1),
        (None, 1, 1),
        (Unscored("model_error", stage="judge", cause="no"), 1, 1),
        (Unscored("refused", stage="judge", cause="no"), 1, 0),
        (Unscored("over_budget", stage="judge", cause="no"), 0, 0),
    ],
)
def test_calls_of_a_client_that_fail_count_as_made(
    tmp_path: Path, failure: BaseException | None, sent: int, lost: int
) -> None:
    silent = Silent(**SATISFIED)
    client = ScriptedModel(**SATISFIED, judge=failure) if failure else silent
    ledger = Ledger(tmp_path / "ledger.json", calls=99)
    spending = bench_in(tmp_path, 1).run(complete=client, ledger=ledger).only.spending.all
    before = len(client.requests) - max(sent, 1)
    assert (spending.calls, spending.lost) == (before + sent, lost)
    assert spent(tmp_path / "ledger.json").calls == len(client.requests)


def test_threads_of_judges_do_not_meet_what_pytest_removes_meanwhile() -> None:
    with current_test_hidden():
        with ThreadPoolExecutor(1) as pool:
            names = pool.submit(lambda: [*os.environ]).result()
        assert "PATH" in names
        assert "PYTEST_CURRENT_TEST" not in names
        assert "PYTEST_CURRENT_TEST" in [*os.environ]
