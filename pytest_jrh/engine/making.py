"""How a case of a session comes to be: taken as it is on disk, or made, once for all judges of a
panel.

The cases that probes change, each made and judged once for all of them and for its own test.

Asks a judge about a case as often as it is to be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pytest_jrh.cases.deriving import Derivation, changed
from pytest_jrh.cases.ids import generation_id
from pytest_jrh.cases.probes import PROBES
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.errors import NoVerdictCase, Unrecorded, Unscored
from pytest_jrh.core.model import (
    UNSCORED,
    Case,
    Judgment,
    PerturbationOutcome,
)
from pytest_jrh.core.transcript import assistant_indices
from pytest_jrh.core.user_code import SessionEnd
from pytest_jrh.engine.attempts import SharedWork
from pytest_jrh.llm.calls import make_complete
from pytest_jrh.sources.source import top_field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from typing import Any

    from pytest_jrh.cases.acts import Tool
    from pytest_jrh.cases.probes.probe import Derived
    from pytest_jrh.core.model import AgentRun, CaseSpec, Verdict
    from pytest_jrh.engine.attempts import Attempt, EngineSettings
    from pytest_jrh.engine.loading import ReadySuite
    from pytest_jrh.engine.wiring import Calls
    from pytest_jrh.judges.judge import JudgeCalls, SuiteJudge
    from pytest_jrh.recording.tapes import Tape


T = TypeVar("T")


class CaseMaker:
    """Makes a session's cases; the last `keep` that a panel shares are remembered."""

    def __init__(self, settings: EngineSettings, calls: Calls, keep: int, *, asks: bool) -> None:
        self._settings = settings
        self._asks = asks
        self._calls = calls
        self._keep = keep
        self._generations: OrderedDict[str, SharedWork[Case]] = OrderedDict()
        self._tools: dict[str, asyncio.Task[list[dict[str, Tool]]]] = {}

    async def case(self, attempt: Attempt, ready: ReadySuite) -> Case:
        """The case of an attempt; raises what prevents it."""
        made_before = ready.made_before(attempt.spec)
        if made_before is not None:
            return made_before
        return await self._shared(attempt, ready, lambda: self._generate(attempt, ready))

    async def derived(self, attempt: Attempt, ready: ReadySuite, base: Case) -> Case:
        """The case of a probe, made of its base case; raises what prevents it."""
        bench = _Bench(self._settings, self._calls, attempt, ready, asks=self._asks, base=base)
        make = KINDS[attempt.spec.test].make
        if not PROBES[attempt.spec.test].asks:
            # Without a call, and not the same for judges that read text and those that do not.
            return await make(bench)
        case = await self._shared(attempt, ready, lambda: make(bench))
        return replace(case, spec=attempt.spec)

    async def _shared(
        self, attempt: Attempt, ready: ReadySuite, make: Callable[[], Awaitable[Case]]
    ) -> Case:
        """Make a case once for all judges of a panel; its cost counts for the first."""
        if len(ready.suite.judges) == 1:
            return await make()

        async def work() -> Case:
            return await make()

        key = generation_id(attempt.spec)
        work_of_case = self._generations.get(key)
        if work_of_case is None or work_of_case.is_spent(attempt.spec):
            work_of_case = self._generations[key] = SharedWork(attempt, asyncio.create_task(work()))
            if len(self._generations) > self._keep:
                self._generations.popitem(last=False)
        work_of_case.asked_by.add(attempt.spec)
        case = await work_of_case.task
        maker = work_of_case.attempt
        attempt.shared_tapes = tuple(tape for tape in maker.tapes if tape is not maker.judging)
        return case

    async def _tools_of(self, ready: ReadySuite) -> list[dict[str, Tool]]:
        """The tools of a suite's log, and of the log as it was, for which it is read once."""
        name = ready.suite.name
        if name not in self._tools:
            self._tools[name] = asyncio.create_task(asyncio.to_thread(ready.tools))
        try:
            # One of those who wait may be cancelled.
            return await asyncio.shield(self._tools[name])
        except self._settings.ends_session as error:
            raise SessionEnd(error) from error

    async def _generate(self, attempt: Attempt, ready: ReadySuite) -> Case:
        bench = _Bench(
            self._settings, self._calls, attempt, ready, asks=self._asks, tools=self._tools_of
        )
        try:
            case: Case = await KINDS[attempt.spec.test].make(bench)
        except NoVerdictCase as reason:
            if reason.rejected is not None:
                self._settings.on_case(reason.rejected)
            raise
        if case.expected is not None:
            self._settings.on_case(case)
        return case


