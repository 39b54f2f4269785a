"""The decision about a suite, a pull request or a table of verdicts: PASS, UNCLEAR or FAIL.

One pure function from results, baseline and rules: exit code, first line, comment, page and
annotations are all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from pytest_jrh.core import counted, frozen, grouped_by, one_line, out_of
from pytest_jrh.core.scales import CaseClass, as_level
from pytest_jrh.core.sections import GateRules
from pytest_jrh.stats.changes import (
    DOUBT,
    FEWEST_LOST,
    SURE,
    Asked,
    SetChange,
    about_sets,
    chance_text,
    compared_text,
    fisher_test,
    loss_text,
    needed_text,
    points,
    set_changes,
)
from pytest_jrh.stats.figures import right_text
from pytest_jrh.stats.intervals import estimate_kappa
from pytest_jrh.stats.limits import (
    Limit,
    is_limited,
    judge_limits,
    limit_text,
    probe_limits,
    probe_tables,
)
from pytest_jrh.stats.statistics import called, mistakes_text
from pytest_jrh.stats.verdicts import (
    CASE_CHANGED,
    NEVER_REPORTED,
    NOT_IN_BASELINE,
    Comparison,
    Scope,
    Verdicts,
    missing_from,
)

_NoPass = Literal["UNCLEAR", "FAIL"]
Word = Literal["PASS", _NoPass, ""]
"""What is decided; empty where nothing is to be decided."""

Kind = Literal[
    "missing",
    "uncompared",
    "drop",
    "limit",
    "wrong",
    "probe",
    "left",
    "grown",
    "opposite",
    "useless",
    "proof",
]

# What is computed in another order is the same.
_ROUNDING = 1e-9


class Reason(NamedTuple):
    """Why something fails or is unclear, as a clause; `cases` are the ids that it rests on, and
    `needs` is what would decide it.
    """

    word: _NoPass
    kind: Kind
    text: str
    judge: str = ""
    cases: Sequence[str] = ()
    needs: str = ""


@frozen
class Held:
    """What verdicts are held against, beside the rules and the baseline.

    `asked` says by judge what its verdicts are compared as; `subjects` say how a judge is spoken
    of. `left_out` are the ids of cases that a marker or another plugin has skipped. `common`
    compares what both sides have, and is never PASS.
    A session that `accepts` writes the baseline. `wrong_labels` are so many that people found
    wrong. `no_verdict` says which cases have none, or why, `changed` what a change of the baseline
    since the base branch accepts, `turning` how the meaning of a 1 is turned.
    """

    scope: Scope
    asked: Mapping[str, Asked] = field(default_factory=dict)
    subjects: Mapping[str, str] = field(default_factory=dict)
    left_out: Set[str] = frozenset()
    common: bool = False
    accepts: bool = False
    wrong_labels: int = 0
    no_verdict: str = ""
    changed: str = ""
    turning: str = ""

    def subject(self, judge: str) -> str:
        """How a judge is spoken of."""
        return self.subjects.get(judge) or (f'judge "{one_line(judge)}"' if judge else "the judge")

    def noun(self, judge: str) -> str:
        """What has changed of it."""
        return "prompt" if "new prompt" in self.subject(judge) else "judge"


@dataclass(frozen=True)
class Decision:
    """The decision about one suite; ids are sorted.

    `headline` says what failed, or is unclear, and only that; `beside` are the sentences that stand
    below it. `reasons` are in the order of the headline. `passed` is the exit code's: what is
    unclear about a change does not pass, what is unclear about the judge as it is does, unless
    `gate.unclear` says otherwise. `active` is False where no limit and no
    baseline decides and none is written, so that wrong verdicts fail by themselves. `accepted` are
    those that an update takes into the baseline. `update_command` updates the baseline; it is set
    where that is the next step.
    """

    word: Word
    headline: str
    passed: bool
    active: bool
    beside: Sequence[str] = ()
    reasons: Sequence[Reason] = ()
    sets: Sequence[SetChange] = ()
    limits: Sequence[Limit] = ()
    comparison: Comparison | None = None
    compared: int = 0
    of_baseline: int = 0
    never_reported: Sequence[str] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    accepted: Sequence[str] = ()
    new_wrong: Sequence[str] = ()
    update_command: str = ""

    @property
    def sentences(self) -> Sequence[str]:
        """The word with the headline, and what stands below it."""
        return (f"{self.word}  {self.headline}", *self.beside)

    @property
    def regressions(self) -> Sequence[str]:
        """Right in the baseline, wrong now."""
        return self.comparison.regressions if self.comparison else ()

    @property
    def fixes(self) -> Sequence[str]:
        """Wrong in the baseline, right now."""
        return self.comparison.fixes if self.comparison else ()

    @cached_property
    def flickered(self) -> frozenset[str]:
        """Regressions and fixes whose judge is the same as in the baseline, of judges that have not
        lost more than chance explains.
        """
        if self.comparison is None:
            return frozenset()
        worse = {of.judge for of in self.sets if of.drop > 0 and of.finding.p_value < SURE}
        compared = self.comparison.everything
        is_sound = compared.judge.each(lambda judge: judge not in worse)
        has_turned = compared.was_right != compared.right
        is_same = compared.same_judge.each(bool)
        return frozenset(compared.ids[is_same & is_sound & has_turned])


@frozen
class _Session:
    """What is decided about: the verdicts beside those of the baseline, what they are held against,
    and what came of that.
    """

    comparison: Comparison
    never_reported: Sequence[str]
    sets: Sequence[SetChange]
    limits: Sequence[Limit]
    rules: GateRules
    held: Held

    @property
    def judged(self) -> Verdicts:
        """All verdicts."""
        return self.comparison.judged

    @property
    def has_baseline(self) -> bool:
        """Whether a baseline decides."""
        return self.comparison.lines is not None

    @property
    def is_active(self) -> bool:
        """Whether a limit or a baseline decides."""
        return self.has_baseline or self.rules.has_limits

    @property
    def classes(self) -> dict[str, list[SetChange]]:
        """The classes that were compared, by judge."""
        return grouped_by([of for of in self.sets if of.is_class], "judge")

    @property
    def counting(self) -> Verdicts:
        """The verdicts that are of no probe."""
        return self.judged.where(~self.judged.derived)


def decide(comparison: Comparison, rules: GateRules, held: Held) -> Decision:
    """Decide about one suite.

    The scope holds the suite's ids alone. Selected cases without a result have no verdict.
    """
    received, judged, scope = comparison.verdicts, comparison.judged, held.scope
    # Probes with a rule are held against that alone.
    is_held_alone = comparison.everything.test.each(rules.probe_limits.__contains__)
    exchanged = comparison.everything.where(~is_held_alone)
    limits = judge_limits(judged, rules)
    session = _Session(
        comparison=comparison,
        never_reported=sorted(scope.selected.difference(received.ids)),
        sets=set_changes(exchanged, rules.max_drop, held.asked, by_slice=rules.by),
        limits=(*limits, *probe_limits(received, rules, scope)),
        rules=rules,
        held=held,
    )
    reasons = sorted(_reasons(session), key=lambda reason: reason.word != "FAIL")
    word: Word = "PASS" if len(judged) else ""
    if reasons:
        word = reasons[0].word
    active = held.accepts or session.is_active
    passed = word != "FAIL"
    if word == "UNCLEAR" and rules.unclear is not None:
        passed = rules.unclear == "pass"
    elif word == "UNCLEAR" and active:
        # That is UNCLEAR about the judge as it is, and not about a change of it.
        passed = all(reason.kind == "useless" for reason in reasons)
    lines = comparison.lines or ()
    new_wrong = [case for case in judged.ids[judged.wrong] if case not in lines]
    accepted = new_wrong if held.accepts else ()
    unscored = received.where(received.unscored)
    return Decision(
        word=word,
        headline=_headline(session, reasons),
        passed=passed,
        active=active,
        beside=tuple(_beside(session, word, reasons, accepted)),
        reasons=reasons,
        sets=session.sets,
        limits=session.limits,
        comparison=comparison if session.has_baseline else None,
        compared=len(comparison.everything),
        of_baseline=len(lines),
        never_reported=session.never_reported,
        unscored=dict(zip(unscored.ids, unscored.outcome.values, strict=True)),
        accepted=accepted,
        new_wrong=new_wrong,
    )


_NOTHING_COMPARED = {
    NOT_IN_BASELINE: "the baseline has no case of this suite",
    CASE_CHANGED: "every case has another text or label in the baseline",
}


def _reasons(session: _Session) -> Iterator[Reason]:
    """Why it fails or is unclear, in the order in which it is told."""
    held, comparison = session.held, session.comparison
    if held.accepts:
        yield from _missing(session)
        yield from _limits(session)
        yield from _useless(session)
        return
    if session.has_baseline and len(session.judged) and not len(comparison.everything):
        text = "nothing could be compared with the baseline"
        for kind, why in _NOTHING_COMPARED.items():
            if {*comparison.not_comparable.values()} == {kind}:
                text = f"{text}, because {why}"
        yield Reason("UNCLEAR" if session.rules.has_limits else "FAIL", "uncompared", text)
    yield from _drops(session)
    yield from _missing(session)
    yield from _limits(session)
    yield from _wrong(session)
    yield from _probes(session)
    yield from _left(session)
    yield from _grown(session)
    yield from _useless(session)
    if session.rules.proof:
        yield from _unproven(session)


def _missing(session: _Session) -> Iterator[Reason]:
    """Cases without a verdict, and a gate that has looked at nothing."""
    received = session.comparison.verdicts
    unscored = received.where(received.unscored)
    outcomes: list[str] = [*unscored.outcome.values]
    outcomes += [NEVER_REPORTED] * len(session.never_reported)
    if outcomes:
        has = "has" if len(outcomes) == 1 else "have"
        why = session.held.no_verdict or f"({_numbers(outcomes)})"
        text = f"{counted(len(outcomes), 'case')} {has} no verdict {why}"
        if session.held.noun("") == "prompt" and {*outcomes} == {"unrecorded"}:
            text = f"the new prompt is not recorded, so {text}"
        cases = sorted([*unscored.ids, *session.never_reported])
        yield Reason("FAIL", "missing", text, "", cases)
    elif session.is_active and not len(session.judged):
        others = _numbers(received.outcome.values) or "no case was run"
        yield Reason("FAIL", "missing", f"nothing was judged ({others})")


def _numbers(outcomes: Iterable[str]) -> str:
    """How many cases have each outcome, the most frequent first."""
    numbers = Counter(outcomes).most_common()
    return ", ".join(f"{number:,} {outcome}" for outcome, number in numbers)


def _drops(session: _Session) -> Iterator[Reason]:
    """What each judge has lost, as the rule says of its sets."""
    for judge, of_judge in grouped_by(session.sets, "judge").items():
        worse = [of for of in of_judge if of.finding.word == "FAIL"]
        shown = worse or [of for of in of_judge if of.finding.word]
        if not shown:
            continue
        text = f"{session.held.subject(judge)} {loss_text(shown)}"
        cases = sorted({case for of in shown for case in of.lost})
        if worse:
            yield Reason("FAIL", "drop", text, judge, cases)
            continue
        surest = min(shown, key=lambda of: of.finding.p_value)
        text = f"{text}; {chance_text(surest, session.held.noun(judge))}"
        yield Reason("UNCLEAR", "drop", text, judge, cases, needed_text(surest))


def _limits(session: _Session) -> Iterator[Reason]:
    for limit in session.limits:
        text = limit_text(limit, session.held.subject(limit.judge))
        if limit.figure.value is None:
            yield Reason("FAIL", "limit", text, limit.judge)
        elif limit.broken:
            word: _NoPass = "UNCLEAR" if limit.by_flicker else "FAIL"
            kind: Kind = "probe" if limit.rule == "max_rate" else "limit"
            yield Reason(word, kind, text, limit.judge, limit.cases)
        elif limit.unproven:
            yield Reason("UNCLEAR", "proof", text, limit.judge)


def _wrong(session: _Session) -> Iterator[Reason]:
    """What no baseline, limit or rule decides about fails where it is wrong."""
    comparison = session.comparison
    if session.has_baseline and not len(comparison.everything):
        return
    received = comparison.verdicts
    # What has no verdict is a part of what may be wrong.
    judged = received.where(received.has_verdict | received.unscored)
    is_decided = is_limited(judged, session.rules)
    if session.has_baseline:
        is_decided |= comparison.has_group(judged)
    # Of what probes turn is decided by itself where anything is.
    is_decided[judged.derived] = session.is_active
    reasons = []
    for judge, of_judge in judged.where(~is_decided).grouped("judge").items():
        cases = of_judge.wrong_ids
        if cases:
            text = f"{session.held.subject(judge)} {_wrong_text(of_judge)}"
            if session.has_baseline:
                text = f"{text}; the baseline has no case of this rubric, class or judge"
            elif session.is_active:
                text = f"{text}; no limit covers these cases"
            reasons.append(Reason("FAIL", "wrong", text, judge, cases))
    yield from sorted(reasons, key=lambda reason: -len(reason.cases))


def _probes(session: _Session) -> Iterator[Reason]:
    """What probes turn that have neither a rule nor lines in the baseline."""
    if not session.is_active:
        return
    received = session.comparison.verdicts
    is_apart = received.before.equals(None)
    has_rule = received.test.each(session.rules.probe_limits.__contains__)
    for table in probe_tables(received.where(is_apart & ~has_rule)):
        if not table.cases:
            continue
        text = f"{session.held.subject(table.judge)} is misled by {one_line(table.probe)}"
        text = f"{text} in {out_of(len(table.cases), len(table.judged), 'verdict')}"
        if table.is_finding:
            yield Reason("FAIL", "probe", text, table.judge, table.cases)
        else:
            text = f"{text}, but this may be flicker (changes by chance)"
            yield Reason("UNCLEAR", "probe", text, table.judge, table.cases)


def _left(session: _Session) -> Iterator[Reason]:
    """What left the comparison, or with limits alone the session, that a reader has to know."""
    held, comparison = session.held, session.comparison
    skipped = {*held.left_out}
    compared = len(comparison.everything)
    if not compared:
        is_left = session.rules.has_limits and len(session.judged) and skipped
        if is_left and not session.has_baseline:
            of_all = counted(len(session.judged) + len(skipped), "case")
            text = f"judged {len(session.judged):,} of {of_all}, and skipped {len(skipped):,}"
            yield Reason("UNCLEAR", "left", text, "", sorted(skipped))
        return
    missing, parts = missing_from(comparison)
    skipped.intersection_update(comparison.lines or ())
    if skipped:
        parts.append(f"{len(skipped):,} skipped")
    if held.common:
        parts.append("--common compares only the cases of both tables")
    if parts:
        cases = sorted(missing | skipped)
        total = compared + len(cases)
        text = f"the comparison has {compared:,} of {counted(total, 'case')}: {', '.join(parts)}"
        yield Reason("UNCLEAR", "left", text, "", cases)


def _grown(session: _Session) -> Iterator[Reason]:
    """Judges that are worse on new cases than on those that were compared: by Fisher's exact test
    (Fisher 1935, J R Stat Soc 98:39-82), of all and of each class.
    """
    compared = session.comparison.compared.grouped("judge")
    new = session.comparison.new
    new = new.where(session.comparison.has_group(new))
    for judge, of_judge in new.grouped("judge").items():
        reasons = []
        for of_class in (None, *of_judge.case_class.present()):
            of_new, of_compared = of_judge, compared[judge]
            if of_class is not None:
                of_new = of_new.where(of_new.case_class.equals(of_class))
                of_compared = of_compared.where(of_compared.case_class.equals(of_class))
            wrong, others = len(of_new.wrong_ids), len(of_compared.wrong_ids)
            more = wrong / len(of_new) - others / len(of_compared)
            p_value = fisher_test(wrong, len(of_new), others, len(of_compared))
            if more <= session.rules.max_drop + _ROUNDING or p_value > DOUBT:
                continue
            word: _NoPass = "UNCLEAR"
            if p_value < SURE and wrong >= FEWEST_LOST:
                word = "FAIL"
            kind = "new case" if of_class is None else f'new "{one_line(of_class.word)}" case'
            text = (
                f"{session.held.subject(judge)} is wrong on {out_of(wrong, len(of_new), kind)}, "
                f"but on {out_of(others, len(of_compared), 'compared case')}"
            )
            reasons.append(Reason(word, "grown", text, judge, of_new.wrong_ids))
        # One says it: a failure, of all cases where these fail.
        yield from sorted(reasons, key=lambda reason: reason.word != "FAIL")[:1]


def opposite(judged: Verdicts, subject: str, turning: str) -> Iterator[Reason]:
    """Whether a judge says the opposite of labels of two classes: kappa's upper end is below 0."""
    known, pairs = judged.answered
    has_two = all(scale.has_two for scale in judged.scale.present())
    if len(known.label.present()) < 2 or not has_two:  # noqa: PLR2004 - both
        return
    # As if no two cases shared a run.
    kappa = estimate_kappa(pairs, range(len(pairs)))
    if kappa.upper is not None and kappa.upper < 0:
        text = f"{subject} says the opposite of the labels: perhaps two values are swapped"
        text = f"{text}; {turning}" if turning else text
        yield Reason("UNCLEAR", "opposite", text, judged.judge.present()[0])


