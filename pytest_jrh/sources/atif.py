"""What an ATIF trajectory may hold, Harbor's format of an agent's run, and the files that do not.

The fields are in one table, with those that are read of Harbor's own results. A file that does not
fit is refused as a whole, with the step, the field, what is there and what may be there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import (
    DamagedError,
    Document,
    Findings,
    KeyPath,
    check_depth,
    dotted,
    listed,
    parsed,
    read_json,
    received,
)
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.text import is_nearest
from pytest_jrh.sources.source import refused, too_big, written_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Field:
    """What a field may hold, as types of JSON and in words.

    `items` is what is in a list, or under the names of an object; `shape` names the fields of an
    object in `_SHAPES`.
    """

    types: tuple[type, ...]
    words: str
    items: _Field | None = None
    shape: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = None
    needed: bool = False


def _object(shape: str) -> _Field:
    return _Field((dict,), "an object", shape=shape)


def _list_of(items: _Field, words: str) -> _Field:
    return _Field((list,), f"a list of {words}", items)


def _one_of(*choices: str) -> _Field:
    return _Field((str,), f"one of {', '.join(choices)}", choices=choices)


def _needed(field: _Field) -> _Field:
    return replace(field, needed=True)


_TEXT = _Field((str,), "text")
_INTEGER = _Field((int,), "an integer")
_COUNT = _Field((int,), "an integer >= 0", least=0)
_NUMBER = _Field((int, float), "a number")
_FREE = _Field((dict,), "an object")
_CONTENT = _Field((str, list), "text or a list of parts", _object("part"))
VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
# From here on a subagent is found by its trajectory_id or its path, no longer by its session.
_SESSIONS_ARE_NO_REFERENCE = VERSIONS[7:]
# The reader that knows lines is slow, so problems in larger files name none.
_MOST_BYTES_FOR_LINES = 5_000_000
# What Harbor's own models accept of any version: fields were added, and none was taken away.
_SHAPES: Mapping[str, Mapping[str, _Field]] = {
    "trajectory": {
        "schema_version": _needed(_one_of(*VERSIONS)),
        "session_id": _TEXT,
        "trajectory_id": _TEXT,
        "agent": _needed(_object("agent")),
        "steps": _needed(_list_of(_object("step"), "steps")),
        "notes": _TEXT,
        "final_metrics": _object("final_metrics"),
        "continued_trajectory_ref": _TEXT,
        "extra": _FREE,
        "subagent_trajectories": _list_of(_object("trajectory"), "trajectories"),
    },
    "agent": {
        "name": _needed(_TEXT),
        "version": _needed(_TEXT),
        "model_name": _TEXT,
        "tool_definitions": _list_of(_FREE, "objects"),
        "extra": _FREE,
    },
    "final_metrics": {
        "total_prompt_tokens": _INTEGER,
        "total_completion_tokens": _INTEGER,
        "total_cached_tokens": _INTEGER,
        "total_cost_usd": _NUMBER,
        "total_steps": _COUNT,
        "extra": _FREE,
    },
    "step": {
        "step_id": _needed(_INTEGER),
        "timestamp": _TEXT,
        "source": _needed(_one_of("system", "user", "agent")),
        "model_name": _TEXT,
        "reasoning_effort": _Field((str, int, float), "text or a number"),
        "message": _needed(_CONTENT),
        "reasoning_content": _TEXT,
        "tool_calls": _list_of(_object("tool_call"), "tool calls"),
        "observation": _object("observation"),
        "metrics": _object("metrics"),
        "is_copied_context": _Field((bool,), "true or false"),
        "llm_call_count": _COUNT,
        "extra": _FREE,
    },
    "tool_call": {
        "tool_call_id": _needed(_TEXT),
        "function_name": _needed(_TEXT),
        "arguments": _needed(_FREE),
        "extra": _FREE,
    },
    "observation": {"results": _needed(_list_of(_object("result"), "results"))},
    "result": {
        "source_call_id": _TEXT,
        "content": _CONTENT,
        "subagent_trajectory_ref": _list_of(_object("reference"), "references"),
        "extra": _FREE,
    },
    "reference": {
        "trajectory_id": _TEXT,
        "session_id": _TEXT,
        "trajectory_path": _TEXT,
        "extra": _FREE,
    },
    "part": {
        "type": _needed(_one_of("text", "image", "audio")),
        "text": _TEXT,
        "source": _FREE,
    },
    "text part": {"type": _TEXT, "text": _needed(_TEXT)},
    "image part": {"type": _TEXT, "source": _needed(_object("image"))},
    "audio part": {"type": _TEXT, "source": _needed(_object("audio"))},
    "image": {
        "media_type": _needed(_one_of("image/jpeg", "image/png", "image/gif", "image/webp")),
        "path": _needed(_TEXT),
    },
    "audio": {
        "media_type": _needed(_TEXT),
        "path": _needed(_TEXT),
        "duration_sec": _NUMBER,
    },
    "metrics": {
        "prompt_tokens": _INTEGER,
        "completion_tokens": _INTEGER,
        "cached_tokens": _INTEGER,
        "cost_usd": _NUMBER,
        "prompt_token_ids": _list_of(_INTEGER, "integers"),
        "completion_token_ids": _list_of(_INTEGER, "integers"),
        "logprobs": _list_of(_NUMBER, "numbers"),
        "extra": _FREE,
    },
    # Of Harbor's result.json what is read here; it has many more fields.
    "trial": {
        "trial_name": _TEXT,
        "task_name": _TEXT,
        "source": _TEXT,
        "started_at": _TEXT,
        "verifier_result": _object("verifier_result"),
        "exception_info": _object("exception_info"),
        "step_results": _list_of(_object("step_result"), "results of steps"),
    },
    "step_result": {
        "step_name": _needed(_TEXT),
        "verifier_result": _object("verifier_result"),
        "exception_info": _object("exception_info"),
    },
    "verifier_result": {
        "rewards": _Field((dict,), "an object of numbers", _NUMBER),
        # In older results.
        "reward": _NUMBER,
    },
    "exception_info": {"exception_type": _TEXT, "exception_message": _TEXT},
}
_NUMBERS = (int, float)
_OPEN_SHAPES = frozenset({"trial", "step_result", "verifier_result", "exception_info"})
_OF_THE_AGENT = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_OF_A_MODEL = ("metrics", "reasoning_content")


def _check(value: Any, field: _Field, path: KeyPath, findings: Findings) -> None:
    """Report what does not fit a field, or is anywhere in it."""
    # The types of JSON have no subclasses: true is no integer, and 2.0 is one.
    fits = type(value) in field.types
    if int in field.types and isinstance(value, float):
        fits = fits or value.is_integer()
    if fits and field.choices and value not in field.choices:
        nearest_choice = findings.nearest(value, field.choices)
        findings.add(path, received(value, field.words), is_nearest(nearest_choice))
    elif not fits or (field.least is not None and value < field.least):
        findings.add(path, received(value, field.words))
    elif field.shape:
        _check_fields(value, field.shape, path, findings)
    elif field.items is not None and not isinstance(value, str):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            # A step may have a hundred thousand numbers: one that fits has no place to be kept.
            if type(item) not in _NUMBERS or type(item) not in field.items.types:
                _check(item, field.items, (*path, key), findings)


def _check_fields(value: Json, shape: str, path: KeyPath, findings: Findings) -> None:
    fields = _SHAPES[shape]
    if shape == "part":
        # What else is in it depends on its type, where that is one.
        fields = _SHAPES.get(f"{value.get('type')} part", fields)
    if shape not in _OPEN_SHAPES:
        for key, part in value.items():
            if key not in fields and part is not None:
                nearest_field = findings.nearest(key, fields)
                if nearest_field:
                    findings.excused.add(dotted((*path, nearest_field)))
                message = f"unknown field; the fields here are {listed(fields)}"
                findings.add((*path, key), message, is_nearest(nearest_field, "field"))
    for name, field in fields.items():
        part = value.get(name)
        if part is not None:
            _check(part, field, (*path, name), findings)
        elif field.needed:
            findings.missing((*path, name), f"is missing; must be {field.words}")


def _check_trajectory(trajectory: Json, path: KeyPath, findings: Findings) -> None:
    """Report what contradicts itself in a trajectory whose fields fit."""
    steps = trajectory["steps"]
    if not steps:
        findings.add((*path, "steps"), "is an empty list; must have one step at least")
    by_session = trajectory["schema_version"] not in _SESSIONS_ARE_NO_REFERENCE
    for index, step in enumerate(steps):
        step_path = (*path, "steps", index)
        if step["step_id"] != index + 1:
            expected = f"{index + 1}: steps are numbered from 1"
            findings.add((*step_path, "step_id"), received(step["step_id"], expected))
        _check_step(step, step_path, findings)
        _check_results(step, step_path, findings, by_session=by_session)
    ids = set()
    for index, subagent in enumerate(trajectory.get("subagent_trajectories") or ()):
        subagent_path = (*path, "subagent_trajectories", index)
        name = subagent.get("trajectory_id")
        if name is None or name in ids:
            expected = "text that no other of subagent_trajectories has"
            findings.add((*subagent_path, "trajectory_id"), received(name, expected))
        ids.add(name)
        _check_trajectory(subagent, subagent_path, findings)


def _check_step(step: Json, path: KeyPath, findings: Findings) -> None:
    source, timestamp = step["source"], step.get("timestamp")
    if timestamp is not None and written_time(timestamp) is None:
        expected = "a time of ISO 8601, such as 2026-05-31T14:30:00Z"
        findings.add((*path, "timestamp"), received(timestamp, expected))
    unfit: tuple[str, ...] = ()
    reason = "llm_call_count 0; a step that asked no model has none"
    if source != "agent":
        unfit = _OF_THE_AGENT
        reason = f"the source {source}; steps of the source agent alone have it"
    elif step.get("llm_call_count") == 0:
        unfit = _OF_A_MODEL
    for name in unfit:
        if step.get(name) is not None:
            findings.add((*path, name), f"stands in a step with {reason}")


def _check_results(step: Json, path: KeyPath, findings: Findings, *, by_session: bool) -> None:
    call_ids = {call["tool_call_id"] for call in step.get("tool_calls") or ()}
    for index, result in enumerate(results_of(step)):
        result_path = (*path, "observation", "results", index)
        call_id = result.get("source_call_id")
        if call_id is not None and call_id not in call_ids:
            expected = f"the tool_call_id of a call of its step ({listed(sorted(call_ids), 5)})"
            hint = is_nearest(findings.nearest(call_id, call_ids), "id")
            findings.add((*result_path, "source_call_id"), received(call_id, expected), hint)
        for number, reference in enumerate(result.get("subagent_trajectory_ref") or ()):
            if not by_session and name_of(reference) is None:
                message = "names no subagent; must have a trajectory_id or a trajectory_path"
                reference_path = (*result_path, "subagent_trajectory_ref", number)
                findings.add(reference_path, message, "a session_id alone does up to ATIF-v1.6")


def results_of(step: Json) -> list[Json]:
    """The results in a step's observation."""
    results: list[Json] = (step.get("observation") or {}).get("results", [])
    return results


