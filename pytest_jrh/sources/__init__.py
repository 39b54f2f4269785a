"""The sources of transcripts, each in a file of its own, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.sources.eval_logs import EvalLog
from pytest_jrh.sources.eval_logs import load_inspect_eval_runs as load_inspect_eval_runs
from pytest_jrh.suite.suite import MAX_SAMPLE_MB

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.sources.source import Source

SOURCES: tuple[type[Source], ...] = (EvalLog,)
"""The sources in the order in which they are asked; the last one says what a file is not."""
SUFFIXES: tuple[str, ...] = tuple(
    dict.fromkeys(suffix for source in SOURCES for suffix in source.suffixes)
)
"""What the names of files with runs end in."""


def open_source(path: Path, *, max_sample_mb: int = MAX_SAMPLE_MB) -> Source:
    """The source for a path; nothing more is read before its first use."""
    found = next((source for source in SOURCES if source.recognizes(path)), SOURCES[-1])
    return found(path, max_sample_mb=max_sample_mb)
