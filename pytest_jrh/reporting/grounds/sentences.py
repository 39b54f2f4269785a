"""What the labels of a session rest on, and what follows for its figures, in sentences that all
reports share (rules N2, N4 to N6).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_jrh.labels.people import blind_labels
from pytest_jrh.models import MADE
from pytest_jrh.reporting.grounds.people import people_levels, unmatched
from pytest_jrh.stats.columns import decimal, percent, range_text, ranged
from pytest_jrh.stats.grounds.sides import sides_levels
from pytest_jrh.stats.inference.agreement import agreement
from pytest_jrh.stats.inference.anchored import FEWEST_LABELS
from pytest_jrh.stats.panels import made_case_id
from pytest_jrh.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_jrh.labels.grounds import Grounds, Kinship
    from pytest_jrh.models import CaseResult
    from pytest_jrh.reporting.session_results import SessionResults
    from pytest_jrh.stats.grounds.people import AgainstPeople, ErrorRate, VerifierAgainstPeople
    from pytest_jrh.stats.grounds.sides import Sides
    from pytest_jrh.stats.inference.anchored import Anchored
    from pytest_jrh.stats.inference.intervals import Bounds

_NAMES = {
    "accuracy": "accuracy",
    "exact": "exact",
    "recall": "recall",
    "false_positive_rate": "FPR",
}
_ADVICE = "take a verifier of another provider, or label some cases blind (docs: labels)"


def label_sentences(session: SessionResults) -> list[str]:
    """All that is to be said of the labels of a session, suite by suite."""
    return [*_sentences(session), *_kin_sentences(session)]


def _sentences(session: SessionResults) -> Iterator[str]:
    several = len(session.grounds) > 1
    for suite, grounds in session.grounds.items():
        own = [result for result in session.results if result.suite == suite and not result.derived]
        of = f"{suite}: " if several else ""
        if rest := rest_sentence(own, grounds):
            yield of + rest
        for sentence in annotator_sentences(grounds):
            yield of + sentence
        for judge in dict.fromkeys(result.judge for result in own):
            by = f"{of}judge {judge}: " if judge else of
            results = [result for result in own if result.judge == judge]
            for rubric, sides in sides_levels(results):
                yield by + (f"{rubric}: " if rubric else "") + sides_sentence(sides)
        for sentence in people_sentences(own, grounds):
            yield of + sentence


def _kin_sentences(session: SessionResults) -> Iterator[str]:
    """Which judges may share the verifier's errors, each once."""
    kin = (each for grounds in session.grounds.values() for each in grounds.kin)
    yield from dict.fromkeys(map(kin_sentence, kin))


def rest_counts(results: Iterable[CaseResult], grounds: Grounds) -> dict[str, int]:
    """How many made cases have a label that a verifier confirmed, that people or a program gave,
    and that nobody confirmed, or not as the case is on the disk now; those that people labelled
    blind too are counted apart.
    """
    blind = blind_labels(grounds.people)
    # The judges of a panel look at the same cases.
    made = {
        made_case_id(result): result
        for result in results
        if result.outcome in MADE and not result.derived
    }
    counts = Counter(map(_ground, made.values()))
    # Cases that are equal have one label of a person.
    counts["blind"] = len({result.case_digest for result in made.values()} & blind.keys())
    names = ("confirmed", "people", "program", "unverified", "altered", "blind")
    return {name: counts[name] for name in names}


def _ground(result: CaseResult) -> str:
    reviewed = result.human_reviewed in ("accepted", "edited")
    if result.altered and not reviewed:
        return "altered"
    if result.labelled_by is not None:
        return result.labelled_by
    if reviewed:
        return "people"
    return "confirmed" if result.verified else "unverified"


def rest_sentence(results: Sequence[CaseResult], grounds: Grounds) -> str:
    """What the labels rest on; nothing where no case was made."""
    counts = rest_counts(results, grounds)
    verifier = f"confirmed by {grounds.verifier or 'the verifier'}"
    parts = [
        f"{counts[key]:,} {said}"
        for key, said in (
            ("confirmed", verifier),
            ("people", "given or accepted by people"),
            ("program", "given by a program"),
            ("unverified", "unverified (the verifier is off, or did not confirm them)"),
            ("altered", "unconfirmed (changed on the disk since they were made)"),
        )
        if counts[key]
    ]
    if not parts:
        return ""
    refused = {
        made_case_id(result)
        for result in grounds.with_rejected(results)
        if result.rejected is not None and not result.derived
    }
    if refused and counts["confirmed"]:
        parts[0] += f" ({len(refused):,} rejected)"
    blind = f"; {counts['blind']:,} also labelled blind by people" if counts["blind"] else ""
    return f"Labels: {', '.join(parts)}{blind}."


