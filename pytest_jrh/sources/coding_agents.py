"""Sessions of coding agents: the logs that Claude Code and Codex keep for themselves, each file of
which is one conversation.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_jrh.core.documents import DamagedError, inside, listed, received
from pytest_jrh.core.text import counted
from pytest_jrh.sources.chat import check_message, has_results
from pytest_jrh.sources.responses import ITEM_TYPES, turns_of
from pytest_jrh.sources.source import LINES, Conversation, Form, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.documents import KeyPath
    from pytest_jrh.sources.source import Head

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
