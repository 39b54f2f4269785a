"""Runs of agents, the rubrics that they are judged by, and the labels that people give them.

Messages are Inspect's own chat messages as plain JSON dictionaries (`role`, `content` as text or a
list of blocks, `tool_calls`, `tool_call_id`, `function`, `error`); nobody may change one in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from statistics import median
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, SkipValidation

from pytest_jrh.core import frozen
from pytest_jrh.core.scales import (
    NOT_APPLICABLE,
    Scale,
    ScoreLevel,
    as_level,
    classed,
    coded,
    scale_of,
    with_not_applicable,
)
from pytest_jrh.core.skips import Skip

Message: TypeAlias = Mapping[str, Any]
Messages: TypeAlias = Sequence[Message]
Transcript: TypeAlias = tuple[Message, ...]
"""The messages of a run, in their order."""
# Of samples and of intervals, where a suite names none.
DEFAULT_SEED = 8234
LabelledBy: TypeAlias = Literal["people", "program", "column"]
LabelSource: TypeAlias = Literal[LabelledBy, "made", "unconfirmed"]
SETTLED = "settled"
"""The part of labels that somebody gave who saw the votes of people that disagree."""

Answer: TypeAlias = Annotated[int, BeforeValidator(coded)]
"""An answer of which a file may hold the word."""


def majority(votes: Sequence[int | None]) -> int | None:
    """The value that more than half of the votes give; None where no value has so many."""
    for value in votes:
        if 2 * votes.count(value) > len(votes):
            return value
    return None


def label_of(votes: Sequence[int | None], *, is_ordered: bool) -> int | None:
    """The label that the votes of people come to, of which None are for no label: what more than
    half of all say, of levels the median, a half where it lies between two; None where at most half
    say something.
    """
    levels = [vote for vote in votes if vote is not None and vote != NOT_APPLICABLE]
    if not is_ordered or 2 * len(levels) <= len(votes):
        return majority(votes)
    return as_level(median(levels))


@frozen
class VoteSource:
    """Where a vote stands: file and line, or the key of the config that takes it from the log; who
    gave it, and what they noted, where the file says so.
    """

    place: str
    annotator: str = ""
    note: str = ""


@frozen
class Label:
    """The label of one run under one rubric, on the scale of verdicts: one vote for each annotator.

    `split` is the part of the labels that it belongs to, such as `dev` or `test`; of one that is
    settled it begins with that word, and so do the votes with what is settled. `sources` are those
    of the votes, in their order; empty where an earlier version stored the label.
    """

    votes: Annotated[tuple[Answer, ...], Field(min_length=1)]
    by: LabelledBy
    split: str = ""
    # Who says where that the label is this one makes it no other label.
    sources: tuple[VoteSource, ...] = field(default=(), compare=False)

    @property
    def value(self) -> int | None:
        """What is settled, or more than half of the votes give; None where no value has so many."""
        return majority(self.votes[:1] if self.is_settled else self.votes)

    @property
    def is_drawn(self) -> bool:
        """Whether its run is said to be one of a random sample of all runs."""
        return self.split.casefold() in ("drawn", f"{SETTLED} drawn")

    @property
    def is_settled(self) -> bool:
        """Whether somebody decided it who saw the votes."""
        return self.split.casefold().startswith(SETTLED)

    @property
    def lowest(self) -> int:
        """The value, or where there is none the lowest that was given: what a case on a scale of
        levels that cannot be made is named after.
        """
        return min(self.votes) if self.value is None else self.value

    @property
    def dispute(self) -> str | None:
        """The most votes for one value, as `2 of 4`, where that is no label; None where it is."""
        if self.value is not None:
            return None
        most = max(map(self.votes.count, self.votes))
        return f"{most} of {len(self.votes)}"


RunKey: TypeAlias = tuple[str, int]
Slices: TypeAlias = tuple[tuple[str, str], ...]
"""Fields or columns by which figures are told apart, each with the value of a case; "" for none."""
"""The id and epoch of a run."""
LabelKey: TypeAlias = tuple[str, str, int]
"""Rubric id, run id and epoch of a label."""
Labels: TypeAlias = Mapping[LabelKey, Label]


@frozen
class RunSummary:
    """What collection knows of a run: its key, and why it can make no case."""

    run_id: str
    epoch: int
    skip: Skip | None = None
    cluster: str | None = None
    """What it shares with other runs, such as a task with many trials; None: its id, whose epochs
    belong together."""

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.run_id, self.epoch


@frozen
class AgentRun:
    """One sample of an agent log at one epoch, with text made storable.

    `input` is the sample's input as text; `sample_id` keeps the type it has in the log;
    `notes` says in words what loading had to change.
    """

    run_id: str
    epoch: int
    messages: Transcript
    input: str = ""
    target: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sample_id: int | str = ""
    notes: tuple[str, ...] = ()


@frozen
class Rubric:
    """One criterion, and where it stands in its file (`line` counts from 1).

    `score_levels` is sorted and without gaps; empty where the file gives none. `classes` are words
    without an order in their place, each with when it is due, and `not_applicable` says when `n/a`
    is. `answers` are those on offer where all these do not tell them. `skips` are the probes that
    its cases are no base of.
    """

    id: str
    instructions: str
    score_levels: tuple[ScoreLevel, ...] = ()
    file: str = ""
    line: int = 1
    skips: tuple[str, ...] = field(default=(), compare=False)
    answers: SkipValidation[Scale | None] = field(default=None, compare=False)
    classes: tuple[tuple[str, str], ...] = ()
    not_applicable: str = ""

    @property
    def scale(self) -> Scale:
        """The answers on offer."""
        return self.answers or self.offering(scale_of(self.score_levels))

    def offering(self, scale: Scale) -> Scale:
        """A scale with the rubric's own classes in its place, and n/a beside it where it is due."""
        if self.classes:
            scale = classed(self.classes)
        if self.not_applicable:
            scale = with_not_applicable(scale, self.not_applicable)
        return scale


Preprocessor: TypeAlias = Callable[..., "Mapping[str, Any] | Messages | None"]
ClusterId: TypeAlias = tuple[str, str | None, str]
