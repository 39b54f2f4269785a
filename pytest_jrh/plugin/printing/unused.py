"""The cassettes that no case uses: `--jrh-report-unused` and `--jrh-prune` (rule G7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.files import relative_path
from pytest_jrh.recording.unused import prune, unused_cassettes
from pytest_jrh.suite.ids import cassette_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_jrh.loading import ReadySuite


class UnusedCassettes:
    """What a session found, and removed where it `prunes`; `problems` are sentences."""

    def __init__(self, *, prunes: bool) -> None:
        self._prunes = prunes
        self._found: list[Path] = []
        self.problems: list[str] = []

    def look(self, ready: ReadySuite, folder: Path) -> None:
        """Find those of a suite in its cassette folder, and remove them where that is asked for."""
        used = {
            cassette_path(folder, spec, judging=judging)
            for spec in ready.specs()
            for judging in (False, True)
        }
        found = unused_cassettes(folder, used, frozen=ready.suite.replay.frozen is not None)
        if self._prunes:
            found, problems = prune(folder, found)
            self.problems += problems
        self._found += found

    def lines(self, folder: Path) -> Iterator[str]:
        """Name them, relative to the folder."""
        yield f"{'removed' if self._prunes else 'unused'} cassettes: {len(self._found)}"
        yield from (f"  {relative_path(path, folder)}" for path in self._found)

    def __bool__(self) -> bool:
        return bool(self._found)
