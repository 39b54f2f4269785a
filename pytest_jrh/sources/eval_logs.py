"""Runs from Inspect logs, an `.eval` archive or a `.json` file: summaries to collect from, samples
read one at a time.

Collecting thousands of runs must neither import inspect_ai nor hold the log in memory, and reading
one sample must not cost more in a bigger log. So the pieces of a file are found with the standard
library; what a stored sample of any log version means is inspect_ai's to say, which is imported
late.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import ValidationError

from pytest_jrh.config import preprocessors as chain
from pytest_jrh.config.probes import sample as pick
from pytest_jrh.core.documents import DamagedError, printable
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import DEFAULT_SEED, AgentRun, Preprocessor, RunSummary, Skip
from pytest_jrh.core.transcript import storable
from pytest_jrh.sources.log_pieces import (
    JsonLog,
    LogFile,
    SampleRow,
    ZipLog,
    attached_size,
    damage,
    refuse_ids_alike,
    refused,
    rows_by_key,
    too_big,
)
from pytest_jrh.sources.plain_samples import PlainSample, plain_sample
from pytest_jrh.sources.source import Source, changed_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from inspect_ai.log import EvalSample


_GZIP_START = b"\x1f\x8b"
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_START = 64


def looks_like_log(path: Path) -> bool:
    """Whether a file begins like an archive or a JSON object; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return False
    return _is_archive(start) or _is_object(start)


def open_log(path: Path, most_bytes: int) -> LogFile:
    """Open a log by what is in the file, not by what it is called; no piece of it may be more than
    `most_bytes`.

    Raises InputError saying what the file is not: missing, a folder, empty, truncated, foreign.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except FileNotFoundError:
        raise refused(path, "no such log file") from None
    except IsADirectoryError:
        raise refused(
            path, "is a folder, not an Inspect log", "name one .eval or .json file in it"
        ) from None
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror or error}") from None
    if not start:
        raise refused(path, "is empty, so it is not an Inspect log")
    if _is_archive(start):
        return ZipLog(path, most_bytes)
    if _is_object(start):
        return JsonLog(path, most_bytes)
    if start.startswith(_GZIP_START):
        raise refused(path, "is compressed by gzip", "unpack it with gunzip")
    raise refused(
        path, "is not an Inspect log: neither an .eval archive (a zip file) nor a JSON object"
    )


def _is_archive(start: bytes) -> bool:
    return start.startswith(_ZIP_STARTS)


def _is_object(start: bytes) -> bool:
    return start.lstrip().startswith(b"{")


_REMOVED = "Key removed from summary"
_UNCHANGED = "UNCHANGED"


def metadata_by_run(
    file: LogFile,
    rows: Mapping[tuple[str, int], SampleRow],
    field: str,
    read: Callable[[tuple[str, int]], dict[str, Any]],
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The metadata of each sample; `read` reads that of a sample whose summary has none (those of
    older logs), or has not the whole of the field.
    """
    summaries = {(str(name), epoch): fields for name, epoch, fields in file.values("metadata")}
    for key, row in rows.items():
        fields = summaries.get((str(row.id), row.epoch))
        if not isinstance(fields, dict) or _is_shortened(fields.get(field)):
            fields = read(key)
        yield key, fields


