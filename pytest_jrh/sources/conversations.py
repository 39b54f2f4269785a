"""Runs from a file of conversations: indexed once, each read when it is asked for.

Messages of OpenAI's and of Anthropic's chat formats, with the parts of their contents, become those
of Inspect's logs; which result belongs to which tool call is known by their ids, else by name and
order.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_jrh.core.documents import (
    DamagedError,
    check_depth,
    parsed,
    pointer_to,
    printable,
    shown,
)
from pytest_jrh.core.errors import MOST_PROBLEMS, InputError, Problem
from pytest_jrh.core.model import AgentRun, RunSummary, Skip
from pytest_jrh.core.transcript import ROLES, is_role, message_text, storable
from pytest_jrh.sources.json_items import (
    KEY,
    LINES,
    NO_ANSWER,
    UNREAD_ANSWER,
    FileItem,
    Identity,
    ItemFile,
    begins_list,
    has_no_answer,
    has_unread_answer,
    identity,
    is_one_conversation,
    messages_of,
    metadata_of,
    system_of,
    text_of,
)
from pytest_jrh.sources.responses import NO_RESULT
from pytest_jrh.sources.source import Source, changed_note, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class OpenCalls:
    """The calls of a conversation that have no result yet, in their order."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, str]] = {}
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._all: deque[int] = deque()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, call_id: str, function: str) -> None:
        """Note a call."""
        number = next(self._numbers)
        self._open[number] = (call_id, function)
        self._by_id.setdefault(call_id, deque()).append(number)
        self._by_name.setdefault(function, deque()).append(number)
        self._all.append(number)

    def take(self, call_id: str | None, function: str | None) -> tuple[str, str] | None:
        """Take out the call that a result belongs to: its id and function; None where there is
        none.

        A result that names no call belongs to the first open one of its function, or of any where
        it names no function either.
        """
        if call_id is not None:
            waiting = self._by_id.get(call_id)
        else:
            waiting = self._by_name.get(function) if function is not None else self._all
        while waiting:
            call = self._open.pop(waiting.popleft(), None)
            if call is not None:
                return call
        return None


Block = dict[str, Any]
_TEXTS = frozenset({"text", "input_text", "output_text"})
_TEXT_KEYS = frozenset({"type", "text", "cache_control"})
_RUN_BY_PROVIDER = frozenset({"server_tool_use", "mcp_tool_use"})
_AS_THEY_ARE = frozenset({"reasoning", "audio", "video", "data"})


@dataclass(slots=True)
class Parts:
    """What the content of one message holds: blocks, and Anthropic's calls and results."""

    blocks: list[Block] = field(default_factory=list)
    calls: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)

    @property
    def content(self) -> str | list[Block]:
        """The blocks as the content of a message: text alone is a text."""
        if not self.blocks:
            return ""
        if len(self.blocks) == 1 and self.blocks[0].keys() == {"type", "text"}:
            return str(self.blocks[0]["text"])
        return self.blocks


def parts_of(content: Any) -> Parts:
    """Read the content of a message; raises DamagedError, in words that follow "message N"."""
    parts = Parts()
    if content is None:
        return parts
    if isinstance(content, str):
        parts.blocks.append({"type": "text", "text": content})
        return parts
    if not isinstance(content, list):
        raise DamagedError(
            f"has {shown(content)} as its content; must be text, null or a list of parts"
        )
    by_id: dict[str, Block] = {}
    for part in content:
        _add(parts, part, by_id)
    return parts


