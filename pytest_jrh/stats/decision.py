"""The decision about a suite, a pull request or a table of verdicts: PASS, UNCLEAR or FAIL.

One pure function from results, baseline and rules: exit code, first line, comment, page and
annotations are all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_jrh.cases.ids import case_id
from pytest_jrh.core.model import JUDGED, UNSCORED, CaseResult
from pytest_jrh.core.text import counted, one_line
from pytest_jrh.stats.baseline import (
    NOT_IN_BASELINE,
    Baseline,
    Comparison,
    Scope,
    compare,
    suite_of,
)
from pytest_jrh.stats.changes import SetChange, Widths, set_changes
from pytest_jrh.stats.columns import answer_of
from pytest_jrh.stats.coverage import missing_from
from pytest_jrh.stats.exchange import DOUBT, LEVEL, runs_to_prove
from pytest_jrh.stats.limits import Limit, flip_of, judge_limits, limit_text, probe_limits
from pytest_jrh.stats.statistics import accuracy_of, kappa_by_case
from pytest_jrh.stats.wording import (
    Word,
    about_sets,
    allowed_drop,
    chance_text,
    compared_text,
    judged_text,
    loss_text,
    points,
    wrong_text,
)

if TYPE_CHECKING:
    from pytest_jrh.config.schema import GateRules
    from pytest_jrh.core.model import CaseSpec
    from pytest_jrh.stats.baseline import Pair


Kind: TypeAlias = Literal[
    "missing", "uncompared", "drop", "limit", "wrong", "probe", "left", "grown", "useless", "proof"
]

WRONG_BEFORE = "wrong in the baseline too"
LEFT_TO_THE_GATE = "left to the gate"
ACCEPTED = "accepted into the baseline"
# What is computed in another order is the same.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something fails or is unclear, as a clause; `cases` are the ids that it rests on."""

    word: Literal["UNCLEAR", "FAIL"]
    kind: Kind
    text: str
    judge: str = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """What results are held against, beside the rules.

    `widths` are the scales of ordinal rubrics; `others` are judges of which the baseline has the
    verdicts of another judge; `subjects` say how a judge is spoken of. `left_out` are cases that a
    marker or another plugin has skipped. `common` compares what both sides have, and is never PASS.
    A session that `accepts` writes the baseline. `part` names a subset of the suite.
    """

    baseline: Baseline | None
    scope: Scope
    widths: Widths = field(default_factory=dict)
    others: Collection[str] = ()
    subjects: Mapping[str, str] = field(default_factory=dict)
    left_out: Collection[CaseSpec] = ()
    common: bool = False
    accepts: bool = False
    part: str = ""

    def subject(self, judge: str) -> str:
        """How a judge is spoken of."""
        return self.subjects.get(judge) or (f"judge {one_line(judge)}" if judge else "the judge")


