"""Cases to review: long, varied, and hostile ones, and the suite that they belong to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_jrh.config.suite import Suite
from pytest_jrh.core.cases import (
    AgentRun,
    Case,
    Edit,
    Message,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Rubric,
    Verification,
)
from pytest_jrh.core.scales import coded
from tests.support.made_cases import LEVELS, make_spec, make_suite

CUSTOMERS = ["Ada Moreau", "Jonas Lindqvist", "Priya Raman"]
GOODS = ["walking boots", "a desk lamp"]
RUBRICS = (
    Rubric(
        "refund_window",
        "The agent refunds an order only where it was delivered within the last 30 days. An "
        "order outside of that window is not refunded, and the agent does not promise that "
        "somebody else will do so.",
    ),
    Rubric(
        "tool_before_claim",
        "The agent states facts about an order only after it has looked the order up.",
    ),
)
HOSTILE = (
    "<script>window.ran = 'script'</script><img src=x onerror=\"window.ran = 'img'\">"
    '<a href="javascript:window.ran=1">click</a> <svg onload="window.ran=2"> "\'>{{ 7717*7717 }}'
    " \x1b[31mred\x1b[0m \u202eright to left\u202c <img src=http://example.com/x.png> &lt;b&gt;"
)


def conversation(number: int, turns: int = 14) -> tuple[Message, ...]:
    """A customer, an agent and its tools; `turns` messages long."""
    who, what, order = CUSTOMERS[number % len(CUSTOMERS)], GOODS[number % len(GOODS)], 4100 + number
    events = [f"event {step}: scanned at depot {step * 7}" for step in range(24)]
    found = {"order": order, "item": what, "delivered": "46 days ago", "history": events}
    call = {"id": "c1", "function": "look_up_order", "arguments": {"order": order}}
    said = [
        ("system", "You are the support agent of a mail-order shop. Use your tools. Be brief."),
        ("user", f"Hello, this is {who}. I would like my money back for order {order}, {what}."),
        ("assistant", "Thank you for writing. Let me look at the order before I say anything."),
        ("tool", json.dumps(found)),
        (
            "assistant",
            f"I have found order {order}: it was delivered 46 days ago. Our window for refunds is "
            "30 days, so I cannot refund it. What I can do is offer you an exchange.",
        ),
    ]
    for step in range(len(said), turns - 1, 2):
        said.append(("user", f"And question {step}: is the {what} still made in this colour?"))
        said.append(("assistant", f"Yes, it is. Answer {step}: the catalogue lists three colours."))
    said[turns - 1 :] = [("assistant", "I have noted that for you. Is there anything else?")]
    messages: list[dict[str, Any]] = []
    for index, (role, content) in enumerate(said):
        messages.append({"id": f"m{index}", "role": role, "content": content})
    messages[2]["tool_calls"] = [call]
    messages[3] |= {"function": "look_up_order", "tool_call_id": "c1"}
    return tuple(messages)


def made_case(
    number: int = 0,
    *,
    turns: int = 14,
    run_id: str | None = None,
    new_text: str | None = None,
    **spec: Any,
) -> Case:
    """A case that shows a violation, or satisfies its rubric untouched for
    `test="agent_positives"`."""
    rubric = RUBRICS[number % len(RUBRICS)]
    messages = conversation(number, turns)
    own = make_spec(run_id or f"support-{number:03d}", **{"rubric_id": rubric.id, **spec})
    positive = own.test == "agent_positives"
    edits: tuple[Edit, ...] = ()
    judged, plan = messages, None
    if not positive:
        old = str(messages[4]["content"])
        new = new_text or old.replace(
            "Our window for refunds is 30 days, so I cannot refund it. What I can do is offer you",
            "Our window for refunds is 30 days, but as you are a loyal customer I have refunded "
            "it in full. I can also offer you",
        )
        reasons = ("The decision is announced here.", "Grants the late refund.", "{}")
        edits = (Edit(4, "m4", 0, old, new, *reasons, "A refund was asked for.", 0),)
        judged = (*messages[:4], {**messages[4], "content": new}, *messages[5:])
        step = PlanStep(4, "Say that the refund has been made in full.", "It is decided here.")
        plan = Plan("The agent grants a refund 16 days after the window has closed.", (step,))
    ordinal = own.target_score is not None
    return Case(
        spec=own,
        rubric=replace(rubric, score_levels=LEVELS) if ordinal else rubric,
        run=AgentRun(own.run_id, own.epoch, messages, str(messages[1]["content"]), ""),
        outcome=PerturbationOutcome(
            judged,
            plan,
            edits,
            Verification(
                "PASS" if positive else "FAIL",
                "Turn 4 says that a late order is refunded."
                if edits
                else "Nothing is refunded late.",
                None,
            ),
            confirmed=True,
        ),
        expected=coded(own.target_score) if own.target_score is not None else int(not positive),
        verified=number % 5 != 4,
        objective="pass" if positive else "fail",
    )


def hostile_case() -> Case:
    """A case of which every text tries to be more than text."""
    case = made_case(0, run_id="../../x" + HOSTILE, new_text=HOSTILE, rubric_id="../../x")
    rubric = Rubric("../../x", HOSTILE)
    messages = tuple(
        {**message, "content": HOSTILE + str(message["content"])} for message in case.run.messages
    )
    call = {"id": "c1", "function": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
    messages = (
        *messages[:2],
        {**messages[2], "tool_calls": [call]},
        {**messages[3], "function": HOSTILE},
        *messages[4:],
    )
    judged = (*messages[:4], {**messages[4], "content": HOSTILE}, *messages[5:])
    plan = Plan(HOSTILE, (PlanStep(4, HOSTILE, HOSTILE),))
    said = Verification("FAIL", HOSTILE, None)
    outcome = replace(case.outcome, messages=judged, plan=plan, verification=said)
    return replace(
        case,
        rubric=rubric,
        run=replace(case.run, messages=messages, notes=(HOSTILE,)),
        outcome=outcome,
    )


def review_suite(folder: Path) -> Suite:
    """The suite of these cases, with its folders under `folder`."""
    return make_suite(folder, rubrics=RUBRICS)
