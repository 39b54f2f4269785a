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
from pytest_jrh.reports.blocks import Cases, Command, Fold, Sentence
from pytest_jrh.stats.baseline import NOT_IN_BASELINE
from pytest_jrh.stats.exchange import SESSION_LEVEL
from pytest_jrh.stats.figures import percent
from pytest_jrh.stats.gate import is_replay
from pytest_jrh.stats.intervals import false_alarm_of_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from pytest_jrh.reports.blocks import Block, Weight
    from pytest_jrh.reports.session import Session
    from pytest_jrh.stats.baseline import Comparison
    from pytest_jrh.stats.changes import KnownFlicker, SetChange
    from pytest_jrh.stats.gate import Coverage, GateDecision, Threshold


def rate_text(threshold: Threshold, _decision: GateDecision) -> str:
    """Say how many verdicts a probe has turned, and what that comes to."""
    probe = threshold.probe
    assert probe is not None
    turned = f"{threshold.test} turns {len(threshold.cases):,} of "
    text = f"{turned}{counted(threshold.n, 'verdict')}{_by(threshold)}"
    if probe.rate.value is None:
        return f"{threshold.test}{_by(threshold)} is not decided: {probe.rate.why}"
    if probe.verdict == "FAIL":
        limit = f", and than max_rate {percent(threshold.limit)}" if threshold.limit else ""
        return f"{text}: more than flicker explains{limit}"
    if probe.verdict == "INCONCLUSIVE":
        return f"{text}: {_unproven_rate(threshold)}"
    return text if not threshold.cases else f"{text}: {_tolerated_rate(threshold)}"


def _tolerated_rate(threshold: Threshold) -> str:
    assert threshold.probe is not None
    value = threshold.figure.value or 0.0
    if value <= threshold.limit:
        return f"no more than max_rate {percent(threshold.limit)} allows"
    return _FEW if threshold.probe.clusters > 1 else "all of one run, which alone tells too little"


def _unproven_rate(threshold: Threshold) -> str:
    probe = threshold.probe
    assert probe is not None
    text = f"INCONCLUSIVE, not proven that no more than {percent(threshold.limit)} turn"
    return text if probe.rate.upper is None else f"{text} (up to {percent(probe.rate.upper)} may)"


# What is said of a loss that is larger than allowed, but not larger than chance makes it.
_FEW = "too few to tell from chance"
_MOST_DIGITS = 6


def threshold_text(threshold: Threshold, decision: GateDecision) -> str:
    """Name the rule, the figure and the limit."""
    match threshold.rule:
        case "max_regressions":
            return f"{_disagreements(threshold, decision)}, at most {threshold.limit:,.0f} allowed"
        case rule if rule in _TEXTS:
            return _TEXTS[rule](threshold, decision)
        case _:
            return _accuracy_text(threshold)


def _few_text(threshold: Threshold, _decision: GateDecision) -> str:
    verdicts = counted(threshold.n, "verdict")
    return f"{verdicts}{_by(threshold)}, at least {threshold.limit:,.0f} needed"


def _share_text(threshold: Threshold, _decision: GateDecision) -> str:
    compared = f"{threshold.n:,} of {counted(threshold.total, 'case')} compared with the baseline"
    return f"{compared}, at least {percent(threshold.limit)} needed"


def _uncompared_text(threshold: Threshold, _decision: GateDecision) -> str:
    allowed = ", which gate.allow_uncompared lets pass" if threshold.passed else ""
    return f"nothing could be compared with the baseline{allowed}"


def _one_class_text(threshold: Threshold, _decision: GateDecision) -> str:
    return (
        f"one class only, so that a judge that always says {threshold.label} would pass (judge "
        "cases of another label too, or set gate.allow_one_class: true)"
    )


def subject(threshold: Threshold) -> str:
    """Whose accuracy it is."""
    what = "lower bound of the accuracy" if threshold.rule == "lower_bound" else "accuracy"
    on = f" on {one_line(threshold.test)}" if threshold.test else ""
    return f"{what}{on}{_by(threshold)}"


