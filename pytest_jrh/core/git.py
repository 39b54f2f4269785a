"""What git says of a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_PATIENCE = 3.0
# Nothing is fetched, asked or locked.
_QUIETLY = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def git_output(folder: Path, *arguments: str) -> str | None:
    """What git says of a folder; None where it does not know, is not there, or takes too long."""
    try:
        done = subprocess.run(  # noqa: S603 - without a shell
            ["git", *arguments],  # noqa: S607
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            env={**os.environ, **_QUIETLY},
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
