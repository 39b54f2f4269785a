"""The data model: frozen values that all packages share, from runs and rubrics over cases and how
they are made to verdicts, results and outcomes.

Messages are Inspect's own chat messages as plain JSON dictionaries (`role`, `content` as text or a
list of blocks, `tool_calls`, `tool_call_id`, `function`, `error`); nobody may change one in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
)

from pydantic import BaseModel, ConfigDict, Field, with_config

from pytest_jrh.core.sections import RateLimitSection
from pytest_jrh.core.values import frozen

Message: TypeAlias = Mapping[str, Any]
Mode: TypeAlias = Literal["binary", "ordinal"]
Objective: TypeAlias = Literal["fail", "pass"]
"""What a pipeline aims at: a transcript that violates its rubric, or one that satisfies it."""
RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all"]
HumanReview: TypeAlias = Literal["", "undecided", "accepted", "edited", "rejected", "void"]
# Of samples and of intervals, where a suite names none.
DEFAULT_SEED = 8234
PERTURBATION: str = "agent_perturbation"
POSITIVES: str = "agent_positives"
NATURAL: str = "agent_labels"
"""The test whose cases are runs as they are, with labels that the config names."""
SHORT_NAMES: Mapping[str, str] = {
    PERTURBATION: "perturbation",
    POSITIVES: "positive",
    NATURAL: "natural",
}
"""The tests that are no probes, as titles and tables name them."""


@frozen
class StageModel:
    """The model and the settings of one stage; None means "do not send it"."""

    stage: str
    model: str
    prompt_path: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    api_base: str | None = None
    rate_limit: RateLimitSection | None = None
    params: Mapping[str, Any] | None = field(default=None, hash=False)


@frozen
class Usage:
    """Tokens of one call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@frozen
