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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from pytest_jrh.cases.tests import TESTS
from pytest_jrh.core.documents import dotted
from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.files import atomic_write, encoded
from pytest_jrh.core.model import Usage
from pytest_jrh.core.text import one_line, shortened
from pytest_jrh.core.transcript import message_text
from pytest_jrh.llm.calls import Answer, SchemaSent, image_sizes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pytest_jrh.llm.calls import CallRequest


_VCR_FORMAT = 1
_HEAD_BEGINS = "metadata:\n  {"
_LONGEST_NAME = 80
_ANSWERED_AS = ": the model answered as "
_HEAD_ENDS = "\ninteractions:"
# How a file used to end after an answer that ends in empty lines: a second document, which is none.
_SECOND_DOCUMENT = f"\n...\nversion: {_VCR_FORMAT}\n"
# What libyaml does not print as it is inside a literal block; JSON can spell it in escapes instead.
_UNPRINTABLE = r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]"
# What JSON leaves as it is in a string, and YAML refuses there or takes for the end of a line.
_NOT_YAML = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# To YAML 1.1 a number with an exponent needs a point: `1e-05` is text. Only numbers end a line of
# JSON in a digit.
_EXPONENT = re.compile(r"(?m)(?<= )(-?\d)(?=e[-+]\d+,?$)")


class Malformed(Exception):
    """What is wrong with a file: `why`, and where in it, as far as that is known."""

    def __init__(self, why: str, *, line: int | None = None, key: str | None = None) -> None:
        self.why = why
        self.line = line
        self.key = key
        super().__init__(why)


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


def decoded(data: bytes, *, interactions: bool) -> str:
    """The text of a cassette; without `interactions` only of the part that holds the metadata,
    where it comes first.

    Lines end as a text file's do when it is read. Raises `UnicodeDecodeError`.
    """
    if not interactions:
        head = data.partition(_HEAD_ENDS.encode())[0]
        data = head if b"metadata:" in head else data
    text = data.decode()
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.endswith(_SECOND_DOCUMENT):
        text = text.removesuffix(_SECOND_DOCUMENT) + f"\nversion: {_VCR_FORMAT}\n"
    return text


def read(text: str) -> object:
    """The data of a cassette's text, or of its head alone; raises `Malformed`."""
    head, ends, interactions_text = text.partition(_HEAD_ENDS)
    metadata = _read_json(head)
    if metadata is None:
        return _read_yaml(text)
    if not ends:
        return {"metadata": metadata}
    # Empty lines in place of the head, so that errors give the line in the file.
    body = _read_yaml("\n" * head.count("\n") + ends + interactions_text)
    if not isinstance(body, dict) or "metadata" in body:
        # No cassette, or a duplicate key, which the reader of all of it finds.
        return _read_yaml(text)
    return {"metadata": metadata, **body}


def _read_json(head: str) -> object:
    """The metadata of a head in JSON; None where it is none."""
    if not head.startswith(_HEAD_BEGINS):
        return None
    try:
        return json.loads(head[len(_HEAD_BEGINS) - 1 :])
    except (ValueError, RecursionError):
        return None


