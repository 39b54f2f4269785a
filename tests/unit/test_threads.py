"""The engine's threads: nothing that they return stays unawaited, or warns of it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from pytest_jrh.plugin.activation import current_test_hidden


def test_threads_of_judges_do_not_meet_what_pytest_removes_meanwhile() -> None:
    with current_test_hidden():
        with ThreadPoolExecutor(1) as pool:
            names = pool.submit(lambda: [*os.environ]).result()
        assert "PATH" in names
        assert "PYTEST_CURRENT_TEST" not in names
        assert "PYTEST_CURRENT_TEST" in [*os.environ]
