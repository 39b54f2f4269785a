"""What people, or a program, say of a run as it is (rule N1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LabelledBy: TypeAlias = Literal["people", "program"]


@dataclass(frozen=True, slots=True)
class Label:
    """The label of one run under one rubric, on the scale of verdicts.

    `value` is that of more than half of the `votes`, one for each annotator; None where no value
    has so many. `split` is the part of the labels that it belongs to, such as `dev` or `test`.
    """

    value: int | None
    votes: tuple[int, ...]
    by: LabelledBy = "people"
    split: str = ""

    @classmethod
    def of(cls, votes: tuple[int, ...], by: LabelledBy, split: str = "") -> Label:
        """Join the votes of annotators."""
        most = max(sorted(set(votes)), key=votes.count)
        return cls(most if 2 * votes.count(most) > len(votes) else None, votes, by, split)

    @property
    def lowest(self) -> int:
        """The value, or where there is none the lowest that was given: what an ordinal case that
        cannot be made is named after.
        """
        return min(self.votes) if self.value is None else self.value

    @property
    def dispute(self) -> str | None:
        """Why there is no label, or None where there is one."""
        if self.value is not None:
            return None
        most = max(map(self.votes.count, self.votes))
        return f"annotators disagree ({most} of {len(self.votes)})"
