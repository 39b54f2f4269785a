"""A session as GitHub Markdown, bounded in size, for `--jrh-report=FILE.md` and a step's summary:
what matters most first, disagreements with all that tells judge and label apart, and why others
have no verdict.

Text of models, logs and configs stands in code spans, or as entities on one line of an HTML block,
where nothing of it is read as Markdown, HTML, a mention or a link.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from pytest_jrh.core.diffs import near_changes
from pytest_jrh.core.model import UNSCORED
from pytest_jrh.core.text import ELLIPSIS, counted, one_line, shortened, visible
from pytest_jrh.reports import topics
from pytest_jrh.reports.answer import (
    WORST_TITLE,
    cards_by_suite,
    doubt_blocks,
    mistake,
    next_blocks,
    session_title,
    suite_blocks,
    suite_title,
    worst_results,
)
from pytest_jrh.reports.blocks import (
    MOST_IN_MARKDOWN,
    Cases,
    Command,
    Diff,
    Fold,
    Points,
    Section,
    Sentence,
    Table,
)
from pytest_jrh.reports.case_facts import (
    ReportedCase,
    WhoSaid,
    case_basis,
    case_lines,
    earlier_verdict,
    label_votes,
    score_text,
    shown_edits,
)
from pytest_jrh.reports.gate import (
    Changes,
    certainty_sentences,
    compared_pairs,
    gate_cases,
    prompt_blocks,
)
from pytest_jrh.reports.grounds import label_sentences
from pytest_jrh.reports.probes import grid_of, probe_blocks
from pytest_jrh.reports.provenance import provenance_points
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.session import spending_lines, subtitle
from pytest_jrh.stats.figures import ONE_BY_ONE, flicker_sentence, sections
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.reasoning import REASONING_DISAGREES, reasoning_disagrees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.core.diffs import Piece
    from pytest_jrh.core.model import Case, CaseResult
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.wording import Word


class MarkdownReport(Report):
    """What matters most, for a pull request or a step's summary."""

    name = "Markdown"
    suffix = ".md"
    variable = "GITHUB_STEP_SUMMARY"

    def text(self, session: Session) -> str:
        return session.redactor.text(markdown_report(session))


# Some thirty of these fill the report; the others keep their place in it with their reasoning.
_MOST_WHOLE = 25
_MOST_EDITS = 3
_LONGEST_EDIT = 1_000
# So many cases stand open; the others are folded together.
_MOST_OPEN = 8
LIMIT = 60_000
_HOW_TO_TELL = (
    "If the edit shows what the label says of the rubric, the judge is wrong. If the judge's "
    "reason convinces you instead, the label is wrong: reject the case with --jrh-review, and it "
    "counts no more."
)
_MARKS: Mapping[Word, str] = {"": "", "PASS": "✅ ", "UNCLEAR": "🟡 ", "FAIL": "❌ "}


def markdown_report(session: Session, *, limit: int = LIMIT) -> str:
    """The report in fewer than `limit` bytes of UTF-8, cut at its end; empty without a suite."""
    if not session.results and not session.extents:
        return ""
    page = BoundedPage(limit)
    mark = _MARKS[session.word]
    page.block([f"## {mark}{prose(session_title(session))}\n", f"{prose(subtitle(session))}\n"])
    write_blocks(page, topics.extent_blocks(session))
    cards = cards_by_suite(session)
    for suite, of_suite in cards.items():
        if len(cards) > 1:
            title, _ = suite_title(suite, of_suite, session)
            page.block([f"### {code(suite)} {prose(title)}\n"])
        write_blocks(page, suite_blocks(suite, of_suite, session))
        if len(of_suite) == 1:
            write_blocks(page, [of_suite[0].table])
    write_blocks(page, doubt_blocks(session))
    wrong = worst_results(session)
    case_texts = CaseTexts(session)
    if wrong:
        head = [f"### {WORST_TITLE.capitalize()} ({len(wrong):,})\n"]
        page.block(head, map(case_texts.whole, wrong[:_MOST_OPEN]), [""])
    write_blocks(page, next_blocks(session))
    write_blocks(page, _folds(session))
    if more := wrong[_MOST_OPEN:]:
        number = _MOST_WHOLE - _MOST_OPEN
        lines = [map(case_texts.whole, more[:number]), map(case_texts.short, more[number:])]
        page.block([_opening(f"{len(more):,} more wrong")], chain(*lines), ["</details>\n"])
    for title, odd in _odd_results(session):
        if odd:
            head = [_opening(f"{title} ({len(odd):,})")]
            page.block(head, map(case_texts.short, odd), ["</details>\n"])
    return page.text()


