"""Messages of chats as those of Inspect's logs: OpenAI's, Anthropic's, and the Vercel AI SDK's
(versions 4 to 6: those for models, with the parts `tool-call` and `tool-result`, and those of its
user interface, with calls and results in `parts`). First what the content of one holds, as blocks;
a part of an unknown type keeps its JSON as text.

Which result belongs to which tool call is known by their ids, else by name and order.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pytest_jrh.core import Json, counted, listed, shown
from pytest_jrh.core.documents import DamagedError, parsed
from pytest_jrh.core.transcript import ROLES, block_text, is_role, words_in
from pytest_jrh.sources.source import at, texts_in

NO_RESULT = "[not in the log]"
"""The result of what the provider ran, where the log has none: an empty one would be none found."""
TEXTS = {"text", "input_text", "output_text", "summary_text", "reasoning_text"}
_TEXT_KEYS = {"type", "text", "cache_control"}
CALLS = ("tool_use", "tool-call")
RESULTS = ("tool_result", "tool-result")
# Calls of what the provider runs, with Inspect's name for the kind.
_RUN_BY_PROVIDER = {"server_tool_use": "web_search", "mcp_tool_use": "mcp_call"}
# Blocks of Inspect itself, and what nobody can read.
_AS_THEY_ARE = "audio data document encrypted_content image reasoning tool_use video"
_TRANSCRIPTS = ("transcript", "transcription")
# What is read of media, or names where their data are.
_READ = "image_url source title input_audio file filename file_data file_url file_id url data"
_MEDIA_TYPES = ("mediaType", "mimeType", "media_type")
_PLACES_OF_DATA = ("file_data", "file_url", "file_id", "url", "data")
_LONGEST_UNKNOWN = 4_000


@dataclass
class Parts:
    """What the content of one message holds: blocks, and calls of tools.

    `provider_calls` are the blocks of what the provider ran, by their ids, of this message and of
    those before it: a result that comes later is put into its block.
    """

    provider_calls: dict[str, Json]
    blocks: list[Json] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)


def parts_of(content: Any, provider_calls: dict[str, Json]) -> Parts:
    """Read the content of a message; raises DamagedError, in words that follow "message N"."""
    parts = Parts(provider_calls)
    if not isinstance(content, str | list | None):
        raise DamagedError(
            f"has {shown(content)} as its content, which must be text, null or a list of parts"
        )
    for part in listed_parts(content):
        _add(parts, part)
    return parts


def is_chat(value: Any) -> bool:
    """Whether a value is a list of what have roles, as messages do."""
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(turn, dict) and "role" in turn for turn in value)


def listed_parts(content: Any) -> list[Any]:
    """The parts of a content; a text is one."""
    if isinstance(content, str):
        return [content]
    return content or []


def block_of(kind: str, value: Any, **fields: Any) -> Json:
    """A block as Inspect has it: what is in it stands under the name of its type."""
    return {"type": kind, kind: json_text(value), **fields}


def _add(parts: Parts, part: Any) -> None:
    if isinstance(part, str):
        part = block_of("text", part)
    if not isinstance(part, dict):
        raise DamagedError(f'has {shown(part)} as a part; parts are objects with a "type"')
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise DamagedError(
            f"has a part whose type is not text; its keys: {listed(map(shown, part), 3) or 'none'}"
        )
    call = parts.provider_calls.get(json_text(part.get("tool_use_id")))
    # Inspect's own block of this type, which the provider ran, has `arguments`.
    if kind in CALLS and "arguments" not in part:
        parts.calls.append(part)
    elif kind in RESULTS:
        # Of a result that is in another one.
        parts.blocks.append(part)
    elif kind in _RUN_BY_PROVIDER:
        block = provider_call(_RUN_BY_PROVIDER[kind], part, part.get("name"), part.get("input"))
        parts.provider_calls[block["id"]] = block
        parts.blocks.append(block)
    elif kind.endswith("_tool_result") and call is not None:
        call["result"] = json_text(part.get("content"))
        if part.get("is_error") is True:
            call |= {"result": "", "error": call["result"]}
    else:
        parts.blocks.append(_block(kind, part))


def _result(part: Json) -> Json:
    """The AI SDK's part with a result, as Anthropic writes one: `result` of version 4 is any JSON,
    and `output` of later ones says of what type its value is.
    """
    content: Any = part.get("output", part.get("result"))
    is_error = part.get("isError") is True
    kind = at(part, "/output/type")
    if isinstance(kind, str):
        is_error = kind.startswith("error-") or kind == "execution-denied"
        content = content.get("value", content.get("reason"))
    if kind != "content":
        content = json_text(content)
    return {
        "type": "tool_result",
        "tool_use_id": part.get("toolCallId"),
        "name": part.get("toolName"),
        "content": content,
        "is_error": is_error,
    }


def provider_call(kind: str, call: Json, name: Any, arguments: Any, result: Any = None) -> Json:
    """Inspect's block of what the provider ran; `kind` is Inspect's name for it."""
    return {
        "type": "tool_use",
        "tool_type": kind,
        "id": json_text(call.get("id")),
        "name": json_text(name),
        "arguments": json_text(arguments),
        "result": NO_RESULT if result is None else json_text(result),
    }


def _block(kind: str, part: Json) -> Json:
    if kind in TEXTS:
        return _text(kind, part)
    if ("audio" in kind or "video" in kind) and (speech := _speech(kind, part)):
        return block_of("text", speech)
    if kind == "refusal":
        return block_of("text", part.get("refusal"), refusal=True)
    if kind == "thinking":
        return block_of("reasoning", part.get("thinking"), **texts_in(part, "signature"))
    if kind in ("redacted_thinking", "redacted-reasoning"):
        return block_of("reasoning", part.get("data"), redacted=True)
    if kind == "reasoning" and "text" in part:
        return block_of("reasoning", part["text"])
    if written := _written(kind, part):
        return written
    if media := _media(kind, part):
        for key, value in part.items():
            if key not in _READ.split() and any(words_in({key: value})):
                media[key] = value
        return media
    if kind in _AS_THEY_ARE.split():
        return part
    return _unknown(kind, part)


def _speech(kind: str, part: Json) -> str:
    """What was said in a recording, where the part says it."""
    texts = texts_in(part, *_TRANSCRIPTS) or texts_in(part.get(kind), *_TRANSCRIPTS)
    return next(iter(texts.values()), "")


def _text(kind: str, part: Json) -> Json:
    block = block_of("text", part.get("text"))
    other_fields = {key: value for key, value in part.items() if key not in _TEXT_KEYS and value}
    if not other_fields:
        return block
    if part.get("text") is None:
        # The text stands where another tool has it.
        return _unknown(kind, part)
    return {"internal": other_fields, **block}


def _unknown(kind: str, part: Json) -> Json:
    """The JSON of a part as text, behind its type; the end of a long one is cut, and counted."""
    text = json_text({key: value for key, value in part.items() if key != "type"})
    left_out = len(text) - _LONGEST_UNKNOWN
    if left_out > 0:
        text = f"{text[:_LONGEST_UNKNOWN]} ... and {counted(left_out, 'more character')}"
    return block_of("text", f"[{kind}: {text}]")


def _written(kind: str, part: Json) -> Json | None:
    """A document that is text, or what a search found, behind its title; None of anything else."""
    source, content = at(part, "/source/type"), part.get("content")
    other_fields = {**part, "title": "", "content": ""}
    if kind == "document" and source in ("text", "content"):
        content = part["source"].get("data" if source == "text" else "content")
        other_fields["source"] = ""
    elif kind != "search_result":
        return None
    lines = [f"[{kind}: {json_text(part.get('title')) or 'text'}]"]
    lines += map(block_text, parts_of(content, {}).blocks)
    for key, text in words_in(other_fields):
        lines.append(f"{key}: {text}")
    return block_of("text", "\n".join(lines))


def _media(kind: str, part: Json) -> Json | None:
    """Media, with their data where Inspect has it; None of an unknown kind."""
    if kind in ("image_url", "input_image", "computer_screenshot"):
        image = part.get("image_url") or part.get("file_id")
        return _file(image if isinstance(image, dict) else {"url": image}, "image")
    source = part.get("source")
    if kind in ("image", "document") and isinstance(source, dict):
        return _file({**source, "filename": part.get("title") or None}, kind)
    audio = part.get("input_audio")
    if kind == "input_audio" and isinstance(audio, dict):
        return _file({**audio, "media_type": f"audio/{audio.get('format')}"}, "audio")
    if kind not in ("file", "input_file", "media"):
        return None
    file = part.get("file")
    return _file(file if isinstance(file, dict) else part)


def _file(file: Json, kind: str = "") -> Json:
    """A file; where its kind is not known, its type of media says it."""
    url = json_text(first_in(file, _PLACES_OF_DATA))
    media_type = json_text(first_in(file, _MEDIA_TYPES))
    if media_type and "data" in file and not url.startswith(("data:", "http:", "https:")):
        url = f"data:{media_type};base64,{url}"
    if not kind:
        kind = "image" if media_type.startswith("image/") else "document"
    return block_of(kind, url, **texts_in(file, "filename", "detail", "format"))


def fields_of(item: Json, keys: Iterable[str]) -> Json:
    """What an item has under these keys."""
    return {key: item[key] for key in keys if item.get(key) is not None}


def first_in(item: Json, keys: Iterable[str]) -> Any:
    """The first of these keys' values that says something; None where none does."""
    return next(filter(None, map(item.get, keys)), None)


