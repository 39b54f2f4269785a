"""An interpreter without a network, for replays that must not need one."""

from __future__ import annotations

import subprocess
from functools import cache

import pytest

from tests.support.fork_server import WITHOUT_NETWORK, is_served, python

LOCAL = ("-p", "no:rerunfailures")
"""With `-n`: the plugin connects its workers over the network."""
_UNSHARED = ("unshare", "-rn")


def offline() -> list[str]:
    """Python in a network of its own that leads nowhere, not even to loopback."""
    return ["env", f"{WITHOUT_NETWORK}=1", *python()] if is_served() else [*_UNSHARED, *python()]


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
