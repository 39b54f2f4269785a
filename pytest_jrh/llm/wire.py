"""What is accepted from a server: answers of bounded size, and of a model's server only those with
status 200, from the requested origin.

The guard sits in httpcore's connection pools, which every httpx client of litellm and the provider
SDKs goes through, and below vcrpy, which reads answers whole. (litellm's other transport, aiohttp,
is switched off in `provider`.) It applies to requests made for a suite only, not to other users of
httpx in the process.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

LONGEST_ANSWER = 32 * 2**20
_OK, _ERROR = 200, 400
_REDIRECTS_WITH_BODY = frozenset({307, 308})
_AT_ONCE = 2**18
# A block of zstd makes at most 128 KB of 4 bytes.
_ZSTD_SLICE = 64
_ZSTD_WINDOW = 2**25
_DEFAULT_PORTS = {"http": 80, "https": 443}


class UnusableAnswer(Exception):
    """An answer that is not read; the message says why."""


class _Guard(NamedTuple):
    """What is accepted: with `origin`, of that one alone; `strict` is as models are asked."""

    strict: bool
    origin: tuple[str, str | None, int | None] | None = None


_GUARD: ContextVar[_Guard | None] = ContextVar("pytest_jrh_guard", default=None)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Guard the HTTP requests to models that are made in this context."""
    with _guarded(_Guard(strict=True)):
        yield


@contextlib.contextmanager
def kept_to_origin(url: str) -> Iterator[None]:
    """Send the HTTP requests made in this context to the origin of `url` alone."""
    with _guarded(_Guard(strict=False, origin=_origin(url))):
        yield


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Bound the answers to HTTP requests made in this context, and nothing else of them."""
    with _guarded(_Guard(strict=False)):
        yield


@contextlib.contextmanager
def _guarded(guard: _Guard) -> Iterator[None]:
    token = _GUARD.set(guard)
    try:
        yield
    finally:
        _GUARD.reset(token)


@cache
def install() -> None:
    """Put the guard into httpcore, for as long as the process lives."""
    import httpcore

    plain_async = httpcore.AsyncConnectionPool.handle_async_request
    plain = httpcore.ConnectionPool.handle_request

    async def handle_async(pool: Any, request: Any) -> Any:
        guard = _GUARD.get()
        if guard is None:
            return await plain_async(pool, request)
        _check_request(guard, request)
        response = await plain_async(pool, request)
        try:
            return _checked(guard, request, response)
        except UnusableAnswer:
            await response.aclose()
            raise

    def handle(pool: Any, request: Any) -> Any:
        guard = _GUARD.get()
        if guard is None:
            return plain(pool, request)
        _check_request(guard, request)
        response = plain(pool, request)
        try:
            return _checked(guard, request, response)
        except UnusableAnswer:
            response.close()
            raise

    vars(httpcore)["AsyncConnectionPool"].handle_async_request = handle_async
    vars(httpcore)["ConnectionPool"].handle_request = handle


def uncompressed(body: bytes, encoding: str) -> bytes | None:
    """A whole body without its compression, which may be off already; None for one not known.

    Raises `UnusableAnswer` where it is longer than an answer may be.
    """
    decoder = _decoder(encoding.encode("latin-1", "replace"))
    if decoder is None:
        return None
    plain = bytearray()
    try:
        for piece in decoder(body):
            plain += piece
            check_length(len(plain))
    except _NotCompressedSo:
        return body
    return bytes(plain)


def check_length(length: int) -> None:
    """Raise `UnusableAnswer` where an answer has more bytes than it may have."""
    if length > LONGEST_ANSWER:
        raise UnusableAnswer(f"the answer is longer than {LONGEST_ANSWER // 2**20} MB")


class _NotCompressedSo(UnusableAnswer):
    """The bytes are not of the compression that the answer's header names."""


def _check_request(guard: _Guard, request: Any) -> None:
    if guard.origin is None or _origin(_url(request)) == guard.origin:
        return
    target = urlsplit(_url(request))
    raise UnusableAnswer(
        f"the server redirects to {target.scheme}://{target.netloc}; redirects to another server "
        "are not followed, because they would send the headers and the transcript there"
    )


