"""Reading, rendering and editing transcripts: pure functions on messages.

A transcript is hostile input. Whatever is rendered here keeps two promises: a line that starts at
column 0 was written by this module and not by the transcript, and nothing of the text is cut.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from pytest_jrh.core import Fields, Json, capital
from pytest_jrh.core.cases import Message, Messages, Transcript

_Block = Fields

ROLES = ("system", "user", "assistant", "tool")
_INDENT = "  "
_LONGEST_NAME = 80
_DEEPEST_INDENT = 12
_AS_TEXT = ("text", "reasoning", "tool_use")
_ROLE = r"[A-Za-z][A-Za-z0-9_-]{0,39}"
# Fields of JSON whose texts are no words, and what is media in base64.
_NO_WORDS = (
    "type id format modality detail internal cache_control status signature source_type mime_type "
    "mimeType media_type mediaType encrypted_index encrypted_content timestamp created_at created "
    "createdAt time date model providerMetadata providerOptions"
)
_DATA = "[A-Za-z0-9+/=_-]{64,}"
_CITED = ("citations", "annotations")
# A text in quotes, a sign, or what stands between signs.
_JSON_SIGN = r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+'
_JSON_LINE_BREAKS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
# A model reads over characters without a width, so they do not make "< /transcript>" another tag.
_TAG_FILLER = "[\\s/\\\\\x00-\x1f\u200b-\u200f\u2060\ufeff]*+"


def blocks_of(message: Message) -> Sequence[Json]:
    """The blocks of a message; none of one whose content is a text."""
    content = message.get("content")
    return () if isinstance(content, str) else content or ()


def message_text(message: Message) -> str:
    """The text of a message: its text blocks joined by newlines, without reasoning or media."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (block.get("text", "") for block in blocks_of(message) if block.get("type") == "text")
    return "\n".join(map(str, texts))


def texts_of(message: Message, of_blocks: Sequence[str]) -> list[str]:
    """The texts of a turn, each as it is: of its blocks those under these keys, and its error."""
    content, error = message.get("content"), message.get("error")
    texts = [content]
    for block in blocks_of(message):
        texts += [block.get(key) for key in of_blocks]
    if isinstance(error, Mapping):
        texts.append(error.get("message"))
    return [text for text in texts if isinstance(text, str) and text.strip()]


def is_role(text: str) -> bool:
    """Whether a text can be a role: one of `ROLES`, or the plain word of another framework."""
    return text in ROLES or re.fullmatch(_ROLE, text) is not None


def message_mistake(message: Message, roles: Collection[str]) -> str | None:
    """Say what makes a JSON object unusable as a message, in words that follow "message N has".

    Its role must be one of `roles`.
    """
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in roles:
        return f"the role {brief(role)}, not one of {', '.join(ROLES)}"
    if not isinstance(content, str) and not _is_list_of(content, "type"):
        return (
            f"the content {brief(content)}, which is neither text nor a list of blocks with a type"
        )
    if calls is not None and not _is_list_of(calls, "function"):
        return f"the tool_calls {brief(calls)}, which are not a list of objects with a function"
    return None


def json_in_one_line(text: str) -> str:
    """Escape what JSON lets stand as it is, and `str.splitlines` and editors take for the end of a
    line.
    """
    # `str.translate` would look at every character of every transcript; these are nearly never
    # there.
    for char, escape in _JSON_LINE_BREAKS.items():
        text = text.replace(char, escape)
    return text


def media_in(messages: Messages) -> int:
    """How many images and other media messages hold, of which `render_transcript` gives the name
    alone.
    """
    count = 0
    for message in messages:
        for block in blocks_of(message):
            count += block.get("type") not in _AS_TEXT
    return count


def positions_of(messages: Messages, role: str) -> tuple[int, ...]:
    """Where the messages with a role are."""
    return tuple(index for index, message in enumerate(messages) if message.get("role") == role)


def assistant_indices(messages: Messages) -> tuple[int, ...]:
    """List the positions of the assistant turns, which are the ones that may be edited."""
    return positions_of(messages, "assistant")


