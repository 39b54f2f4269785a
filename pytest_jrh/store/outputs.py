"""The files that a suite leaves, written one by one: what cannot be written does not stop the
others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.files import atomic_write
from pytest_jrh.store.records import json_value
from pytest_jrh.store.spools import RecordIndex

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.errors import InputError
    from pytest_jrh.core.redact import Redactor


class Outputs:
    """What a suite leaves: `paths` are the files that are there now, `problems` sentences about
    those that are not.

    `failed` says that something is missing on the disk that should be there. `records` says where
    the cases of this session lie, rejected ones too; without a JSONL that is in the spools.
    `record_files` has all records of each file that was written, those of other suites too.
    """

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.paths: list[Path] = []
        self.problems: list[str] = []
        self.failed = False
        self.records = RecordIndex()
        self.record_files: dict[Path, RecordIndex] = {}

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

    def write_json(self, path: Path, value: Any, *, sort: bool = False) -> None:
        """Write a value as JSON, without secrets."""
        clean = self.redactor.value(json_value(value))
        text = json.dumps(clean, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=sort)
        self.write(path, text + "\n")


def cause(error: OSError | InputError) -> str:
    """Say why a file could not be read or written, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def decisions_path(output_dir: Path) -> Path:
    """Where the decisions about the cases of a test's folder are kept."""
    return output_dir / "review" / "decisions.jsonl"


def has_decisions(suite: Suite) -> bool:
    """Whether anybody has ever decided about cases of this suite's folders."""
    return any(decisions_path(test.output_dir).exists() for test in suite.tests)
