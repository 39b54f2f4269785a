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
from pytest_jrh.core.model import AgentRun, Completion, Message, ResponseT, Rubric, StageModel
from pytest_jrh.engine.library import Pipeline
from pytest_jrh.llm.calls import parse

SEED = 8234
EACH = 20
"""How many of each way of repeating a value are planted."""
EDITED = 2
"""The turn whose call is edited."""
_ORDERS = ("KT-1042", "PN-1107", "BK-1266", "GL-1150")
_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


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
    """A run whose call in turn `EDITED` sends a refund, and whose `mentions` speak of it again.

    `new_amount` and `new_reference` are what an edit puts in the place of the refund's.
    """

    messages: tuple[Message, ...]
    refund: Refund
    new_amount: float
    new_reference: str
    mentions: range


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


def _digits(refund: Refund) -> list[Message]:
    return said(f"I have refunded {refund.digits} for {refund.order}.")


def _short(refund: Refund) -> list[Message]:
    return said(f"That makes {refund.amount:g} back on your card.")


def _currency(refund: Refund) -> list[Message]:
    spelled = ("£{}", "${}", "{} EUR", "GBP {}")[int(refund.amount) % 4].format(refund.digits)
    return said(f"Your {spelled} is on its way.")


def _comma(refund: Refund) -> list[Message]:
    return said(f"Es sind {refund.digits.replace('.', ',')} € unterwegs.")


def _thousands(refund: Refund) -> list[Message]:
    return said(f"All {refund.amount:,.2f} of it is on its way.")


def _customer(refund: Refund) -> list[Message]:
    return [
        {"role": "user", "content": f"So £{refund.digits} comes back to me, right?"},
        *said("It does."),
    ]


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


def _reference(refund: Refund) -> list[Message]:
    return said(f"Please keep the number {refund.reference} for your bank.")


def _glued(refund: Refund) -> list[Message]:
    spelled = ("GBP{}", "{}EUR", "Total:{}", "({})", "{}/month", "~{}")[int(refund.amount) % 6]
    return said(f"Sent: {spelled.format(refund.digits)}")


def _words(refund: Refund) -> list[Message]:
    return said(f"You get {in_words(int(refund.amount))} pounds back.")


def _sum(refund: Refund) -> list[Message]:
    return said(f"With the delivery of 4.50 that makes {refund.amount + 4.5:.2f} in all.")


LITERAL: Mapping[str, Callable[[Refund], list[Message]]] = {
    "the same digits": _digits,
    "without decimals": _short,
    "with a currency": _currency,
    "with a comma": _comma,
    "with a thousands separator": _thousands,
    "by the customer": _customer,
    "in a call's arguments": _argument,
    "in a text in arguments": _argument_text,
    "in a result": _result,
    "in JSON inside of JSON": _escaped,
    "an id of the result": _reference,
    "beside letters or signs": _glued,
}
OTHERS: Mapping[str, Callable[[Refund], list[Message]]] = {
    "in words": _words,
    "in a sum": _sum,
}
"""Ways that no search for a literal finds."""


def _longer_number(refund: Refund) -> list[Message]:
    return said(f"The whole order came to 1{refund.digits}, of which part is back.")


def _order_number(refund: Refund) -> list[Message]:
    return said(f"Anything else about order ZZ-{int(refund.amount)}7?")


def _other_amount(refund: Refund) -> list[Message]:
    return said(f"Delivery was {refund.amount + 3:.2f}, and stays paid.")


INNOCENT: Mapping[str, Callable[[Refund], list[Message]]] = {
    "a longer number": _longer_number,
    "part of an id": _order_number,
    "another amount": _other_amount,
}


def planted(way: Callable[[Refund], list[Message]], number: int) -> Planted:
    """The run number `number` of this way; the same for the same arguments."""
    rng = random.Random(f"{SEED} {way.__name__} {number}")
    order = rng.choice(_ORDERS)
    # Above 100, so that no day or count is one.
    low, high = (1_003, 8_999) if way is _thousands else (103, 899)
    amount = float(rng.randint(low, high))
    if way not in (_short, _words):
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
    repeated = way(refund)
    return Planted(
        (*head, *repeated, *said("Is there anything else?")),
        refund,
        new_amount,
        f"RF-{int(refund.reference[3:]) + 7}",
        range(len(head), len(head) + len(repeated)),
    )


def in_words(number: int) -> str:
    """A whole number below a thousand in English."""
    if number < len(_ONES):
        return _ONES[number]
    if number < 100:
        ten = _TENS[number // 10 - 2]
        return f"{ten}-{_ONES[number % 10]}" if number % 10 else ten
    rest = f" and {in_words(number % 100)}" if number % 100 else ""
    return f"{_ONES[number // 100]} hundred{rest}"


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


def shares() -> dict[str, int]:
    """Of `EACH` planted in each way, how many are found."""
    ways = {**LITERAL, **OTHERS, **INNOCENT}
    return {
        name: sum(is_found(planted(way, number)) for number in range(EACH))
        for name, way in ways.items()
    }


def lines() -> list[Line]:
    """The share found where the value is literal, in other words, and where there is nothing."""
    found = shares()
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
