"""Interpreters for inner runs of pytest that start in milliseconds: forked off one that has
imported what is heavy. Importing litellm and Inspect takes seconds, and every started interpreter
pays them again. A `fork_server` pays once; within its block, `python()` gives the command that
takes the place of `sys.executable`, and xdist starts its workers with it. What is forked is a
process of its own with the environment, folder, arguments and standard streams of whoever asked. It
is the first of a process group of its own, which gets the SIGINT that its launcher gets, so a test
may press Ctrl-C. A test of what an interpreter imports, or of its parent, starts a real one."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.metadata
import io
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import struct
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from execnet import gateway_io

HEAVY = """fastapi.exceptions filelock hypothesis inspect_ai.log jinja2
litellm.proxy.openai_files_endpoints.common_utils numpy openai.resources.chat
pytest_jrh.llm.client pytest_jrh.recording.recorder pytest_jrh.engine.library
pytest_jrh.plugin.activation pytest_jrh.sources.eval_logs vcr.patch vcr.stubs.aiohttp_stubs
vcr.stubs.httpx_stubs"""
"""What inner runs import, at once or with their first call, that takes longer than to fork."""

_LAUNCHER = Path(__file__).with_name("forked_python.py")

ADDRESS = "JRH_TEST_FORK_SERVER"
"""The variable that says where the server listens."""


def python() -> list[str]:
    """The interpreter that an inner run is started with. Takes `-u`, and `-m` or `-c` with their
    arguments."""
    address = os.environ.get(ADDRESS)
    return [sys.executable, "-I", "-S", str(_LAUNCHER), address] if address else [sys.executable]


LOCAL = ("-p", "no:rerunfailures")
"""With `-n`: the plugin connects its workers over the network."""
_UNSHARED = ("unshare", "-rn")


def offline() -> list[str]:
    """Python in a network of its own that leads nowhere, not even to loopback; nor do its workers,
    which are not forked off a server outside of it."""
    return ["env", "-u", ADDRESS, *_UNSHARED, sys.executable]


@functools.cache
def cuts_network() -> bool:
    """Whether there can be such an interpreter here."""
    try:
        made = subprocess.run([*_UNSHARED, "true"], capture_output=True, check=False)
    except OSError:
        return False
    return made.returncode == 0


def commands(folder: Path) -> Path:
    """A folder beside this one with `python` and `pytest`, forked off an interpreter that has
    imported all."""
    beside = folder.parent / "commands"
    beside.mkdir(exist_ok=True)
    for name, more in (("python", []), ("pytest", ["-m", "pytest"])):
        command = beside / name
        command.write_text(f'#!/bin/sh\nexec {shlex.join([*python(), *more])} "$@"\n')
        command.chmod(0o755)
    return beside


def keep_distributions() -> None:
    """Read once what is installed: each inner run asks two times which of the 150 packages are
    plugins, for a fifth of its time."""
    metadata: Any = importlib.metadata
    read = metadata.distributions
    kept = list(read())
    for kind in {type(distribution) for distribution in kept}:
        for name in ("entry_points", "files", "metadata"):
            setattr(kind, name, property(functools.cache(getattr(kind, name).fget)))

    def distributions(**context: Any) -> Iterable[importlib.metadata.Distribution]:
        found: Iterable[importlib.metadata.Distribution] = read(**context) if context else kept
        return iter(found)

    metadata.distributions = distributions


def is_served() -> bool:
    """Whether a server forks the interpreters of this process already."""
    return ADDRESS in os.environ


@contextlib.contextmanager
def fork_server(folder: Path) -> Iterator[None]:
    """Start a server that listens in the folder. It ends, with all that it forked, at the end of
    the block."""
    address = folder / "fork"
    with socket.socket(socket.AF_UNIX) as listening, pytest.MonkeyPatch.context() as patch:
        listening.bind(str(address))
        listening.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(listening.fileno())],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
        )
        # The server alone listens, so that nobody waits for one that could not start.
        listening.close()
        patch.setenv(ADDRESS, str(address))
        patch.setattr(gateway_io, "popen_args", _popen_args)
        try:
            yield
        finally:
            # Ends a server that is still importing; one that serves sees the end of its input.
            process.terminate()
            process.communicate()


def _popen_args(spec: Any) -> list[str]:
    """Say how execnet starts an interpreter, as its function of this name does."""
    return [*python(), "-u", "-c", gateway_io.popen_bootstrapline]


_Asked = dict[str, Any]
"""What a launcher asks for: `arguments`, `folder`, `environment`, `streams`, `interruptible`."""


@dataclass(frozen=True, slots=True)
class _Forked:
    pid: int
    launcher: socket.socket
    alive: int
    """Reads as ended once the process is gone."""


class _Server:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ, None)
        self._selector.register(listening, selectors.EVENT_READ, None)
        self._forked: list[_Forked] = []

    def serve(self) -> Callable[[], NoReturn] | None:
        """Fork until standard input ends; in a forked process, return what it is to run."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    for forked in self._forked:
                        os.kill(forked.pid, signal.SIGKILL)
                    return None
                if key.fileobj is self._listening:
                    if run := self._fork(self._listening.accept()[0]):
                        return run
                elif key.data in self._forked:
                    self._ended(key.data, killed=key.fileobj is key.data.launcher)

    def _fork(self, launcher: socket.socket) -> Callable[[], NoReturn] | None:
        asked = _received(launcher)
        alive, held = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            launcher.sendall(struct.pack("!i", os.getpid()))
            # Whatever of the server's stayed open here would keep others from seeing that it has
            # ended.
            self._selector.close()
            self._listening.close()
            launcher.close()
            for other in self._forked:
                other.launcher.close()
                os.close(other.alive)
            os.close(alive)
            return lambda: _run(asked)
        os.close(held)
        for stream in asked["streams"]:
            os.close(stream)
        forked = _Forked(pid, launcher, alive)
        self._forked.append(forked)
        self._selector.register(alive, selectors.EVENT_READ, forked)
        self._selector.register(launcher, selectors.EVENT_READ, forked)
        return None

    def _ended(self, forked: _Forked, *, killed: bool) -> None:
        """Tell the launcher how its process ended, or end the process whose launcher was killed."""
        if killed:
            os.kill(forked.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(forked.pid, 0)[1])
        self._forked.remove(forked)
        self._selector.unregister(forked.alive)
        self._selector.unregister(forked.launcher)
        os.close(forked.alive)
        with forked.launcher, contextlib.suppress(BrokenPipeError):
            forked.launcher.sendall(struct.pack("!i", code))