class Spending:
    """Calls and their price in US dollars.

    `calls` were made now and `replayed` answered from cassettes; `usage` and `cost` cover both,
    `paid` only what was made now; `unpriced` counts the calls, of both kinds, whose model has no
    known price. `lost` are the calls made now that gave no answer, and that the provider may have
    billed: timed out, or broken off.
    """

    calls: int = 0
    replayed: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    paid: float = 0.0
    unpriced: int = 0
    lost: int = 0

    def __add__(self, other: Spending) -> Spending:
        names = [part.name for part in fields(self)]
        return Spending(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def replay(self) -> Spending:
        """What it takes to have the same answers from cassettes."""
        replayed = self.replayed + self.calls - self.lost
        return replace(self, calls=0, replayed=replayed, paid=0.0, lost=0)

    def merged(self, other: Spending) -> Spending:
        """What two cases say of one recording, together: all that either has paid, and the answers
        of the one that has more of them.
        """
        paid = Spending(
            self.calls + other.calls, paid=self.paid + other.paid, lost=self.lost + other.lost
        )
        answers = max(self.replay.replayed, other.replay.replayed)
        return replace(
            paid,
            replayed=max(0, answers - paid.replay.replayed),
            usage=max(self.usage, other.usage, key=lambda usage: usage.total),
            cost=max(self.cost, other.cost),
            unpriced=max(self.unpriced, other.unpriced),
        )


ResponseT = TypeVar("ResponseT", bound=BaseModel)
ResponseT_co = TypeVar("ResponseT_co", bound=BaseModel, covariant=True)


@frozen
class Completion(Generic[ResponseT_co]):
    """A model's answer, parsed: `text` is what it wrote, `parsed` what it means."""

    text: str
    parsed: ResponseT_co


class Complete(Protocol):
    """The seam to the models: one call, answered in the shape of `response_model`.

    Raises `Unscored` where no usable answer could be had; never returns an invented one.
    """

    def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Awaitable[Completion[ResponseT]]: ...


SkipKind: TypeAlias = Literal[
    "no_messages",
    "no_assistant_turn",
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
    """What happened where there is no case, as the terminal counts it, and what to do about it."""

    happened: str
    advice: str


SKIPS: Mapping[str, SkipReason] = {
    "no_messages": SkipReason(
        "the run has no messages", "Nothing: the run ended before its first message."
    ),
    "no_assistant_turn": SkipReason(
        "the transcript has no assistant turn", "Nothing: the agent did nothing to be judged."
    ),
    "disputed_label": SkipReason(
        "annotators disagree", "Have one more person label the run, or make the rubric clearer."
    ),
    "no_plan": SkipReason(
        "no plan",
        "Nothing, where few. Where many: the rubric is vague, or does not apply to these runs.",
    ),
    "unusable_edit": SkipReason(
        "unusable edit", "Nothing, where few. Where many: the editor's model is too weak."
    ),
    "broken_structure": SkipReason(
        "an edit breaks the structure of the transcript",
        "Nothing, where few. Where many: the editor's model is too weak for `edits: acts`.",
    ),
    "stale_value": SkipReason(
        "a later turn still says what was changed",
        "Nothing, where few. Where many: the planner's or the editor's model is too weak, or so "
        "much hangs on each act that `edits: text` suits the rubric better.",
    ),
    "not_confirmed": SkipReason(
        "label not confirmed",
        "Nothing, where few. Where many: the rubric is vague, or the editor's model is too weak.",
    ),
    "contradiction": SkipReason(
        "the transcript contradicts itself",
        "Nothing, where few. Where many: the editor's model is too weak for `edits: acts`.",
    ),
    "rejected_in_review": SkipReason(
        "rejected in review", "Nothing: a person has decided so on the review page."
    ),
    "wrong_on_base": SkipReason(
        "the judge is wrong on the unchanged case",
        "Mend the disagreement on that case first: a change of it shows nothing.",
    ),
    "probe_not_applicable": SkipReason(
        "the probe does not apply to the case", "Nothing: what the probe changes is not there."
    ),
}


@frozen
class Skip:
    """Why there is no case: the kind, and the sentence about this one where it says more."""

    kind: SkipKind
    text: str = ""

    def __str__(self) -> str:
        return self.text or SKIPS[self.kind].happened


LabelledBy: TypeAlias = Literal["people", "program"]
LabelSource: TypeAlias = Literal[LabelledBy, "column", "made", "unconfirmed"]


def majority(votes: Sequence[int]) -> int | None:
    """The value that more than half of the votes give; None where no value has so many."""
    for value in votes:
        if 2 * votes.count(value) > len(votes):
            return value
    return None


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

    `split` is the part of the labels that it belongs to, such as `dev` or `test`. `sources` are
    those of the votes, in their order; empty where an earlier version stored the label.
    """

    votes: Annotated[tuple[int, ...], Field(min_length=1)]
    by: LabelledBy
    split: str = ""
    # Who says where that the label is this one makes it no other label.
    sources: tuple[VoteSource, ...] = field(default=(), compare=False)

    @property
    def value(self) -> int | None:
        """The value that more than half of the votes give; None where no value has so many."""
        return majority(self.votes)

    @property
    def is_drawn(self) -> bool:
        """Whether its run is said to be one of a random sample of all runs."""
        return self.split.casefold() == "drawn"

    @property
    def lowest(self) -> int:
        """The value, or where there is none the lowest that was given: what an ordinal case that
        cannot be made is named after.
        """
        return min(self.votes) if self.value is None else self.value

    @property
    def dispute(self) -> str | None:
        """Why there is no label, or None where there is one."""
        if self.value is not None:
            return None
        most = max(map(self.votes.count, self.votes))
        return f"annotators disagree ({most} of {len(self.votes)})"


LabelKey: TypeAlias = tuple[str, str, int]
"""Rubric id, run id and epoch of a label."""


@frozen
class RunSummary:
    """What collection knows of a run: its key, and why it can make no case."""

    run_id: str
    epoch: int
    skip: Skip | None = None
    cluster: str | None = None
    """What it shares with other runs, such as a task with many trials; None: its id, whose epochs
    belong together."""


@frozen
class AgentRun:
    """One sample of an agent log at one epoch, with text made storable.

    `input` is the sample's input as text; `sample_id` keeps the type it has in the log;
    `notes` says in words what loading had to change.
    """

    run_id: str
    epoch: int
    messages: tuple[Message, ...]
    input: str = ""
    target: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sample_id: int | str = ""
    notes: tuple[str, ...] = ()


LONGEST_SCALE = 1000
"""How many scores a scale has at most."""


@frozen
class ScoreLevel:
    """One anchor of an ordinal scale."""

    score: int
    label: str


@frozen
class Rubric:
    """One criterion, and where it stands in its file (`line` counts from 1).

    `score_levels` is sorted and without gaps; empty where the file gives none. `skips` are the
    probes that its cases are no base of.
    """

    id: str
    instructions: str
    score_levels: tuple[ScoreLevel, ...] = ()
    file: str = ""
    line: int = 1
    skips: tuple[str, ...] = field(default=(), compare=False)

    @property
    def width(self) -> int:
        """The distance from the lowest score to the highest; 1 of a binary rubric."""
        return self.scores[-1] - self.scores[0] if self.scores else 1

    @property
    def scores(self) -> tuple[int, ...]:
        """The scores of its levels, ascending; empty where it has none."""
        return tuple(level.score for level in self.score_levels)


Preprocessor: TypeAlias = Callable[..., "Mapping[str, Any] | Sequence[Message] | None"]


ClusterId: TypeAlias = tuple[str, str | None, str]


EditKind: TypeAlias = Literal["say", "call", "insert", "omit"]
"""What an edit changes: the words of a turn, a call with its result, or a call with its result that
is put in or left out."""
EditsOf: TypeAlias = Literal["text", "acts"]
"""What the edits of a suite may change: the words of turns alone, or calls and results too."""


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
    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()
    follows: str = ""

    @property
    def is_splice(self) -> bool:
        """Whether it holds the messages before and after it, as those of `edits: acts` do."""
        return bool(self.before or self.after)


@frozen
class Verification:
    """What the verifier said: a verdict (binary), and in ordinal mode the score it would give.

    `contradiction` is where the transcript contradicts itself; empty where it does not, or the
    verifier was not asked.
    """

    verdict: Literal["PASS", "FAIL"]
    rationale: str
    score: int | None
    contradiction: str = ""


@frozen
class PerturbationOutcome:
    """What came of one transcript.

    `no_case` says why there is no case; `messages` is then the original transcript,
    and `rejected` the one that was made, where the verifier rejected it. `verification` is None
    where the verifier is off or was never reached; `confirmed` says that the label was verified.
    """

    messages: tuple[Message, ...]
    plan: Plan | None = None
    edits: tuple[Edit, ...] = ()
    verification: Verification | None = None
    confirmed: bool = False
    final_summary: str | None = None
    no_case: Skip | None = None
    rejected: tuple[Message, ...] | None = None


@frozen
class CaseSpec:
    """What one pytest item stands for, known before any model is asked.

    `judge` is None for the suite's only judge, else the panel member's name. Ids are built in
    `core.ids`. `cluster` is that of the run (`RunSummary.cluster`). A case of a probe has the
    `variant` that changes a case of the test `base`; both are empty elsewhere.
    """

    suite: str
    test: str
    rubric_id: str
    run_id: str
    epoch: int
    target_score: int | None = None
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
    def natural(self) -> bool:
        """Whether it is a run as it is: no stage makes it, and no verifier confirms its label."""
        return self.test == NATURAL

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
    """What a person decided about a case, and noted; `action` is empty where an earlier version
    only kept that somebody did.
    """

    action: str
    note: str = ""


@frozen
class Case:
    """A transcript with a known answer, ready to be judged.

    `expected` is the answer a right judge gives: binary 1 for violated and 0 for satisfied, ordinal
    the target score; None of a run that is judged without a label. `verified` is False where
    `verifier: false` or `pass_required: false` let the label through unconfirmed. `label` is that
    of people or a program, of a run as it is.
    `levels` is the whole scale in ordinal mode, else empty. `digests` is
    for a case read from disk that was stored without the secrets in it: its digest as stored, and
    as it was made. `reworded` says that the rubric's text is another one than the case was made
    for, and its label with it. `altered` says that the record on the disk is not as it was written:
    whoever confirmed the label confirmed another case. A case that the verifier rejected has the
    reason in `outcome.no_case`: it is kept for people to look at, and never judged. `style` is the
    layout in which prompt judges get the transcript (one of `probes.probe.STYLES`). `review` is
    what a person decided about it, None where nobody did.
    """

    spec: CaseSpec
    rubric: Rubric
    run: AgentRun
    outcome: PerturbationOutcome
    expected: int | None
    verified: bool
    mode: Mode
    objective: Objective
    levels: tuple[ScoreLevel, ...] = ()
    digests: tuple[str, str] | None = None
    label: Label | None = None
    reworded: bool = False
    altered: bool = False
    style: str = ""
    review: Review | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.outcome.messages


UnscoredKind: TypeAlias = Literal[
    "model_error",
    "invalid_response",
    "refused",
    "unrecorded",
    "unrepeatable",
    "over_budget",
    "not_asked",
    "input_error",
]
Outcome: TypeAlias = Literal[
    "agree", "disagree", "generated", "unlabelled", "no_case", UnscoredKind
]
JUDGED: tuple[Outcome, ...] = ("agree", "disagree")
# No verdict on these is right or wrong: none was asked for, or there is no label to compare it to.
UNCOMPARED: tuple[Outcome, ...] = ("generated", "unlabelled")
# A case was made, and came to its end: judged, or not to be judged.
MADE: tuple[Outcome, ...] = (*JUDGED, "generated")
UNEDITED = "unedited"
"""What was done to a run that is a case as it is."""


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
        "Record it with the command below.",
        asked=False,
        unanswered=True,
    ),
    "unrepeatable": UnscoredOutcome("{stage} does not ask again what it has asked", asked=False),
    "over_budget": UnscoredOutcome(
        "the budget was exhausted before {stage}'s call",
        "Raise --jrh-max-calls or --jrh-max-cost and run again: only the missing calls are made.",
        asked=False,
        unanswered=True,
    ),
    "not_asked": UnscoredOutcome(
        "{stage} was not asked any more, since all cases would end alike",
        asked=False,
        unanswered=True,
    ),
    "input_error": UnscoredOutcome("the case's input is invalid", asked=False),
}


@frozen
class Verdict:
    """A judge's answer, on the scale on offer; by a threshold where it has a `probability`."""

    score: int
    reasoning: str
    probability: float | None = None


@frozen
class Judgment:
    """What a judge says of a case: the verdicts of all repeats, at least one."""

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
    def scores_text(self) -> str:
        """The score, and of repeats how often each was given."""
        return scores_text(self.score, self.scores)

    @property
    def shown(self) -> Verdict:
        """The first verdict with the most frequent score; in a tie the first of all."""
        score = self.score
        return next(verdict for verdict in self.verdicts if score in (None, verdict.score))


def equal_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, tuple[int, ...]]:
    """The different verdicts of repeats, each with the numbers of its repeats, from 1."""
    repeats: dict[Verdict, tuple[int, ...]] = {}
    for number, verdict in enumerate(verdicts, start=1):
        repeats[verdict] = (*repeats.get(verdict, ()), number)
    return repeats


def most_frequent(scores: Sequence[int]) -> int | None:
    """The score that more of the repeats gave than any other; None where there is none."""
    if len(scores) == 1:
        return scores[0]
    ranked = Counter(scores).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def scores_text(score: int | None, scores: Sequence[int]) -> str:
    """What a judge gave: `0`, and of repeats how often, `0 (2 of 3 said 0, 1 of 3 said 1)`."""
    text = "a tie" if score is None else str(score)
    if len(scores) <= 1:
        return text
    counts = sorted(Counter(scores).items(), key=lambda count: (-count[1], count[0]))
    said = ", ".join(f"{number} of {len(scores)} said {score}" for score, number in counts)
    return f"{text} ({said})"


@frozen
class Rejection:
    """The case that the verifier rejected: its digest, the label that it was made for, and what the
    verifier said instead.
    """

    case_digest: str
    expected: int
    said: int


@frozen
class ShownTurns:
    """How many `turns` of a case were looked for in what its judge sent: those that were edited, or
    where `is_whole` all turns of a case without edits.

    `missing` are the positions of those that it did not send, `unknown` the number of those that
    nobody can tell. `cut` is after how many characters it cut the transcript, where known, else 0.
    `read` is how many tokens its server read, where that is far fewer than it was sent, else 0.
    """

    turns: int
    missing: tuple[int, ...] = ()
    unknown: int = 0
    is_whole: bool = False
    cut: int = 0
    read: int = 0

    @property
    def shown(self) -> int:
        """How many of the turns the judge was shown."""
        return self.turns - len(self.missing) - self.unknown


@frozen
class Why:
    """Why there is no verdict, in a word and in prose; of a wrong one the explanation alone."""

    kind: Literal["", "no_case", SkipKind, UnscoredKind] = ""
    text: str = ""


NOTHING_WRONG = Why()


@frozen
class CaseSpending:
    """What a case took, by the name of the recording that has the calls.

    Several cases name the same one: the judges of a panel share the making of a case, the cases of
    a run its first summary, and two processes may each have paid for a part of it.
    """

    parts: Mapping[str, Spending] = field(default_factory=dict)

    @property
    def all(self) -> Spending:
        """What the case took in all."""
        return sum(self.parts.values(), Spending())


@frozen
class ProbeVariant:
    """Which variant changes a case of which test, and what the judge gave to that case."""

    base: str
    variant: str
    base_scores: tuple[int, ...] = ()


@frozen
class Extra:
    """What features keep of a case, each under its own name.

    `altered`: its record was changed on the disk since it was made. `config` is the suite's config
    file. `content` is the same for cases with one rubric and transcript, whatever their labels.
    `edit` is what the editor says of its first edit, in one line, or `UNEDITED`. `kept`: an earlier
    session gave the result. `probabilities` of a violation are those of all repeats of a judge that
    gives some. `reason` is what people write into a baseline. `rejected` is the case
    that the verifier rejected, where that is why there is none. `review` is what people decided
    about the case, where a review is in play. `reworded`: made for another text of the rubric than
    the judge had. `shown` is whether the judge was shown what decides, where that is known.
    """

    altered: bool = False
    config: str = ""
    content: str = ""
    edit: str = ""
    kept: bool = False
    probabilities: tuple[float, ...] = ()
    probe: ProbeVariant | None = None
    reason: str = ""
    rejected: Rejection | None = None
    review: HumanReview = ""
    reworded: bool = False
    shown: ShownTurns | None = None


@with_config(ConfigDict(strict=True))
@dataclass(frozen=True)
class CaseResult:
    """What a case came to under a judge: a line of the ledger, `results.jsonl`.

    `case_id` is that of the spec (`ids.case_id`). `label` is None where there is none to compare a
    verdict with, and `unconfirmed` where no verifier confirmed what a stage made. `case_digest`
    says which case was judged and `judge_digest` by which judge; both are empty where there was
    none. `scores` and `reasons` are those of all repeats, in order; where `why` has a kind, those
    before the repeat that failed, which are no verdict.
    """

    case_id: str
    suite: str = ""
    test: str = ""
    rubric_id: str = ""
    run_id: str = ""
    epoch: int = 0
    cluster: str | None = None
    target: int | None = None
    label: int | None = None
    labelled_by: LabelSource | None = None
    case_digest: str = ""
    judge: str = ""
    judge_digest: str = ""
    scores: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    why: Why = NOTHING_WRONG
    spending: CaseSpending = CaseSpending()
    extra: Extra = Extra()
    format: Literal[2] = 2

    @cached_property
    def spec(self) -> CaseSpec:
        """The case and the judge that it is a result of."""
        probe = self.extra.probe or ProbeVariant("", "")
        return CaseSpec(
            self.suite,
            self.test,
            self.rubric_id,
            self.run_id,
            self.epoch,
            self.target,
            judge=self.judge or None,
            cluster=self.cluster,
            base=probe.base,
            variant=probe.variant,
        )

    @cached_property
    def outcome(self) -> Outcome:
        """What the case came to: why there is no verdict says it, else the verdicts do."""
        kind = self.why.kind
        if kind in UNSCORED:
            return kind  # type: ignore[return-value]
        if kind:
            return "no_case"
        if not self.scores:
            return "generated"
        if self.label is None:
            return "unlabelled"
        return "agree" if self.score == self.label else "disagree"

    @cached_property
    def judgment(self) -> Judgment | None:
        """What the judge says, where it gave every verdict that was asked for."""
        return None if self.why.kind or not self.scores else Judgment(self.verdicts)

    @cached_property
    def score(self) -> int | None:
        """The most frequent score; None in a tie, a disagreement, and without a verdict."""
        return most_frequent(self.all_scores)

    @cached_property
    def reasoning(self) -> str:
        """The reasoning of the first verdict with that score."""
        return self.judgment.shown.reasoning if self.judgment else ""

    @property
    def is_ordinal(self) -> bool:
        """Whether its verdicts are scores of a scale; else 1 is violated, and 0 satisfied."""
        return self.target is not None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of all repeats; of a case without a verdict those before the one that failed."""
        return tuple(map(Verdict, self.scores, self.reasons))

    @property
    def verified(self) -> bool | None:
        """Whether the label stands for the case as it is; None without a label."""
        if self.label is None:
            return None
        return self.labelled_by != "unconfirmed" and not self.extra.altered

    @property
    def is_accepted(self) -> bool:
        """Whether a person accepted the case, as it was made or with edits."""
        return self.extra.review in ("accepted", "edited")

    @property
    def base_scores(self) -> tuple[int, ...]:
        """What the judge gave in all repeats to the case that a probe changed."""
        return () if self.extra.probe is None else self.extra.probe.base_scores

    @property
    def base_score(self) -> int | None:
        """What the judge gave to the case that a probe changed."""
        return most_frequent(self.base_scores)

    @property
    def all_scores(self) -> tuple[int, ...]:
        """The scores of all repeats, where each gave one."""
        return () if self.why.kind else self.scores

    @property
    def repeated(self) -> bool:
        """Whether the case was judged more than once."""
        return len(self.all_scores) > 1

    @property
    def flickers(self) -> bool:
        """Whether the judge gave the case different scores."""
        return len(set(self.all_scores)) > 1

    @property
    def scores_text(self) -> str:
        """What the judge gave: the score, and of repeats how often each."""
        return scores_text(self.score, self.all_scores)


def total_spending(results: Iterable[CaseResult]) -> Spending:
    """What results took together; what several of them name was paid for, and counts, once."""
    total: dict[tuple[str, str], Spending] = {}
    for result in results:
        for name, spending in result.spending.parts.items():
            recording = (result.suite, name)
            total[recording] = total.get(recording, Spending()).merged(spending)
    return sum(total.values(), Spending())


@frozen
class Progress:
    """How far a session is: cases done of those set to work, what they have spent, and how many
    calls of each stage wait for an answer, as far as that is known.
    """

    done: int
    total: int
    spending: Spending = Spending()
    in_flight: Mapping[str, int] = field(default_factory=dict)
