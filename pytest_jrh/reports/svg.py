"""Drawing in SVG that needs nothing else: no script, no font and no network, light and dark as the
reader's system is.

A picture is drawn before anybody knows which font it will be shown in, so texts are given the room
that they take in a wide one.
"""

from __future__ import annotations

import unicodedata
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.text import ELLIPSIS, fitted, one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Anchor: TypeAlias = Literal["start", "middle", "end"]

# In light and in dark: a text has a contrast of at least 4.5 to what it stands on.
_COLOURS = {
    "back": ("#ffffff", "#181d24"),
    "ink": ("#1c2128", "#e4e8ee"),
    "muted": ("#57606a", "#9aa5b1"),
    "line": ("#d8dde3", "#3a434e"),
    "good": ("#166b2e", "#5fd07f"),
    "bad": ("#b3202a", "#ff8a8a"),
    "plain": ("#1f56b5", "#8ab0ff"),
    "warn": ("#6b4700", "#e9bd5b"),
    "warn-back": ("#fff4d6", "#35290d"),
    "on-tag": ("#ffffff", "#ffffff"),
    "tag-good": ("#166b2e", "#1d7a37"),
    "tag-bad": ("#b3202a", "#c22933"),
    "tag-warn": ("#7a5000", "#7a5000"),
    "tag-plain": ("#3d4752", "#4a5562"),
    "tag-blue": ("#1f56b5", "#2a62c4"),
    "one": ("#1f56b5", "#8ab0ff"),
    "two": ("#a34700", "#ffae70"),
    "three": ("#166b2e", "#5fd07f"),
    "four": ("#7a3bb0", "#cda2ff"),
    "five": ("#b3202a", "#ff8a8a"),
    "six": ("#0b6a75", "#63cfdb"),
}
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace'


def _rules(scheme: int, body: str | None) -> str:
    rules = []
    for name, colours in _COLOURS.items():
        for kind, attribute in (("f", "fill"), ("s", "stroke")):
            if body is None or f"{kind}-{name}" in body:
                rules.append(f".jrh-picture .{kind}-{name}{{{attribute}:{colours[scheme]}}}")
    return "\n".join(rules)


def style_of(body: str | None = None) -> str:
    """The rules that a picture is coloured by; those of any picture where none is given."""
    return f"""\
.jrh-picture{{display:block;max-width:100%;height:auto}}
.jrh-picture text{{font-family:{_FONT}}}
.jrh-picture .mono{{font-family:{_MONO}}}
{_rules(0, body)}
@media screen and (prefers-color-scheme: dark){{
{_rules(1, body)}
}}
"""


# The widths of letters in DejaVu Sans, the widest of the common fonts, as shares of its size.
_NARROW = "ijlI.,:;'|!/\\J `"
_SLIM = '()[]-frt"'
_WIDE = "#+<=>~^wOQGDNHU&CABKPRSTVXYZ"
_WIDEST = "mMW%@"
_ASCII_WIDTHS = {chr(code): 0.64 for code in range(0x20, 0x7F)}
_ASCII_WIDTHS |= dict.fromkeys(_NARROW, 0.34) | dict.fromkeys(_SLIM, 0.42)
_ASCII_WIDTHS |= dict.fromkeys(_WIDE, 0.8) | dict.fromkeys(_WIDEST, 1.0)
_BOLD = 1.12
_MONO_WIDTH = 0.63
_OTHER_WIDTH = 0.75
# What texts of ours have beside ASCII, and fonts draw alike.
_OUR_SIGNS = {ELLIPSIS: 1.0, "·": 0.34}
_LONGEST = 1_000
_NARROWER = 600
_SHORTEST_NAME = 6


@lru_cache(maxsize=4_096)
def _letter_width(char: str) -> float:
    """The width of a letter as a share of its size; of an accented one that of the plain one."""
    if char in _OUR_SIGNS:
        return _OUR_SIGNS[char]
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return _ASCII_WIDTHS.get(unicodedata.normalize("NFD", char)[0], _OTHER_WIDTH)


