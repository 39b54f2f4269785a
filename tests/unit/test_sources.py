"""The table of sources: which one a path is read with, and that a new one is a class and a line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh import sources
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import AgentRun, RunSummary
from pytest_jrh.sources import open_source
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import Source
from tests.support.logs import sample, write_log


class Lines(Source):
    """One run a line, each a list of messages."""

    suffixes = (".lines",)

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        return path.suffix in cls.suffixes

    def summaries(self) -> tuple[RunSummary, ...]:
        count = len(self.path.read_text().splitlines())
        return tuple(RunSummary(str(line), 1) for line in range(count))

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        line = self.path.read_text().splitlines()[int(run_id)]
        return AgentRun(run_id, epoch, tuple(json.loads(line))), line if with_raw else None

    def close(self) -> None:
        pass


def add_raw(run: dict[str, Any], raw_sample: str) -> dict[str, Any]:
    return {"metadata": {"raw": raw_sample}}


def test_a_further_source_is_used_where_it_recognizes_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SOURCES", (Lines, *sources.SOURCES))
    line = json.dumps([{"role": "assistant", "content": "Done."}])
    (tmp_path / "runs.lines").write_text(f"{line}\n{line}\n")
    source = open_source(tmp_path / "runs.lines")
    assert source.summaries() == (RunSummary("0", 1), RunSummary("1", 1))
    assert source.run("1", 1, [add_raw]).metadata == {"raw": line}
    log = write_log(tmp_path / "runs.eval", [sample("a")])
    assert isinstance(open_source(log), EvalLog)


def test_what_no_source_recognizes_is_refused_by_the_last(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text('"Done."')
    with pytest.raises(InputError, match="is not an Inspect log"):
        open_source(tmp_path / "text.json").summaries()


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is neither a file nor a folder"):
        open_source(pipe)
