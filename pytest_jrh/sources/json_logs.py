"""A `.json` log on disk, its samples found by scanning for their braces."""

from __future__ import annotations

import json
import mmap
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.documents.problems import printable
from pytest_jrh.documents.strict_json import DamagedError
from pytest_jrh.sources.log_parts import (
    SampleRow,
    created_at,
    dataset_ids,
    json_object,
    log_header,
    refused,
    rows_of,
    too_big,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

Span: TypeAlias = "tuple[int, int]"

_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?+|[{}\[\]"]', re.DOTALL)
_BLANK = re.compile(rb"\s*+")
_COMMA = re.compile(rb"\s*+,\s*+")


class JsonLog:
    """A `.json` log: one JSON object, its samples found by scanning for their braces.

    Only where each sample begins and ends is kept; a sample is parsed when it is asked for.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        try:
            keys, self._spans = _scan(path)
        except (DamagedError, OSError) as error:
            raise refused(
                path, f"is truncated or damaged JSON: {error}", "copy the log again, whole"
            ) from None
        if not {"version", "eval"} <= keys.keys():
            raise refused(
                path,
                "is JSON, but not an Inspect log: it has no `version` and `eval`",
                "conversations are a list in a .json file, or one a line in a .jsonl file",
            )
        try:
            spec = self._json(keys["eval"])
        except DamagedError as error:
            raise refused(path, f"its header is damaged: {error}") from None
        self._header = log_header(path, {"eval": spec})
        self._rows = rows_of(path, self._summaries())
        self._places = {
            (str(row.id), row.epoch): span
            for row, span in zip(self._rows, self._spans, strict=True)
        }

    def dataset_ids(self) -> list[int | str]:
        """See `LogFile`."""
        return dataset_ids(self._header)

    def created(self) -> datetime | None:
        """See `LogFile`."""
        return created_at(self._header)

    def rows(self) -> list[SampleRow] | None:
        """See `LogFile`; each sample was read once to know its row."""
        return self._rows

    def values(self, name: str) -> Iterator[tuple[int | str, int, Any]]:
        """See `LogFile`; each sample is parsed once more."""
        for row in self._rows:
            yield row.id, row.epoch, (self.sample(str(row.id), row.epoch) or {}).get(name)

    def sample(self, sample_id: str, epoch: int) -> dict[str, Any] | None:
        """See `LogFile`."""
        span = self._places.get((sample_id, epoch))
        return None if span is None else json_object(self._json(span))

    def close(self) -> None:
        """See `LogFile`; nothing stays open here."""

    def check_sizes(self) -> None:
        """See `LogFile`; Inspect reads none of this."""

    def _summaries(self) -> Iterator[Any]:
        for number, span in enumerate(self._spans, start=1):
            try:
                sample = json_object(self._json(span))
            except DamagedError as error:
                raise refused(
                    self._path, f"sample {number} of {len(self._spans)} is damaged: {error}"
                ) from None
            failure = sample.get("error")
            yield {
                "id": sample.get("id"),
                "epoch": sample.get("epoch"),
                "error": failure.get("message") if isinstance(failure, dict) else failure,
                "message_count": len(sample["messages"])
                if isinstance(sample.get("messages"), list)
                else None,
            }

    def _json(self, span: Span) -> Any:
        start, end = span
        if end - start > self._most_bytes:
            raise DamagedError(f"it is {too_big(self._most_bytes)}")
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                return json.loads(file.read(end - start))
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(str(error) or type(error).__name__) from error


def _scan(path: Path) -> tuple[dict[str, Span], list[Span]]:
    """Find the objects and lists right below the top, by key, and each of the `samples`."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        keys, samples = _scan_bytes(data)
        _check_list(data, keys.get("samples", (0, 0)), samples)
        return keys, samples


def _scan_bytes(data: mmap.mmap) -> tuple[dict[str, Span], list[Span]]:
    keys: dict[str, Span] = {}
    samples: list[Span] = []
    key = ""
    opened: list[int] = []
    for token in _TOKEN.finditer(data):
        match token[0][:1]:
            case b'"':
                if token[1] is None:
                    raise DamagedError(f"unterminated string at byte {token.start()}")
                if len(opened) == 1 and token[2]:
                    key = _new_key(token[1], keys)
                    keys[key] = (token.end(), token.end())
            case b"{" | b"[":
                opened.append(token.start())
            case _:
                span = (opened.pop(), token.end())
                if len(opened) == 1:
                    keys[key] = span
                elif len(opened) == 2 and key == "samples":  # noqa: PLR2004 - the object, and its list
                    samples.append(span)
                elif not opened:
                    _check_end(data, token.end())
                    return keys, samples
    raise DamagedError("unexpected end of input: unclosed brace")


def _new_key(text: bytes, keys: dict[str, Span]) -> str:
    key = text[1:-1].decode("utf-8", "replace")
    if key in keys:
        raise DamagedError(f"duplicate key {printable(key)!r}")
    return key


def _check_end(data: mmap.mmap, end: int) -> None:
    if not _BLANK.fullmatch(data, end):
        raise DamagedError(f"unexpected data after byte {end}")


def _check_list(data: mmap.mmap, span: Span, samples: list[Span]) -> None:
    """Refuse `samples` that is no list of objects: another value in it would go unnoticed."""
    start, end = span
    if start == end:
        return
    edges = [start + 1, *(edge for sample in samples for edge in sample), end - 1]
    between = list(zip(edges[::2], edges[1::2], strict=True))
    if (data[start : start + 1], data[end - 1 : end]) != (b"[", b"]"):
        raise DamagedError("`samples` must be a list")
    for number, (left, right) in enumerate(between):
        inside = 0 < number < len(between) - 1
        fits = (
            _COMMA.fullmatch(data, left, right) if inside else _BLANK.fullmatch(data, left, right)
        )
        if not fits:
            raise DamagedError(f"`samples` must be a list of objects, see byte {left}")
