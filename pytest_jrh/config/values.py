"""Values of a config that pydantic's own types do not describe: how they are checked, and the same
for editors.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from pytest_jrh.core.documents import shown
from pytest_jrh.core.model import LONGEST_SCALE
from pytest_jrh.core.sections import OUR_ERROR, ConfigSection, Takes

POINTER = "a JSON pointer such as /task/id"


def one_is_a_list(value: object) -> object:
    """Read one item of a list that stands alone."""
    return [value] if isinstance(value, dict | str) else value


def _or_one(schema: dict[str, Any]) -> None:
    """Say of the schema of a list that one of its items may stand there alone."""
    items = schema.pop("items")
    schema["anyOf"] = [{"type": schema.pop("type"), "items": items}, items]


SEVERAL = Field(strict=False, json_schema_extra=_or_one)
"""A list, of which one item may stand alone."""
SCORES = 'integers, as a list or as text like "1,3"'
SCORES_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"type": "integer"},
            {"type": "string", "pattern": r"^\s*[-+]?\d+\s*(,\s*[-+]?\d+\s*)*$"},
            {
                "type": "array",
                "items": {"type": ["integer", "string"], "pattern": r"^\s*[-+]?\d+\s*$"},
            },
        ],
    }
)
SCALE = "binary, ordinal, or the lowest and the highest score, such as [1, 5]"
SCALE_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"enum": ["binary", "ordinal"]},
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {"type": "integer"},
            },
        ],
    }
)
FROZEN = "true (the JSONL in output.dir), false, or the path of a JSONL file"
FROZEN_JSON = WithJsonSchema(
    {
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"\S"}],
    }
)


def score_targets(value: object) -> tuple[int, ...]:
    """Read a list of scores, or text like "0, 2 ,3": sorted, each once."""
    parts = value.split(",") if isinstance(value, str) else value
    items = parts if isinstance(parts, list) else [parts]
    scores = set()
    for item in items:
        try:
            scores.add(int(item) if isinstance(item, str) else _whole(item))
        except ValueError:
            raise PydanticCustomError(
                OUR_ERROR,
                "got {item}; must be integers, as a list or as text like {example}",
                {"item": shown(item), "example": '"1,3"'},
            ) from None
    return tuple(sorted(scores))


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError


def scale(value: object) -> Literal["binary", "ordinal"] | tuple[int, int]:
    """Read a kind of scale, or its ends, lowest first."""
    if value in ("binary", "ordinal"):
        return value
    if not isinstance(value, list) or len(value) != len(("lowest", "highest")):
        raise PydanticCustomError(
            OUR_ERROR, "got {value}; must be " + SCALE, {"value": shown(value)}
        )
    ends = []
    for end in value:
        is_text = isinstance(end, str) and re.fullmatch(r"\s*[-+]?\d{1,9}\s*", end, re.ASCII)
        if not is_text and (isinstance(end, bool) or not isinstance(end, int)):
            raise PydanticCustomError(
                OUR_ERROR, "got {value}; must be an integer", {"value": shown(end)}
            )
        ends.append(int(end))
    low, high = ends
    if not 0 < high - low < LONGEST_SCALE:
        raise PydanticCustomError(
            OUR_ERROR,
            "the scores go from {low} to {high}; must be 2 to {most} levels, lowest first",
            {"low": low, "high": high, "most": LONGEST_SCALE},
        )
    return low, high


def frozen(value: object) -> str | bool:
    """Read true, false or a path."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise PydanticCustomError(
        OUR_ERROR,
        "got {value}; must be true (the JSONL in output.dir), false, or the path of a JSONL file",
        {"value": shown(value)},
    )


MAX_SAMPLE_MB = 256
"""How much one sample of a log may be when unpacked, in MB, where the config says nothing."""

_POINTER = Annotated[str, Field(pattern="^(/|$)"), Takes(POINTER)]
Pointer: TypeAlias = _POINTER | None
Pointers: TypeAlias = (
    Annotated[
        tuple[_POINTER, ...],
        BeforeValidator(one_is_a_list),
        SEVERAL,
        Field(min_length=1),
        Takes(f"{POINTER}, or a list of them"),
    ]
    | None
)


class InputFormat(ConfigSection):
    """Where the parts of a conversation are in its JSON, as JSON pointers."""

    messages: Pointer = None
    """The list of messages, in OpenAI's or Anthropic's form. Left out: /messages."""
    answer: Pointer = None
    """A message that comes after these, such as the answer beside a request. Left out: where there
    are no /messages but /request/messages, /response/choices/0/message, if it is there."""
    system: Pointer = None
    """The system prompt, where it stands beside the messages. Left out: /system, if it is there."""
    id: Pointers = None
    """What makes the id: one value, or several joined by hyphens. Left out: /id, else a digest of
    the messages."""
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
