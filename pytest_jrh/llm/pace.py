"""When a call may be sent: rate limits of stage models, and a slow-down shared by all cases."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from pytest_jrh.models import RateLimit, StageModel


class Pace:
    """Keeps the times at which calls were sent, per model.

    Each limit is divided by `processes`, none of which sees the others' calls. `now` gives
    monotonic seconds.
    """

    def __init__(self, now: Callable[[], float], *, processes: int = 1) -> None:
        self._now = now
        self._processes = processes
        self._sent: defaultdict[tuple[str, RateLimit], deque[float]] = defaultdict(deque)
        self._resume: dict[str, float] = {}

    def wait(self, stage: StageModel) -> float:
        """Seconds until the model may be called; at 0.0 the call counts as sent.

        At most `calls` calls go out in any window of `period` seconds.
        """
        now = self._now()
        pause = self._resume.get(stage.model, now) - now
        limit = stage.rate_limit
        if limit is None:
            return max(pause, 0.0)
        sent = self._sent[stage.model, limit]
        window = limit.period * self._processes
        while sent and sent[0] + window <= now:
            sent.popleft()
        if len(sent) >= limit.calls:
            pause = max(pause, sent[0] + window - now)
        if pause > 0:
            return pause
        sent.append(now)
        return 0.0

    def slow_down(self, model: str, seconds: float) -> None:
        """Delay all calls to a model that has just answered with a rate-limit error."""
        self._resume[model] = max(self._resume.get(model, 0.0), self._now() + seconds)
