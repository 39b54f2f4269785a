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
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from pytest_jrh.cases.acts import calls_of_turn
from pytest_jrh.cases.tests import KINDS
from pytest_jrh.core.diffs import Piece, differences, turn_pairs
from pytest_jrh.core.model import equal_verdicts
from pytest_jrh.core.transcript import calls_text, indented_json, message_text
from pytest_jrh.judges.judge import IMAGE_DATA
from pytest_jrh.reports.case_facts import label_votes, repeats_text
from pytest_jrh.review.board import Reviewed, labels_of
from pytest_jrh.store.decisions import holds_acts, is_editable
from pytest_jrh.store.records import BY_HAND

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_jrh.core.diffs import TurnPair
    from pytest_jrh.core.model import Case, Edit, Message
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
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)

PartKind = Literal["text", "call", "reasoning", "media", "image", "error", "result"]


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
    """One turn. `state` says who changed it: nobody, the editor ("edited"), or a person ("by
    hand"); or that the editor put it in, or left it out.

    `index` is its position in the made transcript; of one that was left out that in the run.
    """

    index: int
    role: str
    name: str
    parts: tuple[Part, ...]
    state: Literal["", "edited", "by hand", "inserted", "omitted"] = ""
    editable: bool = False
    difference: tuple[Stretch, ...] = ()
    calls_difference: tuple[Stretch, ...] = ()
    why: tuple[tuple[str, str], ...] = ()
    dropped_reasoning: int = 0

    @property
    def anchor(self) -> str:
        """What it is called on the page, where two turns may have one position."""
        return f"was-{self.index}" if self.state == "omitted" else str(self.index)

    @property
    def address(self) -> str:
        """Where its parts are, below the address of the case."""
        return f"{'omitted' if self.state == 'omitted' else 'turns'}/{self.index}"


@dataclass(frozen=True, slots=True)
class Fold:
    """Turns in a row; folded away where nothing near them was changed."""

    turns: tuple[Turn, ...] = field(default=())
    folded: bool = False


def visible(text: str) -> str:
    """Control characters, and those that reorder or hide text, as signs; newlines and tabs stay."""
    text = text.replace("\r\n", "\n")
    return _INVISIBLE.sub(lambda match: f"\u2039U+{ord(match[0]):04X}\u203a", text)


def folds(case: Case, made_case: Case) -> tuple[Fold, ...]:
    """Lay out a transcript: changed turns with their neighbours in sight, the turns between folded.

    `made_case` is the case as the pipeline made it, `case` with a person's edits. Where nothing was
    changed, all is in sight.
    """
    pairs = turn_pairs(case.run.messages, case.messages, case.outcome.edits)
    turns: list[Turn] = []
    for pair in pairs:
        if pair.new is None and pair.old is not None and holds_acts(case):
            # It was left out of the made transcript.
            message = case.run.messages[pair.old]
            edits = [edit for edit in case.outcome.edits if message in edit.before]
            turn = _plain_turn(message, pair.old, _parts(message))
            why = tuple(_why(case, pair.old, edits))
            turns.append(replace(turn, state="omitted", why=why))
        else:
            turns.append(_turn(case, made_case, pair))
    changed = [place for place, turn in enumerate(turns) if turn.state]
    if not changed:
        return (Fold(tuple(turns)),)
    in_sight: set[int] = set()
    for place in changed:
        in_sight.update(range(place - _NEIGHBOURS, place + _NEIGHBOURS + 1))
    laid_out: list[Fold] = []
    for hidden, group in groupby(enumerate(turns), lambda placed: placed[0] not in in_sight):
        run = tuple(turn for _, turn in group)
        laid_out.append(Fold(run, hidden and len(run) >= _FEW_TURNS))
    return tuple(laid_out)


