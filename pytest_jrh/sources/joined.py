"""The runs of several files as those of one source.

The files with transcripts below folders.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.config.places import MOST_FILES, SCOUT
from pytest_jrh.config.rubrics import looks_like_rubrics, read_head
from pytest_jrh.core.documents import listed, printable
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem, Unscored
from pytest_jrh.core.text import counted
from pytest_jrh.sources.json_items import first_of_list, is_one_conversation, places_of_messages
from pytest_jrh.sources.sessions import is_response
from pytest_jrh.sources.source import Source, refused
from pytest_jrh.sources.trajectories import HARBORS_FILES, Trajectories, is_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_jrh.core.model import AgentRun, RunSummary


Key = tuple[str, int]
# Of more files the one that was used longest ago is closed: a process may have but so many open.
_MOST_OPEN = 100


class _Place(NamedTuple):
    """Where a run is: the number of its file, and its id there."""

    file: int
    run_id: str


class Joined(Source):
    """Several files, each read with its own source, one after the other.

    An id that stands in several files at the same epoch stays as it is in the one that was begun
    first, and is followed by `@` and the file's name in the others; all other ids stay as they are.
    Earlier versions renamed it in all of them: where `is_known` is true of such a name, the run
    keeps it.
    """

    suffixes = ()
    form = "several files"

    def __init__(
        self,
        files: Sequence[Path],
        open_one: Callable[[Path], Source],
        notices: Sequence[str] = (),
        is_known: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._files = tuple(files)
        self._open_one = open_one
        self._is_known = is_known
        self._lock = threading.RLock()
        # What a source keeps beside its open file is small, so each is made once.
        self._sources: dict[int, Source] = {}
        # Of those that may be open, how many use them now; the last one to be used is the last.
        self._users: dict[int, int] = {}
        self._said = dict.fromkeys(notices)
        self._rows: dict[Key, tuple[_Place, RunSummary]] | None = None
        self._unclear: dict[str, tuple[str, ...]] = {}

    def summaries(self) -> tuple[RunSummary, ...]:
        """The runs of all files; raises InputError with what is wrong with the first of them."""
        return tuple(summary for _, summary in self._index().values())

    def metadata(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`."""
        return self._named(lambda source: source.metadata())

    def scores(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`."""
        return self._named(lambda source: source.scores())

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """See `Source`."""
        for number in range(len(self._files)):
            with self._source(number) as source:
                yield from source.fields()

    def forms(self) -> Counter[str]:
        """See `Source`."""
        forms: Counter[str] = Counter()
        for number in range(len(self._files)):
            with self._source(number) as source:
                forms += source.forms()
        return forms

    def aliases(self) -> Mapping[str, Key]:
        """See `Source`; a name that two files have is none."""
        names = self._names()
        keys: dict[str, Key | None] = {}
        for number in range(len(self._files)):
            with self._source(number) as source:
                for name, (run_id, epoch) in source.aliases().items():
                    key = names[_Place(number, run_id), epoch]
                    keys[name] = key if name not in keys else None
        return {name: key for name, key in keys.items() if key is not None}

    def unclear_names(self) -> Mapping[str, Sequence[str]]:
        """See `Source`: where the files do not say which of them was begun first, one that is added
        may have taken the name.
        """
        self._index()
        return self._unclear

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read a run of the file that it is in."""
        row = self._index().get((run_id, epoch))
        if row is None:
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"No file has the run {printable(run_id)} (epoch {epoch}).",
                advice="Collect the suite again.",
            )
        origin, _ = row
        with self._source(origin.file) as source:
            run, raw = source.read(origin.run_id, epoch, with_raw=with_raw)
        return replace(run, run_id=run_id), raw

    def notices(self) -> tuple[str, ...]:
        """What was found in all files."""
        with self._lock:
            sources = [self._sources[number] for number in sorted(self._sources)]
            notices = dict.fromkeys(self._said)
        for source in sources:
            notices.update(dict.fromkeys(source.notices()))
        return tuple(notices)

    def close(self) -> None:
        """Close the files that are open."""
        with self._lock:
            sources = list(self._sources.values())
        for source in sources:
            source.close()

    def _named(
        self, values_of: Callable[[Source], Iterable[tuple[Key, Mapping[str, Any]]]]
    ) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """What each file says of its runs, under their names here."""
        names = self._names()
        for number in range(len(self._files)):
            with self._source(number) as source:
                for (run_id, epoch), value in values_of(source):
                    yield names[_Place(number, run_id), epoch], value

    def _names(self) -> dict[tuple[_Place, int], Key]:
        return {(origin, key[1]): key for key, (origin, _) in self._index().items()}

    @contextmanager
    def _source(self, number: int) -> Iterator[Source]:
        with self._lock:
            source = self._sources.get(number)
            if source is None:
                source = self._sources[number] = self._open_one(self._files[number])
            self._users[number] = self._users.pop(number, 0) + 1
        try:
            yield source
        finally:
            with self._lock:
                self._users[number] -= 1
                self._close_unused()

    def _close_unused(self) -> None:
        """Close what was used longest ago, as long as more than a few files may be open."""
        if len(self._users) > _MOST_OPEN:
            number = next((number for number, users in self._users.items() if not users), None)
            if number is not None:
                del self._users[number]
                self._sources[number].close()

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
        renamed = self._renamed(runs, shared) if shared else {}
        rows: dict[Key, tuple[_Place, RunSummary]] = {}
        for origin, run in runs:
            summary = run
            if run.run_id in shared:
                # The samples of one dataset, as a rule: what they share, their cases do.
                cluster = run.run_id if run.cluster is None else run.cluster
                run_id, former_id = renamed[origin]
                summary = replace(run, run_id=run_id, cluster=cluster, former_id=former_id)
            first = rows.setdefault((summary.run_id, run.epoch), (origin, summary))
            if first[0] is not origin:
                raise self._alike(summary, first[0], origin)
        return rows

    def _renamed(
        self, runs: Sequence[tuple[_Place, RunSummary]], shared: Collection[str]
    ) -> dict[_Place, tuple[str, str | None]]:
        """The id of each run whose id is shared, and its former one, where that is another."""
        times = self._times()
        order = self._by_age(times)
        labels = _labels([self._files[number] for number in order])
        former_labels = _former_labels(self._files)
        epochs: dict[int, dict[str, set[int]]] = {number: {} for number in order}
        for origin, run in runs:
            if run.run_id in shared:
                epochs[origin.file].setdefault(run.run_id, set()).add(run.epoch)
        taken: dict[str, set[int]] = {}
        renamed: dict[_Place, tuple[str, str | None]] = {}
        for number, label in zip(order, labels, strict=True):
            for run_id, own_epochs in epochs[number].items():
                former_id = f"{run_id}@{former_labels[number]}"
                taken_epochs = taken.setdefault(run_id, set())
                new_id = f"{run_id}@{label}" if taken_epochs & own_epochs else run_id
                taken_epochs |= own_epochs
                if self._is_known(former_id):
                    new_id = former_id
                origin = _Place(number, run_id)
                renamed[origin] = (new_id, None if new_id == former_id else former_id)
        self._unclear = _unclear_names(self._files, epochs, times)
        self._say_renamed(renamed, len(shared), order)
        return renamed

    def _times(self) -> dict[int, datetime]:
        """When each file was begun, by its number, of those that say so."""
        times: dict[int, datetime] = {}
        for number in range(len(self._files)):
            with self._source(number) as source:
                if (time := source.created()) is not None:
                    times[number] = time
        return times

    def _by_age(self, times: Mapping[int, datetime]) -> list[int]:
        """The numbers of the files: those that say when they were begun by that time, then others.

        One file more changes the order of no others.
        """
        undated = [number for number in range(len(self._files)) if number not in times]
        return [*sorted(times, key=lambda number: times[number]), *undated]

    def _say_renamed(
        self, renamed: Mapping[_Place, tuple[str, str | None]], shared: int, order: Sequence[int]
    ) -> None:
        renamed_files = {origin.file for origin in renamed}
        first = next(self._files[number].name for number in order if number in renamed_files)
        example = next(new for origin, (new, _) in renamed.items() if new != origin.run_id)
        with self._lock:
            self._said[
                f"{counted(shared, 'id')} of runs in more than one file; those of {first} stay as "
                "they are, and those of newer files have the file's name behind them, such as "
                f"{printable(example)}"
            ] = None

    def _all_runs(self) -> list[tuple[_Place, RunSummary]]:
        runs: list[tuple[_Place, RunSummary]] = []
        problems: list[Problem] = []
        for number in range(len(self._files)):
            try:
                with self._source(number) as source:
                    summaries = source.summaries()
            except InputError as error:
                problems += error.problems
                if len(problems) >= MOST_PROBLEMS:
                    break
            else:
                runs += [(_Place(number, run.run_id), run) for run in summaries]
        if problems:
            raise InputError(problems)
        return runs

    def _alike(self, run: RunSummary, first: _Place, second: _Place) -> InputError:
        message = (
            f"two runs would be called {printable(run.run_id)} (epoch {run.epoch}): one of this "
            f"file, and one of {self._files[first.file]}"
        )
        hint = "rename one of the two files, or one of the runs"
        return InputError(Problem(message, file=str(self._files[second.file]), hint=hint))


def _shared_ids(runs: Sequence[tuple[_Place, RunSummary]]) -> set[str]:
    files: dict[Key, int] = {}
    return {
        run.run_id
        for origin, run in runs
        if files.setdefault((run.run_id, run.epoch), origin.file) != origin.file
    }


def _unclear_names(
    files: Sequence[Path],
    epochs: Mapping[int, Mapping[str, Collection[int]]],
    times: Mapping[int, datetime],
) -> dict[str, tuple[str, ...]]:
    """The names that the order of the files alone gives to one of several runs; clear ones of each.

    A name is clear where all files with such a run say when they were begun, and one did so first.
    """
    former_labels = _former_labels(files)
    holders: dict[str, list[int]] = {}
    ids: dict[str, str] = {}
    for number, file in enumerate(files):
        for run_id in epochs[number]:
            name_with_file = f"{run_id}@{file.stem}"
            ids[name_with_file] = run_id
            holders.setdefault(run_id, []).append(number)
            holders.setdefault(name_with_file, []).append(number)
    unclear: dict[str, tuple[str, ...]] = {}
    for name, numbers in holders.items():
        begun = sorted(times[number] for number in numbers if number in times)
        if len(numbers) > 1 and (len(begun) < len(numbers) or begun[0] == begun[1]):
            run_id = ids.get(name, name)
            unclear[name] = tuple(f"{run_id}@{former_labels[number]}" for number in numbers)
    return unclear


def _labels(files: Sequence[Path]) -> list[str]:
    """Name each file by its stem, where none before it has it, else by its path from where they
    part: files that follow change no name.
    """
    labels: list[str] = []
    stems: set[str] = set()
    common = str(files[0].absolute().parent)
    for file in files:
        common = os.path.commonpath([common, file.absolute().parent])
        path = file.absolute().relative_to(common).as_posix()
        labels.append(path if file.stem in stems else file.stem)
        stems.add(file.stem)
    return labels


def _former_labels(files: Sequence[Path]) -> list[str]:
    """The names of files in earlier versions: the stem, where no other has it, else the path from
    where all of them part.
    """
    stems = Counter(file.stem for file in files)
    common = os.path.commonpath([file.absolute().parent for file in files])
    return [
        file.stem if stems[file.stem] == 1 else file.absolute().relative_to(common).as_posix()
        for file in files
    ]


_JSON = ".json"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Files with transcripts, in order, and sentences about what was left out."""

    files: tuple[Path, ...]
    notices: tuple[str, ...] = ()


def find_files(paths: Sequence[Path], suffixes: Sequence[str]) -> Found:
    """List the files that the paths stand for, each once: a file for itself, a folder for all
    below it whose names end in one of the suffixes.

    Of a folder's `.json` files those count that look like transcripts. The folder of a trial of
    Harbor is one of the files. Hidden files are left out, and links to folders are not followed.
    Raises InputError for a folder without transcripts, or with too many.
    """
    files: dict[Path, Path] = {}
    notices = []
    for path in paths:
        if not path.is_dir() or is_trial(path):
            files.setdefault(path.resolve(), path)
            continue
        inside = _inside(path, suffixes)
        left_out = [file for file in inside if not _has_transcripts(file)]
        transcripts = [file for file in inside if file not in set(left_out)]
        files.update({file.resolve(): file for file in transcripts})
        if left_out:
            names = listed((str(file.relative_to(path)) for file in left_out), _MOST_NAMED)
            notices.append(
                f"{path.name}: left out {counted(len(left_out), 'file')} that "
                f"{'does' if len(left_out) == 1 else 'do'} not look like transcripts: {names}"
            )
        if len(inside) == len(left_out):
            hint = SCOUT if any(path.glob("*.parquet")) else None
            message = f"holds no transcripts; their names end in {', '.join(suffixes)}"
            raise refused(path, message, hint)
    return Found(tuple(files.values()), tuple(notices))


def _inside(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    transcripts: list[Path] = []
    for file in _walk(folder):
        if file.is_dir() or (file.suffix.lower() in suffixes and file.is_file()):
            transcripts.append(file)
            if len(transcripts) > MOST_FILES:
                raise refused(folder, f"holds more than {MOST_FILES:,} files with transcripts")
    return sorted(transcripts)


def _walk(folder: Path) -> Iterator[Path]:
    def cannot(error: OSError) -> None:
        raise refused(Path(error.filename), f"cannot be read: {error.strerror or error}")

    for where, folders, files in os.walk(folder, onerror=cannot):
        visible = [Path(where, name) for name in folders if not name.startswith(".")]
        trials = {inner for inner in visible if not inner.is_symlink() and is_trial(inner)}
        folders[:] = [inner.name for inner in visible if inner not in trials]
        yield from trials
        for name in files:
            if not name.startswith(".") and not (trials and name in HARBORS_FILES):
                yield Path(where, name)


def _has_transcripts(file: Path) -> bool:
    """Whether a file of a folder is meant: any by its name, but one that is called `.json` may be
    anything.
    """
    if file.is_dir() or file.suffix.lower() != _JSON or Trajectories.recognizes(file):
        return True
    if is_response(file) or is_one_conversation(file):
        return True
    head = read_head(file)
    if head.lstrip("\ufeff \t\r\n").startswith("["):
        if not looks_like_rubrics(file):
            return '"role"' in head
        # A task may have an id and instructions, too.
        return bool(places_of_messages(first_of_list(file)))
    return '"eval"' in head and '"version"' in head
