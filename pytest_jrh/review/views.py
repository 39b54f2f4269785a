"""A case as the page shows it: a small row for the list, and everything about it for the pane on
the right.

A transcript as the page shows it: turns with their parts, what to fold, and the differences of
edited turns.

Every text that leaves this module is `visible`: what would reorder a line, hide or erase something
shows itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import Piece, differences
from pytest_jrh.core.transcript import message_text
from pytest_jrh.review.board import labels
from pytest_jrh.store.decisions import BY_HAND, is_editable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.core.model import Case, Message
    from pytest_jrh.review.board import Reviewed


LONG = 1_200
LONG_TOOL = 400
HUGE = 20_000
_PREVIEW = 300
_KEPT_BESIDE_CHANGES = 400
_NEIGHBOURS = 2
_FEW_TURNS = 3
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)

PartKind = Literal["text", "call", "reasoning", "media", "error", "result"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a turn. `folded` parts show `preview` first.

    A huge one's `text` is asked for separately.
    """

    kind: PartKind
    title: str
    text: str
    number: int

    @property
    def size(self) -> int:
        return len(self.text)

    @property
    def huge(self) -> bool:
        return self.size > HUGE

    @property
    def preview(self) -> str:
        return " ".join(self.text[:_PREVIEW].split())


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a difference; of a long unchanged one the middle can be folded away."""

    kind: Literal["same", "gone", "new"]
    text: str
    folded: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. `state` says who changed its text: nobody, the editor ("edited"), or a person ("by
    hand").
    """

    index: int
    role: str
    name: str
    parts: tuple[Part, ...]
    state: Literal["", "edited", "by hand"] = ""
    editable: bool = False
    difference: tuple[Stretch, ...] = ()
    why: tuple[tuple[str, str], ...] = ()
    dropped_reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Fold:
    """Turns in a row; folded away where nothing near them was changed."""

    turns: tuple[Turn, ...] = field(default=())
    folded: bool = False


def visible(text: str) -> str:
    """Write control characters, and those that reorder or hide text, as visible signs.

    Newlines and tabs stay.
    """
    text = text.replace("\r\n", "\n")
    return _INVISIBLE.sub(_sign, text) if _INVISIBLE.search(text) else text


def folds(case: Case, made: Case) -> tuple[Fold, ...]:
    """Lay out a transcript: changed turns with their neighbours in sight, the turns between folded.

    `made` is the case as the pipeline made it, `case` with a person's edits. Where nothing was
    changed, all is in sight.
    """
    turns = [
        turn_view(case, made, index)
        for index in range(max(len(case.messages), len(case.run.messages)))
    ]
    changed = [turn.index for turn in turns if turn.state]
    if not changed:
        return (Fold(tuple(turns)),)
    shown = {index + step for index in changed for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)}
    return tuple(_folded(turns, shown))


def turn_view(case: Case, made: Case, index: int) -> Turn:
    """Lay out one turn."""
    before, after = _message(case.run.messages, index), _message(case.messages, index)
    message = after or before
    old, new = message_text(before), message_text(after)
    by_hand = new != message_text(_message(made.messages, index)) or any(
        edit.editor_reason == BY_HAND and edit.message_index == index for edit in case.outcome.edits
    )
    changed = old != new
    return Turn(
        index=index,
        role=visible(str(message.get("role", "unknown"))),
        name=visible(str(message.get("function") or "")) if message.get("role") == "tool" else "",
        parts=tuple(_numbered(message, without_text=changed)),
        state="" if not changed else "by hand" if by_hand else "edited",
        editable=case.outcome.no_case is None and is_editable(case.messages, index),
        difference=tuple(_stretches(differences(old, new))) if changed else (),
        why=tuple(_why(case, index)) if changed else (),
        dropped_reasoning=sum(
            edit.dropped_reasoning for edit in case.outcome.edits if edit.message_index == index
        ),
    )


