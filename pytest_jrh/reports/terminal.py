"""The `jrh` section of the terminal as styled lines: the answer in few of them, with `-v` above it
all that it rests on; and the one annotation for GitHub.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from pytest_jrh.core.documents import listed
from pytest_jrh.core.files import absolute, relative_path
from pytest_jrh.core.text import GAP, Styled, aligned, columns, one_line, shortened, wrapped
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
from pytest_jrh.reports.reading import worst_cases
from pytest_jrh.reports.report import Display, Report
from pytest_jrh.reports.said import said
from pytest_jrh.reports.session import Session, spending_text
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
MOST_LINES = 16
"""Of an answer without `-v`, where it can be so short."""
_FEWEST_ROWS = 3
_WORD_ROOM = 6
_TITLE_ROOM = 12
_MOST_OF_DIFF = 2  # lines
_MOST_RUNS = 8


class TerminalReport(Report):
    """The answer, at the very end of a session, and with `-v` what it rests on."""

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if display.verbosity > 0 and session.results:
            yield from block_lines(said(session).details, display.width, verbose=True)
            yield Styled("")
        yield from answer_lines(session, display)


def answer_lines(session: Session, display: Display) -> list[Styled]:
    """The answer and what makes it doubtful; with `-q` the words about the suites. The last line
    says where the report is, and what the session has cost.
    """
    session_said = said(session)
    last = _report_lines(session, display)
    headlines = [block for block in session_said.answer if isinstance(block, Headline)]
    head: list[Block] = []
    if len(headlines) > 1 and session_said.word not in ("", "PASS"):
        head.append(Headline(session_said.word, session_said.headline))
    if display.verbosity < 0:
        return [*block_lines([*head, *headlines], display.width), *last]
    head += session_said.answer
    # What to read and to do comes last.
    foot = session_said.steps
    # Warnings first: what is only good to know gives way to the answer.
    doubts = sorted(session_said.doubts, key=lambda block: not is_warning(block))
    if display.verbosity > 0:
        return [*block_lines([*head, *doubts, *foot], display.width, verbose=True), *last]
    foot_lines = [*block_lines(foot, display.width), *last]
    room = MOST_LINES - len(foot_lines)
    fewest = min(1, sum(map(is_warning, doubts)))
    head_lines = _fitted(head, display.width, room - fewest)
    doubt_lines = _fitted_doubts(doubts, display.width, max(room - len(head_lines), fewest))
    return [*head_lines, *doubt_lines, *foot_lines]


def _report_lines(session: Session, display: Display) -> list[Styled]:
    """Where the reports are, and what the session has cost; in one line where there is room."""
    lines = []
    if display.written:
        # The page comes first, and has what the others have.
        first = one_line(str(relative_path(display.written[0], display.folder)))
        more = len(display.written) - 1
        lines.append(f"{'report':<{_TITLE_ROOM}}{first}{f' and {more:,} more' if more else ''}")
    if not session.is_table and (session.results or session.spending.calls):
        cost = spending_text(session.spending)
        gap = display.width - sum(map(columns, (*lines, cost)))
        if lines and gap >= len(GAP):
            lines[0] += f"{' ' * gap}{cost}"
        else:
            lines.append(f"{'cost':<{_TITLE_ROOM}}{cost}")
    return [*map(Styled, lines)]


def _fitted(blocks: Sequence[Block], width: int, room: int) -> list[Styled]:
    """The lines of blocks; where there is not room for all, without the rows of tables beyond the
    worst, then without plain sentences, and then without tables.
    """
    short = [replace(block, most=0) if isinstance(block, Table) else block for block in blocks]
    bare = [block for block in short if not isinstance(block, Sentence) or block.weight]
    without_tables = [block for block in bare if not isinstance(block, Table)]
    lines: list[Styled] = []
    for shown in (blocks, short, bare, without_tables):
        lines = list(block_lines(shown, width))
        if len(lines) <= room:
            break
    return lines


def _fitted_doubts(doubts: Iterable[Block], width: int, room: int) -> list[Styled]:
    """Doubts, whole where there is room for all, else without lists of cases, else each cut to a
    line, but for the first; of warnings beyond that their number.
    """
    lines = list(block_lines(doubts, width, indent=len(GAP)))
    if len(lines) <= room:
        return lines
    sentences = []
    for block in doubts:
        if isinstance(block, Cases):
            text = block.title if block.is_sentence else block.in_a_line
            sentences.append(Sentence(text, block.weight))
        elif isinstance(block, Sentence):
            sentences.append(block)
    lines = list(block_lines(sentences, width, indent=len(GAP)))
    if len(lines) <= room:
        return lines
    lines = []
    for sentence in sentences:
        mark = "! " if is_warning(sentence) else GAP
        line = shortened(f"{mark}{one_line(sentence.text)}", width)
        lines.append(Styled(line, _STYLES.get(sentence.weight, "")))
    warnings = sum(map(is_warning, sentences))
    first = list(block_lines(sentences[:1], width))
    if warnings and len(first) <= room - warnings + 1:
        lines[:1] = first
    if warnings > room:
        more = f"! {warnings - room + 1:,} doubts about these figures: see -v"
        lines[room - 1 :] = [Styled(more, "yellow")]
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
                of = f"{one_line(suite)}: " if suite else ""
                mark = f"{word}{GAP}" if word else ""
                yield from _hanging(mark, f"{of}{text}", width, _COLOURS[word])
            case Sentence(text, weight):
                mark = "! " if weight == "warning" else ""
                before = "" if weight else " " * indent
                yield from _hanging(f"{before}{mark}", text, width, _STYLES.get(weight, ""))
            case Line(title, text, weight, command):
                head = f"{title:<{_TITLE_ROOM}}"
                style = _STYLES.get(weight, "")
                whole = f"{head}{one_line(command)}{GAP}{one_line(text)}"
                if command and columns(whole) <= width:
                    yield Styled(whole, style)
                    continue
                if command:
                    # Never cut, so that it can be copied.
                    yield Styled(f"{head}{one_line(command)}", style)
                    head = " " * _TITLE_ROOM
                yield from _hanging(head, text, width, style)
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
    lines = wrapped(one_line(text), width - columns(head))
    for number, line in enumerate(lines):
        yield Styled(f"{' ' * columns(head) if number else head}{line}", style)


def _table(table: Table, width: int) -> Iterator[Styled]:
    """A table; where it is too wide, titles take two lines, and intervals a table of their own."""
    shown = list(table.rows)
    if len(shown) > table.most:
        # The total is in the headline where room is short.
        shown = [row for row in shown if row.level != "total"][: table.most or _FEWEST_ROWS]
    names = [f"{GAP if row.level == 'variant' else ''}{one_line(row.name)}" for row in shown]
    whole = [[one_line(cell.whole) for cell in row.cells] for row in shown]
    heads = [(table.first, *table.titles)]
    room = width - sum(map(columns, table.titles)) - len(GAP) * len(table.titles)
    lines = _rows(heads, names, whole, width)
    if room < max(map(columns, names), default=0) or max(map(columns, lines)) > width:
        pairs = [title.rpartition(" ") for title in heads[0]]
        heads = [tuple(pair[0] for pair in pairs), tuple(pair[2] for pair in pairs)]
        lines = _rows(heads, names, [[cell.text for cell in row.cells] for row in shown], width)
    for number, line in enumerate(lines):
        is_bold = number < len(heads) or shown[number - len(heads)].level == "total"
        yield Styled(line, "bold" if is_bold else "")
    ranged = [at for at in range(len(table.titles)) if any(row.cells[at].range for row in shown)]
    if len(heads) > 1 and ranged:
        titles = [table.titles[at] for at in ranged]
        ranges = [[row.cells[at].range or NONE for at in ranged] for row in shown]
        yield from map(Styled, _rows([("95% intervals", *titles)], names, ranges, width))


def _rows(
    heads: Sequence[Sequence[str]],
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    width: int,
) -> list[str]:
    rows = [(name, *of_row) for name, of_row in zip(names, cells, strict=True)]
    return aligned([*heads, *rows], width)


def _cases(block: Cases, width: int, *, verbose: bool) -> Iterator[Styled]:
    style = _STYLES.get(block.weight, "")
    title = block.title if block.is_sentence else f"{block.heading}:"
    mark = "! " if block.is_sentence and block.weight == "warning" else ""
    yield from _hanging(mark, title, width, style)
    cases, more = block.first(block.most)
    for named in cases:
        why = f" ({one_line(named.why)})" if named.why else ""
        line = f"{GAP}{one_line(named.name)}{why}"
        if named.title and not verbose:
            line = shortened(f"{GAP}{one_line(named.title)}{why}", width)
        yield Styled(line, style)
    if more:
        yield Styled(f"{GAP}and {more:,} more", style)


def _read_first(block: ReadFirst, width: int) -> Iterator[Styled]:
    """The worst case in three lines, and the runs of the next ones."""
    first, rest = block.cases[0], block.cases[1:]
    indent = " " * _TITLE_ROOM
    rubric = f"{GAP}{first.rubric}" if first.rubric else ""
    title = f"{one_line(first.run)}{rubric}{f': {first.done}' if first.done else ''}"
    yield Styled(shortened(f"{'read first':<{_TITLE_ROOM}}{title}", width), "red")
    label = f"{first.mistake}; label {first.label} ({first.basis})"
    yield Styled(shortened(f"{indent}{one_line(label)}", width))
    if first.reason:
        yield Styled(shortened(f'{indent}{first.judge}: "{first.reason}"', width))
    cases_of_run = Counter(case.run for case in block.cases)
    runs = []
    for case in rest:
        rubric = f" ({case.rubric})" if cases_of_run[case.run] > 1 and case.rubric else ""
        runs.append(f"{case.run}{rubric}")
    shown = _MOST_RUNS
    while shown > 1 and columns(f"{indent}{listed(runs, shown)}") > width:
        shown -= 1
    if runs:
        yield Styled(shortened(f"{indent}{listed(runs, shown)}", width))


def _diff(block: Diff, width: int, *, verbose: bool) -> Iterator[Styled]:
    """The largest change, in two lines; with `verbose` all of them."""
    changes = [piece for piece in block.pieces if piece.kind != "same"]
    if verbose:
        yield Styled(f"{one_line(block.title)}:")
        for piece in changes:
            sign, style = ("-", "red") if piece.kind == "gone" else ("+", "green")
            for line in piece.text.strip("\n").split("\n"):
                yield from _hanging(f"{GAP}{sign} ", line, width, style)
        return
    gone = ""
    largest = ("", "")
    for piece in block.pieces:
        if piece.kind == "gone":
            gone = one_line(piece.text)
        change = (gone, one_line(piece.text) if piece.kind == "new" else "")
        largest = max(largest, change, key=lambda pair: sum(map(len, pair)))
        if piece.kind != "gone":
            gone = ""
    title = f"{one_line(block.title)}: "
    # Some of each line is lost where it is wrapped.
    room = _MOST_OF_DIFF * width - columns(title) - len(_CHANGED) - 2 * _TITLE_ROOM
    room //= 2 if all(largest) else 1
    text = _CHANGED.join(f'"{shortened(part, room)}"' for part in largest)
    yield from _hanging("", f"{title}{text}", width)


_CHANGED = " -> "


class Annotation(Report):
    """What GitHub shows beside the changed prompt of a pull request; in its jobs alone."""

    is_for_runner = True

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.folder)
        return map(Styled, annotation_lines(session, workspace))


_MOST_NAMED = 3


def annotation_lines(session: Session, workspace: Path) -> Iterator[str]:
    """Write `::error file=,line=,title=::message` with the decision and the cases to read first, at
    the lines of the prompt that changed; a notice where a change of prompt or baseline is passed,
    and nothing where there is none and nothing fails.

    A file outside of `workspace` is not named. No text of a model or a file can begin or change a
    command.
    """
    properties = _changed_lines(session, absolute(workspace))
    is_changed = any(decision.changed for decision in session.decisions.values())
    kind = "warning" if session.word == "UNCLEAR" else "notice"
    if not session.passed:
        kind = "error"
    elif kind == "notice" and not properties and not is_changed:
        return
    session_said = said(session)
    message = []
    for case in islice(worst_cases(session), _MOST_NAMED):
        rubric = f", {case.rubric}" if case.rubric else ""
        message.append(f"{case.run}{rubric}: {case.done} ({case.mistake}): {case.reason}")
    properties["title"] = f"{session_said.word}: {session_said.headline}".removeprefix(": ")
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = _message("\n".join(map(one_line, message)))
    yield f"::{kind} {written}::{text}"


def _changed_lines(session: Session, workspace: Path) -> dict[str, str]:
    """Where the first prompt that changed did so; empty where none did in the workspace."""
    for change in session.prompt_changes:
        path = absolute(workspace / change.now.file)
        is_changed = change.now.file and change.before != change.now.text
        if is_changed and path.is_relative_to(workspace):
            first, last = change.lines
            lines = {"file": path.relative_to(workspace).as_posix(), "line": str(first)}
            return {**lines, "endLine": str(last)} if last > first else lines
    return {}


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(one_line(text)).replace(":", "%3A").replace(",", "%2C")
