"""A session as one list of blocks, each at its place and all in one order: terminal, Markdown and
the page render types of blocks and places, and know of no topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pytest_jrh.core.diffs import differences, near_changes
from pytest_jrh.core.documents import listed
from pytest_jrh.core.model import CaseResult
from pytest_jrh.core.text import counted, one_line, shortened
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import (
    Block,
    Cases,
    Cell,
    Diff,
    Fold,
    Headline,
    Level,
    Line,
    Points,
    ReadFirst,
    Row,
    Section,
    Sentence,
    Table,
    Weight,
    WorstCase,
)
from pytest_jrh.reports.case_facts import label_basis, score_name
from pytest_jrh.reports.grounds import (
    label_sentences,
    labels_line,
    violated_sentences,
    wrong_labels,
)
from pytest_jrh.reports.probes import finding_sentences, probe_blocks, turned_table
from pytest_jrh.reports.provenance import origin_lines
from pytest_jrh.reports.session import (
    Session,
    case_key,
    dollars_text,
    run_title,
    spending_line,
    suite_names,
    what_was_done,
)
from pytest_jrh.reports.topics import certainty_sentences, gate_cases
from pytest_jrh.stats import figures
from pytest_jrh.stats.baseline import Pair, PromptChange
from pytest_jrh.stats.decision import Decision, Word
from pytest_jrh.stats.figures import ONE_BY_ONE, flicker_sentence, sections
from pytest_jrh.stats.intervals import Estimate, grouped
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.stats.probabilities import BINS, FALSE_ALARMS
from pytest_jrh.stats.probes import ProbeTable
from pytest_jrh.stats.statistics import (
    Statistics,
    accuracy_of,
    bias_of,
)


@dataclass(frozen=True, slots=True)
class Said:
    """A session in blocks, the worst suite first.

    `word` and `headline` are those of all suites together. `answer` is what everybody reads: of
    each suite its word, which of its labels people found wrong, and what is missed; the cases to
    read first, what the labels rest on, what to do next. `doubts` make the figures doubtful, and
    `details` are what they come from.
    """

    word: Word
    headline: str
    answer: tuple[Block, ...]
    doubts: tuple[Block, ...]
    details: tuple[Block, ...]


def said(session: Session, *, bars: bool = False, skips: bool = True) -> Said:
    """All that there is to say of a session, without its secrets; with `bars` what is missed is a
    table also where nothing is, and without `skips` nothing is said of why there is no case.
    """
    headlines = [_headline(session, suite) for suite in _worst_first(session)]
    blocks = Said(
        word=session.word,
        headline=_session_headline(session, headlines),
        answer=tuple(_answer(session, headlines, bars=bars)),
        doubts=tuple(_doubts(session, skips=skips)),
        details=tuple(_details(session)),
    )
    clean: Said = session.redactor.value(blocks)
    return clean


_ORDER: tuple[Word, ...] = ("FAIL", "UNCLEAR", "PASS", "")
_VERBS: Mapping[Word, tuple[str, str]] = {
    "FAIL": ("fails", "fail"),
    "UNCLEAR": ("is unclear", "are unclear"),
    "PASS": ("passes", "pass"),
}
_MOST_SUITES = 3
# So many rows still fit a glance.
_MOST_ROWS = 8
# More than a person reads at once.
_MOST_READ = 30
_LONGEST_RUBRIC = 40
_MOST_RATES = 2
_CONTEXT = 400


def _worst_first(session: Session) -> list[str]:
    def place(suite: str) -> int:
        decision = session.decisions.get(suite)
        return len(_ORDER) if decision is None else _ORDER.index(decision.word)

    return sorted(dict.fromkeys([*session.decisions, *suite_names(session)]), key=place)


def _headline(session: Session, suite: str) -> Headline:
    """The word about a suite; of a table that nothing decides about what its judges come to."""
    of = suite if len({*session.decisions, *suite_names(session)}) > 1 else ""
    decision = session.decisions.get(suite)
    if decision is not None:
        return Headline(decision.word, decision.headline, of)
    of_suite = [section for section in sections(session.table) if section.suite == suite]
    if len(of_suite) > 1:
        return Headline("", f"{len(of_suite):,} judges compared", of)
    total = of_suite[0].total if of_suite else session.table.overall
    cases, wrong = counted(total.counts.n, "case"), total.counts.disagree
    if not total.counts.n:
        return Headline("", "no case was judged", of)
    if wrong:
        share = figures.percent(wrong / total.counts.n)
        text = f"the judge is wrong in {wrong:,} of {cases} ({share})"
        name = "weighted_kappa" if total.mode == "ordinal" else "kappa"
        kappa = total.figures[name]
        if kappa.value is not None:
            interval = figures.range_text(kappa, "number")
            text += f"; {name.replace('_', ' ')} {figures.decimal(kappa.value)} ({interval})"
        return Headline("", text, of)
    return Headline("", f"the judge gives the label in all {cases}", of)


def _session_headline(session: Session, headlines: Sequence[Headline]) -> str:
    """The decision about all suites in a few words."""
    if not headlines:
        return "no case was judged"
    if len(headlines) == 1:
        return headlines[0].text
    suites = [headline.suite for headline in headlines if headline.word == session.word]
    names = listed(suites, _MOST_SUITES)
    if not session.word:
        return names
    one, many = _VERBS[session.word]
    verb = one if len(suites) == 1 else many
    return f"{len(suites):,} of {counted(len(headlines), 'suite')} {verb}: {names}"


def _answer(session: Session, headlines: Sequence[Headline], *, bars: bool) -> Iterator[Block]:
    interrupted = _interrupted(session)
    for suite, headline in zip(_worst_first(session), headlines, strict=True):
        yield headline
        yield from interrupted
        interrupted = []
        yield from wrong_labels(session, suite)
        decision = session.decisions.get(suite)
        if decision is not None:
            yield from map(Sentence, _beside(decision))
        yield from _figures(session, suite, bars=bars)
        for change in session.prompt_changes:
            if change.now.suite == suite:
                yield _prompt(change)
    yield from _probability_table(session)
    if cases := worst_cases(session):
        yield ReadFirst(tuple(cases))
    for sentence in islice(violated_sentences(session), _MOST_RATES):
        yield Line("violated", sentence)
    yield from labels_line(session)
    yield from next_lines(session)


def _beside(decision: Decision) -> Iterator[str]:
    """What stands below the headline, without the judges that it counts: the table has them."""
    first, others = decision.reasons[:1], decision.reasons[1:]
    for place, clause in enumerate(decision.beside):
        if place < len(others):
            other = others[place]
            is_alike = (other.word, other.kind) == (first[0].word, first[0].kind)
            if is_alike and other.judge != first[0].judge:
                continue
        yield clause


def _interrupted(session: Session) -> list[Block]:
    """What was kept of a session that did not run to its end."""
    extents = session.extents.values()
    if not any(extent.interrupted for extent in extents):
        return []
    if session.is_merge:
        missing = sum(len(decision.never_reported) for decision in session.decisions.values())
        text = f"no shard has a result of {counted(missing, 'case')}"
        return [Sentence(f"{text}: run the missing ones, and merge all shards again", "warning")]
    kept, of = sum(extent.cases for extent in extents), sum(extent.of for extent in extents)
    paid = "" if session.is_table else f" ({dollars_text(session.spending.paid)} so far)"
    text = f"interrupted: {kept:,} of {counted(of, 'case')} kept; the same command goes on{paid}"
    return [Sentence(text, "warning")]


def _figures(session: Session, suite: str, *, bars: bool) -> Iterator[Block]:
    """What is missed and what is a false alarm: of several judges a row each, of one its rubrics,
    or the levels of its scale; what probes turned.
    """
    of_suite = [section for section in sections(session.table) if section.suite == suite]
    judged = [section for section in of_suite if section.total.counts.n]
    findings = [table for table in session.probes if table.suite == suite and table.is_finding]
    if len(judged) > 1:
        yield _judges_table(session, judged, () if bars else findings)
        findings = []
    elif not judged and not bars:
        # Cases of probes alone.
        yield from turned_table([table for table in session.probes if table.suite == suite])
        findings = []
    for section in judged if len(judged) == 1 else ():
        pairs = _pairs(session, section)
        rows = sorted(_section_rows(section, pairs), key=lambda row: -row.worst)
        total = rows[0] if len(rows) == 1 else _counts("all", section.total, pairs)
        # Of a case that is looked at again the headline says it all.
        is_alone = section.total.counts.n == 1 and session.decisions
        if bars or (section.total.counts.disagree and not is_alone):
            shown = rows if len(rows) == 1 else [*rows, total]
            first = "level" if section.mode == "ordinal" else "rubric"
            yield _counts_table(first, shown)
        elif not is_alone:
            yield Sentence(total.sentence)
    if bars:
        yield from turned_table([table for table in session.probes if table.suite == suite])
        return
    for table in findings:
        turned = f"{table.total.turned:,} of {counted(table.total.n, 'right verdict')}"
        of = f" of judge {one_line(table.judge)}" if table.judge else ""
        yield Sentence(f"{table.probe} turns {turned}{of}", "warning")


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many cases of one label are judged wrong, of how many, now and before.

    Of an ordinal judge `missed` are wrong levels, and there are no `alarms`. `before` are those of
    the baseline, None where nothing is compared.
    """

    name: str
    missed: Estimate
    alarms: Estimate | None
    missed_before: int | None
    alarms_before: int | None
    bias: Estimate | None
    about: tuple[str, str, str]
    level: Level = "rubric"

    @property
    def worst(self) -> float:
        """The larger one of its shares, by which rows are sorted."""
        alarms = self.alarms.value if self.alarms is not None else None
        return max(self.missed.value or 0, alarms or 0)

    @property
    def has_other_alarms(self) -> bool:
        """Whether there were more or fewer false alarms before."""
        return self.alarms is not None and self.alarms_before not in (None, self.alarms.count)

    @property
    def sentence(self) -> str:
        """What is wrong, where there is little: `0 of 25 violations missed`."""
        parts = []
        if self.missed.n:
            text = f"{self.missed.count:,} of {counted(self.missed.n, 'violation')} missed"
            if self.alarms is None:
                text = f"{self.missed.count:,} of {self.missed.n:,} given another level"
            parts.append(text)
        if self.alarms is not None and self.alarms.n:
            alarms = counted(self.alarms.count or 0, "false alarm")
            parts.append(f"{alarms} on {counted(self.alarms.n, 'satisfied case')}")
        return ", ".join(parts)


