"""Enter on the terminal that pytest was started from, while pytest's capture hides it from
`sys.stdin`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_MOST = 4096


@dataclass
class Keyboard:
    """A terminal's input under a file descriptor of its own.

    Polled, so that a debugger may read it in between.
    """

    descriptor: int
    ended: bool = False

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Show nothing of what is typed in this block: an echoed Enter would tear pytest's line
        apart.
        """
        import termios

        if not self.in_foreground:
            yield
            return
        before = termios.tcgetattr(self.descriptor)
        silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(self.descriptor, termios.TCSANOW, silent)
        try:
            yield
        finally:
            if self.in_foreground:
                termios.tcsetattr(self.descriptor, termios.TCSANOW, before)

    def entered(self) -> bool:
        """Whether Enter was pressed on an empty line since the last call."""
        import select

        if (
            self.ended
            or not self.in_foreground
            or not select.select([self.descriptor], [], [], 0)[0]
        ):
            return False
        try:
            line = os.read(self.descriptor, _MOST)
        except OSError:
            line = b""
        self.ended = not line
        return bool(line) and not line.strip()

    def close(self) -> None:
        """Give the file descriptor back; doing it twice is fine."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor, self.ended = -1, True

    @property
    def in_foreground(self) -> bool:
        """Whether this process may use the terminal now: one in the background is stopped if it
        does.
        """
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            # A terminal that does not control this process cannot stop it either.
            return not self.ended


def terminal_input() -> Keyboard | None:
    """The terminal on standard input, while nothing else captures it.

    None where there is none, and on Windows.
    """
    if sys.platform == "win32":
        return None
    import termios

    try:
        descriptor = os.dup(0)
    except OSError:
        return None
    if not os.isatty(descriptor):
        os.close(descriptor)
        return None
    found = Keyboard(descriptor)
    if found.in_foreground:
        # What was typed before anybody was asked is no answer.
        termios.tcflush(descriptor, termios.TCIFLUSH)
    return found
