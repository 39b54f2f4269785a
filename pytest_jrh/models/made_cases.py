"""How a case is made, from what collection knows of it to the transcript with a known answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pytest_jrh.kinds.kind import Objective
from pytest_jrh.models.labels import Label
from pytest_jrh.models.subjects import AgentRun, Rubric, ScoreLevel
from pytest_jrh.models.terms import Message, Mode, TestName

ClusterId: TypeAlias = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One planned edit: which message (index into the run's messages), to what
    end, and why there.
    """

    message_index: int
    goal: str
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planner wants changed; no steps means that the transcript already fits."""

    thesis: str
    steps: tuple[PlanStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One applied edit of one assistant turn, with everything needed to audit it.

    `summary_snapshot` is the summary that the editor saw; `dropped_reasoning` counts the
    reasoning blocks that went with the old text (rule D4).
    """

    message_index: int
    message_id: str
    round_index: int
    original_content: str
    edited_content: str
    selector_reason: str
    editor_reason: str
    editor_raw_response: str
    summary_snapshot: str
    dropped_reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """What the verifier said: a verdict (binary), and in ordinal mode the score it would give."""

    verdict: Literal["PASS", "FAIL"]
    rationale: str
    score: int | None = None


@dataclass(frozen=True, slots=True)
class PerturbationOutcome:
    """What came of one transcript (rule D1).

    `no_case` holds the reason where there is no case; `messages` is then the original transcript,
    and `rejected` the one that was made, where the verifier rejected it. `verification` is None
    where the verifier is off or was never reached; `confirmed` says that the label was verified.
    """

    messages: tuple[Message, ...]
    plan: Plan | None = None
    edits: tuple[Edit, ...] = ()
    verification: Verification | None = None
    confirmed: bool = False
    final_summary: str | None = None
    no_case: str | None = None
    rejected: tuple[Message, ...] | None = None


def cluster_id(suite: str, cluster: str | None, run_id: str) -> ClusterId:
    """The same for cases that are no independent observations: of one run in any epoch, or of runs
    with one `cluster` (rule L3).
    """
    return (suite, cluster, "" if cluster is not None else run_id)


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """What one pytest item stands for, known before any model is asked.

    `judge` is None for the suite's only judge, else the panel member's name. Ids are built in
    `suite.cases`. `cluster` is that of the run (`RunSummary.cluster`). A case of a probe has the
    `variant` that changes a case of the test `base`; both are empty elsewhere (rule S1).
    """

    suite: str
    test: TestName
    rubric_id: str
    run_id: str
    epoch: int
    target_score: int | None = None
    judge: str | None = None
    skip_reason: str | None = None
    cluster: str | None = None
    base: str = ""
    variant: str = ""

    @property
    def cluster_id(self) -> ClusterId:
        """The cluster of the case, as that of its result."""
        return cluster_id(self.suite, self.cluster, self.run_id)

    @property
    def base_case(self) -> CaseSpec:
        """The case that a probe changes, under the same judge."""
        return replace(self, test=self.base, base="", variant="")


@dataclass(frozen=True, slots=True)
class Case:
    """A transcript with a known answer, ready to be judged.

    `expected` is the answer a right judge gives: binary 1 for violated and 0 for satisfied, ordinal
    the target score. `verified` is False where `verifier: false` or `pass_required: false` let the
    label through unconfirmed. `label` is that of people or a program, of a run as it is (rule N1).
    `levels` is the whole scale in ordinal mode, else empty. `digests` is
    for a case read from disk that was stored without the secrets in it: its digest as stored, and
    as it was made. `reworded` says that the rubric's text is another one than the case was made
    for, and its label with it. `altered` says that the record on the disk is not as it was written:
    whoever confirmed the label confirmed another case. A case that the verifier rejected has the
    reason in `outcome.no_case`: it is kept for people to look at, and never judged. `style` is the
    layout in which prompt judges get the transcript (one of `probes.styles.STYLES`).
    """

    spec: CaseSpec
    rubric: Rubric
    run: AgentRun
    outcome: PerturbationOutcome
    expected: int
    verified: bool
    mode: Mode
    objective: Objective
    levels: tuple[ScoreLevel, ...] = ()
    digests: tuple[str, str] | None = None
    label: Label | None = None
    reworded: bool = False
    altered: bool = False
    style: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.outcome.messages
