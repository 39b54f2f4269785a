"""Runs from Inspect logs, an `.eval` archive or a `.json` file: summaries to collect from, samples
read one at a time.

Importing inspect_ai takes longer than replaying some hundred cases. So a sample whose meaning is
plain from its JSON (text, reasoning and tool calls) is read as it stands there, and any other by
inspect_ai, imported late.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import sys
import zipfile
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic_core import to_json
from typing_extensions import TypedDict

from pytest_jrh.core import Fields, InputError, Json, printable, shown, storable
from pytest_jrh.core.cases import AgentRun, RunKey, RunSummary, Skip
from pytest_jrh.core.documents import DamagedError
from pytest_jrh.core.transcript import message_text, unshown_in
from pytest_jrh.sources.source import (
    RunFields,
    Source,
    Thread,
    at,
    changed_note,
    mapping,
    written_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from inspect_ai.log import EvalSample

_STEP = 4096
_LONGEST_CAUSE = 300
_HINT = "if the log was cut off, copy it again, or repair it with `inspect log convert`"
# Inspect puts in place of a reference what the sample keeps apart under its name.
_REFERENCE = rb'"(?:attachment|tc)://((?:[^"\\]|\\.)*)"'
_NO_NUMBER = rb"\b(?:NaN|Infinity)\b"
# Everything else of a sample (events, store, scores, usage) is most of its bulk and none of a run;
# the oldest logs keep their attachments in `transcript`.
_FIELDS_OF_RUNS = "id epoch input target messages metadata attachments transcript"


class EvalLog(Source):
    """One Inspect log: an archive, of which a sample, the header and the summaries are bounded in
    size when unpacked, or a `.json` file, which is bounded as a whole.
    """

    def _prepare(self) -> None:
        # A `.json` log has no archive: its rows are the samples themselves.
        self._zip: zipfile.ZipFile | None = None
        self._header: Json = {}
        self._rows: dict[RunKey, Json] = {}

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._zip is not None:
                self._zip.close()
            self._prepare()

    def summaries(self) -> Sequence[RunSummary]:
        """See `Source`: one summary per sample and epoch."""
        return [RunSummary(*key, _skip(row)) for key, row in self._opened().items()]

    def fields(self) -> Iterator[RunFields]:
        for key in self._opened():
            sample = {}
            # What is damaged has nothing, as its cases will say.
            with contextlib.suppress(DamagedError):
                sample = self._stored(key)
            values = {}
            for name, score in mapping(sample.get("scores")).items():
                if "value" in mapping(score):
                    values[name] = score["value"]
            yield RunFields(key, mapping(sample.get("metadata")), values)

    def threads(self) -> dict[RunKey, Thread]:
        """See `Source`: by their uuids, which they keep in a retry of the log."""
        threads = {}
        for uuid, key in self.aliases().items():
            threads[key] = Thread((), hash(uuid), is_failed=bool(self._rows[key].get("error")))
        return threads

    def aliases(self) -> dict[str, RunKey]:
        """See `Source`: the uuids of samples, which Inspect's tables name; older logs have none."""
        rows = self._opened().items()
        return {row["uuid"]: key for key, row in rows if isinstance(row.get("uuid"), str)}

    def created(self) -> datetime:
        self._opened()
        return written_time(at(self._header, "/eval/created"))

    def read(
        self, run_id: str, epoch: int, *, with_raw: bool = False
    ) -> tuple[AgentRun, EvalSample | None]:
        """See `Source`: one sample, and if `with_raw` Inspect's own object."""
        key = (run_id, epoch)
        raw = None
        try:
            data = self._stored(key)
            if not with_raw:
                data = {name: data[name] for name in data.keys() & _FIELDS_OF_RUNS.split()}
            data, changed = storable(data)
            if with_raw or not is_plain(data):
                raw = self._as_inspect_reads(data)
                fields = {"id", "input", "target", "messages"}
                data = raw.model_dump(mode="json", exclude_none=True, include=fields)
                data["metadata"] = raw.metadata
        except Exception as error:
            # Nowhere is it said what inspect_ai raises on damaged and foreign samples.
            advice = "Copy the log again, or remove this sample from the log."
            cause = printable(" ".join(str(error).split()), _LONGEST_CAUSE)
            cause = cause or type(error).__name__
            raise self._unreadable(key, cause, advice) from error
        task, target = data["input"], data["target"]
        if isinstance(task, list):
            task = "\n".join(message_text(message) for message in task if message["role"] == "user")
        run = AgentRun(
            *key,
            messages=tuple(data["messages"]),
            input=task,
            target=target if isinstance(target, str) else "\n".join(target),
            metadata=data.get("metadata", {}),
            sample_id=data["id"],
            notes=changed_note(changed),
        )
        self._unshown[key] = unshown_in(run.messages)
        return run, raw if with_raw else None

    def _as_inspect_reads(self, data: Json) -> EvalSample:
        from inspect_ai.log import EvalSample, resolve_sample_attachments

        # The context that Inspect's own readers give: a message without an id is not given a random
        # one.
        sample = EvalSample.model_validate(data, context={"deserializing": True})
        # Each reference is replaced by its attachment.
        names = (json.loads(b'"' + name + b'"') for name in re.findall(_REFERENCE, _as_json(data)))
        size = sum(len(sample.attachments.get(name, "")) for name in names)
        if too_big := self._too_big(size):
            raise DamagedError(f"its attachments would be {too_big}")
        return resolve_sample_attachments(sample, True)  # noqa: FBT003

    def _stored(self, key: RunKey) -> Json:
        # So long nobody closes the archive.
        with self._lock:
            row = self._opened().get(key)
            if row is None:
                raise DamagedError("the log has no such sample")
            if self._zip is None:
                return row
            sample = self._json(self._zip, f"samples/{row['id']}_epoch_{row['epoch']}.json")
        if not isinstance(sample, dict):
            raise DamagedError(f"the sample is {shown(sample)}; must be a JSON object")
        return sample

    def _opened(self) -> dict[RunKey, Json]:
        """The summaries of the samples, by storable id and epoch.

        What a file is, is said by what is in it, not by what it is called.
        """
        with self._lock:
            if self._rows:
                return self._rows
            try:
                with self.path.open("rb") as file:
                    is_json = file.read(64).lstrip().startswith(b"{")
                self._rows = self._by_key(self._open_json() if is_json else self._open_archive())
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", self.path) from None
            except DamagedError as error:
                raise InputError(
                    f"cannot be read as an Inspect log: {error}", self.path, hint=error.hint
                ) from None
            return self._rows

    def _open_archive(self) -> Any:
        if sys.version_info < (3, 14):
            # Inspect compresses by Zstandard, which zipfile learns by this.
            importlib.import_module("zipfile_zstd")
        try:
            archive = self._zip = zipfile.ZipFile(self.path)
        except Exception as error:
            # Whatever a damaged directory leads zipfile to.
            raise DamagedError(f"it is neither JSON nor a zip archive ({error})", _HINT) from error
        if "_journal/start.json" in archive.namelist() and "header.json" not in archive.namelist():
            raise InputError(
                "the evaluation has not ended, or was killed",
                self.path,
                hint="copy the log when it has ended; if it was killed, use `inspect log convert`",
            )
        self._header = self._json(archive, "header.json")
        return self._json(archive, "summaries.json")

    def _open_json(self) -> Any:
        data = self._bytes_of(self.path)
        try:
            self._header = json.loads(data)
        except (ValueError, RecursionError, MemoryError) as error:
            raise DamagedError(
                f"it begins with {{, but is not valid JSON: {error}", _HINT
            ) from None
        return self._header.get("samples")

    def _json(self, archive: zipfile.ZipFile, name: str) -> Any:
        try:
            if too_big := self._too_big(archive.getinfo(name).file_size):
                raise DamagedError(f"it is {too_big}")
            with archive.open(name) as member:
                # What is read of some compressions is unpacked at once, whatever size the directory
                # names.
                return json.loads(b"".join(iter(lambda: member.read(_STEP), b"")))
        except Exception as error:
            # Each compression has errors of its own.
            raise DamagedError(
                f"its {name} cannot be used: {error or type(error).__name__}",
                getattr(error, "hint", _HINT),
            ) from error

    def _by_key(self, samples: Any) -> dict[RunKey, Json]:
        if not isinstance(at(self._header, "/eval"), dict):
            raise DamagedError(
                "it has no object under the key `eval`, and is in no other known format",
                "docs/logs.md shows the formats, such as an object with a list under `messages`",
            )
        status = printable(str(self._header.get("status") or "not said"))
        if not samples:
            raise InputError(
                f"is an Inspect log without samples (its status: {status})",
                self.path,
                hint="if the evaluation goes on, wait until it has ended; else run the task again",
            )
        if not isinstance(samples, list):
            raise DamagedError(f"the value of `samples` is {shown(samples)}; must be a list")
        if status not in ("success", "not said"):
            self._notices[f"the status of the evaluation is {status}"] = None
        rows: dict[RunKey, Json] = {}
        for number, row in enumerate(samples, start=1):
            name, epoch = at(row, "/id"), at(row, "/epoch")
            if type(name) not in (int, str) or type(epoch) is not int:
                raise DamagedError(
                    f"sample {number} has the id {shown(name)} (must be text or an integer) and "
                    f"the epoch {shown(epoch)} (must be an integer)"
                )
            key = storable(str(name))[0], epoch
            first = rows.setdefault(key, row)["id"]
            # A sample that Inspect ran again has two rows in an archive, and the later one counts.
            if first != name or (rows[key] is not row and self._zip is None):
                both = f"{first!r} and {name!r}"
                raise DamagedError(
                    f"in epoch {epoch}, the ids of two samples are the same text: {both}"
                )
            rows[key] = row
        return rows


