"""Write the demo's runs as conversations: `python -m examples.conversations.from_log [FILE]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh import load_inspect_eval_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = Path(__file__).parents[2] / "inputs" / "data" / "refund_agent" / "refund_agent.eval"
DEFAULT = Path(__file__).with_name("conversations.jsonl")
_KEPT = ("id", "role", "content", "tool_call_id", "error")


def openai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as OpenAI's chat API has it, under the id that it had."""
    made = {key: message[key] for key in _KEPT if key in message}
    if "function" in message:
        made["name"] = message["function"]
    if message.get("tool_calls"):
        made["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["function"], "arguments": json.dumps(call["arguments"])},
            }
            for call in message["tool_calls"]
        ]
        made["content"] = message["content"] or None
    return made


def write_conversations(target: Path) -> None:
    """Write one conversation a line, in the order of the log."""
    with target.open("w", encoding="utf-8") as file:
        for run in load_inspect_eval_runs(LOG):
            line = {
                "id": run.run_id,
                "messages": [openai_message(message) for message in run.messages],
                "metadata": dict(run.metadata),
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def main() -> None:
    """Write the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", type=Path, default=DEFAULT)
    write_conversations(parser.parse_args().target)


if __name__ == "__main__":
    main()
