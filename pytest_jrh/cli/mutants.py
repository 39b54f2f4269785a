"""Runs a suite's cases with each change of its judge, to find the changes that no case detects.

The judges that a mutated prompt makes, and whether what they ask differs at all.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_jrh.cases.ids import case_id, generation_id
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.cli.operators import MOST_MUTANTS, mutants_of_input, mutants_of_text
from pytest_jrh.config.places import argument
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.model import DEFAULT_SEED, UNSCORED
from pytest_jrh.core.text import counted
from pytest_jrh.engine.attempts import EngineSettings
from pytest_jrh.engine.loading import ReadySuite
from pytest_jrh.engine.runner import Engine
from pytest_jrh.judges import PromptJudge
from pytest_jrh.judges.judge import JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pytest_jrh.cli.operators import Fate, Mutant
    from pytest_jrh.core.model import (
        Case,
        CaseResult,
        CaseSpec,
        Completion,
        Mode,
        RecordMode,
        ResponseT,
        StageModel,
        Verdict,
    )
    from pytest_jrh.core.redact import Redactor
    from pytest_jrh.judges.judge import JudgeCalls, OwnCode, SuiteJudge
    from pytest_jrh.llm.budget import Ledger


@dataclass(frozen=True, slots=True)
class MutatedJudge:
    """A judge with one change; its name is the mutant's."""

    mutant: Mutant
    judge: SuiteJudge

    @property
    def name(self) -> str:
        """The mutant's name, by which its recordings are found."""
        return self.mutant.name

    @property
    def fingerprint(self) -> str:
        """Identifies the judge and its change."""
        return f"{self.judge.fingerprint}-{self.mutant.name}"

    def __getattr__(self, name: str) -> Any:
        """All else is that of the judge that was changed."""
        return getattr(self.judge, name)

    def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Awaitable[Verdict]:
        """Judge the case, as the change has it."""
        if self.mutant.change is not None:
            case = self.mutant.change(case)
        return self.judge(case, repeat, calls)


def mutated(judge: SuiteJudge, mode: Mode, *, most: int, seed: int) -> Iterator[MutatedJudge]:
    """Yield the judge with each change; of more than `most` of a text, so many drawn by `seed`."""
    if isinstance(judge, PromptJudge):
        for which, text in judge.prompts.items():
            for mutant in mutants_of_text(text, which, most=most, seed=seed):
                yield MutatedJudge(mutant, judge.with_prompt(which, mutant.source))
    for mutant in mutants_of_input(mode):
        yield MutatedJudge(mutant, judge)


async def prompt_of(judge: SuiteJudge | MutatedJudge, case: Case) -> list[Mapping[str, Any]] | None:
    """The messages that a judge sends about a case; None for judges by code of their own."""
    if judge.runs_code:
        return None
    try:
        await judge(case, 1, _NoCalls())
    except _AskedError as call:
        return call.messages
    return []


class _AskedError(Exception):
    """Carries the messages of a call that is not made."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.messages = list(messages)


class _NoCalls:
    """Makes no call, and tells which one would be made."""

    async def complete(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        del stage, response_model
        raise _AskedError(messages)

    def run(self, code: OwnCode) -> NoReturn:
        del code
        raise _AskedError(())


FOLDER = "mutants"
"""Where the recordings of mutants are, in the suite's folder of cassettes."""


