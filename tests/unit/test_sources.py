"""The table of forms: which one a path is read in, and that a new one is a function and a row."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh import sources
from pytest_jrh.core.errors import InputError
from pytest_jrh.sources import open_source
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import Conversation, Form
from tests.support.logs import sample, write_log


def turns_of(line: Any) -> Conversation:
    """A list of messages, without an id."""
    return Conversation(line)


def add_raw(run: dict[str, Any], raw_sample: Any) -> dict[str, Any]:
    return {"metadata": {"raw": raw_sample}}


def test_a_further_source_is_used_where_it_recognizes_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Form("lists of messages", (".lines",), turns_of)
    monkeypatch.setattr(sources, "FORMS", (lines, *sources.FORMS))
    turns = [[{"role": "assistant", "content": text}] for text in ("Done.", "Not done.")]
    (tmp_path / "runs.lines").write_text("".join(f"{json.dumps(line)}\n" for line in turns))
    source = open_source(tmp_path / "runs.lines")
    names = [run.run_id for run in source.summaries()]
    assert len({*names}) == 2
    run = source.run(names[1], 1, [add_raw])
    assert run.messages == tuple(turns[1])
    assert run.metadata == {"raw": turns[1]}
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
