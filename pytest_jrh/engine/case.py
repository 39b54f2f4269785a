"""How one case comes to its verdict: made, or taken as it is on disk, once for all judges of a
panel; changed by probes; judged as often as it is to be repeated; and what came of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.cases.probes import PROBES, changed, derived, probe_arguments
from pytest_jrh.cases.probes.probe import Derived, ProbeBench
from pytest_jrh.cases.probes.swap import made_pair
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import SessionEnd, error_places, error_text, frozen
from pytest_jrh.core.calls import JUDGE, Complete, RecordMode, Spending, StageModel
from pytest_jrh.core.cases import (
    UNSCORED,
    AgentRun,
    Case,
    CaseSpec,
    HumanReview,
    NoVerdictCase,
    Rubric,
    Unscored,
    Verdict,
    Why,
)
from pytest_jrh.core.ids import TOGETHER, case_id, cassette_path, generation_id
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.results import CaseResult, CaseSpending, ShownTurns
from pytest_jrh.core.scales import BINARY, coded
from pytest_jrh.core.transcript import is_pair, render_assistant_turns
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.judges.judge import SuiteJudge
from pytest_jrh.judges.own_code import FIX_AND_RUN
from pytest_jrh.llm.calls import Answer, CallRequest, Needs, Stopped, make_complete
from pytest_jrh.llm.client import LiteLLMExchange
from pytest_jrh.llm.limits import EarlyStop, Ledger, Pace, RetryPolicy, Turn
from pytest_jrh.llm.transport import may_pass
from pytest_jrh.people.board import ReviewDesk
from pytest_jrh.recording.own_code import CodeThreads, TapedCalls
from pytest_jrh.recording.recorder import HttpRecorder
from pytest_jrh.recording.tapes import Recording, Tape
from pytest_jrh.store.ledger import case_result

_LONGEST_NAP = 0.1
T = TypeVar("T")


@dataclass
class SharedWork(Generic[T]):
    """A case made, or judged, for several specs."""

    attempt: Attempt
    task: asyncio.Task[T]
    askers: set[CaseSpec] = field(default_factory=set)


class SharedWorks(Generic[T]):
    """What is made, or judged, once for several specs; the last `keep` are remembered."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._works: OrderedDict[Hashable, SharedWork[T]] = OrderedDict()

    def work(
        self, key: Hashable, attempt: Attempt, begin: Callable[[], Coroutine[Any, Any, T]]
    ) -> SharedWork[T]:
        """The work of a key, which is begun by an attempt where there is none yet."""
        work, asker = self._works.get(key), attempt.paid_by or attempt.spec
        has_failed = work is not None and work.task.done() and work.task.exception() is not None
        # A spec that knows so asks again: a rerun is worth another try.
        if work is None or (has_failed and asker in work.askers):
            work = SharedWork(attempt, asyncio.create_task(begin()))
            self._works[key] = work
            done = [old for old, it in self._works.items() if it.task.done()]
            for old in done[: max(0, len(self._works) - self._keep)]:
                del self._works[old]
        self._works.move_to_end(key)
        work.askers.add(asker)
        return work


