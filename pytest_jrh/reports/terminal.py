"""The `jrh` section of the terminal as styled lines: figures with their intervals in the width of
the terminal, changes, the gate's decision, panels, and what `-q` leaves of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.core.model import SKIPS, score_counts
from pytest_jrh.core.text import Styled, columns, counted, fitted, one_line, shortened, wrapped
from pytest_jrh.reports.gate import MOST_NAMED, decision_sentence, gate_lines, next_lines
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.probes import terminal_lines
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import (
    extent_sentences,
    majority_text,
    recording_sentence,
    review_lines,
    unsettled_lines,
)
from pytest_jrh.reports.spending import spending_lines
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import (
    NONE,
    ONE_BY_ONE,
    decimal,
    flicker_sentence,
    left_out,
    percent,
    ranged,
    reasons,
    sections,
)
from pytest_jrh.stats.metrics import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.statistics import flickering

if TYPE_CHECKING:
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import SessionResults
    from pytest_jrh.stats.figures import Cell, Row, Section
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.gate import GateDecision
    from pytest_jrh.stats.panels import Panel


def quiet_lines(session: SessionResults, width: int) -> Iterator[Styled]:
    """A line for each judge of each suite, its warnings, and what each gate decided, with what to
    do about it.
    """
    for section in sections(session.table):
        yield Styled(_figures(section))
        for warning in section_warnings(section):
            yield from _wrapped(f"! {warning}", width, "yellow")
    for sentence in extent_sentences(session):
        yield from _wrapped(one_line(sentence), width, "yellow")
    for suite, decision in session.decisions.items():
        if decision.passed and not decision.active:
            continue
        of = f"suite {one_line(suite)}: " if len(session.decisions) > 1 else ""
        yield from _decided(decision, of, width)
    if sentence := recording_sentence(session):
        yield from _wrapped(sentence, width, "yellow")
        yield Styled(f"  {one_line(session.record_command)}")
    spending = session.spending
    if spending.calls:
        # What was paid for is never left unsaid.
        yield from map(Styled, spending_lines(spending, width))


def _decided(decision: GateDecision, of: str, width: int) -> Iterator[Styled]:
    style = "green" if decision.passed else "red"
    yield from _wrapped(f"{of}{decision_sentence(decision)}", width, style)
    yield from next_lines(decision, width)


def _figures(section: Section) -> str:
    total = section.total
    parts = [counted(total.counts.n, "verdict")]
    if total.counts.n:
        wrong = total.counts.n - sum(each.outcome == "agree" for each in total.judged)
        parts[0] += f", accuracy {ranged(percent(total.accuracy.value), total.accuracy)}"
        parts.append(f"{wrong:,} wrong")
    parts += [f"{number:,} {kind}" for kind, number in left_out(total)]
    return f"{one_line(section.label)}: {', '.join(parts)}"


def _wrapped(text: str, width: int, style: str) -> Iterator[Styled]:
    return (Styled(line, style) for line in wrapped(text, width))


GAP = "  "
NARROWEST_NAME = 12
# So many rubrics and their tests still fit a screen.
_MOST_WITH_TESTS = 8
_SORTED = "Lowest accuracy first; -v shows the tests of each rubric."


@dataclass(frozen=True, slots=True)
class _Widths:
    name: int
    cells: tuple[int, ...]


def table_lines(section: Section, width: int, *, verbose: bool = False) -> Iterator[Styled]:
    """The table of a section: of many rubrics one line each, lowest accuracy first, unless
    `verbose`.
    """
    short = len(section.tests) > 1 and not verbose and _rubrics(section) > _MOST_WITH_TESTS
    rows = _lowest_first(section) if short else section.rows
    widths = _widths(section, rows, width)
    names = fitted_names(rows, widths.name)
    for line in _head(section, widths, tests=not short):
        yield Styled(line, "bold")
    for row in rows:
        if row.level == "total":
            yield Styled(
                "-" * min(width, widths.name + sum(widths.cells) + len(GAP) * len(widths.cells))
            )
        yield Styled(_line(row, names, widths))
    if short:
        yield from map(Styled, wrapped(_SORTED, width))


def fitted_names(rows: Iterable[Row], width: int) -> Mapping[str, str]:
    """The names of rows in at most `width` columns, by the row's whole name."""
    whole = list(dict.fromkeys(map(row_name, rows)))
    return dict(zip(whole, fitted(whole, width), strict=True))


def row_name(row: Row) -> str:
    """A row's name in the table: tests are indented below their rubric."""
    return f"{'  ' if row.level == 'test' else ''}{one_line(row.name)}"


def _rubrics(section: Section) -> int:
    return sum(row.level == "rubric" for row in section.rows)


