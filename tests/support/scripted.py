"""A fake at the boundary to the models: answers from a script, and a record of what was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel

from pytest_jrh.core.calls import Completion, ResponseT, StageModel
from pytest_jrh.llm.calls import Answer, CallRequest, parse

Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it arrived."""

    stage: StageModel
    messages: tuple[Mapping[str, str], ...]
    response_model: type[BaseModel]

    @property
    def text(self) -> str:
        """All of its messages as one text."""
        return "\n".join(message["content"] for message in self.messages)


Scripted: TypeAlias = "Fields | BaseException | Callable[[Asked], Fields]"

STEP = {"message_index": 4, "goal": "The goal.", "rationale": "Why."}
NOTHING: Fields = {"assistant_progress": [], "outstanding_items": [], "risks": []}
DEFAULTS: Mapping[str, Scripted] = {
    "planner": {"thesis": "The thesis.", "steps": [STEP]},
    "editor": lambda asked: {"new_content": "The new text.", "reason": "The reason."},
    "summary": {"summary": "The summary.", "user_intent": "The intent.", **NOTHING},
    "verifier": {"verdict": "FAIL", "rationale": "The rationale."},
    "judge": {"score": 1, "reasoning": "The reasoning."},
}


class ScriptedModel:
    """A `Complete` that answers from a script; what the script does not say is answered from
    `DEFAULTS`. A stage's script is the fields of its answer, a function of the request, an
    exception to raise, or a list of these, one per call; its last entry then serves for all further
    calls."""

    def __init__(self, **scripts: Scripted | Sequence[Scripted]) -> None:
        self.requests: list[Asked] = []
        self._scripts = {**DEFAULTS, **scripts}

    def asked(self, stage: str) -> list[Asked]:
        """The requests of one stage, in order of arrival."""
        return [request for request in self.requests if request.stage.stage == stage]

    def only(self, stage: str) -> Asked:
        """The only request of a stage."""
        (request,) = self.asked(stage)
        return request

    @property
    def stages(self) -> list[str]:
        """The stages asked, in order of arrival."""
        return [request.stage.stage for request in self.requests]

    async def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, str]],
        response_model: type[ResponseT],
    ) -> Completion[ResponseT]:
        asked = Asked(stage, tuple(messages), response_model)
        self.requests.append(asked)
        script: Any = self._scripts[stage.stage]
        if isinstance(script, list):
            script = script[min(len(self.asked(stage.stage)), len(script)) - 1]
        if isinstance(script, BaseException):
            raise script
        text = json.dumps(script(asked) if callable(script) else script)
        return Completion(text, parse(text, response_model))


@dataclass
class ScriptedExchange:
    """An `Exchange` that gives these answers one after the other, and keeps what it was asked."""

    answers: list[Answer | str | BaseException]
    requests: list[CallRequest] = field(default_factory=list)

    async def __call__(self, request: CallRequest) -> Answer:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return Answer(answer) if isinstance(answer, str) else answer
