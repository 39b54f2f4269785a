"""The shape of configs and rubric files as JSON schemas, with which editors complete and check
them: pydantic makes them of `pytest_jrh.config.schema`, so that there is one truth. The package
holds what `python -m tools.reference` writes.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from pytest_jrh.config.schema import Config, RubricEntry
from pytest_jrh.core.sections import ConfigSection, takes

if TYPE_CHECKING:
    from pydantic_core import core_schema

_DIALECT = "http://json-schema.org/draft-07/schema#"
_REFERENCE = "#/definitions/{model}"
_NULL = {"type": "null"}


def config_schema() -> dict[str, Any]:
    """Describe a config file."""
    config, sections = _schema_of(Config)
    title = "A pytest-jrh suite"
    return {"$schema": _DIALECT, "title": title, **config, "definitions": sections}


def rubrics_schema() -> dict[str, Any]:
    """Describe a rubric file."""
    rubric, sections = _schema_of(RubricEntry)
    sections[RubricEntry.__name__] = rubric
    item = {"$ref": _REFERENCE.format(model=RubricEntry.__name__)}
    entries = {"type": "array", "minItems": 1, "items": item}
    in_mapping = {"type": "object", "required": ["rubrics"], "properties": {"rubrics": entries}}
    return {
        "$schema": _DIALECT,
        "title": "Rubrics of a pytest-jrh suite",
        "anyOf": [entries, in_mapping],
        "definitions": sections,
    }


def as_text(schema: dict[str, Any]) -> str:
    """Write a schema as it is published."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema_of(section: type[ConfigSection]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a section, and by name those of the sections in it."""
    schema = section.model_json_schema(schema_generator=_Generator, ref_template=_REFERENCE)
    return schema, dict(sorted(schema.pop("$defs", {}).items()))


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

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        """Say of each key what it is for, and that null is as good as no key."""
        section: type[ConfigSection] = schema["cls"]
        part = super().model_schema(schema)
        del part["title"]
        part["description"] = inspect.getdoc(section) or ""
        for key, text in purposes_of_keys(section).items():
            value = part["properties"][key]
            value.pop("description", None)
            default = value.pop("default", None)
            if key not in part.get("required", []):
                choices = value.pop("anyOf", [value])
                value = {"anyOf": [choice for choice in choices if choice != _NULL] + [_NULL]}
            field = section.model_fields[key]
            may_be = takes(field.annotation, field.metadata)
            described: dict[str, Any] = {"description": text}
            if may_be not in {None, "text", "a path"}:
                described["description"] += f" Takes {may_be}."
            if default not in (None, [], {}):
                described["default"] = default
            part["properties"][key] = described | value
        return part


def purposes_of_keys(section: type[ConfigSection]) -> dict[str, str]:
    """What each key of a section is for: the text below it, on one line."""
    texts: dict[str, str] = {}
    for part in reversed(section.__mro__):
        if issubclass(part, ConfigSection):
            texts |= _texts_below(part.__module__).get(part.__name__, {})
    return {key: " ".join(texts[key].split()) for key in section.model_fields}


@lru_cache
def _texts_below(module: str) -> dict[str, dict[str, str]]:
    """The text below each annotated name of each class of a module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    texts: dict[str, dict[str, str]] = {}
    for section in [part for part in tree.body if isinstance(part, ast.ClassDef)]:
        for line, below in pairwise(section.body):
            match line, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts.setdefault(section.name, {})[key] = text
    return texts
