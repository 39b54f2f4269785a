"""Review decisions: written at once, and applied by every later run."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.cases.acts import acts_text, calls_of_turn, with_arguments
from pytest_jrh.core.documents import misfit
from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.files import append_line, encoded, lines_of
from pytest_jrh.core.model import Edit
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.transcript import message_text, replace_text, storable
from pytest_jrh.store.outputs import decisions_path
from pytest_jrh.store.records import BY_HAND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, Message


Action = Literal["accepted", "rejected", "edited"]


_ANEW = (
    "a decision has case_id, case_digest and action (accepted, rejected or edited); delete the "
    "line to decide about the case again"
)


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class CallEdit(_Line):
    """One call of a turn, by its number there from 0, with the arguments and the result that a
    person gave it; None for a result that is as it was.
    """

    call: int
    arguments: dict[str, Any]
    result: str | None = None


class TurnEdit(_Line):
    """One assistant turn with the text that a person gave it, and the calls that they changed."""

    message_index: int
    content: str
    calls: tuple[CallEdit, ...] = ()


class Decision(_Line):
    """What a person decided about one version of a case.

    `case_digest` is that of the case as it was made; `turns` and `expected` are what differs from
    it, also kept in a rejection so that taking it back brings them back. `edited_digests` are those
    of the case with edits in it, so that a decision also knows the case that a later run has
    stored.
    """

    case_id: str
    case_digest: str
    action: Action
    turns: tuple[TurnEdit, ...] = ()
    expected: int | None = None
    edited_digests: tuple[str, ...] = ()
    note: str = ""

    @property
    def has_edits(self) -> bool:
        """Whether the transcript or the label differs from what was made."""
        return bool(self.turns) or self.expected is not None

    def is_about(self, digest: str) -> bool:
        """Whether it was taken about the case with this digest; else it is void."""
        return digest in (self.case_digest, *self.edited_digests)


class _Withdrawn(_Line):
    """The line that takes a decision back."""

    case_id: str
    action: Literal["withdrawn"]


class DecisionStore:
    """The decisions of one file, one a line; of several about a case the last one counts.

    Loading raises `InputError` for a line that is no decision; a last line that a killed process
    left unfinished is ignored, and gone with the next decision. `redactor` takes secrets out of
    what people type.
    """

    def __init__(self, path: Path, redactor: Redactor = NO_SECRETS) -> None:
        self.path = path
        self._redactor = redactor
        self._decisions = _load(path)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._decisions)

    def get(self, case_id: str) -> Decision | None:
        """The last decision about a case, whichever version of it it was about."""
        with self._lock:
            return self._decisions.get(case_id)

    def snapshot(self) -> dict[str, Decision]:
        """The decisions of this moment, by case id."""
        with self._lock:
            return dict(self._decisions)

    def valid(self, case_id: str, digest: str) -> Decision | None:
        """The decision about this very version of a case.

        None where there is none, or a void one.
        """
        decision = self.get(case_id)
        return decision if decision is not None and decision.is_about(digest) else None

    def append(self, decision: Decision) -> Decision:
        """Put a decision on the disk before it counts; gives it as stored.

        Raises `OSError` as it comes.
        """
        record = storable(decision.model_dump(mode="json", exclude_defaults=True))[0]
        clean = self._redactor.value(record)
        stored = Decision.model_validate(clean, strict=False)
        with self._lock:
            self._append(clean)
            self._decisions[stored.case_id] = stored
        return stored

    def withdraw(self, case_id: str) -> None:
        """Take the decision about a case back; nothing is written where there is none."""
        with self._lock:
            if case_id in self._decisions:
                self._append({"case_id": case_id, "action": "withdrawn"})
                del self._decisions[case_id]

    def _append(self, record: Mapping[str, Any]) -> None:
        line = encoded(json.dumps(record, ensure_ascii=False))
        append_line(self.path, line)


def open_stores(
    suites: Sequence[Suite], redactor: Redactor = NO_SECRETS
) -> dict[tuple[str, str], DecisionStore]:
    """Open the decisions of every (suite, test); tests that share a folder share a store.

    Raises `InputError` for a line that is no decision.
    """
    files: dict[Path, DecisionStore] = {}
    stores: dict[tuple[str, str], DecisionStore] = {}
    for suite in suites:
        for test in suite.tests:
            path = decisions_path(test.output_dir)
            if path not in files:
                files[path] = DecisionStore(path, redactor)
            stores[suite.name, test.name] = files[path]
    return stores


def obeyed(case: Case, decision: Decision | None) -> Case:
    """Give the case as it was decided: as made where nobody decided, with a person's edits where
    there are some.

    The caller has made sure that the decision is about this case (`DecisionStore.valid`). Raises
    `NoVerdictCase` where it was rejected. Doing it twice changes nothing more.
    """
    if decision is None:
        return case
    if decision.action == "rejected":
        noted = f"rejected in review: {decision.note}" if decision.note else ""
        raise NoVerdictCase("rejected_in_review", noted)
    return with_edits(case, decision)


def with_edits(case: Case, decision: Decision) -> Case:
    """Give the case with the turns and the label of a decision, whatever its action.

    Each changed turn becomes an `Edit` of the outcome, so that every report shows it.
    """
    messages, edits = case.messages, case.outcome.edits
    acts = holds_acts(case)
    turns = decision.turns
    if not acts:
        # As on the page: what a case of words stores of its edits cannot hold calls.
        turns = tuple(turn.model_copy(update={"calls": ()}) for turn in turns)
    for turn in turns:
        if not is_editable(messages, turn.message_index):
            continue
        changed, dropped = _with_turn(messages, turn)
        if changed == messages:
            continue
        by_hand = _edit_by_hand(messages, changed, turn, len(edits))
        by_hand = replace(by_hand, selector_reason=decision.note, dropped_reasoning=dropped)
        edits_of_others = []
        for edit in edits:
            if edit.editor_reason == BY_HAND and edit.message_index == turn.message_index:
                # A person edits the turn once more: what it was first is that of the first time.
                by_hand = _joined(edit, by_hand, messages, changed)
            else:
                edits_of_others.append(edit)
        if not acts:
            by_hand = replace(by_hand, before=(), after=())
        edits = (*edits_of_others, by_hand)
        messages = changed
    case = replace(case, outcome=replace(case.outcome, messages=messages, edits=edits))
    return case if decision.expected is None else replace(case, expected=decision.expected)


def _with_turn(messages: tuple[Message, ...], turn: TurnEdit) -> tuple[tuple[Message, ...], int]:
    """The transcript with a turn, its calls and their results as a person has them; also count the
    reasoning blocks that went.
    """
    index, dropped = turn.message_index, 0
    changed = list(messages)
    if message_text(messages[index]) != turn.content:
        changed[index], dropped = replace_text(messages[index], turn.content)
    calls = list(messages[index].get("tool_calls") or ())
    acts = {act.number: act for act in calls_of_turn(messages, index)}
    for edited in turn.calls:
        act = acts.get(edited.call)
        if act is None:
            continue
        if act.call.get("arguments") != edited.arguments:
            calls[edited.call] = with_arguments(act.call, edited.arguments)
            changed[index] = {**changed[index], "tool_calls": list(calls)}
        for position in act.results[:1]:
            if edited.result not in (None, message_text(messages[position])):
                changed[position], _ = replace_text(messages[position], str(edited.result))
    return tuple(changed), dropped


def holds_acts(case: Case) -> bool:
    """Whether a case was made with edits of acts, so that people may edit its calls, too."""
    return any(edit.is_splice for edit in case.outcome.edits)


def _edit_by_hand(
    messages: tuple[Message, ...], changed: tuple[Message, ...], turn: TurnEdit, round_index: int
) -> Edit:
    """The edit of a person, with the messages from the turn to the last that they changed."""
    index = turn.message_index
    last = index
    for position in range(index, len(messages)):
        if changed[position] != messages[position]:
            last = position
    before, after = messages[index : last + 1], changed[index : last + 1]
    original, edited = message_text(messages[index]), turn.content
    if turn.calls:
        original, edited = acts_text(before), acts_text(after)
    return Edit(
        message_index=index,
        message_id=str(messages[index].get("id") or index),
        round_index=round_index,
        original_content=original,
        edited_content=edited,
        selector_reason="",
        editor_reason=BY_HAND,
        editor_raw_response="",
        summary_snapshot="",
        dropped_reasoning=0,
        kind="call" if turn.calls else "say",
        before=before,
        after=after,
    )


def _joined(
    first: Edit, again: Edit, messages: tuple[Message, ...], changed: tuple[Message, ...]
) -> Edit:
    """Two edits of a turn by people as one, from what the first replaced to what now stands there.

    `messages` is the transcript between the two.
    """
    index = again.message_index
    end = index + max(len(first.after), len(again.after))
    before = (*first.before, *messages[index + len(first.after) : end])
    joined = replace(again, round_index=first.round_index, before=before, after=changed[index:end])
    if again.kind == first.kind == "say":
        return replace(joined, original_content=first.original_content)
    return replace(
        joined,
        kind="call",
        original_content=acts_text(before),
        edited_content=acts_text(joined.after),
    )


def is_editable(messages: Sequence[Message], index: int) -> bool:
    """Whether a person may change the text of this turn: as for the editor,
    assistant turns alone.
    """
    return 0 <= index < len(messages) and messages[index].get("role") == "assistant"


def _load(path: Path) -> dict[str, Decision]:
    """Read the last decision about each case."""
    decisions: dict[str, Decision] = {}
    for line in lines_of(path):
        try:
            decision = _parsed(line.data)
        except ValidationError as error:
            # Only what a killed process was writing ends without a newline.
            if not line.is_ended:
                break
            message = "this line is not a decision"
            raise InputError(misfit(error, message, str(path), line.number, _ANEW)) from error
        if isinstance(decision, Decision):
            decisions[decision.case_id] = decision
        else:
            decisions.pop(decision.case_id, None)
    return decisions


def _parsed(line: bytes) -> Decision | _Withdrawn:
    if b'"withdrawn"' in line:
        try:
            return _Withdrawn.model_validate_json(line)
        except ValidationError:
            return Decision.model_validate_json(line)
    return Decision.model_validate_json(line)
