"""What the content of a message holds: the parts of OpenAI's, of Anthropic's and of the Vercel AI
SDK's chats, as blocks of Inspect's logs. A part of an unknown type keeps its JSON as text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.core.documents import DamagedError, shown
from pytest_jrh.core.text import counted

Block = dict[str, Any]
NO_RESULT = "[not in the log]"
"""The result of what the provider ran, where the log has none: an empty one would be none found."""
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_TEXT_KEYS = frozenset({"type", "text", "cache_control"})
CALLS = frozenset({"tool_use", "tool-call"})
RESULTS = frozenset({"tool_result", "tool-result"})
_RUN_BY_PROVIDER = frozenset({"server_tool_use", "mcp_tool_use"})
# Blocks of Inspect itself, and what nobody can read.
_AS_THEY_ARE = frozenset(
    {"audio", "data", "document", "encrypted_content", "image", "reasoning", "tool_use", "video"}
)
_PLACES_OF_DATA = ("file_data", "file_url", "file_id", "url", "data")
_LONGEST_UNKNOWN = 4_000


@dataclass(slots=True)
class Parts:
    """What the content of one message holds: blocks, and calls and results of tools.

    `provider_calls` are the blocks of what the provider ran, by their ids, of this message and of
    those before it: a result that comes later is put into its block, and `joined` counts these.
    """

    provider_calls: dict[str, Block] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    calls: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)
    joined: int = 0

    @property
    def content(self) -> str | list[Block]:
        """The blocks as the content of a message: text alone is a text."""
        if not self.blocks:
            return ""
        if len(self.blocks) == 1 and self.blocks[0].keys() == {"type", "text"}:
            return str(self.blocks[0]["text"])
        return self.blocks


def parts_of(content: Any, provider_calls: dict[str, Block] | None = None) -> Parts:
    """Read the content of a message; raises DamagedError, in words that follow "message N"."""
    parts = Parts({} if provider_calls is None else provider_calls)
    if content is None:
        return parts
    if isinstance(content, str):
        parts.blocks.append({"type": "text", "text": content})
        return parts
    if not isinstance(content, list):
        what = shown(content)
        raise DamagedError(f"has {what} as its content; must be text, null or a list of parts")
    for part in content:
        _add(parts, part)
    return parts


def _add(parts: Parts, part: Any) -> None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if not isinstance(part, dict):
        raise DamagedError(f"has a part that is {shown(part)}; must be an object with a type")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise DamagedError("has a part without a type")
    # Inspect's own block of this type, which the provider ran, has `arguments`.
    if kind in CALLS and "arguments" not in part:
        parts.calls.append(part)
    elif kind in RESULTS:
        parts.results.append(_result(part) if kind == "tool-result" else part)
    elif kind in _RUN_BY_PROVIDER:
        tool_type = "mcp_call" if kind == "mcp_tool_use" else "web_search"
        block = provider_call(tool_type, part, part.get("name"), part.get("input"))
        parts.provider_calls[block["id"]] = block
        parts.blocks.append(block)
    elif kind.endswith("_tool_result") and as_text(part.get("tool_use_id")) in parts.provider_calls:
        block = parts.provider_calls[as_text(part["tool_use_id"])]
        parts.joined += 1
        block["result"] = as_text(part.get("content"))
        if part.get("is_error") is True:
            block |= {"result": "", "error": block["result"]}
    else:
        parts.blocks.append(_block(kind, part))


def _result(part: Block) -> Block:
    """The AI SDK's part with a result: `result` of version 4 is any JSON, and `output` of later
    ones says of what type its value is.
    """
    content: Any = part.get("result")
    is_error = part.get("isError") is True
    output = part.get("output")
    if isinstance(output, dict) and isinstance(output.get("type"), str):
        kind = output["type"]
        is_error = kind.startswith("error-") or kind == "execution-denied"
        content = output.get("value", output.get("reason"))
        if kind == "content" and isinstance(content, list):
            return {**sdk_result(part, "", is_error=is_error), "content": content}
    elif "output" in part:
        content = output
    return sdk_result(part, content, is_error=is_error)


def sdk_result(call: Block, content: Any, *, is_error: bool) -> Block:
    """A result of the AI SDK as Anthropic writes it."""
    names = {"tool_use_id": call.get("toolCallId"), "name": call.get("toolName")}
    return {"type": "tool_result", **names, "content": as_text(content), "is_error": is_error}


def provider_call(kind: str, call: Block, name: Any, arguments: Any, result: Any = None) -> Block:
    """Inspect's block of what the provider ran; `kind` is Inspect's name for it."""
    return {
        "type": "tool_use",
        "tool_type": kind,
        "id": as_text(call.get("id")),
        "name": as_text(name),
        "arguments": as_text(arguments),
        "result": NO_RESULT if result is None else as_text(result),
    }


def _block(kind: str, part: Block) -> Block:
    if kind in _TEXTS:
        return _text(part)
    if kind == "refusal":
        return {"type": "text", "text": as_text(part.get("refusal")), "refusal": True}
    if kind == "thinking":
        block = {"type": "reasoning", "reasoning": as_text(part.get("thinking"))}
        return block | _texts_in(part, "signature")
    if kind in ("redacted_thinking", "redacted-reasoning"):
        return {"type": "reasoning", "reasoning": as_text(part.get("data")), "redacted": True}
    if kind == "reasoning" and "text" in part:
        return {"type": "reasoning", "reasoning": as_text(part["text"])}
    read = _written(kind, part) or _media(kind, part)
    if read is not None:
        return read
    return part if kind in _AS_THEY_ARE else _unknown(kind, part)


def _text(part: Block) -> Block:
    block: Block = {"type": "text", "text": as_text(part.get("text"))}
    other_fields = {key: value for key, value in part.items() if key not in _TEXT_KEYS and value}
    return {"internal": other_fields, **block} if other_fields else block


def _unknown(kind: str, part: Block) -> Block:
    """The JSON of a part as text, behind its type; the end of a long one is cut, and counted."""
    text = as_text({key: value for key, value in part.items() if key != "type"})
    more = len(text) - _LONGEST_UNKNOWN
    if more > 0:
        text = f"{text[:_LONGEST_UNKNOWN]} ... and {counted(more, 'more character')}"
    return {"type": "text", "text": f"[{kind}: {text}]"}


def _written(kind: str, part: Block) -> Block | None:
    """A document that is text, or what a search found, behind its title; None of anything else."""
    source = part.get("source")
    content = part.get("content")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        content = source.get("data")
    elif kind == "document" and isinstance(source, dict) and source.get("type") == "content":
        content = source.get("content")
    elif kind != "search_result":
        return None
    lines = [f"[{kind}: {as_text(part.get('title')) or 'text'}]"]
    lines += [str(block.get("text", "")) for block in parts_of(content).blocks]
    return {"type": "text", "text": "\n".join(lines)}


def _media(kind: str, part: Block) -> Block | None:
    """Media, with their data where Inspect has it; None of an unknown kind."""
    if kind in ("image_url", "input_image", "computer_screenshot"):
        link = part.get("image_url") or part.get("file_id")
        image = link if isinstance(link, dict) else {"url": link}
        return {"type": "image", "image": as_text(image.get("url"))} | _texts_in(image, "detail")
    source = part.get("source")
    if kind in ("image", "document") and isinstance(source, dict):
        place = source.get("url") or source.get("file_id")
        place = place or data_url(source.get("media_type"), source.get("data"))
        file_name = {"filename": part["title"]} if part.get("title") else {}
        return {"type": kind, kind: as_text(place)} | file_name
    audio = part.get("input_audio")
    if kind == "input_audio" and isinstance(audio, dict):
        url = data_url(f"audio/{audio.get('format')}", audio.get("data"))
        return {"type": "audio", "audio": url} | _texts_in(audio, "format")
    if kind in ("file", "input_file", "media"):
        return _file(part["file"] if isinstance(part.get("file"), dict) else part)
    return None


def _file(file: Block) -> Block:
    data: Any = ""
    for key in reversed(_PLACES_OF_DATA):
        data = file.get(key, data)
    media_type = as_text(file.get("mediaType", file.get("mimeType")))
    kind = "image" if media_type.startswith("image/") else "document"
    place = as_text(data)
    if media_type and "data" in file and not place.startswith(("data:", "http:", "https:")):
        place = data_url(media_type, place)
    return {"type": kind, kind: place} | _texts_in(file, "filename")


def data_url(media_type: Any, data: Any) -> str:
    """Write media as a data URL."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def _texts_in(part: Block, key: str) -> Block:
    return {key: part[key]} if isinstance(part.get(key), str) else {}


def as_text(value: Any) -> str:
    """A value as text, any but a text as JSON; None is empty."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