def bare_turns(messages: Sequence[Message]) -> tuple[Turn, ...]:
    """Lay out a transcript for people who may not know how it was made.

    Without reasoning, which edited turns have lost, and with the text of a turn in one part, as an
    edit leaves it.
    """
    return tuple(
        Turn(
            index=index,
            role=visible(str(message.get("role", "unknown"))),
            name=visible(str(message.get("function") or ""))
            if message.get("role") == "tool"
            else "",
            parts=tuple(_bare(message)),
        )
        for index, message in enumerate(messages)
    )


def bare_part_text(messages: Sequence[Message], index: int, number: int) -> str:
    """Give the whole text of one part of `bare_turns`; raises `LookupError` for none."""
    parts = tuple(_bare(messages[index]))
    return parts[number].text


def part_text(case: Case, index: int, number: int) -> str:
    """Give the whole text of one part; raises `LookupError` where there is none."""
    if not 0 <= index < len(case.messages):
        raise LookupError(f"there is no message {index}")
    part = next(_numbered(case.messages[index], first=number), None)
    if part is None or part.number != number:
        raise LookupError(f"message {index} has no part {number}")
    return part.text


def _folded(turns: Sequence[Turn], shown: set[int]) -> Iterator[Fold]:
    run: list[Turn] = []
    hidden = False
    for turn in turns:
        if run and (turn.index in shown) == hidden:
            yield Fold(tuple(run), hidden and len(run) >= _FEW_TURNS)
            run = []
        hidden = turn.index not in shown
        run.append(turn)
    yield Fold(tuple(run), hidden and len(run) >= _FEW_TURNS)


def _why(case: Case, index: int) -> Iterator[tuple[str, str]]:
    plan = case.outcome.plan
    for step in plan.steps if plan else ():
        if step.message_index == index:
            yield "Goal", visible(step.goal)
            yield "Why this turn", visible(step.rationale)
    for edit in case.outcome.edits:
        if edit.message_index == index and edit.editor_reason != BY_HAND:
            yield "The editor's reason", visible(edit.editor_reason)


def _stretches(pieces: Sequence[Piece]) -> Iterator[Stretch]:
    for piece in pieces:
        text = visible(piece.text)
        if piece.kind == "same" and len(text) > 3 * _KEPT_BESIDE_CHANGES:
            middle = text[_KEPT_BESIDE_CHANGES:-_KEPT_BESIDE_CHANGES]
            yield Stretch("same", text[:_KEPT_BESIDE_CHANGES], middle, text[-_KEPT_BESIDE_CHANGES:])
        else:
            yield Stretch(piece.kind, text)


def _message(messages: Sequence[Message], index: int) -> Message:
    return messages[index] if index < len(messages) else {}


def _bare(message: Message) -> Iterator[Part]:
    said, text = _said(message), message_text(message)
    whole = [(said, "", text)] if text else []
    rest = [part for part in _parts(message) if part[0] != "reasoning" and part[:2] != (said, "")]
    for number, (kind, title, each) in enumerate([*whole, *rest]):
        yield Part(kind, visible(title), visible(each), number)


def _said(message: Message) -> PartKind:
    return "result" if message.get("role") == "tool" else "text"


def _numbered(message: Message, *, without_text: bool = False, first: int = 0) -> Iterator[Part]:
    for number, (kind, title, text) in enumerate(_parts(message)):
        if number >= first and not (without_text and kind == "text"):
            yield Part(kind, visible(title), visible(text), number)


def _parts(message: Message) -> Iterator[tuple[PartKind, str, str]]:
    error = message.get("error")
    if isinstance(error, dict):
        yield "error", f"error: {error.get('type', 'unknown')}", str(error.get("message", ""))
    said = _said(message)
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        yield from _block(block, said)
    for call in message.get("tool_calls") or ():
        failed = f"\nparse error: {call['parse_error']}" if call.get("parse_error") else ""
        yield "call", str(call.get("function", "")), _json(call.get("arguments")) + failed


