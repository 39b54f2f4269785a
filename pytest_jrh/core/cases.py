"""Runs of agents, the rubrics that they are judged by, and the labels that people give them; and
the cases that are made of these: what one pytest item stands for, how its transcript was made, and
its known answer, or why there is no case or no verdict.

Messages are Inspect's own chat messages as plain JSON dictionaries (`role`, `content` as text or a
list of blocks, `tool_calls`, `tool_call_id`, `function`, `error`); nobody may change one in place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SkipValidation

from pytest_jrh.core import Fields, JrhError, frozen, short_digest
from pytest_jrh.core.scales import (
    NOT_APPLICABLE,
    Objective,
    Said,
    Scale,
    ScoreLevel,
    as_level,
    classed,
    coded,
    scale_of,
    with_not_applicable,
)

SkipKind = Literal[
    "no_messages",
    "no_assistant_turn",
    "no_answer",
    "disputed_label",
    "no_plan",
    "unusable_edit",
    "broken_structure",
    "stale_value",
    "not_confirmed",
    "contradiction",
    "rejected_in_review",
    "wrong_on_base",
    "probe_not_applicable",
]


@frozen
class SkipReason:
    """What happened where there is no case, as the terminal counts it, what to do about it, and
    the sentence about one case, with what is so of that case in place of `{detail}`.
    """

    happened: str
    advice: str
    of_case: str = "{detail}"

    def text(self, detail: str) -> str:
        """The sentence about a case."""
        return self.of_case.format(detail=detail) if detail else self.happened


SKIPS: Mapping[str, SkipReason] = {
    "no_messages": SkipReason(
        "there are no messages", "Nothing to do: the run ended before its first message."
    ),
    "no_assistant_turn": SkipReason(
        "the assistant said nothing", "Nothing to do: there is no answer to be judged."
    ),
    "no_answer": SkipReason("the answer is empty", "Fill the answer in, or remove the row."),
    "disputed_label": SkipReason(
        "annotators disagree",
        "Have one more person label the case, or make the rubric clearer.",
        "annotators disagree ({detail})",
    ),
    "no_plan": SkipReason(
        "no edit planned",
        "Ignore a few; if there are many, the rubric is vague, or does not apply here.",
        "no edit planned: {detail}",
    ),
    "unusable_edit": SkipReason(
        "the edit could not be used",
        "Ignore a few; if there are many, the editor's model is too weak.",
        "the edit could not be used: {detail}",
    ),
    "broken_structure": SkipReason(
        "an edit breaks the structure of the transcript",
        "Ignore a few; if there are many, the editor's model is too weak for `edits: acts`.",
        "an edit breaks the structure: {detail}",
    ),
    "stale_value": SkipReason(
        "a later turn still has the old value",
        "Ignore a few; if there are many, the planner's or the editor's model is too weak, or "
        "later turns depend on the acts so much that `edits: text` suits the rubric better.",
    ),
    "not_confirmed": SkipReason(
        "label not confirmed",
        "Ignore a few; if there are many, the rubric is vague, or the editor's model is too weak.",
    ),
    "contradiction": SkipReason(
        "the transcript contradicts itself",
        "Ignore a few; if there are many, the editor's model is too weak for `edits: acts`.",
    ),
    "rejected_in_review": SkipReason(
        "rejected in review",
        "Nothing to do: a person decided this on the review page.",
        "rejected in review: {detail}",
    ),
    "wrong_on_base": SkipReason(
        "the judge is wrong on the unchanged case",
        "Fix the disagreement on the unchanged case first: until then, the probe shows nothing.",
        "the judge is wrong on the unchanged case: {detail}",
    ),
    "probe_not_applicable": SkipReason(
        "the probe does not apply to the case",
        "Nothing to do: the case has nothing that the probe changes.",
    ),
}


@frozen
class Skip:
    """Why there is no case: the kind, and what is so of this one, such as the votes."""

    kind: SkipKind
    detail: str = ""

    def __str__(self) -> str:
        return SKIPS[self.kind].text(self.detail)


@frozen
class Verdict:
    """A judge's answer, on the scale on offer; by a threshold where it has a `probability`."""

    score: int
    reasoning: str
    probability: float | None = None


