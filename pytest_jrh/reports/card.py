"""The judge cards of a session: of each judge the decision, what it misses and what it flags by
mistake, now and in the baseline, and in a few words what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pytest_jrh.core.text import counted
from pytest_jrh.reports.blocks import Cell, Row, Table
from pytest_jrh.stats import figures
from pytest_jrh.stats.figures import percent, sections
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.statistics import accuracy_of, bias_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Pair
    from pytest_jrh.stats.decision import Decision
    from pytest_jrh.stats.statistics import Statistics


# So many rows still fit a glance.
MOST_ROWS = 8


@dataclass(frozen=True, slots=True)
class RightShare:
    """On how many cases of one kind a judge is right; `before` in the baseline, where compared."""

    now: Estimate
    before: Estimate | None = None

    @property
    def wrong(self) -> int:
        """How many cases of this kind are judged wrong."""
        return self.now.n - (self.now.count or 0)

    @property
    def wrong_before(self) -> Estimate | None:
        """The share that the baseline's judge got wrong."""
        return None if self.before is None else self.before.complement()

    @property
    def text(self) -> str:
        """How many of how many are right, with what it was before: `7/10 (was 10/10)`."""
        return _counts(self.now, self.before)

    @property
    def wrong_text(self) -> str:
        """How many of how many are wrong, with what it was before."""
        return _counts(self.now.complement(), self.wrong_before)


def _counts(now: Estimate, before: Estimate | None) -> str:
    if not now.n:
        return figures.NONE
    text = f"{now.count:,}/{now.n:,}"
    return text if before is None else f"{text} (was {before.count:,}/{before.n:,})"


