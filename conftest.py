"""Makes pytest's own `pytester` fixture available to the tests of the plugin, and lets the demo run
without what the tests need.
"""

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Know the ini key of pytest-timeout where that is missing, since unknown keys are errors."""
    if not pluginmanager.hasplugin("timeout"):
        parser.addini("timeout", "used by pytest-timeout, which `make test` installs")