def _pairs(session: Session, section: figures.Section) -> list[Pair]:
    """The cases of a judge that are compared with the baseline."""
    of_judge = []
    for pair in session.pairs.values():
        if (pair.now.spec.suite, pair.now.judge) == (section.suite, section.judge):
            of_judge.append(pair)
    return of_judge


def _section_rows(section: figures.Section, pairs: Sequence[Pair]) -> Iterator[_Counts]:
    """The rubrics of a judge; of an ordinal one the levels of its scale."""
    if section.mode == "binary":
        for statistics in section.rubrics or [section.total]:
            of_rubric = [pair for pair in pairs if pair.now.rubric_id == statistics.rubric]
            name = statistics.rubric or section.total.name
            yield _counts(name, statistics, of_rubric if statistics.rubric else pairs)
        return
    judged = section.total.judged
    by_level = grouped((result.label, result) for result in judged if result.label is not None)
    scale = section.total.matrices["ordinal"].labels
    for level, results in sorted(by_level.items()):
        of_level = [pair for pair in pairs if pair.now.label == level]
        yield _Counts(
            f"level {level}",
            accuracy_of(results).complement(),
            None,
            _wrong_before(of_level),
            None,
            bias_of(results, scale),
            (section.suite, section.judge, ""),
        )


def _counts(
    name: str, statistics: Statistics, pairs: Sequence[Pair], level: Level = "rubric"
) -> _Counts:
    about = (statistics.suite, statistics.judge, statistics.rubric)
    total: Level = "total" if name == "all" else level
    if statistics.mode == "ordinal":
        wrong = statistics.figures["exact"].complement()
        bias = statistics.figures["bias"]
        return _Counts(name, wrong, None, _wrong_before(pairs), None, bias, about, total)
    return _Counts(
        name,
        statistics.figures["recall"].complement(),
        statistics.figures["false_positive_rate"],
        _wrong_before([pair for pair in pairs if pair.now.label == 1]),
        _wrong_before([pair for pair in pairs if pair.now.label == 0]),
        None,
        about,
        total,
    )