def _turn(case: Case, made_case: Case, pair: TurnPair) -> Turn:
    before, after = _message(case.run.messages, pair.old), _message(case.messages, pair.new)
    # In a record that somebody has changed the transcripts may differ in length.
    index = pair.new if pair.new is not None else pair.old or 0
    old, new = message_text(before), message_text(after)
    old_calls, new_calls = calls_text(before), calls_text(after)
    is_inserted = pair.old is None and holds_acts(case)
    has_new_text, has_new_calls = old != new, old_calls != new_calls
    shown_apart: set[PartKind] = set()
    if has_new_text and not is_inserted:
        shown_apart.add("text")
        shown_apart.add(_text_kind(after or before))
    if has_new_calls and not is_inserted:
        shown_apart.add("call")
    turn = _plain_turn(after or before, index, _parts(after or before, shown_apart))
    # Those that made what stands at this position of the made transcript.
    edits = []
    for edit in case.outcome.edits:
        length = len(edit.after) if edit.is_splice else 1
        if edit.message_index <= index < edit.message_index + length:
            edits.append(edit)
    turn = replace(
        turn,
        editable=case.outcome.no_case is None and is_editable(case.messages, index),
        dropped_reasoning=sum(edit.dropped_reasoning for edit in edits),
    )
    # An error, or reasoning that said what an act changed.
    has_other_changes = before != after and any(edit.is_splice for edit in edits)
    if not (has_new_text or has_new_calls or has_other_changes):
        return turn
    why = tuple(_why(case, pair.old, edits))
    if is_inserted:
        return replace(turn, state="inserted", why=why)
    made_message = _message(made_case.messages, index)
    changes_made = (new, new_calls) != (message_text(made_message), calls_text(made_message))
    by_hand = changes_made or any(edit.editor_reason == BY_HAND for edit in edits)
    if (before or after).get("role") == "tool":
        old, new = indented_json(old), indented_json(new)
    return replace(
        turn,
        state="by hand" if by_hand else "edited",
        difference=tuple(_stretches(differences(old, new))) if has_new_text else (),
        calls_difference=tuple(_stretches(differences(old_calls, new_calls)))
        if has_new_calls
        else (),
        why=why,
    )


def _plain_turn(message: Message, index: int, parts: Iterable[Part]) -> Turn:
    role = str(message.get("role", "unknown"))
    name = str(message.get("function") or "") if role == "tool" else ""
    return Turn(index, visible(role), visible(name), tuple(parts))


def _message(messages: Sequence[Message], index: int | None) -> Message:
    return messages[index] if index is not None and index < len(messages) else {}


def _why(case: Case, old: int | None, edits: Iterable[Edit]) -> Iterator[tuple[str, str]]:
    """Why a turn was changed that stood at position `old` of the run."""
    plan = case.outcome.plan
    for step in plan.steps if plan else ():
        if step.message_index == old:
            yield "Goal", visible(step.goal)
            yield "Why this turn", visible(step.rationale)
    for edit in edits:
        if edit.follows:
            yield "To stay consistent", visible(edit.follows)
        if edit.editor_reason != BY_HAND:
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


def _parts(message: Message, left_out: Collection[PartKind] = ()) -> Iterator[Part]:
    for part in _numbered(_pieces(message)):
        if part.kind not in left_out:
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


def call_texts(messages: Sequence[Message], index: int) -> list[dict[str, Any]]:
    """The calls of a turn to be edited: the name, the arguments as JSON in lines, and the result
    as it is; None of a call without one.
    """
    calls: list[dict[str, Any]] = []
    for act in calls_of_turn(messages, index):
        arguments = json.dumps(act.call.get("arguments"), ensure_ascii=False, default=str)
        result = message_text(messages[act.results[0]]) if act.results else None
        name = visible(act.name)
        calls.append({"name": name, "arguments": indented_json(arguments), "result": result})
    return calls


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
        "edits": len({(edit.message_index, edit.kind) for edit in case.outcome.edits}),
        "turns": len(case.messages),
        "digest": entry.digest,
        "action": decision.action if decision else None,
        "note": decision.note if decision else "",
        "void": reviewed.void.action if reviewed.void else None,
        "rejected": entry.rejected,
    }


