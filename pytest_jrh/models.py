"""The vocabulary: frozen values that the rooms of the house hand to each other.

Messages are Inspect's own chat messages as plain JSON dictionaries (`role`, `content` as text or a
list of blocks, `tool_calls`, `tool_call_id`, `function`, `error`); nobody may change one in place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from pytest_jrh.kinds import TESTS
from pytest_jrh.kinds.kind import Objective as Objective  # noqa: PLC0414 - part of this vocabulary

Message: TypeAlias = Mapping[str, Any]
if TYPE_CHECKING:
    TestName: TypeAlias = str
else:
    # What pydantic checks: the tests that are registered.
    TestName = Literal[TESTS]
Mode: TypeAlias = Literal["binary", "ordinal"]
StageName: TypeAlias = Literal["planner", "editor", "summary", "verifier", "judge"]
Outcome: TypeAlias = Literal[
    "agree",
    "disagree",
    "generated",
    "no_case",
    "model_error",
    "invalid_response",
    "refused",
    "unrecorded",
    "over_budget",
    "input_error",
]

RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all"]
HumanReview: TypeAlias = Literal["", "undecided", "accepted", "edited", "rejected", "void"]

STAGES: tuple[StageName, ...] = ("planner", "editor", "summary", "verifier", "judge")
JUDGED: tuple[Outcome, ...] = ("agree", "disagree")
# A case was made, and came to its end: judged, or not to be judged.
MADE: tuple[Outcome, ...] = (*JUDGED, "generated")
UNSCORED: frozenset[str] = frozenset(
    {"model_error", "invalid_response", "refused", "unrecorded", "over_budget", "input_error"}
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What collection knows of a run: its key, and why it can make no case (rules C2, C3)."""

    run_id: str
    epoch: int
    skip_reason: str | None = None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """One sample of an agent log at one epoch, with text made storable (rules C1, C6).

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


@dataclass(frozen=True, slots=True)
class ScoreLevel:
    """One anchor of an ordinal scale."""

    score: int
    label: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """One criterion, and where it stands in its file (`line` counts from 1).

    `score_levels` is sorted and without gaps; empty where the file gives none.
    """

    id: str
    instructions: str
    score_levels: tuple[ScoreLevel, ...] = ()
    file: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `calls` calls in `period` seconds."""

    calls: int
    period: float


@dataclass(frozen=True, slots=True)
class StageModel:
    """The model and the settings of one stage (rule A6); None means "do not send it"."""

    stage: StageName
    model: str
    prompt_path: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    api_base: str | None = None
    rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True)
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


ResponseT = TypeVar("ResponseT", bound=BaseModel)
ResponseT_co = TypeVar("ResponseT_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True, slots=True)
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
        messages: Sequence[Mapping[str, str]],
        response_model: type[ResponseT],
    ) -> Awaitable[Completion[ResponseT]]: ...


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

    `no_case` holds the reason where there is no case; `messages` is then the original transcript.
    `verification` is None where the verifier is off or was never reached; `confirmed` says that the
    label was verified.
    """

    messages: tuple[Message, ...]
    plan: Plan | None = None
    edits: tuple[Edit, ...] = ()
    verification: Verification | None = None
    confirmed: bool = False
    final_summary: str | None = None
    no_case: str | None = None


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """What one pytest item stands for, known before any model is asked.

    `judge` is None for the suite's only judge, else the panel member's name; `rubric_index` and
    `run_index` place it in the suite. Ids are built in `suite.cases`.
    """

    suite: str
    test: TestName
    rubric_id: str
    run_id: str
    epoch: int
    target_score: int | None = None
    judge: str | None = None
    skip_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A transcript with a known answer, ready to be judged.

    `expected` is the answer a right judge gives: binary 1 for violated and 0 for satisfied, ordinal
    the target score. `verified` is False where `verifier: false` or `pass_required: false` let the
    label through unconfirmed. `levels` is the whole scale in ordinal mode, else empty. `digests` is
    for a case read from disk that was stored without the secrets in it: its digest as stored, and
    as it was made.
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

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.outcome.messages


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer, on the scale that was on offer (rules E)."""

    score: int
    reasoning: str


class Judge(Protocol):
    """Anything that gives a verdict on a case; raises `Unscored` rather than guess."""

    def __call__(self, case: Case) -> Awaitable[Verdict]: ...


Preprocessor: TypeAlias = Callable[..., "Mapping[str, Any] | Sequence[Message] | None"]


@dataclass(frozen=True, slots=True)
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
        return Spending(
            self.calls + other.calls,
            self.replayed + other.replayed,
            self.usage + other.usage,
            self.cost + other.cost,
            self.paid + other.paid,
            self.unpriced + other.unpriced,
            self.lost + other.lost,
        )


@dataclass(frozen=True, slots=True)
class SharedCall:
    """A call that several cases make alike and one of them pays for: the first summary of a run
    (rule D5).

    `fingerprint` is the call's; `spending` is what each of the cases has of it.
    """

    fingerprint: str
    spending: Spending


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one item came to: small, so that thousands fit in memory and travel between processes.

    `detail` is prose for a person: the reason of a skip, the paragraph of an error, or the whole
    explanation of a disagreement. `case_digest` says which case was judged and `judge_fingerprint`
    by which judge (rule J2); both are empty where there was no case, or no judge was asked.
    `human_reviewed` is what people decided about the case (rule K2); empty where no review is in
    play. `judge_spending` is the judge's part of the spending, and told of a panel's judges alone:
    the rest went into making the case that they share. `shared` is the part of `spending` that
    other cases have too.
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is: cases done of those set to work, and what they have spent."""

    done: int
    total: int
    spending: Spending = Spending()
