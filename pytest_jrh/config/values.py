"""Values of a config that pydantic's own types do not describe: how they are checked, and the same
for editors.
"""

from __future__ import annotations

from typing import Any

from pydantic import WithJsonSchema
from pydantic_core import PydanticCustomError

from pytest_jrh.cases.tests import BASES
from pytest_jrh.core.documents import shown
from pytest_jrh.core.sections import OUR_ERROR

NAMES = "the dotted name of a function, or a list of them"
NAMES_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "pattern": r"\S"},
            {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
        ],
    }
)
PATHS = "a file, a folder, a glob, or a list of these"
POINTER = "a JSON pointer such as /task/id"
POINTERS = "a JSON pointer such as /task/id, or a list of them"
POINTER_JSON = WithJsonSchema({"type": "string", "pattern": "^(/|$)"})
POINTERS_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "pattern": "^(/|$)"},
            {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^(/|$)"}},
        ],
    }
)
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
FROZEN = "true (the JSONL in output.dir), false, or the path of a JSONL file"
FROZEN_JSON = WithJsonSchema(
    {
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"\S"}],
    }
)
_FRACTION_JSON: dict[str, Any] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
ACCURACY = "a number from 0 to 1, or a mapping of test names to such numbers"
ACCURACY_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            {
                "type": "object",
                "properties": dict.fromkeys(BASES, _FRACTION_JSON),
                "additionalProperties": False,
            },
        ],
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


def accuracy(value: object) -> float | dict[str, float]:
    """Read one threshold for all tests, or one for each."""
    if isinstance(value, dict):
        if unknown := [key for key in value if key not in BASES]:
            raise PydanticCustomError(
                OUR_ERROR,
                "got a threshold for {name}; the tests are {tests}",
                {"name": shown(unknown[0]), "tests": " and ".join(BASES)},
            )
        return {name: _fraction(share) for name, share in value.items() if share is not None}
    return _fraction(value)


def _fraction(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise PydanticCustomError(
        OUR_ERROR,
        "got {value}; must be a number from 0 to 1, or a mapping of test names to such numbers",
        {"value": shown(value)},
    )


def names(value: object) -> tuple[str, ...]:
    """Read the dotted names of functions, one or several."""
    items: list[Any] = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise PydanticCustomError(
                OUR_ERROR,
                "got {item}; must be the dotted name of a function, or a list of them (in the "
                "order they run)",
                {"item": shown(item)},
            )
    return tuple(item.strip() for item in items)


def paths(value: object) -> tuple[str, ...]:
    """Read one path or several."""
    items: list[Any] = value if isinstance(value, list) else [value]
    for item in items or [""]:
        if not isinstance(item, str) or not item.strip():
            raise PydanticCustomError(
                OUR_ERROR, "got {item}; must be " + PATHS, {"item": shown(item)}
            )
    return tuple(item.strip() for item in items)


def pointer(value: object) -> str:
    """Read a JSON pointer (RFC 6901); the empty one is the whole value."""
    if isinstance(value, str) and (value == "" or value.startswith("/")):
        return value
    hint = f"; /{value} would be one" if isinstance(value, str) and value.isidentifier() else ""
    raise PydanticCustomError(
        OUR_ERROR, "got {item}; must be " + POINTER + "{hint}", {"item": shown(value), "hint": hint}
    )


def pointers(value: object) -> tuple[str, ...]:
    """Read one JSON pointer or several."""
    items = value if isinstance(value, list | tuple) and value else [value]
    return tuple(map(pointer, items))


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
