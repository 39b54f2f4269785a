from __future__ import annotations

import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.refund_agent.conversation import load_conversations
from examples.refund_agent.make_log import DEFAULT, make_log
from examples.refund_agent.orders import opening_orders
from examples.refund_agent.store import Shop, ShopError

CONVERSATIONS = {conversation.id: conversation for conversation in load_conversations()}


def samples(log: Path) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(log) as members:
        names = [name for name in members.namelist() if name.startswith("samples/")]
        read = [json.loads(members.read(name)) for name in names]
    return {sample["id"]: sample for sample in read}


def essence(sample: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (message["role"], message["content"], message.get("tool_calls"), message.get("error"))
        for message in sample["messages"]
    ]


class TestShop:
    def test_refund_above_the_limit_is_refused(self) -> None:
        with pytest.raises(ShopError, match=r"above the agent's limit of 150\.00"):
            Shop(opening_orders()).refund("ES-1391", 489)

    def test_no_more_than_was_paid_can_be_refunded(self) -> None:
        shop = Shop(opening_orders())
        shop.refund("KT-1042", 39.40)
        with pytest.raises(ShopError, match=r"0\.00 of what was paid is left"):
            shop.refund("KT-1042", 0.01)

    def test_payment_service_that_times_out_sends_nothing(self) -> None:
        shop = Shop(opening_orders(), failures_left=1)
        with pytest.raises(ShopError, match="timed out"):
            shop.refund("LN-1302", 56)
        assert shop.refund("LN-1302", 56)["reference"] == "RF-7001"
        assert shop.refunded == {"LN-1302": Decimal("56.00")}

    def test_postcode_is_compared_without_case_and_spaces(self) -> None:
        shop = Shop(opening_orders())
        assert shop.verify("KT-1042", "ls62ab")["verified"]
        assert not shop.verify("KT-1042", "LS6 2AC")["verified"]

    @pytest.mark.parametrize(
        ("order", "reason", "quantity", "refundable"),
        [
            ("KT-1042", "damaged", None, "39.40"),
            ("GL-1150", "damaged", 2, "16.00"),
            ("LN-1302", "change_of_mind", None, "56.00"),
            ("PN-1107", "change_of_mind", None, "0.00"),
            ("MX-1233", "late_delivery", None, "32.00"),
            ("KT-1042", "late_delivery", None, "0.00"),
            ("BR-1201", "duplicate_charge", None, "66.90"),
            ("TS-2207", "cancelled_subscription", None, "18.00"),
        ],
    )
    def test_policy_allows_what_its_rule_says(
        self, order: str, reason: Any, quantity: int | None, refundable: str
    ) -> None:
        assert Shop(opening_orders()).policy(order, reason, quantity)["refundable"] == refundable


class TestLog:
    def test_committed_log_is_what_the_task_produces(self, tmp_path: Path) -> None:
        make_log(tmp_path / "again.eval")
        again, committed = samples(tmp_path / "again.eval"), samples(DEFAULT)
        assert {run: essence(sample) for run, sample in again.items()} == {
            run: essence(sample) for run, sample in committed.items()
        }

    @pytest.mark.parametrize("run", CONVERSATIONS)
    def test_script_and_log_agree_on_the_assistant_turns(self, run: str) -> None:
        messages = samples(DEFAULT)[run]["messages"]
        logged = {
            index: message["content"]
            for index, message in enumerate(messages)
            if message["role"] == "assistant"
        }
        assert CONVERSATIONS[run].agent_turns_by_index() == logged
        assert 6 <= len(messages) <= 20

    def test_log_names_neither_folders_nor_the_origin_of_the_code(self) -> None:
        with zipfile.ZipFile(DEFAULT) as members:
            text = b"\n".join(members.read(name) for name in members.namelist())
            spec = json.loads(members.read("header.json"))["eval"]
        assert not {"task_file", "revision", "model_base_url"} & set(spec)
        assert spec["model_args"] == {}
        for place in (Path(__file__).parents[2], Path.home()):
            assert str(place).encode() not in text
