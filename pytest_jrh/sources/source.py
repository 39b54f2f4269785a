"""What a source of transcripts is to the rest of the package, whatever it reads: how a form knows
its files by their beginning, and the items of a JSON list.

Which runs belong together, by a field of their metadata: `cluster_key`.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import re
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, Self, TypeAlias

from pytest_jrh.config.preprocessors import apply, wants_raw_sample
from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    Problem,
    frozen,
    listed,
    nearest_hint,
    printable,
    short_digest,
    shown,
    storable,
)
from pytest_jrh.core.cases import AgentRun, Preprocessor, RunKey, RunSummary, Unscored
from pytest_jrh.core.documents import DamagedError, parsed, pointer_to
from pytest_jrh.core.files import read_head
from pytest_jrh.core.sections import InputFormat

NOT_SAID = datetime.min.replace(tzinfo=UTC)
"""The time of what does not say when it was written: before all others."""


def written_time(written: Any) -> datetime:
    """A time of ISO 8601, taken for UTC where it names no time zone; `NOT_SAID` for anything
    else.
    """
    try:
        time = datetime.fromisoformat(written)
    except (TypeError, ValueError):
        return NOT_SAID
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def changed_note(changed: int) -> tuple[str, ...]:
    """The note of a run in which so many characters could not be stored."""
    if not changed:
        return ()
    note = f"{changed} characters that cannot be stored were replaced (lone surrogates) or dropped"
    return (f"{note} (NULs)",)


Aliases: TypeAlias = "Mapping[str, tuple[str, int | None]]"
"""Other names of runs, each with the id and epoch; without an epoch for all of them."""


class RunFields(NamedTuple):
    """What a run has beside its messages: its metadata, and what scorers gave it by their names."""

    key: RunKey
    metadata: Fields
    scores: Mapping[str, Any] = {}


@frozen
class Conversation:
    """A conversation as its form has it; all but the messages may be left out.

    Messages are those of OpenAI's, Anthropic's or the Vercel AI SDK's chats. Without an id a digest
    of them names the run, or the file that is one conversation. `cluster` is what runs of one task
    share. `no_messages` says why there are none, and `notices` what the user should read once.
    `is_request` says that it is a request to a model, which others may repeat and go on from, and
    `opening` how many messages were there when it was begun; without it all but the last.
    """

    messages: Sequence[Any]
    id: int | str | None = None
    epoch: int = 1
    cluster: str | None = None
    system: Any = None
    input: str | None = None
    target: str | None = None
    metadata: Fields = field(default_factory=dict)
    scores: Fields = field(default_factory=dict)
    no_messages: str = ""
    notices: Sequence[str] = ()
    is_request: bool = False
    opening: int | None = None


class Thread(NamedTuple):
    """What tells whether a conversation goes on from another, as digests of this process.

    `beginnings` are of its first messages, up to each place where a request before it may have
    ended, and `digest` is of all. `is_answered` says that a user was, `is_request` that it is one
    of the requests of a conversation, and `is_failed` that a copy which is not is better. `extra`
    is what else two copies have alike.
    """

    beginnings: Sequence[int]
    digest: int
    is_answered: bool = False
    is_request: bool = False
    is_failed: bool = False
    extra: int = 0


@frozen
class Form:
    """A row of the table of sources.

    `name` says what is in a file, for the user to read. `conversation` makes a conversation of the
    JSON of each line or item, or with `is_whole` of all that is in the file: its value, or the list
    of its lines'; without it the JSON is the messages. It raises DamagedError, with the path of
    what it cannot read. A file is read so where `recognizes` says it of its head; without that,
    where its name ends in one of `suffixes`. `source` is for what is no JSON.
    """

    name: str
    suffixes: Sequence[str]
    conversation: Callable[[Any], Conversation] = Conversation
    recognizes: Callable[[Head], bool] | None = None
    is_whole: bool = False
    source: type[Source] | None = None

    def fits(self, head: Head) -> bool:
        """Whether a file is of this form."""
        if self.recognizes is not None:
            return self.recognizes(head)
        return head.path.suffix.lower() in self.suffixes


_NO_FORM = Form("", ())


class Source(ABC):
    """The runs of a file, a folder or several of them, opened when it is first used.

    Safe to use from several threads. `input_format` is the config's; a subclass makes what else it
    keeps in `_prepare`.
    """

    most_mb: ClassVar[int] = 256
    """How much one run may be when unpacked."""

    def __init__(
        self, path: str | Path, form: Form = _NO_FORM, *, input_format: InputFormat | None = None
    ) -> None:
        self.path = Path(path)
        self.form_name = form.name
        self._form = form
        self._pointers = input_format or InputFormat()
        self._lock = threading.RLock()
        self._unshown: dict[RunKey, Counter[str]] = {}
        self._notices: dict[str, None] = {}
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027 - not every source keeps more
        """Make what is kept beside the path; opens nothing."""

    @abstractmethod
    def summaries(self) -> Sequence[RunSummary]:
        """One summary per run, in the source's own order, without reading a transcript.

        `cluster` is set where the source itself says which runs belong together; the config's
        `cluster_key` comes before that.

        Raises InputError where the source cannot be used at all.
        """

    @abstractmethod
    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one run, and if `with_raw` all that the source itself has of it, else None.

        The second value is what a preprocessor gets as `raw_sample`. Raises Unscored
        (`input_error`) where the run is missing or damaged.
        """

    def _too_big(self, size: int) -> str:
        """Say that so many bytes are too much; empty where they are not."""
        if size <= self.most_mb * 1_000_000:
            return ""
        return f"larger than {self.most_mb:,} MB (unpacked)"

    def _bytes_of(self, path: Path) -> bytes:
        """All that is in a file; raises InputError where that is too much, or cannot be read."""
        try:
            if too_big := self._too_big(path.stat().st_size):
                raise InputError(f"is {too_big}", path)
            return path.read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path) from None

    def _unreadable(self, key: RunKey, why: str, advice: str) -> Unscored:
        run_id, epoch = key
        return Unscored(
            "input_error",
            stage="input",
            cause=f"The case {printable(run_id)} (epoch {epoch}) of {self.path} cannot be read: "
            f"{why}.",
            advice=advice,
        )

    @abstractmethod
    def fields(self) -> Iterator[RunFields]:
        """What each run has beside its messages; what cannot be read has nothing."""

    def threads(self) -> Mapping[RunKey, Thread]:
        """What tells which runs repeat others; of those without, it is not known."""
        return {}

    def aliases(self) -> Aliases:
        """Other names that label files may know runs by; here none."""
        return {}

    def unclear_names(self) -> Mapping[str, Sequence[str]]:
        """Names that a label file cannot mean one run by, each with clear names of the runs that it
        may mean; here none.
        """
        return {}

    def created(self) -> datetime:
        """When the runs were written down, as the source itself says; here it says nothing."""
        return NOT_SAID

    def close(self) -> None:  # noqa: B027 - not every source keeps files open
        """Close the files that are open; the next use opens them again."""

    def notices(self) -> Sequence[str]:
        """Sentences about what was found so far, for the user to read once a session, also of what
        transcripts do not show of the runs that were read.
        """
        notices = [*self._notices]
        unshown = sum([*self._unshown.values()], Counter[str]())
        if unshown:
            counts = [f"{name} ({count:,})" for name, count in unshown.items()]
            notices.append(f"parts of messages that the judge does not see: {listed(counts, 8)}")
        return [f"{self.path.name}: {notice}" for notice in notices]

    def run(self, key: RunKey, preprocessors: Sequence[Preprocessor] = ()) -> AgentRun:
        """Read one run and apply the preprocessors.

        Raises Unscored (`input_error`) where either fails.
        """
        run, raw = self.read(*key, with_raw=any(map(wants_raw_sample, preprocessors)))
        return apply(run, preprocessors, raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_KEY = "cases.cluster"
_LEAVE_OUT = (
    "name one of the fields, or remove cases.cluster: the epochs of a sample are then a cluster"
)
# The cluster is a text in every result.
_LONGEST = 120
_DIGEST = 16


def with_clusters(source: Source, cluster_key: str) -> Sequence[RunSummary]:
    """The runs of a source, each with the cluster that its metadata names.

    A run without the field has the one that the source gives it, if any. Raises InputError as
    `clusters_by` does.
    """
    summaries = source.summaries()
    clusters = clusters_by(cluster_key, ((run.key, run.metadata) for run in source.fields()))
    return [replace(run, cluster=clusters.get(run.key) or run.cluster) for run in summaries]


def top_field(cluster_key: str) -> str:
    """The field of the metadata that a `cluster_key` is in."""
    return names_in(as_pointer(cluster_key))[0]


def clusters_by(
    cluster_key: str, runs: Iterable[tuple[RunKey, Fields]], config_key: str = _KEY
) -> dict[RunKey, str | None]:
    """The cluster of each run, or what else a key of the config names, by a field of its metadata
    or a JSON pointer into it.

    None where a run has none. Raises InputError where no run has it, or the value is no text,
    number or boolean.
    """
    pointer = as_pointer(cluster_key)
    clusters = {}
    names: dict[str, None] = {}
    for key, metadata in runs:
        value = at(metadata, pointer)
        if isinstance(value, dict | list):
            raise InputError(several_values(value, cluster_key, config_key))
        clusters[key] = None if value is None else short_text(value) or None
        names |= dict.fromkeys(metadata)
    if clusters and not any(clusters.values()):
        raise InputError(
            f"no case has the field {shown(cluster_key)} in its metadata; the fields are "
            f"{listed(map(shown, sorted(names))) or 'none'}",
            key=config_key,
            hint=_LEAVE_OUT if config_key == _KEY else nearest_hint(cluster_key, names),
        )
    return clusters


def several_values(value: Any, name: str, key: str) -> Problem:
    """Refuse a score or a field that holds several values, where one is needed."""
    names = value if isinstance(value, dict) else range(len(value))
    pointers = listed((as_pointer(name) + pointer_to(str(field)) for field in names), 5)
    return Problem(
        f"{shown(name)} is an object or a list, but one value is needed",
        key=key,
        hint=f"name one of the values by its pointer: {pointers}",
    )


def short_text(value: str | float) -> str:
    """The value as one line of text, short enough to be in every result.

    White space is made single, as Inspect does in a log's summaries.
    """
    if not isinstance(value, str):
        value = json.dumps(value)
    text = " ".join(storable(value)[0].split())
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _DIGEST - 1]}~{short_digest(text, _DIGEST)}"


