"""The Inspect task: scripted turns through Inspect's mock model, tools executing for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, chain, solver, system_message
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from examples.refund_agent.conversation import Conversation, load_conversations
from examples.refund_agent.orders import opening_orders
from examples.refund_agent.store import Shop
from examples.refund_agent.tools import shop_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUSE_RULES = """\
You are the support agent of Lantern & Loaf, a small kitchen shop. Today is 16 June 2025.

House rules:
1. Before you tell a customer anything about an order that they have not told you themselves, verify them with
   verify_customer, using the delivery postcode that they give you.
2. Refunds follow check_refund_policy: never refund or promise more than it allows. Money only goes back to the
   payment method that the order was paid with.
3. Refunds above 150.00 are for people to decide: hand them over with escalate_to_human, and promise no result.
4. Say only what is true and what you have done. If a tool fails, say so or try again.
"""


@solver
def talk_to_customer() -> Solver:
    """Hold the conversation: after each answer that calls no tool, the customer's next message
    comes.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        shop = Shop(opening_orders(), failures_left=int(state.metadata["payment_failures"]))
        state.tools = shop_tools(shop)
        state = await generate(state, tool_calls="loop")
        for message in state.metadata["customer_messages"][1:]:
            state.messages.append(ChatMessageUser(content=message))
            state = await generate(state, tool_calls="loop")
        state.store.set("ledger", list(shop.ledger))
        return state

    return solve


@scorer(metrics=[accuracy()])
def books_match() -> Scorer:
    """Whether the shop's ledger shows what the conversation should have led to."""

    async def score(state: TaskState, target: Target) -> Score:
        ledger = "; ".join(state.store.get("ledger", [])) or "nothing"
        return Score(value="C" if ledger == target.text else "I", answer=ledger)

    return score


def _sample(conversation: Conversation) -> Sample:
    return Sample(
        id=conversation.id,
        input=conversation.customer_messages[0],
        target="; ".join(conversation.ledger) or "nothing",
        metadata={
            "customer_messages": list(conversation.customer_messages),
            "payment_failures": conversation.payment_failures,
        },
    )


@task
def refund_agent() -> Task:
    """Ten conversations of the support agent with its customers."""
    samples = [_sample(conversation) for conversation in load_conversations()]
    return Task(
        dataset=MemoryDataset(samples, name="refund_agent"),
        solver=chain(system_message(HOUSE_RULES), talk_to_customer()),
        scorer=books_match(),
    )


def scripted_agent(conversations: Sequence[Conversation]) -> Model:
    """Inspect's mock model, speaking the agent's next scripted turn of whatever conversation it is
    shown.
    """
    scripts = {conversation.customer_messages[0]: conversation for conversation in conversations}

    def next_turn(
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        del tools, tool_choice, config
        script = scripts[next(message.text for message in messages if message.role == "user")]
        spoken = sum(message.role == "assistant" for message in messages)
        turn = script.agent_turns[spoken]
        calls = [
            ToolCall(
                id=f"call_{spoken}_{number}", function=call.tool, arguments=dict(call.arguments)
            )
            for number, call in enumerate(turn.calls)
        ]
        output = ModelOutput.from_message(
            ChatMessageAssistant(
                content=turn.text, tool_calls=calls or None, model="scripted", source="generate"
            ),
            stop_reason="tool_calls" if calls else "stop",
        )
        # Without a usage the mock model counts tokens with tiktoken, which downloads its tables.
        read, written = sum(len(message.text) for message in messages) // 4, len(turn.text) // 4
        output.usage = ModelUsage(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return output

    return get_model("mockllm/model", memoize=False, custom_outputs=next_turn)
