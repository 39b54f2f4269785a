"""A made case as one JSON record, a line of `agent_perturbations.jsonl`, and back: RAND's keys with
ours beside them.

Unknown keys are let through: the file has RAND's keys, and a sample's metadata is the user's.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

import pytest_jrh.config.rand  # noqa: F401 - makes names of tests known
from pytest_jrh.cases.tests import BASES, KINDS, OTHER_NAMES, POSITIVES
from pytest_jrh.core import Fields, Json
from pytest_jrh.core.cases import (
    AgentRun,
    Case,
    CaseSpec,
    Edit,
    Label,
    PerturbationOutcome,
    Plan,
    PlanStep,
    Review,
    Rubric,
    Skip,
    Transcript,
    Verification,
)
from pytest_jrh.core.documents import misfit
from pytest_jrh.core.files import LinePlace, encoded
from pytest_jrh.core.ids import generation_id, perturbed_idx
from pytest_jrh.core.redact import Redactor, covers
from pytest_jrh.core.scales import Mode, Objective, Said, Scale, ScoreLevel, coded, paired, scale_of
from pytest_jrh.core.transcript import ROLES, is_role, json_in_one_line, message_mistake, structured

FORMAT = 1
_REPAIR = "If the file is in git, restore it. If it is in outputs/, delete it and run again."
BY_HAND = "edited in review"
"""The reason of an edit that a person made."""


def read_record(line: bytes, place: LinePlace) -> Record:
    """The record of a line.

    Raises `InputError` with the first value that cannot be used.
    """
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        raise misfit(
            error, "this line is not a made case", place.path, place.number, _REPAIR
        ) from None


def is_rands(line: bytes) -> bool:
    """Whether RAND's harness wrote a line, which lacks the keys that ours begin by."""
    values = structured(line.decode("utf-8", "replace"))
    return isinstance(values, dict) and "format" not in values and "case_id" not in values


def _usable(messages: Transcript) -> Transcript:
    for index, message in enumerate(messages):
        # A conversation may have had roles of its own.
        role = message.get("role")
        roles = [role] if isinstance(role, str) and is_role(role) else ROLES
        if mistake := message_mistake(message, roles):
            raise ValueError(f"message [{index}] has {mistake}")
    return messages


