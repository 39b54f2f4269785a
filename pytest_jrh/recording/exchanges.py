"""The HTTP exchanges of one judging by code that is not ours: which recorded exchange answers which
of its requests, what may be sent, what of it is kept, and what differs where nothing answers.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.parse import parse_qsl, urlsplit

from pytest_jrh.core import Fields, Json, frozen, shortened
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.diffs import shared_ends
from pytest_jrh.core.documents import leaves
from pytest_jrh.core.redact import REDACTED, Redactor, covers
from pytest_jrh.judges.own_code import asks_for_credentials

# An answer that says "there is none" is an answer; all others above 399 are errors.
_ABSENT = (404, 410)
_FIRST_ERROR = 400
_KEPT_HEADERS = ("content-type", "content-encoding", "location", "link")
_LONGEST_CHANGE = 120
_CONTEXT = 20
_MOST_LINES = 9
# In a path: a number, or a word that is an id by its length.
_ID = r"\b(?:\d+|[\w-]{16,})\b"


class HttpRequest(NamedTuple):
    """What a request is recognized by: its URL is without keys, its body without secrets."""

    method: str
    uri: str
    body: str

    @classmethod
    def of(cls, interaction: Fields) -> HttpRequest:
        """The request of a recorded exchange."""
        recorded = interaction["request"]
        return cls(recorded["method"], recorded["uri"], recorded["body"] or "")

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        return f"{self.method} {parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def parts(self) -> dict[str, str]:
        """The texts that it consists of, by their places."""
        url = urlsplit(self.uri)
        parts = {"path": url.path}
        for name, value in parse_qsl(url.query, keep_blank_values=True):
            parts[f"parameter {name} of the URL"] = value
        try:
            parts.update(leaves(json.loads(self.body)))
        except (ValueError, RecursionError):
            parts["body"] = self.body
        return parts


class Halted(BaseException):
    """A judge's code may not go on; why is said by its `Exchanges`.

    No `Exception`, so that the judge's own retries and fallbacks do not take it for an error of
    the network.
    """


@frozen
class Halt:
    """Why a judge's code was halted.

    "missing": it sent a `request` that is not recorded; "room": its answer could not be stored;
    "network": it tried to reach somebody by itself on replay.
    """

    why: Literal["missing", "room", "network"]
    what: str
    request: HttpRequest | None = None


@dataclass(eq=False)
class Exchanges:
    """The exchanges of one judging, used from every thread that the judge's code runs in.

    Each of the `recorded` ones answers one request, in order among equals. What is not there may
    be sent only while `live`: `room` keeps room on the disk for the answer to a request of so many
    bytes, or raises `OSError`; `admit` counts the request, or raises `Unscored` where it may not be
    sent. `changed` is called for each exchange that is to be kept. `asked` are the requests that
    were answered or sent.
    """

    recorded: Sequence[Fields]
    _: KW_ONLY
    live: bool
    redactor: Redactor
    admit: Callable[[], object]
    changed: Callable[[], object]
    room: Callable[[int], contextlib.AbstractContextManager[None]]

    def __post_init__(self) -> None:
        # Where nothing is to be asked any more, what says so.
        self.halt: Halt | Unscored | None = None
        self.sent = 0
        self.replayed = 0
        self.asked: list[HttpRequest] = []
        self._rooms: list[contextlib.ExitStack] = []
        self._bytes_made = 0
        self._unused = list(self.recorded)
        # Those that answered, each with whether the answer is worth replaying.
        self._used: list[tuple[Fields, bool]] = []
        self.closed = False
        self._lock = threading.Lock()

    def request(
        self, method: str, uri: str, body: object, headers: Mapping[str, object] | None = None
    ) -> HttpRequest:
        """A request as it is recognized and stored; what it says of who asks is in neither."""
        redactor = self.redactor
        # The code may have set a key since the session began.
        redactor.learn()
        for name, value in (headers or {}).items():
            for part in value if isinstance(value, list | tuple) else [value]:
                redactor.learn_header(name, body_text(part))
        text = redactor.of_code(body_text(body))
        return HttpRequest(method, redactor.of_code(redactor.url(uri)), text)

    def answer(self, request: HttpRequest) -> Fields | None:
        """The recorded exchange that answers a request; None where the request may be sent.

        Raises `Halted` where it is neither.
        """
        with self._lock:
            if self.closed or self.halt is not None:
                raise Halted
            alike = [old for old in self._unused if is_request(old, request, self.redactor)]
            # One with its host comes before all others.
            interaction = max(
                alike, key=lambda old: old["request"]["uri"] == request.uri, default=None
            )
            if interaction is not None:
                self._unused.remove(interaction)
                self._used.append((interaction, True))
                self.replayed += 1
                self.asked.append(request)
                return interaction
        if self.live and asks_for_credentials(request.uri):
            # Neither counted nor kept: what comes back is a key.
            return None
        halt: Halt | Unscored | None = Halt("missing", str(request), request)
        # For the answer: one that is paid for and not kept would be paid for again.
        room = contextlib.ExitStack()
        if self.live:
            request_size = self._bytes_made + len(request.body.encode("utf-8", "replace"))
            try:
                # Outside of the lock: room and budget may wait for other processes.
                room.enter_context(self.room(request_size))
                self.admit()
                halt = None
            except Unscored as trouble:
                room.close()
                halt = trouble
            except OSError as error:
                halt = Halt("room", error.strerror or str(error))
        with self._lock:
            if halt is not None:
                self.halt = halt
                raise Halted
            self._rooms.append(room)
            self.sent += 1
            self.asked.append(request)
        return None

    def made(self, request: HttpRequest, response: Fields, content_type: str) -> None:
        """Keep an exchange that was made; `response` is in vcrpy's form."""
        code = response["status"]["code"]
        interaction = interaction_of(request, response, content_type, self.redactor.of_code)
        with self._lock:
            if self.closed or asks_for_credentials(request.uri):
                return
            self._used.append((interaction, code < _FIRST_ERROR or code in _ABSENT))
            self._bytes_made += len(str(interaction).encode("utf-8", "replace"))
            if self._rooms:
                self._rooms.pop().close()
        self.changed()

    def refused(self, tried: str) -> NoReturn:
        """Stop the judge, which tries to go past the recording; raises `Halted`."""
        with self._lock:
            self.halt = self.halt or Halt("network", f"it tried to {tried}")
        raise Halted

    def close(self) -> None:
        """The judge has come to its end: what a thread of it does from now on is refused."""
        with self._lock:
            self.closed = True
            while self._rooms:
                self._rooms.pop().close()

    def kept(self, *, judged: bool) -> tuple[Fields, ...]:
        """What belongs into the cassette, in the order in which it was used.

        Answers with an error status are kept only where the judge has `judged` all the same, and
        has not got a better one to the same request: a retry is not worth replaying. Recorded ones
        that were not used stay: a judge that is changed back asks them again.
        """
        with self._lock:
            used, unused = list(self._used), list(self._unused)
        answered = [interaction["request"] for interaction, is_good in used if is_good]
        worth_keeping = []
        for interaction, is_good in used:
            if is_good or (judged and interaction["request"] not in answered):
                worth_keeping.append(interaction)
        return (*worth_keeping, *unused)


