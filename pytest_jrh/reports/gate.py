"""The gate's decision as pure text: one sentence, the rules and their figures, what changed since
the baseline, how much of it was compared, and the cases.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pytest_jrh.core.documents import listed
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.reports.blocks import Cases, Command, Sentence
from pytest_jrh.reports.planner import prospect_sentences
from pytest_jrh.stats.figures import percent
from pytest_jrh.stats.formulas import SIGNIFICANCE
from pytest_jrh.stats.intervals import false_alarm_of_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Comparison
    from pytest_jrh.stats.changes import ChangeRow, KnownFlicker
    from pytest_jrh.stats.comparison import DropDecision
    from pytest_jrh.stats.gate import Coverage, GateDecision, Threshold


def rate_text(threshold: Threshold) -> str:
    """Name the probe, what the rate comes to, and the limit."""
    rate = threshold.rate
    assert rate is not None
    by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
    head = f"{threshold.test} max_rate {percent(threshold.limit)}{by}: {rate.verdict}"
    if rate.rate.value is None:
        return f"{head}, {rate.rate.why}"
    bounds = f"95% bounds {percent(rate.rate.lower)} and {percent(rate.rate.upper)}"
    turned = f"{len(threshold.cases):,} of {counted(threshold.n, 'verdict')} turned"
    text = f"{head}, {turned} ({percent(rate.rate.value)}, {bounds})"
    if rate.cases is None:
        return text
    return f"{text}; {counted(rate.cases, 'verdict')} would decide it at 80% power"


_MOST_DIGITS = 6


def threshold_text(threshold: Threshold, decision: GateDecision) -> str:
    """Name the rule, the figure and the limit."""
    match threshold.rule:
        case "max_regressions":
            return f"{_disagreements(threshold, decision)}, at most {threshold.limit:,.0f} allowed"
        case rule if rule in _TEXTS:
            return _TEXTS[rule](threshold)
        case _:
            return _accuracy_text(threshold)


def _few_text(threshold: Threshold) -> str:
    verdicts = counted(threshold.n, "verdict")
    return f"{verdicts}{_by(threshold)}, at least {threshold.limit:,.0f} needed"


def _share_text(threshold: Threshold) -> str:
    compared = f"{threshold.n:,} of {counted(threshold.total, 'case')} compared with the baseline"
    return f"{compared}, at least {percent(threshold.limit)} needed"


def _uncompared_text(threshold: Threshold) -> str:
    allowed = ", which gate.allow_uncompared lets pass" if threshold.passed else ""
    return f"nothing could be compared with the baseline{allowed}"


def _one_class_text(threshold: Threshold) -> str:
    return (
        f"one class only, so that a judge that always says {threshold.label} would pass (judge "
        "cases of another label too, or set gate.allow_one_class: true)"
    )


def subject(threshold: Threshold) -> str:
    """Whose accuracy it is."""
    what = "lower bound of the accuracy" if threshold.rule == "lower_bound" else "accuracy"
    on = f" on {one_line(threshold.test)}" if threshold.test else ""
    return f"{what}{on}{_by(threshold)}"


def points(share: float) -> str:
    """A difference of shares in points, to a tenth; a loss below zero is a gain."""
    # Rounding makes "-0.0" of what is a little below 0.
    return f"{round(100 * share, 1) + 0.0:.1f}"


def _drop_text(threshold: Threshold) -> str:
    drop = threshold.drop
    assert drop is not None
    head = f"max_drop {100 * threshold.limit:.4g} points{_by(threshold)}: {drop.verdict}"
    estimate = drop.drop
    if estimate.value is None or estimate.lower is None or estimate.upper is None:
        return f"{head}, {estimate.why}"
    text = f"{head}, a drop of {points(estimate.value)} points"
    text += f" (95% bounds {points(estimate.lower)} and {points(estimate.upper)})"
    if drop.verdict != "INCONCLUSIVE":
        return text
    return f"{text}; {_what_decides(drop, threshold.n)}"


def _what_decides(drop: DropDecision, n: int) -> str:
    """How many runs, or how many repeats, would decide it."""
    ways = []
    if drop.runs is not None and drop.clusters:
        cases = counted(round(drop.runs * n / drop.clusters), "case")
        ways.append(f"{counted(drop.runs, 'run')} ({cases}) instead of {drop.clusters:,}")
    if drop.repeats is not None:
        ways.append(f"repeats: {drop.repeats}")
    if not ways:
        return "no number of runs would decide it"
    return f"{' or '.join(ways)} would decide it at 80% power"


_TEXTS: Mapping[str, Callable[[Threshold], str]] = {
    "min_cases": _few_text,
    "min_compared": _share_text,
    "compared": _uncompared_text,
    "one_class": _one_class_text,
    "max_drop": _drop_text,
    "probe_rate": rate_text,
}


def _disagreements(threshold: Threshold, decision: GateDecision) -> str:
    counting = set(threshold.cases)
    new = len(counting & set(decision.new_disagreements))
    if decision.comparison is None:
        return f"{counted(new, 'disagreement')} (there is no baseline)"
    found = len(counting & set(decision.regressions))
    regressions = counted(found, "regression")
    if not new:
        return regressions
    others = f"{counted(new, 'disagreement')} not in the baseline"
    return f"{regressions} and {others}" if found else others


def _accuracy_text(threshold: Threshold) -> str:
    name = subject(threshold)
    value, limit = threshold.figure.value, threshold.limit
    if value is None:
        return (
            f"{name} cannot be computed ({threshold.figure.reason}), at least "
            f"{_threshold_percent(limit, 1)} asked"
        )
    # More digits where rounding would make "90.0% is below 90.0%" of it.
    digits = next(
        (
            few
            for few in range(1, _MOST_DIGITS)
            if _threshold_percent(value, few) != _threshold_percent(limit, few)
        ),
        1,
    )
    verb = "reaches" if value >= limit else "is below"
    chance = ""
    if threshold.by_chance:
        chance = f", as the lowest of {threshold.by_chance} judges may be by chance"
    compared = (
        f"{percent(value, digits)} (n {threshold.n:,}) {verb} {_threshold_percent(limit, digits)}"
    )
    return f"{name} {compared}{chance}"


def _by(threshold: Threshold) -> str:
    return f" by {one_line(threshold.judge)}" if threshold.judge else ""


def _threshold_percent(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f}%"


_MOST_ROWS = 12
_MOST_REASONS = 3
# Where the flicker is not known, what it would come to with these shares of verdicts flipped.
_SUPPOSED_FLIPS = (0.02, 0.05)


def comparison_sentences(decision: GateDecision) -> Iterator[str]:
    """Say what changed since the baseline, and how much of that may be chance.

    Nothing without a baseline.
    """
    if decision.comparison is None:
        return
    if not decision.changes:
        # Where no case has a verdict, that is said instead.
        if decision.judged or not decision.unjudged:
            yield from _nothing_compared(decision.comparison)
        return
    *rows, total = decision.changes
    yield _comparison(decision, total)
    if rows and any(row.drop or row.p_value < 1 for row in rows):
        yield _by_rubric(rows)
    if decision.flickered:
        yield _flickered(decision)
    if decision.moved and decision.holds_a_drop:
        yield (
            "The baseline was updated since its reference was set: max_drop is held against the "
            "reference, and regressions against the last update."
        )
    if decision.is_snapshot:
        yield snapshot_sentence(decision.flickers)


def _nothing_compared(comparison: Comparison) -> Iterator[str]:
    """Say why no case can be compared, the most frequent reason first."""
    reasons = Counter(comparison.not_comparable.values())
    told = [f"{reason} ({number:,})" for reason, number in reasons.most_common(_MOST_REASONS)]
    why = f": {'; '.join(told)}" if told else ""
    yield f"No case can be compared with the baseline{why}."
    if comparison.only_other_suites:
        others = listed(comparison.only_other_suites, _MOST_REASONS)
        yield (
            f"The baseline has cases of other suites alone ({others}): the ids of cases begin with "
            "the name of the config file, so a renamed config has other cases."
        )


def undecided_sentence(decision: GateDecision) -> str | None:
    """Say that there is nothing to hold a drop against; None where there is, or no drop counts."""
    if not decision.drop_undecided:
        return None
    return (
        "gate.max_drop is not decided, because there is no baseline; until --jrh-baseline=FILE "
        "names one, each disagreement fails its item."
    )


def snapshot_sentence(flickers: Sequence[KnownFlicker]) -> str:
    """Say how often "any regression fails" fails on a judge that has not changed."""
    cases = sum(each.cases for each in flickers)
    known = [(each, each.value) for each in flickers if each.value is not None]
    if len(known) == len(flickers):
        fine = math.prod(
            1 - false_alarm_of_snapshot(each.cases, value, each.repeats) for each, value in known
        )
        return (
            f"Any regression fails: {_whose(flickers)} that has not changed, and is asked again, "
            f"fails this in {_percent(1 - fine)} of sessions. gate.max_drop allows for flicker."
        )
    repeats = max(each.repeats for each in flickers)
    rare, often = (
        _percent(false_alarm_of_snapshot(cases, 2 * flip * (1 - flip), repeats))
        for flip in _SUPPOSED_FLIPS
    )
    return (
        "Any regression fails: a judge that has not changed, and is asked again, fails this in "
        f"{rare} of sessions if {_SUPPOSED_FLIPS[0]:.0%} of its verdicts flip, in {often} if "
        f"{_SUPPOSED_FLIPS[1]:.0%} do. How many do is not known, as no case was judged more than "
        "once (evaluation_config.repeats)."
    )


def _whose(flickers: Sequence[KnownFlicker]) -> str:
    if len(flickers) > 1:
        return f"a panel of {len(flickers):,} judges with the flicker of these"
    [one] = flickers
    source = "repeats" if one.source == "repeats" else "what it said in the baseline"
    return f"a judge with a flicker of {percent(one.value)} (from {source})"


def _comparison(decision: GateDecision, total: ChangeRow) -> str:
    regressions = counted(len(decision.regressions), "regression")
    fixes = len(decision.fixes)
    changed = f"{regressions}, {'1 fix' if fixes == 1 else f'{fixes:,} fixes'}"
    head = f"{counted(total.n, 'case')} compared with the baseline: {changed}"
    if total.p_value == 1 and not total.drop and not (decision.regressions or decision.fixes):
        return f"{head} (nothing changed)."
    noise = "more than noise" if total.p_value < SIGNIFICANCE else "within noise"
    test = "McNemar's mid-p" if total.mcnemar else "sign-flip p"
    runs = "" if total.mcnemar else f" over {counted(len(total.sizes), 'run')}"
    moved = f"accuracy {percent(total.before)} before, {percent(total.now)} now"
    return f"{head}; {moved} ({test} = {total.p_value:.3g}{runs}, {noise})."


def _by_rubric(rows: Sequence[ChangeRow]) -> str:
    """The rows whose correctness changed, surest first, and how many others there are."""
    changed = [row for row in rows if row.drop or row.p_value < 1]
    changed.sort(key=lambda row: (row.adjusted or 0, -row.drop))
    told = []
    for row in changed[:_MOST_ROWS]:
        p_value = row.p_value if row.adjusted is None else row.adjusted
        change = f"{'-' if row.drop > 0 else '+'}{points(abs(row.drop))}"
        told.append(f"{row_name(row)} {change} (p = {p_value:.3g})")
    more = len(changed) - len(told)
    rest = len(rows) - len(changed)
    others = f"; {more:,} more are in the JSON report" if more else ""
    others += f"; no change in {rest:,} other{'s' if rest > 1 else ''}" if rest else ""
    return f"In points of accuracy, p adjusted (Holm): {', '.join(told)}{others}."


def row_name(row: ChangeRow) -> str:
    """The judge and rubric of a row; nothing of the total."""
    return " / ".join(one_line(part) for part in (row.judge, row.rubric) if part)


def _flickered(decision: GateDecision) -> str:
    again = set(decision.flickered)
    parts = []
    if lost := again & set(decision.regressions):
        parts.append(f"{len(lost):,} of {counted(len(decision.regressions), 'regression')}")
    if won := again & set(decision.fixes):
        fixes = len(decision.fixes)
        parts.append(f"{len(won):,} of {'1 fix' if fixes == 1 else f'{fixes:,} fixes'}")
    return (
        f"Flicker, not a change: {' and '.join(parts)} by a judge that is the same as in the "
        "baseline (model, prompt, parameters) and was asked again."
    )


def _percent(share: float) -> str:
    """A share as a percentage with two digits, but never 100% or 0% of what is between."""
    for digits in range(4):
        text = f"{100 * share:.{digits}f}"
        if float(text) not in (0, 100) or share in (0, 1):
            return f"{text}%"
    return ">99.9%" if share > 1 / 2 else "<0.1%"


_MOST_NAMED = 5


def coverage_sentences(decision: GateDecision) -> Iterator[str]:
    """Say what of the baseline was not compared, or with fewer repeats, and which rules decided
    nothing; nothing where the comparison is whole.
    """
    covered = decision.coverage
    if covered is not None and covered.compared:
        if less := list(_less(covered)):
            yield f"Compared: {_how_many(covered)}; {'; '.join(less)}."
        elif covered.compared < covered.of:
            yield f"Compared: {_how_many(covered)}."
    if decision.undecided:
        yield f"Not decided, as none of its cases was selected: {listed(decision.undecided)}."


def _how_many(covered: Coverage) -> str:
    deselected = f" ({covered.deselected:,} deselected)" if covered.deselected else ""
    return f"{covered.compared:,} of {counted(covered.of, 'case')} of the baseline{deselected}"


def _less(covered: Coverage) -> Iterator[str]:
    for one in covered.repeats:
        repeats = counted(one.now, "repeat")
        yield f"{counted(one.cases, 'case')} with {repeats} instead of {one.before:,}"
    if covered.missing:
        names = [f"{each.kind} {one_line(unquote(each.name))}" for each in covered.missing]
        yield f"nothing of {listed(names, _MOST_NAMED)}"
    if covered.added:
        yield f"{counted(covered.added, 'verdict')} on cases that it does not have"


MOST_NAMED = 50
# pytest names each of them, too, and says why.
MOST_UNSCORED = 5
# Ten right answers of ten still leave a 95% interval that begins at 72%.
FEW_CASES = 10


def decision_sentence(decision: GateDecision) -> str:
    """Say whether the gate passed, and why: what failed, or every threshold that was met; and where
    less was compared than the baseline has, how much.
    """
    return " ".join([_verdict_sentence(decision), *coverage_sentences(decision)])


def _verdict_sentence(decision: GateDecision) -> str:
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
        met = _met(decision) or [threshold_text(each, decision) for each in decision.thresholds]
        return f"Gate passed: {'; '.join(met) or 'nothing was to be judged'}."
    failed = [
        threshold_text(threshold, decision)
        for threshold in decision.thresholds
        if not threshold.passed
    ]
    said = f"{'Gate failed' if decision.active else 'Not green'}: {'; '.join([*failed, *missing])}."
    met = _met(decision)
    return f"{said} Met: {'; '.join(met)}." if met else said


def _met(decision: GateDecision) -> list[str]:
    """The thresholds that were met, but for one verdict being enough."""
    return [
        threshold_text(threshold, decision)
        for threshold in decision.thresholds
        if threshold.passed and (threshold.rule != "min_cases" or threshold.limit > 1)
    ]


def gate_blocks(decision: GateDecision, session: Session) -> list[Block]:
    """The cases that the gate has to name, what changed, the decision, and what to do; nothing
    where there is no gate and nothing is missing.
    """
    if decision.passed and not decision.active:
        return []
    return [
        *gate_cases(decision, session),
        *map(Sentence, change_sentences(decision)),
        Sentence(decision_sentence(decision), "good" if decision.passed else "bad"),
        *update_blocks(decision),
    ]


def update_blocks(decision: GateDecision) -> list[Block]:
    """What to do where nothing could be compared, and the command that does it."""
    advice = update_sentence(decision)
    return [] if advice is None else [Command(advice, decision.update_command)]


def change_sentences(decision: GateDecision) -> list[str]:
    """Say what changed since the baseline, what such a comparison can show, and what the decision
    does not rest on.
    """
    lines = [*comparison_sentences(decision)]
    if sentence := undecided_sentence(decision):
        lines.append(sentence)
    # A drop that is not decided says itself what would decide it.
    drops = [threshold.drop for threshold in decision.thresholds if threshold.drop is not None]
    advise = all(drop.verdict != "INCONCLUSIVE" for drop in drops)
    lines += prospect_sentences(
        decision.prospects, advise=advise, unknown_said=decision.is_snapshot
    )
    return [*lines, *_unjudged_sentences(decision), *_few_cases(decision)]


def update_sentence(decision: GateDecision) -> str | None:
    """What to do where nothing could be compared, before the command that does it.

    None elsewhere, and where verdicts are to be recorded first: there is one next command.
    """
    if not decision.uncompared or "unrecorded" in decision.unscored.values():
        return None
    ways = "Set gate.allow_uncompared: true if the suite is new, or update the baseline"
    return f"{ways} with:" if decision.update_command else f"{ways}."


def _unjudged_sentences(decision: GateDecision) -> Iterator[str]:
    """Name what has no verdict at all, or say once that no case has one."""
    tests = [each for each in decision.unjudged if each.kind == "test"]
    if decision.judged == 0 and tests:
        total: Counter[str] = Counter()
        for each in tests:
            total.update(dict(each.outcomes))
        yield f"No case has a verdict ({_outcomes(sorted(total.items()))})."
        return
    for each in decision.unjudged:
        name = one_line(each.name)
        yield f"No verdict on any case of {each.kind} {name} ({_outcomes(each.outcomes)})."


def _outcomes(outcomes: Sequence[tuple[str, int]]) -> str:
    cases = counted(sum(number for _, number in outcomes), "case")
    return f"{cases}: {', '.join(f'{number:,} {outcome}' for outcome, number in outcomes)}"


def _few_cases(decision: GateDecision) -> Iterator[str]:
    """A gate that hardly any case decides; a limit that was raised has been thought of, and a drop
    is not decided by a few.
    """
    if decision.holds_a_drop:
        return
    for threshold in decision.thresholds:
        if threshold.rule == "min_cases" and threshold.limit <= 1 and 0 < threshold.n < FEW_CASES:
            by = f" by {one_line(threshold.judge)}" if threshold.judge else ""
            yield (
                f"Few cases for a gate: {counted(threshold.n, 'verdict')}{by}, and with min_cases: "
                f"{threshold.limit:,.0f} one verdict is enough; set gate.min_cases to what the "
                "suite should have."
            )


def gate_cases(decision: GateDecision, session: Session) -> list[Cases]:
    """The cases that changed, count against a threshold, or are missing; no list is empty."""
    return [
        Cases(
            title,
            tuple(session.named(case_id, why) for case_id, why in cases.items()),
            weight,
            MOST_UNSCORED if title == "unscored" else MOST_NAMED,
        )
        for title, cases, weight in _groups(decision)
        if cases
    ]


def _groups(decision: GateDecision) -> Iterator[tuple[str, Mapping[str, str], Weight]]:
    """Title, case ids with a remark on each, and weight of each list."""
    again = set(decision.flickered)
    changes: tuple[tuple[str, Sequence[str], Weight], ...] = (
        ("regressions", decision.regressions, "bad"),
        ("fixes", decision.fixes, "good"),
    )
    for title, cases, weight in changes:
        yield title, _bare(case for case in cases if case not in again), weight
        flickered = _bare(case for case in cases if case in again)
        yield f"{title} by flicker: the judge has not changed", flickered, weight
    if decision.active:
        yield _new_title(decision), _bare(decision.new_disagreements), "bad"
    for threshold in decision.thresholds:
        if not threshold.passed and threshold.rule in ("min_accuracy", "lower_bound"):
            title = f"disagreements for which the {subject(threshold)} is too low"
            yield title, _bare(threshold.cases), "bad"
    yield "never reported", _bare(decision.never_reported), "bad"
    yield "unscored", decision.unscored, "bad"
    named = {*decision.never_reported, *decision.unscored, *decision.new_disagreements}
    rest = {case: why for case, why in decision.not_comparable.items() if case not in named}
    yield "not comparable with the baseline", rest, "warning"


def _bare(case_ids: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(case_ids, "")


def _new_title(decision: GateDecision) -> str:
    return "disagreements" if decision.comparison is None else "disagreements not in the baseline"
