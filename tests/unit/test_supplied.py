"""Calls of a project's own client that fail are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.core.calls import StageModel
from pytest_jrh.core.errors import Unscored
from pytest_jrh.llm.limits import Ledger
from tests.e2e.bench import Bench
from tests.support.ledgers import spent
from tests.support.scripted import ScriptedModel
from tests.support.suites import write_suite

SATISFIED: dict[str, Any] = {
    "planner": {"thesis": "", "steps": []},
    "verifier": {"rationale": "It is fine.", "verdict": "PASS"},
}


def bench_of(folder: Path) -> Bench:
    suite = write_suite(folder / "s", runs=1, tests=["agent_positives"])
    return Bench(suite, folder / "cassettes")


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
    ids=["raises", "skips", "returns nothing", "has no answer", "was refused", "has no budget"],
)
def test_calls_of_a_client_that_fail_count_as_made(
    tmp_path: Path, failure: BaseException | None, sent: int, lost: int
) -> None:
    silent = Silent(**SATISFIED)
    client = ScriptedModel(**SATISFIED, judge=failure) if failure else silent
    ledger = Ledger(tmp_path / "ledger.json", calls=99)
    spending = bench_of(tmp_path).run(complete=client, ledger=ledger).only.spending.all
    before = len(client.requests) - max(sent, 1)
    assert (spending.calls, spending.lost) == (before + sent, lost)
    assert spent(tmp_path / "ledger.json").calls == len(client.requests)
