"""The gate in a pytest session: the baseline, read once per process, and the controller's decision (semantics J)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pytest_jrh.results import baseline_file, gate
from pytest_jrh.results.baseline import Baseline, Scope, update
from pytest_jrh.results.text import counted, one_line
from pytest_jrh.suite.cases import case_id, node_part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from pytest_jrh.loading import ReadySuite
    from pytest_jrh.models import CaseResult
    from pytest_jrh.results.baseline import Update
    from pytest_jrh.results.gate import GateDecision
    from pytest_jrh.suite.suite import GateRules

_MOST_KEPT = 20


class BaselineFile:
    """The file of `--jrh-baseline`: every process reads it once, where it first needs it; the controller writes it."""

    def __init__(self, path: Path | None, folder: Path, *, update: bool) -> None:
        self._path = path
        self._folder = folder
        self._update = update

    @cached_property
    def content(self) -> Baseline | None:
        """What was accepted; None without a baseline, or where there is none yet and this session is to write it.

        Raises `InputError` with every mistake in the file, or where it is missing.
        """
        if self._path is None or (self._update and not self._path.exists()):
            return None
        return baseline_file.load(self._path, file=self.name)

    @property
    def name(self) -> str:
        """The file as messages name it."""
        path, folder = self._path, self._folder
        return str(path.relative_to(folder) if path is not None and path.is_relative_to(folder) else path)

    def tolerated(self, result: CaseResult, rules: GateRules) -> str | None:
        """Say why a disagreement does not fail its item, or None where it does (semantics J4)."""
        return gate.tolerated(result, self.content, rules)

    def accept(
        self, results: Iterable[CaseResult], scope: Scope, node: Callable[[str], str], *, finished: bool
    ) -> list[str]:
        """Take a session's verdicts over where `--jrh-update-baseline` asks for it, and say what became of the file.

        A session that did not run to its end leaves the file as it is (semantics J2). Raises `OSError` as it comes.
        """
        if not self._update or self._path is None:
            return []
        if not finished:
            return [f"The baseline {self.name} was not updated, because the session did not run to its end."]
        made = update(self.content or Baseline(), results, scope)
        if not made.baseline.cases and self.content is None:
            return [f"The baseline {self.name} was not written, because no case has a verdict."]
        baseline_file.save(self._path, made.baseline)
        return _told(self.name, made, node)


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


def _told(name: str, made: Update, node: Callable[[str], str]) -> list[str]:
    changes = f"{len(made.added):,} added, {len(made.changed):,} changed, {len(made.removed):,} removed"
    told = [f"The baseline {name} now holds {counted(len(made.baseline.cases), 'case')}: {changes}."]
    if made.kept:
        kept = [f"  {one_line(node(case))} ({why})" for case, why in made.kept.items()]
        more = [f"  and {len(kept) - _MOST_KEPT:,} more"] if len(kept) > _MOST_KEPT else []
        head = f"Not taken over, for want of a verdict; what the baseline says of them stays ({len(kept):,}):"
        told.append("\n".join([head, *kept[:_MOST_KEPT], *more]))
    return told
