"""A recorded call played through litellm and its HTTP exchange (`--jrh-replay=http`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_jrh.errors import Unrecorded, Unscored
from pytest_jrh.recording.cassettes import Cassette

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.llm.calls import Answer, CallRequest
    from pytest_jrh.recording.settings import Recording


async def played_through(recording: Recording, cassette: Path, request: CallRequest) -> Answer:
    """The answer that the client reads of the recorded exchange.

    Raises `Unrecorded` where it does not send the recorded request any more.
    """
    http, live = recording.http, recording.live
    assert http is not None
    assert live is not None
    recorded = Cassette.load(cassette, interactions=True).find(request.fingerprint)
    assert recorded is not None
    with http.replaying(recorded.interactions) as capture:
        try:
            return await live(replace(request, recorded=recorded.answer))
        except Unscored as trouble:
            if capture.missed is None:
                raise
            raise Unrecorded(
                stage=request.stage.stage,
                cause="the call is recorded, but its HTTP request is not the recorded one any more "
                f"({capture.missed}); an upgrade of litellm or a provider's SDK may have "
                "changed it.",
                difference="",
                cassette=str(cassette),
            ) from trouble
