"""The gate's decision as pure text: one sentence, the power line, and the cases (rule J5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_jrh.stats.inference.formulas import (
    SIGNIFICANCE,
    fewest_visible_regressions,
    smallest_visible_drop,
)
from pytest_jrh.text import Styled, counted, one_line, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_jrh.gate.decision import GateDecision, Threshold, Unjudged

MOST_NAMED = 50
_MOST_DIGITS = 6
# Ten right answers of ten still leave a 95% interval that begins at 72%.
FEW_CASES = 10


def decision_sentence(decision: GateDecision) -> str:
    """Say in one sentence whether the gate passed, and why: what failed, or every threshold that
    was met.
    """
    missing = []
    if decision.never_reported:
        missing.append(f"{counted(len(decision.never_reported), 'case')} never reported")
    if decision.unscored:
        missing.append(f"{counted(len(decision.unscored), 'case')} unscored")
    if decision.nothing_ran:
        missing.append("none of its cases was run")
    if decision.passed:
        if not decision.active:
            return "No gate is set: each disagreement fails its item."
        relevant = [
            each for each in decision.thresholds if each.rule != "min_cases" or each.limit > 1
        ]
        met = "; ".join(
            threshold_text(threshold, decision) for threshold in relevant or decision.thresholds
        )
        return f"Gate passed: {met or 'nothing was to be judged'}."
    failed = [
        threshold_text(threshold, decision)
        for threshold in decision.thresholds
        if not threshold.passed
    ]
    return f"{'Gate failed' if decision.active else 'Not green'}: {'; '.join([*failed, *missing])}."


def comparison_sentence(decision: GateDecision) -> str | None:
    """Say what changed since the baseline, and whether that is more than noise.

    None without a baseline.
    """
    comparison = decision.comparison
    if comparison is None:
        return None
    if decision.p_value.value is None:
        return f"Compared with the baseline: {decision.p_value.reason}."
    p_value = decision.p_value.value
    noise = "more than noise" if p_value < SIGNIFICANCE else "within noise"
    changed = f"{counted(len(decision.regressions), 'regression')}, {_fixes(len(decision.fixes))}"
    odds = (
        f"exact McNemar p = {p_value:.3g}, {noise}"
        if decision.regressions or decision.fixes
        else "nothing changed"
    )
    return f"{counted(comparison.compared, 'case')} compared with the baseline: {changed} ({odds})."


def power_sentence(n: int) -> str:
    """The smallest detectable drop of accuracy over `n` compared cases."""
    drop, fewest = smallest_visible_drop(n).value, fewest_visible_regressions()
    if drop is None:
        return (
            f"With {counted(n, 'case')}, no drop is detectable: that takes {fewest} regressions "
            "without a fix."
        )
    number = f"{100 * drop:.3g}"
    points = "1 point" if number == "1" else f"{number} points"
    return f"With {counted(n, 'case')}, a drop under {points} is not detectable."


def threshold_text(threshold: Threshold, decision: GateDecision) -> str:
    """Name the rule, the figure and the limit."""
    match threshold.rule:
        case "min_cases":
            by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
            return f"{counted(threshold.n, 'verdict')}{by}, at least {threshold.limit:,.0f} needed"
        case "compared":
            return "nothing could be compared with the baseline"
        case "max_regressions":
            return f"{_disagreements(decision)}, at most {threshold.limit:,.0f} allowed"
        case _:
            return _accuracy_text(threshold)


def gate_lines(
    decision: GateDecision,
    name: Callable[[str], str] = lambda case_id: case_id,
    most: int = MOST_NAMED,
    width: int | None = None,
) -> list[Styled]:
    """List what changed, what is missing, and the decision; `name` turns a case id into what is
    printed for it.

    Of each kind at most `most` cases are named and the rest is counted. Sentences, not names, are
    wrapped where a `width` is given. No lines where there is no gate and nothing is missing.
    """
    if decision.passed and not decision.active:
        return []
    lines = []
    for group in gate_groups(decision):
        cases = [(name(case_id), why) for case_id, why in group.cases]
        lines += [Styled(line, group.style) for line in _section(group.title, cases, most)]
    sentences = [Styled(sentence) for sentence in change_sentences(decision)]
    sentences.append(Styled(decision_sentence(decision), "green" if decision.passed else "red"))
    if (advice := update_sentence(decision)) is not None:
        sentences.append(Styled(advice, "yellow"))
    for sentence in sentences:
        parts = wrapped(sentence.text, width) if width else [sentence.text]
        lines += [Styled(part, sentence.style) for part in parts]
    if decision.update_command:
        lines.append(Styled(f"  {one_line(decision.update_command)}"))
    return lines


def change_sentences(decision: GateDecision) -> list[str]:
    """Say what changed since the baseline, what could not have been seen, and what the decision
    does not rest on.
    """
    lines = [sentence] if (sentence := comparison_sentence(decision)) else []
    if decision.active:
        lines.append(
            power_sentence(decision.comparison.compared if decision.comparison else decision.judged)
        )
    return [*lines, *map(_unjudged_sentence, decision.unjudged), *_few_cases(decision)]


def update_sentence(decision: GateDecision) -> str | None:
    """What to do where nothing could be compared, before the command that does it.

    None elsewhere.
    """
    if not decision.uncompared:
        return None
    ways = "Set gate.allow_uncompared: true if the suite is new, or update the baseline"
    return f"{ways} with:" if decision.update_command else f"{ways}."


def _unjudged_sentence(unjudged: Unjudged) -> str:
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in unjudged.outcomes)
    cases = counted(sum(number for _, number in unjudged.outcomes), "case")
    return (
        f"No verdict on any case of {unjudged.kind} {one_line(unjudged.name)} ({cases}: "
        f"{outcomes})."
    )


def _few_cases(decision: GateDecision) -> Iterator[str]:
    """A gate that hardly any case decides; a limit that was raised has been thought of."""
    for threshold in decision.thresholds:
        if threshold.rule == "min_cases" and threshold.limit <= 1 and 0 < threshold.n < FEW_CASES:
            by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
            yield (
                f"Few cases for a gate: {counted(threshold.n, 'verdict')}{by}, and with min_cases: "
                f"{threshold.limit:,.0f} one verdict is enough; set gate.min_cases to what the "
                "suite should have."
            )


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """Cases that the gate has to name, by id, each with a remark beside the title."""

    title: str
    cases: tuple[tuple[str, str], ...]
    style: str = ""


def gate_groups(decision: GateDecision) -> list[CaseGroup]:
    """The cases that changed, count against a threshold, or are missing; no group is empty."""
    return [group for group in _groups(decision) if group.cases]


def _groups(decision: GateDecision) -> Iterator[CaseGroup]:
    yield CaseGroup("regressions", _bare(decision.regressions), "red")
    yield CaseGroup("fixes", _bare(decision.fixes), "green")
    if decision.active:
        yield CaseGroup(_new_title(decision), _bare(decision.new_disagreements), "red")
    for threshold in decision.thresholds:
        if not threshold.passed and threshold.rule in ("min_accuracy", "lower_bound"):
            title = f"disagreements for which the {_subject(threshold)} is too low"
            yield CaseGroup(title, _bare(threshold.cases), "red")
    yield CaseGroup("never reported", _bare(decision.never_reported), "red")
    yield CaseGroup("unscored", tuple(decision.unscored.items()), "red")
    said = {*decision.never_reported, *decision.unscored, *decision.new_disagreements}
    rest = [
        (case_id, why) for case_id, why in decision.not_comparable.items() if case_id not in said
    ]
    yield CaseGroup("not comparable with the baseline", tuple(rest), "yellow")


def _bare(case_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((case_id, "") for case_id in case_ids)


def _section(title: str, cases: list[tuple[str, str]], most: int) -> list[str]:
    named = [f"  {name} ({why})" if why else f"  {name}" for name, why in cases[:most]]
    more = [f"  and {len(cases) - most:,} more"] if len(cases) > most else []
    return [f"{title} ({len(cases):,}):", *named, *more]


def _disagreements(decision: GateDecision) -> str:
    new = len(decision.new_disagreements)
    if decision.comparison is None:
        return f"{counted(new, 'disagreement')} (there is no baseline)"
    regressions = counted(len(decision.regressions), "regression")
    return (
        f"{regressions} and {counted(new, 'disagreement')} not in the baseline"
        if new
        else regressions
    )


def _new_title(decision: GateDecision) -> str:
    return "disagreements" if decision.comparison is None else "disagreements not in the baseline"


def _accuracy_text(threshold: Threshold) -> str:
    subject = _subject(threshold)
    value, limit = threshold.figure.value, threshold.limit
    if value is None:
        return (
            f"{subject} cannot be computed ({threshold.figure.reason}), at least "
            f"{_percent(limit, 1)} asked"
        )
    # More digits where rounding would make "90.0% is below 90.0%" of it.
    digits = next(
        (few for few in range(1, _MOST_DIGITS) if _percent(value, few) != _percent(limit, few)), 1
    )
    verb = "reaches" if threshold.passed else "is below"
    return (
        f"{subject} {_percent(value, digits)} (n {threshold.n:,}) {verb} {_percent(limit, digits)}"
    )


def _subject(threshold: Threshold) -> str:
    what = "lower bound of the accuracy" if threshold.rule == "lower_bound" else "accuracy"
    on = f" on {one_line(threshold.test)}" if threshold.test else ""
    by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
    return f"{what}{on}{by}"


def _percent(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f}%"


def _fixes(number: int) -> str:
    return "1 fix" if number == 1 else f"{number:,} fixes"
