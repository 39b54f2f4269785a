"""Runs case specs ahead of whoever asks for their results: generate, judge, compare.

One asyncio loop in one thread; at most `max_workers` cases at work and as many calls in flight, in
the order of the specs. Nothing here knows pytest.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.errors import InputError, NoVerdictCase, Unrecorded, Unscored
from pytest_jrh.judging.judge import make_template_judge
from pytest_jrh.llm.budget import Ledger
from pytest_jrh.llm.calls import Answer, CallRequest, Exchange, Stopped, make_complete
from pytest_jrh.llm.locks import Slots
from pytest_jrh.llm.stage import Stage
from pytest_jrh.llm.tapes import Recording, Replay, SharedCalls, Tape
from pytest_jrh.models import AgentRun, Case, CaseResult, CaseSpec, Complete, Progress, RecordMode, Spending, Verdict
from pytest_jrh.redact import Redactor
from pytest_jrh.results.debug import debug_paths
from pytest_jrh.results.explain import disagreement_text, unscored_text
from pytest_jrh.results.records import case_digest
from pytest_jrh.suite.cases import case_id, cassette_path, generation_id
from pytest_jrh.transcript import render_transcript

if TYPE_CHECKING:
    from pytest_jrh.llm.client import LiteLLMExchange, RetryPolicy
    from pytest_jrh.llm.recorder import HttpRecorder
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import HumanReview
    from pytest_jrh.planning import Survey
    from pytest_jrh.review.decisions import Decision
    from pytest_jrh.review.desk import ReviewDesk

# What was recorded and cannot be used stays so on replay: the case has come to its end.
_FINAL = frozenset({"invalid_response", "refused"})
_MEANWHILE = 0.25
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a session's cases are run.

    `record_mode` and `judge_record_mode` are the command line's, over the suite's own; without
    either, nothing is asked. `keep` is False where answers are asked for and not recorded.
    `on_case` gets every made case once, in the engine's thread. `rerun_command` and
    `record_command` give the shell line that reruns, or records, a case. `retry` is for the session's
    own client. `retry_unscored` asks again what was recorded and could not be used. `processes` and
    `session` say how many processes share the session's limits, and which session it is; `shared_slots` are lock
    files, one for each call that all of them together may have in flight; `ledger` holds
    the budget that they share. Without `ask`, nobody is asked whatever the mode. `review` is where cases go before
    they are judged; `on_reviewed` gets each case that a person decided about and that is used, with the decision.
    """

    max_workers: int
    redactor: Redactor
    on_case: Callable[[Case], None]
    rerun_command: Callable[[CaseSpec], str]
    record_command: Callable[[CaseSpec], str]
    record_mode: RecordMode | None = None
    judge_record_mode: RecordMode | None = None
    cassette_dir: Path | None = None
    keep: bool = True
    replay: Replay = "completion"
    complete: Complete | None = None
    retry: RetryPolicy | None = None
    retry_unscored: bool = False
    processes: int = 1
    shared_slots: tuple[Path, ...] = ()
    session: str = ""
    ledger: Ledger | None = None
    ask: bool = True
    review: ReviewDesk | None = None
    on_reviewed: Callable[[Case, Decision], None] = lambda _case, _decision: None

    def mode(self, ready: ReadySuite, *, judging: bool) -> RecordMode:
        """The record mode of a suite's generation or judging (semantics G1)."""
        if not self.keep:
            return "all"
        if self.replay == "http":
            # Whatever the suite's file says: a call that is played all the way must not reach a network.
            return "none"
        suite = ready.suite
        generation = self.record_mode or suite.record_mode or "none"
        if not judging:
            return generation
        return self.judge_record_mode or self.record_mode or suite.judge_record_mode or generation


