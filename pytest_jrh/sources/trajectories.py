"""Runs from ATIF trajectories, the format of Harbor: files, and the folders of its trials.

The steps of a file become messages of OpenAI's chat format.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.core.documents import DamagedError, check_depth, inside, listed, parsed, printable
from pytest_jrh.sources.chat import read_messages
from pytest_jrh.sources.source import Conversation, Form, Head, refused
from pytest_jrh.sources.transcripts import Item, Transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
_TRAJECTORY = Path("agent", "trajectory.json")
_RESULT = "result.json"
# Of the files beside Harbor's trials, these hold no run.
HARBORS_FILES = frozenset({_RESULT, "config.json", "lock.json"})
FILES_OF_A_TRIAL = (_TRAJECTORY, _RESULT)
_SAYS_ATIF = re.compile(r'"\s*+:\s*+"ATIF-v|"steps"\s*+:\s*+\[\s*+\{\s*+"step_id"')
_VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
_FIELDS_OF_STEPS_AND_RESULTS = {
    *("step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "extra"),
    *("reasoning_content", "tool_calls", "observation", "metrics", "is_copied_context"),
    *("llm_call_count", "source_call_id", "content", "subagent_trajectory_ref"),
}
_OF_A_TRIAL = ("trial_name", "task_name", "source")
_OF_A_RUN = ("session_id", "trajectory_id", "notes", "final_metrics", "extra")


def is_trajectory(head: Head) -> bool:
    """Whether a file says that it is ATIF, of any version."""
    return head.text.startswith("{") and _SAYS_ATIF.search(head.text) is not None


def is_trial(folder: Path) -> bool:
    """Whether a folder is one of Harbor's for a single trial: of a job there are several."""
    if is_trajectory(Head(folder / _TRAJECTORY)):
        return True
    result, config = read_head(folder / _RESULT), read_head(folder / "config.json")
    has_result = '"trial_name"' in result and '"task_name"' in result
    # A trial that is running, or was ended from outside, has no result.
    is_begun = '"trial_name"' in config and '"trials_dir"' in config
    return is_begun or (has_result and '"n_total_trials"' not in result)


def conversation(trajectory: Any) -> Conversation:
    """Read a trajectory; raises DamagedError."""
    if trajectory.get("schema_version") not in _VERSIONS:
        raise DamagedError(f"schema_version: must be {_VERSIONS[0]} to {_VERSIONS[-1]}")
    steps, agent = trajectory["steps"], trajectory["agent"]
    if trajectory.get("continued_trajectory_ref") is not None:
        raise DamagedError("continued_trajectory_ref: goes on in another file, which is not read")
    turns: list[Json] = []
    for number, step in enumerate(steps):
        with inside("steps", number):
            turns_of_step = list(_turns_of(step))
            read_messages(turns_of_step)
        turns += turns_of_step
    metadata = {"agent": {key: agent[key] for key in agent if key != "tool_definitions"}}
    for key in _OF_A_RUN:
        if trajectory.get(key) is not None:
            metadata[key] = trajectory[key]
    run_id = trajectory.get("trajectory_id") or trajectory.get("session_id")
    return Conversation(
        messages=turns,
        id=str(run_id) if run_id else None,
        tools=agent.get("tool_definitions"),
        metadata=metadata,
        created=steps[0].get("timestamp"),
    )


