"""A session as one HTML file that opens from disk and asks the network for nothing (rule I8:
`--jrh-report`).

The overview and the table of cases are plain HTML, escaped by jinja; transcripts lie compressed in
data blocks and reach the page as text nodes alone. A content security policy that names the one
script and style by their hashes stands behind both.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.artifacts.spools import RecordIndex
from pytest_jrh.files import encoded, relative_path, replacing
from pytest_jrh.models import UNSCORED
from pytest_jrh.reporting.gate_text import (
    change_sentences,
    decision_sentence,
    gate_groups,
    update_sentence,
)
from pytest_jrh.reporting.html_bodies import by_run, packed, printable, run_body, run_key
from pytest_jrh.reporting.session_results import case_key, extent_sentences, recording_sentence
from pytest_jrh.stats.columns import decimal, percent
from pytest_jrh.stats.contradictions import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import left_out, matrix_of, reasons, sections
from pytest_jrh.stats.spending import spending_lines
from pytest_jrh.templating import render_page
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_jrh.artifacts.spools import ReadRecord
    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.models import CaseResult, Mode
    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.figures import Row, Section
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.panels import Panel

LIMIT = 30_000_000
_TEMPLATES = Path(__file__).parent / "templates"
_BODIES = "<!--bodies-->"
_MOST_NAMED = 500
_ONE_LINE = 10_000
_MEANINGS = {0: "satisfied", 1: "violated"}


def write_html(
    path: Path,
    session: SessionResults,
    records: Iterable[RecordIndex],
    *,
    redactor: Redactor,
    base: Path | None = None,
    limit: int = LIMIT,
) -> None:
    """Write the report, reading one source run's cases at a time; the file stays under `limit`
    bytes.

    Where transcripts do not all fit, those of regressions and disagreements come first, and the
    page says which are left out. Rubric files under `base` are named relative to it. Raises
    `OSError` as it comes; an older file is then still whole.
    """
    index = RecordIndex(
        {case_id: entry for each in records for case_id, entry in each.entries.items()}
    )
    groups = by_run(session)
    blocks = {key: f"run-{number}" for number, key in enumerate(groups)}
    head, tail = _page(session, blocks, redactor).split(_BODIES)
    room = limit - len(encoded(head)) - len(encoded(tail))

    def place_of(result: CaseResult) -> str:
        return _rubric_place(session, result, base)

    with replacing(path) as file, index.reading() as read:
        file.write(encoded(head))
        for key, results in groups.items():
            block = _block(
                blocks[key], results, session, read, place_of=place_of, redactor=redactor, room=room
            )
            room -= len(block)
            file.write(block)
        file.write(encoded(tail))


def _block(
    name: str,
    results: Sequence[CaseResult],
    session: SessionResults,
    read: ReadRecord,
    *,
    room: int,
    **settings: Any,
) -> bytes:
    """One run's data block, cut to its edits and verdicts where the whole does not fit.

    Nothing where not even that.
    """
    for whole in (True, False):
        body = packed(run_body(results, session, read, whole=whole, **settings))
        cut = "" if whole else " data-cut"
        block = f'<script type="text/plain" id="{name}"{cut}>{body}</script>\n'.encode("ascii")
        if len(block) <= room:
            return block
    missing = '<script type="text/plain" data-cut></script>\n'.encode("ascii")
    return missing if len(missing) <= room else b""


def _page(
    session: SessionResults, blocks: Mapping[tuple[str, str, int], str], redactor: Redactor
) -> str:
    style, script = ((_TEMPLATES / name).read_text("utf-8") for name in ("report.css", "report.js"))
    told = sections(session.table)
    columns = _columns(session)
    changes = _changes(session)
    texts = {result.case_id: _texts(result, changes) for result in session.results}
    values = {
        "title": _title(session),
        "subtitle": _subtitle(session),
        "extents": extent_sentences(session),
        "decisions": [
            _decision(name, decision, session)
            for name, decision in session.decisions.items()
            if decision.active or not decision.passed
        ],
        "recording": {
            "sentence": recording_sentence(session),
            "command": one_line(session.record_command),
        },
        "sections": [_section(section, several=len(told) > 1) for section in told],
        "panels": [_panel(panel) for panel in session.panels],
        "columns": columns,
        "cases": [
            _case(
                result,
                session.node(result.case_id),
                blocks[run_key(result)],
                columns,
                texts[result.case_id],
            )
            for result in session.results
        ],
        "filters": _filters(columns, texts.values()),
        "spending": " | ".join(spending_lines(session.spending, session.wall_seconds, _ONE_LINE)),
        "remarks": _remarks(session),
    }
    ours = {
        "style": style,
        "script": script,
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    return render_page(_TEMPLATES, "report.html", {**printable(redactor.value(values)), **ours})


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _title(session: SessionResults) -> str:
    state = {None: "", True: "passed: ", False: "failed: "}[session.passed]
    return f"{state}judge reliability, {', '.join(_suites(session))}"


def _suites(session: SessionResults) -> list[str]:
    return list(dict.fromkeys(result.suite for result in session.results))


def _subtitle(session: SessionResults) -> str:
    counts = session.table.overall.counts
    suites = _suites(session)
    named = f"{'suite' if len(suites) == 1 else 'suites'} {', '.join(suites)}"
    return (
        f"{named}: {counted(counts.n, 'verdict')}, {counts.agree:,} right, {counts.disagree:,} "
        "wrong"
    )


def _remarks(session: SessionResults) -> list[str]:
    parts = [f"{number:,} {kind}" for kind, number in left_out(session.table.overall)]
    lines = [f"Not in the figures: {', '.join(parts)}."] if parts else []
    unverified = session.table.overall.counts.unverified
    said = (
        f"{counted(unverified, 'label')} unverified (the verifier is off, or did not confirm them)."
    )
    return [*lines, said] if unverified else lines


def _decision(name: str, decision: GateDecision, session: SessionResults) -> dict[str, Any]:
    there = {result.case_id for result in session.results}
    groups = [
        {
            "title": group.title,
            "number": f"{len(group.cases):,}",
            "open": group.style == "red",
            "more": max(0, len(group.cases) - _MOST_NAMED),
            "cases": [
                {
                    "node": session.node(case_id),
                    "key": case_key(case_id) if case_id in there else None,
                    "why": why,
                }
                for case_id, why in group.cases[:_MOST_NAMED]
            ],
        }
        for group in gate_groups(decision)
    ]
    return {
        "name": name if len(session.decisions) > 1 else "",
        "passed": decision.passed,
        "sentence": decision_sentence(decision),
        "remarks": change_sentences(decision),
        "remedy": {
            "sentence": update_sentence(decision),
            "command": one_line(decision.update_command),
        },
        "groups": groups,
    }


def _section(section: Section, *, several: bool) -> dict[str, Any]:
    maps = []
    for row in section.whole_rows:
        matrix = matrix_of(row.statistics, section.mode)
        if matrix is not None and matrix.n:
            maps.append(_heat(row.name, matrix, section.mode))
    return {
        "label": section.label if several else f"Figures of {section.label}",
        "first": "rubric, test"
        if len(section.tests) > 1
        else f"rubric ({', '.join(section.tests)})",
        "bar_title": f"{section.columns[1].title}, 0 to 100%",
        "titles": [column.title for column in section.columns],
        "rows": [_row(row) for row in section.rows],
        "chance": section.mode == "binary",
        "warnings": section_warnings(section),
        "maps": maps,
        "reasons": [
            f"{title}: {reason} ({', '.join(labels)})" for title, reason, labels in reasons(section)
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    statistics = row.statistics
    value, low, high = (
        statistics.accuracy.value,
        statistics.interval.lower,
        statistics.interval.upper,
    )
    return {
        "level": row.level,
        "name": row.name,
        "cells": [
            {"title": cell.column.title, "text": cell.text, "reason": cell.reason}
            for cell in row.cells
        ],
        "value": value,
        "text": percent(value),
        "interval": "not known"
        if low is None or high is None
        else f"{percent(low)} to {percent(high)}",
        "low": None if low is None else round(100 * low, 2),
        "width": None if low is None or high is None else round(100 * (high - low), 2),
        # Of 1.5 units in width, and whole at both ends.
        "point": None if value is None else round(98.5 * value, 2),
    }


def _heat(name: str, matrix: ConfusionMatrix, mode: Mode) -> dict[str, Any]:
    side, tall, left, top = (84, 40, 84, 34) if mode == "binary" else (44, 34, 44, 34)
    meanings = _MEANINGS if mode == "binary" else {}
    cells = [
        {
            "row": row,
            "column": column,
            "count": f"{count:,}",
            "right": row == column,
            # By the share of its row, so that a rare label's errors show as well.
            "shade": round(0.06 + 0.6 * count / matrix.rows[row], 3) if count else 0.04,
        }
        for row, counts in enumerate(matrix.counts)
        for column, count in enumerate(counts)
    ]
    return {
        "name": name,
        "labels": [
            f"{label} {meanings[label]}" if label in meanings else str(label)
            for label in matrix.labels
        ],
        "cells": cells,
        "side": side,
        "tall": tall,
        "left": left,
        "top": top,
        "width": left + side * len(matrix.labels) + 12,
        "height": top + tall * len(matrix.labels),
    }


def _panel(panel: Panel) -> dict[str, Any]:
    right = (
        f"The majority is right in {panel.accuracy.count:,} of {counted(panel.accuracy.n, 'case')}"
    )
    without = panel.without_vote
    return {
        "title": f"Panel of {panel.suite}: {counted(len(panel.judges), 'judge')}",
        "sentence": f"{right} ({percent(panel.accuracy.value)}).",
        "pairs": [
            {
                "judges": " / ".join(pair.judges),
                "agree": f"{pair.agreement.count:,} of {pair.agreement.n:,}",
                "kappa": decimal(pair.kappa.value),
            }
            for pair in panel.pairs
        ],
        "without": [{"case": vote.case, "reason": vote.reason} for vote in without[:_MOST_NAMED]],
        "without_number": f"{len(without):,}",
    }


def _columns(session: SessionResults) -> list[dict[str, Any]]:
    """Only what tells cases from each other, or says something of one."""
    results = session.results
    shown: list[tuple[str, str, bool]] = [("outcome", "outcome", False)]
    if any(decision.comparison is not None for decision in session.decisions.values()):
        shown.append(("change", "since the baseline", False))
    if len(_suites(session)) > 1:
        shown.append(("suite", "suite", False))
    shown += [("rubric", "rubric", False), ("test", "test", False), ("run", "run", False)]
    if any(result.judge for result in results):
        shown.append(("judge", "judge", False))
    if any(map(reasoning_disagrees, results)):
        shown.append(("reasoning", "reasoning", False))
    shown += [("right", "right", True), ("given", "given", True), ("cost", "cost", True)]
    return [{"name": name, "title": title, "number": number} for name, title, number in shown]


def _filters(
    columns: Iterable[Mapping[str, Any]], texts: Collection[Mapping[str, str]]
) -> list[dict[str, Any]]:
    return [
        {
            "name": column["name"],
            "title": column["title"],
            "options": sorted({each[column["name"]] for each in texts if each[column["name"]]}),
        }
        for column in columns
        if column["name"] in ("outcome", "change", "suite", "rubric", "test", "judge", "reasoning")
    ]


def _case(
    result: CaseResult,
    node: str,
    block: str,
    columns: Iterable[Mapping[str, Any]],
    texts: Mapping[str, str],
) -> dict[str, Any]:
    kinds = {
        "reasoning": "warn",
        "outcome": _kind(result),
        "change": {"regression": "bad", "fix": "good"}.get(texts["change"], ""),
    }
    cells = [
        {**column, "text": texts[column["name"]], "kind": kinds.get(column["name"], "")}
        for column in columns
    ]
    return {"key": case_key(result.case_id), "chunk": block, "node": node, "cells": cells}


def _kind(result: CaseResult) -> str:
    if result.outcome in UNSCORED:
        return "warn"
    return {"agree": "good", "disagree": "bad"}.get(result.outcome, "plain")


def _texts(result: CaseResult, changes: Mapping[str, str]) -> dict[str, str]:
    target = "" if result.target_score is None else f", score {result.target_score}"
    epoch = "" if result.epoch == 1 else f", epoch {result.epoch}"
    cost = "" if result.spending.unpriced else f"${result.spending.cost:.4f}"
    texts = {
        "outcome": result.outcome,
        "change": changes.get(result.case_id, ""),
        "suite": result.suite,
        "rubric": result.rubric_id,
        "test": result.test,
        "run": f"{result.run_id}{epoch}{target}",
        "judge": result.judge,
        "reasoning": REASONING_DISAGREES if reasoning_disagrees(result) else "",
        "right": "" if result.expected is None else str(result.expected),
        "given": "" if result.score is None else str(result.score),
        "cost": cost,
    }
    # The page compares them with the choices of its filters, in which white space does not count.
    return {name: one_line(text) for name, text in texts.items()}


def _changes(session: SessionResults) -> dict[str, str]:
    changes: dict[str, str] = {}
    for decision in session.decisions.values():
        if decision.comparison is not None:
            changes |= dict.fromkeys(decision.not_comparable, "not comparable")
            changes |= dict.fromkeys(decision.comparison.still_wrong, "still wrong")
            changes |= dict.fromkeys(decision.fixes, "fix") | dict.fromkeys(
                decision.regressions, "regression"
            )
    return changes


def _rubric_place(session: SessionResults, result: CaseResult, base: Path | None) -> str:
    rubric = session.rubrics.get((result.suite, result.rubric_id))
    if rubric is None or not rubric.file:
        return ""
    path = Path(rubric.file)
    shown = path if base is None else relative_path(path, base)
    return f"{shown}:{rubric.line}"
