"""Runs case specs ahead of the items that wait for them: generate, review, judge, compare.

One asyncio loop in one thread; at most `max_workers` calls in flight and as many cases at work, or
about twice as many where calls are made, in the order of the specs. Nothing here knows pytest.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from pytest_jrh.cases.probes.swap import in_order
from pytest_jrh.core import InputError, SessionEnd, frozen, relative_path, shortened
from pytest_jrh.core.calls import Progress, Spending
from pytest_jrh.core.cases import (
    NOTHING_WRONG,
    Case,
    CaseSpec,
    NoVerdictCase,
    Review,
    Unscored,
    Why,
)
from pytest_jrh.core.foreign_code import Printed
from pytest_jrh.core.results import CaseResult, scores_text
from pytest_jrh.core.scales import other_place
from pytest_jrh.engine.case import (
    Attempt,
    Calls,
    CaseMaker,
    EngineSettings,
    SharedWork,
    SharedWorks,
    renewing,
    to_its_end,
)
from pytest_jrh.engine.planning import Survey, surveyed
from pytest_jrh.engine.suite import ReadySuite
from pytest_jrh.judges.judge import about_media
from pytest_jrh.llm.calls import Stopped
from pytest_jrh.llm.limits import FIRST_CASES
from pytest_jrh.recording.shown import shown_turns

# In seconds.
_MEANWHILE = 0.25
_BETWEEN_CANCELLATIONS = 0.1
_CANCELLATIONS = 20
_MOST_BASES = 512
# Cases of a replay.
_TOGETHER = 100
# In columns.
_LONGEST_CAUSE = 1_000


@frozen
class WrongCase:
    """A case that its judge is wrong on, without secrets, and the cassette that its judge was
    answered from: for the process that reports it, as a result holds neither.
    """

    case: Case
    cassette: Path


class CaseRunner:
    """The part of the engine that lives in its loop."""

    def __init__(self, suites: Mapping[str, ReadySuite], settings: EngineSettings) -> None:
        self._suites = suites
        self._settings = settings
        self._stopping = False
        # Where calls are made, about twice as many as they: while one case reads, writes or
        # computes, another has the call's place. With one call at a time it is one case at a time
        # too.
        asks = any(settings.modes(ready) != ("none", "none") for ready in suites.values())
        runs_code = any(
            judge.runs_code for ready in suites.values() for judge in ready.judges.values()
        )
        self.only_computes = not asks and not runs_code and settings.review is None
        most_at_work = 2 * settings.max_workers - 1 if asks else settings.max_workers
        self._places = asyncio.Semaphore(most_at_work)
        # Until a verdict shows that answers can be used the first cases alone are at work: all
        # might be paid for, and end alike.
        self._fed = 0
        self._may_go_on = asyncio.Event()
        if not asks:
            self._may_go_on.set()
        self.calls = Calls(settings, lambda: self._stopping or settings.is_orphan())
        self._at_work = set[asyncio.Task[None]]()
        self._pending = set[Future[CaseResult]]()
        self._maker = CaseMaker(settings, self.calls, SharedWorks(2 * most_at_work), asks)
        self._bases: SharedWorks[None] = SharedWorks(max(_MOST_BASES, 2 * most_at_work))
        self.unfinished: list[CaseResult] = []
        self.printed: dict[CaseSpec, Printed] = {}
        self.wrong_cases: dict[CaseSpec, WrongCase] = {}
        self._finalized: asyncio.Task[None] | None = None
        self.done = 0
        self.spending = Spending()

    async def feed(self, announced: Sequence[tuple[CaseSpec, Future[CaseResult]]]) -> None:
        """Set cases to work as places become free."""
        self._pending.update(future for _, future in announced)
        try:
            if self._settings.review is not None:
                # Derived cases are not shown: the case that they are derived from is.
                self._settings.review.announce(
                    spec.base_case if spec.variant else spec
                    for spec, _ in announced
                    if not self._suites[spec.suite].is_unlabelled(spec)
                )
            for spec, future in announced:
                if self._fed >= FIRST_CASES:
                    await self._may_go_on.wait()
                self._fed += 1
                await self._places.acquire()
                task = asyncio.create_task(self._work(spec, future))
                self._at_work.add(task)
                task.add_done_callback(self._at_work.discard)
        except BaseException as error:
            # Otherwise the items that wait for these cases would wait for ever.
            self._fail(error)
            raise

    def end(self, error: BaseException) -> None:
        """Begin no more calls, and raise the error wherever a result is waited for."""
        self._stopping = True
        self.calls.stop()
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        for future in self._pending:
            future.set_exception(error)
        self._pending.clear()

    def _leave(self, attempt: Attempt) -> None:
        """Keep what a case took that came to no result."""
        if attempt.tapes or attempt.base is not None:
            self.unfinished.append(attempt.result(Why("unrecorded")))

    async def begin_no_more(self) -> None:
        """Send nothing any more; what is in flight goes on."""
        self._stopping = True
        self.calls.stop()

    async def close(self) -> None:
        """Let the calls in flight end, then take everything down."""
        await self.begin_no_more()
        if self._finalized is not None:
            self._finalized.cancel()
        while self._at_work:
            await asyncio.wait(self._at_work)
        await self.calls.close()

    async def _work(self, spec: CaseSpec, future: Future[CaseResult]) -> None:
        attempt, settings = Attempt(spec), self._settings
        printed = Printed(settings.redactor.of_code, at_once=settings.prints_at_once)
        self.printed[spec] = printed
        try:
            if self._stopping:
                raise Stopped
            with printed.keeping():
                attempt, judging = self._begun(spec)
                result = await self._result(attempt, judging)
            self.spending += result.spending.all
            if future.done():
                # By the end of the session.
                self.unfinished.append(result)
            else:
                future.set_result(result)
        except SessionEnd as end:
            self._leave(attempt)
            self.end(end.error)
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self._leave(attempt)
            if not future.done():
                future.set_exception(error)
        finally:
            self._pending.discard(future)
            self._places.release()
            self.done += 1
            if attempt.scores or self.done >= FIRST_CASES:
                self._may_go_on.set()

    async def _result(self, attempt: Attempt, judging: Awaitable[None]) -> CaseResult:
        redactor, rejected = self._settings.redactor, None
        why = NOTHING_WRONG
        try:
            await judging
        except NoVerdictCase as reason:
            why, rejected = Why(reason.skip.kind, reason.skip.detail), reason.rejected
        except Unscored as trouble:
            why = trouble.why
        except InputError as error:
            why = Why("input_error", stage="input", cause=str(error))
        # As it may be shown and kept; a secret that is cut would not be found.
        cause = shortened(redactor.of_code(why.cause), _LONGEST_CAUSE)
        cassette = why.cassette and str(relative_path(Path(why.cassette), Path.cwd()))
        why = replace(why, detail=redactor.text(why.detail), cause=cause, cassette=cassette)
        result, case, tape = attempt.result(why, rejected), attempt.case, attempt.judging
        if result.outcome == "disagree" and case is not None and tape is not None:
            # A secret may stand in the rubric, in a label, or in the run.
            clean = redactor.value(case)
            self.wrong_cases[attempt.spec] = WrongCase(clean, tape.answered_from)
        return result

    def _begun(self, spec: CaseSpec) -> tuple[Attempt, Awaitable[None]]:
        """An attempt at a spec, and what makes and judges its case."""
        ready = self._suites[spec.suite]
        if spec in ready.bases:
            # Whoever asks first for a case that probes change has it judged.
            verdict = self._base_verdict(spec, spec)
            return verdict.attempt, self._awaited(verdict)
        attempt = Attempt(spec)
        if spec.variant:
            return attempt, self._judged_probe(attempt, ready)
        return attempt, self._judged(attempt, ready)

    async def _judged(self, attempt: Attempt, ready: ReadySuite) -> None:
        attempt.case = await self._case_to_judge(attempt, ready)
        if attempt.paid_by is not None or ready.test(attempt.spec).evaluate:
            await self._judge(attempt, ready)

    async def _judged_probe(self, attempt: Attempt, ready: ReadySuite) -> None:
        """The verdict on a changed case, if the judge is right on the unchanged one."""
        spec = attempt.spec
        verdict = self._base_verdict(spec.base_case, spec)
        attempt.base = verdict.attempt
        try:
            await self._awaited(verdict)
        except NoVerdictCase as reason:
            # What the verifier rejected is the base case alone.
            raise NoVerdictCase(reason.skip.kind, reason.skip.detail) from None
        case, scores = attempt.base.case, attempt.base.scores
        assert case is not None
        score = case.scale.settled(scores)
        if not case.scale.accepts(score, case.expected):
            expected = case.scale.said(case.expected)
            raise NoVerdictCase(
                "wrong_on_base", f"{scores_text(score, scores, case.scale)} for {expected}"
            )
        attempt.case = await self._maker.derived(attempt, ready, case)
        await self._judge(attempt, ready)

    def _base_verdict(self, base: CaseSpec, asker: CaseSpec) -> SharedWork[None]:
        """The verdict on a case that probes change, which is begun where there is none yet."""
        attempt, ready = Attempt(base, paid_by=asker), self._suites[base.suite]
        return self._bases.work(base, attempt, partial(self._judged, attempt, ready))

    async def _awaited(self, verdict: SharedWork[None]) -> None:
        """Wait for a shared verdict; in a review without this case's place, which others need."""
        is_lent = self._settings.review is not None
        async with self._place_lent() if is_lent else contextlib.nullcontext():
            await verdict.task

    @contextlib.asynccontextmanager
    async def _place_lent(self) -> AsyncIterator[None]:
        """Leave a case's place among those at work to others, which it may wait for."""
        self._may_go_on.set()
        self._places.release()
        try:
            yield
        finally:
            await self._places.acquire()

    async def _judge(self, attempt: Attempt, ready: ReadySuite) -> None:
        """Ask the judge about the case that was made."""
        spec, case = attempt.spec, attempt.case
        assert case is not None
        judge = ready.judges[spec.judge]
        attempt.judge_fingerprint = ready.judge_fingerprints[spec.judge]
        said = about_media(case.messages, judge.settings)
        if said and not judge.runs_code:
            self.calls.say(f"suite {spec.suite}: {said}")
        async with self.calls.tape(attempt, ready, judging=True) as tape:

            async def repeats() -> None:
                # One after another, each with recordings of its own: cases are judged side by side
                # already, and what comes after a repeat without a verdict is not worth its cost; a
                # cassette is the same whatever answers first, and providers answer what they have
                # just read from their cache. Those before the first one without a verdict stay
                # recorded, and the attempt keeps their verdicts.
                number = ready.suite.repeats_of(spec)
                for repeat in range(1, number + 1):
                    calls = self.calls.judging(tape, judge, repeat)
                    # Of both orders of a pair, the second half is asked about the other one.
                    is_turned = case.scale.orders * repeat > number
                    asked = in_order(case, is_turned=is_turned)
                    verdict = await renewing(tape, self._settings, partial(judge, asked, calls))
                    if is_turned:
                        verdict = replace(verdict, score=other_place(verdict.score))
                    # The tape has looked for secrets in the model's answer, where one may be
                    # escaped.
                    redact = self._settings.redactor.text
                    verdict = replace(verdict, reasoning=redact(verdict.reasoning))
                    tape.usable(judge.settings.stage)
                    attempt.verdicts.append(verdict)

            await to_its_end(tape, repeats())
        # A plan makes no call, verdicts of a table were not asked for here, and what a probe
        # changes is not an edit.
        if self._settings.ask and not spec.variant:
            attempt.turns_shown = shown_turns(case, tape.sent)
        tape.sent.texts.clear()
        if self._settings.review is not None and not spec.variant and case.expected is not None:
            self._settings.review.board.set_verdicts(case, attempt.verdicts)
        attempt.scores = tuple(verdict.score for verdict in attempt.verdicts)

    async def _case_to_judge(self, attempt: Attempt, ready: ReadySuite) -> Case:
        """The case as it was made, or as people decided about it."""
        review, spec = self._settings.review, attempt.spec
        if ready.is_unlabelled(spec):
            # Nobody can accept or reject an answer that is not known.
            review = None
        try:
            if spec.skip is not None:
                raise NoVerdictCase(spec.skip.kind, spec.skip.detail)
            case = replace(await self._maker.case(attempt, ready), spec=spec)
        except (NoVerdictCase, Unscored, InputError) as reason:
            if review is not None:
                rejected = reason.rejected if isinstance(reason, NoVerdictCase) else None
                review.end_without_case(spec, rejected)
            raise
        if review is None:
            return case
        if review.awaits(case):
            if self._settings.modes(ready)[1] == "none" and ready.test(spec).evaluate:
                # Whether judge or label is wrong is what people look for, so that a recorded
                # verdict is shown. What it takes counts when the case is judged as they decide.
                with contextlib.suppress(NoVerdictCase, Unscored, InputError):
                    await self._judge(Attempt(spec, review.as_decided(case)), ready)
            is_placed = attempt.paid_by is None
            async with self._place_lent() if is_placed else contextlib.nullcontext():
                if self._finalized is None:
                    # One for all: every change of the review wakes all listeners.
                    self._finalized = asyncio.create_task(review.board.until_finalized())
                if not self._stopping:
                    await asyncio.wait([self._finalized])
                if self._stopping:
                    raise Stopped
        attempt.human_reviewed, decision = review.decision(case)
        if decision is None:
            return case
        decided = review.as_decided(case)
        self._settings.on_case(replace(decided, review=Review(decision.action, decision.note)))
        return decided

    async def survey(self, specs: Sequence[CaseSpec]) -> list[Survey]:
        """Replay cases as far as their cassettes reach; a call that several share counts once."""
        bases = [spec.base_case for spec in specs if spec.variant]
        surveys: list[Survey] = []
        places = set()
        for spec in dict.fromkeys((*bases, *specs)):
            attempt, judging = self._begun(spec)
            ready = self._suites[spec.suite]
            survey = await surveyed(attempt, ready, judging, self.calls)
            place = ready.suite.verdicts_at(spec)
            if place in places:
                survey = replace(survey, recorded=0, to_make={})
            elif attempt.scores or any(calls.high for calls in survey.to_make.values()):
                places.add(place)
            surveys.append(survey)
        return surveys


