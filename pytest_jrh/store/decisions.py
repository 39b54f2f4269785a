"""Review decisions: written at once, and applied by every later run.

Where decisions are kept: asked of every suite before anything, so it imports nothing.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.cases.ids import node_part
from pytest_jrh.core.errors import InputError, NoVerdictCase, Problem
from pytest_jrh.core.files import AppendedFile, encoded, lines_of
from pytest_jrh.core.model import Edit
from pytest_jrh.core.transcript import message_text, replace_text, storable
from pytest_jrh.store.outputs import decisions_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.config.suite import Suite
    from pytest_jrh.core.model import Case, Message


Action = Literal["accepted", "rejected", "edited"]

BY_HAND = "edited in review"
_ANEW = "delete the line to decide about the case again"


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class TurnEdit(_Line):
    """One assistant turn with the text that a person gave it."""

    message_index: int
    content: str


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


@dataclass
class DecisionStore:
    """The decisions of one file, one a line; of several about a case the last one counts.

    Loading raises `InputError` for a line that is no decision; a last line that a killed process
    left unfinished is ignored, and gone with the next decision. `redact` is applied to what people
    type.
    """

    path: Path
    redact: Callable[[str], str] = str
    _decisions: dict[str, Decision] = field(default_factory=dict, init=False)
    _lines: dict[str, int] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _file: AppendedFile = field(init=False)

    def __post_init__(self) -> None:
        loaded = _load(self.path)
        self._file = AppendedFile(self.path, is_whole=_is_decision)
        self._decisions = {case_id: decision for case_id, (decision, _) in loaded.items()}
        self._lines = {case_id: line for case_id, (_, line) in loaded.items()}

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

    def misfits(self, scores: Mapping[str, Collection[int]]) -> list[Problem]:
        """List the labels that people gave, and that are not on the scale of the case's rubric.

        `scores` gives for the first three parts of a case id (suite, test and rubric) the scores on
        offer; decisions about other cases are not looked at.
        """
        problems = []
        for case_id, decision in self.snapshot().items():
            offered = scores.get("::".join(case_id.split("::", 3)[:3]))
            if (
                offered is not None
                and decision.expected is not None
                and decision.expected not in offered
            ):
                message = (
                    f"got {decision.expected}; the scores on offer are "
                    f"{', '.join(map(str, sorted(offered)))}"
                )
                problems.append(
                    Problem(
                        message, str(self.path), self._lines.get(case_id), "expected", hint=_ANEW
                    )
                )
        return problems

    def append(self, decision: Decision) -> Decision:
        """Put a decision on the disk before it counts; gives it as stored.

        Raises `OSError` as it comes.
        """
        stored = self._cleaned(decision)
        with self._lock:
            self._append(stored.model_dump(mode="json", exclude_defaults=True))
            self._decisions[stored.case_id] = stored
        return stored

    def withdraw(self, case_id: str) -> None:
        """Take the decision about a case back; nothing is written where there is none."""
        with self._lock:
            if case_id in self._decisions:
                self._append({"case_id": case_id, "action": "withdrawn"})
                del self._decisions[case_id]

    def _append(self, record: Mapping[str, Any]) -> None:
        self._file.append(encoded(json.dumps(record, ensure_ascii=False, sort_keys=True)))

    def _cleaned(self, decision: Decision) -> Decision:
        def clean(text: str) -> str:
            return self.redact(storable(text)[0])

        turns = tuple(
            turn.model_copy(update={"content": clean(turn.content)}) for turn in decision.turns
        )
        return decision.model_copy(update={"turns": turns, "note": clean(decision.note)})


def open_stores(
    suites: Sequence[Suite], *, redact: Callable[[str], str] = str
) -> dict[tuple[str, str], DecisionStore]:
    """Open the decisions of every (suite, test); tests that share a folder share a store.

    Raises `InputError` for a line that is no decision, and for a label that is not on its rubric's
    scale.
    """
    files: dict[Path, DecisionStore] = {}
    stores: dict[tuple[str, str], DecisionStore] = {}
    for suite in suites:
        for test in suite.tests:
            path = decisions_path(test.output_dir)
            if path not in files:
                files[path] = DecisionStore(path, redact)
            stores[suite.name, test.name] = files[path]
    scores: dict[str, Collection[int]] = {}
    for suite in suites:
        scores.update(_scores(suite))
    misfits: list[Problem] = []
    for store in files.values():
        misfits += store.misfits(scores)
    if misfits:
        raise InputError(misfits)
    return stores


def _scores(suite: Suite) -> Iterator[tuple[str, Collection[int]]]:
    """The scores on offer, by what the ids of a test's and a rubric's cases begin with."""
    for test in suite.tests:
        for rubric in suite.rubrics:
            offered = rubric.scores if suite.mode == "ordinal" else (0, 1)
            yield f"{node_part(suite.name)}::{test.name}::{node_part(rubric.id)}", offered


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
    for turn in decision.turns:
        index = turn.message_index
        if not is_editable(messages, index) or message_text(messages[index]) == turn.content:
            continue
        round_index, original = len(edits), message_text(messages[index])
        edits_of_others = []
        for edit in edits:
            if edit.editor_reason == BY_HAND and edit.message_index == index:
                # A person edits the turn once more: its first text is that of the first time.
                round_index, original = edit.round_index, edit.original_content
            else:
                edits_of_others.append(edit)
        changed, dropped = replace_text(messages[index], turn.content)
        by_hand = Edit(
            message_index=index,
            message_id=str(messages[index].get("id") or index),
            round_index=round_index,
            original_content=original,
            edited_content=turn.content,
            selector_reason=decision.note,
            editor_reason=BY_HAND,
            editor_raw_response="",
            summary_snapshot="",
            dropped_reasoning=dropped,
        )
        edits = (*edits_of_others, by_hand)
        messages = (*messages[:index], changed, *messages[index + 1 :])
    case = replace(case, outcome=replace(case.outcome, messages=messages, edits=edits))
    return case if decision.expected is None else replace(case, expected=decision.expected)


def is_editable(messages: Sequence[Message], index: int) -> bool:
    """Whether a person may change the text of this turn: as for the editor,
    assistant turns alone.
    """
    return 0 <= index < len(messages) and messages[index].get("role") == "assistant"


def _load(path: Path) -> dict[str, tuple[Decision, int]]:
    """Read the last decision about each case, and its line."""
    decisions: dict[str, tuple[Decision, int]] = {}
    for line in lines_of(path):
        try:
            decision = _parsed(line.data)
        except ValidationError as error:
            # Only what a killed process was writing ends without a newline.
            if not line.is_ended:
                break
            raise InputError(_problem(error, path, line.number)) from error
        if isinstance(decision, Decision):
            decisions[decision.case_id] = decision, line.number
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


def _problem(error: ValidationError, path: Path, line: int) -> Problem:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or None
    return Problem(
        f"this line is not a decision: {first['msg'][:1].lower()}{first['msg'][1:]}",
        str(path),
        line,
        key,
        hint="a decision has case_id, case_digest and action (accepted, rejected or edited); "
        f"{_ANEW}",
    )


def _is_decision(line: bytes) -> bool:
    try:
        _parsed(line)
    except ValidationError:
        return False
    return True
