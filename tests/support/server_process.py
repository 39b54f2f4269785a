"""A model server in a process of its own, which outlives a killed client and shares no interpreter
with it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.model_server import environment_for

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A model server in a process of its own; `log` is the file that `read_log` reads."""

    base_url: str
    log: Path
    pid: int

    @property
    def environment(self) -> dict[str, str]:
        return environment_for(self.base_url)

    def events(self, event: str | None = None) -> list[dict[str, Any]]:
        """The log's lines so far, all or those of one event ("asked", "answered" or "lost")."""
        return [line for line in read_log(self.log) if event in (None, line["event"])]


@contextlib.contextmanager
def server_process(
    log: Path, *, delay: float = 0.0, port: int = 0, edits: int = 1
) -> Iterator[ServerProcess]:
    """Run the obedient model in a process of its own.

    It ends with the block, and also if this process is killed.
    """
    command = [sys.executable, "-m", "tests.support.model_server", "--until-stdin-closes"]
    command += [
        "--log",
        str(log.resolve()),
        "--delay",
        str(delay),
        "--port",
        str(port),
        "--edits",
        str(edits),
    ]
    with subprocess.Popen(
        command, cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            base_url = process.stdout.readline().strip()
            if not base_url:
                raise RuntimeError(f"the model server did not start: {' '.join(command)}")
            yield ServerProcess(base_url, log, process.pid)
        finally:
            process.stdin.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a server's log; a line that is still being written is left out."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
