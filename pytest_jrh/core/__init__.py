"""What everything else rests on: values, transcripts, documents and files; and here what nearly
every module needs. That is how classes of values are made, and values grouped; what people are
told, the text of models and logs safe for a terminal, a cell and a file; and the errors, as few
classes as callers need to distinguish.

JrhError
|- InputError      the user's files: one or more problems, each with its place (exit code 4)
|- Unscored        the pipeline or the judge could not finish: an outcome of `UNSCORED`
|- NoVerdictCase   there is no case to judge, with the reason (a skip); both in `core/cases.py`
`- Disagreement    the judge gave another verdict than the verified label (`plugin/collect.py`)

And errors of code that is not ours (a client, a preprocessor, a judge, a library): in a few lines
instead of a traceback.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import sysconfig
import textwrap
import traceback
import unicodedata
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, dataclass_transform

Json = dict[str, Any]
"""An object of JSON."""
Fields = Mapping[str, Any]
"""The same, only to be read."""
_Value = TypeVar("_Value")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_Value]) -> type[_Value]:
    """A data class whose fields nobody may set, nor add one."""
    made: Any = dataclass(frozen=True, slots=True, repr=False, eq=False)(cls)
    compared = [each.name for each in fields(made) if each.compare]
    values_of: Callable[[Any], Any] = attrgetter(*compared) if compared else type

    # The library would write and compile each of these for each class, in a fifth of a start.
    def is_equal(self: Any, other: object) -> bool:
        return values_of(self) == values_of(other) if type(self) is type(other) else NotImplemented

    def digest(self: Any) -> int:
        return hash(values_of(self))

    made.__eq__, made.__hash__, made.__repr__ = is_equal, digest, _with_fields
    return made  # type: ignore[no-any-return]


def _with_fields(value: Any) -> str:
    texts = [f"{each.name}={getattr(value, each.name)!r}" for each in fields(value) if each.repr]
    return f"{type(value).__qualname__}({', '.join(texts)})"


def grouped(items: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Put items under their keys, in the order in which these appear."""
    groups: dict[_Key, list[_Value]] = {}
    for key, item in items:
        groups.setdefault(key, []).append(item)
    return groups


def grouped_by(items: Iterable[_Value], *attributes: str) -> dict[Any, list[_Value]]:
    """Put items under an attribute of theirs, such as `judge` or `now.judge`, or under several."""
    key = attrgetter(*attributes)
    return grouped((key(item), item) for item in items)


# What people are told.