def _lowest_first(section: Section) -> list[Row]:
    def accuracy(row: Row) -> float:
        value = row.statistics.accuracy.value
        # What cannot be computed has to be seen too.
        return -1 if value is None else value

    rubrics = [row for row in section.rows if row.level == "rubric"]
    return [*sorted(rubrics, key=accuracy), *(row for row in section.rows if row.level == "total")]


def _head(section: Section, widths: _Widths, *, tests: bool) -> Iterator[str]:
    several = len(section.tests) > 1
    first = "rubric, test" if several and tests else "rubric"
    names = ("" if several else section.tests[0], first)
    for part in (0, 1):
        cells = [
            column.heading[part].rjust(wide)
            for column, wide in zip(section.columns, widths.cells, strict=True)
        ]
        name = shortened(names[part], widths.name)
        yield GAP.join([name.ljust(widths.name), *cells]).rstrip()


def _widths(section: Section, rows: Sequence[Row], width: int) -> _Widths:
    """As wide as the figures need; the name takes what is left."""
    cells = []
    for index, column in enumerate(section.columns):
        texts = [*column.heading, *(row.cells[index].text for row in rows)]
        cells.append(max(map(len, texts)))
    left = width - sum(cells) - len(GAP) * len(cells)
    longest = max(columns(row_name(row)) for row in rows)
    head = len("rubric, test") if len(section.tests) > 1 else len(section.tests[0])
    return _Widths(max(min(max(longest, head), left), NARROWEST_NAME), tuple(cells))


def _line(row: Row, names: Mapping[str, str], widths: _Widths) -> str:
    name = names[row_name(row)]
    cells = [cell.text.rjust(wide) for cell, wide in zip(row.cells, widths.cells, strict=True)]
    return GAP.join([name + " " * (widths.name - columns(name)), *cells]).rstrip()


_TITLE = "95% intervals"


def range_lines(section: Section, width: int) -> list[Styled]:
    """The intervals over all cases that have no column in the table, and why others have none."""
    said = _sentence(section)
    lines = wrapped(said, width) if said else []
    return list(map(Styled, [*lines, *_note(section, width)]))


def _sentence(section: Section) -> str:
    row = section.first_row
    cells = [cell for cell in row.cells if cell.range]
    known = [f"{_title(cell)} {cell.range}" for cell in cells if cell.range != NONE]
    missing: dict[str, list[str]] = {}
    for cell in cells:
        if cell.range == NONE:
            missing.setdefault(cell.range_reason, []).append(_title(cell))
    parts = [", ".join(known)] if known else []
    parts += [f"none of {', '.join(titles)} ({why})" for why, titles in missing.items()]
    return f"{_TITLE} of {one_line(row.name)}: {'; '.join(parts)}" if parts else ""


def _note(section: Section, width: int) -> list[str]:
    return wrapped(ONE_BY_ONE, width) if len(section.rows) > 1 else []


def range_table(section: Section, width: int) -> Iterator[Styled]:
    """The intervals of all rows; nothing where there is none."""
    shown = [place for place in range(len(section.columns)) if _has_range(section, place)]
    if not shown:
        return
    titles = [_title(section.rows[0].cells[place]) for place in shown]
    texts = [[row.cells[place].range or NONE for place in shown] for row in section.rows]
    wide = [
        max(len(title), *(len(line[place]) for line in texts)) for place, title in enumerate(titles)
    ]
    left = width - sum(wide) - len(GAP) * len(wide)
    longest = max(len(_TITLE), *(columns(row_name(row)) for row in section.rows))
    name = max(min(longest, left), NARROWEST_NAME)
    names = fitted_names(section.rows, name)
    yield Styled(_range_line(_TITLE, titles, name, wide), "bold")
    for row, line in zip(section.rows, texts, strict=True):
        yield Styled(_range_line(names[row_name(row)], line, name, wide))
    yield from map(Styled, _note(section, width))


def _has_range(section: Section, place: int) -> bool:
    return any(row.cells[place].range for row in section.rows)


def _title(cell: Cell) -> str:
    return " ".join(cell.column.heading).strip()


def _range_line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> str:
    short = shortened(name, name_width)
    padded = [text.rjust(wide) for text, wide in zip(cells, widths, strict=True)]
    return GAP.join([short + " " * (name_width - columns(short)), *padded]).rstrip()


_MOST_MATRICES = 20
_MOST_REASONS = 6
_MOST_FLICKERING = 10


