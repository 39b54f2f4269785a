"""A session as one HTML file that opens from disk and asks the network for nothing
(`--jrh-report`).

The overview and the first cases of the list are plain HTML, escaped by jinja. All rows of the list
lie compressed in a data block, of which the page shows those in view, and transcripts in others,
one source run at a time: they reach the page as text nodes alone. A content security policy that
names the one script and style by their hashes stands behind both.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.templates import render_page
from pytest_jrh.reports import topics
from pytest_jrh.reports.answer import (
    cards_by_suite,
    doubt_blocks,
    lowest_share,
    next_blocks,
    session_title,
    suite_blocks,
    suite_title,
    worst_cases,
)
from pytest_jrh.reports.blocks import WEIGHTS, Cell, Row, Section, Sentence, Table, block_values
from pytest_jrh.reports.case_facts import WhoSaid
from pytest_jrh.reports.gate import (
    CHANGE_TITLE,
    Changes,
    compared_pairs,
    gate_cases,
    how_sure,
    prompt_blocks,
)
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.html_cases import (
    BLOCK,
    CaseList,
    SearchTexts,
    by_run,
    most_urgent,
    packed,
    printable,
    run_body,
)
from pytest_jrh.reports.probes import probe_blocks
from pytest_jrh.reports.provenance import provenance_blocks
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import spending_lines, subtitle, suite_names
from pytest_jrh.stats.figures import (
    NONE,
    ONE_BY_ONE,
    flicker_sentence,
    section_warnings,
    sections,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_jrh.reports.blocks import Block, Level
    from pytest_jrh.reports.html_cases import RunKey
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats import figures
    from pytest_jrh.stats.statistics import Statistics


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    name = "HTML"
    suffix = ".html"

    def write(self, path: Path, session: Session) -> None:
        write_html(path, session)


_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("base.js", "list.js", "case.js", "main.js")
BODIES = "<!--bodies-->"
LIMIT = 30_000_000
_ONE_LINE = 10_000
_MOST_OF_TABLE = 5_000
"""Cases that the page of a table lists: it may be large, and has little more to say of a case than
the table itself."""
_FIRST_CASES = 100
"""Cases that are in the page as HTML, and so shown where no script runs."""
_LISTED = (
    "The list has {:,} of {:,} cases: regressions first, then other wrong verdicts. The figures "
    "are of all."
)
_INTERVAL = "95% interval"
_IN_FRONT = ("recall", "false-positive rate", "accuracy", "exact", CHANGE_TITLE)
_AT_THE_END = "n"


def page(session: Session, listed_session: Session, blocks: Mapping[RunKey, str]) -> str:
    """The page with the cases of `listed_session`, and `BODIES` where the data blocks belong."""
    style = (_TEMPLATES / "report.css").read_text("utf-8")
    parts = "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    every_section = sections(session.table)
    listed = CaseList(listed_session, blocks)
    changes = Changes(compared_pairs(session))
    tables: list[dict[str, Any]] = []
    # What the columns of the tables mean.
    glossary: dict[str, str] = {}
    for mode in ("binary", "ordinal"):
        of_mode = [section for section in every_section if section.mode == mode]
        if of_mode:
            is_alone = len(every_section) == 1
            table, links = _figures_table(of_mode, changes, listed, is_alone=is_alone)
            tables.append({"table": block_values(table), "links": links})
            glossary |= dict(zip(table.titles, table.meanings, strict=True))
    warnings, flickers, matrices = [], [], []
    for section in every_section:
        of = f"{section.label}: " if len(every_section) > 1 else ""
        warnings += [f"{of}{warning}" for warning in section_warnings(section)]
        if flicker := flicker_sentence(section.total):
            flickers.append(f"{of}{flicker}")
        matrices += topics.more_figures(section)
    decisions = []
    for name, decision in session.decisions.items():
        of = f" of {name}" if len(session.decisions) > 1 else ""
        prompts = prompt_blocks(session, name, is_open=True)
        cases = gate_cases(decision, session)
        folded = (*how_sure(decision), *prompts, *cases)
        decisions.append(Section(f"The gate{of}", folded, WEIGHTS[decision.word]))
    remarks = [
        *topics.left_out_blocks(session),
        *topics.review_blocks(session),
        *map(Sentence, label_sentences(session)),
        *topics.shown_folds(session),
    ]
    numbers = len(listed_session.results), len(session.results)
    state = f"{session.word}: " if session.word else ""
    spending: list[str] = []
    if not session.is_table:
        seconds = session.wall_seconds
        spending = spending_lines(session.spending, _ONE_LINE, wall_seconds=seconds)
    values = {
        "title": f"{state}judge reliability, {', '.join(suite_names(session))}",
        "heading": session_title(session),
        "subtitle": subtitle(session),
        "head": block_values(_head(session)),
        "decisions": block_values(decisions),
        "warnings": warnings,
        "flickers": flickers,
        "figures": tables,
        "glossary": list(glossary.items()),
        "compared": bool(changes),
        "note": ONE_BY_ONE if any(len(section.rows) > 1 for section in every_section) else "",
        "matrices": block_values(matrices),
        "probes": block_values(probe_blocks(session.probes)),
        "panels": block_values(topics.panel_blocks(session)),
        "columns": listed.columns(),
        "cases": listed.rows(),
        "filters": listed.filters(),
        "chips": listed.chips(),
        "all_cases": f"{numbers[0]:,}",
        "spending": " | ".join(spending),
        "origin": block_values(provenance_blocks(session.origin)),
        "remarks": block_values(remarks),
        "listed": block_values([Sentence(_LISTED.format(*numbers))] if len({*numbers}) > 1 else []),
    }
    shown = printable(session.redactor.value(values))
    shown_cases = shown.pop("cases")
    ours = {
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
        "first_cases": shown_cases[:_FIRST_CASES],
        "has_more_cases": len(shown_cases) > _FIRST_CASES,
        "rows": packed({"cases": shown_cases}),
    }
    return render_page(_TEMPLATES, "report.html", {**shown, **ours})


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _head(session: Session) -> list[Block]:
    """What comes before the decisions: of each suite what is missed and what is a false alarm, what
    makes figures doubtful, the cases to read first, and the next step.
    """
    blocks = topics.extent_blocks(session)
    cards = cards_by_suite(session)
    for suite, of_suite in cards.items():
        if len(cards) > 1:
            title, _ = suite_title(suite, of_suite, session)
            blocks.append(Sentence(f"{suite}: {title}", "strong"))
        blocks += suite_blocks(suite, of_suite, session)
        if len(of_suite) == 1:
            blocks.append(of_suite[0].table)
    blocks += doubt_blocks(session)
    for worst in worst_cases(session):
        # As many as the other reports name.
        shown, more = worst.first(worst.most)
        title = worst.title
        if more:
            title = f"The {len(shown)} worst of {len(worst.cases):,} cases that are judged wrong."
        blocks.append(replace(worst, title=title, cases=shown))
    return [*blocks, *next_blocks(session)]


def _figures_table(
    of_mode: Sequence[figures.Section], changes: Changes, listed: CaseList, *, is_alone: bool
) -> tuple[Table, list[str]]:
    """Judges and their rubrics, each with the worst first, and a link for each row."""

    def rank(row: Statistics) -> tuple[bool, float]:
        return bool(row.rubric), lowest_share(row)

    meanings: dict[str, str] = {}
    rows: list[tuple[str, Level, dict[str, Cell]]] = []
    links = []
    for section in sorted(of_mode, key=lambda section: lowest_share(section.total)):
        table = topics.figures_table(section, changes.about(section.total))
        meanings |= dict(zip(table.titles, table.meanings, strict=True))
        pairs = zip(section.rows, table.rows, strict=True)
        for row, of_table in sorted(pairs, key=lambda pair: rank(pair[0])):
            cells = dict(zip(table.titles, of_table.cells, strict=True))
            interval = cells.pop(_INTERVAL)
            first = "exact" if section.mode == "ordinal" else "accuracy"
            text = "" if interval.text == NONE else interval.text
            reason = cells[first].reason or interval.reason
            cells[first] = replace(cells[first], range=text, reason=reason)
            if row is section.total_first[0] and not is_alone:
                rows.append((section.label, "total", cells))
            else:
                rows.append((row.name, of_table.level, cells))
            links.append(listed.link(suite=section.suite, judge=section.judge, rubric=row.rubric))
    titles = [title for title in _IN_FRONT if title in meanings]
    for title in meanings:
        if title not in (*_IN_FRONT, _INTERVAL, _AT_THE_END):
            titles.append(title)
    titles.append(_AT_THE_END)
    shown = []
    for name, level, cells in rows:
        shown.append(Row(name, tuple(cells.get(title, Cell(NONE)) for title in titles), level))
    explained = tuple(meanings[title] for title in titles)
    first_title = "rubric" if is_alone else "judge, rubric"
    return Table(first_title, tuple(titles), tuple(shown), meanings=explained), links


def write_html(path: Path, session: Session, *, limit: int = LIMIT) -> None:
    """Write the report, reading one source run's cases at a time; the file stays under `limit`
    bytes.

    Where transcripts do not all fit, those of regressions and disagreements come first, and the
    page says which are left out. Raises `OSError` as it comes; an older file is then still whole.
    """
    listed = most_urgent(session, _MOST_OF_TABLE) if session.is_table else session
    groups = by_run(listed)
    blocks = {key: f"run-{number}" for number, key in enumerate(groups)}
    head, tail = page(session, listed, blocks).split(BODIES)
    # What cases are searched by comes last, and transcripts are not to take its room.
    for_search = limit // 10
    room = limit - for_search - len(encoded(head)) - len(encoded(tail))
    who_said = WhoSaid(session)
    texts = SearchTexts(len(listed.results))
    with replacing(path) as file:
        file.write(encoded(head))
        for key, results in groups.items():
            # Cut to edits and verdicts where the whole does not fit; nothing where not even that.
            for whole in (True, False):
                body = run_body(results, session, whole=whole, who_said=who_said)
                if whole:
                    texts.add(body)
                cut = "" if whole else " data-cut"
                block = _data(f'id="{blocks[key]}"{cut}', packed(body))
                if len(block) <= room:
                    break
            else:
                block = _data("data-cut", "")
            if len(block) <= room:
                room -= len(block)
                file.write(block)
        search = _data(f'id="{BLOCK}"', texts.packed())
        if len(search) <= room + for_search:
            file.write(search)
        file.write(encoded(tail))


def _data(attributes: str, text: str) -> bytes:
    """A data block, which no browser runs."""
    return f'<script type="text/plain" {attributes}>{text}</script>\n'.encode("ascii")
