"""The judges that a mutated prompt makes, and whether what they ask differs at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_jrh.judges.judge import PromptedJudge
from pytest_jrh.mutants.operators import mutants_of_input, mutants_of_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from pytest_jrh.judges.judge import JudgeCalls, OwnCode, SuiteJudge
    from pytest_jrh.models import Case, Completion, Mode, ResponseT, StageModel, Verdict
    from pytest_jrh.mutants.operators import Mutant
    from pytest_jrh.stages.stage import CallRange


@dataclass(frozen=True, slots=True)
class MutatedJudge:
    """A judge with one change; its name is the mutant's."""

    mutant: Mutant
    judge: SuiteJudge

    @property
    def name(self) -> str:
        """The mutant's name, by which its recordings are found."""
        return self.mutant.name

    @property
    def label(self) -> str:
        """What reports call the judge that was changed."""
        return self.judge.label

    @property
    def fingerprint(self) -> str:
        """Identifies the judge and its change."""
        return f"{self.judge.fingerprint}-{self.mutant.name}"

    @property
    def models(self) -> tuple[StageModel, ...]:
        """Those of the judge that was changed."""
        return self.judge.models

    @property
    def calls(self) -> CallRange:
        """Those of the judge that was changed."""
        return self.judge.calls

    @property
    def runs_code(self) -> bool:
        """Whether the judge that was changed asks by code of its own."""
        return self.judge.runs_code

    @property
    def lacks(self) -> str:
        """What the judge that was changed lacks."""
        return self.judge.lacks

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those of the judge that was changed."""
        return self.judge.secrets

    def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Awaitable[Verdict]:
        """Judge the case, as the change has it."""
        change = self.mutant.change
        return self.judge(change(case) if change is not None else case, repeat, calls)


def mutated(judge: SuiteJudge, mode: Mode, *, most: int, seed: int) -> Iterator[MutatedJudge]:
    """Yield the judge with each change; of one that is no prompt, what it is given alone.

    Of more than `most` changes of a text, so many are drawn by `seed`.
    """
    if isinstance(judge, PromptedJudge):
        for which, text in judge.prompts.items():
            for mutant in mutants_of_text(text, which, most=most, seed=seed):
                yield MutatedJudge(mutant, judge.with_prompt(which, mutant.source))
    for mutant in mutants_of_input(mode):
        yield MutatedJudge(mutant, judge)


async def prompt_of(judge: SuiteJudge, case: Case) -> list[Mapping[str, Any]] | None:
    """The messages that a judge sends about a case; a mutant that sends the same need not be asked.

    None for judges by code of their own, of which nobody knows before they run.
    """
    if judge.runs_code:
        return None
    try:
        await judge(case, 1, _NoCalls())
    except _AskedError as asked:
        return asked.messages
    return []


class _AskedError(Exception):
    """Carries the messages of a call that is not made."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.messages = list(messages)


class _NoCalls:
    """Makes no call, and tells which one would be made."""

    async def complete(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        del stage, response_model
        raise _AskedError(messages)

    def run(self, code: OwnCode) -> NoReturn:
        del code
        raise _AskedError(())
