"""The file in which a case's calls are kept: a vcrpy cassette whose metadata answers without vcrpy.

The metadata comes first in the file and holds one entry per finished call; the HTTP interactions,
as vcrpy records them, follow. A replay by fingerprint reads this head alone. Files are written
whole, to a temporary file that is then renamed, after every call (rules G3, G5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_jrh.diffs import unified
from pytest_jrh.errors import InputError, Problem
from pytest_jrh.files import atomic_write
from pytest_jrh.llm.calls import Answer, CallRequest
from pytest_jrh.recording.cassette_schema import FORMAT, check
from pytest_jrh.recording.cassette_text import Malformed, head_of, read, write


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished call: what was asked, in digests, and what was answered, in full.

    `scrubbed` is the fingerprint of the same call with its secrets taken out, where it had any: a
    frozen suite asks with the text as it was written to disk. `sequence` is the place of the call
    in the case's own order; `interactions` are the HTTP exchanges of this call in vcrpy's on-disk
    form (read from the file only on demand, so often empty here).
    """

    fingerprint: str
    stage: str
    parts: Mapping[str, Any]
    answer: Answer
    sequence: int = 0
    interactions: tuple[Mapping[str, Any], ...] = ()
    scrubbed: str | None = None


@dataclass
class Cassette:
    """One cassette file. `complete` says that the case came to its end with these calls alone."""

    path: Path
    complete: bool = False
    entries: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, *, interactions: bool = False) -> Cassette:
        """Read a cassette; a missing file is an empty one.

        Only the metadata is parsed unless `interactions` are wanted. Raises `InputError` where the
        file is no cassette of ours.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls(path)
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error)) from error
        text = text if interactions else head_of(text)
        try:
            return _from_data(path, read(text), text, interactions=interactions)
        except Malformed as error:
            raise _unreadable(path, error.why, error.line, error.key) from error

    def find(self, fingerprint: str) -> Entry | None:
        """The call with this fingerprint, as it was asked or with its secrets taken out.

        None where there is none.
        """
        found = self.entries.get(fingerprint)
        if found is None:
            found = next(
                (entry for entry in self.entries.values() if entry.scrubbed == fingerprint), None
            )
        return found

    def save(self) -> None:
        """Write the file whole and rename it into place; raises `OSError` as it comes."""
        atomic_write(self.path, self.dump())

    def dump(self) -> str:
        """The file's text: deterministic, readable, and loadable by vcrpy."""
        ordered = sorted(self.entries.values(), key=lambda entry: entry.sequence)
        ours = {
            "format": FORMAT,
            "complete": self.complete,
            "calls": [_call_data(entry) for entry in ordered],
        }
        return write({"jrh": ours}, [one for entry in ordered for one in entry.interactions])


def nearest(cassette: Cassette, request: CallRequest) -> Entry | None:
    """The recorded call of the same stage that has the most in common with a request."""
    wanted = request.parts

    def likeness(entry: Entry) -> tuple[int, int]:
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
    entry: Entry, request: CallRequest, *, redact: Callable[[str], str] = str, longest: int = 24
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
            lines += _text_difference(texts, redact(message["content"]))
    if len(lines) > longest:
        lines = [*lines[:longest], f"... {len(lines) - longest} more lines"]
    return "\n".join(lines)


def _text_difference(recorded: Sequence[str], text: str) -> Iterator[str]:
    if not recorded:
        yield "(differs; the recording holds no HTTP request to compare it with)"
        return
    wanted = text.splitlines()
    shared = set(wanted)
    old = max(
        recorded, key=lambda candidate: len(shared & set(candidate.splitlines()))
    ).splitlines()
    for line in unified(old, wanted, context=0):
        if not line.startswith("@@"):
            yield line if len(line) <= 160 else f"{line[:159]}…"  # noqa: PLR2004 - about two terminal lines


def _texts_of(entry: Entry) -> Iterator[str]:
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


def _call_data(entry: Entry) -> dict[str, Any]:
    answer = entry.answer
    return {
        "stage": entry.stage,
        "fingerprint": entry.fingerprint,
        **({"scrubbed_fingerprint": entry.scrubbed} if entry.scrubbed is not None else {}),
        "sequence": entry.sequence,
        "asked": dict(entry.parts),
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "refusal": answer.refusal,
        "usage": {
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
        },
        "cost": answer.cost,
        **({"left_out": sorted(answer.left_out)} if answer.left_out else {}),
        **({"schema_sent": answer.schema_sent} if answer.schema_sent is not None else {}),
        "interactions": len(entry.interactions),
    }


def _from_data(path: Path, data: Any, text: str, *, interactions: bool) -> Cassette:
    complete, calls = check(data, text, interactions=interactions)
    cassette = Cassette(path, complete=complete)
    recorded = list(data.get("interactions") or [])
    for call in calls:
        own, recorded = recorded[: call.interactions], recorded[call.interactions :]
        cassette.entries[call.fingerprint] = Entry(
            fingerprint=call.fingerprint,
            stage=call.stage,
            parts=call.parts(),
            answer=call.answer(),
            sequence=call.sequence,
            interactions=tuple(own),
            scrubbed=call.scrubbed_fingerprint,
        )
    return cassette


def _unreadable(
    path: Path, why: str, line: int | None = None, key: str | None = None
) -> InputError:
    return InputError(
        Problem(
            f"this is not a cassette that can be read: {why}",
            file=str(path),
            line=line,
            key=key,
            hint="Restore the file from version control, or delete it and record the case again.",
        )
    )
