"""The map of several judges: false alarms to the right, violations found upwards, a coin on the
diagonal; and the table below it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pytest_jrh.core.model import JUDGED, Spending
from pytest_jrh.core.text import dollars
from pytest_jrh.reports.svg import text_width
from pytest_jrh.stats.figures import NONE, decimal, percent
from pytest_jrh.stats.intervals import estimate_bias, summed
from pytest_jrh.stats.panels import made_case_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.reports.card import JudgeCard
    from pytest_jrh.reports.session import Session
    from pytest_jrh.reports.svg import Canvas
    from pytest_jrh.stats.formulas import Estimate


# Of more places than this the names are in the table, and the map has their numbers.
_MOST_NAMED_PLACES = 6


class Point(NamedTuple):
    """A judge on the map."""

    name: str
    found: Estimate
    alarms: Estimate
    before: tuple[float, float] | None
    number: int

    @property
    def colour(self) -> str:
        """The colour of its number in the table, too."""
        return _colour(self.number)

    @property
    def position(self) -> tuple[float, float]:
        """How far it is to the right, and how far up."""
        return self.alarms.value or 0, self.found.value or 0


_POINT_COLOURS = ("one", "two", "three", "four", "five", "six")
# The room of a number before a name.
_KEY = 22


def _colour(number: int) -> str:
    """The colour of the judge at this place, on the map and in the table."""
    return _POINT_COLOURS[number % len(_POINT_COLOURS)]


def points_of(cards: Sequence[JudgeCard]) -> list[Point]:
    """The judges that have seen violations and clean runs; of ordinal ones none."""
    points = []
    for number, card in enumerate(cards, 1):
        found, passed = card.total.found, card.total.passed
        if passed is None or found.now.value is None or passed.now.value is None:
            continue
        before = None
        if found.before is not None and passed.before is not None:
            before = 1 - (passed.before.value or 0), found.before.value or 0
        name = card.judge or card.label
        points.append(Point(name, found.now, passed.now.complement(), before, number))
    return points


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        """Whether they have a part in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: _Box) -> bool:
        """Whether all of it is inside of the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


def draw_map(canvas: Canvas, points: Sequence[Point]) -> None:
    """False alarms to the right, violations found upwards, a coin on the diagonal."""
    is_narrow = canvas.is_narrow
    height = 260.0 if is_narrow else 340.0
    canvas.bottom += 8
    canvas.paragraph("violations found", 12, "muted", most=1)
    top = canvas.bottom + 10
    frame = _Box(canvas.margin + 44, top, canvas.width - canvas.margin - 16, top + height)
    width = frame.right - frame.left

    def position(alarms: float, found: float) -> tuple[float, float]:
        return frame.left + width * alarms, frame.bottom - height * found

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = position(share, share)
        canvas.line((x, frame.top), (x, frame.bottom), "line")
        canvas.line((frame.left, y), (frame.right, y), "line")
        canvas.text(frame.left - 8, y + 4, f"{share:.0%}", 11, "muted", anchor="end")
        canvas.text(x, frame.bottom + 17, f"{share:.0%}", 11, "muted", anchor="middle")
    canvas.line(position(0, 0), position(1, 1), "muted", dashes="5 4")
    taken = [*_draw_signs(canvas, frame)]
    dots = []
    crosses: list[_Box] = []
    for point in points:
        x, y = position(*point.position)
        dots.append(_Box(x - 7, y - 7, x + 7, y + 7))
        crosses += _draw_cross(canvas, point, position)
    for point in points:
        x, y = position(*point.position)
        canvas.dot(x, y, 5, point.colour, "back")
    groups = _groups(dots)
    for group in groups:
        first = group[0]
        if len(groups) > _MOST_NAMED_PLACES:
            names = [f"{points[index].number}" for index in group]
        else:
            names = canvas.names([points[index].name for index in group], _LABEL_ROOM, 12)
        label = _joined(names)
        room = text_width(label, 12, bold=True)
        box = _free_place(dots[first], room, frame, (dots, taken, crosses))
        if box is not None:
            taken.append(box)
            _draw_label(canvas, dots[first], box, label, points[first].colour)
    canvas.bottom = frame.bottom + 34
    canvas.text(
        (frame.left + frame.right) / 2,
        canvas.bottom,
        "false alarms on clean runs",
        12,
        "muted",
        anchor="middle",
    )


def _draw_signs(canvas: Canvas, frame: _Box) -> Iterator[_Box]:
    """What the corners and the diagonal mean, below the diagonal; gives where that stands."""
    size = 11
    width, height = frame.right - frame.left, frame.bottom - frame.top
    for text, middle in (("passes all", 0.2), ("a coin", 0.55), ("flags all", 0.9)):
        text_room = text_width(text, size)
        left = min(frame.left + width * middle, frame.right - 6) - text_room / 2
        base = frame.bottom - height * (left - frame.left) / width + size + 6
        base = min(base, frame.bottom - 4)
        canvas.text(left, base, text, size, "muted", is_over_lines=True)
        yield _Box(left - 3, base - size, left + text_room + 3, base + 4)


def _draw_cross(
    canvas: Canvas, point: Point, position: Callable[[float, float], tuple[float, float]]
) -> Iterator[_Box]:
    """The intervals of a point, and where it was before; gives where they stand."""
    found, alarms = point.found, point.alarms
    x, y = position(alarms.value or 0, found.value or 0)
    lines = []
    if alarms.lower is not None and alarms.upper is not None:
        lines.append(
            (position(alarms.lower, found.value or 0), position(alarms.upper, found.value or 0))
        )
    if found.lower is not None and found.upper is not None:
        lines.append(
            (position(alarms.value or 0, found.upper), position(alarms.value or 0, found.lower))
        )
    for start, end in lines:
        canvas.line(start, end, point.colour, width=3, opacity=0.45)
        yield _Box(start[0] - 2, start[1] - 2, end[0] + 2, end[1] + 2)
    if point.before is not None:
        before = position(*point.before)
        if math.dist(before, (x, y)) > 1:
            canvas.line(before, (x, y), point.colour, dashes="2 3")
            canvas.dot(*before, 4.5, "back", point.colour)


_SAME_PLACE = 8


def _groups(dots: Sequence[_Box]) -> list[list[int]]:
    """The points by their place: those that cannot be told apart have one label."""
    groups: list[list[int]] = []
    for number, dot in enumerate(dots):
        for group in groups:
            if math.dist(dot[:2], dots[group[0]][:2]) < _SAME_PLACE:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


_LABEL_ROOM = 170
_MOST_NAMED = 2


def _joined(names: Sequence[str]) -> str:
    """The label of one place."""
    shown = ", ".join(names[:_MOST_NAMED])
    left_out = len(names) - _MOST_NAMED
    return f"{shown} +{left_out}" if left_out > 0 else shown


_DIRECTIONS = ((1, 0), (1, 1), (1, -1), (-1, 0), (0, 1), (0, -1), (-1, 1), (-1, -1))
_RINGS = 24


def _free_place(
    dot: _Box, width: float, frame: _Box, obstacles: tuple[Sequence[_Box], ...]
) -> _Box | None:
    """Where a label meets no obstacle, near its dot; failing that, none but the last kind."""
    x, y = (dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2
    for kept_free in (obstacles, obstacles[:-1]):
        for ring in range(_RINGS):
            for across, downwards in _DIRECTIONS:
                middle = x + across * (10 + width / 2 + 6 * ring)
                base = y + downwards * (14 + 7 * ring) * (1 if across == 0 or ring else 0.7)
                box = _Box(middle - width / 2 - 2, base - 8, middle + width / 2 + 2, base + 8)
                is_free = not any(box.meets(other) for boxes in kept_free for other in boxes)
                if is_free and box.within(frame):
                    return box
    return None


_NEAR = 30


def _draw_label(canvas: Canvas, dot: _Box, box: _Box, label: str, colour: str) -> None:
    """The label of a dot, with a line to it where it is not beside it."""
    x, y = (dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2
    near_x = min(max(x, box.left), box.right)
    near_y = min(max(y, box.top), box.bottom)
    if math.dist((x, y), (near_x, near_y)) > _NEAR:
        canvas.line((x, y), (near_x, near_y), colour, opacity=0.7)
    canvas.text(box.left + 2, box.bottom - 4, label, 12, colour, bold=True, is_over_lines=True)


def map_rows(
    cards: Sequence[JudgeCard], session: Session, *, is_short: bool = False
) -> list[tuple[str, ...]]:
    """The judges below each other, the titles first: what each gets right, its kappa, what it costs
    where it makes calls, and how far it is behind the first one on the cases that both judged. A
    short one has no counts and no intervals.
    """
    is_ordinal = cards[0].mode == "ordinal"
    judged: dict[str, list[CaseResult]] = {card.judge: [] for card in cards}
    for result in session.results:
        if result.spec.suite == cards[0].suite and result.judge in judged:
            judged[result.judge].append(result)
    costs = [_cost(judged[card.judge]) for card in cards]
    has_costs = not session.is_table and any(cost != NONE for cost in costs)
    titles = ["judge", *(("exact", "bias") if is_ordinal else ("found", "false alarms")), "kappa"]
    titles += [*(["cost"] if has_costs else []), "to best" if is_short else "right, points to best"]
    table = [tuple(titles)]
    for number, (card, cost) in enumerate(zip(cards, costs, strict=True)):
        total = card.total
        row = [card.judge or card.label, _share_text(total.found.now, is_short)]
        if total.passed is not None:
            row.append(_share_text(total.passed.now.complement(), is_short))
        else:
            row.append(signed(total.bias.value) if total.bias is not None else NONE)
        row.append(decimal(card.kappa.value))
        if has_costs:
            row.append(cost)
        difference = NONE
        if number:
            change = _difference(judged[cards[0].judge], judged[card.judge])
            difference = _points_text(change, is_short)
        table.append((*row, difference))
    return table


def signed(value: float | None) -> str:
    """A number with its sign."""
    text = decimal(value)
    return f"+{text}" if value is not None and float(text) > 0 else text


def _share_text(share: Estimate, is_short: bool) -> str:  # noqa: FBT001 - a private helper
    if share.count is None or not share.n:
        return NONE
    text = percent(share.value, 0)
    return text if is_short else f"{text} ({share.count:,}/{share.n:,})"


def _cost(results: Sequence[CaseResult]) -> str:
    """What a judge's own calls cost; nothing of one that made none, or whose price is not known."""
    spent = [result.judge_spending or result.spending for result in results]
    total = sum(spent, Spending())
    if total.unpriced or not total.calls + total.replayed:
        return NONE
    return dollars(total.cost)