def label_row(assigned: Assigned) -> dict[str, Any]:
    """A case in the list of a reviewer, without what tells its answers."""
    return {
        "key": assigned.key,
        "number": assigned.number,
        "open": assigned.is_open,
        "busy": assigned.busy,
    }


def review_values(reviewed: Reviewed) -> dict[str, object]:
    """What a case to decide about is rendered from: how it was made, and what judges say of it."""
    entry, case, decision = reviewed.entry, reviewed.case, reviewed.decision
    plan, verification = case.outcome.plan, case.outcome.verification
    return {
        **_case_values(case, f"/cases/{entry.key}", folds(case, entry.case)),
        "key": entry.key,
        "digest": entry.digest,
        "levels": {score: visible(label) for score, label in labels_of(case).items()},
        "kind": KINDS[case.spec.test].label,
        "made_expected": entry.case.expected,
        "rejected": entry.rejected,
        "contradiction": visible(verification.contradiction) if verification else "",
        "notes": [visible(note) for note in case.run.notes],
        "action": decision.action if decision else "",
        "has_edits": bool(decision and decision.has_edits),
        "void": reviewed.void.action if reviewed.void else "",
        "title": visible(case.spec.run_id),
        "epoch": case.spec.epoch,
        "suite": case.spec.suite,
        "expected": case.expected,
        "thesis": visible(plan.thesis) if plan else "",
        "steps": list(_steps(case)),
        "verification": verification,
        "rationale": visible(verification.rationale) if verification else "",
        "verified": case.verified,
        "votes": [visible(vote) for vote in label_votes(case)],
        "judged": list(_verdicts(entry, case.expected)),
    }


def bare_values(assigned: Assigned, base: str) -> dict[str, object]:
    """What a case is rendered from to be labelled: the rubric, and what the judge reads."""
    turns = []
    for index, message in enumerate(assigned.entry.case.messages):
        turns.append(_plain_turn(message, index, _bare_parts(message)))
    case, label = assigned.entry.case, assigned.label
    meanings = {}
    for score, meaning in labels_of(case).items():
        meanings[score] = visible(meaning)
        if case.mode == "binary":
            meanings[score] = meaning.removeprefix("rubric ")
    return {
        **_case_values(case, base, (Fold(tuple(turns)),)),
        "key": assigned.key,
        "number": assigned.number,
        "levels": meanings,
        "binary": case.mode == "binary",
        "is_blind": assigned.is_blind,
        "label": None if assigned.is_open else label,
        "withdrawn": label is not None and label.withdrawn,
        "note": label.note if label else "",
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


def _steps(case: Case) -> Iterator[dict[str, str]]:
    """The steps of the plan, each with the turn that it is about, as the page calls it."""
    anchors = {}
    for old, new in turn_pairs(case.run.messages, case.messages, case.outcome.edits):
        if old is not None:
            anchors[old] = f"was-{old}" if new is None else str(new)
    for step in case.outcome.plan.steps if case.outcome.plan is not None else ():
        anchor = anchors.get(step.message_index, str(step.message_index))
        yield {
            "anchor": anchor,
            "index": anchor.removeprefix("was-"),
            "act": "" if step.kind == "say" else step.kind,
            "goal": visible(step.goal),
            "rationale": visible(step.rationale),
        }


def _verdicts(entry: ReviewCase, expected: int | None) -> Iterator[dict[str, Any]]:
    for judge, judgment in entry.judged.items():
        others = []
        for verdict, numbers in equal_verdicts(judgment.verdicts).items():
            if verdict != judgment.shown:
                who = f"{repeats_text(numbers)} gave {verdict.score}"
                others.append({"who": who, "reasoning": visible(verdict.reasoning)})
        yield {
            "judge": visible(judge),
            "said": judgment.score,
            "score": judgment.scores_text,
            "agrees": judgment.score == expected,
            "reasoning": visible(judgment.shown.reasoning),
            "others": others,
        }
