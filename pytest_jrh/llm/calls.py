"""One model call as a value: the request, the answer, and the re-asks between the two.

An `Exchange` answers one request with one answer. Around it, `make_complete` builds the `Complete`
that the pipeline and the judge use: it parses strictly, by the shapes below, and re-asks at most
twice, carrying the validation error. Nothing here knows a provider or a cassette.

Before the call stands its prompt: found, checked for its variables, and turned into messages. A
prompt file is the user message. One that has a line `---user---` is a system message above that
line and the user message below it; the built-in prompts are of this kind, so that a copy of one can
be changed and used as an override.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails

from pytest_jrh.core import Fields, Json, frozen, shortened, storable
from pytest_jrh.core.calls import (
    ANSWER,
    STAGES,
    Complete,
    Completion,
    PromptsOf,
    ResponseT,
    StageModel,
    Usage,
)
from pytest_jrh.core.cases import Unscored
from pytest_jrh.core.documents import read_text
from pytest_jrh.core.scales import BINARY, NO_SUCH, Mode, Objective, Said, Scale
from pytest_jrh.core.templates import Template, parse_template
from pytest_jrh.core.transcript import PAIR, answer_parts

_FENCED = r"(?s)```(?:json)?[^\S\n]*+\n(.*)```"
_TYPE_WORDS = {
    "string": "a text",
    "int": "a whole number",
    "list": "a list",
    "model": "an object",
    "bool": "a boolean",
}


class Response(BaseModel):
    """Base of every shape that a model is asked to answer in.

    Unknown fields are ignored when reading, and forbidden in the schema that the provider enforces.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        defer_build=True,
        json_schema_extra={"additionalProperties": False},
    )


class TextResponse(Response):
    """Base of the shapes that are read of an answer that is no JSON: each field of all of its text.

    Its schema is empty, so that a model is told of no shape but by the prompt.
    """

    model_config = ConfigDict(json_schema_extra=lambda schema: schema.clear())


def value_on_offer(values: tuple[str | int | bool, ...]) -> Any:
    """The type of a value that must be one of `values`, in its type and as it is written: where a 1
    is on offer, no `true`, no `1.0`, no `"1"`.
    """
    offered = ", ".join(json.dumps(option, ensure_ascii=False) for option in values)

    def exact(value: object) -> object:
        # pydantic's Literal compares by equality, strict or not, and to Python `True == 1 == 1.0`.
        if not any(type(value) is type(option) and value == option for option in values):
            raise ValueError(f"must be one of {offered}")
        return value

    checked: Any = Annotated[Literal[values], BeforeValidator(exact)]
    if NO_SUCH in values and type(values[0]) is int:
        # Servers that hold a model to a schema want to know the types of its values.
        schema = {"enum": [*values], "type": ["integer", "string"]}
        return Annotated[checked, WithJsonSchema(schema)]
    return checked


def parse(text: str, response_model: type[ResponseT]) -> ResponseT:
    """Read an answer strictly: one JSON object, at most wrapped in one Markdown code fence, or the
    text of a `TextResponse`.

    Raises pydantic's `ValidationError`, also for duplicate keys: parsers differ in which value they
    use. Numbers, texts and booleans are never coerced, so that no verdict is invented.
    """
    if issubclass(response_model, TextResponse):
        return response_model.model_validate(dict.fromkeys(response_model.model_fields, text))
    fenced = re.fullmatch(_FENCED, text.strip())
    return response_model.model_validate_json(_checked(fenced[1] if fenced else text), strict=True)


def explain(error: ValidationError, text: str, *, cut_off: bool) -> str:
    """Describe in one or two sentences what is wrong with an answer, which may be `cut_off`."""
    if not text.strip():
        return "it was empty" + (", cut off by max_tokens." if cut_off else ".")
    complaints = []
    for entry in error.errors(include_url=False)[:5]:
        where = ".".join(str(part) for part in entry["loc"]) or "the answer"
        complaints.append(f"{where}: {_complaint(entry)} (got {shortened_value(entry['input'])})")
    cut = " It was cut off by max_tokens." if cut_off else ""
    return "; ".join(complaints) + "." + cut