def data_url(media_type: Any, data: Any) -> str:
    """Write media as a data URL."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def _add(parts: Parts, part: Any, by_id: dict[str, Block]) -> None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if not isinstance(part, dict):
        raise DamagedError(f"has a part that is {shown(part)}; must be an object with a type")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise DamagedError("has a part without a type")
    if kind == "tool_use" and "input" in part:
        parts.calls.append(part)
    elif kind == "tool_result":
        parts.results.append(part)
    elif kind in _RUN_BY_PROVIDER:
        block = _provider_call(part)
        by_id[str(part.get("id"))] = block
        parts.blocks.append(block)
    elif kind.endswith("_tool_result") and str(part.get("tool_use_id")) in by_id:
        by_id[str(part.get("tool_use_id"))]["result"] = _as_text(part.get("content"))
    else:
        parts.blocks.append(_block(kind, part))


def _block(kind: str, part: Block) -> Block:
    if kind in _TEXTS:
        return _text(part)
    if kind == "refusal":
        return {"type": "text", "text": _as_text(part.get("refusal")), "refusal": True}
    if kind == "thinking":
        block = {"type": "reasoning", "reasoning": _as_text(part.get("thinking"))}
        return block | _picked(part, "signature")
    if kind == "redacted_thinking":
        return {"type": "reasoning", "reasoning": _as_text(part.get("data")), "redacted": True}
    if kind in _AS_THEY_ARE:
        return part
    written = _written(kind, part)
    return _media(kind, part) if written is None else {"type": "text", "text": written}


def _written(kind: str, part: Block) -> str | None:
    """The text of a document that is text, or of what a search found, behind its title; None of
    what is neither.
    """
    source = part.get("source")
    content = part.get("content")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        content = source.get("data")
    elif kind != "search_result":
        return None
    texts = [str(block.get("text", "")) for block in parts_of(content).blocks]
    return "\n".join([f"[{kind}: {_as_text(part.get('title')) or 'text'}]", *texts])


def _text(part: Block) -> Block:
    block: Block = {"type": "text", "text": _as_text(part.get("text"))}
    other_fields = {key: value for key, value in part.items() if key not in _TEXT_KEYS and value}
    return {"internal": other_fields, **block} if other_fields else block


def _media(kind: str, part: Block) -> Block:
    """Media, with their data where Inspect has it; of an unknown kind as they are."""
    if kind in ("image_url", "input_image"):
        link = part.get("image_url")
        at = link if isinstance(link, dict) else {"url": link, **part}
        return {"type": "image", "image": _as_text(at.get("url"))} | _picked(at, "detail")
    if kind in ("image", "document") and isinstance(part.get("source"), dict):
        source = part["source"]
        where = source.get("url") or data_url(source.get("media_type"), source.get("data"))
        file_name = {"filename": part["title"]} if part.get("title") else {}
        return {"type": kind, kind: _as_text(where)} | file_name
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        form = audio.get("format")
        return {"type": "audio", "audio": data_url(f"audio/{form}", audio.get("data"))} | _picked(
            audio, "format"
        )
    if kind in ("file", "input_file"):
        file = part["file"] if isinstance(part.get("file"), dict) else part
        data = next((file[key] for key in ("file_data", "file_url", "file_id") if key in file), "")
        return {"type": "document", "document": _as_text(data)} | _picked(file, "filename")
    return part


def _provider_call(part: Block) -> Block:
    return {
        "type": "tool_use",
        "tool_type": "mcp_call" if part["type"] == "mcp_tool_use" else "web_search",
        "id": _as_text(part.get("id")),
        "name": _as_text(part.get("name")),
        "arguments": _as_text(part.get("input")),
        "result": NO_RESULT,
    }


def _picked(part: Block, key: str) -> Block:
    return {key: part[key]} if isinstance(part.get(key), str) else {}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


WITHOUT_RESULT = "tool calls without a result"
WITHOUT_CALL = "results without a tool call"
OTHER_ROLES = f"roles other than {', '.join(ROLES)}"

_ROLES = {"developer": "system", "function": "tool"}
_KNOWN = frozenset(
    {
        "role",
        "content",
        "id",
        "tool_calls",
        "function_call",
        "tool_call_id",
        "refusal",
        "reasoning",
        "reasoning_content",
        "is_error",
        "error",
    }
)
# Where others have what a message says: Gemini, ShareGPT, and programs of one's own.
_NOT_CONTENT = ("parts", "text", "value", "message", "output")
Made = dict[str, Any]


def read_messages(turns: list[Any], system: Any = None) -> tuple[tuple[Made, ...], tuple[str, ...]]:
    """Convert messages, and say in words what is unusual about them.

    Calls and results are paired; what has no counterpart is kept, as is a message of an unknown
    role. Anthropic's results of tools become messages of their own. Raises DamagedError naming the
    message that cannot be read.
    """
    reader = _Reader()
    if system is not None:
        reader.add({"role": "system", "content": system})
    for index, turn in enumerate(turns):
        try:
            reader.add(turn)
        except DamagedError as error:
            raise DamagedError(f"message {index} {error}") from None
    if reader.open:
        reader.unusual[WITHOUT_RESULT] = None
    return tuple(reader.made), tuple(reader.unusual)


def check_message(turn: Any) -> None:
    """Raise DamagedError for a message that cannot be read, in words that follow its place."""
    _Reader().add(turn)


class _Reader:
    def __init__(self) -> None:
        self.made: list[Made] = []
        self.unusual: dict[str, None] = {}
        self.open = OpenCalls()

    def add(self, turn: Any) -> None:
        """Convert one message, which may become several."""
        if not isinstance(turn, dict):
            raise DamagedError(f"is {shown(turn)}; must be an object with a role")
        role = turn.get("role")
        if not isinstance(role, str) or not is_role(role):
            raise DamagedError(f"has the role {shown(role)}; must be one of {', '.join(ROLES)}")
        elsewhere = [key for key in _NOT_CONTENT if "content" not in turn and turn.get(key)]
        if elsewhere:
            raise DamagedError(f"has {elsewhere[0]} in place of content")
        role = _ROLES.get(role, role)
        if role == "tool":
            self._add_result(turn, turn.get("tool_call_id"), turn.get("content"))
            return
        if role not in ROLES:
            self.unusual[OTHER_ROLES] = None
        parts = parts_of(turn.get("content"))
        for result in parts.results:
            self._add_result(result, result.get("tool_use_id"), result.get("content"))
        calls = [*_calls(turn), *map(_anthropic_call, parts.calls)]
        if parts.results and not parts.blocks and not calls:
            return
        message = self._message(turn, role, parts)
        if calls:
            message["tool_calls"] = [self._opened(call) for call in calls]
        self.made.append(message)

    def _message(self, turn: Made, role: str, parts: Parts) -> Made:
        refusal = turn.get("refusal")
        if isinstance(refusal, str) and refusal:
            parts.blocks.append({"type": "text", "text": refusal, "refusal": True})
        audio = turn.get("audio")
        if not parts.blocks and isinstance(audio, dict) and audio.get("transcript"):
            parts.blocks.append({"type": "text", "text": _as_text(audio["transcript"])})
        thought = turn.get("reasoning_content") or turn.get("reasoning")
        if isinstance(thought, str):
            parts.blocks.insert(0, {"type": "reasoning", "reasoning": thought})
        return {**_head(turn, parts), "role": role}

    def _opened(self, call: Made) -> Made:
        call["id"] = call["id"] or f"call-{len(self.made)}-{call['function']}"
        self.open.add(call["id"], call["function"])
        return call

    def _add_result(self, turn: Made, call_id: Any, content: Any) -> None:
        name = turn.get("name") or turn.get("function")
        call = self.open.take(
            call_id if isinstance(call_id, str) else None, name if isinstance(name, str) else None
        )
        if call is None:
            self.unusual[WITHOUT_CALL] = None
        own_id, function = call or (call_id, name)
        if isinstance(content, dict | int | float):
            content = json.dumps(content, ensure_ascii=False)
        parts = parts_of(content)
        # Blocks that are no content of a result have no other place.
        parts.blocks += parts.calls + parts.results
        message = {**_head(turn, parts), "role": "tool"}
        error = _error(turn, message)
        for key, value in (("tool_call_id", own_id), ("function", name or function)):
            if isinstance(value, str):
                message[key] = value
        self.made.append(message | error)


def _head(turn: Made, parts: Parts) -> Made:
    """The keys that every message has, in Inspect's order; others are kept as its metadata."""
    head: Made = {"id": turn["id"]} if isinstance(turn.get("id"), str) else {}
    head["content"] = parts.content
    known_keys = (
        {*_KNOWN, "name", "function"} if turn.get("role") in ("tool", "function") else _KNOWN
    )
    fields = {
        key: value
        for key, value in turn.items()
        if key not in known_keys and value not in (None, [], {}, "")
    }
    if fields and "tool_use_id" not in turn:
        head["metadata"] = fields
    return head


