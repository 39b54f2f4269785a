"""What the tests of the plugin share."""

import gc
import importlib
from collections.abc import Iterator

import pytest

from tests.plugin.gated import Project, make_project
from tests.plugin.recorded import Judged, MakeJudged, Recorded, judged_suite, record
from tests.support.model_server import ModelServer

# pytester forgets every module that an inner run imports: what is heavy is imported once, out here.
_HEAVY = """filelock hypothesis inspect_ai.log jinja2 litellm numpy.fft pytest_jrh.engine.library
pytest_jrh.llm.client pytest_jrh.plugin.activation vcr.patch"""


@pytest.fixture(scope="session", autouse=True)
def _forks(forks: None) -> None:
    """Have the fork server import while the first tests run."""


@pytest.fixture(scope="session", autouse=True)
def _heavy_modules() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        for name in _HEAVY.split():
            importlib.import_module(name)
    gc.freeze()


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def recorded(recorded_once: Recorded, pytester: pytest.Pytester) -> Recorded:
    """The recorded suites, copied to where pytester runs."""
    return recorded_once.copied(pytester.path)


@pytest.fixture(scope="session")
def project_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("gated"))


@pytest.fixture
def project(project_once: Project, pytester: pytest.Pytester) -> Project:
    """The project of the gate's tests, copied to where pytester runs."""
    return project_once.copied(pytester.path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server that the environment leads to."""
    with ModelServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def judged(recorded: Recorded) -> MakeJudged:
    """Makes the suite `tiny` with a judge of one's own out of its source."""

    def make(source: str) -> Judged:
        return judged_suite(recorded.tiny, source)

    return make
