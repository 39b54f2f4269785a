"""Calls of models as values: the model of a stage, what a call took, and the seam to the models."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from pytest_jrh.core import frozen
from pytest_jrh.core.sections import RateLimitSection

RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all"]


@frozen
class StageModel:
    """The model and the settings of one stage; None means "do not send it"."""

    stage: str
    model: str
    prompt_path: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    api_base: str | None = None
    rate_limit: RateLimitSection | None = None
    params: Mapping[str, Any] | None = field(default=None, hash=False)


@frozen
class Usage:
    """Tokens of one call, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@frozen
class Spending:
    """Calls and their price in US dollars.

    `calls` were made now and `replayed` answered from cassettes; `usage` and `cost` cover both,
    `paid` only what was made now; `unpriced` counts the calls, of both kinds, whose model has no
    known price. `lost` are the calls made now that gave no answer, and that the provider may have
    billed: timed out, or broken off.
    """

    calls: int = 0
    replayed: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    paid: float = 0.0
    unpriced: int = 0
    lost: int = 0

    def __add__(self, other: Spending) -> Spending:
        names = [part.name for part in fields(self)]
        return Spending(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def replay(self) -> Spending:
        """What it takes to have the same answers from cassettes."""
        replayed = self.replayed + self.calls - self.lost
        return replace(self, calls=0, replayed=replayed, paid=0.0, lost=0)

    def merged(self, other: Spending) -> Spending:
        """What two cases say of one recording, together: all that either has paid, and the answers
        of the one that has more of them.
        """
        paid = Spending(
            self.calls + other.calls, paid=self.paid + other.paid, lost=self.lost + other.lost
        )
        answers = max(self.replay.replayed, other.replay.replayed)
        return replace(
            paid,
            replayed=max(0, answers - paid.replay.replayed),
            usage=max(self.usage, other.usage, key=lambda usage: usage.total),
            cost=max(self.cost, other.cost),
            unpriced=max(self.unpriced, other.unpriced),
        )


ResponseT = TypeVar("ResponseT", bound=BaseModel)
ResponseT_co = TypeVar("ResponseT_co", bound=BaseModel, covariant=True)


@frozen
class Completion(Generic[ResponseT_co]):
    """A model's answer, parsed: `text` is what it wrote, `parsed` what it means."""

    text: str
    parsed: ResponseT_co


class Complete(Protocol):
    """The seam to the models: one call, answered in the shape of `response_model`.

    Raises `Unscored` where no usable answer could be had; never returns an invented one.
    """

    def __call__(
        self,
        stage: StageModel,
        messages: Sequence[Mapping[str, Any]],
        response_model: type[ResponseT],
    ) -> Awaitable[Completion[ResponseT]]: ...


@frozen
class Progress:
    """How far a session is: cases done of those set to work, and what they have spent."""

    done: int
    total: int
    spending: Spending = Spending()
