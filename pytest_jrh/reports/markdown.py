"""A session as GitHub Markdown, bounded in size, for `--jrh-summary` and a step's summary: what
matters most first, disagreements with all that tells judge and label apart, and why others have no
verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import Points, Sentence
from pytest_jrh.reports.case_facts import ReportedCase, case_lines
from pytest_jrh.reports.evidence import (
    Changes,
    WhoSaid,
    case_basis,
    earlier_verdict,
    prompt_blocks,
    score_text,
    shown_edits,
)
from pytest_jrh.reports.gate import (
    change_sentences,
    decision_sentence,
    gate_cases,
    update_blocks,
)
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.markdown_text import (
    LONGEST_NAME,
    BoundedPage,
    code,
    entities,
    inert,
    marked,
    prose,
    quoted,
    write_blocks,
)
from pytest_jrh.reports.probes import findings_first, grid_of, probe_blocks
from pytest_jrh.reports.provenance import provenance_blocks
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import subtitle
from pytest_jrh.reports.spending import spending_lines
from pytest_jrh.stats.figures import ONE_BY_ONE, flicker_sentence, sections
from pytest_jrh.stats.metrics import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import flickering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_jrh.core.model import Case, CaseResult
    from pytest_jrh.reports.blocks import Block
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.gate import GateDecision
    from pytest_jrh.store.spools import ReadCase


class MarkdownReport(Report):
    """What matters most, for a pull request or a step's summary."""

    name = "Markdown"
    option = "summary"
    variable = "GITHUB_STEP_SUMMARY"

    def text(self, session: Session) -> str:
        return session.redactor.text(markdown_report(session))


# Some thirty of these fill the report; the others keep their place in it with their reasoning.
_MOST_WHOLE = 25
_MOST_EDITS = 3
_LONGEST_EDIT = 1_000
_HOW_TO_TELL = (
    "Judge or label? If the edit shows what the label says of the rubric, the judge is wrong. If "
    "the judge's reason convinces you instead, the label is wrong: reject the case with "
    "--jrh-review, and it counts no more."
)
_WAYS_ON = (
    "What to do next: change the judge's prompt and run again; or, to accept these verdicts, run "
    "again with --jrh-update-baseline and commit the baseline."
)


class CaseBlocks:
    """The parts of the report that are about single cases."""

    def __init__(self, page: BoundedPage, session: Session, read: ReadCase) -> None:
        self._page = page
        self._session = session
        self._read = read
        self._redactor = session.redactor
        self._who_said = WhoSaid(session)

    def write(self) -> None:
        """Add the disagreements, regressions first, then whatever else is odd about a case."""
        all_results = self._session.results
        results = [result for result in all_results if not result.spec.derived]
        self._disagreements([result for result in results if result.outcome == "disagree"])
        right = [result for result in results if result.outcome == "agree"]
        odd = [result for result in right if reasoning_disagrees(result)]
        self._part(f"Right, but {REASONING_DISAGREES}", odd)
        torn = [result for result in flickering(results) if result.outcome == "agree"]
        self._part("Right, but flickering", torn)
        turned = [
            result for result in all_results if result.spec.derived and result.outcome == "disagree"
        ]
        self._part("Turned by a probe", turned)
        unscored = [result for result in all_results if result.outcome in UNSCORED]
        self._part("Without a verdict", unscored)

    def _disagreements(self, wrong: list[CaseResult]) -> None:
        if not wrong:
            return
        decisions = self._session.decisions.values()
        first = {case_id for decision in decisions for case_id in decision.regressions}
        wrong.sort(key=lambda result: result.case_id not in first)
        whole = (self._whole(result) for result in wrong[:_MOST_WHOLE])
        ways = f"{_HOW_TO_TELL} {_WAYS_ON}" if first else _HOW_TO_TELL
        head = [f"### Disagreements ({len(wrong):,})\n", f"{ways}\n"]
        self._page.block(head, whole, [""])
        if rest := wrong[_MOST_WHOLE:]:
            self._page.block([], map(self._short, rest), [""])

    def _part(self, title: str, results: list[CaseResult]) -> None:
        if results:
            self._page.block([f"### {title} ({len(results):,})\n"], map(self._short, results), [""])

    def _short(self, result: CaseResult) -> str:
        judged = result.outcome in ("agree", "disagree")
        text = _reasoning(result) if judged else result.detail or "(no reason)"
        return self._details(result, [quoted(self._clean(text))])

    def _whole(self, result: CaseResult) -> str:
        case = self._read(made_case_id(result))
        lines = case_lines(ReportedCase(result, case, who_said=self._who_said))
        parts = [f"<p>{title}: {inert(self._clean(text))}</p>" for title, text in lines]
        rubric = self._session.rubrics.get((result.spec.suite, result.spec.rubric_id))
        if rubric is not None:
            parts.append(self._quote("The rubric", rubric.instructions))
        parts += self._edits(case)
        right = score_text(result, result.expected, self._session)
        if case is not None:
            verification = case.outcome.verification
            title = f"Why the label is {right}: {case_basis(case, altered=result.altered)}"
            parts.append(self._quote(title, verification.rationale if verification else ""))
        given = score_text(result, result.score, self._session)
        parts.append(self._quote(f"Why the judge gave {given}", _reasoning(result)))
        earlier = earlier_verdict(result, self._session)
        if earlier is not None:
            title = f"Why the judge of the baseline gave {earlier.given}"
            parts.append(self._quote(title, earlier.reasoning))
        return self._details(result, parts)

    def _edits(self, case: Case | None) -> Iterator[str]:
        if case is None:
            return
        edits = list(shown_edits(self._redactor.value(case)))
        if not edits:
            yield "<p>No edit: the judge saw the run as it was recorded.</p>"
        for edit in edits[:_MOST_EDITS]:
            title = f"<p><strong>The edit</strong> of turn {edit.turn} ({inert(edit.role)})"
            why = f": {inert(shortened(one_line(edit.reason), LONGEST_NAME * 2))}"
            yield f"{title}{why if edit.reason else ''}</p>{marked(edit.pieces, _LONGEST_EDIT)}"
        if len(edits) > _MOST_EDITS:
            more = counted(len(edits) - _MOST_EDITS, "more edit")
            yield f"<p>{more}: the HTML report shows them all.</p>"

    def _quote(self, title: str, text: str) -> str:
        head = f"<p><strong>{inert(title)}</strong></p>"
        return f"{head}{quoted(self._clean(text))}" if text else head

    def _clean(self, text: str) -> str:
        """The text without secrets; once it is cut and escaped they could not be found."""
        return self._redactor.text(text)

    def _details(self, result: CaseResult, parts: Iterable[str]) -> str:
        node = shortened(one_line(self._session.node(result.case_id)), LONGEST_NAME)
        verdict: str = result.outcome
        if verdict == "disagree":
            verdict = f"gave {result.scores_text}, right is {result.expected}"
        elif verdict == "agree":
            verdict = f"gave {result.scores_text}, which is right"
        if reasoning_disagrees(result):
            verdict += f"; {REASONING_DISAGREES}"
        command = one_line(self._session.commands.get(result.case_id, ""))
        again = f"<p>run it again:<br><code>{entities(command)}</code></p>" if command else ""
        summary = f"<summary><code>{entities(node)}</code> {verdict}</summary>"
        return f"<details>{summary}{''.join(parts)}{again}</details>"


