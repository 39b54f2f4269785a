"""The shape of the answer files, and reading them.

`answers/binary/RUN.yml` and `answers/ordinal/RUN.yml` map rubric ids to `RubricAnswers`;
`answers/summaries.yml` maps runs to `Summary`; `answers/lenient.yml` says what a lenient judge
overlooks. Whoever writes an answer file gets every mistake reported by pydantic, with the place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

FOLDER = Path(__file__).parent / "answers"


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Summary(_Answer):
    """What the summarizer answers about a run.

    `story` has one sentence or two per message worth telling.
    """

    story: dict[int, str]
    user_intent: str
    assistant_progress: tuple[str, ...]
    outstanding_items: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


class Reading(_Answer):
    """What verifier and judge make of one transcript under one rubric.

    Binary files give the `verdict`, ordinal files the `score`; their verdict, PASS unless it is
    given, says that the score is sure. `judge` is left out where the verifier does not confirm the
    label, since no judge sees such a case.
    """

    verdict: Literal["PASS", "FAIL"] | None = None
    score: int | None = None
    verifier: str
    judge: str | None = None


class Step(_Answer):
    """One planned edit, the edit itself, and what a summary's story says of the turn once it has
    been made.
    """

    message_index: int
    goal: str
    rationale: str
    new_content: str
    reason: str
    story: str


class ScriptedPlan(_Answer):
    """What the planner answers to one objective, and the reading of the transcript after all its
    edits.

    Where there is nothing to edit both are left out, and `because` tells the reader of the file
    why.
    """

    thesis: str = ""
    because: str = ""
    steps: tuple[Step, ...] = ()
    edited: Reading | None = None


class RubricAnswers(_Answer):
    """Everything about one run under one rubric: binary `violate` and `satisfy`, ordinal `targets`
    by score.
    """

    untouched: Reading
    violate: ScriptedPlan | None = None
    satisfy: ScriptedPlan | None = None
    targets: dict[int, ScriptedPlan] = Field(default_factory=dict)

    @property
    def plans(self) -> tuple[ScriptedPlan, ...]:
        """All plans of this entry."""
        return tuple(plan for plan in (self.violate, self.satisfy, *self.targets.values()) if plan)


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def load_summaries(folder: Path = FOLDER) -> dict[str, Summary]:
    """Read the table of summaries, by run."""
    return TypeAdapter(dict[str, Summary]).validate_python(_yaml(folder / "summaries.yml"))


def load_lenient(folder: Path = FOLDER) -> dict[str, dict[str, str]]:
    """Read why a lenient judge lets a violation pass, by run and rubric id.

    A violation that is not there it sees.
    """
    return TypeAdapter(dict[str, dict[str, str]]).validate_python(_yaml(folder / "lenient.yml"))


def load_answers(run: str, folder: Path = FOLDER) -> dict[str, RubricAnswers]:
    """Read all answers about one run, by rubric id; empty where nothing is written."""
    answers: dict[str, RubricAnswers] = {}
    shape = TypeAdapter(dict[str, RubricAnswers])
    for path in sorted(folder.glob(f"*/{run}.yml")):
        answers |= shape.validate_python(_yaml(path))
    return answers
