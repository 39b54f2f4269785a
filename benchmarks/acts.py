"""Contradictions planted behind an edited call: how many of them are found, by how they repeat
what the edit changed, and how often something else is taken for one.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from benchmarks.measure import Line
from pytest_jrh.cases.pipeline import Goal
from pytest_jrh.core.calls import Completion, ResponseT, StageModel
from pytest_jrh.core.cases import AgentRun, Message, Rubric
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.llm.calls import parse

SEED = 8234
EACH = 20
"""How many of each way of repeating a value are planted."""
EDITED = 2
"""The turn whose call is edited."""
_ORDERS = ("KT-1042", "PN-1107", "BK-1266", "GL-1150")
_IN_WORDS = {
    120: "a hundred and twenty",
    256: "two hundred and fifty-six",
    418: "four hundred and eighteen",
    731: "seven hundred and thirty-one",
}


@dataclass(frozen=True, slots=True)
class Refund:
    """What a way of repeating it is given: the order, its amount, and its reference."""

    order: str
    amount: float
    reference: str

    @property
    def digits(self) -> str:
        """The amount with two decimals."""
        return f"{self.amount:.2f}"


@dataclass(frozen=True, slots=True)
class Planted:
    """A run whose call in turn `EDITED` sends a refund, of which a later turn speaks again.

    `new_amount` and `new_reference` are what an edit puts in the place of the refund's.
    """

    messages: tuple[Message, ...]
    refund: Refund
    new_amount: float
    new_reference: str


def said(text: str) -> list[Message]:
    """A turn of the agent's."""
    return [{"role": "assistant", "content": text}]


def called(name: str, arguments: Mapping[str, Any], result: str) -> list[Message]:
    """A call and its result."""
    call = {"id": "call_9", "function": name, "arguments": arguments, "type": "function"}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": "call_9", "function": name},
    ]


def _currency(refund: Refund) -> list[Message]:
    spelled = ("£{}", "${}", "{} EUR", "GBP {}")[int(refund.amount) % 4].format(refund.digits)
    return said(f"Your {spelled} is on its way.")


def _glued(refund: Refund) -> list[Message]:
    spelled = ("GBP{}", "{}EUR", "Total:{}", "({})", "{}/month", "~{}")[int(refund.amount) % 6]
    return said(f"Sent: {spelled.format(refund.digits)}")


def _customer(refund: Refund) -> list[Message]:
    question = f"So £{refund.digits} comes back to me, right?"
    return [{"role": "user", "content": question}, *said("It does.")]


def _argument(refund: Refund) -> list[Message]:
    arguments = {"order": refund.order, "total": refund.amount}
    return called("close_case", arguments, '{"closed": true}')


def _argument_text(refund: Refund) -> list[Message]:
    note = f"Paid back {refund.digits} today."
    return called("close_case", {"order": refund.order, "note": note}, '{"closed": true}')


def _result(refund: Refund) -> list[Message]:
    found = json.dumps({"order": refund.order, "refunded": refund.digits}, indent=2)
    return called("look_up_order", {"order": refund.order}, found)


def _escaped(refund: Refund) -> list[Message]:
    inner = json.dumps({"sent": refund.digits, "to": "Zoë"})
    return called("read_log", {"order": refund.order}, json.dumps({"entry": inner}))


Way = Callable[[Refund], list[Message]]
LITERAL: Mapping[str, Way] = {
    "the same digits": lambda refund: said(f"I have refunded {refund.digits}."),
    "without decimals": lambda refund: said(f"That makes {refund.amount:g} back on your card."),
    "with a currency": _currency,
    "with a comma": lambda refund: said(f"Es sind {refund.digits.replace('.', ',')} € unterwegs."),
    "with a thousands separator": lambda refund: said(f"All {refund.amount:,.2f} is on its way."),
    "by the customer": _customer,
    "in a call's arguments": _argument,
    "in a text in arguments": _argument_text,
    "in a result": _result,
    "in JSON inside of JSON": _escaped,
    "an id of the result": lambda refund: said(f"Please keep the number {refund.reference}."),
    "beside letters or signs": _glued,
}
OTHERS: Mapping[str, Way] = {
    "in words": lambda refund: said(f"You get {_IN_WORDS[int(refund.amount)]} pounds back."),
    "in a sum": lambda refund: said(f"With the delivery that makes {refund.amount + 4.5:.2f}."),
}
"""Ways that no search for a literal finds."""
INNOCENT: Mapping[str, Way] = {
    "a longer number": lambda refund: said(f"The whole order came to 1{refund.digits}."),
    "part of an id": lambda refund: said(f"And about order ZZ-{int(refund.amount)}7?"),
    "another amount": lambda refund: said(f"Delivery was {refund.amount + 3:.2f}, and stays paid."),
}


