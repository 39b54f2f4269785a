"""What people say of made cases, in files of `{output.dir}/review/`: decisions, which every later
run applies, and labels; and what all of a suite's labels rest on: models, people, programs.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from pytest_jrh.cases.acts import acts_text, calls_of_turn, with_arguments, with_words
from pytest_jrh.config.suite import Suite
from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Case, Edit
from pytest_jrh.core.diffs import shared_ends
from pytest_jrh.core.documents import listed, parsed_lines
from pytest_jrh.core.errors import InputError, NoVerdictCase
from pytest_jrh.core.files import append_line, atomic_write, encoded
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.runs import Label, LabelKey, Message
from pytest_jrh.core.stages import VERIFIER
from pytest_jrh.core.transcript import message_text, replace_text, storable
from pytest_jrh.judges.judge import SuiteJudge
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.store.records import BY_HAND


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


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class CallEdit(_Line):
    """One call as a person left it; `result` is None for a call without one."""

    tool: str
    arguments: dict[str, Any]
    result: str | None = None


class TurnEdit(_Line):
    """One assistant turn with the text that a person gave it, and all its calls in order where they
    may be edited.
    """

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

    The caller has made sure that the decision is about this case. Raises
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
    are_acts = holds_acts(case)
    for turn in decision.turns:
        index, dropped = turn.message_index, 0
        if not is_editable(messages, index):
            continue
        # What a case of words stores of its edits cannot hold calls.
        changed = _with_calls(messages, index, turn.calls if are_acts else ())
        are_calls = changed != list(messages)
        original, edited = message_text(messages[index]), turn.content
        if original != edited:
            changed[index], dropped = replace_text(changed[index], edited)
        elif are_calls:
            # Its reasoning belongs to the calls that went.
            changed[index], dropped = with_words(changed[index], "")
        else:
            continue
        end = len(messages) - shared_ends(messages, changed)[1]
        before, after = messages[index:end], tuple(changed[index:end])
        if are_calls:
            original, edited = acts_text(before), acts_text(after)
        by_hand = Edit(
            message_index=index,
            message_id=str(before[0].get("id") or index),
            round_index=len(edits),
            original_content=original,
            edited_content=edited,
            selector_reason=decision.note,
            editor_reason=BY_HAND,
            editor_raw_response="",
            summary_snapshot="",
            dropped_reasoning=dropped,
            kind="call" if are_calls else "say",
            before=before if are_acts else (),
            after=after if are_acts else (),
        )
        edits = (*edits, by_hand)
        messages = tuple(changed)
    case = replace(case, outcome=replace(case.outcome, messages=messages, edits=edits))
    return case if decision.expected is None else replace(case, expected=decision.expected)


def _with_calls(
    messages: Sequence[Message], index: int, calls: Sequence[CallEdit]
) -> list[Message]:
    """The transcript with the calls of a turn, and their results, as a person left them."""
    changed = list(messages)
    for act, call in zip(calls_of_turn(messages, index), calls, strict=False):
        if (call.tool, call.arguments) != (act.name, act.call.get("arguments")):
            new_call = with_arguments(act.call, call.arguments)
            tool_calls = list(changed[index]["tool_calls"])
            tool_calls[act.number] = {**new_call, "function": call.tool}
            changed[index] = {**changed[index], "tool_calls": tool_calls}
        for position in act.results[:1]:
            result = messages[position]
            if call.result not in (None, message_text(result)):
                result, _ = replace_text(result, str(call.result))
            if result.get("function") == act.name:
                result = {**result, "function": call.tool}
            changed[position] = result
    return changed


def holds_acts(case: Case) -> bool:
    """Whether a case was made with edits of acts, so that people may edit its calls, too."""
    return any(edit.is_splice for edit in case.outcome.edits)


def is_editable(messages: Sequence[Message], index: int) -> bool:
    """Whether a person may change the text of this turn: assistant turns alone, as the editor."""
    return 0 <= index < len(messages) and messages[index].get("role") == "assistant"


def _load(path: Path) -> dict[str, Decision]:
    """Read the last decision about each case."""
    decisions: dict[str, Decision] = {}
    for _, decision in parsed_lines(path, _parsed, "this line is not a decision", _ANEW):
        if isinstance(decision, Decision):
            decisions[decision.case_id] = decision
        else:
            decisions.pop(decision.case_id, None)
    return decisions


def _parsed(line: bytes) -> Decision | _Withdrawn:
    if b'"withdrawn"' in line:
        with contextlib.suppress(ValidationError):
            return _Withdrawn.model_validate_json(line)
    return Decision.model_validate_json(line)


_RESTORE = "restore the line from git, or delete it"
_MERGED_BY_LINE = "labels.jsonl merge=union\n"
"""So that git keeps the lines of both sides, where two people label in a clone each."""


@frozen
class PersonLabel:
    """What one person says of one made case, as a line of the file has it; `label` is None where he
    or she cannot tell.

    `blind` says that the label was given before the case's own label, plan and edits were seen.
    `withdrawn` takes back what the person said of the case before.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    case_digest: Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
    reviewer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: int | None
    blind: bool = False
    note: str = ""
    withdrawn: bool = False
    time: str = field(default="", compare=False)
    # Who writes a label by hand may name the case for who reads it.
    case_id: str = field(default="", compare=False)