def _useless(session: _Session) -> Iterator[Reason]:
    """Judges that are worth nothing, whatever the comparison says; of a part nothing is said, as
    the others may turn it.
    """
    if session.held.scope.deselected or session.comparison.verdicts.unscored.any():
        return
    for judge, of_judge in session.counting.grouped("judge").items():
        known, pairs = of_judge.paired
        if len(pairs) < 2:  # noqa: PLR2004 - a single case has one label, whatever the suite
            continue
        subject = session.held.subject(judge)
        turned = [*opposite(of_judge, subject, session.held.turning)]
        if turned:
            yield from turned
            continue
        labels, answers = known.label.present(), {*map(int, pairs[:, 1])}
        scale = known.scale.present()[0]
        text = ""
        if len(labels) == 1:
            label = scale.said(as_level(pairs[0, 0]))
            text = f"every label is {label}, so a judge could always say {label} and be right"
        elif len(answers) == 1:
            [answer] = answers
            text = f"{subject} always says {scale.kind.meant(answer)}"
        else:
            # As if no two cases shared a run; the lower bound alone is asked for, at 95%.
            known, pairs = of_judge.answered
            kappa = estimate_kappa(pairs, range(len(pairs)), 0.9, is_ordered=known.is_ordered)
            if kappa.lower is None or kappa.lower <= 0:
                text = f"{subject} is not shown to be better than chance"
        if text:
            yield Reason("UNCLEAR", "useless", text, judge)