def scores_by_run(
    file: LogFile,
    rows: Mapping[tuple[str, int], SampleRow],
    read: Callable[[tuple[str, int]], Mapping[str, Any]],
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The values of each sample's scores, by scorer; `read` reads those of a sample whose summary
    has none, as in older logs.
    """
    summaries = {(str(name), epoch): scores for name, epoch, scores in file.values("scores")}
    for key, row in rows.items():
        scores = summaries.get((str(row.id), row.epoch))
        if not isinstance(scores, dict):
            scores = read(key)
        yield key, {name: score["value"] for name, score in scores.items() if _is_score(score)}


def before_and_after_edits(scores: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a sample's scores as they were given, and of those that people edited since
    (Inspect's `edit_score`) the last value that they gave.

    The first entry of a history is the score as it was; one of a single entry is of a person alone.
    """
    originals: dict[str, Any] = {}
    edited: dict[str, Any] = {}
    for name, score in scores.items():
        if not _is_score(score):
            continue
        history = score.get("history")
        entries = history if isinstance(history, list) else []
        values = [entry.get("value", _UNCHANGED) for entry in entries if isinstance(entry, dict)]
        if not values:
            originals[name] = score["value"]
            continue
        given_by_people = [value for value in values[1:] if value != _UNCHANGED]
        if len(values) > 1 and values[0] != _UNCHANGED:
            originals[name] = values[0]
            if given_by_people:
                edited[name] = given_by_people[-1]
    return originals, edited


def keys_by_uuid(
    file: LogFile, rows: Mapping[tuple[str, int], SampleRow]
) -> dict[str, tuple[str, int]]:
    """The uuids of samples, which Scout knows them by; older logs have none."""
    uuids = {(str(name), epoch): uuid for name, epoch, uuid in file.values("uuid")}
    keys: dict[str, tuple[str, int]] = {}
    for key, row in rows.items():
        uuid = uuids.get((str(row.id), row.epoch))
        if isinstance(uuid, str):
            keys[uuid] = key
    return keys


def _is_shortened(value: object) -> bool:
    """Whether a value of a summary may not be the sample's own (Inspect's `thin_metadata`)."""
    return isinstance(value, str) and (value.endswith("...") or value.startswith(_REMOVED))


def _is_score(value: object) -> bool:
    return isinstance(value, dict) and "value" in value


# Everything else of a sample (events, store, scores, usage) is most of its bulk and none of a run;
# the oldest logs keep their attachments in `transcript`.
_RUN_FIELDS = frozenset(
    {"id", "epoch", "input", "target", "messages", "metadata", "attachments", "transcript"}
)
_LONGEST_CAUSE = 300
Key: TypeAlias = "tuple[str, int]"
_Result = TypeVar("_Result")


def load_inspect_eval_runs(
    path: str | Path,
    transcript_preprocessors: Sequence[str | Preprocessor] = (),
    *,
    sample_num: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Iterator[AgentRun]:
    """Yield one run per sample and epoch of an Inspect log (`.eval`, `.json`), in the log's order.

    `transcript_preprocessors` run in order on a copy of each run; `sample_num` picks so many
    runs, the same for the same `seed`, and None or 0 means all (A9). Samples are read one at a
    time. Raises InputError where the file is no usable log, at the first `next()`, and Unscored for
    a single sample that cannot be read; `EvalLog.run` goes on past one.
    """
    steps = [chain.resolve(step) for step in transcript_preprocessors]
    with EvalLog(path) as log:
        for summary in pick(log.summaries(), sample_num, seed):
            yield log.run(summary.run_id, summary.epoch, steps)


class EvalLog(Source):
    """One Inspect log.

    `max_sample_mb` is how much a sample, the header or the summaries may be when unpacked, in MB.
    """

    suffixes = (".eval", ".json")
    form = "Inspect log"

    def _prepare(self) -> None:
        self._file: LogFile | None = None
        self._rows: dict[Key, SampleRow] | None = None

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file begins like an archive or like a JSON object, whatever it is called."""
        return looks_like_log(path)

    def import_readers(self, *, with_raw: bool = False) -> None:
        """Import inspect_ai, which takes most of a second, where the first run cannot be read
        without.
        """
        if with_raw or self._first_is_not_plain():
            import inspect_ai.log  # noqa: F401 - imported for later

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = self._rows = None

    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per sample and epoch, in the log's own order, without reading a transcript.

        Raises InputError: no usable log, no samples, or two samples that go by one name.
        """
        return tuple(
            RunSummary(run_id, epoch, _skip(row))
            for (run_id, epoch), row in self._summary_rows().items()
        )

    def metadata(self, field: str) -> Iterator[tuple[Key, dict[str, Any]]]:
        """See `Source`: the metadata in the summaries, or where it is not whole in a sample."""
        rows = self._summary_rows()
        return metadata_by_run(
            self._opened(), rows, field, lambda key: self._of_sample(key, "metadata")
        )

    def scores(self) -> Iterator[tuple[Key, dict[str, Any]]]:
        """See `Source`: the scores in the log's summaries, or where these have none in a sample."""
        rows = self._summary_rows()
        return scores_by_run(self._opened(), rows, lambda key: self._of_sample(key, "scores"))

    def edited_scores(self) -> Iterator[tuple[Key, dict[str, Any], dict[str, Any]]]:
        """See `Source`: summaries have no history of a score, so each sample is read."""
        for key in self._summary_rows():
            yield key, *before_and_after_edits(self._of_sample(key, "scores"))

    def aliases(self) -> dict[str, Key]:
        """See `Source`: the uuids of samples."""
        return keys_by_uuid(self._opened(), self._summary_rows())

    def created(self) -> datetime | None:
        """See `Source`."""
        return self._opened().created()

    def read(
        self, run_id: str, epoch: int, *, with_raw: bool = False
    ) -> tuple[AgentRun, EvalSample | None]:
        """Read one sample: the run, and if `with_raw` Inspect's own object.

        Raises Unscored (`input_error`) where the sample is missing or damaged.
        """
        try:
            return self._sample(run_id, epoch, with_raw=with_raw)
        except _unreadable() as error:
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path} cannot be "
                f"read: {_cause(error)}.",
                advice="Copy the log again, or leave this sample out.",
            ) from error

    def _of_sample(self, key: Key, name: str) -> dict[str, Any]:
        """A mapping in a sample; nothing where it is damaged, which its cases will say."""
        try:
            stored = self._stored(*key)
            if stored is None:
                sample = self.read(*key, with_raw=True)[1]
                stored = {} if sample is None else sample.model_dump(mode="json")
        except Unscored:
            return {}
        except _unreadable():
            return {}
        part = stored.get(name)
        return part if isinstance(part, dict) else {}

    def _opened(self) -> LogFile:
        with self._lock:
            if self._file is None:
                self._file = open_log(self.path, self._most_bytes)
            return self._file

    def _summary_rows(self) -> dict[Key, SampleRow]:
        with self._lock:
            if self._rows is None:
                file = self._opened()
                rows = file.rows()
                if rows is None:
                    file.check_sizes()
                    rows = _rows_from_inspect(self.path)
                self._rows = rows_by_key(self.path, rows)
                refuse_ids_alike(self.path, file.dataset_ids())
            return self._rows

    def _first_is_not_plain(self) -> bool:
        try:
            key = next(iter(self._summary_rows()))
            stored = self._stored(*key)
        except _unreadable():
            return True
        return stored is None or plain_sample(_of_a_run(stored)) is None

    def _sample(
        self, run_id: str, epoch: int, *, with_raw: bool
    ) -> tuple[AgentRun, EvalSample | None]:
        data = self._stored(run_id, epoch)
        if data is None:
            read, changed = _sample_from_inspect(self.path, self._summary_rows()[run_id, epoch])
            return _agent_run(run_id, epoch, _dumped(read), changed), read if with_raw else None
        clean, changed = storable(data if with_raw else _of_a_run(data))
        plain = None if with_raw else plain_sample(clean)
        if plain is not None:
            return _agent_run(run_id, epoch, plain, changed), None
        if attached_size(data) > self._most_bytes:
            raise DamagedError(f"its attachments would be {too_big(self._most_bytes)}")
        read = _validated(clean, with_raw=with_raw)
        return _agent_run(run_id, epoch, _dumped(read), changed), read if with_raw else None

    def _stored(self, run_id: str, epoch: int) -> dict[str, Any] | None:
        """The JSON of a sample; None where it lies where only Inspect knows."""
        file = self._opened()
        data = file.sample(run_id, epoch)
        if data is None:
            # The id may have been made storable.
            row = self._summary_rows().get((run_id, epoch))
            if row is None:
                raise DamagedError("the log has no such sample")
            data = file.sample(str(row.id), epoch)
        return data