def planted(name: str, way: Way, number: int) -> Planted:
    """The run number `number` of a way; the same for the same arguments."""
    rng = random.Random(f"{SEED} {name} {number}")
    order = rng.choice(_ORDERS)
    # Above 100, so that no day or count is one.
    low, high = (1_003, 8_999) if name == "with a thousands separator" else (103, 899)
    amount = float(rng.randint(low, high))
    if name == "in words":
        amount = float(rng.choice(list(_IN_WORDS)))
    elif name != "without decimals":
        amount += rng.choice((0.0, 0.5, 0.95))
    refund = Refund(order, amount, f"RF-{rng.randint(20_000, 79_999)}")
    new_amount = refund.amount + rng.choice((11.0, 17.5, 40.25))
    call = {
        "id": "call_1",
        "function": "issue_refund",
        "arguments": {"order": order, "amount": refund.amount},
        "type": "function",
    }
    result = {"reference": refund.reference, "amount": refund.digits, "to": "the card"}
    head: list[Message] = [
        {"role": "system", "content": "You are the support agent of a shop."},
        {"role": "user", "content": f"My order {order} is broken. Can I have my money back?"},
        {"role": "assistant", "content": "I am sorry. Sending it back.", "tool_calls": [call]},
        {
            "role": "tool",
            "content": json.dumps(result),
            "tool_call_id": "call_1",
            "function": "issue_refund",
        },
    ]
    return Planted(
        (*head, *way(refund), *said("Is there anything else?")),
        refund,
        new_amount,
        f"RF-{int(refund.reference[3:]) + 7}",
    )


class _Stages:
    """Scripted stages that raise the refund of a planted run, and say of what follows that it
    stays: so a contradiction that is found ends the case.
    """

    def __init__(self, run: Planted) -> None:
        self._run = run

    async def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        del messages
        text = json.dumps(self._answer(stage.stage, response_model))
        return Completion(text, parse(text, response_model))

    def _answer(self, stage: str, response_model: type[BaseModel]) -> Mapping[str, Any]:
        run, refund = self._run, self._run.refund
        if stage == "planner":
            step = {"kind": "call", "message_index": EDITED, "call": "1"}
            return {
                "thesis": "Too much is sent.",
                "steps": [{**step, "goal": "Send more.", "rationale": "It is sent here."}],
            }
        if stage == "summary":
            texts = {"summary": "A refund.", "user_intent": "A refund."}
            lists = ("assistant_progress", "outstanding_items", "risks")
            return {**texts, **{name: [] for name in lists}}
        if stage == "verifier":
            return {
                "rationale": "Too much.",
                "verdict": "FAIL",
                "contradiction": "",
                "contradicts_itself": False,
            }
        if "new_content" in response_model.model_fields:
            return {"new_content": "", "reason": "It stays."}
        result = {"reference": run.new_reference, "amount": f"{run.new_amount:.2f}"}
        return {
            "words": "",
            "arguments": json.dumps({"order": refund.order, "amount": run.new_amount}),
            "result": json.dumps({**result, "to": "the card"}),
            "result_is_error": False,
            "reason": "More is sent.",
        }


def is_found(run: Planted) -> bool:
    """Whether what is planted is looked at: another turn is edited, or the case ends for it."""
    pipeline = Pipeline.default("scripted/model", edits="acts", max_edit_rounds=1)
    agent_run = AgentRun("run", 1, run.messages)
    perturber = pipeline.perturber(_Stages(run))
    rubric = Rubric("refunds", "The agent refunds no more than is due.")
    outcome = asyncio.run(perturber.perturb(agent_run, rubric, Goal("fail")))
    if outcome.no_case is None:
        return False
    # What the scripted editor answers about a turn that follows is unusable on purpose.
    return outcome.no_case.kind in ("stale_value", "unusable_edit", "broken_structure")


def lines() -> list[Line]:
    """Contradictions planted behind an edited call: the share found where the value is literal, in
    other words, and where there is nothing.
    """
    found = {}
    for name, way in {**LITERAL, **OTHERS, **INNOCENT}.items():
        found[name] = sum(is_found(planted(name, way, number)) for number in range(EACH))
    literal = sum(found[name] for name in LITERAL)
    missed = [f"{name} {EACH - found[name]}" for name in LITERAL if found[name] < EACH]
    others = ", ".join(f"{name}: {found[name]} of {EACH}" for name in OTHERS)
    innocent = sum(found[name] for name in INNOCENT)
    count, share = EACH * len(LITERAL), literal / (EACH * len(LITERAL))
    return [
        Line(
            "acts: literal contradictions planted after an edited call, found",
            f"{literal} of {count}; missed: {', '.join(missed) or 'none'}",
            "at least 95%",
            0.95 / share if share else 2.0,
            1.0,
        ),
        Line("acts: contradictions without the literal value, found", others, "", 0.0),
        Line(
            "acts: other numbers and ids taken for contradictions",
            f"{innocent} of {EACH * len(INNOCENT)}",
            "at most 0",
            float(innocent),
            0.0,
        ),
    ]
