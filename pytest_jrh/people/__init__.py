"""What people say of cases and runs. First what they decide about made cases, in a file beside
these: every later run applies it. Then what all labels of a suite rest on: models, people,
programs; and how far people agree with them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_jrh.core import grouped_by, listed, storable
from pytest_jrh.core.calls import VERIFIER
from pytest_jrh.core.cases import (
    MADE,
    Case,
    CaseSpec,
    Edit,
    LabelKey,
    Labels,
    Message,
    RunKey,
    Transcript,
    majority,
)
from pytest_jrh.core.documents import parsed_lines
from pytest_jrh.core.files import append_line
from pytest_jrh.core.redact import NO_SECRETS, Redactor
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import Said, coded
from pytest_jrh.core.transcript import message_text, replace_text
from pytest_jrh.people.labels import PersonLabel
from pytest_jrh.stats.people import (
    AgainstPeople,
    VerifierAgainstPeople,
    VotedCase,
    Votes,
    against_people,
    verifier_against_people,
)
from pytest_jrh.store.records import BY_HAND, record_line

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.judges.judge import SuiteJudge


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


class SharedModel(NamedTuple):
    """A judge whose model is the verifier's; `judge` is empty for a suite's only one."""

    judge: str
    model: str


@dataclass(frozen=True)
class Grounds:
    """What the labels of a suite rest on, beside what its results say.

    `verifier` is the verifier's model, empty where it is off or none is needed; `shared_models` are
    those of judges, which share its errors. `votes` are what annotators say of runs, and `people`
    the labels that people gave to made cases. `rejected` stand for the cases that the verifier
    rejected in earlier sessions, where people labelled any. `drawn` are the labels of runs that are
    said to be a random sample. `column` is that of labels which nobody is known to have given,
    `annotators` what the config calls those who gave the others, and `file` that of a table's
    labels, where they are not its own.
    """

    verifier: str = ""
    shared_models: Sequence[SharedModel] = ()
    votes: Votes = field(default_factory=Votes)
    people: Sequence[PersonLabel] = ()
    rejected: Sequence[CaseResult] = ()
    drawn: frozenset[LabelKey] = frozenset()
    column: str = ""
    annotators: Sequence[str] = ()
    file: str = ""

    @cached_property
    def blind_labels(self) -> Mapping[str, Mapping[str, PersonLabel]]:
        """What each person said last and blind of each case, by the case's digest and the name."""
        by_case: dict[str, dict[str, PersonLabel]] = {}
        for label in self.people:
            if label.blind:
                by_case.setdefault(label.case_digest, {})[label.reviewer] = label
        return by_case

    @cached_property
    def blind_votes(self) -> Mapping[str, tuple[int, ...]]:
        """The blind labels by case digest, one of each person who can tell; no case without any."""
        votes_by_case = {}
        for digest, by_reviewer in self.blind_labels.items():
            said = [label.label for label in by_reviewer.values()]
            if votes := tuple(vote for vote in said if vote is not None):
                votes_by_case[digest] = votes
        return votes_by_case


def grounds_of(
    suite: Suite,
    judges: Mapping[str | None, SuiteJudge],
    labels: Labels,
    people: Sequence[PersonLabel],
    rejected: Sequence[CaseResult],
    clusters: Mapping[RunKey, str | None],
) -> Grounds:
    """What the labels of a suite rest on; see `Grounds`."""
    stage = suite.stages.get(VERIFIER.name)
    verifier = stage.model if stage is not None else ""
    shared_models = []
    for name, judge in judges.items():
        if verifier and is_same(judge.model.model, verifier):
            shared_models.append(SharedModel(name or "", judge.model.model))
    cases = []
    for key, label in labels.items():
        annotators = [source.annotator for source in label.sources]
        # Who saw the votes of others is no annotator.
        first = 1 if label.is_settled else 0
        votes = dict(zip(annotators[first:], label.votes[first:], strict=False))
        cases.append(VotedCase(key, clusters.get(key[1:]) or key[1], label.value, votes))
    columns = [str(section.metadata) for section in suite.labels if section.labelled_by == "column"]
    return Grounds(
        verifier=verifier,
        shared_models=shared_models,
        votes=Votes(cases, suite.scale),
        people=people,
        rejected=rejected,
        drawn=frozenset(key for key, label in labels.items() if label.is_drawn),
        annotators=[section.annotator for section in suite.labels if section.annotator],
        column=listed(columns),
    )


def is_same(model: str, verifier: str) -> bool:
    """Whether two names are of one model, whoever serves it: `azure/gpt-4.1`, `openai/gpt-4.1`."""
    return model.casefold().rpartition("/")[2] == verifier.casefold().rpartition("/")[2]


def held_against_people(
    results: Iterable[CaseResult], grounds: Grounds
) -> tuple[dict[str, AgainstPeople], VerifierAgainstPeople | None]:
    """The judges of these results by name, and the verifier of what it confirmed and rejected of
    them, against the blind labels of people; without those of whom people labelled no case.
    """
    votes = grounds.blind_votes
    # Of these cases all who looked at them blind say that nobody can decide.
    undecidable = grounds.blind_labels.keys() - votes.keys()
    every_result = [result for result in results if not result.spec.derived]
    judges = {}
    for judge, of_judge in grouped_by(every_result, "judge").items():
        against = against_people(of_judge, votes, undecidable)
        if against is not None:
            judges[judge] = against
    return judges, verifier_against_people(every_result, votes)


def unmatched(results: Iterable[CaseResult], grounds: Grounds) -> int:
    """How many blind labels are of none of these cases."""
    digests = {result.made_digest for result in results if not result.spec.derived}
    return sum(len(said) for digest, said in grounds.blind_votes.items() if digest not in digests)


def rest_counts(results: Iterable[CaseResult], grounds: Grounds) -> Counter[str]:
    """How many made cases have a label that a verifier confirmed, that people or a program gave,
    and that nobody confirmed, or not as the case is on the disk now; those that people labelled
    blind too are counted apart.
    """
    made_results = [of for of in results if of.outcome in MADE or of.label is not None]
    # The judges of a panel look at the same cases, and probes have the labels of their bases.
    made_cases = grouped_by((of for of in made_results if not of.spec.derived), "made_id")
    counts = Counter[str]()
    digests = set()
    for result, *_ in made_cases.values():
        digests.add(result.case_digest)
        counts["people" if result.is_accepted else result.basis] += 1
    # Cases that are equal have one label of a person.
    counts["blind"] = len(digests & grounds.blind_votes.keys())
    return counts


def wrongly_labelled(results: Iterable[CaseResult], grounds: Grounds) -> list[CaseResult]:
    """The cases whose label most of the people who looked at them blind give otherwise, each once
    of a panel.
    """
    votes_by_case = grounds.blind_votes
    wrong: dict[str, CaseResult] = {}
    for result in results:
        if result.spec.derived or result.label is None:
            continue
        if majority(votes_by_case.get(result.case_digest, ())) not in (None, result.label):
            wrong.setdefault(result.made_id, result)
    return list(wrong.values())