def _difference(first: Sequence[CaseResult], other: Sequence[CaseResult]) -> Estimate:
    """The share of cases that the other judge has right, less that of the first one, on those that
    both judged; the interval is over clusters.
    """
    right_of_first = {}
    for result in first:
        if result.outcome in JUDGED and not result.spec.derived:
            right_of_first[made_case_id(result)] = int(result.outcome == "agree")
    pairs = []
    for result in other:
        is_right = right_of_first.get(made_case_id(result))
        if result.outcome in JUDGED and is_right is not None:
            pairs.append((result.spec.cluster_id, (is_right, int(result.outcome == "agree"))))
    return estimate_bias(summed(pairs))


def _points_text(change: Estimate, is_short: bool) -> str:  # noqa: FBT001 - a private helper
    """A difference of shares, in points of 100."""
    if change.value is None:
        return NONE
    text = f"{100 * change.value:+.1f}" if change.value else "0.0"
    if is_short or change.lower is None or change.upper is None:
        return text
    return f"{text} ({100 * change.lower:.1f} to {100 * change.upper:.1f})"


def draw_table(
    canvas: Canvas, table: Sequence[tuple[str, ...]], left_out: int, addresses: Sequence[str]
) -> None:
    """A name and figures in each row, the titles first; on narrow screens the figures are below the
    name. `addresses` are what the rows below the titles lead to.
    """
    is_narrow = canvas.is_narrow
    size = 10.5 if is_narrow else 12.5
    left = float(canvas.margin)
    widths = []
    for column in zip(*(row[1:] for row in table), strict=True):
        widths.append(max(text_width(text, size, bold=True) for text in column))
    name_room = 0.0 if is_narrow else canvas.room - sum(widths) - 16 * len(widths)
    gap = (canvas.room - name_room - sum(widths)) / len(widths)
    canvas.bottom += 16
    names = canvas.names([row[0] for row in table], (name_room or canvas.room) - _KEY, size + 0.5)
    for number, (name, row) in enumerate(zip(names, table, strict=True)):
        colour = "ink" if number else "muted"
        with canvas.leading_to(addresses[number - 1] if number else ""):
            canvas.bottom += 20
            canvas.text(left + (_KEY if number else 0), canvas.bottom, name, size + 0.5, colour)
            if number:
                canvas.text(left, canvas.bottom, f"{number}", size, _colour(number), bold=True)
            if is_narrow:
                canvas.bottom += 16
            right = left + name_room
            for width, text in zip(widths, row[1:], strict=True):
                right += gap + width
                canvas.text(right, canvas.bottom, text, size, colour, anchor="end")
            canvas.bottom += 5
        canvas.line((left, canvas.bottom), (left + canvas.room, canvas.bottom), "line")
    if left_out:
        canvas.bottom += 4
        canvas.paragraph(f"and {left_out:,} more", 12, "muted")
