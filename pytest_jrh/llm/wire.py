"""What is accepted from a model's server: an answer with status 200, from the requested origin, of
bounded size.

The guard sits in httpcore's connection pool, which every httpx client of litellm and the provider
SDKs goes through, and below vcrpy, which reads answers whole. (litellm's other transport, aiohttp,
is switched off in `provider`.) It applies to our own calls only, not to other users of httpx in the
process.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import urljoin, urlsplit

LONGEST_ANSWER = 32 * 2**20
_OK, _ERROR = 200, 400
_REDIRECTS_WITH_BODY = frozenset({307, 308})
_AT_ONCE = 2**18
_ENCODINGS = frozenset({b"gzip", b"x-gzip", b"deflate"})
_GUARDED: ContextVar[bool] = ContextVar("pytest_jrh_guarded", default=False)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class UnusableAnswer(Exception):
    """An answer that is not read; the message says why."""


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Guard the HTTP requests made in this context."""
    token = _GUARDED.set(True)
    try:
        yield
    finally:
        _GUARDED.reset(token)


def install() -> None:
    """Put the guard into httpcore; to be called once."""
    import httpcore

    plain = httpcore.AsyncConnectionPool.handle_async_request

    async def handle(pool: Any, request: Any) -> Any:
        response = await plain(pool, request)
        if not _GUARDED.get():
            return response
        try:
            return _checked(request, response)
        except UnusableAnswer:
            await response.aclose()
            raise

    vars(httpcore)["AsyncConnectionPool"].handle_async_request = handle


def _checked(request: Any, response: Any) -> Any:
    headers = {name.lower(): value for name, value in response.headers}
    if _OK < response.status < _ERROR:
        _check_redirect(request, response.status, headers.get(b"location", b"").decode("latin-1"))
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in _ENCODINGS | {b"identity", b""}:
        raise UnusableAnswer(
            f"the answer is compressed as {encoding.decode('latin-1')!r}, which was not asked for"
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit() and len(length) < 20 and int(length) > LONGEST_ANSWER:  # noqa: PLR2004 - more than any file has
        raise _too_long()
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _ENCODINGS else None
    if decoder is not None:
        hidden = (b"content-encoding", b"content-length")
        response.headers = [
            (name, value) for name, value in response.headers if name.lower() not in hidden
        ]
    response.stream = _Bounded(response.stream, decoder)
    return response


def _check_redirect(request: Any, status: int, location: str) -> None:
    if not location:
        raise UnusableAnswer(f"unexpected HTTP status {status}")
    url = request.url
    server = f"{url.scheme.decode()}://{url.host.decode()}:{url.port or ''}"
    asked = server + url.target.decode("latin-1")
    target = urljoin(asked, location)
    if status not in _REDIRECTS_WITH_BODY or _origin(target) != _origin(asked):
        raise UnusableAnswer(
            f"the server redirects (HTTP {status}) to "
            f"{urlsplit(target).scheme}://{urlsplit(target).hostname}; redirects are not "
            "followed, because they would send the API key and the transcript there"
        )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError as error:
        raise UnusableAnswer(f"the server redirects to an invalid address: {error}") from error


def _too_long() -> UnusableAnswer:
    return UnusableAnswer(f"the answer is longer than {LONGEST_ANSWER // 2**20} MB")


class _Bounded:
    """A response's bytes, uncompressed if necessary, up to the maximum length of an answer."""

    def __init__(self, stream: Any, decoder: Any) -> None:
        self._stream = stream
        self._decoder = decoder

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            for piece in self._pieces(chunk):
                length += len(piece)
                if length > LONGEST_ANSWER:
                    await self.aclose()
                    raise _too_long()
                yield piece

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            yield chunk
            return
        while chunk:
            try:
                yield self._decoder.decompress(chunk, _AT_ONCE)
            except zlib.error as error:
                raise UnusableAnswer(f"the answer cannot be uncompressed: {error}") from error
            chunk = self._decoder.unconsumed_tail

    async def aclose(self) -> None:
        """Give the connection back."""
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()
