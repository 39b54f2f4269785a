"""The shop that the agent works for: orders in memory, and what may be done to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeAlias

TODAY = date(2025, 6, 16)
AGENT_LIMIT = Decimal("150.00")

Reason: TypeAlias = Literal[
    "change_of_mind", "damaged", "late_delivery", "duplicate_charge", "cancelled_subscription"
]


class ShopError(Exception):
    """The shop refuses, or its payment service does; the message is meant for the agent."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One payment taken for an order."""

    taken: date
    amount: Decimal


@dataclass(slots=True)
class Order:
    """An order or a subscription; `quantity` pieces of one item at `unit_price` each."""

    number: str
    buyer: str
    postcode: str
    address: str
    item: str
    unit_price: Decimal
    paid_with: str
    charges: tuple[Charge, ...]
    quantity: int = 1
    delivery_fee: Decimal = Decimal("4.50")
    delivered: date | None = None
    promised: date | None = None
    shipped: tuple[date, ...] = ()
    gift: bool = False
    subscription: bool = False
    cancelled: bool = False

    @property
    def goods(self) -> Decimal:
        """The price of everything in it, without delivery."""
        return self.unit_price * self.quantity

    @property
    def paid(self) -> Decimal:
        """All payments taken for it."""
        return sum((charge.amount for charge in self.charges), Decimal())


@dataclass(frozen=True, slots=True)
class Policy:
    """What the refund policy says about one order and one reason."""

    amount: Decimal
    rule: str
    includes_delivery: bool = False


@dataclass(slots=True)
class Shop:
    """The orders, and a ledger of everything done to them, oldest first.

    `failures_left` is how often the payment service times out before it works.
    """

    orders: dict[str, Order]
    failures_left: int = 0
    ledger: list[str] = field(default_factory=list)
    refunded: dict[str, Decimal] = field(default_factory=dict)

    def lookup(self, number: str) -> dict[str, Any]:
        """Show everything on file about an order, for the agent's eyes."""
        order = self._order(number)
        facts: dict[str, Any] = {
            "order": order.number,
            "buyer": order.buyer,
            "item": order.item,
            "quantity": order.quantity,
            "unit_price": _money(order.unit_price),
            "delivery_fee": _money(order.delivery_fee),
            "delivery_address": order.address,
            "paid_with": order.paid_with,
        }
        if order.subscription:
            facts |= {
                "status": "cancelled" if order.cancelled else "active",
                "shipped": [_day(d) for d in order.shipped],
            }
            facts |= {"last_charge": _day(order.charges[-1].taken)}
        elif order.delivered:
            facts |= {"delivered": _day(order.delivered)}
        elif order.promised:
            facts |= {"promised_by": _day(order.promised), "delivered": None}
        return facts | ({"gift": True} if order.gift else {})

    def verify(self, number: str, postcode: str) -> dict[str, Any]:
        """Say whether a postcode is the one that the order goes to."""
        matches = postcode.replace(" ", "").upper() == self._order(number).postcode.replace(" ", "")
        return {"order": number, "verified": matches}

    def charges(self, number: str) -> list[dict[str, str]]:
        """List the payments taken for an order."""
        return [
            {"taken": _day(charge.taken), "amount": _money(charge.amount), "status": "captured"}
            for charge in self._order(number).charges
        ]

    def policy(self, number: str, reason: Reason, quantity: int | None = None) -> dict[str, Any]:
        """Say what may be refunded, to whom, and whether a person must decide it."""
        order = self._order(number)
        policy = _policy(order, reason, quantity or order.quantity)
        return {
            "order": number,
            "eligible": policy.amount > 0,
            "refundable": _money(policy.amount),
            "includes_delivery_fee": policy.includes_delivery,
            "refund_to": f"original payment method only ({order.paid_with})",
            "needs_human": policy.amount > AGENT_LIMIT,
            "rule": policy.rule,
        }

    def refund(self, number: str, amount: float) -> dict[str, str]:
        """Send money back; refuses amounts above the agent's limit or above what was paid."""
        order, sum_ = self._order(number), Decimal(str(amount)).quantize(Decimal("0.01"))
        if sum_ > AGENT_LIMIT:
            raise ShopError(
                f"{_money(sum_)} is above the agent's limit of {_money(AGENT_LIMIT)}; escalate to "
                "a human"
            )
        left = order.paid - self.refunded.get(number, Decimal())
        if not 0 < sum_ <= left:
            raise ShopError(
                f"cannot refund {_money(sum_)}; {_money(left)} of what was paid is left"
            )
        if self.failures_left:
            self.failures_left -= 1
            raise ShopError(
                "the payment service timed out; nothing was sent, the request may be repeated"
            )
        self.refunded[number] = self.refunded.get(number, Decimal()) + sum_
        self.ledger.append(f"refund {number} {_money(sum_)}")
        reference = f"RF-{7000 + self._count('refund')}"
        return {
            "reference": reference,
            "amount": _money(sum_),
            "to": order.paid_with,
            "arrives": "within 5 working days",
        }

    def cancel(self, number: str) -> dict[str, str]:
        """End a subscription from today on."""
        order = self._order(number)
        if not order.subscription:
            raise ShopError(f"{number} is an order, not a subscription")
        order.cancelled = True
        self.ledger.append(f"cancel {number}")
        return {
            "subscription": number,
            "status": "cancelled",
            "from": _day(TODAY),
            "further_charges": "none",
        }

    def escalate(self, number: str, team: str, note: str) -> dict[str, str]:
        """Hand a matter to people."""
        self._order(number)
        self.ledger.append(f"escalate {number} {team}")
        ticket = f"ESC-{300 + self._count('escalate')}"
        return {
            "ticket": ticket,
            "team": team,
            "answers": "by e-mail, within 1 working day",
            "note": note,
        }

    def email(self, number: str, subject: str) -> dict[str, Any]:
        """Write to the address that the order was placed with."""
        self._order(number)
        self.ledger.append(f"email {number}")
        return {"sent": True, "to": "the address on the order", "subject": subject}

    def _order(self, number: str) -> Order:
        if number not in self.orders:
            raise ShopError(f"no order {number!r}")
        return self.orders[number]

    def _count(self, kind: str) -> int:
        return sum(entry.startswith(kind) for entry in self.ledger)