def is_request(interaction: Fields, request: HttpRequest, redactor: Redactor) -> bool:
    """Whether a recorded exchange is that of a request: equal method, path with its query, and
    canonical body, whatever of it was taken for a secret when it was recorded, or is now.

    Not the host: a client may take it from the environment, and nothing is sent on replay.
    """
    method, uri, body = HttpRequest.of(interaction)
    if method != request.method:
        return False
    if REDACTED in request.uri + request.body:
        uri, body = redactor.of_code(redactor.url(uri)), redactor.of_code(body)
    if not covers(path_of(uri), path_of(request.uri)):
        return False
    recorded_body, asked_body = canonical(body), canonical(request.body)
    # A body whose secrets were all that it held says nothing of what was asked.
    says_something = any(map(str.isalnum, body.replace(REDACTED, "")))
    return recorded_body == asked_body or (says_something and covers(recorded_body, asked_body))


def path_of(uri: str) -> str:
    """The path of a URL with its query."""
    parts = urlsplit(uri)
    return f"{parts.path}?{parts.query}"


def canonical(body: str) -> str:
    """A JSON body with its keys in order; any other body as it is."""
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except (ValueError, RecursionError):
        return body


def body_text(body: object) -> str:
    """The body of a request or an answer as text, whatever an HTTP library takes for one."""
    if body is None:
        return ""
    if isinstance(body, bytes | bytearray):
        return body.decode("utf-8", "replace")
    if isinstance(body, str):
        return body
    if hasattr(body, "read"):
        return body_text(body.read())
    try:
        return json.dumps(body)
    except (TypeError, ValueError):
        # Such as a form of aiohttp: no request is equal to it.
        return repr(body)