IMAGE_DATA = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
PAIR = ("response_a", "response_b")
"""The ids of two answers, one of which is better, and what prompts call them."""
CONTEXT_ID = "context"
"""The id of a message that holds what an answer was to rest on."""
COLUMN_ID = "column"
"""The id of a message that is a cell of a table; its role is the name of the column."""
_PARTS = {
    ("system", "system"): "System prompt",
    (CONTEXT_ID, "user"): "Context",
    ("request", "user"): "Request",
    ("response", "assistant"): "Answer",
    (PAIR[0], "assistant"): "Answer A",
    (PAIR[1], "assistant"): "Answer B",
}


def with_part_ids(messages: Messages) -> list[Json]:
    """The messages of a single answer, the last, with ids that say which part of it each is. A
    request with a history has no single turn, so that its turns stay as they are.
    """
    asked = [turn for turn in messages[:-1] if _part_id(turn) == "request"]
    turns = []
    for index, message in enumerate(messages, 1):
        part = "response" if index == len(messages) else _part_id(message)
        is_part = part != "request" or len(asked) == 1
        turns.append({**message, "id": part} if is_part else dict(message))
    return turns


def is_pair(messages: Messages) -> bool:
    """Whether the last two messages are answers to one request."""
    return [message.get("id") for message in messages[-2:]] == [*PAIR]


def in_other_order(messages: Messages) -> Transcript:
    """The messages of a pair, with its two answers the other way round."""
    *before, first, second = messages
    return (*before, *paired(second, first))


def paired(first: Message, second: Message) -> Transcript:
    """Two messages as the answers of a pair, in this order."""
    return ({**first, "id": PAIR[0]}, {**second, "id": PAIR[1]})


def _part_id(message: Message) -> str:
    if message.get("role") == "system":
        return "system"
    return CONTEXT_ID if message.get("id") == CONTEXT_ID else "request"


def part_title(message: Message) -> str:
    """What people read above a part of an answer, or a cell of a table; empty of a turn of a run,
    which is named by its position and role.
    """
    id_, role = str(message.get("id")), str(message.get("role"))
    return capital(role) if id_ == COLUMN_ID else _PARTS.get((id_, role), "")


def titled_parts(messages: Messages) -> list[tuple[str, str]]:
    """The parts of an answer, or of a table's row, behind their titles; empty of a run."""
    if not messages or not part_title(messages[-1]):
        return []
    parts = [(title, message_text(turn)) for turn in messages if (title := part_title(turn))]
    if len(parts) < len(messages):
        # The turns of a request with a history.
        parts.insert(
            -1 - is_pair(messages), (_PARTS["request", "user"], answer_parts(messages)["request"])
        )
    return parts


def answer_parts(messages: Messages) -> dict[str, str]:
    """What prompts call the parts of a single answer: the last turn of the assistant is the
    `response`, and what stands before it the `request`, without the `system` prompt and `context`.
    """
    parts: dict[str, str] = {}
    position = next(iter(assistant_indices(messages)[::-1]), len(messages))
    if is_pair(messages):
        *messages, first, second = messages
        parts = {PAIR[0]: message_text(first), PAIR[1]: message_text(second)}
        position = len(messages)
    texts: dict[str, list[str]] = {"system": [], CONTEXT_ID: []}
    asked = []
    for message in messages[:position]:
        part = _part_id(message)
        if part in texts:
            texts[part].append(message_text(message))
        else:
            asked.append(message)
    parts |= {name: "\n\n".join(of_part) for name, of_part in texts.items()}
    if len(asked) == 1:
        parts["request"] = "\n".join(text for _, _, _, text in parts_of(asked))
    else:
        # One with a history is a short transcript.
        parts["request"] = render_transcript(asked)
    parts["response"] = "".join(map(message_text, messages[position : position + 1]))
    return parts


