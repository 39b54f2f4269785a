"""The answer that every report begins with: the decision, what is missed and what is a false alarm,
whether the labels can be trusted, the cases to read first, and what to do next; and the card of
each judge that it is made of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from pytest_jrh.core.documents import listed
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import WEIGHTS, Cases, Cell, Row, Sentence, Table
from pytest_jrh.reports.gate import decision_blocks, headline, update_blocks
from pytest_jrh.reports.grounds import trust_sentence
from pytest_jrh.reports.probes import WHAT_PROBES_DO, finding_blocks
from pytest_jrh.stats import figures
from pytest_jrh.stats.figures import percent, sections
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import accuracy_of, bias_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.reports.blocks import Block, Weight
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
    def complement(self) -> RightShare:
        """The share that is wrong."""
        before = None if self.before is None else self.before.complement()
        return RightShare(self.now.complement(), before)

    @property
    def text(self) -> str:
        """How many of how many, with what it was before: `7/10 (was 10/10)`."""
        if not self.now.n:
            return figures.NONE
        text = f"{self.now.count:,}/{self.now.n:,}"
        if self.before is None:
            return text
        return f"{text} (was {self.before.count:,}/{self.before.n:,})"


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
        found, passed, bias = self.total.found, self.total.passed, self.total.bias
        beginning, unit = "Misses", "violation"
        if self.mode == "ordinal":
            beginning, unit = "Wrong level in", "case"
        sentences = []
        if found.now.n:
            number = f"{found.wrong:,}" if found.wrong else "none"
            of = counted(found.now.n, unit)
            sentences.append(f"{beginning} {number} of {of} {_share_of_wrong(found)}.")
        if passed is not None and passed.now.n:
            alarms = counted(passed.wrong, "false alarm") if passed.wrong else "No false alarm"
            of = counted(passed.now.n, "clean run")
            sentences.append(f"{alarms} on {of} {_share_of_wrong(passed)}.")
        if bias is not None and bias.value is not None:
            size = figures.decimal(abs(bias.value))
            direction = f"{size} levels too {'high' if bias.value > 0 else 'low'}"
            if float(size) == 0:
                direction = "neither too high nor too low"
            interval = figures.range_text(bias, "number")
            between = "" if interval == figures.NONE else f" ({interval})"
            sentences.append(f"Scores are {direction} on average{between}.")
        return tuple(sentences)

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
        cells.append(Cell(row.passed.complement.text))
    if row.bias is not None:
        cells.append(Cell(figures.decimal(row.bias.value)))
    return Row(row.name, tuple(cells), level)


def _share_of_wrong(share: RightShare) -> str:
    """The share that is wrong with its interval, and how many were before, in parentheses."""
    wrong, before = share.complement.now, share.complement.before
    text = percent(wrong.value, 0)
    if wrong.lower is not None and wrong.upper is not None:
        text += f", {figures.range_text(wrong, digits=0)}"
    text = f"({text})"
    if before is None:
        return text
    of = "" if before.n == wrong.n else f" of {before.n:,}"
    return f"{text}, before {before.count:,}{of}"


def judge_cards(session: Session) -> list[JudgeCard]:
    """A card for every judge with a verdict, by suite, the one with the best kappa first."""
    by_suite: dict[str, list[JudgeCard]] = {}
    for section in sections(session.table):
        cards = by_suite.setdefault(section.suite, [])
        if section.total.counts.n:
            cards.append(_card(section, session.decisions.get(section.suite)))
    for cards in by_suite.values():
        cards.sort(
            key=lambda card: -2 if card.kappa.value is None else card.kappa.value, reverse=True
        )
    return list(chain.from_iterable(by_suite.values()))


def _card(section: figures.Section, decision: Decision | None) -> JudgeCard:
    pairs = []
    if decision is not None and decision.comparison is not None:
        pairs = [pair for pair in decision.comparison.pairs if pair.now.judge == section.judge]
    total = _row("all", section.total, pairs)
    rows: list[CardRow] = []
    if section.mode == "ordinal":
        by_level: dict[int, list[CaseResult]] = {}
        for result in section.total.judged:
            if result.label is not None:
                by_level.setdefault(result.label, []).append(result)
        for level, results in sorted(by_level.items()):
            of_level = [pair for pair in pairs if pair.now.label == level]
            found = RightShare(accuracy_of(results), _before(of_level))
            bias = bias_of(results, section.total.matrices["ordinal"].labels)
            rows.append(CardRow(f"level {level}", found, bias=bias))
    else:
        for row in section.rubrics:
            of_rubric = [pair for pair in pairs if pair.now.spec.rubric_id == row.rubric]
            rows.append(_row(row.name, row, of_rubric))
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
        kappa=section.total.figures.get(
            "weighted_kappa" if section.mode == "ordinal" else "kappa", Estimate()
        ),
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


WORST_TITLE = "wrong, worst first"
MOST_WORST = 3
# More than a person reads at once.
_MOST_READ = 30
_LONGEST_REASON = 160
_LONGEST_RUBRIC = 40


def worst_results(session: Session) -> list[CaseResult]:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; then by how far off the verdict is, how many judges are
    wrong, and how many repeats; of many cases those of the rubric with the most mistakes. Cases of
    probes are left out.
    """
    news: set[str] = set()
    flickered: set[str] = set()
    for decision in session.decisions.values():
        news.update(decision.regressions, decision.new_wrong)
        flickered.update(decision.flickered)

    wrong = []
    for result in session.results:
        if result.outcome == "disagree" and not result.spec.derived:
            wrong.append(result)
    judges = Counter(map(made_case_id, wrong))
    mistakes: Counter[str] = Counter()
    if len(judges) > _MOST_READ:
        mistakes.update(result.spec.rubric_id for result in wrong)

    def order(result: CaseResult) -> tuple[bool, bool, int, int, float, int]:
        right = sum(score == result.label for score in result.all_scores)
        distance = 1
        if result.score is not None and result.label is not None:
            distance = abs(result.score - result.label)
        return (
            result.case_id not in news,
            result.case_id in flickered,
            -distance,
            -judges[made_case_id(result)],
            right / (len(result.all_scores) or 1),
            -mistakes[result.spec.rubric_id],
        )

    return sorted(wrong, key=order)


