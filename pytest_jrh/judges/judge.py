"""What the engine knows of a judge, and what judges get: a case without anything of how it was
made, its images where the judge takes them, and the map of values in place of scores. Then the
judge that is a prompt: a model, and a score that must be on offer.

A judge may be asked about all rubrics of a suite in one call, and answers each. Its question is the
same for all cases of a run as it is, whatever their rubric: so these share a recording, and the
first that is judged pays for all. A case that models edited has a text of its own. Its judge is
asked about all rubrics, too, as it is where it is in use, and the verdict on the case's rubric
counts. A rubric without a usable verdict in an answer has none, and the others stand; an answer
without any is asked for again.
"""

from __future__ import annotations

import copy
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import field
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)

from pytest_jrh.core import Fields, Json, frozen, grouped, short_digest, shown
from pytest_jrh.core.calls import JUDGE, TOGETHER, Complete, PromptsOf, StageModel
from pytest_jrh.core.cases import Case, Message, Messages, Rubric, Transcript, Unscored, Verdict
from pytest_jrh.core.scales import BINARY, Mode, Said, coded
from pytest_jrh.core.sections import ConfigSection, JudgeStage
from pytest_jrh.core.templates import Template
from pytest_jrh.core.transcript import (
    IMAGE_DATA,
    PAIR,
    answer_parts,
    media_in,
    render_transcript,
    without_reasoning,
)
from pytest_jrh.llm.calls import (
    Response,
    Stage,
    TextResponse,
    answer_values,
    digest,
    explain,
    load_template,
    scale_values,
    value_on_offer,
    with_scale,
)

OTHERS_STAND = (
    "The verdicts on other rubrics are kept; --jrh-retry-unscored asks about all rubrics again."
)
DEFAULT_JUDGE = "prompt"
"""The kind of a judge whose section sets the key of no other: a model with a prompt."""


Function: TypeAlias = "Callable[..., object]"
"""Code that is not ours."""
Submit: TypeAlias = "Callable[[Coroutine[Any, Any, Any]], Future[Any]]"
"""Runs a coroutine of ours, such as a call of `complete`, for a judge's own code."""


class CodeAnswer(NamedTuple):
    """What a judge's own code answers about a case: a value, from which its score follows."""

    value: object
    reasoning: object


@frozen
class OwnCode:
    """One verdict that is given by code which may ask whom it likes.

    `label` is the judge in the cassette, and this its `repeat`-th verdict on the case. `call` is
    the code, which has a thread of its own; what it returns is awaited where it can be, and `read`
    as an answer. That is recorded, and `verdict` makes a verdict of it, or raises `Unscored`.
    `timeout` is for the whole of it, in seconds. `key` says what a recorded verdict rests on, each
    part as a short text; `files` is what names the judge in it without a version; with `from_head`
    that verdict is taken where the key is the same, and the code not run.
    """

    label: str
    call: Callable[[Submit], object]
    read: Callable[[object], CodeAnswer]
    verdict: Callable[[CodeAnswer], Verdict]
    timeout: float
    key: Mapping[str, str]
    files: str
    from_head: bool
    repeat: int = 1

    @property
    def who(self) -> str:
        """The judge in messages."""
        return f"The judge {self.label}"

    @property
    def fingerprint(self) -> str:
        """Names its entry: one for each repeat, whatever the code is."""
        return digest({"stage": JUDGE.name, "own code": True, "repeat": self.repeat})

    @property
    def asked(self) -> Json:
        """What its entry says of the question: all that a recorded verdict rests on."""
        question: Json = {"model": self.label, "parameters": dict(self.key)}
        if self.repeat > 1:
            question["repeat"] = self.repeat
        return question

    def covers(self, question: Fields) -> bool:
        """Whether an entry is of this question, as of the same code before it had a version."""
        before = {**self.asked, "parameters": {**self.key, "judge": self.files}}
        return question in (self.asked, before)


class JudgeCalls(Protocol):
    """What a judge asks with, for one repeat of one case; all of it is recorded."""

    @property
    def complete(self) -> Complete:
        """Asks a model through us."""

    def run(self, code: OwnCode) -> Awaitable[Verdict]:
        """Run code that is not ours; raises `Unscored` for whatever goes wrong in it."""


