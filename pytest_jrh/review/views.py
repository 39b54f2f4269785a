"""A case as the pages show it: a row of the list, and everything about it for the pane beside it.

A transcript is laid out as turns with their parts, what to fold, and the differences of edited
turns. Every text that leaves this module is `visible`: what would reorder a line, hide or erase
something shows itself. Before a case is labelled blind, `bare_values` is all that is sent of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import Piece, differences
from pytest_jrh.core.transcript import message_text
from pytest_jrh.judges.judge import IMAGE_DATA
from pytest_jrh.reports.evidence import label_votes
from pytest_jrh.review.board import Reviewed, labels_of
from pytest_jrh.store.decisions import BY_HAND, is_editable
from pytest_jrh.store.labels import CANNOT_TELL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_jrh.core.model import Case, Message
    from pytest_jrh.review.blind import Assigned
    from pytest_jrh.review.board import ReviewCase


LONG = 1_200
LONG_TOOL = 400
HUGE = 20_000
_PREVIEW = 300
_KEPT_BESIDE_CHANGES = 400
_NEIGHBOURS = 2
_FEW_TURNS = 3
_LONGEST_HINT = 140
_DEEPEST_INDENT = 12
_FENCES = ("```", "~~~")
_HEADING = re.compile(r"#{1,6} ")
_SPAN = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
# A text in quotes, a sign, or what stands between signs.
_JSON_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)

PartKind = Literal["text", "call", "reasoning", "media", "image", "error", "result"]
PieceKind = Literal["text", "code", "block", "heading", "strong"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a turn. `folded` parts show `preview` first.

    A huge one's `text`, and the `image` (base64), are asked for separately.
    """

    kind: PartKind
    title: str
    text: str
    number: int
    image: str = field(default="", repr=False)

    @property
    def pieces(self) -> tuple[tuple[PieceKind, str], ...]:
        """The text as Markdown sets it."""
        return tuple(_pieces_of_markdown(self.text))

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


def _sign(match: re.Match[str]) -> str:
    return f"\u2039U+{ord(match[0]):04X}\u203a"


def _pieces_of_markdown(text: str) -> Iterator[tuple[PieceKind, str]]:
    """Blocks and spans of code, headings and strong words; all else stays text as it is.

    No letter is left out but the marks themselves: what is behind the three backticks of a block is
    its first line.
    """
    plain: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = line.strip()[:3]
        if fence and mark == fence and not line.strip().strip(fence):
            yield "block", "\n".join(block)
            fence = ""
        elif fence:
            block.append(line)
        elif mark in _FENCES or _HEADING.match(line):
            yield from _spans("\n".join(plain))
            plain = []
            if mark in _FENCES:
                language = line.strip().lstrip(mark[0])
                fence, block = mark, [language] if language else []
            else:
                yield "heading", line.lstrip("#").strip()
        else:
            plain.append(line)
    if fence:
        yield "block", "\n".join(block)
    yield from _spans("\n".join(plain))


def _spans(text: str) -> Iterator[tuple[PieceKind, str]]:
    end = 0
    for match in _SPAN.finditer(text):
        if match.start() > end:
            yield "text", text[end : match.start()]
        yield ("code", match[1]) if match[1] else ("strong", match[2])
        end = match.end()
    if end < len(text):
        yield "text", text[end:]


def indented_json(text: str) -> str:
    """JSON with each value on a line of its own, all characters as they are; any other text as it
    is.
    """
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    depth = 0
    lines = [""]
    for sign in _JSON_SIGN.findall(text):
        if sign in "]}":
            depth -= 1
            if lines[-1].strip():
                lines.append(_indent(depth))
            else:
                lines.pop()
        lines[-1] += f"{sign} " if sign == ":" else sign
        if sign in "[{":
            depth += 1
        if sign in "[{,":
            lines.append(_indent(depth))
    return "\n".join(lines)


def _indent(depth: int) -> str:
    # Deeper values stay at one margin, so that the text grows in proportion.
    return "  " * min(depth, _DEEPEST_INDENT)


