"""Sessions of coding agents, the logs that Claude Code and Codex keep for themselves; and items of
OpenAI's Responses API, which those of Codex consist of, as chat messages.

Items follow each other where a chat has messages: what the model says, thinks and calls up to the
next result or the user's next message is one message of the assistant. The ids of items are left
out, as messages of chats have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from pytest_jrh.core import Json, counted, listed, received, shown
from pytest_jrh.core.documents import DamagedError, KeyPath, inside
from pytest_jrh.sources.chat import (
    TEXTS,
    block_of,
    fields_of,
    first_in,
    json_text,
    listed_parts,
    parts_of,
    provider_call,
    read_call,
    read_message,
)
from pytest_jrh.sources.source import LINES, Conversation, Form, Head, at, texts_in

# What the agent's own code runs: the name of the tool, where not the item names it, and the fields
# that are its arguments.
_CALLS = {
    "function_call": ("", ("arguments",)),
    "custom_tool_call": ("", ("input",)),
    "computer_call": ("computer", ("action", "actions")),
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
    "tool_search_call": ("tool_search", ("arguments",)),
    "mcp_approval_request": ("mcp_approval", ("server_label", "name", "arguments")),
    "program": ("program", ("code",)),
}
# The fields with the result.
_RESULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((f"{call}_output" for call in list(_CALLS)[:6]), ("output",)),
    "tool_search_output": ("tools",),
    "mcp_approval_response": ("approve", "reason"),
    "program_output": ("result",),
}
# What the provider runs: Inspect's name for the kind, that of the tool, and the fields that are its
# arguments and its result.
_RUN_BY_PROVIDER = {
    "web_search_call": ("web_search", "web_search", "action", "results"),
    "file_search_call": ("web_search", "file_search", "queries", "results"),
    "code_interpreter_call": ("code_execution", "code_interpreter", "code", "outputs"),
    "mcp_call": ("mcp_call", "", "arguments", "output"),
}
_THOUGHTS = ("reasoning", "compaction", "compaction_summary", "context_compaction")
# What nobody said or did: a list of tools, or a mark of the program that asks.
_NOTHING = ("mcp_list_tools", "additional_tools", "compaction_trigger", "ghost_snapshot")
ITEM_TYPES = (
    "message",
    *_CALLS,
    *_RUN_BY_PROVIDER,
    "image_generation_call",
    *_RESULTS,
    *_THOUGHTS,
    *_NOTHING,
    "agent_message",
    "item_reference",
)
"""The types of items that are known here."""
# The parts of a result; a list of anything else is JSON.
_PART_TYPES = "refusal input_image input_file input_audio computer_screenshot encrypted_content"
_MOST_NAMED = 40
LOG_ITEMS = "log the items themselves, or remove this conversation from the file"


def with_items_read(values: Sequence[Any], path: KeyPath = ()) -> list[Any]:
    """Messages; where some are items, those that all of them make."""
    for value in values:
        # What no chat has: of a known type, and without a role.
        if at(value, "/role") is None and at(value, "/type") in ITEM_TYPES:
            return turns_of(((*path, index), item) for index, item in enumerate(values))
    return list(values)


Item: TypeAlias = "tuple[KeyPath, Any]"
"""An item with its path."""


def turns_of(items: Iterable[Item]) -> list[Json]:
    """The messages that items make; raises DamagedError, with its path, for one that is not known
    or cannot be read.
    """
    turns: list[Json] = []
    is_said = False
    for path, item in items:
        with inside(*path):
            turn = _turn_of(item)
        if turn is None:
            continue
        goes_on, is_said = is_said, turn["role"] == "assistant" and "name" not in turn
        if goes_on and is_said:
            turns[-1]["content"] += turn["content"]
            turns[-1]["tool_calls"] += turn["tool_calls"]
        else:
            turns.append(turn)
    return turns


def _turn_of(item: Any) -> Json | None:
    """The message that an item makes, or its part of one; None where nobody said or did it."""
    if not isinstance(item, dict):
        raise DamagedError(received(item, 'an object with a "type"'))
    kind = item.get("type", "message" if "role" in item else None)
    if kind not in ITEM_TYPES:
        raise DamagedError(
            received(kind, f"one of {listed(ITEM_TYPES, _MOST_NAMED)}"), path=("type",)
        )
    if kind == "item_reference":
        raise DamagedError("refers to an item that is not in the file", LOG_ITEMS)
    if kind in _NOTHING:
        return None
    if kind == "message":
        return _message(item)
    if kind == "agent_message":
        # What another agent said to this one, which came in the user's place.
        return _message({"role": "user", "content": item.get("content")})
    if kind in _RESULTS:
        return _result(item, _RESULTS[kind])
    content, calls = [], []
    if kind in _CALLS:
        calls = [_call(item)]
    elif kind in _RUN_BY_PROVIDER:
        content = [_provider_call(item)]
    elif kind == "image_generation_call":
        media_type = f"image/{item.get('output_format') or 'png'}"
        data = json_text(item.get("result"))
        content = [block_of("image", f"data:{media_type};base64,{data}")]
    else:
        # The thought itself counts, where the item has it, before its summary.
        blocks = parts_of(item.get("content") or item.get("summary"), {}).blocks
        encrypted = item.get("encrypted_content")
        if blocks:
            texts = [json_text(block.get("text")) for block in blocks]
            content = [block_of("reasoning", "\n".join(texts))]
        elif isinstance(encrypted, str):
            content = [block_of("reasoning", encrypted, redacted=True)]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _message(item: Json) -> Json:
    role, content = item.get("role"), item.get("content")
    read_message({"role": role, "content": content})
    if role == "assistant" and "name" not in item:
        calls = [*(item.get("tool_calls") or ())]
        return {"role": role, "content": [*listed_parts(content)], "tool_calls": calls}
    # The results of a chat stand among items where a program keeps both, as what one of several
    # assistants says does.
    if role in ("tool", "function", "assistant"):
        return item
    return {"role": role, "content": content, **texts_in(item, "name")}


def _id_of(item: Json) -> str | None:
    """The id of a call, of itself or of its result."""
    return json_text(first_in(item, ("call_id", "approval_request_id", "id"))) or None


def _call(item: Json) -> Json:
    kind = item["type"]
    tool, fields = _CALLS[kind]
    name = tool or item.get("name")
    if name and not tool and isinstance(item.get("namespace"), str):
        name = f"{item['namespace']}.{name}"
    arguments: Any = fields_of(item, fields)
    if kind == "function_call":
        arguments = item.get("arguments")
    elif len(arguments) == 1:
        [argument] = arguments.values()
        if isinstance(argument, dict):
            arguments = argument
    call_type = "custom" if kind == "custom_tool_call" else "function"
    return read_call({"id": _id_of(item), "name": name, "arguments": arguments, "type": call_type})


def _result(item: Json, fields: Sequence[str]) -> Json:
    """What a tool gave: text, or parts, or JSON as text."""
    result: Any = fields_of(item, fields)
    if len(fields) == 1:
        result = item.get(fields[0])
    types = [*TEXTS, *_PART_TYPES.split()]
    if at(result, "/type") == "computer_screenshot":
        result = [result]
    elif not isinstance(result, list) or not all(at(part, "/type") in types for part in result):
        result = json_text(result)
    turn = {"role": "tool", "tool_call_id": _id_of(item), "content": result}
    if item.get("status") == "failed":
        turn["is_error"] = True
    return turn


def _provider_call(item: Json) -> Json:
    kind, name, field, result_field = _RUN_BY_PROVIDER[item["type"]]
    arguments = item.get(field)
    if name or not isinstance(arguments, str):
        arguments = fields_of(item, (field,))
    error, result = item.get("error"), item.get(result_field)
    if error and result is None:
        result = ""
    block = provider_call(kind, item, name or item.get("name"), arguments, result)
    if error:
        block["error"] = json_text(error)
    return block


_UNKNOWN = "left out lines without a message, whose types are not known: "
_KEYS = {"sessionId", "session_id", "parentUuid", "leafUuid"}
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
_OTHERS = {*_NOTES.split(), _SNAPSHOT}
_CLAUDE_METADATA = ("cwd", "gitBranch", "version", "model")
_CLAUDE_IDS = ("sessionId", "session_id", "agentId")


def is_claude_code(head: Head) -> bool:
    """Whether one of the first lines is of Claude Code."""
    for line in head.first_objects if head.is_lines else ():
        if isinstance(line.get("type"), str) and (line.keys() & _KEYS or line["type"] == _SNAPSHOT):
            return True
    return False


def claude_code(lines: Sequence[Json]) -> Conversation:
    """Read a session of Claude Code, or of one of its subagents.

    The lines of one message are joined, all in the order of the file, also those of prompts that
    were edited and of answers that were asked for again: the agent did what it did before. Raises
    DamagedError with the index of the line, and the path in it.
    """
    # Messages, each with the line that it stands in.
    of_agent = []
    of_subagents = []
    of_program = 0
    unknown: dict[str, None] = {}
    by_uuid: dict[Any, Json] = {}
    for index, line in enumerate(lines):
        with inside(index):
            message, uuid = _message_of(line, unknown), line.get("uuid")
            # One that was written twice counts once.
            if message is None or (uuid and by_uuid.get(uuid) == message):
                continue
            by_uuid[uuid] = message
            if message.get("model") == _NO_MODEL:
                of_program += 1
            elif line.get("isSidechain") is True or line.get("parent_tool_use_id"):
                of_subagents.append((line, message))
            else:
                of_agent.append((line, message))
    notices = []
    if of_agent and of_subagents:
        notices.append(f"left out {counted(len(of_subagents), 'line')} of subagents")
    if of_program:
        notices.append(
            f"left out {counted(of_program, 'line')} that Claude Code wrote in the agent's place, "
            "such as API errors"
        )
    if unknown:
        notices.append(_UNKNOWN + listed(unknown))
    fields: dict[str, str] = {}
    # The file of a subagent holds nothing else.
    chosen = of_agent or of_subagents
    for line, message in chosen:
        fields |= texts_in(line, *_CLAUDE_METADATA, *_CLAUDE_IDS) | texts_in(message, "model")
    run_id = session_id = fields.get("sessionId") or fields.get("session_id")
    if not of_agent and fields.get("agentId"):
        run_id = f"agent-{fields['agentId']}"
    return Conversation(
        messages=_joined_turns(message for _, message in chosen),
        id=run_id,
        cluster=session_id,
        metadata=fields_of(fields, _CLAUDE_METADATA),
        notices=notices,
    )


def _message_of(line: Json, unknown: dict[str, None]) -> Json | None:
    """The message of a line, or what the user said while the agent was at work; None without.

    What a session notes is left out, and if its type is not known here it is noted in `unknown`.
    """
    kind = line.get("type")
    if kind in _MESSAGES:
        with inside("message"):
            message: Json = line["message"]
            read_message({"role": message["role"], "content": message["content"]})
        return message
    if at(line, "/attachment/type") == "queued_command":
        queued = {"role": "user", "content": at(line, "/attachment/prompt")}
        with inside("attachment", "prompt"):
            read_message(queued)
        return queued
    if kind not in _OTHERS:
        if isinstance(line.get("message"), dict):
            problem = f'got {shown(kind)}; must be "user" or "assistant" in a line with a message'
            raise DamagedError(problem, path=("type",))
        unknown[str(kind or "no type")] = None
    return None


def _joined_turns(messages: Iterable[Json]) -> list[Json]:
    """The messages of lines, those with the id of one message as one, each of its parts once."""
    turns: dict[int | str, Json] = {}
    for number, message in enumerate(messages):
        message_id = texts_in(message, "id").get("id")
        turn = {"role": message["role"], "content": {}}
        turn = turns.setdefault(number if message_id is None else message_id, turn)
        for place, part in enumerate(listed_parts(message["content"])):
            key = place if message_id is None else json.dumps(part, sort_keys=True)
            turn["content"].setdefault(key, part)
    return [{**turn, "content": [*turn["content"].values()]} for turn in turns.values()]


CLAUDE_CODE = Form("Claude Code session", LINES, claude_code, is_claude_code, is_whole=True)

_WITH_PAYLOAD = (
    "session_meta response_item event_msg turn_context compacted world_state "
    "inter_agent_communication_metadata"
)
_CODEX_METADATA = ("cwd", "originator", "cli_version", "model_provider")


def is_codex(head: Head) -> bool:
    """Whether one of the first lines is of Codex."""
    return head.is_lines and any(
        line.get("type") in _WITH_PAYLOAD.split() and isinstance(line.get("payload"), dict)
        for line in head.first_objects
    )


def codex(lines: Sequence[Json]) -> Conversation:
    """Read a session of Codex: items of OpenAI's Responses API, those of turns that were rolled
    back, too, as the agent did what it did before.

    Raises DamagedError with the index of the line, and the path in it.
    """
    items: list[Item] = []
    head: Json = {}
    metadata: dict[str, str] = {}
    unknown: dict[str, None] = {}
    rolled_back = 0
    for index, line in enumerate(lines):
        with inside(index):
            kind, payload = line.get("type"), line.get("payload")
            rolled_back += at(payload, "/type") == "thread_rolled_back"
            if kind == "response_item":
                items.append(((index, "payload"), payload))
            elif kind == "session_meta":
                head = head or payload or {}
            elif kind == "turn_context":
                metadata |= texts_in(payload, "model")
            elif kind == "compacted":
                # The message in the place of what was said before, where it is not encrypted.
                summary = line["payload"].get("message")
                if summary:
                    items.append(((index,), {"role": "user", "content": summary}))
            elif kind not in _WITH_PAYLOAD.split():
                unknown[str(kind or "no type")] = None
    notices = []
    if rolled_back:
        notices.append(
            f"turns were rolled back {counted(rolled_back, 'time')}; the transcript keeps them"
        )
    if unknown:
        notices.append(_UNKNOWN + listed(unknown))
    return Conversation(
        messages=turns_of(items),
        id=texts_in(head, "id").get("id"),
        system=at(head, "/base_instructions/text"),
        metadata=texts_in(head, *_CODEX_METADATA) | texts_in(head.get("git"), "branch") | metadata,
        notices=notices,
    )


CODEX = Form("Codex session", LINES, codex, is_codex, is_whole=True)
