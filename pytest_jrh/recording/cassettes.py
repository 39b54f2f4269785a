"""The file in which a case's calls are kept: a vcrpy cassette whose metadata answers without vcrpy.

The metadata comes first in the file and holds one entry per finished call; the HTTP interactions,
as vcrpy records them, follow. A replay by fingerprint reads this head alone. Files are written
whole, to a temporary file that is then renamed, after every call (rules G3, G5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.files import atomic_write, encoded
from pytest_jrh.llm.calls import Answer
from pytest_jrh.recording.cassette_schema import FORMAT, check
from pytest_jrh.recording.cassette_text import Malformed, decoded, read, write


@dataclass(frozen=True, slots=True)
class RecordedCall:
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
    entries: dict[str, RecordedCall] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, *, interactions: bool = False) -> Cassette:
        """Read a cassette; a missing file is an empty one.

        Only the metadata is parsed unless `interactions` are wanted. Raises `InputError` where the
        file is no cassette of ours.
        """
        try:
            return _from_bytes(path, path.read_bytes(), interactions=interactions)
        except FileNotFoundError:
            return cls(path)
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error)) from error
        except Malformed as error:
            raise _unreadable(path, error.why, error.line, error.key) from error

    def find(self, fingerprint: str) -> RecordedCall | None:
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
        """Write the file whole and rename it into place, once its text is known to read back.

        Raises `OSError` as it comes, and where the text does not: the old file then stays.
        """
        data = encoded(self.dump())
        try:
            saved = _from_bytes(self.path, data, interactions=True)
        except (UnicodeDecodeError, Malformed) as error:
            raise OSError(f"its text cannot be read back ({error})") from error
        if _answers(saved) != _answers(self):
            raise OSError("its text does not read back as it was")
        atomic_write(self.path, data)

    def dump(self) -> str:
        """The file's text: deterministic, readable, and loadable by vcrpy."""
        ordered = sorted(self.entries.values(), key=lambda entry: entry.sequence)
        ours = {
            "format": FORMAT,
            "complete": self.complete,
            "calls": [_call_data(entry) for entry in ordered],
        }
        return write({"jrh": ours}, [one for entry in ordered for one in entry.interactions])


def _call_data(entry: RecordedCall) -> dict[str, Any]:
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


def _answers(cassette: Cassette) -> dict[str, tuple[str, list[object]]]:
    """What was paid for: of every call its answer, and the bodies of its HTTP exchanges."""
    return {
        fingerprint: (
            entry.answer.text,
            [one["response"]["body"]["string"] for one in entry.interactions],
        )
        for fingerprint, entry in cassette.entries.items()
    }


def _from_bytes(path: Path, content: bytes, *, interactions: bool) -> Cassette:
    text = decoded(content, whole=interactions)
    data: Any = read(text)
    complete, calls = check(data, text, interactions=interactions)
    cassette = Cassette(path, complete=complete)
    recorded = list(data.get("interactions") or [])
    for call in calls:
        own, recorded = recorded[: call.interactions], recorded[call.interactions :]
        cassette.entries[call.fingerprint] = RecordedCall(
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
