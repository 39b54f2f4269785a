"""What judges miss, their false alarms, and what probes turned: in counts beside what was so
before, and in sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from pytest_jrh.core import counted, frozen, grouped_by, listed, one_line, out_of
from pytest_jrh.core.scales import NO_SUCH, NOT_APPLICABLE, most_frequent
from pytest_jrh.reports.blocks import Block, Cell, Level, Row, Section, Sentence, Table, Weight
from pytest_jrh.reports.session import Session
from pytest_jrh.stats import figures
from pytest_jrh.stats.figures import NONE, decimal, percent, range_text
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.limits import SUPPOSED_FLICKER, ProbeRow, ProbeTable
from pytest_jrh.stats.statistics import (
    FALSE_ALARMS,
    PASSED_OVER,
    Statistics,
    called,
    labels_for,
    statistics_of,
)
from pytest_jrh.stats.verdicts import Rows, Verdicts

# So many rows still fit a glance.
_MOST_ROWS = 8
_MOST_SLICES = 5
_ALL = "all"
_MOST_OTHERS = 2
# Of one judge each is a row.
_MOST_CLASSES = 4
# Of shares in bars: what a sum in another order, or on another machine, leaves as it is.
_DIGITS = 6


class Share(NamedTuple):
    """How many verdicts are wrong, of how many; and how many were wrong `before` of those that are
    compared with the baseline, None where none is. `tally` says it in words, and `labels` how many
    would tell what is missed to within 10 points, where labels have weights.
    """

    wrong: Estimate
    before: tuple[int, int] | None = None
    tally: str = ""
    labels: str = NONE

    @property
    def cell(self) -> Cell:
        """The count, with its share as a bar."""
        wrong = self.wrong
        if not wrong.n:
            return Cell(NONE)
        interval = before = None
        weight: Weight = ""
        if wrong.lower is not None and wrong.upper is not None:
            interval = (round(wrong.lower, _DIGITS), round(wrong.upper, _DIGITS))
        share = round(wrong.value or 0.0, _DIGITS)
        if self.before is not None:
            were_wrong, compared = self.before
            before = round(were_wrong / compared, _DIGITS)
            weight = "bad" if share > before else ""
        text = out_of(wrong.count, wrong.n) if wrong.count else wrong.fraction
        return Cell(text, "", "", weight, share, interval, before)

    @property
    def cell_before(self) -> Cell:
        """The count before, and of how many where the baseline lacks some of the cases."""
        if self.before is None:
            return Cell(NONE)
        were_wrong, compared = self.before
        of_some = "" if compared == self.wrong.n else f" of {compared:,}"
        return Cell(f"{were_wrong:,}{of_some}")


@frozen
class _Counts:
    """What a judge gets wrong in the cases of a rubric, of a level, of a class, or of all, by what
    mistakes of a kind are called; there is a `bias` where answers are levels, and where they are
    classes the `others` that a judge names instead.
    """

    name: str
    about: tuple[str, str, str]
    shares: Mapping[str, Share]
    bias: Estimate | None = None
    others: str = ""

    @property
    def worst(self) -> float:
        """The largest of its shares, by which rows are sorted."""
        return max(share.wrong.value or 0 for share in self.shares.values())


def count_blocks(session: Session, suite: str, *, bars: bool) -> Iterator[Block]:
    """What is missed and what is a false alarm: of several judges a row each, of one its rubrics,
    or the levels of its scale; what probes turned, alone where nothing else is wrong.
    """
    judged = [section for section in session.sections_of(suite) if section.total.counts.n]
    probes = [table for table in session.probes if table.suite == suite]
    has_matrix = probes and (bars or len(judged) != 1)
    is_right = not any(section.total.counts.disagree for section in judged)
    if has_matrix and is_right and session.word == "FAIL":
        yield _turned_table(probes)
        return
    if len(judged) > 1:
        yield _judges_table(session, judged)
    elif judged:
        section = judged[0]
        total = _counts(session, section, section.total, _ALL)
        wrong = section.total.counts.disagree
        # Of a case that is looked at again the headline says it all, and what is read first.
        is_alone = session.is_part and 1 in (wrong, section.total.counts.n)
        if bars or (wrong and not is_alone):
            rows = []
            if not section.scale.is_ordered:
                for of_rubric in section.rubrics:
                    rows.append(_counts(session, section, of_rubric, of_rubric.name))
            elif not any(section.total.judged.weight.names):
                by_level = section.total.judged.grouped("label")
                for level, verdicts in sorted(by_level.items()):
                    name = NO_SUCH if level == NOT_APPLICABLE else f"level {level}"
                    rows.append(_counts(session, section, statistics_of(verdicts), name))
            rows.sort(key=lambda row: -row.worst)
            has_classes = section.scale.has_classes
            if len(rows) != 1 or not has_classes:
                first = "level" if section.scale.is_ordered else "rubric"
                yield _counts_table(first, [*rows, total] if len(rows) > 1 else rows or [total])
            if has_classes:
                of_classes = sorted(_class_rows(session, section), key=lambda row: -row.worst)
                yield _counts_table("class", of_classes)
        elif not is_alone:
            # Where nothing is wrong: `0 of 25 violations missed`.
            tallies = [share.tally for share in total.shares.values() if share.wrong.n]
            yield Sentence(", ".join(tallies))
    if has_matrix:
        yield _turned_table(probes)
        return
    for table in probes:
        if table.is_finding:
            yield Sentence(_turned_sentence(table, session.probes), "warning")


def slice_tables(session: Session, suite: str) -> Iterator[Table]:
    """What is wrong by the values of each field that tells figures apart, the worst first."""
    judged = session.sections_of(suite)
    for section in judged:
        for key, of_key in session.slices[suite, section.judge].items():
            rows = []
            for statistics in of_key.rubrics:
                name = statistics.name
                rows.append(_counts(session, section, statistics, name, _MOST_CLASSES))
            if section.total.counts.disagree:
                first = f"{key} [{section.judge}]" if len(judged) > 1 else key
                if len(rows) > _MOST_SLICES:
                    # Not all are in the terminal.
                    first += f" ({len(rows)} rows)"
                yield replace(_counts_table(first, rows), most=_MOST_SLICES)


def _compared(session: Session, suite: str, judged: Verdicts) -> Verdicts:
    """Those of some verdicts of a suite that are compared with the baseline."""
    decision = session.decisions.get(suite)
    if decision is None or decision.comparison is None:
        return judged.where(slice(0))
    return decision.comparison.compared.shared(judged)


def _class_rows(session: Session, section: figures.Section) -> Iterator[_Counts]:
    """The classes of a judge's scale."""
    judged = section.total.judged
    for of_class in section.scale.classes:
        wrong = section.total.mistakes(of_class)
        cases = judged.where(judged.label.equals(of_class.answer))
        answers = called(cases.where(cases.wrong))
        others = listed([f"{word} {number:,}" for word, number in answers.items()], _MOST_OTHERS)
        before = _were_wrong(_compared(session, section.suite, cases))
        if wrong.n:
            name, about = one_line(of_class.word), (section.suite, section.judge, "")
            yield _Counts(name, about, {"wrong": Share(wrong, before)}, others=others or NONE)


