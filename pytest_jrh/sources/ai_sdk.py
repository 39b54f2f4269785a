"""Messages of the Vercel AI SDK, versions 4 to 6: those for models, whose contents hold the parts
`tool-call` and `tool-result`, and those of its user interface, with calls and results in `parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_jrh.sources.content import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]
_STEP = {"type": "step-start"}
_DENIED = "Tool execution denied."


def parts_of(turn: Json) -> list[Json] | None:
    """What was said and done in a message, where a result may stand before what came after it; None
    for a message of another kind.
    """
    parts, content = turn.get("parts"), turn.get("content")
    if turn.get("role") == "assistant" and has_results(content):
        parts = content
    elif not parts and isinstance(turn.get("toolInvocations"), list):
        parts = []
        for invocation in turn["toolInvocations"]:
            parts.append({"type": "tool-invocation", "toolInvocation": invocation})
    if not isinstance(parts, list) or not parts:
        return None
    for part in parts:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            return None
    texts = "".join(as_text(part.get("text")) for part in parts if part["type"] == "text")
    # Version 4 has the text in both places.
    if isinstance(content, str) and content not in texts:
        parts = [*parts, {"type": "text", "text": content}]
    return parts


def has_results(content: Any) -> bool:
    """Whether the content of a message holds results of calls."""
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "tool-result" for part in content
    )


def steps_of(turn: Json, parts: Sequence[Json]) -> Iterator[Json]:
    """A message as those that it stands for: what the agent did up to a result, the results, and so
    on.
    """
    head = {key: turn[key] for key in turn if key not in ("content", "parts", "toolInvocations")}
    content: list[Json] = []
    results: list[Json] = []
    for part in [*parts, _STEP]:
        call = _call_in(part)
        if results and call is None and part["type"] not in ("tool-call", "tool-result"):
            yield {**head, "content": content}
            yield {"role": "tool", "content": results}
            head, content, results = {"role": turn["role"]}, [], []
        if call is not None:
            content.append({**call, "type": "tool-call"})
            if call.get("approval"):
                content.append({"type": "tool-approval", "approval": call["approval"]})
            results += _results_in(call)
        elif part["type"] == "tool-result":
            results.append(part)
        elif part["type"] != _STEP["type"]:
            content.append(part)
    if content:
        yield {**head, "content": content}


def _call_in(part: Json) -> Json | None:
    """The call in a part of the user interface, with its result where there is one."""
    kind = part["type"]
    call = part.get("toolInvocation")
    if kind == "tool-invocation" and isinstance(call, dict):
        return call
    if kind == "dynamic-tool":
        return part
    if kind.startswith("tool-") and "state" in part:
        call = {**part, "toolName": kind.removeprefix("tool-")}
        return call if "input" in part else {**call, "input": part.get("rawInput")}
    return None


def _results_in(call: Json) -> Iterator[Json]:
    result = {
        "type": "tool-result",
        "toolCallId": call.get("toolCallId"),
        "toolName": call.get("toolName"),
    }
    match call.get("state"):
        case "result":
            yield {**result, "result": call.get("result")}
        case "output-available":
            yield {**result, "result": call.get("output")}
        case "output-error":
            yield {**result, "result": call.get("errorText"), "isError": True}
        case "output-denied":
            approval = call.get("approval")
            reason = approval.get("reason") if isinstance(approval, dict) else None
            yield {**result, "result": reason or _DENIED, "isError": True}


def result_of(part: Json) -> Json:
    """A part with a result as Anthropic writes it: `result` of version 4 is any JSON, and `output`
    of later ones says of what type its value is.
    """
    content: Any = as_text(part.get("result"))
    is_error = part.get("isError") is True
    output = part.get("output")
    if isinstance(output, dict) and isinstance(output.get("type"), str):
        kind = output["type"]
        content = output.get("value", output.get("reason"))
        if kind != "content" or not isinstance(content, list):
            content = as_text(content)
        is_error = kind.startswith("error-") or kind == "execution-denied"
    elif "output" in part:
        content = as_text(output)
    call = {"tool_use_id": part.get("toolCallId"), "name": part.get("toolName")}
    return {**call, "content": content, "is_error": is_error}
