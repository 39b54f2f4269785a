"""From a parsed file to a `Config`: pydantic's errors in our own words."""

from __future__ import annotations

import copy
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pytest_jrh.cases.tests import TESTS
from pytest_jrh.config import rand, removed
from pytest_jrh.config.schema import Config
from pytest_jrh.core.documents import Findings, KeyPath, dotted, listed, printable, received, shown
from pytest_jrh.core.errors import InputError, Problem
from pytest_jrh.core.sections import (
    OUR_ERROR,
    ConfigSection,
    JudgeStage,
    StageSection,
    takes,
)
from pytest_jrh.core.text import is_nearest, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from pytest_jrh.core.documents import Document


# Text even where YAML reads a number: names and time stamps.
_AS_WRITTEN: tuple[KeyPath, ...] = (
    ("admin", "time_stamp"),
    (rand.AGENT, "target_rubric_ids"),
    ("output", "stamp"),
    ("cases", "rubrics"),
)
# The names of RAND's tests that are not agentic; some exist in numbered or named variants.
_RAND_TESTS = (
    "answer_ambiguity",
    "format_",
    "label_flip",
    "semantic_paraphrase",
    "stochastic_stability",
    "synthetic_ordinal",
    "verbosity_bias",
)
# More would be no help.
_MOST_HOMES = 2
_KEY_WORDS = re.compile(r"key|token|secret|password|auth", re.IGNORECASE)


class Fitted(NamedTuple):
    """A config, what is found in it, and its keys without meaning here; `is_rands` says that it is
    in RAND's words, or in ours of before.
    """

    config: Config
    findings: Findings
    unused: list[KeyPath]
    is_rands: bool
    in_our_words: dict[str, Any]


def fit(document: Document) -> Fitted:
    """Return the config; raises InputError with all that does not fit."""
    findings = Findings(document, list(document.problems))
    if not isinstance(document.data, dict):
        message = f"got {shown(document.data)}; must be a mapping with the section `suite`"
        raise InputError([*findings.problems, Problem(message, document.file, 1)])
    as_written = _as_written(document)
    converted = rand.convert(as_written)
    for mistake in converted.mistakes:
        _report_in_rands(mistake, findings)
    is_rands = not as_written.keys().isdisjoint(rand.SECTIONS)
    findings.written = partial(rand.written_key, written=converted.written, is_rands=is_rands)
    try:
        config = Config.model_validate(converted.data)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False):
            _report(detail, findings)
        config = None
    if config is None or findings.problems:
        raise InputError(sorted(findings.problems, key=lambda problem: problem.line or 0))
    return Fitted(config, findings, converted.unused, is_rands, converted.data)


def _report_in_rands(mistake: rand.Mistake, findings: Findings) -> None:
    """Report what is in nobody's words, at the place where it was written."""
    path, key = mistake.path, dotted(mistake.path)
    hint: str | None = mistake.hint or None
    message = mistake.message
    if mistake.expected:
        message = received(mistake.value, mistake.expected)
        hint = hint or is_nearest(nearest(str(mistake.value), mistake.names))
    elif instead := removed.KEYS.get(key):
        message = removed.said(instead)
    elif mistake.names:
        message = f"unknown key; the keys of {dotted(path[:-1])} are {listed(mistake.names)}"
        hint = is_nearest(nearest(str(path[-1]), mistake.names), "key")
        if 0 < len(mistake.homes) <= _MOST_HOMES:
            hint = f"it belongs to {' or '.join(map(dotted, mistake.homes))}"
    findings.add(path, message, hint)


def _as_written(document: Document) -> dict[str, Any]:
    """Copy the data, so that names and time stamps are text even where YAML reads a number."""
    data: dict[str, Any] = copy.deepcopy(document.data)
    for path, text in document.texts.items():
        if any(path[: len(prefix)] == prefix for prefix in _AS_WRITTEN):
            parent: Any = data
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = text
    return data


def _report(detail: ErrorDetails, findings: Findings) -> None:
    path: KeyPath = detail["loc"]
    value = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            _unknown_key(path, findings)
        case "missing":
            _, field = _lookup(path)
            findings.add(path, f"is missing; must be {_says(field) or 'given'}")
        case "model_type" | "model_attributes_type" | "dict_type" | "dataclass_type":
            _not_a_section(path, value, findings)
        case kind if kind == OUR_ERROR:
            findings.add(path, detail["msg"])
        case "literal_error" if instead := removed.KEYS.get(f"{dotted(path)}: {value}"):
            findings.add(path, f"{value} {removed.said(instead)}")
        case _:
            _bad_value(path, value, findings)


