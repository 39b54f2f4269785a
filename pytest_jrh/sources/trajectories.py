"""Runs from ATIF trajectories, the format of Harbor: files, and the folders of its trials.

A file holds one run. Its steps become messages of OpenAI's chat format, which are read as those of
conversations are; what follows it in other files of its folder belongs to it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.config.schema import MAX_SAMPLE_MB
from pytest_jrh.core.documents import DamagedError, printable, shown
from pytest_jrh.core.errors import InputError, Problem, Unscored
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import message_text, storable
from pytest_jrh.sources.atif import (
    Json,
    links_in,
    name_of,
    read_fitting,
    references_in,
    results_of,
)
from pytest_jrh.sources.conversations import definitions_of, read_messages
from pytest_jrh.sources.source import Source, changed_note, refused, written_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

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
_OF_A_TRIAL = ("trial_name", "task_name", "source")
_EPOCH = 1
_START = 1_000_000
_MOST_CHARACTERS_KEPT = 100_000
# Not in a text, where its quotes would have backslashes.
_SAYS_ATIF = re.compile(
    rb'\A\s*+\{\s*+"schema_version".*?"step_id"\s*+:'
    rb'|"\s*+:\s*+"ATIF-v'
    rb'|"steps"\s*+:\s*+\[\s*+\{\s*+"step_id"',
    re.DOTALL,
)
SUBAGENTS = "subagents, whose own steps are not in the transcript"
ELSEWHERE = "a continuation that is no file here (continued_trajectory_ref), which is not read"


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
            trajectory = read_fitting(file, "trajectory", MAX_SAMPLE_MB * 1_000_000)
        except InputError:
            # Who reads it as a run says what is wrong.
            continue
        for link in links_in(trajectory):
            target = _resolved(file.parent / link)
            if target is not None and target != file.resolve():
                others.add(target)
    return others


def _resolved(path: Path) -> Path | None:
    """Where a path leads; None for one that no file can have, and links in a circle."""
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


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
    calls, results = step.get("tool_calls") or [], results_of(step)
    yield {
        "role": "assistant" if step["source"] == "agent" else step["source"],
        "content": _chat_content(step["message"]),
        "reasoning_content": step.get("reasoning_content"),
        "tool_calls": [
            {
                "id": call["tool_call_id"],
                "function": {"name": call["function_name"], "arguments": call["arguments"]},
            }
            for call in calls
        ],
        "extra": step.get("extra"),
    }
    functions = {call["tool_call_id"]: call["function_name"] for call in calls}
    for result in results:
        call_id = result.get("source_call_id")
        if call_id is None and len(calls) == len(results) == 1:
            call_id = calls[0]["tool_call_id"]
        content = result.get("content")
        if content is None:
            references = result.get("subagent_trajectory_ref") or ()
            names = [name_of(reference) or reference.get("session_id") for reference in references]
            content = "\n".join(f"[subagent: {name}]" for name in names)
        yield {
            "role": "tool",
            # Without an id it would be taken for the result of any call that has none yet.
            "tool_call_id": call_id or "",
            "name": functions.get(call_id),
            "content": _chat_content(content),
            "extra": result.get("extra"),
        }


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
            case _:
                sound = part["source"]
                format_name = sound["media_type"].rpartition("/")[2]
                parts.append({"type": "audio", "audio": sound["path"], "format": format_name})
    return parts


def _metadata_of(trajectory: Json) -> Json:
    """What a trajectory says beside its steps and tools."""
    agent = {key: value for key, value in trajectory["agent"].items() if key != "tool_definitions"}
    metadata: Json = {"agent": agent}
    for name in ("session_id", "trajectory_id", "notes", "final_metrics", "extra"):
        if trajectory.get(name) is not None:
            metadata[name] = trajectory[name]
    return metadata


@dataclass(frozen=True, slots=True)
class _Row:
    """One run: its file, None where the agent left none, and what Harbor says of its trial.

    `metadata` is None where it is so long that it is read anew each time.
    """

    summary: RunSummary
    file: Path | None
    scores: Mapping[str, Any]
    about: Mapping[str, Any]
    metadata: Mapping[str, Any] | None
    created: datetime | None


class Trajectories(Source):
    """A file with an ATIF trajectory, or the folder of a trial of Harbor with those of its agent.

    A trial's name is the id of its run, its task the cluster, and its rewards are its scores.
    """

    suffixes = (".json",)
    form = "ATIF trajectory"

    def _prepare(self) -> None:
        self._trial = _trial_of(self.path)
        self._rows: dict[Key, _Row] | None = None
        self._unusual: dict[str, None] = {}

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
        # Logs of other kinds are spared the pattern, which takes far longer than these words.
        if b"ATIF-v" not in start and b'"step_id"' not in start:
            return False
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        return text.startswith(b"{") and _SAYS_ATIF.search(text) is not None

    def close(self) -> None:
        """Nothing stays open."""

    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per run; raises InputError for a trajectory that is not as ATIF has it."""
        return tuple(row.summary for row in self._index().values())

    def scores(self, *, whole: bool = False) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: the rewards that Harbor's verifier gave."""
        for key, row in self._index().items():
            scores = {name: {"value": value} for name, value in row.scores.items()}
            yield key, scores if whole else row.scores

    def metadata(self, field: str) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: what is known since the files were read first, as a rule."""
        rows = self._index()
        if any(row.metadata is None for row in rows.values()):
            yield from super().metadata(field)
            return
        for key, row in rows.items():
            yield key, storable(row.metadata or {})[0]

    def created(self) -> datetime | None:
        """See `Source`: when the trial was begun, or the first step taken."""
        return next(iter(self._index().values())).created

    def notices(self) -> tuple[str, ...]:
        """What is left out of runs that were read."""
        with self._lock:
            return tuple(f"some runs have {sentence}" for sentence in self._unusual)

    def files(self) -> tuple[Path, ...]:
        """The files that the runs are read from."""
        files = [self.path] if self.path.is_file() else []
        if self._trial is not None:
            files.append(self._trial / _RESULT)
        for row in self._index().values():
            files += [] if row.file is None else [file for file, _ in self._parts(row.file)]
        return tuple(dict.fromkeys(file for file in files if file.is_file()))

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one run, and if `with_raw` the JSON of its file.

        Raises Unscored (`input_error`) where it is missing, or changed since it was collected.
        """
        try:
            row = self._index().get((run_id, epoch))
            if row is None:
                raise DamagedError("there is no such trajectory")
            trajectories = [] if row.file is None else [part for _, part in self._parts(row.file)]
            raw = trajectories[0] if trajectories and with_raw else None
            return self._run(row, trajectories), raw
        except (InputError, DamagedError, OSError) as error:
            raise Unscored(
                "input_error",
                stage="input",
                cause=f"The run {printable(run_id)} (epoch {epoch}) of {self.path} cannot be read: "
                f"{printable(str(error), 300)}.",
                advice="Copy the trajectory again, or leave it out.",
            ) from error

    def _run(self, row: _Row, trajectories: list[Json]) -> AgentRun:
        turns = list(_turns(trajectories))
        # Whatever the format allows is usual: calls without a result, results of no call.
        messages, _ = read_messages(turns)
        for message in messages:
            if message.get("tool_call_id") == "":
                del message["tool_call_id"]
        tools: list[Json] = []
        metadata = row.about
        if trajectories:
            tools = definitions_of({"tools": trajectories[0]["agent"].get("tool_definitions")})
            metadata = {**row.about, **_metadata_of(trajectories[0])}
        stored: Json = {"messages": messages, "metadata": metadata, "tools": tools}
        clean, changed = storable(stored)
        with self._lock:
            if any(any(references_in(trajectory)) for trajectory in trajectories):
                self._unusual[SUBAGENTS] = None
            if trajectories and trajectories[-1].get("continued_trajectory_ref") is not None:
                self._unusual[ELSEWHERE] = None
        user_messages = (message for message in clean["messages"] if message["role"] == "user")
        return AgentRun(
            run_id=row.summary.run_id,
            epoch=row.summary.epoch,
            messages=tuple(clean["messages"]),
            input=message_text(next(user_messages, {})),
            metadata=clean["metadata"],
            sample_id=row.summary.run_id,
            notes=changed_note(changed),
            tools=tuple(clean["tools"]),
        )

    def _index(self) -> dict[Key, _Row]:
        with self._lock:
            if self._rows is None:
                rows = [*self._rows_of_trial()]
                if self.path.is_file():
                    same_file = self.path.resolve()
                    rows = [row for row in rows if row.file and row.file.resolve() == same_file]
                    rows = rows or [self._row("", self.path, {}, {})]
                self._rows = {(row.summary.run_id, row.summary.epoch): row for row in rows}
            return self._rows

    def _rows_of_trial(self) -> Iterator[_Row]:
        """The run of the trial that the path is, or is in; of one with several steps one each."""
        if self._trial is None:
            return
        result: Json = {}
        file = self._trial / _RESULT
        if file.is_file():
            self._check_place(file)
            result = read_fitting(file, "trial", self._most_bytes)
        name = result.get("trial_name") or self._trial.resolve().name
        steps = result.get("step_results")
        if not steps:
            yield self._row(name, self._trial / _TRAJECTORY, result, result)
        first_of: dict[str, int] = {}
        for index, step in enumerate(steps or ()):
            first = first_of.setdefault(step["step_name"], index)
            if first != index:
                message = f"got {shown(step['step_name'])}, as step_results[{first}] has it, too"
                hint = "two runs would have one name, and one of two rewards"
                raise InputError(
                    Problem(message, str(file), key=f"step_results[{index}].step_name", hint=hint)
                )
            step_file = self._trial / "steps" / step["step_name"] / _TRAJECTORY
            yield self._row(f"{name}/{step['step_name']}", step_file, result, step)

    def _row(self, run_id: str, file: Path, trial: Json, of_run: Json) -> _Row:
        """What is known of a run whose part of the trial's result is `of_run`."""
        trajectories = [part for _, part in self._parts(file)] if lexists(file) else []
        exception = of_run.get("exception_info") or {}
        about = {name: trial[name] for name in _OF_A_TRIAL if trial.get(name) is not None}
        started = trial.get("started_at")
        skip = None
        if exception.get("exception_type"):
            about["exception_type"] = exception["exception_type"]
        metadata: Mapping[str, Any] | None = about
        if trajectories:
            first = trajectories[0]
            metadata = {**about, **_metadata_of(first)}
            if len(json.dumps(metadata)) > _MOST_CHARACTERS_KEPT:
                metadata = None
            run_id = run_id or first.get("trajectory_id") or first.get("session_id") or _stem(file)
            started = started or first["steps"][0].get("timestamp")
        else:
            reasons = [f"the trial has no {_TRAJECTORY.as_posix()}"]
            reasons += [str(value) for value in exception.values() if isinstance(value, str)]
            skip = Skip("no_messages", printable(": ".join(reasons), 300))
        names = [about[name] for name in ("source", "task_name") if name in about]
        cluster = str(storable("/".join(names))[0]) if "task_name" in about else None
        summary = RunSummary(str(storable(run_id)[0]), _EPOCH, skip, cluster)
        verified = of_run.get("verifier_result") or {}
        rewards = verified.get("rewards") or {}
        if not rewards and verified.get("reward") is not None:
            rewards = {"reward": verified["reward"]}
        return _Row(
            summary,
            file if trajectories else None,
            rewards,
            about,
            metadata,
            written_time(started),
        )

    def _parts(self, file: Path) -> list[tuple[Path, Json]]:
        """A trajectory and its continuations, each with its file.

        Raises InputError for a continuation that is not there, or leads out of the folder.
        """
        self._check_place(file)
        parts: list[tuple[Path, Json]] = []
        bytes_left = self._most_bytes
        while True:
            trajectory = read_fitting(file, "trajectory", bytes_left)
            bytes_left -= file.stat().st_size
            parts.append((file, trajectory))
            link = trajectory.get("continued_trajectory_ref")
            if link is None or "://" in link:
                return parts
            next_file = file.parent / link
            reason = self._misplaced(next_file)
            if reason is None and any(next_file.samefile(before) for before, _ in parts):
                reason = "this trajectory is a continuation of"
            if reason is not None:
                message = f"got {shown(link)}, which {reason}"
                hint = "copy the whole folder"
                key = "continued_trajectory_ref"
                raise InputError(Problem(message, str(file), key=key, hint=hint))
            file = next_file

    def _check_place(self, file: Path) -> None:
        """Refuse a file of a trial that a link leads out of its folder for."""
        reason = self._misplaced(file) if self._trial is not None else None
        if reason is not None:
            raise refused(file, reason, "copy the whole folder")

    def _misplaced(self, file: Path) -> str | None:
        """Why a file is not one of the folder, also where its links are followed; None if it is."""
        folder = self._trial or self.path.parent
        target = _resolved(file)
        if target is None:
            return f"is no file in {folder}"
        inside = target.is_relative_to(folder.resolve())
        return None if inside else f"leads out of the folder {folder}"


def _trial_of(path: Path) -> Path | None:
    """The folder of the trial that a path is, or whose agent wrote it; None where there is none."""
    if path.is_dir():
        return path
    absolute_path = path.absolute()
    folders = absolute_path.parents
    if absolute_path.parts[-2:] == _TRAJECTORY.parts:
        for folder in (folders[min(3, len(folders) - 1)], folders[1]):
            if (folder / _RESULT).is_file() and is_trial(folder):
                return folder
    return None


def _stem(file: Path) -> str:
    """The name of a file; that of its folder, where the file has the name that all have."""
    return file.absolute().parent.name if file.name == _TRAJECTORY.name else file.stem