def _odd_results(session: Session) -> Iterator[tuple[str, list[CaseResult]]]:
    """The cases beside those that are judged wrong that are to be looked at."""
    of_probes = [result for result in session.results if result.spec.derived]
    right = []
    for result in session.results:
        if result.outcome == "agree" and not result.spec.derived:
            right.append(result)
    yield f"Right, but {REASONING_DISAGREES}", list(filter(reasoning_disagrees, right))
    yield "Right, but flickering", [result for result in right if result.flickers]
    yield "Turned by a probe", [result for result in of_probes if result.outcome == "disagree"]
    yield "Without a verdict", [result for result in session.results if result.outcome in UNSCORED]


class CaseTexts:
    """The parts of the report that are about single cases, each on a line."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Secrets go first: once a text is cut and escaped they could not be found.
        self._clean = session.redactor.text
        self._who_said = WhoSaid(session)

    def short(self, result: CaseResult) -> str:
        """What the judge said, or why it said nothing."""
        judged = result.outcome in ("agree", "disagree")
        text = _reasoning(result) if judged else result.why.text or "(no reason)"
        return self._details(result, [quoted(self._clean(text))])

    def whole(self, result: CaseResult) -> str:
        """All that tells whether the judge or the label is wrong."""
        session, case = self._session, self._session.records.read(made_case_id(result))
        lines = case_lines(ReportedCase(result, case, who_said=self._who_said))
        parts = [f"<p>{title}: {inert(self._clean(text))}</p>" for title, text in lines]
        rubric = session.rubrics.get((result.spec.suite, result.spec.rubric_id))
        if rubric is not None:
            parts.append(self._quote("The rubric", rubric.instructions))
        if case is not None:
            parts += _edits(session.redactor.value(case))
            verification = case.outcome.verification
            right = score_text(result, result.label, session)
            title = f"Why the label is {right}: {case_basis(case, altered=result.extra.altered)}"
            why = verification.rationale if verification else "\n".join(label_votes(case))
            parts.append(self._quote(title, why))
        given = score_text(result, result.score, session)
        parts.append(self._quote(f"Why the judge gave {given}", _reasoning(result)))
        earlier = earlier_verdict(result, session)
        if earlier is not None:
            title = f"Why the judge of the baseline gave {earlier.given}"
            parts.append(self._quote(title, earlier.reasoning))
        return self._details(result, parts)

    def _quote(self, title: str, text: str) -> str:
        head = f"<p><strong>{inert(title)}</strong></p>"
        return f"{head}{quoted(self._clean(text))}" if text else head

    def _details(self, result: CaseResult, parts: Iterable[str]) -> str:
        name = shortened(self._clean(self._session.title(result, _LONGEST_TITLE)), _LONGEST_NAME)
        judged = result.outcome in ("agree", "disagree")
        verdict = mistake(result) if judged else result.outcome
        if reasoning_disagrees(result):
            verdict += f"; {REASONING_DISAGREES}"
        command = one_line(self._session.commands.get(result.case_id, ""))
        again = f"<p>run it again:<br><code>{entities(command)}</code></p>" if command else ""
        summary = f"<summary>{inert(name)}: {verdict}</summary>"
        return f"<details>{summary}{''.join(parts)}{again}</details>"


def _edits(case: Case) -> Iterator[str]:
    edits = list(shown_edits(case))
    if not edits:
        yield "<p>No edit: the judge saw the run as it was recorded.</p>"
    for edit in edits[:_MOST_EDITS]:
        title = f"<p><strong>The edit</strong> of {inert(edit.title)}"
        why = f": {inert(shortened(one_line(edit.reason), _LONGEST_NAME * 2))}"
        yield f"{title}{why if edit.reason else ''}</p>{marked(edit.pieces, _LONGEST_EDIT)}"
    if len(edits) > _MOST_EDITS:
        more = counted(len(edits) - _MOST_EDITS, "more edit")
        yield f"<p>{more}: the HTML report shows them all.</p>"


def _reasoning(result: CaseResult) -> str:
    """The judge's reasoning; of repeats that differ, also that of one of the others."""
    text, other = result.reasoning or "(no reasoning)", result.minority
    if other is None:
        return text
    return f"{text}\n\nAnother repeat gave {other.score}: {other.reasoning or '(no reasoning)'}"


