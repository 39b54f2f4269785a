"""A session as GitHub Markdown, bounded in size, for `--jrh-report=FILE.md` and a step's summary:
the answer in a screen, the worst case open, and one fold with all that it rests on.

Text of models, logs and configs is escaped, or stands as entities on one line of an HTML block,
where nothing of it is read as Markdown, HTML, a mention or a link.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_jrh.core import ELLIPSIS, counted, cut_in_the_middle, one_line, shortened, visible
from pytest_jrh.core.diffs import Piece, differences, near_changes
from pytest_jrh.core.files import encoded
from pytest_jrh.core.transcript import text_to_compare, titled_parts
from pytest_jrh.reports.blocks import (
    MOST_IN_MARKDOWN,
    Block,
    Cases,
    Diff,
    Headline,
    Line,
    Points,
    ReadFirst,
    Section,
    Sentence,
    Table,
    Weight,
    WorstCase,
    is_warning,
)
from pytest_jrh.reports.case_facts import (
    asked_and_answered,
    not_shown_text,
    shown_edits,
    stored_case,
    voices,
)
from pytest_jrh.reports.report import Report, ci_links
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.summary import compose
from pytest_jrh.stats.decision import Word

LIMIT = 60_000
FOLD = "Certainty and sources"
_RESERVED = 400
_CUT = (
    "\n*This report was cut at its size limit: {lines} left out. The other reports are complete.*\n"
)
_MARKS: Mapping[Word, str] = {"": "", "PASS": "✅ ", "UNCLEAR": "🟡 ", "FAIL": "❌ "}
_MOST_FOLDED = 2
_MOST_EDITS = 3
_MOST_VOICES = 2
# Of what is open a screen: characters of a prompt's differences, of an edit's, and of the last
# reason; others are whole there, or in the fold.
_OPEN_PROMPT = 130
_OPEN_EDIT = 180
_OPEN_REASON = 225
_SHORT_REASON = 80
_WHOLE = 1_200
# Of what a change leaves as it was, this much is shown beside it.
_CONTEXT = 40


class MarkdownReport(Report):
    """What matters most, for a pull request or a step's summary, in fewer than `LIMIT` bytes of
    UTF-8, cut at the end of its fold.
    """

    suffix = ".md"
    variable = "GITHUB_STEP_SUMMARY"

    def text(self, session: Session) -> str:
        summary = compose(session)
        open_parts = [f"## {_MARKS[summary.word]}{prose(summary.title)}\n"]
        if links := ci_links(session.page):
            open_parts.append(
                " · ".join(f"[{title}]({url})" for title, url in links.items()) + "\n"
            )
        open_blocks = [*summary.answer]
        if len(summary.headlines) == 1:
            # It is the title.
            del open_blocks[0]
        folded = []
        for doubt in summary.doubts:
            if not is_warning(doubt):
                folded.append(doubt)
            elif isinstance(doubt, Cases):
                # Outside of the fold a line is enough.
                open_blocks.append(Sentence(doubt.in_a_line, "warning"))
                folded.append(doubt)
            else:
                open_blocks.append(doubt)
        open_parts += markdown_parts(open_blocks)
        for step in summary.steps:
            open_parts += (
                _worst(step, session) if isinstance(step, ReadFirst) else markdown_parts([step])
            )
        text = "".join(f"{part}\n" for part in open_parts)
        opening, closing = f"<details><summary>{FOLD}</summary>\n\n", "\n</details>\n"
        room = LIMIT - _RESERVED - len(encoded(text + opening + closing))
        fold_parts = []
        left_out = 0
        for part in markdown_parts([*folded, *summary.details]):
            room -= len(encoded(part)) + 1
            if room < 0:
                left_out += 1
            else:
                fold_parts.append(part)
        if fold_parts:
            text += opening + "\n".join(fold_parts) + closing
        if left_out:
            text += _CUT.format(lines=counted(left_out, "line"))
        return session.redactor.text(text)


def _worst(block: ReadFirst, session: Session) -> Iterator[str]:
    """The first case open, two more folded, and how many there are beside them."""
    first, *folded = block.cases[: 1 + _MOST_FOLDED]
    if session.is_table:
        # Of a table without texts a fold would hold two bare verdicts.
        folded = [case for case in folded if case.reason or block.parts]
    yield f"**Read first: {prose(first.title)}**\n"
    whole = _case(first, session, is_whole=True)
    opened = _case(first, session, is_whole=False)
    yield f"{opened}\n"
    if whole != opened:
        yield f"<details><summary>whole</summary>{whole}</details>"
    for case in folded:
        body = _case(case, session, is_whole=True)
        title = inert(shortened(case.title, _LONGEST_NAME))
        yield f"<details><summary>{title}</summary>{body}</details>"
    if unnamed := len(block.cases) + block.unnamed - 1 - len(folded):
        text = f"{unnamed:,} more in the report"
        if url := ci_links(session.page).get("report"):
            text = f"[{text}]({url})"
        yield f"\n{text}.\n"
    elif folded:
        yield ""


def _case(case: WorstCase, session: Session, *, is_whole: bool) -> str:
    """What tells whether the judge or the label is wrong: what was edited, and what everybody says
    of it, on one line of an HTML block.
    """
    most_edits, edit_room = 1, _OPEN_EDIT
    if is_whole:
        most_edits, edit_room = _MOST_EDITS, _WHOLE
    # Secrets go first: once a text is cut and escaped they could not be found.
    clean = session.redactor.text
    result = session.result(case.case_id)
    made_id = result.made_id
    record, probe_case = stored_case(session, result)
    text = ""
    edits = [] if record is None else list(shown_edits(record))
    if record and probe_case:
        before, after = map(text_to_compare, (record.messages, probe_case.messages))
        edits = [Diff(differences(before, after), result.spec.variant)]
    messages = session.messages(result)
    parts = titled_parts(messages) if is_whole else asked_and_answered(messages)
    of_edits = {edit.title for edit in edits}
    for title, part in parts:
        if title not in of_edits:
            shown = cut_in_the_middle(visible(part).strip(), edit_room)
            text += f"<p>{inert(title)}</p><blockquote>{inert(shown)}</blockquote>"
    for edit in edits[:most_edits]:
        text += f"<p>{inert(edit.title)}</p>{marked(edit.pieces, edit_room)}"
    hidden = len(edits) - most_edits
    if hidden > 0:
        are = "edit is" if hidden == 1 else "edits are"
        text += f"<p>{hidden:,} more {are} in the report.</p>"
    if record is not None and not edits and not parts:
        text += "<p>No edit: the judge saw the run as it was recorded.</p>"
    if not_shown := not_shown_text(result):
        text += f"<p>The judge was {inert(not_shown)}.</p>"
    of_case = session.verdicts.where(session.verdicts.made.equals(made_id))
    heard = voices(session, session.results_in(of_case), record)
    if not is_whole:
        # The label, and who is likeliest to have said otherwise: the judge before, and now.
        heard = [*heard[:1], *heard[1:][-_MOST_VOICES:]]
    text += "<table>"
    for voice in heard:
        speaker = f"{voice.who} ({voice.by})" if voice.by else voice.who
        reason = visible(clean(voice.why)).strip()
        if is_whole:
            reason = _cut(reason, _WHOLE)
        elif voice is heard[-1]:
            reason = _cut(reason, _OPEN_REASON)
        elif len(reason) > _SHORT_REASON:
            reason = ""
        text += f"<tr><td>{inert(clean(speaker))}</td><td>{inert(clean(voice.word))}</td>"
        text += f"<td>{inert(reason)}</td></tr>"
    text += "</table>"
    rubric = session.rubrics.get((result.suite, result.rubric_id))
    if is_whole and rubric is not None and rubric.instructions.strip():
        instructions = _cut(visible(clean(rubric.instructions)).strip(), _WHOLE)
        text += f"<p>the rubric:</p><blockquote>{inert(instructions)}</blockquote>"
    if is_whole and case.case_id in session.commands:
        text += f"<p>run it again:</p>{preformatted(session.commands[case.case_id])}"
    return text


def markdown_parts(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks as pieces of Markdown, of which the last ones may be left out."""
    for block in blocks:
        match block:
            case Headline(word, text, suite):
                yield f"### {_MARKS[word]}{code(suite)} {prose(f'{word}: {text}')}\n"
            case Sentence(text, weight):
                yield f"{_marked(prose(text), weight)}\n"
            case Line(title, text, weight, command):
                gap = f"\n\n{preformatted(command)}\n\n" if command else " "
                yield f"**{prose(title)}**:{gap}{_marked(prose(text), weight)}\n"
            case Diff(pieces, title):
                yield f"{prose(title)}:\n"
                opened, whole = marked(pieces, _OPEN_PROMPT), marked(pieces, _WHOLE)
                yield f"{opened}\n"
                if whole != opened:
                    yield f"<details><summary>whole</summary>{whole}</details>\n"
            case Points(sentences):
                for sentence in sentences:
                    yield f"- {prose(sentence)}"
                yield ""
            case Table():
                yield from _table(block)
            case Cases():
                yield from _cases(block)
            case Section(title, parts):
                yield f"#### {prose(title)}\n"
                yield from markdown_parts(parts)


