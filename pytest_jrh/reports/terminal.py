"""The `jrh` section of the terminal as styled lines: the answer in few of them, with `-v` above it
all that it rests on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_jrh.core import (
    ELLIPSIS,
    GAP,
    Styled,
    aligned,
    both_ends,
    columns,
    counted,
    listed,
    one_line,
    relative_path,
    shortened,
    wrapped,
)
from pytest_jrh.reports.blocks import (
    Block,
    Cases,
    Diff,
    Headline,
    Line,
    Points,
    ReadFirst,
    Section,
    Sentence,
    Table,
    Weight,
    is_warning,
)
from pytest_jrh.reports.report import Display, Report
from pytest_jrh.reports.session import Session, spending_text
from pytest_jrh.reports.summary import compose
from pytest_jrh.stats.decision import Word
from pytest_jrh.stats.figures import NONE

_STYLES: Mapping[Weight, str] = {
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
}
_COLOURS: Mapping[Word, str] = {
    "PASS": "bold green",
    "UNCLEAR": "bold yellow",
    "FAIL": "bold red",
    "": "bold",
}
MOST_LINES = 23
"""Of an answer without `-v`, where it can be so short."""
_FEWEST_ROWS = 3
_WORD_ROOM = 6
_TITLE_ROOM = 12
_MOST_OF_DIFF = 2  # lines
_NARROWEST_CHANGE = 40
_MOST_RUNS = 5


class TerminalReport(Report):
    """The answer and what makes it doubtful, at the very end of a session: with `-v` all that it
    rests on above it, and with `-q` the words about the suites. The last line says where the report
    is, and what the session has cost.
    """

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:
        summary, width = compose(session), display.width
        head: list[Block] = []
        if len(summary.headlines) > 1 and summary.word not in ("", "PASS"):
            head.append(Headline(summary.word, summary.headline))
        # Warnings first: what is only good to know gives way to the answer.
        doubts = sorted(summary.doubts, key=lambda block: not is_warning(block))
        last_lines = _report_lines(session, display)
        steps: list[Block] = [*summary.steps]
        if steps and isinstance(steps[0], ReadFirst):
            is_decided = any(decision.active for decision in session.decisions.values())
            if len(steps[0].cases) == 1 and not (is_decided or session.is_table):
                # It has failed by itself, with as many words.
                del steps[0]
            elif display.written:
                # The page has the others.
                steps[0] = replace(steps[0], cases=steps[0].cases[:1])
        # What to read and to do comes last.
        if display.verbosity > 0:
            if session.results or session.people:
                yield from block_lines(summary.details, width, verbose=True)
                yield Styled("")
            blocks = [*head, *summary.answer, *doubts, *steps]
            yield from block_lines(blocks, width, verbose=True)
        elif display.verbosity < 0:
            yield from block_lines([*head, *summary.headlines], width)
        else:
            foot_lines = list(block_lines(steps, width))
            room = MOST_LINES - len(foot_lines) - len(last_lines)
            # However long the answer is, one line says that there are warnings.
            fewest = min(1, sum(map(is_warning, doubts)))
            head_lines = _fitted([*head, *summary.answer], width, room - fewest)
            yield from head_lines
            yield from _fitted_doubts(doubts, width, max(room - len(head_lines), fewest))
            yield from foot_lines
        yield from last_lines


def _report_lines(session: Session, display: Display) -> list[Styled]:
    """Where the reports are, and what the session has cost; in one line where there is room."""
    lines = []
    if display.written:
        # The page comes first, and has what the others have.
        first, *others = display.written
        line = f"{'report':<{_TITLE_ROOM}}{one_line(str(relative_path(first, display.folder)))}"
        lines.append(f"{line} and {counted(len(others), 'more file')}" if others else line)
    if not session.is_table and (session.results or session.spending.calls):
        cost = spending_text(session.spending)
        gap = display.width - sum(map(columns, (*lines, cost)))
        if lines and gap >= len(GAP):
            lines[0] += f"{' ' * gap}{cost}"
        elif session.spending.calls or not (lines or session.is_part):
            # That nothing was paid is worth no line of its own beside these.
            lines.append(f"{'cost':<{_TITLE_ROOM}}{cost}")
    return [*map(Styled, lines)]


def _fitted(blocks: Sequence[Block], width: int, room: int) -> list[Styled]:
    """The lines of blocks; where there is not room for all, without the rows of tables beyond the
    worst, and then without plain sentences, the last of them first: reasons come before others.
    """
    lines = list(block_lines(blocks, width))
    shown = [replace(block, most=0) if isinstance(block, Table) else block for block in blocks]
    plain = [block for block in shown if isinstance(block, Sentence) and not block.weight]
    while len(lines) > room:
        lines = list(block_lines(shown, width))
        if not plain:
            break
        shown.remove(plain.pop())
    return lines


def _fitted_doubts(doubts: Sequence[Block], width: int, room: int) -> list[Styled]:
    """Doubts, whole where there is room for all, else without lists of cases, else each cut to a
    line, but for the first; of warnings beyond that their number.
    """
    sentences = []
    for block in doubts:
        if isinstance(block, Cases):
            text = block.title if block.is_sentence else block.in_a_line
            sentences.append(Sentence(text, block.weight))
        elif isinstance(block, Sentence):
            sentences.append(block)
    for fewer_blocks in (doubts, sentences):
        lines = list(block_lines(fewer_blocks, width, indent=len(GAP)))
        if len(lines) <= room:
            return lines
    lines = []
    for sentence in sentences:
        mark = "! " if is_warning(sentence) else GAP
        lines.append(
            Styled(
                shortened(f"{mark}{one_line(sentence.text)}", width),
                _STYLES.get(sentence.weight, ""),
            )
        )
    warnings = sum(map(is_warning, sentences))
    first_doubt = list(block_lines(sentences[:1], width))
    if warnings and len(first_doubt) <= room - warnings + 1:
        lines[:1] = first_doubt
    if warnings > room:
        text = f"! {warnings - room + 1:,} more warnings about these figures; -v shows them"
        lines[room - 1 :] = [Styled(text, "yellow")]
    return lines[:room]


def block_lines(
    blocks: Iterable[Block], width: int, *, verbose: bool = False, indent: int = _WORD_ROOM
) -> Iterator[Styled]:
    """Blocks in at most `width` columns. Plain sentences outside of sections stand under the
    headline's, behind its word.

    With `verbose` the node ids of cases stand alone on their lines and are never cut, so that they
    can be copied; without, cases are named by what was done.
    """
    for block in blocks:
        match block:
            case Headline(word, text, suite):
                mark = f"{word}{GAP}" if word else ""
                if suite:
                    text = f"{one_line(suite)}: {text}"
                yield from _hanging(mark, text, width, _COLOURS[word])
            case Sentence(text, weight):
                mark = "" if weight else " " * indent
                if weight == "warning":
                    mark = "! "
                yield from _hanging(mark, text, width, _STYLES.get(weight, ""))
            case Line():
                yield from _line(block, width)
            case Points(sentences):
                for sentence in sentences:
                    yield from _hanging("- ", sentence, width)
            case Table():
                yield from _table(block, width)
            case Cases():
                yield from _cases(block, width, verbose=verbose)
            case ReadFirst():
                yield from _read_first(block, width)
            case Diff():
                yield from _diff(block, width, verbose=verbose)
            case Section(title, parts):
                yield Styled("")
                yield Styled(shortened(one_line(title), width), "bold")
                yield from block_lines(parts, width, verbose=verbose, indent=0)


def _hanging(head: str, text: str, width: int, style: str = "") -> Iterator[Styled]:
    """A paragraph whose lines stand under each other behind its head."""
    for line in wrapped(one_line(text), width - columns(head)):
        yield Styled(f"{head}{line}", style)
        head = " " * columns(head)


def _line(block: Line, width: int) -> Iterator[Styled]:
    """A sentence behind its title and its command, on one line where there is room."""
    is_doubt = block.title == "labels" and block.weight == "warning"
    head = f"{'! ' * is_doubt + block.title:<{_TITLE_ROOM}}"
    style = _STYLES.get(block.weight, "")
    command = one_line(block.command)
    if command:
        whole_line = f"{head}{command}{GAP}{one_line(block.text)}"
        if columns(whole_line) <= width:
            yield Styled(whole_line, style)
            return
        # Never cut, so that it can be copied.
        yield Styled(f"{head}{command}", style)
        head = " " * _TITLE_ROOM
    yield from _hanging(head, block.text, width, style)


def _table(table: Table, width: int) -> Iterator[Styled]:
    """A table; where it is too wide, titles take two lines, and intervals a table of their own."""
    totals = [row for row in table.rows if row.level == "total"]
    rows = [row for row in table.rows if row.level != "total"]
    most = max(table.most, _FEWEST_ROWS)
    hidden = len(rows) - most
    rows = [*rows[:most], *totals]
    whole, figures, intervals = [], [], []
    for row in rows:
        name = one_line(row.name)
        if row.level == "variant":
            name = f"{GAP}{name}"
        whole.append([name, *(one_line(cell.whole) for cell in row.cells)])
        figures.append([name, *(cell.text for cell in row.cells)])
        intervals.append([name, *(cell.range or NONE for cell in row.cells)])
    titles = [table.first, *table.titles]
    heads = [titles]
    lines = aligned([*heads, *whole], sys.maxsize)
    is_wide = max(map(columns, lines)) > width
    if is_wide:
        heads = [[], []]
        for title in titles:
            first_line, _, last_line = title.rpartition(" ")
            heads[0].append(first_line)
            heads[1].append(last_line)
        lines = aligned([*heads, *figures], width)
    for number, line in enumerate(lines):
        is_bold = number < len(heads) or rows[number - len(heads)].level == "total"
        yield Styled(line, "bold" if is_bold else "")
    if hidden > 0:
        yield Styled(f"and {counted(hidden, 'more row')}")
    if is_wide:
        names, *ranges = zip(["95% intervals", *table.titles], *intervals, strict=True)
        ranges = [column for column in ranges if {*column[1:]} != {NONE}]
        if ranges:
            yield from map(Styled, aligned([*zip(names, *ranges, strict=True)], width))


def _cases(block: Cases, width: int, *, verbose: bool) -> Iterator[Styled]:
    style = _STYLES.get(block.weight, "")
    title = block.title if block.is_sentence else f"{block.heading}:"
    mark = "! " if block.is_sentence and block.weight == "warning" else ""
    yield from _hanging(mark, title, width, style)
    cases, unnamed = block.first(block.most)
    for case in cases:
        why = f" ({one_line(case.why)})" if case.why else ""
        line = f"{GAP}{one_line(case.name)}{why}"
        if case.title and not verbose:
            line = shortened(f"{GAP}{one_line(case.title)}{why}", width)
        yield Styled(line, style)
    if unnamed:
        yield Styled(f"{GAP}and {unnamed:,} more", style)


def _read_first(block: ReadFirst, width: int) -> Iterator[Styled]:
    """The worst case, with the request and the end of the answer, and the runs of the next ones."""
    first, *next_cases = block.cases
    indent = " " * _TITLE_ROOM
    title = f"{'read first':<{_TITLE_ROOM}}{first.run}"
    if first.rubric:
        title += f"{GAP}{first.rubric}"
    if first.done:
        title += f": {first.done}"
    yield Styled(shortened(title, width), "red")
    texts = [f"{part.lower()}: {text}" for part, text in block.parts]
    texts.append(f"{first.mistake}; label: {first.label} ({first.basis})")
    if first.reason:
        texts.append(f'{first.judge}: "{first.reason}"')
    for text in texts:
        yield from (Styled(f"{indent}{line}") for line in both_ends(text, width - _TITLE_ROOM))
    cases_of_run = Counter(case.run for case in block.cases)
    names = []
    for case in next_cases:
        # Its rubric tells a case from others of the same run.
        has_rubric = cases_of_run[case.run] > 1 and case.rubric
        names.append(f"{case.run} ({case.rubric})" if has_rubric else case.run)
    if names:
        yield from _hanging(indent, listed(names, _MOST_RUNS, block.unnamed), width)


def _diff(block: Diff, width: int, *, verbose: bool) -> Iterator[Styled]:
    """The first places, in two lines; with `verbose` all of them."""
    title = f"{one_line(block.title)}:"
    if not verbose:
        # Some of each line is lost where it is wrapped.
        room = _MOST_OF_DIFF * width - columns(title) - 2 * _TITLE_ROOM
        texts: list[str] = []
        for old, new in block.places:
            if texts and room < _NARROWEST_CHANGE:
                break
            texts.append(_change_text(one_line(old), one_line(new), room))
            room -= columns(texts[-1])
        text = f"{title} {'; '.join(texts)}"
        if len(texts) < len(block.places):
            text += f" and {len(block.places) - len(texts):,} more"
        yield from _hanging("", text, width)
        return
    yield Styled(title)
    for place in block.places:
        for sign, style, text in zip("-+", ("red", "green"), place, strict=True):
            for line in text.strip("\n").splitlines():
                yield from _hanging(f"{GAP}{sign} ", line, width, style)


def _change_text(old: str, new: str, room: int) -> str:
    """What has become of a text, in so many columns; each has what the other leaves of them."""
    gone = _quoted(old, max(room // 2, room - columns(new)))
    added = _quoted(new, max(room // 2, room - columns(old)))
    if not new:
        return f"removed {gone}"
    return f"{gone} -> {added}" if old else f"added {added}"


def _quoted(text: str, most: int) -> str:
    """The text in quotes, cut between words to so many columns."""
    if columns(text) > most:
        text = f"{shortened(text, most - 1).rpartition(' ')[0]} {ELLIPSIS}"
    return f'"{text}"'
