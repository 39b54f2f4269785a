"""What a judge says of a case, and the lines of the ledger: what a case came to, and its judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, with_config

from pytest_jrh.core import Fields, frozen, grouped
from pytest_jrh.core.calls import Spending
from pytest_jrh.core.cases import (
    NOTHING_WRONG,
    UNSCORED,
    Answer,
    CaseSpec,
    HumanReview,
    LabelSource,
    Outcome,
    Slices,
    Verdict,
    Why,
)
from pytest_jrh.core.ids import case_id, generation_id
from pytest_jrh.core.scales import NOT_APPLICABLE, CaseClass, Said, Scale, scale_of_line


def equal_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, list[int]]:
    """The different verdicts of repeats, each with the numbers of its repeats, from 1."""
    return grouped((verdict, number) for number, verdict in enumerate(verdicts, start=1))


def scores_text(score: int | None, scores: Sequence[int], scale: Scale) -> str:
    """What a judge gave: `0`, and of repeats how often, `0 (0 in 2 of 3 repeats, 1 in 1 ...)`."""
    text = "a tie" if score is None else str(scale.said(score))
    if len(scores) <= 1:
        return text
    counts = sorted(Counter(scores).items(), key=lambda count: (-count[1], count[0]))
    parts = [f"{scale.said(one)} in {number} of {len(scores)} repeats" for one, number in counts]
    return f"{text} ({', '.join(parts)})"


@frozen
class Rejection:
    """The case that the verifier rejected: its digest, and the label that it was made for."""

    case_digest: str
    expected: Answer


@frozen
class ShownTurns:
    """How many `turns` of a case were looked for in what its judge sent: those that were edited, or
    where `is_whole` all turns of a case without edits.

    `missing` are the positions of those that it did not send, `unknown` the number of those that
    nobody can tell.
    `read` is how many tokens its server read, where that is far fewer than it was sent, else 0.
    `asked_again` says that an answer could not be used, and that the judge was asked for another.
    """

    turns: int
    missing: tuple[int, ...] = ()
    unknown: int = 0
    is_whole: bool = False
    read: int = 0
    asked_again: bool = False


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
    base_scores: tuple[Answer, ...] = ()


@frozen
class Extra:
    """What features keep of a case, each under its own name.

    `altered`: its record was changed on disk since it was made. `config` is the suite's config
    file. `content` is the same for cases with one rubric and transcript, whatever their labels.
    `edit` is what the editor says of its first edit, in one line, or `UNEDITED`. `kept`: an earlier
    session gave the result. `probabilities` of a violation are those of all repeats of a judge that
    gives some. `reason` is what people write into a baseline. `rejected` is the case
    that the verifier rejected, where that is why there is none. `review` is what people decided
    about the case, where a review is in play. `reworded`: made for another text of the rubric than
    the judge had. `shown` is whether the judge was shown what decides, where that is known.
    `slices` are those that the case is in. `systems` gave the two answers of a pair. `votes`
    are what people say of a case of a table, a line each.
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
    slices: Slices = ()
    systems: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()