@dataclass(frozen=True, slots=True)
class MutationSettings:
    """How mutants are asked: on `cases` cases drawn by `seed`, in a record mode, within a budget.

    `mutants` is how many of each text there are at most.

    `ledger` gives the budget of the session by its file. `on_round` is told after each case how
    many mutants are left.
    """

    redactor: Redactor
    cases: int
    mutants: int = MOST_MUTANTS
    seed: int = DEFAULT_SEED
    record_mode: RecordMode = "new_episodes"
    cassette_dir: Path | None = None
    ledger: Callable[[Path], Ledger | None] = lambda _path: None
    on_round: Callable[[int, int, int], None] = lambda _case, _of, _left: None


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What came of a mutant: `by` is the case that it gets wrong, with the score it gave.

    `score` is None in a tie of the repeats, and where the answer could not be used; `asked` counts
    the cases that it was asked about, and `outcome` is that of a case without a verdict.
    """

    mutant: Mutant
    fate: Fate
    by: str = ""
    expected: int | None = None
    score: int | None = None
    asked: int = 0
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Subset:
    """The cases that a judge gets right, as they were drawn, and its verdicts on them.

    `wrong` counts the drawn cases that it gets wrong or does not judge alike each time, and
    `missing` those without a verdict.
    """

    cases: Mapping[CaseSpec, Case]
    results: Mapping[CaseSpec, CaseResult]
    wrong: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class JudgeMutation:
    """What came of the mutants of one judge (None: the suite's only one), and what they cost."""

    judge: str | None
    label: str
    subset: Subset
    results: tuple[MutantResult, ...]
    calls: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class _Mutated(ReadySuite):
    """A suite whose judges are mutants, and whose cases are made."""

    made_cases: Mapping[str, Case] = field(default_factory=dict)

    def made_before(self, spec: CaseSpec) -> Case | None:
        """The case as the unchanged judge was given it."""
        return replace(self.made_cases[generation_id(spec)], spec=spec)


def mutate(
    ready: ReadySuite, name: str | None, settings: MutationSettings, *, say: Callable[[str], None]
) -> JudgeMutation:
    """Hold a judge's mutants against cases that it gets right, if any: else raises `InputError`."""
    judge = ready.judges[name]
    session = secrets.token_hex(16)
    folder = settings.cassette_dir or ready.suite.cassette_dir
    path = folder / ".locks" / f"budget-{session}.json"
    engine_settings = _engine_settings(ready, settings, settings.ledger(path), session)
    try:
        subset = _subset(ready, name, settings, engine_settings)
        mutants = list(mutated(judge, ready.suite.mode, most=settings.mutants, seed=settings.seed))
        differing = asyncio.run(_differing(judge, mutants, subset))
        most = sum(map(len, differing.values())) * ready.suite.repeats_of(name)
        say(
            f"{judge.label}: {counted(len(mutants), 'mutant')} on "
            f"{counted(len(subset.cases), 'case')} that it judges right; at most "
            f"{counted(most, 'verdict')}, a mutant's first mistake ends it."
        )
        return _held_against(ready, name, mutants, differing, subset, settings, engine_settings)
    finally:
        for budget in path.parent.glob(f"{path.stem}*"):
            budget.unlink(missing_ok=True)


def _engine_settings(
    ready: ReadySuite, settings: MutationSettings, ledger: Ledger | None, session: str
) -> EngineSettings:
    return EngineSettings(
        max_workers=ready.suite.evaluation.max_workers,
        redactor=settings.redactor,
        on_case=lambda _case: None,
        rerun_command=lambda _spec: "",
        record_command=lambda _spec, _judged: "",
        judge_record_mode=settings.record_mode,
        cassette_dir=settings.cassette_dir,
        session=session,
        ledger=ledger,
    )


def _subset(
    ready: ReadySuite, name: str | None, settings: MutationSettings, asking: EngineSettings
) -> Subset:
    """Draw cases, of all rubrics and answers in turn, until enough are judged right."""
    made_cases: dict[str, Case] = {}

    def keep(case: Case) -> None:
        made_cases[generation_id(case.spec)] = case

    engine = Engine({ready.suite.name: ready}, replace(asking, on_case=keep))
    drawn = _drawn(ready, name, settings.seed)
    cases: dict[CaseSpec, Case] = {}
    results: dict[CaseSpec, CaseResult] = {}
    wrong = missing = 0
    try:
        while len(cases) < settings.cases:
            batch = list(islice(drawn, settings.cases - len(cases)))
            if not batch:
                break
            engine.start(batch)
            for spec in batch:
                result = engine.result(spec)
                if result.outcome == "agree" and not result.flickers:
                    case = made_cases.get(generation_id(spec)) or ready.made_before(spec)
                    assert case is not None
                    cases[spec], results[spec] = case, result
                elif result.score is not None:
                    wrong += 1
                elif result.outcome in UNSCORED:
                    missing += 1
    finally:
        engine.stop()
    if not cases:
        raise InputError(_nothing_right(ready, name, wrong, missing))
    return Subset(cases, results, wrong, missing)


def _nothing_right(ready: ReadySuite, name: str | None, wrong: int, missing: int) -> Problem:
    label = ready.judges[name].label
    tried = f"{wrong} judged wrong, {missing} without a verdict"
    config = argument(ready.suite.config_file, Path.cwd())
    return Problem(
        f"no case is recorded that {label} judges right ({tried})",
        config,
        hint=f"record the suite first: pytest {shlex.quote(f'--jrh-config={config}')} "
        "--jrh-record-mode=new_episodes",
    )


def _drawn(ready: ReadySuite, name: str | None, seed: int) -> Iterator[CaseSpec]:
    """The suite's judged cases in a seeded order, rubric, label and test in turn."""
    groups: dict[tuple[str, int, str], list[CaseSpec]] = defaultdict(list)
    for spec in ready.specs():
        if spec.judge != name or spec.variant or spec.skip is not None:
            continue
        if ready.is_unlabelled(spec):
            continue
        if ready.test(spec.test).evaluate:
            score = spec.target_score
            if KINDS[spec.test].natural:
                label = ready.label(spec)
                score = None if label is None else label.value
            groups[spec.rubric_id, score or 0, spec.test].append(spec)
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for key in sorted(groups):
        order.shuffle(groups[key])
    turns = zip_longest(*(groups[key] for key in sorted(groups)))
    return (spec for spec in chain.from_iterable(turns) if spec is not None)


async def _differing(
    judge: SuiteJudge, mutants: Sequence[MutatedJudge], subset: Subset
) -> dict[str, list[CaseSpec]]:
    """By mutant, the cases about which it asks something else than the unchanged judge."""
    differing: dict[str, list[CaseSpec]] = {mutant.name: [] for mutant in mutants}
    for spec, case in subset.cases.items():
        prompt = await prompt_of(judge, case)
        for mutant in mutants:
            if prompt is None or await prompt_of(mutant, case) != prompt:
                differing[mutant.name].append(spec)
    return differing


def _held_against(
    ready: ReadySuite,
    name: str | None,
    mutants: Sequence[MutatedJudge],
    differing: Mapping[str, Sequence[CaseSpec]],
    subset: Subset,
    settings: MutationSettings,
    asking: EngineSettings,
) -> JudgeMutation:
    suite = _of_mutants(ready, name, mutants, subset, settings.cassette_dir)
    engine = Engine({ready.suite.name: suite}, replace(asking, cassette_dir=None))
    results: dict[str, dict[CaseSpec, CaseResult]] = {mutant.name: {} for mutant in mutants}
    living = [mutant.name for mutant in mutants]
    rounds = max(map(len, differing.values()), default=0)
    try:
        for turn in range(rounds):
            asking_now = [mutant for mutant in living if turn < len(differing[mutant])]
            specs = [replace(differing[mutant][turn], judge=mutant) for mutant in asking_now]
            engine.start(specs)
            for mutant, spec in zip(asking_now, specs, strict=True):
                results[mutant][differing[mutant][turn]] = engine.result(spec)
            living = [mutant for mutant in living if _lives(results[mutant])]
            waiting = [mutant for mutant in living if turn + 1 < len(differing[mutant])]
            settings.on_round(turn + 1, rounds, len(waiting))
    finally:
        engine.stop()
    calls, cost = 0, 0.0
    for mutant_results in results.values():
        for result in mutant_results.values():
            calls += result.spending.calls
            cost += result.spending.cost
    return JudgeMutation(
        name,
        ready.judges[name].label,
        subset,
        tuple(_result(mutant.mutant, results[mutant.name], subset) for mutant in mutants),
        calls,
        cost,
    )


def _of_mutants(
    ready: ReadySuite,
    name: str | None,
    mutants: Sequence[MutatedJudge],
    subset: Subset,
    cassette_dir: Path | None,
) -> _Mutated:
    """The suite with mutants as its judges, whose recordings are in a folder of their own."""
    folder = (cassette_dir or ready.suite.cassette_dir) / FOLDER
    [settings] = [judge for judge in ready.suite.judges if judge.name == name]
    judges: tuple[JudgeSettings, ...] = tuple(
        replace(settings, name=mutant.name) for mutant in mutants
    )
    suite = replace(ready.suite, judges=judges, cassette_dir=folder)
    values = {value.name: getattr(ready, value.name) for value in fields(ReadySuite)}
    values |= {"suite": suite, "judges": {mutant.name: mutant for mutant in mutants}}
    made_cases = {generation_id(spec): case for spec, case in subset.cases.items()}
    return _Mutated(**values, made_cases=made_cases)


def _lives(results: Mapping[CaseSpec, CaseResult]) -> bool:
    """Whether no verdict of a mutant was another one, and none is missing."""
    return all(result.outcome == "agree" for result in results.values())


def _result(mutant: Mutant, results: Mapping[CaseSpec, CaseResult], subset: Subset) -> MutantResult:
    number = len(results)
    fate: Fate = "unchanged"
    for spec, result in results.items():
        if result.outcome == "disagree":
            return MutantResult(
                mutant, "killed", case_id(spec), result.expected, result.score, number
            )
        if result.outcome != "agree":
            # An answer that cannot be used turns the suite red: the change is noticed.
            fate = "killed" if UNSCORED[result.outcome].final else "no_answer"
            return MutantResult(
                mutant, fate, case_id(spec), result.expected, None, number, result.outcome
            )
        before = subset.results[spec]
        if (result.scores, result.reasoning) != (before.scores, before.reasoning):
            fate = "survived"
    return MutantResult(mutant, fate, asked=number)
