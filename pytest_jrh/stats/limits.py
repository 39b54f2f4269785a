"""The figures of probes: how many verdicts turned, per variant, and which way; whether they turn
more often than by chance, and more often than is allowed. And the limits that these, and the
figures of each judge, are held against.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import variance
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_jrh.core import Json, frozen, one_line, out_of
from pytest_jrh.core.scales import NOT_APPLICABLE, CaseClass
from pytest_jrh.core.sections import GateRules
from pytest_jrh.stats.intervals import (
    NO_VERDICT,
    SIGNIFICANCE,
    Estimate,
    binomial_tail,
    effective_size,
    majority_flip,
)
from pytest_jrh.stats.statistics import FALSE_ALARMS, false_alarms, flicker_of, share_of
from pytest_jrh.stats.verdicts import Bools, Coded, Scope, Verdicts, answer_of, distinct

SUPPOSED_FLICKER = 0.02
"""How often a verdict turns by itself, at the least: of a judge that was never asked twice that is
not known, and one that never contradicted itself may yet do so.
"""


def chance_of(judged: Verdicts, chance: float) -> float:
    """The probability that so many verdicts turn where each does with the probability `chance`.

    One-sided, by the binomial distribution on as many cases as these are good for; 1 where none
    turned.
    """
    turned = judged.wrong
    if not turned.any():
        return 1.0
    size = effective_size(turned, judged.cluster)
    return binomial_tail(float(turned.mean()) * size, size, chance)


@frozen
class ProbeRow:
    """What became of the verdicts on changed cases, where the judge is right on the unchanged ones.

    `variant` is empty for all of a probe. `rate` is the share of verdicts that are wrong;
    `towards` counts them by the word of the answer that they turned to, and of levels `shift` is
    the mean change of the score.
    """

    variant: str
    rate: Estimate
    towards: Mapping[str, int]
    shift: float | None

    @property
    def n(self) -> int:
        """How many verdicts there are."""
        return self.rate.n

    @property
    def turned(self) -> int:
        """How many of them are wrong."""
        return self.rate.count or 0


@frozen
class ProbeTable:
    """One probe under one judge of a suite: all its cases, and those of each variant.

    `flicker` is the judge's on the unchanged cases. `p_value` is the probability of what was seen,
    or more, if verdicts turned by flicker alone, `adjusted` the same after Holm's adjustment over
    the tables of the suite. `judged` are the verdicts.
    """

    suite: str
    judge: str
    probe: str
    total: ProbeRow
    rows: Sequence[ProbeRow]
    judged: Verdicts
    flicker: Estimate
    p_value: float
    adjusted: float = 1.0

    @property
    def cases(self) -> Sequence[str]:
        """The ids of the cases whose verdict turned."""
        return self.judged.wrong_ids

    @property
    def is_finding(self) -> bool:
        """Whether verdicts turn more often than by flicker, at a level of all probes and judges."""
        return self.adjusted < SIGNIFICANCE


def probe_tables(verdicts: Verdicts) -> Sequence[ProbeTable]:
    """Compute the figures of probes, by suite and judge in the order in which they appear."""
    was_judged = ~verdicts.outcome.equals("generated")
    tables = []
    for suite, of_suite in verdicts.where(verdicts.derived & was_judged).grouped("suite").items():
        of_probes = []
        for judge, of_judge in of_suite.grouped("judge").items():
            for probe, verdicts_of_probe in of_judge.grouped("test").items():
                of_probes.append(_probe_table(suite, judge, probe, verdicts_of_probe))
        adjusted = holm([table.p_value for table in of_probes])
        for table, p_value in zip(of_probes, adjusted, strict=True):
            tables.append(replace(table, adjusted=p_value))
    return tables


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values of several decisions, in their order, so that all hold together at one level.

    Holm 1979, Scand J Stat 6:65-70.
    """
    order = np.argsort(p_values)
    steps = np.arange(len(order), 0, -1) * np.sort(p_values)
    reached = np.minimum(1.0, np.maximum.accumulate(steps))
    adjusted: list[float] = reached[np.argsort(order)].tolist()
    return adjusted