class Engine:
    """Runs a session's specs in order: `start` announces them, `result` waits for one, which is run
    then if it was not announced, and `stop` ends it.

    Where its thread only computes, as in a replay of judges that are prompts, it does so while the
    main thread waits: in turns, some cases at a time, both take less time than side by side.
    """

    def __init__(self, suites: Mapping[str, ReadySuite], settings: EngineSettings) -> None:
        self._futures: dict[CaseSpec, Future[CaseResult]] = {}
        # Announced, and not yet set to work.
        self._unfed: dict[CaseSpec, Future[CaseResult]] = {}
        self._announced = 0
        self._runner = CaseRunner(suites, settings)
        # By spec the cases whose verdicts are wrong: who reports one takes it.
        self.wrong_cases = self._runner.wrong_cases
        self._ends_session = settings.ends_session
        self._ended = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="jrh-engine", daemon=True)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the client has to tell the user, each sentence once."""
        return self._runner.calls.notices

    def start(self, specs: Sequence[CaseSpec]) -> None:
        """Set these specs to work in order; those already announced are left as they are."""
        fresh = {spec: Future[CaseResult]() for spec in specs if spec not in self._futures}
        self._futures |= fresh
        self._unfed |= fresh
        self._announced += len(fresh)
        if not self._thread.is_alive():
            self._thread.start()
        if not self._runner.only_computes:
            self._feed(len(fresh))

    def _feed(self, count: int) -> list[Future[CaseResult]]:
        """Set the next cases to work."""
        fed = list(islice(self._unfed.items(), count))
        for spec, _ in fed:
            del self._unfed[spec]
        asyncio.run_coroutine_threadsafe(self._runner.feed(fed), self._loop)
        return [future for _, future in fed]

    @property
    def unreported(self) -> list[CaseResult]:
        """Results that nobody asked for; of those without an end only the spending holds."""
        ended = [future for future in self._futures.values() if future.done()]
        results = [future.result() for future in ended if future.exception() is None]
        return [*results, *self._runner.unfinished]

    @property
    def progress(self) -> Progress:
        """How far the cases are that were set to work."""
        return Progress(self._runner.done, self._announced, self._runner.spending)

    def result(self, spec: CaseSpec, meanwhile: Callable[[], object] = bool) -> CaseResult:
        """Wait for the result of a spec, as `wait` does, and print what its code has printed;
        raises a bug as it was.
        """
        self.wait(spec, meanwhile)
        # Forgotten once given: the results of thousands of cases need not stay, and a rerun runs
        # again.
        future = self._futures.pop(spec)
        if not future.done():
            raise RuntimeError("the engine's thread has stopped, so this case cannot be run")
        # A case that the end of the session kept from beginning has printed nothing.
        if spec in self._runner.printed:
            self._runner.printed.pop(spec).give()
        return future.result()

    def wait(self, spec: CaseSpec, meanwhile: Callable[[], object] = bool) -> None:
        """Wait for the end of a spec or the engine, calling `meanwhile` a few times a second."""
        if spec not in self._futures:
            self.start([spec])
        awaited = [self._futures[spec]]
        while spec in self._unfed:
            awaited = self._feed(_TOGETHER)
        while wait(awaited, timeout=_MEANWHILE).not_done and self._thread.is_alive():
            meanwhile()

    def survey(self, specs: Sequence[CaseSpec]) -> list[Survey]:
        """How far recordings reach, also of cases that probes change, without any call."""
        try:
            return self._loop.run_until_complete(self._runner.survey(specs))
        except SessionEnd as end:
            raise end.error from None

    def begin_no_more(self) -> None:
        """Begin no more calls, without a wait for those in flight."""
        asyncio.run_coroutine_threadsafe(self._runner.begin_no_more(), self._loop).result()

    def stop(self) -> None:
        """Begin no more calls, wait until those in flight are recorded, and end the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._runner.close(), self._loop).result()
            self._ended = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        elif not self._loop.is_closed():
            # A survey needs no thread.
            self._loop.run_until_complete(self._runner.close())
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


async def _cancelled() -> None:
    """Cancel, again and again, what libraries left in the loop: Python 3.11 loses cancellations."""
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
