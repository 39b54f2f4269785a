"""Runs a judge's own code: in a thread, within its time, and with its errors in a few lines (rules
Q2, Q4, Q6).
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_jrh.errors import Unscored
from pytest_jrh.llm.calls import Stopped, make_complete
from pytest_jrh.models import UNSCORED
from pytest_jrh.recording.own_code.exchanges import Halted
from pytest_jrh.recording.own_code.kept import Judging, KeptRequests
from pytest_jrh.stages import JUDGE
from pytest_jrh.user_code import SessionEnd, error_places, error_text, is_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from pytest_jrh.engine.code_threads import CodeThreads, Ended
    from pytest_jrh.judges.judge import OwnCode
    from pytest_jrh.models import Complete, Verdict
    from pytest_jrh.recording.tapes import Tape

_AGAIN = "Fix it and run again: recorded calls are kept, and only the missing ones are made."


@dataclass(frozen=True, slots=True)
class CodeRunner:
    """How a session runs judges' own code.

    `kept` gives what keeps the requests of a tape's case, `label` names the judge there; `places`
    bounds how much code runs at once.
    """

    kept: Callable[[Tape], KeptRequests]
    threads: CodeThreads
    places: asyncio.Semaphore


@dataclass(frozen=True, slots=True)
class TapedCalls:
    """The `JudgeCalls` of one repeat of one case, over its tape."""

    tape: Tape
    repeat: int
    label: str
    runner: Callable[[], CodeRunner]

    @property
    def complete(self) -> Complete:
        """Asks a model through the tape."""
        return make_complete(self.tape, repeat=self.repeat)

    async def run(self, code: OwnCode) -> Verdict:
        """Run code that is not ours; raises `Unscored` for whatever goes wrong in it."""
        runner = self.runner()
        judging = Judging(
            JUDGE.name,
            code.who,
            self.label,
            self.repeat,
            code.key,
            code.scores,
            from_head=code.from_head,
            earlier_key=code.earlier_key,
        )
        clean = contextvars.copy_context()

        async def work() -> Verdict:
            return _verdict(code, await _Run(code, runner, clean).value())

        async with runner.places:
            return await runner.kept(self.tape).verdict(judging, work)


def _verdict(code: OwnCode, value: object) -> Verdict:
    """What the code makes of its value, which may be an object that raises when it is looked at."""
    try:
        return code.read(value)
    except Unscored:
        raise
    except Exception as error:
        raise Unscored(
            "invalid_response",
            stage=JUDGE.name,
            cause=f"{code.who} gave a value that cannot be read: {error_text(error)}",
            advice=_AGAIN,
            places=error_places(error),
            happened="the judge gave no verdict",
        ) from error


@dataclass(slots=True)
class _Run:
    """One run of a judge's own code; `clean` is the context without its exchanges."""

    code: OwnCode
    runner: CodeRunner
    clean: contextvars.Context
    trouble: BaseException | None = None
    asking: dict[int, float] = field(default_factory=dict)
    asked_for: float = 0.0

    async def value(self) -> object:
        """What the code returns; raises `Unscored` where it does not."""
        loop = asyncio.get_running_loop()
        began = time.monotonic()

        def submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
            # In the context from before: what `complete` asks is recorded as calls of their own.
            return self.clean.copy().run(
                asyncio.run_coroutine_threadsafe, self._counted(work), loop
            )

        running = self.runner.threads.start(
            lambda: self.code.call(submit), is_async=self.code.is_async
        )
        waiter = asyncio.wrap_future(running.ended)
        while not waiter.done():
            spent = time.monotonic() - began - self._excused() - running.waited
            left = self.code.timeout - spent
            if left <= 0:
                running.cancel()
                waiter.cancel()
                raise self._late()
            await asyncio.wait([waiter], timeout=left)
        return self._read(waiter.result())

    async def _counted(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a call of ours for the code, whose time does not run meanwhile.

        What no fallback of the code may hide ends it.
        """
        key, began = id(work), time.monotonic()
        self.asking[key] = began
        try:
            return await work
        except Unscored as trouble:
            if UNSCORED[trouble.outcome].asked:
                raise
            self.trouble = trouble
            raise Halted from trouble
        except (Stopped, SessionEnd) as end:
            self.trouble = end
            raise Halted from end
        finally:
            del self.asking[key]
            self.asked_for += time.monotonic() - began

    def _excused(self) -> float:
        now = time.monotonic()
        return self.asked_for + sum(now - began for began in self.asking.values())

    def _read(self, ended: Ended) -> object:
        if self.trouble is not None:
            raise self.trouble
        error = ended.error
        if error is None:
            return ended.value
        if isinstance(error, Halted):
            raise error
        if isinstance(error, KeyboardInterrupt):
            raise SessionEnd(error) from error
        if is_outcome(error):
            # Of `complete`, or of a judge of ours: it says itself what is wrong.
            raise error
        raise Unscored(
            "model_error",
            stage=JUDGE.name,
            cause=f"{self.code.who} raised {error_text(error)}",
            advice=_AGAIN,
            places=error_places(error),
            happened="the judge gave no verdict",
        ) from error

    def _late(self) -> Unscored:
        return Unscored(
            "model_error",
            stage=JUDGE.name,
            cause=f"{self.code.who} gave no verdict within {self.code.timeout:g} s, its `timeout`.",
            advice="Set a longer `timeout` for the judge, or let it give up earlier; what it "
            "has asked is recorded.",
            happened="the judge gave no verdict",
        )
