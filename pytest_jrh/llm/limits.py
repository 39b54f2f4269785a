"""When a call may be sent: slots, a pace, retries, and a budget with its prices; and locks.

Locks are freed by the operating system when a process dies, however it dies. What processes share,
such as the budget, is one small file under a lock. A call is entered there before it is sent: in
the budget with its maximum cost, which is corrected once its price is known. A process that dies
leaves its entry, so the limit always holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_jrh.core import Json, dollars, frozen
from pytest_jrh.core.calls import STAGES, StageModel
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.transcript import media_in, message_text
from pytest_jrh.llm.calls import CallRequest, Needs, Stopped, digest
from pytest_jrh.llm.transport import LONGEST_WAIT, litellm

if TYPE_CHECKING:
    from filelock import FileLock


_POLL = 0.05
"""Seconds between two looks for a free lock."""


@contextlib.asynccontextmanager
async def held(path: Path, stopping: Callable[[], bool]) -> AsyncIterator[None]:
    """Hold a lock file, waiting for it without blocking the loop.

    Raises `Stopped` where `stopping` says so.
    """
    lock = file_lock(path)
    while True:
        with contextlib.suppress(TimeoutError):
            lock.acquire(blocking=False)
            break
        if stopping():
            raise Stopped
        await asyncio.sleep(_POLL)
    try:
        yield
    finally:
        lock.release()


def file_lock(path: Path) -> FileLock:
    """A lock that the operating system frees if the process dies."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        atomic_write(ignore, "*\n")
    return FileLock(path, thread_local=False)


class SharedFile:
    """A JSON object in a file that processes share; without a `path` it is this process's alone."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._own: Json = {}

    def read(self) -> Json:
        """What is in it now."""
        if self.path is None:
            return self._own
        try:
            content: Json = json.loads(self.path.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            # One that is not whole was left by a machine that stopped, and its sessions with it.
            return {}
        return content

    @contextlib.contextmanager
    def changing(self) -> Iterator[Json]:
        """Give what is in it, and keep what the block makes of that; raises `OSError`."""
        if self.path is None:
            yield self._own
            return
        with file_lock(self.path.with_suffix(".lock")):
            content = self.read()
            yield content
            atomic_write(self.path, json.dumps(content))


_RATE_FACTOR = 16


@frozen
class RetryPolicy:
    """How often a call is tried, and the jittered exponential wait between tries, in seconds.

    What a provider asks to wait is obeyed; more than `longest_wait` is cut to it. `timeouts` is
    the number of time-outs after which a call fails: each costs its whole time, and a runaway
    answer is likely to run away again.
    """

    attempts: int = 5
    timeouts: int = 2
    first_wait: float = 0.5
    longest_wait: float = LONGEST_WAIT

    def wait(self, attempt: int, retry_after: float | None, *, throttled: bool = False) -> float:
        """Seconds to wait after the given failed attempt, counted from 1; `throttled` says that it
        met the provider's rate limit.

        Limits are by the minute, which the attempts have to outlast where no wait is asked for, or
        too short a one: other processes may use the same limit.
        """
        first = self.first_wait * (_RATE_FACTOR if throttled else 1)
        ceiling = min(first * 2 ** (attempt - 1), self.longest_wait)
        backoff = random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter
        if retry_after is None:
            return backoff
        asked_wait = min(retry_after, self.longest_wait) + random.uniform(0, 0.1)  # noqa: S311 - jitter
        if throttled and attempt > 1:
            return max(asked_wait, backoff)
        return asked_wait


@dataclass
class Turn:
    """A call's turn under the rate limit of its stage; `sent_at` is when it counts as sent."""

    stage: StageModel
    sent_at: float | None = None


