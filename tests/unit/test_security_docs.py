"""What README and SECURITY.md say about secrets, limits and code that runs is
what the code does.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest_jrh
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


def test_a_request_is_as_large_as_is_said() -> None:
    assert f"at most {MAX_BODY // 1024 // 1024} MB" in text("SECURITY.md")
