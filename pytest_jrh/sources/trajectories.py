"""Runs from ATIF trajectories, the format of Harbor: files, and the folders of its trials.

The steps of a file become messages of OpenAI's chat format, read as those of conversations are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.core.documents import DamagedError, check_depth, listed, parsed, printable
from pytest_jrh.core.errors import InputError
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.conversations import definitions_of, read_messages
from pytest_jrh.sources.source import Key, Source, bytes_of, changed_note, refused, written_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

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


def is_trial(folder: Path) -> bool:
    """Whether a folder is one of Harbor's for a single trial: of a job there are several."""
    if Trajectories.recognizes(folder / _TRAJECTORY):
        return True
    result, config = read_head(folder / _RESULT), read_head(folder / "config.json")
    has_result = '"trial_name"' in result and '"task_name"' in result
    # A trial that is running, or was ended from outside, has no result.
    is_begun = '"trial_name"' in config and '"trials_dir"' in config
    return is_begun or (has_result and '"n_total_trials"' not in result)


def _object(file: Path, most_bytes: int) -> Json:
    """The JSON object in a file; raises InputError where there is none."""
    try:
        value = parsed(bytes_of(file, most_bytes))
        check_depth(value)
    except DamagedError as error:
        raise refused(file, str(error), "copy the file again, whole") from None
    if not isinstance(value, dict):
        raise refused(file, "is no JSON object")
    return value


def _trajectory(path: Path, most_bytes: int) -> Json | None:
    """The trajectory of a file, or of a trial where there is one; raises InputError."""
    file = path / _TRAJECTORY if path.is_dir() else path
    if path.is_dir() and not file.exists():
        return None
    trajectory = _object(file, most_bytes)
    if trajectory.get("schema_version") not in _VERSIONS:
        raise refused(file, f"schema_version: must be {_VERSIONS[0]} to {_VERSIONS[-1]}")
    steps, agent = trajectory.get("steps"), trajectory.get("agent")
    if not isinstance(steps, list) or not steps or not isinstance(agent, dict):
        raise refused(file, "must have steps, a list of one at least, and agent, an object")
    if trajectory.get("continued_trajectory_ref") is not None:
        raise refused(file, "continued_trajectory_ref: goes on in another file, which is not read")
    for number, step in enumerate(steps):
        try:
            read_messages(list(_turns_of(step)))
        except (DamagedError, KeyError, TypeError, AttributeError) as error:
            raise refused(file, f"steps[{number}] is not as ATIF has it: {error}") from None
    return trajectory


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
        {"id": one["tool_call_id"], "name": one["function_name"], "arguments": one["arguments"]}
        for one in calls
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
    names = map(reference.get, ("trajectory_id", "trajectory_path", "session_id"))
    return next(filter(None, names), "unnamed")


def _chat_content(content: str | list[Json]) -> str | list[Json]:
    return content if isinstance(content, str) else [_chat_part(part) for part in content]


def _chat_part(part: Json) -> Json:
    match part["type"]:
        case "text":
            return {"type": "text", "text": part["text"]}
        case "image":
            return {"type": "image_url", "image_url": {"url": part["source"]["path"]}}
        case "audio":
            return {"type": "audio", "audio": part["source"]["path"]}
        case unknown:
            raise DamagedError(f"unknown type of part: {printable(str(unknown), 60)}")