class Pace:
    """Keeps the times at which calls were sent, per model and limit, for all processes that share
    the file. `clock` gives monotonic seconds, which are the same in every process of a machine.
    """

    def __init__(
        self, path: Path | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = clock
        self._shared = SharedFile(path)
        # Until when nothing is sent to a model.
        self._resume: dict[str, float] = {}

    def wait(self, turn: Turn, *, is_sent: bool = False) -> float:
        """Seconds until the model may be called; at 0.0, or where it `is_sent`, the call counts as
        sent now, also if it had a turn before: the first call of a session waits for imports.

        At most `calls` calls go out in any window of `period` seconds. Raises `Unscored` where the
        call cannot be counted, as on a full disk.
        """
        limit, model = turn.stage.rate_limit, turn.stage.model
        pause = max(0.0, self._resume.get(model, 0.0) - self._now())
        if limit is None or (pause and turn.sent_at is None):
            return pause
        limited = f"{model} {limit.calls}/{limit.period:g}"
        try:
            with self._shared.changing() as times:
                # Now that no other process has the lock.
                time_now = self._now()
                sent: list[float] = []
                for sent_at in times.get(limited, ()):
                    # The clock of a machine starts again with it.
                    is_recent = sent_at <= time_now < sent_at + limit.period
                    if is_recent and sent_at != turn.sent_at:
                        sent.append(sent_at)
                if is_sent or len(sent) < limit.calls:
                    turn.sent_at = time_now
                    times[limited] = [*sent, time_now]
                    return 0.0
        except OSError as error:
            if is_sent:
                return 0.0
            raise Unscored(
                "model_error",
                stage=turn.stage.stage,
                cause=f"{model}: calls cannot be counted in {self._shared.path}: {error.strerror}.",
            ) from error
        return sent[-limit.calls] + limit.period - time_now

    def slow_down(self, model: str, seconds: float) -> None:
        """Delay all calls to a model that has just answered with a rate-limit error."""
        self._resume[model] = max(self._resume.get(model, 0.0), self._now() + seconds)


FIRST_CASES = 5
"""So many cases of a session tell whether answers can be used."""


class EarlyStop:
    """What is not asked any more: a stage whose model has met what ends it, as a rejected key, or
    of which the first cases of a session ended alike, without one usable answer. `path` is the same
    for every process that shares it.

    A stage is what is asked alike: its model with its server, prompt and settings. What is
    replayed does not count.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._shared = SharedFile(path)
        self._usable = set[str]()
        self.notices: dict[str, None] = {}

    def usable(self, stage: StageModel) -> None:
        """Take note that a stage has given an answer in its form: it is asked from now on."""
        key = digest(repr(stage))
        if key not in self._usable:
            self._usable.add(key)
            with contextlib.suppress(OSError), self._shared.changing() as stages:
                stages.setdefault(key, {})["usable"] = True

    def ended(self, stage: StageModel, case: str, trouble: Unscored) -> None:
        """Take note that a case has ended with what others may meet, too."""
        with contextlib.suppress(OSError), self._shared.changing() as stages:
            entry = stages.setdefault(digest(repr(stage)), {})
            kinds = entry.setdefault("kinds", {})
            kinds[case] = trouble.alike
            number = list(kinds.values()).count(trouble.alike)
            are_alike = number >= FIRST_CASES and "usable" not in entry
            if (trouble.ends or are_alike) and "stop" not in entry:
                entry["stop"] = {
                    "outcome": trouble.outcome,
                    "kind": trouble.alike,
                    "why": {
                        "stage": trouble.stage,
                        "cause": trouble.cause,
                        "advice": trouble.advice,
                    },
                }

    def check(self, case: str, needs: Needs) -> None:
        """Raise `Unscored` (not_asked) where of a group of stages none is asked any more; one of
        the first cases, which is run again, ends as it did.
        """
        stages = self._shared.read()
        for group in needs:
            entries = [stages.get(digest(repr(stage)), {}) for stage in group]
            if not all("stop" in entry for entry in entries):
                continue
            stop = entries[0]["stop"]
            why = stop["why"]
            if entries[0]["kinds"].get(case) == stop["kind"]:
                raise Unscored(stop["outcome"], **why)
            self.notices[
                f"{STAGES[why['stage']].title} was not asked any more, because every other case "
                f"would fail the same way: {why['cause']} {why['advice']}"
            ] = None
            raise Unscored("not_asked", **why)


class Ledger:
    """The session's budget: the most `calls`, and the most US dollars as their `cost`, that it may
    spend; None is no limit. `path` is the same for every process that shares it.
    """

    def __init__(
        self, path: Path | None, *, calls: int | None = None, cost: float | None = None
    ) -> None:
        self.most_calls = calls
        self.most_cost = cost
        self._shared = SharedFile(path)

    def enter(self, most: float) -> str | None:
        """Enter a call that costs at most `most` dollars; None if it is allowed, else the reason
        why not.

        Where the ledger cannot be written, as on a full disk, no call is allowed.
        """
        try:
            with self._shared.changing() as spent:
                calls, cost = spent.get("calls", 0), spent.get("cost", 0.0)
                if self.most_calls is not None and calls >= self.most_calls:
                    return f"{calls} of {self.most_calls} calls are spent"
                limit = self.most_cost
                if limit is not None and cost + most > limit:
                    return (
                        f"{dollars(cost)} of {dollars(limit)} are spent or reserved, and this call "
                        f"may cost up to {dollars(most)}; a lower `max_tokens` in its stage makes "
                        "calls cheaper"
                    )
                spent.update(calls=calls + 1, cost=cost + most)
        except OSError as error:
            return f"the calls cannot be counted in {self._shared.path}: {error.strerror or error}"
        return None

    def correct(self, most: float, actual: float) -> None:
        """Replace a call's maximum cost by its actual cost."""
        if most != actual:
            # If the write fails, the maximum stays entered: the limit holds, and no answer is lost.
            with contextlib.suppress(OSError), self._shared.changing() as spent:
                spent["cost"] = spent.get("cost", 0.0) - most + actual


_LONGEST_ANSWER = 16_384
# In tokens: more than what any provider was seen to count for one in high detail.
_IMAGE = 50_000
_WRAPPING = 18


@frozen
class Price:
    """US dollars per token read and written, and the longest answer of the model in tokens."""

    read: float
    written: float
    longest: int = _LONGEST_ANSWER

    def most(self, request: CallRequest) -> float:
        """The maximum cost of a call: a token has at least a byte, an answer ends at its limit."""
        tokens = len(json.dumps(request.schema))
        for message in request.messages:
            text = json.dumps({**message, "content": message_text(message)}, ensure_ascii=False)
            # Providers wrap messages in a few tokens of their own.
            tokens += len(text.encode("utf-8", "replace")) + _WRAPPING
            tokens += _IMAGE * media_in([message])
        return tokens * self.read + (request.stage.max_tokens or self.longest) * self.written


@functools.cache
def price_for(stage: StageModel) -> Price | None:
    """What a stage's model costs; None if unknown. One that this machine serves is free, unless it
    has a price, as behind a proxy.
    """
    try:
        info = litellm().get_model_info(stage.model)
    except Exception:  # noqa: BLE001 - litellm raises a plain Exception for an unknown model
        info = {}
    read, written = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    is_local = stage.api_base is not None and is_loopback(stage.api_base)
    if not read and not written and not is_local:
        return None
    return Price(read or 0.0, written or 0.0, info.get("max_output_tokens") or _LONGEST_ANSWER)


def is_loopback(url: str) -> bool:
    """Whether a URL is of a server on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def unpriced_reason(limit: float, stages: Iterable[StageModel]) -> str | None:
    """Why a limit in US dollars cannot be enforced for these models; None where it can."""
    unpriced = sorted({stage.model for stage in stages if price_for(stage) is None})
    if not unpriced:
        return None
    return (
        f"--jrh-max-cost={limit:g}: no known price for {', '.join(unpriced)}, so the limit cannot "
        "be enforced; limit the number of calls with --jrh-max-calls"
    )
