"""Says why a judge's code was halted: a request is not recorded, or it connected by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_jrh.diffs import unified
from pytest_jrh.errors import Unrecorded, Unscored
from pytest_jrh.recording.own_code.exchanges import is_all_secret
from pytest_jrh.recording.own_code.http_client import foreign_urllib3
from pytest_jrh.recording.room import MAKE_ROOM
from pytest_jrh.redact import REDACTED
from pytest_jrh.user_code import error_places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from pytest_jrh.recording.own_code.exchanges import Halt, HttpRequest

_MOST_LINES = 24
_LONGEST_LINE = 160
VERDICT_ADVICE = (
    "Let it ask over HTTP by requests, httpx, aiohttp or urllib3; or set `replay: verdict` on the "
    "judge, which then answers from its recorded verdict."
)


def halted(
    halt: Halt,
    *,
    stage: str,
    who: str,
    recorded: Sequence[Mapping[str, Any]],
    cassette: Path,
    closed: bool,
    error: BaseException | None,
) -> Unscored:
    """The outcome of a case whose judge was halted.

    `recorded` are the exchanges that were there to answer it, and `closed` says that the cassette
    is complete and the mode adds nothing to it.
    """
    if halt.why == "budget":
        return Unscored("over_budget", stage=stage, cause=f"{halt.what}.")
    if halt.why == "room":
        return Unscored(
            "model_error",
            stage=stage,
            cause=f"{who} was stopped before a request whose answer could not be stored under "
            f"{cassette.parent}: {halt.what}.",
            advice=MAKE_ROOM,
        )
    if halt.why == "unready":
        return Unrecorded(
            stage=stage,
            cause=f"{who} cannot be asked: {halt.what}.",
            difference="",
            cassette=str(cassette),
        )
    if halt.why == "unseen":
        return Unscored(
            "unrecorded",
            stage=stage,
            cause=f"{who} was stopped: {halt.what}, which no recording answers.",
            advice=f"{foreign_urllib3()}{VERDICT_ADVICE}",
            places=() if error is None else error_places(error),
        )
    assert halt.request is not None
    nearest = _nearest(recorded, halt.request)
    cause = f"{who} sent {halt.what}, which is not recorded"
    if nearest is not None:
        cause += "; the nearest recorded request differs"
        if is_all_secret(nearest["request"]["body"]):
            cause += f": its body is {REDACTED} alone, which answers nothing else"
    elif not recorded:
        cause += ": the case has no recorded request"
    if closed:
        cause = f"the cassette is complete, and mode `once` does not add to it: {cause}"
    return Unrecorded(
        stage=stage,
        cause=f"{cause}.",
        difference="" if nearest is None else difference(nearest, halt.request),
        cassette=str(cassette),
    )


def difference(interaction: Mapping[str, Any], request: HttpRequest) -> str:
    """A short text that says in what a request differs from a recorded one."""
    recorded = interaction["request"]
    lines: list[str] = []
    was, now = f"{recorded['method']} {recorded['uri']}", f"{request.method} {request.uri}"
    if was != now:
        lines += [f"-{was}", f"+{now}"]
    changed = [
        line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
        for line in unified(_lines(recorded["body"]), _lines(request.body), context=0)
        if not line.startswith("@@")
    ]
    if not lines and not changed:
        return "(equal to a recorded request that was asked fewer times)"
    lines += changed
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"... {len(lines) - _MOST_LINES} more lines"]
    return "\n".join(lines)


def _nearest(
    recorded: Sequence[Mapping[str, Any]], request: HttpRequest
) -> Mapping[str, Any] | None:
    """The recorded exchange that has the most in common with a request."""
    wanted = set(_lines(request.body))

    def likeness(interaction: Mapping[str, Any]) -> tuple[bool, bool, int]:
        other = interaction["request"]
        shared = len(wanted & set(_lines(other["body"])))
        return (other["uri"] == request.uri, other["method"] == request.method, shared)

    return max(recorded, key=likeness, default=None)


def _lines(body: str | None) -> list[str]:
    """A body line by line, and its texts too: a transcript is one line of its JSON."""
    try:
        text = json.dumps(json.loads(body or ""), indent=1, sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = body or ""
    return [part for line in text.splitlines() for part in line.split("\\n")]
