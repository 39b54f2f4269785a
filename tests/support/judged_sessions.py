"""Sessions of judges whose worth is known, and transcripts that mean harm, for everything that
reports them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import storable
from pytest_jrh.core.cases import Case, CaseSpec, Message, Rubric
from pytest_jrh.core.files import LineFile
from pytest_jrh.core.ids import generation_id
from pytest_jrh.core.redact import NO_SECRETS
from pytest_jrh.core.results import CaseResult, JudgeLine
from pytest_jrh.core.scales import coded
from pytest_jrh.core.sections import GateRules
from pytest_jrh.reports.report import Display
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.terminal import TerminalReport
from pytest_jrh.stats.decision import Held, decide
from pytest_jrh.stats.verdicts import Baseline, Scope, short, update
from pytest_jrh.store.made_cases import RecordIndex, read_spools
from pytest_jrh.store.records import stored_line
from tests.support.figures import comparison_of
from tests.support.made_cases import (
    LEVELS,
    MESSAGES,
    RUBRIC,
    judge_line,
    make_case,
    make_result,
    make_spec,
    result_with,
)

Answer: TypeAlias = "Callable[[CaseSpec, int], int]"

DIGEST = "0123456789abcdef" * 4
INJECTION, LAYOUT = "prompt_injection", "format_invariance"
PLACES = ("assistant_turn", "tool_result")
EARLIER_JUDGE = "fedcba9876543210" * 4
HOSTILE = (
    "<script>alert('x')</script><img src=x onerror=alert(1)> </script></pre></code></details> ]]> "
    "<!-- =cmd|' /C calc'!A0 \x1b[31mred\x1b[0m \x00 \u202egnp.exe \u2066 ``` ` ```` ~~~ | pipe | "
    "@octocat [link](javascript:alert(1)) https://evil.example www.evil.example a@evil.example #1 "
    "**bold** _it_ "
    "\n\n# heading\n- item\n> quote\n::error file=x,line=1::owned\n%0A {{ 7*7 }} {% raw %} ${7*7} "
    "&lt;b&gt; \ud800"
)


def right(spec: CaseSpec, expected: int) -> int:
    return expected


def printed(session: Session, width: int = 80, verbosity: int = 0) -> list[str]:
    """All that the terminal says of a session."""
    display = Display(Path("/repo"), width, verbosity)
    return [line.text for line in TerminalReport().lines(session, display)]


def always(score: int) -> Answer:
    return lambda spec, expected: score


def coin(seed: int = 1) -> Answer:
    rng = random.Random(seed)
    return lambda spec, expected: rng.randrange(2)


def wrong_on(*runs: str) -> Answer:
    return lambda spec, expected: 1 - expected if spec.run_id in runs else expected


def misses(number: int) -> Answer:
    """A judge that misses the violations of so many runs of `tone`."""

    def answer(spec: CaseSpec, expected: int) -> int:
        missed = spec.rubric_id == "tone" and int(spec.run_id.split("-")[-1]) < number
        return 0 if missed else expected

    return answer


def judged(
    answer: Answer, runs: int = 12, rubrics: Sequence[str] = ("refund_policy", "tone"), **more: Any
) -> list[CaseResult]:
    """The results of a judge on both made tests of every rubric and run."""
    results = []
    for test in (name for name, kind in KINDS.items() if kind.is_made):
        for rubric in rubrics:
            for run in range(runs):
                spec = make_spec(f"run-{run:03}", test=test, rubric_id=rubric, **more)
                results.append(result_of(spec, answer))
    return results


def panel(answers: dict[str, Answer], runs: int = 12) -> list[CaseResult]:
    """The results of several judges on the same cases."""
    results = []
    for judge, answer in answers.items():
        results += judged(answer, runs=runs, judge=judge)
    return results


def derived(
    turned: Sequence[str] = (),
    *,
    probe: str = LAYOUT,
    variants: Sequence[str] = ("json_layout", "ids"),
    runs: int = 20,
    base_scores: tuple[int, ...] = (1,),
    judge: str | None = None,
) -> list[CaseResult]:
    """Results of a probe on violated cases, the variants in turn; `turned` are the variants that
    turn the verdict."""
    results = []
    for run in range(runs):
        variant = variants[run % len(variants)]
        spec = make_spec(
            f"run-{run:03}", test=probe, base="agent_perturbation", variant=variant, judge=judge
        )
        score = 0 if variant in turned else 1
        result = make_result(
            spec, "agree" if score else "disagree", score, case_digest=DIGEST, judge_digest=DIGEST
        )
        results.append(result_with(result, base_scores=base_scores))
    return results


def scored(answer: Answer, runs: int = 10) -> list[CaseResult]:
    """The results of an ordinal judge on every level of one scale."""
    specs = [
        make_spec(f"run-{run:03}", suite="helpfulness", target_score=level.score)
        for run in range(runs)
        for level in LEVELS
    ]
    return [result_of(spec, answer) for spec in specs]


def result_of(spec: CaseSpec, answer: Answer) -> CaseResult:
    expected = int(spec.test == "agent_perturbation")
    if spec.target_score is not None:
        expected = coded(spec.target_score)
    given = answer(spec, expected)
    outcome = "agree" if given == expected else "disagree"
    return make_result(spec, outcome, given, case_digest=DIGEST, judge_digest=DIGEST)  # type: ignore[arg-type]


def session_of(
    results: Iterable[CaseResult],
    before: Iterable[CaseResult] | None = None,
    *,
    said_before: str = "",
    prompt_before: str | None = None,
    judges: Sequence[JudgeLine] = (),
    **rules: object,
) -> Session:
    """A session with its gate, where there is a baseline, of another judge, or a rule;
    `said_before` is the reasoning and `prompt_before` the prompt of the baseline's judge, and
    `judges` are those of now."""
    given = list(results)
    rubrics = {(result.spec.suite, result.spec.rubric_id): rubric_of(result) for result in given}
    decisions = {}
    baseline = None
    accepted = Baseline()
    former_prompts = []
    if prompt_before is not None:
        digest = short(EARLIER_JUDGE)
        former_prompts = [judge_line(digest, prompt_before, judge=each.judge) for each in judges]
    as_before: dict[str, Any] = {"reasoning": said_before, "judge_digest": EARLIER_JUDGE}
    for suite in dict.fromkeys(result.spec.suite for result in given):
        own = [result for result in given if result.spec.suite == suite]
        scope = Scope.of(result.case_id for result in own)
        if before is not None:
            old = [result_with(each, **as_before) for each in before if each.spec.suite == suite]
            old_scope = Scope.of(each.case_id for each in old)
            baseline = update(Baseline(), old, old_scope, former_prompts).baseline
        gate = GateRules(**rules)  # type: ignore[arg-type]
        decisions[suite] = decide(comparison_of(baseline, own, scope), gate, Held(scope))
        if baseline is not None:
            accepted = replace(baseline, cases={**accepted.cases, **baseline.cases})
    nodes = {
        result.case_id: f"suites/{result.spec.suite}.jrh.yml::{result.case_id.partition('::')[2]}"
        for result in given
    }
    earlier: dict[str, CaseResult] = {}
    changes = []
    for each in decisions.values():
        if each.comparison is None:
            continue
        compared = each.comparison.compared
        earlier |= {case_id: accepted.cases[case_id] for case_id in compared.ids}
        for judge in judges:
            ids = compared.ids[compared.judge.equals(judge.judge)]
            if change := accepted.prompt_change(judge, accepted.earlier_judges(ids)):
                changes.append(change)
    return Session(
        given,
        earlier=earlier.get,
        prompt_changes=changes,
        rubrics=rubrics,
        decisions=decisions,
        wall_seconds=3.2,
        nodes=nodes,
        commands={case_id: f"pytest '{node}'" for case_id, node in nodes.items()},
    )


def hostile_session(text: str = HOSTILE) -> Session:
    """A session whose names, reasons and prompts, and those of its baseline, are all one text."""
    sides = []
    for answer in (wrong_on("run-001"), right):
        results = [make_result(make_spec("z"), "refused", detail=text)]
        for judge, suite in ((f"a {text}", "refunds"), (f"b {text}", text)):
            results += judged(answer, runs=3, judge=judge, rubrics=("tone",), suite=suite)
            of_probe = derived(["json_layout"], judge=judge)
            results += [result_with(each, suite=suite) for each in of_probe]
        name = storable(text)[0]
        sides.append([result_with(each, rubric_id=name, reasoning=text) for each in results])
    judges = [judge_line(DIGEST, f"{text} now", judge=f"a {text}")]
    return session_of(*sides, said_before=text, prompt_before=text, judges=judges)


def rubric_of(result: CaseResult) -> Rubric:
    spec = result.spec
    levels = LEVELS if spec.target_score is not None else ()
    return replace(RUBRIC, id=spec.rubric_id, file="/repo/suites/rubrics.yml", score_levels=levels)


def spooled(
    folder: Path,
    results: Iterable[CaseResult],
    messages_of: Callable[[CaseResult], Sequence[Message]] = lambda result: MESSAGES,
    text: str = "I have refunded order 17 in full.",
) -> RecordIndex:
    """Make the case of every result, and say where its record lies."""
    cases = {}
    for result in results:
        spec = make_spec(
            result.spec.run_id,
            suite=result.spec.suite,
            test=result.spec.test,
            rubric_id=result.spec.rubric_id,
            target_score=result.spec.target_score,
        )
        if spec not in cases and result.outcome in ("agree", "disagree"):
            edited = result.spec.test == "agent_perturbation"
            case = make_case(spec, messages=messages_of(result), edited=edited, new_text=text)
            cases[spec] = replace(case, rubric=replace(case.rubric, id=result.spec.rubric_id))
    return _stored(folder, cases.values())


def _stored(folder: Path, cases: Iterable[Case]) -> RecordIndex:
    spool = LineFile(folder / uuid4().hex)
    ids = set()
    for case in cases:
        ids.add(generation_id(case.spec))
        spool.add(stored_line(case, NO_SECRETS))
    spool.close()
    return read_spools([spool.path], frozenset(ids)).made


def session_about(folder: Path, case: Case) -> Session:
    """A session with one case, which the judge got wrong, and its record."""
    result = make_result(case.spec, "disagree", 0, reasoning="It was refunded once.")
    return replace(session_of([result]), records=_stored(folder / "spool", [case]))