def _reasoning(result: CaseResult) -> str:
    """The judge's reasoning; of repeats that differ, also that of one of the others."""
    text, other = result.reasoning or "(no reasoning)", result.minority
    if other is None:
        return text
    return f"{text}\n\nAnother repeat gave {other.score}: {other.reasoning or '(no reasoning)'}"


LIMIT = 60_000
_MARKS = {None: "", True: "✅ ", False: "❌ "}


def markdown_report(session: Session, *, limit: int = LIMIT) -> str:
    """Write the whole report in fewer than `limit` bytes of UTF-8: what matters most comes first,
    the end is cut.

    Nothing where no suite ran.
    """
    if not session.results and not session.extents:
        return ""
    page = BoundedPage(limit)
    page.block([f"## {_MARKS[session.passed]}Judge reliability\n", f"{prose(subtitle(session))}\n"])
    write_blocks(
        page,
        [
            *(Sentence(finding, "warning") for finding in findings_first(session.probes)),
            *provenance_blocks(session.origin),
            *topics.extent_blocks(session),
        ],
    )
    for name, decision in session.decisions.items():
        write_blocks(page, _decision(name, decision, session))
    every_section = sections(session.table)
    changes = Changes.since_baseline(session)
    for section in every_section:
        if len(every_section) > 1:
            page.block([f"### {code(section.label)}\n"])
        write_blocks(page, _figures(section, changes.about(section.total.counts)))
    blocks: list[Block] = [
        *probe_blocks(session.probes, lambda table, _row: grid_of(table) is None),
        *topics.left_out_blocks(session),
        *topics.review_blocks(session),
        *map(Sentence, label_sentences(session)),
        *topics.unsettled_blocks(session),
    ]
    for decision in session.decisions.values():
        if decision.active or not decision.passed:
            blocks += gate_cases(decision, session)
    blocks += [*topics.recording_blocks(session), *topics.panel_blocks(session)]
    write_blocks(page, blocks)
    spent = " | ".join(
        spending_lines(session.spending, LONGEST_NAME, wall_seconds=session.wall_seconds)
    )
    page.block([f"{spent}\n"])
    for section in every_section:
        write_blocks(page, topics.more_figures(section))
    with session.records.reading() as read:
        CaseBlocks(page, session, read).write()
    return page.text()


def _decision(name: str, decision: GateDecision, session: Session) -> list[Block]:
    if decision.passed and not decision.active:
        return []
    of = f"{name}: " if len(session.decisions) > 1 else ""
    return [
        Sentence(f"{of}{decision_sentence(decision)}", "good" if decision.passed else "bad"),
        Points(tuple(change_sentences(decision))),
        *prompt_blocks(session, name),
        *update_blocks(decision),
    ]


def _figures(section: Section, changes: Changes) -> list[Block]:
    table = topics.figures_table(section, changes)
    # The total first: a table that is cut keeps it.
    rows = sorted(table.rows, key=lambda row: row.level != "total")
    note = "In parentheses: 95% intervals."
    if len(rows) > 1:
        note += f" {ONE_BY_ONE}"
    if changes:
        note += " Since baseline: points of accuracy."
    flicker = flicker_sentence(section.total)
    return [
        replace(table, rows=tuple(rows)),
        Sentence(note),
        *topics.warning_blocks(section),
        *([Sentence(flicker)] if flicker else []),
    ]
