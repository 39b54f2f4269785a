"""The orders that the shop has on file."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from examples.refund_agent.store import Charge, Order


def _one_charge(taken: date, amount: str) -> tuple[Charge, ...]:
    return (Charge(taken, Decimal(amount)),)


def opening_orders() -> dict[str, Order]:
    """Make the orders on file, fresh for each conversation."""
    orders = (
        Order(
            number="KT-1042",
            buyer="Priya Nair",
            postcode="LS6 2AB",
            address="21 Ash Grove, Leeds LS6 2AB",
            item="stovetop kettle",
            unit_price=Decimal("34.90"),
            paid_with="Visa ending 4417",
            charges=_one_charge(date(2025, 6, 4), "39.40"),
            delivered=date(2025, 6, 9),
        ),
        Order(
            number="PN-1107",
            buyer="Martin Cole",
            postcode="BS3 4QT",
            address="5 Dean Lane, Bristol BS3 4QT",
            item="cast-iron pan",
            unit_price=Decimal("64.00"),
            paid_with="PayPal",
            charges=_one_charge(date(2025, 3, 24), "68.50"),
            delivered=date(2025, 3, 28),
        ),
        Order(
            number="BK-1266",
            buyer="Helen Marsh",
            postcode="YO10 3DP",
            address="8 Heslington Court, York YO10 3DP",
            item="bread knife and board",
            unit_price=Decimal("46.00"),
            paid_with="Visa ending 1193",
            charges=_one_charge(date(2025, 5, 28), "50.50"),
            delivered=date(2025, 6, 2),
        ),
        Order(
            number="GL-1150",
            buyer="Owen Pryce",
            postcode="EX4 6NB",
            address="3 Well Street, Exeter EX4 6NB",
            item="recycled-glass tumbler",
            unit_price=Decimal("8.00"),
            quantity=6,
            paid_with="Mastercard ending 9031",
            charges=_one_charge(date(2025, 5, 27), "52.50"),
            delivered=date(2025, 6, 2),
        ),
        Order(
            number="ES-1391",
            buyer="Ingrid Falk",
            postcode="CB1 7TG",
            address="40 Mill Road, Cambridge CB1 7TG",
            item="espresso machine",
            unit_price=Decimal("489.00"),
            delivery_fee=Decimal(),
            paid_with="Amex ending 2005",
            charges=_one_charge(date(2025, 5, 21), "489.00"),
            delivered=date(2025, 5, 26),
        ),
        Order(
            number="BR-1201",
            buyer="Tomasz Zielinski",
            postcode="M20 4WX",
            address="17 Burton Road, Manchester M20 4WX",
            item="bread proving set",
            unit_price=Decimal("62.40"),
            paid_with="Visa ending 7730",
            charges=_one_charge(date(2025, 6, 11), "66.90") * 2,
            delivered=date(2025, 6, 13),
        ),
        Order(
            number="MX-1233",
            buyer="Carla Reyes",
            postcode="NE2 1QF",
            address="62 Clayton Road, Newcastle NE2 1QF",
            item="mixing bowl set",
            unit_price=Decimal("27.50"),
            paid_with="Visa ending 6612",
            charges=_one_charge(date(2025, 5, 23), "32.00"),
            promised=date(2025, 5, 30),
        ),
        Order(
            number="GF-1318",
            buyer="Lena Hoffmann",
            postcode="SW9 8PL",
            address="11 Ferndale Road, London SW9 8PL",
            item="hand-thrown mug",
            unit_price=Decimal("22.00"),
            paid_with="PayPal",
            charges=_one_charge(date(2025, 6, 1), "26.50"),
            delivered=date(2025, 6, 5),
            gift=True,
        ),
        Order(
            number="LN-1302",
            buyer="Ruth Adeyemi",
            postcode="GL50 2HZ",
            address="9 Park Place, Cheltenham GL50 2HZ",
            item="linen tablecloth",
            unit_price=Decimal("56.00"),
            paid_with="Visa ending 3184",
            charges=_one_charge(date(2025, 5, 27), "60.50"),
            delivered=date(2025, 6, 1),
        ),
        Order(
            number="TS-2207",
            buyer="Daniel Osei",
            postcode="OX2 6TN",
            address="28 Kingston Road, Oxford OX2 6TN",
            item="monthly tea box",
            unit_price=Decimal("18.00"),
            delivery_fee=Decimal(),
            paid_with="Visa ending 5521",
            charges=(
                Charge(date(2025, 5, 14), Decimal("18.00")),
                Charge(date(2025, 6, 14), Decimal("18.00")),
            ),
            shipped=(date(2025, 5, 15),),
            subscription=True,
        ),
    )
    return {order.number: order for order in orders}