def _wrong_before(pairs: Sequence[Pair]) -> int | None:
    return sum(not pair.was_right for pair in pairs) if pairs else None


def _counts_table(first: str, rows: Sequence[_Counts], findings: Sequence[str] = ()) -> Table:
    """A table of counts; what was wrong before stands beside what changed, and what there is no
    case of has no column.
    """
    is_ordinal = all(row.alarms is None for row in rows)
    columns: list[tuple[str, list[Cell]]] = []
    missed = [_share_cell(row.missed, row.missed_before) for row in rows]
    columns.append(("wrong level" if is_ordinal else "missed", missed))
    if any(row.missed_before not in (None, row.missed.count) for row in rows):
        columns.append(("before", [_number_cell(row.missed_before) for row in rows]))
    if is_ordinal:
        bias = [Cell(figures.decimal(row.bias.value if row.bias else None)) for row in rows]
        columns.append(("bias", bias))
    alarms = [_share_cell(row.alarms or Estimate(), row.alarms_before) for row in rows]
    columns.append(("false alarms", alarms))
    if any(row.has_other_alarms for row in rows):
        columns.append(("before", [_number_cell(row.alarms_before) for row in rows]))
    if findings:
        turned = [Cell(text, weight="warning" if text else "") for text in findings]
        columns.append(("turned by probes", turned))
    known = []
    for title, cells in columns:
        if any(cell.text != figures.NONE for cell in cells):
            known.append((title, cells))
    table_rows = []
    for number, row in enumerate(rows):
        in_row = tuple(cells[number] for _, cells in known)
        table_rows.append(Row(row.name, in_row, row.level, row.about))
    return Table(first, tuple(title for title, _ in known), tuple(table_rows), most=_MOST_ROWS)


