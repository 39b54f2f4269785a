"""The shape of configs and rubric files as JSON schemas, with which editors complete and check
them.

Generated from `config.schema`, so that there is one truth; the copies in `pytest_jrh/schema/` are
published.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import warnings
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from pytest_jrh.cases.probes import PROBES
from pytest_jrh.config.schema import Config
from pytest_jrh.core.sections import ConfigSection, takes
from pytest_jrh.core.stages import VERIFIER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo
    from pydantic_core import core_schema


CONFIG_SCHEMA = "config.schema.json"
RUBRICS_SCHEMA = "rubrics.schema.json"

_DIALECT = "http://json-schema.org/draft-07/schema#"
# Read as text even where YAML sees a number (`config.fitting`).
_AS_WRITTEN = (("Output", "stamp"), ("CasesSection", "rubrics"))
_TEXT = {"type": "string", "pattern": r"\S"}


def config_schema() -> dict[str, Any]:
    """Describe a config file."""
    with warnings.catch_warnings():
        # Sections' defaults are not shown, so it does not matter that they cannot be shown well.
        warnings.simplefilter("ignore", UserWarning)
        schema = Config.model_json_schema(
            schema_generator=_Generator, ref_template="#/definitions/{model}"
        )
    sections = {name: _section(name, part) for name, part in schema.pop("$defs").items()}
    config = _section("Config", schema)
    _refine(config["properties"], sections)
    return {
        "$schema": _DIALECT,
        "title": "A pytest-jrh suite",
        **config,
        "definitions": dict(sorted(sections.items())),
    }


def rubrics_schema() -> dict[str, Any]:
    """Describe a rubric file."""
    entries = {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/Rubric"}}
    return {
        "$schema": _DIALECT,
        "title": "Rubrics of a pytest-jrh suite",
        "anyOf": [
            entries,
            {"type": "object", "required": ["rubrics"], "properties": {"rubrics": entries}},
        ],
        "definitions": {"Rubric": _rubric(), "ScoreLevel": _score_level()},
    }


def as_text(schema: dict[str, Any]) -> str:
    """Write a schema as it is published."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        """Leave out the defaults of whole sections: each key says its own."""
        return None if isinstance(dft, BaseModel) else super().encode_default(dft)

    def field_title_should_be_set(self, _schema: Any) -> bool:
        """A title would repeat the key."""
        return False

    def str_schema(self, schema: core_schema.StringSchema) -> dict[str, Any]:
        """Text is stripped before it is measured, so that blanks alone are none."""
        text = super().str_schema(schema)
        if text.pop("minLength", None) is not None:
            text["pattern"] = r"\S"
        return text


def _section(name: str, part: dict[str, Any]) -> dict[str, Any]:
    """Say of each key what it is for, and that null is as good as no key."""
    model = _model(name)
    purposes = purposes_of_keys(model)
    required = part.get("required", [])
    properties = {
        key: _described(
            model.model_fields[key], purposes[key], _key(value, optional=key not in required)
        )
        for key, value in part["properties"].items()
    }
    section: dict[str, Any] = {"type": "object", "description": inspect.getdoc(model) or ""}
    if required:
        section["required"] = required
    return {**section, "properties": properties, "additionalProperties": False}


def purposes_of_keys(section: type[ConfigSection]) -> dict[str, str]:
    """What each key of a section is for: the text below it, on one line."""
    texts: dict[str, str] = {}
    for part in reversed(section.__mro__):
        if issubclass(part, ConfigSection):
            texts |= _texts_below(part.__module__).get(part.__name__, {})
    return {
        key: " ".join((field.description or texts.get(key, "")).split())
        for key, field in section.model_fields.items()
    }


@lru_cache
def _texts_below(module: str) -> dict[str, dict[str, str]]:
    """The text below each annotated name of each class of a module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    texts: dict[str, dict[str, str]] = {}
    for section in ast.walk(tree):
        if not isinstance(section, ast.ClassDef):
            continue
        for line, below in pairwise(section.body):
            match line, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts.setdefault(section.name, {})[key] = text
    return texts


