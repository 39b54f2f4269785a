"""Finds TCP connections that were opened outside of Python, by libraries in C such as gRPC's, which
raise no audit event (rule Q4). On Linux, whose `/proc` lists the sockets of a process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from pytest_jrh.recording.own_code.watch import connected, is_address

_SOCKETS = Path("/proc/self/fd")
_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_LINK = "socket:["
_LISTENING = "0A"


class NativeConnections:
    """Tells of each connection once; those that are there when it is made are nobody's."""

    def __init__(self) -> None:
        self._known = _own_sockets()

    def found(self) -> list[str]:
        """The peers of connections since the last look that no Python code opened."""
        new = _own_sockets() - self._known
        if not new:
            return []
        rows = [row for table in _TABLES for row in _rows(table)]
        listening = {row.local_port for row in rows if row.state == _LISTENING}
        by_python = connected()
        by_name = {port for host, port in by_python if not is_address(host)}
        peers = []
        for row in rows:
            if row.inode not in new or not row.port:
                continue
            self._known.add(row.inode)
            inbound = row.local_port in listening
            if not inbound and (row.host, row.port) not in by_python and row.port not in by_name:
                peers.append(f"{row.host}:{row.port}")
        return sorted(set(peers))


class _Row(NamedTuple):
    """A line of the kernel's table: the peer is `host` and `port`, 0 where there is none."""

    local_port: int
    host: str
    port: int
    state: str
    inode: str


def _own_sockets() -> set[str]:
    """The inodes of this process's sockets; none where there is no `/proc`."""
    found: set[str] = set()
    try:
        entries = list(_SOCKETS.iterdir())
    except OSError:
        return found
    for entry in entries:
        try:
            link = str(entry.readlink())
        except OSError:
            # Closed meanwhile, such as the one of the listing.
            continue
        if link.startswith(_LINK):
            found.add(link.removeprefix(_LINK).removesuffix("]"))
    return found


def _rows(table: Path) -> Iterator[_Row]:
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        _, local, remote, state, _, _, _, _, _, inode, *_ = line.split()
        host, _, port = remote.partition(":")
        yield _Row(int(local.partition(":")[2], 16), _host(host), int(port, 16), state, inode)


def _host(digits: str) -> str:
    """An address as the table has it, in words of 32 bits of this machine's own order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    address = ip_address(struct.pack(f"={len(words)}I", *words))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