def _counts(
    session: Session,
    section: figures.Section,
    statistics: Statistics,
    name: str,
    most_classes: int = 0,
) -> _Counts:
    """What a judge gets wrong in these cases; of classes, where there are no more than so many, in
    the cases of each.
    """
    about = (section.suite, section.judge, statistics.rubric)
    compared = _compared(session, section.suite, statistics.judged)
    scale = statistics.scale
    shares = {}
    classes = scale.classes
    if scale.is_ordered:
        classes = classes[:1]
    elif scale.has_classes:
        wrong = statistics.accuracy.complement()
        tally = f"{out_of(wrong.count or 0, wrong.n, 'case')} wrong"
        shares["wrong"] = Share(wrong, _were_wrong(compared), tally)
        classes = classes if len(classes) <= most_classes else ()
    for of_class in classes:
        wrong, of_cases = statistics.mistakes(of_class), compared
        if not scale.is_ordered:
            of_cases = compared.where(compared.case_class.equals(of_class))
        tally, labels = of_class.tally(wrong.count or 0, wrong.n), NONE
        if of_class.figure == "recall" and wrong.count is None and wrong.lower is not None:
            labels = f"{labels_for(wrong, 0.2):,} labels"
        was_none = of_cases.before.each(
            lambda before: most_frequent(before or ()) == NOT_APPLICABLE
        )
        is_apart = of_class.figure == FALSE_ALARMS and PASSED_OVER in statistics.figures
        before = _were_wrong(of_cases, ~was_none if is_apart else slice(None))
        shares[of_class.mistakes] = Share(wrong, before, tally, labels)
        if is_apart:
            # What is called n/a is no false alarm.
            passed_over = statistics.figures[PASSED_OVER]
            title = f"{of_class.word}, called {NO_SUCH}"
            tally = f"{title}: {passed_over.count or 0:,} of {passed_over.n:,}"
            shares[title] = Share(passed_over, _were_wrong(of_cases, was_none), tally)
    if unscored := statistics.counts.unscored:
        cases = statistics.counts.n + unscored
        share = Estimate(unscored / cases, count=unscored, n=cases)
        shares["no verdict"] = Share(share, tally=f"{share.fraction} cases without a verdict")
    return _Counts(name, about, shares, statistics.figures.get("bias"))