def mapping(value: object) -> Fields:
    """A value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts_in(value: Any, *keys: str) -> dict[str, str]:
    """The texts that an object has under the keys."""
    fields = mapping(value)
    return {key: fields[key] for key in keys if isinstance(fields.get(key), str)}


def at(value: Any, pointer: str) -> Any:
    """The value at a pointer, None where nothing is there; the empty pointer is the whole value."""
    for name in names_in(pointer):
        if isinstance(value, list | tuple):
            value = {str(index): item for index, item in enumerate(value)}
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def names_in(pointer: str) -> list[str]:
    """The names in a pointer, outermost first; none in the empty one."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def as_pointer(key: str) -> str:
    """The name of a field as a pointer to it; a pointer stays as it is."""
    return key if key.startswith("/") else pointer_to(key)


LINES = (".jsonl", ".ndjson")
"""What the names of files end in whose lines are JSON."""
BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 20
_LONGEST_LOOKED_AT = 2**20
# All up to the next bracket that is in no string.
BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}\[\]])', re.DOTALL)
_BEGIN = rb"(?:%b)?\s*+\[" % BOM
_COMMA = re.compile(rb"\s*+,\s*+")
_BLANK = re.compile(rb"\s*+")
# The first "version" is the only one that is tried, or a hostile head would take seconds.
_INSPECT = r'(?s)\{(?>.*?"version"\s*+:).*"eval"\s*+:\s*+\{'


