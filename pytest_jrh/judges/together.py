"""A judge that is asked about all rubrics of a suite in one call, and answers each.

Its question is the same for all cases of a run as it is, whatever their rubric: so these share a
recording, and the first that is judged pays for all. A case that models edited has a text of its
own. Its judge is asked about all rubrics, too, as it is where it is in use, and the verdict on the
case's rubric counts.

A rubric without a usable verdict in an answer has none, and the others stand; an answer without any
is asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from textwrap import indent
from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)

from pytest_jrh.core import frozen
from pytest_jrh.core.cases import Case, Rubric, Unscored
from pytest_jrh.core.documents import Json, listed, shown
from pytest_jrh.core.results import Verdict
from pytest_jrh.core.text import nearest_hint
from pytest_jrh.judges.judge import (
    CodeAnswer,
    JudgeCalls,
    JudgedRubric,
    PromptJudge,
    SuiteJudge,
    judged_case,
    judged_rubric,
)
from pytest_jrh.judges.own_code import (
    LONGEST_REASONING,
    Scoring,
    code_answer,
    no_verdict,
    value_text,
)
from pytest_jrh.judges.python import PythonJudge
from pytest_jrh.llm.calls import Response, explain, with_scale

_OTHERS_STAND = "The verdicts on other rubrics stand; --jrh-retry-unscored asks again about all."
_PLAIN = (bool, int, float, str, type(None))


def together(judge: SuiteJudge) -> SuiteJudge:
    """The judge, asked about all rubrics in one call where its settings say so."""
    if not judge.settings.rubrics:
        return judge
    if isinstance(judge, PromptJudge):
        return TogetherPrompt(judge.settings, judge.template, judge.instruction)
    assert isinstance(judge, PythonJudge)
    return TogetherPython(judge.settings, judge.code_digest, judge.path, judge.function)


class TogetherResponse(Response):
    """An answer with a verdict under the id of each rubric: a field for each, with what is wrong
    where it is none, and None where it is missing.
    """

    # Asked for are all.
    model_config = ConfigDict(
        json_schema_extra=lambda schema: schema.update(
            additionalProperties=False, required=[*schema["properties"]]
        )
    )

    @model_validator(mode="after")
    def _has_a_verdict(self) -> TogetherResponse:
        if not any(isinstance(entry, Response) for entry in vars(self).values()):
            raise ValueError("must have reasoning and score under the id of each rubric")
        return self


def _kept(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """A verdict, or what is wrong with it."""
    try:
        return None if value is None else handler(value)
    except ValidationError as error:
        return error


def _missing() -> None:
    """What stands for a verdict that is not there; a value would be a part of the schema."""


@cache
def _shape(entries: tuple[tuple[str, type[Response]], ...]) -> type[TogetherResponse]:
    """The shape of an answer with a verdict for each rubric id."""
    fields: Json = {}
    for number, (rubric_id, entry) in enumerate(entries):
        # In place of references, which not every server takes.
        schema = WithJsonSchema(entry.model_json_schema())
        kind = Annotated[entry, WrapValidator(_kept), schema]  # type: ignore[valid-type]
        fields[f"rubric_{number}"] = (kind, Field(default_factory=_missing, alias=rubric_id))
    return create_model("TogetherResponse", __base__=TogetherResponse, **fields)


@frozen
class TogetherPrompt(PromptJudge):
    """A prompt that names all rubrics, and whose answer has a verdict on each."""

    @property
    def prompt(self) -> str:
        """The prompt of a judge, with the rubrics that are in it."""
        shown_prompt = PromptJudge.prompt.__get__(self)
        return f"{shown_prompt}\n\n[rubrics]\n{self._rubrics_text}"

    @property
    def _rubrics_text(self) -> str:
        """All rubrics, each below its id in quotes, with its levels."""
        blocks = []
        for rubric in self.settings.rubrics:
            text = with_scale(rubric.instructions, rubric.scale, self.template, self.names)
            name = json.dumps(rubric.id, ensure_ascii=False)
            blocks.append(f"{name}:\n{indent(text, '  ')}")
        return "\n\n".join(blocks)

    def question(self, rubric: Rubric) -> Json:
        """What prompts say of the rubrics."""
        del rubric
        return {"rubrics": self._rubrics_text}

    def shape(self, rubric: Rubric) -> type[Response]:
        """The shape of an answer about all rubrics."""
        del rubric
        entries = [(each.id, PromptJudge.shape(self, each)) for each in self.settings.rubrics]
        return _shape(tuple(entries))

    def verdict(self, answer: Any, rubric: Rubric) -> Verdict:
        """The verdict on a rubric; raises `Unscored` where the answer has none."""
        number = [each.id for each in self.settings.rubrics].index(rubric.id)
        entry = getattr(answer, f"rubric_{number}")
        if isinstance(entry, Response):
            return PromptJudge.verdict(self, entry, rubric)
        problem = "it is missing."
        if entry is not None:
            problem = explain(entry, rubric.id, cut_off=False)
        raise _alone(
            no_verdict(
                "invalid_response",
                f"{self.label} gave no usable verdict on {shown(rubric.id)}: {problem}",
            )
        )


@frozen
class TogetherPython(PythonJudge):
    """A function that returns a mapping of rubric ids to verdicts.

    Its answer is kept as one reasoning, a text of JSON, which is stored and freed of secrets as
    that of any other.
    """

    async def __call__(self, case: Case, calls: JudgeCalls) -> Verdict:
        """Have `calls` run the code; raises `Unscored` where what it answers is no verdict."""
        judged = judged_case(case, show_reasoning=self.settings.show_reasoning)
        question = replace(
            judged,
            rubric=JudgedRubric("", ""),
            levels=(),
            scores=(),
            rubrics=tuple(map(judged_rubric, self.settings.rubrics)),
        )
        scoring = self.scoring(judged)
        code = self.code(question, case, calls)
        code = replace(code, read=partial(self.read, scoring), verdict=_with_text)
        verdicts = json.loads((await calls.run(code)).reasoning)
        try:
            if case.rubric.id not in verdicts:
                raise scoring.invalid(f"gave no verdict on {shown(case.rubric.id)}")
            return scoring.verdict(CodeAnswer(*verdicts[case.rubric.id]), judged)
        except Unscored as trouble:
            raise _alone(trouble) from None

    def read(self, scoring: Scoring, value: object) -> CodeAnswer:
        """The verdicts of a mapping as text; raises `Unscored` where it is none of the rubrics."""
        ids = [rubric.id for rubric in self.settings.rubrics]
        if not isinstance(value, Mapping):
            raise scoring.invalid(
                f"gave {value_text(value)}; with `together` it has to return a mapping of rubric "
                "ids to verdicts, such as {rubric.id: 0 for rubric in case.rubrics}"
            )
        verdicts = {}
        for rubric_id, verdict in value.items():
            if rubric_id not in ids:
                hint = nearest_hint(str(rubric_id), ids, "id") or f"must be one of {listed(ids)}"
                raise scoring.invalid(
                    f"gave a verdict on {shown(rubric_id)}, which is no rubric; {hint}"
                )
            said, reasoning = code_answer(verdict)
            if type(said) not in _PLAIN:
                said = value_text(said)
            # What is no text is said by whoever reads the verdict.
            words = reasoning[:LONGEST_REASONING] if isinstance(reasoning, str) else None
            verdicts[rubric_id] = [said, words]
        return CodeAnswer(0, json.dumps(verdicts, ensure_ascii=False))


def _with_text(answer: CodeAnswer) -> Verdict:
    """The reasoning that holds the verdicts; raises `ValueError` where it does not."""
    json.loads(str(answer.reasoning))
    return Verdict(0, str(answer.reasoning))


def _alone(trouble: Unscored) -> Unscored:
    """The outcome of a case whose rubric alone has no verdict: others do not end alike."""
    trouble.alone, trouble.alike = True, ""
    trouble.advice = trouble.advice or _OTHERS_STAND
    return trouble
