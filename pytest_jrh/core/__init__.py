"""What everything else rests on: values, errors, transcripts, text and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_Value = TypeVar("_Value")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_Value]) -> type[_Value]:
    """A data class whose fields nobody may set, nor add one."""
    return dataclass(frozen=True, slots=True)(cls)
