"""The forms of transcripts, in one table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_jrh.config import preprocessors as chain
from pytest_jrh.core.model import DEFAULT_SEED
from pytest_jrh.sources.claude_code import CLAUDE_CODE
from pytest_jrh.sources.codex import CODEX
from pytest_jrh.sources.conversations import (
    CONVERSATIONS,
    ITEMS,
    MESSAGES,
    ONE_CONVERSATION,
    guessed_format,
)
from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.joined import Joined, find_files
from pytest_jrh.sources.source import Conversation, Form, Head, refused
from pytest_jrh.sources.trajectories import ATIF, FILES_OF_A_TRIAL, TRIAL, is_trial
from pytest_jrh.sources.transcripts import Transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_jrh.core.model import AgentRun, Preprocessor
    from pytest_jrh.core.sections import InputFormat
    from pytest_jrh.sources.source import Source

__all__ = ["Conversation", "Form", "Head", "guessed_format"]

INSPECT = Form(
    "Inspect log",
    (".eval", ".json"),
    recognizes=lambda head: head.path.suffix.lower() == ".eval" or head.is_inspect_log,
    source=EvalLog,
)
FORMS: list[Form] = [
    CLAUDE_CODE,
    CODEX,
    ITEMS,
    MESSAGES,
    ONE_CONVERSATION,
    CONVERSATIONS,
    ATIF,
    TRIAL,
    INSPECT,
]
"""The forms in the order in which they are asked; the last one says what a file is not."""


def suffixes() -> tuple[str, ...]:
    """What the names of files with runs end in."""
    return tuple(dict.fromkeys(suffix for form in FORMS for suffix in form.suffixes))


def form_of(path: Path) -> Form | None:
    """The form of a file or a folder; None where it is of none."""
    head = Head(path)
    return next((form for form in FORMS if form.fits(head)), None)


def is_conversations(path: Path) -> bool:
    """Whether a file is one of conversations, for which `input_format` has a meaning."""
    return form_of(path) in (CONVERSATIONS, ONE_CONVERSATION)


def open_source(path: Path, *, input_format: InputFormat | None = None) -> Source:
    """The source for a path; nothing more is read before its first use.

    Raises InputError for what is neither a file nor a folder: reading a named pipe or a device
    might never end.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise refused(path, "is neither a file nor a folder")
    form = form_of(path) or FORMS[-1]
    source = form.source or Transcripts
    return source(path, form, input_format=input_format)


def open_sources(paths: Sequence[Path], *, input_format: InputFormat | None = None) -> Source:
    """The source for all that a suite names; a single file is read as it is.

    Raises InputError for a folder without transcripts.
    """
    open_one = partial(open_source, input_format=input_format)
    if len(paths) == 1 and (not paths[0].is_dir() or is_trial(paths[0])):
        return open_one(paths[0])
    files, notices = find_files(paths, suffixes(), _has_transcripts)
    if len(files) == 1 and not notices:
        return open_one(files[0])
    return Joined([open_one(file) for file in files], notices)


def _has_transcripts(file: Path) -> bool:
    """Whether a file of a folder is meant: any by its name, but one that is called `.json` may be
    anything.
    """
    if file.suffix.lower() != ".json":
        return True
    form, head = form_of(file), Head(file)
    if form is not CONVERSATIONS:
        return form is not None
    return '"role"' in head.text


def files_in(log: Path) -> tuple[Path, ...]:
    """The files that the runs of a file or a folder are read from.

    Raises InputError for a folder without transcripts.
    """
    files: list[Path] = []
    for file in find_files([log], suffixes(), _has_transcripts)[0]:
        if file.is_dir():
            parts = (file / name for name in FILES_OF_A_TRIAL)
            files += [part for part in parts if part.is_file()]
        else:
            files.append(file)
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

    steps: list[Preprocessor] = []
    for step in transcript_preprocessors:
        steps.append(chain.resolve(step) if isinstance(step, str) else step)
    with EvalLog(path) as log:
        for summary in sample(log.summaries(), sample_num, seed):
            yield log.run(summary.run_id, summary.epoch, steps)