UnscoredKind = Literal[
    "model_error",
    "invalid_response",
    "refused",
    "unrecorded",
    "unrepeatable",
    "over_budget",
    "not_asked",
    "input_error",
]
Outcome = Literal["agree", "disagree", "generated", "unlabelled", "no_case", UnscoredKind]
JUDGED: tuple[Outcome, ...] = ("agree", "disagree")
# No verdict on these is right or wrong: none was asked for, or there is no label to compare it to.
UNCOMPARED: tuple[Outcome, ...] = ("generated", "unlabelled")
# A case was made, and came to its end: judged, or not to be judged.
MADE: tuple[Outcome, ...] = (*JUDGED, "generated")


@frozen
class UnscoredOutcome:
    """Why a case has no verdict, and what follows from it.

    `happened` is a sentence about the stage, which stands for `{stage}`; `advice` what to do where
    the trouble itself names nothing. `asked`: the call was sent. `final`: the answers are recorded,
    so that a replay ends so again; a recording run asks anew only with `--jrh-retry-unscored`.
    `unanswered`: a recording run makes the call again, so that is the command to show.
    """

    happened: str
    advice: str = ""
    asked: bool = True
    final: bool = False
    unanswered: bool = False


UNSCORED: Mapping[str, UnscoredOutcome] = {
    "model_error": UnscoredOutcome("{stage} got no answer from its model", unanswered=True),
    "invalid_response": UnscoredOutcome("{stage}'s model gave no usable answer", final=True),
    "refused": UnscoredOutcome("{stage}'s model refused to answer", final=True),
    "unrecorded": UnscoredOutcome(
        "{stage}'s call is not recorded",
        "To record the call, run the command after `next` at the end.",
        asked=False,
        unanswered=True,
    ),
    "unrepeatable": UnscoredOutcome("{stage} sends different requests each time", asked=False),
    "over_budget": UnscoredOutcome(
        "the budget was exhausted before {stage}'s call",
        "Raise --jrh-max-calls or --jrh-max-cost and run again; only missing calls are made.",
        asked=False,
        unanswered=True,
    ),
    "not_asked": UnscoredOutcome(
        "{stage} was not asked, because every other case would fail the same way",
        asked=False,
        unanswered=True,
    ),
    "input_error": UnscoredOutcome("the case's input is invalid", asked=False),
}


@frozen
class Why:
    """Why there is no verdict, as facts: reports make sentences of them.

    `kind` is empty where nothing is wrong, and `no_case` where a record alone tells that the
    verifier rejected the case.
    """

    kind: Literal["", "no_case", SkipKind, UnscoredKind] = ""
    # Of a `Skip`:
    detail: str = ""
    # Of an `Unscored`: the stage that was at work, what the server or the judge's code said, and
    # what else is known of it.
    stage: str = ""
    cause: str = ""
    advice: str = ""
    happened: str = ""
    reason: str = ""
    places: tuple[str, ...] = ()
    difference: str = ""
    cassette: str = ""


NOTHING_WRONG = Why()


