"""A judge that contradicts itself: each of its verdicts is flipped with a seeded probability."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.obedient import Obedient

if TYPE_CHECKING:
    from tests.support.exchange import Answer, Request


class Flipping:
    """The obedient model, but for a judge that flips each score of 0 or 1 with `probability`.

    What it does with the nth request for the same verdict depends on `seed`, that request and n
    alone: not on what is asked meanwhile.
    """

    def __init__(self, probability: float = 0.1, seed: int = 1) -> None:
        self._obedient = Obedient()
        self._probability = probability
        self._seed = seed
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        if request.stage != "judge":
            return self._obedient(request)
        said: dict[str, Any] = json.loads(json.dumps(self._obedient(request)))
        asked = _asked(request)
        self._asked[asked] += 1
        place = f"{self._seed} {self._asked[asked]} {asked}"
        if random.Random(place).random() < self._probability:
            said["score"] = 1 - said["score"]
            said["reasoning"] = f"On second thoughts it is {said['score']}."
        return said


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