class TerminalReport(Report):
    """The figures and decisions at the end of a session."""

    name = "terminal"

    def lines(self, session: SessionResults, display: Display) -> Iterable[Styled]:
        if session.results and display.verbosity < 0:
            return quiet_lines(session, display.width)
        if session.results:
            return session_lines(
                session, width=display.width, verbosity=display.verbosity, skips=display.skips
            )
        # No figures, but the session was interrupted, or a worker died, before the first result.
        lines: list[Styled] = []
        if any(extent.interrupted for extent in session.extents.values()):
            lines += _extent_lines(session, display.width)
        for decision in session.decisions.values():
            lines += gate_lines(decision, session.node, width=display.width)
        if session.unreported:
            lines += map(Styled, spending_lines(session.spending, display.width))
        return lines


def _extent_lines(session: SessionResults, width: int) -> list[Styled]:
    """How much of each suite was run, where it was not all of it."""
    return [
        Styled(line, "yellow")
        for said in extent_sentences(session)
        for line in wrapped(one_line(said), width)
    ]


def session_lines(
    session: SessionResults, *, width: int = 80, verbosity: int = 0, skips: bool = True
) -> list[Styled]:
    """Lay out all that a session came to in at most `width` columns; nothing where no suite ran.

    Node ids stand alone on their lines and are never cut, so that they can be copied. `-v` adds why
    figures are missing, and the confusion matrices. Without `skips` the reasons of cases that could
    not be made are left out.
    """
    if not session.results:
        return []
    every_section = sections(session.table)
    lines = [
        line
        for section in every_section
        for line in _section(section, every_section, session, width, verbosity)
    ]
    lines += terminal_lines(session.probes, width, verbose=verbosity > 0)
    lines += _extent_lines(session, width)
    lines += _left_out(session)
    if skips:
        lines += _skips(session, width)
    said_of_labels = label_sentences(session) if session.table.overall.counts.n else ()
    lines += [Styled(line) for said in said_of_labels for line in wrapped(one_line(said), width)]
    lines += map(Styled, review_lines(session))
    lines += unsettled_lines(session, width)
    for name, decision in session.decisions.items():
        gate = gate_lines(decision, lambda case_id: one_line(session.node(case_id)), width=width)
        if gate:
            title = (
                [Styled(f"suite {one_line(name)}", "bold")] if len(session.decisions) > 1 else []
            )
            lines += [Styled(""), *title, *gate]
    if sentence := recording_sentence(session):
        lines += [Styled(""), *(Styled(line, "yellow") for line in wrapped(sentence, width))]
        lines += [Styled(f"{GAP}{one_line(session.record_command)}")]
    for panel in session.panels:
        lines += [Styled(""), *_panel(panel, session, width, verbosity)]
    spent = spending_lines(session.spending, width)
    return [*lines, Styled(""), *map(Styled, spent)]


def _section(
    section: Section,
    every_section: Sequence[Section],
    session: SessionResults,
    width: int,
    verbosity: int,
) -> Iterator[Styled]:
    if section is not every_section[0]:
        yield Styled("")
    if heading := _heading(section, every_section):
        yield Styled(shortened(heading, width), "bold")
    if not section.total.counts.n and verbosity <= 0:
        return
    yield from table_lines(section, width, verbose=verbosity > 0)
    yield from range_table(section, width) if verbosity > 0 else range_lines(section, width)
    for warning in section_warnings(section):
        for line in wrapped(f"! {warning}", width):
            yield Styled(line, "yellow")
    yield from _flickering(section, session, width)
    if verbosity > 0:
        yield from _contradicted(section, session)
        yield from _reasons(section, width)
        yield from _matrices(section, width)


def _own(section: Section, session: SessionResults) -> list[CaseResult]:
    """The results of the section's judge."""
    return [
        result
        for result in session.results
        if (result.spec.suite, result.judge) == (section.suite, section.judge)
        and not result.spec.derived
    ]


def _flickering(section: Section, session: SessionResults, width: int) -> Iterator[Styled]:
    """How often the judge contradicts itself, and the cases in which it does (rule M2)."""
    sentence = flicker_sentence(section.total)
    if not sentence:
        return
    for line in wrapped(sentence, width):
        yield Styled(line)
    found = flickering(_own(section, session))
    for result in found[:_MOST_FLICKERING]:
        yield Styled(
            f"{GAP}{one_line(session.node(result.case_id))} ({score_counts(result.scores)})"
        )
    if len(found) > _MOST_FLICKERING:
        yield Styled(f"{GAP}and {len(found) - _MOST_FLICKERING:,} more")


def _contradicted(section: Section, session: SessionResults) -> Iterator[Styled]:
    """The cases whose reasoning ends in another verdict than the score."""
    found = [result for result in _own(section, session) if reasoning_disagrees(result)]
    if found:
        yield Styled(f"{REASONING_DISAGREES}:")
    for result in found[:MOST_NAMED]:
        yield Styled(f"{GAP}{one_line(session.node(result.case_id))} (gave {result.scores_text})")
    if len(found) > MOST_NAMED:
        yield Styled(f"{GAP}and {len(found) - MOST_NAMED:,} more")


