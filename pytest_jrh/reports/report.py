"""What a report is to the rest of the package, whatever it tells and wherever it is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from pytest_jrh.core import Styled, absolute, frozen
from pytest_jrh.core.files import atomic_write

# A project's report is imported before its rows are added to tables, and with a session come those
# who read them.
if TYPE_CHECKING:
    from pytest_jrh.reports.session import Session


@frozen
class Display:
    """How the ending is printed.

    Paths are named relative to `folder`. `verbosity` is pytest's. `written` are files of reports.
    """

    folder: Path
    width: int = 80
    verbosity: int = 0
    written: Sequence[Path] = ()


class Report:
    """One way to say what a session came to, registered in `ending.REPORTS`.

    A subclass overrides what it has: a file of its own, or lines at the end of the session.
    Whatever it needs much code for, it imports when it is asked.
    """

    suffix: ClassVar[str] = ""
    """How the names of its files end that `--jrh-report` names."""
    variable: ClassVar[str] = ""
    """An environment variable that names a file which `text` is appended to."""

    def text(self, session: Session) -> str:
        """The content of its file, for a report that fits in memory."""
        raise NotImplementedError

    def write(self, path: Path, session: Session) -> None:
        """Write its file; raises `OSError` or `InputError` where that fails."""
        atomic_write(path, self.text(session))

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:  # noqa: ARG002
        """What it prints at the end of the session, behind all notices."""
        return ()


def ci_links(page: Path | None) -> dict[str, str]:
    """Where the `run` of a job of GitHub Actions or GitLab CI is seen, and the session's page, the
    `report`, among the files that the job keeps; empty elsewhere.
    """
    env = os.environ
    if run_id := env.get("GITHUB_RUN_ID"):
        repository = f"{env.get('GITHUB_SERVER_URL')}/{env.get('GITHUB_REPOSITORY')}"
        run = f"{repository}/actions/runs/{run_id}"
        # An artifact has its own address only once it is uploaded; the run lists them here.
        report = f"{run}#artifacts"
    elif job := env.get("CI_JOB_URL"):
        run = env.get("CI_PIPELINE_URL", job)
        report = f"{job}/artifacts/browse"
        folder = absolute(Path(env.get("CI_PROJECT_DIR", "")))
        if page is not None and absolute(page).is_relative_to(folder):
            path = absolute(page).relative_to(folder).as_posix()
            report = f"{job}/artifacts/file/{quote(path)}"
    else:
        return {}
    return {"run": run} if page is None else {"run": run, "report": report}
