"""What a source of transcripts is to the rest of the package, whatever it reads (rule R4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_jrh.errors import Unscored
from pytest_jrh.suite.preprocessors import apply, wants_raw_sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pytest_jrh.models import AgentRun, Preprocessor, RunSummary
    from pytest_jrh.suite.suite import InputFormat


def changed_note(changed: int) -> tuple[str, ...]:
    """The note of a run in which so many characters could not be stored (rule C6)."""
    note = (
        f"{changed} characters that cannot be stored were replaced (lone surrogates) or "
        "dropped (NULs)"
    )
    return (note,) if changed else ()


class Source(ABC):
    """The runs of one file, folder or database, opened when it is first used.

    Safe to use from several threads. A subclass is made with the path, `max_sample_mb`, how much
    one run may be when unpacked, and the config's `input_format`, and is registered in
    `pytest_jrh.sources.SOURCES`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """What the names of its files end in, such as `.eval`; the first is the usual one."""

    @abstractmethod
    def __init__(
        self, path: Path, *, max_sample_mb: int, input_format: InputFormat | None = None
    ) -> None: ...

    @classmethod
    @abstractmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a path looks like one to read, by its name or its first bytes.

        False for what is missing or cannot be read.
        """

    @abstractmethod
    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per run, in the source's own order, without reading a transcript.

        `cluster` is set where the source itself says which runs belong together; the config's
        `cluster_key` comes before that (`sources.clusters`).

        Raises InputError where the source cannot be used at all.
        """

    @abstractmethod
    def read(self, run_id: str, epoch: int, *, whole: bool = False) -> tuple[AgentRun, Any]:
        """Read one run, and if `whole` all that the source itself has of it, else None.

        The second value is what a preprocessor gets as `raw_sample`. Raises Unscored
        (`input_error`) where the run is missing or damaged.
        """

    def metadata(self, field: str) -> Iterator[tuple[tuple[str, int], Mapping[str, Any]]]:
        """The key (id, epoch) of each run with its metadata, in which `field` at least is whole.

        What has no metadata, or cannot be read, has an empty one. Here every run is read; a source
        that knows the field without that overrides this.
        """
        del field
        for run in self.summaries():
            try:
                metadata = self.read(run.run_id, run.epoch)[0].metadata
            except Unscored:
                metadata = {}
            yield (run.run_id, run.epoch), metadata

    def scores(self) -> Iterator[tuple[tuple[str, int], Mapping[str, Any]]]:
        """The key (id, epoch) of each run with the values that scorers gave it, by their names.

        Here none have any.
        """
        for run in self.summaries():
            yield (run.run_id, run.epoch), {}

    def aliases(self) -> Mapping[str, tuple[str, int]]:
        """Other names that label files may know runs by, each with the run's key; here none."""
        return {}

    def created(self) -> datetime | None:
        """When the runs were written down, as the source itself says; here it says nothing."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the files that are open; the next use opens them again."""

    def notices(self) -> tuple[str, ...]:
        """Sentences about what was found so far, for the user to read once a session."""
        return ()

    def import_readers(self, *, whole: bool = False) -> None:  # noqa: B027 - most need no library
        """Import the libraries that runs are read with, at a moment of the caller's choice.

        `whole` as for `read`.
        """

    def run(self, run_id: str, epoch: int, preprocessors: Sequence[Preprocessor] = ()) -> AgentRun:
        """Read one run and apply the preprocessors.

        Raises Unscored (`input_error`) where either fails.
        """
        run, raw = self.read(run_id, epoch, whole=any(map(wants_raw_sample, preprocessors)))
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
