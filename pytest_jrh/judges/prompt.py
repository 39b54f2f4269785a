"""The template judge: a model, a prompt, and a score that must be on offer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from pytest_jrh.cases.probes.probe import STYLES
from pytest_jrh.core.errors import Unscored
from pytest_jrh.core.model import Case, Judge, Verdict
from pytest_jrh.core.stages import JUDGE, ONE_CALL
from pytest_jrh.judges.judge import (
    BINARY_SCORES,
    DEFAULT_JUDGE,
    JudgeKind,
    advised,
    key_of,
    value_of,
    with_numbers,
)
from pytest_jrh.llm.calls import (
    Response,
    Stage,
    scale_values,
    score_on_offer,
    value_on_offer,
    with_scale,
)
from pytest_jrh.llm.prompts import load_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.core.model import Mode, StageModel
    from pytest_jrh.core.stages import CallRange
    from pytest_jrh.core.templates import Template
    from pytest_jrh.judges.judge import JudgeCalls, JudgeSettings


_SYSTEM = "system_prompt"


class JudgeResponse(Response):
    """The judge's answer but for its score, whose range depends on the scale."""

    reasoning: str
    score: Any


def make_template_judge(
    stage: Stage,
    *,
    instruction: str = "",
    show_reasoning: bool = False,
    send_images: bool = False,
    score_map: Mapping[str, int] | None = None,
) -> Judge:
    """Build the judge under test.

    It sees the rubric, the scale and the whole transcript, and nothing of how the case was
    made; `show_reasoning` shows it the agent's reasoning blocks, and `send_images` its images. With
    a `score_map` it answers with one of its values. It raises `Unscored` where no score on offer
    comes back; a score is never coerced, so that no verdict is invented.
    """
    names = None if score_map is None else _names(score_map)

    async def judge(case: Case) -> Verdict:
        turns, images = with_numbers(case.messages) if send_images else (case.messages, [])
        values = {
            "rubric_id": case.rubric.id,
            "rubric": with_scale(case.rubric.instructions, case.levels, stage.template, names),
            "transcript": STYLES[case.style](turns, show_reasoning=show_reasoning),
            "instruction": instruction,
            **scale_values(case.levels, names),
        }
        scores = tuple(level.score for level in case.levels) or BINARY_SCORES
        try:
            response_model = judge_response(scores, _on_offer(score_map, scores))
            answer = (await stage.ask(values, response_model, images)).parsed
        except Unscored as trouble:
            raise (advised(trouble) if images else trouble) from None
        score = answer.score if score_map is None else score_map[key_of(answer.score)]
        return Verdict(score, answer.reasoning.strip())

    return judge


@dataclass(frozen=True, slots=True)
class PromptJudge:
    """The judge that a config describes by a model and a prompt; see `make_template_judge`."""

    name: str | None
    stage: StageModel
    template: Template
    instruction: str = ""
    show_reasoning: bool = False
    send_images: bool = False
    score_map: Mapping[str, int] | None = None

    @property
    def label(self) -> str:
        """The model's name."""
        return self.stage.model

    @property
    def fingerprint(self) -> str:
        """SHA-256 over model, prompt and parameters."""
        return judge_fingerprint(
            self.stage,
            self.template.source,
            instruction=self.instruction,
            show_reasoning=self.show_reasoning,
            send_images=self.send_images,
            score_map=self.score_map,
        )

    @property
    def models(self) -> tuple[StageModel, ...]:
        """The one model that it asks."""
        return (self.stage,)

    @property
    def calls(self) -> CallRange:
        """One call a verdict; answers that have to be asked for again come on top."""
        return ONE_CALL

    @property
    def runs_code(self) -> bool:
        """It asks its model through us alone."""
        return False

    @property
    def lacks(self) -> str:
        """Nothing: whether its model can be asked is for the client to find out."""
        return ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """None that is known: the client takes its key from the environment."""
        return ()

    @property
    def prompts(self) -> Mapping[str, str]:
        """The template's text, and the system prompt where the config sets one."""
        texts = {"prompt": self.template.source}
        return {**texts, _SYSTEM: self.stage.system_prompt} if self.stage.system_prompt else texts

    def with_prompt(self, which: str, text: str) -> PromptJudge:
        """The same judge with another template, of the same variables, or system prompt."""
        if which == _SYSTEM:
            return replace(self, stage=replace(self.stage, system_prompt=text))
        return replace(self, template=replace(self.template, source=text))

    async def __call__(self, case: Case, repeat: int, calls: JudgeCalls) -> Verdict:
        """Ask the model about a case; raises `Unscored` where no score on offer comes back."""
        del repeat  # `calls` records each repeat by itself
        judge = make_template_judge(
            Stage(self.stage, self.template, calls.complete),
            instruction=self.instruction,
            show_reasoning=self.show_reasoning,
            send_images=self.send_images,
            score_map=self.score_map,
        )
        return await judge(case)


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> PromptJudge:
    path = settings.stage.prompt_path
    template = load_template(
        JUDGE.name, mode=mode, objective="fail", prompt_path=Path(path) if path else None
    )
    return PromptJudge(
        settings.name,
        settings.stage,
        template,
        instruction,
        settings.show_reasoning,
        settings.sends_images,
        settings.score_map,
    )


PROMPT = JudgeKind(key=DEFAULT_JUDGE, build=_build)


def judge_fingerprint(
    stage: StageModel,
    prompt: str,
    *,
    instruction: str = "",
    show_reasoning: bool = False,
    send_images: bool = False,
    score_map: Mapping[str, int] | None = None,
) -> str:
    """SHA-256 over what makes a judge this judge: model, prompt and parameters.

    `prompt` is the template's text. Where and how fast the model is asked is no part of it.
    """
    parts = {
        "model": stage.model,
        "prompt": prompt,
        "system_prompt": stage.system_prompt,
        "instruction": instruction,
        "temperature": stage.temperature,
        "max_tokens": stage.max_tokens,
        "show_reasoning": show_reasoning,
        # A judge without it is the same as before there was such a setting.
        **({"images": "send"} if send_images else {}),
        **({"score_map": dict(score_map)} if score_map else {}),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


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