def _probability_table(session: Session) -> Iterator[Table]:
    """What judges that give probabilities would miss at few false alarms, and decide alone."""
    rows = []
    for (suite, judge), of_judge in session.probabilities.items():
        missed, threshold, alone = of_judge.missed, of_judge.threshold, of_judge.alone
        cells = (
            Cell(figures.percent(missed.value), figures.range_text(missed)),
            Cell(figures.NONE if threshold is None else f"{threshold:.4g}"),
            Cell(figures.decimal(of_judge.brier.value)),
            Cell(figures.percent(alone.value), figures.range_text(alone)),
        )
        rows.append(Row(one_line(judge or suite), cells))
    if rows:
        missed_at = f"missed at {FALSE_ALARMS:.0%} false alarms"
        alone_at = f"decides alone, {100 * session.error:.3g}% wrong"
        yield Table("judge", (missed_at, "threshold", "Brier", alone_at), tuple(rows))


def _calibration(session: Session) -> Iterator[Section]:
    """How often cases are violated by their probability, and what else was counted of it."""
    for (suite, judge), of_judge in session.probabilities.items():
        rows = []
        for tenth, violated in of_judge.bins.items():
            low, high = tenth / BINS, (tenth + 1) / BINS
            is_so = (violated.lower or 0) <= high and low <= (violated.upper or 1)
            cell = replace(_share_cell(violated, None), weight="strong" if is_so else "bad")
            rows.append(Row(f"{low:.0%}-{high:.0%}", (cell,)))
        alarms, wrong, sure = of_judge.false_alarms, of_judge.wrong, of_judge.sure
        text = (
            f"By thresholds chosen on other runs {alarms.count:,} of {alarms.n:,} satisfied cases "
            "are false alarms."
        )
        if sure is not None:
            mistakes = f"{wrong.count:,} of {wrong.n:,} verdicts given alone are wrong"
            text += f" It decides alone where it is at least {sure:.4g} sure: {mistakes}."
        table = Table("probability", ("violated",), tuple(rows))
        yield Section(f"Probabilities of {one_line(judge or suite)}", (table, Sentence(text)))


def _share_cell(wrong: Estimate, before: int | None) -> Cell:
    if not wrong.n:
        return Cell(figures.NONE)
    interval = None
    if wrong.lower is not None and wrong.upper is not None:
        interval = (wrong.lower, wrong.upper)
    is_worse = before is not None and (wrong.count or 0) > before
    text = f"{wrong.count:,} of {wrong.n:,}"
    weight: Weight = "bad" if is_worse else ""
    share_before = None if before is None else before / wrong.n
    return Cell(text, weight=weight, share=wrong.value, interval=interval, before=share_before)


