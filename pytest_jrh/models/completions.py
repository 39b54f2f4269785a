"""Model calls: a stage's settings, an answer, and what it took."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from pytest_jrh.models.terms import StageName


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `calls` calls in `period` seconds."""

    calls: int
    period: float


@dataclass(frozen=True, slots=True)
class StageModel:
    """The model and the settings of one stage (rule A6); None means "do not send it"."""

    stage: StageName
    model: str
    prompt_path: str | None = None
    temperature: float | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    api_base: str | None = None
    rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        return Spending(
            self.calls + other.calls,
            self.replayed + other.replayed,
            self.usage + other.usage,
            self.cost + other.cost,
            self.paid + other.paid,
            self.unpriced + other.unpriced,
            self.lost + other.lost,
        )


@dataclass(frozen=True, slots=True)
class SharedCall:
    """A call that several cases make alike and one of them pays for: the first summary of a run
    (rule D5).

    `fingerprint` is the call's; `spending` is what each of the cases has of it.
    """

    fingerprint: str
    spending: Spending


ResponseT = TypeVar("ResponseT", bound=BaseModel)
ResponseT_co = TypeVar("ResponseT_co", bound=BaseModel, covariant=True)


@dataclass(frozen=True, slots=True)
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
