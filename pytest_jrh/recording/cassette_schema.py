"""What a cassette must hold to be used: a file on disk is hostile until it has been looked at.

Reading YAML and checking what was read are apart, so that the head can be read in another way.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_jrh.llm.calls import Answer, SchemaSent
from pytest_jrh.models import Usage

FORMAT = 1
MAX_DEPTH = 100
# Each level of nesting takes one of these or more indentation; libyaml's composer crashes at 20,000 levels or more.
_NESTING = "[{-?"
_MANY = 3_000
_LONGEST_VALUE = 60
_Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Asked(_Part):
    model: str = ""
    parameters: dict[str, bool | int | float | str | None] = {}
    # `schema` is a method of pydantic's models.
    shape: str = Field(alias="schema", default="")
    messages: list[str] = []


class _Usage(_Part):
    input_tokens: int
    output_tokens: int


class StoredCall(_Part):
    """One finished call of the head."""

    stage: str
    fingerprint: str
    scrubbed_fingerprint: str | None = None
    sequence: _Count
    asked: _Asked
    text: str
    finish_reason: str
    refusal: str | None
    usage: _Usage
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    left_out: list[str] = []
    schema_sent: SchemaSent | None = None
    interactions: _Count

    def answer(self) -> Answer:
        """What the provider returned."""
        usage = Usage(max(self.usage.input_tokens, 0), max(self.usage.output_tokens, 0))
        left_out = frozenset(self.left_out)
        return Answer(self.text, self.finish_reason, self.refusal, usage, self.cost, left_out, self.schema_sent)

    def parts(self) -> dict[str, Any]:
        """The digests of what was asked."""
        return self.asked.model_dump(by_alias=True, exclude_unset=True)


class _Ours(_Part):
    format: Literal[1]
    complete: bool
    calls: list[StoredCall]


class _Metadata(_Part):
    jrh: _Ours


class _Request(_Part):
    method: str
    uri: str
    body: str | None
    headers: dict[str, list[str]]


class _Status(_Part):
    code: int
    message: str | None = None


class _Body(_Part):
    string: str | bytes


class _Response(_Part):
    status: _Status
    headers: dict[str, list[str]]
    body: _Body


class _Interaction(_Part):
    request: _Request
    response: _Response


class _File(_Part):
    metadata: _Metadata
    interactions: list[_Interaction] | None = None


class Malformed(Exception):
    """What is wrong with a file: `why`, and where in it, as far as that is known."""

    def __init__(self, why: str, *, line: int | None = None, key: str | None = None) -> None:
        self.why = why
        self.line = line
        self.key = key
        super().__init__(why)


def read_yaml(text: str) -> object:
    """Parse one YAML document of plain data; raises `Malformed`."""
    try:
        if _may_be_deep(text):
            _refuse_deep(text)
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader, in C where there is one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Malformed(" ".join(str(error).split()), line=None if mark is None else mark.line + 1) from error
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        # What the constructor of dates and numbers raises for `2001-99-99`, `0b` or a number of 5,000 digits.
        raise Malformed(f"it holds a value that cannot be read ({error})") from error


def check(data: object, text: str, *, interactions: bool) -> tuple[bool, list[StoredCall]]:
    """Check a cassette's data: whether it is complete, and its calls; raises `Malformed` with the first mistake.

    `text` is what it was read from, to say where a mistake is. With `interactions` there must be as many as the calls
    say.
    """
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "literal_error" and first["loc"][-1] == "format":
            raise Malformed(f"its format is {first['input']!r}, and this version reads {FORMAT}") from None
        path = tuple("schema" if part == "shape" else part for part in first["loc"])
        raise Malformed(_said(first), line=_line_of(text, path), key=_dotted(path)) from None
    calls = file.metadata.jrh.calls
    seen: set[str] = set()
    for place, call in enumerate(calls):
        path = ("metadata", "jrh", "calls", place, "fingerprint")
        if call.fingerprint in seen:
            raise Malformed("duplicate fingerprint", line=_line_of(text, path), key=_dotted(path))
        seen.add(call.fingerprint)
    wanted, there = sum(call.interactions for call in calls), len(file.interactions or ())
    if interactions and wanted != there:
        raise Malformed(f"the calls have {wanted} interactions, but the file holds {there}", key="interactions")
    return file.metadata.jrh.complete, calls


@cache
def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _may_be_deep(text: str) -> bool:
    """Whether a closer look is worth its time: too many marks of nesting, deep indentation, or merged aliases."""
    return (
        sum(map(text.count, _NESTING)) > _MANY
        or " " * (_MANY // 10) in text
        or ("<<" in text and "&" in text and "*" in text)
    )


def _refuse_deep(text: str) -> None:
    depth = 0
    merging = "<<" in text
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed(f"it is nested more than {MAX_DEPTH} levels deep", line=_line(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif merging and isinstance(event, yaml.AliasEvent):
            # Merged into each other, aliases of a few lines are gigabytes of data.
            raise Malformed("aliases and `<<` are not supported together", line=_line(event))


def _line(event: Any) -> int | None:
    return None if event.start_mark is None else event.start_mark.line + 1


def _said(error: Any) -> str:
    if error["type"] == "missing":
        return "missing"
    value = error["input"]
    shown = f"a {type(value).__name__}" if isinstance(value, dict | list) else repr(value)[:_LONGEST_VALUE]
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, got {shown}"


def _dotted(path: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _line_of(text: str, path: tuple[int | str, ...]) -> int | None:
    """The line of the node at the path, or of the nearest one around it."""
    node = yaml.compose(text, Loader=_loader())
    line = None
    for part in path:
        inner: Any = None
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if getattr(key, "value", None) == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            inner = node.value[part]
        if inner is None:
            break
        node = inner
        line = node.start_mark.line + 1
    return line
