"""The gate in a pytest session: the controller's decision about each suite (rules J)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_jrh.gate import decision as gate
from pytest_jrh.gate.baseline import Scope
from pytest_jrh.plugin.options import absolute
from pytest_jrh.reporting.session_results import Extent
from pytest_jrh.suite.cases import case_id, node_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from pytest_jrh.gate.baseline import Baseline
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import CaseResult, CaseSpec
    from pytest_jrh.plugin.options import Options
    from pytest_jrh.plugin.session import SuiteSession


def decide(
    session: SuiteSession,
    ready: ReadySuite,
    results: Collection[CaseResult],
    selected: Collection[str],
    *,
    stopped: bool,
    left_out: Collection[CaseSpec] = (),
) -> GateDecision:
    """Decide about one suite from what the controller received; `selected` are the ids of what was to run.

    Where a session was stopped on purpose and there is no gate, what was not reached is nobody's loss. One that
    updates the baseline may have nothing to compare.
    """
    suite, baseline = ready.suite, session.baseline.content
    rules = replace(suite.gate, allow_uncompared=suite.gate.allow_uncompared or session.baseline.updating)
    wanted = set(selected)
    if stopped and not gate.is_active(rules, baseline):
        wanted &= {result.case_id for result in results}
    scope = Scope.of(map(case_id, ready.specs()), wanted)
    decision = gate.decide(results, baseline, rules, scope, suite.sampling_seed, left_out)
    return replace(decision, update_command=session.commands.update_baseline(suite) if decision.uncompared else "")


def extents(
    specs: Mapping[str, Mapping[str, CaseSpec]],
    results: Collection[str],
    decisions: Mapping[str, GateDecision],
    *,
    stopped: bool,
) -> dict[str, Extent]:
    """How much of each suite the session ran; one that lost a worker has not run to its end either."""
    return {
        name: Extent(
            sum(case in results for case in own),
            len(own),
            interrupted=stopped or bool(decisions[name].never_reported),
        )
        for name, own in specs.items()
    }


def file_node(path: Path, rootdir: Path) -> str:
    """The node id of a suite's file: relative to pytest's rootdir where it is inside of it, else absolute.

    pytest itself gives all files that are named from outside of its rootdir the same, empty id. An absolute one is
    what `--lf` reads from its cache, and what pytest makes relative to the starting folder where it prints it.
    """
    return (path.relative_to(rootdir) if path.is_relative_to(rootdir) else path).as_posix()


def named_suites(config: pytest.Config, options: Options) -> frozenset[Path]:
    """The config files that the command line names; those of the ini file take part in runs of other tests too."""
    listed = frozenset(options.configs)
    own: frozenset[Path] = listed if config.getoption("jrh_config") is not None else frozenset()
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return own
    folder = config.invocation_params.dir
    return own | (frozenset(absolute(folder / argument.partition("::")[0]) for argument in config.args) - listed)


def place_of(nodeid: str) -> str:
    """The part of a case's node id that names its suite's file; no other part can hold `::`."""
    return nodeid.rsplit("::", 3)[0]


def case_ids(nodes: Iterable[str], places: Mapping[str, ReadySuite]) -> dict[str, str]:
    """Node id by case id, for the nodes of suites; `places` gives the suite of a node id's file."""
    known = {place: node_part(ready.suite.name) for place, ready in places.items()}
    parts = ((nodeid, place_of(nodeid)) for nodeid in nodes)
    return {f"{known[place]}{nodeid[len(place) :]}": nodeid for nodeid, place in parts if place in known}


def undecided(ready: ReadySuite, baseline: Baseline | None, selected: int) -> str | None:
    """Say why a suite whose session came to no decision is not green, or None where there is nothing to decide by.

    A gate does not pass by not looking (rule J6).
    """
    if not gate.is_active(ready.suite.gate, baseline):
        return None
    why = f"none of the {selected:,} selected cases was run" if selected else "none of its cases was selected"
    return f"Not green: the gate of suite {ready.suite.name} has decided nothing, because {why}."
