"""Recorded calls answered once more, through litellm and their recorded HTTP exchanges: what a
recording holds is what the client reads."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_jrh.core import storable
from pytest_jrh.core.redact import Redactor
from pytest_jrh.engine.case import Calls
from pytest_jrh.llm.calls import Answer, CallRequest, SchemaSent
from pytest_jrh.llm.client import Sending, _first_try, answer_of, arguments
from pytest_jrh.llm.transport import Failure, litellm
from pytest_jrh.recording.cassettes import RecordedCall
from pytest_jrh.recording.exchanges import Exchanges, Halted, HttpRequest
from pytest_jrh.recording.recorder import HttpRecorder
from pytest_jrh.recording.tapes import Tape

UNKEPT: dict[str, Any] = {"admit": lambda: None, "changed": bool, "room": contextlib.nullcontext}
"""What `Exchanges` take that nobody pays for or keeps."""


@contextlib.contextmanager
def played_the_whole_way() -> Iterator[list[str]]:
    """Play every recorded call of the sessions in the block, too; yields what the client reads in
    another way than it is recorded. Calls without an exchange are left alone."""
    differences: list[str] = []
    recorders: list[HttpRecorder] = []

    def recorder(redactor: Redactor) -> HttpRecorder:
        if not recorders:
            recorders.append(HttpRecorder(redactor))
            recorders[0].install()
        return recorders[0]

    class PlayedTape(Tape):
        async def __call__(self, request: CallRequest) -> Answer:
            answer = await super().__call__(request)
            entry = self.recorded(request.fingerprint, interactions=True)
            if entry is not None and entry.exchanges:
                redactor = self.recording.redactor
                played = await _played(recorder(redactor), redactor, request, entry)
                if isinstance(played, Answer):
                    # Old recordings do not say how the schema was sent.
                    played = replace(storable(played)[0], schema_sent=answer.schema_sent)
                if redactor.value(played) != answer:
                    differences.append(f"{self.path}: {played!r} in place of {answer!r}")
            return answer

    async def close(calls: Calls) -> None:
        await real_close(calls)
        while recorders:
            recorders.pop().remove()
        # Its cache is keyed by the loop's id, which a later session's loop may get again.
        await litellm().close_litellm_async_clients()
        litellm().in_memory_llm_clients_cache.flush_cache()

    real_close = Calls.close
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_jrh.engine.case.Tape", PlayedTape)
        patch.setattr(Calls, "close", close)
        yield differences


async def _played(
    recorder: HttpRecorder, redactor: Redactor, request: CallRequest, entry: RecordedCall
) -> Answer | Failure | str:
    """What the client reads of the recorded exchange; a text where it sends another request."""
    answer = entry.answer
    sending = Sending(answer.left_out, answer.schema_sent or _sent_before(request, answer))
    asked = {**arguments(request, sending), "api_key": "replayed"}
    exchanges = _Played(entry.exchanges, live=False, redactor=redactor, **UNKEPT)
    sent: list[Any] = []
    for exchange in entry.exchanges:
        with contextlib.suppress(ValueError):
            sent.append(json.loads(exchange["response"]["body"]["string"]))
    with recorder.judging(exchanges):
        try:
            return answer_of(await litellm().acompletion(**asked), sending, sent)
        except Exception:
            if not exchanges.missed:
                raise
            return f"the request {exchanges.missed}, which is not recorded"


class _Played(Exchanges):
    """Exchanges whose client may go on where a request is not recorded, as litellm's may."""

    missed = ""

    def answer(self, request: HttpRequest) -> Mapping[str, Any] | None:
        try:
            return super().answer(request)
        except Halted as halted:
            self.missed, self.halt = str(request), None
            raise LookupError(self.missed) from halted


def _sent_before(request: CallRequest, answer: Answer) -> SchemaSent:
    """How the schema of a call was sent that was recorded before recordings stated it."""
    first = _first_try(request.stage.model)
    is_schema = first == "json_schema" and "response_format" not in answer.left_out
    return "json_schema" if is_schema else "words"
