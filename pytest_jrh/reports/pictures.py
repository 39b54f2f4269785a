"""The judge card, the map of several judges, the matrix of probes and the badge, as pictures
(`--jrh-card`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_jrh.core.files import atomic_write
from pytest_jrh.core.text import counted
from pytest_jrh.reports.answer import (
    agreement_sentence,
    cards_by_suite,
    headline,
    next_blocks,
    panel_title,
    suite_title,
)
from pytest_jrh.reports.blocks import Command, Sentence
from pytest_jrh.reports.card import MOST_ROWS, judge_cards
from pytest_jrh.reports.gate import decision_sentence
from pytest_jrh.reports.grounds import trust_sentence
from pytest_jrh.reports.judge_map import draw_map, draw_table, map_rows, points_of, signed
from pytest_jrh.reports.probes import WHAT_PROBES_DO, finding_sentences
from pytest_jrh.reports.report import Report
from pytest_jrh.reports.svg import (
    Canvas,
    Picture,
    stacked,
    style_of,
    text_width,
)
from pytest_jrh.stats.figures import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_jrh.reports.card import CardRow, JudgeCard, RightShare, Word
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.formulas import Estimate
    from pytest_jrh.stats.probes import ProbeTable


WIDE = 840
NARROW = 360
_MOST_JUDGES = 20
_MOST_FLAWS = 4
_TAGS: Mapping[Word, str] = {
    "PASS": "tag-good",
    "FAIL": "tag-bad",
    "INCONCLUSIVE": "tag-warn",
    "EQUIVALENT": "tag-good",
    "BETTER": "tag-good",
    "WORSE": "tag-bad",
    "DIFFERENT": "tag-warn",
    "UNDECIDED": "tag-warn",
    "": "tag-plain",
}


class CardReport(Report):
    """The pictures in one file, and beside it the badge."""

    name = "card"
    option = "card"

    def write(self, path: Path, session: Session) -> None:
        atomic_write(path, stacked(session_pictures(session)).file_text)
        atomic_write(path.with_name(f"{path.stem}-badge{path.suffix}"), badge(session).file_text)


Link: TypeAlias = "Callable[..., str]"
"""Gives the address of the cases that have these texts in these columns, or nothing."""


def _without_link(**_texts: str) -> str:
    return ""


def session_pictures(
    session: Session, width: int = WIDE, link: Link = _without_link
) -> list[Picture]:
    """A card for each suite with one judge, a map for each with several, and the matrix of probes;
    at least one picture, which says that there is no verdict. Rubrics, levels and judges are links
    to their cases.
    """
    cards = {}
    for suite, of_suite in cards_by_suite(session).items():
        if of_suite or session.decisions[suite].is_reported:
            cards[suite] = of_suite
    pictures = []
    for number, (suite, of_suite) in enumerate(cards.items(), 1):
        canvas = Canvas(width, session.redactor.text)
        if len(of_suite) == 1:
            title, description = _draw_card(canvas, of_suite[0], link)
        elif of_suite:
            title, description = _draw_judges(canvas, of_suite, session, link)
        else:
            word, title = suite_title(suite, of_suite, session)
            description = decision_sentence(session.decisions[suite])
            _draw_head(canvas, word, suite, title, [description])
        description += _draw_foot(canvas, suite, session, with_next=number == len(cards))
        pictures.append(canvas.picture(title, description))
    if not pictures:
        canvas = Canvas(width, session.redactor.text)
        _draw_head(canvas, "", "", "No case has a verdict", [])
        pictures.append(canvas.picture("No case has a verdict", ""))
    for suite in dict.fromkeys(table.suite for table in session.probes):
        tables = [table for table in session.probes if table.suite == suite]
        pictures.append(_matrix(Canvas(width, session.redactor.text), suite, tables))
    return pictures


def page_pictures(session: Session, link: Link) -> str:
    """The pictures as elements of a page that has `PAGE_STYLE`, each wide and narrow."""
    parts = []
    wide = session_pictures(session, link=link)
    narrow = session_pictures(session, NARROW, link)
    for wide_picture, narrow_picture in zip(wide, narrow, strict=True):
        parts.append(wide_picture.markup("jrh-wide"))
        parts.append(narrow_picture.markup("jrh-narrow"))
    return "".join(parts)


PAGE_STYLE = f"""{style_of()}\
.jrh-picture {{ margin: 0 0 14px; }}
.jrh-picture .hit {{ fill: none; pointer-events: all; }}
.jrh-picture a text:first-of-type {{ text-decoration: underline; text-underline-offset: 3px; }}
.jrh-picture a:hover .hit {{ fill: var(--accent); fill-opacity: 0.12; }}
.jrh-picture a:focus-visible {{ outline: none; }}
.jrh-picture a:focus-visible .hit {{ stroke: var(--accent); stroke-width: 2; }}
.jrh-picture.jrh-narrow {{ display: none; }}
@media screen and (max-width: 700px) {{
  .jrh-picture.jrh-wide {{ display: none; }}
  .jrh-picture.jrh-narrow {{ display: block; width: 100%; }}
}}
@media print {{ .jrh-picture {{ break-inside: avoid; }} }}
"""


def _draw_head(
    canvas: Canvas, word: Word, label: str, title: str, sentences: Sequence[str]
) -> None:
    """The decision as a coloured tag, the title, and sentences below it."""
    is_narrow = canvas.is_narrow
    if label:
        canvas.paragraph(label, 12, "muted", most=1)
        canvas.bottom += 6
    size = 17 if is_narrow else 20
    left = float(canvas.margin)
    if word:
        tag = text_width(word, 15, bold=True) + 20
        canvas.box(left, canvas.bottom, tag, 28, _TAGS[word], radius=5)
        canvas.text(
            left + tag / 2, canvas.bottom + 19.5, word, 15, "on-tag", bold=True, anchor="middle"
        )
        if is_narrow:
            canvas.bottom += 34
        else:
            left += tag + 12
    top = canvas.bottom
    room = canvas.width - canvas.margin - left
    canvas.paragraph(title, size, bold=True, left=left, room=room, most=3)
    canvas.bottom = max(canvas.bottom, top + (0 if is_narrow else 30)) + 6
    for sentence in sentences:
        canvas.paragraph(sentence, 13 if is_narrow else 15)
        canvas.bottom += 3


def _draw_foot(canvas: Canvas, suite: str, session: Session, *, with_next: bool) -> str:
    """Whether the labels can be trusted, and the next step; gives the same in words."""
    words = ""
    if suite in session.grounds:
        sentence, is_doubtful = trust_sentence(session, suite)
        if sentence:
            _draw_remark(canvas, sentence, is_doubtful=is_doubtful)
            words += f" {sentence}"
    for block in next_blocks(session) if with_next else ():
        canvas.bottom += 8
        if isinstance(block, Sentence):
            canvas.paragraph(block.text, 12.5, "muted")
            words += f" {block.text}"
        elif isinstance(block, Command):
            canvas.paragraph(block.advice, 12.5, "muted")
            canvas.paragraph(block.command, 12, mono=True)
            words += f" {block.advice} {block.command}"
    return words


def _draw_remark(canvas: Canvas, sentence: str, *, is_doubtful: bool) -> None:
    """A sentence below a picture, on a ground of its own where it is a warning."""
    canvas.bottom += 10
    if not is_doubtful:
        canvas.paragraph(sentence, 12.5, "muted")
        return
    # How high the ground is shows when the text was laid out.
    measure = Canvas(canvas.width, canvas.clean, canvas.margin)
    measure.paragraph(sentence, 12.5, room=canvas.room - 20)
    height = measure.bottom - measure.margin + 14
    canvas.box(canvas.margin, canvas.bottom, canvas.room, height, "warn-back", radius=6)
    canvas.bottom += 7
    canvas.paragraph(sentence, 12.5, "warn", left=canvas.margin + 10, room=canvas.room - 20)
    canvas.bottom += 7


@dataclass(frozen=True, slots=True)
class _Mark:
    """A figure on an axis: a dot with its interval, hollow where it was before."""

    now: Estimate
    text: str
    before: Estimate | None = None
    before_text: str = ""
    colour: str = "plain"


@dataclass(frozen=True, slots=True)
class _Axis:
    """What a column of marks shows, from the lowest to the highest value."""

    title: str
    lowest: float = 0.0
    highest: float = 1.0
    ticks: tuple[tuple[float, str], ...] = ((0.0, "0%"), (0.5, "50%"), (1.0, "100%"))

    def share(self, value: float) -> float:
        """Where a value is, from 0 at the left to 1 at the right."""
        return min(1.0, max(0.0, (value - self.lowest) / (self.highest - self.lowest)))


class _PlotRow(NamedTuple):
    name: str
    marks: tuple[_Mark, ...]
    is_total: bool = False
    address: str = ""

    def words(self, axes: Sequence[_Axis]) -> str:
        """The row for who cannot see it."""
        parts = []
        for axis, mark in zip(axes, self.marks, strict=True):
            before = f" ({mark.before_text})" if mark.before_text else ""
            parts.append(f"{axis.title} {mark.text}{before}")
        return f"{self.name}: {', '.join(parts)}."


def _share_mark(share: RightShare) -> _Mark:
    """How many are right: red where fewer than before, green where more or all."""
    if not share.now.n:
        return _Mark(share.now, "no case")
    now, before = share.now.value or 0, share.before
    colour = "plain"
    if before is not None and now < (before.value or 0):
        colour = "bad"
    elif not share.wrong or (before is not None and now > (before.value or 0)):
        colour = "good"
    before_text = f"was {before.count:,}/{before.n:,}" if before is not None else ""
    return _Mark(share.now, f"{share.now.count:,}/{share.now.n:,}", before, before_text, colour)


def _plot_of(
    rows: Sequence[tuple[str, CardRow, str]], total: tuple[CardRow, str] | None
) -> tuple[tuple[_Axis, ...], list[_PlotRow]]:
    """Named rows with their addresses as axes and marks, the total last; of an ordinal judge how
    often it is exact, and its bias.
    """
    named = [*rows, *([("all", *total)] if total is not None else [])]
    is_ordinal = any(row.bias is not None for _, row, _ in named)
    reach = 1.0
    plot_rows = []
    for number, (name, row, address) in enumerate(named):
        marks = [_share_mark(row.found)]
        if is_ordinal and row.bias is not None:
            ends = (row.bias.value, row.bias.lower, row.bias.upper)
            reach = max(reach, *(math.ceil(abs(end)) for end in ends if end is not None), 1)
            marks.append(_Mark(row.bias, signed(row.bias.value)))
        elif row.passed is not None:
            marks.append(_share_mark(row.passed))
        is_total = number == len(rows)
        plot_rows.append(_PlotRow(name, tuple(marks), is_total=is_total, address=address))
    if is_ordinal:
        ticks = ((-reach, f"-{reach:g}"), (0.0, "0"), (reach, f"+{reach:g}"))
        return (_Axis("exactly right"), _Axis("bias, in levels", -reach, reach, ticks)), plot_rows
    return (_Axis("violations found"), _Axis("clean runs left alone")), plot_rows


def _draw_card(canvas: Canvas, card: JudgeCard, link: Link) -> tuple[str, str]:
    """The card of one judge; gives its title, and what it shows in words."""
    sentences = list(card.sentences)
    if card.flaw and card.flaw != card.title:
        sentences.append(f"{card.flaw}.")
    _draw_head(canvas, card.word, card.label, card.title, sentences)
    judge = {"suite": card.suite, "judge": card.judge}
    shown = [(row.name, row, link(**judge, **row.texts)) for row in card.rows[:MOST_ROWS]]
    axes, rows = _plot_of(shown, (card.total, link(**judge, **card.total.texts)))
    left_out = len(card.rows) - len(shown)
    _draw_plot(canvas, axes, rows, f"and {left_out:,} more" if left_out else "")
    words = " ".join([*sentences, *(row.words(axes) for row in rows)])
    return headline(card.word, card.title), words


class _Layout(NamedTuple):
    """Where the rows of a plot have their names and axes."""

    name_room: float
    lefts: tuple[float, ...]
    length: float
    pitch: float


def _layout(canvas: Canvas, axes: Sequence[_Axis], rows: Sequence[_PlotRow]) -> _Layout:
    """Names beside their axes; on narrow screens above them, with each axis behind its title."""
    counts = 30.0
    pitch = 28
    for row in rows:
        for mark in row.marks:
            counts = max(counts, text_width(mark.text, 13, bold=True))
            counts = max(counts, text_width(mark.before_text, 11))
            if mark.before_text:
                pitch = 34
    if canvas.is_narrow:
        title_room = max(text_width(axis.title, 11) for axis in axes)
        left = canvas.margin + title_room + 12
        length = canvas.width - canvas.margin - left - counts - 14
        return _Layout(canvas.room, (left,) * len(axes), length, pitch)
    longest = max(text_width(canvas.clean(row.name), 13, bold=row.is_total) for row in rows)
    name_room = min(max(longest, 60.0), 215.0)
    column = (canvas.room - name_room) / len(axes)
    first = canvas.margin + name_room + 20
    lefts = tuple(first + number * column for number in range(len(axes)))
    return _Layout(name_room, lefts, column - 20 - counts - 14, pitch)


def _draw_plot(
    canvas: Canvas, axes: Sequence[_Axis], rows: Sequence[_PlotRow], more: str = ""
) -> None:
    """A line with marks for each row, and above the total how many `more` there are."""
    layout = _layout(canvas, axes, rows)
    names = canvas.names([row.name for row in rows], layout.name_room, 13)
    if not canvas.is_narrow:
        canvas.bottom += 22
        for axis, left in zip(axes, layout.lefts, strict=True):
            canvas.text(left, canvas.bottom, axis.title, 12, "muted")
    canvas.bottom += 8
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        if row.is_total and number:
            if more:
                canvas.paragraph(more, 12, "muted", most=1)
                canvas.bottom += 4
            canvas.bottom += 4
            start = (canvas.margin, canvas.bottom)
            canvas.line(start, (canvas.margin + canvas.room, canvas.bottom), "line")
            canvas.bottom += 4
        is_last = number == len(rows) - 1
        with canvas.leading_to(row.address):
            _draw_row(canvas, layout, axes, row._replace(name=name), has_ticks=is_last)
    if not canvas.is_narrow:
        for axis, left in zip(axes, layout.lefts, strict=True):
            _draw_ticks(canvas, left, layout.length, axis)
        canvas.bottom += 12
    has_before = any(mark.before is not None for row in rows for mark in row.marks)
    _draw_legend(canvas, has_before=has_before)


def _draw_row(
    canvas: Canvas, layout: _Layout, axes: Sequence[_Axis], row: _PlotRow, *, has_ticks: bool
) -> None:
    if canvas.is_narrow:
        canvas.bottom += 18
        canvas.text(canvas.margin, canvas.bottom, row.name, 13, bold=row.is_total)
    else:
        y = canvas.bottom + layout.pitch / 2 + 4.5
        canvas.text(canvas.margin, y, row.name, 13, bold=row.is_total, room=layout.name_room)
    for number, (axis, left, mark) in enumerate(zip(axes, layout.lefts, row.marks, strict=True)):
        middle = canvas.bottom + layout.pitch / 2
        _draw_mark(canvas, (left, middle), layout.length, axis, mark)
        if canvas.is_narrow:
            canvas.text(canvas.margin, middle + 4, axis.title, 11, "muted")
            canvas.bottom += layout.pitch
            is_last = number == len(axes) - 1
            if has_ticks and (is_last or axes[number + 1].ticks != axis.ticks):
                _draw_ticks(canvas, left, layout.length, axis)
                canvas.bottom += 12
    canvas.bottom += 4 if canvas.is_narrow else layout.pitch


def _draw_mark(
    canvas: Canvas, start: tuple[float, float], length: float, axis: _Axis, mark: _Mark
) -> None:
    """An axis with its mark, and the count at its end."""
    left, y = start
    canvas.line(start, (left + length, y), "line")
    for value, _ in axis.ticks:
        x = left + length * axis.share(value)
        canvas.line((x, y - 5), (x, y + 5), "line")
    now = mark.now
    if now.lower is not None and now.upper is not None:
        low, high = axis.share(now.lower), axis.share(now.upper)
        width = length * (high - low)
        canvas.box(left + length * low, y - 4, width, 8, mark.colour, radius=4, opacity=0.3)
    if mark.before is not None and mark.before.value is not None:
        canvas.dot(left + length * axis.share(mark.before.value), y, 6.5, "back", "muted")
    if now.value is not None:
        canvas.dot(left + length * axis.share(now.value), y, 4.5, mark.colour)
    x = left + length + 14
    colour = "muted" if now.value is None else mark.colour
    if mark.before_text:
        canvas.text(x, y - 1.5, mark.text, 13, colour, bold=True)
        canvas.text(x, y + 11, mark.before_text, 11, "muted")
    else:
        canvas.text(x, y + 4.5, mark.text, 13, colour, bold=now.value is not None)


def _draw_ticks(canvas: Canvas, left: float, length: float, axis: _Axis) -> None:
    for value, text in axis.ticks:
        x = left + length * axis.share(value)
        canvas.text(x, canvas.bottom + 9, text, 10.5, "muted", anchor="middle")


def _draw_legend(canvas: Canvas, *, has_before: bool) -> None:
    canvas.bottom += 20
    x, y = canvas.margin + 5.0, canvas.bottom
    canvas.dot(x, y - 4, 4.5, "plain")
    canvas.text(x + 10, y, "now", 11, "muted")
    x += 50
    if has_before:
        canvas.dot(x, y - 4, 6, "back", "muted")
        canvas.text(x + 12, y, "before", 11, "muted")
        x += 70
    canvas.box(x - 5, y - 8, 24, 8, "plain", radius=4, opacity=0.3)
    canvas.text(x + 25, y, "95% interval", 11, "muted")
    canvas.bottom += 2


def _draw_judges(
    canvas: Canvas, cards: Sequence[JudgeCard], session: Session, link: Link
) -> tuple[str, str]:
    """Several judges of a suite: the map, and below it a table; gives title and words.

    Where a map would show a single point, or none, as of ordinal judges, each judge has a line with
    its marks, or all of them one.
    """
    word, suite = cards[0].word, cards[0].suite
    title = panel_title(suite, cards, session)
    sentences = list(filter(None, [agreement_sentence(cards)]))
    for card in cards:
        if card.flaw:
            sentences.append(f"{card.flaw}.")
    if len(sentences) > _MOST_FLAWS:
        left_out = len(sentences) - _MOST_FLAWS + 1
        sentences[_MOST_FLAWS - 1 :] = [f"And {left_out:,} more judges are worth nothing."]
    if any(table.suite == suite and table.is_finding for table in session.probes):
        sentences.append(WHAT_PROBES_DO)
    _draw_head(canvas, word, suite, title, sentences)
    shown = cards[:_MOST_JUDGES]
    addresses = [link(suite=suite, judge=card.judge) for card in shown]
    points = points_of(shown)
    if len({point.position for point in points}) > 1:
        draw_map(canvas, points)
    else:
        named = []
        for card, address in zip(shown, addresses, strict=True):
            named.append((card.judge or card.label, card.total, address))
        if len({(total.found, total.passed, total.bias) for _, total, _ in named}) == 1:
            named = [("each of them", shown[0].total, "")]
        axes, rows = _plot_of(named, None)
        _draw_plot(canvas, axes, rows)
    short_table = map_rows(shown, session, is_short=canvas.is_narrow)
    draw_table(canvas, short_table, len(cards) - len(shown), addresses)
    table = map_rows(shown, session)
    words = [*sentences]
    for row in table[1:]:
        figures = zip(table[0][1:], row[1:], strict=True)
        words.append(f"{row[0]}: {', '.join(f'{name} {text}' for name, text in figures)}.")
    return headline(word, title), " ".join(words)


_CELL = 92.0
_WIDEST_CELL = 132.0
_HIGHEST_HEAT = 0.55
_LEAST_HEAT = 0.15


def _matrix(canvas: Canvas, suite: str, tables: Sequence[ProbeTable]) -> Picture:
    """How many right verdicts each probe turned of each judge, coloured where it is a finding."""
    by_place = {(table.judge, table.probe): table for table in tables}
    judges = list(dict.fromkeys(table.judge for table in tables))
    probes = list(dict.fromkeys(table.probe for table in tables))
    findings = sum(table.is_finding for table in tables)
    title = "Does anything turn a right verdict?"
    summary = f"Verdicts turned of those tried: {counted(findings, 'finding')}, marked."
    if not findings:
        summary = "Verdicts turned of those tried: no more than by chance."
    summary = f"{WHAT_PROBES_DO} {summary}"
    _draw_head(canvas, "", suite, title, [summary])
    names = [judge or "the judge" for judge in judges[:_MOST_JUDGES]]
    longest = max(text_width(canvas.clean(name), 13) for name in names)
    name_room = min(longest + 10, canvas.room * 0.3)
    names = canvas.names(names, name_room - 6, 13)
    columns = max(1, int((canvas.room - name_room) / _CELL))
    words = [summary]
    for start in range(0, len(probes), columns):
        shown = probes[start : start + columns]
        width = min(_WIDEST_CELL, (canvas.room - name_room) / min(columns, len(probes)))
        canvas.bottom += 34
        for column, probe in enumerate(shown):
            _draw_probe_name(
                canvas, canvas.margin + name_room + (column + 0.5) * width, width, probe
            )
        canvas.bottom += 8
        for judge, name in zip(judges, names, strict=False):
            canvas.text(canvas.margin, canvas.bottom + 19, name, 13, room=name_room - 6)
            for column, probe in enumerate(shown):
                left = canvas.margin + name_room + column * width
                _draw_cell(canvas, left, width, by_place.get((judge, probe)))
            canvas.bottom += 30
    if len(judges) > len(names):
        canvas.paragraph(f"and {len(judges) - len(names):,} more", 12, "muted")
    words += finding_sentences(tables)
    return canvas.picture(title, " ".join(words))


def _draw_probe_name(canvas: Canvas, middle: float, width: float, probe: str) -> None:
    """The name of a probe above its column, in two lines where it has two words."""
    first, _, second = probe.partition("_")
    lines = [f"{first}_", second] if second else [first]
    for number, line in enumerate(reversed(lines)):
        y = canvas.bottom - 14 * number
        canvas.text(middle, y, line, 12, "muted", anchor="middle", room=width - 4)


def _draw_cell(canvas: Canvas, left: float, width: float, table: ProbeTable | None) -> None:
    if table is None or not table.total.n:
        canvas.text(left + width / 2, canvas.bottom + 19, NONE, 13, "muted", anchor="middle")
        return
    text = f"{table.total.turned:,}/{table.total.n:,}"
    if table.is_finding:
        share = table.total.rate.value or 0
        heat = _LEAST_HEAT + (_HIGHEST_HEAT - _LEAST_HEAT) * share
        canvas.box(left + 2, canvas.bottom + 1, width - 4, 28, "bad", radius=4, opacity=heat)
    colour = "ink" if table.is_finding else "muted"
    canvas.text(
        left + width / 2,
        canvas.bottom + 19,
        text,
        13,
        colour,
        bold=table.is_finding,
        anchor="middle",
        room=width,
    )


_BADGE_HEIGHT = 20
_DECISIONS: Mapping[Word, str] = {
    "PASS": "gate passed",
    "FAIL": "gate failed",
    "INCONCLUSIVE": "inconclusive",
}


def badge(session: Session) -> Picture:
    """A line for a README: what the judge finds, its false alarms, and the decision; of several
    judges what the first one finds, of several suites the decision alone.
    """
    cards = judge_cards(session)
    suites = list(dict.fromkeys(card.suite for card in cards))
    parts = []
    if not cards:
        parts.append("no verdict")
    elif len(suites) > 1:
        parts.append(counted(len(suites), "suite"))
    else:
        total = cards[0].total
        if len(cards) > 1:
            parts.append(f"best of {len(cards):,}")
        verb = "exact" if total.passed is None else "finds"
        if total.found.now.n:
            parts.append(f"{verb} {total.found.now.count:,}/{total.found.now.n:,}")
        if total.passed is not None and total.passed.now.n:
            parts.append(f"false alarms {total.passed.wrong:,}/{total.passed.now.n:,}")
    word = _worst_word(session, cards)
    if word:
        parts.append(_DECISIONS.get(word, word.lower()))
    text = " · ".join(parts)
    left = text_width("judge", 11) + 12
    right = text_width(text, 11) + 12
    width = math.ceil(left + right)
    canvas = Canvas(width, session.redactor.text, 0)
    canvas.box(0, 0, width, _BADGE_HEIGHT, "tag-plain", radius=3)
    canvas.box(left, 0, right, _BADGE_HEIGHT, _TAGS[word] if word else "tag-blue", radius=3)
    canvas.text(left / 2, 14, "judge", 11, "on-tag", anchor="middle")
    canvas.text(left + right / 2, 14, text, 11, "on-tag", anchor="middle")
    return canvas.bare(f"judge: {text}", _BADGE_HEIGHT)


def _worst_word(session: Session, cards: Sequence[JudgeCard]) -> Word:
    """The decision over all suites."""
    if session.upgrade is not None:
        return session.upgrade.word
    words = {card.word for card in cards}
    if session.passed is False and "FAIL" not in words and "INCONCLUSIVE" not in words:
        return "FAIL"
    for word in ("FAIL", "INCONCLUSIVE", "PASS"):
        if word in words:
            return word
    return ""
