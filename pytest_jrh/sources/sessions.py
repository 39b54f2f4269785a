"""Files that are one conversation: sessions of Claude Code and of Codex, a response of OpenAI's
Responses API, and lists of its items or of messages.

A session is a log that a program keeps for itself. Those of its lines that are messages make the
conversation, and what else it holds is left out; kinds of lines that are not known here are named.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.config.rubrics import read_head
from pytest_jrh.config.values import InputFormat
from pytest_jrh.core.documents import (
    DamagedError,
    check_depth,
    dotted,
    line_in_json,
    listed,
    parsed,
    read_text,
    received,
)
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.text import counted
from pytest_jrh.sources.conversations import Conversations, check_message
from pytest_jrh.sources.json_items import LINES, FileItem, ItemFile, first_of_list
from pytest_jrh.sources.responses import ITEM_TYPES, PlacedItem, is_item, turns_of
from pytest_jrh.sources.source import Source, bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.core.documents import KeyPath


class Line(NamedTuple):
    """One line of a session: its number in the file, and its JSON object."""

    number: int
    value: dict[str, Any]

    def damaged(self, path: KeyPath, expected: str) -> DamagedError:
        """Make the error for the value at a path of one or two keys."""
        value: Any = self.value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return DamagedError(received(value, expected), path=path, line=self.number)

    def text(self, key: str) -> str | None:
        """The text under a key, None without; raises DamagedError for another value."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, str):
            raise self.damaged((key,), "text, or null")
        return value


class Session(NamedTuple):
    """What a session comes to: a conversation, how many lines of unknown kinds, of subagents, and
    of the program itself, it leaves out, and how many places have several branches.
    """

    conversation: dict[str, Any]
    counts: Counter[str]


CLAUDE_CODE = "Claude Code session"
CODEX = "Codex session"
ITEMS = "items of OpenAI's Responses API"
MESSAGES = "one conversation"

_OF_SUBAGENTS = "subagents"
_OF_PROGRAM = "the program"
_FORKS = "forks"
# Such as "API Error: 529", in a message of the assistant's.
_NO_MODEL = "<synthetic>"
_LOOKED_AT = 20
# The reader that knows lines is slow, so problems in larger files name none.
_MOST_BYTES_FOR_LINES = 5_000_000
_LONGEST_LOOKED_AT = 2**20
_CLAUDE_KEYS = frozenset({"sessionId", "session_id", "parentUuid", "leafUuid"})
_MESSAGE_TYPES = ("user", "assistant")
# What a session notes for itself.
_CLAUDE_TYPES = frozenset(
    {
        "system",
        "summary",
        "attachment",
        "progress",
        "result",
        "file-history-snapshot",
        "queue-operation",
        "last-prompt",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-color",
        "agent-setting",
        "mode",
        "permission-mode",
        "pr-link",
        "tag",
        "task-summary",
        "content-replacement",
        "attribution-snapshot",
        "stream_event",
        "rate_limit_event",
    }
)
# Lines that name no session; a session that was closed at once may have no others.
_CLAUDE_ALONE = frozenset({"file-history-snapshot"})
_CLAUDE_METADATA = ("cwd", "gitBranch", "version")
_CODEX_TYPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
)
_CODEX_TYPES |= {"world_state", "inter_agent_communication_metadata"}
_CODEX_METADATA = ("cwd", "originator", "cli_version", "model_provider")
_CODEX_HEAD = frozenset({"id", "timestamp", "instructions", "git"})
_RESPONSE = re.compile(r'"object"\s*+:\s*+"response"')
_ITEMS = re.compile(r'"(?:input|output)"\s*+:\s*+\[')