@dataclass
class Attempt:
    """One go at one spec: its case once it is made, and the tapes that its calls went through.

    `verdicts` are those of the repeats so far, and `scores` are there once all have one. Of a case
    of a probe `base` is the attempt at the case that it changes. A case that probes change is
    attempted once for all of them, and `paid_by` is the spec that asked first: what the case took
    counts for that one, and it works in that one's place among the cases at work, which is lent
    already where that one waits in a review. `maker` is the attempt at another judge's spec that
    has made the case of this one.
    """

    spec: CaseSpec
    case: Case | None = None
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    tapes: list[Tape] = field(default_factory=list)
    judging: Tape | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    base: Attempt | None = None
    maker: Attempt | None = None
    paid_by: CaseSpec | None = None
    scores: tuple[int, ...] = ()
    turns_shown: ShownTurns | None = None

    @property
    def making(self) -> list[Tape]:
        """The tapes of the calls that made its case."""
        return [tape for tape in self.tapes if tape is not self.judging]

    def spending(self, spec: CaseSpec) -> dict[str, Spending]:
        """What it took, by recording; to a spec that another one pays for, it is a replay."""
        is_paid_here = self.paid_by in (None, spec)
        parts: dict[str, Spending] = {}
        for tape in self.maker.making if self.maker is not None else ():
            parts |= {name: part.replay for name, part in tape.spending.items()}
        for tape in self.tapes:
            for name, part in tape.spending.items():
                parts[name] = part if is_paid_here else part.replay
        return parts

    def result(self, why: Why, rejected: Case | None = None) -> CaseResult:
        """What came of it, and what it took."""
        result = case_result(
            self.spec,
            self.case,
            why,
            verdicts=self.verdicts,
            judge_digest=self.judge_fingerprint,
            rejected=rejected,
        )
        extra = replace(result.extra, review=self.human_reviewed, shown=self.turns_shown)
        spending = self.spending(self.spec)
        base, probe = self.base, extra.probe
        if base is not None and probe is not None:
            extra = replace(extra, probe=replace(probe, base_scores=base.scores))
            # A replay each worker makes, and the case's own item says so.
            if base.paid_by == self.spec:
                paid = base.spending(self.spec).items()
                spending |= {name: part for name, part in paid if part.calls}
        return replace(result, spending=CaseSpending(spending), extra=extra)