def _were_wrong(compared: Verdicts, rows: Rows = slice(None)) -> tuple[int, int] | None:
    """How many of some of these rows were wrong before, of how many; None where there are none."""
    were_right = compared.was_right[rows]
    number = len(were_right)
    return (number - int(were_right.sum()), number) if number else None


def _counts_table(first: str, rows: Sequence[_Counts]) -> Table:
    """A table of counts; what was wrong before stands beside what changed, and what there is no
    case of has no column.
    """
    columns = []
    for title in dict.fromkeys(chain.from_iterable(row.shares for row in rows)):
        shares = [row.shares.get(title, Share(Estimate())) for row in rows]
        columns.append((title, [share.cell for share in shares]))
        columns.append(("labels for +-10", [Cell(share.labels) for share in shares]))
        if any(share.before and share.before[0] != share.wrong.count for share in shares):
            columns.append(("before", [share.cell_before for share in shares]))
    biases = [Cell(decimal(row.bias.value)) for row in rows if row.bias is not None]
    others = [Cell(row.others) for row in rows if row.others]
    columns += [("bias", biases), ("judged as", others)]
    titles, shown = [], []
    for title, cells in columns:
        if any(cell.text != NONE for cell in cells):
            titles.append(title)
            shown.append(cells)
    table_rows = []
    for row, *row_cells in zip(rows, *shown, strict=True):
        level: Level = "total" if row.name == _ALL else "rubric"
        table_rows.append(Row(row.name, tuple(row_cells), level, row.about))
    return Table(first, tuple(titles), tuple(table_rows), most=_MOST_ROWS)


def more_labels(statistics: Statistics) -> str:
    """How many labels more would halve the widest interval of what a judge gets wrong."""
    widths = {}
    for of_class in statistics.scale.classes:
        wrong = statistics.mistakes(of_class)
        if wrong.lower is not None and wrong.upper is not None:
            widths[of_class.mistakes] = wrong.upper - wrong.lower
    if not widths:
        return ""
    widest = max(widths, key=widths.__getitem__)
    return (
        f" {3 * statistics.counts.n:,} more labels, drawn like these, would halve the widest "
        f'interval (the interval of "{widest}").'
    )


def _judges_table(session: Session, judged: Sequence[figures.Section]) -> Table:
    """A row for each judge, the worst one first, or the best one where nothing is decided."""

    def place(section: figures.Section) -> float:
        kappa = section.total.kappa[1].value
        if kappa is None:
            return 2
        return kappa if session.decisions else -kappa

    rows = []
    for section in sorted(judged, key=place):
        name = section.judge or section.label
        rows.append(_counts(session, section, section.total, name, _MOST_CLASSES))
    return _counts_table("judge", rows)


# ---- Probes