def _probe_table(suite: str, judge: str, probe: str, verdicts: Verdicts) -> ProbeTable:
    judged = verdicts.judged
    # How often the judge contradicts itself on the unchanged cases.
    _, first_of_base = distinct(judged.base_case.codes)
    flicker = flicker_of(judged.where(first_of_base), "base")
    by_variant = verdicts.grouped("variant")
    rows = [_probe_row(variant, by_variant[variant]) for variant in sorted(by_variant)]
    return ProbeTable(
        suite,
        judge,
        probe,
        _probe_row("", verdicts),
        rows,
        flicker=flicker,
        p_value=_p_value(judged, max(flicker.value or 0.0, SUPPOSED_FLICKER)),
        judged=judged,
    )


def _probe_row(variant: str, verdicts: Verdicts) -> ProbeRow:
    judged = verdicts.judged
    towards = Counter[tuple[int, str]]()
    shift, shifted = 0, 0
    kinds = judged.kinds("scale", "label", "score", "base", "outcome")
    numbers = np.bincount(kinds.codes).tolist()
    for (scale, label, score, base_scores, outcome), number in zip(
        kinds.names, numbers, strict=True
    ):
        answer, base_score = answer_of(scale, label, score), scale.settled(base_scores)
        if answer is None:
            continue
        if not scale.is_ordered and outcome == "disagree":
            towards[answer, scale.word(answer)] += number
        elif scale.is_ordered and base_score is not None:
            shift += number * (answer - base_score)
            shifted += number
    return ProbeRow(
        variant,
        share_of(judged, judged.wrong),
        towards={word: number for (_, word), number in sorted(towards.items())},
        shift=shift / shifted if shifted else None,
    )


def _p_value(judged: Verdicts, chance: float) -> float:
    """The smallest of all cases together and of each part of a variant's name, such as an attack,
    times their number (Bonferroni): a judge may fall for one of many.
    """
    parts: dict[str, None] = {}
    for variant in judged.variant.present():
        parts |= dict.fromkeys(variant.split("-"))
    groups = [judged]
    for part in parts:
        with_part = {name for name in judged.variant.names if part in name.split("-")}
        groups.append(judged.where(judged.variant.each(with_part.__contains__)))
    values = [chance_of(group, chance) for group in groups]
    return min(1.0, min(values) * len(values))


# What is computed in another order is the same.
_ROUNDING = 1e-9
# A limit that is proposed leaves so many cases, or levels.
_SLACK = 2
# One-sided, at 5%.
_FLICKER_QUANTILE = 1.645
# Both ends of it are one-sided at 95%.
_RATE_LEVEL = 0.9


Rule = Literal["min_recall", "max_false_alarms", "min_accuracy", "max_error", "max_rate"]

# The figure of the class that each limit of a judge is about; empty for all cases.
_FIGURES: dict[Rule, str] = {
    "min_recall": "recall",
    "max_false_alarms": "false_positive_rate",
    "min_accuracy": "",
    "max_error": "",
}


@frozen
class Limit:
    """One limit applied to one judge, or of `max_rate` to a probe's table: `figure` must reach
    `limit`, or not exceed it. `by_flicker` says that the flicker alone may break it. `of_class` is
    the class of its cases, where it is about one, and `word` names it where it is no rule's own.
    """

    rule: Rule
    judge: str
    limit: float
    figure: Estimate
    broken: bool
    by_flicker: bool = False
    unproven: bool = False
    probe: str = ""
    cases: Sequence[str] = ()
    of_class: CaseClass | None = None
    word: str = ""

    @property
    def name(self) -> str:
        """The rule, with its class."""
        return f"{self.rule} ({one_line(self.word)})" if self.word else self.rule


class _Bound(NamedTuple):
    """What a rule allows of the cases of a class, which `word` names; where that is empty, of those
    that the rule is about.
    """

    rule: Rule
    word: str
    limit: float


def _bounds(rules: GateRules, verdicts: Verdicts) -> Iterator[_Bound]:
    """What the rules allow of a judge with these verdicts."""
    scales = verdicts.scale.present()
    for rule in _FIGURES:
        limit = getattr(rules, rule)
        if isinstance(limit, dict):
            for word, of_word in limit.items():
                yield _Bound(rule, word, of_word)
        elif limit is not None:
            words: dict[str, None] = {}
            for scale in scales:
                if scale.has_classes and rule == "min_recall":
                    words |= dict.fromkeys(of.word for of in scale.classes)
            if not words or not all(scale.has_classes for scale in scales):
                yield _Bound(rule, "", limit)
            for word in words:
                yield _Bound(rule, word, limit)


