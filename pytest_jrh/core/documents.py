"""Reads YAML and JSON files as plain data, with the line of every key, and reports the mistakes of
a document, each once, with places and received values.

Only plain YAML is read: one document, string keys, no tags beyond the standard scalars. JSON is
read as the standard has it: what Python's reader lets pass would be lost or changed later.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import yaml

from pytest_jrh.core.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


KeyPath: TypeAlias = "tuple[str | int, ...]"

_LONGEST_VALUE = 80
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)


def printable(text: str, limit: int = _LONGEST_VALUE) -> str:
    """Make text safe and short enough for one line of a terminal: no escapes, no control
    characters.
    """
    flat = "".join(char if char.isprintable() else " " for char in _ANSI.sub("", text[: 4 * limit]))
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def shown(value: object) -> str:
    """Render a received value as a user may have typed it; collections are only named."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(printable(value), ensure_ascii=False)
        case int() | float():
            return printable(str(value))
        case dict():
            return "a mapping of keys"
        case _:
            return "a list"


def dotted(path: KeyPath) -> str:
    """Write a key path as text: `admin.tests_to_run[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{printable(part, 40)}"
    return text.removeprefix(".")


def listed(names: Iterable[str], limit: int = 30) -> str:
    """Join names for a sentence; the end of a long list is counted instead of printed."""
    all_names = list(names)
    left_out = len(all_names) - limit
    return ", ".join(printable(name, 60) for name in all_names[:limit]) + (
        f" and {left_out} more" if left_out > 0 else ""
    )


def received(value: Any, expected: str) -> str:
    """Describe a value of the wrong kind: what was there and what may be there."""
    return f"got {shown(value)}; must be {expected}"


MAX_DEPTH = 100


@dataclass(slots=True)
class Document:
    """A parsed file: its data, and for each key path the line of the key, counted from 1.

    `texts` keeps how scalars other than text were written (`20251103_1222`, `no`, `010`).
    `problems` are mistakes that do not prevent reading, such as duplicate keys. Its reader fills
    it, and nobody changes it later.
    """

    file: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    texts: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: KeyPath) -> int:
        """Return the line of `path`, or of the nearest section around it that is in the file."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1

    def problem(self, path: KeyPath, line: int, message: str, hint: str | None = None) -> None:
        """Record a mistake that does not stop the reading."""
        self.problems.append(Problem(message, self.file, line, dotted(path) or None, hint))

    def is_duplicate(self, path: KeyPath, first_line: int | None, line: int) -> bool:
        """Report a key that its mapping already has, with both lines."""
        if first_line is None:
            return False
        message = f"duplicate key, in lines {first_line} and {line}"
        self.problem(path, line, message, "keep one of them")
        return True


