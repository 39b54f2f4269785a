"""The errors: as few classes as callers need to distinguish.

JrhError
|- InputError      the user's files: one or more problems, each with its place (exit code 4)
|- Unscored        the pipeline or the judge could not finish: an outcome of `UNSCORED`
|  `- Unrecorded   ... because a replay met a call that is not in its cassette
|- NoVerdictCase   there is no case to judge, with the reason (a skip)
`- Disagreement    the judge gave another verdict than the verified label (a failure)
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_jrh.core.model import Case, CaseResult, SkipKind, UnscoredKind


MOST_PROBLEMS = 10
"""Of one file, or of files that are read together: more would hide the first."""


class JrhError(Exception):
    """Base of everything that pytest-jrh raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in one of the user's files.

    `message` says what was there and what may be there; `hint` is the nearest match or the
    command to run next, without the words "did you mean".
    """

    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = self.file or ""
        if where and self.line is not None:
            where += f":{self.line}"
        parts = [part for part in (where, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}\n    {self.hint}" if self.hint else text


class InputError(JrhError):
    """The user's files cannot be used; `problems` holds every mistake found, not just the first."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Unscored(JrhError):
    """The pipeline or the judge could not finish, so there is no verdict.

    `outcome` is one of `model.UNSCORED`; `stage` names the stage model that was at work (or
    "input"); `cause` says what came back; `advice` says what to do next. `asked` are the
    fingerprints of the calls whose answers could not be used. `keyless` says that no API key to ask
    the model with. `same_as` is the id of another case, where this one was not asked because that
    one had met the same failure. `places` are lines of the user's own code where it raised an
    error. `happened` is said in place of the outcome's own sentence, where it does not fit.
    """

    def __init__(
        self,
        outcome: UnscoredKind,
        *,
        stage: str,
        cause: str,
        advice: str = "",
        asked: tuple[str, ...] = (),
        keyless: bool = False,
        places: tuple[str, ...] = (),
        same_as: str = "",
        happened: str = "",
    ) -> None:
        self.same_as = same_as
        self.happened = happened
        self.asked = asked
        self.places = places
        self.keyless = keyless
        self.outcome = outcome
        self.stage = stage
        self.cause = cause
        self.advice = advice
        super().__init__(f"{outcome} in stage {stage}: {cause} {advice}".rstrip())


class Unrecorded(Unscored):
    """A replay met a call that its cassette does not hold; `difference` is a short diff, empty
    where nothing is recorded that the call could differ from.
    """

    def __init__(self, *, stage: str, cause: str, difference: str, cassette: str) -> None:
        advice = "Record it with the command below, or undo the change." if difference else ""
        super().__init__("unrecorded", stage=stage, cause=cause, advice=advice)
        self.difference = difference
        self.cassette = cassette


class NoVerdictCase(JrhError):
    """There is no case to judge; the message is the reason.

    `rejected` is the case that was made, where the verifier rejected it.
    """

    def __init__(self, kind: SkipKind, text: str = "", rejected: Case | None = None) -> None:
        # A session without suites imports the errors, and is spared pydantic.
        from pytest_jrh.core.model import Skip

        self.skip = Skip(kind, text)
        self.rejected = rejected
        super().__init__(str(self.skip))


class Disagreement(JrhError):
    """The judge's verdict differs from the case's verified label."""

    def __init__(self, result: CaseResult) -> None:
        self.result = result
        super().__init__(f"expected {result.label}, the judge gave {result.scores_text}")


@contextlib.contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Collect the problems of an `InputError` raised in this block, and go on."""
    try:
        yield
    except InputError as error:
        problems += error.problems
