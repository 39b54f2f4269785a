"""The file in which a case's calls are kept: a vcrpy cassette whose metadata answers without vcrpy.
Beside it there may be one that holds the calls of all cases of a test and rubric.

The metadata comes first in the file and holds one entry per finished call; the HTTP interactions,
as vcrpy records them, follow. The metadata is JSON, which is YAML, so that vcrpy and every other
reader of YAML read the whole file, and a replay reads this head alone, with `json`; a head in other
YAML is read as such. Files are written whole, after every call, to a temporary file that is then
renamed. Room for an answer is kept on the disk before its call is paid for.

At the end: which cassettes there are in a folder of recordings, those of a test and rubric gathered
in one file, and unused ones removed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, StrictBool, ValidationError

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core import Fields, InputError, Json, grouped_by, one_line, shortened
from pytest_jrh.core.calls import Usage
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.documents import misfit, syntax_problem
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.ids import GENERATION, JUDGING
from pytest_jrh.llm.calls import Answer, SchemaSent, digest
from pytest_jrh.llm.limits import file_lock
from pytest_jrh.store.made_cases import cause

SHARED = "cassette.yaml"
"""The name of a file with the cassettes of all cases of a test and rubric, beside their own."""
_VCR_FORMAT = 1
_HEAD_BEGINS = "metadata:"
_LONGEST_NAME = 80
_ANSWERED_AS = ": the model answered as "
_HEAD_ENDS = "\ninteractions:"
_CONFLICT = "\n<<<<<<< "
# What libyaml does not print as it is inside a literal block; JSON can spell it in escapes instead.
_UNPRINTABLE = r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]"
# What JSON leaves as it is in a string, and YAML refuses there or takes for the end of a line.
_NOT_YAML = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# To YAML 1.1 a number with an exponent needs a point: `1e-05` is text. Only numbers end a line of
# JSON in a digit.
_EXPONENT = r"(?m)(?<= )(-?\d)(?=e[-+]\d+,?$)"


def write(metadata: Fields, interactions: Sequence[Fields]) -> str:
    """The file's text: deterministic, readable, and loadable by vcrpy."""
    head = json.dumps(metadata, indent=2, ensure_ascii=False)
    head = re.sub(_EXPONENT, r"\1.0", re.sub(_NOT_YAML, _json_escape, head))
    body_data = {
        "interactions": [_readable(interaction) for interaction in interactions],
        "version": _VCR_FORMAT,
    }
    # After a text that ends in empty lines libyaml marks the end of the document, so it is dumped
    # as a whole, and the mark at its end left out.
    body = yaml.dump(body_data, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=2**20)
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