def _unproven(session: _Session) -> Iterator[Reason]:
    """Classes of which other runs do not exclude a loss of `max_drop`; a replay has none."""
    max_drop = session.rules.max_drop
    compared = session.comparison.compared.grouped("judge")
    for judge, classes in session.classes.items():
        repeats = compared[judge].kinds("before", "answers")
        are_same = repeats.each(lambda kind: sorted(kind[0]) == sorted(kind[1]))
        is_replay = bool((compared[judge].same_judge.each(bool) & are_same).all())
        if is_replay or all(of.bound < max_drop for of in classes):
            continue
        subject = session.held.subject(judge)
        text = f"{subject} may be worse by {points(max_drop)} or more on other cases"
        yield Reason("UNCLEAR", "proof", text, judge)


def _headline(session: _Session, reasons: Sequence[Reason]) -> str:
    """What failed, or is unclear, or of PASS why, and of which part of the suite that is said."""
    held = session.held
    if reasons:
        first = reasons[0]
        alike = {reason.judge for reason in reasons if reason[:2] == first[:2]}
        more = len(alike - {first.judge})
        text = (
            f"{first.text}; there is a similar finding on {counted(more, 'more judge')}"
            if more
            else first.text
        )
    else:
        text = _pass_text(session)
    regressions = session.comparison.regressions
    if held.accepts and regressions:
        text = f"{text}; this update accepts {counted(len(regressions), 'newly wrong case')}"
    if held.changed:
        text = f"this change updates the baseline: {held.changed}; {text}"
    deselected = held.scope.deselected - held.left_out
    return f"{text} ({counted(len(deselected), 'case')} deselected)" if deselected else text