def _number_cell(number: int | None) -> Cell:
    return Cell(figures.NONE if number is None else f"{number:,}")


def _judges_table(
    session: Session, judged: Sequence[figures.Section], findings: Sequence[ProbeTable]
) -> Table:
    """A row for each judge, the worst one first, or the best one where nothing is decided; what
    each probe turned more often than by chance stands beside it.
    """
    probed = list(dict.fromkeys(table.judge for table in findings))

    def place(section: figures.Section) -> tuple[int, float]:
        name = "weighted_kappa" if section.mode == "ordinal" else "kappa"
        value = section.total.figures[name].value
        if not session.decisions:
            return 0, 2 if value is None else -value
        is_probed = section.judge in probed
        number = probed.index(section.judge) if is_probed else len(probed)
        return number, 2 if value is None else value

    rows, turned = [], []
    for section in sorted(judged, key=place):
        pairs = _pairs(session, section)
        rows.append(_counts(section.judge or section.label, section.total, pairs))
        of_judge = []
        for table in findings:
            if table.judge == section.judge:
                of_judge.append(f"{table.probe} {table.total.turned:,} of {table.total.n:,}")
        turned.append(", ".join(of_judge))
    return _counts_table("judge", rows, turned if any(turned) else ())


def _prompt(change: PromptChange) -> Block:
    """The prompt of a judge that changed since the baseline, compared word by word."""
    of = f" of judge {one_line(change.now.judge)}" if change.now.judge else ""
    if change.before is None or not change.is_reworded:
        why = "its prompt was not kept (--jrh-update-baseline keeps it)"
        if change.before is not None:
            why = "its prompt is the same: the model or another setting has changed"
        return Sentence(f"the baseline has verdicts of another judge{of}; {why}", "warning")
    file = Path(change.now.file).name
    pieces = near_changes(differences(change.before, change.now.text), _CONTEXT)
    return Diff(tuple(pieces), f"changed in {one_line(file) or 'the prompt'}{of}")


def worst_results(session: Session) -> list[CaseResult]:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; of these the ones whose label a person confirmed, and
    last those whose label people found wrong; then by how far off the verdict is, how many judges
    are wrong, and how many repeats; of many cases those of the rubric with the most mistakes. Cases
    of probes are left out.
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
        mistakes.update(result.rubric_id for result in wrong)

    def order(result: CaseResult) -> tuple[bool, bool, int, int, int, float, int]:
        right = sum(score == result.label for score in result.all_scores)
        distance = 1
        if result.score is not None and result.label is not None:
            distance = abs(result.score - result.label)
        return (
            result.case_id not in news,
            result.case_id in flickered,
            -label_basis(session, result).certainty,
            -distance,
            -judges[made_case_id(result)],
            right / (len(result.all_scores) or 1),
            -mistakes[result.rubric_id],
        )

    return sorted(wrong, key=order)


def worst_cases(session: Session) -> list[WorstCase]:
    """The cases to read first, one of a panel once."""
    by_case = grouped((made_case_id(result), result) for result in worst_results(session))
    cases = []
    for results in by_case.values():
        first = results[0]
        basis = label_basis(session, first)
        judge = f"judge {one_line(first.judge)}" if first.judge else "judge"
        if len(results) > 1:
            judge = f"{len(results):,} judges, {one_line(first.judge)}"
        cases.append(
            WorstCase(
                case_id=first.case_id,
                name=session.node(first.case_id),
                key=case_key(first.case_id),
                run=run_title(first, with_judge=False),
                rubric=one_line(first.rubric_id) if session.has_rubrics else "",
                # Nothing was done to the cases of a table.
                done="" if session.is_table else what_was_done(first),
                mistake=mistake(first),
                label=score_name(session, first, first.label),
                basis=basis.text,
                judge=judge,
                reason=one_line(first.reasoning),
            )
        )
    return cases


def mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    if result.outcome == "agree":
        return f"gave {result.scores_text}, which is right"
    if result.spec.target_score is not None or result.repeated:
        return f"gave {result.scores_text}, right is {result.label}"
    return "missed" if result.label else "false alarm"