def _folds(session: Session) -> list[Block]:
    """Prompts, the reasons of the gate, figures, labels, probes, panels, and the origin of it."""
    blocks: list[Block] = []

    def fold(title: str, *folded: Block) -> None:
        if folded:
            blocks.append(Fold(title, folded))

    for suite, decision in session.decisions.items():
        blocks += prompt_blocks(session, suite)
        of = f" of {suite}" if len(session.decisions) > 1 else ""
        sentences = map(Sentence, certainty_sentences(decision))
        fold(f"How sure is this? The gate{of}", *sentences, *gate_cases(decision, session))
    if worst_results(session):
        fold("Is the judge wrong, or the label?", Sentence(_HOW_TO_TELL))
    changes = Changes(compared_pairs(session))
    for section in sections(session.table):
        of_judge = changes.about(section.total)
        table = topics.figures_table(section, of_judge)
        # The total first: a table that is cut keeps it.
        rows = tuple(sorted(table.rows, key=lambda row: row.level != "total"))
        note = "In parentheses: 95% intervals."
        if len(rows) > 1:
            note += f" {ONE_BY_ONE}"
        if of_judge:
            note += " Since baseline: points of accuracy."
        doubts = topics.warning_blocks(section)
        if flicker := flicker_sentence(section.total):
            doubts.append(Sentence(flicker))
        more = topics.more_figures(section)
        table = replace(table, rows=rows)
        fold(f"Figures of {section.label}", table, Sentence(note), *doubts, *more)
    fold("Labels", *topics.review_blocks(session), *map(Sentence, label_sentences(session)))
    blocks += topics.shown_folds(session)
    fold("Probes", *probe_blocks(session.probes, lambda table, _row: grid_of(table) is None))
    fold("Panels", *topics.panel_blocks(session))
    origin = [*topics.left_out_blocks(session), *provenance_points(session.origin)]
    if not session.is_table:
        lines = spending_lines(session.spending, _LONGEST_NAME, wall_seconds=session.wall_seconds)
        origin.append(Sentence(" | ".join(lines)))
    fold("Where these figures come from", *origin)
    return blocks


_LONGEST_NAME = 160
_LONGEST_TITLE = 90
_LONGEST_TEXT = 1_200
_LONGEST_DIFF = 4_000
_BACKTICKS = re.compile("`+")
_PROSE_MARKS = re.compile(r"([\\`*_\[\]#|~$!])")
_LINKS = re.compile(r"(?i)(www|https?:|ftp:)(?=[./])")
_REFERENCES = re.compile(r"(?i)(@|#(?=\d)|gh-(?=\d))")
_TAGS = {"same": ("", ""), "gone": ("<del>", "</del>"), "new": ("<ins>", "</ins>")}
# Of what an edit leaves as it was, this much is shown beside each change.
_CONTEXT = 160


def code(text: str, *, cell: bool = False) -> str:
    """The text on one line in a code span that it cannot leave; in a `cell` a pipe is an escape."""
    shown = shortened(one_line(text), _LONGEST_NAME)
    if cell:
        # A code span keeps no entity, and a backslash before a pipe is read in more than one way.
        shown = shown.replace("|", "\\x7c")
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(shown)), default=0))
    edge = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{edge}{shown or ' '}{edge}{fence}"


def prose(text: str) -> str:
    """Give a sentence of ours, that may hold a name from outside, as text without any markup."""
    escaped = _PROSE_MARKS.sub(r"\\\1", html.escape(one_line(text), quote=False))
    # A space without width: GitHub looks for mentions and links when the Markdown is long rendered.
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def preformatted(text: str) -> str:
    """Give a command as `<pre>` on a single line, so that no line of it is read as Markdown."""
    return f"<pre>{entities(_cut(visible(text).strip(), _LONGEST_TEXT))}</pre>"


def quoted(text: str) -> str:
    """Give a text as a block that wraps, on a single line, bounded in length."""
    return f"<blockquote>{inert(_cut(visible(text).strip(), _LONGEST_TEXT))}</blockquote>"


def marked(pieces: Iterable[Piece], longest: int) -> str:
    """Give the differences of two texts as a block that wraps: what is gone struck out, what is new
    underlined, and of the rest what stands near a change.
    """
    shown: list[str] = []
    room = longest
    for piece in near_changes([*pieces], _CONTEXT):
        text = visible(piece.text)
        cut = _cut(text, room)
        before, after = _TAGS[piece.kind]
        shown.append(f"{before}{inert(cut)}{after}")
        room -= len(text)
        if room <= 0:
            break
    return f"<blockquote>{''.join(shown)}</blockquote>"