def form_of(path: Path) -> str | None:
    """What a file is that is one conversation; None for any other."""
    try:
        if path.suffix.lower() in LINES:
            return _form_of_lines(path)
        first = first_of_list(path)
    except OSError:
        return None
    if isinstance(first, dict) and "messages" not in first:
        if first.get("type") in ITEM_TYPES:
            return ITEMS
        return MESSAGES if "role" in first and "content" in first else None
    head = read_head(path).lstrip() if first is None else ""
    if not head.startswith("{") or ('"eval"' in head and '"version"' in head):
        return None
    has_items = '"role"' in head and _ITEMS.search(head)
    return ITEMS if has_items or _RESPONSE.search(head) else None


def is_response(path: Path) -> bool:
    """Whether a file is a response, or a list of items, of OpenAI's Responses API."""
    return form_of(path) == ITEMS


def _form_of_lines(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file, contextlib.suppress(DamagedError):
        for _ in range(_LOOKED_AT):
            line = file.readline(_LONGEST_LOOKED_AT)
            value = parsed(line) if line.strip() else {}
            if not line or not isinstance(value, dict) or "messages" in value:
                break
            if (form := _form_of_line(value)) is not None:
                return form
    return None


def _form_of_line(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    if not isinstance(kind, str):
        is_head = {"id", "timestamp"} <= value.keys() <= _CODEX_HEAD
        return CODEX if is_head else None
    if kind in _CODEX_TYPES and isinstance(value.get("payload"), dict):
        return CODEX
    if value.keys() & _CLAUDE_KEYS or kind in _CLAUDE_ALONE:
        return CLAUDE_CODE
    return ITEMS if kind in ITEM_TYPES else None


class Sessions(Conversations):
    """A file that is one conversation; its run is named by the session's id, one of a subagent by
    the agent's, and any other by the file.
    """

    suffixes = (*LINES, ".json")

    def _prepare(self) -> None:
        super()._prepare()
        # A session has one form.
        self._places = InputFormat()
        self._session = _SessionFile(self.path, self._most_bytes)
        self._file = self._session
        self.form = self._session.form or super().form

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file begins like one conversation."""
        return form_of(path) is not None

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """See `Source`: the metadata alone, since nothing else can be made some."""
        return Source.fields(self)

    def notices(self) -> tuple[str, ...]:
        """What was unusual, and which lines were left out without being known."""
        counts = self._session.counts
        notices = list(super().notices())
        if counts[_OF_SUBAGENTS]:
            lines = counted(counts[_OF_SUBAGENTS], "line")
            notices.append(f"{self.path.name}: {lines} of subagents left out")
        if counts[_OF_PROGRAM]:
            lines = counted(counts[_OF_PROGRAM], "line")
            notices.append(
                f"{self.path.name}: {lines} left out that Claude Code wrote in the agent's place, "
                "such as errors of the API"
            )
        if counts[_FORKS]:
            times = counted(counts[_FORKS], "time")
            notices.append(
                f"{self.path.name}: {times} a prompt was edited, or an answer asked for again; "
                "what was there before is in the conversation too, in the order of the file"
            )
        kinds = [kind for kind in counts if kind not in (_OF_SUBAGENTS, _OF_PROGRAM, _FORKS)]
        if kinds:
            notices.append(
                f"{self.path.name}: lines without a message left out whose types are not known: "
                f"{listed(kinds)}"
            )
        return tuple(notices)


class _SessionFile(ItemFile):
    """A file whose one item is all of it."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(path, most_bytes)
        self.counts: Counter[str] = Counter()
        self.form = form_of(path)

    def items(self) -> Iterator[tuple[FileItem, bytes]]:
        """The whole file; raises InputError where it cannot be read, or is too big."""
        data = bytes_of(self.path, self._most_bytes)
        yield FileItem(0, len(data), 1), data

    def place(self, item: FileItem) -> str:
        """The conversation in words."""
        del item
        return "its conversation"

    def problem(self, item: FileItem, error: DamagedError) -> Problem:
        """Make the problem of the conversation, with the line that it is in."""
        del item
        line = error.line
        if error.path and line is None:
            with contextlib.suppress(InputError):
                text = read_text(self.path, str(self.path), _MOST_BYTES_FOR_LINES)
                line = line_in_json(text, error.path)
        return Problem(str(error), str(self.path), line, dotted(error.path) or None, error.hint)

    def parsed(self, data: bytes) -> Any:
        """The conversation that the file comes to; raises DamagedError, with its line."""
        if not self.in_lines:
            value = parsed(data)
            check_depth(value)
            if isinstance(value, list):
                return {"id": self.path.stem, "messages": _turns_of_list(value)}
            return value if value.get("id") is not None else {**value, "id": self.path.stem}
        lines = list(_lines(data))
        if self.form == CLAUDE_CODE:
            session = claude_code_session(lines, self.path.stem)
        elif self.form == CODEX:
            session = codex_session(lines, self.path.stem)
        else:
            items = [_LineItem(line, (), line.value) for line in lines]
            conversation = {"id": self.path.stem, "messages": _turns_of_lines(items)}
            session = Session(conversation, Counter())
        self.counts = session.counts
        return session.conversation


def _lines(data: bytes) -> Iterator[Line]:
    rows = data.split(b"\n")
    for number, row in enumerate(rows, start=1):
        if not row.strip(b" \t\r\xef\xbb\xbf"):
            continue
        try:
            value = parsed(row)
            if not isinstance(value, dict):
                raise DamagedError(received(value, "an object with a type"))
            check_depth(value)
        except DamagedError as error:
            hint = None
            if number == len(rows):
                hint = "the line is cut off: copy the session again when it has ended, or remove it"
            raise DamagedError(str(error), hint, line=number) from None
        yield Line(number, value)


def _turns_of_list(values: list[Any]) -> list[Any]:
    if any(map(is_item, values)):
        return turns_of(PlacedItem((index,), value) for index, value in enumerate(values))
    for index, value in enumerate(values):
        try:
            check_message(value)
        except DamagedError as error:
            raise DamagedError(str(error), error.hint, (index,)) from None
    return values


class _LineItem(NamedTuple):
    """An item of OpenAI's Responses API in a line, and the keys that lead to it."""

    line: Line
    path: KeyPath
    item: Any


def _turns_of_lines(items: list[_LineItem]) -> list[Any]:
    try:
        return turns_of(
            PlacedItem((index, *item.path), item.item) for index, item in enumerate(items)
        )
    except DamagedError as error:
        index, *path = error.path
        number = items[int(index)].line.number
        raise DamagedError(str(error), error.hint, tuple(path), number) from None


def codex_session(lines: list[Line], name: str) -> Session:
    """Read a session of Codex: its items of OpenAI's Responses API, without the turns that were
    rolled back.

    The session's `name` is its id where it has none. Raises DamagedError.
    """
    items: list[_LineItem] = []
    prompts: list[int] = []
    head: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for line in lines:
        kind, payload = line.text("type"), line.value.get("payload")
        if kind in _CODEX_TYPES and not isinstance(payload, dict):
            raise line.damaged(("payload",), "an object")
        if kind == "response_item" or kind in ITEM_TYPES:
            # Sessions of 2025 have no payload.
            item = payload if kind == "response_item" else line.value
            if _is_prompt_of_codex(item):
                prompts.append(len(items))
            items.append(_LineItem(line, ("payload",) if item is payload else (), item))
        elif kind == "session_meta" or (kind is None and line.value.keys() <= _CODEX_HEAD):
            head = head or payload or line.value
        elif kind == "turn_context":
            metadata |= _texts_of(payload, ("model",))
        elif kind == "compacted":
            items += _summary_of_codex(line)
        elif kind == "event_msg":
            _roll_back(items, prompts, line)
        elif kind not in _CODEX_TYPES and "record_type" not in line.value:
            counts[kind or "no type"] += 1
    conversation = {
        "id": head.get("id") or name,
        "system": _texts_of(head.get("base_instructions"), ("text",)).get("text"),
        "messages": _turns_of_lines(items),
        "metadata": {
            **_texts_of(head, _CODEX_METADATA),
            **_texts_of(head.get("git"), ("branch",)),
            **metadata,
        },
    }
    return Session(conversation, counts)


def _texts_of(value: Any, keys: Sequence[str]) -> dict[str, str]:
    """The texts that an object has under the keys."""
    fields = value if isinstance(value, dict) else {}
    return {key: fields[key] for key in keys if isinstance(fields.get(key), str)}


def _roll_back(items: list[_LineItem], prompts: list[int], line: Line) -> None:
    """Where the line says so, take out the last turns; each begins with a prompt, of which
    `prompts` has the positions.
    """
    if line.value["payload"].get("type") != "thread_rolled_back":
        return
    count = line.value["payload"].get("num_turns")
    if type(count) is not int or count < 0:
        raise line.damaged(("payload", "num_turns"), "an integer >= 0")
    first = max(0, len(prompts) - count)
    if first < len(prompts):
        del items[prompts[first] :]
        del prompts[first:]


def _summary_of_codex(line: Line) -> list[_LineItem]:
    """The message in the place of what was said before, where it is not encrypted."""
    summary = line.value["payload"].get("message")
    if summary is not None and not isinstance(summary, str):
        raise line.damaged(("payload", "message"), "text, or null")
    return [_LineItem(line, (), {"role": "user", "content": summary})] if summary else []


# How what Codex says in the user's place begins, in lower case: a prompt can begin with `<`, too.
_SAID_BY_CODEX = (
    "# agents.md",
    "<environment_context>",
    "<instructions>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_instructions>",
    "<user_shell_command>",
)


def _is_prompt_of_codex(item: Any) -> bool:
    """Whether the user said it, and not the program in the user's place."""
    if not isinstance(item, dict) or item.get("role") != "user":
        return False
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else content
    return not (isinstance(text, str) and text.lower().startswith(_SAID_BY_CODEX))


def claude_code_session(lines: list[Line], name: str) -> Session:
    """Read a session of Claude Code, or of one of its subagents.

    The lines of one message are joined, all in the order of the file, also those of prompts that
    were edited and of answers that were asked for again: the agent did what it did before. The
    session's `name` is its id where it has none. Raises DamagedError.
    """
    counts: Counter[str] = Counter()
    messages: list[Line] = []
    for line in lines:
        kind = line.text("type")
        attachment = line.value.get("attachment")
        if kind in _MESSAGE_TYPES:
            _check_message(line)
            messages.append(line)
        elif isinstance(attachment, dict) and attachment.get("type") == "queued_command":
            messages.append(_queued_prompt(line, attachment.get("prompt")))
        elif kind not in _CLAUDE_TYPES:
            if isinstance(line.value.get("message"), dict):
                raise line.damaged(("type",), f"one of {listed(_MESSAGE_TYPES)} with a message")
            counts[kind or "no type"] += 1
    said = [line for line in messages if line.value["message"].get("model") != _NO_MODEL]
    counts[_OF_PROGRAM], messages = len(messages) - len(said), said
    main = [line for line in messages if not _is_of_subagent(line)]
    counts[_OF_SUBAGENTS] = len(messages) - len(main) if main else 0
    messages = main or messages
    messages = _once(lines, messages)
    counts[_FORKS] = _forks(messages)
    turns = _joined_turns(messages)
    metadata: dict[str, Any] = {}
    session_id = agent_id = None
    for line in messages:
        metadata |= _texts_of(line.value, _CLAUDE_METADATA)
        metadata |= _texts_of(line.value["message"], ("model",))
        session_id = line.text("sessionId") or line.text("session_id") or session_id
        agent_id = line.text("agentId") if not main else None
    run_id = f"agent-{agent_id}" if agent_id else session_id or name
    conversation = {"id": run_id, "messages": turns, "metadata": metadata}
    return Session({**conversation, "cluster": session_id or name}, counts)


def _is_of_subagent(line: Line) -> bool:
    return line.value.get("isSidechain") is True or bool(line.value.get("parent_tool_use_id"))


def _check_message(line: Line) -> None:
    message = line.value.get("message")
    if not isinstance(message, dict):
        raise line.damaged(("message",), "an object with role and content")
    if message.get("role") not in _MESSAGE_TYPES:
        raise line.damaged(("message", "role"), f"one of {listed(_MESSAGE_TYPES)}")
    if not isinstance(message.get("content"), str | list):
        raise line.damaged(("message", "content"), "text, or a list of parts")
    try:
        check_message({"role": message["role"], "content": message["content"]})
    except DamagedError as error:
        raise DamagedError(str(error), error.hint, ("message",), line.number) from None


def _queued_prompt(line: Line, prompt: Any) -> Line:
    """What the user said while the agent was at work, as a message."""
    if not isinstance(prompt, str | list):
        raise line.damaged(("attachment", "prompt"), "text, or a list of parts")
    message = {"role": "user", "content": prompt}
    queued = Line(line.number, {**line.value, "message": message, "isMeta": True})
    _check_message(queued)
    return queued


def _joined_turns(lines: list[Line]) -> list[dict[str, Any]]:
    """The messages of lines, those with the id of one message as one, each of its parts once."""
    turns: list[dict[str, Any]] = []
    parts_by_id: dict[str, dict[str, Any]] = {}
    for line in lines:
        message = line.value["message"]
        content, message_id = message["content"], message.get("id")
        turn = {"role": message["role"], "content": content}
        if not isinstance(message_id, str):
            turns.append(turn)
            continue
        if message_id not in parts_by_id:
            parts_by_id[message_id] = {}
            turns.append({**turn, "content": parts_by_id[message_id].values()})
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            parts_by_id[message_id].setdefault(json.dumps(part, sort_keys=True), part)
    return [{**turn, "content": _as_content(turn["content"])} for turn in turns]


def _as_content(content: Any) -> str | list[Any]:
    return content if isinstance(content, str) else list(content)


def _once(lines: list[Line], messages: list[Line]) -> list[Line]:
    """The messages in the order of the file, one that was written twice once."""
    by_uuid: dict[str, Line] = {}
    repeated: set[int] = set()
    for line in lines:
        uuid = line.text("uuid")
        first = by_uuid.setdefault(uuid, line) if uuid else line
        if first is not line:
            repeated.add(line.number)
            if line.value.get("message") != first.value.get("message"):
                mistake = f"line {first.number} has the same uuid, and another message"
                raise DamagedError(mistake, path=("uuid",), line=line.number)
    return [line for line in messages if line.number not in repeated]


def _forks(messages: list[Line]) -> int:
    """How many prompts, and answers, stand where another one does: after the same line."""
    alternatives: dict[tuple[str | None, str], set[str | int]] = {}
    for line in messages:
        kind, name = _kind_and_name(line)
        if kind and "parentUuid" in line.value:
            parent = line.text("parentUuid") or line.text("logicalParentUuid")
            alternatives.setdefault((parent, kind), set()).add(name)
    return sum(len(names) - 1 for names in alternatives.values())


def _kind_and_name(line: Line) -> tuple[str, str | int]:
    """What a line may take the place of: an answer, whose lines share a name, or a prompt; nothing
    for what a program wrote.
    """
    message = line.value["message"]
    if message["role"] == "assistant":
        name = message.get("id")
        return "answer", name if isinstance(name, str) else line.number
    is_result = isinstance(message["content"], list) and any(
        isinstance(part, dict) and part.get("type") == "tool_result" for part in message["content"]
    )
    is_prompt = not (is_result or line.value.get("isMeta") or line.value.get("isCompactSummary"))
    return ("prompt" if is_prompt else ""), line.number
