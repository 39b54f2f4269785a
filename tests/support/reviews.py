"""Decisions about the made cases of a suite on disk, written as the page would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_jrh.core.cases import Case
from pytest_jrh.core.files import append_line
from pytest_jrh.core.ids import CASES_FILE
from pytest_jrh.people import Action, Decision, TurnEdit, decisions_path, with_edits
from pytest_jrh.people.board import ReviewBoard, ReviewDesk
from pytest_jrh.store.records import case_digest, record_line
from tests.support.made_cases import case_from


def records(output_dir: Path) -> dict[str, dict[str, Any]]:
    """The records of a test's folder, by run."""
    lines = (output_dir / CASES_FILE).read_text("utf-8").splitlines()
    return {record["run_id"]: record for record in map(json.loads, lines)}


def decide(
    output_dir: Path,
    run: str,
    action: Action,
    *,
    turns: Mapping[int, str] | None = None,
    digest: str | None = None,
    **more: Any,
) -> None:
    """Decide about the case of a run, or with `digest` about another version of it; `more` are
    further fields of the decision."""
    record = records(output_dir)[run]
    edits = (turns or {}).items()
    decision = Decision(
        case_id=record["case_id"],
        case_digest=digest or record["case_digest"],
        action=action,
        turns=tuple(TurnEdit(message_index=index, content=text) for index, text in edits),
        **more,
    )
    if decision.has_edits:
        edited = with_edits(case_from(record_line(record)), decision)
        decision = decision.model_copy(update={"edited_digests": (case_digest(edited),)})
    line = decision.model_dump_json(exclude_defaults=True)
    append_line(decisions_path(output_dir), line.encode())


def as_reviewed(board: ReviewBoard, case: Case) -> Case:
    """A case as it goes to the judge; raises `NoVerdictCase` where it was rejected."""
    return ReviewDesk(board, board, frozenset({case.spec.suite}), frozenset()).as_decided(case)