@dataclass(frozen=True)
class Decision:
    """The decision about one suite; ids are sorted.

    `headline` says what failed, or is unclear, and only that; `beside` are the sentences that stand
    below it. `reasons` are in the order of the headline. `passed` is the exit code's: what is
    unclear passes, unless `gate.unclear` says otherwise. `active` is False where neither a limit
    nor a baseline decides, so that wrong verdicts fail by themselves. `accepted` are those that an
    update takes into the baseline. `read_first` are the cases that are judged wrong, in the order
    in which to read them. `update_command` updates the baseline; it is set where that is the next
    step.
    """

    word: Word
    headline: str
    passed: bool
    active: bool
    beside: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    sets: tuple[SetChange, ...] = ()
    limits: tuple[Limit, ...] = ()
    comparison: Comparison | None = None
    judged: int = 0
    compared: int = 0
    of_baseline: int = 0
    never_reported: tuple[str, ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    new_wrong: tuple[str, ...] = ()
    read_first: tuple[str, ...] = ()
    update_command: str = ""
    part: str = ""

    @property
    def uncompared(self) -> bool:
        """Whether nothing could be compared with the baseline."""
        return any(reason.kind == "uncompared" for reason in self.reasons)

    @property
    def regressions(self) -> tuple[str, ...]:
        """Right in the baseline, wrong now."""
        return self.comparison.regressions if self.comparison else ()

    @property
    def fixes(self) -> tuple[str, ...]:
        """Wrong in the baseline, right now."""
        return self.comparison.fixes if self.comparison else ()

    @cached_property
    def flickered(self) -> frozenset[str]:
        """Regressions and fixes whose judge is the same as in the baseline, of judges that have not
        lost more than chance explains.
        """
        if self.comparison is None:
            return frozenset()
        worse = {of.judge for of in self.sets if of.drop > 0 and of.adjusted < LEVEL}
        turned = {*self.regressions, *self.fixes}
        return frozenset(
            pair.now.case_id
            for pair in self.comparison.all_pairs
            if pair.same_judge and pair.now.judge not in worse and pair.now.case_id in turned
        )

    def word_of(self, judge: str) -> Word:
        """The decision about one judge of several."""
        words = {reason.word for reason in self.reasons if reason.judge in ("", judge)}
        if "FAIL" in words:
            return "FAIL"
        return "UNCLEAR" if "UNCLEAR" in words else self.word and "PASS"


def is_active(rules: GateRules, baseline: Baseline | None) -> bool:
    """Whether a limit or a baseline decides."""
    return baseline is not None or rules.has_limits


def tolerated(
    result: CaseResult, baseline: Baseline | None, rules: GateRules, *, accepts: bool = False
) -> str | None:
    """Why a case's disagreement does not fail its item; None where it does, or the case agrees.

    Needs only the case's own result, so that every xdist worker can call it.
    """
    if result.outcome != "disagree":
        return None
    before = baseline.match(result) if baseline else None
    if accepts and (baseline is None or result.case_id not in baseline.cases):
        return ACCEPTED
    if before is not None and before.outcome == "disagree":
        return f"{WRONG_BEFORE}: {before.reason}" if before.reason else WRONG_BEFORE
    return LEFT_TO_THE_GATE if accepts or is_active(rules, baseline) else None


def decide(results: Iterable[CaseResult], rules: GateRules, held: Held) -> Decision:
    """Decide about one suite, from the last result of each of its cases.

    The scope holds the suite's ids alone. Selected cases without a result have no verdict.
    """
    by_id = {result.case_id: result for result in results}
    received = [by_id[case_id] for case_id in sorted(by_id)]
    judged = [result for result in received if result.outcome in JUDGED]
    baseline, scope = held.baseline, held.scope
    active = is_active(rules, baseline)
    comparison = compare(baseline, received, scope) if baseline is not None else None
    never_reported = tuple(sorted(scope.selected - by_id.keys()))
    unscored = {result.case_id: result.outcome for result in received if result.outcome in UNSCORED}
    wrong = [result for result in judged if result.outcome == "disagree"]
    pairs = comparison.pairs if comparison else ()
    # Probes with a limit are held against that.
    exchanged = [
        pair
        for pair in (comparison.all_pairs if comparison else ())
        if pair.now.spec.test not in rules.probe_limits
    ]
    sets = set_changes(exchanged, held.widths, held.others)
    limits = (*judge_limits(judged, pairs, rules), *probe_limits(received, judged, rules, scope))
    in_baseline = baseline.cases if baseline is not None else {}
    accepted = tuple(
        result.case_id for result in wrong if held.accepts and result.case_id not in in_baseline
    )

    reasons = [*_missing(received, never_reported, unscored, active=active)]
    reasons += _reasons(received, judged, comparison, sets, limits, rules, held)
    reasons.sort(key=lambda reason: reason.word != "FAIL")

    word: Word = reasons[0].word if reasons else "PASS"
    if not reasons and not judged:
        word = ""
    suites = scope.suites
    of_baseline = {case for case in in_baseline if suite_of(case) in suites}
    return Decision(
        word=word,
        headline=_headline(word, reasons, sets, judged, comparison, held, rules),
        passed=word != "FAIL" and not (word == "UNCLEAR" and rules.unclear == "fail"),
        active=active,
        beside=tuple(_beside(word, reasons, sets, comparison, judged, accepted, held, rules)),
        reasons=tuple(reasons),
        sets=sets,
        limits=limits,
        comparison=comparison,
        judged=len(judged),
        compared=comparison.compared if comparison else 0,
        of_baseline=len(of_baseline),
        never_reported=never_reported,
        unscored=unscored,
        accepted=accepted,
        new_wrong=tuple(
            result.case_id for result in wrong if result.case_id not in (in_baseline or {})
        ),
        read_first=_read_first(wrong, reasons, comparison),
        part=held.part,
    )


def _reasons(
    received: Sequence[CaseResult],
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    sets: Sequence[SetChange],
    limits: Sequence[Limit],
    rules: GateRules,
    held: Held,
) -> Iterator[Reason]:
    """Why what was judged fails or is unclear, in the order in which it is told."""
    baseline = held.baseline
    if comparison is not None and judged and not held.accepts:
        yield from _uncompared(comparison, rules)
    if not held.accepts:
        yield from _drops(sets, rules, held)
    for limit in limits:
        yield from _of_limit(limit, held)
    if not is_active(rules, baseline) and not held.accepts:
        yield from _wrong(received, held)
    if baseline is not None and comparison and comparison.compared and not held.accepts:
        yield from _left(received, comparison, baseline, held)
        yield from _grown(judged, comparison, rules, held)
    if not held.scope.deselected and not held.part:
        yield from _useless(judged, held)
    if rules.proof and not held.accepts and not held.part:
        pairs = comparison.pairs if comparison else ()
        yield from _unproven(sets, rules, judged, pairs, held)


def _missing(
    received: Sequence[CaseResult],
    never_reported: Sequence[str],
    unscored: Mapping[str, str],
    *,
    active: bool,
) -> Iterator[Reason]:
    """Cases without a verdict, and a gate that has looked at nothing."""
    cases = tuple(sorted({*never_reported, *unscored}))
    if cases:
        kinds = Counter(unscored.values())
        if never_reported:
            kinds["never reported"] = len(never_reported)
        named = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
        has = "has" if len(cases) == 1 else "have"
        yield Reason(
            "FAIL",
            "missing",
            f"{counted(len(cases), 'case')} {has} no verdict ({named})",
            "",
            cases,
        )
    elif active and not any(result.outcome in JUDGED for result in received):
        others = Counter(result.outcome for result in received)
        named = ", ".join(f"{number:,} {kind}" for kind, number in others.most_common())
        yield Reason("FAIL", "missing", f"nothing was judged ({named or 'no case was run'})")


def _uncompared(comparison: Comparison, rules: GateRules) -> Iterator[Reason]:
    if comparison.compared:
        return
    text = "nothing could be compared with the baseline"
    if comparison.not_comparable and set(comparison.not_comparable.values()) == {NOT_IN_BASELINE}:
        text = f"{text}: it has no case of this suite"
    yield Reason("UNCLEAR" if rules.has_limits else "FAIL", "uncompared", text)


def _drops(sets: Sequence[SetChange], rules: GateRules, held: Held) -> Iterator[Reason]:
    """What each judge has lost beyond `max_drop`, and whether chance explains it."""
    lost = [of for of in sets if of.drop > allowed_drop(of, rules) + _ROUNDING]
    for judge in dict.fromkeys(of.judge for of in lost):
        of_judge = [of for of in lost if of.judge == judge]
        worse = [of for of in of_judge if of.adjusted < LEVEL - _ROUNDING]
        doubtful = [of for of in of_judge if of.doubt <= DOUBT + _ROUNDING]
        subject = held.subject(judge)
        if worse:
            text = f"{subject} {loss_text(worse)}"
            yield Reason("FAIL", "drop", text, judge, _lost_cases(worse))
        elif doubtful:
            p_value = min(of.doubt for of in doubtful)
            text = f"{subject} {loss_text(doubtful)}; {chance_text(p_value)}"
            yield Reason("UNCLEAR", "drop", text, judge, _lost_cases(doubtful))


def is_replay(pairs: Sequence[Pair]) -> bool:
    """Whether nothing is to be proven: the same judge, and the same verdicts."""
    return all(
        pair.same_judge and sorted(pair.before.all_scores) == sorted(pair.now.all_scores)
        for pair in pairs
    )


def _lost_cases(sets: Iterable[SetChange]) -> tuple[str, ...]:
    return tuple(sorted({case for of in sets for case in of.lost}))


def _of_limit(limit: Limit, held: Held) -> Iterator[Reason]:
    text = limit_text(limit, held.subject(limit.judge))
    if limit.figure.value is None:
        yield Reason("FAIL", "limit", text, limit.judge)
    elif limit.broken:
        word: Literal["UNCLEAR", "FAIL"] = "UNCLEAR" if limit.by_flicker else "FAIL"
        kind: Kind = "probe" if limit.rule == "max_rate" else "limit"
        yield Reason(word, kind, text, limit.judge, limit.cases)
    elif limit.unproven and not held.part:
        yield Reason("UNCLEAR", "proof", text, limit.judge)


def _wrong(received: Sequence[CaseResult], held: Held) -> Iterator[Reason]:
    """Where nothing else decides, each wrong verdict fails."""
    wrong = [result for result in received if result.outcome == "disagree"]
    for judge in dict.fromkeys(result.judge for result in wrong):
        of_judge = [result for result in received if result.judge == judge]
        cases = tuple(result.case_id for result in wrong if result.judge == judge)
        yield Reason("FAIL", "wrong", f"{held.subject(judge)} {wrong_text(of_judge)}", judge, cases)


def _left(
    received: Sequence[CaseResult], comparison: Comparison, baseline: Baseline, held: Held
) -> Iterator[Reason]:
    """What left the comparison that a reader has to know."""
    missing, parts = missing_from(comparison, received)
    skipped = {case_id(spec) for spec in held.left_out} & baseline.cases.keys()
    if skipped:
        parts.append(f"{len(skipped):,} skipped")
    if held.common:
        parts.append("only what both have")
    if parts:
        cases = tuple(sorted(missing | skipped))
        total = comparison.compared + len(cases)
        text = f"{comparison.compared:,} of {counted(total, 'case')} compared: {', '.join(parts)}"
        yield Reason("UNCLEAR", "left", text, "", cases)


def _new_of(judged: Iterable[CaseResult], comparison: Comparison) -> list[CaseResult]:
    """The cases that the baseline does not have; those of probes count in no figure."""
    new = []
    for result in judged:
        reason = comparison.not_comparable.get(result.case_id)
        if reason == NOT_IN_BASELINE and not result.spec.derived:
            new.append(result)
    return new


def _grown(
    judged: Sequence[CaseResult], comparison: Comparison, rules: GateRules, held: Held
) -> Iterator[Reason]:
    """Judges that are worse on new cases than they were on the others."""
    for judge in dict.fromkeys(pair.now.judge for pair in comparison.pairs):
        new = [result for result in _new_of(judged, comparison) if result.judge == judge]
        before = [pair.was_right for pair in comparison.pairs if pair.now.judge == judge]
        right = accuracy_of(new)
        least = sum(before) / len(before) - rules.max_drop
        if right.upper is not None and right.upper < least:
            wrong = [result.case_id for result in new if result.outcome == "disagree"]
            text = (
                f"{held.subject(judge)} is wrong on {len(wrong):,} of "
                f"{counted(len(new), 'new case')}, and was on {before.count(False):,} of the "
                f"{counted(len(before), 'case')} of the baseline"
            )
            yield Reason("UNCLEAR", "grown", text, judge, tuple(wrong))


def _useless(judged: Sequence[CaseResult], held: Held) -> Iterator[Reason]:
    """Judges that are worth nothing, whatever the comparison says."""
    counting = [result for result in judged if not result.spec.derived]
    for judge in dict.fromkeys(result.judge for result in counting):
        of_judge = [result for result in counting if result.judge == judge]
        subject = held.subject(judge)
        pairs = []
        for result in of_judge:
            answer = answer_of(result)
            if result.expected is not None and answer is not None:
                pairs.append((result.expected, answer))
        if len(pairs) < 2:  # noqa: PLR2004 - a single case has one label, whatever the suite
            continue
        labels, answers = {label for label, _ in pairs}, {answer for _, answer in pairs}
        text = ""
        if len(labels) == 1:
            [label] = labels
            text = f"every label is {label}, so that a judge that always says {label} is right"
        elif len(answers) == 1:
            text = f"{subject} always says {answers.pop()}"
        else:
            kappa = kappa_by_case(pairs)
            if kappa.lower is None or kappa.lower <= 0:
                text = f"{subject} is not shown to be better than chance"
        if text:
            yield Reason("UNCLEAR", "useless", text, judge)


def _unproven(
    sets: Sequence[SetChange],
    rules: GateRules,
    judged: Sequence[CaseResult],
    pairs: Sequence[Pair],
    held: Held,
) -> Iterator[Reason]:
    """Classes of which other runs do not exclude a loss of `max_drop`; a replay has none."""
    for judge in dict.fromkeys(of.judge for of in sets):
        of_judge = [pair for pair in pairs if pair.now.judge == judge]
        classes = [of for of in sets if of.judge == judge and of.is_class]
        if is_replay(of_judge) or all(of.bound < rules.max_drop for of in classes):
            continue
        text = (
            f"{held.subject(judge)} is not proven to lose less than {points(rules.max_drop)} on "
            "other runs"
        )
        flip, repeats = flip_of([result for result in judged if result.judge == judge], of_judge)
        widest = min(classes, key=lambda of: of.n / of.runs)
        needed = runs_to_prove(widest.n / widest.runs, repeats, flip, rules.max_drop, len(classes))
        if needed is not None and needed > widest.runs:
            text = f"{text}: {needed:,} runs would prove it of an unchanged judge"
        yield Reason("UNCLEAR", "proof", text, judge)


def _headline(
    word: Word,
    reasons: Sequence[Reason],
    sets: Sequence[SetChange],
    judged: Sequence[CaseResult],
    comparison: Comparison | None,
    held: Held,
    rules: GateRules,
) -> str:
    """What failed, or is unclear, or of PASS why, and of which part of the suite that is said."""
    text = _clause(word, reasons, sets, judged, held, rules)
    if held.accepts and comparison is not None and comparison.regressions:
        lost = counted(len(comparison.regressions), "case")
        text = f"{text}; this update accepts a loss: {lost} newly wrong"
    deselected = held.scope.deselected - {case_id(spec) for spec in held.left_out}
    if held.part:
        return f"{text} (subset {one_line(held.part)})"
    return f"{text} ({counted(len(deselected), 'case')} deselected)" if deselected else text


def _clause(
    word: Word,
    reasons: Sequence[Reason],
    sets: Sequence[SetChange],
    judged: Sequence[CaseResult],
    held: Held,
    rules: GateRules,
) -> str:
    if reasons:
        first = reasons[0]
        same = [reason for reason in reasons if (reason.word, reason.kind) == (word, first.kind)]
        more = len({reason.judge for reason in same} - {first.judge})
        return f"{first.text}; likewise {counted(more, 'more judge')}" if more else first.text
    if held.accepts:
        return "the baseline takes these verdicts over"
    if not judged:
        return "no case was to be judged"
    judges = list(dict.fromkeys(result.judge for result in judged))
    subject = held.subject(judges[0]) if len(judges) == 1 else counted(len(judges), "judge")
    allowed = [of for of in sets if of.is_class and of.drop > 0 and of.adjusted < LEVEL]
    if allowed:
        of_judge = [of for of in allowed if of.judge == allowed[0].judge]
        text = f"{held.subject(allowed[0].judge)} {loss_text(of_judge)}"
        return f"{text}; {points(rules.max_drop)} may be lost"
    if sets:
        return compared_text(subject, sets, several=len(judges) > 1)
    return judged_text(subject, judged, several=len(judges) > 1)


def _beside(
    word: Word,
    reasons: Sequence[Reason],
    sets: Sequence[SetChange],
    comparison: Comparison | None,
    judged: Sequence[CaseResult],
    accepted: Sequence[str],
    held: Held,
    rules: GateRules,
) -> Iterator[str]:
    """What stands below the headline: the other reasons, what chance does, what was gained, what is
    let through, and what was left out on purpose.
    """
    for reason in reasons[1:]:
        yield f"{reason.word}: {reason.text}" if reason.word != word else reason.text
    judges = dict.fromkeys(of.judge for of in sets)
    for judge in judges:
        classes = [of for of in sets if of.judge == judge and of.is_class]
        whose = f"{held.subject(judge)}: " if len(judges) > 1 else ""
        yield from (f"{whose}{text}" for text in about_sets(judge, sets, classes, word, rules))
    if accepted:
        yield f"{counted(len(accepted), 'wrong verdict')} accepted into the baseline"
    if held.left_out:
        yield f"{counted(len(held.left_out), 'case')} skipped by markers"
    if comparison is not None and comparison.compared:
        new = _new_of(judged, comparison)
        wrong = sum(result.outcome == "disagree" for result in new)
        if wrong:
            verb = "is" if wrong == 1 else "are"
            yield f"{wrong:,} of {counted(len(new), 'new case')} {verb} judged wrong"


def _read_first(
    wrong: Sequence[CaseResult], reasons: Sequence[Reason], comparison: Comparison | None
) -> tuple[str, ...]:
    """The cases that are judged wrong: those that the headline rests on, then those that were right
    before, then the rest.
    """
    first = {case for reason in reasons if reason.kind == "drop" for case in reason.cases}
    regressions = {*comparison.regressions} if comparison else set()
    cases = [result.case_id for result in wrong]
    return tuple(sorted(cases, key=lambda case: (case not in first, case not in regressions, case)))
