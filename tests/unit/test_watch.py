"""What a judge's code opens or starts by itself is noticed before it happens (rule Q4)."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import ctypes
import ctypes.util
import importlib
import multiprocessing
import os
import platform
import queue
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

import pytest

from pytest_jrh.recording.exchanges import Halted, Opened
from pytest_jrh.recording.watch import Watch, calls_watched, judging, trusted, watched

CLOSED = ("127.0.0.1", 9)
TRUE = "/bin/true"


def datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(b"?", CLOSED)


def process(how: str) -> Callable[[], object]:
    context: Any = multiprocessing.get_context(how)
    return lambda: context.Process(target=len, args=("",)).start()


NOTICED: dict[str, tuple[Callable[[], object], str]] = {
    "connection": (lambda: socket.create_connection(CLOSED), "opened a connection to 127.0.0.1:9"),
    "asyncio": (lambda: asyncio.run(stream()), "opened a connection to 127.0.0.1:9"),
    "datagram": (datagram, "opened a connection to 127.0.0.1:9"),
    "name": (lambda: socket.getaddrinfo("localhost", 80), "opened a connection to localhost:80"),
    "look-up": (lambda: socket.getaddrinfo("a.example", None), "looked up the name a.example"),
    "old look-up": (lambda: socket.gethostbyname("a.example"), "looked up the name a.example"),
    "aliases": (lambda: socket.gethostbyname_ex("a.example"), "looked up the name a.example"),
    "reverse": (lambda: socket.gethostbyaddr("192.0.2.1"), "looked up the address 192.0.2.1"),
    "named port": (
        lambda: socket.getnameinfo(("192.0.2.1", 80), 0),
        "looked up the address 192.0.2.1",
    ),
    "program": (lambda: subprocess.run([TRUE], check=False), "started the program true"),
    "shell": (lambda: os.system(TRUE), "started the program true"),
    "a name of the system's": (lambda: os.system("uname; true"), "started the program uname"),
    "file": (lambda: subprocess.run(["file", "x"], check=False), "started the program file"),
    "posix_spawn": (lambda: os.posix_spawn(TRUE, ["true"], {}), "started the program true"),
    "fork": (os.fork, "started a process"),
    "spawnv": (lambda: os.spawnv(os.P_WAIT, TRUE, ["true"]), "started a process"),
    **{
        f"multiprocessing by {how}": (process(how), "started a process")
        for how in multiprocessing.get_all_start_methods()
    },
}


async def stream() -> None:
    await asyncio.open_connection(*CLOSED)


@pytest.mark.parametrize("name", NOTICED)
def test_what_is_opened_is_told_before_and_stopped(name: str) -> None:
    told: list[str] = []

    def tell(opened: Opened) -> None:
        told.append(opened.said_of("it"))
        raise Halted

    call, what = NOTICED[name]
    with calls_watched():
        token = watched().set(Watch(tell, os.getpid(), replays=True))
        try:
            with pytest.raises(Halted):
                call()
        finally:
            watched().reset(token)
    assert told[0] == f"it {what} by itself"
    assert not multiprocessing.active_children()


def test_what_would_end_the_session_is_refused_wherever_the_rest_may_pass() -> None:
    told: list[Opened] = []
    with calls_watched():
        token = watched().set(Watch(told.append, os.getpid(), replays=False))
        try:
            with pytest.raises(RuntimeError, match="must not put a program in the session's place"):
                os.execv(TRUE, ["true"])
            child = os.fork()
            if child == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        finally:
            watched().reset(token)
    assert [opened.what for opened in told] == ["started the program true", "started a process"]


def test_outside_of_a_judges_code_nothing_is_told() -> None:
    with calls_watched():
        assert subprocess.run([TRUE], check=False).returncode == 0


def test_what_the_machine_is_may_be_asked() -> None:
    told: list[Opened] = []
    with calls_watched():
        token = watched().set(Watch(told.append, os.getpid(), replays=True))
        try:
            platform._Processor.from_subprocess()  # type: ignore[attr-defined]
            platform.architecture()
            ctypes.util.find_library("c")
            for host in ("localhost", "127.0.0.1", None, socket.gethostname()):
                socket.getaddrinfo(host, None if host else 80)
            asyncio.run(asyncio.sleep(0))
        finally:
            watched().reset(token)
    assert told == []


def test_another_interpreter_is_told_of_and_stopped() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    with calls_watched(), Running(replays=True) as judge:
        token = watched().set(judge._watch)
        try:
            # Python says no more than that there is none.
            with pytest.raises((RuntimeError, Halted)):
                importlib.import_module(name).create()
        finally:
            watched().reset(token)
    assert judge.told == [Opened("started an interpreter")]


def by_thread(call: Callable[[], object]) -> None:
    threading.Thread(target=call, name="w").start()


def by_bare_thread(call: Callable[[], object]) -> None:
    _thread.start_new_thread(call, ())


def in_empty_context(call: Callable[[], object]) -> None:
    threading.Thread(target=lambda: Context().run(call), name="w").start()


class Running:
    """A judge that runs: `told` is what it was told of."""

    def __init__(self, *, replays: bool) -> None:
        self.told: list[Opened] = []
        self._watch = Watch(self._tell, os.getpid(), replays=replays)

    def _tell(self, opened: Opened) -> None:
        self.told.append(opened)
        if self._watch.replays:
            raise Halted

    def __enter__(self) -> Running:
        watched()
        judging().add(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        judging().discard(self._watch)


def outcome_of(call: Callable[[], object], start: Callable[[Callable[[], object]], None]) -> str:
    """What a call in another thread ends with."""
    outcomes: queue.Queue[str] = queue.Queue()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - whatever ends it
            outcomes.put(type(error).__name__)
        else:
            outcomes.put("")

    start(run)
    return outcomes.get(timeout=60)


@pytest.mark.parametrize("start", [by_thread, by_bare_thread, in_empty_context])
@pytest.mark.parametrize("name", ["connection", "look-up", "program", "shell", "fork"])
def test_a_thread_that_nobody_knows_is_refused_while_a_judge_replays(
    name: str, start: Callable[[Callable[[], object]], None]
) -> None:
    call, what = NOTICED[name]
    thread = "(no name)" if start is by_bare_thread else "w"
    with calls_watched(), Running(replays=True) as one, Running(replays=True) as other:
        assert outcome_of(call, start) == "PermissionError"
    assert one.told == other.told == [Opened(what, thread)]
    assert one.told[0].said_of("it") == f"while it judged, the thread {thread} {what}"


def test_a_thread_that_nobody_knows_is_named_while_a_judge_is_recorded() -> None:
    with Running(replays=False) as recorded, Running(replays=True) as replayed:
        assert outcome_of(lambda: subprocess.run([TRUE], check=False), by_thread) == ""
    assert recorded.told[0] == replayed.told[0] == Opened("started the program true", "w")


def test_what_the_session_has_started_itself_is_left_alone() -> None:
    def in_trusted_context(call: Callable[[], object]) -> None:
        context = copy_context()
        context.run(trusted().set, True)
        threading.Thread(target=lambda: context.run(call)).start()

    with Running(replays=True) as judge:
        assert subprocess.run([TRUE], check=False).returncode == 0
        assert outcome_of(lambda: subprocess.run([TRUE], check=False), in_trusted_context) == ""
    assert judge.told == []


@pytest.fixture
def line_from_before() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as line:
        # As one that was open before the hook was there.
        address = struct.pack(
            "=HH4s8x",
            line.family,
            socket.htons(server.getsockname()[1]),
            socket.inet_aton("127.0.0.1"),
        )
        assert ctypes.CDLL(None).connect(line.fileno(), address, len(address)) == 0
        yield line


@pytest.mark.skipif(sys.platform == "win32", reason="connects by the C library")
@pytest.mark.parametrize(
    "how", ["send", "sendall", "sendmsg", "sendfile", "makefile", "loop", "TLS send", "TLS write"]
)
def test_data_on_a_connection_from_before_is_told_and_stopped(
    line_from_before: socket.socket, how: str
) -> None:
    line = line_from_before
    host, port = line.getpeername()

    async def by_loop() -> None:
        line.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(line, b"?")

    def by_file() -> None:
        with contextlib.suppress(Halted), line.makefile("wb") as file:
            file.write(b"?")
            file.flush()
        raise Halted

    def by_sendfile() -> None:
        with Path(__file__).open("rb") as file:
            line.sendfile(file)

    def encrypted() -> ssl.SSLSocket:
        context = ssl.create_default_context()
        context.check_hostname = False
        # Nobody answers the handshake that data would begin.
        line.settimeout(5)
        return context.wrap_socket(line, do_handshake_on_connect=False)

    calls: dict[str, Callable[[], object]] = {
        "send": lambda: line.send(b"?"),
        "sendall": lambda: line.sendall(b"?"),
        "sendmsg": lambda: line.sendmsg([b"?"]),
        "sendfile": by_sendfile,
        "makefile": by_file,
        "loop": lambda: asyncio.run(by_loop()),
        "TLS send": lambda: encrypted().send(b"?"),
        "TLS write": lambda: encrypted().write(b"?"),
    }
    judge = Running(replays=True)
    with calls_watched():
        token = watched().set(judge._watch)
        try:
            with pytest.raises(Halted):
                calls[how]()
        finally:
            watched().reset(token)
    assert judge.told[0] == Opened(f"sent data over a connection to {host}:{port}")


def test_work_for_processes_from_before_is_told_and_stopped() -> None:
    told: list[str] = []

    def tell(opened: Opened) -> None:
        told.append(opened.what)
        raise Halted

    here, there = multiprocessing.Pipe()
    words: multiprocessing.Queue[str] = multiprocessing.get_context("fork").Queue()
    # Begins the thread that writes what is put there.
    words.put("x")
    with (
        multiprocessing.get_context("fork").Pool(1) as pool,
        ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor,
        calls_watched(),
    ):
        executor.submit(len, "").result(60)
        token = watched().set(Watch(tell, os.getpid(), replays=True))
        try:
            for call in (
                lambda: pool.apply(len, ("",)),
                lambda: executor.submit(len, ""),
                lambda: here.send("x"),
                lambda: here.send_bytes(b"x"),
                lambda: words.put("x"),
            ):
                with pytest.raises(Halted):
                    call()
        finally:
            watched().reset(token)
        assert pool.apply(len, ("",)) == 0
    assert told == ["gave work to another process"] * 5
    assert words.get() == "x"
    there.close()
