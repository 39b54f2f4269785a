"""What a source of transcripts is to the rest of the package, whatever it reads.

Which runs belong together, by a field of their metadata: `cluster_key`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pytest_jrh.config.preprocessors import apply, wants_raw_sample
from pytest_jrh.config.values import MAX_SAMPLE_MB, InputFormat
from pytest_jrh.core.documents import MISSING, at, listed, names_in, pointer_to, printable, shown
from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.text import counted
from pytest_jrh.core.transcript import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from pytest_jrh.core.model import AgentRun, Preprocessor, RunSummary


def refused(path: Path, message: str, hint: str | None = None) -> InputError:
    """Make the error for a log that cannot be used at all."""
    return InputError(Problem(message, file=str(path), hint=hint))


def too_big(most_bytes: int) -> str:
    """Say what is too much, and which key of the config allows more."""
    return f"more than {most_bytes // 1_000_000:,} MB when unpacked (suite.max_sample_mb)"


def bytes_of(path: Path, most_bytes: int) -> bytes:
    """All that is in a file; raises InputError where that is too much, or cannot be read."""
    try:
        if path.stat().st_size > most_bytes:
            raise refused(path, f"is {too_big(most_bytes)}")
        return path.read_bytes()
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror or error}") from None


def written_time(written: Any) -> datetime | None:
    """A time of ISO 8601, taken for UTC where it names no time zone; None for anything else."""
    try:
        time = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)


def changed_note(changed: int) -> tuple[str, ...]:
    """The note of a run in which so many characters could not be stored."""
    note = (
        f"{changed} characters that cannot be stored were replaced (lone surrogates) or "
        "dropped (NULs)"
    )
    return (note,) if changed else ()


class Source(ABC):
    """The runs of one file, folder or database, opened when it is first used.

    Safe to use from several threads. It is made with the path, `max_sample_mb`, how much one run
    may be when unpacked, and the config's `input_format`; a subclass makes what else it keeps in
    `_prepare`, and is registered in `pytest_jrh.sources.SOURCES`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """What the names of its files end in, such as `.eval`; the first is the usual one."""
    form: str
    """What is in one of its files, for the user to read."""

    def __init__(
        self,
        path: str | Path,
        *,
        max_sample_mb: int = MAX_SAMPLE_MB,
        input_format: InputFormat | None = None,
    ) -> None:
        self.path = Path(path)
        self._most_bytes = max_sample_mb * 1_000_000
        self._places = input_format or InputFormat()
        self._lock = threading.RLock()
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027 - not every source keeps more
        """Make what is kept beside the path; opens nothing."""

    @classmethod
    def recognizes(cls, path: Path) -> bool:  # noqa: ARG003 - here none
        """Whether a path looks like one to read, by its name or its first bytes.

        False for what is missing or cannot be read. The last of `SOURCES` is not asked.
        """
        return False

    @abstractmethod
    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per run, in the source's own order, without reading a transcript.

        `cluster` is set where the source itself says which runs belong together; the config's
        `cluster_key` comes before that.

        Raises InputError where the source cannot be used at all.
        """

    @abstractmethod
    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one run, and if `with_raw` all that the source itself has of it, else None.

        The second value is what a preprocessor gets as `raw_sample`. Raises Unscored
        (`input_error`) where the run is missing or damaged.
        """

    def _unreadable(self, run_id: str, epoch: int, why: str, advice: str) -> Unscored:
        return Unscored(
            "input_error",
            stage="input",
            cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path} cannot be read: "
            f"{why}.",
            advice=advice,
        )

    def metadata(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """The key (id, epoch) of each run with its metadata.

        What has no metadata, or cannot be read, has an empty one. Here every run is read; a source
        that knows it without that overrides this.
        """
        for run in self.summaries():
            try:
                metadata = self.read(run.run_id, run.epoch)[0].metadata
            except Unscored:
                metadata = {}
            yield (run.run_id, run.epoch), metadata

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """The values that each run has beside its messages, by the names that `labels` and
        `cluster_key` may use.
        """
        return (metadata for _, metadata in self.metadata())

    def forms(self) -> Counter[str]:
        """How many files of each form there are."""
        return Counter([self.form])

    def scores(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """The key (id, epoch) of each run with the values that scorers gave it, by their names;
        here none have any.
        """
        for run in self.summaries():
            yield (run.run_id, run.epoch), {}

    def aliases(self) -> Mapping[str, tuple[str, int]]:
        """Other names that label files may know runs by, each with the run's key; here none."""
        return {}

    def unclear_names(self) -> Mapping[str, Sequence[str]]:
        """Names that a label file cannot mean one run by, each with clear names of the runs that it
        may mean; here none.
        """
        return {}

    def created(self) -> datetime | None:
        """When the runs were written down, as the source itself says; here it says nothing."""
        return None

    def close(self) -> None:  # noqa: B027 - not every source keeps files open
        """Close the files that are open; the next use opens them again."""

    def notices(self) -> tuple[str, ...]:
        """Sentences about what was found so far, for the user to read once a session."""
        return ()

    def run(self, run_id: str, epoch: int, preprocessors: Sequence[Preprocessor] = ()) -> AgentRun:
        """Read one run and apply the preprocessors.

        Raises Unscored (`input_error`) where either fails.
        """
        run, raw = self.read(run_id, epoch, with_raw=any(map(wants_raw_sample, preprocessors)))
        return apply(run, preprocessors, raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


Key: TypeAlias = "tuple[str, int]"
"""The id and epoch of a run."""
_PLACE = "cases.cluster"
_LEAVE_OUT = "leave cases.cluster out, and each sample is a cluster, over its epochs"
# The cluster is a text in every result.
_LONGEST = 120
_DIGEST = 16
_MOST_NAMES = 200


def with_clusters(source: Source, cluster_key: str) -> tuple[RunSummary, ...]:
    """The runs of a source, each with the cluster that its metadata names.

    A run without the field has the one that the source gives it, if any. Raises InputError as
    `clusters_by` does.
    """
    runs = source.summaries()
    clusters = clusters_by(cluster_key, source.metadata())
    return tuple(
        replace(run, cluster=clusters.get((run.run_id, run.epoch)) or run.cluster) for run in runs
    )


def top_field(cluster_key: str) -> str:
    """The field of the metadata that a `cluster_key` is in."""
    if not cluster_key.startswith("/"):
        return cluster_key
    return names_in(cluster_key)[0]


def clusters_by(
    cluster_key: str, runs: Iterable[tuple[Key, Mapping[str, Any]]]
) -> dict[Key, str | None]:
    """The cluster of each run, by a field of its metadata or a JSON pointer into it.

    None where a run has none. Raises InputError where no run has it, or the value is no text,
    number or boolean.
    """
    pointer = cluster_key if cluster_key.startswith("/") else pointer_to(cluster_key)
    clusters: dict[Key, str | None] = {}
    names: dict[str, None] = {}
    for key, metadata in runs:
        value = at(metadata, pointer)
        if isinstance(value, dict | list):
            raise _not_one_value(cluster_key, key, value)
        clusters[key] = None if value is MISSING or value is None else _text(value) or None
        if clusters[key] is None and len(names) < _MOST_NAMES:
            names.update(dict.fromkeys(_names(metadata)))
    if clusters and all(cluster is None for cluster in clusters.values()):
        raise _in_no_run(cluster_key, list(names))
    return clusters


def missing_notice(cluster_key: str, file: str, clusters: Iterable[str | None]) -> tuple[str, ...]:
    """Say of how many runs the field names no cluster; nothing where it does of all."""
    names = list(clusters)
    missing = names.count(None)
    if not missing:
        return ()
    have, them = ("has", "it") if missing == 1 else ("have", "each of them")
    notice = (
        f"{file}: {missing:,} of {counted(len(names), 'run')} {have} no {printable(cluster_key)} "
        f"in the metadata (cases.cluster); {them} is a cluster of its own, over its epochs"
    )
    return (notice,)


def _text(value: str | float) -> str:
    """The value as one line of text, short enough to be in every result.

    White space is made single, as Inspect does in a log's summaries.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(storable(text)[0].split())
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{text[: _LONGEST - _DIGEST - 1]}~{digest}"


def _names(metadata: Mapping[str, Any]) -> list[str]:
    """What may be named: fields, and pointers to those one level down."""
    names = []
    for name, value in list(metadata.items())[:_MOST_NAMES]:
        if isinstance(value, dict):
            names += [pointer_to(name, below) for below in list(value)[:_MOST_NAMES]]
        else:
            names.append(name)
    return names


def _in_no_run(cluster_key: str, names: list[str]) -> InputError:
    if not names:
        message = f"got {shown(cluster_key)}, but no run has metadata"
        return InputError(Problem(message, key=_PLACE, hint=_LEAVE_OUT))
    message = (
        f"got {shown(cluster_key)}, which no run has in its metadata; the fields are "
        f"{listed(sorted(names))}"
    )
    return InputError(Problem(message, key=_PLACE, hint=_LEAVE_OUT))


def _not_one_value(cluster_key: str, key: Key, value: Any) -> InputError:
    run_id, epoch = key
    message = (
        f"got {shown(cluster_key)}, which is {shown(value)} in the run {printable(run_id)} "
        f"(epoch {epoch}); must be text, a number, true or false there"
    )
    return InputError(Problem(message, key=_PLACE, hint="name one value in it by a pointer"))
