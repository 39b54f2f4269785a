"""What the tests below pytest share."""

from pathlib import Path

import pytest

from tests.support.configs import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
