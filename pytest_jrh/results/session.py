"""All that a session came to, in one value: what the terminal, Markdown, HTML and annotations tell from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_jrh.models import CaseResult, Rubric, Spending
from pytest_jrh.results.gate import GateDecision
from pytest_jrh.results.panels import Panel, panels
from pytest_jrh.results.statistics import StatisticsTable, tabulate

_KEY_LENGTH = 12


@dataclass(frozen=True, slots=True)
class SessionResults:
    """The last result of every case that ran, and what follows from them.

    `decisions` are by suite name; `nodes` and `commands` give by case id the pytest node id and the command that
    runs the case again; `rubrics` are by suite name and rubric id.
    """

    results: tuple[CaseResult, ...]
    table: StatisticsTable
    panels: tuple[Panel, ...] = ()
    decisions: Mapping[str, GateDecision] = field(default_factory=dict)
    wall_seconds: float = 0.0
    nodes: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    rubrics: Mapping[tuple[str, str], Rubric] = field(default_factory=dict)

    @property
    def spending(self) -> Spending:
        """What all cases together took."""
        return sum((result.spending for result in self.results), Spending())

    @property
    def passed(self) -> bool | None:
        """Whether every gate passed; None where there is none to pass, and nothing is missing."""
        told = [decision for decision in self.decisions.values() if decision.active or not decision.passed]
        return all(decision.passed for decision in told) if told else None

    def node(self, case_id: str) -> str:
        """What pytest calls the case; its id where that is not known."""
        return self.nodes.get(case_id, case_id)


def gather(
    results: Iterable[CaseResult],
    seed: int,
    *,
    rubrics: Mapping[tuple[str, str], Rubric] | None = None,
    decisions: Mapping[str, GateDecision] | None = None,
    wall_seconds: float = 0.0,
    nodes: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
) -> SessionResults:
    """Compute all figures of a session once, for every report; `seed` is the bootstrap's."""
    given = tuple({result.case_id: result for result in results}.values())
    return SessionResults(
        results=given,
        table=tabulate(given, seed, scales(rubrics or {})),
        panels=tuple(panels(given)),
        decisions=decisions or {},
        wall_seconds=wall_seconds,
        nodes=nodes or {},
        commands=commands or {},
        rubrics=rubrics or {},
    )


def scales(rubrics: Mapping[tuple[str, str], Rubric]) -> dict[tuple[str, str], Sequence[int]]:
    """The scores on offer for each ordinal rubric, by suite and rubric id."""
    return {
        key: [level.score for level in rubric.score_levels] for key, rubric in rubrics.items() if rubric.score_levels
    }


def case_key(case_id: str) -> str:
    """A short name of a case that is the same in every session, for links such as `#case-0123456789ab`."""
    return hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]
