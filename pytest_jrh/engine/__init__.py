"""Runs case specs ahead of the items that wait for them: generate, review, judge, compare.

One asyncio loop in one thread; at most `max_workers` calls in flight and as many cases at work, or
about twice as many where calls are made, in the order of the specs. Nothing here knows pytest.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_jrh.core.model import CaseResult
from pytest_jrh.core.user_code import SessionEnd, exits_refused
from pytest_jrh.engine.attempts import EngineSettings
from pytest_jrh.engine.own_code import Threads
from pytest_jrh.engine.runner import CaseRunner
from pytest_jrh.engine.supplied import BrokenClient
from pytest_jrh.recording.watch import threads_keep_context, trusted

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseSpec, Progress
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.engine.planning import Survey


__all__ = ["BrokenClient", "Engine", "EngineSettings"]

_MEANWHILE = 0.25
_CANCELLATIONS = 20
_BETWEEN_CANCELLATIONS = 0.1


class Engine:
    """The session's runner; `suites` maps suite names to what they run on.

    `start` announces the specs that will be asked for, in order; `result` waits for one of them. A
    spec asked for again, or never announced, is run then. `stop` it in the end, whatever happened.
    """

    def __init__(self, suites: Mapping[str, ReadySuite], settings: EngineSettings) -> None:
        self._futures: dict[CaseSpec, Future[CaseResult]] = {}
        self._runner = CaseRunner(suites, settings)
        self._ends_session = settings.ends_session
        self._ended = False
        judges = (judge for ready in suites.values() for judge in ready.judges.values())
        self._runs_code = any(judge.runs_code for judge in judges)
        self._patches = contextlib.ExitStack()
        self._patches.enter_context(exits_refused())
        self._loop = asyncio.new_event_loop()
        self._threads = Threads()
        self._loop.set_default_executor(self._threads)
        self._thread = threading.Thread(target=self._run_loop, name="jrh-engine", daemon=True)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user, each sentence once."""
        return self._runner.notices

    def start(self, specs: Sequence[CaseSpec]) -> None:
        """Set these specs to work in order; those already announced are left as they are."""
        fresh = {spec: Future[CaseResult]() for spec in specs if spec not in self._futures}
        self._futures |= fresh
        if not self._thread.is_alive():
            if self._runs_code:
                # What this thread begins from now on is known not to be of a judge's code.
                trusted().set(True)
                self._patches.enter_context(threads_keep_context())
            self._thread.start()
        asyncio.run_coroutine_threadsafe(self._runner.feed(list(fresh.items())), self._loop)

    @property
    def unreported(self) -> list[CaseResult]:
        """What took calls and was not asked for: their spending alone holds of those that have not
        come to an end.
        """
        ended = [future for future in self._futures.values() if future.done()]
        results = [future.result() for future in ended if future.exception() is None]
        return [*results, *self._runner.unfinished]

    @property
    def progress(self) -> Progress:
        """How far the cases are that were set to work."""
        return replace(self._runner.progress, in_flight=self._runner.calls.in_flight)

    def result(self, spec: CaseSpec, meanwhile: Callable[[], None] | None = None) -> CaseResult:
        """Wait for the result of a spec, as `wait` does.

        A bug met on the way is raised as it was.
        """
        self.wait(spec, meanwhile)
        # Forgotten once given: the results of thousands of cases need not stay, and a rerun runs
        # again.
        future = self._futures.pop(spec)
        if not future.done():
            raise RuntimeError("the engine's thread has stopped, so this case cannot be run")
        return future.result()

    def wait(self, spec: CaseSpec, meanwhile: Callable[[], None] | None = None) -> None:
        """Wait until a spec has come to its end, or the engine has.

        `meanwhile` is called a few times a second while there is nothing yet.
        """
        if spec not in self._futures:
            self.start([spec])
        future = self._futures[spec]
        if future.done():
            return
        while not wait([future], timeout=_MEANWHILE).done and self._thread.is_alive():
            if meanwhile is not None:
                meanwhile()

    def is_done(self, spec: CaseSpec) -> bool:
        """Whether there is a result that has not been asked for."""
        future = self._futures.get(spec)
        return future is not None and future.done()

    def given_up(self, spec: CaseSpec, limit: BaseException) -> CaseResult:
        """The result of a case that a time limit stopped waiting for.

        Its calls go on, and are recorded.
        """
        return self._runner.given_up(spec, limit)

    def survey(self, specs: Iterable[CaseSpec]) -> Iterator[Survey]:
        """How far the recordings of each case reach, without any call.

        Instead of `start` and `result`. Cases that probes change are among them, though they be no
        items.
        """
        items = list(specs)
        beside = self._runner.beside(items)
        for spec in (*beside, *items):
            try:
                survey = self._loop.run_until_complete(self._runner.survey(spec))
            except SessionEnd as end:
                raise end.error from None
            yield replace(survey, beside=True) if spec in beside else survey

    def stop(self) -> None:
        """Begin no more calls, wait until those in flight are recorded, and end the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._runner.close(), self._loop).result()
            self._ended = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._patches.close()
        self._loop.close()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ended:
            try:
                self._loop.run_forever()
            except self._ends_session as error:
                self._runner.end(error)
            except SystemExit:
                # Of a task that user code has started: its awaiter gets it, and all others
                # continue.
                continue
        self._loop.run_until_complete(_cancelled())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._threads.close_unawaited()


async def _cancelled() -> None:
    """Cancel what other libraries left in the loop: litellm leaves a logging task behind in every
    loop it runs in.

    Again and again, since `asyncio.wait_for` of Python 3.11 loses a cancellation that arrives just
    as what it waits for is done; a task that goes on all the same ends with the loop.
    """
    for _ in range(_CANCELLATIONS):
        # Listed again each time: a task that ends may have started another one.
        leftover = asyncio.all_tasks() - {asyncio.current_task()}
        if not leftover:
            return
        for task in leftover:
            task.cancel()
        done, _pending = await asyncio.wait(leftover, timeout=_BETWEEN_CANCELLATIONS)
        # Retrieved, since asyncio logs exceptions that were never retrieved.
        await asyncio.gather(*done, return_exceptions=True)
