"""Describes a call that a cassette does not have: the nearest recorded one, and the difference
(rule G3).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_jrh.core.diffs import unified
from pytest_jrh.core.errors import Unrecorded
from pytest_jrh.core.transcript import text_of
from pytest_jrh.recording.cassettes import Cassette

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_jrh.llm.calls import CallRequest
    from pytest_jrh.recording.cassettes import RecordedCall


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
    if closed:
        cause = f"the cassette is complete, and mode `once` does not add to it: {cause}"
    return Unrecorded(
        stage=request.stage.stage,
        cause=f"{why}{cause[0].upper()}{cause[1:]}" if why else cause,
        difference=difference(entry, request, redact=redact) if entry else "",
        cassette=str(path),
    )


def nearest(cassette: Cassette, request: CallRequest) -> RecordedCall | None:
    """The recorded call of the same stage that has the most in common with a request."""
    wanted = request.parts

    def likeness(entry: RecordedCall) -> tuple[int, int]:
        same_parts = sum(
            entry.parts.get(name) == wanted[name] for name in ("model", "parameters", "schema")
        )
        recorded = entry.parts.get("messages") or []
        same_messages = sum(
            one == other for one, other in zip(recorded, wanted["messages"], strict=False)
        )
        return (same_messages - abs(len(recorded) - len(wanted["messages"])), same_parts)

    candidates = [
        entry for entry in cassette.entries.values() if entry.stage == request.stage.stage
    ]
    return max(candidates, key=likeness, default=None)


def difference(
    entry: RecordedCall,
    request: CallRequest,
    *,
    redact: Callable[[str], str] = str,
    longest: int = 24,
) -> str:
    """A short text that says in which parts a request differs from a recorded call (rule G3).

    `redact` takes secrets out of the request, as they are out of the recording.
    """
    lines = []
    wanted = request.parts
    for name in ("model", "parameters"):
        if entry.parts.get(name) != wanted[name]:
            lines += [
                f"{name}:",
                f"-{json.dumps(entry.parts.get(name))}",
                f"+{json.dumps(wanted[name])}",
            ]
    recorded_repeat, repeat = (parts.get("repeat", 1) for parts in (entry.parts, wanted))
    if recorded_repeat != repeat:
        lines.append(f"repeat: {recorded_repeat} recorded, {repeat} now")
    if entry.parts.get("schema") != wanted["schema"]:
        lines.append("the response schema differs")
    recorded = entry.parts.get("messages") or []
    if len(recorded) != len(wanted["messages"]):
        lines.append(f"messages: {len(recorded)} recorded, {len(wanted['messages'])} now")
    texts = list(_texts_of(entry))
    for index, (old, new) in enumerate(zip(recorded, wanted["messages"], strict=False)):
        if old != new:
            message = request.messages[index]
            lines.append(f"message {index + 1} ({message['role']}):")
            lines += _text_difference(texts, redact(text_of(message)))
    if len(lines) > longest:
        lines = [*lines[:longest], f"... {len(lines) - longest} more lines"]
    return "\n".join(lines)


def _text_difference(recorded: Sequence[str], text: str) -> Iterator[str]:
    if not recorded:
        yield "(differs; the recording has no HTTP request to compare with)"
        return
    wanted = text.splitlines()
    shared = set(wanted)
    old = max(
        recorded, key=lambda candidate: len(shared & set(candidate.splitlines()))
    ).splitlines()
    for line in unified(old, wanted, context=0):
        if not line.startswith("@@"):
            yield line if len(line) <= 160 else f"{line[:159]}…"  # noqa: PLR2004 - about two terminal lines


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
