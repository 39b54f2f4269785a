"""A session of pytest, or another command, with its page open, and one who decides or labels there
over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.plugin.recorded import environment
from tests.support.fork_server import python


@dataclass
class Reviewer:
    """Somebody who was let in: a client, and the way to his or her cases."""

    client: httpx.Client
    base: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.client.get(self.base).json()["rows"]
        return rows

    def give(self, key: str, label: object, **more: object) -> httpx.Response:
        return self.client.post(f"{self.base}/{key}/label", json={"label": label, **more})

    def finish(self) -> None:
        """End it, as the last one who labels."""
        finish = self.base.replace("/cases", "/finish")
        assert self.client.post(finish, json={}).json()["others"] == []


@contextmanager
def labelling_session(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, module: str = "pytest"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The session, and the address that it printed."""
    interpreter = python() if module == "pytest" else [sys.executable]
    command = [*interpreter, "-u", "-m", module, *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        seen, found = "", None
        try:
            for line in process.stdout:
                seen += line
                found = re.search(r"(?:the cases|the cases blind|label them) at (http\S+)", line)
                if found:
                    break
            assert found, seen
            yield process, found[1]
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def entered(url: str) -> Iterator[httpx.Client]:
    """A client that was let in by the address of a page."""
    origin = url.partition("/?")[0]
    headers = {"origin": origin}
    with httpx.Client(base_url=origin, headers=headers, trust_env=False, timeout=30) as client:
        assert client.get(url).status_code == 200
        yield client


def news(client: httpx.Client) -> Iterator[dict[str, Any]]:
    """What the page is told, as it comes."""
    with client.stream("GET", "/events", timeout=60) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


@contextmanager
def let_in(url: str, name: str = "ann") -> Iterator[Reviewer]:
    """Enter under a name, once the sample is drawn."""
    with entered(url) as client:
        for piece in news(client):
            if piece["progress"]["ended"] == piece["progress"]["total"] > 0:
                break
        key = client.post("/reviewers", json={"name": name}).json()["reviewer"]
        yield Reviewer(client, f"/reviewers/{key}/cases")
