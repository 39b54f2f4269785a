"""The worked examples of judges of one's own: replayed without a network, and recorded anew."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from examples.http_judge.service import PORT as SERVICE_PORT
from examples.http_judge.service import Judge
from examples.record_demo import PORT as MODEL_PORT
from examples.scripted_model.server import ScriptedModel
from tests.plugin.recorded import Done, run_pytest
from tests.support.offline import LOCAL, needs_cut_network, offline

ROOT = Path(__file__).parents[2]
PYTHON, HTTP, INSPECT = (
    f"examples/{name}" for name in ("python_judge", "http_judge", "inspect_scorer")
)
EXPECTED = {PYTHON: "54 passed", HTTP: "16 passed, 3 xfailed", INSPECT: "54 passed"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the examples need: neither the log nor the demo's recordings."""
    for name in EXPECTED:
        shutil.copytree(ROOT / name, tmp_path / name)
    cases = "examples/small_judge/agent_perturbations.jsonl"
    for name in (cases, "inputs/data/refund_agent/rubrics.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def judged(project: Path, example: str, *options: str, is_offline: bool = False) -> Done:
    done = run_pytest(
        project,
        f"--jrh-config={example}/refund_agent.yml",
        "--tb=no",
        # Inspect calls tenacity in a way of before.
        "-Wignore::DeprecationWarning:inspect_ai.model._retry",
        *options,
        interpreter=offline() if is_offline else (),
    )
    summary = done.lines[-1].strip("= ").partition(" in ")[0] if done.lines else done.stderr
    assert summary == EXPECTED[example], done.stdout
    return done


@needs_cut_network
@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_replays_without_a_network(project: Path, example: str) -> None:
    for workers in ((), ("-n", "2", *LOCAL)):
        done = judged(project, example, *workers, is_offline=True)
        assert any(line.startswith("0 calls made, ") for line in done.lines)


@contextmanager
def service() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Judge) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def model() -> Iterator[int]:
    with ScriptedModel() as served:
        yield int(served.base_url.split(":")[2].partition("/")[0])


@pytest.mark.parametrize(
    ("example", "file", "port", "served"),
    [
        (PYTHON, "judges.py", MODEL_PORT, model),
        (HTTP, "judges.py", SERVICE_PORT, service),
        (INSPECT, "refund_agent.yml", MODEL_PORT, model),
    ],
)
def test_an_example_is_recorded_from_its_service_and_replays_once_that_is_stopped(
    project: Path,
    example: str,
    file: str,
    port: int,
    served: Callable[[], AbstractContextManager[int]],
) -> None:
    folder = project / example
    committed = recorded_answers(folder)
    shutil.rmtree(folder / "cassettes")
    with served() as now:
        text = (folder / file).read_text("utf-8")
        (folder / file).write_text(text.replace(str(port), str(now)), encoding="utf-8")
        made = judged(project, example, "--jrh-record-mode=once")
        assert any(line.startswith(f"{len(committed)} calls made") for line in made.lines)
    assert recorded_answers(folder) == committed
    judged(project, example)


def recorded_answers(folder: Path) -> dict[str, str]:
    """By cassette, what the judge was answered."""
    return {
        str(path.relative_to(folder)): path.read_text("utf-8").partition("\n  response:")[2]
        for path in sorted(folder.glob("cassettes/*/*/*.yaml"))
    }
