"""A session as one list of blocks, each at its place and all in one order: terminal, Markdown and
the page render types of blocks and places, and know of no topic. Among them are the verdicts to
read first, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from pytest_jrh.core import counted, frozen, grouped_by, listed, one_line
from pytest_jrh.core.diffs import Piece, changed_places, differences, near_changes
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.scales import NOT_APPLICABLE, Scale
from pytest_jrh.reports import topics
from pytest_jrh.reports.blocks import (
    MOST_ON_PAGE,
    Block,
    Cell,
    Diff,
    Headline,
    Line,
    Points,
    ReadFirst,
    Row,
    Section,
    Sentence,
    Table,
    WorstCase,
    figure,
)
from pytest_jrh.reports.case_facts import label_basis, request_and_answer, score_name
from pytest_jrh.reports.counts import (
    Share,
    count_blocks,
    finding_sentences,
    more_labels,
    probe_blocks,
    slice_tables,
)
from pytest_jrh.reports.session import WORST_FIRST, Session, run_title, spending_line, what_was_done
from pytest_jrh.stats import figures
from pytest_jrh.stats.decision import Kind, Word
from pytest_jrh.stats.figures import (
    ONE_BY_ONE,
    favour_sentence,
    favours,
    flicker_sentence,
    places_of,
    places_sentence,
)
from pytest_jrh.stats.probabilities import BINS, FALSE_ALARMS
from pytest_jrh.stats.verdicts import PromptChange, Verdicts


@frozen
class Summary:
    """A session in blocks, the worst suite first.

    `word` and `headline` are those of all suites together. Everybody reads `answer` and `steps`: of
    each suite its word, which of its labels people found wrong, and what is missed; then the cases
    to read first, what the labels rest on, what to do next. `doubts` make the figures doubtful, and
    `details` are what they come from.
    """

    word: Word
    headline: str
    headlines: Sequence[Headline]
    """The headline of each suite."""
    answer: Sequence[Block]
    steps: Sequence[ReadFirst | Line]
    doubts: Sequence[Block]
    details: Sequence[Block]

    @property
    def title(self) -> str:
        """The word and the headline in one line; a table that nothing decides about has no word."""
        return f"{self.word}: {self.headline}" if self.word else self.headline


def compose(session: Session, *, bars: bool = False) -> Summary:
    """All that there is to say of a session, without its secrets; with `bars` what is missed is a
    table also where nothing is.
    """
    by_suite = {suite: _headline(session, suite) for suite in session.suites}
    headlines = dict(sorted(by_suite.items(), key=lambda item: WORST_FIRST.index(item[1].word)))
    of_word = [suite for suite in headlines if headlines[suite].word == session.word]
    headline = listed(of_word, _MOST_SUITES)
    if len(headlines) == 1:
        headline = headlines[of_word[0]].text
    elif session.word:
        headline = f"{len(of_word):,} of {counted(len(headlines), 'suite')}: {headline}"
    summary = Summary(
        word=session.word,
        headline=headline,
        headlines=tuple(headlines.values()),
        answer=tuple(_answer(session, headlines, bars=bars)),
        steps=tuple(_steps(session)),
        doubts=tuple(_doubts(session)),
        details=tuple(_details(session)),
    )
    clean: Summary = session.redactor.value(summary)
    return clean


_MOST_SUITES = 3
_MOST_RATES = 2
_MOST_SYSTEMS = 5
_CONTEXT = 400


def _headline(session: Session, suite: str) -> Headline:
    """The word about a suite; of a table that nothing decides about what its judges come to."""
    of_several = suite if len(session.suites) > 1 else ""
    decision = session.decisions.get(suite)
    if decision is not None:
        return Headline(decision.word, decision.headline, of_several)
    return Headline("", _table_headline(session, suite), of_several)


def _table_headline(session: Session, suite: str) -> str:
    judged = session.sections_of(suite)
    if len(judged) > 1:
        return f"{len(judged):,} judges are compared"
    if not judged or not judged[0].total.counts.n:
        return "no case was judged" if session.results else "there are labels, but no verdicts"
    total = judged[0].total
    cases, wrong = counted(total.counts.n, "case"), total.counts.disagree
    if any(total.judged.weight.names) and total.accuracy.lower is not None:
        share = total.accuracy.complement()
        text = f"{figure(share).whole} of cases, by {counted(share.n, 'weighted label')}"
    elif wrong:
        text = f"{wrong:,} of {cases} ({figures.percent(wrong / total.counts.n)})"
    else:
        return f"the judge agrees with the label in all {cases}{figures.right_text(total.judged)}"
    name, kappa = total.kappa
    if kappa.value is not None:
        text += f"; {name} {figure(kappa, 'number').whole}"
    return f"the judge is wrong in {text}"


def _answer(session: Session, headlines: Mapping[str, Headline], *, bars: bool) -> Iterator[Block]:
    for suite, headline in headlines.items():
        yield headline
        # A right score, where another level than the label is one, too.
        of_rubrics = {scale.within for scale in session.of_suite(suite).scale.present()}
        if any(of_rubrics):
            within = f"{counted(max(of_rubrics), 'level')} of the label"
            if len(of_rubrics) > 1:
                within = f"{min(of_rubrics):,} to {within}, depending on the rubric"
            yield Sentence(f"right means within {within}")
        yield from topics.wrong_labels(session, suite)
        decision = session.decisions.get(suite)
        if decision is not None:
            yield from map(Sentence, decision.beside)
        yield from count_blocks(session, suite, bars=bars)
        yield from slice_tables(session, suite)
        yield from topics.people_answer(session, suite)
        for change in session.prompt_changes:
            if change.now.suite == suite:
                yield _prompt(change)
    yield from _unrecorded(session)
    yield from _probability_table(session)


def _steps(session: Session) -> Iterator[ReadFirst | Line]:
    first_case = worst_cases(session)
    if first_case:
        yield first_case
    rates = chain.from_iterable(
        topics.violation_sentences(session, suite) for suite in session.grounds
    )
    # Of a table that fails the reasons need the room, and the details have the rates.
    is_failing_table = session.is_table and session.word == "FAIL"
    for sentence in islice(rates, 0 if is_failing_table else _MOST_RATES):
        yield Line("violated", sentence)
    if not (first_case and session.is_part):
        # Of a part that is read again, the case says whose its label is.
        yield from topics.labels_line(session)
    yield from next_lines(session)


def _probability_table(session: Session) -> Iterator[Table]:
    """What judges that give probabilities would miss at few false alarms, and decide alone."""
    rows = []
    for (suite, judge), of_judge in session.probabilities.items():
        threshold = of_judge.threshold
        rows.append(
            Row(
                one_line(judge or suite),
                (
                    figure(of_judge.missed),
                    Cell(figures.NONE if threshold is None else f"{threshold:.4g}"),
                    Cell(figures.decimal(of_judge.brier.value)),
                    figure(of_judge.alone),
                ),
            )
        )
    if rows:
        yield Table(
            "judge",
            (
                f"missed at {FALSE_ALARMS:.0%} false alarms",
                "threshold",
                "Brier",
                f"decides alone, {100 * session.error:.3g}% wrong",
            ),
            rows,
        )


def _calibration(session: Session) -> Iterator[Section]:
    """How often cases are violations by their probability, and what else was counted of it."""
    for (suite, judge), of_judge in session.probabilities.items():
        rows = []
        for tenth, rate in of_judge.bins.items():
            low, high = tenth / BINS, (tenth + 1) / BINS
            is_so = (rate.lower or 0) <= high and low <= (rate.upper or 1)
            cell = replace(Share(rate).cell, weight="strong" if is_so else "bad")
            rows.append(Row(f"{low:.0%}-{high:.0%}", (cell,)))
        text = (
            f"With thresholds chosen on other cases, {of_judge.false_alarms.fraction} satisfied "
            "cases are false alarms."
        )
        if of_judge.sure is not None:
            text += f" The judge decides alone if it is at least {of_judge.sure:.4g} sure; "
            text += f"{of_judge.wrong.fraction} such verdicts are wrong."
        table = Table("probability", ("violated",), rows)
        yield Section(f"Probabilities of {one_line(judge or suite)}", (table, Sentence(text)))


def _prompt(change: PromptChange) -> Block:
    """The prompt of a judge that changed since the baseline, compared word by word."""
    of = f' of judge "{one_line(change.now.judge)}"' if change.now.judge else ""
    if change.before is None or not change.is_reworded:
        why = "the prompt of that version was not kept (--jrh-update-baseline keeps prompts)"
        if change.before is not None:
            why = "the prompt is the same, but the model or another setting has changed"
        text = f"the verdicts{of} in the baseline are from another version of the judge; {why}"
        return Sentence(text, "warning")
    file = Path(change.now.file).name
    pieces = near_changes(differences(change.before, change.now.prompt), _CONTEXT)
    return _diff(pieces, f"changed in {one_line(file) or 'the prompt'}{of}")


def _diff(pieces: Sequence[Piece], title: str) -> Diff:
    places = tuple(changed_places(pieces))
    if len(places) > 1:
        title += f" ({len(places):,} places)"
    return Diff(pieces, title, places)


def _unrecorded(session: Session) -> Iterator[Diff]:
    """What all calls that are not recorded ask otherwise, where that is one and the same."""
    changes = {
        result.why.difference for result in session.made_results if result.outcome == "unrecorded"
    }
    if len(changes) == 1 and not session.prompt_changes:
        lines = [line for line in changes.pop().splitlines() if line[0] in "-+"]
        pieces = [Piece("gone" if line[0] == "-" else "new", line[1:]) for line in lines]
        if pieces:
            yield _diff(pieces, "changed since the recording")


def _doubts(session: Session) -> Iterator[Block]:
    """What makes the figures doubtful: that the session did not end; what judges were not shown;
    then by judge; and of the whole session.
    """
    extents = session.extents.values()
    if any(extent.interrupted for extent in extents):
        kept = sum(extent.cases for extent in extents)
        cases = sum(extent.of for extent in extents)
        text = f"interrupted after {kept:,} of {counted(cases, 'case')}; run again to continue"
        if session.is_merge:
            missing = sum(len(decision.never_reported) for decision in session.decisions.values())
            text = f"no shard has results of {counted(missing, 'case')}; run these cases, then "
            text += "merge all shards again"
        yield Sentence(text, "warning")
    yield from topics.not_shown_blocks(session)
    for section in session.sections:
        judge = f"{one_line(section.label)}: " if len(session.sections) > 1 else ""
        decision = session.decisions.get(section.suite)
        reasons = () if decision is None else decision.reasons
        total = section.total
        # Of a part of a suite nobody expects both classes, and the decision says it already.
        is_left_out = (session.is_part or total.counts.unscored) or any(
            (reason.kind, reason.judge) == ("useless", section.judge) for reason in reasons
        )
        for warning in figures.all_warnings(total, section.rubrics, with_total=not is_left_out):
            yield Sentence(f"{judge}{warning}", "warning")
        if places := places_of(total.judged):
            text = f"{judge}{places_sentence(places)}"
            yield Sentence(text, "warning" if places.is_biased else "")
            for favour in favours(total.judged)[:_MOST_SYSTEMS]:
                text = f"{judge}{favour_sentence(favour)}"
                yield Sentence(text, "warning" if favour.is_shown else "")
        elif flicker := flicker_sentence(total):
            yield Sentence(f"{judge}{flicker}")
    for decision in session.decisions.values():
        _, other_lists = topics.gate_cases(session, decision)
        yield from other_lists
    yield from topics.review_blocks(session)
    yield from topics.left_out_blocks(session)
    yield from topics.disputed_cases(session)
    if not any(table.is_finding for table in session.probes) and session.word != "FAIL":
        yield from map(Sentence, finding_sentences(session.probes))
    for panel in session.panels:
        of = f" of {one_line(panel.suite)}" if len(session.panels) > 1 else ""
        yield Sentence(f"panel{of}: {topics.majority_sentence(panel)}")


def _details(session: Session) -> Iterator[Block]:
    """What the answer rests on: how sure it is, figures with their intervals, probes, panels,
    labels, what was shown, and where all of it comes from.
    """
    for suite, decision in session.decisions.items():
        title = "How sure is this?"
        if len(session.decisions) > 1:
            title += f" ({suite})"
        read_first, _ = topics.gate_cases(session, decision)
        sentences = map(Sentence, topics.certainty_sentences(decision))
        blocks: list[Block] = [*sentences, *read_first]
        if blocks:
            yield Section(title, blocks)
    for section in session.sections:
        table = topics.figures_table(section)
        note = "In parentheses: 95% intervals."
        if session.is_table:
            note += more_labels(section.total)
        if len(table.rows) > 1:
            note += f" {ONE_BY_ONE}"
        judged = section.total.judged
        flickering = judged.where(judged.answers.each(lambda scores: len({*scores}) > 1))
        remarks = dict.fromkeys(flickering.ids, "")
        for result in session.results_in(flickering.where(slice(MOST_ON_PAGE))):
            remarks[result.case_id] = result.scores_text
        of_flicker = topics.case_list(session, "flickering", remarks)
        more_blocks = (*topics.more_figures(section), *of_flicker)
        yield Section(f"Figures of {section.label}", (table, Sentence(note, "muted"), *more_blocks))
        for key, of_key in session.slices[section.suite, section.judge].items():
            table = replace(topics.figures_table(of_key), first=key)
            yield Section(f"Figures of {section.label} by {one_line(key)}", (table,))
    yield from _calibration(session)
    yield from probe_blocks(session.probes)
    yield from topics.panel_blocks(session)
    yield from topics.people_sections(session)
    if labels := tuple(topics.label_sentences(session)):
        yield Section("Labels", (Points(labels),))
    points = (*session.about, *session.origin, *topics.shown_sentences(session))
    origin: list[Block] = [Points(points)] if points else []
    if not session.is_table:
        origin.append(Sentence(spending_line(session.spending, session.wall_seconds)))
    if origin:
        yield Section("Where these figures come from", origin)


# ---- What a reader does next, and which verdicts to read first


def next_lines(session: Session) -> Iterator[Line]:
    """The one next step, where there is one, behind what would decide an UNCLEAR change."""
    decisions = session.decisions.values()
    if session.record_command:
        # What is decided without these cases may be another thing with them.
        outcome = session.verdicts.outcome
        missing = int(outcome.equals("unrecorded").sum())
        unusable = int(outcome.equals("invalid_response").sum())
        # Recorded answers cannot be used.
        text = f"asks again about {counted(unusable, 'case')}; before that, change the prompt, "
        text += "the model, or `verdict` and `score_map`"
        if missing:
            text = f"with an API key, records the missing calls of {counted(missing, 'case')} and "
            text += "no others; --jrh-plan shows their number and cost"
        yield Line("next", text, "warning", session.record_command)
        return
    for decision in decisions:
        if decision.update_command:
            text = "run this if the cases that the baseline does not have are new"
            yield Line("next", text, "warning", decision.update_command)
            return
    if deciding := _what_decides(session):
        yield Line("unclear", deciding)
    if session.is_table and not session.results:
        text = "--verdict COL compares a judge with these labels; settle disputes in a separate "
        yield Line("next", f"{text}column (--settled COL), or with `label --disagreements`")
        return
    worst = worst_verdicts(session)
    if len(worst) and (session.is_table or session.word != "PASS"):
        yield _correct(session, worst)
        return
    for table in session.probes:
        # Where something failed, verdicts that chance could have turned are worth reading, too.
        if table.is_finding or (session.word == "FAIL" and table.total.turned):
            first = session.result(table.cases[0]).spec
            text = f"read {one_line(f'{first.run_id} ({first.variant})')} first, change "
            text += f"{_judge_to_fix(session, table.judge)}, and run again with -k {table.probe}"
            yield Line("next", text)
            return
    if session.is_table:
        # The others run pytest again, which knows nothing of a table.
        return
    if session.word == "FAIL":
        yield Line(
            "next",
            "remove the cause that the errors name, and run again; only missing cases are made",
        )
        return
    for (rubric, test), results in grouped_by(session.cases, "rubric_id", "test").items():
        kinds = {result.why.kind for result in results}
        if session.word != "PASS" and kinds <= {"no_plan", "not_confirmed"}:
            text = f'"{one_line(rubric)}" has no case of {test}: reword this rubric; if only tool '
            text += "calls can break the rubric, set `edits: acts` in `cases`"
            yield Line("next", text, command=session.command(["--jrh-record-mode=new_episodes"]))
            return
    if not session.is_judged:
        return
    if any(topics.wrong_labels(session, suite) for suite in session.grounds):
        text = "drop the labels that people found wrong"
        yield Line("next", text, command=session.command(["--jrh-review"]))
        return
    if session.is_part or session.is_merge:
        return
    if not any(decision.active for decision in decisions):
        options = _baseline_options(session)
        text = "compares these verdicts with the baseline"
        if len(options) > 1:
            text = "saves these verdicts as the baseline of later sessions"
        yield Line("next", text, command=session.command(options))
        return
    text = f"after you change {_judge_to_fix(session, '')}, this asks about these cases again"
    command = session.command(["--jrh-judge-record-mode=new_episodes"])
    yield Line("next", text, command=command)


def _baseline_options(session: Session) -> list[str]:
    """What compares with the baseline of a suite, and where there is none makes it."""
    baseline = f"inputs/baselines/{session.suites[0]}.json"
    is_there = (session.folder / baseline).exists()
    return [f"--jrh-baseline={baseline}", *(() if is_there else ["--jrh-update-baseline"])]


def _correct(session: Session, worst: Verdicts) -> Line:
    """Labels, of which those of a table are in its file, or the judge."""
    if session.is_table:
        text = f"read {counted(len(worst.made.present()), 'case')}"
        if session.decision and session.decision.comparison:
            newly_wrong = {*worst.ids} & {*session.decision.regressions}
            text += f" ({len(newly_wrong):,} newly wrong)"
        grounds = session.grounds_of(session.suites[0])
        names = grounds.votes.person.names
        whose = f" of {listed(names, _MOST_SUITES)}" if names else ""
        text += f"; if a label{whose} is wrong, correct that label in the table"
        if grounds.votes.disputed and grounds.file:
            text += f"; to settle disputes, label TABLE --disagreements {one_line(grounds.file)}"
        elif grounds.votes.disputed:
            text += "; settle disputes in a separate column (--settled COL)"
        return Line("next", text)
    wrong = session.results_in(worst)
    # What people or a program said is corrected where they said it.
    is_made = any(result.labelled_by in ("made", "unconfirmed") for result in wrong)
    correct = "drop cases with a wrong label" if is_made else "correct wrong labels"
    text = f"{correct}, or fix {_judge_to_fix(session, wrong[0].judge)}"
    decisions = session.decisions.values()
    # A part of a suite is not what a baseline is updated from.
    options = []
    if any(decision.regressions for decision in decisions):
        options = ["--jrh-update-baseline"]
    elif not any(decision.active for decision in decisions):
        options = _baseline_options(session)
    if "--jrh-update-baseline" in options and not session.is_part:
        text += f"; to accept the verdicts, add {' '.join(options)}"
    command = session.command(["--lf", "--jrh-review"])
    if command:
        text = f"opens a page: {text}"
    return Line("next", text, command=command)


def _judge_to_fix(session: Session, judge: str) -> str:
    """What is to be changed of a judge: the only one's prompt, where it has a file."""
    if judge:
        return f'judge "{one_line(judge)}"'
    files = {Path(line.file).name for line in session.judges if line.file}
    return files.pop() if len(files) == 1 else "the judge"


