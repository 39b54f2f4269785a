"""The sources of transcripts, each in a file of its own, in one table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_jrh.config import preprocessors as chain
from pytest_jrh.config.values import MAX_SAMPLE_MB
from pytest_jrh.core.model import DEFAULT_SEED
from pytest_jrh.sources.conversations import Conversations
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.joined import Joined, find_files
from pytest_jrh.sources.json_items import begins_list
from pytest_jrh.sources.sessions import Sessions
from pytest_jrh.sources.source import refused
from pytest_jrh.sources.trajectories import FILES_OF_A_TRIAL, Trajectories, is_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_jrh.config.values import InputFormat
    from pytest_jrh.core.model import AgentRun, Preprocessor
    from pytest_jrh.sources.source import Source


SOURCES: list[type[Source]] = [Sessions, Conversations, Trajectories, EvalLog]
"""The sources in the order in which they are asked; the last one says what a file is not."""


def suffixes() -> tuple[str, ...]:
    """What the names of files with runs end in."""
    return tuple(dict.fromkeys(suffix for source in SOURCES for suffix in source.suffixes))


def is_conversations(path: Path) -> bool:
    """Whether a file is one of conversations, for which `input_format` has a meaning."""
    return type(open_source(path)) is Conversations


def usual_suffix(path: Path) -> str:
    """What the name of a file should end in that is called otherwise."""
    return ".json" if begins_list(path) else SOURCES[-1].suffixes[0]


def open_source(
    path: Path, *, max_sample_mb: int = MAX_SAMPLE_MB, input_format: InputFormat | None = None
) -> Source:
    """The source for a path; nothing more is read before its first use.

    Raises InputError for what is neither a file nor a folder: reading a named pipe or a device
    might never end.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise refused(path, "is neither a file nor a folder")
    kind = next((source for source in SOURCES[:-1] if source.recognizes(path)), SOURCES[-1])
    return kind(path, max_sample_mb=max_sample_mb, input_format=input_format)


def open_sources(
    paths: Sequence[Path],
    is_known: Callable[[str], bool] = lambda _: False,
    *,
    max_sample_mb: int = MAX_SAMPLE_MB,
    input_format: InputFormat | None = None,
) -> Source:
    """The source for all that a suite names; a single file is read as it is.

    `is_known` says whether a run has been recorded under an id that earlier versions gave it.
    Raises InputError for a folder without transcripts.
    """
    open_one = partial(open_source, max_sample_mb=max_sample_mb, input_format=input_format)
    only = paths[0] if len(paths) == 1 else None
    if only is not None and (not only.is_dir() or is_trial(only)):
        return open_one(only)
    folder = find_files(paths, suffixes())
    if len(folder.files) == 1 and not folder.notices:
        return open_one(folder.files[0])
    return Joined(folder.files, open_one, folder.notices, is_known)


def files_in(log: Path) -> tuple[Path, ...]:
    """The files that the runs of a file or a folder are read from.

    Raises InputError for a folder without transcripts.
    """
    files: list[Path] = []
    for file in find_files([log], suffixes()).files:
        of_trial = [file / name for name in FILES_OF_A_TRIAL]
        files += [part for part in of_trial if part.is_file()] if file.is_dir() else [file]
    return tuple(files)


def load_inspect_eval_runs(
    path: str | Path,
    transcript_preprocessors: Sequence[str | Preprocessor] = (),
    *,
    sample_num: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Iterator[AgentRun]:
    """Yield one run per sample and epoch of an Inspect log (`.eval`, `.json`), in the log's order.

    `transcript_preprocessors` run in order on a copy of each run; `sample_num` picks so many
    runs, the same for the same `seed`, and None or 0 means all (A9). Raises InputError where the
    file is no usable log, at the first `next()`, and Unscored for a sample that cannot be read.
    """
    # It reads configs, whose shape is made once all kinds of judges and probes are known.
    from pytest_jrh.config.probes import sample

    steps = [chain.resolve(step) for step in transcript_preprocessors]
    with EvalLog(path) as log:
        for summary in sample(log.summaries(), sample_num, seed):
            yield log.run(summary.run_id, summary.epoch, steps)