def _readable(interaction: Fields) -> Json:
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


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_DUMPER: Any = type("CassetteDumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
_DUMPER.add_representer(str, _represent_text)


FORMAT = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


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
    asked: Json
    text: str
    finish_reason: str
    refusal: str | None
    usage: Usage
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    left_out: frozenset[str] = frozenset()
    schema_sent: SchemaSent | None = None
    interactions: NonNegativeInt = 0
    exchanges: tuple[Fields, ...] = Field(default=(), exclude=True)

    @property
    def answer(self) -> Answer:
        """What was answered."""
        return Answer(**{name: getattr(self, name) for name in Answer.__match_args__})

    def stored(self) -> Json:
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


_UNREADABLE = "this is not a readable cassette"
_RESTORE = "Restore the file from version control, or delete it and record the case again."


@contextlib.contextmanager
def _restorable(path: Path) -> Iterator[None]:
    """Raise `InputError` where what is read of a file is no cassette of ours."""
    try:
        yield
    except FileNotFoundError:
        raise
    except yaml.YAMLError as error:
        raise InputError(replace(syntax_problem(error, str(path)), hint=_RESTORE)) from error
    except ValidationError as error:
        raise misfit(error, _UNREADABLE, path, None, _RESTORE) from None
    except Exception as why:
        # Whatever YAML's constructor raises for `2001-99-99` or `0b`.
        raise InputError(f"{_UNREADABLE}: {why}", path, hint=_RESTORE) from why


@dataclass
class Cassette:
    """The cassette of a case. `complete` says that the case came to its end with these calls
    alone.
    """

    path: Path
    complete: bool = False
    entries: dict[str, RecordedCall] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, *, interactions: bool = False) -> Cassette:
        """Read a cassette: the case's own file, else its part of the shared one; where there is
        neither, an empty one.

        Only the metadata is parsed unless `interactions` are wanted. Raises `InputError` where the
        file is no cassette of ours.
        """
        place = path
        try:
            with _restorable(path):
                data = read(path.read_text(encoding="utf-8"), interactions=interactions)
        except FileNotFoundError:
            place = path.with_name(SHARED)
            data = shared(place, interactions=interactions).get(path.stem)
            if data is None:
                return cls(path)
        with _restorable(place):
            head = _File.model_validate(data).metadata.jrh
        cassette = cls(path, complete=head.complete)
        exchanges = iter(data.get("interactions") or [])
        for call in head.calls:
            of_call = {"exchanges": tuple(islice(exchanges, call.interactions))}
            cassette.entries[call.fingerprint] = call.model_copy(update=of_call)
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
        atomic_write(self.path, self.dump())

    def dump(self) -> str:
        """The file's text: deterministic, readable, and loadable by vcrpy."""
        return write(**self.data)

    @property
    def data(self) -> Json:
        """What is written of it."""
        ordered = sorted(self.entries.values(), key=lambda entry: entry.sequence)
        calls = [entry.stored() for entry in ordered]
        head = {"format": FORMAT, "complete": self.complete, "calls": calls}
        exchanges = [*chain.from_iterable(entry.exchanges for entry in ordered)]
        return {"metadata": {"jrh": head}, "interactions": exchanges}


def shared(path: Path, *, interactions: bool = False) -> dict[str, Json]:
    """The data of the cassettes in a file of a test and rubric, by the names of their own; none
    where it is not there. Raises `InputError` where it cannot be read.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return {}
    return _shared(path, (status.st_ino, status.st_mtime_ns, status.st_size), interactions)


@lru_cache(maxsize=256)
def _shared(path: Path, _version: tuple[int, ...], interactions: bool) -> dict[str, Json]:  # noqa: FBT001
    cassettes = {}
    with _restorable(path):
        text = path.read_text(encoding="utf-8")
        data = read(text, interactions=interactions or _CONFLICT in text)
        head = data["metadata"]["jrh"]
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, not {FORMAT}")
        exchanges = data.get("interactions") or []
        start = 0
        for name, ours in head["cases"].items():
            end = start + sum(call["interactions"] for call in ours["calls"])
            metadata = {"jrh": {"format": FORMAT, **ours}}
            cassettes[name] = {"metadata": metadata, "interactions": exchanges[start:end]}
            start = end
        if interactions and len(exchanges) != start:
            raise ValueError("the head of the file says another number of HTTP requests")
    return cassettes


def update_shared(path: Path, cassettes: Mapping[str, Cassette | None]) -> None:
    """Write the file with these in place of those with their names, or without them; the file's
    lock has to be held. Raises `OSError` as it comes, and `InputError`.
    """
    data = dict(shared(path, interactions=True))
    for name, cassette in cassettes.items():
        data.pop(name, None)
        if cassette is not None:
            data[name] = cassette.data
    heads = {}
    exchanges = []
    for name in sorted(data):
        ours = data[name]["metadata"]["jrh"]
        heads[name] = {"complete": ours["complete"], "calls": ours["calls"]}
        exchanges += data[name]["interactions"]
    if heads:
        atomic_write(path, write({"jrh": {"format": FORMAT, "cases": heads}}, exchanges))
    else:
        path.unlink(missing_ok=True)


def cassette_file(path: Path, *, shared: bool) -> Path:
    """The file that a case's cassette is in at the end of a session."""
    return path.with_name(SHARED) if shared else path


def lock_file(folder: Path, path: Path) -> Path:
    """The lock of whoever writes a file of a folder of recordings."""
    return folder / f".locks/{digest(path.relative_to(folder).as_posix())[:32]}.lock"


