"""The template judge: a model, a prompt, and a score that must be on offer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from pytest_jrh.cases.probes.probe import STYLES
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Verdict
from pytest_jrh.core.stages import JUDGE, ONE_CALL
from pytest_jrh.judges.judge import (
    BINARY_SCORES,
    DEFAULT_JUDGE,
    JudgeKind,
    SuiteJudge,
    key_of,
    value_of,
    with_numbers,
)
from pytest_jrh.llm.calls import (
    Response,
    Stage,
    load_template,
    scale_values,
    score_on_offer,
    value_on_offer,
    with_scale,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_jrh.core.model import Case, Message, Mode, StageModel
    from pytest_jrh.core.stages import Bounds
    from pytest_jrh.core.templates import Template
    from pytest_jrh.judges.judge import JudgeCalls, JudgeSettings


_SYSTEM = "system_prompt"
_NO_NUMBER = "score: must be a whole number"
_NO_IMAGES = (
    "The call held images, which not every model takes: `images: describe` in the judge's section "
    "names the images instead of sending them."
)
_WORDS = "Where the prompt asks for words, `score_map` in the judge's section gives each its score."


class JudgeResponse(Response):
    """The judge's answer but for its score, whose range depends on the scale."""

    reasoning: str
    score: Any


@dataclass(frozen=True, slots=True)
class PromptJudge(SuiteJudge):
    """The judge that a config describes by a model and a prompt.

    It sees the rubric, the scale and the whole transcript, and nothing of how the case was made;
    the agent's reasoning and images where its settings say so. With a `score_map` it answers with
    one of its values. A score is never coerced, so that no verdict is invented.
    """

    settings: JudgeSettings
    template: Template
    instruction: str = ""

    @property
    def name(self) -> str | None:
        """Its name in a panel."""
        return self.settings.name

    @property
    def label(self) -> str:
        """The model's name."""
        return self.settings.stage.model

    @property
    def fingerprint(self) -> str:
        """SHA-256 over model, prompt and parameters; not where and how fast the model is asked."""
        settings, stage = self.settings, self.settings.stage
        parts: dict[str, Any] = {
            "model": stage.model,
            "prompt": self.template.source,
            "system_prompt": stage.system_prompt,
            "instruction": self.instruction,
            "temperature": stage.temperature,
            "max_tokens": stage.max_tokens,
            "show_reasoning": settings.show_reasoning,
        }
        # A judge without it is the same as before there was such a setting.
        if settings.sends_images:
            parts["images"] = "send"
        if settings.score_map:
            parts["score_map"] = dict(settings.score_map)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def models(self) -> tuple[StageModel, ...]:
        """The one model that it asks."""
        return (self.settings.stage,)

    @property
    def calls(self) -> Bounds:
        """One call a verdict; answers that have to be asked for again come on top."""
        return ONE_CALL

    @property
    def prompts(self) -> Mapping[str, str]:
        """The template's text, and the system prompt where the config sets one."""
        texts = {"prompt": self.template.source}
        system_prompt = self.settings.stage.system_prompt
        return {**texts, _SYSTEM: system_prompt} if system_prompt else texts

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """Ask the model about a case; raises `Unscored` where no score on offer comes back."""
        del repeat  # `calls` records each repeat by itself
        settings, template, score_map = self.settings, self.template, self.settings.score_map
        names = None if score_map is None else _names(score_map)
        turns: Sequence[Message] = case.messages
        images: list[str] = []
        if settings.sends_images:
            turns, images = with_numbers(case.messages)
        values = {
            "rubric_id": case.rubric.id,
            "rubric": with_scale(case.rubric.instructions, case.levels, template, names),
            "transcript": STYLES[case.style](turns, show_reasoning=settings.show_reasoning),
            "instruction": self.instruction,
            **scale_values(case.levels, names),
        }
        scores = tuple(level.score for level in case.levels) or BINARY_SCORES
        stage = Stage(settings.stage, template, calls.complete)
        try:
            response_model = judge_response(scores, _on_offer(score_map, scores))
            answer = (await stage.ask(values, response_model, images)).parsed
        except Unscored as trouble:
            advice = ""
            if trouble.outcome == "invalid_response" and _NO_NUMBER in trouble.cause:
                advice = _WORDS
            elif trouble.outcome == "model_error" and images:
                advice = _NO_IMAGES
            if advice:
                trouble.advice = f"{advice} {trouble.advice or ''}".strip()
            raise
        score = answer.score if score_map is None else score_map[key_of(answer.score)]
        return Verdict(score, answer.reasoning.strip())


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> PromptJudge:
    path = settings.stage.prompt_path
    template = load_template(
        JUDGE.name, mode=mode, objective="fail", prompt_path=Path(path) if path else None
    )
    return PromptJudge(settings, template, instruction)


PROMPT = JudgeKind(key=DEFAULT_JUDGE, build=_build)


@cache
def judge_response(
    scores: tuple[int, ...], keys: tuple[str, ...] | None = None
) -> type[JudgeResponse]:
    """The shape of an answer on this scale, or with a map's `keys` in place of scores.

    A score of another value or type does not validate.
    """
    offered = score_on_offer(scores) if keys is None else value_on_offer(tuple(map(value_of, keys)))
    return create_model("ScoredJudgeResponse", __base__=JudgeResponse, score=(offered, ...))


def _on_offer(
    score_map: Mapping[str, int] | None, scores: tuple[int, ...]
) -> tuple[str, ...] | None:
    """The keys of a map whose scores are on offer; None without a map."""
    if score_map is None:
        return None
    keys = tuple(key for key, score in score_map.items() if score in scores)
    if not keys:
        offered = ", ".join(map(str, scores))
        raise Unscored(
            "input_error",
            stage=JUDGE.name,
            cause=f"`score_map` has no value for any score of this rubric ({offered}).",
        )
    return keys


def _names(score_map: Mapping[str, int]) -> Mapping[int, str]:
    """What the scores are called, by a map from the names."""
    names: dict[int, list[str]] = {}
    for key, score in score_map.items():
        names.setdefault(score, []).append(key)
    return {score: " or ".join(keys) for score, keys in names.items()}
