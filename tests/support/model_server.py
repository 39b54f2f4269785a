"""A programmable OpenAI-compatible server on loopback, for end-to-end tests and benchmarks.

    with ModelServer() as server:
        server.faults.add(stage="judge", fault=Fault.status(429, retry_after=1))
        ...  # point a client at server.base_url
        assert server.count("judge") == 2

As a process of its own, `python -m tests.support.model_server --port 0 --log calls.jsonl --delay
0.5` prints its base URL, and logs one JSON line when a request arrives and one when it ends. Tests
start it with `tests.support.server_process`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from tests.support.exchange import (
    Answer,
    AnswerFunction,
    Reply,
    Request,
    envelope,
    error_body,
    reply_with,
    stage_of,
)
from tests.support.faults import Fault, Faults
from tests.support.loopback import Call, Wire, serve
from tests.support.obedient import Obedient, override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

__all__ = [
    "Answer",
    "AnswerFunction",
    "Fault",
    "Faults",
    "ModelServer",
    "Obedient",
    "Reply",
    "Request",
    "environment_for",
    "override",
]

Delay: TypeAlias = "float | Callable[[Request], float]"


class ModelServer:
    """Answers chat completions on 127.0.0.1 from a thread of its own.

    `answer` makes the answer out of the request; `delay` is seconds, or a function of the request;
    `log` gets one JSON line per event, with the request's body where `log_bodies`; with
    `keep=False` a request is forgotten after its answer, so that a benchmark's memory stays flat.

    A request is on record as answered before its first byte goes out. Leaving the `with` block
    closes the port and every connection, and raises what `answer`, `delay` or a fault raised, if
    they did.
    """

    def __init__(
        self,
        answer: AnswerFunction | None = None,
        *,
        delay: Delay = 0.0,
        port: int = 0,
        log: Path | None = None,
        log_bodies: bool = False,
        keep: bool = True,
    ) -> None:
        self.answer: AnswerFunction = answer or Obedient()
        self.delay = delay
        self.port = port
        self.faults = Faults()
        self.errors: list[BaseException] = []
        self._log = log
        self._book = _Book(keep=keep, log_bodies=log_bodies)
        self._thread: threading.Thread | None = None
        self._close_port: Callable[[], object] = lambda: None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that send litellm's and OpenAI's clients here."""
        return environment_for(self.base_url)

    @property
    def requests(self) -> list[Request]:
        """Every chat completion asked for so far, in order of arrival; a copy."""
        return self._book.requests()

    def count(self, stage: str | None = None, *, answered: bool = False) -> int:
        """How many requests arrived (or were answered, well or badly), of one stage or of all."""
        return self._book.count(stage, answered=answered)

    @property
    def in_flight(self) -> int:
        return self._book.in_flight

    @property
    def peak_in_flight(self) -> int:
        """The most requests that waited for their answers at any one time."""
        return self._book.peak

    def wait_for(
        self, count: int, stage: str | None = None, *, answered: bool = False, timeout: float = 10.0
    ) -> None:
        """Block until `count` requests have arrived (or were answered).

        TimeoutError after `timeout` seconds.
        """
        self.wait_until(
            lambda: self._book.count(stage, answered=answered) >= count, timeout=timeout
        )

    def wait_until(self, condition: Callable[[], bool], *, timeout: float = 10.0) -> None:
        """Block until `condition`, looked at when a request arrives or ends.

        TimeoutError after `timeout` seconds.
        """
        self._book.wait_until(condition, timeout)

    def start(self) -> ModelServer:
        """Open the port; OSError where it is taken."""
        if self._log is not None:
            self._book.log = self._log.open("a", encoding="utf-8", buffering=1)
        ready: Future[tuple[int, Callable[[], object]]] = Future()
        serving = serve(self._respond, port=self.port, ready=ready, on_error=self.errors.append)
        self._thread = threading.Thread(
            target=asyncio.run, args=(serving,), name="model-server", daemon=True
        )
        self._thread.start()
        self.port, self._close_port = ready.result()
        return self

    def stop(self) -> None:
        """Close the port and every connection; may be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._close_port()
            thread.join()
            self._book.close()

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None and self.errors:
            raise self.errors[0]

    async def _respond(self, call: Call) -> Wire:
        path = call.path.partition("?")[0]
        if call.method == "GET" and path.endswith("/models"):
            return Wire(200, b'{"object": "list", "data": []}')
        if call.method != "POST" or not path.endswith("/chat/completions"):
            return Wire(404, error_body(f"No {call.method} {path} here.", "not_found"))
        body = _parse_body(call.body)
        if body is None or body.get("stream"):
            return Wire(
                400,
                error_body(
                    "A chat completion is a JSON object, and not streamed.", "invalid_request_error"
                ),
            )
        return await self._complete(self._book.arrived(body, call))

    async def _complete(self, request: Request) -> Wire:
        kind, status, gone = "error", None, False
        try:
            fault = self.faults.match(request)
            kind = fault.name if fault else "answer"
            await asyncio.sleep(self.delay(request) if callable(self.delay) else self.delay)
            if fault:
                await _hold(fault)
            reply = self._reply(request, fault)
            wire = Wire(reply.status, envelope(request, reply), reply.headers, reply.send_only)
            status = None if reply.send_only == 0 else reply.status
        except asyncio.CancelledError:
            gone = True
            raise
        finally:
            self._book.ended(request, kind=kind, status=status, gone=gone)
        return wire

    def _reply(self, request: Request, fault: Fault | None) -> Reply:
        if fault is None:
            return reply_with(self.answer(request))
        return fault.spoil(request, lambda: reply_with(self.answer(request)))


class _Book:
    """What came and went; safe to read from any thread."""

    def __init__(self, *, keep: bool, log_bodies: bool) -> None:
        self._keep = keep
        self._log_bodies = log_bodies
        self._changed = threading.Condition(threading.RLock())
        self._requests: dict[int, Request] = {}
        self._arrived: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self.log: TextIO | None = None
        self.in_flight = 0
        self.peak = 0

    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._requests.values())

    def count(self, stage: str | None, *, answered: bool) -> int:
        with self._changed:
            counted = self._answered if answered else self._arrived
            return counted.total() if stage is None else counted[stage]

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(
                    f"after {timeout} s: asked {dict(self._arrived)}, answered "
                    f"{dict(self._answered)}"
                )

    def arrived(self, body: Mapping[str, Any], call: Call) -> Request:
        with self._changed:
            request = Request(
                index=self._arrived.total(),
                stage=stage_of(body),
                path=call.path,
                headers=call.headers,
                body=body,
                started=time.monotonic(),
            )
            self._requests[request.index] = request
            self._arrived[request.stage] += 1
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            self._write(
                request,
                "asked",
                digest=request.digest,
                **({"body": body} if self._log_bodies else {}),
            )
            self._changed.notify_all()
        return request

    def ended(self, request: Request, *, kind: str, status: int | None, gone: bool) -> None:
        with self._changed:
            self._requests[request.index] = replace(
                request, ended=time.monotonic(), kind=kind, status=status, gone=gone
            )
            if not self._keep:
                del self._requests[request.index]
            self._answered[request.stage] += status is not None
            self.in_flight -= 1
            self._write(
                request,
                "lost" if status is None else "answered",
                kind=kind,
                status=status,
                gone=gone,
            )
            self._changed.notify_all()

    def close(self) -> None:
        if self.log is not None:
            self.log.close()

    def _write(self, request: Request, event: str, **more: Any) -> None:
        if self.log is not None:
            line = {
                "event": event,
                "index": request.index,
                "stage": request.stage,
                "model": request.model,
                **more,
            }
            self.log.write(json.dumps({**line, "time": time.time()}) + "\n")


def environment_for(base_url: str) -> dict[str, str]:
    """The variables that send litellm's and OpenAI's clients to this base URL."""
    return {
        "OPENAI_API_BASE": base_url,
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "no-key-needed-on-loopback",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def main(arguments: list[str] | None = None) -> None:
    """Serve until Ctrl-C, SIGTERM, or the end of standard input where that was asked for."""
    parser = argparse.ArgumentParser(
        prog="tests.support.model_server", description="A scripted OpenAI-compatible model."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", type=Path, help="file that gets one JSON line per event")
    parser.add_argument(
        "--log-bodies", action="store_true", help="put the requests' bodies into the log"
    )
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that each answer takes")
    parser.add_argument("--edits", type=int, default=1, help="edits that the planner asks for")
    parser.add_argument(
        "--repair", action="store_true", help="plan an edit where the rubric is to be satisfied"
    )
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end with the process that started it"
    )
    options = parser.parse_args(arguments)
    server = ModelServer(
        Obedient(edits=options.edits, repair=options.repair),
        delay=options.delay,
        port=options.port,
        log=options.log,
        log_bodies=options.log_bodies,
        keep=False,
    )
    with contextlib.suppress(KeyboardInterrupt), server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        if options.until_stdin_closes:
            sys.stdin.read()
        else:
            threading.Event().wait()


async def _hold(fault: Fault) -> None:
    if isinstance(fault.hold, Future):
        # A client that hangs up must not close the gate for the others.
        await asyncio.shield(asyncio.wrap_future(fault.hold))
    else:
        await asyncio.sleep(fault.hold)


def _parse_body(body: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


if __name__ == "__main__":
    main()
