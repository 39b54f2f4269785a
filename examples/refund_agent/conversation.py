"""The scripts of the conversations: what the customer writes, and what the agent writes and calls.

Tool results are not scripted: they come from the tools, when the task runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent / "conversations"


@dataclass(frozen=True, slots=True)
class ToolCallScript:
    """One call that the agent makes."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: the customer's, or the agent's with the calls that it makes."""

    speaker: str
    text: str
    calls: tuple[ToolCallScript, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A scripted conversation; `ledger` is what the shop's books must show afterwards."""

    id: str
    turns: tuple[Turn, ...]
    ledger: tuple[str, ...] = ()
    payment_failures: int = 0

    @property
    def customer_messages(self) -> tuple[str, ...]:
        """What the customer writes, in order."""
        return tuple(turn.text for turn in self.turns if turn.speaker == "customer")

    @property
    def agent_turns(self) -> tuple[Turn, ...]:
        """What the agent does, in order."""
        return tuple(turn for turn in self.turns if turn.speaker == "agent")

    def agent_turns_by_index(self) -> dict[int, str]:
        """Give the agent's texts by message index in the finished run.

        The system message comes first, and each call is followed by one tool message.
        """
        return dict(self._walk())

    def _walk(self) -> Iterator[tuple[int, str]]:
        index = 1
        for turn in self.turns:
            if turn.speaker == "agent":
                yield index, turn.text
            index += 1 + len(turn.calls)


def _turn(entry: dict[str, Any]) -> Turn:
    if "customer" in entry:
        return Turn("customer", str(entry["customer"]).strip())
    calls = []
    for call in entry.get("calls", ()):
        arguments = dict(call)
        calls.append(ToolCallScript(str(arguments.pop("tool")), arguments))
    return Turn("agent", str(entry["agent"]).strip(), tuple(calls))


def load_conversation(path: Path) -> Conversation:
    """One conversation from its YAML file; the file's stem is its id."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Conversation(
        id=path.stem,
        turns=tuple(_turn(entry) for entry in data["turns"]),
        ledger=tuple(data.get("ledger", ())),
        payment_failures=int(data.get("payment_failures", 0)),
    )


def load_conversations(folder: Path = FOLDER) -> tuple[Conversation, ...]:
    """All conversations, sorted by id."""
    return tuple(load_conversation(path) for path in sorted(folder.glob("*.yml")))
