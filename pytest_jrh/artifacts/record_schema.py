"""What a line of `agent_perturbations.jsonl` must be: the one schema that every reader of made
cases checks it by.

Unknown keys are let through: the file has RAND's keys, and a sample's metadata is the user's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.kinds import BaseTest
from pytest_jrh.models import CaseSpec, Label, LabelledBy, Objective
from pytest_jrh.suite.ids import generation_id
from pytest_jrh.text import shortened
from pytest_jrh.transcript import ROLES, is_role, message_mistake

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
_LONGEST_VALUE = 100


def checked(
    record: Mapping[str, Any], *, file: str | None = None, line: int | None = None
) -> StoredRecord:
    """Check a record.

    Raises `InputError`, placed at `file` and `line`, with each value that cannot be used.
    """
    if record.get("format") != FORMAT or isinstance(record["format"], bool):
        what = (
            f"format {record['format']!r}"
            if "format" in record
            else "no `format`, so pytest-jrh did not write it"
        )
        raise InputError(
            Problem(f"this record has {shortened(what, 100)}; must be {FORMAT}", file, line)
        )
    try:
        return StoredRecord.model_validate(record)
    except ValidationError as error:
        raise InputError(
            [_problem(entry, file, line) for entry in error.errors(include_url=False)]
        ) from None


def is_foreign(record: Mapping[str, Any]) -> bool:
    """Whether another program wrote the record, such as RAND's harness: it lacks the keys that ours
    begin by.
    """
    return "format" not in record and "case_id" not in record


def _usable(messages: list[Any]) -> list[dict[str, Any]]:
    for index, message in enumerate(messages):
        # Accepts nearly all valid messages, in a tenth of the time.
        if (
            type(message) is dict
            and type(message.get("content")) is str
            and "tool_calls" not in message
        ):
            mistake = None if message.get("role") in ROLES else _mistake(message)
        elif isinstance(message, dict):
            mistake = _mistake(message)
        else:
            raise PydanticCustomError(
                "message", "must be an object, got {value}", {"at": index, "value": _shown(message)}
            )
        if mistake is not None:
            raise PydanticCustomError("message", "has {mistake}", {"at": index, "mistake": mistake})
    return messages


def _mistake(message: dict[str, Any]) -> str | None:
    # A conversation may have had roles of its own.
    role = message.get("role")
    return message_mistake(message, [role] if isinstance(role, str) and is_role(role) else ROLES)


class _RecordPart(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


_Messages = Annotated[list[Any], AfterValidator(_usable)]


class StoredLevel(_RecordPart):
    """One level of a scale."""

    score: int
    label: str


class _TargetRubric(_RecordPart):
    id: str
    instructions: str
    score_levels: list[StoredLevel] = []


class _PlanStep(_RecordPart):
    message_index: int
    goal: str
    rationale: str


class _Plan(_RecordPart):
    thesis: str
    steps: list[_PlanStep]


class _Edit(_RecordPart):
    message_index: int
    message_id: str
    round_index: int
    original_content: str
    edited_content: str
    selector_reason: str
    editor_reason: str
    editor_raw_response: str
    summary_snapshot: str
    dropped_reasoning: int


class _Verification(_RecordPart):
    verdict: Literal["PASS", "FAIL"]
    rationale: str
    score: int | None


class StoredPerturbation(_RecordPart):
    """How the case was made."""

    failure_confirmed: bool | None
    failure_rationale: str | None
    final_summary: str | None
    plan: _Plan | None
    steps: list[_Edit]
    confirmed: bool
    verification: _Verification | None


class _Review(_RecordPart):
    action: str


class StoredLabel(_RecordPart):
    """The label of a natural run: one vote for each annotator."""

    votes: Annotated[list[int], Field(min_length=1)]
    by: LabelledBy
    split: str = ""

    def label(self) -> Label:
        """The label that the votes give."""
        return Label.of(tuple(self.votes), self.by, self.split)


class StoredRecord(_RecordPart):
    """A record that can be used: every reader finds what it needs, and the record agrees with its
    own id.
    """

    case_id: str
    run_id: str
    epoch: Annotated[int, Field(ge=0)]
    input: str
    target: str
    metadata: dict[str, Any]
    gold_messages: _Messages
    perturbed_messages: _Messages
    target_rubric: _TargetRubric
    perturbation: StoredPerturbation
    suite: str
    test: BaseTest
    target_score: int | None
    expected: int
    verified: bool
    mode: Literal["binary", "ordinal"]
    objective: Objective
    score_levels: list[StoredLevel]
    case_digest: str
    sample_id: int | str
    notes: list[str]
    human_reviewed: bool = False
    review: _Review | None = None
    shadowed_metadata: dict[str, Any] = {}
    stored_digest: str = ""
    cluster: str | None = None
    label: StoredLabel | None = None
    rejected: str | None = None

    def spec(self, judge: str | None = None) -> CaseSpec:
        """The spec that the case was made for."""
        return CaseSpec(
            self.suite,
            self.test,
            self.target_rubric.id,
            self.run_id,
            self.epoch,
            self.target_score,
            judge,
            cluster=self.cluster,
        )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> StoredRecord:
        for mistake in (
            _row_mistake(self),
            _scale_mistake(self),
            _id_mistake(self),
            _rejected_mistake(self),
        ):
            if mistake is not None:
                raise PydanticCustomError("record", "{mistake}", {"mistake": mistake})
        return self


def _row_mistake(record: StoredRecord) -> str | None:
    row = record.metadata.get("perturbed_idx")
    return (
        None
        if isinstance(row, str)
        else f"metadata.perturbed_idx must be a string, got {_shown(row)}"
    )


def _scale_mistake(record: StoredRecord) -> str | None:
    if record.mode == "binary":
        if record.target_score is not None:
            return f"target_score must be null in a binary case, got {record.target_score}"
        scores = [0, 1]
    else:
        scores = [level.score for level in record.score_levels]
        if record.target_score not in scores:
            return (
                f"target_score must be one of score_levels ({_listed(scores)}), got "
                f"{_shown(record.target_score)}"
            )
    if record.expected not in scores:
        return f"expected must be one of {_listed(scores)}, got {record.expected}"
    return None


def _id_mistake(record: StoredRecord) -> str | None:
    own = generation_id(record.spec())
    if record.case_id == own:
        return None
    return (
        f"case_id is {_shown(record.case_id)}, but suite, test, rubric, run_id, epoch and "
        f"target_score are those of {_shown(own)}"
    )


def _rejected_mistake(record: StoredRecord) -> str | None:
    """A case is rejected by a verifier that looked at it, and cannot count as confirmed."""
    how = record.perturbation
    if record.rejected is None or (how.verification and not (how.confirmed or record.verified)):
        return None
    return (
        "rejected must come with a perturbation.verification, and with confirmed and verified false"
    )


def _listed(scores: list[int]) -> str:
    return ", ".join(map(str, sorted(scores)[:20])) or "none"


def _shown(value: object) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str), _LONGEST_VALUE)


def _problem(entry: Any, file: str | None, line: int | None) -> Problem:
    key = ".".join(str(part) for part in entry["loc"])
    match entry["type"]:
        case "missing":
            return Problem("missing from this record", file, line, key)
        case "record":
            return Problem(entry["msg"], file, line)
        case "message":
            return Problem(entry["msg"], file, line, f"{key}.{entry['ctx']['at']}")
        case _:
            message = f"{entry['msg'][:1].lower()}{entry['msg'][1:]}, got {_shown(entry['input'])}"
            return Problem(message, file, line, key)
