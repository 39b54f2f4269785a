"""What a topic says, as blocks that terminal, Markdown and HTML each render in their own way.

Texts of blocks may hold names from outside: each renderer escapes every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal

from pytest_jrh.core import frozen
from pytest_jrh.core.diffs import Piece
from pytest_jrh.stats.decision import Word
from pytest_jrh.stats.figures import NONE, FigureKind, range_text, value_text
from pytest_jrh.stats.intervals import Estimate

Weight = Literal["", "strong", "good", "bad", "warning", "muted"]
Level = Literal["rubric", "variant", "total"]


@frozen
class Headline:
    """The word about a suite, and why; `suite` where there are several. A table that nothing
    decides about has no word.
    """

    word: Word
    text: str
    suite: str = ""


@frozen
class Sentence:
    """A paragraph."""

    text: str
    weight: Weight = ""


@frozen
class Line:
    """A sentence under a name of one or two words, such as `labels` or `next`, and the command that
    it is about, where there is one.
    """

    title: str
    text: str
    weight: Weight = ""
    command: str = ""


@frozen
class Points:
    """Sentences that belong together."""

    sentences: Sequence[str]


@frozen
class Cell:
    """A figure, and its interval where it has one.

    `reason` says why one of them is missing. `weight` is its colour. Of a share, `share` is its
    size for a bar, with its interval and what it was `before`.
    """

    text: str
    range: str = ""
    reason: str = ""
    weight: Weight = ""
    share: float | None = None
    interval: tuple[float, float] | None = None
    before: float | None = None

    @property
    def whole(self) -> str:
        """The figure with its interval in parentheses, where it has one."""
        has_range = NONE not in (self.range or NONE, self.text)
        return f"{self.text} ({self.range})" if has_range else self.text


def figure(estimate: Estimate, kind: FigureKind = "share") -> Cell:
    """A figure and its interval, and why either of them is missing."""
    interval = "" if estimate.lower is None else range_text(estimate, kind)
    return Cell(value_text(estimate, kind), interval, estimate.why)


@frozen
class Row:
    """A line of a table: variants are parts of the row above them.

    `about` are the suite, the judge and the rubric of its cases, where a list can be filtered by
    them; what is empty is all.
    """

    name: str
    cells: Sequence[Cell]
    level: Level = "rubric"
    about: tuple[str, str, str] = ("", "", "")


@frozen
class Table:
    """Names and their figures; `titles` head the figures, and `first` the names.

    `meanings` explain the titles. Where titles have two lines, the terminal has them too. Where
    room is short, the first `most` rows and the total are enough: the worst come first.
    """

    first: str
    titles: Sequence[str]
    rows: Sequence[Row]
    meanings: Sequence[str] = ()
    most: int = 200


@frozen
class NamedCase:
    """A case by its node id, a remark on it, and where the session has a result of it, its key and
    a `title` that says what was done.
    """

    name: str
    why: str
    key: str
    title: str


_MOST_IN_A_LINE = 3
MOST_IN_MARKDOWN = 200
MOST_ON_PAGE = 500


@frozen
class Cases:
    """A list of so many cases, the first of which have names: the terminal has at most `most` of
    these, and the other reports as many as the two numbers above say.

    Their number stands beside the title, unless that is a sentence, which ends in a full stop.
    """

    title: str
    cases: Sequence[NamedCase]
    number: int
    weight: Weight
    most: int

    @property
    def is_sentence(self) -> bool:
        """Whether the title says by itself how many cases there are."""
        return self.title.endswith(".")

    @property
    def heading(self) -> str:
        """The title with the number of cases."""
        if self.is_sentence:
            return self.title
        return f"{self.title} ({self.number:,})"

    @property
    def in_a_line(self) -> str:
        """The heading, and the first names."""
        cases, unnamed = self.first(_MOST_IN_A_LINE)
        names = ", ".join(case.title or case.name for case in cases)
        text = f"{self.heading.removesuffix('.')}: {names}"
        return f"{text} and {unnamed:,} more" if unnamed else text

    def first(self, most: int) -> tuple[Sequence[NamedCase], int]:
        """At most so many cases, and how many more there are."""
        return self.cases[:most], max(0, self.number - most)


@frozen
class WorstCase:
    """A case that is judged wrong, in the words of a line.

    `case_id` is its result's. `done` says what was done to the run, `mistake` what is wrong with
    the verdict, `label` what is right, `basis` what that rests on, `judge` who said otherwise, and
    `reason` why.
    """

    case_id: str
    run: str
    rubric: str
    done: str
    mistake: str
    label: str
    basis: str
    judge: str
    reason: str

    @property
    def title(self) -> str:
        """The run, the rubric where it is known, and what is wrong."""
        name = f"{self.run}, {self.rubric}" if self.rubric else self.run
        return f"{name}: {self.mistake}"


@frozen
class ReadFirst:
    """The cases that are judged wrong, in the order in which to read them; so many more are
    `unnamed`. `parts` are the request and the answer of the first, where it has some.
    """

    cases: Sequence[WorstCase]
    unnamed: int
    parts: Sequence[tuple[str, str]]


@frozen
class Diff:
    """What changed in a text, and in which; `places` are the old and the new text of each."""

    pieces: Sequence[Piece]
    title: str
    places: Sequence[tuple[str, str]] = ()


@frozen
class Section:
    """Blocks under a heading."""

    title: str
    blocks: Sequence[Block]


Block = Headline | Sentence | Line | Points | Table | Cases | ReadFirst | Diff | Section


def is_warning(block: Block) -> bool:
    """Whether it is a doubt that nobody may overlook."""
    return isinstance(block, Sentence | Cases) and block.weight in ("bad", "warning")


def block_values(value: Any) -> Any:
    """Blocks as JSON values, each with the name of its type, for the template of a page."""
    if is_dataclass(value):
        values = {"type": type(value).__name__}
        for field in fields(value):
            values[field.name] = block_values(getattr(value, field.name))
        return values
    if isinstance(value, list | tuple):
        return [block_values(item) for item in value]
    return value
