"""A made case as one JSON record, and back: RAND's keys with ours beside them (rule H1).

What a line of `agent_perturbations.jsonl` must be: the one schema that every reader of made
cases checks it by.

Unknown keys are let through: the file has RAND's keys, and a sample's metadata is the user's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pytest_jrh.cases.ids import generation_id, perturbed_idx
from pytest_jrh.cases.tests import KINDS, BaseTest
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.files import encoded
from pytest_jrh.core.model import (
    AgentRun,
    Case,
    CaseSpec,
    Edit,
    Label,
    LabelledBy,
    Objective,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Rubric,
    ScoreLevel,
    Skip,
    Verification,
)
from pytest_jrh.core.redact import covers
from pytest_jrh.core.text import shortened
from pytest_jrh.core.transcript import ROLES, is_role, json_in_one_line, message_mistake

if TYPE_CHECKING:
    from pytest_jrh.core.redact import Redactor


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


_SHORT = 16
_ATOMS = frozenset({str, int, bool, type(None)})


def to_record(case: Case, review: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Describe a case as JSON values, the same for the same case in every session.

    RAND's keys are those of its `agent_perturbations.jsonl`. Ours: `case_id` (without the judge),
    `suite`, `test`, `expected`, `verified`, `human_reviewed`, `case_digest`, `format`, `notes`,
    `cluster` where the run has one, and what `from_record` needs to build the same case again.
    `failure_confirmed` is null where no PASS or FAIL was asked for. `label` holds the votes of a
    label of people or of a program (rule N1), `review` what a person decided about the case
    (`action` and `note`), and `rejected` why the verifier rejected it: they are in the record only
    where there is one.
    """
    run, outcome = case.run, case.outcome
    generated = _generated_metadata(case)
    record: dict[str, Any] = {
        "run_id": run.run_id,
        "epoch": run.epoch,
        "input": run.input,
        "target": run.target,
        "metadata": {**run.metadata, **generated},
        "gold_messages": run.messages,
        "perturbed_messages": outcome.messages,
        "target_rubric": _rubric(case.rubric),
        "perturbation": _perturbation(outcome, run),
        "case_id": generation_id(case.spec),
        "suite": case.spec.suite,
        "test": case.spec.test,
        "target_score": case.spec.target_score,
        "expected": case.expected,
        "verified": case.verified,
        "human_reviewed": review is not None,
        "mode": case.mode,
        "objective": case.objective,
        "score_levels": [_level(level) for level in case.levels],
        "sample_id": run.sample_id,
        "case_digest": case_digest(case),
        "format": FORMAT,
        "notes": run.notes,
    }
    if case.spec.cluster is not None:
        record["cluster"] = case.spec.cluster
    if case.label is not None:
        record["label"] = _label(case.label)
    if outcome.no_case is not None:
        record["rejected"] = str(outcome.no_case)
    if review is not None:
        record["review"] = review
    shadowed = {key: value for key, value in run.metadata.items() if key in generated}
    if shadowed:
        record["shadowed_metadata"] = shadowed
    plain: dict[str, Any] = json_value(record)
    return plain


def stored_record(
    case: Case, review: Mapping[str, str] | None, redactor: Redactor
) -> dict[str, Any]:
    """The record of a case as it is stored: without secrets, and where there were any, with its
    digest as stored.

    Baselines and decisions know the case by its digest as it was made.
    """
    record = to_record(case, review)
    clean: dict[str, Any] = redactor.value(record)
    if clean == record:
        return record
    # Once secrets are removed from its ids, a record can lose its case, which readers report.
    with contextlib.suppress(InputError):
        clean["stored_digest"] = case_digest(_case(checked(clean), None, None))
    return clean


def from_record(
    record: Mapping[str, Any],
    *,
    judge: str | None = None,
    rubric: Rubric | None = None,
    file: str | None = None,
    line: int | None = None,
) -> Case:
    """Build the case of a record, so that a judge is asked exactly what it was asked before.

    `judge` goes into the spec; `rubric`, where it is the same criterion, says where it stands in
    its file. Where the record is not as it was written, the case is `altered`, and its label
    unverified. `file` and `line` place the record in errors. Raises `InputError` for a record that
    is not one of ours, or of another format.
    """
    return _case(checked(record, file=file, line=line), judge, rubric)


