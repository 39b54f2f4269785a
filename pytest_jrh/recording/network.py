"""The network as a judge's own code finds it: open while its requests are recorded, else closed to
the code and to every thread that it starts.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, NoReturn

from pytest_jrh.core.errors import holding

_REFUSE: ContextVar[Callable[[str], object] | None] = ContextVar("pytest_jrh_network", default=None)
"""Called with what the code of a context tries, before it reaches the network; it raises."""


@contextlib.contextmanager
def network_closed(refuse: Callable[[str], object] | None) -> Iterator[None]:
    """Close the network to the code in the block, and to the threads that it starts: `refuse` is
    told what it tries, and raises. With None they keep the context of the block, and may connect.
    """
    _ask_before_connecting()
    with holding(_REFUSE, refuse):
        yield


@contextlib.contextmanager
def loading_for_replay() -> Iterator[Mapping[str, None]]:
    """Let the module of a judge's code be imported without a network; gives what it tried to do
    with one.
    """
    tries: dict[str, None] = {}

    def refuse(tried: str) -> NoReturn:
        tries[tried] = None
        raise PermissionError(
            f"pytest-jrh replays a judge, so nothing is sent: it tried to {tried}"
        )

    with network_closed(refuse):
        yield tries


@cache
def _ask_before_connecting() -> None:
    """Let sockets ask the present context, and threads keep that of whoever starts them, for the
    rest of the process.
    """
    # Without types: they let nobody assign to these.
    module: Any = socket
    sockets: Any = socket.socket
    threads: Any = threading.Thread
    pools: Any = ThreadPoolExecutor
    sockets.connect = _asking(sockets.connect, 1)
    sockets.connect_ex = _asking(sockets.connect_ex, 1)
    sockets.sendto = _asking(sockets.sendto, -1)
    module.getaddrinfo = _asking(module.getaddrinfo, 0)
    pair, start, submit = module.socketpair, threads.start, pools.submit

    def socket_pair(*args: Any, **kwargs: Any) -> Any:
        # On Windows a pair of sockets, such as an event loop has, is a connection to itself.
        with holding(_REFUSE, None):
            return pair(*args, **kwargs)

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(pool: ThreadPoolExecutor, /, *args: Any, **kwargs: Any) -> Any:
        return submit(pool, copy_context().run, *args, **kwargs)

    module.socketpair = socket_pair
    threads.start = start_in_context
    pools.submit = submit_in_context


def _asking(real: Callable[..., Any], address_at: int) -> Callable[..., Any]:
    """A function of sockets that may be refused; `address_at` is where its arguments say whom it
    reaches.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        refuse = _REFUSE.get()
        values = (*args, *kwargs.values())
        # Without a host, a name is looked up for this machine itself.
        if refuse is not None and values[address_at]:
            address = values[address_at]
            if not isinstance(address, tuple):
                address = values[address_at:]
            host_and_port = []
            for part in address[:2]:
                is_bytes = isinstance(part, bytes)
                host_and_port.append(part.decode("utf-8", "replace") if is_bytes else str(part))
            refuse(f"reach {':'.join(host_and_port)}")
        return real(*args, **kwargs)

    return call
