"""The verifier: a second opinion on the label of a case, given without knowing the label (rule
D6).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, Protocol

from pydantic import create_model

from pytest_jrh.llm.shapes import Response, score_on_offer
from pytest_jrh.llm.stage import Stage, scale_values, with_scale
from pytest_jrh.models import Complete, Message, Rubric, StageModel, Verification
from pytest_jrh.pipeline.goal import Goal
from pytest_jrh.templating import Template
from pytest_jrh.transcript import render_transcript


class VerifierResponse(Response):
    """The binary verifier's answer."""

    rationale: str
    verdict: Literal["PASS", "FAIL"]


class ScoringVerifierResponse(Response):
    """The ordinal verifier's answer; the range of its score depends on the scale."""

    rationale: str
    score: Any
    verdict: Literal["PASS", "FAIL"]


class Verifier(Protocol):
    """Says whether a transcript satisfies a rubric, or which score it deserves."""

    async def __call__(
        self, messages: Sequence[Message], rubric: Rubric, goal: Goal, summary: str
    ) -> Verification: ...


def make_llm_verifier(complete: Complete, model: StageModel, template: Template) -> Verifier:
    """Build a verifier that asks a model; it raises `Unscored` where no usable verdict comes.

    The verifier sees the rubric, the transcript and its summary, and nothing of the goal: the goal
    only decides whether a score is asked for.
    """
    stage = Stage(model, template, complete)

    async def verify(
        messages: Sequence[Message], rubric: Rubric, goal: Goal, summary: str
    ) -> Verification:
        levels = rubric.score_levels if goal.mode == "ordinal" else ()
        values = {
            "rubric_id": rubric.id,
            "rubric_instruction": with_scale(rubric.instructions, levels, template),
            "summary": summary,
            "transcript": render_transcript(messages),
            **scale_values(levels),
        }
        answer = (
            await stage.ask(values, verifier_response(tuple(level.score for level in levels)))
        ).parsed
        return Verification(
            answer.verdict, answer.rationale.strip(), getattr(answer, "score", None)
        )

    return verify


def confirms(verification: Verification, goal: Goal) -> bool:
    """Whether a verification confirms the label that the goal stands for."""
    if goal.target_score is not None:
        return verification.score == goal.target_score
    return verification.verdict == ("FAIL" if goal.objective == "fail" else "PASS")


@cache
def verifier_response(scores: tuple[int, ...]) -> type[VerifierResponse | ScoringVerifierResponse]:
    """The shape of an answer on this scale, binary where there is none.

    A score of another value does not validate.
    """
    if not scores:
        return VerifierResponse
    return create_model(
        "ScaledVerifierResponse",
        __base__=ScoringVerifierResponse,
        score=(score_on_offer(scores), ...),
    )
