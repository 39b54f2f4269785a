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
_CLOSED = "the cassette is complete, and mode `once` does not add to it: "
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
    cassette = Cassette.load(path, interactions=True)
    entry, stage = nearest(cassette, request), request.stage.stage
    if entry is not None:
        cause = f"The call is not in the cassette; the nearest recorded {stage} call differs."
    elif cassette.entries:
        cause = f"The cassette has no {stage} call."
    else:
        cause = "The case has no recording."
    return Unrecorded(
        stage=stage,
        cause=why + (_CLOSED + cause[0].lower() + cause[1:] if closed else cause),
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
        cause = (
            f"{asker} was stopped before a request whose answer could not be stored under "
            f"{cassette.parent}: {halt.what}."
        )
        return Unscored("model_error", stage=stage, cause=cause, advice=MAKE_ROOM)
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
    if interaction is None:
        cause += ": the case has no recorded request."
    else:
        cause += "; the nearest recorded request differs."
    return Unrecorded(
        stage=stage,
        cause=_CLOSED + cause if closed else cause,
        difference="" if interaction is None else request_difference(interaction, halt.request),
        cassette=str(cassette),
    )


def nearest(cassette: Cassette, request: CallRequest) -> RecordedCall | None:
    """The recorded call of the same stage that has the most in common with a request."""
    parts = request.parts

    def likeness(entry: RecordedCall) -> tuple[int, int]:
        recorded = entry.asked.get("messages") or []
        pairs = zip(recorded, parts["messages"], strict=False)
        same_messages = sum(old == new for old, new in pairs)
        same_parts = sum(entry.asked.get(name) == parts[name] for name in parts)
        return same_messages - abs(len(recorded) - len(parts["messages"])), same_parts

    entries = cassette.entries.values()
    return max(
        (entry for entry in entries if entry.stage == request.stage.stage),
        key=likeness,
        default=None,
    )


def difference(
    entry: RecordedCall, request: CallRequest, *, redact: Callable[[str], str] = str
) -> str:
    """A short text that says in which parts a request differs from a recorded call.

    `redact` takes secrets out of the request, as they are out of the recording.
    """
    lines: list[str] = []
    recorded_parts, parts = {"repeat": 1, **entry.asked}, {"repeat": 1, **request.parts}
    for name in ("model", "parameters", "schema"):
        before, now = json.dumps(recorded_parts.get(name)), json.dumps(parts[name])
        if before != now:
            lines += [f"{name}:", f"-{before}", f"+{now}"]
    if recorded_parts["repeat"] != parts["repeat"]:
        lines.append(f"repeat: {recorded_parts['repeat']} recorded, {parts['repeat']} now")
    recorded = recorded_parts.get("messages") or []
    if len(recorded) != len(parts["messages"]):
        lines.append(f"messages: {len(recorded)} recorded, {len(parts['messages'])} now")
    texts = list(_texts_of(entry))
    pairs = zip(recorded, parts["messages"], request.messages, strict=False)
    for number, (old, new, message) in enumerate(pairs, start=1):
        if old != new:
            lines.append(f"message {number} ({message['role']}):")
            lines += _text_difference(texts, redact(message_text(message)))
    return _cut(lines)


def _text_difference(recorded: Sequence[str], text: str) -> list[str]:
    """How a text differs from the recorded one that it has most lines in common with."""
    if not recorded:
        return ["(differs; the recording has no HTTP request to compare with)"]
    lines = text.splitlines()
    closest = max(recorded, key=lambda old: len(set(lines) & set(old.splitlines())))
    return _changed_lines(closest.splitlines(), lines)


def _texts_of(entry: RecordedCall) -> Iterator[str]:
    """Every text inside the recorded request bodies, whatever the provider's wire format."""
    pending: list[object] = []
    for interaction in entry.exchanges:
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
