"""Runs from ATIF trajectories, the format of Harbor: files, and the folders of its trials.

A file holds one run. Its steps become messages of OpenAI's chat format, which are read as those of
conversations are; what follows it in other files of its folder belongs to it.
"""

from __future__ import annotations

import json
import re
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.config.schema import MAX_SAMPLE_MB
from pytest_jrh.core.documents import DamagedError, check_depth, listed, parsed, printable, shown
from pytest_jrh.core.errors import InputError, Unscored
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.conversations import definitions_of, read_messages
from pytest_jrh.sources.source import Source, changed_note, refused, too_big, written_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

Json = dict[str, Any]
Key = tuple[str, int]

_TRAJECTORY = Path("agent", "trajectory.json")
_RESULT = "result.json"
HARBORS_FILES = frozenset({_RESULT, "config.json", "lock.json"})
"""The names of the files beside Harbor's trials that hold no run."""
_KEYS_OF_A_TRIAL = {
    _RESULT: ("trial_name", "task_name"),
    # A trial that is running, or was ended from outside, has no result.
    "config.json": ("trial_name", "trials_dir"),
}
_TOOLS = "tool_definitions"
_START = 1_000_000
# Not in a text, where its quotes would have backslashes.
_SAYS_ATIF = re.compile(rb'"\s*+:\s*+"ATIF-v|"steps"\s*+:\s*+\[\s*+\{\s*+"step_id"')
_VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
_STEP_FIELDS = {
    *("step_id", "timestamp", "source", "model_name", "reasoning_effort", "message"),
    *("reasoning_content", "tool_calls", "observation", "metrics", "is_copied_context"),
    *("llm_call_count", "extra"),
}
_RESULT_FIELDS = {"source_call_id", "content", "subagent_trajectory_ref", "extra"}
_OF_A_TRIAL = ("trial_name", "task_name", "source")
_OF_A_RUN = ("session_id", "trajectory_id", "notes", "final_metrics", "extra")


def is_trial(folder: Path) -> bool:
    """Whether a folder is one of Harbor's for a single trial: of a job there are several."""
    if Trajectories.recognizes(folder / _TRAJECTORY):
        return True
    for name, keys in _KEYS_OF_A_TRIAL.items():
        head = read_head(folder / name)
        if all(f'"{key}"' in head for key in keys) and '"n_total_trials"' not in head:
            return True
    return False


def referred_to(files: Iterable[Path]) -> set[Path]:
    """The files, resolved, that trajectories among `files` go on in, or have subagents in."""
    others: set[Path] = set()
    for file in files:
        if file.is_dir() or not Trajectories.recognizes(file):
            continue
        try:
            trajectory = _trajectory(file, MAX_SAMPLE_MB * 1_000_000)
        except InputError:
            # Who reads it as a run says what is wrong.
            continue
        links = [reference.get("trajectory_path") for reference in _references(trajectory)]
        for link in (trajectory.get("continued_trajectory_ref"), *links):
            target = _resolved(file.parent / link) if isinstance(link, str) else None
            if target is not None and target != file.resolve():
                others.add(target)
    return others


def _resolved(path: Path) -> Path | None:
    """Where a path leads; None for one that no file can have, and links in a circle."""
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _object(file: Path, most_bytes: int) -> Json:
    """The JSON object in a file; raises InputError where there is none."""
    try:
        if file.stat().st_size > most_bytes:
            raise refused(file, f"is {too_big(most_bytes)}")
        value = parsed(file.read_bytes())
        check_depth(value)
    except DamagedError as error:
        raise refused(file, str(error), "copy the file again, whole") from None
    except OSError as error:
        raise refused(file, f"cannot be read: {error.strerror or error}") from None
    if not isinstance(value, dict):
        raise refused(file, "is no JSON object")
    return value


