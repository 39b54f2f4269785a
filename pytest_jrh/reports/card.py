"""The judge card: the answer that every report begins with. The decision; what each judge misses
and what it flags by mistake, now and in the baseline; whether the labels can be trusted; the cases
to read first; and what to do next.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.cases.ids import case_title
from pytest_jrh.core.documents import listed
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import Cases, Cell, Row, Sentence, Table
from pytest_jrh.reports.gate import (
    threshold_text,
    unseen_sentences,
    update_blocks,
)
from pytest_jrh.reports.grounds import trust_sentence
from pytest_jrh.reports.probes import WHAT_PROBES_DO, brief_findings, findings_first
from pytest_jrh.stats import figures
from pytest_jrh.stats.diagnosis import flaw_of_total
from pytest_jrh.stats.figures import percent, sections
from pytest_jrh.stats.formulas import Estimate
from pytest_jrh.stats.intervals import estimate_bias
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.statistics import accuracy_of, sums_by_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_jrh.core.model import CaseResult, Mode
    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Pair
    from pytest_jrh.stats.gate import GateDecision, Threshold
    from pytest_jrh.stats.statistics import Statistics


# So many rows still fit a picture, and a glance.
MOST_ROWS = 8
Word: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE", ""]
_WEIGHTS: Mapping[Word, Weight] = {
    "PASS": "good",
    "FAIL": "bad",
    "INCONCLUSIVE": "bad",
    "": "strong",
}


@dataclass(frozen=True, slots=True)
class RightShare:
    """On how many cases of one kind a judge is right.

    `before` is the same in the baseline, over the cases that are compared; None where none is.
    """

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
    and `bias` is how far off its scores are on them, in levels. `texts` are what its cases have in
    the columns of a table of cases.
    """

    name: str
    found: RightShare
    passed: RightShare | None = None
    bias: Estimate | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

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
    there is only the `total`. `title` says in a few words what is wrong with the judge, or what
    it came to, `flaw` what makes its verdicts worth nothing, and `failure` for what, and by how
    much, it fails the gate; both are empty where nothing does. `kappa` is its agreement with the
    labels, weighted for an ordinal judge.
    """

    suite: str
    judge: str
    label: str
    mode: Mode
    word: Word
    title: str
    flaw: str
    failure: str
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
        rows = [_table_row(row, "rubric") for row in self.rows[:MOST_ROWS]]
        rows.append(_table_row(self.total, "total" if self.rows else "rubric"))
        first, titles = "rubric", ("found", "false alarms")
        if self.mode == "ordinal":
            first, titles = "level", ("exact", "bias")
        caption = ""
        if len(self.rows) > MOST_ROWS:
            caption = f"The worst {MOST_ROWS} of {counted(len(self.rows), first)}:"
        return Table(first, titles, tuple(rows), caption)


def _table_row(row: CardRow, level: Literal["rubric", "total"]) -> Row:
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
    """A card for every judge with a verdict, in the order of the suites; of a suite's judges the
    one that agrees best with the labels first.
    """
    cards = []
    by_suite: dict[str, list[figures.Section]] = {}
    for section in sections(session.table):
        by_suite.setdefault(section.suite, []).append(section)
    for suite, of_suite in by_suite.items():
        of_suite.sort(key=_agreement, reverse=True)
        decision = session.decisions.get(suite)
        for section in of_suite:
            if section.total.counts.n:
                cards.append(_card(section, decision, session))
    return cards


def _kappa(section: figures.Section) -> Estimate:
    name = "weighted_kappa" if section.mode == "ordinal" else "kappa"
    return section.total.figures.get(name, Estimate())


def _agreement(section: figures.Section) -> float:
    value = _kappa(section).value
    return -2 if value is None else value


def _card(section: figures.Section, decision: GateDecision | None, session: Session) -> JudgeCard:
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
        for row in section.rows:
            if row.level == "rubric":
                of_rubric = [pair for pair in pairs if pair.now.spec.rubric_id == row.rubric]
                card_row = _row(row.name, row.statistics, of_rubric)
                rows.append(replace(card_row, texts={"rubric": row.rubric}))
    if len(rows) == 1:
        [total] = rows
    rows.sort(key=lambda row: row.lowest)
    word = _word(decision)
    flaw = _flaw_title(section, session)
    return JudgeCard(
        suite=section.suite,
        judge=section.judge,
        label=section.label,
        mode=section.mode,
        word=word,
        title=_title(section, total, word, flaw, session),
        flaw=flaw,
        failure="" if word in ("PASS", "") or decision is None else _failure_by(section, decision),
        total=total,
        rows=tuple(rows) if len(rows) > 1 else (),
        kappa=_kappa(section),
    )


def _row(name: str, statistics: Statistics, pairs: Sequence[Pair]) -> CardRow:
    if statistics.mode == "ordinal":
        found = RightShare(statistics.figures["exact"], _before(pairs))
        return CardRow(name, found, bias=statistics.figures["bias"])
    violated = [pair for pair in pairs if pair.now.expected == 1]
    satisfied = [pair for pair in pairs if pair.now.expected == 0]
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
    right = sum(pair.before.score == pair.now.expected for pair in pairs)
    return Estimate(right / len(pairs), count=right, n=len(pairs))


def _levels(total: Statistics, pairs: Sequence[Pair]) -> Iterator[CardRow]:
    """The levels of the scale that have a case."""
    by_level: dict[int, list[CaseResult]] = {}
    for result in total.judged:
        if result.expected is not None:
            by_level.setdefault(result.expected, []).append(result)
    for level, results in sorted(by_level.items()):
        of_level = [pair for pair in pairs if pair.now.expected == level]
        found = RightShare(accuracy_of(results), _before(of_level))
        bias = estimate_bias(sums_by_cluster(results))
        yield CardRow(f"level {level}", found, bias=bias, texts={"right": str(level)})


def _word(decision: GateDecision | None) -> Word:
    """The decision in one word; empty where nothing is to decide."""
    if decision is None or not decision.is_reported:
        return ""
    if decision.passed:
        return "PASS"
    failed = [threshold for threshold in decision.thresholds if not threshold.passed]
    others = decision.never_reported or decision.unscored or decision.nothing_ran
    verdicts = {_verdict(threshold) for threshold in failed}
    return "INCONCLUSIVE" if verdicts == {"INCONCLUSIVE"} and not others else "FAIL"


def _verdict(threshold: Threshold) -> str:
    decided = threshold.drop or threshold.probe
    return decided.verdict if decided is not None else "FAIL"


def _title(
    section: figures.Section,
    total: CardRow,
    word: Word,
    flaw: str,
    session: Session,
) -> str:
    """What is wrong, or that nothing is, in a few words."""
    judge = _subject(section, session)
    decision = session.decisions.get(section.suite)
    if word == "FAIL" and decision is not None:
        return _failure(judge, section, decision) or flaw or "The gate failed"
    if flaw:
        return flaw
    if word == "INCONCLUSIVE":
        return "Too few runs to prove that nothing got worse"
    if word == "PASS" and decision is not None and decision.changes:
        lost = decision.comparison.regressions if decision.comparison is not None else ()
        return f"{judge} is {'not shown to be worse than' if lost else 'as good as'} before"
    return _count_title(judge, total)


def _count_title(judge: str, total: CardRow) -> str:
    if total.wrong:
        return f"{judge} is wrong in {total.wrong:,} of {counted(total.cases, 'case')}"
    every = "all " if total.cases > 1 else ""
    return f"{judge} agrees with {every}{counted(total.cases, 'label')}"


def _subject(section: figures.Section, session: Session) -> str:
    """Who is spoken of: a new prompt, one judge of several, or the judge."""
    if section.judge:
        return _judge_name(section)
    for change in session.prompt_changes:
        is_of_suite = (change.now.suite, change.now.judge or "") == (section.suite, section.judge)
        if is_of_suite and change.before not in (None, change.now.text):
            return "The new prompt"
    return "The judge"


def _judge_name(section: figures.Section) -> str:
    return f"Judge {shortened(one_line(section.judge), _LONGEST_JUDGE)}"


_LONGEST_JUDGE = 40


def _failure(judge: str, section: figures.Section, decision: GateDecision) -> str:
    """What the gate failed for, the worst first; empty where only other judges failed."""
    missing = len(decision.unscored) + len(decision.never_reported)
    lost = _lost(section, decision)
    if section.mode == "ordinal" and lost:
        return f"{judge} gives wrong levels"
    parts = []
    if lost[1]:
        parts.append("misses violations")
    if lost[0]:
        parts.append("raises false alarms")
    if parts:
        return f"{judge} {' and '.join(parts)}"
    if missing:
        return f"{counted(missing, 'case')} without a verdict"
    for threshold in decision.thresholds:
        if not threshold.passed and threshold.judge in ("", section.judge):
            if threshold.rule == "probe_rate":
                return f"{one_line(threshold.test)} turns right verdicts"
            if threshold.rule in ("min_accuracy", "lower_bound"):
                return f"{judge} is below min_accuracy"
    return ""


def _lost(section: figures.Section, decision: GateDecision) -> Counter[int | None]:
    """How many cases of each label a judge has newly wrong."""
    regressions = set(decision.regressions) | set(decision.new_disagreements)
    return Counter(
        result.expected
        for result in section.total.judged
        if result.case_id in regressions and result.outcome == "disagree"
    )


def _failure_by(section: figures.Section, decision: GateDecision) -> str:
    """For what one judge of several fails the gate, and by how much; empty where others did."""
    lost = _lost(section, decision)
    more = "" if decision.comparison is None else "more "
    parts = []
    if section.mode == "ordinal" and lost:
        parts.append(f"gives {counted(lost.total(), f'{more}wrong level')}")
    elif lost:
        if lost[1]:
            parts.append(f"misses {counted(lost[1], f'{more}violation')}")
        if lost[0]:
            parts.append(f"raises {counted(lost[0], f'{more}false alarm')}")
    if parts:
        return f"{_judge_name(section)} {' and '.join(parts)}"
    for threshold in decision.thresholds:
        if not threshold.passed and section.judge and threshold.judge == section.judge:
            text = threshold_text(threshold, decision).partition(":")[0]
            return f"{text[0].upper()}{text[1:]}"
    return ""


_FLAWS = {
    "constant": "always gives the same verdict",
    "near": "nearly always gives the same verdict",
    "chance": "cannot be told from a coin",
    "inverted": "says the opposite of the labels",
}


def _flaw_title(section: figures.Section, session: Session) -> str:
    """What makes a judge's verdicts worth nothing, whatever the gate says; empty where nothing
    does.
    """
    flaw = flaw_of_total(section.total, section.mode)
    return f"{_subject(section, session)} {_FLAWS[flaw]}" if flaw else ""


MOST_WORST = 3
_LONGEST_REASON = 160


def worst_results(session: Session) -> list[CaseResult]:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; then by how far off the verdict is, how many judges are
    wrong, and how many repeats. Cases of probes are left out.
    """
    news: set[str] = set()
    flickered: set[str] = set()
    for decision in session.decisions.values():
        news.update(decision.regressions, decision.new_disagreements)
        flickered.update(decision.flickered)

    wrong = []
    for result in session.results:
        if result.outcome == "disagree" and not result.spec.derived:
            wrong.append(result)
    judges = Counter(map(made_case_id, wrong))

    def order(result: CaseResult) -> tuple[bool, bool, int, int, float]:
        right = sum(score == result.expected for score in result.all_scores)
        distance = 1
        if result.score is not None and result.expected is not None:
            distance = abs(result.score - result.expected)
        return (
            result.case_id not in news,
            result.case_id in flickered,
            -distance,
            -judges[made_case_id(result)],
            right / (len(result.scores) or 1),
        )

    return sorted(wrong, key=order)


