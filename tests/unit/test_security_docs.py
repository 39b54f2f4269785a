"""What README and SECURITY.md say about secrets, limits and code that runs is
what the code does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import pytest_jrh
from pytest_jrh.config import preprocessors
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.redact import REDACTED, Redactor, secrets_of
from pytest_jrh.review.serving import MAX_BODY

ROOT = Path(pytest_jrh.__file__).parents[1]


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_the_variables_that_are_named_as_secrets_are_taken_out() -> None:
    said = text("SECURITY.md")
    names = re.findall(r"`\.\.\.(_[A-Z]+)`", said)
    assert len(names) == 4
    length = int(re.findall(r"at least (\d+) characters", said)[0])
    for name in names:
        secret = "s" * length
        assert Redactor(secrets_of({f"MY{name}": secret})).text(f"x{secret}x") == f"x{REDACTED}x"
        assert secrets_of({f"MY{name}": secret[1:]}) == ()


def test_what_urls_and_requests_may_hold_is_as_said() -> None:
    kept = Redactor(()).url("https://me:password@models.example/v1?api-key=abc&version=2")
    assert kept == "https://models.example/v1?version=2"
    assert f"at most {MAX_BODY // 1024 // 1024} MB" in text("SECURITY.md")


def test_naming_a_preprocessor_imports_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "naming one imports its module" in text("SECURITY.md")
    (tmp_path / "jrh_named_by_a_config.py").write_text("raise RuntimeError('this ran')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="this ran"):
        preprocessors.resolve("jrh_named_by_a_config.function")
    assert "jrh_named_by_a_config" not in sys.modules
