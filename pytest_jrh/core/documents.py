"""Reads YAML and JSON files as plain data, with the line of every key, and names the places of the
mistakes in a document, each once.

Only plain YAML is read: one document, string keys, no tags beyond the standard scalars. JSON is
read as the standard has it: what Python's reader lets pass would be lost or changed later. What
one value says, of a table or a label too, is read here as well: as a text, a word, a whole number,
an answer.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import yaml
from pydantic import ValidationError

from pytest_jrh.core import (
    Fields,
    InputError,
    Json,
    Problem,
    listed,
    nearest_hint,
    printable,
    received,
    shown,
    storable,
)
from pytest_jrh.core.files import LONGEST_HEAD, lines_of
from pytest_jrh.core.scales import Scale

CANNOT_TELL = "cannot tell"

# Characters that nobody sees: soft hyphens, those of no width, and marks of a direction.
_UNSEEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_LONGEST_WORD = 1_000
_ENCODING = "save the file as UTF-8 (for a table in Excel: Save as, CSV UTF-8)"
_PART = re.compile(r"([+-]?\d{1,18})(?:\.0*)?\s*(?:/|out of|of)\s*(\d{1,6})", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d{1,18})(\.0*)?", re.ASCII)


def as_text(raw: object) -> str:
    """A value as the key of a mapping in YAML would be written."""
    if isinstance(raw, str):
        return raw.strip()
    if raw is None or (isinstance(raw, float) and math.isnan(raw)):
        return ""
    return str(raw).lower() if isinstance(raw, bool) else str(raw).strip()


def as_seen(raw: object) -> str:
    """A value as its reader sees it."""
    return printable(_words(raw), _LONGEST_WORD)


def _words(raw: object) -> str:
    """A value with one blank between words, and nothing that has no width. A sequence for a
    terminal stays, as it may hide what makes the value another one.
    """
    return " ".join(re.sub(_UNSEEN, "", as_text(raw)).split())


def as_word(raw: object) -> str:
    """A value in small letters, and a whole number without a decimal point."""
    number = whole_number(raw)
    if number is None:
        return _words(raw).casefold()
    return str(number)


def whole_number(raw: object) -> int | None:
    """A value as an integer, also as a spreadsheet writes one, `1.0`; None where it is none."""
    number = _WHOLE.fullmatch(_words(raw))
    if number is None:
        return None
    return int(number[1])


def part_of(raw: object) -> tuple[int, int] | None:
    """`7/10` as its score and the end of its scale; None where a value is no such part."""
    part = _PART.fullmatch(_words(raw))
    if part is None:
        return None
    return int(part[1]), int(part[2])


class NoLabelError(ValueError):
    """A value that is no label."""


def label_value(raw: object, scale: Scale) -> int:
    """Read a label: the number of a level, or a word for an answer.

    Raises `NoLabelError` with what may stand there.
    """
    number = whole_number(raw)
    score = scale.label_words.get(as_word(raw))
    if scale.is_ordered:
        lowest, *_, highest = scores = scale.scores
        part = part_of(raw)
        if part is not None and part[1] == highest:
            number = part[0]
        expected = f"a score from {lowest} to {highest}"
        if number in scores:
            score = number
    else:
        *first_words, last_word = scale.label_words
        expected = f"{', '.join(first_words)} or {last_word}"
    if score is not None:
        return score
    if not as_text(raw):
        raise NoLabelError(f"the label is empty; must be {expected}")
    raise NoLabelError(received(raw, expected))


def mapped(raw: object, mapping: Fields) -> Any:
    """What a `map` makes of a value; a number is found however it is written.

    Raises `NoLabelError` for one that is not in it.
    """
    by_word = {as_word(word): value for word, value in mapping.items()}
    word = as_word(raw)
    if word in by_word:
        return by_word[word]
    raise NoLabelError(f"got {shown(raw)}; must be a key of map: {listed(map(shown, mapping))}")


KeyPath: TypeAlias = "tuple[str | int, ...]"
_Line = TypeVar("_Line")


def dotted(path: KeyPath) -> str:
    """Write a key path as text: `cases.kinds[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{printable(part, 40)}"
    return text.removeprefix(".")


MAX_DEPTH = 100
MAX_BYTES = 8 * 2**20
_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep; remove levels"

_TAG = "tag:yaml.org,2002:"
_TEXTS = {f"{_TAG}str", f"{_TAG}null"}
# Two of them are one character in JSON, and neither is one in YAML.
_ESCAPED_SURROGATE = r"\\u[dD][89a-fA-F]"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads time stamps as the text that they are, and 1e-3 as a number, as JSON does."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] not in (f"{_TAG}timestamp", f"{_TAG}value")]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    f"{_TAG}float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@dataclass
class Document:
    """A parsed file: its data, and its mistakes that do not prevent reading, such as duplicate
    keys.

    `make_nodes` reads the places of its keys, which those who find no mistake do not need.
    """

    file: str
    data: Any
    make_nodes: Callable[[], _Nodes]
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def _nodes(self) -> _Nodes:
        return self.make_nodes()

    @property
    def texts(self) -> dict[KeyPath, str]:
        """How scalars other than text were written (`20251103_1222`, `no`, `010`)."""
        return self._nodes.texts

    def line(self, path: KeyPath) -> int:
        """Return the line of `path`, counted from 1, or of the nearest section around it that is in
        the file.
        """
        for end in range(len(path), 0, -1):
            if path[:end] in self._nodes.lines:
                return self._nodes.lines[path[:end]]
        return 1

    def problems_of(
        self, mistakes: Iterable[Mistake], written: Callable[[KeyPath], KeyPath] = tuple
    ) -> list[Problem]:
        """The mistakes with their places, each once; `written` says where a key is in the file,
        which may have other words than its readers.
        """
        problems: dict[Problem, None] = {}
        for mistake in mistakes:
            key = written(mistake.key)
            line, name = self.line(key), dotted(key) or None
            problems[Problem(mistake.message, self.file, line, name, mistake.hint)] = None
        return list(problems)


def read_document(path: Path, file: str) -> Document:
    """Read a YAML or JSON file; `file` is how messages name it.

    A file named `.json` is JSON; any other is YAML. Raises InputError.
    """
    text = read_text(path, file)
    if path.suffix.lower() == ".json":
        return read_json(text, file)
    nodes = _Nodes(file)
    try:
        root = yaml.compose(text, Loader=_Loader)
        if root is None:
            raise InputError("is empty", file, 1)
        nodes.visit(root, ())
        data = yaml.constructor.SafeConstructor().construct_document(root)
    except yaml.YAMLError as error:
        raise InputError(syntax_problem(error, file)) from None
    except (ValueError, LookupError) as error:
        # Of an integer of thousands of digits, or a tag that the value does not fit.
        raise InputError(f"is not valid YAML: {printable(error)}", file) from None
    return Document(file, storable(data)[0], lambda: nodes, nodes.problems)


def read_json(text: str, file: str) -> Document:
    """Parse one JSON value; raises InputError with the line of the first mistake."""
    if not text.strip():
        raise InputError("is empty", file, 1)
    try:
        data = parsed(text)
    except DamagedError as error:
        problems = [Problem(str(error), file, error.line)]
        if error.line is None:
            # Python's reader does not say in which lines a duplicate key is; YAML's does.
            problems = _json_nodes(text, file).problems or problems
        raise InputError(problems) from None
    return Document(file, storable(data)[0], lambda: _json_nodes(text, file))


def _json_nodes(text: str, file: str) -> _Nodes:
    """The places in a JSON text; none in the few that are no YAML."""
    nodes = _Nodes(file)
    with contextlib.suppress(yaml.YAMLError, RecursionError):
        root: Any = yaml.compose(re.sub(_ESCAPED_SURROGATE, r"\\uf0", text), Loader=_Loader)
        nodes.visit(root, ())
    return nodes


def read_text(
    path: Path, file: str, limit: int = MAX_BYTES, how: str | None = None, *, as_it_is: bool = False
) -> str:
    """Return the text of a file of at most `limit` bytes, without a byte order mark and, unless
    `as_it_is`, with the line ends of Unix, as a checkout may have others: UTF-8, or UTF-16 where
    its mark says so, as spreadsheets save it.

    Raises InputError where it is not a readable file of that kind; `how` says how a missing one is
    made.
    """
    try:
        if path.is_file():
            size = path.stat().st_size
            if size > limit:
                raise InputError(f"has {size:,} bytes; must have at most {limit:,}", file)
            text = _text_of(path.read_bytes(), file)
            return text if as_it_is else text.replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {printable(reason)}", file) from None
    if path.exists():
        raise InputError("is a folder or a device, not a file", file)
    # The first part of the path that is wrong.
    wrong, noun = path, "file"
    while not wrong.parent.exists():
        wrong, noun = wrong.parent, "folder"
    names = [beside.name for beside in wrong.parent.glob("*")]
    # Who has mistyped a name does not want another file made.
    hints = [nearest_hint(wrong.name, names, noun), how]
    for folder in Path.cwd().parents:
        if (folder / file).is_file():
            hints = [f"the file is in {folder}: run the command there"]
    raise InputError("no such file", file, hint="; ".join(filter(None, hints)) or None)


def _text_of(raw: bytes, file: str) -> str:
    if problem := other_kind(raw, file):
        raise InputError(problem)
    is_utf_16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding, name = ("utf-16", "UTF-16") if is_utf_16 else ("utf-8-sig", "UTF-8")
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(encoding, "ignore").count("\n") + 1
        raise InputError(
            f"is not {name} text (byte 0x{raw[error.start]:02x} at offset {error.start})",
            file,
            line,
            hint=_ENCODING,
        ) from None


_UNPACK = "unpack this file, and name the file that was inside"
_EXPORT = "export the table as CSV in UTF-8, or as JSON lines"
_BY_PANDAS = (
    'convert the file to JSON lines: python -c "import pandas, sys; pandas.{}.to_json('
    "'rows.jsonl', orient='records', lines=True)\" FILE"
)
_OTHER_FILES: tuple[tuple[bytes, str, str], ...] = (
    (rb"PK\x03\x04.*xl/", "an Excel file", _BY_PANDAS.format("read_excel(sys.argv[1], dtype=str)")),
    (rb"PK\x03\x04.*(word/|content\.xml|Index/)|\xd0\xcf\x11\xe0", "an office document", _EXPORT),
    (rb"PK[\x03\x05]", "a zip archive", _UNPACK),
    (rb".{257}ustar", "an archive (tar)", _UNPACK),
    (rb"\x1f\x8b", "compressed (gzip)", _UNPACK),
    (rb"BZh\d1AY|\xfd7zXZ|\x28\xb5\x2f\xfd", "compressed (bzip2, xz or zstd)", _UNPACK),
    (rb"SQLite format 3\x00", "an SQLite database", _EXPORT),
    (rb"%PDF-", "a PDF", _EXPORT),
    (rb"PAR1\x15", "a Parquet file", _BY_PANDAS.format("read_parquet(sys.argv[1])")),
    (
        rb"(\xef\xbb\xbf)?\s*(?i:<!doctype html|<html)",
        "an HTML page, such as a server's login page",
        "log in to the server, and download the file again",
    ),
    (rb"version https://git-lfs", "a Git LFS pointer instead of the file", "run: git lfs pull"),
)
"""How files begin that are no text, or another one than is meant, what they are, what to do."""


def other_kind(head: bytes, file: str) -> Problem | None:
    """Say what a file is whose first bytes are those of none that can be read here."""
    for start, what, hint in _OTHER_FILES:
        if re.match(start, head[:LONGEST_HEAD], re.DOTALL):
            return Problem(f"is {what}", file, hint=hint.replace("FILE", shlex.quote(file)))
    return None


def syntax_problem(error: yaml.YAMLError, file: str) -> Problem:
    """What is wrong with the YAML of a file, with its line."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(f"is not valid YAML: {printable(error, 160)}", file)
    mark, message = error.problem_mark, error.problem or ""
    if any(word in (error.context or "") for word in ("quoted", "flow")):
        # Where it begins: it is found to be open only at the end of the file.
        mark, message = error.context_mark, "a quote or bracket is open, or a comma is missing"
    line = mark.line + 1 if mark else None
    return Problem(f"is not valid YAML: {printable(message, 160)}", file, line)


class Mistake(NamedTuple):
    """A value of a document that cannot be used: where it is, why, and what to do."""

    key: KeyPath
    message: str
    hint: str | None = None


class Mistakes(list[Mistake]):
    """What is found wrong in a document, in the order in which it is found."""

    def add(self, key: KeyPath, message: str, hint: str | None = None) -> None:
        """Add one more."""
        self.append(Mistake(key, message, hint))


class _Nodes:
    """The line of every key of YAML nodes, how their values were written, and which keys stand
    there twice.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self.lines: dict[KeyPath, int] = {}
        self.texts: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []

    def visit(self, node: yaml.Node, path: KeyPath) -> None:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            self._visit_mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*path, index))
        elif node.tag not in _TEXTS:
            self.texts[path] = node.value

    def _visit_mapping(self, node: yaml.MappingNode, path: KeyPath) -> None:
        key_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                is_list = isinstance(value_node, yaml.SequenceNode)
                for source in value_node.value if is_list else [value_node]:
                    self.visit(source, path)
            elif isinstance(key_node, yaml.ScalarNode):
                # A key is text, whatever it looks like: `no`, `1`.
                key_node.tag = f"{_TAG}str"
                key, line = storable(key_node.value)[0], key_node.start_mark.line + 1
                if key in key_lines:
                    message = f"duplicate key, in lines {key_lines[key]} and {line}"
                    place = dotted((*path, key))
                    self.problems.append(
                        Problem(message, self._file, line, place, "keep only one of these keys")
                    )
                key_lines[key] = self.lines[(*path, key)] = line
                self.visit(value_node, (*path, key))


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


@contextlib.contextmanager
def inside(*path: str | int) -> Iterator[None]:
    """Put the path of a part before that of the damage that is found in it, and take for damage
    what does not have the form that a reader expects.
    """
    try:
        yield
    except DamagedError as error:
        error.path = (*path, *error.path)
        raise
    except RecursionError:
        raise DamagedError(_TOO_DEEP, path=path) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = printable(f"{type(error).__name__}: {error}")
        raise DamagedError(
            f"a field is missing or has a wrong type ({what})",
            "docs/logs.md shows the format",
            path,
        ) from error


def parsed(data: bytes | str) -> Any:
    """The value of a JSON text, in UTF-8 where it is bytes.

    Raises DamagedError, in words that follow a place: for bytes that are not UTF-8, a duplicate
    key, NaN and Infinity, numbers that Python cannot hold, and what is nested deeper than
    `MAX_DEPTH`.
    """
    try:
        value = _DECODER.decode(data if isinstance(data, str) else data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DamagedError(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        message = printable(error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")
        raise DamagedError(
            f"is not valid JSON: {message} at character {error.pos + 1}", line=error.lineno
        ) from None
    except RecursionError:
        raise DamagedError(_TOO_DEEP) from None
    except ValueError as error:
        # Of the hooks below, and of Python for an integer of thousands of digits.
        raise DamagedError(f"is not valid JSON: {printable(error)}") from None
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for inner in level:
            if isinstance(inner, dict):
                below.extend(inner.values())
            elif isinstance(inner, list):
                below.extend(inner)
        level = below
        if not level:
            return value
    raise DamagedError(_TOO_DEEP)


def pointer_to(*names: str) -> str:
    """The JSON pointer to a name below names."""
    return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The values of JSON that hold no others, as text, by their pointers."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries += value.items()
    elif isinstance(value, list):
        entries += enumerate(value)
    for key, entry in entries:
        yield from leaves(entry, pointer + pointer_to(str(key)))
    if not entries:
        yield pointer or "body", value if isinstance(value, str) else json.dumps(value)


def no_constant(name: str) -> NoReturn:
    """Refuse `NaN` and the infinities, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not a value of JSON")


def unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    """The object of these pairs; raises `ValueError` for a duplicate key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"duplicate key {printable(key)!r}")
    return mapping


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {printable(text, 30)} is too large")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_keys, parse_float=_number, parse_constant=no_constant
)


def misfit(
    error: ValidationError, what: str, file: str | Path, line: int | None, hint: str
) -> InputError:
    """The first mistake that pydantic found in a value, which is `what`."""
    first = error.errors(include_url=False, include_input=False)[0]
    reason = first["msg"].removeprefix("Value error, ").replace("Input should be", "is not")
    reason = reason.replace("Field required", "is missing").replace("line 1 column", "character")
    return InputError(
        f"{reason[:1].lower()}{reason[1:]}, so {what}",
        file,
        line,
        dotted(first["loc"]) or None,
        hint,
    )


def parsed_lines(
    path: Path, parse: Callable[[bytes], _Line], what: str, hint: str
) -> Iterator[tuple[int, _Line]]:
    """Read the lines of a file by pydantic, each of which is `what`, with their numbers; what a
    killed process left of the last one is none.

    Raises `InputError` with file and line for the first that does not fit.
    """
    for line in lines_of(path, hint=hint):
        try:
            yield line.number, parse(line.data)
        except ValidationError as error:
            if not line.is_ended:
                return
            raise misfit(error, what, path, line.number, hint) from None