def answer_blocks(
    session: Session,
    *,
    brief: bool = False,
    page: str = "",
    explained: Collection[str] = (),
) -> list[Block]:
    """The answer in the order of every report: of each suite the decision, what is missed and what
    is a false alarm, what the gate holds against it beside that; what probes turned; whether the
    labels can be trusted; the cases to read first; where the report is; the next step. With `brief`
    the labels and a finding of a probe are a line each. `page` is the HTML report, where there is
    one. No case is named where all are `explained` above.
    """
    blocks: list[Block] = [*topics.extent_blocks(session)]
    for suite, cards in cards_by_suite(session).items():
        of = f"{suite}: " if len(session.decisions) > 1 else ""
        title, weight = suite_title(suite, cards, session)
        if title:
            blocks.append(Sentence(f"{of}{title}", weight))
        blocks += suite_blocks(suite, cards, session)
    blocks += finding_blocks(session.probes, brief=brief)
    blocks += trust_blocks(session, brief=brief)
    if not {result.case_id for result in worst_results(session)} <= {*explained}:
        blocks += worst_cases(session)
    if page:
        blocks.append(Sentence(f"Report: {page}"))
    return [*blocks, *next_blocks(session)]


def cards_by_suite(session: Session) -> dict[str, list[JudgeCard]]:
    """The cards of each suite; none of one in which no case has a verdict."""
    by_suite: dict[str, list[JudgeCard]] = {suite: [] for suite in session.decisions}
    for card in judge_cards(session):
        by_suite.setdefault(card.suite, []).append(card)
    return by_suite


def session_title(session: Session) -> str:
    """The decision about all suites in a few words: the worst one's, where there are several."""
    titles = []
    for suite, cards in cards_by_suite(session).items():
        title, _ = suite_title(suite, cards, session)
        if title:
            titles.append((suite, title))
    if not titles:
        return "No case was judged"
    if len(titles) == 1:
        return titles[0][1]
    for word in ("FAIL", "UNCLEAR"):
        suites = [suite for suite, decision in session.decisions.items() if decision.word == word]
        if suites:
            return f"{word}: {listed(suites, _MOST_SUITES)}"
    return f"PASS: {counted(len(titles), 'suite')}" if session.decisions else "Judges compared"


_MOST_SUITES = 3


def suite_title(suite: str, cards: Sequence[JudgeCard], session: Session) -> tuple[str, Weight]:
    """The decision about a suite in a line, and its weight; of a table without one what the judges
    come to. Empty where there is nothing to say.
    """
    decision = session.decisions.get(suite)
    if decision is not None:
        return headline(decision), WEIGHTS[decision.word]
    if not cards:
        return "", ""
    if len(cards) > 1:
        return f"{counted(len(cards), 'judge')} compared", "strong"
    total = cards[0].total
    if total.wrong:
        return f"The judge is wrong in {total.wrong:,} of {counted(total.cases, 'case')}", "strong"
    return f"The judge agrees with all {counted(total.cases, 'label')}", "strong"


def agreement_sentence(cards: Sequence[JudgeCard]) -> str:
    """Which judge of several agrees best with the labels; empty without a single best one."""
    best, second, last = cards[0], cards[1], cards[-1]
    if best.kappa.value is None:
        return ""
    kappa = figures.ranged(figures.decimal(best.kappa.value), best.kappa, "number")
    if best.kappa.value == last.kappa.value:
        return f"All agree with the labels equally: kappa {kappa}."
    if best.kappa.value == second.kappa.value:
        return ""
    return f"{one_line(best.judge)} agrees best with the labels: kappa {kappa}."