def folds(case: Case, made_case: Case, *, editable: bool = True) -> tuple[Fold, ...]:
    """Lay out a transcript: changed turns with their neighbours in sight, the turns between folded.

    `made_case` is the case as the pipeline made it, `case` with a person's edits. Where nothing was
    changed, all is in sight.
    """
    number = max(len(case.messages), len(case.run.messages))
    turns = [_turn(case, made_case, index, editable=editable) for index in range(number)]
    changed = [turn.index for turn in turns if turn.state]
    if not changed:
        return (Fold(tuple(turns)),)
    in_sight: set[int] = set()
    for index in changed:
        in_sight.update(range(index - _NEIGHBOURS, index + _NEIGHBOURS + 1))
    return tuple(_folded(turns, in_sight))


def _folded(turns: Sequence[Turn], in_sight: set[int]) -> Iterator[Fold]:
    run: list[Turn] = []
    hidden = False
    for turn in turns:
        if run and (turn.index in in_sight) == hidden:
            yield Fold(tuple(run), hidden and len(run) >= _FEW_TURNS)
            run = []
        hidden = turn.index not in in_sight
        run.append(turn)
    yield Fold(tuple(run), hidden and len(run) >= _FEW_TURNS)


def _turn(case: Case, made_case: Case, index: int, *, editable: bool) -> Turn:
    before, after = _message(case.run.messages, index), _message(case.messages, index)
    old, new = message_text(before), message_text(after)
    edits = [edit for edit in case.outcome.edits if edit.message_index == index]
    is_changed = old != new
    turn = _plain_turn(after or before, index, _parts(after or before, without_text=is_changed))
    turn = replace(
        turn,
        editable=editable and case.outcome.no_case is None and is_editable(case.messages, index),
        dropped_reasoning=sum(edit.dropped_reasoning for edit in edits),
    )
    if not is_changed:
        return turn
    by_hand = new != message_text(_message(made_case.messages, index)) or any(
        edit.editor_reason == BY_HAND for edit in edits
    )
    return replace(
        turn,
        state="by hand" if by_hand else "edited",
        difference=tuple(_stretches(differences(old, new))),
        why=tuple(_why(case, index)),
    )


def _plain_turn(message: Message, index: int, parts: Iterable[Part]) -> Turn:
    role = str(message.get("role", "unknown"))
    name = str(message.get("function") or "") if role == "tool" else ""
    return Turn(index, visible(role), visible(name), tuple(parts))


def _message(messages: Sequence[Message], index: int) -> Message:
    return messages[index] if index < len(messages) else {}


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


def part_of(messages: Sequence[Message], index: int, number: int, *, bare: bool = False) -> Part:
    """Give one part of a turn; raises `LookupError` where there is none."""
    if not 0 <= index < len(messages):
        raise LookupError(f"there is no message {index}")
    parts = _bare_parts(messages[index]) if bare else _parts(messages[index])
    for part in parts:
        if part.number == number:
            return part
    raise LookupError(f"message {index} has no part {number}")


def _bare_parts(message: Message) -> Iterator[Part]:
    """The parts of a turn for people who may not know how it was made.

    Without reasoning, which edited turns have lost, and with the text of a turn in one part, as an
    edit leaves it.
    """
    kind, text = _text_kind(message), message_text(message)
    pieces = [(kind, "", text)] if text else []
    for piece in _pieces(message):
        if piece[0] != "reasoning" and piece[:2] != (kind, ""):
            pieces.append(piece)
    return _numbered(pieces)


def _parts(message: Message, *, without_text: bool = False) -> Iterator[Part]:
    for part in _numbered(_pieces(message)):
        if not (without_text and part.kind == "text"):
            yield part


def _numbered(pieces: Iterable[tuple[PartKind, str, str]]) -> Iterator[Part]:
    for number, (kind, title, text) in enumerate(pieces):
        if kind == "image":
            yield Part(kind, visible(title), "", number, text)
        else:
            shown_text = indented_json(text) if kind == "result" else text
            yield Part(kind, visible(title), visible(shown_text), number)


def _text_kind(message: Message) -> PartKind:
    return "result" if message.get("role") == "tool" else "text"