_DECIDED_BY: Mapping[Kind, str] = {
    "limit": "use more cases, or `repeats: 3`",
    "proof": "use more cases",
    "left": "if these cases were removed on purpose, accept this with --jrh-update-baseline",
    "grown": "read the new cases; if they are right, accept them with --jrh-update-baseline",
}
"""By the kind of a reason what decides what is UNCLEAR."""
_MORE_LABELS = "use more cases with a label, or more verdicts on each case"
_DECIDED_IN_TABLE: Mapping[Kind, str] = {
    "limit": _MORE_LABELS,
    "proof": _MORE_LABELS,
    "left": "if these cases are missing on purpose, pass --unclear=pass",
}


def _what_decides(session: Session) -> str:
    """What decides a change that is UNCLEAR; empty where nothing is."""
    decision = session.decision
    if decision is None or decision.word != "UNCLEAR" or decision.passed:
        return ""
    kind = decision.reasons[0].kind
    if kind == "drop":
        return decision.reasons[0].needs
    if kind == "left" and decision.comparison is None:
        return "run a config that does not have the skipped cases"
    if session.is_table:
        return _DECIDED_IN_TABLE.get(kind, "")
    return _DECIDED_BY.get(kind, "")


def worst_verdicts(session: Session) -> Verdicts:
    """The cases that are judged wrong, in the order in which to read them: first those that were
    right before, or that nothing accepts; of these the ones whose label a person confirmed, and
    last those whose label people found wrong; then by how far off the verdict is, how many judges
    are wrong, and how many repeats. Cases of probes are left out.
    """
    news = set[str]()
    flickered = set[str]()
    for decision in session.decisions.values():
        news.update(decision.regressions, decision.new_wrong)
        flickered.update(decision.flickered)
    verdicts = session.verdicts
    wrong = verdicts.where(verdicts.wrong & ~verdicts.derived)
    # The labels of a table all rest on the same.
    certainty = [0] * len(wrong)
    if not session.is_table:
        certainty = [
            -label_basis(session, result).certainty for result in session.results_in(wrong)
        ]
    return wrong.in_order(
        [case_id not in news for case_id in wrong.ids],
        [case_id in flickered for case_id in wrong.ids],
        certainty,
        -wrong.kinds("scale", "score", "label").each(_distance, int),
        -wrong.made.sizes,
        wrong.kinds("answers", "label").each(lambda kind: kind[0].count(kind[1]), int),
    )


