"""By what a request of a judge's code is recognized."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_jrh.core.redact import Redactor, secrets_of
from pytest_jrh.recording.exchanges import Exchanges, Halt, Halted, HttpRequest, is_request
from tests.support.whole_way import UNKEPT


def exchanges_of(*recorded: dict[str, Any], live: bool = False, **more: Any) -> Exchanges:
    return Exchanges(recorded, live=live, redactor=Redactor(), **{**UNKEPT, **more})


def test_a_key_that_the_code_has_set_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = exchanges_of(live=True)
    monkeypatch.setenv("LATE_API_KEY", "plain-words-0123456789")
    asked = exchanges.request("POST", "http://h/plain-words-0123456789", "plain-words-0123456789")
    assert asked == HttpRequest("POST", "http://h/[REDACTED]", "[REDACTED]")


def test_an_environment_that_changes_meanwhile_is_read_all_the_same() -> None:
    class Changing(dict[str, str]):
        def __iter__(self) -> Iterator[str]:
            names = list(self.keys())
            self.pop("PYTEST_CURRENT_TEST", None)
            yield from names

    given = {"PYTEST_CURRENT_TEST": "x", "LATE_API_KEY": "plain-words-0123456789"}
    assert secrets_of(Changing(given)) == ("plain-words-0123456789",)


@pytest.mark.parametrize(
    ("recorded", "sent", "answers"),
    [
        ("[REDACTED]", "[REDACTED]", True),
        ("[REDACTED]", "anything", False),
        ("[REDACTED]", "rubric=r&transcript=hello+world", False),
        ("[REDACTED][REDACTED]", '{"a": 1}', False),
        ('["[REDACTED]"]', '["a"]', False),
        ('{"key": "[REDACTED]", "n": 1}', '{"key": "sk-test", "n": 1}', True),
        ('{"key": "[REDACTED]", "n": 1}', '{"key": "sk-test", "m": "x", "n": 1}', False),
        ('{"text": "[REDACTED]"}', '{"text": "Is it so?\\nYes."}', False),
        ('{"text": "a [REDACTED] b"}', '{"text": "a word b"}', True),
        ("key=[REDACTED]&n=1", "key=sk-test&n=1", True),
    ],
)
def test_a_secret_that_was_taken_out_stands_for_one_word(
    recorded: str, sent: str, answers: bool
) -> None:
    interaction = {"request": {"method": "POST", "uri": "http://h/", "body": recorded}}
    request = HttpRequest("POST", "http://h/", sent)
    assert is_request(interaction, request, Redactor()) is answers


def test_the_host_is_no_part_of_a_request_and_its_own_comes_first() -> None:
    def recorded(uri: str, answer: str) -> dict[str, Any]:
        return {"request": {"method": "POST", "uri": uri, "body": "{}"}, "answer": answer}

    one, other = recorded("http://one:1/v1/x?a=1", "one"), recorded("https://other/v1/x?a=1", "2")
    exchanges = exchanges_of(one, other)
    assert exchanges.answer(HttpRequest("POST", "https://other/v1/x?a=1", "{}")) is other
    assert exchanges.answer(HttpRequest("POST", "https://third/v1/x?a=1", "{}")) is one
    for uri in ("http://one:1/v2/x?a=1", "http://one:1/v1/x?a=2", "http://one:1/v1/x"):
        with pytest.raises(Halted):
            exchanges_of(one).answer(HttpRequest("POST", uri, "{}"))


def test_a_request_is_neither_sent_nor_counted_where_its_answer_could_not_be_kept() -> None:
    kept: list[int] = []
    counted: list[str] = []

    @contextlib.contextmanager
    def room(asked: int) -> Iterator[None]:
        if len(kept) == 2:
            raise OSError(28, "No space left on device")
        kept.append(asked)
        yield
        kept.remove(asked)

    exchanges = exchanges_of(live=True, admit=lambda: counted.append("one"), room=room)
    request = HttpRequest("POST", "http://h/", "asked")
    assert exchanges.answer(request) is None
    response = {"status": {"code": 200}, "headers": {}, "body": {"string": b"an answer"}}
    exchanges.made(request, response, "")
    assert kept == []
    # What has been answered before may not be on the disk yet.
    assert exchanges.answer(request) is None
    assert exchanges.answer(request) is None
    assert len(kept) == 2
    assert min(kept) >= 2 * len("asked") + len("an answer")
    with pytest.raises(Halted):
        exchanges.answer(request)
    assert exchanges.halt == Halt("room", "No space left on device")
    assert len(counted) == exchanges.sent == 3
    exchanges.close()
    assert kept == []
