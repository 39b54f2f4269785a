"""What all tests share."""

from __future__ import annotations

import contextlib


def pytest_configure() -> None:
    """Import numpy once and for all.

    pytester forgets what an inner run imports, and numpy refuses to be loaded a second time.
    """
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
