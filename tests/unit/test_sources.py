"""The table of forms: which one a path is read in, and that a new one is a function and a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_jrh import sources
from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import RunSummary
from pytest_jrh.sources import open_source
from pytest_jrh.sources.source import Conversation, Form, Head


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