def answer_blocks(session: Session, *, brief: bool = False, page: str = "") -> list[Block]:
    """The answer in the order of every report: of each suite the decision, what is missed and what
    is a false alarm, what the gate holds against it beside that; what probes turned; whether the
    labels can be trusted; the cases to read first; where the report is; the next step. With `brief`
    the labels and a finding of a probe are a line each, and the gate's reasons are not given beside
    what it decided. `page` is the HTML report, where there is one.
    """
    blocks: list[Block] = [*topics.extent_blocks(session)]
    for suite, cards in cards_by_suite(session).items():
        of = f"{suite}: " if len(session.decisions) > 1 else ""
        word, title = suite_title(suite, cards, session)
        if title:
            blocks.append(Sentence(f"{of}{headline(word, title)}", _WEIGHTS[word]))
        blocks += suite_blocks(suite, cards, session, brief=brief)
    findings = brief_findings(session.probes) if brief else findings_first(session.probes)
    is_finding = any(table.is_finding for table in session.probes)
    blocks += [Sentence(finding, "warning" if is_finding else "") for finding in findings]
    blocks += trust_blocks(session, brief=brief)
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
    """The decision about all suites in a few words."""
    titles = []
    for suite, cards in cards_by_suite(session).items():
        titles.append((suite, *suite_title(suite, cards, session)))
    titles = [(suite, word, title) for suite, word, title in titles if title]
    if not titles:
        return "No case was judged"
    failed = [suite for suite, word, _ in titles if word in ("FAIL", "INCONCLUSIVE")]
    if len(titles) > 1 and failed:
        return f"FAIL: {listed(failed, _MOST_SUITES)}"
    if len(titles) > 1:
        passed = sum(word == "PASS" for _, word, _ in titles)
        return f"PASS: {counted(passed, 'suite')}" if passed else counted(len(titles), "suite")
    [(_, word, title)] = titles
    return headline(word, title)