def _pieces(message: Message) -> Iterator[tuple[PartKind, str, str]]:
    """The kind, title and text of every part of a message."""
    error = message.get("error")
    if isinstance(error, dict):
        yield "error", f"error: {error.get('type', 'unknown')}", str(error.get("message", ""))
    content = message.get("content") or ()
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content:
        yield from _block(block, _text_kind(message))
    for call in message.get("tool_calls") or ():
        text = json.dumps(call.get("arguments"), ensure_ascii=False, indent=2, default=str)
        if call.get("parse_error"):
            text += f"\nparse error: {call['parse_error']}"
        yield "call", str(call.get("function", "")), text


def _block(block: Mapping[str, Any], text_kind: PartKind) -> Iterator[tuple[PartKind, str, str]]:
    kind = block.get("type")
    name = block.get("name", "")
    if kind == "text":
        yield text_kind, "", str(block.get("text", ""))
    elif kind == "reasoning" and block.get("redacted"):
        yield "reasoning", "reasoning", str(block.get("summary") or "[redacted]")
    elif kind == "reasoning":
        yield "reasoning", "reasoning", str(block.get("reasoning", ""))
    elif kind == "tool_use":
        yield "call", f"{name} (run by the provider)", str(block.get("arguments", ""))
        yield "result", f"result of {name}", f"{block.get('result', '')}{block.get('error') or ''}"
    elif kind == "image" and (found := IMAGE_DATA.match(str(block.get("image", "")))):
        yield "image", f"image/{found[1]}", found.string[found.end() :]
    else:
        yield "media", f"{kind or 'unknown'} block", "not shown here"


def review_row(reviewed: Reviewed) -> dict[str, Any]:
    """A case as one entry of the list of those to decide about, as JSON values."""
    entry, case, decision = reviewed.entry, reviewed.case, reviewed.decision
    spec, plan = case.spec, case.outcome.plan
    thesis = visible(plan.thesis) if plan else ""
    return {
        "key": entry.key,
        "position": entry.position,
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
        "digest": entry.digest,
        "action": decision.action if decision else None,
        "note": decision.note if decision else "",
        "void": reviewed.void.action if reviewed.void else None,
        "rejected": entry.rejected,
    }


def label_row(assigned: Assigned) -> dict[str, Any]:
    """A case as one entry of a reviewer's list, as JSON values; before it may be revealed, without
    what depends on its answers.
    """
    row = {
        "key": assigned.key,
        "number": assigned.number,
        "open": assigned.is_open,
        "busy": assigned.busy,
        "revealed": assigned.may_reveal,
    }
    if assigned.may_reveal:
        row["differs"] = bool(assigned.difference)
    return row


def revealed_row(assigned: Assigned) -> dict[str, Any]:
    """A labelled case as one line of the list of all that is revealed after Finish."""
    case = assigned.entry.case
    meanings: dict[int | None, str] = {
        score: visible(meaning) for score, meaning in _meanings(case).items()
    }
    plan, edited = case.outcome.plan, {edit.message_index for edit in case.outcome.edits}
    compared = case.expected if assigned.answer is None else assigned.answer
    verdicts = list(_verdicts(assigned.entry, compared))
    for verdict in verdicts:
        verdict["label"] = meanings.get(verdict["said"], verdict["score"])
    return {
        "key": assigned.key,
        "number": assigned.number,
        "rubric": visible(case.rubric.id),
        "run": visible(case.spec.run_id),
        "answer": meanings.get(assigned.answer, CANNOT_TELL),
        "expected": meanings.get(case.expected, ""),
        "verdicts": verdicts,
        "rejected": case.outcome.no_case is not None,
        "edited": sorted(edited),
        "thesis": visible(plan.thesis)[:_LONGEST_HINT] if plan and edited else "",
        "difference": assigned.difference,
    }


def review_values(reviewed: Reviewed, *, show_verdict: bool) -> dict[str, object]:
    """What a case to decide about is rendered from.

    The verdict is not in it where it is to stay hidden.
    """
    entry, case, decision = reviewed.entry, reviewed.case, reviewed.decision
    is_hidden = decision is None and not show_verdict
    return {
        **_case_values(case, f"/cases/{entry.key}", folds(case, entry.case)),
        **_made_values(reviewed, show_verdict=not is_hidden),
        "key": entry.key,
        "digest": entry.digest,
        "levels": {score: visible(label) for score, label in labels_of(case).items()},
        "kind": KINDS[case.spec.test].label,
        "made_expected": entry.case.expected,
        "rejected": entry.rejected,
        "notes": [visible(note) for note in case.run.notes],
        "action": decision.action if decision else "",
        "has_edits": bool(decision and decision.has_edits),
        "void": reviewed.void.action if reviewed.void else "",
        "hidden": bool(entry.judged) and is_hidden,
        "show_verdict": show_verdict,
    }


