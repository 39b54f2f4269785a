"""The file in which a case's calls are kept: a vcrpy cassette whose metadata answers without vcrpy.

The metadata comes first in the file and holds one entry per finished call; the HTTP interactions,
as vcrpy records them, follow. The metadata is JSON, which is YAML, so that vcrpy and every other
reader of YAML read the whole file, and a replay reads this head alone, with `json`; a head in other
YAML is read as such. Files are written whole, after every call, to a temporary file that is then
renamed. Room for an answer is kept on the disk before its call is paid for.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, StrictBool, ValidationError

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.calls import Usage
from pytest_jrh.core.documents import misfit, syntax_problem
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.files import atomic_write, encoded
from pytest_jrh.core.text import one_line, shortened
from pytest_jrh.core.transcript import message_text
from pytest_jrh.llm.calls import Answer, CallRequest, SchemaSent, image_sizes

_VCR_FORMAT = 1
_HEAD_BEGINS = "metadata:"
_LONGEST_NAME = 80
_ANSWERED_AS = ": the model answered as "
_HEAD_ENDS = "\ninteractions:"
# What libyaml does not print as it is inside a literal block; JSON can spell it in escapes instead.
_UNPRINTABLE = r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]"
# What JSON leaves as it is in a string, and YAML refuses there or takes for the end of a line.
_NOT_YAML = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# To YAML 1.1 a number with an exponent needs a point: `1e-05` is text. Only numbers end a line of
# JSON in a digit.
_EXPONENT = re.compile(r"(?m)(?<= )(-?\d)(?=e[-+]\d+,?$)")


def write(metadata: Mapping[str, Any], interactions: Sequence[Mapping[str, Any]]) -> str:
    """The file's text: deterministic, readable, and loadable by vcrpy."""
    head = json.dumps(metadata, indent=2, ensure_ascii=False)
    head = _EXPONENT.sub(r"\1.0", re.sub(_NOT_YAML, _json_escape, head))
    body_data = {
        "interactions": [_readable(interaction) for interaction in interactions],
        "version": _VCR_FORMAT,
    }
    # After a text that ends in empty lines libyaml marks the end of the document, so it is dumped
    # as a whole, and the mark at its end left out.
    body = yaml.dump(body_data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=2**20)
    body = body.removesuffix("...\n")
    return "".join(["metadata:\n  ", head.replace("\n", "\n  "), "\n", body])


def read(text: str, *, interactions: bool = True) -> Any:
    """The data of a cassette's text; without `interactions` only of the part that holds the
    metadata, where it comes first.

    Raises YAML's errors, and for `2001-99-99` or `0b` whatever its constructor does.
    """
    head = text.partition(_HEAD_ENDS)[0]
    if not interactions and head.startswith(_HEAD_BEGINS):
        text = head
        with contextlib.suppress(ValueError, RecursionError):
            return {"metadata": json.loads(head.removeprefix(_HEAD_BEGINS))}
    # A safe loader, in C where there is one.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _readable(interaction: Mapping[str, Any]) -> dict[str, Any]:
    """The interaction with its JSON request body spread over lines, so that a change reads well in
    a diff.
    """
    request = interaction["request"]
    try:
        body = json.dumps(json.loads(request["body"]), indent=2, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return dict(interaction)
    return {**interaction, "request": {**request, "body": re.sub(_UNPRINTABLE, _json_escape, body)}}


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


@cache
def _dumper() -> Any:
    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("CassetteDumper", (base,), {})

    def represent_text(dumper: Any, text: str) -> Any:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    dumper.add_representer(str, represent_text)
    return dumper


FORMAT = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class _Request(_Part):
    method: str
    uri: str
    body: str | None
    headers: dict[str, list[str]]


class _Response(_Part):
    status: dict[str, int | str | None]
    headers: dict[str, list[str]]
    body: dict[str, str | bytes]


class _Interaction(_Part):
    request: _Request
    response: _Response


class RecordedCall(_Part):
    """One finished call, as the head holds it: what was asked, in digests, and what was answered,
    in full.

    `scrubbed_fingerprint` is that of the same call with its secrets taken out, where it had any: a
    frozen suite asks with the text as it was written to disk. `sequence` is the place of the call
    in the case's own order, `interactions` the number of its HTTP exchanges, which follow in the
    file, in vcrpy's form (read on demand, so `exchanges` is often empty).
    """

    stage: str
    fingerprint: str
    scrubbed_fingerprint: str | None = None
    sequence: NonNegativeInt
    asked: dict[str, Any]
    text: str
    finish_reason: str
    refusal: str | None
    usage: Usage
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    left_out: frozenset[str] = frozenset()
    schema_sent: SchemaSent | None = None
    interactions: NonNegativeInt = 0
    exchanges: tuple[Mapping[str, Any], ...] = Field(default=(), exclude=True)

    @property
    def answer(self) -> Answer:
        """What was answered."""
        return Answer(**{field.name: getattr(self, field.name) for field in fields(Answer)})

    def stored(self) -> dict[str, Any]:
        """The call as it is written."""
        data = self.model_dump()
        data |= {"left_out": sorted(self.left_out), "interactions": len(self.exchanges)}
        for name in ("scrubbed_fingerprint", "left_out", "schema_sent"):
            if not data[name]:
                del data[name]
        return data


class _Ours(_Part):
    format: Literal[1]
    complete: StrictBool
    calls: list[RecordedCall]


class _Metadata(_Part):
    jrh: _Ours


class _File(_Part):
    metadata: _Metadata
    interactions: list[_Interaction] | None = None


_UNREADABLE = "this is not a cassette that can be read"
_RESTORE = "Restore the file from version control, or delete it and record the case again."


@dataclass
class Cassette:
    """One cassette file. `complete` says that the case came to its end with these calls alone."""

    path: Path
    complete: bool = False
    entries: dict[str, RecordedCall] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, *, interactions: bool = False) -> Cassette:
        """Read a cassette; a missing file is an empty one.

        Only the metadata is parsed unless `interactions` are wanted. Raises `InputError` where the
        file is no cassette of ours.
        """
        try:
            data = read(path.read_text(encoding="utf-8"), interactions=interactions)
            file = _File.model_validate(data)
        except FileNotFoundError:
            return cls(path)
        except yaml.YAMLError as error:
            raise InputError(replace(syntax_problem(error, str(path)), hint=_RESTORE)) from error
        except ValidationError as error:
            raise InputError(misfit(error, _UNREADABLE, str(path), None, _RESTORE)) from None
        except Exception as why:
            # Whatever YAML's constructor raises for `2001-99-99` or `0b`.
            raise InputError(f"{_UNREADABLE}: {why}", str(path), hint=_RESTORE) from why
        head = file.metadata.jrh
        cassette = cls(path, complete=head.complete)
        exchanges = iter(data.get("interactions") or [])
        for call in head.calls:
            of_call = tuple(islice(exchanges, call.interactions))
            cassette.entries[call.fingerprint] = call.model_copy(update={"exchanges": of_call})
        return cassette

    def find(self, fingerprint: str) -> RecordedCall | None:
        """The call with this fingerprint, as it was asked or with its secrets taken out.

        None where there is none.
        """
        if fingerprint in self.entries:
            return self.entries[fingerprint]
        for entry in self.entries.values():
            if entry.scrubbed_fingerprint == fingerprint:
                return entry
        return None

    def save(self) -> None:
        """Write the file whole and rename it into place. Raises `OSError` as it comes."""
        atomic_write(self.path, encoded(self.dump()))

    def dump(self) -> str:
        """The file's text: deterministic, readable, and loadable by vcrpy."""
        ordered = sorted(self.entries.values(), key=lambda entry: entry.sequence)
        calls = [entry.stored() for entry in ordered]
        head = {"format": FORMAT, "complete": self.complete, "calls": calls}
        return write({"jrh": head}, [*chain.from_iterable(entry.exchanges for entry in ordered)])


