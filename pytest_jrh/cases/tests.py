"""The kinds of tests; one that is not in this table does not exist, and nothing else compares the
name of one.

A probe is a kind of test whose cases are those of others, changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core.model import NATURAL, PERTURBATION, POSITIVES, SHORT_NAMES, Skip

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pytest_jrh.cases.probes.probe import Probe
    from pytest_jrh.core.model import Case, Label, Objective


Targets: TypeAlias = "tuple[int | None, ...]"
"""The scores that a suite makes cases of a run for, (None,) in binary mode."""


class Planned(NamedTuple):
    """A case that a kind has of a subject: its target score, None in binary mode, and why it cannot
    be made, where that is known.
    """

    target_score: int | None
    skip: Skip | None = None


class Bench(Protocol):
    """What making one case may use: the engine gives it.

    Each way raises `NoVerdictCase` where there is no case, and `Unscored` where a model or a file
    could not be had.
    """

    async def edited(self) -> Case:
        """The run edited by the suite's stages towards the test's objective."""

    async def unedited(self) -> Case:
        """The run as it is, with its label as the expected answer."""

    async def derived(self) -> Case:
        """The case of another test, changed as a probe does it."""


def one_for_each_target(targets: Targets, _label: Label | None) -> Iterable[Planned]:
    """One case for each target score: the cases of kinds whose transcripts are made."""
    return map(Planned, targets)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of test: which cases it has, and how they are made.

    `marker` says what it is in pytest's `--markers`, `label` is its short name in tables and on the
    review page. `objective` gives what its pipeline aims at by
    what the config says, `folder` the default folder of its cases by the module's name,
    and `targets` the score levels that it makes cases for, of those on the rubric's scale
    (ascending) and those that the config wants (all where none). `cases` are those that it has of a
    run under a rubric, by the target scores and the run's label, and `make` makes one.
    """

    name: str
    marker: str
    label: str
    objective: Callable[[Objective], Objective]
    folder: Callable[[str], str]
    targets: Callable[[Sequence[int], Sequence[int]], tuple[int, ...]]
    cases: Callable[[Targets, Label | None], Iterable[Planned]] = one_for_each_target
    make: Callable[[Bench], Awaitable[Case]] = lambda bench: bench.edited()
    highest_only: bool = False
    """Whether the highest score is the only one that its cases may have been made for."""
    natural: bool = False
    """Whether its cases are runs as they are, with labels that the config names: no stage makes
    them, and no verifier confirms them."""
    derived: bool = False
    """Whether it is a probe, whose cases are those of other tests, changed."""

    @property
    def is_made(self) -> bool:
        """Whether stages of the suite make its cases."""
        return not (self.natural or self.derived)


def _targets(scale: Sequence[int], target_scores: Sequence[int]) -> tuple[int, ...]:
    return tuple(score for score in scale if not target_scores or score in target_scores)


AGENT_PERTURBATION = Kind(
    name=PERTURBATION,
    marker="a case whose transcript was edited to violate its rubric, or to land on a score",
    label=SHORT_NAMES[PERTURBATION],
    objective=lambda configured: configured,
    folder=lambda module: f"outputs/agent_perturbation/{module}",
    targets=_targets,
)


AGENT_POSITIVES = Kind(
    name=POSITIVES,
    marker="a case whose transcript satisfies its rubric",
    label=SHORT_NAMES[POSITIVES],
    objective=lambda _configured: "pass",
    folder=lambda _module: "outputs/agent_positives",
    targets=lambda scale, _wanted: tuple(scale[-1:]),
    highest_only=True,
)


def _labelled(targets: Targets, label: Label | None) -> Iterable[Planned]:
    """One case where there is a label, and none elsewhere.

    An ordinal case is named after its label, and after the lowest one where annotators disagree.
    """
    if label is not None:
        target = None if targets == (None,) else label.lowest
        skip = None if label.dispute is None else Skip("disputed_label", label.dispute)
        yield Planned(target, skip)


AGENT_LABELS = Kind(
    name=NATURAL,
    marker="a run as it is, with the label that people or a program gave it",
    label=SHORT_NAMES[NATURAL],
    objective=lambda _configured: "fail",
    folder=lambda module: f"outputs/agent_labels/{module}",
    targets=lambda scale, _wanted: tuple(scale),
    cases=_labelled,
    make=lambda bench: bench.unedited(),
    natural=True,
)


def kind_of(probe: Probe) -> Kind:
    """The kind of test that a probe is: its cases count in no figure of accuracy."""
    return Kind(
        name=probe.name,
        marker=probe.marker,
        label=probe.label,
        objective=lambda configured: configured,
        folder=lambda module: f"outputs/{probe.name}/{module}",
        targets=lambda scale, _wanted: tuple(scale),
        cases=lambda _targets, _label: (),
        make=lambda bench: bench.derived(),
        derived=True,
    )


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        AGENT_PERTURBATION,
        AGENT_POSITIVES,
        AGENT_LABELS,
        *map(kind_of, PROBES.values()),
    )
}
TESTS: tuple[str, ...] = tuple(KINDS)
"""The names of the tests, as configs and node ids have them."""
BASES: tuple[str, ...] = tuple(name for name, kind in KINDS.items() if not kind.derived)
"""The names of the tests that are no probes."""
if TYPE_CHECKING:
    KnownTest: TypeAlias = str
    BaseTest: TypeAlias = str
else:
    # What pydantic checks: the tests that are registered.
    KnownTest = Literal[TESTS]
    BaseTest = Literal[BASES]