def _table(table: Table) -> Iterator[str]:
    yield _table_row([prose(table.first), *map(prose, table.titles)])
    yield _table_row(["---", *("---:" for _ in table.titles)])
    rows = 0
    for row in table.rows:
        name, is_total = code(row.name), row.level == "total"
        if is_total:
            name = f"**{prose(row.name)}**"
        elif row.level == "variant":
            name = f"&nbsp;&nbsp;{name}"
        rows += not is_total
        if is_total or rows <= table.most:
            yield _table_row([name, *(prose(cell.whole) for cell in row.cells)])
    yield ""
    if rows > table.most:
        yield f"{counted(rows - table.most, 'more row')} in the report.\n"


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cases(block: Cases) -> Iterator[str]:
    yield f"{_marked(prose(block.heading), block.weight)}\n"
    cases, unnamed = block.first(MOST_IN_MARKDOWN)
    for case in cases:
        why = f" ({prose(case.why)})" if case.why else ""
        yield f"- {code(case.name)}{why}"
    if unnamed:
        yield f"- and {unnamed:,} more"
    yield ""


def _marked(text: str, weight: Weight) -> str:
    if weight == "warning":
        return f"⚠️ {text}"
    if weight in ("strong", "good", "bad"):
        return f"**{text}**"
    return text


