"""The text of a cassette: a head in JSON inside of YAML, then vcrpy's interactions.

JSON is YAML, so vcrpy and every other reader of YAML read the whole file; a replay reads the head
alone, with `json`. What was written before, by hand or by another YAML serializer is read as YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from pytest_jrh.documents.json_lines import read_json
from pytest_jrh.errors import InputError

MAX_DEPTH = 100
_VCR_FORMAT = 1
_HEAD_BEGINS = "metadata:\n  {"
_HEAD_ENDS = "\ninteractions:"
# How a file used to end after an answer that ends in empty lines: a second document, which is none.
_SECOND_DOCUMENT = f"\n...\nversion: {_VCR_FORMAT}\n"
# Each level of nesting takes one of these or more indentation; libyaml's composer crashes at 20,000
# levels or more.
_NESTING = "[{-?"
_MANY = 3_000
# What libyaml does not print as it is inside a literal block; JSON can spell it in escapes instead.
_UNPRINTABLE = r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]"
# What JSON leaves as it is in a string, and YAML refuses there or takes for the end of a line.
_NOT_YAML = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# To YAML 1.1 a number with an exponent needs a point: `1e-05` is text. Only numbers end a line of
# JSON in a digit.
_EXPONENT = re.compile(r"(?m)(?<= )(-?\d)(?=e[-+]\d+,?$)")

_ESCAPED_SURROGATE = re.compile(r"(?i)\\ud[89a-f]")


class Malformed(Exception):
    """What is wrong with a file: `why`, and where in it, as far as that is known."""

    def __init__(self, why: str, *, line: int | None = None, key: str | None = None) -> None:
        self.why = why
        self.line = line
        self.key = key
        super().__init__(why)


def write(metadata: Mapping[str, Any], interactions: Sequence[Mapping[str, Any]]) -> str:
    """The file's text: deterministic, readable, and loadable by vcrpy."""
    head = json.dumps(metadata, indent=2, ensure_ascii=False)
    head = _EXPONENT.sub(r"\1.0", re.sub(_NOT_YAML, _json_escape, head))
    rest = {
        "interactions": [_readable(one) for one in interactions],
        "version": _VCR_FORMAT,
    }
    # After a text that ends in empty lines libyaml marks the end of the document, so it is dumped
    # as a whole, and the mark at its end left out.
    body = yaml.dump(rest, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=2**20)
    body = body.removesuffix("...\n")
    return "".join(["metadata:\n  ", head.replace("\n", "\n  "), "\n", body])


def decoded(data: bytes, *, whole: bool) -> str:
    """The text of a cassette, if not `whole` only of the part that holds the metadata, where it
    comes first.

    Lines end as a text file's do when it is read. Raises `UnicodeDecodeError`.
    """
    if not whole:
        head = data.partition(_HEAD_ENDS.encode())[0]
        data = head if b"metadata:" in head else data
    text = data.decode()
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.endswith(_SECOND_DOCUMENT):
        text = text.removesuffix(_SECOND_DOCUMENT) + f"\nversion: {_VCR_FORMAT}\n"
    return text


def read(text: str) -> object:
    """The data of a cassette's text, or of its head alone; raises `Malformed`."""
    head, ends, rest = text.partition(_HEAD_ENDS)
    metadata = _read_json(head)
    if metadata is None:
        return _read_yaml(text)
    if not ends:
        return {"metadata": metadata}
    # Empty lines in place of the head, so that errors give the line in the file.
    body = _read_yaml("\n" * head.count("\n") + ends + rest)
    if not isinstance(body, dict) or "metadata" in body:
        # No cassette, or a duplicate key, which the reader of all of it finds.
        return _read_yaml(text)
    return {"metadata": metadata, **body}