def _turns_of(step: Json) -> Iterator[Json]:
    """The messages of a step; raises what comes, where it is not as ATIF has it."""
    calls = step.get("tool_calls") or []
    results = (step.get("observation") or {}).get("results", [])
    fields = {field for part in (step, *results) for field in part}
    if unknown := fields - _FIELDS_OF_STEPS_AND_RESULTS:
        raise DamagedError(f"unknown fields: {listed(sorted(unknown), 5)}")
    turn = {"role": _ROLES[step["source"]], "content": _chat_content(step["message"])}
    names = {call["tool_call_id"]: call["function_name"] for call in calls}
    turn["tool_calls"] = [
        {"id": call["tool_call_id"], "name": call["function_name"], "arguments": call["arguments"]}
        for call in calls
    ]
    yield {**turn, "reasoning_content": step.get("reasoning_content"), "extra": step.get("extra")}
    for result in results:
        call_id = result.get("source_call_id")
        if call_id is None and len(calls) == len(results) == 1:
            call_id = calls[0]["tool_call_id"]
        content = result.get("content")
        if content is None:
            references = result.get("subagent_trajectory_ref") or ()
            content = "\n".join(f"[subagent: {_name(reference)}]" for reference in references)
        yield {
            "role": "tool",
            # Without an id it would be taken for the result of any call that has none yet.
            "tool_call_id": call_id or "",
            "name": names.get(call_id),
            "content": _chat_content(content),
            "extra": result.get("extra"),
        }


def _name(reference: Json) -> str:
    for key in ("trajectory_id", "trajectory_path", "session_id"):
        if reference.get(key):
            return str(reference[key])
    return "unnamed"


def _chat_content(content: str | list[Json]) -> str | list[Json]:
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        kind = part["type"]
        parts.append({"type": kind, kind: part["source"]["path"]} if "source" in part else part)
    return parts


class Trajectory(Transcripts):
    """A file with a trajectory."""

    @property
    def _file_name(self) -> str:
        path = self.path.resolve()
        # All trajectories of Harbor have one name.
        return path.parent.name if path.name == _TRAJECTORY.name else path.stem


class Trial(Transcripts):
    """The folder of a trial of Harbor: its name is the id of the run, its task the cluster, its
    rewards are the scores.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._file = self.path / _TRAJECTORY

    def _items(self) -> Iterator[tuple[Item, bytes]]:
        if self._file.exists():
            yield from super()._items()
        else:
            yield Item(0, 0, 1), b"null"

    def _bytes(self, item: Item) -> bytes:
        return super()._bytes(item) if item.end else b"null"

    def conversation(self, value: Any) -> Conversation:
        """See `Transcripts`; None is a trial that left no trajectory."""
        result = self._result
        try:
            rewards = dict((result.get("verifier_result") or {}).get("rewards") or {})
            exception = dict(result.get("exception_info") or {})
        except (AttributeError, TypeError, ValueError) as error:
            message = f"is not as Harbor writes it: {error}"
            raise refused(self.path / _RESULT, message) from None
        metadata = {name: result[name] for name in _OF_A_TRIAL if result.get(name)}
        cluster = None
        if "task_name" in metadata:
            names = [str(metadata[key]) for key in ("source", "task_name") if key in metadata]
            cluster = "/".join(names)
        if exception.get("exception_type"):
            metadata["exception_type"] = exception["exception_type"]
        run = Conversation(())
        no_messages = ""
        if value is None:
            said = [text for text in exception.values() if isinstance(text, str)]
            reasons = [f"the trial has no {_TRAJECTORY.as_posix()}", *said]
            no_messages = printable(": ".join(reasons), 300)
        else:
            with inside():
                run = conversation(value)
        return replace(
            run,
            id=str(metadata.get("trial_name") or self.path.resolve().name),
            cluster=cluster,
            metadata={**metadata, **run.metadata},
            scores=rewards,
            created=result.get("started_at") or run.created,
            no_messages=no_messages,
        )

    @cached_property
    def _result(self) -> Json:
        file = self.path / _RESULT
        if not file.is_file():
            return {}
        try:
            result = parsed(self._bytes_of(file))
            check_depth(result)
        except DamagedError as error:
            raise refused(file, str(error), "copy the file again, whole") from None
        if not isinstance(result, dict):
            raise refused(file, "is no JSON object")
        if result.get("step_results"):
            raise refused(file, "is of a trial of several steps; name their trajectory.json")
        return result


ATIF = Form(
    "ATIF trajectory",
    (".json",),
    conversation,
    is_trajectory,
    is_whole=True,
    source=Trajectory,
)
TRIAL = Form(
    "ATIF trajectory",
    (),
    conversation,
    lambda head: head.path.is_dir() and is_trial(head.path),
    is_whole=True,
    source=Trial,
)