class Trajectories(Source):
    """A file with an ATIF trajectory, or the folder of a trial of Harbor: its name is the id of
    the run, its task the cluster, its rewards are the scores.
    """

    suffixes = (".json",)
    form = "ATIF trajectory"

    def _prepare(self) -> None:
        self._summary: RunSummary | None = None
        self._scores: Mapping[str, Any] = {}
        self._metadata: Json = {}
        self._created: datetime | None = None

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file says that it is ATIF, of any version, or a folder is that of a trial."""
        if path.is_dir():
            return is_trial(path)
        head = read_head(path).lstrip()
        return head.startswith("{") and _SAYS_ATIF.search(head) is not None

    def summaries(self) -> tuple[RunSummary, ...]:
        """The one run; raises InputError for a trajectory that cannot be read."""
        with self._lock:
            if self._summary is None:
                self._summary = self._look()
            return (self._summary,)

    def scores(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: the rewards that Harbor's verifier gave."""
        for run in self.summaries():
            yield (run.run_id, run.epoch), self._scores

    def created(self) -> datetime | None:
        """See `Source`: when the trial was begun, or the first step taken."""
        self.summaries()
        return self._created

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """See `Source`; what a preprocessor gets is the JSON of the trajectory."""
        try:
            if (run_id, epoch) not in [(run.run_id, run.epoch) for run in self.summaries()]:
                raise DamagedError("there is no such trajectory")
            trajectory = _trajectory(self.path, self._most_bytes) or {"agent": {}, "steps": []}
        except (InputError, DamagedError) as error:
            why, advice = printable(str(error), 300), "Copy the trajectory again, or leave it out."
            raise self._unreadable(run_id, epoch, why, advice) from error
        # Whatever the format allows is usual: calls without a result, results of no call.
        turns = [turn for step in trajectory["steps"] for turn in _turns_of(step)]
        messages, _ = read_messages(turns)
        for message in messages:
            if message.get("tool_call_id") == "":
                del message["tool_call_id"]
        tools = definitions_of({"tools": trajectory["agent"].get("tool_definitions")})
        stored: Json = {"messages": messages, "tools": tools, "metadata": self._metadata}
        clean, changed = storable(stored)
        user_messages = (message for message in clean["messages"] if message["role"] == "user")
        run = AgentRun(
            run_id=run_id,
            epoch=epoch,
            messages=tuple(clean["messages"]),
            input=message_text(next(user_messages, {})),
            metadata=clean["metadata"],
            sample_id=run_id,
            notes=changed_note(changed),
            tools=tuple(clean["tools"]),
        )
        return run, trajectory if with_raw else None

    def _look(self) -> RunSummary:
        """Read all that is known of the run beside its messages."""
        file = self.path / _RESULT
        trial = _object(file, self._most_bytes) if file.is_file() else {}
        if trial.get("step_results"):
            raise refused(file, "is of a trial of several steps; name their trajectory.json")
        metadata = {name: trial[name] for name in _OF_A_TRIAL if trial.get(name)}
        names = [str(metadata[name]) for name in ("source", "task_name") if name in metadata]
        cluster = storable("/".join(names))[0] if "task_name" in metadata else None
        try:
            self._scores = dict((trial.get("verifier_result") or {}).get("rewards") or {})
            exception = dict(trial.get("exception_info") or {})
        except (AttributeError, TypeError, ValueError) as error:
            raise refused(file, f"is not as Harbor writes it: {error}") from None
        if exception.get("exception_type"):
            metadata["exception_type"] = exception["exception_type"]
        run_id, skip, started = metadata.get("trial_name"), None, trial.get("started_at")
        trajectory = _trajectory(self.path, self._most_bytes)
        if trajectory is None:
            said = [value for value in exception.values() if isinstance(value, str)]
            reason = ": ".join([f"the trial has no {_TRAJECTORY.as_posix()}", *said])
            skip = Skip("no_messages", printable(reason, 300))
        else:
            agent = {**trajectory["agent"]}
            agent.pop("tool_definitions", None)
            of_run = {key: trajectory[key] for key in _OF_A_RUN if trajectory.get(key) is not None}
            metadata |= {"agent": agent, **of_run}
            started = started or trajectory["steps"][0].get("timestamp")
            if not self.path.is_dir():
                run_id = of_run.get("trajectory_id") or of_run.get("session_id")
        self._metadata, self._created = metadata, written_time(started)
        own_path = self.path.resolve()
        if own_path.name == _TRAJECTORY.name:
            # All trajectories of Harbor have one name.
            own_path = own_path.parent
        own_name = own_path.name if own_path.is_dir() else own_path.stem
        return RunSummary(storable(str(run_id or own_name))[0], 1, skip, cluster)