def render_transcript(
    messages: Messages,
    *,
    start: int = 0,
    show_reasoning: bool = False,
    edited: Collection[int] = (),
) -> str:
    """Render the whole transcript as text, for a judge, a verifier or a summarizer.

    Every part of a turn has a header at column 0: `[3] assistant`, `[3] assistant calls refund`,
    `[4] tool refund (error: timeout)`, `[5] user "alice"` where the log names who spoke, `[6]
    assistant cites` above the sources of an answer; each line below it is indented by two spaces. A
    turn cannot forge a header, nor claim in its text a tool call that it did not make. Tool
    arguments are complete JSON; images and other media are named, with the words that stand in
    them, and their data is left out. `start` leaves out the turns before it, and `edited` marks
    turns, both for the summarizer; a judge must never be given them.
    """
    lines = []
    for index, role, title, body in parts_of(messages, start, show_reasoning=show_reasoning):
        mark = " (edited)" if index in edited else ""
        lines += [f"[{index}] {role}{title or mark}", *indented(body)]
    return "\n".join(lines)


def parts_of(
    messages: Messages, start: int = 0, *, show_reasoning: bool = False
) -> Iterator[tuple[int, str, str, str]]:
    """The parts that `render_transcript` shows: position and role of the turn, what follows the
    role in the part's header, and its text. All but the text are on one line.
    """
    for index, message in enumerate(messages[start:], start):
        role = _inline(message.get("role", "unknown")) + named(message)
        for title, body in _sections(message, show_reasoning=show_reasoning):
            yield index, role, title, body


def render_assistant_turns(messages: Messages) -> str:
    """Render the assistant turns as `[index] id: text`, with their tool calls, for a planner.

    Further lines of a turn's text are indented; a tool call is `[index] id calls NAME: JSON`.
    """
    lines = []
    for index in assistant_indices(messages):
        message = messages[index]
        label = f"[{index}] {_inline(message.get('id') or '-')}{named(message)}"
        for title, body in _sections(message, show_reasoning=False):
            first, *later_lines = body.splitlines() or ["(no text)"]
            lines += [f"{label}{title}: {first}", *(_INDENT + line for line in later_lines)]
    return "\n".join(lines)


def render_tool_calls(message: Message) -> str:
    """Render the tool calls of one turn, each as `NAME: JSON` on lines of its own.

    Empty where there are none.
    """
    calls = message.get("tool_calls") or ()
    return "\n".join(f"{_inline(call.get('function', ''))}: {call_text(call)}" for call in calls)


def text_to_compare(messages: Messages) -> str:
    """Render messages as `render_transcript` does, without their positions and with JSON in lines,
    so that a call and its result can be compared before and after an edit.
    """
    lines = []
    for _, role, title, body in parts_of(messages):
        # A turn that calls a tool often says nothing.
        if title or body:
            lines += [f"{role}{title}", *indented(indented_json(body))]
    return "\n".join(lines)