@dataclass(frozen=True, slots=True)
class _Bench:
    """What making one case may use (`kinds.Bench`)."""

    settings: EngineSettings
    calls: Calls
    attempt: Attempt
    ready: ReadySuite
    asks: bool
    base: Case | None = None
    tools: Callable[[ReadySuite], Awaitable[list[dict[str, Tool]]]] | None = None

    async def edited(self) -> Case:
        # A frozen suite makes no case, and is spared the import.
        from pytest_jrh.cases.pipeline import goal_of
        from pytest_jrh.engine.generate import generate_case

        spec, ready, run = self.attempt.spec, self.ready, await self._read()
        goal = goal_of(ready.test(spec.test).objective, spec.target_score)
        async with self.calls.tape(self.attempt, ready, judging=False) as tape:
            complete, rubric = make_complete(tape), ready.rubric(spec.rubric_id)
            pipeline = ready.pipelines[spec.test]
            if pipeline.edits == "acts" and self.tools is not None:
                tools = await recorded_with(
                    tape,
                    await self.tools(ready),
                    lambda tools: generate_case(
                        replace(pipeline, tools=tools), complete, spec, run, rubric, goal
                    ),
                )
                pipeline = replace(pipeline, tools=tools)
            work = partial(generate_case, pipeline, complete, spec, run, rubric, goal)
            return await to_its_end(tape, renewing(tape, self.settings, work))

    async def unedited(self) -> Case:
        spec, ready, run = self.attempt.spec, self.ready, await self._read()
        # A judge may be code that reads the metadata, where the label may stand.
        label_fields = {
            top_field(source.metadata) for source in ready.suite.labels if source.metadata
        }
        metadata = {name: value for name, value in run.metadata.items() if name not in label_fields}
        run = replace(run, metadata=metadata)
        label, rubric, mode = ready.label(spec), ready.rubric(spec.rubric_id), ready.suite.mode
        if label is not None and label.value is None:
            raise NoVerdictCase("disputed_label", label.dispute or "")
        if not assistant_indices(run.messages):
            raise NoVerdictCase("no_assistant_turn")
        return Case(
            spec=spec,
            rubric=rubric,
            run=run,
            outcome=PerturbationOutcome(run.messages, confirmed=label is not None),
            expected=None if label is None else label.value,
            verified=label is not None,
            mode=mode,
            objective=ready.test(spec.test).objective,
            levels=rubric.score_levels if mode == "ordinal" else (),
            label=label,
        )

    async def derived(self) -> Case:
        base, spec, ready = self.base, self.attempt.spec, self.ready
        assert base is not None
        derivation = Derivation.of(base, spec, ready.suite.probes[spec.test])
        if derivation.probe.asks:
            return changed(base, spec, await self._asked(derivation, base))
        reads_text = not ready.judges[spec.judge].runs_code
        return changed(base, spec, derivation.made(reads_text=reads_text))

    async def _asked(self, derivation: Derivation, base: Case) -> Derived:
        # No other probe takes the import.
        from pytest_jrh.engine.generate import ProbeModels

        spec, ready = self.attempt.spec, self.ready
        rubrics = tuple(rubric for rubric in ready.suite.rubrics if spec.test not in rubric.skips)
        pipeline = ready.pipelines[spec.test]
        async with self.calls.tape(self.attempt, ready, judging=False) as tape:
            models = ProbeModels(rubrics, base.run.messages, pipeline, make_complete(tape))
            work = partial(derivation.asked, models)
            return await to_its_end(tape, renewing(tape, self.settings, work))

    async def _read(self) -> AgentRun:
        try:
            # In a thread where calls go on meanwhile, or user code takes part in it.
            if self.asks or self.ready.preprocessors:
                return await asyncio.to_thread(self.ready.read, self.attempt.spec)
            return self.ready.read(self.attempt.spec)
        except self.settings.ends_session as error:
            raise SessionEnd(error) from error


