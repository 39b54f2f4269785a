"""The gate in a pytest session: the controller's decision about each suite (rules J)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.files import absolute, relative_path
from pytest_jrh.gate import decision as gate
from pytest_jrh.plugin.options import typed_arguments, typed_configs
from pytest_jrh.suite.ids import node_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pytest

    from pytest_jrh.gate.baseline import Baseline
    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.options import Options


def file_node(path: Path, rootdir: Path) -> str:
    """The node id of a suite's file: relative to pytest's rootdir where it is inside of it, else
    absolute.

    pytest itself gives all files that are named from outside of its rootdir the same, empty id. An
    absolute one is what `--lf` reads from its cache, and what pytest makes relative to the starting
    folder where it prints it.
    """
    return relative_path(path, rootdir).as_posix()


def named_suites(config: pytest.Config, options: Options) -> frozenset[Path]:
    """The config files that the command line names, which have to come to a decision.

    Those of the ini file take part in runs of other tests too.
    """
    folder = config.invocation_params.dir
    listed = options.configs if typed_configs(config) else ()
    arguments = (absolute(folder / name.partition("::")[0]) for name in typed_arguments(config))
    return frozenset((*listed, *arguments))


def place_of(nodeid: str) -> str:
    """The part of a case's node id that names its suite's file; no other part can hold `::`."""
    return nodeid.rsplit("::", 3)[0]


def case_ids(nodes: Iterable[str], places: Mapping[str, ReadySuite]) -> dict[str, str]:
    """Node id by case id, for the nodes of suites; `places` gives the suite of a node id's file."""
    known = {place: node_part(ready.suite.name) for place, ready in places.items()}
    parts = ((nodeid, place_of(nodeid)) for nodeid in nodes)
    return {
        f"{known[place]}{nodeid[len(place) :]}": nodeid for nodeid, place in parts if place in known
    }


def undecided(ready: ReadySuite, baseline: Baseline | None, selected: int) -> str | None:
    """Say why a suite whose session came to no decision is not green, or None where there is
    nothing to decide by.

    A gate does not pass by not looking (rule M9).
    """
    if not gate.is_active(ready.suite.gate, baseline):
        return None
    why = (
        f"none of the {selected:,} selected cases was run"
        if selected
        else "none of its cases was selected"
    )
    return f"Not green: the gate of suite {ready.suite.name} made no decision, because {why}."
