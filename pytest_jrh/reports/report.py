"""What a report is to the rest of the package, whatever it tells and wherever it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pytest_jrh.core.files import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, CaseResult, CaseSpec
    from pytest_jrh.core.text import Styled
    from pytest_jrh.reports.session import Session, SuiteRun
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.panels import Panel
    from pytest_jrh.store.tables import Columns, TableRow


@dataclass(frozen=True, slots=True)
class SuiteMaterial:
    """What a report may use of one suite, beside the session's other suites.

    `results` are in the suite's order, with those of earlier sessions that still hold; `session`
    says how many of them this session ran. `panel` is all judges taken together.
    """

    run: SuiteRun
    results: Sequence[CaseResult]
    decision: Decision | None
    panel: Panel | None
    session: Mapping[str, Any]

    @property
    def suite(self) -> Suite:
        """The suite itself."""
        return self.run.suite


@dataclass(frozen=True, slots=True)
class MadeCase:
    """A case as it is on the disk, its transcript where it was made, and its results."""

    spec: CaseSpec
    case: Case | None
    transcript: str | None
    results: Sequence[CaseResult]


class CaseTable(NamedTuple):
    """A CSV or XLSX file with rows of cases: `rows` are what one case adds to it."""

    path: Path
    columns: Columns
    rows: Callable[[MadeCase], Iterable[TableRow]]


@dataclass(frozen=True, slots=True)
class Display:
    """How the ending is printed.

    Paths are named relative to `folder`, and those of annotations to `workspace` where GitHub does
    not say which. `verbosity` is pytest's. Without `skips` the reasons of cases that could not be
    made are left out. `page` is the HTML report of the session, where one was written. `explained`
    are cases whose reason is printed above.
    """

    folder: Path
    workspace: Path
    width: int = 80
    verbosity: int = 0
    skips: bool = True
    page: str = ""
    explained: frozenset[str] = frozenset()


class Report:
    """One way to say what a session came to, registered in `writing.REPORTS`.

    A subclass overrides what it has: a file of its own, lines at the end of the session,
    or files beside a suite's results. Whatever it needs much code for, it imports when it is asked.
    """

    name: ClassVar[str]
    suffix: ClassVar[str] = ""
    """How the names of its files end that `--jrh-report` names."""
    is_for_runner: ClassVar[bool] = False
    """Whether its lines are meant as commands to GitHub's runner."""
    variable: ClassVar[str] = ""
    """An environment variable that names a file which `text` is appended to."""

    def text(self, session: Session) -> str:
        """The content of its file, for a report that fits in memory."""
        raise NotImplementedError

    def write(self, path: Path, session: Session) -> None:
        """Write its file; raises `OSError` or `InputError` where that fails."""
        atomic_write(path, self.text(session))

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:  # noqa: ARG002
        """What it prints before the session's notices."""
        return ()

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:  # noqa: ARG002
        """What it prints after the session's notices."""
        return ()

    def tables(self, suite: SuiteMaterial) -> Iterable[CaseTable]:  # noqa: ARG002
        """Its tables of a suite's cases, which are written row by row."""
        return ()

    def documents(self, suite: SuiteMaterial) -> Iterable[tuple[Path, Any]]:  # noqa: ARG002
        """Its JSON files beside a suite's results, as values."""
        return ()