def name_of(reference: Json) -> str | None:
    """What a reference to a subagent's trajectory goes by; None where it has but a session."""
    where: str | None = reference.get("trajectory_id") or reference.get("trajectory_path")
    return where


def links_in(trajectory: Json) -> Iterator[str]:
    """The files that a trajectory goes on in, or has subagents in, as it names them."""
    if trajectory.get("continued_trajectory_ref") is not None:
        yield trajectory["continued_trajectory_ref"]
    for reference in references_in(trajectory):
        if reference.get("trajectory_path") is not None:
            yield reference["trajectory_path"]


def references_in(trajectory: Json) -> Iterator[Json]:
    """The references to trajectories of subagents."""
    for step in trajectory["steps"]:
        for result in results_of(step):
            yield from result.get("subagent_trajectory_ref") or ()


def read_fitting(file: Path, shape: str, most_bytes: int) -> Json:
    """The JSON of a file that fits a shape of the table.

    Raises InputError with the place of each mistake.
    """
    try:
        if not file.is_file():
            raise refused(file, "is no file")
        if file.stat().st_size > most_bytes:
            raise refused(file, f"is {too_big(most_bytes)}")
        data = file.read_bytes()
        value = parsed(data)
        check_depth(value)
    except DamagedError as error:
        raise refused(file, str(error), "copy the file again, whole") from None
    except OSError as error:
        raise refused(file, f"cannot be read: {error.strerror or error}") from None
    document = Document(str(file), value)
    problems = _problems(document, shape)
    if problems and len(data) <= _MOST_BYTES_FOR_LINES:
        document.lines |= read_json(data.decode("utf-8-sig"), str(file)).lines
        problems = _problems(document, shape)
    elif problems:
        problems = [replace(problem, line=None) for problem in problems]
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return dict(value)


def _problems(document: Document, shape: str) -> list[Problem]:
    findings = Findings(document)
    if shape == "trajectory" and isinstance(document.data, dict):
        # Of a version that is not known, nobody knows the fields.
        version = document.data.get("schema_version")
        if isinstance(version, str):
            _check(version, _SHAPES[shape]["schema_version"], ("schema_version",), findings)
    if not findings.problems:
        _check(document.data, _object(shape), (), findings)
    if not findings.problems and shape == "trajectory":
        _check_trajectory(document.data, (), findings)
    return findings.problems
