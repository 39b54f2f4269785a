"""The `jrh` section of the terminal as styled lines: figures, changes, the gate's decision, panels
(rules J).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_jrh.models import said
from pytest_jrh.reporting.gate_text import MOST_NAMED, gate_lines
from pytest_jrh.reporting.grounds.sentences import label_sentences
from pytest_jrh.reporting.printed.quiet import quiet_lines
from pytest_jrh.reporting.printed.table import GAP, NARROWEST_NAME, table_lines
from pytest_jrh.reporting.probes.terminal import terminal_lines
from pytest_jrh.reporting.range_lines import range_lines, range_table
from pytest_jrh.reporting.report import Report
from pytest_jrh.reporting.reviewed import review_lines, unsettled_lines
from pytest_jrh.reporting.session_results import extent_sentences, majority_text, recording_sentence
from pytest_jrh.stats.columns import decimal, ranged
from pytest_jrh.stats.contradictions import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import left_out, matrix_of, reasons, sections
from pytest_jrh.stats.flicker_text import flicker_sentence
from pytest_jrh.stats.flickering import flickering
from pytest_jrh.stats.spending import spending_lines
from pytest_jrh.text import Styled, columns, counted, fitted, one_line, shortened, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.models import CaseResult
    from pytest_jrh.reporting.report import Display
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.inference.formulas import ConfusionMatrix
    from pytest_jrh.stats.panels import Panel

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
        # No figures, but a worker may have died before the first result.
        return [
            line
            for decision in session.decisions.values()
            for line in gate_lines(decision, session.node, width=display.width)
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
    lines += [
        Styled(line, "yellow")
        for said in extent_sentences(session)
        for line in wrapped(one_line(said), width)
    ]
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
        if (result.suite, result.judge) == (section.suite, section.judge) and not result.derived
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
        yield Styled(f"{GAP}{one_line(session.node(result.case_id))} ({said(result.scores)})")
    if len(found) > _MOST_FLICKERING:
        yield Styled(f"{GAP}and {len(found) - _MOST_FLICKERING:,} more")


def _contradicted(section: Section, session: SessionResults) -> Iterator[Styled]:
    """The cases whose reasoning ends in another verdict than the score."""
    found = [result for result in _own(section, session) if reasoning_disagrees(result)]
    if found:
        yield Styled(f"{REASONING_DISAGREES}:")
    for result in found[:MOST_NAMED]:
        yield Styled(f"{GAP}{one_line(session.node(result.case_id))} (gave {result.given})")
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
    found = [(row.name, matrix_of(row.statistics, section.mode)) for row in shown]
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
    """Why cases could not be made, alike reasons counted together, most first."""
    found = Counter(
        _kind_of_skip(result.detail) for result in session.results if result.outcome == "no_case"
    )
    for reason, number in found.most_common(_MOST_REASONS):
        yield Styled(shortened(f"{GAP}{number:,} without a case: {reason}", width))
    if more := sum(found.values()) - sum(number for _, number in found.most_common(_MOST_REASONS)):
        yield Styled(f"{GAP}{more:,} without a case for other reasons (-rs lists all)")


def _kind_of_skip(detail: str) -> str:
    """A reason without what a model or a person wrote on the one case: `not confirmed: the verifier
    says PASS`.
    """
    return ": ".join(one_line(detail).split(": ")[:2])


def _panel(panel: Panel, session: SessionResults, width: int, verbosity: int) -> Iterator[Styled]:
    of = f" of suite {one_line(panel.suite)}" if len(session.panels) > 1 else ""
    for line in wrapped(
        f"panel{of} of {counted(len(panel.judges), 'judge')}: {majority_text(panel)}", width
    ):
        yield Styled(line, "bold")
    names = [" / ".join(map(one_line, pair.judges)) for pair in panel.pairs]
    figures = [
        f"agree in {pair.agreement.count:,} of {pair.agreement.n:,}{GAP}kappa "
        f"{ranged(decimal(pair.kappa.value), pair.kappa_interval, 'number')}"
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