_LONGEST_NAME = 160
_PROSE_MARKS = r"([\\`*_\[\]#|~$!])"
_LINKS = r"(?i)(www|https?:|ftp:)(?=[./])"
_REFERENCES = r"(?i)(@|#(?=\d)|gh-(?=\d))"
_TAGS = {"same": ("", ""), "gone": ("<del>", "</del>"), "new": ("<strong>", "</strong>")}


def code(text: str) -> str:
    """The text on one line as code."""
    return f"<code>{prose(shortened(one_line(text), _LONGEST_NAME))}</code>"


def prose(text: str) -> str:
    """Give a sentence of ours, that may hold a name from outside, as text without any markup."""
    return _unlinked(re.sub(_PROSE_MARKS, r"\\\1", html.escape(one_line(text), quote=False)))


def preformatted(command: str) -> str:
    """Give a command as a block on a single line, so that nothing of it is read as Markdown."""
    return f"<pre>{html.escape(one_line(command))}</pre>"


def marked(pieces: Iterable[Piece], longest: int) -> str:
    """Give the differences of two texts as a block that wraps: what is gone struck out, what is new
    bold, and of the rest what stands near a change.
    """
    changes = ""
    room = longest
    context = _CONTEXT // 2 if longest == _OPEN_PROMPT else _CONTEXT
    for piece in near_changes([*pieces], context):
        text = visible(piece.text)
        # Nothing that is new is crowded out by what is gone.
        cut = _cut(text, max(room // 2, 0) if piece.kind == "gone" else room)
        before, after = _TAGS[piece.kind]
        changes += f"{before}{inert(cut)}{after}"
        room -= len(cut)
        if room <= 0:
            break
    return f"<blockquote>{changes}</blockquote>"


def inert(text: str) -> str:
    """Give the text, on one line of an HTML block, as nothing that GitHub makes a link of."""
    return _unlinked(html.escape(visible(text)).replace("\n", "<br>"))


def _unlinked(escaped: str) -> str:
    # A space without width: GitHub looks for mentions and links when the Markdown is long rendered.
    return re.sub(_LINKS, "\\1\u200b", re.sub(_REFERENCES, "\\1\u200b", escaped))


def _cut(text: str, longest: int) -> str:
    """At most so many characters: whole sentences, where the first one fits, else whole words."""
    if len(text) <= longest:
        return text
    if sentences := re.match(rf"(?s).{{,{longest - 1}}}[.!?](?=\s)", text):
        return f"{sentences[0]} {ELLIPSIS}"
    return f"{text[: longest + 1].rpartition(' ')[0] or text[:longest]} {ELLIPSIS}"