def unused_cassettes(folder: Path, used: Collection[Path], *, frozen: bool) -> list[Path]:
    """The cassettes in a folder but the used ones, sorted.

    A folder of cassettes may hold other things too: only what is named like a cassette counts. A
    `frozen` suite does not know which runs gave no case, so recordings of generation count as used.
    """
    ends = ["judge-*"] if frozen else ["judge-*", "generation"]
    cassettes: set[Path] = set()
    for test in KINDS:
        for end in ends:
            cassettes.update(folder.glob(f"{test}/*/*.{end}.yaml"))
    return sorted(cassettes.difference(used))


def prune(cassettes: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Remove cassettes; returns those removed, and a sentence for each that was not."""
    removed, problems = [], []
    for path in cassettes:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path} could not be removed: {error.strerror or error}.")
        else:
            removed.append(path)
    return removed, problems


MAKE_ROOM = "Make room or fix the permissions, then run again: every call saved before is kept."
# An answer is kept twice, as text and as the HTTP exchange; providers put about a page around it.
_ANSWER = 32_768
# Pretty-printed, indented and escaped, a request takes more than its letters.
_SPREAD = 2


def size_of(request: CallRequest) -> int:
    """The bytes of what a model is asked with."""
    size = 0
    for message in request.messages:
        size += len(message_text(message).encode("utf-8", "replace")) + sum(image_sizes(message))
    return size


@contextlib.contextmanager
def room_for(request_size: int, cassette: Path, folder: Path) -> Iterator[None]:
    """Keep as much of the folder's disk as the cassette will take with a request of `request_size`
    bytes and its answer, until the block ends.

    `folder` has to exist. A process that dies leaves nothing behind. Raises `OSError` where there
    is not that much.
    """
    import tempfile

    try:
        so_far = cassette.stat().st_size
    except FileNotFoundError:
        so_far = 0
    with tempfile.TemporaryFile(dir=folder) as file:
        # A file with holes would take no room.
        file.write(bytes(so_far + _SPREAD * request_size + _ANSWER))
        file.flush()
        yield


@contextlib.contextmanager
def writing(stage: str, content: str) -> Iterator[None]:
    """Turn what goes wrong with a file into what the user reads in the case.

    `content` is what is not on the disk then.
    """
    try:
        yield
    except OSError as error:
        raise Unscored(
            "model_error",
            stage=stage,
            cause=f"{content}: {error.strerror or error}.",
            advice=MAKE_ROOM,
        ) from error


def snapshot_change(earlier: RecordedCall, entry: RecordedCall) -> str:
    """Say that another snapshot of the model answered a call than before; empty where none did, or
    its server names none.
    """
    recorded, answered = _snapshot(earlier), _snapshot(entry)
    if not recorded or not answered or recorded == answered:
        return ""
    return f"{entry.stage}{_ANSWERED_AS}{answered}; the recordings have {recorded}."


def is_snapshot_change(text: str) -> bool:
    """Whether a sentence is one of `snapshot_change`."""
    return _ANSWERED_AS in text


def _snapshot(entry: RecordedCall) -> str:
    """What the first answer says of its model: as OpenAI, and most others after it, write it, or as
    Gemini does.
    """
    for interaction in entry.exchanges:
        with contextlib.suppress(ValueError, RecursionError, TypeError):
            answer = json.loads(interaction["response"]["body"]["string"])
            if isinstance(answer, dict):
                name = answer.get("model") or answer.get("modelVersion")
                return shortened(one_line(name), _LONGEST_NAME) if isinstance(name, str) else ""
    return ""
