"""Says why a call of ours, or a request of a judge's own code, has no recorded answer: the nearest
recorded one, and the difference.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.errors import Unrecorded, Unscored
from pytest_jrh.core.stages import JUDGE
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import message_text
from pytest_jrh.core.user_code import error_places
from pytest_jrh.recording.cassettes import MAKE_ROOM, Cassette
from pytest_jrh.recording.exchanges import HttpRequest, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.llm.calls import CallRequest
    from pytest_jrh.recording.cassettes import RecordedCall
    from pytest_jrh.recording.exchanges import Halt


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
    asker: str,
    recorded: Sequence[Mapping[str, Any]],
    cassette: Path,
    closed: bool,
    error: BaseException,
) -> Unscored:
    """The outcome of a case whose judge was halted.

    `recorded` are the exchanges that were there to answer it, and `closed` says that the cassette
    is complete and the mode adds nothing to it.
    """
    if halt.why == "budget":
        return Unscored("over_budget", stage=JUDGE.name, cause=f"{halt.what}.")
    if halt.why == "room":
        cause = (
            f"{asker} was stopped before a request whose answer could not be stored under "
            f"{cassette.parent}: {halt.what}."
        )
        return Unscored("model_error", stage=JUDGE.name, cause=cause, advice=MAKE_ROOM)
    if halt.why == "network":
        return Unscored(
            "unrecorded",
            stage=JUDGE.name,
            cause=f"{asker} was stopped: {halt.what}, which no recording answers.",
            advice=VERDICT_ADVICE,
            places=error_places(error),
        )
    assert halt.request is not None
    interaction = _nearest_interaction(recorded, halt.request)
    cause = f"{asker} sent {halt.what}, which is not recorded"
    if interaction is None:
        cause += ": the case has no recorded request."
    else:
        cause += "; the nearest recorded request differs."
    return Unrecorded(
        stage=JUDGE.name,
        cause=_CLOSED + cause if closed else cause,
        difference="" if interaction is None else request_difference(interaction, halt.request),
        cassette=str(cassette),
    )


def nearest(cassette: Cassette, request: CallRequest) -> RecordedCall | None:
    """The recorded call of the same stage that has the most in common with a request."""
    parts = request.parts

    def likeness(entry: RecordedCall) -> tuple[int, int]:
        in_common = set(entry.asked.get("messages", ())).intersection(parts["messages"])
        return len(in_common), sum(entry.asked.get(name) == parts[name] for name in parts)

    entries = cassette.entries.values()
    same_stage = [entry for entry in entries if entry.stage == request.stage.stage]
    return max(same_stage, key=likeness, default=None)


def difference(
    entry: RecordedCall, request: CallRequest, *, redact: Callable[[str], str] = str
) -> str:
    """A short text that says in which parts a request differs from a recorded call.

    `redact` takes secrets out of the request, as they are out of the recording.
    """
    lines: list[str] = []
    recorded, asked = {"repeat": 1, **entry.asked}, {"repeat": 1, **request.parts}
    digests = recorded.pop("messages", [])
    for number, message_digest in enumerate(asked.pop("messages")):
        if message_digest not in digests[number : number + 1]:
            message = request.messages[number]
            lines.append(f"message {number + 1} ({message['role']}):")
            lines += _first_change(_texts_of(entry), redact(message_text(message)))
    if len(digests) > len(request.messages):
        lines.append(f"messages: {len(digests)} recorded, {len(request.messages)} now")
    return "\n".join([*lines, *changed_parts(recorded, asked)])


def changed_parts(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """The parts of a call that differ, each in three lines."""
    lines: list[str] = []
    for name, now in asked.items():
        if recorded.get(name) != now:
            lines += [f"{name}:", f"-{json.dumps(recorded.get(name))}", f"+{json.dumps(now)}"]
    return lines


def _texts_of(entry: RecordedCall) -> list[str]:
    """Every text inside the recorded request, whatever the provider's wire format."""
    texts: list[str] = []
    pending: list[object] = []
    for interaction in entry.exchanges:
        with contextlib.suppress(ValueError, RecursionError):
            pending.append(json.loads(interaction["request"]["body"] or ""))
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return texts


def request_difference(interaction: Mapping[str, Any], request: HttpRequest) -> str:
    """A short text that says in what a request differs from a recorded one."""
    lines = _first_change([_text_of(HttpRequest.of(interaction))], _text_of(request))
    return "\n".join(lines) or "(equal to a recorded request that was asked fewer times)"


def _nearest_interaction(
    recorded: Sequence[Mapping[str, Any]], request: HttpRequest
) -> Mapping[str, Any] | None:
    """The recorded exchange that has the most in common with a request."""
    lines = set(_text_of(request).splitlines())

    def likeness(interaction: Mapping[str, Any]) -> int:
        return len(lines.intersection(_text_of(HttpRequest.of(interaction)).splitlines()))

    return max(recorded, key=likeness, default=None)


def _text_of(request: HttpRequest) -> str:
    """A request line by line, and the texts in its body, too: a transcript is one line of JSON."""
    text = request.body
    with contextlib.suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
    return "\n".join([f"{request.method} {path_of(request.uri)}", text.replace("\\n", "\n")])


def _first_change(recorded: Sequence[str], text: str) -> list[str]:
    """The first line that a text has not of the recorded one that it has most in common with, and
    the first that is new, each cut to a length.
    """
    if not recorded:
        return ["(differs; the recording has no HTTP request to compare with)"]
    asked_lines = dict.fromkeys(text.splitlines())
    closest = max(recorded, key=lambda old: len(asked_lines.keys() & old.splitlines()))
    recorded_lines = dict.fromkeys(closest.splitlines())
    gone = [f"-{line}" for line in recorded_lines if line not in asked_lines]
    added = [f"+{line}" for line in asked_lines if line not in recorded_lines]
    return [shortened(line, _LONGEST_LINE) for line in (*gone[:1], *added[:1])]
