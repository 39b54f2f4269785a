"""What all tests share."""

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
# The folder whose tests fork no interpreter.
_UNIT_TESTS = _TESTS / "unit"


# Last, when the suites of `--jrh-config` have taken the place of this folder among the arguments.
@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Import numpy once and for all, and let xdist's workers be forked off one that has imported
    all else, where tests of inner runs are asked for. pytester forgets what an inner run imports,
    and numpy refuses to be loaded a second time. For the same reason bytecode is kept, whatever the
    environment says: hundreds of inner runs and interpreters would otherwise compile everything
    again."""
    folder = config.invocation_params.dir
    paths = [(folder / argument.partition("::")[0]).resolve() for argument in config.args]
    tests = [path for path in paths if path.is_relative_to(_TESTS) or path in _TESTS.parents]
    if not tests:
        return
    from tests.support.fork_server import fork_server, keep_distributions

    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
    keep_distributions()
    with contextlib.suppress(ImportError):
        from hypothesis import settings

        # How long an example takes says more about the machine than about the code.
        settings.register_profile("any machine", deadline=None)
        settings.load_profile("any machine")
    has_inner_runs = not all(path.is_relative_to(_UNIT_TESTS) for path in tests)
    if has_inner_runs and config.option.dist != "no" and not hasattr(config, "workerinput"):
        started = contextlib.ExitStack()
        listening = started.enter_context(tempfile.TemporaryDirectory())
        started.enter_context(fork_server(Path(listening)))
        config.add_cleanup(started.close)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: the tests of kills, servers and browsers wait much."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Keep what is imported and collected out of later garbage collections: it stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fork the interpreters of inner runs off one that has imported what they need."""
    from tests.support.fork_server import fork_server, is_served

    if is_served():
        yield
        return
    with fork_server(tmp_path_factory.mktemp("forks")):
        yield


@pytest.fixture(scope="session", autouse=True)
def _as_on_a_desk() -> Iterator[None]:
    """Hide from inner runs that this one is in CI: pytest prints more there, and we print other
    things. A test that is about CI sets these variables itself."""
    with pytest.MonkeyPatch.context() as patch:
        of_github = [name for name in os.environ if name.startswith("GITHUB_")]
        for name in ("CI", "BUILD_NUMBER", "CI_JOB_URL", *of_github):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own folder is the one that it works in."""
    monkeypatch.chdir(tmp_path)
