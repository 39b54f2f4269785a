"""The judge that is a table: verdicts that were given before, on runs as they are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Verdict
from pytest_jrh.core.sections import ConfigSection, PathText, Takes, Text
from pytest_jrh.core.stages import JUDGE
from pytest_jrh.judges.judge import JudgeKind, JudgeStart, RunVerdicts, SuiteJudge

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_jrh.core.model import Case, Mode
    from pytest_jrh.judges.judge import JudgeCalls, JudgeSettings


_KEY = "verdicts"
_LONGEST_REASONING = 20_000


class VerdictsKeys(ConfigSection):
    """The keys of a judge that is a table of verdicts."""

    verdicts: Annotated[PathText | None, Takes("the path of a table")] = None
    """A table of verdicts on runs as they are: CSV, TSV or JSON lines with run_id, verdict and,
    where there are several, rubric_id, epoch and repeat. Nothing is asked."""
    column: Text | None = None
    """The column of that table with this judge's verdicts. Left out: verdict, judge or score."""


@dataclass(frozen=True, slots=True)
class TableJudge(SuiteJudge):
    """A judge whose verdicts are in a table: it makes no call.

    A verdict is given to the run that it is about, as it is, under its rubric: never to a
    transcript that was edited or changed.
    """

    settings: JudgeSettings
    table: RunVerdicts = field(default_factory=RunVerdicts)

    @property
    def name(self) -> str | None:
        """Its name in a panel."""
        return self.settings.name

    @property
    def path(self) -> Path:
        """Where the table is."""
        return Path(self._keys.verdicts or "")

    @property
    def column(self) -> str:
        """The table's column with the verdicts; empty where it goes by its usual names."""
        return self._keys.column or ""

    @property
    def label(self) -> str:
        """The file, and the column where one is named."""
        return f"{self.path.name}:{self.column}" if self.column else self.path.name

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the verdicts that it may give, wherever in which file they stand."""
        lines = [
            (*key, verdict.score, verdict.reasoning)
            for key, verdict in sorted(self.table.verdicts.items())
            if key[-1] <= self.settings.repeats
        ]
        return hashlib.sha256(json.dumps([_KEY, lines]).encode()).hexdigest()

    def with_table(self, table: RunVerdicts) -> TableJudge:
        """The same judge with the verdicts of its table."""
        return replace(self, table=table)

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """The verdict of the table on the run of a case; raises `Unscored` where it has none."""
        del calls  # nothing is asked
        run = f"the run {case.run.run_id!r} (epoch {case.run.epoch}) under {case.rubric.id!r}"
        natural = KINDS[case.spec.test].natural and not case.spec.variant and not case.style
        if not natural or case.altered or case.messages != case.run.messages:
            raise self._missing(
                f"{self.table.file} has verdicts on runs as they are, and this case is {run}, "
                "changed",
                "Restore the case as it was written, or leave it to other judges.",
            )
        key = (case.rubric.id, case.run.run_id, case.run.epoch, repeat)
        verdict = self.table.verdicts.get(key)
        if verdict is None and repeat > 1:
            raise self._missing(
                f"{self.table.file} has no verdict of repeat {repeat} on {run}",
                "Add the line, or set `repeats` of this judge to what the table has.",
            )
        if verdict is None:
            raise self._missing(
                f"{self.table.file} has no verdict on {run}",
                "Add a line with it, or have the judge judge that run.",
            )
        if verdict.score is None:
            raise self._missing(
                f"{self.table.file}, line {verdict.line} has no verdict on {run}",
                "Write it there, or have the judge judge that run.",
            )
        if verdict.content and verdict.content != self.table.content_of(case):
            raise self._missing(
                f"{self.table.file}, line {verdict.line} has a verdict on {run} for another text "
                "of the transcript or the rubric, as its `content` says",
                "Have the judge judge it anew.",
            )
        return Verdict(verdict.score, verdict.reasoning[:_LONGEST_REASONING])

    def _missing(self, cause: str, advice: str) -> Unscored:
        return Unscored(
            "input_error",
            stage=JUDGE.name,
            cause=f"{cause}.",
            advice=advice,
            happened="the judge gave no verdict",
        )

    @property
    def _keys(self) -> VerdictsKeys:
        section = self.settings.section
        assert isinstance(section, VerdictsKeys)
        return section


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> TableJudge:
    del mode, instruction  # its verdicts have been given
    return TableJudge(settings)


def _with_files(section: Any, relocated: Callable[[str, tuple[str, ...]], str]) -> Any:
    if section.verdicts is None:
        return section
    return section.model_copy(update={_KEY: relocated(section.verdicts, (_KEY,))})


VERDICTS = JudgeKind(
    key=_KEY,
    build=_build,
    keys=VerdictsKeys,
    asks_model=False,
    judges_runs=True,
    with_files=_with_files,
    start=JudgeStart(
        # A table has one verdict on a run, unless its column `repeat` says otherwise.
        keys=lambda path, _mode: {_KEY: path, "repeats": 1},
        notes=("column: NAME                           # where it is not verdict or score",),
        about=("# The judge under test: a table of verdicts. It asks nothing.",),
    ),
)
