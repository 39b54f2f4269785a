"""A budget of calls and dollars, kept by all local processes of a session together.

The ledger is one small file under a lock. A call is entered with its maximum cost before it is
sent, and corrected once its price is known; a process that dies leaves its entry, so the limit
always holds.

Prices of calls to models, according to litellm.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.model import StageModel
from pytest_jrh.core.text import dollars
from pytest_jrh.core.transcript import message_text
from pytest_jrh.llm.calls import CallRequest, image_sizes
from pytest_jrh.llm.locks import held_briefly
from pytest_jrh.llm.transport import litellm


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has spent or reserved: calls sent, and the maximum of dollars."""

    calls: int = 0
    cost: float = 0.0


class Ledger:
    """The session's budget: the most `calls`, and the most US dollars as their `cost`, that it may
    spend; None is no limit. `path` is the same for every process that shares it.
    """

    def __init__(self, path: Path, *, calls: int | None = None, cost: float | None = None) -> None:
        self.most_calls = calls
        self.most_cost = cost
        self._path = path
        self._lock = path.with_suffix(".lock")

    def enter(self, most: float) -> str | None:
        """Enter a call that costs at most `most` dollars; None if it is allowed, else the reason
        why not.

        Where the ledger cannot be written, as on a full disk, no call is allowed.
        """
        try:
            return self._enter(most)
        except OSError as error:
            return f"the calls cannot be counted in {self._path}: {error.strerror or error}"

    def _enter(self, most: float) -> str | None:
        with held_briefly(self._lock):
            spent = self._read()
            after = Spent(spent.calls + 1, spent.cost + most)
            if self.most_calls is not None and after.calls > self.most_calls:
                return f"{spent.calls} of {self.most_calls} calls are spent"
            if self.most_cost is not None and most > self.most_cost:
                return (
                    f"this call may cost up to {dollars(most)}, more than the whole limit of "
                    f"{dollars(self.most_cost)}; a lower `max_tokens` of its stage lowers that"
                )
            if self.most_cost is not None and after.cost > self.most_cost:
                return (
                    f"{dollars(spent.cost)} of {dollars(self.most_cost)} are spent or reserved, "
                    f"and this call may cost up to {dollars(most)}"
                )
            self._write(after)
        return None

    def correct(self, most: float, actual: float) -> None:
        """Replace a call's maximum cost by its actual cost."""
        if most != actual:
            # If the write fails, the maximum stays entered: the limit holds, and no answer is lost.
            with contextlib.suppress(OSError), held_briefly(self._lock):
                spent = self._read()
                self._write(Spent(spent.calls, spent.cost - most + actual))

    def _read(self) -> Spent:
        try:
            data = json.loads(self._path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return Spent()
        return Spent(data["calls"], data["cost"])

    def _write(self, spent: Spent) -> None:
        atomic_write(self._path, json.dumps({"calls": spent.calls, "cost": spent.cost}))


_LONGEST_ANSWER = 16_384
# In tokens: more than what any provider was seen to count for one in high detail.
_IMAGE = 50_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per token read and written, and the longest answer of the model in tokens."""

    read: float
    written: float
    longest: int = _LONGEST_ANSWER

    def most(self, request: CallRequest) -> float:
        """The maximum cost of a call: a token has at least a byte, an answer ends at its limit."""
        texts = [{**message, "content": message_text(message)} for message in request.messages]
        images = sum(len(image_sizes(message)) for message in request.messages)
        texts_json = json.dumps(texts, ensure_ascii=False)
        schema = json.dumps(request.schema)
        # Providers wrap messages in a few tokens of their own.
        tokens = (
            len(texts_json.encode("utf-8", "replace")) + len(schema) + 16 * len(request.messages)
        )
        tokens += _IMAGE * images
        return tokens * self.read + (request.stage.max_tokens or self.longest) * self.written


@functools.cache
def price_of(model: str) -> Price | None:
    """A model's price according to litellm; None if unknown."""
    try:
        info = litellm().get_model_info(model)
    except Exception:  # noqa: BLE001 - litellm raises a plain Exception for an unknown model
        return None
    read, written = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if not read and not written:
        return None
    return Price(read or 0.0, written or 0.0, info.get("max_output_tokens") or _LONGEST_ANSWER)


def price_for(stage: StageModel) -> Price | None:
    """What a stage's model costs; None if unknown. One that this machine serves is free, unless it
    has a price, as behind a proxy.
    """
    price = price_of(stage.model)
    if price is None and stage.api_base is not None and is_loopback(stage.api_base):
        return Price(0.0, 0.0)
    return price


def is_loopback(url: str) -> bool:
    """Whether a URL is of a server on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def unpriced_reason(limit: float, stages: Iterable[StageModel]) -> str | None:
    """Why a limit in US dollars cannot be enforced for these models; None where it can."""
    unpriced = sorted({stage.model for stage in stages if price_for(stage) is None})
    if not unpriced:
        return None
    return (
        f"--jrh-max-cost={limit:g}: no known price for {', '.join(unpriced)}, so the limit cannot "
        "be enforced; limit the calls with --jrh-max-calls"
    )