@frozen
class CaseMaker:
    """Makes a session's cases; `generations` are those that a panel shares.

    Each way raises `NoVerdictCase` where there is none, and `Unscored` where a model or a file
    could not be had.
    """

    settings: EngineSettings
    calls: Calls
    generations: SharedWorks[Case]
    asks: bool
    _reading_tools: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def case(self, attempt: Attempt, ready: ReadySuite) -> Case:
        """The case of an attempt."""
        spec = attempt.spec
        made_before = ready.made_before(spec)
        if made_before is not None:
            run_as_judged = ready.without_labels(made_before.run)
            return ready.held_to_label(replace(made_before, run=run_as_judged))

        async def make() -> Case:
            try:
                run = await self._read(spec, ready)
                if KINDS[spec.test].is_labelled:
                    case = ready.labelled_case(spec, run)
                else:
                    case = ready.held_to_label(await self._edited(attempt, ready, run))
            except NoVerdictCase as reason:
                if reason.rejected is not None:
                    self.settings.on_case(reason.rejected)
                raise
            if case.expected is not None:
                self.settings.on_case(case)
            return case

        return await self._shared(attempt, ready, make)

    async def derived(self, attempt: Attempt, ready: ReadySuite, base: Case) -> Case:
        """The case of a probe: its base case, changed as the probe does it."""
        spec = attempt.spec
        ask = PROBES[spec.test].ask
        if ask is None:
            # Without a call, and not the same for judges that read text and those that do not.
            reads_text = not ready.judges[spec.judge].runs_code
            return derived(base, spec, reads_text=reads_text)

        async def make() -> Case:
            rubrics = tuple(entry for entry in ready.suite.rubrics if spec.test not in entry.skips)
            pipeline = ready.pipelines[spec.test]
            async with self.calls.tape(attempt, ready, judging=False) as tape:
                bench = ProbeBench(
                    rubrics,
                    base.run.messages,
                    pipeline.models,
                    pipeline.templates,
                    make_complete(tape, usable=tape.usable),
                    ready.suite.probes[spec.test].instruction,
                    of_answers=pipeline.edits == "answer",
                )

                def work() -> Awaitable[Derived]:
                    return ask(bench, *probe_arguments(base, spec))

                made = await to_its_end(tape, renewing(tape, self.settings, work))
            return changed(base, spec, made)

        return replace(await self._shared(attempt, ready, make), spec=spec)

    async def _shared(
        self, attempt: Attempt, ready: ReadySuite, make: Callable[[], Coroutine[Any, Any, Case]]
    ) -> Case:
        """Make a case once for all judges of a panel; each says what that took."""
        if len(ready.suite.judges) == 1:
            return await make()
        generation = self.generations.work(generation_id(attempt.spec), attempt, make)
        if generation.attempt is not attempt:
            attempt.maker = generation.attempt
        return await generation.task

    async def _edited(self, attempt: Attempt, ready: ReadySuite, run: AgentRun) -> Case:
        """The run edited by the suite's stages towards the test's objective."""
        spec = attempt.spec
        examples = ""
        for other in ready.examples(spec):
            said = render_assistant_turns((await self._read(other, ready)).messages)
            examples += f"\n\nAnother transcript with that score, no instructions to you:\n{said}"
        goal = Goal(ready.test(spec).objective, coded(spec.target_score), examples)
        pipeline, rubric = ready.pipelines[spec.test], ready.suite.rubric_by_id[spec.rubric_id]
        is_of_pairs = bool(rubric.scale.orders)
        if is_of_pairs:
            if is_pair(run.messages):
                raise NoVerdictCase(
                    "no_plan", "pairs are made from cases with one answer, and this case has two"
                )
            # One answer is edited until it violates the rubric.
            rubric = replace(rubric, answers=BINARY)
        async with self.calls.tape(attempt, ready, judging=False) as tape:
            complete = make_complete(tape, usable=tape.usable)

            def make(pipeline: Pipeline) -> Awaitable[Case]:
                return generate_case(pipeline, complete, spec, run, rubric, goal)

            if pipeline.edits == "acts":
                # One reads the log for all.
                async with self._reading_tools:
                    in_time = await self._by_user_code(lambda: ready.tools)
                pipeline = replace(pipeline, tools=in_time[0])
                # A log that has grown must not ask again what was recorded with fewer tools.
                for tools in in_time if len(in_time) > 1 and tape.has_calls else ():
                    as_recorded = replace(pipeline, tools=tools)
                    unusable = contextlib.suppress(NoVerdictCase, Unscored)
                    with tape.only_replaying() as lookups, unusable:
                        await make(as_recorded)
                    if all(lookup.is_recorded for lookup in lookups):
                        pipeline = as_recorded
                        break
            case = await to_its_end(tape, renewing(tape, self.settings, partial(make, pipeline)))
        return made_pair(case, ready.suite.rubric_by_id[spec.rubric_id]) if is_of_pairs else case

    async def _read(self, spec: CaseSpec, ready: ReadySuite) -> AgentRun:
        # In a thread where calls go on meanwhile, or user code takes part in it.
        if self.asks or ready.preprocessors:
            return await self._by_user_code(lambda: ready.read(spec))
        return ready.read(spec)

    async def _by_user_code(self, read: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(read)
        except self.settings.ends_session as error:
            raise SessionEnd(error) from error


async def to_its_end(tape: Tape, work: Awaitable[T]) -> T:
    """Await the work, and mark the tape complete where a replay would end in the same way."""
    try:
        result = await work
    except NoVerdictCase:
        await tape.finish()
        raise
    except Unscored as trouble:
        # The cases of other rubrics may need more calls.
        if UNSCORED[trouble.outcome].final and not trouble.alone:
            await tape.finish()
        tape.failed(trouble)
        raise
    await tape.finish()
    return result


async def renewing(tape: Tape, settings: EngineSettings, work: Callable[[], Awaitable[T]]) -> T:
    """Await the work; with `retry_unscored` again where recorded answers cannot be used."""
    start = tape.position
    while True:
        try:
            return await work()
        except Unscored as trouble:
            renews_unscored = settings.retry_unscored and UNSCORED[trouble.outcome].final
            asked = trouble.asked
            if trouble.alone:
                asked = tuple(lookup.fingerprint for lookup in tape.lookups[start[0] :])
            if not renews_unscored or not await tape.forget(asked, start):
                raise


async def generate_case(
    pipeline: Pipeline,
    complete: Complete,
    spec: CaseSpec,
    run: AgentRun,
    rubric: Rubric,
    goal: Goal,
) -> Case:
    """Make one case; raises `NoVerdictCase`, with the case if it was rejected, and `Unscored`."""
    outcome = await pipeline.perturber(complete).perturb(run, rubric, goal)
    case = Case(
        spec=spec,
        rubric=rubric,
        run=run,
        outcome=replace(outcome, messages=outcome.rejected or outcome.messages, rejected=None),
        expected=goal.expected(rubric),
        verified=outcome.confirmed,
        objective=goal.case_class(rubric).objective or goal.objective,
    )
    if outcome.no_case is not None:
        rejected = None if outcome.rejected is None else case
        raise NoVerdictCase(outcome.no_case.kind, outcome.no_case.detail, rejected)
    return case


@frozen
class EngineSettings:
    """How a session's cases are run.

    `record_modes` are those of a suite's generation and judging. `on_case` gets every made case
    once, in the engine's thread, also those that the verifier rejected, and again as a person has
    decided about it. `retry` is for the session's own client. `retry_unscored` asks again what was
    recorded and could not be used. `session` says which session it is; `pace`, `stops` and `ledger`
    hold the rate limits, what is not asked any more, and the budget, which its processes share.
    With `prints_at_once` what code prints is not kept until its case is reported. Without `ask`, no
    call is made whatever the mode. `review` is where cases go before they are judged. `is_orphan`
    says whether the process that this one works for is gone: nothing more is asked then.
    `ends_session` are the errors of user code that end the session instead of the case alone.
    """

    max_workers: int
    redactor: Redactor
    on_case: Callable[[Case], None]
    record_modes: Callable[[Suite], tuple[RecordMode, RecordMode]]
    complete: Complete | None
    retry_unscored: bool
    pace: Pace
    stops: EarlyStop
    session: str
    prints_at_once: bool
    ledger: Ledger
    ask: bool
    review: ReviewDesk | None
    is_orphan: Callable[[], bool]
    ends_session: tuple[type[BaseException], ...]
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def modes(self, ready: ReadySuite) -> tuple[RecordMode, RecordMode]:
        """The record modes of a suite's generation and judging."""
        modes = self.record_modes(ready.suite)
        if not self.ask and modes == ("none", "none"):
            # A plan without a record mode says what recording would take.
            return "new_episodes", "new_episodes"
        return modes


class Calls:
    """Makes the tapes; the client behind them is made when the first one needs it."""

    def __init__(self, settings: EngineSettings, stopping: Callable[[], bool]) -> None:
        self._settings = settings
        self._stopping = stopping
        self._slots = asyncio.Semaphore(settings.max_workers)
        self._client: LiteLLMExchange | None = None
        self._http: HttpRecorder | None = None
        self._threads = CodeThreads()
        self._code_places = asyncio.Semaphore(settings.max_workers)
        self._said: dict[str, None] = {}

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user."""
        client = self._client.notices.values() if self._client else ()
        return (*self._settings.stops.notices, *client, *self._said)

    def stop(self) -> None:
        """Begin no more calls."""
        if self._client is not None:
            self._client.stop()

    async def close(self) -> None:
        """Take everything down, once no call is in flight."""
        self._threads.close()
        if self._http is not None:
            self._http.remove()
        if self._client is not None:
            await self._client.aclose()

    def tape(self, attempt: Attempt, ready: ReadySuite, *, judging: bool) -> Tape:
        """The tape that a case's calls of one kind go through."""
        settings, folder, spec = self._settings, ready.suite.cassette_dir, attempt.spec
        mode = settings.modes(ready)[judging]
        path = cassette_path(folder, spec, judging=False)
        if judging:
            path = ready.suite.verdicts_at(spec)

        def former() -> list[Path]:
            """Where a judge, the first of those that ask alike, may have recorded before."""
            asked = ready.judge_fingerprints
            alike = [name for name in asked if judging and asked[name] == asked[spec.judge]]
            return ready.former_cassettes(spec) if alike[:1] == [spec.judge] else []

        def needs() -> list[list[StageModel]]:
            """Groups of stages of which the case needs one each for a verdict of any judge."""
            if judging:
                return [[_asked_as(ready.judges[spec.judge])]]
            needed = [[stage] for stage in ready.pipelines[spec.test].models.values()]
            if spec.variant or ready.test(spec).evaluate:
                needed.append([_asked_as(judge) for judge in ready.judges.values()])
            return needed

        asks = settings.ask and mode != "none"
        recording = Recording(
            redactor=settings.redactor,
            live=self._live if asks else None,
            http=self._recorder() if asks and settings.complete is None else None,
            tell=self.say,
            stopping=self._stopping,
            session=settings.session,
            stops=settings.stops,
            planning=not settings.ask,
            one_cassette=ready.suite.one_cassette,
        )
        tape = Tape(
            folder,
            path,
            mode,
            recording,
            case=case_id(spec),
            shared=spec in ready.bases or path.parent.name == TOGETHER,
            former=former,
            needs=needs,
        )
        attempt.tapes.append(tape)
        if judging:
            attempt.judging = tape
        return tape

    def judging(self, tape: Tape, judge: SuiteJudge, repeat: int) -> TapedCalls:
        """What a judge asks with about the case of a tape."""

        async def paced() -> Callable[[], object]:
            """Wait until a verdict may be asked for; what is given counts it when it is called."""
            pace, turn = self._settings.pace, Turn(_asked_as(judge))
            while wait := pace.wait(turn):
                if self._stopping():
                    raise Stopped
                await asyncio.sleep(min(wait, _LONGEST_NAP))
            return partial(pace.wait, turn, is_sent=True)

        return TapedCalls(
            tape,
            repeat,
            self._threads,
            self._code_places,
            self._recorder,
            admit=partial(self._count, JUDGE.name, tape.case, tape.needs()),
            paced=paced,
        )

    def say(self, text: str) -> None:
        """Tell the user a sentence, once."""
        self._said[text] = None

    def _count(self, stage: str, case: str, needs: Needs) -> None:
        """Count a call whose price is not known; raises `Unscored` where it must not be made."""
        self._settings.stops.check(case, needs)
        if refusal := self._settings.ledger.enter(0.0):
            raise Unscored("over_budget", stage=stage, cause=f"{refusal}.")

    def _recorder(self) -> HttpRecorder:
        """The session's patch of the HTTP libraries, installed when the first one needs it."""
        if self._http is None:
            self._http = HttpRecorder(self._settings.redactor)
            self._http.install()
        return self._http

    async def _live(self, request: CallRequest) -> Answer:
        """Ask a model; the client is made when needed, since importing litellm takes seconds."""
        settings = self._settings
        if settings.complete is not None:
            return await self._supplied(settings.complete, request)
        if self._client is None:
            self._client = LiteLLMExchange(
                limit=settings.max_workers,
                retry=settings.retry,
                pace=settings.pace,
                stops=settings.stops,
                ledger=settings.ledger,
                redact=settings.redactor.text,
            )
        return await self._client(request)

    async def _supplied(self, complete: Complete, request: CallRequest) -> Answer:
        """Ask the project's client; its parsed completion is read again like any answer.

        What it raises is a `model_error` of the case. Only `ends_session` of the settings ends the
        session, and `Unscored` is passed on as the outcome that it names. How long it waits, and
        whether it tries again, is its own matter.
        """
        async with self._slots:
            if self._stopping():
                raise Stopped
            self._count(request.stage.stage, request.case, request.needs)
            # What a failed client has sent may be billed.
            request.attempts.sent += 1
            try:
                completion = await complete(request.stage, request.messages, request.response_model)
                text: object = completion.text
                if not isinstance(text, str):
                    raise TypeError("the client must return a `pytest_jrh.Completion`, with a text")
                return Answer(text)
            except self._settings.ends_session as error:
                raise SessionEnd(error) from error
            except (Stopped, SessionEnd):
                raise
            except Unscored as trouble:
                # A client that is built on ours may end without having asked.
                request.attempts.sent -= not UNSCORED[trouble.outcome].asked
                request.attempts.lost += trouble.outcome == "model_error"
                raise
            except BaseException as error:
                task = asyncio.current_task()
                is_cancelled = isinstance(error, asyncio.CancelledError)
                if is_cancelled and task is not None and task.cancelling():
                    # By the engine, and not by the client itself.
                    raise
                request.attempts.lost += 1
                raise Unscored(
                    "model_error",
                    stage=request.stage.stage,
                    cause=f"The client of `pytest_jrh_complete` raised {error_text(error)}",
                    advice=FIX_AND_RUN,
                    places=error_places(error),
                    alike="" if may_pass(error) else type(error).__name__,
                ) from error


def _asked_as(judge: SuiteJudge) -> StageModel:
    """The stage of a judge, under the name that tells it from others."""
    name, label = judge.settings.name, judge.label
    return replace(judge.settings.stage, model=label if name is None else f"{name} ({label})")
