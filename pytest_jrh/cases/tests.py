"""The kinds of tests, each in a file of its own; one that is not in this table does not exist.

A probe as a kind of test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.core.kinds import AGENT_LABELS, AGENT_PERTURBATION, AGENT_POSITIVES, Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from pytest_jrh.cases.probes.probe import Probe
    from pytest_jrh.core.kinds import Bench
    from pytest_jrh.core.model import Case


def _make(bench: Bench) -> Awaitable[Case]:
    return bench.derived()


def kind_of(probe: Probe) -> Kind:
    """The kind of test that a probe is: its cases count in no figure of accuracy."""
    return Kind(
        name=probe.name,
        marker=probe.marker,
        label=probe.label,
        figures=(),
        objective=lambda configured: configured,
        folder=lambda module: f"outputs/{probe.name}/{module}",
        targets=lambda scale, _wanted: tuple(scale),
        cases=lambda _subject: (),
        make=_make,
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
