"""Models are tried before a session's first call: each once, however many stages ask it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_jrh.core.model import StageModel
from pytest_jrh.engine.case import Trials
from pytest_jrh.recording.recorder import Capture

ONE = StageModel("planner", "openai/one")
ALIKE = (ONE, replace(ONE, stage="judge", system_prompt="Be strict."), replace(ONE, stage="editor"))


class Http:
    @contextlib.contextmanager
    def replaying(self, _: object) -> Iterator[Any]:
        yield Capture(missed="nothing recorded")


class Client:
    def __init__(self) -> None:
        self.tried: list[StageModel] = []

    async def trial(self, stage: StageModel) -> None:
        self.tried.append(stage)


@pytest.mark.parametrize(
    ("stages", "trials"),
    [
        (ALIKE, 1),
        ((*ALIKE, replace(ONE, model="openai/two")), 2),
        ((*ALIKE, replace(ONE, api_base="no-url")), 2),
        ((*ALIKE, replace(ONE, temperature=0.5)), 2),
    ],
)
def test_stages_that_ask_alike_are_tried_once(stages: tuple[StageModel, ...], trials: int) -> None:
    client: Any = Client()
    http: Any = Http()

    async def checked() -> None:
        both = Trials(client, http)
        for _ in range(2):
            for stage in stages:
                assert await both.failure(stage) is None

    asyncio.run(checked())
    assert len(client.tried) == trials
