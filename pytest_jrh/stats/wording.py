"""What a decision says of the judges, as clauses: what they lost, missed and raised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.core.model import JUDGED
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.changes import LEVEL

if TYPE_CHECKING:
    from pytest_jrh.config.schema import GateRules
    from pytest_jrh.core.model import CaseResult
    from pytest_jrh.stats.changes import SetChange


Word: TypeAlias = Literal["PASS", "UNCLEAR", "FAIL", ""]
"""What is decided; empty where nothing is to be decided."""

MEANINGS = {0: "satisfied", 1: "violated"}
"""What a binary score means."""

_ROUNDING = 1e-9
_MOST_NAMED = 3


def chance_text(p_value: float) -> str:
    """How often chance does as much."""
    of_hundred = 100 * p_value
    if of_hundred < 1:
        return "chance does as much in fewer than 1 of 100"
    return f"chance does as much in {of_hundred:.0f} of 100"


def allowed_drop(change: SetChange, rules: GateRules) -> float:
    """What a set may lose: of a rubric twice as much as of a class."""
    return 2 * rules.max_drop if change.kind == "rubric" else rules.max_drop


def loss_text(sets: Sequence[SetChange]) -> str:
    """What a judge has lost in these sets: the classes and probes where they are among them, else
    the worst rubrics.
    """
    named = [of for of in sets if of.kind != "rubric"]
    if named:
        return " and ".join(map(_class_text, named))
    rubrics = sorted(sets, key=lambda of: -of.drop)
    texts = [
        f"{_of_verdicts(of)} of {one_line(of.name)}"
        if not of.lost
        else f"{len(of.lost):,} of {of.right_before:,} of {one_line(of.name)}"
        for of in rubrics[:_MOST_NAMED]
    ]
    if len(rubrics) > _MOST_NAMED:
        texts.append(f"more of {counted(len(rubrics) - _MOST_NAMED, 'other rubric')}")
    return f"is newly wrong on {', '.join(texts)}"


def _class_text(change: SetChange) -> str:
    lost, before = len(change.lost), change.right_before
    if change.kind == "probe":
        turned = counted(lost - len(change.won), "more verdict")
        return f"is turned by {one_line(change.name)} in {turned} of {change.n:,} than before"
    if change.is_ordinal:
        was, now = change.before.mean * change.width, change.now.mean * change.width
        return f"is off by {now:.2f} levels on average, before by {was:.2f}"
    if lost <= len(change.won):
        return f"is wrong in {_of_verdicts(change)} on {change.kind} cases"
    if change.kind == "violated":
        return f"misses {lost:,} of {counted(before, 'violation')} that it found before"
    alarms = counted(lost, "new false alarm")
    return f"raises {alarms} on {counted(before, 'case')} that it passed before"


def _of_verdicts(change: SetChange) -> str:
    now, before = change.now, change.before
    return f"{now.wrong:,} of {counted(now.verdicts, 'verdict')} (before {before.wrong:,})"


def wrong_text(results: Iterable[CaseResult]) -> str:
    """What a judge has wrong: misses, false alarms, wrong levels, and verdicts turned by probes."""
    judged = [result for result in results if result.outcome in JUDGED]
    parts = []
    plain = [result for result in judged if not result.spec.derived]
    if any(result.target is not None for result in plain):
        number = sum(result.outcome == "disagree" for result in plain)
        if number:
            parts.append(f"gives {counted(number, 'wrong level')} in {counted(len(plain), 'case')}")
    else:
        for label, verb, kind in ((1, "misses", "violation"), (0, "raises", "false alarm")):
            of_label = [result for result in plain if result.label == label]
            number = sum(result.outcome == "disagree" for result in of_label)
            if number and label:
                parts.append(f"{verb} {number:,} of {counted(len(of_label), kind)}")
            elif number:
                cases = counted(len(of_label), "satisfied case")
                parts.append(f"{verb} {counted(number, kind)} on {cases}")
    derived = [result for result in judged if result.spec.derived]
    turned = sum(result.outcome == "disagree" for result in derived)
    if turned:
        parts.append(f"is turned by probes in {turned:,} of {counted(len(derived), 'verdict')}")
    return " and ".join(parts)


def points(share: float) -> str:
    """A share as points."""
    number = f"{100 * share:.3g}"
    return f"{number} point{'' if number == '1' else 's'}"


def is_better(sets: Sequence[SetChange]) -> bool:
    """Whether a class is surely better, and none is worse."""
    classes = [of for of in sets if of.is_class]
    return all(of.drop <= 0 for of in classes) and any(
        of.drop < 0 and of.gain < LEVEL - _ROUNDING for of in classes
    )


def compared_text(subject: str, sets: Sequence[SetChange], *, several: bool) -> str:
    """What a comparison without a loss that chance does not explain comes to."""
    verb = "are" if several else "is"
    classes = [of for of in sets if of.is_class]
    cases = counted(sum(of.n for of in classes), "case")
    if is_better(sets):
        return f"{subject} {verb} better than before on {cases}"
    lost = sum(len(of.lost) for of in classes)
    if lost:
        new = f"{lost:,} of {cases} newly wrong"
        return f"{subject} {verb} not shown to be worse than before: {new}"
    return f"{subject} {verb} as good as before on {cases}"


def judged_text(
    subject: str, judged: Sequence[CaseResult], wrong_labels: int, *, several: bool
) -> str:
    """What verdicts that are compared with labels alone come to, but for those of probes."""
    judged = [result for result in judged if not result.spec.derived] or judged
    wrong = sum(result.outcome == "disagree" for result in judged)
    if wrong:
        verb = "are" if several else "is"
        cases = counted(len(judged), "case")
        return f"{subject} {verb} wrong on {wrong:,} of {cases}, as the limits allow"
    if wrong_labels:
        labels = counted(len(judged), "label")
        verb = "give" if several else "gives"
        return f"{subject} {verb} {labels}, of which people found {wrong_labels:,} wrong"
    every = "all " if len(judged) > 1 else ""
    verb = "agree" if several else "agrees"
    return f"{subject} {verb} with {every}{counted(len(judged), 'label')}"


def about_sets(sets: Sequence[SetChange], word: str, rules: GateRules) -> Iterator[str]:
    """What is said of one judge's sets below the headline."""
    classes = [of for of in sets if of.is_class]
    failed = [
        of
        for of in sets
        if of.drop > allowed_drop(of, rules) + _ROUNDING and of.adjusted < LEVEL - _ROUNDING
    ]
    if failed:
        worst = min(failed, key=lambda of: of.adjusted)
        unit = f" ({counted(worst.runs, 'run')} exchanged)" if worst.by_runs else ""
        others = [_no_loss(of) for of in classes if of not in failed and of.drop <= 0]
        yield "; ".join([*filter(None, others), f"{chance_text(worst.adjusted)}{unit}"])
    won = sum(len(of.won) for of in classes)
    lost = sum(len(of.lost) for of in classes)
    if won and lost:
        cases, net = counted(sum(of.n for of in classes), "case"), lost - won
        change = (
            "as many are"
            if not net
            else f"{abs(net):,} {'more' if net > 0 else 'fewer'} {'is' if abs(net) == 1 else 'are'}"
        )
        yield f"{won:,} the other way; of all {cases} {change} wrong"
    if word == "PASS":
        bounds = [_bound_text(of) for of in classes]
        if any(bounds):
            yield f"on other runs up to {' and '.join(filter(None, bounds))} could go unseen"


def _no_loss(change: SetChange) -> str:
    if change.lost:
        return ""
    if change.kind == "violated":
        return f"misses none of {counted(change.right_before, 'violation')} that it found before"
    if change.kind == "satisfied":
        return f"no new false alarms (0 of {change.right_before:,})"
    return ""


# Beyond it the bound says nothing that anybody could use.
_USEFUL_BOUND = 0.2


def _bound_text(change: SetChange) -> str:
    """The smallest change for the worse that other runs exclude, rounded up; empty for none, and
    where it says little.
    """
    if not _ROUNDING < change.bound <= _USEFUL_BOUND:
        return ""
    if change.is_ordinal:
        levels = math.ceil(10 * change.bound * change.width) / 10
        return f"{levels:.1f} levels more error"
    rounded_up = math.ceil(round(100 * change.bound, 6))
    what = "less recall" if change.kind == "violated" else "more false alarms"
    return f"{counted(rounded_up, 'point')} {what}"