def _pass_text(session: _Session) -> str:
    if session.held.accepts:
        return "these verdicts are now the baseline"
    if not len(session.judged):
        return "there was no case to judge"
    for judge, classes in session.classes.items():
        allowed = [of for of in classes if of.drop > 0 and of.finding.p_value < SURE]
        if allowed:
            text = f"{session.held.subject(judge)} {loss_text(allowed)}"
            lost = points(max(of.drop for of in allowed))
            return f"{text}: a loss of {lost}, and the gate allows {points(session.rules.max_drop)}"
    judges = session.judged.judge.present()
    several = len(judges) > 1
    subject = counted(len(judges), "judge") if several else session.held.subject(judges[0])
    is_or_are = f"{subject} {'are' if several else 'is'}"
    if session.sets:
        before_and_now = session.comparison.verdicts.kinds("before", "answers").names
        if not session.held.changed and all(was in (None, now) for was, now in before_and_now):
            is_or_are = "no verdict changed:"
        return compared_text(is_or_are, session.sets)
    # Of verdicts that are compared with labels alone, those of probes count where there are no
    # others.
    judged = session.counting if len(session.counting) else session.judged
    wrong, wrong_labels = len(judged.wrong_ids), session.held.wrong_labels
    labels, interval = counted(len(judged), "label"), right_text(judged)
    if wrong:
        text = f"{is_or_are} wrong on {out_of(wrong, len(judged), 'case')}"
        return f"{text}, as the limits allow{interval}"
    every = "all " if len(judged) > 1 else ""
    text = f"{subject} {'agree' if several else 'agrees'} with {every}{labels}"
    if wrong_labels:
        return f"{text}, of which people found {wrong_labels:,} wrong"
    return f"{text}{interval}"


