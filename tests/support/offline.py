"""An interpreter without a network, for replays that must not need one."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from tests.support.fork_server import ADDRESS

LOCAL = ("-p", "no:rerunfailures")
"""With `-n`: the plugin connects its workers over the network."""
_UNSHARED = ("unshare", "-rn")


def offline() -> list[str]:
    """Python in a network of its own that leads nowhere, not even to loopback; nor do its workers,
    which are not forked off a server outside of it.
    """
    return ["env", "-u", ADDRESS, *_UNSHARED, sys.executable]


@cache
def _cuts_network() -> bool:
    try:
        made = subprocess.run([*_UNSHARED, "true"], capture_output=True, check=False)
    except OSError:
        return False
    return made.returncode == 0


needs_cut_network = pytest.mark.skipif(
    not _cuts_network(), reason="`unshare -rn` cannot cut the network here"
)
