"""The demo's log is what its task produces, and names nobody's folders."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from examples.refund_agent.make_log import DEFAULT, make_log


def samples(log: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What is said and called in each run of a log."""
    with zipfile.ZipFile(log) as members:
        names = [name for name in members.namelist() if name.startswith("samples/")]
        read = [json.loads(members.read(name)) for name in names]
    keys = ("role", "content", "tool_calls", "error")
    return {
        sample["id"]: [tuple(map(message.get, keys)) for message in sample["messages"]]
        for sample in read
    }


def test_committed_log_is_what_the_task_produces(tmp_path: Path) -> None:
    make_log(tmp_path / "again.eval")
    assert samples(tmp_path / "again.eval") == samples(DEFAULT)
