"""`cluster_key` in a session: what belongs together is one observation everywhere."""

from __future__ import annotations

import json

import pytest

from tests.plugin.recorded import Recorded, run_pytest
from tests.support.logs import rewrite
from tests.support.results import results_in


def with_tasks(members: dict[str, bytes]) -> None:
    """Runs 1 and 2 are trials of one task; of the others, the log names none."""
    for name in ("samples/run-1_epoch_1.json", "samples/run-2_epoch_1.json"):
        sample = json.loads(members[name]) | {"metadata": {"task": {"id": 12}}}
        members[name] = json.dumps(sample).encode()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_trials_of_one_task_are_one_cluster(recorded: Recorded, workers: tuple[str, ...]) -> None:
    suite = recorded.tiny
    rewrite(suite.data / "runs.eval", with_tasks)
    with suite.config.open("a", encoding="utf-8") as config:
        config.write("test_agent_perturbation_config: {cluster_key: /task/id}\n")
    done = run_pytest(suite.folder, suite.option, *workers)
    notice = "2 of 4 runs have no /task/id in the metadata (cases.cluster)"
    assert " ".join(done.stdout.split()).count(notice) == 1
    found = {result.spec.run_id: result.spec.cluster for result in results_in(suite.results)}
    assert found == {"run-1": "12", "run-2": "12", "run-3": None, "run-4": None}


def test_a_key_that_no_run_has_is_a_usage_error(recorded: Recorded) -> None:
    suite = recorded.tiny
    rewrite(suite.data / "runs.eval", with_tasks)
    with suite.config.open("a", encoding="utf-8") as config:
        config.write("test_agent_perturbation_config: {cluster_key: task_id}\n")
    done = run_pytest(suite.folder, suite.option)
    assert done.code == 4
    assert 'test_agent_perturbation_config.cluster_key: got "task_id", which no run has' in (
        done.stdout + done.stderr
    )
    assert "the fields are /task/id" in done.stdout + done.stderr