def _key(value: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    key = dict(value)
    default = key.pop("default", None)
    if default not in (None, [], {}):
        key["default"] = default
    choices = [choice for choice in key.pop("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        key = {**choices[0], **key}
    elif choices:
        key["anyOf"] = choices
    return _or_null(key) if optional else key


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value:
        return {"anyOf": [{"$ref": value.pop("$ref")}, {"type": "null"}], **value}
    if "anyOf" in value:
        return {**value, "anyOf": [*value["anyOf"], {"type": "null"}]}
    if "const" in value:
        value["enum"] = [value.pop("const")]
    if "enum" in value:
        value["enum"] = [*value["enum"], None]
    return {**value, "type": [value["type"], "null"]} if "type" in value else value


def _described(field: FieldInfo, purpose: str, value: dict[str, Any]) -> dict[str, Any]:
    value.pop("description", None)
    may_be = takes(field.annotation, field.metadata)
    if may_be not in {None, "text", "a path"}:
        purpose = f"{purpose} Takes {may_be}."
    return {"description": purpose, **value}


def _refine(top: dict[str, Any], sections: dict[str, dict[str, Any]]) -> None:
    """Add what `config.fitting` and `config.resolve` do beside the models."""
    for name, key in _AS_WRITTEN:
        field = sections[name]["properties"][key]
        text = field.get("items", field)
        text["type"] = ["string", "number", "boolean"]
        if text is field:
            text["type"].append("null")
    for one_or_many in (top["judges"], top["labels"]):
        lone = one_or_many.pop("items")
        del one_or_many["type"]
        items = {"type": "array", "items": lone}
        one_or_many["anyOf"] = [items, lone, {"type": "null"}]
    sections["EditorSection"]["properties"][VERIFIER.name]["anyOf"].append({"const": False})


def _model(name: str) -> type[ConfigSection]:
    return next(model for model in _sections_in(Config) if model.__name__ == name)


def _sections_in(annotation: Any) -> Iterator[type[ConfigSection]]:
    """Every section in a type; judges' sections have namesakes without all of their keys."""
    if isinstance(annotation, type) and issubclass(annotation, ConfigSection):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _sections_in(field.annotation)
    else:
        for part in get_args(annotation):
            yield from _sections_in(part)


def _rubric() -> dict[str, Any]:
    instructions = {
        **_TEXT,
        "description": "The criterion in full; the judge sees nothing else of it: what counts, "
        "and what does not.",
    }
    return {
        "type": "object",
        "description": "One criterion.",
        "required": ["id"],
        "oneOf": [
            {"required": ["instructions"], "properties": {"instructions": _TEXT}},
            {"required": ["instruction"], "properties": {"instruction": _TEXT}},
        ],
        "properties": {
            "id": {
                "description": "A short unique name, used in node ids, recordings and reports.",
                "type": ["string", "number", "boolean"],
                "pattern": r"\S",
            },
            "instructions": instructions,
            "instruction": {"description": "Another name of instructions.", **_TEXT},
            "probes": {
                "description": "skip: the probes that change no case of this rubric, because what "
                "they change is what it is about.",
                "type": ["object", "null"],
                "properties": {
                    "skip": {
                        "description": "Names of probes.",
                        "type": "array",
                        "items": {"enum": list(PROBES)},
                    }
                },
                "additionalProperties": False,
            },
            "score_levels": {
                "description": "Ordinal suites: the scale, as integers without gaps.",
                "type": ["array", "null"],
                "items": {"$ref": "#/definitions/ScoreLevel"},
                "uniqueItems": True,
            },
        },
    }


def _score_level() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "One score of the scale.",
        "required": ["score", "label"],
        "properties": {
            "score": {"description": "An integer.", "type": "integer"},
            "label": {"description": "When this score is due.", **_TEXT},
        },
    }