def definitions_of(value: Any) -> list[dict[str, Any]]:
    """The definitions of tools in `tools` of a conversation, as OpenAI's API has them or
    Anthropic's: each with a name and the JSON schema of its arguments.
    """
    listed_tools = value.get("tools") if isinstance(value, dict) else None
    definitions: list[dict[str, Any]] = []
    for entry in listed_tools if isinstance(listed_tools, list) else ():
        definition = entry.get("function", entry) if isinstance(entry, dict) else None
        if isinstance(definition, dict) and isinstance(definition.get("name"), str):
            parameters = definition.get("parameters", definition.get("input_schema"))
            definitions.append({"name": definition["name"], "parameters": parameters})
    return definitions


def _error(turn: Made, message: Made) -> Made:
    """The error of a tool: Inspect's, or a result that Anthropic marks as one."""
    error = turn.get("error")
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        return {"error": {"type": error["type"], "message": str(error.get("message", ""))}}
    if error or turn.get("is_error") is True:
        reason = str(error) if isinstance(error, str) else ""
        if not reason and isinstance(message["content"], str):
            reason, message["content"] = message["content"], ""
        return {"error": {"type": "unknown", "message": reason}}
    return {}


def _calls(turn: Made) -> list[Made]:
    entries = turn.get("tool_calls")
    if entries is not None and not isinstance(entries, list):
        raise DamagedError(f"has {shown(entries)} as its tool_calls; must be a list")
    calls = [_call(call) for call in entries or ()]
    legacy = turn.get("function_call")
    if isinstance(legacy, dict):
        calls.append(_made_call(None, legacy.get("name"), legacy.get("arguments")))
    elif legacy is not None:
        raise DamagedError(f"has {shown(legacy)} as its function_call; must be an object")
    return calls