def _unknown_key(path: KeyPath, findings: Findings) -> None:
    section, _ = _lookup(path[:-1])
    if instead := _removed(path, section):
        findings.add(path, removed.said(instead))
        return
    names = list(section.model_fields)
    key = str(path[-1])
    match_ = nearest(key, names)
    hint = is_nearest(match_, "key")
    if homes := [home for home in _homes(key) if home != path]:
        hint = f"it belongs to {' or '.join(dotted(findings.written(home)) for home in homes)}"
    elif issubclass(section, StageSection) and _KEY_WORDS.search(key):
        hint = "keys come from the environment, such as OPENAI_API_KEY; a config never holds one"
    section_path = dotted(findings.written(path[:-1]))
    where = f"the keys of {section_path} are" if path[:-1] else "the sections of a config are"
    findings.add(path, f"unknown key; {where} {listed(names)}", hint)


def _removed(path: KeyPath, section: type[ConfigSection]) -> str | None:
    """What to do instead of a key that was removed."""
    if issubclass(section, JudgeStage):
        return removed.KEYS.get(f"judge.{path[-1]}")
    return removed.KEYS.get(dotted(tuple(part for part in path if isinstance(part, str))))


def _not_a_section(path: KeyPath, value: object, findings: Findings) -> None:
    section, field = _lookup(path)
    if issubclass(section, StageSection) and isinstance(value, str):
        findings.add(
            path,
            f"got {shown(value)}; must be a mapping with the keys {listed(section.model_fields)}",
            f"write {path[-1]}: {{model: {shown(value)}}}",
        )
    elif field is None or _section_of(field.annotation):
        expected = f"a mapping with the keys {listed(section.model_fields)}"
        findings.add(path, received(value, expected))
    else:
        findings.add(path, received(value, _says(field) or "a mapping"))


# How pydantic's place of a key of a mapping ends.
_OF_A_KEY = "[key]"


def _bad_value(path: KeyPath, value: object, findings: Findings) -> None:
    section, field = _lookup(path)
    expected = _says(field) or "another value"
    if (
        field is not None
        and get_origin(field.annotation) is dict
        and path[-1] not in section.model_fields
    ):
        key_type, value_type = get_args(field.annotation)
        expected = takes(value_type) or "text"
        if path[-1] == _OF_A_KEY:
            path, expected = path[:-2], f"{takes(key_type) or 'text'} before each colon"
    choices = _choices(field.annotation if field else None)
    if isinstance(path[-1], int):
        expected = " or ".join(choices) or "text"
    hint = None
    if isinstance(value, str):
        in_quotes = {"true": "true", "false": "false"}.get(value.strip().lower())
        if _of_single_answers(value, choices):
            hint = (
                f"RAND's harness has {printable(value)} for single answers; here only the "
                "agentic ones exist"
            )
        elif match_ := nearest(value, choices):
            hint = f"{match_} is the nearest"
        elif in_quotes and "true or false" in expected:
            hint = f"write {in_quotes} without quotes; in quotes it is text"
        elif expected.startswith("a list"):
            hint = f"write [{printable(value)}]"
    elif expected == "text" and isinstance(value, bool | int | float):
        hint = f'write "{shown(value)}" in quotes'
    findings.add(path, received(value, expected), hint)


def _of_single_answers(value: str, choices: list[str]) -> bool:
    """Whether a value is a test of RAND's harness for single answers."""
    return not set(TESTS).isdisjoint(choices) and value.startswith(_RAND_TESTS)


def _lookup(path: KeyPath) -> tuple[type[ConfigSection], FieldInfo | None]:
    """Find the section class at (or around) a path, and the field that the path ends in."""
    section: type[ConfigSection] = Config
    field: FieldInfo | None = None
    for part in path:
        if isinstance(part, str):
            if part not in section.model_fields:
                break
            field = section.model_fields[part]
        if field is not None:
            section = _section_of(field.annotation) or section
    return section, field


def _section_of(annotation: Any) -> type[ConfigSection] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation if issubclass(annotation, ConfigSection) else None
    for part in get_args(annotation):
        if section := _section_of(part):
            return section
    return None


def _says(field: FieldInfo | None) -> str | None:
    return field and takes(field.annotation, field.metadata)


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [choice for choice in get_args(annotation) if isinstance(choice, str)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _homes(key: str) -> list[KeyPath]:
    """Where a key belongs that stands in the wrong section."""
    homes = list(_paths_to(key, Config, ()))
    return homes if len(homes) <= _MOST_HOMES else []


def _paths_to(key: str, section: type[ConfigSection], prefix: KeyPath) -> Iterator[KeyPath]:
    for name, field in section.model_fields.items():
        if name == key:
            yield (*prefix, name)
        inner = _section_of(field.annotation)
        if inner is not None and get_origin(field.annotation) is not tuple:
            yield from _paths_to(key, inner, (*prefix, name))
