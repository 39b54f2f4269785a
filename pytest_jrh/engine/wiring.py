"""The way of a session's calls: through tapes, to the one client that all cases share.

Finds a model or judge that cannot be asked, for it has no key or no provider, before the first
call that is paid for.

How far the recordings of a case reach, for a plan: the case is replayed, and nothing asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_jrh.cases.ids import case_id, cassette_path, former_cassettes
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import StageModel, StageName
from pytest_jrh.core.stages import (
    JUDGE,
)
from pytest_jrh.core.text import counted
from pytest_jrh.core.user_code import SessionEnd
from pytest_jrh.engine.attempts import Attempt
from pytest_jrh.engine.own_code import CodeRunner, TapedCalls
from pytest_jrh.engine.supplied import SuppliedExchange
from pytest_jrh.judges.own_code import about_placeholders
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.llm.failures import named_by_environment, unreachable
from pytest_jrh.llm.locks import Slots
from pytest_jrh.llm.transport import Pace
from pytest_jrh.recording.exchanges import Halt
from pytest_jrh.recording.own_code import KeptRequests
from pytest_jrh.recording.tapes import Recording, Tape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pytest_jrh.core.model import CaseSpec, RecordMode
    from pytest_jrh.engine.attempts import EngineSettings
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.judges.judge import SuiteJudge
    from pytest_jrh.llm.calls import Answer, CallRequest, Exchange
    from pytest_jrh.llm.client import LiteLLMExchange
    from pytest_jrh.llm.failures import Failure
    from pytest_jrh.recording.recorder import HttpRecorder
    from pytest_jrh.recording.versions import ModelVersions, VersionTally


class Trials:
    """Tries each model of a session once, without sending anything."""

    def __init__(self, client: LiteLLMExchange, http: HttpRecorder) -> None:
        self._client = client
        self._http = http
        self._failures: dict[StageModel, Failure | None] = {}
        self._one = asyncio.Lock()

    async def failure(self, stage: StageModel) -> Failure | None:
        """Why this model cannot be asked; None where it can."""
        # Stages that ask one model in one way are tried once: a trial takes as long as a call
        # without its answer.
        trial_stage = replace(stage, stage=JUDGE.name, prompt_path=None, system_prompt=None)
        async with self._one:
            if trial_stage not in self._failures:
                self._failures[trial_stage] = await self._try(trial_stage)
        return self._failures[trial_stage]

    async def _try(self, stage: StageModel) -> Failure | None:
        # Whatever would be sent finds no recording: then there is a key to send it with.
        with self._http.replaying(()) as capture:
            failure = await self._client.trial(stage)
        if capture.missed is None and failure is not None:
            return failure
        # litellm sends some providers' calls without a key; a server of the user's own may want
        # none.
        without_key = (
            capture.anonymous and stage.api_base is None and failure is not None and failure.keyless
        )
        if without_key:
            return failure
        address = stage.api_base or named_by_environment(capture.address)
        return await unreachable(address) if address is not None else None


async def _checked(
    live: Exchange, check: Callable[[], Awaitable[None]], request: CallRequest
) -> Answer:
    """Make a call once all that its case needs can be asked."""
    await check()
    return await live(request)


_LONGEST_NAP = 0.1
# Of its transcript, and of that of its run.


class Calls:
    """Makes the tapes; the client behind them is made when the first one needs it."""

    def __init__(
        self,
        settings: EngineSettings,
        suites: Mapping[str, ReadySuite],
        stopping: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._suites = suites
        self._stopping = stopping
        self._slots = Slots(settings.max_workers, settings.shared_slots, stopping)
        self._client: LiteLLMExchange | None = None
        self._http: HttpRecorder | None = None
        self._trials: Trials | None = None
        self._former_of: dict[str, Callable[[CaseSpec], list[Path]]] = {}
        self._lacks: dict[tuple[str, str | None], str] = {}
        self._code: CodeRunner | None = None
        self._said: dict[str, None] = {}
        self._pace = Pace(time.monotonic, processes=settings.processes)
        self._versions: dict[str, ModelVersions] = {}

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user."""
        client = self._client.notices if self._client else ()
        return (*client, *self._said)

    @property
    def versions(self) -> dict[str, VersionTally]:
        """Which versions of models have answered, by suite."""
        return {suite: versions.tally for suite, versions in self._versions.items()}

    @property
    def in_flight(self) -> Counter[StageName]:
        """The calls of each stage that wait for an answer."""
        client = self._client.in_flight if self._client else Counter[StageName]()
        return self._slots.in_flight + client

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
        folder = ready.suite.cassette_dir
        mode = self._settings.mode(ready, judging=judging)
        path = cassette_path(folder, attempt.spec, judging=judging)
        runs_code = judging and ready.judges[attempt.spec.judge].runs_code
        check = partial(self._check, attempt.spec, ready, judging=judging)
        recording = self._recording(ready, mode, None if runs_code else check)
        tape = Tape(
            folder,
            path,
            mode,
            recording,
            case=case_id(attempt.spec),
            shared=attempt.spec in ready.bases,
            former=partial(self._former, folder, attempt.spec, ready) if judging else tuple,
        )
        attempt.tapes.append(tape)
        if judging:
            attempt.judging = tape
        return tape

    def _former(self, folder: Path, spec: CaseSpec, ready: ReadySuite) -> list[Path]:
        """Where a judge, the first of those that ask alike, may have recorded before."""
        fingerprints = ready.judge_fingerprints
        alike = [name for name, asked in fingerprints.items() if asked == fingerprints[spec.judge]]
        if alike[0] != spec.judge:
            return []
        if ready.suite.name not in self._former_of:
            self._former_of[ready.suite.name] = former_cassettes(folder, fingerprints)
        return self._former_of[ready.suite.name](spec)

    async def _check(self, spec: CaseSpec, ready: ReadySuite, *, judging: bool) -> None:
        """End the session where a model or judge that a case needs cannot be asked."""
        judged = ready.test(spec.test).evaluate or spec in ready.bases
        judge = ready.judges[spec.judge] if judged and self._asks(ready, judging=True) else None
        stages: tuple[StageModel, ...] = ()
        if not judging:
            stages = tuple(ready.suite.stages.values())
        if judge is not None:
            stages = (*stages, *judge.models)
        failures = [await self._failure(stage) for stage in stages]
        if any(failures) or (judge is not None and self._lacking(ready, judge)):
            problems = []
            for suite in self._suites.values():
                problems += await self._unaskable(suite)
            raise SessionEnd(InputError(problems))

    async def _failure(self, stage: StageModel) -> Failure | None:
        # A client that the project supplies knows by itself whom it can ask.
        return None if self._trials is None else await self._trials.failure(stage)

    def _asks(self, ready: ReadySuite, *, judging: bool) -> bool:
        return self._settings.mode(ready, judging=judging) != "none"

    async def _unaskable(self, ready: ReadySuite) -> list[Problem]:
        """What of a suite cannot be asked, as one problem for each cause and its advice."""
        suite = ready.suite
        cases = self._settings.selected(suite.name)
        judges: list[SuiteJudge] = []
        stages: list[StageModel] = []
        if self._asks(ready, judging=False):
            stages += suite.stages.values()
        if self._asks(ready, judging=True) and any(test.evaluate for test in suite.tests):
            judges += ready.judges.values()
        for judge in judges:
            stages += judge.models
        users: dict[tuple[str, str | None], dict[str, None]] = {}
        for stage in stages:
            failure = await self._failure(stage)
            if failure is not None:
                # litellm's own words after it are about the model's name, which is said here.
                cause = f"{failure.cause.partition(': ')[0]}, for {stage.model}"
                users.setdefault((cause, failure.advice), {})[stage.stage] = None
        causes = {
            f"{cause} ({', '.join(names)})": advice for (cause, advice), names in users.items()
        }
        for judge in judges:
            if lacks := self._lacking(ready, judge):
                causes[f"the judge {judge.label} cannot be asked: {lacks}"] = None
        problems = []
        for cause, advice in causes.items():
            message = f"suite {suite.name}: {cause}; needed by up to {counted(cases, 'case')}"
            problems.append(Problem(self._settings.redactor.text(message), hint=advice))
        return problems if cases else []

    def judging(self, tape: Tape, ready: ReadySuite, judge: str | None, repeat: int) -> TapedCalls:
        """What a judge asks with about the case of a tape."""
        label = ready.judges[judge].label
        return TapedCalls(tape, repeat, label, lambda: self._code_runner(ready, judge))

    def _lacking(self, ready: ReadySuite, judge: SuiteJudge) -> str:
        """What the judge lacks: looked for once, and only where something is to be asked."""
        key = ready.suite.name, judge.name
        if key not in self._lacks:
            self._lacks[key] = judge.lacks
        return self._lacks[key]

    def _code_runner(self, ready: ReadySuite, judge: str | None) -> CodeRunner:
        """What runs a judge's own code."""
        from pytest_jrh.engine.own_code import CodeThreads

        suite, judge_code = ready.suite, ready.judges[judge]
        loop = asyncio.get_running_loop()
        name = judge_code.label if judge is None else f"{judge} ({judge_code.label})"
        limit = next(entry.stage.rate_limit for entry in suite.judges if entry.name == judge)

        def kept(tape: Tape) -> KeptRequests:
            return KeptRequests(
                tape,
                self._recorder(),
                admit=partial(self._admit, ready, judge_code),
                paced=partial(self._paced, StageModel(JUDGE.name, name, rate_limit=limit)),
                later=loop.call_soon_threadsafe,
                say=lambda text: self._say(f"suite {suite.name}: {text}"),
                keyless=lambda names: self._say(
                    f"suite {suite.name}: {about_placeholders(judge_code.label, names)}"
                ),
            )

        if self._code is None:
            places = asyncio.Semaphore(self._settings.max_workers)
            self._code = CodeRunner(kept, CodeThreads(), places)
        return replace(self._code, kept=kept)

    def _say(self, text: str) -> None:
        self._said[text] = None

    def _admit(self, ready: ReadySuite, judge: SuiteJudge) -> Halt | None:
        """Count a request of a judge's own code, or say why it must not be sent."""
        if lacks := self._lacking(ready, judge):
            return Halt("unready", lacks)
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
        ready: ReadySuite,
        mode: RecordMode,
        check: Callable[[], Awaitable[None]] | None,
    ) -> Recording:
        """How calls are recorded that are made after a check; a judge's own code has none."""
        settings = self._settings
        asks = settings.ask and mode != "none"
        live: Exchange | None = None
        if asks:
            live = self._late_live if check is None else partial(_checked, self._live(), check)
        supplied = settings.complete is not None
        return Recording(
            redactor=settings.redactor,
            live=live,
            http=self._recorder() if asks and not supplied else None,
            versions=self._versions_of(ready) if asks and not supplied else None,
            stopping=self._stopping,
            session=settings.session,
            planning=not settings.ask,
        )

    def _versions_of(self, ready: ReadySuite) -> ModelVersions:
        """What keeps the model versions of a suite."""
        from pytest_jrh.recording.versions import ModelVersions

        suite = ready.suite
        if suite.name not in self._versions:
            self._versions[suite.name] = ModelVersions(suite.cassette_dir)
        return self._versions[suite.name]

    async def _late_live(self, request: CallRequest) -> Answer:
        """Ask a model for a judge that need not ask any: importing litellm takes seconds."""
        return await self._live()(request)

    def _live(self) -> Exchange:
        """The way to the models, made when needed: importing litellm takes seconds."""
        from pytest_jrh.llm.client import LiteLLMExchange
        from pytest_jrh.llm.transport import RetryPolicy

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
            self._client = LiteLLMExchange(
                limit=self._settings.max_workers,
                shared_slots=self._settings.shared_slots,
                retry=retry,
                processes=self._settings.processes,
                ledger=self._settings.ledger,
                redact=self._settings.redactor.text,
            )
            self._trials = Trials(self._client, recorder)
        return self._client
