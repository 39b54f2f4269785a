"""The kinds of tests; one that is not in this table does not exist, and nothing else spells or
compares the name of one.

A probe is a kind of test whose cases are those of others, changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core import frozen
from pytest_jrh.core.calls import MAKING
from pytest_jrh.core.cases import Label, Skip
from pytest_jrh.core.ids import NATURAL, UNNAMED_BASE
from pytest_jrh.core.scales import Objective, Said, Scale


@frozen
class Kind:
    """A kind of test: what it is called, how its cases are made, and what they count in.

    `name` is what node ids, files and RAND's configs call it, and `key` what our configs do. `noun`
    is what titles, tables and RAND's `agent_mode` call a case of it, and `marker` what pytest's
    `--markers` says.

    `answer` says which answer is right: `wanted`, each that the config asks for, without a scale
    each but that the rubric is satisfied; `each`, one of all on offer; `best`, that the rubric is
    satisfied, on a scale the highest score; `label`, the one that people or a program gave the run;
    or `base`, that of the case which a probe changes.

    `stages` make its cases, and each of them needs a model. Where no stage does, a case is a run as
    it is. `flips` says that its cases are labelled runs, made to have another label.
    """

    name: str
    key: str
    noun: str
    marker: str
    answer: Literal["wanted", "each", "best", "label", "base"]
    stages: Sequence[str] = ()
    flips: bool = False

    @property
    def derived(self) -> bool:
        """Whether it is a probe; its cases count in no figure of accuracy."""
        return self.answer == "base"

    @property
    def is_labelled(self) -> bool:
        """Whether its cases are runs as they are, with their labels: no verifier confirms these,
        and what was made of a run before is not kept.
        """
        return self.answer == "label"

    @property
    def is_made(self) -> bool:
        """Whether stages of the suite make its cases of runs."""
        return self.answer in ("wanted", "each", "best")

    def objective(self, configured: Objective) -> Objective:
        """What its pipeline aims at, by what the config says."""
        if self.answer == "best":
            return "pass"
        return "fail" if self.is_labelled else configured

    def folder(self, module: str) -> str:
        """The default folder of its cases, by the module's name."""
        return f"outputs/{self.name}" if self.answer == "best" else f"outputs/{self.name}/{module}"

    def targets(self, scale: Scale, wanted: Sequence[Said]) -> Sequence[Said | None]:
        """The targets of the rubric's scale that it makes cases for, as they are said: those that
        the config wants, where none all.
        """
        targets = [*map(scale.said, scale.targets)]
        if self.answer == "best":
            return targets[-1:]
        if wanted and scale.levels:
            return [target for target in targets if target in wanted]
        if self.answer == "wanted":
            best = scale.aim("pass")
            return [target for target in targets if target is None or target != best]
        return targets

    def cases(
        self, targets: Sequence[Said | None], label: Label | None, scale: Scale
    ) -> list[tuple[Said | None, Skip | None]]:
        """The cases that it has of a run under a rubric, by the targets and the run's label on the
        rubric's scale: the target of each, and why there is no case, where that is known.

        The target of an ordinal case with the label of its run is that, and the lowest one where
        annotators disagree.
        """
        if self.is_made:
            return [(target, None) for target in targets]
        if self.derived or label is None:
            return []
        answer, skip = label.value, None
        if answer is None:
            answer, skip = min(label.votes), Skip("disputed_label", label.dispute)
        return [(None if None in targets else scale.said(answer), skip)]


_STAGES = tuple(stage.name for stage in MAKING)
PERTURBATION = Kind(
    name=UNNAMED_BASE,
    key="perturbation",
    noun="perturbation",
    marker="a case that was edited to violate its rubric, or to deserve a certain score",
    answer="wanted",
    stages=_STAGES,
)
POSITIVES = Kind(
    name="agent_positives",
    key="positives",
    noun="positive",
    marker="a case that satisfies its rubric",
    answer="best",
    stages=_STAGES,
)
LABELS = Kind(
    name=NATURAL,
    key="labels",
    noun="natural",
    marker="a case as it was recorded, with the label that people or a program gave it",
    answer="label",
)


OTHER_NAMES: dict[str, Kind] = {}
"""Kinds under the names that files of another harness have for them."""


class Kinds(dict[str, Kind]):
    """Kinds of tests by name; what is not in it is a probe by text, which a config names."""

    def __missing__(self, name: str) -> Kind:
        if name in OTHER_NAMES:
            return OTHER_NAMES[name]
        probe = PROBES[name]
        return Kind(name, name, name, probe.marker, "base", tuple(probe.calls))


KINDS = Kinds((kind.name, kind) for kind in (PERTURBATION, POSITIVES, LABELS))
for _name in PROBES:
    KINDS[_name] = KINDS[_name]
BY_KEY: Mapping[str, Kind] = {kind.key: kind for kind in KINDS.values()}
"""The kinds by what our configs call them."""
BASES = tuple(name for name, kind in KINDS.items() if not kind.derived)
"""The names of the tests that are no probes."""
