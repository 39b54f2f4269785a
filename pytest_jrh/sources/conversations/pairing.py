"""Which result belongs to which tool call, by their ids, else by name and order."""

from __future__ import annotations

from collections import deque
from itertools import count


class OpenCalls:
    """The calls of a conversation that have no result yet, in their order."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, str]] = {}
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._all: deque[int] = deque()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, call_id: str, function: str) -> None:
        """Note a call."""
        number = next(self._numbers)
        self._open[number] = (call_id, function)
        self._by_id.setdefault(call_id, deque()).append(number)
        self._by_name.setdefault(function, deque()).append(number)
        self._all.append(number)

    def take(self, call_id: str | None, function: str | None) -> tuple[str, str] | None:
        """Take out the call that a result belongs to: its id and function; None where there is
        none.

        A result that names no call belongs to the first open one of its function, or of any where
        it names no function either.
        """
        if call_id is not None:
            waiting = self._by_id.get(call_id)
        else:
            waiting = self._by_name.get(function) if function is not None else self._all
        while waiting:
            found = self._open.pop(waiting.popleft(), None)
            if found is not None:
                return found
        return None
