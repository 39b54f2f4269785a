"""The content of a chat message: text, or text and images as OpenAI's API has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def with_images(text: str, urls: Sequence[str]) -> list[dict[str, Any]]:
    """The content of a message: its text, then each image behind its number, from 1."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for number, url in enumerate(urls, start=1):
        parts.append({"type": "text", "text": f"image {number}:"})
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def with_text(message: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A message with more text at its end."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": content + text}
    return {**message, "content": [*content, {"type": "text", "text": text}]}


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, without its images."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if part["type"] == "text")


def image_sizes(message: Mapping[str, Any]) -> list[int]:
    """How long the data URL of each image of a message is."""
    content = message["content"]
    if isinstance(content, str):
        return []
    return [len(part["image_url"]["url"]) for part in content if part["type"] == "image_url"]
