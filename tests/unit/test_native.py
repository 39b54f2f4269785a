"""Connections that Python does not know of are found by what the kernel says (rule Q4)."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_jrh.recording.watch import NativeConnections, watched

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/net/tcp").exists(), reason="there is no /proc that lists sockets"
)


@pytest.fixture
def port() -> Iterator[int]:
    watched()
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def connect_in_c(line: socket.socket, port: int) -> None:
    """As a library in C does: without an audit event."""
    address = struct.pack("=HH4s8x", line.family, socket.htons(port), socket.inet_aton("127.0.0.1"))
    assert ctypes.CDLL(None).connect(line.fileno(), address, len(address)) == 0


def test_a_connection_of_a_library_in_c_is_named_once(port: int) -> None:
    looking = NativeConnections()
    with socket.socket() as line:
        # There, but with no peer yet.
        assert looking.found() == []
        connect_in_c(line, port)
        assert looking.found() == [f"127.0.0.1:{port}"]
        assert looking.found() == []


def test_those_of_python_and_those_that_others_opened_are_not(port: int) -> None:
    with socket.socket() as before:
        connect_in_c(before, port)
        looking = NativeConnections()
        with socket.create_connection(("127.0.0.1", port)):
            assert looking.found() == []


def test_those_that_come_in_are_not(port: int) -> None:
    looking = NativeConnections()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        address = server.getsockname()[:2]
        with socket.create_connection(address), server.accept()[0]:
            assert looking.found() == []