def text_width(text: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
    """How much room a text needs in any common font of this size."""
    if mono:
        return len(text) * _MONO_WIDTH * size
    return sum(map(_letter_width, text)) * size * (_BOLD if bold else 1.0)


def cut_to(text: str, room: float, size: float, *, bold: bool = False, mono: bool = False) -> str:
    """As much of a text as there is room for, with an ellipsis in place of the rest."""
    if text_width(text, size, bold=bold, mono=mono) <= room:
        return text
    left = room - text_width(ELLIPSIS, size, bold=bold, mono=mono)
    for number_of_letters, char in enumerate(text):
        left -= text_width(char, size, bold=bold, mono=mono)
        if left < 0:
            return f"{text[:number_of_letters].rstrip()}{ELLIPSIS}"
    return text


def text_lines(
    text: str, room: float, size: float, most: int, *, bold: bool = False, mono: bool = False
) -> list[str]:
    """The text in at most so many lines that fit the room; a word that is longer is cut."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold, mono=mono) <= room:
            lines[-1] = longer
        elif len(lines) < most:
            lines.append(cut_to(word, room, size, bold=bold, mono=mono))
        else:
            lines[-1] = cut_to(f"{lines[-1]} {ELLIPSIS}", room, size, bold=bold, mono=mono)
            break
    return lines


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, with what it shows in words for who cannot see it."""

    title: str
    description: str
    width: int
    height: int
    body: str

    def markup(self, name: str = "", style: str = "") -> str:
        """The element for a page that has the rules of `style_of`; `name` is a class of it, and
        `style` the rules of a file of its own. One with links is a group: what is in an image
        cannot be reached by keyboard.
        """
        role = "group" if "<a " in self.body else "img"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="jrh-picture{name and f" {name}"}" '
            f'role="{role}" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}">\n'
            f"<title>{escape(self.title)}</title>\n<desc>{escape(self.description)}</desc>\n"
            f"{style and f'<style>{style}</style>{chr(10)}'}{self.body}</svg>\n"
        )

    @property
    def file_text(self) -> str:
        """The picture as a file."""
        return self.markup(style=style_of(self.body))


def stacked(pictures: Sequence[Picture], gap: int = 16) -> Picture:
    """Pictures below each other."""
    parts = []
    bottom = 0
    for picture in pictures:
        parts.append(f'<g transform="translate(0 {bottom})">\n{picture.body}</g>\n')
        bottom += picture.height + gap
    return Picture(
        " · ".join(picture.title for picture in pictures),
        " ".join(f"{picture.title}. {picture.description}" for picture in pictures),
        max(picture.width for picture in pictures),
        bottom - gap,
        "".join(parts),
    )


def number(value: float) -> str:
    """A length as it is written, to a tenth."""
    return f"{round(value, 1):g}"


