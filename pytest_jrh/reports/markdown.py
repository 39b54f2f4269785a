"""A session as GitHub Markdown, bounded in size, for `--jrh-report=FILE.md` and a step's summary:
the answer in a screen, the worst case open, and one fold with all that it rests on.

Text of models, logs and configs is escaped, or stands as entities on one line of an HTML block,
where nothing of it is read as Markdown, HTML, a mention or a link.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_jrh.core.diffs import Piece, near_changes
from pytest_jrh.core.text import ELLIPSIS, counted, one_line, shortened, visible
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
from pytest_jrh.reports.case_facts import shown_edits, voices
from pytest_jrh.reports.report import Report, ci_links
from pytest_jrh.reports.said import said
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import not_shown_text
from pytest_jrh.stats.decision import Word
from pytest_jrh.stats.panels import by_made_case, made_case_id


class MarkdownReport(Report):
    """What matters most, for a pull request or a step's summary."""

    suffix = ".md"
    variable = "GITHUB_STEP_SUMMARY"

    def text(self, session: Session) -> str:
        return session.redactor.text(markdown_report(session))


LIMIT = 60_000
FOLD = "How sure, and where it comes from"
_RESERVED = 400
_CUT = (
    "\n*This report was cut at its size limit: {lines} left out here. The other reports hold "
    "everything.*\n"
)
_MARKS: Mapping[Word, str] = {"": "", "PASS": "✅ ", "UNCLEAR": "🟡 ", "FAIL": "❌ "}
_MOST_FOLDED = 2
_MOST_EDITS = 3
_MOST_VOICES = 2
# Of what is open a screen: characters of a prompt's differences, of an edit's, and of a reason.
_OPEN_PROMPT = 130
_OPEN_EDIT = 180
_OPEN_REASON = 54
_WHOLE = 1_200
# Of what a change leaves as it was, this much is shown beside it.
_CONTEXT = 40


def markdown_report(session: Session, *, limit: int = LIMIT) -> str:
    """The report in fewer than `limit` bytes of UTF-8, cut at the end of its fold; empty without a
    suite.
    """
    if not session.results and not session.extents:
        return ""
    session_said = said(session)
    headlines = [block for block in session_said.answer if isinstance(block, Headline)]
    title = f"{session_said.word}: {session_said.headline}".removeprefix(": ")
    open_parts = [f"## {_MARKS[session_said.word]}{prose(title)}\n"]
    if links := ci_links(session.page):
        open_parts.append(" · ".join(f"[{title}]({url})" for title, url in links.items()) + "\n")
    shown: list[Block] = []
    for block in session_said.answer:
        if not isinstance(block, Headline) or len(headlines) > 1:
            shown.append(block)
    others = []
    for doubt in session_said.doubts:
        if isinstance(doubt, Cases) or not is_warning(doubt):
            others.append(doubt)
        if is_warning(doubt):
            # Outside of the fold a line is enough.
            line = Sentence(doubt.in_a_line, "warning") if isinstance(doubt, Cases) else doubt
            shown.append(line)
    open_parts += markdown_parts(shown)
    for step in session_said.steps:
        if isinstance(step, ReadFirst):
            open_parts += _worst(step, session)
        else:
            open_parts += markdown_parts([step])
    text = "".join(f"{part}\n" for part in open_parts)
    opening, closing = f"<details><summary>{FOLD}</summary>\n\n", "\n</details>\n"
    room = limit - _RESERVED - _size(text) - _size(opening) - _size(closing)
    folded = []
    left_out = 0
    for part in markdown_parts([*others, *session_said.details]):
        room -= _size(part) + 1
        if room < 0:
            left_out += 1
        else:
            folded.append(part)
    cut = _CUT.format(lines=counted(left_out, "line")) if left_out else ""
    fold = "\n".join(folded)
    return f"{text}{opening}{fold}{closing}{cut}" if folded else f"{text}{cut}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _worst(block: ReadFirst, session: Session) -> Iterator[str]:
    """The first case open, two more folded, and how many there are beside them."""
    first, folded = block.cases[0], block.cases[1 : 1 + _MOST_FOLDED]
    if session.is_table:
        # Of a table a fold would hold two bare verdicts.
        folded = tuple(case for case in folded if case.reason)
    yield f"**Read first: {prose(_case_title(first))}**\n"
    whole = "".join(_case(first, session, is_whole=True))
    opened = "".join(_case(first, session, is_whole=False))
    yield f"{opened}\n"
    if whole != opened:
        yield f"<details><summary>whole</summary>{whole}</details>"
    for case in folded:
        body = "".join(_case(case, session, is_whole=True))
        summary = inert(shortened(_case_title(case), _LONGEST_NAME))
        yield f"<details><summary>{summary}</summary>{body}</details>"
    if more := len(block.cases) - 1 - len(folded):
        text = f"{more:,} more in the report"
        if url := ci_links(session.page).get("report"):
            text = f"[{text}]({url})"
        yield f"\n{text}.\n"
    elif folded:
        yield ""