def headline(word: Word, title: str) -> str:
    """A title behind the decision, where there is one."""
    return f"{word}: {title}" if word else title


_MOST_SUITES = 3


def suite_title(suite: str, cards: Sequence[JudgeCard], session: Session) -> tuple[Word, str]:
    """The decision about a suite in a word, and in a few; both empty where there is nothing to say
    of it.
    """
    if len(cards) == 1:
        return cards[0].word, cards[0].title
    # Cards begin with the judge that agrees best.
    failures = [card.failure for card in reversed(cards) if card.failure]
    if failures:
        more = f", {counted(len(failures) - 1, 'more judge')} too" if len(failures) > 1 else ""
        return cards[0].word, f"{failures[0]}{more}"
    if cards:
        return cards[0].word, panel_title(suite, cards, session)
    decision = session.decisions.get(suite)
    if decision is None or not decision.is_reported:
        return "", ""
    return _word(decision), "No case has a verdict"


def panel_title(suite: str, cards: Sequence[JudgeCard], session: Session) -> str:
    """How many judges of a suite are compared, and how many of them probes have turned."""
    judges = counted(len(cards), "judge")
    turned = set()
    for table in session.probes:
        if table.suite == suite and table.is_finding:
            turned.add(table.judge)
    if turned:
        return f"Probes change verdicts of {len(turned):,} of {judges}"
    return f"{judges} compared"


