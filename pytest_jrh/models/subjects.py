"""What is judged, and by which rule: the runs of an agent and the rubrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pytest_jrh.models.terms import Message


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What collection knows of a run: its key, and why it can make no case (rules C2, C3)."""

    run_id: str
    epoch: int
    skip_reason: str | None = None
    cluster: str | None = None
    """What it shares with other runs, such as a task with many trials; None: its id, whose epochs
    belong together."""
    former_id: str | None = None
    """Another id that it went by in earlier versions; labels may know it by that."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One sample of an agent log at one epoch, with text made storable (rules C1, C6).

    `input` is the sample's input as text; `sample_id` keeps the type it has in the log;
    `notes` says in words what loading had to change.
    """

    run_id: str
    epoch: int
    messages: tuple[Message, ...]
    input: str = ""
    target: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sample_id: int | str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreLevel:
    """One anchor of an ordinal scale."""

    score: int
    label: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """One criterion, and where it stands in its file (`line` counts from 1).

    `score_levels` is sorted and without gaps; empty where the file gives none. `skips` are the
    probes that its cases are no base of.
    """

    id: str
    instructions: str
    score_levels: tuple[ScoreLevel, ...] = ()
    file: str = ""
    line: int = 1
    skips: tuple[str, ...] = field(default=(), compare=False)


Preprocessor: TypeAlias = Callable[..., "Mapping[str, Any] | Sequence[Message] | None"]
