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
from typing import TYPE_CHECKING, Any, TypeAlias

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
from pytest_jrh.reports.blocks import Cell, Row, Section, Sentence, Table, block_values
from pytest_jrh.reports.case_facts import WhoSaid
from pytest_jrh.reports.gate import (
    CHANGE_TITLE,
    WEIGHTS,
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
from pytest_jrh.stats import figures
from pytest_jrh.stats.figures import (
    NONE,
    ONE_BY_ONE,
    flicker_sentence,
    section_warnings,
    sections,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.blocks import Block, Level
    from pytest_jrh.reports.html_cases import RunKey
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.statistics import Statistics
    from pytest_jrh.store.spools import ReadCase


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    name = "HTML"
    suffix = ".html"

    def write(self, path: Path, session: Session) -> None:
        write_html(path, session)


Link: TypeAlias = "Callable[..., str]"
"""Gives the address of the cases that have these texts in these columns."""


def figures_tables(
    every_section: Sequence[figures.Section], changes: Changes, link: Link
) -> list[dict[str, Any]]:
    """The figures of the binary judges, then of the ordinal ones, with a link for each row."""
    tables = []
    for mode in ("binary", "ordinal"):
        of_mode = [section for section in every_section if section.mode == mode]
        if of_mode:
            is_alone = len(every_section) == 1
            tables.append(_figures_table(of_mode, changes, link, is_alone=is_alone))
    return tables


_INTERVAL = "95% interval"
_IN_FRONT = ("recall", "false-positive rate", "accuracy", "exact", CHANGE_TITLE)
_AT_THE_END = "n"


def _figures_table(
    of_mode: Sequence[figures.Section], changes: Changes, link: Link, *, is_alone: bool
) -> dict[str, Any]:
    """Judges and their rubrics, each with the worst first."""
    meanings: dict[str, str] = {}
    rows: list[tuple[str, Level, dict[str, Cell]]] = []
    links = []
    for section in sorted(of_mode, key=lambda section: lowest_share(section.total)):
        table = topics.figures_table(section, changes.about(section.total))
        meanings |= dict(zip(table.titles, table.meanings, strict=True))
        pairs = zip(section.rows, table.rows, strict=True)
        for row, of_table in sorted(pairs, key=lambda pair: _rank(pair[0])):
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
            links.append(link(suite=section.suite, judge=section.judge, rubric=row.rubric))
    titles = [title for title in _IN_FRONT if title in meanings]
    for title in meanings:
        if title not in (*_IN_FRONT, _INTERVAL, _AT_THE_END):
            titles.append(title)
    titles.append(_AT_THE_END)
    shown = []
    for name, level, cells in rows:
        row_cells = tuple(cells.get(title, Cell(NONE)) for title in titles)
        shown.append(Row(name, row_cells, level))
    explained = tuple(meanings[title] for title in titles)
    first_title = "rubric" if is_alone else "judge, rubric"
    table = Table(first_title, tuple(titles), tuple(shown), meanings=explained)
    return {"table": block_values(table), "links": links}


def _glossary(tables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What the columns of the tables mean."""
    meanings: dict[str, str] = {}
    for figure in tables:
        table = figure["table"]
        meanings |= dict(zip(table["titles"], table["meanings"], strict=True))
    return meanings


def _rank(row: Statistics) -> tuple[bool, float]:
    """The total before the rubrics, and of these the worst first."""
    return bool(row.rubric), lowest_share(row)


_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("base.js", "list.js", "case.js", "main.js")
BODIES = "<!--bodies-->"
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


def page(session: Session, listed_session: Session, blocks: Mapping[RunKey, str]) -> str:
    """The page with the cases of `listed_session`, and `BODIES` where the data blocks belong."""
    style = (_TEMPLATES / "report.css").read_text("utf-8")
    parts = "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    every_section = sections(session.table)
    listed = CaseList(listed_session, blocks)
    changes = Changes(compared_pairs(session))
    tables = figures_tables(every_section, changes, listed.link)
    matrices = [block for section in every_section for block in topics.more_figures(section)]
    decisions = []
    for name, decision in session.decisions.items():
        decisions.append(_decision(name, decision, session))
    values = {
        "title": _title(session),
        "heading": session_title(session),
        "subtitle": subtitle(session),
        "head": block_values(_head(session)),
        "decisions": block_values(decisions),
        "warnings": _of_judges(every_section, section_warnings),
        "flickers": _of_judges(every_section, lambda section: [flicker_sentence(section.total)]),
        "figures": tables,
        "glossary": list(_glossary(tables).items()),
        "compared": bool(changes),
        "note": ONE_BY_ONE if any(len(section.rows) > 1 for section in every_section) else "",
        "matrices": block_values(matrices),
        "probes": block_values(probe_blocks(session.probes)),
        "panels": block_values(topics.panel_blocks(session)),
        "columns": listed.columns(),
        "cases": listed.rows(),
        "filters": listed.filters(),
        "chips": listed.chips(),
        "all_cases": f"{len(listed_session.results):,}",
        "spending": _spending(session),
        "origin": block_values(provenance_blocks(session.origin)),
        "remarks": block_values(_remarks(session)),
        "listed": block_values(_listed(session, listed_session)),
    }
    ours = {
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    shown = printable(session.redactor.value(values))
    cases = shown.pop("cases")
    shown |= {"first_cases": cases[:_FIRST_CASES], "has_more_cases": len(cases) > _FIRST_CASES}
    ours["rows"] = packed({"cases": cases})
    return render_page(_TEMPLATES, "report.html", {**shown, **ours})


def _head(session: Session) -> list[Block]:
    """What comes before the decisions: of each suite what is missed and what is a false alarm, what
    makes figures doubtful, the cases to read first, and the next step.
    """
    blocks: list[Block] = []
    cards = cards_by_suite(session)
    for suite, of_suite in cards.items():
        if len(cards) > 1:
            title, _ = suite_title(suite, of_suite, session)
            blocks.append(Sentence(f"{suite}: {title}", "strong"))
        blocks += suite_blocks(suite, of_suite, session)
        if len(of_suite) == 1:
            blocks.append(of_suite[0].table)
    return [
        *topics.extent_blocks(session),
        *blocks,
        *doubt_blocks(session),
        *_read_first(session),
        *next_blocks(session),
    ]


def _read_first(session: Session) -> list[Block]:
    """The worst cases, as many as the other reports name."""
    blocks: list[Block] = []
    for worst in worst_cases(session):
        shown, more = worst.first(worst.most)
        title = worst.title
        if more:
            title = f"The {len(shown)} worst of {len(worst.cases):,} cases that are judged wrong."
        blocks.append(replace(worst, title=title, cases=shown))
    return blocks


def _spending(session: Session) -> str:
    if session.is_table:
        return ""
    lines = spending_lines(session.spending, _ONE_LINE, wall_seconds=session.wall_seconds)
    return " | ".join(lines)


def _of_judges(
    every_section: Sequence[figures.Section], say: Callable[[figures.Section], Iterable[str]]
) -> list[str]:
    """What there is to say of each judge, which is named where there are several."""
    sentences = []
    for section in every_section:
        of = f"{section.label}: " if len(every_section) > 1 else ""
        sentences += [f"{of}{sentence}" for sentence in say(section) if sentence]
    return sentences


def _remarks(session: Session) -> list[Block]:
    """What is to be said of all cases."""
    return [
        *topics.left_out_blocks(session),
        *topics.review_blocks(session),
        *map(Sentence, label_sentences(session)),
        *topics.shown_folds(session),
    ]


def _listed(session: Session, listed_session: Session) -> list[Block]:
    """How many cases the list has, where that is not all."""
    listed, every_case = len(listed_session.results), len(session.results)
    return [] if listed == every_case else [Sentence(_LISTED.format(listed, every_case))]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _title(session: Session) -> str:
    state = f"{session.word}: " if session.word else ""
    return f"{state}judge reliability, {', '.join(suite_names(session))}"


def _decision(name: str, decision: Decision, session: Session) -> Section:
    """Folded how sure the decision is, and what changed in the prompt."""
    of = f" of {name}" if len(session.decisions) > 1 else ""
    cases = gate_cases(decision, session)
    blocks = (*how_sure(decision), *prompt_blocks(session, name, is_open=True), *cases)
    return Section(f"The gate{of}", blocks, WEIGHTS[decision.word])


LIMIT = 30_000_000


def write_html(
    path: Path,
    session: Session,
    *,
    limit: int = LIMIT,
) -> None:
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
            block = _block(
                blocks[key],
                results,
                session,
                session.records.read,
                who_said=who_said,
                texts=texts,
                room=room,
            )
            room -= len(block)
            file.write(block)
        data = f'<script type="text/plain" id="{BLOCK}">{texts.packed()}</script>\n'
        search = data.encode("ascii")
        if len(search) <= room + for_search:
            file.write(search)
        file.write(encoded(tail))


def _block(
    name: str,
    results: Sequence[CaseResult],
    session: Session,
    read: ReadCase,
    *,
    texts: SearchTexts,
    room: int,
    **settings: Any,
) -> bytes:
    """One run's data block, cut to its edits and verdicts where the whole does not fit.

    Nothing where not even that.
    """
    for whole in (True, False):
        described = run_body(results, session, read, whole=whole, **settings)
        if whole:
            texts.add(described)
        body = packed(described)
        cut = "" if whole else " data-cut"
        block = f'<script type="text/plain" id="{name}"{cut}>{body}</script>\n'.encode("ascii")
        if len(block) <= room:
            return block
    missing = '<script type="text/plain" data-cut></script>\n'.encode("ascii")
    return missing if len(missing) <= room else b""