def signed_points(share: float) -> str:
    """A difference of shares in points, to a tenth, with its sign."""
    # Rounding makes "-0.0" of what is a little below 0.
    rounded = round(100 * share, 1) + 0.0
    return f"{rounded:+.1f}" if rounded else "0.0"


def _drop_text(threshold: Threshold, decision: GateDecision) -> str:
    """What a judge has lost, and whether that is more than is allowed."""
    drop = threshold.drop
    assert drop is not None
    if not drop.changes:
        return f"max_drop{_by(threshold)} is not decided: {threshold.figure.why}"
    if drop.worse:
        return _words(drop.changes, decision, drop.worse)
    if drop.replayed:
        many = counted(threshold.n, "compared case")
        whose = f"{one_line(threshold.judge)}: " if threshold.judge else ""
        return f"{whose}judge and verdicts are those of the baseline in {many}"
    text = _words(drop.changes, decision) + _why_tolerated(drop.changes, threshold)
    if drop.verdict == "PASS":
        return text
    return f"{text}; INCONCLUSIVE: not proven that other runs lose less than {_allowed(threshold)}"


def _why_tolerated(changes: Sequence[SetChange], threshold: Threshold) -> str:
    """Why a loss does not fail the gate; nothing where no more is lost than won."""
    losing = [change for change in changes if change.is_whole and change.drop > 0]
    if not losing:
        return ""
    allowed = f"max_drop allows {_allowed(threshold)}"
    within = [change for change in losing if change.drop <= threshold.limit]
    if len(within) == len(losing):
        return f": {allowed}"
    if any(change.adjusted < SESSION_LEVEL for change in within):
        return f": {allowed}, and where more are lost, they are {_FEW}"
    return f": {_FEW}"


def _allowed(threshold: Threshold) -> str:
    """What `max_drop` tolerates: points, of an ordinal judge levels."""
    assert threshold.drop is not None
    is_ordinal = any(change.ordinal for change in threshold.drop.changes)
    return allowed_text(threshold.limit, is_ordinal=is_ordinal)


def allowed_text(max_drop: float, *, is_ordinal: bool) -> str:
    """`max_drop` in points, of an ordinal judge in levels."""
    if is_ordinal:
        return f"{max_drop:.4g} levels"
    number = f"{100 * max_drop:.4g}"
    return f"{number} point{'' if number == '1' else 's'}"


def fixes_text(number: int) -> str:
    """`1 fix`, `2 fixes`."""
    return "1 fix" if number == 1 else f"{number:,} fixes"


_MOST_PLACES = 3


def _words(
    changes: Sequence[SetChange], decision: GateDecision, worse: Sequence[SetChange] = ()
) -> str:
    """What one judge misses now that it found before, and its new false alarms; of an ordinal one,
    how far off it is. `worse` are the sets that the gate has failed for.
    """
    classes = [_class_words(change, decision) for change in changes if change.is_whole]
    by = one_line(changes[0].judge)
    whose = f"{by} " if by else ""
    text = f"{whose}{', and '.join(classes)}"
    rubrics = [change for change in changes if change.kind == "rubric" and change in worse]
    rubrics.sort(key=lambda change: -change.drop)
    if {change.kind for change in changes if change in worse} == {"all"} and len(classes) > 1:
        [together] = [change for change in changes if change.kind == "all"]
        text += f"; together {_rate(together)}"
    if not rubrics:
        return text
    names = [f"{one_line(change.rubric)} ({_rate(change)})" for change in rubrics]
    more = len(names) - _MOST_PLACES
    others = f" and {more:,} more" if more > 0 else ""
    return f"{text}; worse on {', '.join(names[:_MOST_PLACES])}{others}"