def interaction_of(
    request: HttpRequest, response: Fields, content_type: str, redact: Callable[[str], str]
) -> Json:
    """Both sides as vcrpy writes them, without secrets and with the headers that a body needs."""
    body: Any = response["body"].get("string") or ""
    text: str | bytes
    try:
        text = redact(body if isinstance(body, str) else body.decode())
    except UnicodeDecodeError:
        # One letter a byte: what is not text stays as it is.
        text = redact(body.decode("latin-1")).encode("latin-1", "replace")
    received_headers = {name.lower(): values for name, values in response["headers"].items()}
    headers = {}
    for name in _KEPT_HEADERS:
        if name in received_headers:
            headers[name] = [redact(body_text(value)) for value in received_headers[name]]
    status = response["status"]
    return {
        "request": {
            "method": request.method,
            "uri": request.uri,
            "body": request.body,
            "headers": {"content-type": [content_type]} if content_type else {},
        },
        "response": {
            "status": {**status, "message": redact(status.get("message") or "")},
            "headers": headers,
            "body": {"string": text},
        },
    }


def changes_from(recorded: Sequence[Fields], request: HttpRequest) -> str:
    """What differs from the request to the same address in the recorded exchanges that is most like
    it, in a few lines: each part, such as a JSON pointer into the body, as recorded and as sent.
    """
    parts, alike = request.parts, []
    for interaction in recorded:
        candidate = HttpRequest.of(interaction)
        if _address(candidate) == _address(request):
            alike.append(candidate.parts)
    if not alike:
        return "(no request to this address is recorded; another thread may have sent this request)"
    nearest = max(alike, key=lambda old: len(old.items() & parts.items()))
    lines = changed_parts(nearest, parts)
    return "\n".join(lines) or "(the same request is recorded, but fewer times)"


def changed_parts(recorded: Fields, parts: Fields) -> list[str]:
    """The first parts that differ, each in three lines, its values from where they do."""
    lines: list[str] = []
    for place in {**recorded, **parts}:
        old, new = _part_text(recorded.get(place, "")), _part_text(parts.get(place, ""))
        if old != new and len(lines) < _MOST_LINES:
            start = max(0, shared_ends(old, new)[0] - _CONTEXT)
            lines.append(f"{_PLACES.get(place, place)}:")
            for sign, text in (("-", old), ("+", new)):
                cut = "…" if start else ""
                lines.append(f"{sign}{cut}{shortened(text[start:], _LONGEST_CHANGE)}")
    return lines


_PLACES = {"schema": "schema (which answers are allowed: `score_map`, or the rubric's answers)"}


def _part_text(part: Any) -> str:
    return part.replace("\n", " ") if isinstance(part, str) else json.dumps(part)


def _address(request: HttpRequest) -> tuple[str, str]:
    """Where a request goes, whatever ids are in its path."""
    return request.method, re.sub(_ID, "#", urlsplit(request.uri).path)