def _case_title(case: WorstCase) -> str:
    rubric = f", {case.rubric}" if case.rubric else ""
    return f"{case.run}{rubric}: {case.mistake}"


def _case(case: WorstCase, session: Session, *, is_whole: bool) -> Iterator[str]:
    """What tells whether the judge or the label is wrong: what was edited, and what everybody says
    of it, on one line of an HTML block.
    """
    clean = session.redactor.text
    edit_room, why_room = (_WHOLE, _WHOLE) if is_whole else (_OPEN_EDIT, _OPEN_REASON)
    result = session.results_by_id[case.case_id]
    made = session.records.read(made_case_id(result))
    edits = [] if made is None else list(shown_edits(session.redactor.value(made)))
    shown = edits[: _MOST_EDITS if is_whole else 1]
    for edit in shown:
        yield f"<p>{inert(edit.title)}</p>{marked(edit.pieces, edit_room)}"
    if made is not None and not edits:
        yield "<p>No edit: the judge saw the run as it was recorded.</p>"
    if (more := len(edits) - len(shown)) > 0:
        are = "edit is" if more == 1 else "edits are"
        yield f"<p>{more:,} more {are} in the report.</p>"
    if not_shown := not_shown_text(result):
        yield f"<p>{inert(f'The judge was {not_shown}.')}</p>"
    rows = []
    heard = voices(session, by_made_case(session.results)[made_case_id(result)], made)
    if not is_whole:
        # The label, and who is likeliest to have said otherwise: the judge before, and now.
        heard = [*heard[:1], *heard[1:][-_MOST_VOICES:]]
    for voice in heard:
        # Secrets go first: once a text is cut and escaped they could not be found.
        reason = visible(clean(voice.why)).strip()
        why = inert(_cut(reason, why_room))
        who = f"{voice.who} ({voice.by})" if voice.by else voice.who
        who, word = inert(clean(who)), inert(clean(voice.word))
        rows.append(f"<tr><td>{who}</td><td>{word}</td><td>{why}</td></tr>")
    yield f"<table>{''.join(rows)}</table>"
    rubric = session.rubrics.get((result.suite, result.rubric_id))
    if is_whole and rubric is not None and rubric.instructions.strip():
        instructions = _cut(visible(clean(rubric.instructions)).strip(), _WHOLE)
        yield f"<p>the rubric:</p><blockquote>{inert(instructions)}</blockquote>"
    if is_whole and case.case_id in session.commands:
        yield f"<p>run it again:</p>{preformatted(session.commands[case.case_id])}"