@frozen
class SuiteJudge(ABC):
    """A judge under test."""

    settings: JudgeSettings

    @property
    def label(self) -> str:
        """What reports call it, such as its model."""
        return self.settings.label

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies the judge: equal where two sessions asked the same one."""

    @property
    def model(self) -> StageModel:
        """The model that it asks; of code itself, in place of the models that it may ask."""
        return StageModel(JUDGE.name, self.label) if self.runs_code else self.settings.stage

    @property
    def runs_code(self) -> bool:
        """Whether it asks by code of its own, so that its calls and their price are not known."""
        return False

    @abstractmethod
    def __call__(self, case: Case, calls: JudgeCalls) -> Awaitable[Verdict]:
        """Judge a case once.

        What it asks goes through `calls`, which records it, each repeat by itself. Raises
        `Unscored` where no score on offer comes back.
        """


@frozen
class JudgeSettings:
    """One judge of a config; `name` is None where the suite has a single one.

    `stage` holds its model and prompt, `kind` is its key in `pytest_jrh.judges.JUDGES`, and
    `section` its section of the config, with what the section `judge` and others fill in.
    `folders` are those in which its own code may name files; `prompt_of` is what its built-in
    prompt is about. `rubrics` are those that each call is about, together; empty where it is one.
    """

    name: str | None
    stage: StageModel
    kind: str = DEFAULT_JUDGE
    section: JudgeStage = field(default_factory=JudgeStage.model_construct)
    folders: tuple[Path, ...] = ()
    prompt_of: PromptsOf = "text"
    rubrics: Sequence[Rubric] = ()

    @property
    def show_reasoning(self) -> bool:
        """Whether it sees the agent's reasoning."""
        return bool(self.section.show_reasoning)

    @property
    def sends_images(self) -> bool:
        """Whether it gets the images of a transcript, not their names alone."""
        return self.section.images == "send"

    @property
    def repeats(self) -> int:
        """How often it judges each case."""
        return self.section.repeats or 1

    @property
    def is_random(self) -> bool:
        """Whether its section says of its code that what it answers may be chance."""
        return bool(getattr(self.section, "random", None))

    @property
    def label(self) -> str:
        """What reports call it: its model, else its kind."""
        return self.stage.model or self.kind

    @property
    def orders(self) -> Json:
        """What a judge of pairs that is shown both orders differs by from one that is not."""
        return {"orders": "both"} if self.section.orders == "both" else {}

    @property
    def parts(self) -> Json:
        """What verdicts rest on of it, beside a prompt or code and how answers are read."""
        stage = self.stage
        parts: Json = {
            "model": stage.model,
            "system_prompt": stage.system_prompt,
            "temperature": stage.temperature,
            "max_tokens": stage.max_tokens,
            "show_reasoning": self.show_reasoning,
        }
        if self.rubrics:
            # Each of its questions holds the texts of all, in this order.
            parts["rubrics"] = [
                (rubric.id, rubric.instructions, rubric.scale.due) for rubric in self.rubrics
            ]
        return parts


@frozen
class JudgeKind:
    """A kind of judge: its keys in a judge's section of a config, and how one is built.

    A judge is of this kind where the key named `key` is set; `keys` are that key and those that go
    with it, None where it needs none beside those of every judge. `build` takes the
    settings, the suite's mode and its instruction, the note to the judge; it raises `InputError`
    for settings that cannot be used. `notes` are the lines about its other keys in the config of a
    new suite. `one_rubric` says why it cannot be asked about several rubrics together; empty where
    it can.
    """

    key: str
    build: Callable[[JudgeSettings, Mode, str], SuiteJudge]
    keys: type[ConfigSection] | None = None
    notes: tuple[str, ...] = ()
    one_rubric: str = ""

    @property
    def own_keys(self) -> frozenset[str]:
        """The keys that have a meaning for this kind, and not for every judge."""
        return frozenset(
            ("prompt_path", "images", "params", "verdict")
            if self.keys is None
            else self.keys.model_fields
        )


def json_digest(value: object) -> str:
    """SHA-256 of what can be JSON."""
    return short_digest(json.dumps(value, sort_keys=True, default=str), 64)