@cache
def _lines() -> TypeAdapter[PersonLabel]:
    """What reads and writes a label, built where the first one is."""
    return TypeAdapter(PersonLabel)


def labels_path(output_dir: Path) -> Path:
    """Where the labels of people about the cases of a test's folder are kept."""
    return output_dir / "review" / "labels.jsonl"


def read_people(suite: Suite) -> tuple[PersonLabel, ...]:
    """The labels of people about a suite's cases, in the order of their files, without those that
    they took back; what a killed process left of a line is none.

    Raises `InputError` with file and line for the first that is none.
    """
    paths = [labels_path(test.output_dir) for test in suite.tests]
    if suite.blind_labels is not None:
        paths.insert(0, suite.blind_labels)
    scores = {0, 1}
    if suite.mode == "ordinal":
        scores = {score for rubric in suite.rubrics for score in rubric.scores}
    labels: list[PersonLabel] = []
    for path in dict.fromkeys(paths):
        lines = parsed_lines(path, _lines().validate_json, "no label of a person", _RESTORE)
        for number, label in lines:
            if label.label is not None and label.label not in scores:
                message = f"got {label.label}; must be {listed(map(str, sorted(scores)))}, or null"
                raise InputError(message, str(path), number, "label")
            if label.withdrawn:
                person = label.case_digest, label.reviewer
                labels = [kept for kept in labels if (kept.case_digest, kept.reviewer) != person]
            labels.append(label)
    return tuple(labels)


def blind_labels(people: Iterable[PersonLabel]) -> dict[str, tuple[int, ...]]:
    """The blind labels by case digest: the last one of each reviewer."""
    blind: dict[str, tuple[int, ...]] = {}
    for digest, by_reviewer in last_blind(people).items():
        labels = tuple(last.label for last in by_reviewer.values() if last.label is not None)
        if labels:
            blind[digest] = labels
    return blind


def untold(people: Sequence[PersonLabel]) -> frozenset[str]:
    """The digests of cases of which all who looked at them blind say that nobody can tell."""
    return frozenset(last_blind(people)) - frozenset(blind_labels(people))


def last_blind(people: Iterable[PersonLabel]) -> dict[str, dict[str, PersonLabel]]:
    """What each person said last and blind of each case, by the case's digest and the name."""
    by_case: dict[str, dict[str, PersonLabel]] = {}
    for label in people:
        if label.blind:
            by_case.setdefault(label.case_digest, {})[label.reviewer] = label
    return by_case