def storable(text: str) -> str:
    """Text that can be stored: lone surrogates become U+FFFD, NULs are dropped."""
    if text.isascii():
        return text.replace("\x00", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")


_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(text: str, file: str) -> Document:
    """Parse one JSON value; raises InputError with the line of the first mistake."""
    return _Reader(text, file).document()


def no_constant(name: str) -> NoReturn:
    """Refuse `NaN` and the infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._document = Document(file)
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder(parse_constant=no_constant)

    def document(self) -> Document:
        self._document.data, end = self._value(self._skip(0), ())
        end = self._skip(end)
        if end < len(self._text):
            self._fail(end, "unexpected text after the value")
        return self._document

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def _line(self, position: int) -> int:
        return bisect_left(self._newlines, position) + 1

    def _fail(self, position: int, message: str) -> NoReturn:
        line = self._line(position)
        row = self._text.split("\n", line)[line - 1] if line <= len(self._newlines) + 1 else ""
        hint = f"the line reads: {printable(row.strip())}" if row.strip() else None
        raise InputError(
            Problem(f"is not valid JSON: {message}", self._document.file, line, hint=hint)
        )

    def _value(self, position: int, path: KeyPath) -> tuple[Any, int]:
        self._document.lines.setdefault(path, self._line(position))
        first = self._text[position : position + 1]
        if first == "{":
            return self._object(position + 1, path)
        if first == "[":
            return self._array(position + 1, path)
        value, end = self._scalar(position)
        if value is not None and not isinstance(value, str):
            self._document.texts[path] = self._text[position:end]
        return value, end

    def _scalar(self, position: int) -> tuple[Any, int]:
        if position >= len(self._text):
            self._fail(position, "unexpected end of input")
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            self._fail(
                min(error.pos, len(self._text)), printable(error.msg[:1].lower() + error.msg[1:])
            )
        except ValueError as error:
            self._fail(position, printable(str(error)))
        return (storable(value) if isinstance(value, str) else value), end

    def _array(self, position: int, path: KeyPath) -> tuple[list[Any], int]:
        items: list[Any] = []
        position = self._skip(position)
        while self._text[position : position + 1] != "]":
            item, position = self._value(position, (*path, len(items)))
            items.append(item)
            position = self._comma(position, "]")
        return items, position + 1

    def _object(self, position: int, path: KeyPath) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        key_lines: dict[str, int] = {}
        position = self._skip(position)
        while self._text[position : position + 1] != "}":
            if self._text[position : position + 1] != '"':
                self._fail(position, "expected a key in double quotes")
            line = self._line(position)
            key, position = self._scalar(position)
            position = self._skip(position)
            if self._text[position : position + 1] != ":":
                self._fail(position, "expected a colon after the key")
            inner = (*path, key)
            is_duplicate = self._document.is_duplicate(inner, key_lines.get(key), line)
            self._document.lines.setdefault(inner, line)
            value, position = self._value(self._skip(position + 1), inner)
            if not is_duplicate:
                key_lines[key], members[key] = line, value
            position = self._comma(position, "}")
        return members, position + 1

    def _comma(self, position: int, closing: str) -> int:
        position = self._skip(position)
        char = self._text[position : position + 1]
        if char == closing:
            return position
        if char != ",":
            self._fail(
                position, f"expected a comma or {closing}" if char else "unexpected end of input"
            )
        position = self._skip(position + 1)
        if self._text[position : position + 1] == closing:
            self._fail(position, f"trailing comma before {closing}")
        return position


MAX_BYTES = 8 * 2**20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def read_document(path: Path, *, file: str | None = None, limit: int = MAX_BYTES) -> Document:
    """Read a YAML or JSON file of at most `limit` bytes; `file` is how messages name it.

    A file named `.json` is JSON; any other is YAML, though one that begins like JSON and is valid
    JSON is read as such (JSON escapes are not all YAML's). Raises InputError.
    """
    name = file or str(path)
    text = read_text(path, name, limit)
    if not text.strip():
        raise InputError(Problem("is empty", name, 1))
    try:
        return _read(text, name, is_json=path.suffix.lower() == ".json")
    except RecursionError:
        raise InputError(Problem("is nested too deeply", name)) from None


def _read(text: str, name: str, *, is_json: bool) -> Document:
    if is_json:
        return read_json(text, name)
    if text.lstrip()[:1] in {"[", "{"}:
        try:
            return read_json(text, name)
        except InputError:
            return _read_yaml(text, name)
    return _read_yaml(text, name)


def read_text(path: Path, file: str, limit: int = MAX_BYTES, *, utf_16: bool = False) -> str:
    """Return the text of a UTF-8 file of at most `limit` bytes, without a byte order mark; with
    `utf_16` also of a file that begins with the mark of UTF-16, as spreadsheets save it.

    Raises InputError where it is not a readable file of that kind.
    """
    try:
        if path.is_dir():
            raise InputError(Problem("is a folder, not a file", file))
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "no such file"
            raise InputError(Problem(kind, file))
        size = path.stat().st_size
        if size > limit:
            raise InputError(Problem(f"has {size:,} bytes; at most {limit:,} are read", file))
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(f"cannot be read: {printable(reason)}", file)) from None
    encoding, name = "utf-8-sig", "UTF-8"
    if utf_16 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, name = "utf-16", "UTF-16"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        message = f"is not {name} text (byte 0x{raw[error.start]:02x} at offset {error.start})"
        raise InputError(Problem(message, file, line, hint="save the file as UTF-8")) from None


def _read_yaml(text: str, file: str) -> Document:
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise InputError(_syntax_problem(error, text, file)) from None
    if root is None:
        raise InputError(Problem("is empty: it contains only comments", file, 1))
    return _Builder(file).document(root)


def _syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    )
    opened = getattr(error, "context_mark", None)
    context = getattr(error, "context", None) or ""
    if opened is not None and "quoted scalar" in context:
        # Where the quote begins: it is found to be open only at the end of the file.
        mark, message = opened, "unclosed quote"
    elif opened is not None and "flow" in context:
        mark, message = opened, "unclosed bracket, or a missing comma"
    line = None if mark is None else mark.line + 1
    rows = text.splitlines()
    row = rows[mark.line] if mark is not None and mark.line < len(rows) else ""
    hint = None
    if "\t" in row[: len(row) - len(row.lstrip())]:
        hint = "the line is indented with a tab; YAML allows only spaces"
    elif "expected a single document" in f"{getattr(error, 'context', '')} {message}":
        message, hint = "unexpected second document after `---`", "keep one document per file"
    elif row:
        hint = f"the line reads: {printable(row.strip())}"
    return Problem(f"is not valid YAML: {printable(message, 160)}", file, line, hint=hint)


class _Builder:
    """Turns YAML nodes into a Document."""

    def __init__(self, file: str) -> None:
        self._document = Document(file)
        self._numbers = yaml.constructor.SafeConstructor()

    def document(self, root: yaml.Node) -> Document:
        self._document.data = self._build(root, ())
        return self._document

    def _build(self, node: yaml.Node, path: KeyPath) -> Any:
        line = node.start_mark.line + 1
        self._document.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in {f"{_TAG}map", f"{_TAG}seq"}:
            self._refuse_tag(node, path)
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self._build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                result.update(self._merged(value_node, path))
        key_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._document.problem(path, line, "a list or a mapping cannot be a key")
                continue
            key = storable(key_node.value)
            if self._document.is_duplicate((*path, key), key_lines.get(key), line):
                continue
            key_lines[key] = self._document.lines[(*path, key)] = line
            result[key] = self._build(value_node, (*path, key))
        return result

    def _merged(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            if isinstance(source, yaml.MappingNode):
                result.update(self._build(source, path))
            else:
                self._problem(node, path, "`<<` takes a mapping or a list of mappings")
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text = storable(node.value)
        kind = node.tag.removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "str" and not (not node.style and _EXPONENT.fullmatch(text)):
            return text
        self._document.texts[path] = text
        try:
            return self._typed(kind, node, text)
        except (ValueError, ArithmeticError, KeyError, IndexError):
            if kind in {"bool", "int", "float"}:
                self._problem(node, path, f"{printable(text)} cannot be read as {kind}")
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
        self._problem(node, path, f"the YAML tag {tag} is not supported here")

    def _problem(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        self._document.problem(path, node.start_mark.line + 1, message)


_BOM = b"\xef\xbb\xbf"


class DamagedError(ValueError):
    """A piece of a file, or an answer, cannot be read; the caller says which.

    `hint` says what to do, `path` where in the piece it is, and `line` in which line of the file,
    where that is known.
    """

    def __init__(
        self, message: str, hint: str | None = None, path: KeyPath = (), line: int | None = None
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.path = path
        self.line = line


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
        message = printable(error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")
        raise DamagedError(f"is not valid JSON: {message} at character {error.pos + 1}") from None
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        # Of the hooks below, and of Python for an integer of thousands of digits.
        raise DamagedError(f"is not valid JSON: {printable(str(error))}") from None


def check_depth(value: Any) -> None:
    """Raise DamagedError for a value that is nested deeper than `MAX_DEPTH`."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise too_deep()


def too_deep() -> DamagedError:
    """Make the error for a value that is nested too deeply."""
    return DamagedError(f"is nested more than {MAX_DEPTH} levels deep")


def _inside(value: Any) -> list[Any]:
    within = value.values() if isinstance(value, dict) else value
    return [inner for inner in within if isinstance(inner, dict | list)]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        earlier: set[str] = set()
        for key, _ in pairs:
            if key in earlier:
                raise ValueError(f"duplicate key {printable(key)!r}")
            earlier.add(key)
    return mapping


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {printable(text, 30)} is too large")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=no_constant
)


@dataclass(slots=True)
class Findings:
    """The mistakes found in one document so far.

    A key that is missing only because it was misspelled or had a bad value is not reported twice.
    """

    document: Document
    problems: list[Problem] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)

    def add(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Report the value at `path`."""
        key = dotted(path) or None
        self.problems.append(
            Problem(message, self.document.file, self.document.line(path), key, hint)
        )

    def missing(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Report that there is nothing at `path`, unless a problem there explains it."""
        if not self.explained(path):
            self.add(path, message, hint)

    def explained(self, path: KeyPath) -> bool:
        """Whether a reported problem explains why there is no usable value at `path`."""
        prefixes = {dotted(path[:end]) for end in range(1, len(path) + 1)}
        if prefixes & self.excused:
            return True
        keys = {problem.key or "" for problem in self.problems}
        if prefixes & keys:
            return True
        around = dotted(path)
        return any(key.startswith((f"{around}.", f"{around}[")) for key in keys)


MISSING: Any = object()
"""What `at` gives where nothing is at the place."""


def at(value: Any, pointer: str) -> Any:
    """The value at a pointer, or `MISSING`; the empty pointer is the whole value."""
    for name in names_in(pointer):
        value = _below(value, name)
        if value is MISSING:
            break
    return value


def names_in(pointer: str) -> list[str]:
    """The names in a pointer, outermost first; none in the empty one."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def pointer_to(*names: str) -> str:
    """The pointer to a name below names."""
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)


def _below(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        # An index has no sign and no leading zero; a longer one than this is past any list.
        is_index = name.isascii() and name.isdigit() and len(name) < 10  # noqa: PLR2004
        if is_index and str(int(name)) == name and int(name) < len(value):
            return value[int(name)]
    return MISSING
