"""Sessions of Codex, files that are one conversation: items of OpenAI's Responses API, without the
turns that were rolled back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.documents import inside
from pytest_jrh.sources.responses import ITEM_TYPES, turns_of
from pytest_jrh.sources.source import LINES, Conversation, Form, texts_in, unknown_notices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.core.documents import KeyPath
    from pytest_jrh.sources.source import Head

Json = dict[str, Any]
_WITH_PAYLOAD = (
    *("session_meta", "response_item", "event_msg", "turn_context", "compacted"),
    *("world_state", "inter_agent_communication_metadata"),
)
# The first line of sessions of 2025.
_OLD_HEAD = frozenset({"id", "timestamp", "instructions", "git"})
_METADATA = ("cwd", "originator", "cli_version", "model_provider")
# What Codex says in the user's place: whole texts, as a prompt may begin with `<`, too.
_SAID_BY_CODEX = re.compile(
    r"# agents\.md instructions.*</instructions>"
    r"|<(environment_context|extension_context|goal_context|hook_prompt|recommended_plugins|skill"
    r"|subagent_notification|turn_aborted|user_instructions|user_shell_command"
    r"|codex_internal_context|external_\w+)\b.*</\1>"
    r"|warning: (apply_patch was requested via |the maximum number of unified exec processes ).*",
    re.IGNORECASE | re.DOTALL,
)


def is_session(head: Head) -> bool:
    """Whether one of the first lines is of Codex."""
    for line in head.lines:
        kind = line.get("type")
        if not isinstance(kind, str) and {"id", "timestamp"} <= line.keys() <= _OLD_HEAD:
            return True
        if kind in _WITH_PAYLOAD and isinstance(line.get("payload"), dict):
            return True
    return False


def conversation(lines: Sequence[Json]) -> Conversation:
    """Read a session; raises DamagedError with the index of the line, and the path in it."""
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
            elif kind == "event_msg":
                _roll_back(items, prompts, line["payload"])
            elif kind not in _WITH_PAYLOAD and "record_type" not in line:
                unknown[str(kind or "no type")] = None
    return Conversation(
        messages=turns_of(items),
        id=texts_in(head, ("id",)).get("id"),
        system=texts_in(head.get("base_instructions"), ("text",)).get("text"),
        metadata={
            **texts_in(head, _METADATA),
            **texts_in(head.get("git"), ("branch",)),
            **metadata,
        },
        notices=unknown_notices(unknown),
    )


def _roll_back(items: list[tuple[KeyPath, Any]], prompts: list[int], event: Json) -> None:
    """Where the event says so, take out the last turns; each begins with a prompt."""
    if event.get("type") != "thread_rolled_back":
        return
    first = max(0, len(prompts) - event["num_turns"])
    if first < len(prompts):
        del items[prompts[first] :]
        del prompts[first:]


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


CODEX = Form("Codex session", LINES, conversation, is_session, is_whole=True)