@dataclass(eq=False, repr=False)
class Unscored(JrhError):
    """The pipeline or the judge could not finish, so there is no verdict.

    `outcome` is one of `UNSCORED`; `stage` names the stage model that was at work (or
    "input"); `cause` says what came back; `advice` says what to do next. `asked` are the
    fingerprints of the calls whose answers could not be used. `keyless` says that no API key to ask
    the model with. `places` are lines of the user's own code where it raised an error. `happened`
    is said in place of the outcome's own sentence, where it does not fit. `difference` is a short
    diff of a call that is not recorded from the nearest one in its `cassette`. `alike` is what came
    where other cases will meet the same: the kind of an answer that cannot be read, or of an error
    that no retry changes; `ends` that no call to the model can succeed after it. `alone` says that
    of an answer about several rubrics one verdict is missing, and the others stand. `reason` is
    the cause in a few words, where other cases may have the same. `answer` is the last text that
    could not be used.
    """

    outcome: UnscoredKind
    _: KW_ONLY
    stage: str
    cause: str
    advice: str = ""
    asked: tuple[str, ...] = ()
    keyless: bool = False
    places: tuple[str, ...] = ()
    happened: str = ""
    difference: str = ""
    cassette: str = ""
    alike: str = ""
    ends: bool = False
    alone: bool = False
    reason: str = ""
    answer: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} in stage {self.stage}: {self.cause} {self.advice}".rstrip()

    @property
    def why(self) -> Why:
        """What the result of the case keeps of it, which may hold secrets yet."""
        return Why(
            self.outcome,
            stage=self.stage,
            cause=self.cause,
            advice=self.advice,
            happened=self.happened,
            reason=self.reason,
            places=self.places,
            difference=self.difference,
            cassette=self.cassette,
        )


class NoVerdictCase(JrhError):
    """There is no case to judge; the message is the reason, with what is so of this case.

    `rejected` is the case that was made, where the verifier rejected it.
    """

    def __init__(self, kind: SkipKind, detail: str = "", rejected: Case | None = None) -> None:
        self.skip = Skip(kind, detail)
        self.rejected = rejected
        super().__init__(str(self.skip))


Message = Mapping[str, Any]
Messages = Sequence[Message]
Transcript = tuple[Message, ...]
"""The messages of a run, in their order."""
# Of samples and of intervals, where a suite names none.
DEFAULT_SEED = 8234
LabelledBy = Literal["people", "program", "column"]
LabelSource = Literal[LabelledBy, "made", "unconfirmed"]
SETTLED = "settled"
"""The part of labels that somebody gave who saw the votes of people that disagree."""

Answer = Annotated[int, BeforeValidator(coded)]
"""An answer of which a file may hold the word."""


def majority(votes: Sequence[int | None]) -> int | None:
    """The value that more than half of the votes give; None where no value has so many."""
    for value in votes:
        if 2 * votes.count(value) > len(votes):
            return value
    return None


def label_of(votes: Sequence[int | None], *, is_ordered: bool) -> int | None:
    """The label that the votes of people come to, of which None are for no label: what more than
    half of all say, of levels the median, a half where it lies between two; None where at most half
    say something.
    """
    levels = [vote for vote in votes if vote is not None and vote != NOT_APPLICABLE]
    if not is_ordered or 2 * len(levels) <= len(votes):
        return majority(votes)
    return as_level(median(levels))


@frozen
class VoteSource:
    """Where a vote stands: file and line, or the key of the config that takes it from the log; who
    gave it, and what they noted, where the file says so.
    """

    place: str
    annotator: str = ""
    note: str = ""


@frozen
class Label:
    """The label of one run under one rubric, on the scale of verdicts: one vote for each annotator.

    `split` is the part of the labels that it belongs to, such as `dev` or `test`; of one that is
    settled it begins with that word, and so do the votes with what is settled. `sources` are those
    of the votes, in their order; empty where an earlier version stored the label.
    """

    votes: Annotated[tuple[Answer, ...], Field(min_length=1)]
    by: LabelledBy
    split: str = ""
    # Who says where that the label is this one makes it no other label.
    sources: tuple[VoteSource, ...] = field(default=(), compare=False)

    @property
    def value(self) -> int | None:
        """What is settled, or more than half of the votes give; None where no value has so many."""
        return majority(self.votes[:1] if self.is_settled else self.votes)

    @property
    def is_drawn(self) -> bool:
        """Whether its run is said to be one of a random sample of all runs."""
        return self.split.casefold() in ("drawn", f"{SETTLED} drawn")

    @property
    def is_settled(self) -> bool:
        """Whether somebody decided it who saw the votes."""
        return self.split.casefold().startswith(SETTLED)

    @property
    def dispute(self) -> str:
        """The most votes for one value, as `2 of 4`, to be said where that is no label."""
        most = max(map(self.votes.count, self.votes))
        return f"{most} of {len(self.votes)}"