def _checked(text: str) -> str:
    """The answer without characters that cannot be stored, which JSON can write as escapes; raises
    `ValidationError` for a duplicate key.
    """
    duplicates: list[str] = []

    def keep(pairs: list[tuple[str, Any]]) -> Json:
        # Compared as they are read: two keys can become equal once characters that cannot be stored
        # are dropped.
        names = set()
        for name, _ in pairs:
            clean = storable(name)[0]
            if clean in names:
                duplicates.append(clean)
            names.add(clean)
        return dict(pairs)

    try:
        value, changed = storable(json.loads(text, object_pairs_hook=keep))
    except (ValueError, RecursionError):
        # Not JSON, or nested too deeply for pydantic, which reports it.
        return text
    if duplicates:
        why = {"error": f"has the key {duplicates[0]!r} more than once"}
        mistake = InitErrorDetails(type="value_error", input=text, ctx=why)
        raise ValidationError.from_exception_data("answer", [mistake])
    return json.dumps(value) if changed else text


def _complaint(entry: Any) -> str:
    """Describe a validation error in fixed words: they are part of re-asks, whose fingerprints must
    not depend on pydantic's version.
    """
    kind: str = entry["type"]
    if kind == "value_error":
        return str(entry["ctx"]["error"])
    if kind == "literal_error":
        return f"must be {entry['ctx']['expected']}"
    if kind == "missing":
        return "is missing"
    if kind == "json_invalid":
        return "is not JSON"
    type_name = kind.removesuffix("_type")
    return f"must be {_TYPE_WORDS.get(type_name, type_name)}"


def shortened_value(value: object, longest: int = 80) -> str:
    """A value in one line, in quotes."""
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, default=str)
    return repr(shortened(" ".join(text.split()), longest))


MAX_REASKS = 2
UNUSABLE = "That answer cannot be used: "
"""How a request begins that asks again."""
# As the response format of that type, in the words of the prompt, or as both; nothing is sent of a
# shape without a schema.
SchemaSent = Literal["json_schema", "json_schema+words", "json_object+words", "words", "nothing"]
_UNSTABLE_SCHEMA_KEYS = frozenset({"title", "description", "default", "examples"})


@dataclass
class Attempts:
    """The attempts at one call: how often it was `sent`, and how many of these had no answer
    (`lost`).

    `refused` names what the provider rejected: a parameter, "system", or a way to send the schema.
    """

    sent: int = 0
    lost: int = 0
    refused: set[str] = field(default_factory=set)


Needs: TypeAlias = "Sequence[Sequence[StageModel]]"
"""Groups of stages, of each of which a case needs one."""


