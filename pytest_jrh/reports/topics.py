"""What all reports say of a session, topic by topic: the decision, how sure it is, its cases, and
what has changed since the baseline; which models answered as other versions than in the recordings,
what people decided, which labels they should look at again, why figures are missing, how panels
agree, and whether judges were shown what decides.

And what its labels rest on, with what follows for its figures; how people who label the same cases
agree with each other, and judges with them; which cases are disputed, and how the labels of a table
without verdicts are spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice

from pytest_jrh.core import (
    capital,
    counted,
    frozen,
    grouped_by,
    listed,
    one_line,
    out_of,
    short_digest,
)
from pytest_jrh.core.cases import MADE, SKIPS
from pytest_jrh.core.results import CaseResult
from pytest_jrh.people import (
    Grounds,
    SharedModel,
    held_against_people,
    rest_counts,
    unmatched,
    wrongly_labelled,
)
from pytest_jrh.reports.blocks import (
    MOST_ON_PAGE,
    Block,
    Cases,
    Cell,
    Line,
    NamedCase,
    Points,
    Row,
    Section,
    Sentence,
    Table,
    Weight,
    figure,
)
from pytest_jrh.reports.case_facts import label_basis, not_shown_text, score_name
from pytest_jrh.reports.session import Session
from pytest_jrh.stats import figures
from pytest_jrh.stats.changes import SURE
from pytest_jrh.stats.decision import Decision
from pytest_jrh.stats.figures import NONE, percent, range_text
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.limits import limit_text
from pytest_jrh.stats.people import (
    FEWEST_LABELS,
    THE_JUDGE,
    AgainstPeople,
    Agreement,
    violation_rates,
)
from pytest_jrh.stats.statistics import JudgePair, Panel
from pytest_jrh.stats.verdicts import NEVER_REPORTED, NOT_IN_BASELINE

_MOST_REASONS = 3
_NAMES = {"false_positive_rate": "FPR"}
_MOST_VOTES = 5
_ADVICE = "use a verifier of another provider, or label some cases blind (docs: labels)"


def certainty_sentences(decision: Decision) -> Iterator[str]:
    """The limits, the test and its level, and of each set that has lost anything p and what it
    lost; how many cases were compared.
    """
    for limit in decision.limits:
        subject = f'judge "{one_line(limit.judge)}"' if limit.judge else "the judge"
        yield f"{capital(limit_text(limit, subject))}."
    if decision.comparison is not None:
        fixes = len(decision.fixes)
        yield (
            f"{decision.compared:,} of {counted(decision.of_baseline, 'case')} in the baseline are "
            f"compared, with {counted(len(decision.regressions), 'regression')} (newly wrong) and "
            f"{'1 fix' if fixes == 1 else f'{fixes:,} fixes'} (newly right)."
        )
    if not decision.sets:
        return
    yield (
        "p is the chance that a judge that is as good as before would lose as much or more "
        "(exchange test; an equal loss counts half), adjusted for the number of comparisons "
        f"({counted(len(decision.sets), 'set')} of cases). A set fails if p is below {SURE:.3g}, "
        "at least two of its cases are newly wrong, and it lost more than `max_drop` allows."
    )
    lost = [change for change in decision.sets if change.drop > 0]
    lost.sort(key=lambda change: change.finding.p_value)
    for change in lost:
        before, now = change.before, change.now
        by = f', judge "{one_line(change.judge)}"' if change.judge else ""
        yield (
            f"{change.title}{by}: the judge was wrong in {before.wrong:,} of "
            f"{counted(before.verdicts, 'verdict')} before, and is wrong in {now.wrong:,} of "
            f"{now.verdicts:,} now. The verdict is newly wrong in {len(change.lost):,} of "
            f"{counted(change.n, 'case')}, and newly right in {len(change.won):,}; "
            f"p = {change.finding.p_value:.3g}."
        )


def case_list(
    session: Session, title: str, remarks: Mapping[str, str], weight: Weight = "", most: int = 50
) -> list[Cases]:
    """The first cases by name, with the remarks that there are; nothing where there are none."""
    named = []
    for case_id, remark in islice(remarks.items(), MOST_ON_PAGE):
        key = done = ""
        if case_id in session.rows:
            key, done = short_digest(case_id), session.title(session.result(case_id))
        named.append(NamedCase(session.node(case_id), remark, key, done))
    return [Cases(title, named, len(remarks), weight, most)] if named else []


def gate_cases(session: Session, decision: Decision) -> tuple[list[Cases], list[Cases]]:
    """The cases that changed, count against a limit, or are missing: first the lists that the cases
    to read first come from, or whose cases pytest names, then the others. No list is empty.
    """
    remarks = dict.fromkeys(decision.flickered, "by flicker, as the judge has not changed")
    # Of a table the decision says why.
    remarks |= {} if session.is_table else decision.unscored
    disagreements = "disagreements"
    new, not_comparable = [], []
    if decision.comparison is not None:
        disagreements = "disagreements not in the baseline"
        named_above = {*decision.never_reported, *decision.unscored}
        for case_id, reason in decision.comparison.not_comparable.items():
            if case_id in named_above:
                continue
            if reason == NOT_IN_BASELINE:
                new.append(case_id)
            elif case_id not in decision.new_wrong:
                not_comparable.append(case_id)
                remarks[case_id] = reason
    # Where nothing decides, or an update accepts them, wrong verdicts are no news.
    is_news = decision.active and not decision.accepted

    def cases(title: str, case_ids: Iterable[str], weight: Weight) -> list[Cases]:
        return case_list(
            session, title, {case_id: remarks.get(case_id, "") for case_id in case_ids}, weight
        )

    read_first = [
        *cases("regressions", decision.regressions, "bad"),
        *cases(disagreements, decision.new_wrong if is_news else (), "bad"),
        *cases("unscored", decision.unscored, "bad"),
    ]
    unreported = "without a row" if session.is_table else NEVER_REPORTED
    other_lists = [
        *cases("fixes", decision.fixes, "good"),
        *cases("accepted into the baseline, though wrong", decision.accepted, "warning"),
        *cases(unreported, decision.never_reported, "bad"),
        *cases("new since the baseline", new, "muted"),
        *cases("not comparable with the baseline", not_comparable, "warning"),
    ]
    return read_first, other_lists


def figures_table(section: figures.Section) -> Table:
    """The figures of a judge."""
    titles = [column.title for column in section.columns]
    meanings = [column.meaning for column in section.columns]
    rows = []
    for row in section.rows:
        cells = []
        for column in section.columns:
            estimate = row.figures.get(column.key)
            if column.kind == "count":
                cells.append(Cell(f"{row.counts.n:,}"))
            else:
                cells.append(Cell(NONE) if estimate is None else figure(estimate, column.kind))
        rows.append(Row(row.name, cells, "rubric" if row.rubric else "total"))
    return Table("rubric", titles, rows, meanings=meanings)


def _missing(table: Table) -> Iterator[str]:
    """Why figures are missing, and in which rows, each reason once."""
    names: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        for title, cell in zip(table.titles, row.cells, strict=True):
            if cell.reason:
                missing = title if cell.text == NONE else f"the interval of {title}"
                names.setdefault((missing, cell.reason), []).append(row.name)
    for (title, reason), of_rows in names.items():
        yield f"{title} is not known (rows: {', '.join(of_rows)}), because {reason}"


def left_out_blocks(session: Session) -> Iterator[Sentence]:
    """What the figures leave out, how much of each, and why there is no case."""
    shown = session.verdicts.where(~session.verdicts.derived)
    parts = []
    for kind, text in _LEFT_OUT.items():
        is_left_out = shown.unscored if kind == "unscored" else shown.outcome.equals(kind)
        # Of several judges each case once.
        number = len(shown.made[is_left_out].present())
        # Of these the decision speaks, or the first lines of a table.
        is_said = session.decisions if kind == "unscored" else session.is_table
        if number and not is_said:
            parts.append(f"{counted(number, 'case')}{text}")
    if not parts:
        return
    # Why cases could not be made, those of one kind counted together.
    kinds = Counter[str]()
    for result in session.cases:
        if result.outcome == "no_case":
            kind = result.why.kind
            kinds[SKIPS[kind].happened if kind in SKIPS else one_line(result.why.detail)] += 1
    if kinds:
        reasons = [f"{kind}: {number:,}" for kind, number in kinds.most_common()]
        parts[0] += f" ({listed(reasons, _MOST_REASONS)})"
    weight: Weight = "warning" if "verdict" in parts[-1] else ""
    yield Sentence(f"left out of the figures: {', '.join(parts)}", weight)


_LEFT_OUT = {
    "no_case": "",
    "unscored": " without a verdict",
    "generated": " not to be judged",
    "unlabelled": " judged without a label",
}


def panel_blocks(session: Session) -> Iterator[Block]:
    """How the judges of each panel agree, and the cases on which they are split."""
    for panel in session.panels:
        blocks: list[Block] = [Sentence(f"{capital(majority_sentence(panel))}.")]
        blocks.append(pairs_table("judges", panel.pairs))
        blocks += case_list(session, "without a majority", panel.without_majority)
        yield Section(f"Panel of {panel.suite}: {counted(len(panel.judges), 'judge')}", blocks)


def pairs_table(first: str, pairs: Iterable[JudgePair]) -> Table:
    """How judges or people agree, two by two."""
    rows = []
    for pair in pairs:
        agree = Cell(pair.agreement.fraction, range_text(pair.agreement))
        rows.append(Row(" / ".join(pair.judges), (agree, figure(pair.kappa, "number"))))
    return Table(first, ("agree", "kappa"), rows)


# A table of more columns is read by nobody; the JSON report has it.
_MOST_ANSWERS = 21


def more_figures(section: figures.Section) -> Iterator[Block]:
    """The confusion matrix of a judge over all its cases, how many it finds of each class that has
    no column of figures, and why figures are missing, if any.
    """
    matrix, said = section.total.matrix, section.scale.said
    if matrix is not None and matrix.n and len(matrix.labels) <= _MOST_ANSWERS:
        rows = []
        # No judge gives what lies between two levels, as a median of people may.
        is_whole = [label % 1 == 0 for label in matrix.labels]
        for label, counts in zip(matrix.labels, matrix.counts, strict=True):
            cells = [Cell(f"{count:,}") for count in compress(counts, is_whole)]
            rows.append(Row(str(said(label)), cells))
        titles = [f"judge gave {said(label)}" for label in compress(matrix.labels, is_whole)]
        yield Table("right answer", titles, rows)
    of_classes = section.total.of_classes.items()
    rows = [Row(name, (Cell(share.fraction), figure(share))) for name, share in of_classes]
    if rows:
        yield Table("class", ("cases", "share"), rows)
    if missing := tuple(_missing(figures_table(section))):
        yield Points(missing)


def majority_sentence(panel: Panel) -> str:
    """How often the majority of a panel is right; where there is none in some cases, how often."""
    text = (
        f"the majority verdict of {counted(len(panel.judges), 'judge')} is right in "
        f"{out_of(panel.accuracy.count or 0, panel.accuracy.n, 'case')}"
    )
    undecided = len(panel.without_majority)
    return f"{text}; there is no majority in {undecided:,} of these cases" if undecided else text


def contradicting_cases(session: Session) -> list[list[CaseResult]]:
    """Find the cases with one rubric and transcript whose labels are not the same."""
    made = [result for result in session.cases if result.extra.content and result.outcome in MADE]
    equal = grouped_by(made, "suite", "extra.content")
    return [cases for cases in equal.values() if len({result.label or 0 for result in cases}) > 1]


def review_blocks(session: Session) -> Iterator[Block]:
    """How many cases people decided in which way, and those whose decisions are void; the models
    that are others than before, and all labels to look at again.
    """
    by_word = grouped_by(session.cases, "extra.review")
    decided = []
    for word in sorted(by_word.keys() - {"", "void"}):
        decided.append(f"{len(by_word[word]):,} {word}")
    if decided:
        yield Sentence(f"Cases that people reviewed: {', '.join(decided)}.")
    if "void" in by_word:
        title = "reviews that no longer count, because the case was changed after the review"
        yield from _warning_cases(session, title, by_word["void"])
    for text in session.model_changes:
        yield Sentence(text, "warning")
    doubted = [result for result in session.cases if not result.is_accepted]
    reworded = [result for result in doubted if result.extra.reworded]
    for (suite, rubric), results in grouped_by(reworded, "suite", "rubric_id").items():
        text = (
            f"{counted(len(results), 'case')} of the rubric {rubric!r} (suite {suite!r}): the "
            "text of the rubric has changed since the label was given, so the label is about the "
            "old text, but the verdict is about the new text. Review the cases with --jrh-review."
        )
        yield from _warning_cases(session, text, results)
    altered = [result for result in doubted if result.extra.altered]
    if altered:
        text = (
            f"{counted(len(altered), 'case')} changed on disk after being made (case_digest does "
            "not match), and nobody has confirmed the label since. Restore the file of cases, or "
            "review the cases with --jrh-review."
        )
        yield from _warning_cases(session, text, altered)
    for equal in contradicting_cases(session):
        labels = " and ".join(map(str, sorted({result.label or 0 for result in equal})))
        text = (
            f"{counted(len(equal), 'case')} with the same rubric and text have contradicting "
            f"labels ({labels}). Review these cases with --jrh-review."
        )
        yield from _warning_cases(session, text, equal)


def _warning_cases(session: Session, title: str, results: Iterable[CaseResult]) -> list[Cases]:
    remarks = {result.case_id: not_shown_text(result) for result in results}
    return case_list(session, title, remarks, "warning")


@frozen
class ShownCount:
    """How many edited turns were looked for, or turns of cases as they are; how many of them the
    judge was not shown, and of how many nobody can tell.

    `cases` are those with a turn that it was not shown. `missed` are all violations that it missed,
    or on a scale all wrong levels, and `missed_unseen` those of `cases`, of which others are
    `right_by_luck`. `cut_by_server` are the cases whose prompt its server read only in part.
    """

    name: str
    turns: int
    not_shown: int
    unknown: int
    cases: Sequence[str]
    missed: int
    missed_unseen: int
    right_by_luck: int
    cut_by_server: Sequence[str]


def shown_counts(results: Sequence[CaseResult]) -> Iterator[ShownCount]:
    """Count the edited turns that a judge was shown, and all turns of cases without edits."""
    missed = sum(bool(_missed(result)) for result in results)
    for name, is_whole in (("edited turns", False), ("turns of unedited cases", True)):
        turns = not_shown = unknown = missed_unseen = right_by_luck = 0
        cases, cut_by_server = [], []
        for result in results:
            shown = result.extra.shown
            if shown is None or shown.is_whole != is_whole:
                continue
            turns += shown.turns
            not_shown += len(shown.missing)
            unknown += shown.unknown
            if shown.missing:
                cases.append(result.case_id)
                missed_unseen += bool(_missed(result))
                right_by_luck += result.outcome == "agree" and not is_whole
            if shown.read:
                cut_by_server.append(result.case_id)
        yield ShownCount(
            name,
            turns,
            not_shown,
            unknown,
            cases,
            missed,
            missed_unseen,
            right_by_luck,
            cut_by_server,
        )


def not_shown_blocks(session: Session) -> Iterator[Cases]:
    """What judges were not shown, by judge, and the cases; none where they were shown all."""
    for subject, results in _by_judge(session):
        for count in shown_counts(results):
            if count.cut_by_server:
                text = (
                    f"{subject} has a server that read far fewer tokens than were sent: the server "
                    f"cut the prompt of {counted(len(count.cut_by_server), 'case')}. Set a larger "
                    "window in `params`, such as {num_ctx: 32768} for Ollama."
                )
                yield from _warning_cases(session, text, map(session.result, count.cut_by_server))
            if not count.cases:
                continue
            effects = []
            if count.missed_unseen:
                [missed] = {_missed(result) for result in results} - {""}
                effects.append(f"{count.missed_unseen:,} of its {count.missed:,} {missed}")
            if count.right_by_luck:
                effects.append(f"{counted(count.right_by_luck, 'verdict')} right by luck")
            text = f"{subject} was not shown {count.not_shown:,} of {count.turns:,} {count.name}"
            text += f" (in {' and in '.join(effects) or counted(len(count.cases), 'case')})"
            yield from _warning_cases(session, f"{text}.", map(session.result, count.cases))
        shown = [(result, result.extra.shown) for result in results]
        repaired = [result for result, of in shown if of is not None and of.asked_again]
        if repaired:
            text = f"{subject} was asked again for {counted(len(repaired), 'verdict')}, because "
            text += "its first answer could not be used."
            yield from _warning_cases(session, text, repaired)


def _missed(result: CaseResult) -> str:
    """What a wrong verdict is called where the judge may not have been shown what decides."""
    of_class = result.case_class
    return of_class.unseen if of_class is not None and result.outcome == "disagree" else ""


def shown_sentences(session: Session) -> Iterator[str]:
    """Of how many turns each judge was shown, and of how many nobody can tell."""
    for subject, results in _by_judge(session):
        for count in shown_counts(results):
            known = count.turns - count.unknown
            if known:
                yield f"{subject} was shown {known - count.not_shown:,} of {known:,} {count.name}."
            if count.unknown:
                reason = "is not recorded or cannot be read"
                if count.cut_by_server:
                    reason += ", or was cut by its server"
                yield (
                    f"{subject}: it is not known whether {count.unknown:,} {count.name} were "
                    f"shown, because the judge's request {reason}."
                )


def _by_judge(session: Session) -> Iterator[tuple[str, Sequence[CaseResult]]]:
    """The results by what their judge is called in a sentence."""
    if session.is_table:
        return
    for (suite, judge), verdicts in session.by_judge.items():
        subject = f'The judge "{one_line(judge)}"' if judge else "The judge"
        if len(session.suites) > 1:
            subject += f' of "{one_line(suite)}"'
        yield subject, session.results_in(verdicts)


# ---- Labels


def label_sentences(session: Session) -> Iterator[str]:
    """All that is to be said of the labels of a session, suite by suite."""
    shared_models: list[SharedModel] = []
    for suite, grounds in session.grounds.items():
        yield from violation_sentences(session, suite)
        for sentence in _people_sentences(_of_suite(session, suite), grounds):
            yield f"{session.prefix(suite)}{sentence}"
        shared_models += grounds.shared_models
    for shared in dict.fromkeys(shared_models):
        judge = f'The judge "{shared.judge}"' if shared.judge else "The judge"
        yield (
            f"{judge} and the verifier are the same model ({shared.model}). If both "
            f"make the same error, it counts as right, so accuracy may be too high: {_ADVICE}."
        )


def violation_sentences(session: Session, suite: str) -> Iterator[str]:
    """How often the runs of a suite are violations, by what each judge says and corrected by their
    labels: in total and for each of several rubrics; nothing where all runs have labels.
    """
    for (of_suite, judge), verdicts in session.by_judge.items():
        if of_suite != suite:
            continue
        by = session.prefix(suite)
        if judge:
            by += f"judge {judge}: "
        rates = violation_rates(verdicts, session.grounds[suite].drawn)
        for rubric, rate in rates:
            judged, corrected = rate.judged, rate.corrected
            of = f"{rubric}: " if rubric else ""
            word = verdicts.scale.present()[0].word(1)
            text = (
                f"{by}{of}The judge calls {judged.count:,} of {counted(judged.n, 'case')} {word} "
                f"({_share(judged)}). "
            )
            if corrected.value is None:
                yield f"{text}The share is not corrected by labels, because {corrected.why}."
            else:
                labels = counted(rate.labelled, "label")
                if rate.drawn:
                    labels += " drawn at random"
                yield (
                    f"{text}Corrected by {labels}, the share is {percent(corrected.value)} (95% "
                    f"interval {range_text(corrected)})."
                )
        if any(rate.corrected.value is not None and not rate.drawn for _, rate in rates):
            yield f"{by}{_NOT_DRAWN}"


_NOT_DRAWN = (
    "The corrected share is valid only if the cases with a label were drawn at random from all "
    "cases; pytest-jrh cannot tell whether they were (docs: labels)."
)


def _share(rate: Estimate) -> str:
    """A share and its interval."""
    return f"{percent(rate.value)}, 95% interval {range_text(rate)}"


def _of_suite(session: Session, suite: str) -> list[CaseResult]:
    return [result for result in session.made_results if result.suite == suite]


def wrong_labels(session: Session, suite: str) -> list[Cases]:
    """The labels that people found wrong, with whose they are and who said so."""
    remarks = {}
    for result in wrongly_labelled(_of_suite(session, suite), session.grounds_of(suite)):
        label = score_name(session, result, result.label)
        remarks[result.case_id] = f"{label} by {label_basis(session, result).text}"
    return case_list(
        session,
        f"{counted(len(remarks), 'wrong label')}, according to people who did not see the answer.",
        remarks,
        "bad",
        most=3,
    )


def labels_line(session: Session) -> Iterator[Line]:
    """Of each suite what its labels rest on, and how far people agree with them; as a warning where
    that is a reason to doubt the figures.
    """
    for suite, grounds in session.grounds.items():
        results = _of_suite(session, suite)
        counts = rest_counts(results, grounds)
        if session.is_table:
            given_by = "column" if grounds.column else "people"
            counts[given_by] = len(session.verdicts.judged.places("made"))
        texts = {
            "made": f"confirmed by {grounds.verifier or 'the verifier'}",
            "people": "by people",
            "program": "by a program",
            "column": f'from the column "{one_line(grounds.column)}"',
            "unconfirmed": "unverified",
            "altered": "on cases that changed on disk later",
        }
        if grounds.shared_models:
            texts["made"] = "from the judge's model"
        if grounds.annotators:
            texts["people"] += f" ({listed(grounds.annotators)})"
        bases = [f"{counts[key]:,} {text}" for key, text in texts.items() if counts[key]]
        if not bases:
            continue
        text, wrong = ", ".join(bases), len(wrongly_labelled(results, grounds))
        is_checked_enough = counts["blind"] >= FEWEST_LABELS
        if counts["blind"]:
            needed = "" if is_checked_enough else f" ({FEWEST_LABELS} needed)"
            text += f"; people checked {counts['blind']:,}{needed}, {wrong or 'none'} wrong"
        weight: Weight = ""
        if counts["unconfirmed"] or counts["altered"] or wrong:
            weight = "warning"
        if grounds.shared_models and not is_checked_enough:
            weight = "warning"
            text += "" if counts["blind"] else "; let people check some: --jrh-review=blind"
        yield Line("labels", f"{session.prefix(suite)}{text}", weight)


def _people_sentences(results: Sequence[CaseResult], grounds: Grounds) -> Iterator[str]:
    """The judges and the verifier of a suite against the blind labels of people: in total, and of
    several rubrics for each with enough of them.
    """
    if not grounds.people:
        return
    # What stands for cases that this session did not run, which the verifier had rejected.
    ran = {result.made_id for result in results}
    every_result = [*results, *(case for case in grounds.rejected if case.made_id not in ran)]
    of_suite = list(_held_sentences(every_result, grounds))
    if not of_suite:
        yield "No judged case has a person's blind label, so the judge is not compared with people."
    yield from of_suite
    by_rubric = grouped_by(every_result, "rubric_id")
    for rubric, of_rubric in by_rubric.items():
        labelled = len({result.made_digest for result in of_rubric} & grounds.blind_votes.keys())
        if labelled >= FEWEST_LABELS and len(by_rubric) > 1:
            for sentence in _held_sentences(of_rubric, grounds):
                yield f"{rubric}: {sentence}"
    missing = unmatched(every_result, grounds)
    if missing:
        yield (
            f"Not counted: {counted(missing, 'blind label')} of cases that are not in this "
            "session or have changed since."
        )


def _held_sentences(results: Sequence[CaseResult], grounds: Grounds) -> Iterator[str]:
    judges, verifier = held_against_people(results, grounds)
    for judge, against in judges.items():
        by = f"judge {judge}: " if judge else ""
        yield f"{by}{_against(against)}"
    if verifier is not None:
        if verifier.false_confirmations.n:
            yield f"The verifier confirmed wrong labels in {_rate(verifier.false_confirmations)}."
        if verifier.false_rejections.n:
            yield f"The verifier rejected right labels in {_rate(verifier.false_rejections)}."
        if verifier.reviewers.raw.n:
            yield f"Reviewers agree in {agreement_text(verifier.reviewers)}."


def _against(against: AgainstPeople) -> str:
    left_out = []
    if against.unclear:
        left_out.append(f"{counted(against.unclear, 'case')} without a majority")
    if against.undecidable:
        left_out.append(f"{counted(against.undecidable, 'case')} that nobody can decide")
    text = f"Compared with people ({counted(against.labelled, 'blind label')}"
    if left_out:
        text += f"; {' and '.join(left_out)} left out"
    if against.labelled < FEWEST_LABELS:
        return f"{text}): no figure is corrected, because {FEWEST_LABELS} labels are needed."
    texts = []
    reasons = set()
    for key, anchored in against.figures.items():
        estimate = anchored.estimate
        if estimate.value is not None:
            interval = range_text(estimate)
            if anchored.raw is not None:
                interval += f"; {percent(anchored.raw)} by the suite's labels"
            texts.append(f"{_NAMES.get(key, key)} {percent(estimate.value)} ({interval})")
        if estimate.reason:
            reasons.add(estimate.reason)
    text += f"): {', '.join(texts)}"
    if reasons:
        text += f" ({'; '.join(sorted(reasons))})"
    return f"{text}."


def _rate(rate: Estimate) -> str:
    return (
        f"{rate.count:,} of {counted(rate.n, 'case')} that people labelled blind ({_share(rate)})"
    )


# ---- People who label the same cases


def agreement_text(agreement: Agreement) -> str:
    """How far people agree, in pairs and beyond chance."""
    raw, alpha = agreement.raw, figure(agreement.alpha, "number").whole
    pairs = f"{percent(raw.value)} of pairs of labels on {counted(raw.n, 'case')}"
    return f"{pairs}; agreement beyond chance (Krippendorff's alpha) is {alpha}"


def people_answer(session: Session, suite: str) -> Iterator[Block]:
    """How far people agree, and judges with them, in a line; of labels alone their spread."""
    people = session.people.get(suite)
    if people is not None:
        text = f"people agree with each other in {percent(people.agreement.raw.value)} of pairs"
        for judge, beside in people.judges.items():
            text += f", and {one_line(judge or THE_JUDGE)} agrees with people in "
            text += percent(beside.agreement.value)
        yield Sentence(text)
    votes = session.grounds_of(suite).votes
    if votes.cases and not session.results:
        labels = Counter(votes.word(case.label) for case in votes.cases)
        rows = [Row(label, (Cell(f"{number:,}"),)) for label, number in labels.most_common()]
        yield Table("label", ("cases",), rows)


def disputed_cases(session: Session) -> Iterator[Cases]:
    """The cases of which at most half of all people say one thing, with what they say."""
    for suite, grounds in session.grounds.items():
        votes, remarks = grounds.votes, {}
        # Of a table each result is made when it is asked for.
        results = session.results if votes.disputed else ()
        ids = {result.spec.label_key: result.case_id for result in results if result.suite == suite}
        for number in votes.disputed:
            (rubric, run, epoch), _, _, of_people = votes.cases[number]
            parts = [run, rubric if session.has_rubrics else "", epoch if epoch > 1 else ""]
            said = (f"{person}: {votes.word(vote)}" for person, vote in of_people.items())
            name = ids.get((rubric, run, epoch)) or ", ".join(map(str, filter(None, parts)))
            remarks[name] = listed(said, _MOST_VOTES)
        title = f"{session.prefix(suite)}cases without a label, because people disagree"
        yield from case_list(session, title, remarks, "warning")


def people_sections(session: Session) -> Iterator[Section]:
    """How far people agree; judges beside each of them and they beside each other; whether judges
    may take their place; figures with disputed cases.
    """
    is_weighted = any(session.verdicts.weight.names)
    for suite, people in session.people.items():
        blocks: list[Block] = [Sentence(f"People agree in {agreement_text(people.agreement)}.")]
        if is_weighted:
            blocks.append(Sentence("In this section each label counts once, whatever its weight."))
        blocks.append(pairs_table("pair", people.pairs))
        for judge, beside in people.judges.items():
            name = one_line(judge or THE_JUDGE)
            if test := beside.alt_test:
                experts, others = map(len, test.matched.values())
                text = (
                    f"Alternative annotator test: if people are experts (margin 0.2), {name} does "
                    f"as well as {experts:,} of {len(test.people):,} people; if not (margin 0.1), "
                    f"as well as {others:,}. To pass, a judge must do as well as half of them. In "
                    f"{figure(test.advantage).whole} of comparisons, {name} agrees with the other "
                    "people at least as well as a person does."
                )
                blocks.append(Sentence(text))
            by_votes = [f"{title} {figure(of).whole}" for title, of in beside.by_votes.items()]
            if by_votes and not is_weighted:
                text = f"If disputed cases count by their votes, {name} has {', '.join(by_votes)}."
                blocks.append(Sentence(text))
        yield Section(f"{session.prefix(suite)}People", blocks)
