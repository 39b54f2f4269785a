"""What comes of a case: the judge's verdict and the result of the item."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from pytest_jrh.models.completions import SharedCall, Spending
from pytest_jrh.models.made_cases import Case
from pytest_jrh.models.outcomes import Outcome
from pytest_jrh.models.terms import HumanReview


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer, on the scale that was on offer (rules E)."""

    score: int
    reasoning: str


class Judge(Protocol):
    """Anything that gives a verdict on a case; raises `Unscored` rather than guess."""

    def __call__(self, case: Case) -> Awaitable[Verdict]: ...


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

    @property
    def cluster_id(self) -> tuple[str, str | None, str]:
        """The same for results that are no independent observations: of one run in any epoch, or of
        runs with one `cluster` (rule L3).
        """
        return (self.suite, self.cluster, "" if self.cluster is not None else self.run_id)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is: cases done of those set to work, and what they have spent."""

    done: int
    total: int
    spending: Spending = Spending()