def _skip(row: Fields) -> Skip | None:
    # Summaries of an archive count messages.
    messages, error = row.get("messages", row.get("message_count")), row.get("error")
    if messages not in ([], 0):
        return None
    if error is None:
        return Skip("no_messages")
    cause = error.get("message") if isinstance(error, dict) else error
    why = "the sample ended in an error before its first message"
    return Skip("no_messages", f"{why}: {printable(str(cause), _LONGEST_CAUSE)}")


def is_plain(sample: Fields) -> bool:
    """Whether Inspect would read these fields of a stored sample as they stand there."""
    try:
        _plain().validate_python([sample])
        text = _as_json(sample)
    except ValueError:
        # It is of another form, or nested too deep.
        return False
    return re.search(_REFERENCE, text) is None and re.search(_NO_NUMBER, text) is None


def _as_json(sample: Fields) -> bytes:
    return to_json([sample.get("input"), sample.get("messages")], inf_nan_mode="constants")


_Internal = Json | list[Any] | str


class _Text(TypedDict):
    type: Literal["text"]
    text: str
    refusal: NotRequired[bool]
    internal: NotRequired[_Internal]


class _Reasoning(TypedDict):
    type: Literal["reasoning"]
    reasoning: str
    redacted: bool
    summary: NotRequired[str]
    signature: NotRequired[str]
    internal: NotRequired[_Internal]