def _heading(section: Section, every_section: Sequence[Section]) -> str:
    """Name what tells this section from the others."""
    parts = (
        [f"suite {one_line(section.suite)}"]
        if len({each.suite for each in every_section}) > 1
        else []
    )
    parts += (
        [f"judge {one_line(section.judge)}"] if section.judge and len(every_section) > 1 else []
    )
    return ", ".join(parts)


def _reasons(section: Section, width: int) -> Iterator[Styled]:
    for title, reason, labels in reasons(section):
        for line in wrapped(f"- {title}: {reason} ({', '.join(map(one_line, labels))})", width):
            yield Styled(line)


def _matrices(section: Section, width: int) -> Iterator[Styled]:
    shown = section.whole_rows
    if len(shown) > _MOST_MATRICES:
        shown = shown[:1]
    found = [(row.name, row.statistics.matrices.get(section.mode)) for row in shown]
    every_section = [(name, matrix) for name, matrix in found if matrix is not None and matrix.n]
    if every_section:
        yield Styled("")
        for line in wrapped("confusion matrices (rows: right answer, columns: the judge's)", width):
            yield Styled(line)
    for name, matrix in every_section:
        yield Styled(shortened(one_line(name), width))
        for line in _matrix(matrix):
            yield Styled(line)
    if every_section:
        yield Styled("")


def _matrix(matrix: ConfusionMatrix) -> list[str]:
    texts = [["", *map(str, matrix.labels)]]
    texts += [
        [str(label), *(f"{count:,}" for count in row)]
        for label, row in zip(matrix.labels, matrix.counts, strict=True)
    ]
    wide = max(len(text) for row in texts for text in row)
    return ["  " + GAP.join(text.rjust(wide) for text in row) for row in texts]


def _left_out(session: SessionResults) -> Iterator[Styled]:
    parts = [f"{number:,} {kind}" for kind, number in left_out(session.table.overall)]
    if parts:
        style = "yellow" if session.table.overall.counts.unscored else ""
        yield Styled(f"not in these figures: {', '.join(parts)}", style)


def _skips(session: SessionResults, width: int) -> Iterator[Styled]:
    """Why cases could not be made, those of one kind counted together, most first."""
    kinds: dict[str, list[str]] = {}
    for result in session.results:
        if result.outcome == "no_case":
            # Without what a model or a person wrote on the one case.
            reason = ": ".join(one_line(result.detail).split(": ")[:2])
            kind = reason if result.skip_kind is None else SKIPS[result.skip_kind].happened
            kinds.setdefault(kind, []).append(reason)
    counted_kinds = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    for kind, reasons_of_kind in counted_kinds[:_MOST_REASONS]:
        reason = reasons_of_kind[0] if len({*reasons_of_kind}) == 1 else kind
        text = f"{GAP}{len(reasons_of_kind):,} without a case: {reason}"
        yield Styled(shortened(text, width))
    if more := sum(len(reasons_of_kind) for _, reasons_of_kind in counted_kinds[_MOST_REASONS:]):
        yield Styled(f"{GAP}{more:,} without a case for other reasons (-rs lists all)")


def _panel(panel: Panel, session: SessionResults, width: int, verbosity: int) -> Iterator[Styled]:
    of = f" of suite {one_line(panel.suite)}" if len(session.panels) > 1 else ""
    for line in wrapped(
        f"panel{of} of {counted(len(panel.judges), 'judge')}: {majority_text(panel)}", width
    ):
        yield Styled(line, "bold")
    names = [" / ".join(map(one_line, pair.judges)) for pair in panel.pairs]
    figures = [
        f"agree in {pair.agreement.count:,} of {pair.agreement.n:,}{GAP}kappa "
        f"{ranged(decimal(pair.kappa.value), pair.kappa, 'number')}"
        for pair in panel.pairs
    ]
    room = width - max(map(len, figures)) - 2 * len(GAP)
    wide = max(min(max(map(columns, names)), room), NARROWEST_NAME)
    for short, figure in zip(fitted(names, wide), figures, strict=True):
        yield Styled(f"{GAP}{short}{' ' * (wide - columns(short))}{GAP}{figure}")
    if verbosity > 0 and panel.without_vote:
        yield Styled("without a majority:")
        for vote in panel.without_vote[:MOST_NAMED]:
            yield Styled(f"{GAP}{one_line(vote.case)} ({vote.reason})")
        if len(panel.without_vote) > MOST_NAMED:
            yield Styled(f"{GAP}and {len(panel.without_vote) - MOST_NAMED:,} more")