def _call(call: Any) -> Made:
    if not isinstance(call, dict):
        raise DamagedError(f"has a tool call that is {shown(call)}; must be an object")
    function = call.get("function")
    if isinstance(function, dict):
        return _made_call(call.get("id"), function.get("name"), function.get("arguments"))
    if isinstance(call.get("custom"), dict):
        custom = call["custom"]
        tool_call = _made_call(call.get("id"), custom.get("name"), {"input": custom.get("input")})
        return {**tool_call, "type": "custom"}
    tool_call = _made_call(call.get("id"), function or call.get("name"), call.get("arguments"))
    if isinstance(call.get("parse_error"), str):
        tool_call["parse_error"] = call["parse_error"]
    return tool_call


def _anthropic_call(part: Made) -> Made:
    return _made_call(part.get("id"), part.get("name"), part.get("input"))


def _made_call(call_id: Any, name: Any, arguments: Any) -> Made:
    if not isinstance(name, str) or not name:
        raise DamagedError(f"has a tool call with the name {shown(name)}; must be text")
    read, mistake = _arguments(arguments)
    tool_call = {
        "id": call_id if isinstance(call_id, str) else "",
        "function": name,
        "arguments": read,
    }
    if mistake is not None:
        tool_call["parse_error"] = mistake
    return {**tool_call, "type": "function"}


def _arguments(arguments: Any) -> tuple[Made, str | None]:
    """The arguments of a call, else none and the whole text of what should have been some."""
    if isinstance(arguments, dict):
        return arguments, None
    if arguments is None or arguments == "":
        return {}, None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    try:
        read = parsed(text)
    except DamagedError:
        read = None
    if isinstance(read, dict):
        return read, None
    return {}, f"the arguments are no JSON object: {text}"


Key = tuple[str, int]
# These have a meaning of their own.
_NO_FIELDS = ("id", "epoch", "cluster", "metadata")


class _Row(NamedTuple):
    item: FileItem
    identity: Identity