class LabelBook:
    """The labels of the suites on a page: on the disk before they count, and read again by later
    sessions.

    `people` are those that the files hold already; `redact` is applied to what people type. Of
    several threads one at a time may use it.
    """

    def __init__(
        self,
        suites: Iterable[Suite],
        people: Iterable[PersonLabel],
        *,
        redact: Callable[[str], str],
    ) -> None:
        self._redact = redact
        # What each person said of a case since he or she last took it back, by the case's digest.
        self._labels: dict[str, dict[str, list[PersonLabel]]] = {}
        self._folders: dict[tuple[str, str], Path] = {}
        for suite in suites:
            for test in suite.tests:
                self._folders[suite.name, test.name] = test.output_dir
        for label in people:
            self._count(label)

    def of(self, digest: str, reviewer: str) -> PersonLabel | None:
        """What a reviewer said last of a case; None where he or she never said anything."""
        labels = self._labels.get(digest, {}).get(reviewer)
        return labels[-1] if labels else None

    def labelled_by(self, digest: str) -> frozenset[str]:
        """Who has labelled a case."""
        people = self._labels.get(digest, {})
        return frozenset(name for name, labels in people.items() if not labels[-1].withdrawn)

    def has_blind(self, digest: str) -> bool:
        """Whether anybody has labelled a case blind."""
        return any(label.blind for label in chain(*self._labels.get(digest, {}).values()))

    def keep(self, case: Case, label: PersonLabel) -> None:
        """Keep what a reviewer says of a case; raises `OSError` where that fails, and nothing has
        changed then.
        """
        label = replace(label, note=self._redact(storable(label.note.strip())[0]))
        self._write(case, label)
        self._count(label)

    def _write(self, case: Case, label: PersonLabel) -> None:
        folder = self._folders[case.spec.suite, case.spec.test]
        attributes = labels_path(folder).with_name(".gitattributes")
        if not attributes.exists():
            atomic_write(attributes, _MERGED_BY_LINE)
        label = replace(label, time=datetime.now(UTC).isoformat(timespec="seconds"))
        append_line(labels_path(folder), _lines().dump_json(label, exclude_defaults=True))

    def _count(self, label: PersonLabel) -> None:
        people = self._labels.setdefault(label.case_digest, {})
        if label.withdrawn:
            people.pop(label.reviewer, None)
        people.setdefault(label.reviewer, []).append(label)


class Kinship(NamedTuple):
    """A judge whose model is the verifier's; `judge` is empty for a suite's only one."""

    judge: str
    model: str


@frozen
class Grounds:
    """What the labels of a suite rest on, beside what its results say.

    `verifier` is the verifier's model, empty where it is off or none is needed; `kin` are the
    judges that share its model, and its errors. `votes` are those of the annotators of each
    labelled run, and `people` the labels that people gave to made cases. `rejected` stand for the
    cases that the verifier rejected in earlier sessions, where people labelled any. `drawn` are the
    labels of runs that are said to be a random sample. `column` is that of a table whose labels
    nobody is known to have given.
    """

    ordinal: bool = False
    verifier: str = ""
    kin: tuple[Kinship, ...] = ()
    votes: tuple[tuple[int, ...], ...] = ()
    people: tuple[PersonLabel, ...] = ()
    rejected: tuple[CaseResult, ...] = ()
    drawn: frozenset[LabelKey] = frozenset()
    column: str = ""

    def with_rejected(self, results: Iterable[CaseResult]) -> list[CaseResult]:
        """The results of a session, and what stands for cases that it did not run, which the
        verifier had rejected.
        """
        with_rejected = list(results)
        ran = {made_case_id(result) for result in with_rejected}
        with_rejected += [result for result in self.rejected if made_case_id(result) not in ran]
        return with_rejected


def grounds_of(
    suite: Suite,
    judges: Mapping[str | None, SuiteJudge],
    labels: Mapping[LabelKey, Label],
    people: tuple[PersonLabel, ...],
    rejected: tuple[CaseResult, ...] = (),
) -> Grounds:
    """What the labels of a suite rest on; see `Grounds`."""
    stage = suite.stages.get(VERIFIER.name)
    verifier = stage.model if stage is not None else ""
    kin = []
    for name, judge in judges.items():
        for model in judge.models:
            if verifier and is_same(model.model, verifier):
                kin.append(Kinship(name or "", model.model))
    return Grounds(
        ordinal=suite.mode == "ordinal",
        verifier=verifier,
        kin=tuple(kin),
        votes=tuple(label.votes for label in labels.values()),
        people=people,
        rejected=rejected,
        drawn=frozenset(key for key, label in labels.items() if label.is_drawn),
    )


def is_same(model: str, verifier: str) -> bool:
    """Whether two names are of one model, whoever serves it: `azure/gpt-4.1`, `openai/gpt-4.1`."""
    return model.casefold().rpartition("/")[2] == verifier.casefold().rpartition("/")[2]
