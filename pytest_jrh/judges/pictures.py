"""The images of a transcript, as parts of the message to a judge that takes them (rule R5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_jrh.errors import Unscored
from pytest_jrh.stages import JUDGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_jrh.models import Message

MOST_IMAGES = 50
MOST_BYTES = 20_000_000
_DATA = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
_NO_MEDIA = frozenset({"text", "reasoning", "tool_use"})
_NUMBER = "number"
_DESCRIBE = "`images: describe` in the judge's section names the images instead of sending them."


def with_numbers(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """Number the images that can be sent, in the order in which they stand, and list their data
    URLs.

    Those are PNG, JPEG, GIF and WebP images whose data are in the transcript; nothing is fetched.
    Raises `Unscored` (input_error) for more than `MOST_IMAGES`, or `MOST_BYTES` of data.
    """
    urls: list[str] = []
    numbered = [_numbered(message, urls) for message in messages]
    size = sum(map(len, urls))
    if len(urls) > MOST_IMAGES or size > MOST_BYTES:
        raise Unscored(
            "input_error",
            stage=JUDGE.name,
            cause=f"The transcript has {len(urls):,} images of {size / 1_000_000:,.1f} MB; at most "
            f"{MOST_IMAGES} of {MOST_BYTES // 1_000_000} MB are sent.",
            advice=_DESCRIBE,
        )
    return numbered, urls


def about_media(messages: Sequence[Message], *, sends_images: bool) -> tuple[str, ...]:
    """What to say of media that do not reach the judge; there are some in the messages."""
    if not sends_images:
        return (
            "transcripts are judged as text, so their images and other media reach the judge as "
            "placeholders such as [image: image/png]. `images: send` in the judge's section sends "
            "images.",
        )
    left, _ = with_numbers(messages)
    unsent = [
        block
        for message in left
        for block in (message["content"] if isinstance(message.get("content"), list) else ())
        if block.get("type") not in _NO_MEDIA and _NUMBER not in block
    ]
    if not unsent:
        return ()
    return (
        "of the media in transcripts the judge gets PNG, JPEG, GIF and WebP images whose data are "
        "there; others, such as those named by a URL, reach it as placeholders.",
    )


def advised(trouble: Unscored) -> Unscored:
    """Name the key of the config where a call with images was not answered."""
    if trouble.outcome == "model_error":
        trouble.advice = f"The call held images, which not every model takes: {_DESCRIBE} " + (
            trouble.advice or ""
        )
    return trouble


def _numbered(message: Message, urls: list[str]) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_named(block, urls) for block in content]}


def _named(block: Any, urls: list[str]) -> Any:
    url = block.get("image") if block.get("type") == "image" else None
    kind = _DATA.match(url) if isinstance(url, str) else None
    if kind is None:
        return block
    urls.append(str(url))
    # Shown as `[image: image 1 (image/png)]`.
    number = len(urls)
    return {"type": "image", "filename": f"image {number} (image/{kind[1]})", _NUMBER: number}
