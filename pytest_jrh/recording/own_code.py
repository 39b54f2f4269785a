"""Runs a judge's own code: in a thread, within its time, and with its errors in a few lines; and
keeps what it asked, and its verdict, as an entry of the cassette of its case.

`TapedCalls.run` is the way in: the verdict is taken from the entry where that is enough, else the
code runs, with its requests answered from the entry or, in a recording session, sent and kept.
Whatever it does, the engine's loop goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from pytest_jrh.core import InputError, SessionEnd, error_places, error_text, frozen, storable
from pytest_jrh.core.calls import JUDGE, Complete, Spending
from pytest_jrh.core.cases import UNSCORED, Unscored, Verdict
from pytest_jrh.judges.judge import CodeAnswer, OwnCode
from pytest_jrh.judges.own_code import (
    ADVICE_ON_CREDENTIALS,
    FIX_AND_RUN,
    advice_on_keys,
    asks_for_credentials,
    no_verdict,
)
from pytest_jrh.llm.calls import Answer, Stopped, make_complete
from pytest_jrh.recording.cassettes import MAKE_ROOM, RecordedCall
from pytest_jrh.recording.exchanges import (
    Exchanges,
    Halt,
    Halted,
    HttpRequest,
    changed_parts,
    changes_from,
)
from pytest_jrh.recording.recorder import HttpRecorder
from pytest_jrh.recording.tapes import Lookup, Tape

_UNFINISHED = "unfinished"
_NETWORK_ADVICE = (
    "Make the judge send HTTP requests with requests, httpx, aiohttp or urllib3; or set `version` "
    "on the judge, to use its recorded verdicts."
)
_NEW_EACH_TIME = (
    "If the request differs each time (a time or a random id is in it, or a thread sends it), "
    "recording again does not help: set `version` on the judge, to use its recorded verdicts. If a "
    "variable or a package of this environment has changed the request, undo that change."
)
_LATE = (
    "Set a longer `timeout` for the judge, or make the judge give up earlier; its completed "
    "requests are recorded."
)


@frozen
class TapedCalls:
    """The `JudgeCalls` of one repeat of one case, over its tape.

    A judge's own code runs in `threads`, at most as much at once as `slots` has; `http` gives what
    records its requests. `admit` counts a request that is about to be sent, or raises `Unscored`
    where it must not be; `paced` waits until a verdict may be asked for, and gives what is called
    as its first request goes out.
    """

    tape: Tape
    repeat: int
    threads: CodeThreads
    slots: asyncio.Semaphore
    http: Callable[[], HttpRecorder]
    admit: Callable[[], object]
    paced: Callable[[], Awaitable[Callable[[], object]]]

    @property
    def complete(self) -> Complete:
        """Asks a model through the tape."""
        return make_complete(self.tape, repeat=self.repeat)

    async def run(self, code: OwnCode) -> Verdict:
        """Run code that is not ours; raises `Unscored` for whatever goes wrong in it, and for what
        the recording has not and must have.
        """
        code = replace(code, repeat=self.repeat)
        tape, run = self.tape, _Run(code, self.threads, copy_context())
        async with self.slots:
            live = tape.records and not tape.recording.planning
            if live:
                if tape.recording.stopping():
                    raise Stopped
                await tape.lock(JUDGE.name)
            entry = tape.recorded(code.fingerprint)
            if entry is not None and entry.finish_reason == _UNFINISHED:
                entry = None
            answer = None
            # Where the code does not run, the verdict of another judge or case is none.
            if entry is not None and (not code.from_head or code.covers(entry.asked)):
                answer = entry.text
            tape.lookups.append(Lookup(JUDGE.name, code.fingerprint, answer is not None))
            if answer is not None and (code.from_head or tape.recording.planning):
                return self._replayed(code, answer)
            if tape.recording.planning:
                # A plan runs nobody's code.
                raise tape.missing(JUDGE.name, f"{code.who} has no recorded verdict.")
            if code.from_head and not live:
                changes, why = "", "but has none."
                if entry is not None:
                    changes = "\n".join(changed_parts(entry.asked, code.asked))
                    why = "but that verdict is of another judge or case."
                raise tape.missing(
                    JUDGE.name, f"{code.who} needs its recorded verdict, {why}", changes
                )
            return await self._sent(code, run, live=live)

    def _replayed(self, code: OwnCode, answer: str) -> Verdict:
        """Make a verdict of a recorded answer; raises `Unscored` where it is none, as where the
        judge had answered so now.
        """
        # What the code sent when its verdict was recorded.
        entry = self.tape.recorded(code.fingerprint, interactions=True)
        exchanges = entry.exchanges if entry is not None else ()
        # Behind the first one there may be those of an earlier version of the code.
        self.tape.sent.is_partial |= len(exchanges) > 1
        for interaction in exchanges[:1]:
            self.tape.sent.sent(HttpRequest.of(interaction))
        if self.tape.has_sent:
            self.tape.spend(Spending(replayed=1, unpriced=1))
        try:
            fields = json.loads(answer)
            return code.verdict(CodeAnswer(fields["said"], fields["reasoning"]))
        except Unscored as trouble:
            trouble.asked = (code.fingerprint,)
            raise
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(
                "this recorded verdict cannot be read",
                file=self.tape.file,
                hint="Restore the file from version control.",
            ) from error

    async def _sent(self, code: OwnCode, run: _Run, *, live: bool) -> Verdict:
        """Run the code: its requests are answered from its entry, and if `live` the others sent."""
        tape = self.tape
        entry = tape.recorded(code.fingerprint, interactions=True)
        recorded = entry.exchanges if entry is not None else ()
        has_verdict = entry is not None and entry.finish_reason != _UNFINISHED
        begins: Callable[[], object] = bool
        if live and not has_verdict:
            begins = await self.paced()
        sequence = tape.next_place()
        judged: CodeAnswer | None = None

        def admit() -> None:
            self.admit()
            if not exchanges.sent:
                begins()

        def keep_so_far() -> None:
            """Keep what was answered before the judge asks again, so that a kill loses nothing."""
            if not exchanges.closed:
                # Where it cannot be written now, it cannot be at the end, which says so.
                with contextlib.suppress(Unscored):
                    self._keep(code, exchanges, sequence, None)

        loop = asyncio.get_running_loop()
        exchanges = Exchanges(
            recorded,
            live=live,
            redactor=tape.recording.redactor,
            admit=admit,
            changed=lambda: loop.call_soon_threadsafe(keep_so_far),
            room=tape.room,
        )
        try:
            judged = await self._judged(code, run, exchanges)
        except (Unscored, Halted) as error:
            if exchanges.halt is not None:
                raise self._halted(code, entry, exchanges.halt, error) from error
            if isinstance(error, Unscored) and UNSCORED[error.outcome].final and not error.asked:
                error.asked = (code.fingerprint,)
            raise
        finally:
            if exchanges.sent:
                tape.asked.add(JUDGE.name)
            sent, replayed = exchanges.sent, exchanges.replayed
            tape.spend(Spending(calls=sent, replayed=replayed, unpriced=sent + replayed))
            for request in exchanges.asked:
                tape.sent.sent(request)
            # Unchanged files stay as they are; a new verdict of old requests is no new recording.
            is_new = judged is not None and (code.from_head or not has_verdict)
            if live and (sent or is_new):
                self._keep(code, exchanges, sequence, judged)
        return code.verdict(judged)

    async def _judged(self, code: OwnCode, run: _Run, exchanges: Exchanges) -> CodeAnswer:
        """What a run comes to, as a replay gives it; raises `Unscored` where it is no verdict."""
        redactor = self.tape.recording.redactor
        with self.http().judging(exchanges):
            try:
                answer = code.read(await run.value())
                reasoning = code.verdict(answer).reasoning
            finally:
                # A key that the code has set is redacted in what comes after this.
                redactor.learn()
        if exchanges.halt is not None:
            # The judge's code has caught it.
            raise Halted
        return CodeAnswer(answer.value, redactor.of_code(storable(reasoning)[0]))

    def _keep(
        self, code: OwnCode, exchanges: Exchanges, sequence: int, judged: CodeAnswer | None
    ) -> None:
        """Write the entry, unfinished without a verdict."""
        to_keep = exchanges.kept(judged=judged is not None)
        answer = Answer("", finish_reason=_UNFINISHED)
        if judged is not None:
            fields = asdict(code.verdict(judged)) | {"said": judged.value}
            answer = Answer(json.dumps(fields, ensure_ascii=False))
        elif not to_keep:
            return
        self.tape.record(
            RecordedCall(
                stage=JUDGE.name,
                fingerprint=code.fingerprint,
                sequence=sequence,
                asked=code.asked,
                exchanges=to_keep,
                **asdict(answer),
            )
        )

    def _halted(
        self, code: OwnCode, entry: RecordedCall | None, halt: Halt | Unscored, error: BaseException
    ) -> Unscored:
        """The outcome of a case whose judge was halted; `entry` was there to answer it."""
        if isinstance(halt, Unscored):
            return halt
        asker = code.who
        if halt.why == "room":
            cause = (
                f"{asker} was stopped before a request ({halt.what}), because the answer could not "
                f"be stored in {self.tape.path.parent}."
            )
            return Unscored("model_error", stage=JUDGE.name, cause=cause, advice=MAKE_ROOM)
        url = halt.what.rpartition(" ")[2]
        if asks_for_credentials(url):
            cause = f"{asker} was stopped, because it looked for credentials at {url}."
            return no_verdict("model_error", cause, ADVICE_ON_CREDENTIALS, error)
        if halt.why == "network":
            return Unscored(
                "unrecorded",
                stage=JUDGE.name,
                cause=f"{asker} was stopped, because {halt.what}, which cannot be recorded.",
                advice=_NETWORK_ADVICE,
                places=error_places(error),
            )
        assert halt.request is not None
        cause = f"{asker} sent {halt.what}, which is not recorded"
        if entry is None or not entry.exchanges:
            return self.tape.missing(JUDGE.name, f"{cause}, and the case has no recorded request.")
        changes = changes_from(entry.exchanges, halt.request)
        if entry.asked != code.asked:
            cause = f"{cause}; the nearest recorded request differs."
            return self.tape.missing(JUDGE.name, cause, changes)
        return Unscored(
            "unrepeatable",
            stage=JUDGE.name,
            cause=f"{cause}, although the code and the case have not changed since the recording.",
            advice=_NEW_EACH_TIME,
            difference=changes,
            cassette=str(self.tape.file),
        )


# Seconds between two looks whether code still waits for a call of ours.
_LONGEST_LOOK = 0.1


@dataclass
class _Run:
    """One run of a judge's own code; `clean` is the context without its exchanges."""

    code: OwnCode
    threads: CodeThreads
    clean: Context
    trouble: BaseException | None = None
    asking: int = 0

    async def value(self) -> object:
        """What the code returns; raises `Unscored` where it does not."""
        loop = asyncio.get_running_loop()

        def submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
            # In the context from before: what `complete` asks is recorded as calls of their own.
            return self.clean.copy().run(
                asyncio.run_coroutine_threadsafe, self._counted(work), loop
            )

        running = self.threads.start(lambda: self.code.call(submit))
        waiter, seconds_left = asyncio.wrap_future(running.ended), self.code.timeout
        while not waiter.done():
            if seconds_left <= 0:
                # Nobody waits for it any more: it may end after the engine's loop.
                waiter.cancel()
                if running.task is not None:
                    running.task.cancel()
                raise no_verdict(
                    "model_error",
                    f"{self.code.who} gave no verdict within {self.code.timeout:g} s, its "
                    "`timeout`.",
                    _LATE,
                )
            began, was_asking = time.monotonic(), self.asking
            await asyncio.wait([waiter], timeout=min(seconds_left, _LONGEST_LOOK))
            if not was_asking:
                seconds_left -= time.monotonic() - began
        ended = waiter.result()
        if self.trouble is not None:
            raise self.trouble
        error = ended.error
        if error is None:
            return ended.value
        if isinstance(error, Halted | Unscored):
            # What is not recorded, or what `complete` or a judge of ours says itself.
            raise error
        if isinstance(error, KeyboardInterrupt):
            raise SessionEnd(error) from error
        raise no_verdict(
            "model_error",
            f"{self.code.who} raised {error_text(error)}",
            advice_on_keys(error) or FIX_AND_RUN,
            error,
        ) from error

    async def _counted(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a call of ours for the code, whose time does not run meanwhile."""
        self.asking += 1
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
            self.asking -= 1


_LAST_WAIT = 2.0


class Ended(NamedTuple):
    """How code has ended: what it returned, or what it raised."""

    value: object = None
    error: BaseException | None = None


@dataclass
class RunningCode:
    """Code in a thread of its own; what it returns is awaited on a shared loop, if it can be."""

    ended: Future[Ended] = field(default_factory=Future)
    task: Future[Ended] | None = None


class CodeThreads:
    """A thread for each call of code, and one loop, in a thread, for what is to be awaited.

    The loop is one for all, because clients that a module keeps belong to the loop that they were
    first used in. All threads are daemons: code that never returns does not keep the process.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._is_over = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="jrh-judges", daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], object]) -> RunningCode:
        """Run code in a copy of the present context."""
        running, context = RunningCode(), copy_context()
        # Whoever stops waiting for it does not cancel it: the code goes on.
        running.ended.set_running_or_notify_cancel()
        threading.Thread(
            target=lambda: context.run(self._run, call, running), name="jrh-judge", daemon=True
        ).start()
        return running

    def close(self) -> None:
        """End the loop; code that does not end is left to itself."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(_LAST_WAIT)

    def _run(self, call: Callable[[], object], running: RunningCode) -> None:
        try:
            value = call()
            ended = Ended(value)
            if inspect.isawaitable(value):
                running.task = asyncio.run_coroutine_threadsafe(_ended(value), self._loop)
                ended = running.task.result()
        except BaseException as error:  # noqa: BLE001 - the engine says what it was
            ended = Ended(error=error)
        running.ended.set_result(ended)

    def _serve(self) -> None:
        # What waits at its end is cancelled.
        with self._runner:
            self._runner.run(self._is_over.wait())


async def _ended(value: Awaitable[object]) -> Ended:
    try:
        return Ended(await value)
    except BaseException as error:  # noqa: BLE001 - the engine says what it was
        return Ended(error=error)