_PROBE_TITLES = ("n", "misled", "rate", "interval", "towards")
_PROBE_NOTE = (
    "`misled` counts verdicts that are right on the unchanged case, but wrong on the changed one. "
    "Each row has its own 95% interval."
)


def probe_blocks(tables: Sequence[ProbeTable]) -> Iterator[Block]:
    """What probes found, for each suite and judge: findings, and the table with their variants;
    last what one has to know to read them.
    """
    for of_judge in grouped_by(tables, "suite", "judge").values():
        weight: Weight = ""
        rows: list[Row] = []
        for table in of_judge:
            if table.is_finding:
                weight = "warning"
            rows.append(Row(table.probe, _probe_cells(table.total)))
            rows += [Row(row.variant, _probe_cells(row), "variant") for row in table.rows]
        parts: list[Block] = [Sentence(text, weight) for text in finding_sentences(of_judge)]
        parts.append(Table("probe", _PROBE_TITLES, tuple(rows)))
        heading = _heading(of_judge[0], tables)
        yield Section(f"Probes: {heading}" if heading else "Probes", tuple(parts))
    if any(table.total.turned and not table.flicker.n for table in tables):
        text = (
            "Only repeats show how often a verdict changes by chance, so set `repeats: 3`. Here, "
            f"{SUPPOSED_FLICKER:.0%} is assumed."
        )
        yield Sentence(text, "muted")
    if tables:
        yield Sentence(_PROBE_NOTE, "muted")


def finding_sentences(tables: Sequence[ProbeTable]) -> list[str]:
    """One sentence for each finding, and one where there is none."""
    sentences = []
    for table in tables:
        if not table.is_finding:
            continue
        rate = table.total.rate
        text = _turned_sentence(table, tables)
        text += f" ({percent(rate.value)}, 95% interval {range_text(rate)})"
        if towards := _towards(table.total):
            text += f"; the misled verdicts are: {towards}"
        if table.flicker.value is not None:
            text += f"; two verdicts on one case differ in {percent(table.flicker.value)} anyway"
        sentences.append(f"{text}.")
    if not sentences and any(table.total.n for table in tables):
        return ["No probe misled the judge more often than chance explains (Holm's method at 5%)."]
    return sentences


def _turned_sentence(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    """What a probe turned, one of all `tables`."""
    heading = _heading(table, tables)
    of, total = f"{heading}: " if heading else "", table.total
    return (
        f"{of}{table.probe} misled the judge in {total.turned:,} of "
        f"{counted(total.n, 'verdict')} that were right without the probe"
    )


def _heading(table: ProbeTable, tables: Sequence[ProbeTable]) -> str:
    """The suite and the judge of a table, where there are several; else nothing."""
    parts = []
    if len({other.suite for other in tables}) > 1:
        parts.append(f"suite {table.suite}")
    if table.judge and len({other.judge for other in tables}) > 1:
        parts.append(f"judge {table.judge}")
    return ", ".join(parts)


def _probe_cells(row: ProbeRow) -> tuple[Cell, ...]:
    rate = row.rate
    turned = NONE if rate.value is None else f"{row.turned:,}"
    texts = (f"{row.n:,}", turned, percent(rate.value), range_text(rate), _towards(row) or NONE)
    return tuple(map(Cell, texts))


def _towards(row: ProbeRow) -> str:
    if row.shift is not None:
        return f"{row.shift:+.2f} levels" if row.turned else ""
    return ", ".join(f"{number:,} {word}" for word, number in row.towards.items())


def _turned_table(tables: Sequence[ProbeTable]) -> Table:
    """What each probe turned of the right verdicts of each judge of a suite."""
    probes = dict.fromkeys(table.probe for table in tables)
    rows = []
    for judge, of_judge in grouped_by(tables, "judge").items():
        cells = dict.fromkeys(probes, Cell(NONE))
        for table in of_judge:
            weight: Weight = "warning" if table.is_finding else ""
            cells[table.probe] = Cell(table.total.rate.fraction, weight=weight)
        about = (tables[0].suite, judge, "")
        rows.append(Row(judge or "the judge", tuple(cells.values()), about=about))
    titles = tuple(probe.replace("_", " ") for probe in probes)
    return Table("misled verdicts", titles, tuple(rows))
