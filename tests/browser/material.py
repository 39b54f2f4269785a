"""Cases to review: long, varied, and hostile ones, and the suite that they belong to."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_jrh.config.suite import Suite
from pytest_jrh.core.cases import Case, Message, Plan, PlanStep, Rubric, Verification
from tests.support.made_cases import calling, given, make_case, make_spec, make_suite, turn

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
    messages = [
        turn(0, "system", "You are the support agent of a mail-order shop. Use your tools."),
        turn(1, "user", f"This is {who}. I would like my money back for order {order}, {what}."),
        calling(2, "Let me look at the order before.", "c1", "look_up_order", order=order),
        given(3, json.dumps(found), "c1", "look_up_order"),
        turn(
            4,
            "assistant",
            f"I have found order {order}: it was delivered 46 days ago. Our window for refunds is "
            "30 days, so I cannot refund it. What I can do is offer you an exchange.",
        ),
    ]
    for step in range(5, turns - 1, 2):
        messages.append(turn(step, "user", f"Question {step}: is the {what} still made in blue?"))
        messages.append(turn(step + 1, "assistant", f"Answer {step}: there are three colours."))
    last = turn(turns - 1, "assistant", "I have noted that for you. Is there anything else?")
    return (*messages[: turns - 1], last)


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
    refunded = str(messages[4]["content"]).replace(
        "so I cannot refund it. What I can do is offer you",
        "but as you are a loyal customer I have refunded it in full. I can also offer you",
    )
    edited = own.test != "agent_positives"
    text = new_text or refunded
    case = make_case(own, messages=messages, new_text=text, edited=edited, place=4)
    rubric = replace(rubric, score_levels=case.rubric.score_levels)
    return replace(case, rubric=rubric, verified=number % 5 != 4)


def hostile_case() -> Case:
    """A case of which every text tries to be more than text."""
    case = made_case(0, run_id="../../x" + HOSTILE, new_text=HOSTILE, rubric_id="../../x")
    messages = [
        {**message, "content": HOSTILE + str(message["content"])} for message in case.run.messages
    ]
    call = {"id": "c1", "function": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
    messages[2]["tool_calls"] = [call]
    messages[3]["function"] = HOSTILE
    outcome = replace(
        case.outcome,
        messages=(*messages[:4], {**messages[4], "content": HOSTILE}, *messages[5:]),
        plan=Plan(HOSTILE, (PlanStep(4, HOSTILE, HOSTILE),)),
        verification=Verification("FAIL", HOSTILE, None),
    )
    run = replace(case.run, messages=tuple(messages), notes=(HOSTILE,))
    return replace(case, rubric=Rubric("../../x", HOSTILE), run=run, outcome=outcome)


def review_suite(folder: Path) -> Suite:
    """The suite of these cases, with its folders under `folder`."""
    return make_suite(folder, rubrics=RUBRICS)
