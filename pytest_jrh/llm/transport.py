"""What lies below a call: litellm (imported here alone, for it takes seconds to import), when a
call may be sent, and what is accepted from a server.

Rate limits, a shared slow-down and retries say when. Answers are of bounded size, and those of a
model's server have status 200 and come from the requested origin. The guard for this sits in
httpcore's connection pools, which every httpx client of litellm and the provider SDKs goes through,
and below vcrpy, which reads answers whole. (litellm's other transport, aiohttp, is switched off.)
It applies to requests made for a suite only, not to other users of httpx in the process.
"""

from __future__ import annotations

import contextlib
import email.utils
import os
import random
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from pytest_jrh.core.model import RateLimit, StageModel
from pytest_jrh.core.user_code import holding

_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
_TOKENIZERS = "TIKTOKEN_CACHE_DIR"


@cache
def litellm() -> Any:
    """litellm, imported when first needed and set up for recording."""
    # Without this, litellm fetches its price map from the network while it is imported.
    os.environ.setdefault(_PRICES, "True")
    import litellm as library

    _install_guard()
    # vcrpy records httpx's own transport; litellm's aiohttp one would be recorded twice or not at
    # all.
    library.disable_aiohttp_transport = True
    library.suppress_debug_info = True
    return library


def keep_libraries_local() -> None:
    """Let litellm and tiktoken use the prices and vocabularies that litellm brings.

    Else they download them when they are first used, which is in one case of all where a judge's
    code uses them.
    """
    os.environ.setdefault(_PRICES, "True")
    spec = find_spec("litellm")
    locations = spec.submodule_search_locations if spec is not None else None
    for package in locations or ():
        folder = Path(package) / "litellm_core_utils" / "tokenizers"
        if folder.is_dir():
            os.environ.setdefault(_TOKENIZERS, str(folder))


def missing_keys(model: str) -> list[str]:
    """The environment variables with a key for the model of which none is set.

    None where it is set, or not needed.
    """
    environment = litellm().validate_environment(model)
    if environment["keys_in_environment"]:
        return []
    return [name for name in environment["missing_keys"] if "KEY" in name]


_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_FIRST_OF_SERVER = 500


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, and the jittered exponential wait between tries, in seconds.

    A provider's Retry-After is obeyed; a longer one than `longest_wait` is cut to it. `timeouts` is
    the number of time-outs after which a call fails: each costs its whole time, and a runaway
    answer is likely to run away again.
    """

    attempts: int = 5
    timeouts: int = 2
    first_wait: float = 0.5
    longest_wait: float = 60.0

    def gives_up(self, attempts: int, late: int) -> bool:
        """Whether a call has failed after so many attempts, `late` of which timed out."""
        return attempts >= self.attempts or late >= self.timeouts

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after the given failed attempt, counted from 1."""
        if retry_after is not None:
            return min(retry_after, self.longest_wait) + random.uniform(0, 0.1)  # noqa: S311 - jitter
        ceiling = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter


def is_retried(status: int) -> bool:
    """Whether a request that was answered with this HTTP status may succeed when it is repeated."""
    return status in _RETRIED_STATUS or status >= _FIRST_OF_SERVER


def seconds_asked_for(retry_after: str | None) -> float | None:
    """How long a header Retry-After, of seconds or a date, asks to wait; None where it says
    nothing.
    """
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        until = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, until - time.time())


class Pace:
    """Keeps the times at which calls were sent, per model.

    Each limit is divided by `processes`, none of which sees the others' calls. `now` gives
    monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float], *, processes: int = 1) -> None:
        self._now = clock
        self._processes = processes
        self._sent: defaultdict[tuple[str, RateLimit], deque[float]] = defaultdict(deque)
        self._resume: dict[str, float] = {}

    def wait(self, stage: StageModel) -> float:
        """Seconds until the model may be called; at 0.0 the call counts as sent.

        At most `calls` calls go out in any window of `period` seconds.
        """
        time_now = self._now()
        pause = self._resume.get(stage.model, time_now) - time_now
        limit = stage.rate_limit
        if limit is None:
            return max(pause, 0.0)
        sent = self._sent[stage.model, limit]
        window = limit.period * self._processes
        while sent and sent[0] + window <= time_now:
            sent.popleft()
        if len(sent) >= limit.calls:
            pause = max(pause, sent[0] + window - time_now)
        if pause > 0:
            return pause
        sent.append(time_now)
        return 0.0

    def slow_down(self, model: str, seconds: float) -> None:
        """Delay all calls to a model that has just answered with a rate-limit error."""
        self._resume[model] = max(self._resume.get(model, 0.0), self._now() + seconds)


LONGEST_ANSWER = 32 * 2**20
_OK, _ERROR = 200, 400
_REDIRECTS_WITH_BODY = frozenset({307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}


class UnusableAnswer(Exception):
    """An answer that is not read; the message says why."""


_GUARDED: ContextVar[bool] = ContextVar("pytest_jrh_guarded", default=False)


def guarded() -> contextlib.AbstractContextManager[None]:
    """Guard the HTTP requests to models that are made in this context."""
    return holding(_GUARDED, value=True)


def _install_guard() -> None:
    """Put the guard into httpcore, for as long as the process lives."""
    import httpcore

    plain = httpcore.AsyncConnectionPool.handle_async_request

    async def handle(pool: Any, request: Any) -> Any:
        response = await plain(pool, request)
        if _GUARDED.get():
            try:
                _check_redirect(request, response)
            except UnusableAnswer:
                await response.aclose()
                raise
            response.stream = _Bounded(response.stream)
        return response

    vars(httpcore)["AsyncConnectionPool"].handle_async_request = handle


def _check_redirect(request: Any, response: Any) -> None:
    """Raise `UnusableAnswer` for a redirect to another origin, or without the request's body."""
    status = response.status
    if not _OK < status < _ERROR:
        return
    headers = {name.lower(): value for name, value in response.headers}
    location = headers.get(b"location", b"").decode("latin-1")
    if not location:
        raise UnusableAnswer(f"unexpected HTTP status {status}")
    origin_url = _url(request)
    target = urljoin(origin_url, location)
    if status not in _REDIRECTS_WITH_BODY or _origin(target) != _origin(origin_url):
        raise UnusableAnswer(
            f"the server redirects (HTTP {status}) to "
            f"{urlsplit(target).scheme}://{urlsplit(target).hostname}; redirects are not "
            "followed, because they would send the API key and the transcript there"
        )


def _url(request: Any) -> str:
    url = request.url
    host = url.host.decode()
    server = f"[{host}]" if ":" in host else host
    port = f":{url.port}" if url.port is not None else ""
    return f"{url.scheme.decode()}://{server}{port}{url.target.decode('latin-1')}"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError as error:
        raise UnusableAnswer(f"the server redirects to an invalid address: {error}") from error


class _Bounded:
    """A response's bytes, up to the maximum length of an answer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            length += len(chunk)
            if length > LONGEST_ANSWER:
                await self.aclose()
                raise UnusableAnswer(f"the answer is longer than {LONGEST_ANSWER // 2**20} MB")
            yield chunk

    async def aclose(self) -> None:
        """Give the connection back."""
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()
