"""The runs of several files as those of one source (rule R1)."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.documents.problems import printable
from pytest_jrh.errors import InputError, Problem, Unscored
from pytest_jrh.sources.source import Source
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.models import AgentRun, RunSummary

Key = tuple[str, int]
# More files than these are opened for each run that is read: a process may have but so many open.
_MOST_OPEN = 100
_MOST_PROBLEMS = 10


class _Place(NamedTuple):
    """Where a run is: the number of its file, and its id there."""

    file: int
    run_id: str


class Joined(Source):
    """Several files, each read with its own source, one after the other.

    An id that stands in two files at the same epoch is followed in all of them by `@` and the
    file's name; all other ids stay as they are.
    """

    suffixes = ()

    def __init__(
        self,
        files: Sequence[Path],
        open_one: Callable[[Path], Source],
        notices: Sequence[str] = (),
    ) -> None:
        self._files = tuple(files)
        self._open_one = open_one
        self._kept = [open_one(file) for file in files] if len(files) <= _MOST_OPEN else []
        self._lock = threading.Lock()
        self._said = dict.fromkeys(notices)
        self._rows: dict[Key, tuple[_Place, RunSummary]] | None = None

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """No single path."""
        del path
        return False

    def summaries(self) -> tuple[RunSummary, ...]:
        """The runs of all files; raises InputError with what is wrong with the first of them."""
        return tuple(summary for _, summary in self._index().values())

    def metadata(self, field: str) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`."""
        return self._named(lambda source: source.metadata(field))

    def scores(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`."""
        return self._named(lambda source: source.scores())

    def aliases(self) -> Mapping[str, Key]:
        """See `Source`; a name that two files have is none."""
        names = self._names()
        found: dict[str, Key | None] = {}
        for number in range(len(self._files)):
            with self._source(number) as source:
                for name, (run_id, epoch) in source.aliases().items():
                    key = names[_Place(number, run_id), epoch]
                    found[name] = key if name not in found else None
        return {name: key for name, key in found.items() if key is not None}

    def read(self, run_id: str, epoch: int, *, whole: bool = False) -> tuple[AgentRun, Any]:
        """Read a run of the file that it is in."""
        found = self._index().get((run_id, epoch))
        if found is None:
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"No file has the run {printable(run_id)} (epoch {epoch}).",
                advice="Collect the suite again.",
            )
        place, _ = found
        with self._source(place.file) as source:
            run, raw = source.read(place.run_id, epoch, whole=whole)
        return replace(run, run_id=run_id), raw

    def notices(self) -> tuple[str, ...]:
        """What was found in all files."""
        for source in self._kept:
            self._said.update(dict.fromkeys(source.notices()))
        return tuple(self._said)

    def import_readers(self, *, whole: bool = False) -> None:
        """See `Source`: where more files are read than stay open, the first one decides."""
        for number in range(len(self._kept) or 1):
            with self._source(number) as source:
                source.import_readers(whole=whole)

    def close(self) -> None:
        """Close the files that are open."""
        for source in self._kept:
            source.close()

    def _named(
        self, found: Callable[[Source], Iterable[tuple[Key, Mapping[str, Any]]]]
    ) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """What each file says of its runs, under their names here."""
        names = self._names()
        for number in range(len(self._files)):
            with self._source(number) as source:
                for (run_id, epoch), value in found(source):
                    yield names[_Place(number, run_id), epoch], value

    def _names(self) -> dict[tuple[_Place, int], Key]:
        return {(place, key[1]): key for key, (place, _) in self._index().items()}

    @contextmanager
    def _source(self, number: int) -> Iterator[Source]:
        if self._kept:
            yield self._kept[number]
            return
        with self._open_one(self._files[number]) as source:
            yield source
            said = source.notices()
        with self._lock:
            self._said.update(dict.fromkeys(said))

    def _index(self) -> dict[Key, tuple[_Place, RunSummary]]:
        with self._lock:
            rows = self._rows
        if rows is None:
            rows = self._indexed()
            with self._lock:
                self._rows = rows
        return rows

    def _indexed(self) -> dict[Key, tuple[_Place, RunSummary]]:
        runs = self._all_runs()
        shared = _shared_ids(runs)
        labels = _labels(self._files)
        rows: dict[Key, tuple[_Place, RunSummary]] = {}
        for place, run in runs:
            summary = run
            if run.run_id in shared:
                # The samples of one dataset, as a rule: what they share, their cases do.
                cluster = run.run_id if run.cluster is None else run.cluster
                own_id = f"{run.run_id}@{labels[place.file]}"
                summary = replace(run, run_id=own_id, cluster=cluster)
            known = rows.setdefault((summary.run_id, run.epoch), (place, summary))
            if known[0] is not place:
                raise self._alike(summary, known[0], place)
        if shared:
            each = next(row.run_id for place, row in rows.values() if place.run_id in shared)
            with self._lock:
                self._said[
                    f"{counted(len(shared), 'id')} of runs in more than one file; these runs are "
                    f"named after their files too, such as {printable(each)}"
                ] = None
        return rows

    def _all_runs(self) -> list[tuple[_Place, RunSummary]]:
        runs: list[tuple[_Place, RunSummary]] = []
        problems: list[Problem] = []
        for number in range(len(self._files)):
            try:
                with self._source(number) as source:
                    found = source.summaries()
            except InputError as error:
                problems += error.problems
                if len(problems) >= _MOST_PROBLEMS:
                    break
            else:
                runs += [(_Place(number, run.run_id), run) for run in found]
        if problems:
            raise InputError(problems)
        return runs

    def _alike(self, run: RunSummary, one: _Place, other: _Place) -> InputError:
        message = (
            f"two runs would be called {printable(run.run_id)} (epoch {run.epoch}): one of this "
            f"file, and one of {self._files[one.file]}"
        )
        hint = "rename one of the two files, or one of the runs"
        return InputError(Problem(message, file=str(self._files[other.file]), hint=hint))


def _shared_ids(runs: Sequence[tuple[_Place, RunSummary]]) -> set[str]:
    seen: dict[Key, int] = {}
    return {
        run.run_id
        for place, run in runs
        if seen.setdefault((run.run_id, run.epoch), place.file) != place.file
    }


def _labels(files: Sequence[Path]) -> list[str]:
    """Name each file by its stem, where no other has it, else by its path from where they part."""
    stems = Counter(file.stem for file in files)
    common = os.path.commonpath([file.absolute().parent for file in files])
    return [
        file.stem if stems[file.stem] == 1 else file.absolute().relative_to(common).as_posix()
        for file in files
    ]