@dataclass(frozen=True, slots=True)
class CardRow:
    """A rubric, `all` of them, or of an ordinal judge a level of the scale.

    `found` are the violated cases that the judge calls so, and `passed` the satisfied ones that it
    leaves alone. Of an ordinal judge `found` are the cases of the level with exactly that score,
    and `bias` is how far off its scores are on them, in levels.
    """

    name: str
    found: RightShare
    passed: RightShare | None = None
    bias: Estimate | None = None

    @property
    def shares(self) -> list[RightShare]:
        """Its shares of cases of one kind."""
        return [self.found] if self.passed is None else [self.found, self.passed]

    @property
    def cases(self) -> int:
        """How many cases have a verdict."""
        return sum(share.now.n for share in self.shares)

    @property
    def wrong(self) -> int:
        """How many of them are judged wrong."""
        return sum(share.wrong for share in self.shares)

    @property
    def lowest(self) -> float:
        """The lower one of its shares, by which rows are sorted."""
        values = [share.now.value for share in self.shares if share.now.value is not None]
        return min(values, default=2)


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """What there is to say of one judge of one suite; `judge` is empty for a suite's only one.

    `rows` are the rubrics, of an ordinal judge the levels, the worst first; of a single rubric
    there is only the `total`. `kappa` is its agreement with the labels, weighted for an ordinal
    judge.
    """

    suite: str
    judge: str
    label: str
    mode: Mode
    total: CardRow
    rows: tuple[CardRow, ...]
    kappa: Estimate = field(default_factory=Estimate)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it misses, and its false alarms; of an ordinal judge how often it is exact, and its
        bias. Of what there is no case, nothing.
        """
        total = self.total
        if self.mode == "ordinal":
            wrong = _wrong_sentence("Wrong level in", total.found, "case")
            sentences = [wrong, _bias(total.bias)]
        else:
            missed = _wrong_sentence("Misses", total.found, "violation")
            sentences = [missed, _false_alarms(total.passed)]
        return tuple(filter(None, sentences))

    @property
    def table(self) -> Table:
        """The worst rows with their shares as text, and the total last."""
        rows = [table_row(row, "rubric") for row in self.rows[:MOST_ROWS]]
        rows.append(table_row(self.total, "total" if self.rows else "rubric"))
        first, titles = "rubric", ("found", "false alarms")
        if self.mode == "ordinal":
            first, titles = "level", ("exact", "bias")
        caption = ""
        if len(self.rows) > MOST_ROWS:
            caption = f"The worst {MOST_ROWS} of {counted(len(self.rows), first)}:"
        return Table(first, titles, tuple(rows), caption)


def table_row(row: CardRow, level: Literal["rubric", "total"]) -> Row:
    """A row of a card as that of a table."""
    share = row.found
    worse = share.before is not None and (share.now.value or 0) < (share.before.value or 0)
    cells = [Cell(share.text, weight="bad" if worse else "")]
    if row.passed is not None:
        cells.append(Cell(row.passed.wrong_text))
    if row.bias is not None:
        cells.append(Cell(figures.decimal(row.bias.value)))
    return Row(row.name, tuple(cells), level)


def _wrong_sentence(beginning: str, share: RightShare, unit: str) -> str:
    """How many cases of one kind are judged wrong; nothing where there is none of it."""
    if not share.now.n:
        return ""
    number = f"{share.wrong:,}" if share.wrong else "none"
    return f"{beginning} {number} of {counted(share.now.n, unit)} {_share_of_wrong(share)}."


def _false_alarms(passed: RightShare | None) -> str:
    if passed is None or not passed.now.n:
        return ""
    alarms = counted(passed.wrong, "false alarm") if passed.wrong else "No false alarm"
    return f"{alarms} on {counted(passed.now.n, 'clean run')} {_share_of_wrong(passed)}."


def _bias(bias: Estimate | None) -> str:
    if bias is None or bias.value is None:
        return ""
    size = figures.decimal(abs(bias.value))
    interval = figures.range_text(bias, "number")
    between = "" if interval == figures.NONE else f" ({interval})"
    if float(size) == 0:
        return f"Scores are neither too high nor too low on average{between}."
    return (
        f"Scores are {size} levels too {'high' if bias.value > 0 else 'low'} on average{between}."
    )


def _share_of_wrong(share: RightShare) -> str:
    """The share that is wrong with its interval, and how many were before, in parentheses."""
    wrong = share.now.complement()
    text = percent(wrong.value, 0)
    if wrong.lower is not None and wrong.upper is not None:
        text += f", {figures.range_text(wrong, digits=0)}"
    text = f"({text})"
    before = share.wrong_before
    if before is None:
        return text
    of = "" if before.n == share.now.n else f" of {before.n:,}"
    return f"{text}, before {before.count:,}{of}"


def judge_cards(session: Session) -> list[JudgeCard]:
    """A card for every judge with a verdict, by suite, the one with the best kappa first."""
    cards = []
    by_suite: dict[str, list[figures.Section]] = {}
    for section in sections(session.table):
        by_suite.setdefault(section.suite, []).append(section)
    for suite, of_suite in by_suite.items():
        of_suite.sort(key=_agreement, reverse=True)
        decision = session.decisions.get(suite)
        for section in of_suite:
            if section.total.counts.n:
                cards.append(_card(section, decision))
    return cards


def _kappa(section: figures.Section) -> Estimate:
    name = "weighted_kappa" if section.mode == "ordinal" else "kappa"
    return section.total.figures.get(name, Estimate())


def _agreement(section: figures.Section) -> float:
    value = _kappa(section).value
    return -2 if value is None else value


def _card(section: figures.Section, decision: Decision | None) -> JudgeCard:
    pairs = []
    if decision is not None and decision.comparison is not None:
        for pair in decision.comparison.pairs:
            if pair.now.judge == section.judge:
                pairs.append(pair)
    total = _row("all", section.total, pairs)
    rows: list[CardRow] = []
    if section.mode == "ordinal":
        rows += _levels(section.total, pairs)
    else:
        for row in section.rubrics:
            of_rubric = [pair for pair in pairs if pair.now.spec.rubric_id == row.rubric]
            rows.append(_row(row.name, row.statistics, of_rubric))
    if len(rows) == 1:
        [total] = rows
    rows.sort(key=lambda row: row.lowest)
    return JudgeCard(
        suite=section.suite,
        judge=section.judge,
        label=section.label,
        mode=section.mode,
        total=total,
        rows=tuple(rows) if len(rows) > 1 else (),
        kappa=_kappa(section),
    )


def _row(name: str, statistics: Statistics, pairs: Sequence[Pair]) -> CardRow:
    if statistics.mode == "ordinal":
        found = RightShare(statistics.figures["exact"], _before(pairs))
        return CardRow(name, found, bias=statistics.figures["bias"])
    violated = [pair for pair in pairs if pair.now.label == 1]
    satisfied = [pair for pair in pairs if pair.now.label == 0]
    return CardRow(
        name,
        RightShare(statistics.figures["recall"], _before(violated)),
        RightShare(statistics.figures["false_positive_rate"].complement(), _before(satisfied)),
    )


def lowest_share(statistics: Statistics) -> float:
    """By which rubrics are sorted, the worst first; see `CardRow.lowest`."""
    return _row("", statistics, ()).lowest


def _before(pairs: Sequence[Pair]) -> Estimate | None:
    """On how many compared cases the judge of the baseline was right."""
    if not pairs:
        return None
    right = sum(pair.before.score == pair.now.label for pair in pairs)
    return Estimate(right / len(pairs), count=right, n=len(pairs))


def _levels(total: Statistics, pairs: Sequence[Pair]) -> Iterator[CardRow]:
    """The levels of the scale that have a case."""
    by_level: dict[int, list[CaseResult]] = {}
    for result in total.judged:
        if result.label is not None:
            by_level.setdefault(result.label, []).append(result)
    for level, results in sorted(by_level.items()):
        of_level = [pair for pair in pairs if pair.now.label == level]
        found = RightShare(accuracy_of(results), _before(of_level))
        bias = bias_of(results, total.matrices["ordinal"].labels)
        yield CardRow(f"level {level}", found, bias=bias)
