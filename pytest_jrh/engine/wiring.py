"""The way of a session's calls: through tapes, to the one client that all cases share."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_jrh.engine.checked import CheckedExchange, LackingExchange, Trials
from pytest_jrh.engine.own_code import CodeRunner, TapedCalls
from pytest_jrh.engine.supplied import SuppliedExchange
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.llm.locks import Slots
from pytest_jrh.llm.pace import Pace
from pytest_jrh.models import StageModel
from pytest_jrh.recording.own_code.exchanges import Halt, Opened
from pytest_jrh.recording.own_code.http_client import foreign_urllib3
from pytest_jrh.recording.own_code.kept import KeptRequests
from pytest_jrh.recording.settings import Recording
from pytest_jrh.recording.shared_calls import SharedCalls
from pytest_jrh.recording.tapes import Tape
from pytest_jrh.stages import JUDGE
from pytest_jrh.suite.ids import case_id, cassette_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.engine.attempts import Attempt
    from pytest_jrh.engine.settings import EngineSettings
    from pytest_jrh.judges.judge import SuiteJudge
    from pytest_jrh.llm.calls import Answer, CallRequest, Exchange
    from pytest_jrh.llm.client import LiteLLMExchange
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import CaseSpec, RecordMode
    from pytest_jrh.recording.recorder import HttpRecorder

_LONGEST_NAP = 0.1


class Calls:
    """Makes the tapes; the client behind them is made when the first one needs it."""

    def __init__(self, settings: EngineSettings, stopping: Callable[[], bool]) -> None:
        self._settings = settings
        self._stopping = stopping
        self._slots = Slots(settings.max_workers, settings.shared_slots, stopping)
        self._client: LiteLLMExchange | None = None
        self._http: HttpRecorder | None = None
        self._trials: Trials | None = None
        self._shared = SharedCalls()
        self._code: CodeRunner | None = None
        self._said: dict[str, None] = {}
        self._pace = Pace(time.monotonic, processes=settings.processes)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user."""
        client = self._client.notices if self._client else ()
        return (*client, *self._said)

    @property
    def in_flight(self) -> int:
        """The calls that wait for an answer."""
        return self._slots.in_flight + (self._client.in_flight if self._client else 0)

    def stop(self) -> None:
        """Begin no more calls."""
        if self._client is not None:
            self._client.stop()

    async def close(self) -> None:
        """Take everything down, once no call is in flight."""
        if self._code is not None:
            self._code.threads.close()
        if self._http is not None:
            self._http.remove()
        if self._client is not None:
            await self._client.aclose()

    def tape(self, attempt: Attempt, ready: ReadySuite, *, judging: bool) -> Tape:
        """The tape that a case's calls of one kind go through."""
        folder = self._settings.cassette_dir or ready.suite.replay.cassette_dir
        mode = self._settings.mode(ready, judging=judging)
        path = cassette_path(folder, attempt.spec, judging=judging)
        needed = () if judging else self._needed(attempt.spec, ready)
        runs_code = judging and ready.judges[attempt.spec.judge].runs_code
        lacking = None if judging else self._lacking(attempt.spec, ready)
        recording = self._recording(mode, needed, may_ask_none=runs_code, lacking=lacking)
        tape = Tape(
            folder,
            path,
            mode,
            recording,
            case=case_id(attempt.spec),
            shared=attempt.spec in ready.bases,
        )
        attempt.tapes.append(tape)
        if judging:
            attempt.judging = tape
        return tape

    def _needed(self, spec: CaseSpec, ready: ReadySuite) -> tuple[StageModel, ...]:
        """The models that a case needs from its making to its verdict.

        None where the session checks none.
        """
        settings = self._settings
        if settings.complete is not None or settings.replay == "http":
            return ()
        making = tuple(ready.suite.generation.stages.values())
        judged = ready.test(spec.test).evaluate or spec in ready.bases
        if not judged or settings.mode(ready, judging=True) == "none":
            return making
        return (*making, *ready.judges[spec.judge].models)

    def judging(self, tape: Tape, ready: ReadySuite, judge: str | None, repeat: int) -> TapedCalls:
        """What a judge asks with about the case of a tape."""
        label = ready.judges[judge].label
        return TapedCalls(tape, repeat, label, lambda: self._code_runner(ready, judge))

    def _lacking(self, spec: CaseSpec, ready: ReadySuite) -> LackingExchange | None:
        """What makes no case, where its judge is to be asked and could not be."""
        if not ready.test(spec.test).evaluate or self._settings.mode(ready, judging=True) == "none":
            return None
        judge = ready.judges[spec.judge]
        return LackingExchange(judge.label, judge.lacks) if judge.lacks else None

    def _code_runner(self, ready: ReadySuite, judge: str | None) -> CodeRunner:
        """What runs a judge's own code, which is named where it opens a connection by itself."""
        from pytest_jrh.engine.code_threads import CodeThreads

        suite, made = ready.suite, ready.judges[judge]
        loop = asyncio.get_running_loop()
        name = made.label if judge is None else f"{judge} ({made.label})"
        limit = next(each.stage.rate_limit for each in suite.judges if each.name == judge)

        def kept(tape: Tape) -> KeptRequests:
            return KeptRequests(
                tape,
                self._recorder(),
                admit=partial(self._admit, made),
                paced=partial(self._paced, StageModel(JUDGE.name, name, rate_limit=limit)),
                later=loop.call_soon_threadsafe,
                unseen=lambda opened: self._say(_unseen(suite.name, name, opened)),
                native=lambda peer: self._say(_native(suite.name, name, peer)),
            )

        if self._code is None:
            places = asyncio.Semaphore(self._settings.max_workers)
            self._code = CodeRunner(kept, CodeThreads(), places)
        return replace(self._code, kept=kept)

    def _say(self, text: str) -> None:
        if self._settings.keep:
            self._said[text] = None

    def _admit(self, judge: SuiteJudge) -> Halt | None:
        """Count a request of a judge's own code, or say why it must not be sent."""
        if judge.lacks:
            return Halt("unready", judge.lacks)
        ledger = self._settings.ledger
        refusal = ledger.enter(0.0) if ledger is not None else None
        return None if refusal is None else Halt("budget", refusal)

    async def _paced(self, judge: StageModel) -> None:
        """Wait until a verdict may be asked for."""
        while wait := self._pace.wait(judge):
            if self._stopping():
                raise Stopped
            await asyncio.sleep(min(wait, _LONGEST_NAP))

    def _recorder(self) -> HttpRecorder:
        """The session's patch of the HTTP libraries, installed when the first one needs it."""
        if self._http is None:
            from pytest_jrh.recording.recorder import HttpRecorder

            self._http = HttpRecorder(self._settings.redactor)
            self._http.install()
        return self._http

    def _recording(
        self,
        mode: RecordMode,
        needed: tuple[StageModel, ...],
        *,
        may_ask_none: bool,
        lacking: LackingExchange | None,
    ) -> Recording:
        settings = self._settings
        asks = settings.ask and (mode != "none" or settings.replay == "http")
        live: Exchange | None = None
        if asks:
            live = lacking or (self._late_live if may_ask_none else self._live(needed))
        supplied = settings.complete is not None
        return Recording(
            redactor=settings.redactor,
            replay=settings.replay,
            live=live,
            http=self._recorder() if asks and not supplied else None,
            keep=settings.keep,
            stopping=self._stopping,
            session=settings.session,
            shared=self._shared,
            planning=not settings.ask,
        )

    async def _late_live(self, request: CallRequest) -> Answer:
        """Ask a model for a judge that need not ask any: importing litellm takes seconds."""
        return await self._live(())(request)

    def _live(self, needed: tuple[StageModel, ...]) -> Exchange:
        """The way to the models, made when the first case needs it: importing litellm takes
        seconds.
        """
        from pytest_jrh.llm.client import LiteLLMExchange
        from pytest_jrh.llm.pace import RetryPolicy

        complete = self._settings.complete
        retry = self._settings.retry or RetryPolicy()
        if complete is not None:
            return SuppliedExchange(
                complete,
                self._settings.ledger,
                self._slots,
                self._settings.ends_session,
                stopping=self._stopping,
                most_timeouts=retry.timeouts,
            )
        if self._client is None:
            recorder = self._recorder()
            if self._settings.replay == "http":
                # Nothing is sent, so no key is needed and a miss is not worth a second try.
                self._client = LiteLLMExchange(
                    limit=self._settings.max_workers,
                    retry=RetryPolicy(attempts=1),
                    api_key="replayed",
                )
            else:
                self._client = LiteLLMExchange(
                    limit=self._settings.max_workers,
                    shared_slots=self._settings.shared_slots,
                    retry=retry,
                    processes=self._settings.processes,
                    ledger=self._settings.ledger,
                    redact=self._settings.redactor.text,
                )
            self._trials = Trials(self._client, recorder)
        if needed and self._trials is not None:
            return CheckedExchange(self._client, self._trials, needed)
        return self._client


def _unseen(suite: str, judge: str, opened: Opened) -> str:
    return (
        f"suite {suite}: {opened.said_of(f'the judge {judge}')}; what it asks there is not "
        f"recorded, so a replay stops it. {foreign_urllib3()}`replay: verdict` on the judge "
        "answers from its recorded verdict."
    )


def _native(suite: str, judge: str, peer: str) -> str:
    return (
        f"suite {suite}: while the judge {judge} judged, a connection to {peer} was opened outside "
        "of Python, as libraries in C do; what is asked there is not recorded, and asked again. "
        "`replay: verdict` on the judge answers from its recorded verdict."
    )
