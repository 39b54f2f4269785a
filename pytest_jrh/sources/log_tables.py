"""What a log says of its runs, as a table of verdicts and labels: scores and fields of the
metadata.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import MISSING, at, pointer_to
from pytest_jrh.sources import open_sources
from pytest_jrh.sources.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


SCORER, METADATA = "scorer:", "metadata:"
"""How options name what a log has: a scorer, a field of the metadata."""
_LOG_SUFFIX = ".eval"


def names_log(path: Path, columns: Iterable[str]) -> bool:
    """Whether a table is to be made of a log, or of a folder such as a job of Harbor: by its name,
    or by what options name of it.
    """
    # Unlike a path's own question, false of a name that is too long for a file.
    is_folder = os.path.isdir(path)  # noqa: PTH112
    return is_folder or path.suffix.lower() == _LOG_SUFFIX or any(map(is_in_log, columns))


def is_in_log(column: str) -> bool:
    """Whether the name of a column is one of what a log has."""
    return column.startswith((SCORER, METADATA))


def log_table(path: Path, file: str, named: Sequence[str]) -> Table:
    """A table with a row for each run of a log: its id, epoch, scores and fields of metadata, also
    parts of them that are `named` by a pointer. Rows are counted from 1.
    """
    columns: dict[str, list[Any]] = {}
    with open_sources((path,)) as source:
        keys = [(run.run_id, run.epoch) for run in source.summaries()]
        for prefix, values in ((SCORER, source.scores()), (METADATA, source.metadata())):
            by_run = dict(values)
            names = [f"{prefix}{name}" for of_run in by_run.values() for name in of_run]
            names += [name for name in named if name.startswith(f"{prefix}/")]
            for name in dict.fromkeys(names):
                pointer = name.removeprefix(prefix)
                if not pointer.startswith("/"):
                    pointer = pointer_to(pointer)
                columns[name] = [_cell(at(by_run.get(key, {}), pointer)) for key in keys]
    ids, epochs = [run_id for run_id, _ in keys], [epoch for _, epoch in keys]
    return Table(file, range(1, len(keys) + 1), {"id": ids, "epoch": epochs, **columns})


def _cell(value: Any) -> Any:
    """A value of the log; None for a score that a scorer left out, which Inspect writes as NaN."""
    if value is MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    return value
