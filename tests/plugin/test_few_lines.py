"""How many lines a session prints without `-v`, and that a stranger is answered at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

PRINTED = Path(__file__).parents[1] / "golden" / "__snapshots__" / "test_sessions"


def printed(name: str) -> list[str]:
    """What a golden session prints; `tests/golden` holds it to what is printed today."""
    return (PRINTED / f"{name}.printed.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "limit"),
    [("demo", 35), ("prompt_change", 45), ("merge", 20), ("conversations", 21)],
)
def test_a_session_prints_few_lines(name: str, limit: int) -> None:
    assert len(printed(name)) <= limit


def test_the_last_lines_answer_a_stranger() -> None:
    last = " ".join(line.strip() for line in printed("prompt_change")[-20:])
    for answer in (
        "FAIL  the new prompt misses 6 of 25 violations that it found before",
        "a prompt that is neither better nor worse would lose as much in 2 of 100",
        "refund_within_policy          3 of 10       0        0 of 9",
        'changed in judge.md: "If the rubric demands something, its absence is a viol…" -> "Judge',
        "read first  damaged-kettle  refund_within_policy: A promise of £15.00 more",
        "missed; label violated (verifier, the authors of pytest-jrh blind)",
        'judge: "The refund of 39.40 is exactly what [8] allows.',
        "54 by the judge's model; people checked 12 (20 needed), none wrong",
        "label wrong: drop it there; right: fix judge.md, or --jrh-update-baseline",
    ):
        assert answer in last
