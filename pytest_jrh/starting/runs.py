"""What the transcripts are that a new suite begins with: their files, runs and form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.documents.strict_json import DamagedError
from pytest_jrh.sources import SUFFIXES, is_conversations, is_database, open_sources
from pytest_jrh.sources.conversations.guessing import guessed_format
from pytest_jrh.sources.finding import find_files
from pytest_jrh.sources.log_parts import refused
from pytest_jrh.suite.suite import InputFormat, SourceSettings

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = ("messages", "id", "cluster")


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """The runs of a file or a folder: how many there are, how many can be used, and where the
    parts of a conversation are, where it is not where they are looked for.
    """

    files: tuple[Path, ...]
    count: int
    usable: int
    format: InputFormat | None
    notices: tuple[str, ...]


def look_at(log: Path) -> FoundRuns:
    """Read what a file or a folder holds; raises InputError where it cannot be used."""
    if is_database(log):
        files = tuple(sorted(file for file in log.rglob("*") if file.is_file()))
    else:
        files = find_files([log], SUFFIXES, is_database).files
    found = None
    first = next(filter(is_conversations, files), None)
    if first is not None:
        try:
            found = guessed_format(first)
        except DamagedError as error:
            raise refused(first, str(error)) from None
    with open_sources(SourceSettings((log,), format=found or InputFormat())) as source:
        summaries = source.summaries()
        notices = source.notices()
    usable = sum(summary.skip_reason is None for summary in summaries)
    return FoundRuns(files, len(summaries), usable, found, notices)


def config_lines(found: InputFormat | None) -> str:
    """Write the section `input_format` for the config; nothing where it is not needed."""
    parts = _parts(found)
    if not parts:
        return ""
    lines = ["", "  # Where the parts of a conversation are in its JSON, as it was found:"]
    return "\n".join([*lines, "  input_format:", *(f"    {key}: {each}" for key, each in parts)])


def said(found: InputFormat | None, config: str) -> list[str]:
    """Say what was found, where it is not what is looked for."""
    parts = ", ".join(f"{key} at {each}" for key, each in _parts(found))
    return [f"Its conversations have {parts}; see input_format in {config}."] if parts else []


def _parts(found: InputFormat | None) -> list[tuple[str, str]]:
    if found is None:
        return []
    given = [(key, getattr(found, key)) for key in _KEYS]
    return [(key, _written(value)) for key, value in given if value is not None]


def _written(value: str | tuple[str, ...]) -> str:
    pointers = [value] if isinstance(value, str) else list(value)
    # JSON is YAML, whatever the pointer is made of.
    return json.dumps(pointers[0] if len(pointers) == 1 else pointers, ensure_ascii=False)
