"""A judge that contradicts itself."""

from __future__ import annotations

import json
from collections import Counter

from tests.support.exchange import Answer, Request
from tests.support.obedient import Obedient


class Saying:
    """The obedient model, but for a judge that gives these scores in turn to each request."""

    def __init__(self, *scores: object) -> None:
        self._obedient = Obedient()
        self._scores = scores
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        if request.stage != "judge":
            return self._obedient(request)
        asked = _asked(request)
        score = self._scores[self._asked[asked] % len(self._scores)]
        self._asked[asked] += 1
        return {"score": score, "reasoning": f"It is plainly {score}."}


def _asked(request: Request) -> str:
    """What a verdict is asked about: the same where an unusable answer is asked for again."""
    roles = [message.get("role") for message in request.messages]
    end = roles.index("assistant") if "assistant" in roles else len(roles)
    return json.dumps(request.messages[:end])
