"""The live line: drawn above what pytest is writing, and taken away without a trace."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_jrh.models import Progress, Spending, Usage
from pytest_jrh.plugin.progress import PLAIN_INTERVAL, LiveLine, PlainLine
from pytest_jrh.results.report import progress_line
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite


def test_the_line_says_how_far_the_session_is_and_when_it_may_be_done() -> None:
    spending = Spending(calls=30, usage=Usage(1000, 200), paid=0.5)
    line = progress_line(Progress(5, 20, spending), 10.0, 100)
    assert line == "jrh: 5 of 20 cases | 30 calls | 1,200 tokens | $0.5000 | about 30.0 s left"
    assert len(progress_line(Progress(5, 20, spending), 10.0, 40)) <= 40


def test_clearing_undoes_what_drawing_did_and_does_nothing_twice() -> None:
    file = io.StringIO()
    line = LiveLine(file, 80, 0.0)
    line.clear()
    assert file.getvalue() == ""
    line.draw(Progress(1, 2))
    line.draw(Progress(2, 2))
    drawn = file.getvalue()
    assert drawn.count("\x1b[L") == 1
    assert "2 of 2 cases" in drawn
    line.clear()
    line.clear()
    assert file.getvalue()[len(drawn) :].count("\x1b[M") == 1


def test_the_line_is_seen_on_a_terminal_alone_and_not_when_quiet(tmp_path: Path) -> None:
    files = write_suite(tmp_path / "suite", runs=1, tests=["agent_perturbation"])
    with ModelServer(delay=0.4) as server:
        assert "jrh: 0 of 1 cases" in on_terminal(files, server)
        assert "jrh: 0 of 1 cases" not in on_terminal(files, server, "-q")
        assert "\x1b[L" not in run(files, server, subprocess.PIPE)


def test_a_plain_line_is_written_once_an_interval_from_a_line_of_its_own() -> None:
    written: list[str] = []

    class Reporter:
        def ensure_newline(self) -> None:
            written.append("(new line)")

        def write_line(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None: ...

    times = iter(PLAIN_INTERVAL * part for part in (0, 0.9, 1, 1.1, 2))
    now = [0.0]
    line = PlainLine(Reporter(), 0.0, clock=lambda: now[0])  # type: ignore[arg-type]
    for now[0] in times:
        line.draw(Progress(1, 4, Spending(calls=3)))
    said = [text for text in written if text != "(new line)"]
    assert [text.rpartition(" | ")[0] for text in said] == ["jrh: 1 of 4 cases | 3 calls | 0 tokens | $0.00"] * 2
    assert written[::2] == ["(new line)"] * 2
    assert "about 1 min 30 s left" in said[0]


@pytest.mark.parametrize("arguments", [(), ("-n2",)], ids=["one process", "xdist"])
def test_where_there_is_no_terminal_a_line_now_and_then_says_how_far_it_is(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    files = write_suite(tmp_path / "suite", runs=2, tests=["agent_perturbation"])
    hurry = "import pytest_jrh.plugin.progress as progress\nprogress.PLAIN_INTERVAL = 0.2\n"
    (files.folder / "conftest.py").write_text(hurry, encoding="utf-8")
    with ModelServer(delay=0.4) as server:
        lines = run(files, server, subprocess.PIPE, *arguments).splitlines()
        quiet = run(files, server, subprocess.PIPE, "-q", *arguments)
    assert any(line.startswith("jrh: 0 of 2 cases | ") for line in lines)
    assert "of 2 cases" not in quiet


def test_a_controller_draws_the_line_from_what_its_workers_report(tmp_path: Path) -> None:
    files = write_suite(tmp_path / "suite", runs=3, tests=["agent_perturbation"])
    with ModelServer(delay=0.1) as server:
        seen = on_terminal(files, server, "-n2")
    assert "jrh: 0 of 3 cases | 0 calls" in seen
    assert "jrh: 2 of 3 cases | 12 calls" in seen
    assert " left" in seen
    # Each line that was drawn was taken away again, and none was drawn once all cases were done.
    assert seen.count("\x1b[L") == seen.count("\x1b[M")
    assert "jrh: 3 of 3 cases" not in seen


def on_terminal(files: SuiteFiles, server: ModelServer, *arguments: str) -> str:
    master, slave = pty.openpty()
    run(files, server, slave, *arguments)
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(master)
    return seen.decode()


def run(files: SuiteFiles, server: ModelServer, output: int, *arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        files.option,
        "--jrh-record-mode=all",
        *arguments,
    ]
    environment = {**os.environ, **server.environment, "TERM": "xterm"}
    done = subprocess.run(
        command, cwd=files.folder, env=environment, stdout=output, stderr=subprocess.DEVNULL, text=True, check=False
    )
    assert done.returncode == 0
    return done.stdout or ""