class Engine:
    """The session's runner; `suites` maps suite names to what they run on.

    `start` announces the specs that will be asked for, in order; `result` waits for one of them. A
    spec asked for again, or never announced, is run then. `stop` it in the end, whatever happened.
    """

    def __init__(self, suites: Mapping[str, ReadySuite], settings: EngineSettings) -> None:
        self._futures: dict[CaseSpec, Future[CaseResult]] = {}
        self._session = _Session(suites, settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="jrh-engine", daemon=True)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user, each sentence once."""
        return self._session.notices

    def start(self, specs: Sequence[CaseSpec]) -> None:
        """Set these specs to work in order; those already announced are left as they are."""
        fresh = {spec: Future[CaseResult]() for spec in specs if spec not in self._futures}
        self._futures |= fresh
        if not self._thread.is_alive():
            self._thread.start()
        asyncio.run_coroutine_threadsafe(self._session.feed(list(fresh.items())), self._loop)

    @property
    def progress(self) -> Progress:
        """How far the cases are that were set to work."""
        return self._session.progress

    def result(self, spec: CaseSpec, meanwhile: Callable[[], None] | None = None) -> CaseResult:
        """Wait for the result of a spec; a bug met on the way is raised as it was.

        `meanwhile` is called a few times a second while there is nothing yet.
        """
        if spec not in self._futures:
            self.start([spec])
        # Forgotten once given: the results of thousands of cases need not stay, and a rerun runs again.
        future = self._futures.pop(spec)
        if meanwhile is not None:
            while not wait([future], timeout=_MEANWHILE).done:
                meanwhile()
        return future.result()

    def survey(self, specs: Iterable[CaseSpec]) -> Iterator[Survey]:
        """Say of each case how far its recordings reach, asking nobody; instead of `start` and `result`."""
        for spec in specs:
            yield self._loop.run_until_complete(self._session.survey(spec))

    def stop(self) -> None:
        """Begin no more calls, wait until those in flight are recorded, and end the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._session.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # litellm leaves a logging task behind in every loop that it runs in.
        leftover = asyncio.all_tasks(self._loop)
        for task in leftover:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*leftover, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())