def json_text(value: Any) -> str:
    """A value as text, any but a text as JSON; None is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


WITHOUT_RESULT = "tool calls without a result"
WITHOUT_CALL = "results without a tool call"
OTHER_ROLES = f"roles other than {', '.join(ROLES)}"
_ROLES = {"developer": "system", "function": "tool"}
# The keys of a message that are read; others are kept as its metadata.
_KNOWN = "role content id tool_calls tool_call_id refusal reasoning reasoning_content"
_KNOWN_OF_RESULTS = {"name", "function", "is_error", "error"}
# Where others have what a message says: Gemini, ShareGPT, and programs of one's own.
_NOT_CONTENT = "parts text value message output"


def read_messages(
    turns: Iterable[Any], system: Any = None
) -> tuple[tuple[Json, ...], tuple[str, ...]]:
    """Convert messages, and say in words what is unusual about them.

    Calls and results are paired; what has no counterpart is kept, as is a message of an unknown
    role. Results that stand in a message become messages of their own. Raises DamagedError naming
    the message that cannot be read.
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
    return tuple(reader.messages), tuple(reader.unusual)


def read_message(turn: Any) -> list[Json]:
    """Convert one message; raises DamagedError, in words that follow its place."""
    reader = _Reader()
    reader.add(turn)
    return reader.messages