def _class_words(change: SetChange, decision: GateDecision) -> str:
    lost, before = len(change.lost), change.right_before
    if change.ordinal:
        cases = f"{counted(before, 'case')} that it judged right before"
        text = f"is wrong on {lost or 'none'} of {cases}" if before else "judged no case right"
    elif change.kind == "violated":
        cases = f"{counted(before, 'violation')} that it found before"
        text = f"misses {lost or 'none'} of {cases}" if before else "found no violation before"
    else:
        cases = f"{counted(before, 'case')} that it passed before"
        alarms = f"{lost or 'no'} new false alarm{'' if lost == 1 else 's'}"
        text = f"raises {alarms} on {cases}" if before else "passed no case before"
    remarks = []
    if lost:
        remarks += _places(change, decision)
    if change.won:
        gains = {"violated": "finds {} that it missed", "satisfied": "passes {} that it flagged"}
        gained = gains.get(change.kind, "is right on {} that it judged wrong")
        remarks.append(f"but {gained.format(f'{len(change.won):,}')}")
    if abs(change.drop) * change.n >= _ONE_VERDICT:
        remarks.append(_rate(change))
    return f"{text} ({'; '.join(remarks)})" if remarks else text


# Less than this part of a verdict is rounding.
_ONE_VERDICT = 1e-6


def _rate(change: SetChange) -> str:
    """The rate of a set before and now, of all verdicts; tables show that of the majority."""
    over = " over all repeats" if change.mixed else ""
    if change.ordinal:
        return f"mean error{over} {change.before:.2f} levels before, {change.now:.2f} now"
    if change.kind == "satisfied":
        return f"false positives{over} {percent(change.before)} before, {percent(change.now)} now"
    name = "recall" if change.kind == "violated" else "accuracy"
    return f"{name}{over} {percent(1 - change.before)} before, {percent(1 - change.now)} now"


def _places(change: SetChange, decision: GateDecision) -> list[str]:
    """The rubrics on which most cases are lost, where there are several."""
    pairs = decision.comparison.pairs if decision.comparison else ()
    rubrics = {pair.now.case_id: pair.now.spec.rubric_id for pair in pairs}
    if len(set(rubrics.values())) == 1:
        return []
    most = Counter(rubrics[case] for case in change.lost).most_common()
    names = [f"{number:,} on {one_line(rubric)}" for rubric, number in most[:_MOST_PLACES]]
    if len(most) > _MOST_PLACES:
        others = sum(number for _, number in most[_MOST_PLACES:])
        names.append(f"{others:,} on others")
    return [", ".join(names)]


_UNSEEN = "What could have gone unseen"


def unseen_sentences(decision: GateDecision) -> Iterator[str]:
    """What could have gone unseen of each judge that does not fail, unless it is a replay."""
    open_judges = set()
    for threshold in decision.thresholds:
        if threshold.drop is not None and threshold.drop.verdict != "FAIL":
            open_judges.add(threshold.judge)
    pairs = decision.comparison.pairs if decision.comparison else ()
    for judge in dict.fromkeys(pair.now.judge for pair in pairs):
        of_judge = [pair for pair in pairs if pair.now.judge == judge]
        if is_replay(of_judge) or not (decision.passed or judge in open_judges):
            continue
        changes = [
            change for change in decision.changes if change.judge == judge and change.is_whole
        ]
        of = f" by {one_line(judge)}" if judge else ""
        bounds = [_unseen(change) for change in changes if change.unseen.upper]
        if any(bounds):
            worse = " or ".join(filter(None, bounds))
            yield (f"{_UNSEEN}{of}: on other runs, up to {worse} would look like this.")
        elif changes[0].unseen.why:
            yield f"How other runs would be judged{of} is not known: {changes[0].unseen.why}."


def _unseen(change: SetChange) -> str:
    """The smallest change for the worse that the runs exclude, rounded up; empty for none."""
    upper = change.unseen.upper
    assert upper is not None
    if change.ordinal:
        return f"{math.ceil(10 * upper) / 10:.1f} levels more mean error"
    rounded_up = math.ceil(round(100 * upper, 6))
    if not rounded_up:
        return ""
    what = "less recall" if change.kind == "violated" else "more false positives"
    return f"{counted(rounded_up, 'point')} {what}"


