"""From a parsed file to a `Config`: pydantic's errors in our own words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pytest_jrh.config import rand
from pytest_jrh.config.schema import Config
from pytest_jrh.core.documents import (
    Document,
    KeyPath,
    Mistake,
    dotted,
    listed,
    printable,
    received,
    shown,
)
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.sections import ConfigSection, StageSection, takes
from pytest_jrh.core.text import nearest_hint

# Text even where YAML reads a number: names and time stamps.
_AS_WRITTEN: tuple[KeyPath, ...] = (
    ("admin", "time_stamp"),
    (rand.AGENT, "target_rubric_ids"),
    ("cases", "rubrics"),
)
# More would be no help.
_MOST_HOMES = 2
_KEY_WORDS = re.compile(r"key|token|secret|password|auth", re.IGNORECASE)
# How pydantic's place of a key of a mapping ends.
_OF_A_KEY = "[key]"


def fit(document: Document) -> tuple[Config, rand.Converted]:
    """Return the config, and how it was converted; raises InputError with all that does not fit."""
    if not isinstance(document.data, dict):
        message = f"got {shown(document.data)}; must be a mapping with the section `suite`"
        raise InputError([*document.problems, Problem(message, document.file, 1)])
    converted = rand.convert(_as_written(document))
    for key, other in converted.doubled.items():
        message = f"{dotted(other)} says the same; keep one of them"
        converted.mistakes.append(Mistake(key, message))
    config = None
    try:
        config = Config.model_validate(converted.data)
    except ValidationError as error:
        converted.mistakes += misfits(error, Config, (), converted.name)
    problems = [
        *document.problems,
        *document.problems_of(converted.mistakes, converted.written_key),
    ]
    if config is None or problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return config, converted


def misfits(
    error: ValidationError,
    root: type[ConfigSection],
    place: KeyPath,
    name: Callable[[KeyPath], str] = dotted,
) -> Iterator[Mistake]:
    """All that does not fit of a section `root` at a place; `name` is what the file calls a key."""
    for detail in error.errors(include_url=False, include_context=False):
        path, value = detail["loc"], detail["input"]
        is_key = path[-1:] == (_OF_A_KEY,)
        if is_key:
            path = path[:-1]
        section, field = _lookup(root, path)
        hint = None
        match detail["type"]:
            case "extra_forbidden":
                message, hint = _unknown_key(root, place, path, name)
            case "missing":
                message = f"is missing; must be {_says(field) or 'given'}"
            case "model_type" | "model_attributes_type" | "dict_type" | "dataclass_type":
                expected = f"a mapping with the keys {listed(section.model_fields)}"
                if issubclass(section, StageSection) and isinstance(value, str):
                    hint = f"write {path[-1]}: {{model: {shown(value)}}}"
                elif field is not None and not _section_of(field.annotation):
                    expected = _says(field) or "a mapping"
                message = received(value, expected)
            case "value_error" if isinstance(value, list):
                message = f"got {printable(json.dumps(value))}; must be {_says(field)}"
            case _:
                expected = _expected(path, section, field, is_key=is_key)
                message, hint = received(value, expected), _hint(value, field, expected)
        yield Mistake((*place, *path), message, hint)


def _as_written(document: Document) -> dict[str, Any]:
    """Copy the data, so that names and time stamps are text even where YAML reads a number."""
    data: dict[str, Any] = _copied(document.data)
    for path, text in document.texts.items():
        if any(path[: len(prefix)] == prefix for prefix in _AS_WRITTEN):
            parent: Any = data
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = text
    return data


def _copied(value: Any) -> Any:
    """A copy without shared parts: YAML's aliases give one object in several places."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _unknown_key(
    root: type[ConfigSection], place: KeyPath, path: KeyPath, name: Callable[[KeyPath], str]
) -> tuple[str, str | None]:
    """The message about a key that is not known there, and where it belongs."""
    *around, key = path
    section, _ = _lookup(root, around)
    hint = nearest_hint(str(key), section.model_fields, "key")
    homes = [home for home in _paths_to(str(key), root, ()) if home != path]
    if 0 < len(homes) <= _MOST_HOMES:
        hint = f"it belongs to {' or '.join(map(name, homes))}"
    elif issubclass(section, StageSection) and _KEY_WORDS.search(str(key)):
        hint = "keys come from the environment, such as OPENAI_API_KEY; no config holds one"
    where = "the sections of a config are"
    if around:
        where = f"the keys of {name((*place, *around))} are"
    return f"unknown key; {where} {listed(section.model_fields)}", hint


def _expected(
    path: KeyPath, section: type[ConfigSection], field: FieldInfo | None, *, is_key: bool
) -> str:
    """What may stand at a path: in a field, in a mapping or a list that it holds."""
    if isinstance(path[-1], int):
        return " or ".join(_choices(field)) or (field and takes(field.annotation)) or "text"
    if field is not None and _is_mapping(field) and path[-1] not in section.model_fields:
        key_type, value_type = get_args(field.annotation)
        return takes(key_type if is_key else value_type) or "text"
    return _says(field) or "another value"


def _hint(value: object, field: FieldInfo | None, expected: str) -> str | None:
    if isinstance(value, str):
        if close := nearest_hint(value, _choices(field)):
            return close
        if value.strip().lower() in ("true", "false") and "true or false" in expected:
            return f"write {value.strip().lower()} without quotes; in quotes it is text"
        return f"write [{printable(value)}]" if expected.startswith("a list") else None
    is_scalar = isinstance(value, bool | int | float)
    return f'write "{shown(value)}" in quotes' if is_scalar and expected == "text" else None


def _lookup(
    root: type[ConfigSection], path: Iterable[str | int]
) -> tuple[type[ConfigSection], FieldInfo | None]:
    """Find the section class at (or around) a path, and the field that the path ends in."""
    section, field = root, None
    for part in path:
        if isinstance(part, str) and part in section.model_fields:
            field = section.model_fields[part]
            section = _section_of(field.annotation) or section
        elif isinstance(part, str) and not (field is not None and _is_mapping(field)):
            break
    return section, field


def _is_mapping(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is dict


def _section_of(annotation: Any) -> type[ConfigSection] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation if issubclass(annotation, ConfigSection) else None
    for part in get_args(annotation):
        if section := _section_of(part):
            return section
    return None


def _says(field: FieldInfo | None) -> str | None:
    return field and takes(field.annotation, field.metadata)


def _choices(field: FieldInfo | None) -> list[str]:
    return list(_texts_of(field.annotation)) if field is not None else []


def _texts_of(annotation: Any) -> Iterator[str]:
    for part in get_args(annotation):
        if get_origin(annotation) is Literal and isinstance(part, str):
            yield part
        yield from _texts_of(part)


def _paths_to(key: str, section: type[ConfigSection], prefix: KeyPath) -> Iterator[KeyPath]:
    """Where a key belongs that stands in the wrong section."""
    for name, field in section.model_fields.items():
        if name == key:
            yield (*prefix, name)
        inner = _section_of(field.annotation)
        if inner is not None and get_origin(field.annotation) not in (tuple, dict):
            yield from _paths_to(key, inner, (*prefix, name))
