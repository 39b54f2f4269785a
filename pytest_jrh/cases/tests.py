"""The kinds of tests; one that is not in this table does not exist, and nothing else compares the
name of one.

A probe is a kind of test whose cases are those of others, changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core import frozen
from pytest_jrh.core.cases import NATURAL, PERTURBATION, POSITIVES, SHORT_NAMES
from pytest_jrh.core.runs import Label
from pytest_jrh.core.scales import Objective, Scale
from pytest_jrh.core.skips import Skip


class Planned(NamedTuple):
    """A case that a kind has of a subject: its target, and why it cannot be made, where that is
    known.
    """

    target_score: int | None
    skip: Skip | None = None


@frozen
class Kind:
    """A kind of test, and which cases it has.

    `name` is what node ids, files and RAND's configs call it, and `key` what our configs do.
    `marker` says what it is in pytest's `--markers`, `label` is its short name in tables and on the
    review page. `highest_only` says that its cases satisfy their rubric, on a scale with the
    highest score; `natural` that they are runs as they are, with labels that the config names: no
    stage makes them, and no verifier confirms them; and `derived` that it is a probe, whose cases
    are those of other tests, changed, and count in no figure of accuracy.
    """

    name: str
    key: str
    marker: str
    label: str
    highest_only: bool = False
    natural: bool = False
    derived: bool = False

    @property
    def is_made(self) -> bool:
        """Whether stages of the suite make its cases."""
        return not (self.natural or self.derived)

    def objective(self, configured: Objective) -> Objective:
        """What its pipeline aims at, by what the config says."""
        if self.highest_only:
            return "pass"
        return "fail" if self.natural else configured

    def folder(self, module: str) -> str:
        """The default folder of its cases, by the module's name."""
        return f"outputs/{self.name}" if self.highest_only else f"outputs/{self.name}/{module}"

    def targets(self, scale: Scale, wanted: Sequence[int]) -> tuple[int | None, ...]:
        """The targets of the rubric's scale that it makes cases for: of levels those that the
        config wants, all where none.
        """
        if self.highest_only:
            return scale.targets[-1:]
        if self.is_made and wanted and scale.is_ordered:
            return tuple(score for score in scale.targets if score in wanted)
        return scale.targets

    def cases(self, targets: Sequence[int | None], label: Label | None) -> list[Planned]:
        """The cases that it has of a run under a rubric, by the targets and the run's label.

        Where targets are levels, a natural run is named after its label, and after the lowest one
        where annotators disagree.
        """
        if self.is_made:
            return [Planned(target) for target in targets]
        if self.derived or label is None:
            return []
        skip = None if label.dispute is None else Skip("disputed_label", label.dispute)
        return [Planned(None if None in targets else label.lowest, skip)]


_MADE_OR_LABELLED = (
    Kind(
        PERTURBATION,
        "perturbation",
        "a case whose transcript was edited to violate its rubric, or to land on a score",
        SHORT_NAMES[PERTURBATION],
    ),
    Kind(
        POSITIVES,
        "positives",
        "a case whose transcript satisfies its rubric",
        SHORT_NAMES[POSITIVES],
        highest_only=True,
    ),
    Kind(
        NATURAL,
        "labels",
        "a run as it is, with the label that people or a program gave it",
        SHORT_NAMES[NATURAL],
        natural=True,
    ),
)
BASES: tuple[str, ...] = tuple(kind.name for kind in _MADE_OR_LABELLED)
"""The names of the tests that are no probes."""
KINDS: Mapping[str, Kind] = {
    **{kind.name: kind for kind in _MADE_OR_LABELLED},
    **{name: Kind(name, name, row.marker, row.label, derived=True) for name, row in PROBES.items()},
}
TESTS: tuple[str, ...] = tuple(KINDS)
"""The names of the tests, as node ids have them."""
BY_KEY: Mapping[str, Kind] = {kind.key: kind for kind in KINDS.values()}
"""The kinds by what our configs call them."""
if TYPE_CHECKING:
    BaseTest: TypeAlias = str
else:
    # What pydantic checks: the tests that are registered.
    BaseTest = Literal[BASES]