def key_of(value: object) -> str:
    """The key of a map that stands for a value: text as it is, others as JSON has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return json.dumps(value)
    return f"a {type(value).__name__}"


def value_of(key: str) -> str | int | bool:
    """The value that a model is to answer with for a key: true and false, whole numbers, text."""
    if key in ("true", "false"):
        return key == "true"
    if re.fullmatch("0|-?[1-9][0-9]*", key):
        return int(key)
    return key


@frozen
class JudgedLevel:
    """One answer on offer, and when it is due."""

    score: Said
    label: str


@frozen
class JudgedRubric:
    """The criterion: its id, its text, and what each score of its scale means."""

    id: str
    text: str
    levels: tuple[JudgedLevel, ...] = ()


@frozen
class JudgedCase:
    """A case as a judge sees it: the rubric, the scale, and the whole transcript.

    `scores` are the answers on offer as a judge gives them, numbers, or words for classes and for
    `n/a`, and `levels` what each means; without levels 0 says that the run keeps to the rubric, and
    1 that it does not. `messages` are Inspect's chat messages as
    dictionaries, `input` is the task as text and `metadata` what the log says of the run. A judge
    that changes them changes a copy of its own. `run_id` and `epoch` say which run of the log it
    is, or was before it was edited. A judge that is asked about all rubrics together finds them in
    `rubrics`, and `rubric` is then empty.
    """

    rubric: JudgedRubric
    messages: Transcript
    levels: tuple[JudgedLevel, ...] = ()
    input: str = ""
    metadata: Fields = field(default_factory=dict)
    run_id: str = ""
    epoch: int = 1
    scores: tuple[Said, ...] = BINARY.scores
    rubrics: tuple[JudgedRubric, ...] = ()

    @property
    def transcript(self) -> str:
        """The messages as one text, as prompts of judges show them."""
        return render_transcript(self.messages, show_reasoning=True)

    @property
    def request(self) -> str:
        """What was asked before the last answer."""
        return answer_parts(self.messages)["request"]

    @property
    def response(self) -> str:
        """The last answer."""
        return answer_parts(self.messages)["response"]

    @property
    def answers(self) -> tuple[str, str]:
        """The two answers, where one of them is better."""
        parts = answer_parts(self.messages)
        return parts[PAIR[0]], parts[PAIR[1]]

    @property
    def context(self) -> str:
        """What the answer was to rest on, of a table with such a column."""
        return answer_parts(self.messages)["context"]


def judged_rubric(rubric: Rubric) -> JudgedRubric:
    """The part of a rubric that a judge may see."""
    scale = rubric.scale
    levels = [JudgedLevel(scale.said(score), when) for score, when in scale.due.items()]
    return JudgedRubric(rubric.id, rubric.instructions, tuple(levels))


def judged_case(case: Case, *, show_reasoning: bool) -> JudgedCase:
    """The part of a case that its judge may see, as a copy.

    The agent's reasoning is left out unless `show_reasoning`: edited turns have lost theirs.
    """
    rubric, messages = judged_rubric(case.rubric), []
    for message in case.messages:
        shown = message if show_reasoning else without_reasoning(message)[0]
        messages.append(copy.deepcopy(dict(shown)))
    return JudgedCase(
        rubric,
        tuple(messages),
        rubric.levels,
        case.run.input,
        copy.deepcopy(dict(case.run.metadata)),
        case.run.run_id,
        case.run.epoch,
        case.scale.on_offer,
    )


def with_numbers(messages: Messages, settings: JudgeSettings) -> tuple[list[Message], list[str]]:
    """Number the images that can be sent, in the order in which they stand, and list their URLs.

    Those are PNG, JPEG, GIF and WebP images whose data are there, and those that the row of an
    answer names by a URL. Nothing is fetched.
    """
    urls = []
    of_answer = settings.prompt_of in ("answer", "pair")

    def named(block: Any) -> Any:
        url = str(block.get("image"))
        kind = IMAGE_DATA.match(url)
        is_sent = kind is not None or (of_answer and url.startswith(("http://", "https://")))
        if not is_sent or block.get("type") != "image":
            return block
        urls.append(url)
        # Shown as `[image: image 1 (image/png)]`.
        form = f" (image/{kind[1]})" if kind else ""
        return {"type": "image", "filename": f"image {len(urls)}{form}"}

    numbered = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            message = {**message, "content": [*map(named, content)]}  # noqa: PLW2901
        numbered.append(message)
    return numbered, urls


def about_media(messages: Messages, settings: JudgeSettings) -> str:
    """What to say of media that do not reach the judge; nothing where all do, or there are none."""
    count = media_in(messages)
    if not count:
        return ""
    if not settings.sends_images:
        return (
            "the judge gets only text, and placeholders such as [image: image/png] for media. To "
            "send images, set `images: send` in the judge's section."
        )
    _, images = with_numbers(messages, settings)
    if count == len(images):
        return ""
    return (
        "the judge gets PNG, JPEG, GIF and WebP images whose data are in the text, and "
        "placeholders for other media, such as images with a URL."
    )


_NO_IMAGES = (
    "The call had images, which not every model accepts. To name the images instead of sending "
    "them, set `images: describe` in the judge's section."
)


class JudgeResponse(Response):
    """The judge's answer but for its score, whose range depends on the scale."""

    reasoning: str
    score: Any