def structured(text: str, **reading: Any) -> Any:
    """The JSON object or list that a text is, read as `json.loads` does; None for other texts."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text, **reading)
    except (ValueError, RecursionError):
        return None


def indented_json(text: str) -> str:
    """JSON with each value on its own line, all characters as they are; any other text as it is."""
    if structured(text) is None:
        return text
    depth = 0
    lines = [""]
    for sign in re.findall(_JSON_SIGN, text):
        if sign in "]}":
            depth -= 1
            if lines[-1].strip():
                lines.append(_margin(depth))
            else:
                lines.pop()
        lines[-1] += f"{sign} " if sign == ":" else sign
        if sign in "[{":
            depth += 1
        if sign in "[{,":
            lines.append(_margin(depth))
    return "\n".join(lines)


def _margin(depth: int) -> str:
    # Deeper values stay at one margin, so that the text grows in proportion.
    return "  " * min(depth, _DEEPEST_INDENT)


def replace_text(message: Message, new_text: str) -> tuple[Json, int]:
    """Copy a message with its text replaced; also count the reasoning blocks that went.

    Text content stays text. In a block list the new text stands where the first text block stood,
    or first where there was none; other text blocks and all reasoning go, since they belong to
    what was said before; media, tool calls and ids stay. The new block carries nothing of the old
    one (citations, provider data), which would give the edit away.
    """
    content = message.get("content")
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and not metadata.keys().isdisjoint(_CITED):
        uncited = {key: value for key, value in metadata.items() if key not in _CITED}
        message = {**message, "metadata": uncited}
    if not isinstance(content, list):
        return {**message, "content": new_text}, 0
    blocks: list[Any] = []
    position = None
    reasoning = 0
    for block in content:
        kind = block.get("type")
        if kind == "text":
            position = len(blocks) if position is None else position
        elif kind == "reasoning":
            reasoning += 1
        else:
            blocks.append(block)
    blocks.insert(position or 0, {"type": "text", "text": new_text})
    return {**message, "content": blocks}, reasoning


def without_reasoning(message: Message) -> tuple[Message, int]:
    """The message without its reasoning blocks, and how many there were."""
    content = message.get("content")
    if not isinstance(content, list):
        return message, 0
    blocks = [block for block in content if block.get("type") != "reasoning"]
    return {**message, "content": blocks}, len(content) - len(blocks)


def neutralize(text: str, tags: Collection[str]) -> str:
    """Make the given delimiter tags harmless: their `<` becomes `&lt;`.

    Opening and closing tags, with attributes, spaces or in any case; everything else stays as it
    is. Doing it twice changes nothing more.
    """
    if not tags or "<" not in text:
        return text
    names = "|".join(re.escape(tag) for tag in sorted(tags))
    pattern = f"<(?={_TAG_FILLER}(?:{names})(?![\\w.:-]))"
    return re.sub(pattern, "&lt;", text, flags=re.IGNORECASE)


def _is_list_of(value: object, key: str) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get(key), str) for item in value
    )


def brief(value: object) -> str:
    """A value from outside as ASCII that fits into a message."""
    text = ascii(value)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _sections(message: Message, *, show_reasoning: bool) -> list[tuple[str, str]]:
    """List the parts of one turn as (what follows the role in the header, text)."""
    header = ""
    if message.get("role") == "tool":
        header = f" {_inline(message.get('function') or '')}".rstrip()
    calls = []
    for call in message.get("tool_calls") or ():
        calls.append((f" calls {_inline(call.get('function', ''))}", call_text(call)))
    error = message.get("error")
    content = message.get("content")
    sections = []
    if isinstance(error, dict):
        header += f" (error: {_inline(error.get('type', 'unknown'))})"
        sections.append((header, [f"error: {error.get('message', '')}"]))
    blocks = blocks_of(message)
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    for block in blocks:
        for title, text in _block_sections(block, header, show_reasoning=show_reasoning):
            if title == header and sections and sections[-1][0] == header:
                # Joined at the end, since a turn may have any number of texts; an empty one adds no
                # line before others.
                texts = sections[-1][1]
                if texts == [""]:
                    texts.clear()
                texts.append(text)
            else:
                sections.append((title, [text]))
    if not any(title == header for title, _ in sections):
        sections.append((header, []))
    joined = [(title, "\n".join(texts)) for title, texts in sections]
    if cited := sources_of(message):
        joined.append((" cites", "\n".join(cited)))
    return [*joined, *calls]


def named(message: Message) -> str:
    """The name of who spoke behind a role, where the log has one: in quotes, so that it can say
    nothing else in a header.
    """
    name = (message.get("metadata") or {}).get("name")
    if not isinstance(name, str) or message.get("role") == "tool":
        return ""
    return f" {json_in_one_line(json.dumps(name[:_LONGEST_NAME], ensure_ascii=False))}"


def sources_of(message: Message) -> list[str]:
    """What an answer cites, each source once: what the log says of it, on a line."""
    lines: dict[str, None] = {}
    holders: list[Any] = [message.get("metadata")]
    for block in blocks_of(message):
        holders += (block, block.get("internal"))
    for holder in holders:
        for key in _CITED if isinstance(holder, dict) else ():
            cited = holder.get(key)
            for source in cited if isinstance(cited, list) else ():
                lines[_inline(" | ".join(text for _, text in words_in(source)))] = None
    return [*lines]


def words_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a value of JSON, each with the names of its fields: no ids and no data."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _NO_WORDS.split():
                yield from words_in(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_in(inner, path)
    elif isinstance(value, str):
        text = _text_of_data(value)
        if text.strip() and not re.fullmatch(_DATA, text):
            yield path, text


def _text_of_data(text: str) -> str:
    """The text in a data URL of text; nothing of other data, and any other text as it is."""
    head, _, data = text.partition(",")
    if not head.startswith("data:"):
        return text
    if "text/" not in head and "json" not in head:
        return ""
    content = unquote_to_bytes(data)
    if head.endswith(";base64"):
        with contextlib.suppress(ValueError):
            content = base64.b64decode(content)
    return content.decode("utf-8", "replace")


def unshown_in(messages: Messages) -> Counter[str]:
    """Count what transcripts do not show of messages: media without words, as `[audio]`, and fields
    that hold words, by their names.
    """
    unshown = Counter[str]()
    for message in messages:
        for block in blocks_of(message):
            if block.get("type") not in (*_AS_TEXT, "image") and "\n" not in block_text(block):
                unshown[f"[{_inline(block.get('type'))}]"] += 1
        for key, value in (message.get("metadata") or {}).items():
            if key not in ("name", "audio", "transcript", *_CITED) and any(words_in({key: value})):
                unshown[_inline(key)] += 1
    return unshown


def reasoning_text(block: _Block) -> str:
    """What is shown of a block of reasoning: its summary, where nobody can read it."""
    summary = block.get("summary")
    if block.get("redacted"):
        return str(summary or "[redacted]")
    return str(block.get("reasoning") or summary or "")


def block_text(block: _Block) -> str:
    """What a transcript shows of a block that is no call and no reasoning."""
    kind = str(block.get("type", "unknown"))
    if kind == "text":
        return str(block.get("text", ""))
    # Its kind, and its file name or media type where short.
    source = block.get(kind)
    name = str(block.get("filename") or "")
    if not name and isinstance(source, str):
        head = source[:_LONGEST_NAME]
        if head.startswith("data:"):
            name = re.split("[;,]", head[len("data:") :])[0]
        elif not head.startswith("attachment://") and len(source) <= _LONGEST_NAME:
            with contextlib.suppress(ValueError):
                name = urlsplit(source).path.rsplit("/", 1)[-1]
    name = name or str(block.get("mime_type") or block.get("format") or "")
    is_short = name and len(name) <= _LONGEST_NAME
    lines = [_inline(f"[{kind}: {name}]" if is_short else f"[{kind}]")]
    for path, text in words_in(block):
        if path not in (kind, "filename"):
            lines.append(f"{_inline(path)}: {text}")
        elif path == kind and text != block[kind]:
            lines.append(text)
    return "\n".join(lines)


def _block_sections(
    block: _Block, header: str, *, show_reasoning: bool
) -> Iterator[tuple[str, str]]:
    kind = block.get("type")
    if kind == "reasoning":
        if show_reasoning:
            yield " reasoning", reasoning_text(block)
    elif kind == "tool_use":
        name = _inline(block.get("name", ""))
        yield f" calls {name} (run by the provider)", str(block.get("arguments", ""))
        failed = f"\nerror: {block['error']}" if block.get("error") else ""
        yield f" gets the result of {name}", f"{block.get('result', '')}{failed}"
    else:
        yield header, block_text(block)


def call_text(call: Fields) -> str:
    """The arguments of a call in one line of JSON, and why they could not be parsed."""
    arguments = json_in_one_line(json.dumps(call.get("arguments"), ensure_ascii=False, default=str))
    unparsed = f"\nparse error: {call['parse_error']}" if call.get("parse_error") else ""
    return arguments + unparsed


def indented(text: str) -> Iterator[str]:
    """The lines of a text, each behind two spaces."""
    return (_INDENT + line for line in text.splitlines())


def _inline(text: object) -> str:
    return " ".join(str(text).splitlines())
