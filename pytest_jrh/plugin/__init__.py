"""The plugin `jrh`: hooks only.

Every pytest run pays for this module, so it imports pytest alone.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_jrh.plugin.options import (
    OPTIONS_READ,
    SESSION_KEY,
    YAML_SUFFIXES,
    add_options,
    may_be_case,
    read_options,
    refuse_mistyped,
    refuse_options,
    session_token,
)

if TYPE_CHECKING:
    from pytest_jrh.plugin.collect import SuiteFile


_REGISTERED = pytest.StashKey[bool]()
_OLDEST_PYTEST = (8, 3)
_DISCOVERED = (".jrh.yml", ".jrh.yaml")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that projects can implement."""
    from pytest_jrh.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Refuse a mistyped option with the nearest one, which pytest does not name."""
    refuse_mistyped(args)


def pytest_configure(config: pytest.Config) -> None:
    """Check options and named suites before anything is collected (exit code 4)."""
    if pytest.version_tuple < _OLDEST_PYTEST:
        raise pytest.UsageError(
            f"pytest-jrh needs pytest 8.3 or newer; this is {pytest.__version__}"
        )
    options = config.stash[OPTIONS_READ] = read_options(config)
    if options.configs:
        # Garbage collections took a tenth of a short session's time while it imports.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            _activation(config).activate_named(config)
        finally:
            if is_collecting:
                gc.freeze()
                gc.enable()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites: those named by option, ini key or argument, and `*.jrh.yml`."""
    is_named = file_path in parent.config.stash[OPTIONS_READ].configs
    discovered = file_path.name.endswith(_DISCOVERED)
    is_argument = file_path.suffix in YAML_SUFFIXES and parent.session.isinitpath(file_path)
    if not is_named and not discovered and not is_argument:
        return None
    # A file that is named as a suite is one, however little it looks like it: its mistakes are to
    # be reported.
    suite_file: SuiteFile | None = _activation(parent.config).collect(
        file_path, parent, certain=is_named or discovered
    )
    return suite_file


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Refuse options that need a suite where none was collected."""
    config = session.config
    is_alone = not hasattr(config, "workerinput") and config.getoption("dist", "no") == "no"
    if is_alone and not session.testsfailed and not _has_suites(config):
        refuse_options(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist which session it belongs to, whatever suites it will discover."""
    node.workerinput[SESSION_KEY] = session_token(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Tell the controller, which collects nothing itself, what is to run."""
    config: pytest.Config = node.config
    if _has_suites(config) or any(map(may_be_case, ids)):
        _activation(config).activate(config).selected.update(ids)
    else:
        refuse_options(config)


def _activation(config: pytest.Config) -> Any:
    """What acts on suites, imported once projects have added to the tables that it reads."""
    if _REGISTERED not in config.stash:
        from pytest_jrh.plugin.hookspecs import register

        config.stash[_REGISTERED] = True
        register(config)
    return importlib.import_module("pytest_jrh.plugin.activation")


def _has_suites(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin("jrh-session")