class JudgeText(JudgeResponse, TextResponse):
    """The judge's answer as a text, which says why, and in which a pattern finds the score."""


@frozen
class PromptJudge(SuiteJudge):
    """The judge that a config describes by a model and a prompt.

    It sees the rubric, the scale and the whole transcript, and nothing of how the case was made;
    the agent's reasoning and images where its settings say so. With a `score_map` it answers with
    one of its values. A score is never coerced, so that no verdict is invented.
    """

    template: Template
    instruction: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over model, prompt and parameters; not where and how fast the model is asked."""
        settings = self.settings
        parts = settings.parts
        parts |= {"prompt": self.template.source, "instruction": self.instruction}
        # A judge without it is the same as before there was such a setting.
        if settings.sends_images:
            parts["images"] = "send"
        if settings.stage.params:
            parts["params"] = settings.stage.params
        parts |= settings.orders
        for key in ("score_map", "verdict"):
            if value := getattr(settings.section, key):
                parts[key] = value
        return json_digest(parts)

    @property
    def prompt(self) -> str:
        """The template's text, and the system prompt where the config sets one, under names."""
        text, system_prompt = self.template.source, self.settings.stage.system_prompt
        if not system_prompt:
            return text
        return f"[prompt]\n{text}\n\n[system_prompt]\n{system_prompt}"

    async def __call__(self, case: Case, calls: JudgeCalls) -> Verdict:
        """Ask the model about a case; raises `Unscored` where no score on offer comes back."""
        settings, template = self.settings, self.template
        turns: Messages = case.messages
        images: list[str] = []
        if settings.sends_images:
            turns, images = with_numbers(case.messages, settings)
        values = {
            "instruction": self.instruction,
            **answer_values(turns, template),
            **self.question(case.rubric),
        }
        if "transcript" in template.variables:
            values["transcript"] = render_transcript(turns, show_reasoning=settings.show_reasoning)
        stage = Stage(settings.stage, template, calls.complete)
        try:
            answer = (await stage.ask(values, self.shape(case.rubric), images)).parsed
        except Unscored as trouble:
            if trouble.outcome == "model_error" and images:
                trouble.advice = f"{_NO_IMAGES} {trouble.advice}".strip()
            verdicts = settings.section.score_map or case.scale.on_offer
            *_, word = re.findall(r"\w+", trouble.answer) or ("",)
            if settings.section.verdict and word.casefold() not in str(verdicts).casefold():
                trouble.reason = f"the answer ends in {shown(word)}, which is not a verdict"
            raise
        return self.verdict(answer, case.rubric)

    @property
    def names(self) -> Mapping[Said, str] | None:
        """What its map calls the scores; None without a map."""
        score_map = self.settings.section.score_map
        if score_map is None:
            return None
        names = grouped((score, key) for key, score in score_map.items())
        return {score: " or ".join(keys) for score, keys in names.items()}

    def question(self, rubric: Rubric) -> Json:
        """What prompts say of a rubric, by their variables."""
        return {
            "rubric_id": rubric.id,
            "rubric": with_scale(rubric.instructions, rubric.scale, self.template, self.names),
            **scale_values(rubric.scale, self.names),
        }

    def shape(self, rubric: Rubric) -> type[Response]:
        """The shape of an answer about a rubric."""
        section, scores = self.settings.section, rubric.scale.on_offer
        keys: tuple[str, ...] | None = None
        if section.score_map is not None:
            keys = tuple(key for key, score in section.score_map.items() if score in scores)
            if not keys:
                offered = ", ".join(map(str, scores))
                raise Unscored(
                    "input_error",
                    stage=JUDGE.name,
                    cause=f"`score_map` has no value for any score of this rubric ({offered}).",
                )
        return judge_response(scores, keys, section.verdict)

    def verdict(self, answer: Any, rubric: Rubric) -> Verdict:
        """The verdict on a rubric that an answer of its shape holds."""
        del rubric
        score, score_map = answer.score, self.settings.section.score_map
        if score_map is not None:
            score = score_map[key_of(score)]
        return Verdict(coded(score), answer.reasoning.strip())


class TogetherResponse(Response):
    """An answer with a verdict under the id of each rubric: a field for each, with what is wrong
    where it is none, and None where it is missing.
    """

    # Asked for are all.
    model_config = ConfigDict(
        json_schema_extra=lambda schema: schema.update(
            additionalProperties=False, required=[*schema["properties"]]
        )
    )

    @model_validator(mode="after")
    def _has_a_verdict(self) -> TogetherResponse:
        if not any(isinstance(entry, Response) for entry in vars(self).values()):
            raise ValueError("must have reasoning and score under the id of each rubric")
        return self


