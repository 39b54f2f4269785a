"""The Markdown report: what it says, in which order, and what is left out where it gets long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.artifacts.spools import RecordIndex
from pytest_jrh.redact import Redactor
from pytest_jrh.reporting.evidence.earlier import (
    CHANGE_TITLE,
    PLACE,
    Changes,
    FigureChange,
    ShownPrompt,
    shown_prompts,
)
from pytest_jrh.reporting.gate_text import (
    change_sentences,
    decision_sentence,
    gate_groups,
    update_sentence,
)
from pytest_jrh.reporting.grounds.sentences import label_sentences
from pytest_jrh.reporting.markdown.blocks import BoundedPage
from pytest_jrh.reporting.markdown.cases import CaseBlocks
from pytest_jrh.reporting.markdown.provenance import provenance_lines
from pytest_jrh.reporting.markdown.quoting import (
    LONGEST_NAME,
    code,
    entities,
    inert,
    marked,
    preformatted,
    prose,
)
from pytest_jrh.reporting.probes.markdown import markdown_blocks
from pytest_jrh.reporting.probes.text import findings_first
from pytest_jrh.reporting.reviewed import review_counts, unsettled_labels
from pytest_jrh.reporting.session_results import (
    extent_sentences,
    majority_text,
    recording_sentence,
    subtitle,
)
from pytest_jrh.stats.columns import NONE, decimal, ranged
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import ONE_BY_ONE, left_out, matrix_of, reasons, sections
from pytest_jrh.stats.flicker_text import flicker_sentence
from pytest_jrh.stats.inference.levels import levels_of
from pytest_jrh.stats.spending import spending_lines
from pytest_jrh.text import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_jrh.gate.decision import GateDecision
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.inference.formulas import ConfusionMatrix
    from pytest_jrh.stats.panels import Panel

LIMIT = 60_000
_MARKS = {None: "", True: "✅ ", False: "❌ "}
_MOST_NAMED = 200
_LONGEST_PROMPT = 4_000


def markdown_report(
    session: SessionResults,
    records: Iterable[RecordIndex] = (),
    *,
    redactor: Redactor | None = None,
    limit: int = LIMIT,
) -> str:
    """Write the whole report in fewer than `limit` bytes of UTF-8: what matters most comes first,
    the end is cut.

    `records` say where the made cases lie. Nothing where no suite ran.
    """
    if not session.results:
        return ""
    page = BoundedPage(limit)
    page.block([f"## {_MARKS[session.passed]}Judge reliability\n", f"{prose(subtitle(session))}\n"])
    page.block([f"⚠️ {prose(finding)}\n" for finding in findings_first(session.probes)])
    page.block(provenance_lines(session.origin))
    for sentence in extent_sentences(session):
        page.block([f"⚠️ {prose(sentence)}\n"])
    _decisions(page, session)
    every_section = sections(session.table)
    changes = Changes.since_baseline(session)
    for section in every_section:
        _figures(page, section, changes.about(section.total.counts), several=len(every_section) > 1)
    for head, rows, end in markdown_blocks(session.probes):
        page.block(head, rows, end)
    _left_out(page, session)
    for unsettled in unsettled_labels(session.results):
        nodes = [f"- {code(session.node(result.case_id))}" for result in unsettled.cases]
        page.block([f"\n⚠️ {prose(unsettled.sentence)}\n"], nodes[:_MOST_NAMED])
    for decision in session.decisions.values():
        _changes(page, session, decision)
    if sentence := recording_sentence(session):
        page.block([f"{prose(sentence)}\n", f"{preformatted(session.record_command)}\n"])
    for panel in session.panels:
        _panel(page, panel)
    spent = " | ".join(
        spending_lines(session.spending, LONGEST_NAME, wall_seconds=session.wall_seconds)
    )
    page.block([f"\n{spent}\n"])
    for section in every_section:
        _more_figures(page, section)
    with RecordIndex.joined(records).reading() as read:
        CaseBlocks(page, session, read, redactor or Redactor()).write()
    return page.text()


def _decisions(page: BoundedPage, session: SessionResults) -> None:
    for name, decision in session.decisions.items():
        if decision.passed and not decision.active:
            continue
        of = f"{code(name)}: " if len(session.decisions) > 1 else ""
        remarks = [f"- {prose(sentence)}" for sentence in change_sentences(decision)]
        page.block([f"{of}**{prose(decision_sentence(decision))}**\n", *remarks, ""])
        for prompt in shown_prompts(session, name):
            _prompt(page, prompt)
        if advice := update_sentence(decision):
            command = (
                [f"{preformatted(decision.update_command)}\n"] if decision.update_command else []
            )
            page.block([f"{prose(advice)}\n", *command])


def _prompt(page: BoundedPage, prompt: ShownPrompt) -> None:
    if not prompt.pieces:
        page.block([f"{prose(prompt.title)}\n"])
        return
    summary = f"<summary>{inert(prompt.title)}</summary>"
    page.block([f"<details open>{summary}{marked(prompt.pieces, _LONGEST_PROMPT)}</details>\n"])


def _figures(page: BoundedPage, section: Section, changes: Changes, *, several: bool) -> None:
    heading = [f"### {code(section.label)}\n"] if several else []
    titles = [column.title for column in section.columns]
    if changes:
        titles.insert(PLACE, CHANGE_TITLE)
    rule = ["---", *("---:" for _ in titles)]
    head = [*heading, _table_row([section.first_title, *titles]), _table_row(rule)]
    lines = []
    # The total first: a table that is cut keeps it.
    for row in sorted(section.rows, key=lambda row: row.level != "total"):
        names = {
            "total": "**all**",
            "test": f"&nbsp;&nbsp;{row.name}",
            "rubric": code(row.name, cell=True),
        }
        cells = [cell.whole for cell in row.cells]
        if changes:
            cells.insert(PLACE, _change(changes.of(row.statistics.counts)))
        lines.append(_table_row([names[row.level], *cells]))
    one = f" {ONE_BY_ONE}" if len(section.rows) > 1 else ""
    since = " Since baseline: points of accuracy." if changes else ""
    note = f"\nIn parentheses: 95% intervals.{one}{since}"
    warnings = [f"\n⚠️ {prose(warning)}" for warning in section_warnings(section)]
    sentence = flicker_sentence(section.total)
    flicker = [f"\n{prose(sentence)}"] if sentence else []
    page.block(head, lines, [note, *warnings, *flicker, ""])


def _change(change: FigureChange | None) -> str:
    if change is None:
        return NONE
    return change.text if change.n == change.of else f"{change.text} (n {change.n:,})"


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _left_out(page: BoundedPage, session: SessionResults) -> None:
    parts = [f"{number:,} {kind}" for kind, number in left_out(session.table.overall)]
    if parts:
        page.block([f"Not in these figures: {', '.join(parts)}.\n"])
    if counts := review_counts(session):
        page.block([f"Reviewed by people: {counts}.\n"])
    for sentence in label_sentences(session):
        page.block([f"{prose(sentence)}\n"])


def _changes(page: BoundedPage, session: SessionResults, decision: GateDecision) -> None:
    if decision.passed and not decision.active:
        return
    for group in gate_groups(decision):
        title = f"{prose(group.title)} ({len(group.cases):,})"
        lines = [
            f"- {code(session.node(case_id))}" + (f" ({prose(why)})" if why else "")
            for case_id, why in group.cases[:_MOST_NAMED]
        ]
        more = len(group.cases) - len(lines)
        lines += [f"- and {more:,} more"] if more > 0 else []
        if group.style == "red":
            page.block([f"**{title}**\n"], lines, [""])
        else:
            page.block([f"<details><summary>{title}</summary>\n"], lines, ["\n</details>\n"])


def _panel(page: BoundedPage, panel: Panel) -> None:
    head = [f"**Panel** of {code(panel.suite)}: {majority_text(panel)}.\n"]
    head += [_table_row(["judges", "agree", "kappa"]), _table_row(["---", "---:", "---:"])]
    lines = []
    for pair in panel.pairs:
        names = " / ".join(code(judge, cell=True) for judge in pair.judges)
        agree = f"{pair.agreement.count:,} of {pair.agreement.n:,}"
        agree = ranged(agree, pair.agreement_interval)
        kappa = ranged(decimal(pair.kappa.value), pair.kappa_interval, "number")
        lines.append(_table_row([names, agree, kappa]))
    page.block(head, lines, [""])


def _more_figures(page: BoundedPage, section: Section) -> None:
    lines = []
    for row in section.whole_rows:
        matrix = matrix_of(row.statistics, section.mode)
        if matrix is not None and matrix.n:
            lines.append(_matrix(row.name, matrix))
            if section.mode == "ordinal":
                lines.append(_levels(row.name, matrix))
    lines += [
        f"- {title}: {prose(reason)} ({', '.join(code(label) for label in labels)})"
        for title, reason, labels in reasons(section)
    ]
    if not lines:
        return
    title = (
        "Confusion matrices and missing figures, "
        f"{entities(shortened(one_line(section.label), LONGEST_NAME))}"
    )
    page.block([f"<details><summary>{title}</summary>\n"], lines, ["\n</details>\n"])


def _matrix(name: str, matrix: ConfusionMatrix) -> str:
    head = _table_row(
        [
            f"{code(name, cell=True)}: right answer",
            *(f"judge gave {label}" for label in matrix.labels),
        ]
    )
    rule = _table_row(["---", *("---:" for _ in matrix.labels)])
    rows = [
        _table_row([str(label), *(f"{count:,}" for count in row)])
        for label, row in zip(matrix.labels, matrix.counts, strict=True)
    ]
    return "\n".join([head, rule, *rows, ""])


def _levels(name: str, matrix: ConfusionMatrix) -> str:
    """What an ordinal judge gave to the cases of each level."""
    titles = ["n", "mean given", "bias", "spread", "range"]
    head = _table_row([f"{code(name, cell=True)}: right answer", *titles])
    rule = _table_row(["---", *("---:" for _ in titles)])
    rows = [
        _table_row(
            [
                str(each.level),
                f"{each.n:,}",
                decimal(each.mean),
                each.bias_text,
                decimal(each.spread),
                each.range_text,
            ]
        )
        for each in levels_of(matrix)
    ]
    return "\n".join([head, rule, *rows, ""])