def next_lines(session: Session) -> list[Block]:
    """The one next step: to record what is missing, to update the baseline, or to read the cases
    that are judged wrong, to probe the judge again; to check labels, or keep the verdicts, where
    nothing is wrong.
    """
    missing = sum(result.outcome == "unrecorded" for result in session.results)
    if session.record_command and missing:
        text = (
            f"with an API key this records {counted(missing, 'case')}, and only what is missing; "
            "--jrh-plan shows the cost"
        )
        return [Line("next", text, "warning", session.record_command)]
    for decision in session.decisions.values():
        if decision.update_command:
            text = "where the cases that the baseline does not have are new"
            return [Line("next", text, "warning", decision.update_command)]
    wrong = worst_results(session)
    if not wrong and session.record_command:
        text = "after a change of the prompt or the map; to ask the same again: "
        return [Line("next", f"{text}--jrh-retry-unscored", "warning", session.record_command)]
    if not wrong:
        text = _nothing_wrong(session)
        return [Line("next", text)] if text else []
    if session.is_table:
        cases = {made_case_id(result) for result in wrong}
        return [
            Line(
                "next",
                f"read {_to_read(wrong, cases)}; where a label is wrong, correct it in that row",
            )
        ]
    fix = _judge_to_fix(session)
    # What people or a program said is corrected where they said it.
    is_made = any(result.labelled_by in ("made", "unconfirmed") for result in wrong)
    correct = "press r" if is_made else "correct it where it was given"
    text = f"label wrong: {correct}; right: fix {fix}"
    regressed = any(decision.regressions for decision in session.decisions.values())
    # A part of a suite is not what a baseline is updated from.
    if regressed and not session.is_part:
        text += ", or --jrh-update-baseline"
    return [Line("next", text, command=session.review_command)]


def _to_read(wrong: Sequence[CaseResult], cases: set[str]) -> str:
    """Which cases to read: of many those of the rubric with the most mistakes."""
    if len(cases) == 1:
        return "the case"
    rubrics = Counter(result.rubric_id for result in wrong)
    if len(cases) <= _MOST_READ or len(rubrics) == 1:
        return f"the {len(cases):,} cases"
    [(rubric, number)] = rubrics.most_common(1)
    name = shortened(one_line(rubric), _LONGEST_RUBRIC)
    return f"the {counted(number, 'case')} of {name} first, of {len(cases):,}"


def _judge_to_fix(session: Session) -> str:
    """What is to be changed of a judge that is wrong: its prompt's file, where that is known; of
    several judges the one that the decision of its suite is about.
    """
    files = {change.now.file for change in session.prompt_changes if change.now.file}
    if len(files) == 1:
        return one_line(files.pop().replace("\\", "/").rpartition("/")[2])
    several = len(session.decisions) > 1
    judges = []
    for suite, decision in session.decisions.items():
        if decision.word == session.word and decision.reasons:
            judge = decision.reasons[0].judge
            name = f"judge {one_line(judge)}" if judge else "the judge"
            judges.append(f"{name} of {one_line(suite)}" if several else name)
    return listed(judges, _MOST_SUITES) or "the judge"


def _nothing_wrong(session: Session) -> str:
    """What is next where no verdict is wrong: that a judge is probed again, people look at labels
    that are wrong or in doubt, or that the verdicts are kept for a gate; nothing where all is done.
    """
    turning = [table for table in session.probes if table.is_finding]
    if not turning and session.word == "FAIL":
        turning = [table for table in session.probes if table.total.turned]
    if turning:
        first = session.results_by_id[turning[0].cases[0]].spec
        case = one_line(f"{first.run_id} {first.variant}")
        fix = f"change {_judge_to_fix(session)}, and run it again: -k {turning[0].probe}"
        return f"read {case} first, {fix}"
    if session.is_table:
        return ""
    if session.word == "FAIL":
        return "mend what failed; the same command then makes only what is missing"
    if not session.table.overall.counts.n:
        return ""
    if any(wrong_labels(session, suite) for suite in session.grounds):
        return "read the labels that people found wrong; in the browser r rejects one: --jrh-review"
    if any(line.weight == "warning" for line in labels_line(session)):
        return "people label cases without the answers: --jrh-review=blind"
    if not any(decision.active for decision in session.decisions.values()):
        return "hold later judges to these verdicts: --jrh-baseline=FILE --jrh-update-baseline"
    return ""


