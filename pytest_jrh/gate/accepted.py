"""The file of `--jrh-baseline` in use: read once where it is first needed, and taken over at the
end (rule J2).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pytest_jrh.files import relative_path
from pytest_jrh.gate import baseline_file
from pytest_jrh.gate import decision as gate
from pytest_jrh.gate.baseline import Baseline, update
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_jrh.gate.baseline import Scope, Update
    from pytest_jrh.models import CaseResult
    from pytest_jrh.suite.suite import GateRules

_MOST_KEPT = 20


class BaselineFile:
    """The file of `--jrh-baseline`: every process reads it once, where it first needs it.

    The controller writes it.
    """

    def __init__(self, path: Path | None, folder: Path, *, update: bool) -> None:
        self._path = path
        self._folder = folder
        self._update = update

    @cached_property
    def content(self) -> Baseline | None:
        """What was accepted; None without a baseline, or where there is none yet and this session
        is to write it.

        Raises `InputError` with every mistake in the file, or where it is missing.
        """
        if self._path is None or (self._update and not self._path.exists()):
            return None
        return baseline_file.load(self._path, file=self.name)

    @property
    def updating(self) -> bool:
        """Whether this session is to take its verdicts over into the file."""
        return self._update and self._path is not None

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return str(self._path and relative_path(self._path, self._folder))

    def tolerated(self, result: CaseResult, rules: GateRules) -> str | None:
        """Say why a disagreement does not fail its item, or None where it does (rule J4)."""
        return gate.tolerated(result, self.content, rules)

    def accept(
        self,
        results: Iterable[CaseResult],
        scope: Scope,
        node: Callable[[str], str],
        *,
        finished: bool,
    ) -> list[str]:
        """Take a session's verdicts over where `--jrh-update-baseline` asks for it, and say what
        became of the file.

        A session that did not run to its end, or has no verdict on a case of which the file has
        one, leaves the file as it is: a baseline never gets worse by an accident (rule J2). Raises
        `OSError` as it comes.
        """
        if not self._update or self._path is None:
            return []
        if not finished:
            return [
                f"The baseline {self.name} was not updated, because the session did not run to "
                "its end."
            ]
        before = self.content or Baseline()
        made = update(before, results, scope)
        if lost := {case: why for case, why in made.kept.items() if case in before.cases}:
            many = f"{counted(len(lost), 'case')} that it has a verdict on"
            head = f"The baseline {self.name} was not updated, because there is none now on {many}:"
            return [
                _named(head, lost, node),
                "Bring them to a verdict, or leave them out of the run, and update again.",
            ]
        if not made.baseline.cases and self.content is None:
            return [f"The baseline {self.name} was not written, because no case has a verdict."]
        baseline_file.save(self._path, made.baseline)
        return _told(self.name, made, node)


def _told(name: str, made: Update, node: Callable[[str], str]) -> list[str]:
    changes = (
        f"{len(made.added):,} added, {len(made.changed):,} changed, {len(made.removed):,} removed"
    )
    told = [
        f"The baseline {name} now holds {counted(len(made.baseline.cases), 'case')}: {changes}."
    ]
    if made.kept:
        told.append(
            _named(f"Not taken over, for want of a verdict ({len(made.kept):,}):", made.kept, node)
        )
    return told


def _named(head: str, cases: Mapping[str, str], node: Callable[[str], str]) -> str:
    lines = [f"  {one_line(node(case))} ({why})" for case, why in cases.items()]
    more = [f"  and {len(lines) - _MOST_KEPT:,} more"] if len(lines) > _MOST_KEPT else []
    return "\n".join([head, *lines[:_MOST_KEPT], *more])
