"""What comes of a case: the judge's verdict and the result of the item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_jrh.models.completions import SharedCall, Spending
from pytest_jrh.models.labels import LabelledBy
from pytest_jrh.models.made_cases import Case, ClusterId, cluster_id
from pytest_jrh.models.outcomes import Outcome
from pytest_jrh.models.terms import HumanReview


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer, on the scale that was on offer (rules E)."""

    score: int
    reasoning: str


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a judge says of a case: the verdicts of all repeats, at least one (rule M1)."""

    verdicts: tuple[Verdict, ...]

    @property
    def scores(self) -> tuple[int, ...]:
        """The scores of all repeats, in order."""
        return tuple(verdict.score for verdict in self.verdicts)

    @property
    def score(self) -> int | None:
        """The most frequent score; None where several scores are that."""
        return most_frequent(self.scores)

    @property
    def given(self) -> str:
        """The score, and of repeats how often each was given."""
        return given(self.score, self.scores)

    @property
    def shown(self) -> Verdict:
        """The first verdict with the most frequent score; in a tie the first of all."""
        score = self.score
        return next(each for each in self.verdicts if score in (None, each.score))

    @property
    def minority(self) -> Verdict | None:
        """The first verdict with another score than `shown`; None where all are the same."""
        shown = self.shown.score
        return next((each for each in self.verdicts if each.score != shown), None)


def most_frequent(scores: Sequence[int]) -> int | None:
    """The score that more of the repeats gave than any other; None where there is none."""
    ranked = Counter(scores).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def said(scores: Sequence[int]) -> str:
    """How often each score was given, most first: `2 of 3 said 0, 1 of 3 said 1`."""
    counts = sorted(Counter(scores).items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{number} of {len(scores)} said {score}" for score, number in counts)


def given(score: int | None, scores: Sequence[int]) -> str:
    """What a judge gave: `0`, and of repeats how often, `0 (2 of 3 said 0, 1 of 3 said 1)`."""
    text = "a tie" if score is None else str(score)
    return f"{text} ({said(scores)})" if len(scores) > 1 else text


class Judge(Protocol):
    """Anything that gives a verdict on a case; raises `Unscored` rather than guess."""

    def __call__(self, case: Case) -> Awaitable[Verdict]: ...


@dataclass(frozen=True, slots=True)
class Rejection:
    """The case that the verifier rejected: its digest, the label that it was made for, and what the
    verifier said instead.
    """

    case_digest: str
    expected: int
    said: int


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one item came to: small, so that thousands fit in memory and travel between processes.

    `detail` is prose for a person: the reason of a skip, the paragraph of an error, or the whole
    explanation of a disagreement. `case_digest` says which case was judged and `judge_fingerprint`
    by which judge (rule J2); both are empty where there was no case, or no judge was asked.
    `human_reviewed` is what people decided about the case (rule K2); empty where no review is in
    play. `judge_spending` is the judge's part of the spending, and told of a panel's judges alone:
    the rest went into making the case that they share. `shared` is the part of `spending` that
    other cases have too. `cluster` is that of the run (`RunSummary.cluster`). `scores` are those of
    all repeats, in order; empty where there is no verdict, or the session did not keep them.
    `score` is None in a tie of the repeats, which is a disagreement, and `reasoning` that of the
    first verdict with that score; `minority` is the first one with another score (rule M1).
    `rejected` says which case the verifier rejected, where that is why there is none (rule D6).
    `labelled_by` says whose label it is where no stage made the case (rule N1).
    `reworded` says that the case was made, and its label given, for another text of the rubric than
    the judge had (rule G6), and `altered` that its record was changed on the disk since. A result
    of a probe has the test `base` of the case that the `variant` changed, and `base_scores`, what
    the judge gave to that in all repeats (rule S2). `content` is the same for cases with one rubric
    and transcript, whatever their labels; empty where an earlier version wrote the result.
    """

    case_id: str
    suite: str
    test: str
    rubric_id: str
    run_id: str
    epoch: int
    outcome: Outcome
    judge: str = ""
    target_score: int | None = None
    expected: int | None = None
    score: int | None = None
    reasoning: str = ""
    verified: bool | None = None
    detail: str = ""
    spending: Spending = Spending()
    case_digest: str = ""
    judge_fingerprint: str = ""
    human_reviewed: HumanReview = ""
    judge_spending: Spending | None = None
    shared: SharedCall | None = None
    cluster: str | None = None
    scores: tuple[int, ...] = ()
    minority: Verdict | None = None
    labelled_by: LabelledBy | None = None
    reworded: bool = False
    altered: bool = False
    rejected: Rejection | None = None
    base: str = ""
    variant: str = ""
    base_scores: tuple[int, ...] = ()
    content: str = ""

    @property
    def derived(self) -> bool:
        """Whether it is of a probe: then it counts in no figure of the judge's accuracy."""
        return bool(self.variant)

    @property
    def base_score(self) -> int | None:
        """What the judge gave to the case that a probe changed."""
        return most_frequent(self.base_scores)

    @property
    def repeated(self) -> bool:
        """Whether the case was judged more than once."""
        return len(self.scores) > 1

    @property
    def flickers(self) -> bool:
        """Whether the judge gave the case different scores."""
        return len(set(self.scores)) > 1

    @property
    def given(self) -> str:
        """What the judge gave: the score, and of repeats how often each."""
        return given(self.score, self.scores)

    @property
    def cluster_id(self) -> ClusterId:
        """The cluster of the case (`models.made_cases.cluster_id`)."""
        return cluster_id(self.suite, self.cluster, self.run_id)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is: cases done of those set to work, what they have spent, and how many
    calls wait for an answer; None where that is not known.
    """

    done: int
    total: int
    spending: Spending = Spending()
    in_flight: int | None = None
