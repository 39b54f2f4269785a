"""The values of the HTML report's page: gate, figures, panels and the table of cases."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_jrh.reporting.evidence.earlier import Changes, shown_prompts
from pytest_jrh.reporting.gate_text import (
    change_sentences,
    decision_sentence,
    gate_groups,
    update_sentence,
)
from pytest_jrh.reporting.grounds.sentences import label_sentences
from pytest_jrh.reporting.html.bodies import printable
from pytest_jrh.reporting.html.cases import CaseList
from pytest_jrh.reporting.html.figures import section_values
from pytest_jrh.reporting.html.history import history_values
from pytest_jrh.reporting.html.provenance import provenance_values
from pytest_jrh.reporting.probes.text import findings_first
from pytest_jrh.reporting.probes.values import probe_page
from pytest_jrh.reporting.reviewed import unsettled_labels
from pytest_jrh.reporting.session_results import (
    case_key,
    extent_sentences,
    majority_text,
    recording_sentence,
    subtitle,
    suite_names,
)
from pytest_jrh.stats.columns import decimal, range_text
from pytest_jrh.stats.figures import left_out, sections
from pytest_jrh.stats.spending import spending_lines
from pytest_jrh.templating import render_page
from pytest_jrh.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.redact import Redactor
    from pytest_jrh.reporting.html.bodies import RunKey
    from pytest_jrh.reporting.reviewed import UnsettledLabels
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.panels import Panel

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("base.js", "list.js", "case.js", "main.js")
BODIES = "<!--bodies-->"
_MOST_NAMED = 500
_ONE_LINE = 10_000


def page(session: SessionResults, blocks: Mapping[RunKey, str], redactor: Redactor) -> str:
    """The page, with `BODIES` where the data blocks belong."""
    style = (_TEMPLATES / "report.css").read_text("utf-8")
    parts = "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    every_section = sections(session.table)
    listed = CaseList(session, blocks)
    changes = Changes.since_baseline(session)
    values = {
        "title": _title(session),
        "subtitle": subtitle(session),
        "history": history_values(session.history),
        "provenance": provenance_values(session.origin),
        "extents": extent_sentences(session),
        "unsettled": [_unsettled(one, session) for one in unsettled_labels(session.results)],
        "decisions": [
            _decision(name, decision, session)
            for name, decision in session.decisions.items()
            if decision.active or not decision.passed
        ],
        "recording": {
            "sentence": recording_sentence(session),
            "command": one_line(session.record_command),
        },
        "sections": [
            section_values(section, changes, listed.link, several=len(every_section) > 1)
            for section in every_section
        ],
        "findings": findings_first(session.probes),
        "probes": probe_page(session.probes),
        "panels": [_panel(panel) for panel in session.panels],
        "columns": listed.columns(),
        "cases": listed.rows(),
        "filters": listed.filters(),
        "triage": listed.triage(),
        "all_cases": f"{len(session.results):,}",
        "spending": " | ".join(
            spending_lines(session.spending, _ONE_LINE, wall_seconds=session.wall_seconds)
        ),
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
    return f"{state}judge reliability, {', '.join(suite_names(session))}"


def _remarks(session: SessionResults) -> list[str]:
    parts = [f"{number:,} {kind}" for kind, number in left_out(session.table.overall)]
    lines = [f"Not in the figures: {', '.join(parts)}."] if parts else []
    return [*lines, *label_sentences(session)]


def _unsettled(unsettled: UnsettledLabels, session: SessionResults) -> dict[str, Any]:
    return {
        "sentence": unsettled.sentence,
        "more": max(0, len(unsettled.cases) - _MOST_NAMED),
        "cases": [
            {"node": session.node(result.case_id), "key": case_key(result.case_id)}
            for result in unsettled.cases[:_MOST_NAMED]
        ],
    }


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
        "prompts": [
            {
                "title": prompt.title,
                "pieces": [(piece.kind, piece.text) for piece in prompt.pieces],
            }
            for prompt in shown_prompts(session, name)
        ],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    said = majority_text(panel)
    without = panel.without_vote
    return {
        "title": f"Panel of {panel.suite}: {counted(len(panel.judges), 'judge')}",
        "sentence": f"{said[0].upper()}{said[1:]}.",
        "pairs": [
            {
                "judges": " / ".join(pair.judges),
                "agree": f"{pair.agreement.count:,} of {pair.agreement.n:,}",
                "agree_range": range_text(pair.agreement_interval),
                "kappa": decimal(pair.kappa.value),
                "kappa_range": range_text(pair.kappa_interval, "number"),
            }
            for pair in panel.pairs
        ],
        "without": [{"case": vote.case, "reason": vote.reason} for vote in without[:_MOST_NAMED]],
        "without_number": f"{len(without):,}",
    }
