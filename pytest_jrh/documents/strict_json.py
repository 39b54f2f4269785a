"""JSON as the standard has it: what Python's reader lets pass would be lost or changed later."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pytest_jrh.documents.problems import printable
from pytest_jrh.documents.tree import MAX_DEPTH

_BOM = b"\xef\xbb\xbf"


class DamagedError(ValueError):
    """A piece of a file, or an answer, cannot be read; the caller says which."""


def parsed(data: bytes | str) -> Any:
    """The value of a JSON text, in UTF-8 where it is bytes.

    Raises DamagedError, in words that follow a place: for bytes that are not UTF-8, a duplicate
    key, NaN and Infinity, numbers that Python cannot hold, and what is nested too deeply.
    """
    try:
        text = data if isinstance(data, str) else data.removeprefix(_BOM).decode("utf-8")
        return _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise DamagedError(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        what = printable(error.msg[:1].lower() + error.msg[1:])
        raise DamagedError(f"is not valid JSON: {what} at character {error.pos + 1}") from None
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        # Of the hooks below, and of Python for an integer of thousands of digits.
        raise DamagedError(f"is not valid JSON: {printable(str(error))}") from None


def check_depth(value: Any) -> None:
    """Raise DamagedError for a value that is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for value in level for each in _inside(value)]
        if not level:
            return
    raise too_deep()


def too_deep() -> DamagedError:
    """Make the error for a value that is nested too deeply."""
    return DamagedError(f"is nested more than {MAX_DEPTH} levels deep")


def _inside(value: Any) -> list[Any]:
    within = value.values() if isinstance(value, dict) else value
    return [each for each in within if isinstance(each, dict | list)]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"duplicate key {printable(again)!r}")
    return made


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {printable(text, 30)} is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_constant
)