class _RecordPart(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


_Messages = Annotated[tuple[Json, ...], AfterValidator(_usable)]


class _Perturbation(_RecordPart):
    """How the case was made, as far as it is read: a `PerturbationOutcome` under RAND's keys."""

    final_summary: str | None
    plan: Plan | None
    steps: tuple[Edit, ...]
    confirmed: bool
    verification: Verification | None


class Record(_RecordPart):
    """A record that can be used: every reader finds what it needs."""

    format: Literal[1]
    case_id: str
    run_id: str
    epoch: Annotated[int, Field(ge=0)]
    input: str
    target: str
    metadata: Json
    gold_messages: _Messages
    perturbed_messages: _Messages
    target_rubric: Rubric
    perturbation: _Perturbation
    suite: str
    test: Literal[(*BASES, *OTHER_NAMES)]  # type: ignore[valid-type]
    target_score: Said | None
    expected: Said
    verified: bool
    mode: Mode
    objective: Objective
    score_levels: tuple[ScoreLevel, ...]
    case_digest: str
    sample_id: int | str
    notes: tuple[str, ...]
    review: Review | None = None
    shadowed_metadata: Json = {}
    stored_digest: str = ""
    cluster: str | None = None
    label: Label | None = None
    rejected: str | None = None
    orders: int = 0

    @property
    def spec(self) -> CaseSpec:
        """The spec that the case was made for, under no judge."""
        return CaseSpec(
            self.suite,
            self.test,
            self.target_rubric.id,
            self.run_id,
            self.epoch,
            self.target_score,
            cluster=self.cluster,
        )

    def case(self) -> Case:
        """The case as the record has it, whether or not anybody has changed it since."""
        perturbation, rubric = self.perturbation, self.target_rubric
        scale = scale_of(self.score_levels, mode=self.mode)
        if self.orders:
            scale = paired(self.orders)
        no_case, verification = None, perturbation.verification
        if self.rejected is not None:
            # What the verifier said tells why it rejected the case.
            contradicts = verification is not None and verification.contradiction
            no_case = Skip("contradiction" if contradicts else "not_confirmed", self.rejected)
        case = Case(
            spec=self.spec,
            rubric=replace(rubric, answers=rubric.offering(scale)),
            run=AgentRun(
                self.run_id,
                self.epoch,
                self.gold_messages,
                self.input,
                self.target,
                sample_id=self.sample_id,
                notes=self.notes,
            ),
            outcome=PerturbationOutcome(
                self.perturbed_messages,
                perturbation.plan,
                perturbation.steps,
                verification,
                perturbation.confirmed,
                perturbation.final_summary,
                no_case=no_case,
            ),
            expected=coded(self.expected),
            verified=self.verified,
            objective=self.objective,
            label=self.label,
            digests=(self.stored_digest, self.case_digest) if self.stored_digest else None,
            review=self.review,
        )
        generated = _generated_metadata(case)
        metadata = {key: value for key, value in self.metadata.items() if key not in generated}
        return replace(case, run=replace(case.run, metadata=metadata | self.shadowed_metadata))


_SHORT = 16


def to_record(case: Case) -> Json:
    """Describe a case as JSON values, the same for the same case in every session.

    RAND's keys are those of its `agent_perturbations.jsonl`. Ours: `case_id` (without the judge),
    `suite`, `test`, `expected`, `verified`, `human_reviewed`, `case_digest`, `format`, `notes`,
    `cluster` where the run has one, and what `read_case` needs to build the same case again.
    `failure_confirmed` is null where no PASS or FAIL was asked for. `label`, `review` and
    `rejected` are in the record only where the case has them.
    """
    run, outcome, scale = case.run, case.outcome, case.scale
    generated = _generated_metadata(case)
    record: Json = {
        "run_id": run.run_id,
        "epoch": run.epoch,
        "input": run.input,
        "target": run.target,
        "metadata": {**run.metadata, **generated},
        "gold_messages": run.messages,
        "perturbed_messages": outcome.messages,
        "target_rubric": _rubric(case.rubric),
        "perturbation": _perturbation(case),
        "case_id": generation_id(case.spec),
        "suite": case.spec.suite,
        "test": case.spec.test,
        "target_score": case.spec.target_score,
        "expected": case.expected,
        "verified": case.verified,
        "human_reviewed": case.review is not None,
        "mode": scale.name,
        "objective": case.objective,
        # Classes stand in the rubric, and the answers of a pair are the same under all.
        "score_levels": () if scale.name == "classes" else scale.levels,
        "sample_id": run.sample_id,
        "case_digest": case_digest(case),
        "format": FORMAT,
        "notes": run.notes,
    }
    shadowed = {key: value for key, value in run.metadata.items() if key in generated}
    optional = {
        "cluster": case.spec.cluster,
        "label": case.label,
        "rejected": None if outcome.no_case is None else str(outcome.no_case),
        "review": case.review,
        "shadowed_metadata": shadowed or None,
        "orders": scale.orders or None,
    }
    record |= {key: value for key, value in optional.items() if value is not None}
    plain: Json = json_value(record)
    return in_words(plain, scale) if scale.line else plain


def in_words(value: Any, scale: Scale) -> Any:
    """JSON values with the words of answers in place of their codes."""
    if isinstance(value, dict):
        return {key: in_words(inner, scale) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_words(inner, scale) for inner in value]
    return scale.said(value) if type(value) is int else value


def stored_line(case: Case, redactor: Redactor) -> bytes:
    """The record of a case as it is stored: without secrets, and where there were any, with its
    digest as stored.

    Baselines and decisions know the case by its digest as it was made.
    """
    record = to_record(case)
    clean: Json = redactor.value(record)
    if clean != record:
        clean["stored_digest"] = case_digest(Record.model_validate_json(record_line(clean)).case())
    return record_line(clean)


def read_case(line: bytes, place: LinePlace) -> Case:
    """Build the case of a record's line, so that a judge is asked exactly what it was asked before.

    Where the record is not as it was written, the case is `altered`, and its label unverified.
    Raises `InputError` as `read_record` does.
    """
    record = read_record(line, place)
    case = record.case()
    if case_digest(case) != record.case_digest:
        return replace(case, altered=True, verified=False)
    return case


def under(case: Case, rubric: Rubric, judge: str | None = None) -> Case:
    """The case for a judge, and under a suite's rubric where that is the same criterion: errors
    then say where it stands in its file.
    """
    case = replace(case, spec=replace(case.spec, judge=judge))
    # They may be stored without a secret that the rubric's file holds; the judge was, and is,
    # recorded without it too.
    known = replace(rubric, instructions=case.rubric.instructions)
    is_same = replace(known, file="", line=1) == case.rubric
    if not is_same or not covers(known.instructions, rubric.instructions):
        return case
    return replace(case, rubric=known)


def reworded(case: Case, rubric: Rubric) -> Case | None:
    """The case under a rubric whose text has changed since it was made; None where its scores have.

    The label stays: it stands for the text that the case was made for.
    """
    if case.rubric.id != rubric.id or {*case.scale.answers} != {*rubric.scale.answers}:
        return None
    return replace(case, rubric=rubric, digests=None, reworded=True)


def case_digest(case: Case) -> str:
    """SHA-256 over what a case is made of: rubric, scale, judged transcript, expected answer."""
    digest = _sha256({**_content(case), "expected": case.expected})
    return case.digests[1] if case.digests is not None and case.digests[0] == digest else digest


def content_digest(case: Case) -> str:
    """The first 16 hex digits of a SHA-256 over what a label is about: rubric, scale, messages."""
    return _sha256(_content(case))[:_SHORT]


def _content(case: Case) -> Json:
    rubric, scale = case.rubric, case.scale
    content: Json = {
        "rubric": rubric.id,
        "instructions": rubric.instructions,
        "levels": scale.levels,
        "transcript": case.messages,
    }
    if scale.not_applicable:
        content["not_applicable"] = scale.not_applicable
    return content


def _sha256(parts: Fields) -> str:
    """Of one line of JSON with sorted keys: equal values give equal digests."""
    return hashlib.sha256(encoded(_one_line(json_value(parts), _SORTED))).hexdigest()


def record_line(record: Fields) -> bytes:
    """Give the record, in JSON's own types, as one line of a JSONL file, without its end.

    Keys stay in order: a judge sees a tool call's arguments as the agent wrote them, frozen or not.
    """
    return encoded(_one_line(record, _IN_ORDER))


# `json.dumps` would build one for each line.
_ENCODER = partial(json.JSONEncoder, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SORTED, _IN_ORDER = _ENCODER(sort_keys=True), _ENCODER()


def _one_line(plain: Any, encoder: json.JSONEncoder) -> str:
    return json_in_one_line(encoder.encode(plain))


def json_value(value: Any) -> Any:
    """Give the value in JSON's own types.

    A number that JSON has no word for becomes null, foreign objects text.
    """
    return to_jsonable_python(value, inf_nan_mode="null", bytes_mode="base64", fallback=str)


def _generated_metadata(case: Case) -> Json:
    metadata = {
        "run_id": case.run.run_id,
        "target_rubric_id": case.rubric.id,
        "perturbed_idx": perturbed_idx(case.spec),
        "no_edits_required": not case.outcome.edits,
    }
    kind = KINDS[case.spec.test]
    if kind.is_made and case.objective == "pass":
        # As RAND has it: with `objective: pass` edited runs are positives.
        kind = POSITIVES
    if not case.scale.is_ordered:
        return {**metadata, "agent_mode": kind.noun}
    word = "" if case.expected is None else case.scale.words.get(case.expected, "")
    return {**metadata, "target_score": case.expected, "score_descriptor": word}


# Of `edits: acts`: other records are as they were before there was such a thing.
_LEFT_OUT = "kind call_id before after follows contradiction"


def _fields(value: Edit | PlanStep | Verification) -> Json:
    fields = {}
    for name, declared in value.__dataclass_fields__.items():
        field_value = getattr(value, name)
        if name not in _LEFT_OUT.split() or field_value != declared.default:
            fields[name] = field_value
    return fields


def _rubric(rubric: Rubric) -> Json:
    described: Json = {"id": rubric.id, "instructions": rubric.instructions}
    for name in ("score_levels", "classes", "not_applicable"):
        if value := getattr(rubric, name):
            described[name] = value
    return described


def _perturbation(case: Case) -> Json:
    """How the case was made, as JSON values under RAND's keys."""
    outcome = case.outcome
    verification = outcome.verification
    failure_confirmed = plan = None
    if outcome.plan is not None:
        steps = []
        for step in outcome.plan.steps:
            index, messages = step.message_index, case.run.messages
            message_id = messages[index].get("id") if 0 <= index < len(messages) else None
            steps.append({"message_index": index, "message_id": message_id} | _fields(step))
        plan = {"thesis": outcome.plan.thesis, "steps": steps}
    if verification is not None and verification.score is None:
        failure_confirmed = verification.verdict == "FAIL"
    return {
        "failure_confirmed": failure_confirmed,
        "failure_rationale": None if verification is None else verification.rationale,
        "final_summary": outcome.final_summary,
        "plan": plan,
        "steps": [_fields(edit) for edit in outcome.edits],
        "confirmed": outcome.confirmed,
        "verification": None if verification is None else _fields(verification),
    }