class _Reader:
    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.unusual: dict[str, None] = {}
        # The ids and functions of the calls that have no result yet, in their order.
        self.open: list[tuple[str, str]] = []
        self._provider_calls: dict[str, Json] = {}

    def add(self, turn: Any) -> None:
        """Convert one message, which may become several."""
        if not isinstance(turn, dict):
            raise DamagedError(f'is {shown(turn)}; must be an object with a "role"')
        role = turn.get("role")
        if not isinstance(role, str) or not is_role(role):
            raise DamagedError(
                f"has {shown(role)} as its role, which must be one of {', '.join(ROLES)}"
            )
        role = _ROLES.get(role, role)
        parts = sdk_parts_of(turn)
        content = parts or turn.get("content")
        if parts:
            turn = {key: turn[key] for key in turn if key not in ("parts", "toolInvocations")}
        for key in _NOT_CONTENT.split():
            if not parts and "content" not in turn and turn.get(key):
                raise DamagedError(f'has the key "{key}" in place of "content"')
        steps: list[tuple[Any, list[Json]]] = [(content, [])]
        if isinstance(content, list):
            steps = [*steps_of(content)]
        if role == "tool" and not any(results for _, results in steps):
            self._add_result(turn)
            return
        if role not in ROLES:
            self.unusual[OTHER_ROLES] = None
        for number, (said, results) in enumerate(steps):
            if said or not (number or results):
                self._add(turn, role, said)
                turn = {}
            for result in results:
                self._add_result(result if result["type"] == "tool_result" else _result(result))

    def _add(self, turn: Json, role: str, content: Any) -> None:
        parts = parts_of(content, self._provider_calls)
        entries = turn.get("tool_calls")
        if not isinstance(entries, list | None):
            raise DamagedError(f"has {shown(entries)} as its tool_calls, which must be a list")
        calls = [*map(read_call, entries or ()), *map(read_call, parts.calls)]
        # What stands beside the content: a refusal, what was said in a recording, thoughts.
        refusal = turn.get("refusal")
        if isinstance(refusal, str) and refusal:
            parts.blocks.append(block_of("text", refusal, refusal=True))
        speech = _speech("audio", turn)
        if speech and not any(speech in json_text(block.get("text")) for block in parts.blocks):
            empty = block_of("text", "")
            # An empty text beside it says nothing.
            parts.blocks = [block for block in parts.blocks if block != empty]
            parts.blocks.append(block_of("text", speech))
        thought = turn.get("reasoning_content") or turn.get("reasoning")
        if isinstance(thought, str) or thought:
            parts.blocks.insert(0, block_of("reasoning", thought))
        if content and not parts.blocks and not calls:
            # All of it is in other messages.
            return
        message = {**_head(turn, parts), "role": role}
        for call in calls:
            call["id"] = call["id"] or f"call-{len(self.messages)}-{call['function']}"
            self.open.append((call["id"], call["function"]))
        if calls:
            message["tool_calls"] = calls
        self.messages.append(message)

    def _add_result(self, turn: Json) -> None:
        fields = texts_in(turn, "name", "function", "tool_call_id", "tool_use_id")
        name = fields.get("name") or fields.get("function")
        call_id = fields.get("tool_call_id", fields.get("tool_use_id"))
        call_id, function = self._take_call(call_id, name)
        content = turn.get("content")
        if isinstance(content, dict | int | float):
            content = json_text(content)
        parts = parts_of(content, {})
        # Blocks that are no content of a result have no other place.
        parts.blocks += parts.calls
        message = {**_head(turn, parts), "role": "tool"}
        if call_id:
            message["tool_call_id"] = call_id
        if name or function:
            message["function"] = name or function
        # The error of a tool: Inspect's, or a result that Anthropic marks as one.
        error, kind = turn.get("error"), at(turn, "/error/type")
        if isinstance(kind, str):
            message["error"] = {"type": kind, "message": str(at(turn, "/error/message") or "")}
        elif error or turn.get("is_error") is True:
            reason = error if isinstance(error, str) else ""
            if not reason and isinstance(message["content"], str):
                reason, message["content"] = message["content"], ""
            message["error"] = {"type": "unknown", "message": reason}
        self.messages.append(message)

    def _take_call(self, call_id: str | None, name: str | None) -> tuple[str | None, str | None]:
        """Take out the open call that a result belongs to: its id and function.

        A result that names no call belongs to the first one of its function, or of any where it
        names no function either.
        """
        for number, (open_id, function) in enumerate(self.open):
            if call_id == open_id or (call_id is None and name in (None, function)):
                return self.open.pop(number)
        self.unusual[WITHOUT_CALL] = None
        return call_id, name