def _kept(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """A verdict, or what is wrong with it."""
    try:
        return None if value is None else handler(value)
    except ValidationError as error:
        return error


def _missing() -> None:
    """What stands for a verdict that is not there; a value would be a part of the schema."""


@cache
def _shape(entries: tuple[tuple[str, type[Response]], ...]) -> type[TogetherResponse]:
    """The shape of an answer with a verdict for each rubric id."""
    fields: Json = {}
    for number, (rubric_id, entry) in enumerate(entries):
        # In place of references, which not every server takes.
        schema = WithJsonSchema(entry.model_json_schema())
        kind = Annotated[entry, WrapValidator(_kept), schema]  # type: ignore[valid-type]
        fields[f"rubric_{number}"] = (kind, Field(default_factory=_missing, alias=rubric_id))
    return create_model("TogetherResponse", __base__=TogetherResponse, **fields)


@frozen
class TogetherPrompt(PromptJudge):
    """A prompt that names all rubrics, and whose answer has a verdict on each."""

    @property
    def prompt(self) -> str:
        """The prompt of a judge, with the rubrics that are in it."""
        shown_prompt = PromptJudge.prompt.__get__(self)
        return f"{shown_prompt}\n\n[rubrics]\n{self._rubrics_text}"

    @property
    def _rubrics_text(self) -> str:
        """All rubrics, each below its id in quotes, with its levels."""
        blocks = []
        for rubric in self.settings.rubrics:
            text = with_scale(rubric.instructions, rubric.scale, self.template, self.names)
            name = json.dumps(rubric.id, ensure_ascii=False)
            blocks.append(f"{name}:\n{indent(text, '  ')}")
        return "\n\n".join(blocks)

    def question(self, rubric: Rubric) -> Json:
        """What prompts say of the rubrics."""
        del rubric
        return {"rubrics": self._rubrics_text}

    def shape(self, rubric: Rubric) -> type[Response]:
        """The shape of an answer about all rubrics."""
        del rubric
        entries = [(each.id, PromptJudge.shape(self, each)) for each in self.settings.rubrics]
        return _shape(tuple(entries))

    def verdict(self, answer: Any, rubric: Rubric) -> Verdict:
        """The verdict on a rubric; raises `Unscored` where the answer has none."""
        number = [each.id for each in self.settings.rubrics].index(rubric.id)
        entry = getattr(answer, f"rubric_{number}")
        if isinstance(entry, Response):
            return PromptJudge.verdict(self, entry, rubric)
        problem = "the verdict is missing."
        if entry is not None:
            problem = explain(entry, rubric.id, cut_off=False)
        # Others do not end alike.
        raise Unscored(
            "invalid_response",
            stage=JUDGE.name,
            cause=f"{self.label} gave no usable verdict on {shown(rubric.id)}: {problem}",
            advice=OTHERS_STAND,
            happened="the judge gave no verdict",
            alone=True,
        )


def _build(settings: JudgeSettings, mode: Mode, instruction: str) -> PromptJudge:
    path = settings.stage.prompt_path
    stage = TOGETHER if settings.rubrics else JUDGE
    template = load_template(
        stage.name, mode=mode, objective="fail", prompt_path=path, of=settings.prompt_of
    )
    kind = TogetherPrompt if settings.rubrics else PromptJudge
    return kind(settings, template, instruction)


PROMPT = JudgeKind(key=DEFAULT_JUDGE, build=_build)


@cache
def judge_response(
    scores: tuple[Said, ...], keys: tuple[str, ...] | None = None, pattern: str | None = None
) -> type[JudgeResponse]:
    """The shape of an answer on this scale, or with a map's `keys` in place of scores; with a
    `pattern` that of a text in which it finds the score.

    A score of another value or type does not validate.
    """
    values = scores if keys is None else tuple(map(value_of, keys))
    if pattern is None:
        offered = value_on_offer(values)
        return create_model("ScoredJudgeResponse", __base__=JudgeResponse, score=(offered, ...))
    words = {key_of(value).casefold(): value for value in values}

    def found(text: str) -> object:
        matches = {(match[1] or "").casefold() for match in re.finditer(pattern, text)}
        if len(matches) != 1 or not matches <= words.keys():
            raise ValueError(f"the text has to hold one verdict, one of {', '.join(words)}")
        return words[matches.pop()]

    in_text = Annotated[Any, BeforeValidator(found)]
    return create_model("JudgeText", __base__=JudgeText, score=(in_text, ...))
