"""A budget of calls and dollars, kept by all local processes of a session together.

The ledger is one small file under a lock. A call is entered with its maximum cost before it is
sent, and corrected once its price is known; a process that dies leaves its entry, so the limit
always holds.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from pytest_jrh.files import atomic_write
from pytest_jrh.llm.locks import held_briefly
from pytest_jrh.text import dollars


@dataclass(frozen=True, slots=True)
class Limits:
    """The most calls and US dollars that a session may spend; None is no limit."""

    calls: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has spent or reserved: calls sent, and the maximum of dollars."""

    calls: int = 0
    cost: float = 0.0


class Ledger:
    """The session's budget; `path` is the same for every process that shares it."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.limits = limits
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
            if self.limits.calls is not None and after.calls > self.limits.calls:
                return f"{spent.calls} of {self.limits.calls} calls are spent"
            if self.limits.cost is not None and most > self.limits.cost:
                return (
                    f"this call may cost up to {dollars(most)}, more than the whole limit of "
                    f"{dollars(self.limits.cost)}; a lower `max_tokens` of its stage lowers that"
                )
            if self.limits.cost is not None and after.cost > self.limits.cost:
                return (
                    f"{dollars(spent.cost)} of {dollars(self.limits.cost)} are spent or reserved, "
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
