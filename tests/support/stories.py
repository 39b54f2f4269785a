"""Judges that got worse and must never be exit 0, and judges that did not and must be PASS: told
once, to be a suite and a table of verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

How: TypeAlias = Literal["again", "prompt", "model", "code"]
"""The judge now: the same one asked again, with a new prompt, on another model, or code."""


class Row(NamedTuple):
    """A verdict on a case: of a run, by a rubric; 1 is violated."""

    run: int
    rubric: str
    label: int
    verdict: int


def side(violated: str, satisfied: str, rubric: str = "polite", first: int = 0) -> list[Row]:
    """A case of a run of its own for each letter, with a wrong verdict for an `x`."""
    rows = []
    for run, letter in enumerate(violated + satisfied, first):
        label = int(run - first < len(violated))
        rows.append(Row(run, rubric, label, label ^ (letter == "x")))
    return rows


def of_runs(runs: int, violated: int, missed: int = 0) -> list[Row]:
    """In each run as many violated as satisfied cases, of which the first are `missed`."""
    rows = []
    for rubric in range(violated):
        for run in range(runs):
            is_missed = rubric * runs + run < missed
            rows.append(Row(run, f"broken{rubric}", 1, int(not is_missed)))
            rows.append(Row(run, f"kept{rubric}", 0, 0))
    return rows


def of_rubrics(sides: Iterable[tuple[str, str]]) -> list[Row]:
    """The sides of several rubrics, on the same runs."""
    rows = []
    for number, (violated, satisfied) in enumerate(sides):
        rows += side(violated, satisfied, f"rubric{number}")
    return rows


class Story(NamedTuple):
    """What a judge said before, what it says now, and how it has changed."""

    name: str
    before: list[Row]
    now: list[Row]
    how: How


TEN, TWENTY, ALL = "." * 10, "." * 20, "." * 27
SOUND = side(ALL, ALL)
TWO_FLIPS = side("xx" + "." * 25, ALL)
NEVER = [
    Story("4 of 10 missed by code", side(TEN, TEN), side("xxxx......", TEN), "code"),
    Story("4 of 4 missed", side("....", "." * 36), side("xxxx", "." * 36), "prompt"),
    Story(
        "one of 20 rubrics always satisfied",
        of_rubrics([(TEN, TEN), *[(".....", ".....")] * 19]),
        of_rubrics([("x" * 10, TEN), *[(".....", ".....")] * 19]),
        "prompt",
    ),
    Story("12 of 15 missed by another model", of_runs(5, 3), of_runs(5, 3, 12), "model"),
    Story(
        "10 of 20 new cases wrong",
        side(TEN, TEN),
        [*side(TEN, TEN), *side("xxxxx.....", "xxxxx.....", first=20)],
        "prompt",
    ),
    Story("labels inverted", side("x" * 12, "x" * 12), side("x" * 12, "x" * 12), "again"),
]
PASS = [
    Story("the same again", SOUND, SOUND, "again"),
    Story("another model on 10 runs", of_runs(10, 1), of_runs(10, 1), "model"),
    Story("two flips of 54", SOUND, TWO_FLIPS, "again"),
    Story("two flips of 54 by a new prompt", SOUND, TWO_FLIPS, "prompt"),
    Story("one of 30 lost", side("." * 30, "." * 30), side("x" + "." * 29, "." * 30), "prompt"),
    Story(
        "grown by 50 runs",
        side(TEN, TEN),
        [*side(TEN, TEN), *side("." * 25, "." * 25, first=20)],
        "again",
    ),
]