def suite_blocks(suite: str, cards: Sequence[JudgeCard], session: Session) -> list[Block]:
    """What there is to say of a suite below its title."""
    decision = session.decisions.get(suite)
    blocks: list[Block] = [] if decision is None else decision_blocks(decision)
    if len(cards) > 1:
        if sentence := agreement_sentence(cards):
            blocks.append(Sentence(sentence))
        if any(table.suite == suite and table.is_finding for table in session.probes):
            blocks.append(Sentence(WHAT_PROBES_DO))
        rows = []
        for card in cards:
            rows.append(replace(table_row(card.total, "rubric"), name=card.judge or card.label))
        blocks.append(Table("judge", cards[0].table.titles, tuple(rows)))
    else:
        for card in cards:
            blocks += map(Sentence, card.sentences)
    return blocks


def trust_blocks(session: Session, *, brief: bool = False) -> list[Block]:
    """Of each suite whether its labels can be trusted; with `brief` in a line."""
    blocks: list[Block] = []
    for suite in session.grounds:
        sentence, is_doubtful = trust_sentence(session, suite, brief=brief)
        if sentence:
            of = f"{suite}: " if len(session.grounds) > 1 else ""
            blocks.append(Sentence(f"{of}{sentence}", "warning" if is_doubtful else ""))
    return blocks


def doubt_blocks(session: Session) -> list[Block]:
    """What makes the figures of a session doubtful."""
    return [
        *finding_blocks(session.probes),
        *trust_blocks(session),
        *topics.not_shown_blocks(session),
        *topics.unsettled_blocks(session),
    ]


def worst_cases(session: Session) -> list[Cases]:
    """The cases to read first, one of a panel once; no list where no case is judged wrong."""
    wrong_judges: dict[str, list[CaseResult]] = {}
    for result in worst_results(session):
        wrong_judges.setdefault(made_case_id(result), []).append(result)
    named = []
    for results in wrong_judges.values():
        first = results[0]
        why = mistake(first)
        if reason := one_line(first.reasoning):
            judge = f"Judge {one_line(first.judge)}" if first.judge else "Judge"
            why = f"{why}. {judge}: {reason}"
        case = session.named(first.case_id)
        if first.judge:
            case = replace(case, title=session.title(replace(first, judge="")))
            why = f"{counted(len(results), 'judge')}, {why}"
        named.append(replace(case, why=shortened(why, _LONGEST_REASON)))
    return [Cases(WORST_TITLE, tuple(named), "bad", MOST_WORST)] if named else []


def mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    if result.outcome == "agree":
        return f"gave {result.scores_text}, which is right"
    if result.spec.target_score is not None or result.repeated:
        return f"gave {result.scores_text}, right is {result.label}"
    return "missed" if result.label else "false alarm"


def next_blocks(session: Session) -> list[Block]:
    """The one next step: to record what is missing, to update the baseline, or to read the cases
    that are judged wrong, to probe the judge again; to check labels, or keep the verdicts, where
    nothing is wrong.
    """
    if recording := topics.recording_blocks(session):
        return recording
    decisions = session.decisions.values()
    for decision in decisions:
        if update := update_blocks(decision):
            return update
    wrong_results = worst_results(session)
    wrong = {made_case_id(result) for result in wrong_results}
    if not wrong:
        return [Sentence(f"Next: {text}.") for text in _nothing_wrong(session)]
    cases, labels = f"the {len(wrong):,} cases", "wrong labels"
    if len(wrong) == 1:
        cases, labels = "the case", "a wrong label"
    rubrics = {result.spec.rubric_id for result in session.results}
    if len(wrong) > _MOST_READ and len(rubrics) > 1:
        [(rubric, _)] = Counter(result.spec.rubric_id for result in wrong_results).most_common(1)
        of_rubric = {
            made_case_id(result) for result in wrong_results if result.spec.rubric_id == rubric
        }
        name = shortened(one_line(rubric), _LONGEST_RUBRIC)
        cases = f"the {counted(len(of_rubric), 'case')} of {name} first"
        cases += f", of {len(wrong):,} that are wrong"
    if session.is_table:
        return [Sentence(f"Next: read {cases}, and correct the table where a label is wrong.")]
    what = "or fix the judge"
    # A part of a suite is not what a baseline is updated from.
    if any(decision.regressions for decision in decisions) and not topics.extent_blocks(session):
        what = "fix the judge, or accept its mistakes (--jrh-update-baseline)"
    return [Sentence(f"Next: read {cases}; reject {labels} (--jrh-review), {what}.")]


def _nothing_wrong(session: Session) -> Iterator[str]:
    """What is next where no verdict is wrong: that a judge is probed again, people check labels
    that are in doubt, or that the verdicts are kept for a gate; nothing where all is done.
    """
    turning = [table.probe for table in session.probes if table.is_finding]
    # The others are for all cases.
    is_part = any(decision.part for decision in session.decisions.values())
    if turning:
        yield (
            "read what turned the verdicts, change the judge, and probe it again with -k "
            f"{turning[0]}"
        )
    elif session.is_table or is_part or not session.table.overall.counts.n:
        return
    elif any(trust_sentence(session, suite)[1] for suite in session.grounds):
        yield "have people label cases without the answers, with --jrh-review=blind"
    elif not any(decision.active for decision in session.decisions.values()):
        yield (
            "keep these verdicts, so that a change of the judge shows, with --jrh-baseline=FILE "
            "--jrh-update-baseline"
        )
