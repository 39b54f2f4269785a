"""The files that a suite leaves, written one by one: what cannot be written does not stop the
others; and the debug bundle of a case, with its plan, its edits and its transcripts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.files import atomic_write, inside
from pytest_jrh.core.ids import STATE_FOLDER, artifact_stem
from pytest_jrh.core.text import visible
from pytest_jrh.core.transcript import render_transcript
from pytest_jrh.store.records import json_value, to_record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.errors import InputError
    from pytest_jrh.core.model import Case, CaseSpec, Message
    from pytest_jrh.core.redact import Redactor


# RAND's keys, and ours beside them.
_AUDITED = ("run_id", "epoch", "case_id", "expected", "verified", "target_rubric")
_AUDITED_OF_EDITS = ("failure_confirmed", "failure_rationale", "final_summary", "plan")


class Outputs:
    """`paths` are the files that are there now, `problems` sentences about those that are not.

    `failed` says that something is missing on the disk that should be there.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.paths: list[Path] = []
        self.problems: list[str] = []
        self.failed = False

    def problem(self, sentence: str) -> None:
        """Report what is missing on the disk."""
        self.failed = True
        self.problems.append(self.redactor.text(sentence))

    def write(self, path: Path, text: bytes | str) -> None:
        """Write a file."""
        try:
            atomic_write(path, text)
        except OSError as error:
            self.problem(f"{path} was not written: {cause(error)}.")
        else:
            self.paths.append(path)

    def write_state(self, results_dir: Path, name: str, text: str) -> None:
        """Write a file for later sessions."""
        self.write(results_dir / STATE_FOLDER / name, text)

    def write_json(self, path: Path, value: Any, *, sort: bool = False) -> None:
        """Write a value as JSON, without secrets."""
        clean = self.redactor.value(json_value(value))
        text = json.dumps(clean, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=sort)
        self.write(path, text + "\n")


def cause(error: OSError | InputError) -> str:
    """Say why a file could not be read or written, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


@dataclass(frozen=True, slots=True)
class DebugPaths:
    """Where the bundle of a case is, or will be once it is written."""

    audit: Path
    original: Path
    perturbed: Path

    def of(self, case: Case) -> tuple[Path, ...]:
        """Those that are of this case: all three of one with edits."""
        if not case.outcome.edits:
            return (self.original,)
        return self.audit, self.original, self.perturbed


def debug_paths(output_dir: Path, spec: CaseSpec) -> DebugPaths:
    """Name the files of a case's bundle in a test's `output.dir`."""
    stem, folder = artifact_stem(spec), output_dir / "debug"
    return DebugPaths(
        inside(folder, f"{stem}_edits_audit.json"),
        inside(folder / "transcripts", f"{stem}_original.txt"),
        inside(folder / "transcripts", f"{stem}_perturbed.txt"),
    )


def write_debug(case: Case, paths: DebugPaths) -> tuple[Path, ...]:
    """Write the bundle of a case that has edits; of one without edits only its transcript.

    Transcripts are written for reading: reasoning shown, control characters as escapes.
    """
    _write_transcript(paths.original, case.run.messages)
    if case.outcome.edits:
        _write_transcript(paths.perturbed, case.messages)
        _write_audit(case, paths.audit)
    return paths.of(case)


def _write_transcript(path: Path, messages: Sequence[Message]) -> None:
    atomic_write(path, visible(render_transcript(messages, show_reasoning=True)) + "\n")


def _write_audit(case: Case, path: Path) -> None:
    record = to_record(case)
    perturbation = record["perturbation"]
    audit = {name: record[name] for name in _AUDITED}
    audit |= {name: perturbation[name] for name in _AUDITED_OF_EDITS}
    audit["edits"] = perturbation["steps"]
    atomic_write(path, json.dumps(audit, indent=2, ensure_ascii=False) + "\n")


def decisions_path(output_dir: Path) -> Path:
    """Where the decisions about the cases of a test's folder are kept."""
    return output_dir / "review" / "decisions.jsonl"


def has_decisions(suite: Suite) -> bool:
    """Whether anybody has ever decided about cases of this suite's folders."""
    return any(decisions_path(test.output_dir).exists() for test in suite.tests)
