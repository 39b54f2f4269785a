"""What the sections of a config are made of: how values are checked, and a stage's model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_jrh.core import Json, frozen
from pytest_jrh.core.scales import Said


@frozen
class Takes:
    """Marks a field with what may stand there, which the error of any other value then says."""

    text: str

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        if schema["type"] == "union":
            # What each of its members takes would be said apart.
            return core_schema.custom_error_schema(schema, "takes", custom_error_message=self.text)
        return core_schema.no_info_wrap_validator_function(self._checked, schema)

    def _checked(self, value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["loc"]:
                # Of what stands in it, and has said itself what it takes.
                raise
            raise PydanticCustomError("takes", self.text, first.get("ctx")) from None


def takes(annotation: Any, marks: Iterable[Any]) -> str | None:
    """Return what a field of this annotation takes, as the outermost `Takes` says, or the values of
    a `Literal`; None without.
    """
    for mark in marks:
        if isinstance(mark, Takes):
            return mark.text
    for part in nested(annotation):
        if isinstance(part, Takes):
            return part.text
        if get_origin(part) is Literal:
            *others, last = get_args(part)
            return f"{', '.join(others)} or {last}" if others else str(last)
    return None


def nested(annotation: Any) -> Iterator[Any]:
    """An annotation, and all that is in it, from the outside in."""
    yield annotation
    for part in (*getattr(annotation, "__metadata__", ()), *get_args(annotation)):
        yield from nested(part)


_NON_EMPTY = StringConstraints(min_length=1, strip_whitespace=True)

Text = Annotated[str, _NON_EMPTY, Takes("text")]
Flag = Annotated[bool, Takes("true or false, without quotes")]
Count = Annotated[int, Field(ge=1), Takes("an integer >= 1")]
Whole = Annotated[int, Takes("an integer")]
Runs = Annotated[int, Field(ge=0), Takes("an integer >= 0 (0 or null: all)")]
Share = Annotated[float, Field(ge=0, le=1), Takes("a number from 0 to 1")]
PathText = Annotated[str, _NON_EMPTY, Takes("a path")]
FreeMapping = Annotated[Json, Takes("a mapping of keys to values")]


class ConfigSection(BaseModel):
    """A mapping in the config: strict, frozen, closed; a null value is the same as no key.

    The text below a key describes it; `tools.schema` reads that from the source.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {
            key: value
            for key, value in data.items()
            if value is not None or key not in cls.model_fields
        }


_SET_ELSEWHERE = (
    r"(?i)model|messages|temperature|max_tokens|timeout|api_base|base_url|rate_limit|response_format"
    r"|stream|n|tools|num_retries|max_retries|extra_headers"
    r"|.*(?:api_?key|access_key(?:_id)?|token|secret|password|credentials)"
)


def _with_one_group(pattern: str | None) -> str | None:
    """Refuse what is no regular expression, or does not say by one group what it finds."""
    try:
        groups = re.compile(pattern or "()").groups
    except re.error:
        groups = 0
    if groups != 1:
        raise ValueError
    return pattern


def _without_own_keys(params: Json | None) -> Json | None:
    """Refuse parameters that have a key of their own, and keys, which come from the environment."""
    if any(re.fullmatch(_SET_ELSEWHERE, name) for name in params or ()):
        raise ValueError
    return params


class RateLimitSection(ConfigSection):
    """At most `calls` calls in `period` seconds."""

    calls: Count
    """How many calls may start in a period."""
    period: Annotated[float, Field(gt=0), Takes("a number above 0")]
    """The length of a period, in seconds."""


class ModelDefaults(ConfigSection):
    """What every stage, the judges among them, takes over where it does not set it itself."""

    temperature: Annotated[float | None, Field(ge=0), Takes("a number >= 0")] = None
    """The temperature to send, if any. Reasoning models accept no temperature, so calls of these
    models leave it out, with a notice."""
    max_tokens: Count | None = None
    """The largest number of tokens in an answer."""
    timeout: Annotated[float | None, Field(gt=0), Takes("a number of seconds above 0")] = None
    """How long to wait for an answer, in seconds. Left out: 120."""
    api_base: Annotated[
        str | None,
        Field(pattern=r"^https?://[^\s]+$"),
        Takes("a URL that starts with http:// or https://"),
    ] = None
    """The URL of an OpenAI-compatible server, which is asked instead of the provider's own
    server."""
    rate_limit: Annotated[
        RateLimitSection | None,
        Takes("a mapping of calls in a period of seconds, such as {calls: 10, period: 60}"),
    ] = None
    """A limit for the rate of calls, in addition to the server's own limit."""
    params: Annotated[
        FreeMapping | None,
        AfterValidator(_without_own_keys),
        Takes(
            "a mapping of further parameters, such as {num_ctx: 32768}; no secrets, and no "
            "other key of this section"
        ),
    ] = None
    """Further parameters, such as Ollama's num_ctx, which are sent unchanged with each call."""


