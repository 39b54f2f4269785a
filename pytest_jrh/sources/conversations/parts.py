"""The parts of a message's content, of OpenAI's and of Anthropic's kinds, as Inspect has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pytest_jrh.documents.problems import shown
from pytest_jrh.documents.strict_json import DamagedError

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
    return _media(kind, part)


def _text(part: Block) -> Block:
    block: Block = {"type": "text", "text": _as_text(part.get("text"))}
    more = {key: each for key, each in part.items() if key not in _TEXT_KEYS and each}
    return {"internal": more, **block} if more else block


def _media(kind: str, part: Block) -> Block:
    """Media, with their data where Inspect has it; of an unknown kind as they are."""
    if kind in ("image_url", "input_image"):
        given = part.get("image_url")
        at = given if isinstance(given, dict) else {"url": given, **part}
        return {"type": "image", "image": _as_text(at.get("url"))} | _picked(at, "detail")
    if kind in ("image", "document") and isinstance(part.get("source"), dict):
        source = part["source"]
        where = source.get("url") or data_url(source.get("media_type"), source.get("data"))
        named = {"filename": part["title"]} if part.get("title") else {}
        return {"type": kind, kind: _as_text(where)} | named
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
        "result": "",
    }


def _picked(part: Block, key: str) -> Block:
    return {key: part[key]} if isinstance(part.get(key), str) else {}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