ELLIPSIS = "…"
GAP = "  "
_NARROWEST_NAME = 12
_SMALLEST_AMOUNT = 0.0001
_LONGEST_NAME = 60
_LONGEST_VALUE = 80
_MOST_COUNTED = 20
# The joiners U+200C and U+200D are part of words and of emoji.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[{_HIDDEN}\u061c\u200e\u200f]")
_UNSAFE_IN_RTL = re.compile(f"[{_HIDDEN}]")
_RTL = re.compile("[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_ANSI = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.MULTILINE)
# What a spreadsheet puts to a number, or takes from it.
_SPREADSHEET = re.compile(r"\.0+$|^\s*(?:0+(?=\d))?|(?<=\d)[,'\s](?=\d{3})|\s+$")
_SURROGATE = "[\ud800-\udfff]"


class Styled(NamedTuple):
    """A line, and how it is to be shown: `bold`, `red`, `green`, `yellow`, several of them with
    spaces between, or plainly.
    """

    text: str
    style: str = ""


def replace_what_cannot_be_shown() -> None:
    """Let streams that are not UTF-8 replace what they have no letter for: the exit code is the
    decision's.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def visible(text: str) -> str:
    r"""Write control characters, and those that reorder, break or hide text, as escapes (`\x1b`).

    Newlines and tabs stay, and beside letters that are written from the right the marks of a
    direction; a lone surrogate becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        # True of most texts, and found in a fraction of the time.
        return text
    text = text.replace("\r\n", "\n")
    return (_UNSAFE_IN_RTL if _RTL.search(text) else _UNSAFE).sub(_escape, text)


def capital(text: str) -> str:
    """The text with its first letter as a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def escape_commands(text: str) -> str:
    r"""Escape what GitHub's runner would read as a command in a log: `::error`, indented or not,
    and `##[error]`.
    """
    return _COMMAND.sub(lambda match: "#\\x23" if match[1] is None else f"{match[1]}\\x3a", text)


def log_line(text: str) -> str:
    """Give the text as one line that a terminal and GitHub's runner take for nothing but text."""
    return escape_commands(one_line(text))


def name_problem(name: str) -> str | None:
    """Say why a text cannot be the name of a person in files and reports; None where it can."""
    if not name.strip():
        return "must be a name"
    if len(name) > _LONGEST_NAME:
        return f"a name must have at most {_LONGEST_NAME} characters"
    return None if name.isprintable() else "a name must have no control characters"


def same_lines(text: str) -> str:
    """A text in which every line ends in a newline alone, as in a checkout on any system."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def plain(text: str) -> str:
    """Drop ANSI sequences and control characters, which XLSX forbids.

    Every line ends in a newline alone.
    """
    text = _ANSI.sub("", same_lines(text))
    return _CONTROL.sub("", re.sub(_SURROGATE, "\ufffd", text))


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON-like value, or one of the model, with every string in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        changed = {}
        for key, item in value.items():
            changed[with_texts(key, change)] = with_texts(item, change)
        return changed
    if isinstance(value, list | tuple):
        items = [with_texts(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        names = [declared.name for declared in fields(value)]
        return replace(value, **{name: with_texts(getattr(value, name), change) for name in names})
    return value


def storable(value: _Value) -> tuple[_Value, int]:
    """Make every text in a JSON value storable: lone surrogates become U+FFFD, NULs go.

    Returns the value (the very same object where nothing had to change) and the number of
    characters replaced or dropped, in keys and values.
    """
    count = 0

    def text(old: str) -> str:
        nonlocal count
        new, surrogates = (
            (old, 0) if old.isascii() else re.subn(_SURROGATE, "\N{REPLACEMENT CHARACTER}", old)
        )
        count += surrogates
        if "\x00" in new:
            count += new.count("\x00")
            new = new.replace("\x00", "")
        return new

    new = with_texts(value, text)
    return (new, count) if count else (value, 0)


def one_line(text: str) -> str:
    """Give the text with every run of white space made one space."""
    return " ".join(visible(text).split())


def columns(text: str) -> int:
    """How many columns of a terminal the text takes.

    Wide characters take two, combining ones none.
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def shortened(text: str, width: int) -> str:
    """At most `width` columns of the text, with an ellipsis in place of what is missing."""
    if columns(text) <= width:
        return text
    taken = characters = 0
    for char in text:
        taken += columns(char)
        if taken > width - 1:
            break
        characters += 1
    return text[:characters] + ELLIPSIS


def cut_in_the_middle(text: str, width: int) -> str:
    """At most `width` columns of the text, two thirds of them from its end."""
    if columns(text) <= width:
        return text
    # What tells names apart is more often at their end.
    begin = shortened(text, (width + 2) // 3)
    end = shortened(text[::-1], width - columns(begin) + 1)
    return begin + end[-2::-1]


def aligned(lines: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lines of a name and its cells as columns of a table of at most `width` columns, in which the
    names get what the cells leave.
    """
    names, *cells_by_column = map(list, zip(*lines, strict=True))
    widths = [max(map(columns, cells)) for cells in cells_by_column]
    names_room = width - sum(widths) - len(GAP) * len(widths)
    room = min(max(map(columns, names)), max(names_room, _NARROWEST_NAME))
    rows = []
    for long_name, *cells in lines:
        name = cut_in_the_middle(long_name, room)
        padded = [name + " " * (room - columns(name))]
        for cell, wide in zip(cells, widths, strict=True):
            padded.append(" " * (wide - columns(cell)) + cell)
        rows.append(GAP.join(padded).rstrip())
    return rows


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most `width` columns, paragraphs kept, each behind `indent`."""
    width = max(width - len(indent), 20)
    wrapper = textwrap.TextWrapper(width, break_on_hyphens=False, replace_whitespace=False)
    lines: list[str] = []
    for paragraph in visible(text).expandtabs(4).split("\n"):
        for line in wrapper.wrap(paragraph) or [""]:
            lines += _pieces(line, width)
    return [f"{indent}{line}".rstrip() for line in lines]


def both_ends(text: str, width: int) -> list[str]:
    """The text in two lines at most: of a long one its beginning, and its end, between words."""
    text = one_line(text)
    lines = wrapped(text, width)
    if len(lines) > 2:  # noqa: PLR2004 - as said
        end = shortened(text[::-1], width - 1)[-2::-1]
        lines[1:] = [f"{ELLIPSIS} {end.partition(' ')[2] or end}"]
    return lines


def _pieces(line: str, width: int) -> Iterator[str]:
    """A line of so many characters, cut where it takes more columns."""
    start = taken = 0
    for place, char in enumerate(line):
        taken += columns(char)
        if taken > width:
            yield line[start:place]
            start, taken = place, columns(char)
    yield line[start:]


def all_wrapped(texts: Iterable[str], width: int) -> list[str]:
    """The lines of all texts; see `wrapped`."""
    return list(chain.from_iterable(wrapped(text, width) for text in texts))


def nearest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Pick the choice that a mistyped word most likely meant, compared without regard to case."""
    # Loaded where a word is wrong: most sessions need it for nothing.
    from difflib import get_close_matches

    by_lower = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(word.strip().lower(), by_lower, n=1, cutoff=cutoff)
    if not matches:
        return None
    return by_lower[matches[0]]


def nearest_hint(
    word: str, choices: Iterable[str], noun: str = "name", cutoff: float = 0.6
) -> str | None:
    """The hint that names the choice which a mistyped word most likely meant, where there is one;
    `noun` is what the choices are.
    """
    choice = nearest(word, choices, cutoff)
    if choice is None:
        return None
    return f'"{one_line(choice)}" is the nearest {noun}'


def spreadsheet_hint(name: str, choices: Iterable[str]) -> str | None:
    """The hint that names the id that a spreadsheet has written otherwise, where there is one: `1`
    as `1.0`, `007` as `7`, `1000` as `1,000`.
    """
    bare = _SPREADSHEET.sub("", name)
    for choice in choices:
        if choice != name and _SPREADSHEET.sub("", choice) == bare:
            ids = f'"{visible(choice)}" as "{visible(name)}"'
            return f"a spreadsheet may have written {ids}: format the ids as text"
    return None


def as_known(name: str, known: Container[str]) -> str:
    """An id as it is known: older versions kept one with a `'` before it, or without its own."""
    for written in (name, name.removeprefix("'"), f"'{name}"):
        if written in known:
            return written
    return name


def short_digest(text: str, length: int = 12) -> str:
    """The first hex digits of a text's SHA-256; 12 of them name things in addresses and reports."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def printable(text: str | Exception | Path, limit: int = _LONGEST_VALUE) -> str:
    """Make text safe and short for one line of a terminal: no escapes, no control characters."""
    flat = ""
    for char in _ANSI.sub("", str(text)[: 4 * limit]):
        flat += char if char.isprintable() else " "
    if len(flat) > limit:
        return flat[: limit - 3] + "..."
    return flat


def shown(value: object) -> str:
    """Render a received value as a user may have typed it; collections are only named."""
    match value:
        case None:
            return "no value"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(printable(value), ensure_ascii=False)
        case int() | float():
            return printable(str(value))
        case dict():
            return "a mapping"
        case _:
            return "a list"


def listed(names: Iterable[str], limit: int = 30, more: int = 0) -> str:
    """Join names for a sentence; the end of a long list is counted instead of printed, and so are
    those `more` that are not among the names.
    """
    all_names = list(names)
    text = ", ".join(printable(name, 60) for name in all_names[:limit])
    left_out = max(0, len(all_names) - limit) + more
    if left_out > 0:
        text += f" and {left_out} more"
    return text


def received(value: Any, expected: str) -> str:
    """Describe a value of the wrong kind: what was there and what may be there."""
    return f"got {shown(value)}; must be {expected}"


def absolute(path: Path) -> Path:
    """The path as pytest itself makes it absolute: without `..`, and with symbolic links left as
    they are.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links


def relative_path(path: Path, folder: Path) -> Path:
    """The path relative to the folder where it is inside of it, else as it is."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def counted(number: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def out_of(number: int, total: int, noun: str = "") -> str:
    """`6 of 25 violations (24%)`."""
    every = counted(total, noun) if noun else f"{total:,}"
    return f"{number:,} of {every}{share(number, total)}"


def share(number: int, total: int) -> str:
    """` (24%)`, behind a count of so many that it is hard to read as a share."""
    if number in (0, total) or total <= _MOST_COUNTED:
        return ""
    text = f"{number / total:.0%}"
    if text == "0%":
        text = "<1%"
    elif text == "100%":
        text = ">99%"
    return f" ({text})"


def dollars(amount: float) -> str:
    """An amount of money, small ones to a hundredth of a cent; what is less is said to be so."""
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    return "<$0.0001" if amount < _SMALLEST_AMOUNT else f"${amount:,.4f}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - the surrogates
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - one byte


# What is wrong, and whose code it was.

MOST_PROBLEMS = 10
"""Of one file, or of files that are read together: more would hide the first."""
_PACKAGE = Path(__file__).parents[1]
_MOST_FRAMES = 3
_LONGEST_TEXT = 20_000


class JrhError(Exception):
    """Base of everything that pytest-jrh raises on purpose."""


@frozen
class Problem:
    """One mistake in one of the user's files.

    `message` says what was there and what may be there; `hint` is the nearest match or the
    command to run next, without the words "did you mean". `answer` is what a command that asks is
    to be given beside its arguments.
    """

    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    hint: str | None = None
    answer: str = ""

    def __str__(self) -> str:
        where = self.file or ""
        if where and self.line is not None:
            where += f":{self.line}"
        parts = [part for part in (where, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}\n    {self.hint}" if self.hint else text


def first_problems(
    problems: Sequence[Problem], file: str, path: str | None = None
) -> list[Problem]:
    """The first problems of a file, as many as a person reads, and how many more there are.

    `path` is that of a list in a JSON document, where the lines are the numbers of its entries.
    """
    first = []
    for problem in problems[:MOST_PROBLEMS]:
        if path is not None and problem.line is not None:
            # Without a key it is about all entries.
            key = problem.key and f"{path}[{problem.line - 1}].{problem.key}"
            problem = replace(problem, line=None, key=key)  # noqa: PLW2901
        first.append(problem)
    left_out = len(problems) - len(first)
    if left_out:
        first.append(
            Problem(f"correct the problems above to see {counted(left_out, 'more problem')}", file)
        )
    return first


class InputError(JrhError):
    """The user's files cannot be used; `problems` holds every mistake found, not just the first.

    It is made of them, of one of them, or of the message and the place of one.
    """

    def __init__(
        self,
        what: str | Problem | Iterable[Problem],
        file: str | Path | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        if isinstance(what, str):
            what = Problem(what, None if file is None else str(file), line, key, hint)
        self.problems = (what,) if isinstance(what, Problem) else tuple(what)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@contextlib.contextmanager
def collecting(problems: list[Problem]) -> Iterator[None]:
    """Collect the problems of an `InputError` raised in this block, and go on."""
    try:
        yield
    except InputError as error:
        problems += error.problems


class SessionEnd(BaseException):
    """User code asked for the end of the session, as Ctrl-C does; `error` is what it raised.

    It takes the error's place inside the event loop: asyncio ends a loop when one of its tasks
    raises `KeyboardInterrupt`, and no other case would come to its end.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(repr(type(error)))


@contextlib.contextmanager
def holding(variable: ContextVar[_Value], value: _Value) -> Iterator[None]:
    """Give a variable of the present context a value until the block ends."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def error_text(error: BaseException) -> str:
    """The error's class and message on one line, in full: cut it once secrets are out of it."""
    words = " ".join(str(error).split())
    name = type(error).__name__
    if not words:
        return name
    return f"{name}: {words[:_LONGEST_TEXT]}"


def error_places(error: BaseException, *, own_only: bool = False) -> tuple[str, ...]:
    """The last three places of the user's own code in the error's traceback, as `file:line in
    function`.

    Installed libraries and the standard library are left out; where nothing else is in the
    traceback, the last place outside this package is given, unless `own_only`.
    """
    foreign: list[traceback.FrameSummary] = []
    cause: BaseException | None = error
    while cause is not None and not foreign:
        # Python makes a RuntimeError of a StopIteration, and places it where it met it: outside of
        # the user's code.
        frames = traceback.walk_tb(cause.__traceback__)
        stack = traceback.StackSummary.extract(frames, lookup_lines=False)
        foreign = [frame for frame in stack if not Path(frame.filename).is_relative_to(_PACKAGE)]
        cause = cause.__cause__
    own_frames = [frame for frame in foreign if not is_ours_or_installed(frame.filename)]
    frames_to_name = own_frames[-_MOST_FRAMES:]
    if not frames_to_name and not own_only:
        frames_to_name = foreign[-1:]
    folder = Path.cwd()
    places = []
    for frame in frames_to_name:
        file = relative_path(Path(frame.filename), folder)
        places.append(f"{file}:{frame.lineno} in {frame.name}")
    return tuple(places)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_ours_or_installed(file: str) -> bool:
    """Whether code is of this package, of Python, of an installed library, or in no file."""
    if file.startswith("<") or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts):
        return True
    library, platform_library = map(sysconfig.get_path, ("stdlib", "platstdlib"))
    folders = (_PACKAGE, Path(library), Path(platform_library))
    return any(map(Path(file).is_relative_to, folders))


def is_ours(error: BaseException) -> bool:
    """Whether the error was raised by a line of this package: then it is a bug of ours, wherever it
    surfaces.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and Path(frames[-1].f_code.co_filename).is_relative_to(_PACKAGE)