def judge_limits(judged: Verdicts, rules: GateRules) -> Iterator[Limit]:
    """Hold the mean error of each judge's cases against what the limits allow."""
    for judge, of_judge in judged.grouped("judge").items():
        for bound in _bounds(rules, of_judge):
            rule, word, limit = bound
            cases = of_judge.where(_is_about(bound, of_judge) & ~of_judge.derived)
            is_wrong = cases.wrong
            if rule == "max_false_alarms":
                is_wrong = false_alarms(cases)
            about = word or _FIGURES[rule]
            allowed = 1 - limit if rule in ("min_recall", "min_accuracy") else limit
            errors = _levels_off(cases) if rule == "max_error" else is_wrong.astype(float)
            n, unproven = len(errors), False
            if rule == "max_error":
                figure = Estimate(float(errors.mean()), n=n) if n else Estimate(why=NO_VERDICT)
            else:
                right = share_of(cases, ~is_wrong)
                figure = right.complement() if rule == "max_false_alarms" else right
                unproven = rules.proof and (right.lower is None or right.lower < 1 - allowed)
            too_many = math.ceil(errors.sum() - allowed * n - _ROUNDING)
            flicker = _levels_variance(of_judge) if rule == "max_error" else _variance(of_judge)
            by_flicker = _FLICKER_QUANTILE * math.sqrt(n * flicker) + _ROUNDING
            yield Limit(
                rule,
                judge,
                limit,
                figure,
                broken=too_many > 0,
                by_flicker=0 < too_many <= by_flicker,
                unproven=unproven,
                cases=tuple(cases.ids[is_wrong]),
                of_class=next(iter(cases.case_class.present() if about else ()), None),
                word=word,
            )


def _is_about(bound: _Bound, verdicts: Verdicts) -> Bools:
    """Which cases a limit is about."""
    figure, word = _FIGURES[bound.rule], bound.word.casefold()

    def is_of_class(of_class: CaseClass | None) -> bool:
        if of_class is None or not (word or figure):
            return not (word or figure)
        return of_class.word.casefold() == word if word else of_class.figure == figure

    return verdicts.case_class.each(is_of_class)


def is_limited(verdicts: Verdicts, rules: GateRules) -> Bools:
    """Whether a limit decides about mistakes like these."""
    limited = np.zeros(len(verdicts), bool)
    for bound in _bounds(rules, verdicts):
        is_about = _is_about(bound, verdicts)
        if bound.rule == "max_false_alarms":
            is_about &= ~verdicts.score.equals(NOT_APPLICABLE)
        limited |= is_about
    return limited


def _levels_off(verdicts: Verdicts) -> npt.NDArray[Any]:
    """How far off each verdict is, in levels."""
    _, pairs = verdicts.answered
    return np.abs(pairs[:, 1] - pairs[:, 0])


def _asked_twice(verdicts: Verdicts) -> Verdicts:
    """The verdicts, with answers that the same judge gave before beside those of now."""
    kinds = verdicts.kinds("answers", "before", "same_judge")
    answers = []
    for now, before, is_same in kinds.names:
        answers.append((*now, *before) if is_same and before else now)
    return replace(verdicts, answers=Coded(answers, kinds.codes))


def _variance(verdicts: Verdicts) -> float:
    """By how much it varies whether a majority is right when the judge is asked again; 0 where
    neither repeats nor the same judge's verdicts in the baseline tell.
    """
    flicker = flicker_of(_asked_twice(verdicts))
    most = int(verdicts.answers.each(len, int).max(initial=1))
    flip = majority_flip(flicker.value or 0.0, most)
    return flip * (1 - flip)


def _levels_variance(verdicts: Verdicts) -> float:
    """By how much the distance of a verdict from its label varies, in squares of levels."""
    variances = _asked_twice(verdicts).kinds("answers", "label").each(_levels_variance_of, float)
    known = variances[variances >= 0]
    return float(known.mean()) if len(known) else 0.0


def _levels_variance_of(kind: tuple[Sequence[int], int | None]) -> float:
    """That of one case; below 0 where nothing tells it."""
    scores, label = kind
    if label is None or len(scores) == 1:
        return -1.0
    return variance([abs(score - label) for score in scores])


