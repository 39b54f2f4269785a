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
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_jrh.core.files import encoded, replacing
from pytest_jrh.core.templates import render_page
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import Section, Sentence, block_values
from pytest_jrh.reports.evidence import (
    MEANINGS,
    Changes,
    WhoSaid,
    prompt_blocks,
)
from pytest_jrh.reports.gate import (
    certainty_blocks,
    change_sentences,
    decision_sentence,
    gate_cases,
    update_blocks,
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
from pytest_jrh.reports.pictures import PAGE_STYLE, page_pictures
from pytest_jrh.reports.probes import findings_first, probe_blocks
from pytest_jrh.reports.provenance import provenance_blocks
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import subtitle, suite_names
from pytest_jrh.reports.spending import spending_lines
from pytest_jrh.stats import figures
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import (
    ONE_BY_ONE,
    decimal,
    flicker_sentence,
    percent,
    sections,
)
from pytest_jrh.stats.statistics import levels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.html_cases import RunKey
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.figures import Row
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.gate import GateDecision
    from pytest_jrh.stats.statistics import LevelFigures
    from pytest_jrh.store.spools import ReadCase


class HtmlReport(Report):
    """Everything, to be opened in a browser."""

    name = "HTML"
    option = "report"

    def write(self, path: Path, session: Session) -> None:
        write_html(path, session)


_SHADES = 8


Link: TypeAlias = "Callable[..., str]"
"""Gives the address of the cases that have these texts in these columns."""


def section_values(
    section: figures.Section, changes: Changes, link: Link, *, several: bool
) -> dict[str, Any]:
    """What the page's template needs of one judge's figures; `link` leads to a figure's cases."""
    changes = changes.about(section.total.counts)
    judge = {"suite": section.suite, "judge": section.judge}
    maps = []
    for row in section.whole_rows:
        matrix = row.statistics.matrices.get(section.mode)
        if matrix is not None and matrix.n:
            to_cases = partial(link, **judge, rubric=row.rubric)
            maps.append(_heat(row.name, matrix, section.mode, to_cases))
    return {
        "label": section.label if several else f"Figures of {section.label}",
        "table": block_values(topics.figures_table(section, changes)),
        "bars": {
            "title": f"{section.columns[1].title}, 0 to 100%",
            "chance": section.mode == "binary",
            "rows": [_mark(row, changes, partial(link, **judge)) for row in section.rows],
        },
        "changes": bool(changes),
        "note": ONE_BY_ONE if len(section.rows) > 1 else "",
        "warnings": section_warnings(section),
        "flicker": flicker_sentence(section.total),
        "maps": maps,
        "reasons": topics.missing_figures(section),
    }


def _mark(row: Row, changes: Changes, link: Link) -> dict[str, Any]:
    """The link to a row's cases, and the places of its marks in a bar from 0 to 100%."""
    accuracy = row.statistics.accuracy
    change = changes.of(row.statistics.counts)
    low, high = accuracy.lower, accuracy.upper
    mark: dict[str, Any] = {
        "link": link(rubric=row.rubric, test=row.name if row.level == "test" else ""),
        "before": None if change is None else round(97 * change.before + 0.25, 2),
        "said_before": "" if change is None else f", {percent(change.before)} in the baseline",
        "text": percent(accuracy.value),
        "interval": "not known",
        "low": None,
        # Of 1.5 units in width, and whole at both ends.
        "point": None if accuracy.value is None else round(98.5 * accuracy.value, 2),
    }
    if low is not None and high is not None:
        mark["interval"] = f"{percent(low)} to {percent(high)}"
        mark["low"], mark["width"] = round(100 * low, 2), round(100 * (high - low), 2)
    return mark


def _heat(name: str, matrix: ConfusionMatrix, mode: Mode, link: Link) -> dict[str, Any]:
    """A confusion matrix as a table of links to its cases, with the figures of ordinal levels.

    Each is coloured by its share of its row, so that a rare label's errors show as well.
    """

    def to_cases(right: int, given: int) -> str:
        return link(right=str(right), given=str(given))

    meanings = MEANINGS if mode == "binary" else {}
    names = [f"{label} {meanings.get(label, '')}".rstrip() for label in matrix.labels]
    rows = []
    for row, counts in enumerate(matrix.counts):
        cells = []
        for column, count in enumerate(counts):
            cell = {"count": f"{count:,}", "label": names[column], "link": "", "shade": 0}
            cell["kind"] = "right" if row == column else "wrong"
            if count:
                cell["link"] = to_cases(matrix.labels[row], matrix.labels[column])
                cell["shade"] = ceil(_SHADES * count / matrix.rows[row])
            cells.append(cell)
        rows.append({"name": names[row], "cells": cells})
    levels = [_level(level, matrix.labels) for level in levels_of(matrix)]
    return {
        "name": name,
        "labels": names,
        "rows": rows,
        "levels": levels if mode == "ordinal" else [],
    }


def _level(level: LevelFigures, labels: Sequence[int]) -> dict[str, Any]:
    """One level's figures, and the places of its marks in a bar from the lowest to the highest."""
    low, width = labels[0], max(1, labels[-1] - labels[0])

    def place(score: float) -> float:
        return round(98.5 * min(1.0, max(0.0, (score - low) / width)), 2)

    start, end = place(level.mean - level.spread), place(level.mean + level.spread)
    return {
        "level": str(level.level),
        "n": f"{level.n:,}",
        "mean": decimal(level.mean),
        "bias": level.bias_text,
        "kind": "" if not level.bias else "warn",
        "spread": decimal(level.spread),
        "range": level.range_text,
        "right": place(level.level),
        "point": place(level.mean),
        "low": start,
        "width": round(end - start + 1.5, 2),
    }


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
    """The page, with `BODIES` where the data blocks belong; it lists the cases of
    `listed_session`.
    """
    style = (_TEMPLATES / "report.css").read_text("utf-8") + PAGE_STYLE
    parts = "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    every_section = sections(session.table)
    listed = CaseList(listed_session, blocks)
    changes = Changes.since_baseline(session)
    decisions = []
    for name, decision in session.decisions.items():
        if decision.is_reported:
            decisions.append(_decision(name, decision, session))
    values = {
        "title": _title(session),
        "subtitle": subtitle(session),
        "head": block_values(
            [
                *(Sentence(finding, "warning") for finding in findings_first(session.probes)),
                *provenance_blocks(session.origin),
                *topics.extent_blocks(session),
                *topics.unsettled_blocks(session),
            ]
        ),
        "decisions": block_values(decisions),
        "recording": block_values(topics.recording_blocks(session)),
        "sections": [
            section_values(section, changes, listed.link, several=len(every_section) > 1)
            for section in every_section
        ],
        "probes": block_values(probe_blocks(session.probes)),
        "panels": block_values(topics.panel_blocks(session)),
        "columns": listed.columns(),
        "cases": listed.rows(),
        "filters": listed.filters(),
        "triage": listed.triage(),
        "all_cases": f"{len(listed_session.results):,}",
        "spending": _spending(session),
        "remarks": block_values(_remarks(session, listed_session)),
    }
    ours = {
        "pictures": page_pictures(session),
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


def _spending(session: Session) -> str:
    if session.is_table:
        return ""
    lines = spending_lines(session.spending, _ONE_LINE, wall_seconds=session.wall_seconds)
    return " | ".join(lines)


def _remarks(session: Session, listed_session: Session) -> list[Block]:
    """What is to be said of all cases."""
    blocks = [
        *topics.left_out_blocks(session),
        *topics.review_blocks(session),
        *map(Sentence, label_sentences(session)),
    ]
    if listed_session is not session:
        listed, every_case = len(listed_session.results), len(session.results)
        blocks.append(Sentence(_LISTED.format(listed, every_case)))
    return blocks


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _title(session: Session) -> str:
    state = {None: "", True: "passed: ", False: "failed: "}[session.passed]
    return f"{state}judge reliability, {', '.join(suite_names(session))}"


def _decision(name: str, decision: GateDecision, session: Session) -> Section:
    of = f"{name}: " if len(session.decisions) > 1 else ""
    return Section(
        f"{of}{decision_sentence(decision)}",
        (
            *map(Sentence, change_sentences(decision)),
            *certainty_blocks(decision),
            *prompt_blocks(session, name),
            *update_blocks(decision),
            *gate_cases(decision, session),
        ),
        "good" if decision.passed else "bad",
    )


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
    room = limit - len(encoded(head)) - len(encoded(tail))

    who_said = WhoSaid(session)

    texts = SearchTexts(len(listed.results))
    with replacing(path) as file, session.records.reading() as read:
        file.write(encoded(head))
        for key, results in groups.items():
            block = _block(
                blocks[key],
                results,
                session,
                read,
                who_said=who_said,
                texts=texts,
                room=room,
            )
            room -= len(block)
            file.write(block)
        data = f'<script type="text/plain" id="{BLOCK}">{texts.packed()}</script>\n'
        search = data.encode("ascii")
        if len(search) <= room:
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