class _Call(TypedDict):
    id: str
    function: str
    arguments: Json
    type: str
    parse_error: NotRequired[str]


class _Error(TypedDict):
    type: str
    message: str


class _Message(TypedDict, total=False):
    content: Required[str | list[_Text | _Reasoning]]
    id: str
    source: str
    metadata: Json


# What another role has is lost where Inspect reads it.
class _Asked(_Message):
    role: Literal["system", "user"]


class _Answered(_Message, total=False):
    role: Required[Literal["assistant"]]
    model: str
    # Where there are attachments, Inspect leaves an empty list out.
    tool_calls: Annotated[list[_Call], Field(min_length=1)]


class _Returned(_Message, total=False):
    role: Required[Literal["tool"]]
    tool_call_id: str
    function: str
    error: _Error


_AnyMessage = Annotated[_Asked | _Answered | _Returned, Field(discriminator="role")]


class _PlainSample(TypedDict):
    id: int | str
    epoch: int
    input: str | list[_AnyMessage]
    target: str | list[str]
    messages: list[_AnyMessage]
    metadata: NotRequired[Json]
    attachments: NotRequired[dict[str, str]]


@cache
def _plain() -> TypeAdapter[list[_PlainSample]]:
    # Of a list: what is set here would not be taken for a class itself.
    return TypeAdapter(list[_PlainSample], config=ConfigDict(strict=True, extra="forbid"))