def _received(launcher: socket.socket) -> _Asked:
    head, streams, _, _ = socket.recv_fds(launcher, 4, 3)
    with launcher.makefile("rb") as reader:
        asked = json.loads(reader.read(struct.unpack("!I", head)[0]))
    return {**asked, "streams": streams}


def _run(asked: _Asked) -> NoReturn:
    """Be the interpreter that was asked for, to its end."""
    for number, stream in enumerate(asked["streams"]):
        os.dup2(stream, number)
        os.close(stream)
    obey = signal.default_int_handler if asked["interruptible"] else signal.SIG_IGN
    signal.signal(signal.SIGINT, obey)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    unbuffered = asked["arguments"][0] == "-u"
    how, what, *rest = asked["arguments"][unbuffered:]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _writer(1, unbuffered)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2, unbuffered)  # type: ignore[misc]
    code: object = 0
    try:
        if how == "-m":
            sys.argv, sys.path[0] = ["-m", *rest], asked["folder"]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            exec(what, {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        traceback.print_exc()
        code = 1
    _end(code)


def _writer(number: int, unbuffered: bool) -> io.TextIOWrapper:
    raw = open(number, "wb", buffering=0 if unbuffered else -1, closefd=False)  # noqa: SIM115
    errors = "backslashreplace" if number == 2 else "strict"
    return io.TextIOWrapper(
        raw, "utf-8", errors, line_buffering=number == 2 or raw.isatty(), write_through=unbuffered
    )


def _end(code: object) -> NoReturn:
    """End as an interpreter would, but for freeing modules that the server needs no more of."""
    import atexit
    import threading

    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    private: Any = (threading, atexit)
    private[0]._shutdown()
    private[1]._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


def _import_heavy() -> None:
    """Import pytest's plugins as a run does, with their asserts rewritten, and then all else."""
    from _pytest import config

    keep_distributions()
    with warnings.catch_warnings():
        made = config._prepareconfig(["--rootdir=/", "-c", os.devnull, "-p", "no:cacheprovider"])
        for name in HEAVY.split():
            # Not every version of what is installed has, or can do without, each of them.
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        made._ensure_unconfigure()


def main() -> None:
    """Serve on the socket that was handed over."""
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        _import_heavy()
        gateway_io.popen_args = _popen_args
        gc.collect()
        gc.freeze()
        ended = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        run = _Server(listening).serve()
    if run:
        signal.signal(signal.SIGTERM, ended)
        run()


if __name__ == "__main__":
    main()