def reworded(case: Case, rubric: Rubric) -> Case | None:
    """The case under a rubric whose text has changed since it was made; None where its scores have.

    The label stays: it stands for the text that the case was made for.
    """
    scores = [[level.score for level in one.score_levels] for one in (case.rubric, rubric)]
    if case.rubric.id != rubric.id or scores[0] != scores[1]:
        return None
    levels = rubric.score_levels if case.levels else ()
    return replace(case, rubric=rubric, levels=levels, digests=None, reworded=True)


def case_digest(case: Case) -> str:
    """SHA-256 over what makes the case this case: rubric, scale, judged transcript, expected answer
    (rule J2).
    """
    digest = _sha256({**_content(case), "expected": case.expected})
    return case.digests[1] if case.digests is not None and case.digests[0] == digest else digest


def content_digest(case: Case) -> str:
    """The first 16 hex digits of a SHA-256 over what a label is about: rubric, scale, messages."""
    return _sha256(_content(case))[:_SHORT]


def _content(case: Case) -> dict[str, Any]:
    return {
        "rubric": case.rubric.id,
        "instructions": case.rubric.instructions,
        "levels": [_level(level) for level in case.levels],
        "transcript": case.messages,
        # A case in our own layout is the same as before there were others.
        **({"style": case.style} if case.style else {}),
    }


