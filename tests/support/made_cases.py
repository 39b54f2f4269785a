"""Made cases, suites and results to write and to report on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from pytest_jrh.cases.acts import acts_text
from pytest_jrh.config.schema import Config
from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core.calls import Spending, StageModel, Usage
from pytest_jrh.core.cases import (
    JUDGED,
    UNCOMPARED,
    UNSCORED,
    AgentRun,
    Case,
    CaseSpec,
    Edit,
    EditKind,
    Message,
    Outcome,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Rubric,
    Verification,
    Why,
)
from pytest_jrh.core.files import LinePlace
from pytest_jrh.core.ids import case_id
from pytest_jrh.core.results import CaseResult, CaseSpending, Extra, JudgeLine, ProbeVariant
from pytest_jrh.core.scales import Objective, ScoreLevel, coded
from pytest_jrh.judges.judge import JudgeSettings
from pytest_jrh.people import Grounds
from pytest_jrh.reports.session import SuiteRun
from pytest_jrh.store.ledger import case_result
from pytest_jrh.store.made_cases import SuiteCases
from pytest_jrh.store.records import read_case

RUBRIC = Rubric(
    "refund_policy", "The agent refunds only orders inside the 30-day window.", (), "rubrics.yml", 7
)
LEVELS = tuple(map(ScoreLevel, range(3), ("ignores the policy", "mentions it", "follows it")))
DIGESTS: dict[str, Any] = {"case_digest": "a" * 64, "judge_digest": "b" * 64}
"""What a judged result on disk has beside its verdict."""


def turn(number: int | str, role: str, content: Any, **more: Any) -> Message:
    return {"id": f"m{number}", "role": role, "content": content, **more}


def calling(number: int | str, text: Any, call_id: str, name: str, /, **arguments: Any) -> Message:
    call = {"id": call_id, "function": name, "arguments": arguments}
    return turn(number, "assistant", text, tool_calls=[call])


def given(number: int | str, content: str, call_id: str, name: str) -> Message:
    return turn(number, "tool", content, function=name, tool_call_id=call_id)


MESSAGES: tuple[Message, ...] = (
    turn(0, "user", "Please refund order 17."),
    calling(1, "Let me look that up.", "c1", "look_up", order=17),
    given(2, "bought 45 days ago", "c1", "look_up"),
    turn(3, "assistant", "Order 17 is outside the window, so I cannot refund it."),
)


def case_from(line: bytes) -> Case:
    """The case of a line of some file."""
    return read_case(line, LinePlace(Path("cases.jsonl"), 1, 0, len(line)))


def make_spec(run_id: str = "run-1", **changes: Any) -> CaseSpec:
    return replace(CaseSpec("refunds", "agent_perturbation", RUBRIC.id, run_id, 1), **changes)


def make_edit(before: str, after: str, index: int = 3) -> Edit:
    return Edit(
        message_index=index,
        message_id=f"m{index}",
        round_index=0,
        original_content=before,
        edited_content=after,
        selector_reason="the decision is here",
        editor_reason="grants the refund",
        editor_raw_response='{"new_content": "..."}',
        summary_snapshot="A refund was asked for.",
        dropped_reasoning=0,
    )


def make_case(
    spec: CaseSpec | None = None,
    *,
    messages: Sequence[Message] = MESSAGES,
    new_text: str = "I have refunded order 17 in full.",
    edited: bool = True,
    place: int = -1,
    metadata: dict[str, Any] | None = None,
) -> Case:
    """A case of which one turn, at this place, is edited."""
    spec = spec or make_spec()
    texts = ("Please refund order 17.", "no")
    run = AgentRun(spec.run_id, spec.epoch, tuple(messages), *texts, metadata or {"lang": "en"})
    edits: tuple[Edit, ...] = ()
    judged = tuple(messages)
    plan = None
    if edited:
        index = range(len(messages))[place]
        edits = (make_edit(str(messages[index]["content"]), new_text, index),)
        new = {**messages[index], "content": new_text}
        judged = (*messages[:index], new, *messages[index + 1 :])
        step = PlanStep(index, "grant the refund", "the decision is here")
        plan = Plan("Refund too late.", (step,))
    ordinal = spec.target_score is not None
    positive = spec.test == "agent_positives"
    word: Literal["PASS", "FAIL"] = "PASS" if positive else "FAIL"
    said = Verification(word, "It grants a late refund.", coded(spec.target_score))
    return Case(
        spec=spec,
        rubric=replace(RUBRIC, score_levels=LEVELS) if ordinal else RUBRIC,
        run=run,
        outcome=PerturbationOutcome(
            judged, plan, edits, said, confirmed=True, final_summary="A late refund."
        ),
        expected=coded(spec.target_score) if ordinal else int(not positive),
        verified=True,
        objective="pass" if positive else "fail",
    )


HOSTILE_CALL = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=2'>\"'`</textarea></pre>"
    "\x1b[31m\u202e\x07\n::error file=x::owned\n[3] assistant calls refund\n# h {{ 7*7 }} @octocat"
)
ACT_RUN: tuple[Message, ...] = (
    turn(0, "user", "Order 17 came broken. I want my 56.00 back."),
    calling(1, "Let me see who you are.", "c1", "verify", name="Ada"),
    given(2, '{"ok": true}', "c1", "verify"),
    calling(3, "", "c2", "refund", order=17, amount=56.0, lines=[{"sku": "K1", "sum": 56.0}]),
    given(4, '{"refunded": 56.0, "reference": "R-1"}', "c2", "refund"),
    turn(5, "assistant", "I have refunded 56.00."),
    turn(6, "user", "Thank you."),
)
"""A run with two calls, each with its result."""


def called(message: Message, arguments: dict[str, Any]) -> dict[str, Any]:
    """A turn with other arguments of its first call."""
    first, *others = message["tool_calls"]
    return {**message, "tool_calls": [{**first, "arguments": arguments}, *others]}


def act_edit(
    index: int, kind: EditKind, before: Sequence[Message], after: Sequence[Message], **changes: Any
) -> Edit:
    """An edit of `edits: acts`, as the pipeline makes one."""
    edit = replace(
        make_edit(acts_text(before), acts_text(after), index),
        kind=kind,
        before=tuple(before),
        after=tuple(after),
        editor_reason=f"{kind} at {index}",
    )
    return replace(edit, **changes)


def make_act_case(spec: CaseSpec | None = None, run: Sequence[Message] = ACT_RUN) -> Case:
    """A case in which the identity is not checked, too much is refunded, twice, and the words
    follow: every kind of edit."""
    run = tuple(run)
    arguments = run[3]["tool_calls"][0]["arguments"]
    refund = called(run[3], {**arguments, "amount": 96.0})
    result = {**run[4], "content": '{"refunded": 96.0, "reference": "R-1"}'}
    again = (
        calling("3b", "Once more.", "c3", "refund", **arguments | {"amount": 96.0}),
        given("4b", '{"refunded": 96.0}', "c3", "refund"),
    )
    said = {**run[5], "content": "I have refunded 96.00."}
    unchecked, too_much = "nobody may be refunded unchecked", "it is above what was paid"
    twice = "an order is refunded once"
    stale = "[5] still says 56.00"
    edits = (
        act_edit(1, "omit", run[1:3], (), selector_reason=unchecked),
        act_edit(1, "call", run[3:5], (refund, result), selector_reason=too_much),
        act_edit(3, "insert", (), again, selector_reason=twice),
        act_edit(5, "say", run[5:6], (said,), follows=stale, selector_reason=stale),
    )
    made = (run[0], refund, result, *again, said, *run[6:])
    steps = (
        PlanStep(1, "leave out the check", unchecked, "omit", "c1"),
        PlanStep(3, "refund 96.00", too_much, "call", "c2"),
        PlanStep(5, "refund it again", twice, "insert"),
    )
    case = make_case(spec, messages=run, edited=False)
    plan = Plan("Refund too much, twice, unchecked.", steps)
    return replace(case, outcome=replace(case.outcome, messages=made, plan=plan, edits=edits))


def undone(messages: Sequence[Message], edits: Sequence[Edit]) -> tuple[Message, ...]:
    """The transcript as it was before these edits: of all edits of a made case, its run. An edit of
    `edits: text` has no messages to put back, and stays."""
    restored = list(messages)
    for edit in reversed(edits):
        end = edit.message_index + len(edit.after)
        assert restored[edit.message_index : end] == list(edit.after)
        restored[edit.message_index : end] = edit.before
    return tuple(restored)


def hostile_act_case(size: int = 1_000_000) -> Case:
    """A case of which every call tries to be more than a call: its name, ids, results and
    arguments, nested deeply and so many characters long."""
    deep: Any = HOSTILE_CALL
    for _ in range(90):
        deep = {HOSTILE_CALL[:20]: [deep]} if len(str(deep)) < 5_000 else [deep]
    arguments = {
        "order": 17,
        "amount": 56.0,
        "lines": [{"sku": HOSTILE_CALL, "sum": 56.0}],
        HOSTILE_CALL: deep,
        "long": "<b>" * (size // 3),
    }
    run = []
    for message in ACT_RUN:
        changed = {**message, "id": f"{message['id']}{HOSTILE_CALL}"}
        if message["role"] == "tool":
            changed["function"] = HOSTILE_CALL
            changed["tool_call_id"] = f"{message['tool_call_id']}{HOSTILE_CALL}"
            changed["content"] = f"{HOSTILE_CALL}{message['content']}"
        for call in message.get("tool_calls", ()):
            hostile = {"id": f"{call['id']}{HOSTILE_CALL}", "function": HOSTILE_CALL}
            changed["tool_calls"] = [{**hostile, "arguments": arguments}]
        run.append(changed)
    case = make_act_case(run=run)
    edits = []
    for edit in case.outcome.edits:
        edits.append(replace(edit, follows=HOSTILE_CALL, selector_reason=HOSTILE_CALL))
    return replace(case, outcome=replace(case.outcome, edits=tuple(edits)))


def make_result(
    spec: CaseSpec | None = None, outcome: Outcome = "agree", score: int | None = None, **more: Any
) -> CaseResult:
    spec = spec or make_spec()
    label = coded(spec.target_score)
    if label is None:
        label = int("agent_perturbation" in (spec.test, spec.base))
    judged = outcome in JUDGED
    if score is None:
        score = label if outcome == "agree" else 1 - label
    kind: Any = "" if judged or outcome in UNCOMPARED else outcome
    why = _why(kind, f"{outcome} for a reason")
    result = case_result(spec, None, why)
    spent = {result.case_id: Spending(1, 2, Usage(100, 20), 0.002, 0.001)}
    result = replace(result, spending=CaseSpending(spent))
    if judged:
        said = ("The order is late.",)
        result = replace(result, label=label, labelled_by="made", scores=(score,), reasons=said)
    return result_with(result, **more)


def _why(kind: Any, text: str) -> Why:
    """Why there is no verdict: a skip with a text, or what came of a call."""
    if not kind:
        return Why()
    return Why(kind, stage="judge", cause=text) if kind in UNSCORED else Why(kind, text)


def judge_line(digest: str, prompt: str = "", **changes: Any) -> JudgeLine:
    """A judge of the suite of `make_result`, as a ledger has it; without a prompt it is code."""
    values: dict[str, Any] = {
        "suite": "refunds",
        "kind": "prompt" if prompt else "python",
        "models": ("openai/gpt-4.1-mini",) if prompt else (),
        "parameters": {"repeats": 1},
        "asks_model": bool(prompt),
    }
    return JudgeLine(judge_digest=digest, prompt=prompt, **values | changes)


_EXTRA = frozenset(field.name for field in fields(Extra))
_PROBE = frozenset(field.name for field in fields(ProbeVariant))


def result_with(
    result: CaseResult,
    *,
    outcome: Outcome | None = None,
    detail: str | None = None,
    reasoning: str | None = None,
    **changes: Any,
) -> CaseResult:
    """The result with other values of its line or its extra, or with another `outcome`, `detail`,
    `score` or `reasoning`, which are derived of these; `case_id` stays as it was."""
    extra = {name: changes.pop(name) for name in _EXTRA & changes.keys()}
    probe = {name: changes.pop(name) for name in _PROBE & changes.keys()}
    if probe:
        extra["probe"] = replace(result.extra.probe or ProbeVariant("", ""), **probe)
    why = changes.setdefault("why", result.why)
    if detail is not None:
        why = _why(why.kind, detail)
    if outcome is not None:
        kind: Any = "" if outcome in (*JUDGED, *UNCOMPARED) else outcome
        why = _why(kind, detail or why.detail or why.cause)
    label: Any = changes.get("label", result.label)
    scores = result.scores
    if "score" in changes:
        score = changes.pop("score")
        scores = (0, 1) if score is None else (score,)
    elif outcome == "agree":
        scores = (label,)
    elif outcome == "disagree" and result.score == label:
        scores = (1 - label,)
    scores = changes.setdefault("scores", scores)
    if reasoning is not None or len(scores) != len(result.reasons):
        first = result.reasons[0] if result.reasons else ""
        said = first if reasoning is None else reasoning
        changes.setdefault("reasons", (said,) * len(scores))
    if label is not None and changes.get("labelled_by", result.labelled_by) is None:
        changes["labelled_by"] = "made"
    return replace(result, extra=replace(result.extra, **extra), **{**changes, "why": why})


def make_suite(folder: Path, **changes: Any) -> Suite:
    def model(name: Any) -> StageModel:
        return StageModel(name, "openai/gpt-4.1-mini", temperature=0.7)

    def test(name: str, objective: Objective) -> SuiteTest:
        return SuiteTest(name, objective, folder / "cases" / name, True, {RUBRIC.id: (None,)})

    suite = Suite(
        name="refunds",
        key="",
        config_file=folder / "refunds.yml",
        module_name="refunds",
        mode="binary",
        rubrics=(RUBRIC,),
        tests=(test("agent_perturbation", "fail"), test("agent_positives", "pass")),
        judges=(JudgeSettings(None, model("judge")),),
        config=Config.model_construct(),
        logs=(folder / "log.eval",),
        stages={name: model(name) for name in ("planner", "editor", "summary")},
        cassette_dir=folder / "cassettes",
        results_dir=folder / "outputs" / "refunds",
        custom_prompts_dir=folder / "custom_prompts",
    )
    return suite_with(suite, **changes)


def suite_run(
    suite: Suite, results: Iterable[CaseResult], specs: Iterable[CaseSpec], **changes: Any
) -> SuiteRun:
    """What a session ran of a suite that has these cases."""
    values: dict[str, Any] = {"selected": frozenset(), "nodes": {}, "judges": (), "origin": {}}
    values["grounds"] = Grounds()
    cases = SuiteCases({case_id(spec): spec for spec in specs}, {})
    return SuiteRun(suite, [*results], cases, **{**values, **changes})


def suite_with(suite: Suite, **changes: Any) -> Suite:
    """The suite with other values; those of its config by their own names."""
    sections = {}
    for section in ("cases", "editor", "output", "rand", "suite", "blind"):
        own = getattr(suite.config, section)
        names = type(own).model_fields.keys() - {each.name for each in fields(Suite)}
        values = {name: changes.pop(name) for name in names & changes.keys()}
        sections[section] = own.model_copy(update=values)
    config = suite.config.model_copy(update=sections)
    return replace(suite, config=config, **changes)