def _policy(order: Order, reason: Reason, quantity: int) -> Policy:
    nothing = Decimal()
    since_delivery = (TODAY - order.delivered) if order.delivered else None
    match reason:
        case "change_of_mind":
            rule = (
                "unused items: within 30 days of delivery, price of the item without the "
                "delivery fee; to be posted back within 14 days with the label in the parcel"
            )
            in_time = since_delivery is not None and since_delivery <= timedelta(days=30)
            return Policy(order.goods if in_time else nothing, rule)
        case "damaged":
            rule = (
                "damaged or faulty: within 60 days of delivery, price of the pieces concerned, "
                "and the delivery fee if the whole order is concerned; goods up to 150.00 need "
                "not be sent back"
            )
            whole = quantity == order.quantity
            amount = order.unit_price * quantity + (order.delivery_fee if whole else nothing)
            in_time = since_delivery is not None and since_delivery <= timedelta(days=60)
            return Policy(amount if in_time else nothing, rule, includes_delivery=whole)
        case "late_delivery":
            rule = (
                "not delivered 14 days after the promised date: everything paid, no "
                "compensation beyond it"
            )
            late = (
                order.promised is not None
                and order.delivered is None
                and (TODAY - order.promised).days > 14
            )
            return Policy(order.paid if late else nothing, rule, includes_delivery=late)
        case "duplicate_charge":
            rule = "charged more than once: every payment but one; bank fees are not ours to refund"
            return Policy(order.paid - order.charges[0].amount, rule, includes_delivery=True)
        case "cancelled_subscription":
            rule = (
                "subscriptions: the last payment if its box has not been shipped; shipped "
                "boxes are not refunded"
            )
            unshipped = not order.shipped or order.shipped[-1] < order.charges[-1].taken
            return Policy(order.charges[-1].amount if unshipped else nothing, rule)


def _money(amount: Decimal) -> str:
    return f"{amount:.2f}"


def _day(day: date) -> str:
    return day.isoformat()
