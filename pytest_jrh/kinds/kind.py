"""A kind of test; nothing else compares the name of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Objective: TypeAlias = Literal["fail", "pass"]
"""What a pipeline aims at: a transcript that violates its rubric, or one that satisfies it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of test: how its cases are made, where they go, and which figures they count in.

    `marker` says what it is in pytest's `--markers`, `label` is its short name in tables and on the
    review page. `figure` is the binary figure whose share its cases are of: violations that were
    found, or satisfied cases that were not. `objective` gives what its pipeline aims at by what the
    config says, `folder` where its cases go by the module's name unless the config says, and
    `targets` the score levels that it makes cases for, of those on the rubric's scale (ascending)
    and those that the config wants (all where none).
    """

    name: str
    marker: str
    label: str
    figure: Literal["recall", "false_positive_rate"]
    objective: Callable[[Objective], Objective]
    folder: Callable[[str], str]
    targets: Callable[[Sequence[int], Sequence[int]], tuple[int, ...]]
    highest_only: bool = False
    """Whether the highest score is the only one that its cases may have been made for (rule B5)."""
