"""The gate in a pytest session: the controller's decision about each suite (semantics J)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.results import gate
from pytest_jrh.results.baseline import Scope
from pytest_jrh.suite.cases import case_id, node_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import CaseResult
    from pytest_jrh.results.baseline import Baseline
    from pytest_jrh.results.gate import GateDecision


def decide(
    ready: ReadySuite,
    results: Collection[CaseResult],
    selected: Collection[str],
    baseline: Baseline | None,
    *,
    stopped: bool,
) -> GateDecision:
    """Decide about one suite from what the controller received; `selected` are the ids of what was to run.

    Where a session was stopped on purpose and there is no gate, what was not reached is nobody's loss.
    """
    suite = ready.suite
    wanted = set(selected)
    if stopped and not gate.is_active(suite.gate, baseline):
        wanted &= {result.case_id for result in results}
    scope = Scope.of(map(case_id, ready.specs()), wanted)
    return gate.decide(results, baseline, suite.gate, scope, suite.sampling_seed)


def case_ids(nodes: Iterable[str], places: Mapping[str, ReadySuite]) -> dict[str, str]:
    """Node id by case id, for the nodes of suites; `places` gives the suite of a node id's first part."""
    known = {place: node_part(ready.suite.name) for place, ready in places.items()}
    parts = ((nodeid, *nodeid.partition("::")) for nodeid in nodes)
    return {f"{known[place]}::{rest}": nodeid for nodeid, place, _, rest in parts if place in known}