def agreement_sentence(cards: Sequence[JudgeCard]) -> str:
    """Which judge of several agrees best with the labels; empty where that is not known, or some
    are equal to the best.
    """
    best, second, last = cards[0], cards[1], cards[-1]
    if best.kappa.value is None:
        return ""
    kappa = figures.ranged(figures.decimal(best.kappa.value), best.kappa, "number")
    if best.kappa.value == last.kappa.value:
        return f"All agree with the labels equally: kappa {kappa}."
    if best.kappa.value == second.kappa.value:
        return ""
    return f"{one_line(best.judge)} agrees best with the labels: kappa {kappa}."


def suite_blocks(
    suite: str, cards: Sequence[JudgeCard], session: Session, *, brief: bool = False
) -> list[Block]:
    """What there is to say of a suite below its title; with `brief` without the gate's reasons."""
    decision = session.decisions.get(suite)
    blocks: list[Block] = []
    if len(cards) > 1:
        if sentence := agreement_sentence(cards):
            blocks.append(Sentence(sentence))
        if any(table.suite == suite and table.is_finding for table in session.probes):
            blocks.append(Sentence(WHAT_PROBES_DO))
        blocks.append(judges_table(cards))
        blocks += [Sentence(f"{card.flaw}.", "warning") for card in cards if card.flaw]
    else:
        for card in cards:
            blocks += map(Sentence, card.sentences)
    if decision is not None and decision.is_reported and not brief:
        blocks += map(Sentence, _other_reasons(decision))
        blocks += map(Sentence, unseen_sentences(decision))
    return blocks


def judges_table(cards: Sequence[JudgeCard]) -> Table:
    """The judges of one suite below each other."""
    rows = []
    for card in cards:
        rows.append(replace(_table_row(card.total, "rubric"), name=card.judge or card.label))
    return Table("judge", cards[0].table.titles, tuple(rows))


# What the title and the sentences of the card say already.
_SAID_ON_CARD = ("max_drop", "max_regressions")


def _other_reasons(decision: GateDecision) -> Iterator[str]:
    """What fails the gate, beside verdicts that are worse than before."""
    for threshold in decision.thresholds:
        is_said = threshold.rule in _SAID_ON_CARD and _verdict(threshold) == "FAIL"
        if not threshold.passed and not is_said:
            text = threshold_text(threshold, decision)
            yield f"{text[0].upper()}{text[1:]}."
    missing = len(decision.unscored) + len(decision.never_reported)
    if missing:
        yield f"{counted(missing, 'case')} without a verdict."


