"""What a person may change of a decision, as pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pytest_jrh.errors import InputError, Problem
from pytest_jrh.review.decisions import TurnEdit, is_editable
from pytest_jrh.review.entries import labels
from pytest_jrh.transcript import message_text

if TYPE_CHECKING:
    from pytest_jrh.models import Case
    from pytest_jrh.review.decisions import Decision
    from pytest_jrh.review.entries import ReviewCase


def with_action(decision: Decision, action: Literal["accepted", "rejected"], note: str) -> Decision:
    """Accept or reject; accepting a case with a person's edits keeps them."""
    kept: Literal["accepted", "rejected", "edited"] = action
    if action == "accepted" and decision.has_edits:
        kept = "edited"
    return decision.model_copy(update={"action": kept, "note": note})


def with_turn(decision: Decision, case: Case, message_index: int, content: str | None) -> Decision:
    """Give an assistant turn another text; None goes back to what was made.

    Raises `InputError` for a message that is not an assistant turn, and for an empty text.
    """
    messages = case.messages
    if not is_editable(messages, message_index):
        raise InputError(
            Problem(f"message {message_index} is not an assistant turn; its text cannot be edited")
        )
    if content is not None and not content.strip():
        raise InputError(
            Problem(f"message {message_index} would be empty; reject the case instead")
        )
    turns = {turn.message_index: turn for turn in decision.turns}
    # What a stored case already holds is no difference from it, but is one from the case as
    # first made.
    unchanged = content is not None and message_text(messages[message_index]) == content
    if content is None or (unchanged and message_index not in turns):
        turns.pop(message_index, None)
    else:
        turns[message_index] = TurnEdit(message_index=message_index, content=content)
    kept = tuple(turns[index] for index in sorted(turns))
    return decision.model_copy(update={"turns": kept, "action": "edited"})


def with_label(decision: Decision, entry: ReviewCase, expected: int) -> Decision:
    """Give a case another expected label.

    Raises `InputError` for one that its judge cannot give.
    """
    there = labels(entry.case)
    if expected not in there:
        listed = ", ".join(map(str, there))
        raise InputError(
            Problem(f"{expected} is not a label of this case; must be one of {listed}")
        )
    same = expected == entry.case.expected and decision.expected is None
    back = expected == entry.case.expected and decision.case_digest == entry.digest
    kept = None if same or back else expected
    return decision.model_copy(update={"expected": kept, "action": "edited"})
