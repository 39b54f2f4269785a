"""The agent's tools: thin Inspect wrappers that let a tool error be a tool error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inspect_ai.tool import Tool, ToolError, tool

from examples.refund_agent.store import Reason, Shop, ShopError

if TYPE_CHECKING:
    from collections.abc import Callable


def _answer(ask: Callable[[], Any]) -> str:
    try:
        return json.dumps(ask())
    except ShopError as error:
        raise ToolError(str(error)) from error


@tool
def lookup_order(shop: Shop) -> Tool:
    """Look an order up."""

    async def execute(order: str) -> str:
        """Show everything on file about an order or subscription.

        Args:
            order: The order number, such as KT-1042.

        """
        return _answer(lambda: shop.lookup(order))

    return execute


@tool
def verify_customer(shop: Shop) -> Tool:
    """Check who is writing."""

    async def execute(order: str, postcode: str) -> str:
        """Check whether the customer knows the delivery postcode of the order.

        Args:
            order: The order number.
            postcode: The postcode that the customer gave.

        """
        return _answer(lambda: shop.verify(order, postcode))

    return execute


@tool
def list_charges(shop: Shop) -> Tool:
    """Show the payments of an order."""

    async def execute(order: str) -> str:
        """List the payments that were taken for an order.

        Args:
            order: The order number.

        """
        return _answer(lambda: shop.charges(order))

    return execute


@tool
def check_refund_policy(shop: Shop) -> Tool:
    """Ask the refund policy."""

    async def execute(order: str, reason: Reason, quantity: int | None = None) -> str:
        """Say how much of an order may be refunded, and whether a human must decide it.

        Args:
            order: The order number.
            reason: Why the customer wants money back.
            quantity: How many pieces are concerned; all of them if left out.

        """
        return _answer(lambda: shop.policy(order, reason, quantity))

    return execute


@tool
def issue_refund(shop: Shop) -> Tool:
    """Send money back."""

    async def execute(order: str, amount: float) -> str:
        """Refund an amount to the payment method that the order was paid with.

        Args:
            order: The order number.
            amount: The amount in pounds.

        """
        return _answer(lambda: shop.refund(order, amount))

    return execute


@tool
def cancel_subscription(shop: Shop) -> Tool:
    """End a subscription."""

    async def execute(subscription: str) -> str:
        """Cancel a subscription from today on.

        Args:
            subscription: The subscription number.

        """
        return _answer(lambda: shop.cancel(subscription))

    return execute


@tool
def escalate_to_human(shop: Shop) -> Tool:
    """Hand over to people."""

    async def execute(order: str, team: str, note: str) -> str:
        """Open a ticket with a team of colleagues.

        Args:
            order: The order number.
            team: The team, such as refunds, payments, exchanges or customer care.
            note: What the team needs to know.

        """
        return _answer(lambda: shop.escalate(order, team, note))

    return execute


@tool
def send_email(shop: Shop) -> Tool:
    """Write to the customer."""

    async def execute(order: str, subject: str, body: str) -> str:
        """Send an e-mail to the address that the order was placed with.

        Args:
            order: The order number.
            subject: The subject line.
            body: The text.

        """
        if not body.strip():
            raise ToolError("the body is empty; nothing was sent")
        return _answer(lambda: shop.email(order, subject))

    return execute


def shop_tools(shop: Shop) -> list[Tool]:
    """All tools of the agent, working on one shop."""
    makers = (
        lookup_order,
        verify_customer,
        list_charges,
        check_refund_policy,
        issue_refund,
        cancel_subscription,
        escalate_to_human,
        send_email,
    )
    return [make(shop) for make in makers]
