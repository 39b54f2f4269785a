"""What people decide about made cases, in a file beside these: every later run applies it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.core import storable
from pytest_jrh.core.cases import Case, CaseSpec, Edit, Message, Transcript
from pytest_jrh.core.documents import parsed_lines
from pytest_jrh.core.files import append_line
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.scales import Said, coded
from pytest_jrh.core.transcript import message_text, replace_text
from pytest_jrh.store.records import BY_HAND, record_line

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite


def decisions_path(output_dir: Path) -> Path:
    """Where the decisions about the cases of a test's folder are kept."""
    return output_dir / "review" / "decisions.jsonl"


def has_decisions(suite: Suite) -> bool:
    """Whether anybody has ever decided about cases of this suite's folders."""
    return any(decisions_path(test.output_dir).exists() for test in suite.tests)


Action = Literal["accepted", "rejected", "edited"]


_ANEW = (
    "a decision has case_id, case_digest and action (accepted, rejected or edited); delete the "
    "line to decide about the case again"
)


class StrictModel(BaseModel):
    """Its keys and their types, and nothing else."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


class TurnEdit(StrictModel):
    """One assistant turn with the text that a person gave it."""

    message_index: int
    content: str


class Decision(StrictModel):
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
    expected: Said | None = None
    edited_digests: tuple[str, ...] = ()
    note: str = ""

    @property
    def has_edits(self) -> bool:
        """Whether the transcript or the label differs from what was made."""
        return bool(self.turns) or self.expected is not None


class Withdrawn(StrictModel):
    """The line that takes a decision back."""

    case_id: str
    action: Literal["withdrawn"]


class DecisionStore:
    """The decisions about the cases of suites, one a line of the file in the folder of their test;
    of several about a case the last one counts.

    Loading raises `InputError` for a line that is no decision; a last line that a killed process
    left unfinished is ignored, and replaced by the next decision. `redactor` takes secrets out of
    what people type. Of several threads one at a time may use it.
    """

    def __init__(self, suites: Iterable[Suite], redactor: Redactor = NO_SECRETS) -> None:
        self._redactor = redactor
        self._paths: dict[tuple[str, str], Path] = {}
        for suite in suites:
            for test in suite.tests:
                self._paths[suite.name, test.name] = decisions_path(test.output_dir)
        # The last one about each case, whichever version of it it was about.
        self.decisions: dict[str, Decision] = {}
        for path in dict.fromkeys(self._paths.values()):
            for _, line in parsed_lines(path, _parsed, "this line is not a decision", _ANEW):
                self._take(line)

    def append(self, spec: CaseSpec, decision: Decision | Withdrawn) -> None:
        """Put a decision about the case of a spec on the disk before it counts.

        Raises `OSError` as it comes.
        """
        clean = self._redactor.value(
            storable(decision.model_dump(mode="json", exclude_defaults=True))[0]
        )
        append_line(self._paths[spec.suite, spec.test], record_line(clean))
        self._take(type(decision).model_validate(clean, strict=False))

    def _take(self, line: Decision | Withdrawn) -> None:
        if isinstance(line, Decision):
            self.decisions[line.case_id] = line
        else:
            self.decisions.pop(line.case_id, None)


def with_edits(case: Case, decision: Decision) -> Case:
    """Give the case with the turns and the label of a decision, whatever its action. The caller has
    made sure that the decision is about this case; doing it twice changes nothing more.

    Each changed turn becomes an `Edit` of the outcome, so that every report shows it.
    """
    messages, edits = case.messages, case.outcome.edits
    for turn in decision.turns:
        index = turn.message_index
        if not is_editable(messages, index):
            continue
        original, edited = message_text(messages[index]), turn.content
        if original == edited:
            continue
        changed = list(messages)
        changed[index], dropped = replace_text(messages[index], edited)
        before: Transcript = ()
        after: Transcript = ()
        if case.holds_acts:
            before, after = (messages[index],), (changed[index],)
        by_hand = Edit(
            message_index=index,
            message_id=str(messages[index].get("id") or index),
            round_index=len(edits),
            original_content=original,
            edited_content=edited,
            selector_reason=decision.note,
            editor_reason=BY_HAND,
            editor_raw_response="",
            summary_snapshot="",
            dropped_reasoning=dropped,
            kind="say",
            before=before,
            after=after,
        )
        edits = (*edits, by_hand)
        messages = tuple(changed)
    case = replace(case, outcome=replace(case.outcome, messages=messages, edits=edits))
    if decision.expected is not None:
        case = replace(case, expected=coded(decision.expected))
    return case


def is_editable(messages: Sequence[Message], index: int) -> bool:
    """Whether a person may change the text of this turn: assistant turns alone, as the editor."""
    return 0 <= index < len(messages) and messages[index].get("role") == "assistant"


def _parsed(line: bytes) -> Decision | Withdrawn:
    if b'"withdrawn"' in line:
        with contextlib.suppress(ValidationError):
            return Withdrawn.model_validate_json(line)
    return Decision.model_validate_json(line)