def _trajectory(file: Path, most_bytes: int) -> Json:
    """The trajectory in a file; raises InputError where its messages cannot be read."""
    trajectory = _object(file, most_bytes)
    if trajectory.get("schema_version") not in _VERSIONS:
        raise refused(file, f"schema_version: must be {_VERSIONS[0]} to {_VERSIONS[-1]}")
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not steps:
        raise refused(file, "steps: must be a list of steps, one at least")
    if not isinstance(trajectory.get("agent"), dict):
        raise refused(file, "agent: must be an object")
    for number, step in enumerate(steps):
        try:
            read_messages(list(_turns_of(step)))
        except DamagedError as error:
            raise refused(file, f"steps[{number}]: {error}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise refused(file, f"steps[{number}] is not as ATIF has it: {error}") from None
    return trajectory


def _references(trajectory: Json) -> Iterator[Json]:
    """The references to trajectories of subagents."""
    for step in trajectory["steps"]:
        for result in (step.get("observation") or {}).get("results", []):
            yield from result.get("subagent_trajectory_ref") or ()


def _left_out(trajectories: list[Json]) -> Iterator[str]:
    """Sentences about what belongs to a run and is not read."""
    if any(any(_references(trajectory)) for trajectory in trajectories):
        yield "some runs have subagents, whose own steps are not in the transcript"
    if trajectories[-1].get("continued_trajectory_ref") is not None:
        yield "some runs go on at a URL (continued_trajectory_ref), which is not read"


def _turns(trajectories: list[Json]) -> Iterator[Json]:
    """The steps as messages; a step that a continuation has copied stands where it was first."""
    earlier: set[str] = set()
    for trajectory in trajectories:
        texts = [json.dumps([step["source"], step["message"]]) for step in trajectory["steps"]]
        for step, text in zip(trajectory["steps"], texts, strict=True):
            if not (step.get("is_copied_context") and text in earlier):
                yield from _turns_of(step)
        earlier.update(texts)


def _turns_of(step: Json) -> Iterator[Json]:
    """The messages of a step; raises what comes, where it is not as ATIF has it."""
    _refuse_unknown(step, _STEP_FIELDS)
    calls = step.get("tool_calls") or []
    results = (step.get("observation") or {}).get("results", [])
    turn = {"role": _ROLES[step["source"]], "content": _chat_content(step["message"])}
    names = {call["tool_call_id"]: call["function_name"] for call in calls}
    functions = [{"name": call["function_name"], "arguments": call["arguments"]} for call in calls]
    turn["tool_calls"] = [
        {"id": name, "function": function} for name, function in zip(names, functions, strict=True)
    ]
    yield {**turn, "reasoning_content": step.get("reasoning_content"), "extra": step.get("extra")}
    for result in results:
        _refuse_unknown(result, _RESULT_FIELDS)
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


def _refuse_unknown(value: Json, fields: set[str]) -> None:
    if unknown := value.keys() - fields:
        raise DamagedError(f"unknown fields: {listed(sorted(unknown), 5)}")


def _name(reference: Json) -> str:
    names = (reference.get(key) for key in ("trajectory_id", "trajectory_path", "session_id"))
    return next((name for name in names if name), "unnamed")


def _chat_content(content: str | list[Json]) -> str | list[Json]:
    if isinstance(content, str):
        return content
    parts: list[Json] = []
    for part in content:
        match part["type"]:
            case "text":
                parts.append({"type": "text", "text": part["text"]})
            case "image":
                parts.append({"type": "image_url", "image_url": {"url": part["source"]["path"]}})
            case "audio":
                sound = part["source"]
                format_name = sound["media_type"].rpartition("/")[2]
                parts.append({"type": "audio", "audio": sound["path"], "format": format_name})
            case unknown:
                raise DamagedError(f"unknown type of part: {printable(str(unknown), 60)}")
    return parts


class Trajectories(Source):
    """A file with an ATIF trajectory, or the folder of a trial of Harbor with that of its agent.

    A trial's name is the id of its run, its task the cluster, and its rewards are its scores.
    """

    suffixes = (".json",)
    form = "ATIF trajectory"

    def _prepare(self) -> None:
        self._summary: RunSummary | None = None
        self._scores: Mapping[str, Any] = {}
        self._metadata: Json = {}
        self._created: datetime | None = None
        self._unusual: tuple[str, ...] = ()
        self._file = self.path / _TRAJECTORY if self.path.is_dir() else self.path

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file says that it is ATIF, of any version, or a folder is that of a trial."""
        try:
            if path.is_dir():
                return is_trial(path)
            if not path.is_file():
                return False
            with path.open("rb") as file:
                start = file.read(_START)
        except OSError:
            return False
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        return text.startswith(b"{") and _SAYS_ATIF.search(text) is not None

    def close(self) -> None:
        """Nothing stays open."""

    def summaries(self) -> tuple[RunSummary, ...]:
        """The one run; raises InputError for a trajectory that cannot be read."""
        with self._lock:
            if self._summary is None:
                self._summary = self._look()
            return (self._summary,)

    def scores(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: the rewards that Harbor's verifier gave."""
        for run in self.summaries():
            scores = {name: {"value": value} for name, value in self._scores.items()}
            yield (run.run_id, run.epoch), scores

    def metadata(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: what is known since the files were read first."""
        for run in self.summaries():
            yield (run.run_id, run.epoch), storable(self._metadata)[0]

    def created(self) -> datetime | None:
        """See `Source`: when the trial was begun, or the first step taken."""
        self.summaries()
        return self._created

    def notices(self) -> tuple[str, ...]:
        """What is left out of runs that were read."""
        return self._unusual

    def files(self) -> tuple[Path, ...]:
        """The files that the run is read from."""
        files = [file for file, _ in self._parts()]
        result = self.path / _RESULT
        return (*files, result) if result.is_file() else tuple(files)

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read the run, and if `with_raw` the JSON of its file.

        Raises Unscored (`input_error`) where it is missing, or changed since it was collected.
        """
        try:
            (summary,) = self.summaries()
            if (summary.run_id, summary.epoch) != (run_id, epoch):
                raise DamagedError("there is no such trajectory")
            trajectories = [trajectory for _, trajectory in self._parts()]
        except (InputError, DamagedError) as error:
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path} cannot be read: "
                f"{printable(str(error), 300)}.",
                advice="Copy the trajectory again, or leave it out.",
            ) from error
        # Whatever the format allows is usual: calls without a result, results of no call.
        messages, _ = read_messages(list(_turns(trajectories)))
        for message in messages:
            if message.get("tool_call_id") == "":
                del message["tool_call_id"]
        tools = trajectories[0]["agent"].get(_TOOLS) if trajectories else None
        stored: Json = {"messages": messages, "tools": definitions_of({"tools": tools})}
        clean, changed = storable({**stored, "metadata": self._metadata})
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
        return run, trajectories[0] if trajectories and with_raw else None

    def _result(self) -> Json:
        """What Harbor wrote of the trial; raises InputError for a result that cannot be read."""
        file = self.path / _RESULT
        if not file.is_file():
            return {}
        self._check_place(file)
        result = _object(file, self._most_bytes)
        if result.get("step_results"):
            message = "is of a trial of several steps; name their trajectory.json in its place"
            raise refused(file, message)
        if not all(isinstance(result.get(name) or "", str) for name in _OF_A_TRIAL):
            raise refused(file, f"{', '.join(_OF_A_TRIAL)}: must be text")
        verified = result.get("verifier_result") or {}
        exception = result.get("exception_info") or {}
        if not isinstance(verified, dict) or not isinstance(exception, dict):
            raise refused(file, "verifier_result, exception_info: must be objects")
        if not isinstance(verified.get("rewards") or {}, dict):
            raise refused(file, "verifier_result.rewards: must be an object of numbers")
        return result

    def _look(self) -> RunSummary:
        """Read all that is known of the run beside its messages."""
        trial = self._result()
        metadata = {name: trial[name] for name in _OF_A_TRIAL if trial.get(name)}
        names = [metadata[name] for name in ("source", "task_name") if name in metadata]
        cluster = str(storable("/".join(names))[0]) if "task_name" in metadata else None
        run_id = metadata.get("trial_name", "")
        skip, started = None, trial.get("started_at")
        exception = trial.get("exception_info") or {}
        if exception.get("exception_type"):
            metadata["exception_type"] = exception["exception_type"]
        if trajectories := [trajectory for _, trajectory in self._parts()]:
            first = trajectories[0]
            agent = {key: value for key, value in first["agent"].items() if key != _TOOLS}
            of_run = {key: first[key] for key in _OF_A_RUN if first.get(key) is not None}
            metadata |= {"agent": agent, **of_run}
            started = started or first["steps"][0].get("timestamp")
            if not self.path.is_dir():
                run_id = str(first.get("trajectory_id") or first.get("session_id") or "")
            self._unusual = tuple(_left_out(trajectories))
        else:
            reasons = [f"the trial has no {_TRAJECTORY.as_posix()}"]
            reasons += [str(value) for value in exception.values() if isinstance(value, str)]
            skip = Skip("no_messages", printable(": ".join(reasons), 300))
        verified = trial.get("verifier_result") or {}
        self._scores = verified.get("rewards") or {}
        if not self._scores and verified.get("reward") is not None:
            self._scores = {"reward": verified["reward"]}
        self._metadata, self._created = metadata, written_time(started)
        own_path = self.path.resolve()
        own_name = own_path.name if self.path.is_dir() else own_path.stem
        if own_path.name == _TRAJECTORY.name:
            # All trajectories of Harbor have one name.
            own_name = own_path.parent.name
        return RunSummary(str(storable(run_id or own_name)[0]), 1, skip, cluster)

    def _parts(self) -> list[tuple[Path, Json]]:
        """The trajectory and its continuations, each with its file; none where the agent left none.

        Raises InputError for a continuation that is not there, or leads out of the folder.
        """
        parts: list[tuple[Path, Json]] = []
        bytes_left = self._most_bytes
        file = self._file
        if not lexists(file):
            return parts
        self._check_place(file)
        while True:
            trajectory = _trajectory(file, bytes_left)
            bytes_left -= file.stat().st_size
            parts.append((file, trajectory))
            link = trajectory.get("continued_trajectory_ref")
            if not isinstance(link, str) or "://" in link:
                return parts
            following = file.parent / link
            reason = self._misplaced(following)
            if not reason and any(following.samefile(before) for before, _ in parts):
                reason = "this trajectory is a continuation of"
            if reason:
                message = f"continued_trajectory_ref: got {shown(link)}, which {reason}"
                raise refused(file, message, "copy the whole folder")
            file = following

    def _check_place(self, file: Path) -> None:
        """Refuse a file of a trial that a link leads out of its folder for."""
        if file != self.path and (reason := self._misplaced(file)):
            raise refused(file, reason, "copy the whole folder")

    def _misplaced(self, file: Path) -> str:
        """Why a file is not one of the folder, also where its links are followed; else nothing."""
        folder = self.path if self.path.is_dir() else self.path.parent
        target = _resolved(file)
        if target is None:
            return f"is no file in {folder}"
        return "" if target.is_relative_to(folder.resolve()) else f"leads out of {folder}"