@with_config(ConfigDict(strict=True))
@dataclass(frozen=True)
class CaseResult:
    """What a case came to under a judge: a line of the ledger, `results.jsonl`.

    `case_id` is that of the spec (`ids.case_id`). `label` is None where there is none to compare a
    verdict with; `labelled_by` says who gave it, and `unconfirmed` that no verifier has confirmed
    what a stage made. `case_digest` says which case was judged and `judge_digest` by which judge;
    both are empty where there was none. `scores` and `reasons` are those of all repeats, in order;
    where `why` has a kind, those before the repeat that failed, which are no verdict
    (`complete_scores`). `answers` names the scale where the target does not tell it (`Scale.line`),
    and `within` says how many levels off is right.
    """

    case_id: str
    suite: str = ""
    test: str = ""
    rubric_id: str = ""
    run_id: str = ""
    epoch: int = 0
    cluster: str | None = None
    target: Said | None = None
    label: Answer | None = None
    labelled_by: LabelSource | None = None
    case_digest: str = ""
    judge: str = ""
    judge_digest: str = ""
    scores: tuple[Answer, ...] = ()
    reasons: tuple[str, ...] = ()
    why: Why = NOTHING_WRONG
    spending: CaseSpending = CaseSpending()
    extra: Extra = Extra()
    answers: str = ""
    within: int = 0
    format: Literal[3] = 3

    @classmethod
    def of(cls, spec: CaseSpec) -> CaseResult:
        """The result of a spec that nothing is known of yet."""
        probe = ProbeVariant(spec.base, spec.variant) if spec.variant else None
        return cls(
            case_id(spec),
            spec.suite,
            spec.test,
            spec.rubric_id,
            spec.run_id,
            spec.epoch,
            spec.cluster,
            spec.target_score,
            judge=spec.judge or "",
            extra=Extra(probe=probe),
        )

    @cached_property
    def made_id(self) -> str:
        """The id of the made case that it is about: several judges look at one."""
        # A lone judge has no part of the id, which is long work to make.
        return self.case_id if self.spec.judge is None else generation_id(self.spec)

    @property
    def made_digest(self) -> str:
        """The digest of the case that was judged, or that the verifier rejected; empty without."""
        rejected = self.extra.rejected
        return self.case_digest if rejected is None else rejected.case_digest

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
        return "agree" if self.scale.accepts(self.score, self.label) else "disagree"

    @cached_property
    def score(self) -> int | None:
        """The most frequent score; None in a tie, a disagreement, and without a verdict."""
        return self.scale.settled(self.complete_scores)

    @cached_property
    def reasoning(self) -> str:
        """The reasoning of the first verdict with that score, in a tie of the first wrong one."""
        of_wrong = ""
        for score, reasoning in zip(self.complete_scores, self.reasons, strict=False):
            if score == self.score:
                return reasoning
            if score != self.label:
                of_wrong = of_wrong or reasoning
        return of_wrong

    @property
    def scale(self) -> Scale:
        """The answers on offer; of levels a line does not have the labels."""
        return scale_of_line(self.answers, self.target, self.within)

    @property
    def case_class(self) -> CaseClass | None:
        """The class of its case; None without a label."""
        return self.scale.class_of(self.label)

    @property
    def mistake(self) -> str:
        """What its verdict is called, if it is wrong."""
        of_class = self.case_class
        return "wrong" if of_class is None or self.is_passed_over else of_class.mistake

    @property
    def is_passed_over(self) -> bool:
        """Whether it is satisfied and called n/a, which is no false alarm."""
        return self.score == NOT_APPLICABLE and self.label == self.scale.aim("pass")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of all repeats; of a case without a verdict those before the one that failed."""
        return tuple(map(Verdict, self.scores, self.reasons))

    @property
    def basis(self) -> Literal[LabelSource, "accepted", "altered"]:
        """What its label rests on."""
        if self.is_accepted:
            return "accepted"
        if self.extra.altered:
            return "altered"
        return self.labelled_by or "unconfirmed"

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
        return self.scale.settled(self.base_scores)

    @property
    def complete_scores(self) -> tuple[int, ...]:
        """The scores of all repeats; none unless each gave one."""
        return () if self.why.kind else self.scores

    @property
    def repeated(self) -> bool:
        """Whether the case was judged more than once."""
        return len(self.complete_scores) > 1

    @property
    def flickers(self) -> bool:
        """Whether the judge gave the case different scores."""
        return len(set(self.complete_scores)) > 1

    @property
    def label_text(self) -> str:
        """The right answer as files have it."""
        return str(self.scale.said(self.label))

    @property
    def scores_text(self) -> str:
        """What the judge gave: the score, and of repeats how often each."""
        return scores_text(self.score, self.complete_scores, self.scale)


@with_config(ConfigDict(strict=True, extra="forbid"))
@dataclass(frozen=True)
class JudgeLine:
    """A judge of a suite: a line of the ledger. `judge` is empty for the only one.

    `models` are those that its config names. `parameters` are those that it sets, and of a system
    prompt that there is one. `asks_model` of a judge of code says whether it has asked anything
    over the network, now or when it was recorded. `prompt` is empty for code, and `file`, which is
    no part of the line, also for a prompt that is built in.
    """

    suite: str
    judge_digest: str
    kind: str
    models: tuple[str, ...]
    parameters: Fields
    asks_model: bool
    judge: str = ""
    prompt: str = ""
    file: Annotated[str, Field(exclude=True)] = ""
    format: Literal[3] = 3


def total_spending(results: Iterable[CaseResult]) -> Spending:
    """What results took together; what several of them name was paid for, and counts, once."""
    total: dict[tuple[str, str], Spending] = {}
    for result in results:
        for name, spending in result.spending.parts.items():
            recording = (result.suite, name)
            before = total.get(recording)
            total[recording] = spending if before is None else before.merged(spending)
    return sum(total.values(), Spending())
