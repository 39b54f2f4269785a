"""Reads YAML and JSON files as plain data, with the line of every key.

Only plain YAML is read: one document, string keys, no tags beyond the standard scalars. Deep
nesting, alias bombs and huge files are rejected before anything is built.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from pytest_jrh.documents.json_lines import read_json
from pytest_jrh.documents.problems import KeyPath, dotted, printable
from pytest_jrh.documents.tree import MAX_DEPTH, Tree, storable
from pytest_jrh.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_BYTES = 8 * 2**20
MAX_NODES = 200_000
_LONGEST_NUMBER = 400

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_QUOTES = ("'", '"')
_TAG = "tag:yaml.org,2002:"
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its data, and for each key path the line of the key, counted from 1.

    `texts` keeps how scalars other than text were written (`20251103_1222`, `no`, `010`).
    `problems` are mistakes that do not prevent reading, such as duplicate keys.
    """

    file: str
    data: Any
    lines: Mapping[KeyPath, int]
    texts: Mapping[KeyPath, str]
    problems: tuple[Problem, ...] = ()

    def line(self, path: KeyPath) -> int:
        """Return the line of `path`, or of the nearest section around it that is in the file."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1


def read_document(path: Path, *, file: str | None = None) -> Document:
    """Read a YAML or JSON file; `file` is how messages name it.

    A file named `.json` is JSON; any other is YAML, though one that begins like JSON and is valid
    JSON is read as such (JSON escapes are not all YAML's). Raises InputError.
    """
    name = file or str(path)
    text = _text(path, name)
    if path.suffix.lower() == ".json":
        return _document(name, read_json(text, name))
    if text.lstrip()[:1] in {"[", "{"}:
        try:
            return _document(name, read_json(text, name))
        except InputError:
            return _document(name, _read_yaml(text, name))
    return _document(name, _read_yaml(text, name))


def _document(file: str, tree: Tree) -> Document:
    return Document(file, tree.data, tree.lines, tree.texts, tuple(tree.problems))


def read_text(path: Path, file: str) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises InputError where it is not a readable UTF-8 file.
    """
    try:
        if path.is_dir():
            raise InputError(Problem("is a folder, not a file", file))
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "no such file"
            raise InputError(Problem(kind, file))
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(Problem(f"has {size:,} bytes; at most {MAX_BYTES:,} are read", file))
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"cannot be read: {printable(reason)}", file)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 text (byte 0x{raw[error.start]:02x} at offset {error.start})"
        raise InputError(Problem(message, file, line, hint="save the file as UTF-8")) from None


def _text(path: Path, file: str) -> str:
    text = read_text(path, file)
    if odd := _NOT_TEXT.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        message = (
            f"contains the control character U+{ord(odd.group()):04X}, which is not allowed in "
            "YAML or JSON"
        )
        raise InputError(Problem(message, file, line))
    if not text.strip():
        raise InputError(Problem("is empty", file, 1))
    return text