def _of_a_run(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key in _RUN_FIELDS}


def _skip(row: SampleRow) -> Skip | None:
    if row.message_count != 0:
        return None
    if row.error is None:
        return Skip("no_messages")
    cause = printable(row.error, _LONGEST_CAUSE)
    return Skip("no_messages", f"the sample ended in an error before its first message: {cause}")


def _validated(data: dict[str, Any], *, with_raw: bool) -> EvalSample:
    """Make Inspect's object of a stored sample."""
    from inspect_ai.log import EvalSample, resolve_sample_attachments

    # The context that Inspect's own readers give: a message without an id is not given a random
    # one.
    sample = EvalSample.model_validate(data, context={"deserializing": True})
    return resolve_sample_attachments(sample, True) if with_raw or sample.attachments else sample  # noqa: FBT003


def _dumped(sample: EvalSample) -> PlainSample:
    if isinstance(sample.input, str):
        task = sample.input
    else:
        task = "\n".join(message.text for message in sample.input if message.role == "user")
    return PlainSample(
        id=sample.id,
        messages=tuple(
            message.model_dump(mode="json", exclude_none=True) for message in sample.messages
        ),
        input=task,
        target=sample.target if isinstance(sample.target, str) else "\n".join(sample.target),
        metadata=sample.metadata,
    )