def is_told(decision: GateDecision, cards: Sequence[JudgeCard]) -> bool:
    """Whether title and sentences of a suite's only judge say all that has failed the gate: more
    mistakes than before, where none is allowed and nothing got better.
    """
    if decision.passed or decision.fixes or len(cards) != 1 or any(_other_reasons(decision)):
        return False
    return not any(threshold.limit for threshold in decision.thresholds if not threshold.passed)


def trust_blocks(session: Session, *, brief: bool = False) -> list[Block]:
    """Of each suite whether its labels can be trusted; with `brief` in a line."""
    blocks: list[Block] = []
    for suite in session.grounds:
        sentence, is_doubtful = trust_sentence(session, suite, brief=brief)
        if sentence:
            of = f"{suite}: " if len(session.grounds) > 1 else ""
            blocks.append(Sentence(f"{of}{sentence}", "warning" if is_doubtful else ""))
    return blocks


def worst_cases(session: Session) -> list[Cases]:
    """The cases to read first; one that several judges of a panel are wrong about is named once.
    No list where no case is judged wrong.
    """
    wrong_judges: dict[str, list[CaseResult]] = {}
    for result in worst_results(session):
        wrong_judges.setdefault(made_case_id(result), []).append(result)
    named = []
    for results in wrong_judges.values():
        first = results[0]
        why = mistake(first)
        if reason := one_line(first.reasoning):
            why = f"{why}: {reason}"
        case = session.named(first.case_id)
        if first.judge:
            made = replace(first, spec=replace(first.spec, judge=None))
            case = replace(case, title=case_title(made))
            why = f"{counted(len(results), 'judge')}, {why}"
        named.append(replace(case, why=shortened(why, _LONGEST_REASON)))
    return [Cases("wrong, worst first", tuple(named), "bad", MOST_WORST)] if named else []


def mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    if result.spec.target_score is not None or result.repeated:
        return f"gave {result.scores_text}, right is {result.expected}"
    return "missed" if result.expected else "false alarm"


def next_blocks(session: Session) -> list[Block]:
    """The one next step: to record what is missing, to update the baseline, or to read the cases
    that are judged wrong, to probe the judge again; to check labels, or keep the verdicts, where
    nothing is wrong.
    """
    if recording := topics.recording_blocks(session):
        return recording
    for decision in session.decisions.values():
        if update := update_blocks(decision):
            return update
    wrong = {made_case_id(result) for result in worst_results(session)}
    turning = [table.probe for table in session.probes if table.is_finding]
    if not wrong and turning:
        text = "Next: read what turned the verdicts, change the judge, and probe it again with -k"
        return [Sentence(f"{text} {turning[0]}.")]
    if not wrong:
        return [Sentence(text) for text in _nothing_wrong(session)]
    # A part of a suite is not what a baseline is updated from.
    is_whole = not topics.extent_sentences(session)
    regressed = any(decision.regressions for decision in session.decisions.values())
    cases, labels = f"the {len(wrong):,} cases", "wrong labels"
    if len(wrong) == 1:
        cases, labels = "the case", "a wrong label"
    if session.is_table:
        return [Sentence(f"Next: read {cases}, and correct the table where a label is wrong.")]
    text = f"Next: read {cases}; reject {labels} (--jrh-review), "
    if regressed and is_whole:
        text += "fix the judge, or accept its mistakes (--jrh-update-baseline)"
    else:
        text += "or fix the judge"
    return [Sentence(f"{text}.")]


def _nothing_wrong(session: Session) -> Iterator[str]:
    """What is next where no verdict is wrong: that people check labels that are in doubt, or that
    the verdicts are kept for a gate; nothing where both is done.
    """
    if session.is_table or not session.table.overall.counts.n:
        return
    doubtful = [suite for suite in session.grounds if trust_sentence(session, suite)[1]]
    if doubtful:
        yield "Next: have people label cases without the answers, with --jrh-review=blind."
    elif not any(decision.active for decision in session.decisions.values()):
        yield (
            "Next: keep these verdicts, so that a change of the judge shows, with "
            "--jrh-baseline=FILE --jrh-update-baseline."
        )
