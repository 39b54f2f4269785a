"""The only user of vcrpy: one patch for the whole session, which tells apart whose exchange is
whose.

vcrpy sends every HTTP exchange of the patched libraries to one object that looks like a cassette to
it. A `ContextVar` identifies the call, or the judge's own code, that an exchange belongs to, so
tasks of different cases record side by side without seeing each other. All dependence on vcrpy's
insides is in `_Router`.

Here is also how room on the disk is kept before a call is paid for, so that its answer can be kept.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.core.transcript import image_sizes, message_text
from pytest_jrh.core.user_code import holding
from pytest_jrh.llm.calls import CallRequest
from pytest_jrh.recording.exchanges import (
    Exchanges,
    HttpRequest,
    body_text,
    canonical,
    interaction_of,
    network_closed,
)
from pytest_jrh.recording.http_client import HttpClientPatch

_SAYS_WHO = re.compile(r"auth|key|token|secret|cookie|credential", re.IGNORECASE)


@dataclass
class Capture:
    """The HTTP exchanges of one call: those it may play, and those it made.

    `missed` is the last one that it may not make, and `address` where it would have gone;
    `anonymous` says that this would have been with no key.
    """

    playable: tuple[Mapping[str, Any], ...] | None = None
    made: list[Mapping[str, Any]] = field(default_factory=list)
    missed: str | None = None
    address: str = ""
    anonymous: bool = False


class HttpRecorder:
    """vcrpy's patch, installed once for a session.

    `recording` and `replaying` say for which call it works, and `judging` for which judge's own
    code.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._router = _Router(redactor)
        self._patches = contextlib.ExitStack()
        self._routes_code = False

    def install(self) -> None:
        """Patch the HTTP libraries that litellm uses; undone by `remove`."""
        from vcr.patch import CassettePatcherBuilder

        for patcher in CassettePatcherBuilder(self._router).build():
            self._patches.enter_context(patcher)

    def remove(self) -> None:
        """Take the patch off again."""
        self._patches.close()

    @contextlib.contextmanager
    def recording(self) -> Iterator[Capture]:
        """Collect the successful exchanges made in this context."""
        capture = Capture()
        with holding(self._router.current, capture):
            yield capture

    @contextlib.contextmanager
    def replaying(self, interactions: tuple[Mapping[str, Any], ...]) -> Iterator[Capture]:
        """Answer the exchanges made in this context from recorded ones alone."""
        capture = Capture(playable=interactions)
        with holding(self._router.current, capture):
            yield capture

    @contextlib.contextmanager
    def judging(self, exchanges: Exchanges) -> Iterator[None]:
        """Send what is asked in this context, in whichever thread it goes on, through `exchanges`.

        The first call also patches what judges use and litellm does not.
        """
        if not self._routes_code:
            self._routes_code = True
            self._patches.enter_context(HttpClientPatch(self._router.own, _decoded).installed())
        try:
            refuse = None if exchanges.live else exchanges.refused
            with holding(self._router.own, exchanges), network_closed(refuse):
                yield
        finally:
            exchanges.close()


class _Router:
    """What vcrpy takes for a cassette: the members that its httpx and aiohttp stubs use, and no
    more.
    """

    _path = "pytest-jrh"
    custom_patches = ()
    # Other libraries are left alone: nothing here talks through them, and users' own tests may.
    # What a judge's code sends through them goes through `HttpClientPatch`.
    skip_patchers = ("httplib", "requests", "boto3", "urllib3", "httplib2", "tornado")
    write_protected = False

    def __init__(self, redactor: Redactor) -> None:
        self.current: ContextVar[Capture | None] = ContextVar("capture", default=None)
        self.own: ContextVar[Exchanges | None] = ContextVar("own exchanges", default=None)
        self._redactor = redactor

    def filter_request(self, request: Any) -> Any:
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[tuple[Any, ...]]:
        """Where aiohttp's stub follows a recorded redirect to."""
        return [(request, [], [])]

    def can_play_response_for(self, request: Any) -> bool:
        exchanges = self.own.get()
        if exchanges is not None:
            http_request = exchanges.request(
                request.method, request.uri, request.body, request.headers
            )
            interaction = exchanges.answer(http_request)
            request.jrh_found = interaction
            return interaction is not None
        capture = self.current.get()
        if capture is None or capture.playable is None:
            return False
        if self._recorded(request, capture) is None:
            capture.missed = f"{request.method} {urlsplit(request.uri).path}"
            capture.address = request.uri
            says_who = any(map(_SAYS_WHO.search, request.headers))
            capture.anonymous = request.uri.startswith("https://") and not says_who
            # Not vcrpy's own way to refuse: its error would ask much more of a cassette.
            raise LookupError(f"no recorded exchange for {capture.missed}")
        return True

    def play_response(self, request: Any) -> Any:
        from vcr.serializers.compat import convert_to_bytes

        capture = self.current.get()
        interaction = getattr(request, "jrh_found", None)
        if interaction is None and capture is not None:
            interaction = self._recorded(request, capture)
        if interaction is None:
            raise LookupError(f"no recorded exchange for {request!r}")
        response = interaction["response"]
        return convert_to_bytes({**response, "body": dict(response["body"])})

    def append(self, request: Any, response: Any) -> None:
        exchanges = self.own.get()
        if exchanges is not None:
            http_request = exchanges.request(request.method, request.uri, request.body)
            content_type = body_text(request.headers.get("content-type"))
            exchanges.made(http_request, _decoded(response), content_type)
            return
        capture = self.current.get()
        if capture is None or response["status"]["code"] != 200:  # noqa: PLR2004 - an error is asked again
            return
        uri = self._redactor.text(self._redactor.url(request.uri))
        body = self._redactor.text(body_text(request.body))
        asked = HttpRequest(request.method, uri, body)
        capture.made.append(
            interaction_of(asked, _decoded(response), "application/json", self._redactor.text)
        )

    def _recorded(self, request: Any, capture: Capture) -> Mapping[str, Any] | None:
        """The exchange with this method and JSON body; the base URL may have moved since."""
        request_body = canonical(self._redactor.text(body_text(request.body)))
        for interaction in capture.playable or ():
            recorded = interaction["request"]
            if recorded["method"] == request.method and covers(
                canonical(recorded["body"]), request_body
            ):
                return interaction
        return None


def _decoded(response: dict[str, Any]) -> dict[str, Any]:
    """A response without its compression."""
    from vcr.filters import decode_response

    try:
        return decode_response(response)  # type: ignore[no-any-return]  # vcrpy has no types
    except zlib.error:
        # aiohttp has taken it off already.
        headers = response["headers"]
        kept = {name: headers[name] for name in headers if name.lower() != "content-encoding"}
        return {**response, "headers": kept}


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