def inert(text: str) -> str:
    """Give the text, on one line of an HTML block, as nothing that GitHub makes a link of."""
    escaped = html.escape(visible(text)).replace("\n", "<br>")
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def _cut(text: str, longest: int) -> str:
    more = len(text) - longest
    return f"{text[:longest]}\n{ELLIPSIS} ({more:,} more characters)" if more > 0 else text


def entities(text: str) -> str:
    """Give the text as entities on one line of an HTML block."""
    return html.escape(text).replace("\n", "&#10;")


_CUT = (
    "\n*This report was cut at its size limit: {what} left out here. The other reports hold "
    "everything.*\n"
)
_RESERVED = 400


class BoundedPage:
    """Blocks of lines as long as they fit; what did not is counted."""

    def __init__(self, limit: int) -> None:
        self._parts: list[str] = []
        self._room = limit - _RESERVED
        self._left_out = 0

    def block(
        self, head: Iterable[str], items: Iterable[str] = (), tail: Sequence[str] = ()
    ) -> None:
        """Add head, as many items as fit, and tail; nothing where not even the first item fits."""
        top = "".join(f"{line}\n" for line in head)
        end = "".join(f"{line}\n" for line in tail)
        needed = _size(top) + _size(end)
        taken: list[str] = []
        number = 0
        for item in items:
            number += 1
            line = f"{item}\n"
            if needed + _size(line) <= self._room and number == len(taken) + 1:
                needed += _size(line)
                taken.append(line)
        if needed > self._room or (number and not taken):
            self._left_out += max(number, 1)
            return
        self._left_out += number - len(taken)
        self._parts += [top, *taken, end]
        self._room -= needed

    def text(self) -> str:
        """The page, with a note where it was cut."""
        cut = _CUT.format(what=f"{counted(self._left_out, 'line')}") if self._left_out else ""
        return "".join(self._parts) + cut


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def write_blocks(page: BoundedPage, blocks: Iterable[Block]) -> None:
    """Add blocks, as many as fit; of lists and folds as much as fits."""
    for block in blocks:
        if isinstance(block, Section):
            page.block([f"### {prose(block.title)}\n"])
            write_blocks(page, block.blocks)
        else:
            page.block(*_parts(block))


def _parts(block: Block) -> tuple[list[str], list[str], list[str]]:
    """What comes first, lines of which the last may be cut, and what follows."""
    match block:
        case Sentence(text, weight):
            return [f"{_marked(prose(text), weight)}\n"], [], []
        case Diff(pieces):
            return [f"{marked(pieces, _LONGEST_DIFF)}\n"], [], []
        case Command(advice, command):
            text = f"{prose(advice)}\n\n{preformatted(command)}" if command else prose(advice)
            return [f"{text}\n"], [], []
        case Points(sentences):
            return [], [f"- {prose(sentence)}" for sentence in sentences], [""]
        case Table():
            head = [f"{prose(block.caption)}\n"] if block.caption else []
            head.append(_table_row([prose(block.first), *map(prose, block.titles)]))
            head.append(_table_row(["---", *("---:" for _ in block.titles)]))
            rows = []
            for row in block.rows:
                name = code(row.name, cell=True)
                if row.level == "total":
                    name = f"**{prose(row.name)}**"
                elif row.is_part:
                    name = f"&nbsp;&nbsp;{name}"
                rows.append(_table_row([name, *(prose(cell.whole) for cell in row.cells)]))
            return head, rows, [""]
        case Cases():
            lines = []
            cases, more = block.first(MOST_IN_MARKDOWN)
            for named in cases:
                why = f" ({prose(named.why)})" if named.why else ""
                lines.append(f"- {code(named.name)}{why}")
            if more:
                lines.append(f"- and {more:,} more")
            if block.is_sentence or block.weight == "bad":
                return [f"{_marked(prose(block.heading), block.weight)}\n"], lines, [""]
            return [_opening(block.heading)], lines, ["\n</details>\n"]
        case Fold(title, blocks) | Section(title, blocks):
            lines = []
            for folded in blocks:
                for part in _parts(folded):
                    lines += part
            if isinstance(block, Section):
                return [f"### {prose(title)}\n"], lines, []
            return [_opening(title)], lines, ["</details>\n"]
    return [], [], []


def _marked(text: str, weight: Weight) -> str:
    if weight == "warning":
        return f"⚠️ {text}"
    return f"**{text}**" if weight in ("strong", "good", "bad") else text


def _opening(title: str) -> str:
    summary = inert(shortened(one_line(title), _LONGEST_NAME * 2))
    return f"<details><summary>{summary}</summary>\n"


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
