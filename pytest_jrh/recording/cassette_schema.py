"""What a cassette must hold to be used: a file on disk is hostile until it has been looked at."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_jrh.llm.calls import Answer, SchemaSent
from pytest_jrh.models import Usage
from pytest_jrh.recording.cassette_text import Malformed, line_of

FORMAT = 1
_LONGEST_VALUE = 60
# What a float holds exactly: costs and means are made of these.
_MOST = 2**53
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Tokens = Annotated[int, Field(le=_MOST)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Asked(_Part):
    model: str = ""
    parameters: dict[str, bool | int | float | str | None] = {}
    # `schema` is a method of pydantic's models.
    shape: str = Field(alias="schema", default="")
    messages: list[str] = []
    repeat: Annotated[int, Field(ge=1)] = 1


class _Usage(_Part):
    input_tokens: _Tokens
    output_tokens: _Tokens


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
    cost: Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)] | None
    left_out: list[str] = []
    schema_sent: SchemaSent | None = None
    interactions: _Count

    def answer(self) -> Answer:
        """What the provider returned."""
        usage = Usage(max(self.usage.input_tokens, 0), max(self.usage.output_tokens, 0))
        left_out = frozenset(self.left_out)
        return Answer(
            self.text,
            self.finish_reason,
            self.refusal,
            usage,
            self.cost,
            left_out,
            self.schema_sent,
        )

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


def check(data: object, text: str, *, interactions: bool) -> tuple[bool, list[StoredCall]]:
    """Check a cassette's data: whether it is complete, and its calls; raises `Malformed` with the
    first mistake.

    `text` is what it was read from, to say where a mistake is. With `interactions` there must be as
    many as the calls say.
    """
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "literal_error" and first["loc"][-1] == "format":
            raise Malformed(f"its format is {first['input']!r}; must be {FORMAT}") from None
        path = tuple("schema" if part == "shape" else part for part in first["loc"])
        raise Malformed(_said(first), line=line_of(text, path), key=_dotted(path)) from None
    calls = file.metadata.jrh.calls
    seen: set[str] = set()
    for place, call in enumerate(calls):
        path = ("metadata", "jrh", "calls", place, "fingerprint")
        if call.fingerprint in seen:
            raise Malformed("duplicate fingerprint", line=line_of(text, path), key=_dotted(path))
        seen.add(call.fingerprint)
    wanted, there = sum(call.interactions for call in calls), len(file.interactions or ())
    if interactions and wanted != there:
        raise Malformed(
            f"the calls have {wanted} interactions, but the file has {there}", key="interactions"
        )
    return file.metadata.jrh.complete, calls


def _said(error: Any) -> str:
    if error["type"] == "missing":
        return "missing"
    value = error["input"]
    shown = (
        f"a {type(value).__name__}"
        if isinstance(value, dict | list)
        else repr(value)[:_LONGEST_VALUE]
    )
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, got {shown}"


def _dotted(path: tuple[int | str, ...]) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in path
    ).removeprefix(".")
