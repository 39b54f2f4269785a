"""What the end-to-end tests share: a loopback model in the environment, and small suites to run
against it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.bench import Bench, MakeBench
from tests.support.model_server import Fault, ModelServer
from tests.support.suites import write_suite


@pytest.fixture(scope="session", autouse=True)
def _forks(forks: None) -> None:
    """Have the fork server import while the first tests run."""


@pytest.fixture(scope="session", autouse=True)
def _imported_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import, by using it all once, what a run of pytest inside this process would import and
    forget each time."""
    import gc

    import hypothesis  # noqa: F401 - its pytest plugin imports it at the end of every run

    folder = tmp_path_factory.mktemp("imports")
    bench = Bench(
        write_suite(folder / "suite", runs=1, tests=["agent_perturbation"]), folder / "cassettes"
    )
    with pytest.MonkeyPatch.context() as patch, ModelServer() as server:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        server.faults.add(stage="judge", fault=Fault.status(500))
        bench.run()
        bench.play()
    gc.freeze()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """An obedient model without faults, to which the environment points."""
    with ModelServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def make_bench(tmp_path: Path) -> MakeBench:
    """Write a suite and make it ready; by default one run, one rubric, and the negatives alone."""

    def make(**suite: Any) -> Bench:
        defaults: dict[str, Any] = {"runs": 1, "tests": ["agent_perturbation"]}
        return Bench(write_suite(tmp_path / "suite", **{**defaults, **suite}), tmp_path / "taped")

    return make


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    """The smallest suite: six calls make and judge its case."""
    return make_bench()
