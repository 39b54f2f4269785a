"""What people say of cases and runs, and what all labels of a suite rest on: models, people,
programs; and how far people agree with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core import grouped_by, listed
from pytest_jrh.core.calls import VERIFIER
from pytest_jrh.core.cases import MADE, LabelKey, Labels, RunKey, majority
from pytest_jrh.core.results import CaseResult
from pytest_jrh.people.labels import PersonLabel
from pytest_jrh.stats.people import (
    AgainstPeople,
    VerifierAgainstPeople,
    VotedCase,
    Votes,
    against_people,
    verifier_against_people,
)

if TYPE_CHECKING:
    from pytest_jrh.config.suite import Suite
    from pytest_jrh.judges.judge import SuiteJudge


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
    `annotators` what the config calls those who gave the others.
    """

    verifier: str = ""
    shared_models: tuple[SharedModel, ...] = ()
    votes: Votes = field(default_factory=Votes)
    people: tuple[PersonLabel, ...] = ()
    rejected: tuple[CaseResult, ...] = ()
    drawn: frozenset[LabelKey] = frozenset()
    column: str = ""
    annotators: tuple[str, ...] = ()

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
    people: tuple[PersonLabel, ...],
    rejected: tuple[CaseResult, ...],
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
        shared_models=tuple(shared_models),
        votes=Votes(cases, suite.scale),
        people=people,
        rejected=rejected,
        drawn=frozenset(key for key, label in labels.items() if label.is_drawn),
        annotators=tuple(section.annotator for section in suite.labels if section.annotator),
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
    counts: Counter[str] = Counter()
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
