"""The plugin `jrh`: hooks only. Every pytest run pays for this module, so it imports pytest alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.plugin.options import MARKERS, add_options

if TYPE_CHECKING:
    from pytest_jrh.plugin.collect import SuiteFile

_DISCOVERED = (".jrh.yml", ".jrh.yaml")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that projects can implement."""
    from pytest_jrh.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the suites that are named, before anything is collected (exit code 4)."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getoption("jrh_config") or config.getini("jrh_config"):
        from pytest_jrh.plugin.activation import activate_named

        activate_named(config)
    elif config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        # The controller of a distributed run collects nothing, and so would never meet a discovered suite.
        from pytest_jrh.plugin.activation import activate

        activate(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites: those named with `--jrh-config`, on the command line, or found as `*.jrh.yml`."""
    if file_path.suffix not in (".yml", ".yaml"):
        return None
    if not file_path.name.endswith(_DISCOVERED) and not parent.session.isinitpath(file_path):
        return None
    from pytest_jrh.plugin.activation import collect

    return collect(file_path, parent)
