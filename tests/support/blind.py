"""Cases to label blind, and what of them gives their labels away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_jrh.config.suite import Suite, SuiteTest
from pytest_jrh.core.cases import Case, Label, Plan, PlanStep, Skip, Verification
from pytest_jrh.core.ids import case_id, generation_id, perturbed_idx
from pytest_jrh.core.sections import BlindSection
from pytest_jrh.core.transcript import message_text
from pytest_jrh.people.board import LabelBoard
from pytest_jrh.people.labels import write_beside_cases
from pytest_jrh.store.records import case_digest
from tests.browser.material import made_case, review_suite


def blind_suite(folder: Path, **review: Any) -> Suite:
    """The suite of the cases below, with natural runs too."""
    suite = review_suite(folder)
    natural = SuiteTest("labels", "fail", folder / "cases" / "labels", True, {})
    config = suite.config.model_copy(update={"blind": BlindSection(**review)})
    return replace(suite, tests=(*suite.tests, natural), config=config)


def confirmed(number: int) -> Case:
    """A violation that the verifier confirmed; of a turn with reasoning, which the edit lost."""
    case = made_case(number)
    thought = {"type": "reasoning", "reasoning": f"Thought {number} of the agent."}
    before = list(case.run.messages)
    for place, message in enumerate(before):
        if message["role"] == "assistant":
            text = {"type": "text", "text": message["content"]}
            before[place] = {**message, "content": [thought, text]}
    after = list(before)
    after[4] = {**after[4], "content": [{"type": "text", "text": message_text(case.messages[4])}]}
    step = PlanStep(4, f"Goal {number}.", f"Why {number}.")
    [edit] = case.outcome.edits
    edit = replace(edit, editor_reason=f"Idea {number}.", selector_reason=f"Place {number}.")
    outcome = replace(
        case.outcome,
        messages=tuple(after),
        plan=Plan(f"Thesis {number}: a late refund.", (step,)),
        edits=(edit,),
        verification=Verification("FAIL", f"Finding {number}.", None),
    )
    run = replace(case.run, messages=tuple(before))
    return replace(case, verified=True, run=run, outcome=outcome)


def positive(number: int) -> Case:
    """A run that satisfies its rubric as it is."""
    return replace(made_case(number, test="agent_positives"), verified=True)


def rejected(number: int) -> Case:
    """A violation that the verifier did not confirm."""
    case = confirmed(number)
    said = replace(case.outcome.verification, verdict="PASS") if case.outcome.verification else None
    why = Skip("not_confirmed", f"not confirmed: the verifier says PASS of {number}.")
    return replace(
        case,
        verified=False,
        outcome=replace(case.outcome, verification=said, confirmed=False, no_case=why),
    )


def natural(number: int, label: int = 0) -> Case:
    """A run as it is, with a label of people."""
    case = positive(number)
    spec = replace(case.spec, test="labels")
    made = replace(case.outcome, verification=None)
    return replace(case, spec=spec, outcome=made, expected=label, label=Label((label,), "people"))


def all_kinds(number: int) -> list[Case]:
    """So many cases of four kinds in turn, each of another run."""
    kinds = (confirmed, positive, rejected, natural)
    return [kinds[each % 4](each) for each in range(number)]


def labelling(
    suite: Suite, cases: Iterable[Case], people: Any = (), redact: Callable[[str], str] = str
) -> LabelBoard:
    """The board of a session that has made these cases."""
    settings = {suite.name: suite.config.blind}
    write = write_beside_cases([suite])
    board = LabelBoard(settings, people, write, redact=redact, reviewer=None)
    made = list(cases)
    board.announce({generation_id(case.spec) for case in made})
    for case in made:
        board.end(generation_id(case.spec), case)
    return board


COMMON = (
    "agent_perturbation",
    "agent_positives",
    # As a part of an id, and as a value; answers have keys of this name.
    "::labels::",
    ': "labels"',
    "so I cannot refund it. What I can",
    "of the agent.",
    "A refund was asked for.",
    "confirmed by",
    "rejected by",
    "given by",
    '"m4"',
)
"""What the cases have in common that says how one was made."""


def telling(case: Case) -> Iterator[str]:
    """The texts of a case that say how it was made, or which answer is right; no other case has
    them."""
    outcome, spec = case.outcome, case.spec
    yield from (spec.run_id, case_id(spec), perturbed_idx(spec), case_digest(case))
    if outcome.plan is not None:
        yield outcome.plan.thesis
        for step in outcome.plan.steps:
            yield from (step.goal, step.rationale)
    for edit in outcome.edits:
        yield from (edit.editor_reason, edit.selector_reason)
    if outcome.verification is not None and outcome.edits:
        yield outcome.verification.rationale
    if outcome.no_case is not None:
        yield str(outcome.no_case)