RunKey = tuple[str, int]
"""The id and epoch of a run."""
Slices = tuple[tuple[str, str], ...]
"""Fields or columns by which figures are told apart, each with the value of a case; "" for none."""
LabelKey = tuple[str, str, int]
"""Rubric id, run id and epoch of a label."""
Labels = Mapping[LabelKey, Label]


@frozen
class RunSummary:
    """What collection knows of a run: its key, and why it can make no case."""

    run_id: str
    epoch: int
    skip: Skip | None = None
    cluster: str | None = None
    """What it shares with other runs, such as a task with many trials; None: its id, whose epochs
    belong together."""

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.run_id, self.epoch


@frozen
class AgentRun:
    """One sample of an agent log at one epoch, with text made storable.

    `input` is the sample's input as text; `sample_id` keeps the type it has in the log;
    `notes` says in words what loading had to change.
    """

    run_id: str
    epoch: int
    messages: Transcript
    input: str = ""
    target: str = ""
    metadata: Fields = field(default_factory=dict)
    sample_id: int | str = ""
    notes: tuple[str, ...] = ()


@frozen
class Rubric:
    """One criterion, and where it stands in its file (`line` counts from 1).

    `score_levels` is sorted and without gaps; empty where the file gives none. `classes` are words
    without an order in their place, each with when it is due, and `not_applicable` says when `n/a`
    is. `answers` are those on offer where all these do not tell them. `skips` are the probes that
    its cases are no base of.
    """

    id: str
    instructions: str
    score_levels: tuple[ScoreLevel, ...] = ()
    file: str = ""
    line: int = 1
    skips: tuple[str, ...] = field(default=(), compare=False)
    answers: SkipValidation[Scale | None] = field(default=None, compare=False)
    classes: tuple[tuple[str, str], ...] = ()
    not_applicable: str = ""

    @property
    def scale(self) -> Scale:
        """The answers on offer."""
        return self.answers or self.offering(scale_of(self.score_levels))

    @property
    def digest(self) -> str:
        """Of what a person who labels is asked; empty where the rubric is an id without a text.

        Where a line of the rubric is broken does not count.
        """
        if self.instructions == self.id:
            return ""
        words = self.instructions.split()
        levels: list[object] = [(level.score, level.label) for level in self.score_levels]
        if self.classes or self.not_applicable:
            levels += [self.classes, self.not_applicable]
        return short_digest(json.dumps([words, levels]), 16)

    def offering(self, scale: Scale) -> Scale:
        """A scale with the rubric's own classes in its place, and n/a beside it where it is due."""
        if self.classes:
            scale = classed(self.classes)
        if self.not_applicable:
            scale = with_not_applicable(scale, self.not_applicable)
        return scale


Preprocessor = Callable[..., "Mapping[str, Any] | Messages | None"]
ClusterId = tuple[str, str | None, str]


HumanReview = Literal["", "undecided", "accepted", "edited", "rejected", "void"]
EditKind = Literal["say", "call", "insert", "omit"]
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

    def answer(self, scale: Scale) -> int | None:
        """The answer that it gives on a scale: the score, else that of which it says so."""
        for of_class in scale.classes:
            if self.score is None and of_class.verdict == self.verdict:
                return of_class.answer
        return self.score


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
    def holds_acts(self) -> bool:
        """Whether it was made with edits of acts."""
        return any(edit.is_splice for edit in self.outcome.edits)

    @property
    def verifier_answer(self) -> int | None:
        """The answer of the verifier; None where it gave none."""
        said = self.outcome.verification
        return None if said is None else said.answer(self.scale)


UNEDITED = "unedited"
"""What was done to a run that is a case as it is."""