def _agent_run(run_id: str, epoch: int, sample: PlainSample, changed: int) -> AgentRun:
    return AgentRun(
        run_id=run_id,
        epoch=epoch,
        messages=sample.messages,
        input=sample.input,
        target=sample.target,
        metadata=sample.metadata,
        sample_id=sample.id,
        notes=changed_note(changed),
    )


def _rows_from_inspect(path: Path) -> list[SampleRow]:
    """Read the summaries of a log that was cut off, or has a layout that only Inspect knows."""
    from inspect_ai.log import read_eval_log_sample_summaries

    try:
        summaries = _outside_any_loop(
            partial(read_eval_log_sample_summaries, str(path), format="eval")
        )
    except _unreadable() as error:
        raise refused(path, f"its sample summaries cannot be read: {_cause(error)}") from None
    return [SampleRow(row.id, row.epoch, row.error, row.message_count) for row in summaries]


def _sample_from_inspect(path: Path, row: SampleRow) -> tuple[EvalSample, int]:
    from inspect_ai.log import read_eval_log_sample

    sample = _outside_any_loop(
        partial(
            read_eval_log_sample,
            str(path),
            row.id,
            row.epoch,
            format="eval",
            resolve_attachments=True,
        )
    )
    clean, changed = storable(sample.model_dump(mode="json", exclude_none=True))
    return _validated(clean, with_raw=True), changed


def _outside_any_loop(call: Callable[[], _Result]) -> _Result:
    """Inspect's readers run a loop of their own, and would patch asyncio to do so inside a running
    one.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def _unreadable() -> tuple[type[Exception], ...]:
    """What inspect_ai 0.3 was seen to raise, or can by its code, on damaged and foreign samples."""
    return (*damage(), InputError, TypeError, AttributeError)


def _cause(error: Exception) -> str:
    """Say it in one line; of pydantic's report the first mistake and its place."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
        return printable(f"{where}: {first['msg']}", _LONGEST_CAUSE)
    if isinstance(error, InputError):
        return printable(error.problems[0].message, _LONGEST_CAUSE)
    return printable(f"{error or type(error).__name__}", _LONGEST_CAUSE)