def line_of(text: str, path: tuple[int | str, ...]) -> int | None:
    """The line of the node at the path, or of the nearest one around it."""
    head, ends, rest = text.partition(_HEAD_ENDS)
    if _read_json(head) is not None:
        if path[0] == "metadata":
            return _line_in_json(head, path[1:])
        text = "\n" * head.count("\n") + ends + rest
    node = yaml.compose(text, Loader=_loader())
    line = None
    for part in path:
        inner: Any = None
        if isinstance(node, yaml.MappingNode):
            inner = next(
                (value for key, value in node.value if getattr(key, "value", None) == part), None
            )
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value)
        ):
            inner = node.value[part]
        if inner is None:
            break
        node = inner
        line = node.start_mark.line + 1
    return line


def _line_in_json(head: str, path: tuple[int | str, ...]) -> int:
    # Not read as YAML, to which a key of more than 1,024 characters is none.
    try:
        lines = read_json(head[len(_HEAD_BEGINS) - 1 :], "").lines
    except InputError as error:
        # NaN, which `json` takes and no field here does, or a nesting beyond bounds.
        return 1 + (error.problems[0].line or 0)
    ends = (path[:end] for end in range(len(path), -1, -1))
    return 1 + next(lines[place] for place in ends if place in lines)


def _read_json(head: str) -> object:
    """The metadata of a head in JSON.

    None where it is none, or wants the closer look that YAML gets.
    """
    if not head.startswith(_HEAD_BEGINS) or head.count("[") + head.count("{") > _MANY:
        return None

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            # YAML's reader gives the line of it.
            raise ValueError
        return data

    try:
        data = json.loads(head[len(_HEAD_BEGINS) - 1 :], object_pairs_hook=unique)
        if _ESCAPED_SURROGATE.search(head):
            # YAML's reader refuses half of a pair, which no file could be written with.
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return data


def _read_yaml(text: str) -> object:
    """Parse one YAML document of plain data; raises `Malformed`."""
    try:
        if _may_be_deep(text):
            _refuse_deep(text)
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader, in C where there is one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Malformed(
            " ".join(str(error).split()), line=None if mark is None else mark.line + 1
        ) from error
    except (
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        # What the constructor of dates and numbers raises for `2001-99-99`, `0b` or a number of
        # 5,000 digits.
        raise Malformed(f"it has an invalid value ({error})") from error


def _may_be_deep(text: str) -> bool:
    """Whether a closer look is worth its time: too many marks of nesting, deep indentation, or
    merged aliases.
    """
    return (
        sum(map(text.count, _NESTING)) > _MANY
        or " " * (_MANY // 10) in text
        or ("<<" in text and "&" in text and "*" in text)
    )


def _refuse_deep(text: str) -> None:
    depth = 0
    merging = "<<" in text
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed(
                    f"it is nested more than {MAX_DEPTH} levels deep", line=_line(event)
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif merging and isinstance(event, yaml.AliasEvent):
            # Merged into each other, aliases of a few lines are gigabytes of data.
            raise Malformed("aliases and `<<` are not supported together", line=_line(event))


def _line(event: Any) -> int | None:
    return None if event.start_mark is None else event.start_mark.line + 1


def _readable(interaction: Mapping[str, Any]) -> dict[str, Any]:
    """The interaction with its JSON request body spread over lines, so that a change reads well in
    a diff.
    """
    request = interaction["request"]
    try:
        body = json.dumps(json.loads(request["body"]), indent=2, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return dict(interaction)
    return {**interaction, "request": {**request, "body": re.sub(_UNPRINTABLE, _json_escape, body)}}


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


@cache
def _loader() -> Any:
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """A safe loader that refuses duplicate keys: readers differ in which of the values they
        take.
        """

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    name = (key.tag, key.value)
                    if name in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"duplicate key {key.value!r:.60}", key.start_mark
                        )
                    seen.add(name)
            return super().construct_mapping(node, deep)

    return Loader


@cache
def _dumper() -> Any:
    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("CassetteDumper", (base,), {})
    dumper.add_representer(str, _represent_text)
    return dumper


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )
