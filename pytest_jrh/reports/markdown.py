"""A session as GitHub Markdown, bounded in size (rule I8: `--jrh-summary`, the step summary).

The cases in the Markdown report: disagreements with all that tells judge and label apart, and
why others have no verdict (rule I9).

The Markdown report: what it says, in which order, and what is left out where it gets long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.redact import Redactor
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports.evidence import (
    CHANGE_TITLE,
    PLACE,
    Changes,
    FigureChange,
    ShownPrompt,
    WhoSaid,
    case_basis,
    earlier_verdict,
    review_text,
    score_text,
    shown_edits,
    shown_prompts,
)
from pytest_jrh.reports.gate import (
    change_sentences,
    decision_sentence,
    gate_groups,
    update_sentence,
)
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.markdown_text import (
    LONGEST_NAME,
    BoundedPage,
    code,
    entities,
    inert,
    marked,
    preformatted,
    prose,
    quoted,
)
from pytest_jrh.reports.probes import findings_first, markdown_blocks
from pytest_jrh.reports.provenance import provenance_lines
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import (
    extent_sentences,
    majority_text,
    recording_sentence,
    review_counts,
    subtitle,
    unsettled_labels,
)
from pytest_jrh.reports.spending import spending_lines
from pytest_jrh.stats.diagnosis import section_warnings
from pytest_jrh.stats.figures import (
    NONE,
    ONE_BY_ONE,
    decimal,
    flicker_sentence,
    left_out,
    ranged,
    reasons,
    sections,
)
from pytest_jrh.stats.metrics import REASONING_DISAGREES, reasoning_disagrees
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import flickering, levels_of
from pytest_jrh.store.spools import RecordIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.core.model import Case, CaseResult
    from pytest_jrh.reports.report import Material
    from pytest_jrh.reports.session import SessionResults
    from pytest_jrh.stats.figures import Section
    from pytest_jrh.stats.formulas import ConfusionMatrix
    from pytest_jrh.stats.gate import GateDecision
    from pytest_jrh.stats.panels import Panel
    from pytest_jrh.store.spools import ReadCase


class MarkdownReport(Report):
    """What matters most, for a pull request or a step's summary."""

    name = "Markdown"
    option = "summary"
    variable = "GITHUB_STEP_SUMMARY"

    def text(self, material: Material) -> str:

        page = markdown_report(material.session, material.records, redactor=material.redactor)
        return material.redactor.text(page)


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

    def __init__(
        self, page: BoundedPage, session: SessionResults, read: ReadCase, redactor: Redactor
    ) -> None:
        self._page = page
        self._session = session
        self._read = read
        self._redactor = redactor
        self._who_said = WhoSaid(session)

    def write(self) -> None:
        """Add the disagreements, regressions first, then whatever else is odd about a case."""
        given = self._session.results
        results = [each for each in given if not each.spec.derived]
        self._disagreements([each for each in results if each.outcome == "disagree"])
        right = [each for each in results if each.outcome == "agree"]
        odd = [each for each in right if reasoning_disagrees(each)]
        self._part(f"Right, but {REASONING_DISAGREES}", odd)
        torn = [each for each in flickering(results) if each.outcome == "agree"]
        self._part("Right, but flickering", torn)
        turned = [each for each in given if each.spec.derived and each.outcome == "disagree"]
        self._part("Turned by a probe", turned)
        self._part("Without a verdict", [each for each in given if each.outcome in UNSCORED])

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
        parts = [f"<p>Who says what: {inert(self._who_said.sentence(result, case))}</p>"]
        if said := review_text(result, case):
            parts.append(f"<p>Reviewed by a person: {inert(self._clean(said))}.</p>")
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
        said: str = result.outcome
        if said == "disagree":
            said = f"gave {result.scores_text}, right is {result.expected}"
        elif said == "agree":
            said = f"gave {result.scores_text}, which is right"
        if reasoning_disagrees(result):
            said += f"; {REASONING_DISAGREES}"
        command = one_line(self._session.commands.get(result.case_id, ""))
        again = f"<p>run it again:<br><code>{entities(command)}</code></p>" if command else ""
        summary = f"<summary><code>{entities(node)}</code> {said}</summary>"
        return f"<details>{summary}{''.join(parts)}{again}</details>"


def _reasoning(result: CaseResult) -> str:
    """The judge's reasoning; of repeats that differ, also that of one of the others."""
    text, other = result.reasoning or "(no reasoning)", result.minority
    if other is None:
        return text
    return f"{text}\n\nAnother repeat gave {other.score}: {other.reasoning or '(no reasoning)'}"


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
    if not session.results and not session.extents:
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
        agree = ranged(agree, pair.agreement)
        kappa = ranged(decimal(pair.kappa.value), pair.kappa, "number")
        lines.append(_table_row([names, agree, kappa]))
    page.block(head, lines, [""])


def _more_figures(page: BoundedPage, section: Section) -> None:
    lines = []
    for row in section.whole_rows:
        matrix = row.statistics.matrices.get(section.mode)
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
