"""How many lines a session prints without `-v`, and that a stranger is answered at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_jrh.reports.failures import FailedCase, brief_texts
from tests.support.made_cases import failed_case

PRINTED = Path(__file__).parents[1] / "golden" / "__snapshots__" / "test_sessions"


def printed(name: str) -> list[str]:
    """What a golden session prints; `tests/golden` holds it to what is printed today."""
    return (PRINTED / f"{name}.printed.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "limit"),
    [("demo", 39), ("prompt_change", 66), ("probes", 90), ("merge", 40), ("conversations", 28)],
)
def test_a_session_prints_few_lines(name: str, limit: int) -> None:
    assert len(printed(name)) <= limit


def test_the_last_lines_answer_a_stranger() -> None:
    last = " ".join(printed("prompt_change")[-18:])
    for answer in (
        "FAIL: the new prompt misses 6 of 25 violations that it found before",
        "Misses 6 of 25 violations (24%, 10-47), before 0.",
        "No false alarm on 29 clean runs",
        "54 confirmed by the judge's own model; 12 checked blind by the authors of pytest-jrh,",
        "missed. Judge: In [5]",
        "(double-charge)",
        "Next: read the 6 cases;",
    ):
        assert answer in last


def test_37_disagreements_take_few_lines() -> None:
    failed = [
        FailedCase(
            f"case-{number}", failed_case(f"case-{number}").detail, title=f"tone: run {number}"
        )
        for number in range(37)
    ]
    texts = brief_texts(failed)
    lines = [line for text in texts for line in text.text.splitlines()]
    assert len(lines) <= 12
    assert lines[-1] == "36 more, whole with -v."
    assert sum(line.startswith("run it again: pytest ") for line in lines) == 1


def test_what_a_probe_turned_is_said_once_with_its_number_of_cases() -> None:
    failed = [
        FailedCase(f"case-{number}", failed_case(f"case-{number}").detail, finding=finding)
        for finding in ("position", "format_invariance, judge strict")
        for number in range(25)
    ]
    texts = brief_texts(failed)
    assert [(text.heading, len(text.cases)) for text in texts] == [
        ("position: 25 cases", 25),
        ("format_invariance, judge strict: 25 cases", 25),
    ]
    for text in texts:
        assert text.text.splitlines()[0] == "case-0 and 24 more"
        assert text.text.count("run it again: pytest ") == 1