def _read_yaml(text: str, file: str) -> Tree:
    try:
        events = _count_events(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise InputError(_syntax_problem(error, text, file)) from None
    if root is None:
        raise InputError(Problem("is empty: it contains only comments", file, 1))
    return _Builder(file, max_nodes=max(MAX_NODES, 2 * events)).tree(root)


def _count_events(text: str, file: str) -> int:
    """Count parsing events and reject deep nesting before the composer recurses into it."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_LOADER):
        count += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = 1 if event.start_mark is None else event.start_mark.line + 1
                raise InputError(
                    Problem(f"is nested more than {MAX_DEPTH} levels deep", file, line)
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return count


def _syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    )
    line = None if mark is None else mark.line + 1
    rows = text.splitlines()
    if line is not None and (opening := _opening(error, text, line)):
        opened, what = opening
        hint = (
            f"the line reads: {printable(rows[opened - 1].strip())}"
            if opened <= len(rows)
            else None
        )
        return Problem(f"is not valid YAML: {what}", file, opened, hint=hint)
    row = rows[mark.line] if mark is not None and mark.line < len(rows) else ""
    hint = None
    if "\t" in row[: len(row) - len(row.lstrip())]:
        hint = "the line is indented with a tab; YAML allows only spaces"
    elif "expected a single document" in f"{getattr(error, 'context', '')} {what}":
        what, hint = "unexpected second document after `---`", "keep one document per file"
    elif row:
        hint = f"the line reads: {printable(row.strip())}"
    return Problem(f"is not valid YAML: {printable(what, 160)}", file, line, hint=hint)


def _opening(error: yaml.YAMLError, text: str, line: int) -> tuple[int, str] | None:
    """Return the line of a quote or bracket that is unclosed at `line`, where the parser failed,
    and a message.
    """
    mark = getattr(error, "context_mark", None)
    if (
        mark is not None
        and mark.line + 1 < line
        and "quoted scalar" in (getattr(error, "context", None) or "")
    ):
        return (
            mark.line + 1,
            f"unclosed quote (detected in line {line})",
        )
    # An unclosed quote ends at the next one, whose text is then found where a key is expected.
    quote = line
    brackets: list[int] = []
    with contextlib.suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=_LOADER):
            start = token.start_mark.line + 1
            if start > line:
                break
            if (
                isinstance(token, yaml.ScalarToken)
                and token.style in _QUOTES
                and token.end_mark.line + 1 == line
            ):
                quote = start
            elif isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                brackets.append(start)
            elif (
                isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken) and brackets
            ):
                brackets.pop()
    if quote < line:
        return (
            quote,
            f"unclosed quote: it ends at the next quote, in line {line}, where a value cannot end",
        )
    if brackets and brackets[-1] < line:
        return brackets[-1], f"unclosed bracket, or a missing comma before line {line}"
    return None


class _Builder:
    """Turns YAML nodes into a Tree."""

    def __init__(self, file: str, max_nodes: int) -> None:
        self._tree = Tree(file)
        self._open: set[int] = set()
        self._left = max_nodes
        self._numbers = yaml.constructor.SafeConstructor()

    def tree(self, root: yaml.Node) -> Tree:
        self._tree.data = self._build(root, ())
        return self._tree

    def _build(self, node: yaml.Node, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0:
            raise InputError(Problem("the expanded aliases are too large", self._tree.file, line))
        if id(node) in self._open:
            raise InputError(Problem("recursive alias", self._tree.file, line, dotted(path)))
        if len(self._open) > MAX_DEPTH:
            raise InputError(
                Problem(f"is nested more than {MAX_DEPTH} levels deep", self._tree.file, line)
            )
        self._tree.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._open.add(id(node))
        try:
            if node.tag not in {f"{_TAG}map", f"{_TAG}seq"}:
                self._refuse_tag(node, path)
                return None
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [self._build(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                result.update(self._merged(value_node, path))
        own: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._tree.problem(path, line, "a list or a mapping cannot be a key")
                continue
            key = storable(key_node.value)
            if self._tree.is_duplicate((*path, key), own.get(key), line):
                continue
            own[key] = self._tree.lines[(*path, key)] = line
            result[key] = self._build(value_node, (*path, key))
        return result

    def _merged(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            if isinstance(source, yaml.MappingNode):
                result.update(self._build(source, path))
            else:
                self._tree.problem(
                    path, node.start_mark.line + 1, "`<<` takes a mapping or a list of mappings"
                )
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text = storable(node.value)
        kind = node.tag.removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "str" and not (not node.style and _EXPONENT.fullmatch(text)):
            return text
        self._tree.texts[path] = text
        try:
            if kind in {"int", "float"} and len(text) > _LONGEST_NUMBER:
                # `1:1:1:...` is a number of YAML 1.1 to the base of 60, which takes quadratic time.
                raise ValueError(kind)
            return self._typed(kind, node, text)
        except (ValueError, ArithmeticError, KeyError, IndexError):
            if kind in {"bool", "int", "float"}:
                self._tree.problem(
                    path, node.start_mark.line + 1, f"{printable(text)} cannot be read as {kind}"
                )
            else:
                self._refuse_tag(node, path)
            return None

    def _typed(self, kind: str, node: yaml.ScalarNode, text: str) -> Any:
        match kind:
            case "bool":
                return self._numbers.bool_values[text.lower()]
            case "int":
                return self._numbers.construct_yaml_int(node)
            case "float":
                return self._numbers.construct_yaml_float(node)
            case "str":  # 1e-3, which is text in YAML 1.1 and a number elsewhere
                return float(text)
            case "timestamp" | "value":
                return text
            case _:
                raise ValueError(kind)

    def _refuse_tag(self, node: yaml.Node, path: KeyPath) -> None:
        tag = printable(node.tag.replace(_TAG, "!!"), 60)
        self._tree.problem(
            path, node.start_mark.line + 1, f"the YAML tag {tag} is not supported here"
        )
