"""The engine's threads: nothing that they return stays unawaited, or warns of it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_jrh.engine.own_code import Threads
from pytest_jrh.plugin.activation import current_test_hidden


async def answer() -> int:
    return 42


def test_a_coroutine_that_a_time_limit_dropped_warns_of_nothing() -> None:
    threads, go_on = Threads(), threading.Event()

    def prepare() -> object:
        go_on.wait()
        return answer()

    async def call() -> None:
        asyncio.get_running_loop().set_default_executor(threads)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.get_running_loop().run_in_executor(None, prepare)
        go_on.set()
        await asyncio.get_running_loop().shutdown_default_executor()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(call())
        threads.close_unawaited()
        gc.collect()
    assert not [
        str(warning.message) for warning in caught if "never awaited" in str(warning.message)
    ]


def test_threads_of_judges_do_not_meet_what_pytest_removes_meanwhile() -> None:
    with current_test_hidden():
        with ThreadPoolExecutor(1) as pool:
            names = pool.submit(lambda: [*os.environ]).result()
        assert "PATH" in names
        assert "PYTEST_CURRENT_TEST" not in names
        assert "PYTEST_CURRENT_TEST" in [*os.environ]
