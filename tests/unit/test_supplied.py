"""A project's own client that is slow: its calls end in time, and are tried as often as our own
client's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Completion, StageModel
from pytest_jrh.llm.budget import Ledger
from tests.e2e.bench import Bench
from tests.support.ledgers import spent
from tests.support.suites import write_suite

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = {
    "planner": '{"thesis": "", "steps": []}',
    "summary": '{"summary": "A question.", "user_intent": "To know.", "assistant_progress": [], '
    '"outstanding_items": [], "risks": []}',
    "verifier": '{"rationale": "It is fine.", "verdict": "PASS"}',
    "judge": '{"reasoning": "It is fine.", "score": 0}',
}


def bench_of(folder: Path, *, runs: int = 1, timeout: float = 0.05) -> Bench:
    judge = {"judge": {"timeout": timeout}}
    return Bench(
        write_suite(folder / "s", runs=runs, tests=["agent_positives"], overrides=judge),
        folder / "cassettes",
    )


class Client:
    """Answers every stage; where the judge's call is slow is what a test says."""

    def __init__(self, slow: Callable[[int], Awaitable[object]]) -> None:
        self._slow = slow
        self.judged = 0

    async def __call__(
        self, stage: StageModel, messages: object, response_model: Any
    ) -> Completion[Any]:
        if stage.stage == "judge":
            self.judged += 1
            await self._slow(self.judged)
        text = ANSWERS[stage.stage]
        return Completion(text, response_model.model_validate_json(text))


async def for_ever(_: int) -> None:
    await asyncio.Event().wait()


async def whatever_happens(_: int) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def with_an_error_in_the_end(_: int) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("too late")


@pytest.mark.parametrize("slow", [for_ever, whatever_happens, with_an_error_in_the_end])
def test_a_client_that_never_answers_is_asked_twice_and_given_up(
    tmp_path: Path, slow: Callable[[int], Awaitable[object]], recwarn: pytest.WarningsRecorder
) -> None:
    client = Client(slow)
    result = bench_of(tmp_path).run(complete=client).only
    assert result.outcome == "model_error"
    assert (
        "The client of `pytest_jrh_complete` gave no answer within 0.05 s (2 attempts); `timeout` "
        "is 0.05. Set a longer" in " ".join(result.why.text.split())
    )
    assert client.judged == 2
    assert not [warning for warning in recwarn if "never" in str(warning.message)]


def test_a_client_that_is_late_once_is_asked_once_more(tmp_path: Path) -> None:
    async def at_first(number: int) -> None:
        if number == 1:
            await asyncio.Event().wait()

    client = Client(at_first)
    assert bench_of(tmp_path).run(complete=client).outcomes == [("agree", 0)]
    assert client.judged == 2


def test_a_client_without_a_time_limit_of_its_stage_has_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_jrh.llm.client.DEFAULT_TIMEOUT", 0.05)
    suite = write_suite(tmp_path / "s", runs=1, tests=["agent_positives"])
    result = Bench(suite, tmp_path / "cassettes").run(complete=Client(for_ever)).only
    assert "`timeout` is 0.05 (the default)." in " ".join(result.why.text.split())


def test_a_call_that_is_given_up_gives_its_place_to_another(tmp_path: Path) -> None:
    async def at_first(number: int) -> None:
        if number <= 2:
            await whatever_happens(number)

    session = bench_of(tmp_path, runs=2).run(complete=Client(at_first), max_workers=1)
    assert sorted(session.outcomes) == [("agree", 0), ("model_error", None)]


class Failing:
    """Fails when it is asked to judge, in the way that a test gives; counts what it was asked."""

    def __init__(self, failure: object) -> None:
        self._failure = failure
        self.asked = 0

    async def __call__(self, stage: StageModel, messages: object, response_model: Any) -> object:
        self.asked += 1
        if stage.stage != "judge":
            text = ANSWERS[stage.stage]
            return Completion(text, response_model.model_validate_json(text))
        if isinstance(self._failure, BaseException):
            raise self._failure
        return await asyncio.Event().wait() if self._failure == "hang" else self._failure


@pytest.mark.parametrize(
    ("failure", "sent", "lost"),
    [
        (ValueError("no"), 1, 1),
        (pytest.skip.Exception("no"), 1, 1),
        ("hang", 2, 2),
        (None, 1, 1),
        (Unscored("model_error", stage="judge", cause="no"), 1, 1),
        (Unscored("refused", stage="judge", cause="no"), 1, 0),
        (Unscored("over_budget", stage="judge", cause="no"), 0, 0),
    ],
    ids=[
        "raises",
        "skips",
        "hangs",
        "returns nothing",
        "has no answer",
        "was refused",
        "has no budget",
    ],
)
def test_calls_of_a_client_that_fail_count_as_made(
    tmp_path: Path, failure: object, sent: int, lost: int
) -> None:
    client = Failing(failure)
    ledger = Ledger(tmp_path / "ledger.json", calls=99)
    spending = bench_of(tmp_path).run(complete=client, ledger=ledger).only.spending.all
    before = client.asked - max(sent, 1)
    assert (spending.calls, spending.lost) == (before + sent, lost)
    assert spent(tmp_path / "ledger.json").calls == client.asked


def test_a_limit_of_calls_ends_the_tries_of_a_client(tmp_path: Path) -> None:
    client = Failing("hang")
    ledger = Ledger(tmp_path / "ledger.json", calls=4)
    result = bench_of(tmp_path).run(complete=client, ledger=ledger).only
    assert (result.outcome, result.spending.all.calls, result.spending.all.lost) == (
        "over_budget",
        4,
        1,
    )
    assert client.asked == 4
