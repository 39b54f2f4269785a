"""The table of forms: which one a path is read in, and that a new one is a function and a row."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh import sources
from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import RunSummary
from pytest_jrh.sources import open_source
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.source import Conversation, Form, Head
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


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is neither a file nor a folder"):
        open_source(pipe)


def chat_of(chat: Any) -> Conversation:
    return Conversation([{"role": "user", "content": chat["said"]}], id=chat["id"])


def whole_chat(lines: Any) -> Conversation:
    if lines[1].keys() != {"said"}:
        raise DamagedError("must have said alone", path=(1, "said"))
    return Conversation([{"role": "user", "content": line["said"]} for line in lines[1:]])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"id": "a"}\n', ":1: is of an unknown form (KeyError: 'said')"),
        ('\n"Hi."\n', ":2: is of an unknown form (TypeError: string indices must be integers"),
        ('{"id": "a", "said"', ":1: is not valid JSON"),
        ("", ": is empty"),
    ],
)
def test_what_a_form_of_ones_own_does_not_expect_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    form = Form("chats", (".chat",), chat_of)
    monkeypatch.setattr(sources, "FORMS", (form, *sources.FORMS))
    (tmp_path / "runs.chat").write_text(text)
    with pytest.raises(InputError) as caught:
        open_source(tmp_path / "runs.chat").summaries()
    assert f"runs.chat{problem}" in str(caught.value)


def test_a_form_of_ones_own_may_take_all_lines_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_chat(head: Head) -> bool:
        return bool(head.lines) and head.lines[0].get("form") == "chat"

    form = Form("whole chats", (".jsonl",), whole_chat, is_chat, is_whole=True)
    monkeypatch.setattr(sources, "FORMS", (form, *sources.FORMS))
    path = tmp_path / "one.jsonl"
    path.write_text('{"form": "chat"}\n\n{"said": "Hi."}\n{"said": "Bye."}\n')
    source = open_source(path)
    assert source.summaries() == (RunSummary("one", 1),)
    assert [message["content"] for message in source.read("one", 1)[0].messages] == ["Hi.", "Bye."]
    path.write_text('{"form": "chat"}\n\n{"said": "Hi.", "by": "me"}\n')
    with pytest.raises(InputError, match=r"one.jsonl:3: said: must have said alone"):
        open_source(path).summaries()