def _doubts(session: Session, *, skips: bool) -> Iterator[Block]:
    """What makes the figures doubtful: first what judges were not shown, and verdicts against their
    own reasoning; then by judge, and of the whole session.
    """
    yield from topics.not_shown_blocks(session)
    yield from topics.contradicted_blocks(session)
    yield from topics.extent_blocks(session)
    every_section = sections(session.table)
    for section in every_section:
        of = f"{one_line(section.label)}: " if len(every_section) > 1 else ""
        for warning in _warnings(session, section):
            yield Sentence(f"{of}{warning}", "warning")
        if flicker := flicker_sentence(section.total):
            yield Sentence(f"{of}{flicker}")
    for decision in session.decisions.values():
        for cases in gate_cases(decision, session):
            if not _is_read_first(cases):
                yield cases
    yield from topics.review_blocks(session)
    yield from topics.unsettled_blocks(session)
    yield from topics.left_out_blocks(session, skips=skips)
    if not any(table.is_finding for table in session.probes) and session.word != "FAIL":
        yield from map(Sentence, finding_sentences(session.probes))
    for panel in session.panels:
        of = f" of {one_line(panel.suite)}" if len(session.panels) > 1 else ""
        yield Sentence(f"panel{of}: {topics.majority_sentence(panel)}")


def _is_read_first(cases: Cases) -> bool:
    """Whether cases are among those to read first, or pytest names them."""
    return cases.title in ("regressions", "unscored") or cases.title.startswith("disagreements")


def _warnings(session: Session, section: figures.Section) -> list[str]:
    """The warnings about a judge, but for what the decision has said of it."""
    warnings = figures.all_warnings(section.total, section.rubrics)
    decision = session.decisions.get(section.suite)
    if decision is None:
        return warnings
    is_said = any(
        reason.kind == "useless" and reason.judge == section.judge for reason in decision.reasons
    )
    # Of a part of a suite nobody expects both classes.
    if is_said or session.is_part:
        of_total = (figures.doubt(section.total), figures.one_class(section.total))
        warnings = [warning for warning in warnings if warning not in of_total]
    return warnings


def _details(session: Session) -> Iterator[Block]:
    """What the answer rests on: how sure it is, figures with their intervals, probes, panels,
    labels, what was shown, and where all of it comes from.
    """
    for suite, decision in session.decisions.items():
        of = f" about {suite}" if len(session.decisions) > 1 else ""
        sentences = map(Sentence, certainty_sentences(decision))
        lists = filter(_is_read_first, gate_cases(decision, session))
        blocks: list[Block] = [*sentences, *lists]
        if blocks:
            yield Section(f"How sure is this?{of}", tuple(blocks))
    for section in sections(session.table):
        table = topics.figures_table(section)
        note = "In parentheses: 95% intervals."
        if len(table.rows) > 1:
            note += f" {ONE_BY_ONE}"
        blocks = [table, Sentence(note, "muted"), *topics.more_figures(section)]
        blocks += _odd_cases(session, section)
        yield Section(f"Figures of {section.label}", tuple(blocks))
    yield from _calibration(session)
    yield from probe_blocks(session.probes)
    yield from topics.panel_blocks(session)
    if labels := label_sentences(session):
        yield Section("Labels", (Points(tuple(labels)),))
    points = [*session.about, *origin_lines(session.origin), *topics.shown_sentences(session)]
    origin: list[Block] = [Points(tuple(points))] if points else []
    if not session.is_table:
        origin.append(Sentence(spending_line(session.spending, session.wall_seconds)))
    if origin:
        yield Section("Where these figures come from", tuple(origin))


def _odd_cases(session: Session, section: figures.Section) -> Iterator[Block]:
    """The cases in which a judge contradicts itself in its repeats."""
    results = session.by_judge.get((section.suite, section.judge), ())
    flickering = []
    for result in results:
        if result.flickers:
            flickering.append(session.named(result.case_id, result.scores_text))
    if flickering:
        yield Fold("flickering", (Cases("flickering", tuple(flickering)),))
