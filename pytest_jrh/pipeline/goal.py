"""What a case is to become, and so what a right judge must answer."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.llm.prompts import ordinal_guidance
from pytest_jrh.models import Mode, Objective, Rubric


@dataclass(frozen=True, slots=True)
class Goal:
    """What a case is to become: violate or satisfy the rubric, or land on `target_score` of its
    scale.
    """

    objective: Objective
    target_score: int | None = None

    @property
    def mode(self) -> Mode:
        return "binary" if self.target_score is None else "ordinal"

    @property
    def expected(self) -> int:
        """The answer a right judge gives: 1 for violated, 0 for satisfied, or the target (rule
        E1).
        """
        if self.target_score is not None:
            return self.target_score
        return 1 if self.objective == "fail" else 0

    def guidance(self, rubric: Rubric) -> str:
        """What planner and editor are told about the scale; empty in binary mode.

        Raises `InputError` where the rubric has no level of the target score.
        """
        if self.target_score is None:
            return ""
        by_score = {level.score: level for level in rubric.score_levels}
        if self.target_score not in by_score:
            there = ", ".join(map(str, by_score)) or "none"
            message = (
                f"the rubric `{rubric.id}` has no level {self.target_score} to aim at; its "
                f"levels: {there}"
            )
            raise InputError(
                Problem(
                    message, file=rubric.file or None, line=rubric.line if rubric.file else None
                )
            )
        return ordinal_guidance(rubric.score_levels, by_score[self.target_score])


def goal_of(objective: Objective, target_score: int | None) -> Goal:
    """The goal of a case: an ordinal one aims at its score whatever the objective."""
    return Goal("fail" if target_score is not None else objective, target_score)