def bare_values(assigned: Assigned, base: str) -> dict[str, object]:
    """What a case is rendered from before it is labelled: the rubric, and what the judge reads."""
    turns = []
    for index, message in enumerate(assigned.entry.case.messages):
        turns.append(_plain_turn(message, index, _bare_parts(message)))
    return {**_label_values(assigned, base, (Fold(tuple(turns)),)), "revealed": False}


def revealed_values(assigned: Assigned, base: str) -> dict[str, object]:
    """What a case that the reviewer has labelled is rendered from."""
    case = assigned.entry.case
    return {
        **_label_values(assigned, base, folds(case, case, editable=False)),
        **_made_values(Reviewed(assigned.entry, None, None), show_verdict=True),
        "revealed": True,
        "natural": KINDS[case.spec.test].natural,
        "rejected": visible(str(case.outcome.no_case or "")),
        "by": case.label.by if case.label else "",
    }


def _case_values(case: Case, base: str, laid_out: Sequence[Fold]) -> dict[str, object]:
    """What every page shows of a case."""
    changed: list[Turn] = []
    for fold in laid_out:
        changed += [turn for turn in fold.turns if turn.state]
    return {
        "base": base,
        "rubric_id": visible(case.rubric.id),
        "instructions": visible(case.rubric.instructions),
        "folds": laid_out,
        "changed": changed,
        "long": LONG,
        "long_tool": LONG_TOOL,
    }


def _label_values(assigned: Assigned, base: str, laid_out: Sequence[Fold]) -> dict[str, object]:
    """What the page of blind labelling shows of a case, labelled or not."""
    case, label = assigned.entry.case, assigned.label
    return {
        **_case_values(case, base, laid_out),
        "key": assigned.key,
        "number": assigned.number,
        "levels": {score: visible(meaning) for score, meaning in _meanings(case).items()},
        "binary": case.mode == "binary",
        "is_blind": assigned.is_blind,
        "answer": assigned.answer,
        "label": None if assigned.is_open else label,
        "withdrawn": label is not None and label.withdrawn,
        "note": label.note if label else "",
    }


def _meanings(case: Case) -> dict[int, str]:
    """What each label of a case means, as a reviewer reads it."""
    meanings = labels_of(case)
    if case.mode == "binary":
        return {score: meaning.removeprefix("rubric ") for score, meaning in meanings.items()}
    return meanings


def _made_values(reviewed: Reviewed, *, show_verdict: bool) -> dict[str, object]:
    """How a case was made, and what judges say of it."""
    case, plan = reviewed.case, reviewed.case.outcome.plan
    verification = case.outcome.verification
    steps = []
    if plan is not None:
        for step in plan.steps:
            steps.append(
                {
                    "index": step.message_index,
                    "goal": visible(step.goal),
                    "rationale": visible(step.rationale),
                }
            )
    return {
        "title": visible(case.spec.run_id),
        "epoch": case.spec.epoch,
        "suite": case.spec.suite,
        "test": case.spec.test,
        "expected": case.expected,
        "thesis": visible(plan.thesis) if plan else "",
        "steps": steps,
        "verification": verification,
        "rationale": visible(verification.rationale) if verification else "",
        "verified": case.verified,
        "votes": [visible(vote) for vote in label_votes(case)],
        "judged": list(_verdicts(reviewed.entry, case.expected)) if show_verdict else [],
    }


def _verdicts(entry: ReviewCase, expected: int | None) -> Iterator[dict[str, Any]]:
    for judge, judgment in entry.judged.items():
        minority = judgment.minority
        yield {
            "judge": visible(judge),
            "said": judgment.score,
            "score": judgment.scores_text,
            "agrees": judgment.score == expected,
            "reasoning": visible(judgment.shown.reasoning),
            "minority": minority.score if minority else None,
            "minority_reasoning": visible(minority.reasoning) if minority else "",
        }
