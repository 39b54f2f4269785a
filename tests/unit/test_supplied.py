"""Calls of a project's own client that fail are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Completion, StageModel
from pytest_jrh.llm.limits import Ledger
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


def bench_of(folder: Path) -> Bench:
    suite = write_suite(folder / "s", runs=1, tests=["agent_positives"])
    return Bench(suite, folder / "cassettes")


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
        return self._failure


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
    ids=["raises", "skips", "returns nothing", "has no answer", "was refused", "has no budget"],
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
