"""What the summaries of an Inspect log hold beside ids: metadata, scores and uuids of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_jrh.sources.log_parts import LogFile, SampleRow


_REMOVED = "Key removed from summary"


def metadata_by_run(
    file: LogFile,
    rows: Mapping[tuple[str, int], SampleRow],
    field: str,
    own: Callable[[tuple[str, int]], dict[str, Any]],
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The metadata of each sample; `own` reads that of a sample whose summary has none (those of
    older logs), or has not the whole of the field.
    """
    known = {(str(name), epoch): found for name, epoch, found in file.values("metadata")}
    for key, row in rows.items():
        found = known.get((str(row.id), row.epoch))
        if not isinstance(found, dict) or _is_shortened(found.get(field)):
            found = own(key)
        yield key, found


def scores_by_run(
    file: LogFile,
    rows: Mapping[tuple[str, int], SampleRow],
    own: Callable[[tuple[str, int]], Mapping[str, Any]],
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The values of each sample's scores, by scorer; `own` reads those of a sample whose summary
    has none, as in older logs.
    """
    known = {(str(name), epoch): found for name, epoch, found in file.values("scores")}
    for key, row in rows.items():
        found = known.get((str(row.id), row.epoch))
        scores = found if isinstance(found, dict) else own(key)
        yield key, {name: each["value"] for name, each in scores.items() if _is_score(each)}


def keys_by_uuid(
    file: LogFile, rows: Mapping[tuple[str, int], SampleRow]
) -> dict[str, tuple[str, int]]:
    """The uuids of samples, which Scout knows them by; older logs have none."""
    uuids = {(str(name), epoch): uuid for name, epoch, uuid in file.values("uuid")}
    found = {key: uuids.get((str(row.id), row.epoch)) for key, row in rows.items()}
    return {uuid: key for key, uuid in found.items() if isinstance(uuid, str)}


def _is_shortened(value: object) -> bool:
    """Whether a value of a summary may not be the sample's own (Inspect's `thin_metadata`)."""
    return isinstance(value, str) and (value.endswith("...") or value.startswith(_REMOVED))


def _is_score(value: object) -> bool:
    return isinstance(value, dict) and "value" in value
