"""A bound on the processor time of a piece of work, which also ends what would never end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class TooSlow(AssertionError):
    """The work took more processor time than it may."""


@contextlib.contextmanager
def cpu_seconds(most: float) -> Iterator[None]:
    """Raise `TooSlow` in the block after so many seconds of processor time; other processes do not
    count. Python's `re` looks for signals while it matches, so this ends a pattern that backtracks
    for hours."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"more than {most:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