class Canvas:
    """Where a picture is drawn from top to bottom; `bottom` is how far it is filled.

    Every text passes `clean`, which takes secrets out of it, and is escaped.
    """

    def __init__(self, width: int, clean: Callable[[str], str], margin: int = 20) -> None:
        self.width = width
        self.margin = margin
        self.bottom = float(margin)
        self._clean = clean
        self._parts: list[str] = []

    @property
    def is_narrow(self) -> bool:
        """Whether it is for a small screen."""
        return self.width < _NARROWER

    @property
    def room(self) -> float:
        """The width between the margins."""
        return self.width - 2 * self.margin

    def clean(self, text: str) -> str:
        """A text from anywhere as one line that may be shown."""
        return shortened(one_line(self._clean(text)), _LONGEST)

    def names(self, names: Sequence[str], room: float, size: float) -> list[str]:
        """Names that fit their room, still told apart where they can be."""
        cleaned = list(map(self.clean, names))
        longest = min(max(map(len, cleaned), default=0), int(room / (size * 0.3)))
        for width in range(longest, _SHORTEST_NAME, -1):
            shown = fitted(cleaned, width)
            if all(text_width(name, size) <= room for name in shown):
                return shown
        return [cut_to(name, room, size) for name in cleaned]

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str,
        *,
        radius: float = 0,
        opacity: float = 1,
    ) -> None:
        """A filled rectangle."""
        corners = f' rx="{number(radius)}"' if radius else ""
        see_through = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(
            f'<rect x="{number(left)}" y="{number(top)}" width="{number(width)}" '
            f'height="{number(height)}" class="f-{fill}"{corners}{see_through}/>\n'
        )

    @contextmanager
    def leading_to(self, address: str) -> Iterator[None]:
        """Make what is drawn meanwhile a link over the whole width, where there is an address."""
        first, top = len(self._parts), self.bottom
        yield
        if address:
            area = (
                f'<rect x="{number(self.margin)}" y="{number(top)}" width="{number(self.room)}" '
                f'height="{number(self.bottom - top)}" class="hit"/>\n'
            )
            self._parts.insert(first, f'<a href="{escape(self._clean(address))}">\n{area}')
            self._parts.append("</a>\n")

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        stroke: str,
        *,
        width: float = 1,
        dashes: str = "",
        opacity: float = 1,
    ) -> None:
        """A straight line."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        see_through = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(
            f'<path d="M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}" '
            f'class="s-{stroke}" stroke-width="{width:g}"{dashed}{see_through}/>\n'
        )

    def dot(self, x: float, y: float, radius: float, fill: str, stroke: str = "") -> None:
        """A dot, with a rim where a stroke is named."""
        rim = f' s-{stroke}" stroke-width="1.5' if stroke else ""
        self._parts.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" '
            f'class="f-{fill}{rim}"/>\n'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 13,
        colour: str = "ink",
        *,
        bold: bool = False,
        mono: bool = False,
        anchor: Anchor = "start",
        room: float | None = None,
        is_over_lines: bool = False,
    ) -> None:
        """A line of text on the base line `y`, cut to its room; with a rim that keeps it readable
        where lines are behind it.
        """
        text = self.clean(text)
        if room is not None:
            text = cut_to(text, room, size, bold=bold, mono=mono)
        if not text:
            return
        attributes = [f'x="{number(x)}"', f'y="{number(y)}"', f'font-size="{size:g}"']
        attributes.append(f'class="f-{colour}{" mono" if mono else ""}"')
        if is_over_lines:
            attributes[-1] = attributes[-1].replace('"f-', '"s-back f-')
            attributes.append('stroke-width="4" stroke-linejoin="round" paint-order="stroke"')
        if bold:
            attributes.append('font-weight="600"')
        if anchor != "start":
            attributes.append(f'text-anchor="{anchor}"')
        if not all(char.isascii() or char in _OUR_SIGNS for char in text):
            # No width of it is known, so it is set into the room that it was given.
            taken = text_width(text, size, bold=bold, mono=mono)
            attributes.append(f'textLength="{number(taken)}" lengthAdjust="spacingAndGlyphs"')
        self._parts.append(f"<text {' '.join(attributes)}>{escape(text)}</text>\n")

    def paragraph(
        self,
        text: str,
        size: float = 13,
        colour: str = "ink",
        *,
        bold: bool = False,
        mono: bool = False,
        left: float | None = None,
        room: float | None = None,
        most: int = 5,
    ) -> None:
        """Lines of text below what there is, at most so many."""
        left = self.margin if left is None else left
        room = self.room if room is None else room
        for line in text_lines(self.clean(text), room, size, most, bold=bold, mono=mono):
            self.bottom += round(size * 1.4)
            self.text(left, self.bottom - size * 0.3, line, size, colour, bold=bold, mono=mono)

    def picture(self, title: str, description: str) -> Picture:
        """What was drawn, in a frame."""
        height = round(self.bottom + self.margin)
        frame = (
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{height - 1}" rx="10" '
            'class="f-back s-line"/>\n'
        )
        body = frame + "".join(self._parts)
        words = one_line(self._clean(description))
        return Picture(self.clean(title), words, self.width, height, body)

    def bare(self, title: str, height: int) -> Picture:
        """What was drawn, without a frame."""
        return Picture(self.clean(title), "", self.width, height, "".join(self._parts))