def _sha256(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(encoded(canonical_json(parts))).hexdigest()


def canonical_json(value: Any) -> str:
    """One line of JSON without spaces, with sorted keys: equal values give equal text."""
    return _one_line(json_value(value), sort_keys=True)


def record_line(record: Mapping[str, Any]) -> bytes:
    """Give the record, in JSON's own types as `stored_record` gives it, as one line of a JSONL
    file, newline included.

    Keys stay in order: a judge sees a tool call's arguments as the agent wrote them, frozen or not.
    """
    return encoded(_one_line(record, sort_keys=False)) + b"\n"


def _one_line(plain: Any, *, sort_keys: bool) -> str:
    text = json.dumps(
        plain, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return json_in_one_line(text)


def json_value(value: Any) -> Any:
    """Give the value in JSON's own types.

    A number that JSON has no word for becomes null, foreign objects text.
    """
    # Whole transcripts go through here several times, so types are compared where that says it:
    # faster than by ABC.
    if type(value) in _ATOMS:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [item if type(item) in _ATOMS else json_value(item) for item in value]
    if type(value) is dict or isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(key): item
            if type(item) in _ATOMS
            else json_value(item)
            for key, item in value.items()
        }
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else str(value)


def _generated_metadata(case: Case) -> dict[str, Any]:
    made = {
        "run_id": case.run.run_id,
        "target_rubric_id": case.rubric.id,
        "perturbed_idx": perturbed_idx(case.spec),
        "no_edits_required": not case.outcome.edits,
    }
    if case.mode == "binary":
        return {**made, "agent_mode": _agent_mode(case)}
    labels = {level.score: level.label for level in case.levels}
    return {
        **made,
        "target_score": case.expected,
        "score_descriptor": labels.get(case.expected, ""),
    }


def _agent_mode(case: Case) -> str:
    kind = KINDS[case.spec.test]
    if kind.natural:
        return kind.label
    return "positive" if case.objective == "pass" else "perturbation"


def _label(label: Label) -> dict[str, Any]:
    return {"votes": list(label.votes), "by": label.by, "split": label.split}


def _rubric(rubric: Rubric) -> dict[str, Any]:
    described: dict[str, Any] = {"id": rubric.id, "instructions": rubric.instructions}
    if rubric.score_levels:
        described["score_levels"] = [_level(level) for level in rubric.score_levels]
    return described


def _level(level: ScoreLevel) -> dict[str, Any]:
    return {"score": level.score, "label": level.label}


def _perturbation(outcome: PerturbationOutcome, run: AgentRun) -> dict[str, Any]:
    verification = outcome.verification
    said = (
        None
        if verification is None or verification.score is not None
        else verification.verdict == "FAIL"
    )
    return {
        "failure_confirmed": said,
        "failure_rationale": None if verification is None else verification.rationale,
        "final_summary": outcome.final_summary,
        "plan": None if outcome.plan is None else _plan(outcome.plan, run),
        "steps": [_edit(edit) for edit in outcome.edits],
        "confirmed": outcome.confirmed,
        "verification": None
        if verification is None
        else {
            "verdict": verification.verdict,
            "rationale": verification.rationale,
            "score": verification.score,
        },
    }


def _plan(plan: Plan, run: AgentRun) -> dict[str, Any]:
    steps = [
        {
            "message_index": step.message_index,
            "message_id": _message_id(run, step.message_index),
            "goal": step.goal,
            "rationale": step.rationale,
        }
        for step in plan.steps
    ]
    return {"thesis": plan.thesis, "steps": steps}


def _message_id(run: AgentRun, index: int) -> Any:
    return run.messages[index].get("id") if 0 <= index < len(run.messages) else None


def _edit(edit: Edit) -> dict[str, Any]:
    return {name: getattr(edit, name) for name in Edit.__dataclass_fields__}


def _case(stored: StoredRecord, judge: str | None, known: Rubric | None) -> Case:
    target = stored.target_rubric
    rubric = Rubric(target.id, target.instructions, _levels(target.score_levels))
    if known is not None:
        if replace(known, file="", line=1) == rubric:
            rubric = known
        elif known.score_levels == rubric.score_levels and covers(
            rubric.instructions, known.instructions
        ):
            # Stored without a secret that the rubric's file holds; the judge was, and is, recorded
            # without it too.
            rubric = replace(rubric, file=known.file, line=known.line)
    case = Case(
        spec=stored.spec(judge),
        rubric=rubric,
        run=AgentRun(
            stored.run_id,
            stored.epoch,
            tuple(stored.gold_messages),
            stored.input,
            stored.target,
            sample_id=stored.sample_id,
            notes=tuple(stored.notes),
        ),
        outcome=replace(
            _outcome(stored.perturbation, stored.perturbed_messages),
            # The verifier rejects by not confirming the label, and for nothing else.
            no_case=None if stored.rejected is None else Skip("not_confirmed", stored.rejected),
        ),
        expected=stored.expected,
        verified=stored.verified,
        mode=stored.mode,
        objective=stored.objective,
        levels=_levels(stored.score_levels),
        label=None if stored.label is None else stored.label.label(),
        digests=(stored.stored_digest, stored.case_digest) if stored.stored_digest else None,
    )
    generated = _generated_metadata(case)
    own = {
        key: value for key, value in stored.metadata.items() if key not in generated
    } | stored.shadowed_metadata
    case = replace(case, run=replace(case.run, metadata=own))
    return replace(case, altered=True, verified=False) if _is_altered(case, stored) else case


def _is_altered(case: Case, stored: StoredRecord) -> bool:
    """Whether transcript, rubric or label of a record are others than when it was written."""
    other_label = (
        case.label is not None and case.label.value != case.expected and not stored.human_reviewed
    )
    return other_label or case_digest(case) != stored.case_digest


def _outcome(stored: StoredPerturbation, messages: list[dict[str, Any]]) -> PerturbationOutcome:
    plan, said = stored.plan, stored.verification
    return PerturbationOutcome(
        messages=tuple(messages),
        plan=None
        if plan is None
        else Plan(
            plan.thesis,
            tuple(PlanStep(step.message_index, step.goal, step.rationale) for step in plan.steps),
        ),
        edits=tuple(Edit(**edit.model_dump()) for edit in stored.steps),
        verification=None
        if said is None
        else Verification(said.verdict, said.rationale, said.score),
        confirmed=stored.confirmed,
        final_summary=stored.final_summary,
    )


def _levels(levels: list[StoredLevel]) -> tuple[ScoreLevel, ...]:
    return tuple(ScoreLevel(level.score, level.label) for level in levels)
