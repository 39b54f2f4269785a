"""Small Inspect logs, written with Inspect's own writer, and ways to spoil them."""

from __future__ import annotations

import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspect_ai.log import EvalLog

Message = dict[str, Any]
Sample = dict[str, Any]

IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 20


def system(text: str) -> Message:
    return {"role": "system", "content": text, "id": "sys"}


def user(content: str | list[dict[str, Any]], id: str = "u") -> Message:  # noqa: A002 - Inspect's name
    return {"role": "user", "content": content, "id": id}


def assistant(
    content: str | list[dict[str, Any]],
    *calls: dict[str, Any],
    id: str = "a",  # noqa: A002
) -> Message:
    message: Message = {"role": "assistant", "content": content, "id": id}
    return {**message, "tool_calls": list(calls)} if calls else message


def call(function: str, id: str = "call-1", **arguments: Any) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "function": function, "arguments": arguments, "type": "function"}


def tool(
    function: str, content: str, *, error: tuple[str, str] | None = None, call_id: str = "call-1"
) -> Message:
    message: Message = {
        "role": "tool",
        "content": content,
        "function": function,
        "tool_call_id": call_id,
        "id": "t",
    }
    return {**message, "error": {"type": error[0], "message": error[1]}} if error else message


def conversation(name: str = "Ada") -> list[Message]:
    """Six messages: a tool called twice, once in vain."""
    return [
        system("You are a support agent."),
        user(f"I am {name}. Where is my order?", id="u1"),
        assistant("Let me look.", call("look_up", order=7), id="a1"),
        tool("look_up", "", error=("timeout", "took too long")),
        assistant("", call("look_up", "call-2", order=7, note=None), id="a2"),
        tool("look_up", "shipped", call_id="call-2"),
        assistant("It was shipped.", id="a3"),
    ]


def sample(
    id: int | str,  # noqa: A002
    epoch: int = 1,
    messages: Sequence[Message] | None = None,
    **fields: Any,
) -> Sample:
    """A sample as Inspect stores it; `error="text"` makes it one that ended in an error."""
    if isinstance(fields.get("error"), str):
        fields["error"] = {"message": fields["error"], "traceback": "", "traceback_ansi": ""}
    turns = conversation() if messages is None else list(messages)
    return {
        "id": id,
        "epoch": epoch,
        "input": "Where is my order?",
        "target": "shipped",
        "messages": turns,
        **fields,
    }


def write_log(path: Path, samples: Sequence[Sample]) -> Path:
    """Write a log with Inspect's writer; `.eval` or `.json` by the path's suffix."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec

    ids = list(dict.fromkeys(item["id"] for item in samples))
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="support",
        dataset=EvalDataset(name="orders", samples=len(samples), sample_ids=ids),
        model="mockllm/model",
        config=EvalConfig(epochs=max((item["epoch"] for item in samples), default=1)),
    )
    made = [EvalSample.model_validate(item, context={"deserializing": True}) for item in samples]
    store(EvalLog(status="success", eval=spec, samples=made), path)
    return path


def store(log: EvalLog, path: Path) -> None:
    """Write a log outside of any running loop, such as Playwright's: there Inspect would patch
    asyncio for good."""
    from inspect_ai.log import write_eval_log

    with ThreadPoolExecutor(1) as threads:
        threads.submit(write_eval_log, log, str(path)).result()


def rewrite(
    path: Path, edit: Callable[[dict[str, bytes]], None], *, compression: int = zipfile.ZIP_DEFLATED
) -> Path:
    """Change the members of an `.eval` archive."""
    import inspect_ai.log  # noqa: F401 - zipfile learns Inspect's compression

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    edit(members)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def edit_sample(
    path: Path,
    id: str,  # noqa: A002
    change: Callable[[dict[str, Any]], None],
) -> Path:
    """Change the JSON of one sample in an `.eval` archive."""
    name = f"samples/{id}_epoch_1.json"

    def edit(members: dict[str, bytes]) -> None:
        data = json.loads(members[name])
        change(data)
        members[name] = json.dumps(data).encode()

    return rewrite(path, edit)