def annotator_sentences(grounds: Grounds) -> Iterator[str]:
    """How far annotators of natural runs agree, where several labelled one."""
    found = agreement(grounds.votes, ordinal=grounds.ordinal)
    if found.units:
        alpha = "" if found.alpha is None else f", Krippendorff's alpha {decimal(found.alpha)}"
        runs = counted(found.units, "run")
        yield f"Annotators agree in {percent(found.raw)} of pairs on {runs}{alpha}."


def kin_sentence(kin: Kinship) -> str:
    """That a judge's model is the verifier's, or of its family."""
    judge = f"Judge {kin.judge} and verifier" if kin.judge else "Judge and verifier"
    what = (
        f"are one model ({kin.model})"
        if kin.same
        else (f"are of one model family ({kin.model}, {kin.verifier})")
    )
    return (
        f"{judge} {what}: errors that both make count as right, so that accuracy may be too high; "
        f"{_ADVICE}."
    )


def sides_sentence(sides: Sides) -> str:
    """The accuracy on natural beside that on synthetic cases."""
    natural, synthetic = (
        f"{percent(side.share.value)} ({range_text(side.bounds)}, n {side.share.n:,})"
        for side in (sides.natural, sides.synthetic)
    )
    return (
        f"Accuracy on natural cases {natural}, on synthetic ones {synthetic}: a gap of "
        f"{_points(sides.gap)} points{_between(sides.bounds)}."
    )


def people_sentences(results: Sequence[CaseResult], grounds: Grounds) -> Iterator[str]:
    """The judges and the verifier of a suite against the blind labels of people: in total, and of
    several rubrics for each with enough of them; nothing without any label.
    """
    levels = people_levels(results, grounds)
    if grounds.people and not levels:
        yield "No judged case has a blind label of a person, so no figure is held against people."
    few = [level for level in levels[1:] if level.labelled < FEWEST_LABELS]
    for level in levels:
        if level in few:
            continue
        of = f"{level.rubric}: " if level.rubric else ""
        for judge, found in level.judges.items():
            if found is not None:
                yield f"{of}judge {judge}: {_against(found)}" if judge else of + _against(found)
        if level.verifier is not None:
            for sentence in _verifier(level.verifier):
                yield of + sentence
    if few:
        named = ", ".join(f"{level.rubric} ({level.labelled:,})" for level in few)
        yield f"Too few blind labels for figures by rubric: {named}."
    missing = unmatched(results, grounds)
    if missing:
        yield (
            f"Not counted: {counted(missing, 'blind label')} of cases that are not in this "
            "session, or have changed since."
        )


def _verifier(found: VerifierAgainstPeople) -> Iterator[str]:
    if found.false_confirmations.share.n:
        yield f"The verifier confirmed wrong labels in {_rate(found.false_confirmations)}."
    if found.false_rejections.share.n:
        yield f"The verifier rejected right labels in {_rate(found.false_rejections)}."
    if found.kappa.value is not None:
        kappa = ranged(decimal(found.kappa.value), found.kappa_bounds, "number")
        yield f"People and the verifier agree with kappa {kappa}."
    if found.reviewers.units:
        alpha = found.reviewers.alpha
        alpha_text = "" if alpha is None else f", Krippendorff's alpha {decimal(alpha)}"
        cases = counted(found.reviewers.units, "case")
        yield f"Reviewers agree in {percent(found.reviewers.raw)} of pairs on {cases}{alpha_text}."


def _against(found: AgainstPeople) -> str:
    unclear = (
        f"; {counted(found.unclear, 'case')} without a majority left out" if found.unclear else ""
    )
    head = f"Against people ({counted(found.labelled, 'blind label')}{unclear})"
    if found.labelled < FEWEST_LABELS:
        return f"{head}: too few to correct a figure by; at least {FEWEST_LABELS} are needed."
    figures = [
        f"{_NAMES[key]} {_anchored(figure)}"
        for key, figure in found.figures.items()
        if figure.value is not None
    ]
    missing = {figure.bounds.reason for figure in found.figures.values() if figure.value is None}
    why = f" ({'; '.join(sorted(filter(None, missing)))})" if missing else ""
    return f"{head}: {', '.join(figures)}{why}."


def _anchored(figure: Anchored) -> str:
    raw = "" if figure.raw is None else f"; {percent(figure.raw)} by the suite's labels"
    return f"{percent(figure.value)} ({range_text(figure.bounds)}{raw})"


def _rate(rate: ErrorRate) -> str:
    share = rate.share
    return (
        f"{share.count:,} of {counted(share.n, 'case')} that people labelled blind "
        f"({percent(share.value)}, {range_text(rate.bounds)})"
    )


def _points(gap: float) -> str:
    return f"{100 * gap:+.1f}"


def _between(bounds: Bounds) -> str:
    if bounds.lower is None or bounds.upper is None:
        return ""
    return f" ({_points(bounds.lower)} to {_points(bounds.upper)})"