def _wrong_text(judged: Verdicts) -> str:
    """What a judge has wrong, class by class, and how many verdicts probes turned."""
    classes: dict[CaseClass, None] = {}
    for scale in judged.scale.present():
        classes |= dict.fromkeys(scale.classes)
    parts = []
    for of_class in classes:
        cases = judged.where(judged.case_class.equals(of_class) & ~judged.derived)
        if number := len(cases.wrong_ids):
            text, answers = of_class.wrong(number, len(cases)), called(cases.where(cases.wrong))
            text = mistakes_text(of_class, len(cases), answers, text)
            if missing := int(cases.unscored.sum()):
                # A share would be one of what is known.
                text = f"{text.partition(' (')[0]} ({missing:,} without a verdict)"
            parts.append(text)
    derived = judged.where(judged.derived)
    if number := len(derived.wrong_ids):
        parts.append(f"is misled by probes in {out_of(number, len(derived), 'verdict')}")
    return " and ".join(parts)


def _beside(
    session: _Session, word: Word, reasons: Sequence[Reason], accepted: Sequence[str]
) -> Iterator[str]:
    """What stands below the headline: the other reasons, what chance does, what was gained, what is
    let through, and what was left out on purpose.
    """
    for reason in reasons[1:]:
        yield f"also: {reason.text}" if reason.word != word else reason.text
    by_judge = grouped_by(session.sets, "judge")
    for judge, of_judge in by_judge.items():
        whose = f"{session.held.subject(judge)}: " if len(by_judge) > 1 else ""
        for text in about_sets(of_judge, session.held.noun(judge)):
            yield f"{whose}{text}"
    if accepted:
        yield f"the baseline now holds {counted(len(accepted), 'wrong verdict')} of this session"
    if session.held.left_out:
        yield f"markers skipped {counted(len(session.held.left_out), 'case')}"
    if len(session.comparison.everything):
        new = session.comparison.new
        if wrong := len(new.wrong_ids):
            verb = "has" if wrong == 1 else "have"
            yield f"{out_of(wrong, len(new), 'new case')} {verb} a wrong verdict"
        fresh = int((~session.comparison.has_group(new)).sum())
        if fresh:
            yield f"the rubric, class or judge of {counted(fresh, 'new case')} is new, too"
