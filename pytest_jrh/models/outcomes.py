"""How a case can end: judged, made and not judged, without a case, or unscored (rules F)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

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
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
JUDGED: tuple[Outcome, ...] = ("agree", "disagree")
# A case was made, and came to its end: judged, or not to be judged.
MADE: tuple[Outcome, ...] = (*JUDGED, "generated")


@dataclass(frozen=True, slots=True)
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
        "Record it with the command below, or undo the change.",
        asked=False,
        unanswered=True,
    ),
    "over_budget": UnscoredOutcome(
        "the budget was exhausted before {stage}'s call",
        "Raise --jrh-max-calls or --jrh-max-cost and run again: only the missing calls are made.",
        asked=False,
        unanswered=True,
    ),
    "input_error": UnscoredOutcome("the case's input is invalid", asked=False),
}