MAKE_ROOM = (
    "Free disk space or fix the permissions, then run again: every call saved before is kept."
)
# An answer is kept twice, as text and as the HTTP exchange; providers put about a page around it.
_ANSWER = 32_768
# Pretty-printed, indented and escaped, a request takes more than its letters.
_SPREAD = 2


@contextlib.contextmanager
def room_for(request_size: int, so_far: int, folder: Path) -> Iterator[None]:
    """Keep as much of the folder's disk as a cassette of `so_far` bytes will take with a request of
    `request_size` bytes and its answer, until the block ends.

    `folder` has to exist. A process that dies leaves nothing behind. Raises `OSError` where there
    is not that much.
    """
    import tempfile

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
    name = ""
    for interaction in entry.exchanges[:1]:
        with contextlib.suppress(ValueError, RecursionError, TypeError, AttributeError):
            answer = json.loads(interaction["response"]["body"]["string"])
            name = answer.get("model") or answer.get("modelVersion")
    return shortened(one_line(name), _LONGEST_NAME) if isinstance(name, str) else ""


def cassettes_in(folder: Path) -> list[Path]:
    """The cassettes in a folder, sorted, those in a shared file by the paths that their own would
    have.

    Raises `InputError` where a shared file cannot be read.
    """
    cassettes = set[Path]()
    for path in folder.glob("*/*/*.yaml"):
        if path.name == SHARED:
            cassettes.update(path.with_name(f"{name}.yaml") for name in shared(path))
        else:
            cassettes.add(path)
    return sorted(cassettes)


def _kind(path: Path) -> str:
    """Whose calls a cassette holds; empty for a file that is not named like one."""
    kind = path.stem.rpartition(".")[2]
    return kind if kind == GENERATION or kind.startswith(JUDGING) else ""


def unused_cassettes(
    recorded: Iterable[Path], used: Collection[Path], *, frozen: bool
) -> list[Path]:
    """The recorded cassettes of a folder but the used ones.

    A folder of cassettes may hold other things too: only what is named like a cassette counts. A
    `frozen` suite does not know which runs gave no case, so recordings of generation count as used.
    """
    kept_kinds = ("", GENERATION) if frozen else ("",)
    unused = []
    for path in recorded:
        if path.parts[-3] in KINDS and _kind(path) not in kept_kinds and path not in used:
            unused.append(path)
    return unused


def prune(folder: Path, cassettes: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Remove cassettes of a folder; returns those removed, and a sentence for each that was not."""
    removed = []
    problems = []
    for rubric_folder, paths in grouped_by(cassettes, "parent").items():
        file = rubric_folder / SHARED
        if file.exists():
            try:
                with file_lock(lock_file(folder, file)):
                    update_shared(file, dict.fromkeys(path.stem for path in paths))
            except OSError as error:
                problems.append(f"{file} was not written: {cause(error)}.")
                continue
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                problems.append(f"{path} could not be removed: {cause(error)}.")
            else:
                removed.append(path)
    return removed, problems


def gather(folder: Path) -> list[str]:
    """Put the cassettes of cases into the shared ones of their tests and rubrics, and remove their
    own files, but those that somebody records into; returns sentences about what went wrong.

    A process that dies leaves both, and what is in its own file counts.
    """
    problems = []
    own = sorted(filter(_kind, folder.glob("*/*/*.yaml")))
    for rubric_folder, paths in grouped_by(own, "parent").items():
        file = rubric_folder / SHARED
        try:
            with file_lock(lock_file(folder, file)):
                contents = {path: path.read_bytes() for path in paths if path.exists()}
                cassettes = [Cassette.load(path, interactions=True) for path in contents]
                update_shared(file, {cassette.path.stem: cassette for cassette in cassettes})
            for path, content in contents.items():
                # Unless it has another content by now.
                lock = file_lock(lock_file(folder, path))
                with (
                    contextlib.suppress(TimeoutError, FileNotFoundError),
                    lock.acquire(blocking=False),
                ):
                    if path.read_bytes() == content:
                        path.unlink()
        except (OSError, InputError) as error:
            problems.append(f"{file} was not written: {cause(error)}.")
    return problems