def _checked(guard: _Guard, request: Any, response: Any) -> Any:
    headers = {name.lower(): value for name, value in response.headers}
    if guard.strict and _OK < response.status < _ERROR:
        _check_redirect(request, response.status, headers.get(b"location", b"").decode("latin-1"))
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    decoder = _decoder(encoding)
    if decoder is None and encoding not in (b"identity", b"") and guard.strict:
        raise UnusableAnswer(
            f"the answer is compressed as {encoding.decode('latin-1')!r}, which was not asked for"
        )
    length = headers.get(b"content-length", b"")
    if length.isdigit() and len(length) < 20:  # noqa: PLR2004 - more than any file has
        check_length(int(length))
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
    asked = _url(request)
    target = urljoin(asked, location)
    if status not in _REDIRECTS_WITH_BODY or _origin(target) != _origin(asked):
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


def _decoder(encoding: bytes) -> Callable[[bytes], Iterator[bytes]] | None:
    """What takes a compression off the chunks of a body, piece by piece; None for none known."""
    encoding = encoding.strip().lower()
    if encoding in (b"gzip", b"x-gzip", b"deflate"):
        return _Inflating().pieces
    if encoding == b"zstd" and find_spec("zstandard") is not None:
        return _zstd_pieces()
    if encoding == b"br" and find_spec("brotli") is not None:
        return _brotli_pieces()
    return None


class _Inflating:
    """Takes off gzip and both kinds of deflate, with and without a header."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._began = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self._decoder.eof:
            try:
                piece = self._decoder.decompress(chunk, _AT_ONCE)
            except zlib.error as error:
                if self._began:
                    raise _not_so(error) from error
                self._began, self._decoder = True, zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._began = self._began or bool(piece)
            yield piece
            chunk = self._decoder.unconsumed_tail


def _zstd_pieces() -> Callable[[bytes], Iterator[bytes]]:
    zstandard = import_module("zstandard")
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def pieces(chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), _ZSTD_SLICE):
            if decoder.eof:
                return
            try:
                yield decoder.decompress(chunk[start : start + _ZSTD_SLICE])
            except zstandard.ZstdError as error:
                raise _not_so(error) from error

    return pieces


def _brotli_pieces() -> Callable[[bytes], Iterator[bytes]] | None:
    brotli = import_module("brotli")
    decoder = brotli.Decompressor()
    if not hasattr(decoder, "can_accept_more_data"):
        # Before 1.2 it gives all at once.
        return None

    def pieces(chunk: bytes) -> Iterator[bytes]:
        try:
            yield decoder.process(chunk, output_buffer_limit=_AT_ONCE)
            while not decoder.can_accept_more_data():
                yield decoder.process(b"", output_buffer_limit=_AT_ONCE)
        except brotli.error as error:
            raise _not_so(error) from error

    return pieces


def _not_so(error: Exception) -> _NotCompressedSo:
    return _NotCompressedSo(f"the answer cannot be uncompressed: {error}")


class _Bounded:
    """A response's bytes, uncompressed if necessary, up to the maximum length of an answer."""

    def __init__(self, stream: Any, decoder: Callable[[bytes], Iterator[bytes]] | None) -> None:
        self._stream = stream
        self._decoder = decoder
        self._length = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            try:
                for piece in self._pieces(chunk):
                    yield piece
            except UnusableAnswer:
                await self.aclose()
                raise

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            try:
                yield from self._pieces(chunk)
            except UnusableAnswer:
                self.close()
                raise

    def _pieces(self, chunk: bytes) -> Iterator[bytes]:
        for piece in (chunk,) if self._decoder is None else self._decoder(chunk):
            self._length += len(piece)
            check_length(self._length)
            yield piece

    async def aclose(self) -> None:
        """Give the connection back."""
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()

    def close(self) -> None:
        """Give the connection back."""
        if hasattr(self._stream, "close"):
            self._stream.close()
