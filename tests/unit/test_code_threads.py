"""Async code of judges shares a loop, and each is timed alone (rule Q2)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context

import pytest

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Verdict
from pytest_jrh.engine.own_code import CodeRunner, CodeThreads, _Run
from pytest_jrh.judges.judge import OwnCode, Said
from pytest_jrh.recording.own_code import KeptRequests
from pytest_jrh.recording.tapes import Tape

LONG = 60.0


@pytest.fixture
def threads() -> Iterator[CodeThreads]:
    made = CodeThreads()
    yield made
    made.close()


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def holding(go_on: threading.Event, begun: threading.Event) -> Callable[[], object]:
    """Async code that blocks: it gives the loop back when it may go on."""

    async def code() -> str:
        begun.set()
        go_on.wait(LONG)
        return "held"

    return code


def no_tape(_: Tape) -> KeptRequests:
    raise AssertionError("nothing is recorded here")


async def quick() -> str:
    await asyncio.sleep(0)
    return "quick"


def test_code_that_waits_for_a_held_loop_has_not_begun(
    threads: CodeThreads, go_on: threading.Event
) -> None:
    begun = threading.Event()
    holder = threads.start(holding(go_on, begun), is_async=True)
    assert begun.wait(LONG)
    other = threads.start(quick, is_async=True)
    time.sleep(0.2)
    assert other.began is None
    go_on.set()
    assert other.ended.result(LONG).value == "quick"
    assert holder.ended.result(LONG).value == "held"
    assert other.began is not None


def test_what_has_not_begun_leaves_a_loop_that_is_not_given_back(
    threads: CodeThreads, go_on: threading.Event
) -> None:
    begun = threading.Event()
    holder = threads.start(holding(go_on, begun), is_async=True)
    assert begun.wait(LONG)
    other = threads.start(quick, is_async=True)
    asyncio.run(threads.cancel(holder))
    assert other.ended.result(LONG).value == "quick"
    assert threads.start(quick, is_async=True).ended.result(LONG).value == "quick"
    assert not holder.ended.done()
    go_on.set()
    assert holder.ended.result(LONG).value == "held"


def test_a_verdict_is_late_by_its_own_time_alone(
    threads: CodeThreads, go_on: threading.Event
) -> None:
    begun = threading.Event()

    def code(call: Callable[[], object], timeout: float) -> OwnCode:
        return OwnCode(
            who="The judge j",
            call=lambda _submit: call(),
            is_async=True,
            read=lambda value: Said(value, ""),
            verdict=lambda _said: Verdict(0, ""),
            timeout=timeout,
            key={},
            from_head=False,
        )

    async def judged(call: Callable[[], object], timeout: float) -> object:
        runner = CodeRunner(no_tape, threads, asyncio.Semaphore(1))
        return await _Run(code(call, timeout), runner, copy_context()).value()

    async def session() -> None:
        blocking = asyncio.create_task(judged(holding(go_on, begun), 4.0))
        assert await asyncio.to_thread(begun.wait, LONG)
        assert await judged(quick, 2.0) == "quick"
        with pytest.raises(Unscored, match="gave no verdict within 4 s, its `timeout`"):
            await blocking

    asyncio.run(session())
