"""Time limits on items (pytest-timeout's): waiting for a model's answer does not count towards
them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = pytest.StashKey[Any]()


class TimeLimits:
    """Notes which limits pytest-timeout sets, by its own hook."""

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> None:
        """Remember the limit, and let pytest-timeout set it."""
        item.stash[_SETTINGS] = settings


@contextlib.contextmanager
def paused(item: pytest.Item) -> Iterator[None]:
    """Take the item's time limit off in this block; it begins anew afterwards.

    A limit on the test's function alone (`timeout_func_only`) is not running while the item is set
    up.
    """
    settings = item.stash.get(_SETTINGS, None)
    if settings is None or getattr(settings, "func_only", False):
        yield
        return
    item.config.hook.pytest_timeout_cancel_timer(item=item)
    try:
        yield
    finally:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
