"""Says why a call of ours, or a request of a judge's own code, has no recorded answer: the nearest
recorded one, and the difference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.diffs import unified
from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.transcript import message_text
from pytest_jrh.core.user_code import error_places
from pytest_jrh.recording.cassettes import MAKE_ROOM, Cassette
from pytest_jrh.recording.exchanges import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.llm.calls import CallRequest
    from pytest_jrh.recording.cassettes import RecordedCall
    from pytest_jrh.recording.exchanges import Halt, HttpRequest


_MOST_LINES = 24
# About two lines of a terminal.
_LONGEST_LINE = 160
VERDICT_ADVICE = (
    "Let it ask over HTTP by requests, httpx, aiohttp or urllib3; or set `version` on the "
    "judge, which then answers from its recorded verdict."
)


def unrecorded(
    path: Path,
    request: CallRequest,
    *,
    closed: bool = False,
    why: str = "",
    redact: Callable[[str], str] = str,
) -> Unrecorded:
    """The outcome of a call that is not in the cassette at `path`.

    `closed` says that the cassette is complete, and the mode adds nothing to it; `why` goes before
    the cause, and ends in a space. `redact` takes secrets out of the request.
    """
    with_bodies = Cassette.load(path, interactions=True)
    entry = nearest(with_bodies, request)
    if entry is not None:
        cause = (
            f"the call is not in the cassette; the nearest recorded {request.stage.stage} call "
            "differs."
        )
    elif with_bodies.entries:
        cause = f"the cassette has no {request.stage.stage} call."
    else:
        cause = "the case has no recording."
    cause = _closed(cause, closed=closed)
    return Unrecorded(
        stage=request.stage.stage,
        cause=f"{why}{cause[0].upper()}{cause[1:]}" if why else cause,
        difference=difference(entry, request, redact=redact) if entry else "",
        cassette=str(path),
    )


def halted(
    halt: Halt,
    *,
    stage: str,
    asker: str,
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
            cause=f"{asker} was stopped before a request whose answer could not be stored under "
            f"{cassette.parent}: {halt.what}.",
            advice=MAKE_ROOM,
        )
    if halt.why == "network":
        return Unscored(
            "unrecorded",
            stage=stage,
            cause=f"{asker} was stopped: {halt.what}, which no recording answers.",
            advice=VERDICT_ADVICE,
            places=() if error is None else error_places(error),
        )
    assert halt.request is not None
    interaction = _nearest_interaction(recorded, halt.request)
    cause = f"{asker} sent {halt.what}, which is not recorded"
    if interaction is not None:
        cause += "; the nearest recorded request differs"
    else:
        cause += ": the case has no recorded request"
    return Unrecorded(
        stage=stage,
        cause=f"{_closed(cause, closed=closed)}.",
        difference="" if interaction is None else request_difference(interaction, halt.request),
        cassette=str(cassette),
    )


def _closed(cause: str, *, closed: bool) -> str:
    if not closed:
        return cause
    return f"the cassette is complete, and mode `once` does not add to it: {cause}"


def nearest(cassette: Cassette, request: CallRequest) -> RecordedCall | None:
    """The recorded call of the same stage that has the most in common with a request."""
    parts = request.parts

    def likeness(entry: RecordedCall) -> tuple[int, int]:
        same_parts = sum(
            entry.parts.get(name) == parts[name] for name in ("model", "parameters", "schema")
        )
        recorded = entry.parts.get("messages") or []
        same_messages = sum(
            old == new for old, new in zip(recorded, parts["messages"], strict=False)
        )
        return (same_messages - abs(len(recorded) - len(parts["messages"])), same_parts)

    candidates = [
        entry for entry in cassette.entries.values() if entry.stage == request.stage.stage
    ]
    return max(candidates, key=likeness, default=None)


def difference(
    entry: RecordedCall, request: CallRequest, *, redact: Callable[[str], str] = str
) -> str:
    """A short text that says in which parts a request differs from a recorded call.

    `redact` takes secrets out of the request, as they are out of the recording.
    """
    lines: list[str] = []
    parts = request.parts
    for name in ("model", "parameters"):
        if entry.parts.get(name) != parts[name]:
            lines += [
                f"{name}:",
                f"-{json.dumps(entry.parts.get(name))}",
                f"+{json.dumps(parts[name])}",
            ]
    recorded_repeat, repeat = entry.parts.get("repeat", 1), parts.get("repeat", 1)
    if recorded_repeat != repeat:
        lines.append(f"repeat: {recorded_repeat} recorded, {repeat} now")
    if entry.parts.get("schema") != parts["schema"]:
        lines.append("the response schema differs")
    recorded = entry.parts.get("messages") or []
    if len(recorded) != len(parts["messages"]):
        lines.append(f"messages: {len(recorded)} recorded, {len(parts['messages'])} now")
    texts = list(_texts_of(entry))
    for index, (old, new) in enumerate(zip(recorded, parts["messages"], strict=False)):
        if old != new:
            message = request.messages[index]
            lines.append(f"message {index + 1} ({message['role']}):")
            lines += _text_difference(texts, redact(message_text(message)))
    return _cut(lines)


def _text_difference(recorded: Sequence[str], text: str) -> list[str]:
    if not recorded:
        return ["(differs; the recording has no HTTP request to compare with)"]
    lines = text.splitlines()
    words = set(lines)

    def lines_in_common(candidate: str) -> int:
        return len(words & set(candidate.splitlines()))

    return _changed_lines(max(recorded, key=lines_in_common).splitlines(), lines)


def _texts_of(entry: RecordedCall) -> Iterator[str]:
    """Every text inside the recorded request bodies, whatever the provider's wire format."""
    pending: list[object] = []
    for interaction in entry.interactions:
        try:
            pending.append(json.loads(interaction["request"]["body"]))
        except (KeyError, TypeError, ValueError, RecursionError):
            continue
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def request_difference(interaction: Mapping[str, Any], request: HttpRequest) -> str:
    """A short text that says in what a request differs from a recorded one."""
    recorded = interaction["request"]
    lines: list[str] = []
    was, sent = (recorded["method"], recorded["uri"]), (request.method, request.uri)
    if (was[0], path_of(was[1])) != (sent[0], path_of(sent[1])):
        lines += [f"-{' '.join(was)}", f"+{' '.join(sent)}"]
    lines += _changed_lines(_body_lines(recorded["body"]), _body_lines(request.body))
    return _cut(lines) or "(equal to a recorded request that was asked fewer times)"


def _nearest_interaction(
    recorded: Sequence[Mapping[str, Any]], request: HttpRequest
) -> Mapping[str, Any] | None:
    """The recorded exchange that has the most in common with a request."""
    lines = set(_body_lines(request.body))

    def likeness(interaction: Mapping[str, Any]) -> tuple[bool, bool, int]:
        recorded = interaction["request"]
        in_common = len(lines & set(_body_lines(recorded["body"])))
        is_path = path_of(recorded["uri"]) == path_of(request.uri)
        return (is_path, recorded["method"] == request.method, in_common)

    return max(recorded, key=likeness, default=None)


def _body_lines(body: str | None) -> list[str]:
    """A body line by line, and its texts too: a transcript is one line of its JSON."""
    try:
        text = json.dumps(json.loads(body or ""), indent=1, sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = body or ""
    lines: list[str] = []
    for line in text.splitlines():
        lines += line.split("\\n")
    return lines


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The lines that differ, each cut to a length."""
    lines: list[str] = []
    for line in unified(old, new, context=0):
        if not line.startswith("@@"):
            lines.append(line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…")
    return lines


def _cut(lines: Sequence[str]) -> str:
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"... {len(lines) - _MOST_LINES} more lines"]
    return "\n".join(lines)