class _Session:
    """The part of the engine that lives in its loop."""

    def __init__(self, suites: Mapping[str, ReadySuite], settings: EngineSettings) -> None:
        self._suites = suites
        self._settings = settings
        self._stopping = False
        self._places = asyncio.Semaphore(settings.max_workers)
        self._slots = Slots(settings.max_workers, settings.shared_slots, lambda: self._stopping)
        self._at_work: set[asyncio.Task[None]] = set()
        self._generations: OrderedDict[str, _Generation] = OrderedDict()
        self._client: LiteLLMExchange | None = None
        self._http: HttpRecorder | None = None
        self._shared = SharedCalls()
        self._finalized: asyncio.Task[None] | None = None
        self.progress = Progress(0, 0)

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(self._client.notices) if self._client else ()

    async def feed(self, announced: Sequence[tuple[CaseSpec, Future[CaseResult]]]) -> None:
        """Set cases to work as places become free."""
        self.progress = replace(self.progress, total=self.progress.total + len(announced))
        if self._settings.review is not None:
            self._settings.review.announce(spec for spec, _ in announced)
        for spec, future in announced:
            await self._places.acquire()
            task = asyncio.create_task(self._work(spec, future))
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)

    async def close(self) -> None:
        """Let the calls in flight end, then take everything down."""
        self._stopping = True
        if self._client is not None:
            self._client.stop()
        if self._finalized is not None:
            self._finalized.cancel()
        while self._at_work:
            await asyncio.wait(self._at_work)
        if self._http is not None:
            self._http.remove()
        if self._client is not None:
            await self._client.aclose()

    async def _work(self, spec: CaseSpec, future: Future[CaseResult]) -> None:
        try:
            if self._stopping:
                raise Stopped
            result = await self._result(spec)
            done = self.progress
            self.progress = Progress(done.done + 1, done.total, done.spending + result.spending)
            future.set_result(result)
        except (Exception, Stopped) as error:  # noqa: BLE001 - raised again where the result is asked for
            future.set_exception(error)
        finally:
            self._places.release()

    async def _result(self, spec: CaseSpec) -> CaseResult:
        attempt = _Attempt(spec)
        try:
            verdict = await self._judged(attempt)
        except NoVerdictCase as reason:
            return attempt.result("no_case", detail=self._settings.redactor.text(str(reason)))
        except Unscored as trouble:
            return attempt.result(trouble.outcome, detail=self._explain(spec, trouble))
        except InputError as error:
            unreadable = Unscored("input_error", stage="input", cause=str(error))
            return attempt.result(unreadable.outcome, detail=self._explain(spec, unreadable))
        if verdict is None:
            return attempt.result("generated")
        case = attempt.case
        assert case is not None
        if verdict.score == case.expected:
            return attempt.result("agree", verdict=verdict)
        test = self._suites[spec.suite].test(spec.test)
        detail = disagreement_text(
            _without_secrets(case, self._settings.redactor),
            verdict,
            debug_bundle=debug_paths(test.output_dir, spec).audit if case.outcome.edits else None,
            cassette=attempt.tapes[-1].path if self._settings.keep else None,
            command=self._settings.rerun_command(spec),
        )
        return attempt.result("disagree", verdict=verdict, detail=detail)

    def _explain(self, spec: CaseSpec, trouble: Unscored) -> str:
        # A call that failed is in no cassette either: only a recording run makes it again.
        again = trouble.outcome in ("unrecorded", "model_error", "over_budget")
        command = self._settings.record_command if again else self._settings.rerun_command
        # Before the text is wrapped: a secret that is spread over two lines would not be found.
        trouble.cause = self._settings.redactor.text(trouble.cause)
        return unscored_text(trouble, command=command(spec))

    async def _judged(self, attempt: _Attempt) -> Verdict | None:
        spec = attempt.spec
        ready = self._suites[spec.suite]
        attempt.case = case = await self._case_to_judge(attempt, ready)
        if not ready.test(spec.test).evaluate:
            return None
        judge, template = ready.judge(spec.judge)
        attempt.judge_fingerprint = ready.judge_fingerprints[spec.judge]
        async with self._tape(attempt, ready, judging=True) as tape:
            ask = make_template_judge(
                Stage(judge.stage, template, make_complete(tape)),
                instruction=ready.suite.instruction,
                show_reasoning=judge.show_reasoning,
            )
            verdict = await self._to_its_end(tape, lambda: ask(case))
        if self._settings.review is not None:
            self._settings.review.judged(case, verdict)
        return verdict

    async def _case_to_judge(self, attempt: _Attempt, ready: ReadySuite) -> Case:
        """The case as it was made, or as people decided about it (semantics K2)."""
        review, spec = self._settings.review, attempt.spec
        try:
            if spec.skip_reason is not None:
                raise NoVerdictCase(spec.skip_reason)
            case = replace(await self._case(attempt, ready), spec=spec)
        except (NoVerdictCase, Unscored, InputError):
            if review is not None:
                review.miss(spec)
            raise
        if review is None:
            return case
        if review.awaits(case):
            await self._until_finalized(review)
        attempt.human_reviewed, decision = review.said(case)
        if decision is None:
            return case
        obeyed = review.obeyed(case, decision)
        self._settings.on_reviewed(obeyed, decision)
        return obeyed

    async def _until_finalized(self, review: ReviewDesk) -> None:
        """Wait for Finalize without the place that a case at work has, so that all others can be made meanwhile."""
        if self._finalized is None:
            # One for all: every change of the review wakes whoever listens.
            self._finalized = asyncio.create_task(review.board.until_finalized())
        self._places.release()
        try:
            if not self._stopping:
                await asyncio.wait([self._finalized])
        finally:
            await self._places.acquire()
        if self._stopping:
            raise Stopped

    async def survey(self, spec: CaseSpec) -> Survey:
        """Replay a case as far as its cassettes reach."""
        from pytest_jrh.planning import Survey

        ready = self._suites[spec.suite]
        attempt = _Attempt(spec)
        ended, letters = True, 0
        try:
            await self._judged(attempt)
        except Unrecorded:
            ended, letters = False, _letters(ready.read(spec))
        except (NoVerdictCase, Unscored, InputError):
            pass
        return Survey(
            spec=spec,
            lookups=tuple(lookup for tape in attempt.tapes for lookup in tape.lookups),
            ended=ended,
            made=attempt.case is not None,
            most_edits=ready.suite.max_edit_rounds,
            verifies="verifier" in ready.suite.stages,
            evaluates=ready.test(spec.test).evaluate,
            letters=letters,
        )

    async def _case(self, attempt: _Attempt, ready: ReadySuite) -> Case:
        made_before = ready.made_before(attempt.spec)
        if made_before is not None:
            return made_before
        if len(ready.suite.judges) == 1:
            return await self._generate(attempt, ready)
        # The judges of a panel stand next to each other in the order: they share one generation, whose
        # cost is the first one's.
        key = generation_id(attempt.spec)
        made = self._generations.get(key)
        if made is None or made.is_spent(attempt.spec):
            made = self._generations[key] = _Generation(asyncio.create_task(self._generate(attempt, ready)))
            if len(self._generations) > 2 * self._settings.max_workers:
                self._generations.popitem(last=False)
        made.asked_by.add(attempt.spec)
        return await made.task

    async def _generate(self, attempt: _Attempt, ready: ReadySuite) -> Case:
        # A frozen suite makes no case, and is spared the import.
        from pytest_jrh.pipeline.generate import generate_case, goal_of

        spec = attempt.spec
        run = await asyncio.to_thread(ready.read, spec)
        goal = goal_of(ready.test(spec.test).objective, spec.target_score)
        async with self._tape(attempt, ready, judging=False) as tape:
            complete, rubric = make_complete(tape), ready.rubric(spec.rubric_id)
            pipeline = ready.pipelines[spec.test]
            case = await self._to_its_end(tape, lambda: generate_case(pipeline, complete, spec, run, rubric, goal))
        self._settings.on_case(case)
        return case

    async def _to_its_end(self, tape: Tape, work: Callable[[], Awaitable[T]]) -> T:
        """Await the work on a tape, and mark the tape complete where a replay would end in the same way."""
        try:
            try:
                made = await work()
            except Unscored as trouble:
                again = self._settings.retry_unscored and trouble.outcome in _FINAL
                if not again or not await tape.forget(trouble.asked):
                    raise
                made = await work()
        except NoVerdictCase:
            await tape.finish()
            raise
        except Unscored as trouble:
            if trouble.outcome in _FINAL:
                await tape.finish()
            raise
        await tape.finish()
        return made

    def _tape(self, attempt: _Attempt, ready: ReadySuite, *, judging: bool) -> Tape:
        folder = self._settings.cassette_dir or ready.suite.cassette_dir
        mode = self._settings.mode(ready, judging=judging)
        tape = Tape(folder, cassette_path(folder, attempt.spec, judging=judging), mode, self._recording(mode))
        attempt.tapes.append(tape)
        if judging:
            attempt.judging = tape
        return tape

    def _recording(self, mode: RecordMode) -> Recording:
        settings = self._settings
        asks = settings.ask and (mode != "none" or settings.replay == "http")
        return Recording(
            redactor=settings.redactor,
            replay=settings.replay,
            live=self._live() if asks else None,
            http=self._http if asks else None,
            keep=settings.keep,
            stopping=lambda: self._stopping,
            session=settings.session,
            shared=self._shared,
        )

    def _live(self) -> Exchange:
        """The way to the models, made when the first case needs it: importing litellm takes seconds."""
        if self._settings.complete is not None:
            return _CompleteExchange(self._settings.complete, self._settings.ledger, self._slots)
        if self._client is None:
            from pytest_jrh.llm.client import LiteLLMExchange, RetryPolicy
            from pytest_jrh.llm.recorder import HttpRecorder

            self._http = HttpRecorder(self._settings.redactor)
            self._http.install()
            if self._settings.replay == "http":
                # Nothing is sent, so no key is needed and a miss is not worth a second try.
                self._client = LiteLLMExchange(
                    limit=self._settings.max_workers, retry=RetryPolicy(attempts=1), api_key="replayed"
                )
            else:
                self._client = LiteLLMExchange(
                    limit=self._settings.max_workers,
                    shared_slots=self._settings.shared_slots,
                    retry=self._settings.retry or RetryPolicy(),
                    processes=self._settings.processes,
                    ledger=self._settings.ledger,
                    redact=self._settings.redactor.text,
                )
        return self._client