def _block(block: Mapping[str, Any], said: PartKind) -> Iterator[tuple[PartKind, str, str]]:
    kind = block.get("type")
    if kind == "text":
        yield said, "", str(block.get("text", ""))
    elif kind == "reasoning":
        text = (
            block.get("summary") or "[redacted]"
            if block.get("redacted")
            else block.get("reasoning", "")
        )
        yield "reasoning", "reasoning", str(text)
    elif kind == "tool_use":
        yield (
            "call",
            f"{block.get('name', '')} (run by the provider)",
            str(block.get("arguments", "")),
        )
        yield (
            "result",
            f"result of {block.get('name', '')}",
            f"{block.get('result', '')}{block.get('error') or ''}",
        )
    else:
        yield "media", f"{kind or 'unknown'} block", "not shown here"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _sign(match: re.Match[str]) -> str:
    return f"\u2039U+{ord(match[0]):04X}\u203a"


_LONGEST_HINT = 140


def row(one: Reviewed) -> dict[str, Any]:
    """A case as one entry of the list, as JSON values."""
    entry, case = one.entry, one.case
    spec, plan = case.spec, case.outcome.plan
    thesis = visible(plan.thesis) if plan else ""
    return {
        "key": entry.key,
        "position": entry.position,
        "digest": entry.digest,
        "suite": spec.suite,
        "test": spec.test,
        "rubric": visible(spec.rubric_id),
        "run": visible(spec.run_id),
        "epoch": spec.epoch,
        "target": spec.target_score,
        "expected": case.expected,
        "hint": thesis[:_LONGEST_HINT],
        "edits": len({edit.message_index for edit in case.outcome.edits}),
        "turns": len(case.messages),
        "action": one.decision.action if one.decision else None,
        "edited": bool(one.decision and one.decision.has_edits),
        "note": one.decision.note if one.decision else "",
        "void": one.void.action if one.void else None,
        "judged": bool(entry.judged),
        "rejected": entry.rejected,
        "version": entry.version,
    }


def case_values(one: Reviewed, *, show_verdict: bool) -> dict[str, object]:
    """What the case's page is rendered from.

    The verdict is not in it where it is to stay hidden.
    """
    entry, case = one.entry, one.case
    outcome = case.outcome
    laid_out = folds(case, entry.case)
    changed = [turn for fold in laid_out for turn in fold.turns if turn.state]
    return {
        "key": entry.key,
        "base": f"/cases/{entry.key}",
        "digest": entry.digest,
        "title": visible(case.spec.run_id),
        "epoch": case.spec.epoch,
        "suite": case.spec.suite,
        "test": case.spec.test,
        "kind": KINDS[case.spec.test].label,
        "rubric_id": visible(case.rubric.id),
        "instructions": visible(case.rubric.instructions),
        "levels": {score: visible(label) for score, label in labels(case).items()},
        "mode": case.mode,
        "expected": case.expected,
        "made_expected": entry.case.expected,
        "thesis": visible(outcome.plan.thesis) if outcome.plan else "",
        "steps": _steps(case),
        "verification": outcome.verification,
        "rationale": visible(outcome.verification.rationale) if outcome.verification else "",
        "verified": case.verified,
        "rejected": entry.rejected,
        "notes": [visible(note) for note in case.run.notes],
        "task": visible(case.run.input),
        "action": one.decision.action if one.decision else "",
        "has_edits": bool(one.decision and one.decision.has_edits),
        "void": one.void.action if one.void else "",
        "judged": _verdicts(one) if one.decision or show_verdict else [],
        "hidden": bool(entry.judged) and not one.decision and not show_verdict,
        "show_verdict": show_verdict,
        "folds": laid_out,
        "changed": changed,
        "long": LONG,
        "long_tool": LONG_TOOL,
        "huge": HUGE,
    }


def _steps(case: Case) -> list[dict[str, Any]]:
    plan = case.outcome.plan
    return [
        {
            "index": step.message_index,
            "goal": visible(step.goal),
            "rationale": visible(step.rationale),
        }
        for step in (plan.steps if plan else ())
    ]


def _verdicts(one: Reviewed) -> list[dict[str, Any]]:
    return [
        {
            "judge": visible(judge),
            "score": judgment.given,
            "agrees": judgment.score == one.case.expected,
            "reasoning": visible(judgment.shown.reasoning),
            "minority": None
            if judgment.minority is None
            else {
                "score": judgment.minority.score,
                "reasoning": visible(judgment.minority.reasoning),
            },
        }
        for judge, judgment in one.entry.judged.items()
    ]
