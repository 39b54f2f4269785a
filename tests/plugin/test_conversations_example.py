"""The worked example of a suite on conversations, replayed from the demo's recordings."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.conversations.from_log import DEFAULT, write_conversations
from tests.plugin.recorded import run_pytest
from tests.support.fork_server import python
from tests.support.offline import needs_cut_network, offline

ROOT = Path(__file__).parents[2]
CONFIG = "examples/conversations/conversations.yml"

pytestmark = pytest.mark.skipif(
    not (ROOT / "inputs/cassettes/refund_agent").exists(),
    reason="the demo is not recorded: make record-demo",
)


@pytest.mark.parametrize(
    ("workers", "interpreter"),
    [
        pytest.param((), offline, marks=needs_cut_network, id="alone and without a network"),
        pytest.param(("-n", "2"), python, id="-n 2"),
    ],
)
def test_the_demos_recordings_answer_for_the_same_runs_as_conversations(
    tmp_path: Path, workers: tuple[str, ...], interpreter: Callable[[], list[str]]
) -> None:
    for name in ("inputs", "examples/conversations"):
        shutil.copytree(ROOT / name, tmp_path / name)
    done = run_pytest(tmp_path, f"--jrh-config={CONFIG}", *workers, interpreter=interpreter())
    assert done.code == pytest.ExitCode.OK, done.stdout
    assert "54 passed, 6 skipped" in done.lines[-1]
    assert any("  0 calls, 260 replayed" in line for line in done.lines)


def test_the_conversations_are_those_of_the_log(tmp_path: Path) -> None:
    write_conversations(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == DEFAULT.read_bytes()
