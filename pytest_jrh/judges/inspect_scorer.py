"""The judge that is a scorer of Inspect; its model calls go through Inspect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pytest_jrh.core.sections import Takes, Text
from pytest_jrh.judges.inspect_code import (
    InspectCodeJudge,
    InspectKeys,
    chat_messages,
    made,
)
from pytest_jrh.judges.judge import JudgeKind, JudgeStart
from pytest_jrh.judges.own_code import shown_path, with_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspect_ai.scorer import Scorer
    from inspect_ai.solver import TaskState

    from pytest_jrh.core.model import Case, Mode
    from pytest_jrh.judges.judge import JudgedCase, JudgeSettings
    from pytest_jrh.judges.own_code import Scale


_KEY = "inspect_scorer"
# How Inspect's graders begin the explanation of an answer without a grade.
_NO_GRADE = "Grade not found"


class ScorerKeys(InspectKeys):
    """The keys of a judge that is a scorer of Inspect."""

    inspect_scorer: Annotated[Text | None, Takes("a scorer, as file.py@name or package/name")] = (
        None
    )
    """A scorer of Inspect that judges: file.py@name, with a path from the config, or package/name.
    """


@dataclass(frozen=True, slots=True)
class ScorerJudge(InspectCodeJudge):
    """A judge that is a scorer of Inspect; it gets a `TaskState` of each case."""

    scorer: Scorer
    kind: ClassVar[str] = _KEY
    what: ClassVar[str] = "scorer"
    binary_map: ClassVar[Mapping[str, int] | None] = {"C": 0, "I": 1}

    async def given(self, judged: JudgedCase, case: Case, target: str) -> object:
        """What the scorer gives for the state of a case."""
        from inspect_ai.scorer import Target

        state = task_state(judged, case, target, self.settings.stage.model or "none/none")
        return await self.scorer(state, Target(target))

    def value_of(self, given: object, scale: Scale) -> tuple[object, str]:
        """The value and the explanation of a `Score`; of one whose grade was not found, no value.

        Inspect's graders before 0.3.245, and scorers that were copied from them, give it the value
        of an incorrect answer.
        """
        from inspect_ai.scorer import Score

        if not isinstance(given, Score):
            raise scale.invalid(f"gave {type(given).__name__}, which is no Score")
        explanation = given.explanation or ""
        return None if explanation.startswith(_NO_GRADE) else given.value, explanation


def task_state(judged: JudgedCase, case: Case, target: str, model: str) -> TaskState:
    """The state of a finished run, as a scorer gets it: its output is the last assistant turn."""
    from inspect_ai.model import ChatCompletionChoice, ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    messages = chat_messages(judged)
    last = next((turn for turn in reversed(messages) if turn.role == "assistant"), None)
    output = ModelOutput(
        model=model, choices=[] if last is None else [ChatCompletionChoice(message=last)]
    )
    return TaskState(
        model=ModelName(model),
        sample_id=case.run.sample_id or case.run.run_id,
        epoch=case.run.epoch,
        input=judged.input,
        messages=messages,
        target=Target(target),
        output=output,
        completed=True,
        metadata=dict(judged.metadata),
    )


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> ScorerJudge:
    del mode, instruction  # the scorer gets the rubric as its target
    section = settings.section
    assert isinstance(section, ScorerKeys)
    spec = section.inspect_scorer
    assert spec is not None

    def make() -> Scorer:
        from inspect_ai._eval.loader import scorer_from_spec
        from inspect_ai.scorer._scorer import ScorerSpec

        return scorer_from_spec(ScorerSpec(scorer=spec), None, **(section.args or {}))

    scorer, source = made(spec, "scorer", _KEY, make, settings)
    return ScorerJudge(settings, section, shown_path(spec, "@"), source, scorer)


INSPECT_SCORER = JudgeKind(
    key=_KEY,
    build=_build,
    keys=ScorerKeys,
    asks_model=False,
    with_files=lambda section, relocated: with_file(section, _KEY, "@", relocated),
    start=JudgeStart(
        keys=lambda scorer, _mode: {_KEY: scorer},
        notes=(
            "args: {partial_credit: false}          # what the scorer is made with",
            "model_roles: {grader: openai/gpt-4.1}  # as Inspect names models; or `model`",
            'score_map: {"true": 0, "false": 1}     # where its values are not C and I',
        ),
    ),
)