class StageModelSection(ConfigSection):
    """Which model a stage asks, and with which prompts."""

    model: Text | None = None
    """The model's name in litellm, such as openai/gpt-4.1-mini. The API key comes from the
    environment."""
    prompt_path: PathText | None = None
    """A prompt file in place of the built-in one."""
    system_prompt: Annotated[str | None, Takes("text")] = None
    """The system message. It is sent verbatim: it is not a template."""


class StageSection(ModelDefaults, StageModelSection):
    """A stage model."""


class VerifierSection(StageSection):
    """The verifier's stage model, or false."""

    @model_validator(mode="wrap")
    @classmethod
    def _false_is_off(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if data is False:
            return cast("Self", NoVerifier.model_construct())
        return handler(data)


class NoVerifier(VerifierSection):
    """`verifier: false`."""


class JudgeStage(StageSection):
    """The judge's stage model."""

    show_reasoning: Flag | None = None
    """true: the judge also sees the agent's reasoning blocks. Edited turns have no reasoning
    blocks, so the judge may recognize an edited case by their absence."""
    repeats: Annotated[
        int | None, Field(ge=1, le=99), Takes("an integer from 1 to 99, preferably odd")
    ] = None
    """How many times the judge judges each case. Left out: once."""
    orders: Literal["one", "both"] | None = None
    """For a suite of pairs. one: the judge is asked about the two answers in one order. both: the
    judge is asked in both orders, and if the two verdicts contradict each other, the result is a
    tie. Left out: one."""
    together: Flag | None = None
    """true: each call asks about all rubrics of the suite, and the answer has a verdict on each
    rubric. So a single call judges a labelled run. A prompt of your own has to contain `rubrics`. A
    function has to return a mapping from rubric ids to verdicts."""
    score_map: Annotated[
        dict[str, Annotated[Said, Takes("an integer or text")]] | None,
        Field(min_length=1),
        Takes("a mapping of the judge's values to scores, such as {C: 0, I: 1}, or to classes"),
    ] = None
    """If the judge does not answer with scores: which score (or class) each value in its answers
    means. Values can be text, true, false or numbers. A prompt of your own has to ask for these
    values."""
    verdict: Annotated[
        str | None,
        AfterValidator(_with_one_group),
        Takes("a regular expression with one group, such as 'Verdict: (pass|fail)'"),
    ] = None
    """If a prompt of your own does not ask for JSON: a regular expression whose one group finds the
    verdict in an answer. What the group finds is a score or a value of score_map, in upper or lower
    case. If the expression finds no verdict, or two different verdicts, the model is asked again,
    up to twice. If no answer fits, the case has no verdict."""
    threshold: Share | None = None
    """For a judge in Python, in a binary suite without score_map: the judge returns numbers from 0
    to 1. For a function, a number from threshold on means violated. For a scorer of Inspect, a
    number from threshold on means satisfied, since 1 means correct in Inspect."""
    images: Literal["send", "describe"] | None = None
    """describe: in place of an image, the judge sees a placeholder such as [image: image/png].
    send: the judge's model gets PNG, JPEG, GIF and WebP images if the log or table has their data,
    and images in answers if they have a URL. The model has to accept images. Left out: describe."""


Of = Literal["runs", "answers", "pairs"]
"""What is judged: what an agent did, single answers to requests, or which of two is better."""
POINTER = "a JSON pointer such as /task/id"


def one_is_a_list(value: object) -> object:
    """Read one item of a list that stands alone."""
    return [value] if isinstance(value, dict | str) else value


def _or_one(schema: Json) -> None:
    """Say of the schema of a list that one of its items may stand there alone."""
    items = schema.pop("items")
    schema["anyOf"] = [{"type": schema.pop("type"), "items": items}, items]


_T = TypeVar("_T")
Several = Annotated[
    tuple[_T, ...], BeforeValidator(one_is_a_list), Field(strict=False, json_schema_extra=_or_one)
]
"""A list, of which one item may stand alone."""

ROW_NUMBER = "#"
"""In place of the pointer to an id: the number of the row of a table, from 0."""
_POINTER = Annotated[str, Field(pattern="^(/|#?$)"), Takes(POINTER)]
Pointer = _POINTER | None
Pointers = (
    Annotated[Several[_POINTER], Field(min_length=1), Takes(f"{POINTER}, or a list of them")] | None
)


class InputFormat(ConfigSection):
    """Where the parts of a conversation are in its JSON, as JSON pointers."""

    messages: Pointer = None
    """The list of messages, in OpenAI's or Anthropic's form. Left out: /messages."""
    answer: Pointer = None
    """A message that comes after these, such as the answer beside a request. Left out: where there
    are no /messages but /request/messages, /response/choices/0/message, if it is there."""
    response_a: Pointer = None
    """Of pairs: the answer that is shown first. Left out: a column with such a name."""
    response_b: Pointer = None
    """Of pairs: the answer that is shown second."""
    context: Pointer = None
    """Of an answer: what it was to rest on. Left out: a column with such a name."""
    system: Pointer = None
    """The system prompt, where it stands beside the messages. Left out: /system, if it is there."""
    id: Pointers = None
    """What makes the id: one value, or several joined by hyphens. Of a table also #, the number of
    the row from 0. Left out: /id, else a digest of the messages."""
    epoch: Pointer = None
    """The number of a repeated trial of one id. Left out: /epoch, else 1."""
    cluster: Pointers = None
    """What trials of one task share. Left out: /cluster, else each id is a cluster."""
    metadata: Pointers = None
    """The metadata: an object, or values that become its fields. Left out: /metadata."""
    input: Pointer = None
    """The task as text. Left out: /input, else the first message of the user."""
    target: Pointer = None
    """The right answer. Left out: /target."""


class GateProbe(ConfigSection):
    """When a probe fails."""

    max_rate: Annotated[
        float, Field(ge=0, lt=1), Takes("a number >= 0 and below 1 (0.05: 5 of 100)")
    ] = 0.0
    """The share of changed cases whose verdict may change."""


class GateRules(ConfigSection):
    """When the session fails."""

    max_drop: Annotated[
        float, Field(ge=0, lt=1), Takes("a number >= 0 and below 1 (0.05: 5 points)")
    ] = 0.05
    """The largest loss since the baseline that is allowed. For a binary judge, the loss is a share
    of cases: it is computed for the violated cases, for the satisfied cases, and for all cases. For
    an ordinal judge, the loss is a share of the scale. A single rubric may lose twice as much. If a
    loss is larger than allowed, and larger than chance explains, the result is FAIL."""
    min_recall: (
        Annotated[
            Share | dict[Text, Share],
            Takes("a number from 0 to 1, or a mapping of classes to such numbers"),
        ]
        | None
    ) = None
    """The share of the violations that a judge must find. In a suite with classes: the share of
    each class's cases that a judge must get right. This is one number for all classes, or a number
    for each class that you name (and for n/a), as in `{tie: 0.9, n/a: 0.8}`."""
    max_false_alarms: Share | None = None
    """The share of the satisfied cases that a judge may call violated."""
    min_accuracy: Share | None = None
    """The share of all cases that a judge must get right."""
    max_error: Annotated[float, Field(ge=0), Takes("a number >= 0")] | None = None
    """How many levels of the scale an ordinal judge's scores may differ from the labels, on
    average."""
    unclear: Literal["pass", "fail"] | None = None
    """The exit code of UNCLEAR. pass: 0. fail: 1. Left out: 1 if it is unclear whether the judge
    has become worse, and 0 if it is only unclear whether the judge is good enough."""
    by: Flag = False
    """true: categories (`cases.by`) count for the decision, too. A category counts if at least 10
    of its cases are compared; if more than 100 categories have so many, only the 100 largest count.
    Like a rubric, a category may lose twice max_drop."""
    proof: Flag = False
    """true: for PASS, the limits must hold on runs that are not in the suite, too, and the loss on
    such runs must be below max_drop (both by a 95% bound). This takes many runs. With too few runs,
    the result is UNCLEAR."""
    probes: Annotated[
        dict[Text, GateProbe],
        Takes("a mapping of probes to shares, such as {prompt_injection: {max_rate: 0.05}}"),
    ] = Field(default_factory=dict)
    """For each probe, max_rate is the share of changed cases whose verdict may change. If more
    verdicts change, and more than flicker explains, the result is FAIL. With `proof: true`, PASS
    also requires that the true share is not above max_rate (95% bound)."""

    @property
    def probe_limits(self) -> dict[str, float]:
        """By probe the share of changed cases whose verdict may change."""
        return {name: rule.max_rate for name, rule in self.probes.items()}

    @property
    def has_limits(self) -> bool:
        """Whether any limit decides without a baseline."""
        limits = (self.min_recall, self.max_false_alarms, self.min_accuracy, self.max_error)
        return any(limit is not None for limit in limits) or bool(self.probe_limits)


class BlindSection(ConfigSection):
    """Blind labelling in the browser, on the page of --jrh-review=blind."""

    sample: Count = 60
    """How many of the suite's cases people label; these cases are drawn at random. If these
    are, for example, a third of the cases, a third of the cases that the verifier rejected is
    drawn, too. Rejected cases do not count in a judge's figures."""
    overlap: Share = 0.3
    """The share of the drawn cases that every reviewer labels. Each other case is labelled by one
    reviewer."""
    labels: PathText | None = None
    """A committed file of blind labels. This file is read in addition to the file that the page
    writes, review/labels.jsonl in output.dir."""
