"""What the labels of a session rest on, and what follows for its figures, as all reports say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_jrh.core import grouped_by
from pytest_jrh.core.documents import listed
from pytest_jrh.core.results import CaseResult
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.people import (
    Grounds,
    SharedModel,
    held_against_people,
    rest_counts,
    unmatched,
    wrongly_labelled,
)
from pytest_jrh.reports.annotators import agreement_text
from pytest_jrh.reports.blocks import Block, Cases, Line, Weight
from pytest_jrh.reports.case_facts import label_basis, score_name
from pytest_jrh.reports.session import Session
from pytest_jrh.stats.figures import percent, range_text
from pytest_jrh.stats.intervals import Estimate
from pytest_jrh.stats.people import (
    FEWEST_LABELS,
    AgainstPeople,
    digest_of,
    violation_rates,
)
from pytest_jrh.stats.verdicts import Verdicts

_NAMES = {"false_positive_rate": "FPR"}
_ADVICE = "take a verifier of another provider, or label some cases blind (docs: labels)"


def label_sentences(session: Session) -> list[str]:
    """All that is to be said of the labels of a session, suite by suite."""
    sentences: list[str] = []
    shared_models: list[SharedModel] = []
    for suite, grounds in session.grounds.items():
        of_suite = session.prefix(suite)
        results = _of_suite(session, suite)
        sentences += violation_sentences(session, suite)
        for sentence in _people_sentences(results, grounds):
            sentences.append(f"{of_suite}{sentence}")
        shared_models += grounds.shared_models
    for shared in dict.fromkeys(shared_models):
        judge = f"Judge {shared.judge}".rstrip()
        sentences.append(
            f"{judge} and verifier are one model ({shared.model}): errors that both make count as "
            f"right, so that accuracy may be too high; {_ADVICE}."
        )
    return sentences


def violation_sentences(session: Session, suite: str) -> Iterator[str]:
    """How often the runs of a suite are violations, judge by judge, where not all have a label."""
    for (of_suite, judge), verdicts in session.by_judge.items():
        if of_suite == suite:
            by = session.prefix(suite)
            if judge:
                by += f"judge {judge}: "
            for sentence in rate_sentences(verdicts, session.grounds[suite]):
                yield f"{by}{sentence}"


def _of_suite(session: Session, suite: str) -> list[CaseResult]:
    return [result for result in session.made_results if result.suite == suite]


def _basis_text(counts: Mapping[str, int], grounds: Grounds) -> str:
    """What the labels rest on; empty where no case was made."""
    texts = {
        "made": f"by {grounds.verifier or 'the verifier'}",
        "people": "by people",
        "program": "by a program",
        "column": f"of column {one_line(grounds.column)}",
        "unconfirmed": "unverified",
        "altered": "changed on the disk since",
    }
    if grounds.shared_models:
        texts["made"] = "by the judge's model"
    if grounds.annotators:
        texts["people"] += f" ({listed(grounds.annotators)})"
    return ", ".join(f"{counts[key]:,} {text}" for key, text in texts.items() if counts[key])


def wrong_labels(session: Session, suite: str) -> list[Block]:
    """The labels that people found wrong, with whose they are and who said so."""
    wrong = wrongly_labelled(_of_suite(session, suite), session.grounds_of(suite))
    if not wrong:
        return []
    cases = []
    for result in wrong:
        basis = label_basis(session, result)
        label = score_name(session, result, result.label)
        cases.append(session.named(result.case_id, f"{label} by {basis.text}"))
    heading = f"{counted(len(wrong), 'wrong label')}, say people who did not see the answer."
    return [Cases(heading, tuple(cases), "bad", most=3)]


def labels_line(session: Session) -> list[Line]:
    """Of each suite what its labels rest on, and how far people agree with them; as a warning where
    that is a reason to doubt the figures.
    """
    lines = []
    for suite, grounds in session.grounds.items():
        results = _of_suite(session, suite)
        counts = rest_counts(results, grounds)
        if session.is_table:
            given_by = "column" if grounds.column else "people"
            counts[given_by] = len(session.verdicts.judged.places("made"))
        text, wrong = _basis_text(counts, grounds), len(wrongly_labelled(results, grounds))
        if not text:
            continue
        is_checked_enough = counts["blind"] >= FEWEST_LABELS
        if counts["blind"]:
            needed = "" if is_checked_enough else f" ({FEWEST_LABELS} needed)"
            text += f"; people checked {counts['blind']:,}{needed}, {wrong or 'none'} wrong"
        weight: Weight = ""
        if counts["unconfirmed"] or counts["altered"] or wrong:
            weight = "warning"
        if grounds.shared_models and not is_checked_enough:
            weight = "warning"
        lines.append(Line("labels", f"{session.prefix(suite)}{text}", weight))
    return lines


def rate_sentences(verdicts: Verdicts, grounds: Grounds) -> Iterator[str]:
    """How often the runs that one judge judged are violations, by what it says and corrected by
    their labels: in total and for each of several rubrics; nothing where all runs have labels.
    """
    rates = violation_rates(verdicts, grounds.drawn)
    for rubric, rate in rates:
        judged, corrected = rate.judged, rate.corrected
        of = f"{rubric}: " if rubric else ""
        word = verdicts.scale.present()[0].word(1)
        text = (
            f"{of}The judge calls {judged.count:,} of {counted(judged.n, 'case')} {word} "
            f"({percent(judged.value)}, {range_text(judged)}); "
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
        yield _NOT_DRAWN


_NOT_DRAWN = (
    "Nothing says that the cases with a label were drawn at random from all, and the corrected "
    "rate holds only if they were (docs: labels)."
)


def _people_sentences(results: Sequence[CaseResult], grounds: Grounds) -> Iterator[str]:
    """The judges and the verifier of a suite against the blind labels of people: in total, and of
    several rubrics for each with enough of them.
    """
    if not grounds.people:
        return
    every_result = grounds.with_rejected(results)
    of_suite = list(_held_sentences(every_result, grounds))
    if not of_suite:
        yield "No judged case has a blind label of a person, so no figure is held against people."
    yield from of_suite
    by_rubric = grouped_by(every_result, "rubric_id")
    for rubric, of_rubric in by_rubric.items():
        labelled = len({digest_of(result) for result in of_rubric} & grounds.blind_votes.keys())
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
        left_out.append(f"{counted(against.undecidable, 'case')} that nobody can tell")
    text = f"Against people ({counted(against.labelled, 'blind label')}"
    if left_out:
        text += f"; {' and '.join(left_out)} left out"
    if against.labelled < FEWEST_LABELS:
        return f"{text}): too few to correct a figure by; at least {FEWEST_LABELS} are needed."
    figures = []
    reasons = set()
    for key, figure in against.figures.items():
        estimate = figure.estimate
        if estimate.value is not None:
            interval = range_text(estimate)
            if figure.raw is not None:
                interval += f"; {percent(figure.raw)} by the suite's labels"
            figures.append(f"{_NAMES.get(key, key)} {percent(estimate.value)} ({interval})")
        if estimate.reason:
            reasons.add(estimate.reason)
    text += f"): {', '.join(figures)}"
    if reasons:
        text += f" ({'; '.join(sorted(reasons))})"
    return f"{text}."


def _rate(rate: Estimate) -> str:
    return (
        f"{rate.count:,} of {counted(rate.n, 'case')} that people labelled blind "
        f"({percent(rate.value)}, {range_text(rate)})"
    )