def proposed_limits(verdicts: Verdicts) -> Json:
    """The limits that each judge of a suite keeps to with two cases to spare, in hundredths: a
    limit at the figure itself would be broken by the next flicker. None that everything keeps to.
    """
    judged = verdicts.judged
    if judged.is_ordered:
        worst = _worst_mean(judged, _levels_off)
        return {"max_error": worst} if worst else {}
    classes: dict[CaseClass, None] = {}
    for scale in judged.scale.present():
        classes |= dict.fromkeys(scale.classes)
    limits: Json = {}
    recalls: dict[CaseClass, float] = {}
    for of_class in classes:
        is_alarm = of_class.figure == FALSE_ALARMS
        cases = judged.where(judged.case_class.equals(of_class))
        worst = _worst_mean(cases, false_alarms if is_alarm else lambda cases: cases.wrong)
        if not 0 < worst < 1:
            continue
        if is_alarm:
            limits["max_false_alarms"] = worst
        else:
            recalls[of_class] = round(1 - worst, 2)
    if [of_class.figure for of_class in recalls] == ["recall"]:
        [limits["min_recall"]] = recalls.values()
    elif recalls:
        limits["min_recall"] = {of_class.word: limit for of_class, limit in recalls.items()}
    return dict(sorted(limits.items(), reverse=True))


def _worst_mean(judged: Verdicts, errors_of: Callable[[Verdicts], npt.NDArray[Any]]) -> float:
    """The largest mean of errors that a judge has with two more, in hundredths."""
    worst = 0.0
    for of_judge in judged.where(~judged.derived).grouped("judge").values():
        errors = errors_of(of_judge)
        if len(errors):
            mean = (errors.sum() + _SLACK) / len(errors)
            worst = max(worst, math.ceil(100 * mean - _ROUNDING) / 100)
    return worst


def probe_limits(received: Verdicts, rules: GateRules, scope: Scope) -> Iterator[Limit]:
    """Hold the share of verdicts that each probe turns against its limit.

    A probe without selected cases is left out, unless the session is the whole suite.
    """
    if not rules.probe_limits:
        return
    tables = {(table.probe, table.judge): table for table in probe_tables(received)}
    judges = received.judged.judge.present()
    for probe, limit in rules.probe_limits.items():
        present = [judge for name, judge in tables if name == probe]
        for judge in present or ([] if scope.deselected else judges):
            table = tables.get((probe, judge))
            if table is None or not len(table.judged):
                yield Limit(
                    "max_rate", judge, limit, Estimate(why=NO_VERDICT), broken=True, probe=probe
                )
                continue
            rate = share_of(table.judged, table.judged.wrong, _RATE_LEVEL)
            is_more = rate.value is not None and rate.value > limit + _ROUNDING
            yield Limit(
                "max_rate",
                judge,
                limit,
                rate,
                broken=is_more and table.is_finding,
                unproven=rules.proof and (rate.upper is None or rate.upper > limit),
                probe=probe,
                cases=table.cases,
            )


def limit_text(limit: Limit, subject: str) -> str:
    """What a limit comes to, as a clause about the judge or the probe."""
    n, wrong = limit.figure.n, len(limit.cases)
    if limit.rule == "max_rate":
        of = f" by {one_line(limit.judge)}" if limit.judge else ""
        if limit.figure.value is None:
            return f"no case of {limit.probe} has a verdict{of}"
        text = f"{limit.probe} misled the judge in {out_of(wrong, n, 'verdict')}{of}"
        allowed = f"max_rate {100 * limit.limit:.4g}% allows {int(limit.limit * n + _ROUNDING):,}"
    elif limit.figure.value is None:
        return f"{limit.name} of {subject} is not known, because {limit.figure.why}"
    elif limit.rule == "max_error":
        text = f"{subject} is off by {limit.figure.value:.2f} levels on average"
        allowed = f"max_error allows {limit.limit:.4g}"
    else:
        text = f"{subject} is wrong on {out_of(wrong, n, 'case')}"
        if limit.of_class is not None:
            text = f"{subject} {limit.of_class.wrong(wrong, n)}"
        if limit.word and limit.of_class is not None and limit.of_class.figure == FALSE_ALARMS:
            text = f"{subject} is wrong on {out_of(wrong, n, f'{limit.word} case')}"
        share = limit.limit if limit.rule == "max_false_alarms" else 1 - limit.limit
        allowed = f"{limit.name} {100 * limit.limit:.4g}% allows {int(share * n + _ROUNDING):,}"
    text = f"{text}; {allowed}"
    if limit.by_flicker:
        return f"{text}, but flicker (changes by chance) may be the only cause"
    if limit.unproven and not limit.broken:
        return f"{text}, but these cases do not show whether the judge keeps to the limit"
    return text