@dataclass(frozen=True)
class CallRequest:
    """One request to a model: `messages` are chat messages of text, with images where the judge
    sends them.

    `repeat` counts, from 1, the times that the same request is made for a case: each has its own
    answer. `case` is the id of the case, for messages; `attempts` is updated by the exchange.
    Of each group in `needs` the case needs one stage: the call is not made where none is asked.
    """

    stage: StageModel
    messages: tuple[Fields, ...]
    response_model: type[BaseModel]
    case: str = ""
    repeat: int = 1
    attempts: Attempts = field(default_factory=Attempts, compare=False)
    needs: Needs = field(default=(), compare=False)

    @cached_property
    def schema(self) -> Json:
        """The JSON schema of the answer, titled with the stage's name."""
        return {**_schema_of(self.response_model), "title": self.stage.stage}

    @cached_property
    def parameters(self) -> Json:
        """The sampling parameters that the suite sets; what it does not set is not sent."""
        settings = {"temperature": self.stage.temperature, "max_tokens": self.stage.max_tokens}
        parameters = {name: value for name, value in settings.items() if value is not None}
        return parameters | dict(self.stage.params or {})

    @cached_property
    def parts(self) -> Json:
        """Digests of what the fingerprint covers, so that a miss can name the part that differs."""
        parts: Json = {
            "model": self.stage.model,
            "parameters": self.parameters,
            "schema": digest(_stable_schema_of(self.response_model))[:12],
            "messages": [digest(dict(message))[:12] for message in self.messages],
        }
        # A recording of the first one does not say.
        if self.repeat > 1:
            parts["repeat"] = self.repeat
        return parts

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything that identifies the call."""
        return digest(
            {
                "stage": self.stage.stage,
                "model": self.stage.model,
                "messages": [dict(message) for message in self.messages],
                "parameters": self.parameters,
                "schema": _stable_schema_of(self.response_model),
                "repeat": self.repeat,
            }
        )


@frozen
class Answer:
    """What a provider returned with status 200; `cost` is US dollars, None where no price is known.

    `left_out` names the parameters that the model does not accept and that were not sent:
    "temperature". `schema_sent` says how the schema of the answer was sent to a model.
    """

    text: str
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    left_out: frozenset[str] = frozenset()
    schema_sent: SchemaSent | None = None


class Stopped(BaseException):
    """The session is stopping: the call was not sent.

    Not an error of the case, so no `Exception`.
    """


Exchange = Callable[[CallRequest], Awaitable[Answer]]
"""Answers one request; raises `Unscored` without an answer."""


@lru_cache
def _schema_of(response_model: type[BaseModel]) -> Json:
    return response_model.model_json_schema()


@lru_cache
def _stable_schema_of(response_model: type[BaseModel]) -> object:
    return stable_schema(_schema_of(response_model))


def digest(value: object) -> str:
    """SHA-256 of a JSON value in canonical form, as hex."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def stable_schema(schema: object) -> object:
    """A JSON schema without the parts that differ between pydantic versions."""
    if isinstance(schema, list):
        return [stable_schema(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    stable: Json = {}
    for key, value in schema.items():
        if key == "properties":
            stable[key] = {name: stable_schema(entry) for name, entry in value.items()}
        elif key not in _UNSTABLE_SCHEMA_KEYS:
            stable[key] = stable_schema(value)
    if "const" in stable:
        stable["enum"] = [stable.pop("const")]
    if "enum" in stable:
        stable.pop("type", None)
    return stable


def make_complete(
    exchange: Exchange, *, repeat: int = 1, usable: Callable[[StageModel], object] = bool
) -> Complete:
    """Build a `Complete` over an exchange: strict parsing, at most two re-asks carrying the error.

    `repeat` is that of each call (see `CallRequest`); `usable` is told of each stage that gave an
    answer in its form. What is built raises `Unscored` with outcome `refused` or
    `invalid_response`, and passes on whatever the exchange raises.
    """

    async def complete(
        stage: StageModel, messages: Sequence[Fields], response_model: type[ResponseT]
    ) -> Completion[ResponseT]:
        conversation = tuple(messages)
        form = "with one JSON object in the requested shape and nothing else"
        if issubclass(response_model, TextResponse):
            form = "and end as it asks for"
        fingerprints = []
        while True:
            request = CallRequest(stage, conversation, response_model, repeat=repeat)
            answer = await exchange(request)
            fingerprints.append(request.fingerprint)
            _raise_if_refused(stage, answer, tuple(fingerprints))
            cut_off = answer.finish_reason == "length"
            try:
                parsed = parse(answer.text, response_model)
            except ValidationError as error:
                complaint = explain(error, answer.text, cut_off=cut_off)
            else:
                usable(stage)
                return Completion(answer.text, parsed)
            if len(fingerprints) > MAX_REASKS:
                raise Unscored(
                    "invalid_response",
                    stage=stage.stage,
                    cause=f"{stage.model} gave {MAX_REASKS + 1} unusable answers; the last one: "
                    f"{complaint}",
                    advice=f"{_what_helps(stage, response_model, cut_off=cut_off)} The recorded "
                    "answers are in the cassette; --jrh-retry-unscored asks again.",
                    asked=tuple(fingerprints),
                    alike="invalid_response",
                    answer=answer.text,
                )
            conversation = (
                *conversation,
                {"role": "assistant", "content": answer.text or "(nothing)"},
                {
                    "role": "user",
                    "content": f"{UNUSABLE}{complaint}\nAnswer the request again, {form}.",
                },
            )

    return complete


def _what_helps(stage: StageModel, response_model: type[BaseModel], *, cut_off: bool) -> str:
    """What to change where a stage's answers are not in its form."""
    if cut_off:
        limit = "" if stage.max_tokens is None else f" ({stage.max_tokens:,} now)"
        return f"Raise the stage's `max_tokens`{limit}: the answer was cut off."
    model = "give the stage a model that supports structured output"
    if stage.prompt_path is None:
        return f"The prompt is the built-in one, so {model}."
    if issubclass(response_model, TextResponse):
        return (
            "The judge's pattern `verdict` does not match the answer: change the prompt or the "
            "pattern, so that they match."
        )
    keys = ", ".join(f"`{name}`" for name in response_model.model_fields)
    return (
        f"Make {Path(stage.prompt_path).name} ask for one JSON object with only {keys}, or {model}."
    )


def _raise_if_refused(stage: StageModel, answer: Answer, fingerprints: tuple[str, ...]) -> None:
    if answer.refusal:
        cause = f"{stage.model} refused: {shortened_value(answer.refusal, 300)}"
    elif answer.finish_reason == "content_filter":
        cause = f"the provider's content filter stopped {stage.model}"
    else:
        return
    raise Unscored(
        "refused",
        stage=stage.stage,
        cause=cause,
        advice="Reword the prompt of this stage, or give the stage another model; "
        "--jrh-retry-unscored asks again.",
        asked=fingerprints,
    )


Names: TypeAlias = "Mapping[Said, str] | None"
"""What the scores are called, where it is not by their numbers."""
_SEPARATOR = r"(?m)^---user---[ \t\r]*$"

INTEGERS = frozenset({"max_steps", "message_index", "lowest_score", "highest_score"})
"""The variables that are whole numbers."""


def load_template(
    stage: str,
    *,
    mode: Mode,
    objective: Objective,
    prompt_path: str | None = None,
    override: Path | None = None,
    of: PromptsOf = "text",
) -> Template:
    """Find a stage's prompt: `override` where that file exists, else `prompt_path`, else the
    built-in one.

    The judge has no override. Raises `InputError` for a file that cannot be read or is invalid.
    """
    spec = STAGES[stage]
    if override is not None and override.is_file():
        prompt_path = str(override)
    if prompt_path:
        return parse_prompt(
            read_text(Path(prompt_path), prompt_path), prompt_path, stage=stage, of=of
        )
    name = built_in_name(stage, mode=mode, objective=objective, of=of)
    required = frozenset(PAIR) if of == "pair" else spec.required
    return built_in(name, allowed=spec.variables, required=required)


@lru_cache
def built_in(name: str, *, allowed: frozenset[str], required: frozenset[str]) -> Template:
    """The prompt of this name that ships with the package."""
    source = (
        resources.files("pytest_jrh.llm")
        .joinpath("templates", f"{name}.md")
        .read_text(encoding="utf-8")
    )
    return parse_template(source, f"built-in {name}", allowed=allowed, required=required)


def parse_prompt(source: str, origin: str, *, stage: str, of: PromptsOf = "text") -> Template:
    """Check a prompt's text: its names, its syntax, and that it renders."""
    spec = STAGES[stage]
    required: Collection[str] = spec.required
    allowed = spec.variables if of == "pair" else spec.variables.difference(PAIR)
    if of == "pair":
        required = PAIR
    elif of == "answer":
        # Of two the one that is a part of an answer is named first.
        required = ["|".join(reversed(names.split("|"))) for names in required]
    template = parse_template(source, origin, allowed=allowed, required=required)
    values: dict[str, object] = {}
    for name in spec.variables:
        values[name] = f"[0] user\n  a {name}\n[1] assistant\n  more"
    values |= dict.fromkeys(INTEGERS, 3)
    messages(template, values)
    # Values that may be empty are empty once here, so that both branches of an `if` are tested.
    needed = set(chain.from_iterable(names.split("|") for names in required))
    messages(template, {**values, **dict.fromkeys(spec.variables - needed - INTEGERS, "")})
    return template


def override_path(custom_prompts_dir: Path, test: str, stage: str) -> Path:
    """Where a project keeps its own prompt for a stage of a test, of one module."""
    return custom_prompts_dir / test / f"{stage}.md"


def built_in_name(stage: str, *, mode: Mode, objective: Objective, of: PromptsOf = "text") -> str:
    """Name the prompt that ships with the package, such as `planner.binary.fail`."""
    spec = STAGES[stage]
    name = stage
    if of in spec.prompts_of:
        name = f"{stage}.{of}"
    if not spec.prompt_per:
        return name
    if spec.prompt_per == "mode" or mode != BINARY.name:
        return f"{name}.{mode}"
    return f"{name}.{mode}.{objective}"


def messages(
    template: Template, values: Mapping[str, object], *, system_prompt: str | None = None
) -> list[dict[str, str]]:
    """Render the chat messages of one call.

    `system_prompt`, a setting of the stage, is the system message where it is given, and is never
    rendered; the template's own system part then opens the user message, so that nothing is lost.
    """
    system, user = _parts(template)
    head, body = "", user.render(values)
    if system is not None:
        head = system.render(values).strip()
    if system_prompt:
        if head:
            body = f"{head}\n\n{body}"
        head = system_prompt
    turns = [{"role": "user", "content": body}]
    if head:
        turns.insert(0, {"role": "system", "content": head})
    return turns


def score_levels_table(scale: Scale, names: Names = None) -> str:
    """Write the scale, one line per answer: `score: when it is due`, from the lowest score up; a
    word is in quotes, as in the JSON of an answer.

    With `names` each score is written as its name, and an answer without one is left out.
    """
    lines = []
    for score in scale.due:
        if names is None or scale.said(score) in names:
            lines.append(_level_line(scale, score, names))
    return "\n".join(lines)


def ordinal_guidance(scale: Scale, target: int) -> str:
    """Describe the target to planner and editor: the answer, of a number its neighbours, and all
    others.
    """
    line = _level_line(scale, target)
    lines = [f"Target score: {_written(scale.said(target))}", f"To be reached exactly: {line}"]
    sides = (
        () if isinstance(scale.said(target), str) else ((-1, "low", "below"), (1, "high", "above"))
    )
    for step, direction, side in sides:
        if target + step in scale.due:
            lines.append(f"One level too {direction}: {_level_line(scale, target + step)}")
        else:
            lines.append(f"No level lies {side} it.")
    return "\n".join([*lines, "", "The whole scale:", score_levels_table(scale)])


def _written(said: Said) -> str:
    return json.dumps(said, ensure_ascii=False)


def _level_line(scale: Scale, score: int, names: Names = None) -> str:
    said = scale.said(score)
    name = _written(said) if names is None else names[said]
    # A label of several lines would read as further levels.
    return f"{name}: {' '.join(scale.due[score].split()) or '(no description)'}"


@lru_cache
def _parts(template: Template) -> tuple[Template | None, Template]:
    """Split at the separator before anything is filled in, so that no value can move it."""
    separator = re.search(_SEPARATOR, template.source)
    if separator is None:
        return None, template
    above, below = template.source[: separator.start()], template.source[separator.end() :]
    return _part(template, above), _part(template, below.lstrip("\n"))


def _part(template: Template, source: str) -> Template:
    """A part of a template, with those of its variables that may stand in it."""
    variables = frozenset(name for name in template.variables if name in source)
    return replace(template, source=source, variables=variables)


@frozen
class Stage:
    """A stage model with its checked template, ready to be called."""

    model: StageModel
    template: Template
    complete: Complete

    async def ask(
        self,
        values: Mapping[str, object],
        response_model: type[ResponseT],
        images: Sequence[str] = (),
    ) -> Completion[ResponseT]:
        """Render the prompt and call the model; raises `Unscored` without a usable answer.

        `images` are URLs of images, which follow the prompt, each behind its number, from 1.
        """
        conversation: list[Fields] = []
        conversation += messages(self.template, values, system_prompt=self.model.system_prompt)
        if images:
            parts: list[Json] = [{"type": "text", "text": conversation[-1]["content"]}]
            for number, url in enumerate(images, start=1):
                parts.append({"type": "text", "text": f"image {number}:"})
                parts.append({"type": "image_url", "image_url": {"url": url}})
            conversation[-1] = {**conversation[-1], "content": parts}
        return await self.complete(self.model, conversation, response_model)


def answer_values(messages: Sequence[Fields], template: Template) -> Mapping[str, object]:
    """The variables that are parts of an answer, where the prompt names one."""
    return {} if ANSWER.isdisjoint(template.variables) else answer_parts(messages)


def scale_values(scale: Scale, names: Names = None) -> dict[str, object]:
    """The variables that describe the scale to verifier and judge.

    `names` are what the scores are called (see `score_levels_table`).
    """
    return {
        "score_levels_table": score_levels_table(scale, names),
        "lowest_score": scale.said(scale.scores[0]),
        "highest_score": scale.said(scale.scores[-1]),
    }


def with_scale(instructions: str, scale: Scale, template: Template, names: Names = None) -> str:
    """The rubric's instructions, followed by the levels where there are some and the prompt shows
    none itself; `names` are what its scores are called.
    """
    if not scale.levels or "score_levels_table" in template.variables:
        return instructions
    return f"{instructions}\n\nScores:\n{score_levels_table(scale, names)}"
