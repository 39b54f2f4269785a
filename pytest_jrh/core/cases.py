"""Cases: what one pytest item stands for, how its transcript was made, and its known answer."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal, TypeAlias

from pytest_jrh.core import frozen
from pytest_jrh.core.runs import (
    AgentRun,
    Answer,
    ClusterId,
    Label,
    LabelKey,
    Rubric,
    Transcript,
)
from pytest_jrh.core.scales import Objective, Said, Scale
from pytest_jrh.core.skips import Skip

HumanReview: TypeAlias = Literal["", "undecided", "accepted", "edited", "rejected", "void"]
EditKind: TypeAlias = Literal["say", "call", "insert", "omit"]
"""What an edit changes: the words of a turn, a call with its result, or a call with its result that
is put in or left out."""


@frozen
class PlanStep:
    """One planned edit: which message (index into the run's messages), to what
    end, and why there.

    `call_id` says which call of the turn it is about, by its id or by its number in the turn, from
    1; empty for the turn's only one. An `insert` puts its call before the message.
    """

    message_index: int
    goal: str
    rationale: str
    kind: EditKind = "say"
    call_id: str = ""


@frozen
class Plan:
    """What the planner wants changed; no steps means that the transcript already fits."""

    thesis: str
    steps: tuple[PlanStep, ...] = ()


@frozen
class Edit:
    """One applied edit, with everything needed to audit it.

    `summary_snapshot` is the summary that the editor saw; `dropped_reasoning` counts the
    reasoning blocks that went with the old text. With `edits: acts` it is a splice: `after` stands
    at `message_index` of the made transcript, where `before` stood; both are empty in a suite of
    `edits: text`. The edits of a case stand in the order of its transcript, and a person's after
    them. `follows` says why an edit was made that no plan names: what it would have contradicted.
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
    dropped_reasoning: int
    kind: EditKind = "say"
    before: Transcript = ()
    after: Transcript = ()
    follows: str = ""

    @property
    def is_splice(self) -> bool:
        """Whether it holds the messages before and after it, as those of `edits: acts` do."""
        return bool(self.before or self.after)


@frozen
class Verification:
    """What the verifier said: its verdict, and of levels the score that it would give.

    `contradiction` is where the transcript contradicts itself; empty where it does not, or the
    verifier was not asked.
    """

    verdict: Literal["PASS", "FAIL"]
    rationale: str
    score: Answer | None
    contradiction: str = ""


@frozen
class PerturbationOutcome:
    """What came of one transcript.

    `no_case` says why there is no case; `messages` is then the original transcript,
    and `rejected` the one that was made, where the verifier rejected it. `verification` is None
    where the verifier is off or was never reached; `confirmed` says that the label was verified.
    """

    messages: Transcript
    plan: Plan | None = None
    edits: tuple[Edit, ...] = ()
    verification: Verification | None = None
    confirmed: bool = False
    final_summary: str | None = None
    no_case: Skip | None = None
    rejected: Transcript | None = None


@frozen
class CaseSpec:
    """What one pytest item stands for, known before any model is asked.

    `target_score` is the answer that it is made for, as it is said, where its kind does not tell
    it. `judge` is None for the suite's only judge, else the panel member's name. Ids are built in
    `core.ids`. `cluster` is that of the run (`RunSummary.cluster`). A case of a probe has the
    `variant` that changes a case of the test `base`; both are empty elsewhere.
    """

    suite: str
    test: str
    rubric_id: str
    run_id: str
    epoch: int
    target_score: Said | None = None
    judge: str | None = None
    # No part of which case it is.
    skip: Skip | None = field(default=None, compare=False)
    cluster: str | None = None
    base: str = ""
    variant: str = ""

    @property
    def derived(self) -> bool:
        """Whether it is of a probe: then it counts in no figure of the judge's accuracy."""
        return bool(self.variant)

    @property
    def cluster_id(self) -> ClusterId:
        """The same for cases that are no independent observations: of one run in any epoch, or of
        runs with one `cluster`.
        """
        return (self.suite, self.cluster, "" if self.cluster is not None else self.run_id)

    @property
    def label_key(self) -> LabelKey:
        """What its run's label is known by."""
        return self.rubric_id, self.run_id, self.epoch

    @property
    def base_case(self) -> CaseSpec:
        """The case that a probe changes, under the same judge."""
        return replace(self, test=self.base, base="", variant="")


@frozen
class Review:
    """What a person decided about a case, and noted."""

    action: str
    note: str


@frozen
class Case:
    """A transcript with a known answer, ready to be judged.

    `expected` is the answer that a right judge gives; None of a run that is judged without a label.
    `verified` is False where
    `verifier: false` or `pass_required: false` let the label through unconfirmed. `label` is that
    of people or a program, of a run as it is.
    `digests` is
    for a case read from disk that was stored without the secrets in it: its digest as stored, and
    as it was made. `reworded` says that the rubric's text is another one than the case was made
    for, and its label with it. `altered` says that the record on the disk is not as it was written:
    whoever confirmed the label confirmed another case. A case that the verifier rejected has the
    reason in `outcome.no_case`: it is kept for people to look at, and never judged. `review` is
    what a person decided about it, None where nobody did.
    """

    spec: CaseSpec
    rubric: Rubric
    run: AgentRun
    outcome: PerturbationOutcome
    expected: int | None
    verified: bool
    objective: Objective
    digests: tuple[str, str] | None = None
    label: Label | None = None
    reworded: bool = False
    altered: bool = False
    review: Review | None = None

    @property
    def messages(self) -> Transcript:
        return self.outcome.messages

    @property
    def scale(self) -> Scale:
        """The answers on offer."""
        return self.rubric.scale

    @property
    def verifier_answer(self) -> int | None:
        """The answer of the verifier; None where it gave none."""
        said = self.outcome.verification
        return None if said is None else self.scale.verified(said.verdict, said.score)


UNEDITED = "unedited"
"""What was done to a run that is a case as it is."""
