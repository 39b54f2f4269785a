"""Why a case was not made or has no verdict, and what cases come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pytest_jrh.core import frozen

SkipKind: TypeAlias = Literal[
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
        "there are no messages", "Nothing: it ended before its first message."
    ),
    "no_assistant_turn": SkipReason(
        "the assistant said nothing", "Nothing: there is no answer to be judged."
    ),
    "no_answer": SkipReason("the answer is empty", "Fill it in, or leave the row out."),
    "disputed_label": SkipReason(
        "annotators disagree",
        "Have one more person label it, or make the rubric clearer.",
        "annotators disagree ({detail})",
    ),
    "no_plan": SkipReason(
        "no plan",
        "Nothing, where few. Where many: the rubric is vague, or does not apply here.",
        "no plan: {detail}",
    ),
    "unusable_edit": SkipReason(
        "unusable edit",
        "Nothing, where few. Where many: the editor's model is too weak.",
        "unusable edit: {detail}",
    ),
    "broken_structure": SkipReason(
        "an edit breaks the structure of the transcript",
        "Nothing, where few. Where many: the editor's model is too weak for `edits: acts`.",
        "an edit breaks the structure: {detail}",
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
        "rejected in review",
        "Nothing: a person has decided so on the review page.",
        "rejected in review: {detail}",
    ),
    "wrong_on_base": SkipReason(
        "the judge is wrong on the unchanged case",
        "Mend the disagreement on that case first: a change of it shows nothing.",
        "the judge is wrong on the unchanged case: {detail}",
    ),
    "probe_not_applicable": SkipReason(
        "the probe does not apply to the case", "Nothing: what the probe changes is not there."
    ),
}


@frozen
class Skip:
    """Why there is no case: the kind, and what is so of this one, such as the votes."""

    kind: SkipKind
    detail: str = ""

    def __str__(self) -> str:
        return SKIPS[self.kind].text(self.detail)


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
    places: tuple[str, ...] = ()
    difference: str = ""
    cassette: str = ""


NOTHING_WRONG = Why()