def _head(turn: Json, parts: Parts) -> Json:
    """The keys that every message has, in Inspect's order; others are kept as its metadata."""
    content: str | list[Json] = parts.blocks or ""
    # Text alone is a text.
    if len(parts.blocks) == 1 and parts.blocks[0].keys() == {"type", "text"}:
        content = str(parts.blocks[0]["text"])
    head: Json = {**texts_in(turn, "id"), "content": content}
    if "tool_use_id" in turn:
        return head
    is_result = turn.get("role") in ("tool", "function")
    fields = {}
    for key, value in turn.items():
        is_read = key in _KNOWN.split() or (is_result and key in _KNOWN_OF_RESULTS)
        if not is_read and value not in (None, [], {}, ""):
            fields[key] = value
    if fields:
        head["metadata"] = fields
    return head


def read_call(call: Any) -> Json:
    """A call of OpenAI's, Anthropic's, the AI SDK's or Inspect's, as Inspect has it."""
    if not isinstance(call, dict):
        raise DamagedError(f"has {shown(call)} as a tool call, which must be an object")
    name: Any = call.get("function") or call.get("name") or call.get("toolName")
    call_id, custom = call.get("id", call.get("toolCallId")), call.get("custom")
    arguments = call.get("arguments", call.get("input", call.get("args")))
    kind = "custom" if call.get("type") == "custom" else "function"
    if isinstance(name, dict):
        name, arguments = name.get("name"), name.get("arguments")
    elif isinstance(custom, dict):
        name, arguments, kind = custom.get("name"), {"input": custom.get("input")}, "custom"
    if not isinstance(name, str) or not name:
        raise DamagedError("has a tool call whose name is missing or is not text")
    if not isinstance(call_id, str):
        call_id = ""
    mistake = call.get("parse_error")
    if not isinstance(arguments, dict):
        text = json_text(arguments) or "{}"
        with contextlib.suppress(DamagedError):
            arguments = parsed(text)
        if not isinstance(arguments, dict):
            # The whole text of what should have been some.
            arguments, mistake = {}, f"the arguments are not a JSON object: {text}"
    tool_call = {"id": call_id, "function": name, "arguments": arguments}
    if isinstance(mistake, str):
        tool_call["parse_error"] = mistake
    return {**tool_call, "type": kind}