def markdown_parts(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks as pieces of Markdown, of which the last ones may be left out."""
    for block in blocks:
        match block:
            case Headline(word, text, suite):
                yield f"### {_MARKS[word]}{code(suite)} {prose(f'{word}: {text}')}\n"
            case Sentence(text, weight):
                yield f"{_marked(prose(text), weight)}\n"
            case Line(title, text, weight, command):
                above = f"\n\n{preformatted(command)}\n\n" if command else " "
                yield f"**{prose(title)}**:{above}{_marked(prose(text), weight)}\n"
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
    worst = [row for row in table.rows if row.level != "total"]
    totals = [row for row in table.rows if row.level == "total"]
    for row in [*worst[: table.most], *totals]:
        name = code(row.name)
        if row.level == "total":
            name = f"**{prose(row.name)}**"
        elif row.level == "variant":
            name = f"&nbsp;&nbsp;{name}"
        yield _table_row([name, *(prose(cell.whole) for cell in row.cells)])
    yield ""
    if len(worst) > table.most:
        yield f"{len(worst) - table.most:,} more rows are in the report.\n"


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cases(block: Cases) -> Iterator[str]:
    yield f"{_marked(prose(block.heading), block.weight)}\n"
    cases, more = block.first(MOST_IN_MARKDOWN)
    for named in cases:
        why = f" ({prose(named.why)})" if named.why else ""
        yield f"- {code(named.name)}{why}"
    if more:
        yield f"- and {more:,} more"
    yield ""


def _marked(text: str, weight: Weight) -> str:
    if weight == "warning":
        return f"⚠️ {text}"
    return f"**{text}**" if weight in ("strong", "good", "bad") else text


_LONGEST_NAME = 160
_PROSE_MARKS = re.compile(r"([\\`*_\[\]#|~$!])")
_LINKS = re.compile(r"(?i)(www|https?:|ftp:)(?=[./])")
_REFERENCES = re.compile(r"(?i)(@|#(?=\d)|gh-(?=\d))")
_TAGS = {"same": ("", ""), "gone": ("<del>", "</del>"), "new": ("<strong>", "</strong>")}


def code(text: str) -> str:
    """The text on one line as code."""
    return f"<code>{prose(shortened(one_line(text), _LONGEST_NAME))}</code>"


def prose(text: str) -> str:
    """Give a sentence of ours, that may hold a name from outside, as text without any markup."""
    escaped = _PROSE_MARKS.sub(r"\\\1", html.escape(one_line(text), quote=False))
    # A space without width: GitHub looks for mentions and links when the Markdown is long rendered.
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def preformatted(command: str) -> str:
    """Give a command as a block on a single line, so that nothing of it is read as Markdown."""
    return f"<pre>{html.escape(one_line(command))}</pre>"


def marked(pieces: Iterable[Piece], longest: int) -> str:
    """Give the differences of two texts as a block that wraps: what is gone struck out, what is new
    bold, and of the rest what stands near a change.
    """
    shown: list[str] = []
    room = longest
    context = _CONTEXT // 2 if longest == _OPEN_PROMPT else _CONTEXT
    for piece in near_changes([*pieces], context):
        text = visible(piece.text)
        # Nothing that is new is crowded out by what is gone.
        cut = _cut(text, max(room // 2, 0) if piece.kind == "gone" else room)
        before, after = _TAGS[piece.kind]
        shown.append(f"{before}{inert(cut)}{after}")
        room -= len(cut)
        if room <= 0:
            break
    return f"<blockquote>{''.join(shown)}</blockquote>"


def inert(text: str) -> str:
    """Give the text, on one line of an HTML block, as nothing that GitHub makes a link of."""
    escaped = html.escape(visible(text)).replace("\n", "<br>")
    return _LINKS.sub("\\1\u200b", _REFERENCES.sub("\\1\u200b", escaped))


def _cut(text: str, longest: int) -> str:
    """At most so many characters, and never a part of a word."""
    if len(text) <= longest:
        return text
    return f"{text[: longest + 1].rpartition(' ')[0] or text[:longest]} {ELLIPSIS}"
