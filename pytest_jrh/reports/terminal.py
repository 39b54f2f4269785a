"""The `jrh` section of the terminal as styled lines: figures with their intervals in the width of
the terminal, changes, the gate's decision, panels, and what `-q` leaves of them; and the one
annotation for GitHub.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_jrh.core.files import absolute, relative_path
from pytest_jrh.core.model import SKIPS, score_counts
from pytest_jrh.core.text import (
    GAP,
    Styled,
    aligned,
    columns,
    counted,
    one_line,
    shortened,
    wrapped,
)
from pytest_jrh.reports import topics
from pytest_jrh.reports.answer import (
    MOST_WORST,
    answer_blocks,
    cards_by_suite,
    session_title,
    worst_cases,
)
from pytest_jrh.reports.blocks import (
    WEIGHTS,
    Cases,
    Cell,
    Command,
    Fold,
    Points,
    Row,
    Section,
    Sentence,
    Table,
)
from pytest_jrh.reports.failures import text_diff
from pytest_jrh.reports.gate import (
    MOST_NAMED,
    gate_blocks,
    gate_cases,
    headline,
    update_blocks,
)
from pytest_jrh.reports.grounds import label_sentences, violated_sentences
from pytest_jrh.reports.probes import probe_blocks
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import spending_lines, subtitle
from pytest_jrh.stats.figures import (
    NONE,
    ONE_BY_ONE,
    flicker_sentence,
    left_out,
    percent,
    ranged,
    sections,
)
from pytest_jrh.stats.reasoning import REASONING_DISAGREES, reasoning_disagrees

if TYPE_CHECKING:
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.report import Display
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats import figures
    from pytest_jrh.stats.wording import Word


_STYLES: Mapping[Weight, str] = {
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warning": "yellow",
}


def block_lines(blocks: Iterable[Block], width: int, *, verbose: bool = False) -> Iterator[Styled]:
    """Blocks in at most `width` columns; of folds nothing, unless `verbose`.

    With `verbose` the node ids of cases stand alone on their lines and are never cut, so that they
    can be copied; without, cases are named by what was done.
    """
    for block in blocks:
        match block:
            case Sentence(text, weight):
                yield from _wrapped(text, width, weight)
            case Points(sentences):
                for sentence in sentences:
                    yield from _wrapped(f"- {sentence}", width)
            case Command(advice, command):
                for line in wrapped(one_line(advice), width):
                    yield Styled(line, "yellow")
                if command:
                    yield Styled(f"{GAP}{one_line(command)}")
            case Table():
                yield from _table(block, width)
            case Cases():
                title = block.title if block.is_sentence else f"{block.heading}:"
                yield from _wrapped(title, width, block.weight, marked=block.is_sentence)
                style = _STYLES.get(block.weight, "")
                cases, more = block.first(block.most)
                for named in cases:
                    why = f" ({one_line(named.why)})" if named.why else ""
                    line = f"{GAP}{one_line(named.name)}{why}"
                    if named.title and not verbose:
                        line = shortened(f"{GAP}{one_line(named.title)}{why}", width)
                    yield Styled(line, style)
                if more:
                    yield Styled(f"{GAP}and {more:,} more", style)
            case Fold(title, folded):
                if verbose:
                    yield from _wrapped(f"{one_line(title)}:", width)
                    yield from block_lines(folded, width, verbose=verbose)
            case Section(title, parts):
                yield Styled("")
                if title:
                    yield Styled(shortened(one_line(title), width), "bold")
                yield from block_lines(parts, width, verbose=verbose)


def _wrapped(
    text: str, width: int, weight: Weight = "", *, marked: bool = True
) -> Iterator[Styled]:
    mark = "! " if marked and weight == "warning" else ""
    for line in wrapped(f"{mark}{one_line(text)}", width):
        yield Styled(line, _STYLES.get(weight, ""))


def _table(table: Table, width: int) -> Iterator[Styled]:
    if table.caption:
        yield from _wrapped(table.caption, width)
    titles = [title.split("\n") for title in (table.first, *table.titles)]
    heads = [tuple(map(one_line, texts)) for texts in zip_longest(*titles, fillvalue="")]
    rows = []
    for row in table.rows:
        name = f"{GAP if row.is_part else ''}{one_line(row.name)}"
        rows.append((name, *(cell.whole for cell in row.cells)))
    lines = aligned([*heads, *rows], width)
    for line in lines[: len(heads)]:
        yield Styled(line, "bold")
    for row, line in zip(table.rows, lines[len(heads) :], strict=True):
        if row.level == "total":
            yield Styled("-" * max(map(columns, lines[len(heads) - 1 :])))
        yield Styled(line)


_INTERVALS = "95% intervals"
_MOST_REASONS = 3  # lines
_MOST_OF_A_SIDE = 2  # lines of a prompt's difference
FEW_CASES = 10
# The answer names these cases, and pytest those without a verdict.
_AMONG_THE_WORST = ("regressions", "disagreements", "disagreements not in the baseline", "unscored")


class TerminalReport(Report):
    """The figures of a session, and at its very end the answer."""

    name = "terminal"

    def lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if session.results and display.verbosity < 0:
            return quiet_lines(session, display.width)
        if session.results:
            return session_lines(
                session, width=display.width, verbosity=display.verbosity, skips=display.skips
            )
        # No figures, but the session was interrupted, or a worker died, before the first result.
        blocks: list[Block] = []
        if any(extent.interrupted for extent in session.extents.values()):
            blocks += topics.extent_blocks(session)
        for decision in session.decisions.values():
            blocks += gate_blocks(decision, session)
        lines = list(block_lines(blocks, display.width))
        if session.unreported:
            lines += map(Styled, spending_lines(session.spending, display.width))
        return lines

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if session.results and display.verbosity >= 0:
            page = "" if session.page is None else str(relative_path(session.page, display.folder))
            yield Styled("")
            yield from answer_lines(session, display.width, page, display.explained)


def quiet_lines(session: Session, width: int) -> Iterator[Styled]:
    """A line for each judge, its warnings, and the decision of each gate with what to do."""
    for section in sections(session.table):
        total = section.total
        parts = [counted(total.counts.n, "verdict")]
        if total.counts.n:
            wrong = total.counts.n - sum(result.outcome == "agree" for result in total.judged)
            parts[0] += f", accuracy {ranged(percent(total.accuracy.value), total.accuracy)}"
            parts.append(f"{wrong:,} wrong")
        parts += [f"{number:,} {kind}" for kind, number in left_out(total)]
        yield Styled(f"{one_line(section.label)}: {', '.join(parts)}")
        yield from block_lines(topics.warning_blocks(section), width)
    blocks = topics.extent_blocks(session)
    for suite, decision in session.decisions.items():
        of = f"suite {suite}: " if len(session.decisions) > 1 else ""
        blocks.append(Sentence(f"{of}{headline(decision)}", WEIGHTS[decision.word]))
        blocks += update_blocks(decision)
    yield from block_lines([*blocks, *topics.recording_blocks(session)], width)
    if session.spending.calls:
        # What was paid for is never left unsaid.
        yield from map(Styled, spending_lines(session.spending, width))


def session_lines(
    session: Session, *, width: int = 80, verbosity: int = 0, skips: bool = True
) -> list[Styled]:
    """Lay out what a session came to, but for the answer, in at most `width` columns; nothing where
    no suite ran.

    `-v` adds the figures and what is folded elsewhere. Without `skips` the reasons of cases that
    could not be made are left out.
    """
    if not session.results:
        return []
    is_part = bool(topics.extent_blocks(session))
    skip_lines = list(_skips(session, width)) if skips else []
    lines: list[Styled] = []
    if verbosity > 0:
        lines += block_lines(_figure_blocks(session), width, verbose=True)
        # It parts one judge from another.
        lines = lines[1:]
        probes = probe_blocks(session.probes, grids=False)
        blocks = [*probes, *topics.extent_blocks(session), *topics.left_out_blocks(session)]
        lines += [*block_lines(blocks, width), *skip_lines]
        lines += block_lines(_detail_blocks(session), width, verbose=True)
    else:
        lines += [*block_lines(_short_blocks(session), width), *skip_lines]
    if verbosity > 0 or not is_part:
        lines += _prompt_lines(session, width)
    if session.is_table:
        return lines
    is_small_part = is_part and len(session.results) < FEW_CASES
    if verbosity == 0 and is_small_part and not session.spending.calls:
        # Of a few cases that are looked at again, nobody asks what a replay would have cost.
        return lines
    blank = [Styled("")] if verbosity > 0 else []
    return [*lines, *blank, *map(Styled, spending_lines(session.spending, width))]


def _short_blocks(session: Session) -> list[Block]:
    """What the answer does not say: the worst rubrics, what is left out, what is doubtful."""
    blocks: list[Block] = []
    for cards in cards_by_suite(session).values():
        for card in cards if len(cards) == 1 else ():
            # Of few cases the sentences of the answer say it all.
            if card.rows and card.total.wrong and card.total.cases >= FEW_CASES:
                blocks.append(card.table)
    every_section = sections(session.table)
    for section in every_section:
        doubts = topics.warning_blocks(section)
        if flicker := flicker_sentence(section.total):
            doubts.append(Sentence(flicker))
        heading = _heading(section, every_section)
        blocks += [Section(heading, tuple(doubts))] if doubts and heading else doubts
    overall = session.table.overall
    # pytest says by itself how many cases could not be made.
    if overall.counts.n and len(left_out(overall)) > bool(overall.counts.no_case):
        blocks += topics.left_out_blocks(session)
    blocks += map(Sentence, violated_sentences(session))
    blocks += topics.not_shown_blocks(session)
    blocks += [*topics.review_blocks(session), *topics.unsettled_blocks(session)]
    for decision in session.decisions.values():
        for cases in gate_cases(decision, session):
            if cases.title not in _AMONG_THE_WORST:
                # pytest says nothing of what never came.
                is_lost = cases.title == "never reported"
                blocks.append(cases if is_lost else replace(cases, most=MOST_WORST))
    for panel in session.panels:
        blocks.append(Sentence(f"Panel of {panel.suite}: {topics.majority_text(panel)}."))
    return blocks


def _figure_blocks(session: Session) -> Iterator[Block]:
    """The figures of each judge, the intervals that have no column in their table, and the cases in
    which it contradicts itself.
    """
    every_section = sections(session.table)
    for section in every_section:
        yield Section(_heading(section, every_section), ())
        titles = tuple("\n".join(column.heading) for column in section.columns)
        rows, range_rows = [], []
        with_ranges = []
        for column in section.columns:
            if any(column.cell(row).range for row in section.rows):
                with_ranges.append(column)
        for row in section.rows:
            cells = tuple(Cell(column.cell(row).text) for column in section.columns)
            rows.append(Row(row.name, cells, "rubric" if row.rubric else "total"))
            ranges = tuple(Cell(column.cell(row).range or NONE) for column in with_ranges)
            range_rows.append(Row(row.name, ranges))
        yield Table("\nrubric", titles, tuple(rows))
        if with_ranges:
            titles = tuple(" ".join(column.heading).strip() for column in with_ranges)
            yield Table(_INTERVALS, titles, tuple(range_rows))
            if len(rows) > 1:
                yield Sentence(ONE_BY_ONE)
        yield from topics.warning_blocks(section)
        results = session.by_judge.get((section.suite, section.judge), ())
        if flicker := flicker_sentence(section.total):
            named = []
            for result in results:
                if result.flickers:
                    scores = score_counts(result.all_scores)
                    named.append(session.named(result.case_id, scores))
            yield Cases(flicker, tuple(named))
        contradicted = []
        for result in filter(reasoning_disagrees, results):
            contradicted.append(session.named(result.case_id, f"gave {result.scores_text}"))
        if contradicted:
            yield Cases(REASONING_DISAGREES, tuple(contradicted), most=MOST_NAMED)
        yield from topics.more_figures(section)


def _detail_blocks(session: Session) -> list[Block]:
    """What `-v` adds below the figures."""
    blocks: list[Block] = []
    counts = session.table.overall.counts
    if counts.n or counts.unlabelled:
        blocks += map(Sentence, label_sentences(session))
    blocks += topics.not_shown_blocks(session)
    blocks += topics.shown_folds(session)
    blocks += [*topics.review_blocks(session), *topics.unsettled_blocks(session)]
    for name, decision in session.decisions.items():
        title = f"suite {name}" if len(session.decisions) > 1 else ""
        blocks.append(Section(title, tuple(gate_blocks(decision, session))))
    return [*blocks, *topics.panel_blocks(session)]


def _heading(section: figures.Section, every_section: Sequence[figures.Section]) -> str:
    """Name what tells this section from the others."""
    parts = []
    if len({other.suite for other in every_section}) > 1:
        parts.append(f"suite {one_line(section.suite)}")
    if section.judge and len(every_section) > 1:
        parts.append(f"judge {one_line(section.judge)}")
    return ", ".join(parts)


def answer_lines(
    session: Session, width: int = 80, page: str = "", explained: Collection[str] = ()
) -> Iterator[Styled]:
    """The answer: the decision, what is missed and what is a false alarm, whether the labels can be
    trusted, the worst cases but where all are `explained` above, the `page` with all of them, and
    what to do next.
    """
    for block in answer_blocks(session, brief=True, page=page, explained=explained):
        if isinstance(block, Cases):
            yield Styled(f"{block.heading}:", "bold")
            for number, case in enumerate(block.cases[: block.most]):
                title, why = f"{GAP}{one_line(case.title)}", one_line(case.why)
                mistake, _, reason = why.partition(". Judge")
                # Of the first one a line of the judge's reason.
                is_explained = bool(reason) and not number
                if not is_explained and columns(f"{title} - {mistake}") <= width:
                    title = f"{title} - {mistake}"
                yield Styled(shortened(title, width), "red")
                if is_explained:
                    yield Styled(shortened(f"{GAP}{GAP}{why}", width))
        else:
            is_decision = isinstance(block, Sentence) and block.weight in ("good", "bad")
            for line in block_lines([block], width):
                yield Styled(line.text, f"bold {line.style}") if is_decision else line


def _prompt_lines(session: Session, width: int) -> Iterator[Styled]:
    """What changed in each prompt, in six lines; nothing where its earlier text is not known."""
    for change in session.prompt_changes:
        if change.before is None or change.before == change.now.text:
            continue
        of = f" of judge {change.now.judge}" if change.now.judge else ""
        file = change.now.file
        if file and session.folder is not None:
            file = str(relative_path(Path(file), session.folder))
        title = f"What changed in the prompt{of}{f' ({file})' if file else ''}:"
        yield Styled(shortened(one_line(title), width))
        lines = text_diff(change.before, change.now.text, width - len(GAP))
        more = 0
        for sign, style in (("-", "red"), ("+", "green")):
            of_side = [f"{GAP}{line}" for line in lines if line.startswith(sign)]
            more += max(0, len(of_side) - _MOST_OF_A_SIDE)
            yield from (Styled(line, style) for line in of_side[:_MOST_OF_A_SIDE])
        if more:
            yield Styled(f"{GAP}... ({counted(more, 'more line')})")


def _skips(session: Session, width: int) -> Iterator[Styled]:
    """Why cases could not be made, those of one kind counted together, most first."""
    kinds: dict[str, list[str]] = {}
    for result in session.results:
        if result.outcome == "no_case":
            # Without what a model or a person wrote on the one case.
            reason = ": ".join(one_line(result.why.text).split(": ")[:2])
            kind = reason if result.skip_kind is None else SKIPS[result.skip_kind].happened
            kinds.setdefault(kind, []).append(reason)
    counted_kinds = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    shown = _MOST_REASONS if len(counted_kinds) <= _MOST_REASONS else _MOST_REASONS - 1
    for kind, reasons_of_kind in counted_kinds[:shown]:
        reason = reasons_of_kind[0] if len({*reasons_of_kind}) == 1 else kind
        text = f"{GAP}{len(reasons_of_kind):,} without a case: {reason}"
        yield Styled(shortened(text, width))
    if more := sum(len(reasons_of_kind) for _, reasons_of_kind in counted_kinds[shown:]):
        yield Styled(f"{GAP}{more:,} without a case for other reasons (-rs lists all)")


class Annotation(Report):
    """What GitHub shows beside the changed prompt of a pull request; in its jobs alone."""

    name = "annotation"
    is_for_runner = True

    def last_lines(self, session: Session, display: Display) -> Iterable[Styled]:
        if os.environ.get("GITHUB_ACTIONS") != "true":
            return []
        workspace = Path(os.environ.get("GITHUB_WORKSPACE") or display.workspace)
        return map(Styled, annotation_lines(session, workspace))


_KINDS: Mapping[Word, str] = {"FAIL": "error", "UNCLEAR": "warning"}


def annotation_lines(session: Session, workspace: Path) -> Iterator[str]:
    """Write `::error file=,line=,title=::message` with the decision and the cases to read first, at
    the lines of the prompt that changed; a notice where a change is passed, and nothing where none
    is and nothing fails.

    A file outside of `workspace` is not named. No text of a model or a file can begin or change a
    command.
    """
    properties = _changed_lines(session, absolute(workspace))
    kind = _KINDS.get(session.word, "notice")
    if kind == "notice" and not properties:
        return
    message = [subtitle(session)]
    for worst in worst_cases(session):
        message += [f"{case.title}: {case.why}" for case in worst.cases[:MOST_WORST]]
    properties["title"] = session_title(session)
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = _message("\n".join(map(one_line, message)))
    yield f"::{kind} {listed}::{text}"


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
