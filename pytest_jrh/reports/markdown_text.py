"""Text of models, logs and configs in Markdown: in code spans, or as entities on one line of an
HTML block, where nothing of it is read as Markdown, HTML, a mention or a link.

The room of the Markdown report, and blocks in it as long as they fit.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from pytest_jrh.core.diffs import near_changes
from pytest_jrh.core.text import ELLIPSIS, counted, one_line, shortened, visible
from pytest_jrh.reports.blocks import (
    MOST_IN_MARKDOWN,
    Cases,
    Command,
    Diff,
    Fold,
    Points,
    Section,
    Sentence,
    Table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.core.diffs import Piece
    from pytest_jrh.reports.blocks import Block, Row, Weight


LONGEST_NAME = 160
_LONGEST_TEXT = 1_200
_LONGEST_DIFF = 4_000
_BACKTICKS = re.compile("`+")
_PROSE_MARKS = re.compile(r"([\\`*_\[\]#|~$!])")
_LINKS = re.compile(r"(?i)(www|https?:|ftp:)(?=[./])")
_REFERENCES = re.compile(r"(?i)(@|#(?=\d)|gh-(?=\d))")
_TAGS = {"same": ("", ""), "gone": ("<del>", "</del>"), "new": ("<ins>", "</ins>")}
# Of what an edit leaves as it was, this much is shown beside each change.
_CONTEXT = 160


def code(text: str, *, cell: bool = False) -> str:
    """Give the text, on one line, as a code span that it cannot leave.

    In a table's `cell` a pipe is an escape.
    """
    shown = shortened(one_line(text), LONGEST_NAME)
    if cell:
        # A code span keeps no entity, and a backslash before a pipe is read in more than one way.
        shown = shown.replace("|", "\\x7c")
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
    edge = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{edge}{shown or ' '}{edge}{fence}"


def prose(text: str) -> str:
    """Give a sentence of ours, that may hold a name from outside, as text without any markup."""
    escaped = _PROSE_MARKS.sub(r"\\\1", html.escape(one_line(text), quote=False))
    # A space without width: GitHub looks for mentions and links when the Markdown is long rendered.
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def preformatted(text: str) -> str:
    """Give a command as `<pre>` on a single line, so that no line of it is read as Markdown."""
    return f"<pre>{entities(_cut(visible(text).strip(), _LONGEST_TEXT))}</pre>"


def quoted(text: str) -> str:
    """Give a text as a block that wraps, on a single line, bounded in length."""
    return f"<blockquote>{inert(_cut(visible(text).strip(), _LONGEST_TEXT))}</blockquote>"


def marked(pieces: Iterable[Piece], longest: int) -> str:
    """Give the differences of two texts as a block that wraps: what is gone struck out, what is new
    underlined, and of the rest what stands near a change.
    """
    shown: list[str] = []
    room = longest
    for piece in near_changes([*pieces], _CONTEXT):
        text = visible(piece.text)
        cut = _cut(text, room)
        before, after = _TAGS[piece.kind]
        shown.append(f"{before}{inert(cut)}{after}")
        room -= len(text)
        if room <= 0:
            break
    return f"<blockquote>{''.join(shown)}</blockquote>"


def inert(text: str) -> str:
    """Give the text, on one line of an HTML block, as nothing that GitHub makes a link of."""
    escaped = html.escape(visible(text)).replace("\n", "<br>")
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def _cut(text: str, longest: int) -> str:
    more = len(text) - longest
    return f"{text[:longest]}\n{ELLIPSIS} ({more:,} more characters)" if more > 0 else text


def entities(text: str) -> str:
    """Give the text as entities on one line of an HTML block."""
    return html.escape(text).replace("\n", "&#10;")


_CUT = (
    "\n*This report was cut at its size limit: {what} left out here. The other reports hold "
    "everything.*\n"
)
_RESERVED = 400


class BoundedPage:
    """Blocks of lines as long as they fit; what did not is counted."""

    def __init__(self, limit: int) -> None:
        self._parts: list[str] = []
        self._room = limit - _RESERVED
        self._left_out = 0

    def block(
        self, head: Iterable[str], items: Iterable[str] = (), tail: Sequence[str] = ()
    ) -> None:
        """Add head, as many items as fit, and tail; nothing where not even the first item fits."""
        top, end = _joined(head), _joined(tail)
        needed = _size(top) + _size(end)
        taken: list[str] = []
        given = 0
        for item in items:
            given += 1
            line = f"{item}\n"
            if needed + _size(line) <= self._room and given == len(taken) + 1:
                needed += _size(line)
                taken.append(line)
        if needed > self._room or (given and not taken):
            self._left_out += max(given, 1)
            return
        self._left_out += given - len(taken)
        self._parts += [top, *taken, end]
        self._room -= needed

    def text(self) -> str:
        """The page, with a note where it was cut."""
        cut = _CUT.format(what=f"{counted(self._left_out, 'line')}") if self._left_out else ""
        return "".join(self._parts) + cut


def write_blocks(page: BoundedPage, blocks: Iterable[Block]) -> None:
    """Add blocks, as many as fit; of lists and folds as much as fits."""
    for block in blocks:
        if isinstance(block, Section):
            page.block([f"### {prose(block.title)}\n"])
            write_blocks(page, block.blocks)
        else:
            page.block(*_parts(block))


def _parts(block: Block) -> tuple[list[str], list[str], list[str]]:
    """What comes first, lines of which the last may be cut, and what follows."""
    match block:
        case Table():
            return _table(block)
        case Cases():
            return _cases(block)
        case Points(sentences):
            return [], [f"- {prose(sentence)}" for sentence in sentences], [""]
        case Fold(title, folded, is_open):
            return [_opening(title, is_open=is_open)], _lines(folded), ["</details>\n"]
        case Section(title, blocks):
            return [f"### {prose(title)}\n"], _lines(blocks), []
        case _:
            return [f"{_paragraph(block)}\n"], [], []


def _lines(blocks: Iterable[Block]) -> list[str]:
    return [line for block in blocks for lines in _parts(block) for line in lines]


def _paragraph(block: Sentence | Diff | Command) -> str:
    match block:
        case Sentence(text, weight):
            return _marked(prose(text), weight)
        case Diff(pieces):
            return marked(pieces, _LONGEST_DIFF)
        case Command(advice, command):
            return f"{prose(advice)}\n\n{preformatted(command)}" if command else prose(advice)


def _marked(text: str, weight: Weight) -> str:
    if weight == "warning":
        return f"⚠️ {text}"
    return f"**{text}**" if weight in ("strong", "good", "bad") else text


def _opening(title: str, *, is_open: bool = False) -> str:
    summary = inert(shortened(one_line(title), LONGEST_NAME * 2))
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>\n"


def _table(table: Table) -> tuple[list[str], list[str], list[str]]:
    rows = []
    for row in table.rows:
        cells = [prose(cell.whole) for cell in row.cells]
        rows.append(_table_row([_row_name(row), *cells]))
    head = [f"{prose(table.caption)}\n"] if table.caption else []
    head.append(_table_row([prose(table.first), *map(prose, table.titles)]))
    head.append(_table_row(["---", *("---:" for _ in table.titles)]))
    return head, rows, [""]


def _row_name(row: Row) -> str:
    match row.level:
        case "total":
            return f"**{prose(row.name)}**"
        case "test":
            return f"&nbsp;&nbsp;{row.name}"
        case "variant":
            return f"&nbsp;&nbsp;{code(row.name, cell=True)}"
        case _:
            return code(row.name, cell=True)


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cases(block: Cases) -> tuple[list[str], list[str], list[str]]:
    lines = []
    cases, more = block.first(MOST_IN_MARKDOWN)
    for case in cases:
        why = f" ({prose(case.why)})" if case.why else ""
        lines.append(f"- {code(case.name)}{why}")
    if more:
        lines.append(f"- and {more:,} more")
    if block.is_sentence or block.weight == "bad":
        return [f"{_marked(prose(block.heading), block.weight)}\n"], lines, [""]
    return [_opening(block.heading)], lines, ["\n</details>\n"]


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