@dataclass
class _Generation:
    """A case in the making for the judges of a panel."""

    task: asyncio.Task[Case]
    asked_by: set[CaseSpec] = field(default_factory=set)

    def is_spent(self, spec: CaseSpec) -> bool:
        """Whether it came to nothing, and a judge that knows so asks again: a rerun is worth another try."""
        return spec in self.asked_by and self.task.done() and self.task.exception() is not None


@dataclass
class _Attempt:
    """One go at one spec: its case once it is made, and the tapes that its calls went through."""

    spec: CaseSpec
    case: Case | None = None
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    tapes: list[Tape] = field(default_factory=list)
    judging: Tape | None = None

    def result(self, outcome: str, *, verdict: Verdict | None = None, detail: str = "") -> CaseResult:
        spec, case = self.spec, self.case
        judge_spending = self.judging.spending if self.judging else Spending()
        return CaseResult(
            case_id=case_id(spec),
            suite=spec.suite,
            test=spec.test,
            rubric_id=spec.rubric_id,
            run_id=spec.run_id,
            epoch=spec.epoch,
            judge=spec.judge or "",
            target_score=spec.target_score,
            outcome=outcome,  # type: ignore[arg-type]
            expected=case.expected if case else None,
            verified=case.verified if case else None,
            score=verdict.score if verdict else None,
            reasoning=verdict.reasoning if verdict else "",
            detail=detail,
            case_digest=case_digest(case) if case else "",
            judge_fingerprint=self.judge_fingerprint,
            human_reviewed=self.human_reviewed,
            spending=sum((tape.spending for tape in self.tapes), Spending()),
            judge_spending=judge_spending if spec.judge is not None else None,
        )


class _CompleteExchange:
    """A project's own client as an exchange: its parsed completion is read again like any answer."""

    def __init__(self, complete: Complete, ledger: Ledger | None, slots: Slots) -> None:
        self._complete = complete
        self._ledger = ledger
        self._slots = slots

    async def __call__(self, request: CallRequest) -> Answer:
        async with self._slots.one():
            refusal = self._ledger.enter(0.0) if self._ledger is not None else None
            if refusal is not None:
                raise Unscored("over_budget", stage=request.stage.stage, cause=f"{refusal}.")
            completion = await self._complete(request.stage, request.messages, request.response_model)
        return Answer(completion.text)


def _without_secrets(case: Case, redactor: Redactor) -> Case:
    """The case as it may be shown; what models wrote has been cleaned on its way in."""
    edits = tuple(replace(edit, original_content=redactor.text(edit.original_content)) for edit in case.outcome.edits)
    rubric = replace(case.rubric, instructions=redactor.text(case.rubric.instructions))
    return replace(case, rubric=rubric, outcome=replace(case.outcome, edits=edits))


def _letters(run: AgentRun) -> int:
    return len(render_transcript(run.messages))
