"""What judges of own code have in common: their keys, and how their values become scores (rules Q1,
Q2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pytest_jrh.errors import Unscored
from pytest_jrh.judges.score_maps import is_huge, key_of, offered_text
from pytest_jrh.models import Verdict
from pytest_jrh.sections import ConfigSection, Takes, Text
from pytest_jrh.stages import JUDGE
from pytest_jrh.text import shortened

if TYPE_CHECKING:
    from pytest_jrh.judges.judged_case import JudgedCase

_LONGEST_VALUE = 80
_LONGEST_REASONING = 20_000
_PAIR = 2


class OwnCodeKeys(ConfigSection):
    """The keys of every judge that is not a prompt."""

    version: Text | None = None
    """The version of the judge. While it is the same, recorded verdicts are replayed without
    running the judge; a new version judges anew."""
    replay: Annotated[Literal["run", "verdict"] | None, Takes("run or verdict")] = None
    """run: the judge runs on replay, and its requests are answered from the recording. verdict: its
    recorded verdict is replayed without running it. Left out: verdict where version is set, else
    run."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The scores on offer, and what is made of a judge's values (rule Q2); `who` is the judge."""

    who: str
    score_map: Mapping[str, int] | None

    def verdict(self, value: object, reasoning: object, case: JudgedCase) -> Verdict:
        """The verdict that a value is; raises `Unscored` (invalid_response) where it is none.

        Without a map a value has to be a whole number on offer, or in binary mode a bool: nothing
        is coerced (rule E3).
        """
        if not isinstance(reasoning, str):
            raise self.invalid(f"gave {_shown(reasoning)} as its reasoning, which is no text")
        scores, offered = case.scores, offered_text(case.scores)
        if self.score_map is not None:
            score = self.score_map.get(key_of(value))
            if score is None:
                known = ", ".join(self.score_map)
                raise self.invalid(
                    f"gave {_shown(value)}, which `score_map` does not have: {known}"
                )
        elif type(value) is int or (type(value) is bool and not case.levels):
            score = int(value)
        else:
            raise self.invalid(f"gave {_shown(value)}; a score must be the integer {offered}")
        if score not in scores:
            raise self.invalid(f"gave the score {_shown(score)}; it must be {offered}")
        return Verdict(score, str.strip(reasoning[:_LONGEST_REASONING]))

    def invalid(self, what: str, advice: str = "") -> Unscored:
        """The outcome of a judge whose value is no verdict."""
        return Unscored(
            "invalid_response",
            stage=JUDGE.name,
            cause=f"{self.who} {what}.",
            advice=advice,
            happened="the judge gave no verdict",
        )


def split_value(value: object) -> tuple[object, object]:
    """A value and its reasoning: of a `Verdict`, of a pair, or a value alone."""
    # Of its type, not by `isinstance`: a proxy object gives itself out for what it stands for.
    if issubclass(type(value), Verdict):
        assert isinstance(value, Verdict)
        return value.score, value.reasoning
    if isinstance(value, tuple) and len(value) == _PAIR:
        return value[0], value[1]
    return value, ""


def _shown(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, int) and is_huge(value):
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, bool | int | float | str):
        return shortened(repr(value), _LONGEST_VALUE)
    kind = type(value)
    # numpy's bool is called `bool`, too.
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"a value of the type {module}{kind.__qualname__}"
