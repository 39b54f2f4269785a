"""The lines that say how far a session is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.fork_server import python
from tests.support.model_server import ModelServer
from tests.support.suites import SuiteFiles, write_suite


def test_a_line_now_and_then_says_how_far_it_is_and_none_when_quiet(tmp_path: Path) -> None:
    files = write_suite(tmp_path / "suite", runs=2, tests=["agent_perturbation"])
    hurry = "import pytest_jrh.plugin.session as session\nsession.INTERVAL = 0.2\n"
    (files.folder / "conftest.py").write_text(hurry, encoding="utf-8")
    with ModelServer(delay=0.2) as server:
        lines = run(files, server).splitlines()
        quiet = run(files, server, "-q")
    assert any(line.startswith("jrh 0/2 | ") for line in lines), lines
    assert "jrh 0/2" not in quiet


def run(files: SuiteFiles, server: ModelServer, *arguments: str) -> str:
    command = [
        *python(),
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        files.option,
        "--jrh-record-mode=all",
        *arguments,
    ]
    done = subprocess.run(
        command,
        cwd=files.folder,
        env={**os.environ, **server.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    return done.stdout