def _read_yaml(text: str) -> object:
    """Parse one YAML document of plain data; raises `Malformed`."""
    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader, in C where there is one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Malformed(
            " ".join(str(error).split()), line=None if mark is None else mark.line + 1
        ) from error
    except (
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        # What the constructor of dates and numbers raises for `2001-99-99`, `0b` or a number of
        # 5,000 digits.
        raise Malformed(f"it has an invalid value ({error})") from error


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
def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _dumper() -> Any:
    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("CassetteDumper", (base,), {})
    dumper.add_representer(str, _represent_text)
    return dumper


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


FORMAT = 1


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", defer_build=True)


class _Asked(_Part):
    model: str = ""
    parameters: dict[str, bool | int | float | str | None] = {}
    # `schema` is a method of pydantic's models.
    shape: str = Field(alias="schema", default="")
    messages: list[str] = []
    repeat: PositiveInt = 1


class _Usage(_Part):
    input_tokens: int
    output_tokens: int


class StoredCall(_Part):
    """One finished call of the head."""

    stage: str
    fingerprint: str
    scrubbed_fingerprint: str | None = None
    sequence: NonNegativeInt
    asked: _Asked
    text: str
    finish_reason: str
    refusal: str | None
    usage: _Usage
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    left_out: list[str] = []
    schema_sent: SchemaSent | None = None
    interactions: NonNegativeInt

    def recorded(self, interactions: tuple[Mapping[str, Any], ...]) -> RecordedCall:
        """The call with its HTTP exchanges."""
        answer = Answer(
            self.text,
            self.finish_reason,
            self.refusal,
            Usage(max(self.usage.input_tokens, 0), max(self.usage.output_tokens, 0)),
            self.cost,
            frozenset(self.left_out),
            self.schema_sent,
        )
        parts = self.asked.model_dump(by_alias=True, exclude_unset=True)
        scrubbed = self.scrubbed_fingerprint
        return RecordedCall(
            self.fingerprint, self.stage, parts, answer, self.sequence, interactions, scrubbed
        )


class _Ours(_Part):
    format: Literal[1]
    complete: bool
    calls: list[StoredCall]


class _Metadata(_Part):
    jrh: _Ours


class _Request(_Part):
    method: str
    uri: str
    body: str | None
    headers: dict[str, list[str]]


class _Status(_Part):
    code: int
    message: str | None = None


class _Body(_Part):
    string: str | bytes


class _Response(_Part):
    status: _Status
    headers: dict[str, list[str]]
    body: _Body


class _Interaction(_Part):
    request: _Request
    response: _Response


class _File(_Part):
    metadata: _Metadata
    interactions: list[_Interaction] | None = None


def check(data: object, *, interactions: bool) -> tuple[bool, list[StoredCall]]:
    """Check a cassette's data: whether it is complete, and its calls; raises `Malformed` with the
    first mistake.

    With `interactions` there must be as many as the calls say.
    """
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "literal_error" and first["loc"][-1] == "format":
            raise Malformed(f"its format is {first['input']!r}; must be {FORMAT}") from None
        path = tuple("schema" if part == "shape" else part for part in first["loc"])
        raise Malformed(first["msg"], key=dotted(path)) from None
    calls = file.metadata.jrh.calls
    stated_count = sum(call.interactions for call in calls)
    file_count = len(file.interactions or ())
    if interactions and stated_count != file_count:
        raise Malformed(
            f"the calls have {stated_count} interactions, but the file has {file_count}",
            key="interactions",
        )
    return file.metadata.jrh.complete, calls


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One finished call: what was asked, in digests, and what was answered, in full.

    `scrubbed` is the fingerprint of the same call with its secrets taken out, where it had any: a
    frozen suite asks with the text as it was written to disk. `sequence` is the place of the call
    in the case's own order; `interactions` are the HTTP exchanges of this call in vcrpy's on-disk
    form (read from the file only on demand, so often empty here).
    """

    fingerprint: str
    stage: str
    parts: Mapping[str, Any]
    answer: Answer
    sequence: int = 0
    interactions: tuple[Mapping[str, Any], ...] = ()
    scrubbed: str | None = None


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
            return _from_bytes(path, path.read_bytes(), interactions=interactions)
        except FileNotFoundError:
            return cls(path)
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error)) from error
        except Malformed as error:
            raise _unreadable(path, error.why, error.line, error.key) from error

    def find(self, fingerprint: str) -> RecordedCall | None:
        """The call with this fingerprint, as it was asked or with its secrets taken out.

        None where there is none.
        """
        if fingerprint in self.entries:
            return self.entries[fingerprint]
        for entry in self.entries.values():
            if entry.scrubbed == fingerprint:
                return entry
        return None

    def save(self) -> None:
        """Write the file whole and rename it into place. Raises `OSError` as it comes."""
        atomic_write(self.path, encoded(self.dump()))

    def dump(self) -> str:
        """The file's text: deterministic, readable, and loadable by vcrpy."""
        ordered = sorted(self.entries.values(), key=lambda entry: entry.sequence)
        ours = {
            "format": FORMAT,
            "complete": self.complete,
            "calls": [_call_data(entry) for entry in ordered],
        }
        interactions = chain.from_iterable(entry.interactions for entry in ordered)
        return write({"jrh": ours}, list(interactions))


def _call_data(entry: RecordedCall) -> dict[str, Any]:
    answer = entry.answer
    return {
        "stage": entry.stage,
        "fingerprint": entry.fingerprint,
        **({"scrubbed_fingerprint": entry.scrubbed} if entry.scrubbed is not None else {}),
        "sequence": entry.sequence,
        "asked": dict(entry.parts),
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "refusal": answer.refusal,
        "usage": {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
        },
        "cost": answer.cost,
        **({"left_out": sorted(answer.left_out)} if answer.left_out else {}),
        **({"schema_sent": answer.schema_sent} if answer.schema_sent is not None else {}),
        "interactions": len(entry.interactions),
    }


def _from_bytes(path: Path, content: bytes, *, interactions: bool) -> Cassette:
    text = decoded(content, interactions=interactions)
    data: Any = read(text)
    complete, calls = check(data, interactions=interactions)
    cassette = Cassette(path, complete=complete)
    exchanges = iter(data.get("interactions") or [])
    for call in calls:
        interactions_of_call = tuple(islice(exchanges, call.interactions))
        cassette.entries[call.fingerprint] = call.recorded(interactions_of_call)
    return cassette


def _unreadable(
    path: Path, why: str, line: int | None = None, key: str | None = None
) -> InputError:
    return InputError(
        Problem(
            f"this is not a cassette that can be read: {why}",
            file=str(path),
            line=line,
            key=key,
            hint="Restore the file from version control, or delete it and record the case again.",
        )
    )


_KINDS = ("generation", "judge-*")


def unused_cassettes(folder: Path, used: Collection[Path], *, frozen: bool = False) -> list[Path]:
    """The cassettes in a folder but the used ones, sorted.

    A folder of cassettes may hold other things too: only what is named like a cassette counts. A
    `frozen` suite does not know which runs gave no case, so recordings of generation count as used.
    """
    kinds = _KINDS[1:] if frozen else _KINDS
    cassettes: set[Path] = set()
    for test in TESTS:
        for kind in kinds:
            cassettes.update(folder.glob(f"{test}/*/*.{kind}.yaml"))
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
    before, now = _snapshot(earlier), _snapshot(entry)
    if not before or not now or before == now:
        return ""
    return f"{entry.stage}{_ANSWERED_AS}{now}; the recordings have {before}."


def is_snapshot_change(text: str) -> bool:
    """Whether a sentence is one of `snapshot_change`."""
    return _ANSWERED_AS in text


def _snapshot(entry: RecordedCall) -> str:
    """What the first answer says of its model: as OpenAI, and most others after it, write it, or as
    Gemini does.
    """
    for interaction in entry.interactions:
        with contextlib.suppress(ValueError, RecursionError, TypeError):
            answer = json.loads(interaction["response"]["body"]["string"])
            if isinstance(answer, dict):
                name = answer.get("model") or answer.get("modelVersion")
                return shortened(one_line(name), _LONGEST_NAME) if isinstance(name, str) else ""
    return ""