class Conversations(Source):
    """A `.jsonl` file with one conversation a line, or a `.json` file with one or a list."""

    suffixes = (*LINES, ".json")
    form = "conversations"

    def _prepare(self) -> None:
        self._file = ItemFile(self.path, self._most_bytes)
        self._rows: dict[Key, _Row] | None = None
        self._unusual: dict[str, None] = {}

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Whether a file is called like JSON lines, or begins like a JSON list, or like one
        conversation.
        """
        if path.suffix.lower() in LINES:
            return path.is_file()
        return begins_list(path) or is_one_conversation(path)

    def summaries(self) -> tuple[RunSummary, ...]:
        """One summary per conversation, in the file's order; one at a time is in memory.

        Raises InputError with the lines of the first mistakes: no JSON, no messages, an unusable
        id, or one that another conversation has.
        """
        return tuple(
            RunSummary(
                run_id,
                epoch,
                None if row.identity.has_messages else Skip("no_messages"),
                row.identity.cluster,
            )
            for (run_id, epoch), row in self._index().items()
        )

    def metadata(self) -> Iterator[tuple[Key, Mapping[str, Any]]]:
        """See `Source`: each conversation is parsed once more, and its messages are not read."""
        for key, _, metadata in self._values():
            yield key, metadata

    def fields(self) -> Iterator[Mapping[str, Any]]:
        """See `Source`; values beside the metadata are under the pointers that would make them
        some.
        """
        for _, value, metadata in self._values():
            beside = value.items() if isinstance(value, dict) else ()
            values = {
                pointer_to(key): part
                for key, part in beside
                if key not in _NO_FIELDS and not isinstance(part, dict | list)
            }
            yield values | metadata

    def _values(self) -> Iterator[tuple[Key, Any, dict[str, Any]]]:
        """The key of each conversation, its JSON and its metadata; nothing where damaged."""
        for key, row in self._index().items():
            value, metadata = None, {}
            try:
                value = self._file.value(row.item)
                metadata = metadata_of(value, self._places)
            except DamagedError:
                pass
            yield key, value, metadata

    def notices(self) -> tuple[str, ...]:
        """What was unusual about conversations that were read."""
        with self._lock:
            return tuple(
                f"{self.path.name}: some conversations have {sentence}; these are kept as they are"
                for sentence in self._unusual
            )

    def read(self, run_id: str, epoch: int, *, with_raw: bool = False) -> tuple[AgentRun, Any]:
        """Read one conversation: the run, and if `with_raw` its JSON.

        Raises Unscored (`input_error`) where it is missing, or its messages cannot be read.
        """
        row = self._index().get((run_id, epoch))
        try:
            if row is None:
                raise DamagedError("the file has no such conversation")
            value = self._file.value(row.item)
            check_depth(value)
            return self._run(run_id, epoch, row, value), value if with_raw else None
        except DamagedError as error:
            why = printable(str(error), 300)
            if row is not None:
                why = f"{self._file.place(row.item)}: {why}"
            advice = "Mend the conversation, or leave it out."
            raise self._unreadable(run_id, epoch, why, advice) from error

    def _run(self, run_id: str, epoch: int, row: _Row, value: Any) -> AgentRun:
        if identity(value, self._places) != row.identity:
            raise DamagedError("the file has changed since it was collected")
        turns = messages_of(value, self._places)
        messages, unusual = read_messages(turns, system_of(value, self._places))
        stored: dict[str, Any] = {
            "messages": messages,
            "input": text_of(value, self._places.input, "input"),
            "target": text_of(value, self._places.target, "target"),
            "metadata": metadata_of(value, self._places),
        }
        clean, changed = storable(stored)
        with self._lock:
            self._unusual.update(dict.fromkeys(unusual))
            if has_unread_answer(value, self._places):
                self._unusual[UNREAD_ANSWER] = None
            if has_no_answer(value, self._places):
                self._unusual[NO_ANSWER] = None
        task = clean["input"]
        if task is None:
            user_messages = (message for message in clean["messages"] if message["role"] == "user")
            task = message_text(next(user_messages, {}))
        return AgentRun(
            run_id=run_id,
            epoch=epoch,
            messages=tuple(clean["messages"]),
            input=task,
            target=clean["target"] or "",
            metadata=clean["metadata"],
            sample_id=row.identity.sample_id,
            notes=(*unusual, *changed_note(changed)),
            tools=tuple(storable(definitions_of(value))[0]),
        )

    def _index(self) -> dict[Key, _Row]:
        with self._lock:
            if self._rows is None:
                self._rows = self._indexed()
            return self._rows

    def _indexed(self) -> dict[Key, _Row]:
        rows: dict[Key, _Row] = {}
        problems: list[Problem] = []
        for item, data in self._file.items():
            try:
                row = _Row(item, identity(self._file.parsed(data), self._places))
            except DamagedError as error:
                problems.append(self._file.problem(item, error))
            else:
                key = (row.identity.run_id, row.identity.epoch)
                first = rows.setdefault(key, row)
                if first is not row:
                    problems.append(self._twice(first, row))
            if len(problems) == MOST_PROBLEMS:
                break
        if problems:
            raise InputError(problems)
        if not rows:
            raise refused(self.path, "holds no conversation")
        return rows

    def _twice(self, first: _Row, row: _Row) -> Problem:
        where = self._file.place(first.item)
        if not row.identity.named and not first.identity.named:
            same = DamagedError(
                f"is the same conversation as {where}, and neither has an id",
                f"give each an `id`, or name what makes one with {KEY}: {{id: /pointer}}",
            )
            return self._file.problem(row.item, same)
        name, epoch = printable(row.identity.run_id), row.identity.epoch
        same = DamagedError(
            f"has the id {name!r} (epoch {epoch}), as {where} has",
            f"give each its own id or epoch; {KEY}: {{id: [/task, /trial]}} puts one together",
        )
        return self._file.problem(row.item, same)