_TEXTS: Mapping[str, Callable[[Threshold, GateDecision], str]] = {
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
    if found and (lost := _lost_words(decision)):
        regressions = f"{lost}; {regressions}"
    if not new:
        return regressions
    others = f"{counted(new, 'disagreement')} not in the baseline"
    return f"{regressions} and {others}" if found else others


def _lost_words(decision: GateDecision) -> str:
    """What each judge has lost since the last update; nothing where only cases of probes have, or
    where that is said already of why `max_drop` is exceeded.
    """
    if any(threshold.drop and threshold.drop.worse for threshold in decision.thresholds):
        return ""
    texts = []
    for judge in dict.fromkeys(change.judge for change in decision.changes):
        changes = [change for change in decision.changes if change.judge == judge]
        if any(change.lost for change in changes):
            texts.append(_words(changes, decision))
    return "; ".join(texts)


def _accuracy_text(threshold: Threshold) -> str:
    name = subject(threshold)
    value, limit = threshold.figure.value, threshold.limit
    if value is None:
        return (
            f"{name} cannot be computed ({threshold.figure.reason}), at least "
            f"{_threshold_percent(limit, 1)} asked"
        )
    digits = _digits(value, limit)
    verb = "reaches" if value >= limit else "is below"
    chance = ""
    if threshold.by_chance:
        chance = f", as the lowest of {threshold.by_chance} judges may be by chance"
    compared = (
        f"{percent(value, digits)} (n {threshold.n:,}) {verb} {_threshold_percent(limit, digits)}"
    )
    return f"{name} {compared}{chance}"


def _digits(value: float, limit: float) -> int:
    """How many digits to show: more where rounding would make "90.0% is below 90.0%" of it."""
    for digits in range(1, _MOST_DIGITS):
        if _threshold_percent(value, digits) != _threshold_percent(limit, digits):
            return digits
    return 1


def _by(threshold: Threshold) -> str:
    return f" by {one_line(threshold.judge)}" if threshold.judge else ""


def _threshold_percent(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f}%"


_MOST_REASONS = 3
# Where the flicker is not known, what it would come to with these shares of verdicts flipped.
_SUPPOSED_FLIPS = (0.02, 0.05)


def comparison_sentences(decision: GateDecision) -> Iterator[str]:
    """Say how many cases changed since the baseline; nothing without one."""
    if decision.comparison is None:
        return
    if not decision.changes:
        # Where no case has a verdict, that is said instead.
        if decision.judged or not decision.unjudged:
            yield from _nothing_compared(decision.comparison)
        return
    yield _comparison(decision)
    if decision.flickered:
        yield _flickered(decision)
    if decision.changed_unseen:
        yield (
            f"{counted(len(decision.changed_unseen), 'verdict')} changed though the judge is the "
            "same as in the baseline (model, prompt, parameters), which is more than flicker "
            "explains: what is behind the model's name may have changed."
        )


def _nothing_compared(comparison: Comparison) -> Iterator[str]:
    """Say why no case can be compared, the most frequent reason first."""
    reasons = Counter(comparison.not_comparable.values())
    most = [f"{reason} ({number:,})" for reason, number in reasons.most_common(_MOST_REASONS)]
    why = f": {'; '.join(most)}" if most else ""
    yield f"No case can be compared with the baseline{why}."
    if comparison.only_other_suites:
        others = listed(comparison.only_other_suites, _MOST_REASONS)
        yield (
            f"The baseline has cases of other suites alone ({others}): the ids of cases begin with "
            "the name of the config file, so a renamed config has other cases."
        )


_DROP_UNDECIDED = (
    "gate.max_drop is not decided, because there is no baseline: each disagreement fails its item. "
    "--jrh-baseline=FILE --jrh-update-baseline writes one."
)


def snapshot_sentence(flickers: Sequence[KnownFlicker]) -> str:
    """Say how often "any regression fails" fails on a judge that has not changed."""
    false_alarm = _false_alarm(flickers)
    if false_alarm is not None:
        return (
            f"Any regression fails: {_whose(flickers)} that has not changed, and is asked again, "
            f"fails this in {_percent(false_alarm)} of sessions. gate.max_drop allows for flicker."
        )
    cases = sum(flicker.cases for flicker in flickers)
    repeats = max(flicker.repeats for flicker in flickers)
    shares = []
    for flip in _SUPPOSED_FLIPS:
        shares.append(_percent(false_alarm_of_snapshot(cases, 2 * flip * (1 - flip), repeats)))
    rare, often = shares
    return (
        "Any regression fails: a judge that has not changed, and is asked again, fails this in "
        f"{rare} of sessions if {_SUPPOSED_FLIPS[0]:.0%} of its verdicts flip, in {often} if "
        f"{_SUPPOSED_FLIPS[1]:.0%} do. How many do is not known, as no case was judged more than "
        "once (evaluation_config.repeats)."
    )


def _false_alarm(flickers: Sequence[KnownFlicker]) -> float | None:
    """How often it fails on judges that have not changed; None where a flicker is not known."""
    fine = 1.0
    for flicker in flickers:
        if flicker.value is None:
            return None
        fine *= 1 - false_alarm_of_snapshot(flicker.cases, flicker.value, flicker.repeats)
    return 1 - fine


def _whose(flickers: Sequence[KnownFlicker]) -> str:
    if len(flickers) > 1:
        return f"a panel of {len(flickers):,} judges with the flicker of these"
    [one] = flickers
    source = "repeats" if one.source == "repeats" else "what it said in the baseline"
    return f"a judge with a flicker of {percent(one.value)} (from {source})"


def _comparison(decision: GateDecision) -> str:
    assert decision.comparison is not None
    pairs = decision.comparison.pairs
    compared = {pair.now.case_id for pair in pairs}
    changed = _changed(decision, compared)
    steady = all(change.p_value == 1 for change in decision.changes)
    if steady and not compared & {*decision.regressions, *decision.fixes}:
        changed += " (nothing changed)"
    text = f"{counted(len(pairs), 'case')} compared with the baseline: {changed}."
    derived = {*decision.regressions, *decision.fixes} - compared
    if not derived:
        return text
    number = counted(decision.comparison.compared - len(pairs), "case")
    return f"{text} Of {number} of probes: {_changed(decision, derived)}."


def _changed(decision: GateDecision, cases: Set[str]) -> str:
    regressions = counted(len(cases & set(decision.regressions)), "regression")
    return f"{regressions}, {fixes_text(len(cases & set(decision.fixes)))}"


def certainty_sentences(decision: GateDecision) -> Iterator[str]:
    """Name the test, its level, and of each set that has lost anything p and what it lost."""
    if not decision.changes:
        return
    yield (
        "Exact test inside of cases: if the judge has not changed, its verdicts before and now are "
        "exchangeable. p is the chance of a loss as large as this; adjusted, the chance of any so "
        f"unlikely among the {counted(len(decision.changes), 'set')} compared. With max_drop, a "
        f"set fails where the adjusted p is below {SESSION_LEVEL:.3g}."
    )
    lost = [change for change in decision.changes if change.drop > 0]
    lost.sort(key=lambda change: (change.adjusted, change.p_value))
    for change in lost[:_MOST_SETS]:
        losses = f"{len(change.lost):,} lost and {len(change.won):,} won of {change.n:,}"
        adjusted = f", {change.adjusted:.3g} adjusted" if change.adjusted < 1 else ""
        yield f"{_set_name(change)}: {losses}, {_rate(change)}: p = {change.p_value:.3g}{adjusted}."
    if len(lost) > _MOST_SETS:
        yield f"{len(lost) - _MOST_SETS:,} more sets are in the JSON report."
    if any(sentence.startswith(_UNSEEN) for sentence in unseen_sentences(decision)):
        runs = max(len(change.sizes) for change in decision.changes)
        yield (
            f"{_UNSEEN} is a one-sided 95% bound over {counted(runs, 'run')}, "
            "which supposes that a change breaks whole runs."
        )
    if decision.is_snapshot:
        yield snapshot_sentence(decision.flickers)


_MOST_SETS = 12


def _set_name(change: SetChange) -> str:
    names = {"violated": "violated cases", "satisfied": "satisfied cases", "all": "all cases"}
    name = names.get(change.kind, one_line(change.rubric))
    by = f" by {one_line(change.judge)}" if change.judge else ""
    text = f"{name}{by}"
    return text[0].upper() + text[1:] if change.kind != "rubric" else text


def _flickered(decision: GateDecision) -> str:
    again = set(decision.flickered)
    parts = []
    if lost := again & set(decision.regressions):
        parts.append(f"{len(lost):,} of {counted(len(decision.regressions), 'regression')}")
    if won := again & set(decision.fixes):
        parts.append(f"{len(won):,} of {fixes_text(len(decision.fixes))}")
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
    """What of the baseline was not compared, or with fewer repeats, and what is not decided."""
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
    for one in covered.repeats[:_MOST_NAMED]:
        repeats = counted(one.now, "repeat")
        yield f"{counted(one.cases, 'case')} with {repeats} instead of {one.before:,}"
    if others := sum(one.cases for one in covered.repeats[_MOST_NAMED:]):
        yield f"{counted(others, 'more case')} with fewer repeats"
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
    """Say whether the gate passed, and why: what failed, or every threshold that was met; then what
    could have gone unseen, and where less was compared than the baseline has, how much.
    """
    return " ".join(
        [
            _verdict_sentence(decision),
            *unseen_sentences(decision),
            *coverage_sentences(decision),
        ]
    )


def _verdict_sentence(decision: GateDecision) -> str:
    missing = []
    if decision.never_reported:
        missing.append(f"{counted(len(decision.never_reported), 'case')} never reported")
    if decision.unscored:
        missing.append(f"{counted(len(decision.unscored), 'case')} unscored")
    if decision.nothing_ran:
        missing.append("none of its cases was run")
    accepted = []
    if decision.accepted:
        wrong = counted(len(decision.accepted), "disagreement")
        accepted.append(f"{wrong} accepted into the baseline")
    if decision.passed:
        if not (decision.active or accepted):
            return "No gate is set: each disagreement fails its item."
        met = _met(decision) or _texts(decision.thresholds, decision)
        met += accepted
        return f"Gate passed: {'; '.join(met) or 'nothing was to be judged'}."
    failed = [threshold for threshold in decision.thresholds if not threshold.passed]
    reasons = [*_texts(failed, decision), *missing]
    text = f"{'Gate failed' if decision.active else 'Not green'}: {'; '.join(reasons)}."
    met = _met(decision)
    return f"{text} Met: {'; '.join(met)}." if met else text


def _met(decision: GateDecision) -> list[str]:
    """The thresholds that were met, but for one verdict being enough."""
    met = []
    for threshold in decision.thresholds:
        if threshold.passed and (threshold.rule != "min_cases" or threshold.limit > 1):
            met.append(threshold)
    return _texts(met, decision)


def _texts(thresholds: Iterable[Threshold], decision: GateDecision) -> list[str]:
    return [threshold_text(threshold, decision) for threshold in thresholds]


def gate_blocks(decision: GateDecision, session: Session) -> list[Block]:
    """Cases, changes, decision and what to do; nothing without a gate where nothing is missing."""
    if not decision.is_reported:
        return []
    blocks: list[Block] = [
        *gate_cases(decision, session),
        *map(Sentence, change_sentences(decision)),
        Sentence(decision_sentence(decision), "good" if decision.passed else "bad"),
    ]
    if sentences := [*map(Sentence, certainty_sentences(decision))]:
        blocks.append(Fold("How sure is this?", tuple(sentences)))
    return [*blocks, *update_blocks(decision)]


def update_blocks(decision: GateDecision) -> list[Block]:
    """What to do where too little could be compared, and the command that does it."""
    advice = update_sentence(decision)
    return [] if advice is None else [Command(advice, decision.update_command)]


def change_sentences(decision: GateDecision) -> list[str]:
    """Say what changed since the baseline, and what the decision does not rest on."""
    lines = [*comparison_sentences(decision)]
    if decision.drop_undecided:
        lines.append(_DROP_UNDECIDED)
    return [*lines, *_unjudged_sentences(decision), *_few_cases(decision)]


def update_sentence(decision: GateDecision) -> str | None:
    """What to do where nothing could be compared, or the suite has outgrown the baseline, before
    the command that does it.

    None elsewhere, and where verdicts are to be recorded first: there is one next command.
    """
    if decision.outgrown:
        ways = "If the cases that the baseline does not have are new, update it"
    elif decision.uncompared and "unrecorded" not in decision.unscored.values():
        new = "judge" if decision.changes else "suite"
        ways = f"Set gate.allow_uncompared: true if the {new} is new, or update the baseline"
    else:
        return None
    return f"{ways} with:" if decision.update_command else f"{ways}."


def _unjudged_sentences(decision: GateDecision) -> Iterator[str]:
    """Name what has no verdict at all, or say once that no case has one."""
    tests = [unjudged for unjudged in decision.unjudged if unjudged.kind == "test"]
    if decision.judged == 0 and tests:
        total: Counter[str] = Counter()
        for test in tests:
            total.update(dict(test.outcomes))
        yield f"No case has a verdict ({_outcomes(sorted(total.items()))})."
        return
    for unjudged in decision.unjudged:
        name, outcomes = one_line(unjudged.name), _outcomes(unjudged.outcomes)
        yield f"No verdict on any case of {unjudged.kind} {name} ({outcomes})."


def _outcomes(outcomes: Sequence[tuple[str, int]]) -> str:
    cases = 0
    texts = []
    for outcome, number in outcomes:
        cases += number
        texts.append(f"{number:,} {outcome}")
    return f"{counted(cases, 'case')}: {', '.join(texts)}"


def _few_cases(decision: GateDecision) -> Iterator[str]:
    """A gate that hardly any case decides; a limit that was raised has been thought of, and a drop
    is not decided by a few; of a subset it is said how few there are.
    """
    if decision.holds_a_drop or decision.subset is not None:
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
    lists = []
    for title, cases, weight in _groups(decision):
        if cases:
            named = tuple(session.named(case_id, why) for case_id, why in cases.items())
            most = MOST_UNSCORED if title == "unscored" else MOST_NAMED
            lists.append(Cases(title, named, weight, most))
    return lists


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
    yield "accepted into the baseline, though wrong", _bare(decision.accepted), "warning"
    if decision.active:
        yield _new_title(decision), _bare(decision.new_disagreements), "bad"
    for threshold in decision.thresholds:
        if not threshold.passed and threshold.rule in ("min_accuracy", "lower_bound"):
            title = f"disagreements for which the {subject(threshold)} is too low"
            yield title, _bare(threshold.cases), "bad"
    yield "never reported", _bare(decision.never_reported), "bad"
    yield "unscored", decision.unscored, "bad"
    not_comparable = dict(decision.not_comparable)
    for case in (*decision.never_reported, *decision.unscored, *decision.new_disagreements):
        not_comparable.pop(case, None)
    new = [case for case, why in not_comparable.items() if why == NOT_IN_BASELINE]
    for case in new:
        del not_comparable[case]
    yield "new since the baseline", _bare(new), "muted"
    yield "not comparable with the baseline", not_comparable, "warning"


def _bare(case_ids: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(case_ids, "")


def _new_title(decision: GateDecision) -> str:
    return "disagreements" if decision.comparison is None else "disagreements not in the baseline"