def _distance(kind: tuple[Scale, int | None, int]) -> int:
    scale, score, label = kind
    if score is None or not scale.is_ordered or NOT_APPLICABLE in (score, label):
        return 1
    return abs(score - label)


def read_first(session: Session) -> Verdicts:
    """The wrong verdicts, and behind them those that a probe turns more often than chance does."""
    rows = [*worst_verdicts(session).row]
    for table in session.probes:
        if table.is_finding:
            rows += map(session.rows.__getitem__, table.cases)
    return session.verdicts.where(rows)


def worst_cases(session: Session) -> ReadFirst | None:
    """The cases to read first, one of a panel once; None where no verdict is wrong."""
    worst = read_first(session)
    of_cases = worst.places("made").values()
    cases = []
    for places in islice(of_cases, MOST_ON_PAGE):
        results = session.results_in(worst.where(places))
        result = results[0]
        judge = f"judge {one_line(result.judge)}".rstrip()
        if len(results) > 1:
            judge = f"{judge} (one of {len(results):,} wrong judges)"
        cases.append(
            WorstCase(
                case_id=result.case_id,
                run=run_title(result, with_judge=False),
                rubric=one_line(result.rubric_id) if session.has_rubrics else "",
                done=what_was_done(result),
                mistake=_mistake(result),
                label=score_name(session, result, result.label),
                basis=label_basis(session, result).text,
                judge=judge,
                reason=one_line(result.reasoning),
            )
        )
    if not cases:
        return None
    first = session.result(cases[0].case_id)
    case = session.case(first)
    edits = () if case is None else case.outcome.edits
    messages = session.messages(first)
    parts = tuple(request_and_answer(messages, edits))
    return ReadFirst(cases, len(of_cases) - len(cases), parts)


def _mistake(result: CaseResult) -> str:
    """What kind of mistake a wrong verdict is."""
    scale = result.scale
    if result.spec.derived:
        return f"misled by {result.test}"
    if not result.repeated and result.mistake != "wrong":
        return result.mistake
    gave, right = result.scores_text, result.label_text
    if not (result.repeated or scale.is_ordered or result.score is None):
        gave, right = map(scale.word, (result.score, result.label or 0))
    return f"the verdict is {gave}, but {right} is right"
