"""Logs of programs that run agents, each file of which is one conversation: sessions of Claude Code
and of Codex, and ATIF trajectories, the format of Harbor: files, and the folders of its trials.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.core.documents import (
    DamagedError,
    check_depth,
    inside,
    listed,
    parsed,
    printable,
    received,
)
from pytest_jrh.core.text import counted
from pytest_jrh.sources.chat import check_message, has_results, read_messages
from pytest_jrh.sources.responses import ITEM_TYPES, turns_of
from pytest_jrh.sources.source import LINES, Conversation, Form, Head, refused, texts_in
from pytest_jrh.sources.transcripts import Item, Transcripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.documents import KeyPath

Json = dict[str, Any]


def _unknown_notices(kinds: Iterable[str]) -> list[str]:
    """Say which lines of a session were left out without being known."""
    names = listed(kinds)
    what = "lines without a message left out whose types are not known"
    return [f"{what}: {names}"] if names else []


_KEYS = frozenset({"sessionId", "session_id", "parentUuid", "leafUuid"})
_MESSAGES = ("user", "assistant")
# Such as "API Error: 529", in a message of the assistant's.
_NO_MODEL = "<synthetic>"
# Lines that name no session; a session that was closed at once may have no others.
_SNAPSHOT = "file-history-snapshot"
# What a session notes for itself.
_NOTES = (
    "system summary attachment progress result mode permission-mode tag queue-operation "
    "last-prompt custom-title ai-title agent-name agent-color agent-setting pr-link task-summary "
    "content-replacement stream_event attribution-snapshot rate_limit_event"
)
_OTHERS = frozenset({*_NOTES.split(), _SNAPSHOT})
_CLAUDE_METADATA = ("cwd", "gitBranch", "version")


def is_claude_code(head: Head) -> bool:
    """Whether one of the first lines is of Claude Code."""
    for line in head.lines:
        if isinstance(line.get("type"), str) and (line.keys() & _KEYS or line["type"] == _SNAPSHOT):
            return True
    return False


class _Said(NamedTuple):
    number: int
    line: Json
    message: Json


def claude_code(lines: Sequence[Json]) -> Conversation:
    """Read a session of Claude Code, or of one of its subagents.

    The lines of one message are joined, all in the order of the file, also those of prompts that
    were edited and of answers that were asked for again: the agent did what it did before. Raises
    DamagedError with the index of the line, and the path in it.
    """
    all_said: list[_Said] = []
    unknown: dict[str, None] = {}
    first_lines: dict[str, tuple[int, Any]] = {}
    for index, line in enumerate(lines):
        with inside(index):
            message = _message_of(line, unknown)
            uuid = line.get("uuid") or f"line {index}"
            first_index, first_message = first_lines.setdefault(uuid, (index, line.get("message")))
            if first_message != line.get("message"):
                problem = "another line has the same uuid, and another message"
                raise DamagedError(problem, path=("uuid",))
            # One that was written twice counts once.
            if message is not None and first_index == index:
                all_said.append(_Said(index, line, message))
    of_model = [said for said in all_said if said.message.get("model") != _NO_MODEL]
    of_agent = []
    for said in of_model:
        if said.line.get("isSidechain") is not True and not said.line.get("parent_tool_use_id"):
            of_agent.append(said)
    # The file of a subagent holds nothing else.
    chosen = of_agent or of_model
    notices = []
    if of_subagents := len(of_model) - len(chosen):
        notices.append(f"{counted(of_subagents, 'line')} of subagents left out")
    if of_program := len(all_said) - len(of_model):
        notices.append(
            f"{counted(of_program, 'line')} left out that Claude Code wrote in the agent's place, "
            "such as errors of the API"
        )
    if forks := _forks(chosen):
        notices.append(
            f"{counted(forks, 'time')} a prompt was edited, or an answer asked for again; what "
            "was there before is in the conversation too, in the order of the file"
        )
    metadata: dict[str, str] = {}
    session_id = agent_id = None
    for said in chosen:
        metadata |= texts_in(said.line, _CLAUDE_METADATA) | texts_in(said.message, ("model",))
        ids = texts_in(said.line, ("sessionId", "session_id", "agentId"))
        session_id = ids.get("sessionId") or ids.get("session_id") or session_id
        agent_id = None if of_agent else ids.get("agentId")
    return Conversation(
        messages=_joined_turns(chosen),
        id=f"agent-{agent_id}" if agent_id else session_id,
        cluster=session_id,
        metadata=metadata,
        notices=[*notices, *_unknown_notices(unknown)],
    )


def _message_of(line: Json, unknown: dict[str, None]) -> Json | None:
    """The message of a line, or what the user said while the agent was at work; None without.

    What a session notes is left out, and if its type is not known here it is noted in `unknown`.
    """
    kind, attachment = line.get("type"), line.get("attachment")
    message: Any = line.get("message")
    if kind in _MESSAGES:
        with inside("message"):
            check_message({"role": message["role"], "content": message["content"]})
        return cast("Json", message)
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        queued = {"role": "user", "content": attachment.get("prompt")}
        with inside("attachment", "prompt"):
            check_message(queued)
        return queued
    if kind not in _OTHERS:
        if isinstance(message, dict):
            expected = f"one of {listed(_MESSAGES)} with a message"
            raise DamagedError(received(kind, expected), path=("type",))
        unknown[str(kind or "no type")] = None
    return None


def _joined_turns(all_said: Sequence[_Said]) -> list[Json]:
    """The messages of lines, those with the id of one message as one, each of its parts once."""
    turns: list[Json] = []
    parts_by_id: dict[str, dict[str, Any]] = {}
    for _, _, message in all_said:
        content, message_id = message["content"], message.get("id")
        if not isinstance(message_id, str):
            turns.append({"role": message["role"], "content": content})
            continue
        if message_id not in parts_by_id:
            parts_by_id[message_id] = {}
            turns.append({"role": message["role"], "content": parts_by_id[message_id]})
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for part in parts:
            parts_by_id[message_id].setdefault(json.dumps(part, sort_keys=True), part)
    for turn in turns:
        if isinstance(turn["content"], dict):
            turn["content"] = list(turn["content"].values())
    return turns


def _forks(all_said: Sequence[_Said]) -> int:
    """How many prompts, and answers, stand where another one does: after the same line. What a
    program wrote is neither.
    """
    alternatives: dict[tuple[str, bool], set[str | int]] = {}
    for number, line, message in all_said:
        name, is_answer = number, message["role"] == "assistant"
        if is_answer and isinstance(message.get("id"), str):
            # The lines of one answer share it.
            name = message["id"]
        is_written = line.get("isMeta") or line.get("isCompactSummary")
        is_queued = line.get("type") == "attachment"
        if not is_answer and (is_written or is_queued or has_results(message["content"])):
            continue
        if "parentUuid" in line:
            parent = line["parentUuid"] or line.get("logicalParentUuid")
            alternatives.setdefault((str(parent), is_answer), set()).add(name)
    return sum(len(names) - 1 for names in alternatives.values())


CLAUDE_CODE = Form("Claude Code session", LINES, claude_code, is_claude_code, is_whole=True)

_WITH_PAYLOAD = (
    *("session_meta", "response_item", "event_msg", "turn_context", "compacted"),
    *("world_state", "inter_agent_communication_metadata"),
)
# The first line of sessions of 2025.
_OLD_HEAD = frozenset({"id", "timestamp", "instructions", "git"})
_CODEX_METADATA = ("cwd", "originator", "cli_version", "model_provider")
# What Codex says in the user's place: whole texts, as a prompt may begin with `<`, too.
_SAID_BY_CODEX = re.compile(
    r"# agents\.md instructions.*</instructions>"
    r"|<(environment_context|extension_context|goal_context|hook_prompt|recommended_plugins|skill"
    r"|subagent_notification|turn_aborted|user_instructions|user_shell_command"
    r"|codex_internal_context|external_\w+)\b.*</\1>"
    r"|warning: (apply_patch was requested via |the maximum number of unified exec processes ).*",
    re.IGNORECASE | re.DOTALL,
)


def is_codex(head: Head) -> bool:
    """Whether one of the first lines is of Codex."""
    for line in head.lines:
        kind = line.get("type")
        if not isinstance(kind, str) and {"id", "timestamp"} <= line.keys() <= _OLD_HEAD:
            return True
        if kind in _WITH_PAYLOAD and isinstance(line.get("payload"), dict):
            return True
    return False


def codex(lines: Sequence[Json]) -> Conversation:
    """Read a session of Codex: items of OpenAI's Responses API, without the turns that were rolled
    back. Raises DamagedError with the index of the line, and the path in it.
    """
    items: list[tuple[KeyPath, Any]] = []
    # Where in `items` each turn of the user begins.
    prompts: list[int] = []
    head: Json = {}
    metadata: dict[str, str] = {}
    unknown: dict[str, None] = {}
    for index, line in enumerate(lines):
        with inside(index):
            kind, payload = line.get("type"), line.get("payload")
            if kind == "response_item" or kind in ITEM_TYPES:
                # Sessions of 2025 have no payload.
                item = payload if kind == "response_item" else line
                if _is_prompt(item):
                    prompts.append(len(items))
                items.append(((index, "payload") if item is payload else (index,), item))
            elif kind == "session_meta" or (kind is None and line.keys() <= _OLD_HEAD):
                head = head or payload or line
            elif kind == "turn_context":
                metadata |= texts_in(payload, ("model",))
            elif kind == "compacted":
                # The message in the place of what was said before, where it is not encrypted.
                summary = line["payload"].get("message")
                if summary:
                    items.append(((index,), {"role": "user", "content": summary}))
            elif kind == "event_msg" and line["payload"].get("type") == "thread_rolled_back":
                # The last turns go, each of which begins with a prompt.
                first = max(0, len(prompts) - line["payload"]["num_turns"])
                if first < len(prompts):
                    del items[prompts[first] :]
                    del prompts[first:]
            elif kind not in _WITH_PAYLOAD and "record_type" not in line:
                unknown[str(kind or "no type")] = None
    return Conversation(
        messages=turns_of(items),
        id=texts_in(head, ("id",)).get("id"),
        system=texts_in(head.get("base_instructions"), ("text",)).get("text"),
        metadata={
            **texts_in(head, _CODEX_METADATA),
            **texts_in(head.get("git"), ("branch",)),
            **metadata,
        },
        notices=_unknown_notices(unknown),
    )


def _is_prompt(item: Any) -> bool:
    """Whether a turn begins with it: the user said it, and not the program in the user's place, or
    another agent did.
    """
    if not isinstance(item, dict):
        return False
    if item.get("type") == "agent_message":
        return True
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and _SAID_BY_CODEX.fullmatch(text.strip()):
            return False
    return item.get("role") == "user"


CODEX = Form("Codex session", LINES, codex, is_codex, is_whole=True)


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
_NAMES = ("trajectory_id", "trajectory_path", "session_id")
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


def trajectory(value: Any) -> Conversation:
    """Read a trajectory; raises DamagedError."""
    if value.get("schema_version") not in _VERSIONS:
        raise DamagedError(f"schema_version: must be {_VERSIONS[0]} to {_VERSIONS[-1]}")
    steps, agent = value["steps"], value["agent"]
    if value.get("continued_trajectory_ref") is not None:
        raise DamagedError("continued_trajectory_ref: goes on in another file, which is not read")
    turns: list[Json] = []
    for number, step in enumerate(steps):
        with inside("steps", number):
            turns_of_step = list(_turns_of(step))
            read_messages(turns_of_step)
        turns += turns_of_step
    metadata = {"agent": {key: agent[key] for key in agent if key != "tool_definitions"}}
    for key in _OF_A_RUN:
        if value.get(key) is not None:
            metadata[key] = value[key]
    run_id = value.get("trajectory_id") or value.get("session_id")
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
            lines = []
            for reference in result.get("subagent_trajectory_ref") or ():
                names_of_agent = [reference[key] for key in _NAMES if reference.get(key)]
                lines.append(f"[subagent: {[*names_of_agent, 'unnamed'][0]}]")
            content = "\n".join(lines)
        yield {
            "role": "tool",
            # Without an id it would be taken for the result of any call that has none yet.
            "tool_call_id": call_id or "",
            "name": names.get(call_id),
            "content": _chat_content(content),
            "extra": result.get("extra"),
        }


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
                run = trajectory(value)
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
    trajectory,
    is_trajectory,
    is_whole=True,
    source=Trajectory,
)
TRIAL = Form(
    "ATIF trajectory",
    (),
    trajectory,
    lambda head: head.path.is_dir() and is_trial(head.path),
    is_whole=True,
    source=Trial,
)