class Head:
    """The beginning of a file, by which a form knows its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_lines(self) -> bool:
        """Whether it is one of JSON lines, by its name."""
        return self.path.suffix.lower() in LINES and self.path.is_file()

    @cached_property
    def text(self) -> str:
        """The first 64 kB; nothing where they cannot be read."""
        return read_head(self.path).lstrip()

    @cached_property
    def first_objects(self) -> list[Json]:
        """The first objects of JSON lines, or the first one of a JSON list, that are no
        conversations.
        """
        values = []
        with contextlib.suppress(DamagedError, OSError), self.path.open("rb") as file:
            for data in islice(self._items(file), _LOOKED_AT):
                value = parsed(data)
                if not isinstance(value, dict) or "messages" in value:
                    break
                values.append(value)
        return values

    def _items(self, file: IO[bytes]) -> Iterator[bytes]:
        if self.is_lines:
            lines = iter(lambda: file.readline(_LONGEST_LOOKED_AT), b"")
            yield from filter(bytes.strip, lines)
        elif self.begins_list:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                start, end = next(elements(data), (0, 0))
                yield data[start : min(end, start + _LONGEST_LOOKED_AT)]

    @property
    def begins_list(self) -> bool:
        """Whether it begins like a JSON list, and is none of JSON lines."""
        return self.text.startswith("[") and not self.is_lines

    @property
    def is_inspect_log(self) -> bool:
        """Whether it is a log of Inspect's in JSON."""
        return re.match(_INSPECT, self.text) is not None


def elements(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Find the objects and lists right below a JSON list, by their brackets alone.

    Raises DamagedError for brackets that do not match, and other values between the items.
    """
    bracket = re.match(_BEGIN, data)
    if bracket is None:
        raise DamagedError("it does not begin with [")
    depth, start, at = 1, 0, bracket.end()
    edge, between = at, _BLANK
    while depth:
        bracket = BRACKET.match(data, at)
        if bracket is None:
            raise DamagedError("the file ends inside an item")
        at = bracket.end()
        if bracket[1] in b"{[":
            depth += 1
            if depth > 2:  # noqa: PLR2004 - inside of an item of the list
                continue
            start = at - 1
            if not between.fullmatch(data, edge, start):
                raise DamagedError(f"the item at byte {edge} is neither an object nor a list")
        else:
            depth -= 1
            if depth == 1:
                yield start, at
                edge, between = at, _COMMA
    if bracket[1] != b"]":
        raise DamagedError("it does not end with ]")
    if not _BLANK.fullmatch(data, edge, at - 1):
        raise DamagedError(f"the item at byte {edge} is neither an object nor a list")
    if not _BLANK.fullmatch(data, at):
        raise DamagedError(f"the list ends at byte {at}, and more text follows")
