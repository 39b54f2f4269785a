"""The section `input_format` of a config: where the parts of a conversation are (rule R2)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import PlainValidator

from pytest_jrh.sections import ConfigSection, Takes
from pytest_jrh.suite import config_values as values

Pointer: TypeAlias = Annotated[
    str | None, PlainValidator(values.pointer), values.POINTER_JSON, Takes(values.POINTER)
]
Pointers: TypeAlias = Annotated[
    tuple[str, ...] | None,
    PlainValidator(values.pointers),
    values.POINTERS_JSON,
    Takes(values.POINTERS),
]


class InputFormatSection(ConfigSection):
    """Where the parts of a conversation are in its JSON, as JSON pointers (rule R2)."""

    messages: Pointer = None
    """The list of messages, in OpenAI's or Anthropic's form. Left out: /messages."""
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