_STEP = "step-start"
_APPROVAL = "tool-approval"
_DENIED = "Tool execution denied."
# By the state of a call, where its result is.
_FIELDS_OF_RESULTS = {
    "result": "result",
    "output-available": "output",
    "output-error": "errorText",
    "output-denied": "approval",
}


def sdk_parts_of(turn: Json) -> list[Json]:
    """The parts of a message of the AI SDK's user interface; nothing of another message."""
    parts, content = turn.get("parts"), turn.get("content")
    if not parts and isinstance(turn.get("toolInvocations"), list):
        parts = []
        for invocation in turn["toolInvocations"]:
            parts.append({"type": "tool-invocation", "toolInvocation": invocation})
    if not isinstance(parts, list) or not parts:
        return []
    if not all(isinstance(at(part, "/type"), str) for part in parts):
        return []
    texts = "".join(json_text(part.get("text")) for part in parts if part["type"] == "text")
    # Version 4 has the text in both places.
    if isinstance(content, str) and content not in texts:
        parts = [*parts, {"type": "text", "text": content}]
    return parts


def steps_of(parts: Iterable[Any]) -> Iterator[tuple[list[Any], list[Json]]]:
    """What a message says and calls up to some results, which may stand before what came after
    them, and these results; then what it says and calls up to the next ones, ...
    """
    said: list[Any] = []
    results: list[Json] = []
    for part in chain.from_iterable(map(_with_result, parts)):
        kind = at(part, "/type")
        if results and kind not in (*CALLS, *RESULTS, _APPROVAL):
            yield said, results
            said, results = [], []
        if kind in RESULTS:
            results.append(part)
        elif kind != _STEP:
            said.append(part)
    yield said, results


def _with_result(part: Any) -> Iterator[Any]:
    """A part of the user interface as the call in it, with its result where there is one; any other
    part as it is.
    """
    kind, call = at(part, "/type"), at(part, "/toolInvocation")
    if kind == "dynamic-tool":
        call = part
    elif call is None and at(part, "/state") and json_text(kind).startswith("tool-"):
        # What the model wrote stays raw where it could not be parsed.
        call = {"input": part.get("rawInput"), **part, "toolName": kind.removeprefix("tool-")}
    if not isinstance(call, dict):
        yield part
        return
    yield {**call, "type": "tool-call"}
    if call.get("approval"):
        yield {"type": _APPROVAL, "approval": call["approval"]}
    state = json_text(call.get("state"))
    if state in _FIELDS_OF_RESULTS:
        result = call.get(_FIELDS_OF_RESULTS[state])
        if state == "output-denied":
            result = texts_in(result, "reason").get("reason") or _DENIED
        yield {
            "type": "tool-result",
            "toolCallId": call.get("toolCallId"),
            "toolName": call.get("toolName"),
            "result": result,
            "isError": state in ("output-error", "output-denied"),
        }
