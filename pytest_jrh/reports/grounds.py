"""What the labels of a session rest on, and what follows for its figures, as all reports say it;
how people who label the same cases agree with each other, and judges with them; which cases are
disputed, and how the labels of a table without verdicts are spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_jrh.core import counted, grouped_by, one_line
from pytest_jrh.core.documents import listed
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
    Block,
    Cases,
    Cell,
    Line,
    Row,
    Section,
    Sentence,
    Table,
    Weight,
    figure,
)
from pytest_jrh.reports.case_facts import label_basis, score_name
from pytest_jrh.reports.session import Session
from pytest_jrh.reports.topics import case_list, pairs_table
from pytest_jrh.stats.figures import percent, range_text
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.people import (
    FEWEST_LABELS,
    THE_JUDGE,
    AgainstPeople,
    Agreement,
    violation_rates,
)

_NAMES = {"false_positive_rate": "FPR"}
_MOST_VOTES = 5
_ADVICE = "use a verifier of another provider, or label some cases blind (docs: labels)"


def label_sentences(session: Session) -> list[str]:
    """All that is to be said of the labels of a session, suite by suite."""
    sentences: list[str] = []
    shared_models: list[SharedModel] = []
    for suite, grounds in session.grounds.items():
        sentences += violation_sentences(session, suite)
        for sentence in _people_sentences(_of_suite(session, suite), grounds):
            sentences.append(f"{session.prefix(suite)}{sentence}")
        shared_models += grounds.shared_models
    for shared in dict.fromkeys(shared_models):
        judge = f"Judge {shared.judge}".rstrip()
        sentences.append(
            f"{judge} and verifier are one model ({shared.model}): errors that both make count as "
            f"right, so accuracy may be too high; {_ADVICE}."
        )
    return sentences


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
                f"({_share(judged)}); "
            )
            if corrected.value is None:
                yield f"{text}not corrected: {corrected.why}."
            else:
                labels = counted(rate.labelled, "label")
                if rate.drawn:
                    labels += " drawn at random"
                yield (
                    f"{text}corrected by {labels}, {percent(corrected.value)} are (95% interval "
                    f"{range_text(corrected)})."
                )
        if any(rate.corrected.value is not None and not rate.drawn for _, rate in rates):
            yield f"{by}{_NOT_DRAWN}"


_NOT_DRAWN = (
    "Nothing says that the cases with a label were drawn at random from all, and the corrected "
    "rate holds only if they were (docs: labels)."
)


def _share(rate: Estimate) -> str:
    """A share and its interval."""
    return f"{percent(rate.value)}, {range_text(rate)}"


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
        f"{counted(len(remarks), 'wrong label')}, say people who did not see the answer.",
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
            "made": f"by {grounds.verifier or 'the verifier'}",
            "people": "by people",
            "program": "by a program",
            "column": f"of column {one_line(grounds.column)}",
            "unconfirmed": "unverified",
            "altered": "changed on disk since",
        }
        if grounds.shared_models:
            texts["made"] = "by the judge's model"
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
        yield "No judged case has a person's blind label: nothing compares the judge with people."
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
            "session, or have changed since."
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
    text = f"Against people ({counted(against.labelled, 'blind label')}"
    if left_out:
        text += f"; {' and '.join(left_out)} left out"
    if against.labelled < FEWEST_LABELS:
        return f"{text}): too few to correct a figure with; at least {FEWEST_LABELS} are needed."
    figures = []
    reasons = set()
    for key, anchored in against.figures.items():
        estimate = anchored.estimate
        if estimate.value is not None:
            interval = range_text(estimate)
            if anchored.raw is not None:
                interval += f"; {percent(anchored.raw)} by the suite's labels"
            figures.append(f"{_NAMES.get(key, key)} {percent(estimate.value)} ({interval})")
        if estimate.reason:
            reasons.add(estimate.reason)
    text += f"): {', '.join(figures)}"
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
    return (
        f"{percent(raw.value)} of pairs on {counted(raw.n, 'case')}, Krippendorff's alpha {alpha}"
    )


def people_answer(session: Session, suite: str) -> Iterator[Block]:
    """How far people agree, and judges with them, in a line; of labels alone their spread."""
    people = session.people.get(suite)
    if people is not None:
        text = f"people agree with each other in {percent(people.agreement.raw.value)}"
        for judge, beside in people.judges.items():
            text += f", {one_line(judge or THE_JUDGE)} with them in "
            text += percent(beside.agreement.value)
        yield Sentence(text)
    votes = session.grounds_of(suite).votes
    if votes.cases and not session.results:
        labels = Counter(votes.word(case.label) for case in votes.cases)
        rows = [Row(label, (Cell(f"{number:,}"),)) for label, number in labels.most_common()]
        yield Table("label", ("cases",), tuple(rows))


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
        title = f"{session.prefix(suite)}disputed, so without a label"
        yield from case_list(session, title, remarks, "warning")


def people_sections(session: Session) -> Iterator[Section]:
    """How far people agree; judges beside each of them and they beside each other; whether judges
    may take their place; figures with disputed cases.
    """
    is_weighted = any(session.verdicts.weight.names)
    for suite, people in session.people.items():
        blocks: list[Block] = [Sentence(f"People agree in {agreement_text(people.agreement)}.")]
        if is_weighted:
            blocks.append(Sentence("Here each label counts once, whatever its weight."))
        blocks.append(pairs_table("beside each other", people.pairs))
        for judge, beside in people.judges.items():
            name = one_line(judge or THE_JUDGE)
            if test := beside.alt_test:
                experts, others = map(len, test.matched.values())
                text = (
                    f"Alternative annotator test: {name} does as well as {experts:,} of "
                    f"{len(test.people):,} people to within 0.2 (for experts), as {others:,} to "
                    "within 0.1 (for others); half of them are needed. It is as near to the rest "
                    f"as a person, or nearer, in {figure(test.advantage).whole}."
                )
                blocks.append(Sentence(text))
            by_votes = [f"{title} {figure(of).whole}" for title, of in beside.by_votes.items()]
            if by_votes and not is_weighted:
                text = f"With disputed cases by their votes, {name}: {', '.join(by_votes)}."
                blocks.append(Sentence(text))
        yield Section(f"{session.prefix(suite)}People", tuple(blocks))