async def recorded_with(
    tape: Tape,
    in_time: Sequence[dict[str, Tool]],
    make: Callable[[dict[str, Tool]], Awaitable[Case]],
) -> dict[str, Tool]:
    """The tools that a case was recorded with, or most of it: a grown log must not ask it again."""
    if len(in_time) == 1 or not tape.has_calls:
        return in_time[0]
    answered = []
    for tools in in_time:
        with tape.only_replaying() as lookups, contextlib.suppress(NoVerdictCase, Unscored):
            await make(tools)
        if all(lookup.answer is not None for lookup in lookups):
            return tools
        answered.append(len(lookups))
    return in_time[answered.index(max(answered))]


async def to_its_end(tape: Tape, work: Awaitable[T]) -> T:
    """Await the work, and mark the tape complete where a replay would end in the same way."""
    try:
        result = await work
    except NoVerdictCase:
        await tape.finish()
        raise
    except Unscored as trouble:
        if UNSCORED[trouble.outcome].final:
            await tape.finish()
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
            if not renews_unscored or not await tape.forget(trouble.asked, start):
                raise


class Bases:
    """The verdicts on cases that probes change; the last `keep` are remembered."""

    def __init__(
        self, judged: Callable[[Attempt], Coroutine[Any, Any, Judgment]], keep: int
    ) -> None:
        self._judged = judged
        self._keep = keep
        self._verdicts: OrderedDict[CaseSpec, SharedWork[Judgment]] = OrderedDict()

    def verdict(self, base: Attempt, asker: CaseSpec) -> SharedWork[Judgment]:
        """The verdict on the case of an attempt, which is begun where there is none yet."""
        verdict = self._verdicts.get(base.spec)
        if verdict is None or verdict.is_spent(asker):
            verdict = SharedWork(base, asyncio.create_task(self._judged(base)))
            self._verdicts[base.spec] = verdict
            self._forget()
        self._verdicts.move_to_end(base.spec)
        verdict.asked_by.add(asker)
        return verdict

    def _forget(self) -> None:
        """Forget the oldest, but none whose cost nobody has counted."""
        old = len(self._verdicts) - self._keep
        counted = []
        for spec, verdict in self._verdicts.items():
            if verdict.claimed and verdict.task.done():
                counted.append(spec)
        for spec in counted[: max(0, old)]:
            del self._verdicts[spec]


async def judgment_of(
    judge: SuiteJudge,
    case: Case,
    repeats: int,
    calls: Callable[[int], JudgeCalls],
    tape: Tape,
    attempt: Attempt,
    settings: EngineSettings,
) -> Judgment:
    """Judge a case so often, each time with recordings of its own on the one tape.

    `calls` gives what the judge asks with in a repeat.

    One repeat after another: cases are judged side by side already, and what comes after a repeat
    without a verdict is not worth its cost; a cassette is the same whatever answers first, and
    providers answer what they have just read from their cache. Raises `Unscored` for the first
    repeat without a verdict; those before it stay recorded, and `attempt` keeps their verdicts.
    Where a session only looks what is recorded, it looks at every repeat, and `attempt` counts
    those that are not.
    """
    verdicts: list[Verdict] = []
    missing: list[Unrecorded] = []
    for repeat in range(1, repeats + 1):
        try:
            verdicts.append(await _verdict(judge, case, repeat, calls, tape, settings))
        except Unscored as trouble:
            if settings.ask or not isinstance(trouble, Unrecorded):
                attempt.earlier_verdicts = tuple(verdicts)
                raise
            missing.append(trouble)
    attempt.missing_repeats = len(missing)
    if missing:
        raise missing[0]
    return Judgment(tuple(verdicts))


async def _verdict(
    judge: SuiteJudge,
    case: Case,
    repeat: int,
    calls: Callable[[int], JudgeCalls],
    tape: Tape,
    settings: EngineSettings,
) -> Verdict:
    verdict = await renewing(tape, settings, lambda: judge(case, repeat, calls(repeat)))
    if judge.models or judge.runs_code:
        return verdict
    # What came from no tape: those take secrets out on its way in.
    return replace(verdict, reasoning=settings.redactor.of_code(verdict.reasoning))
